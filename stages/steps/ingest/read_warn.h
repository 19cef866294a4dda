/* stages/steps/ingest/read_warn.h - what the stage `read` warns of: inputs that were perhaps not read as they were meant. */
#ifndef ST_READ_WARN_H
#define ST_READ_WARN_H

#include "chem/records/record.h"
#include "pipeline/workflow/stage.h"

/* A table whose column of SMILES is a guess, or of which several columns have one name. */
void st_read_warn_columns(pl_env *env, const char *path, const ch_reader *reader);

/* At the end: damaged files whose last records are lost; records without the data field that `title_from` names. */
pl_code st_read_warn_records(pl_env *env, pl_error *err);

/* At the end of all shards: files without records. */
pl_code st_read_warn_empty(pl_env *env, pl_error *err);

#endif
