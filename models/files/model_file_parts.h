/* models/files/model_file_parts.h - converts the metadata of a model file to records and back.
 * Only the files of models/files use it; the keys are described in models/files/model_file.h. */
#ifndef NN_MODEL_FILE_PARTS_H
#define NN_MODEL_FILE_PARTS_H

#include <jansson.h>

#include "models/files/model_file.h"
#include "models/tensors/safetensors.h"

/* Words of the metadata, by the values of their enums; NULL-terminated. */
extern const char *const nn_edges_names[], *const nn_pooling_names[], *const nn_fusion_names[], *const nn_parity_names[],
                                                                                                    *const nn_basis_names[],
                                                                                                        *const nn_envelope_names[];
extern const char nn_range_section[]; /* a section that may be missing */
extern const char nn_lowest_key[];

/* Fills all fields of m except model, params, bf16 and sha256. *other_signs: the weights use the other sign
 * convention of the 3j symbols. EDATA names the key. */
pl_code nn_model_meta_take(nn_model_file *m, bool *other_signs, const nn_tensors *all, pl_arena *mem, pl_error *err);

/* The metadata of m as strings in mem. json: the settings of its members, from nn_members_tensors. */
pl_code nn_model_meta_list(const nn_meta **out, int *n, const nn_model_file *m, const char *const *json, pl_arena *mem,
                           pl_error *err);

/* The user's columns and the descriptors of the metadata `inputs`; model_extras.c. EDATA names the key. */
pl_code nn_extras_take(nn_inputs *in, const json_t *inputs, pl_arena *mem, pl_error *err);
void nn_extras_put(json_t *inputs, const nn_inputs *in);

/* What a target has of its own of its training molecules; model_domain.c. EDATA names the key. */
pl_code nn_own_domain_take(nn_target *t, const json_t *target, const nn_inputs *in, pl_arena *mem, pl_error *err);
/* false: memory was refused. */
bool nn_own_domain_put(json_t *target, const nn_target *t, const nn_inputs *in, pl_arena *mem);

/* The matrix p as two tensors, numbers in float32 and indices, in mem; model_sparse.c. EBUG: it is not 2:4. */
pl_code nn_model_pack(nn_tensor to[2], const nn_param *p, const float *w, pl_arena *mem, pl_error *err);
/* Reads such a matrix. EDATA: a tensor of it is missing or not what it must be. */
pl_code nn_model_unpack(float *w, const nn_tensors *all, const nn_param *p, pl_arena *mem, pl_error *err);
/* Whether `name` is one of the two of a matrix of a network whose parameters have this prefix. */
bool nn_model_is_packed(const nn_se3 *model, const nn_tensors *all, const char *name, const char *prefix);

#endif
