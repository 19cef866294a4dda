/* stages/steps/train/model_row.h - rows of `property` and `model`. Inside a transaction. */
#ifndef ST_MODEL_ROW_H
#define ST_MODEL_ROW_H

#include "models/files/model_file.h"
#include "pipeline/store/store.h"

typedef struct st_property_row {
    const char *name, *unit, *better, *task;
    bool converted; /* as of st_property_put */
} st_property_row;

/* The property that something predicts, as st_property_put has it; memory: mem. */
pl_code st_property_row_put(pl_store *s, const st_property_row *row, int64_t *property_id, pl_arena *mem, pl_error *err);

/* A row of model: name, path, sha256 and metadata; found by name, an existing row is updated and keeps its id. */
pl_code st_model_row_put(pl_store *s, const char *const text[4], int64_t *model_id, pl_error *err);

/* The property of target k of m; created if it does not exist. When a label of that
 * name has another unit (gap in Ha, predicted in eV) the prediction gets a
 * property of its own, "gap (eV)". A label without a unit gets that of m, unless m was
 * trained on it multiplied by a factor (converted). What m predicts as a class is one, whatever the library says of its label. */
pl_code st_property_put(pl_store *s, const nn_model_file *m, int32_t k, bool converted, int64_t *property_id, pl_arena *mem,
                        pl_error *err);

/* "gap (eV)". NULL: no memory. */
const char *st_property_own_name(const char *target, const char *unit, pl_arena *mem);
/* Whether a property has that name. */
bool st_property_is_own(const char *property, const char *target, const char *unit);
/* Whether its name ends with its unit, as such names do; that is not said again. */
bool st_property_names_unit(const char *property, const char *unit);

/* EDATA when m, read from path, is not what the training of this run stored as `name`. */
pl_code st_model_same(pl_store *s, const char *name, const nn_model_file *m, const char *path, pl_error *err);

/* EINPUT when m, read from path, is not the file whose hash is in the stage's key: it was replaced since. */
pl_code st_model_keyed(const pl_env *env, const nn_model_file *m, const char *path, pl_error *err);

/* Stores the row of m, found by name; an existing row is updated and keeps its id. */
pl_code st_model_put(pl_store *s, const nn_model_file *m, const char *path, int64_t *model_id, pl_arena *mem, pl_error *err);

#endif
