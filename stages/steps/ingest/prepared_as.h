/* stages/steps/ingest/prepared_as.h - how the library of results.db was prepared, so that a SMILES of a question is read in the same way. */
#ifndef ST_PREPARED_AS_H
#define ST_PREPARED_AS_H

#include <stdbool.h>

#include "pipeline/store/store.h"
#include "stages/steps/ingest/prepare_conf.h"

typedef struct st_prepared_as {
    st_prepare_conf conf; /* also while the stage runs; the defaults before it began; no structures are built */
    bool is_done;
    bool has_columns; /* its molecules are observations with columns of the table */
} st_prepared_as;

pl_code st_prepared_as_read(st_prepared_as *out, pl_store *s, pl_error *err);

#endif
