/* stages/commands/model_import.h - `molsieve model import`: weights of another program as a model file. */
#ifndef ST_MODEL_IMPORT_H
#define ST_MODEL_IMPORT_H

#include "pipeline/cli/cmd.h"

/* Reads the weights that args->arg[1] names and writes the file of --output. Returns the exit status. */
int st_model_import(const pl_args *args, pl_arena *mem);

#endif
