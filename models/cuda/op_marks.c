/* SPDX-License-Identifier: Apache-2.0 */
/* The time of each operation of an engine that is watched (models/engine/op_clock.h), as the device measures it: all work is in
 * stream 0, with a mark where an operation ends. Training steps of the engine itself, which run as graphs, are not timed. */
#include "models/cuda/cuda_engine.h"

static bool is_timed(const nn_engine *e) { return e->clock != NULL && e->training.memory == NULL; }

void nn_cuda_watch(nn_engine *e, nn_op_clock *clock)
{
    (void)e->ops->status(e->gpu); /* no work is on its way */
    e->ops->alone(e->gpu, clock != NULL);
    e->clock = clock;
}

void nn_cuda_lap_start(nn_engine *e)
{
    e->marks.n = 0;
    if (is_timed(e))
        e->ops->mark(e->gpu, 0);
}

void nn_cuda_lap_read(nn_engine *e)
{
    if (!is_timed(e) || e->ops->status(e->gpu) != NULL)
        return;
    for (int32_t i = 1; i <= e->marks.n; i++)
        e->clock->seconds[e->marks.op[i]] += e->ops->between(e->gpu, i - 1, i);
    e->marks.n = 0;
}

void nn_cuda_lap(nn_engine *e, nn_op op)
{
    if (!is_timed(e))
        return;
    e->marks.op[++e->marks.n] = op;
    e->ops->mark(e->gpu, e->marks.n);
    if (e->marks.n == NN_GPU_MARKS - 1) {
        nn_cuda_lap_read(e);
        nn_cuda_lap_start(e);
    }
}
