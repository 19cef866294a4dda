/* stages/files/data_dir.h - where the demonstration's workflows and data are.
 *
 * $MOLSIEVE_SHARE, else ../share/molsieve beside the program's folder (beside a library's also
 * ../../share/molsieve), else the source tree it was built from. */
#ifndef ST_DATA_DIR_H
#define ST_DATA_DIR_H

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

/* The folder that holds `workflows`. EIO: none of them has it; the text says where it was looked for. */
pl_code st_data_dir_find(const char **out, pl_arena *mem, pl_error *err);

/* The folder of the running program or of the library (pipeline/base/place.h), or "". */
const char *st_program_dir(char *buf, size_t size);

/* A variable of the environment. NULL: it is not set, or empty. */
const char *st_env(const char *name);

#endif
