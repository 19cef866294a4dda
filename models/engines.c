/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "models/engine.h"

const nn_engine_kind *const nn_engines[] = { &nn_engine_cpu, &nn_engine_cuda, &nn_engine_ref, NULL };
