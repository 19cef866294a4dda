/* models/model_meta.h - the metadata of a model file as records, and back.
 * Used by models/model_file.c alone; see models/model_file.h for the keys. */
#ifndef NN_MODEL_META_H
#define NN_MODEL_META_H

#include "models/model_file.h"
#include "models/safetensors.h"

/* Fills everything of m but model, params, bf16 and sha256. EDATA names the key. */
pl_code nn_model_meta_take(nn_model_file *m, bool *other_signs, const nn_tensors *all, pl_arena *mem, pl_error *err);

/* The metadata of m as strings in mem. */
pl_code nn_model_meta_list(const nn_meta **out, int *n, const nn_model_file *m, pl_arena *mem, pl_error *err);

#endif
