/* models/training/warm_start.h - warm start: fine-tuning from the parameters of another model.
 *
 * The two networks have the same layers. They may have different elements, atom features and targets: weights
 * of an element or feature that both have are copied, those of a new one keep their start values. Pooling has
 * no parameters and may differ, too. */
#ifndef NN_WARM_START_H
#define NN_WARM_START_H

#include "models/files/model_file.h"

/* ECONFIG: a setting differs that must be the same; the text names the first one. now: the new network, then: the
 * other model. */
pl_code nn_warm_start_check(const nn_se3_conf *now, const nn_se3_conf *then, pl_error *err);

/* Copies parameters of `from` to params [model->n_floats], which hold start values of a network with `inputs`.
 * same_targets: the last layer is copied, too. Returns the number of floats copied. */
size_t nn_warm_start_fill(float *params, const nn_se3 *model, const nn_inputs *inputs, const nn_model_file *from,
                          bool same_targets);

#endif
