/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "models/engine/engine.h"

const nn_engine_kind *const nn_engines[] = { &nn_engine_cpu, &nn_engine_cuda, &nn_engine_ref, NULL };

int64_t nn_engine_scale_after(const nn_engine_conf *c)
{
    bool fp16 = c->of_radial == NN_PREC_FP16 || c->of_contract == NN_PREC_FP16 || c->of_linear == NN_PREC_FP16;

    return fp16 ? NN_LOSS_SCALE_AFTER : 0;
}
