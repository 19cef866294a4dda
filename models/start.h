/* models/start.h - a training that starts from the parameters of another model (fine-tuning).
 *
 * The two networks are alike, but may read other elements and atom features and predict other targets:
 * whatever belongs to an element or a feature goes with it, and what is new keeps its own start. Pooling has no
 * parameters and may differ too. */
#ifndef NN_START_H
#define NN_START_H

#include "models/model_file.h"

/* ECONFIG names the first setting in which they differ and must not. */
pl_code nn_start_check(const nn_se3_conf *now, const nn_se3_conf *then, pl_error *err);

/* params [model->n_floats], initialised, of a network that reads `inputs`. same_targets: the last layer of
 * `from` is taken too. Returns how many numbers were taken. */
size_t nn_start_fill(float *params, const nn_se3 *model, const nn_inputs *inputs, const nn_model_file *from, bool same_targets);

#endif
