/* pipeline/workflow/settings_parts.h - reads one value of a settings file, by the type of its field. */
#ifndef PL_SETTINGS_PARTS_H
#define PL_SETTINGS_PARTS_H

#include "pipeline/workflow/settings.h"

/* Stores the value of `node` at `at` (the member of the settings struct), or adds a
 * problem and leaves the default. `path` is the whole dotted name, for messages. */
void pl_settings_value(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path);

/* The field "value" of a PL_KEYED map whose records have no other besides the name: NAME: x then stands for NAME: {value: x}. */
const pl_field *pl_settings_short(const pl_field *f);

#endif
