/* stages/commands/model_join.h - `molsieve model join`: the networks of several model files in one. */
#ifndef ST_MODEL_JOIN_H
#define ST_MODEL_JOIN_H

#include "pipeline/cli/cmd.h"

/* Reads the models that args->arg[1..] name and writes the file of --output. Returns the exit status. */
int st_model_join(const pl_args *args, pl_arena *mem);

#endif
