/* pipeline/base/plugin.h - opens a plugin: a shared library that is not linked, so that the program runs without it.
 *
 * It is searched in the directory $MOLSIEVE_PLUGINS, in the program's directory, and in ../lib/molsieve relative to that. */
#ifndef PL_BASE_PLUGIN_H
#define PL_BASE_PLUGIN_H

#include "pipeline/base/error.h"

/* *function: the address of `symbol`, a function. `who` begins the message: "engine cuda". ECONFIG: the library was not found,
 * cannot be loaded, or lacks the symbol. It stays open; opening it again is cheap. Sets the variables of the environment that
 * CUDA reads when it is first used, unless they are set. */
pl_code pl_plugin_cuda(void **function, const char *symbol, const char *who, pl_error *err);

#endif
