/* SPDX-License-Identifier: Apache-2.0 */
/* Work that runs beside the main stream, stream 0. Stream 0 computes what everything else waits for: features, values, and their
 * gradients. Other streams compute tables, which need no features, and gradients of parameters, which only the optimiser reads;
 * those of radial networks take longest and alternate between two streams. Stream NN_CUDA_NEAR computes what stream 0 needs soon:
 * gradients of features that do not come from edges, while stream 0 computes those that do.
 *
 * Sums are the same and in the same order as on one stream (MOLSIEVE_CUDA_STREAMS=0). */
#include "models/cuda/cuda_engine.h"

static void record_in(nn_engine *e, int32_t stream, int32_t event)
{
    e->ops->use_stream(e->gpu, stream);
    e->ops->record(e->gpu, event);
    e->ops->use_stream(e->gpu, NN_CUDA_MAIN);
}

static void wait_in(nn_engine *e, int32_t stream, int32_t event)
{
    e->ops->use_stream(e->gpu, stream);
    e->ops->wait_event(e->gpu, e->gpu, event);
}

void nn_cuda_streams_begin(nn_engine *e)
{
    e->tables = e->radials = 0;
    e->folding = false;
    e->linear_behind = false;
    e->ops->record(e->gpu, NN_CUDA_BEGUN);
    for (int32_t i = 1; i < NN_GPU_STREAMS; i++)
        wait_in(e, i, NN_CUDA_BEGUN);
    e->ops->use_stream(e->gpu, NN_CUDA_MAIN);
}

void nn_cuda_streams_end(nn_engine *e)
{
    for (int32_t i = 1; i < NN_GPU_STREAMS; i++) {
        record_in(e, i, NN_CUDA_ENDED);
        e->ops->wait_event(e->gpu, e->gpu, NN_CUDA_ENDED);
    }
}

/* ---- tables ---- */

/* Begins all tables of the first convolution, then those of the others, some time before they are needed. */
void nn_cuda_fold_beside(nn_engine *e)
{
    const nn_cuda_plan *p = e->plan;
    int32_t own = p->module[0].conv.n_tiles, first = own ? own : p->n_tiles, n[2] = { first, p->n_tiles - first };
    nn_gpu_fold f = { .tile = e->tile, .path = e->path, .params = e->params, .folded = e->fold };

    if (!e->stale)
        return;
    e->ops->use_stream(e->gpu, NN_CUDA_RADIAL);
    for (int32_t i = 0; i < 2; f.tile += n[i++]) {
        f.n_tiles = n[i];
        if (f.n_tiles)
            e->ops->fold(e->gpu, &f);
        e->ops->record(e->gpu, NN_CUDA_FOLDED + i);
    }
    e->ops->use_stream(e->gpu, NN_CUDA_MAIN);
    e->stale = false;
    e->folding = true;
}

float *nn_cuda_table_begin(nn_engine *e)
{
    int32_t i = e->tables % NN_CUDA_TABLES;

    e->ops->use_stream(e->gpu, NN_CUDA_BESIDE);
    if (e->folding && e->tables < 2)
        e->ops->wait_event(e->gpu, e->gpu, NN_CUDA_FOLDED + e->tables);
    if (e->tables >= NN_CUDA_TABLES)
        e->ops->wait_event(e->gpu, e->gpu, NN_CUDA_READ + i);
    return e->table[i];
}

void nn_cuda_table_made(nn_engine *e)
{
    record_in(e, NN_CUDA_BESIDE, NN_CUDA_MADE);
    e->ops->wait_event(e->gpu, e->gpu, NN_CUDA_MADE);
}

void nn_cuda_table_read(nn_engine *e) { e->ops->record(e->gpu, NN_CUDA_READ + e->tables++ % NN_CUDA_TABLES); }

/* ---- gradients ---- */

void nn_cuda_grads_zero(nn_engine *e)
{
    size_t nets = (size_t)e->plan->n_nets * (size_t)e->prep.n_nodes;

    e->ops->use_stream(e->gpu, NN_CUDA_RADIAL);
    e->ops->zero(e->gpu, e->grad, e->plan->model->n_floats * sizeof *e->grad);
    e->ops->zero(e->gpu, e->dh, nets * NN_GPU_H * sizeof *e->dh);
    record_in(e, NN_CUDA_RADIAL, NN_CUDA_ZEROED);
    wait_in(e, NN_CUDA_BESIDE, NN_CUDA_ZEROED);
    e->ops->use_stream(e->gpu, NN_CUDA_MAIN);
}

void nn_cuda_zero_wait(nn_engine *e) { e->ops->wait_event(e->gpu, e->gpu, NN_CUDA_ZEROED); }

int32_t nn_cuda_radials(const nn_engine *e) { return e->conf.recompute ? 1 : NN_CUDA_RADIALS; }

const nn_cuda_radial *nn_cuda_radial_begin(nn_engine *e)
{
    int32_t i = e->radials++ % nn_cuda_radials(e);

    nn_cuda_beside(e, NN_CUDA_RADIAL + i);
    return &e->radial[i];
}

void nn_cuda_radial_end(nn_engine *e)
{
    for (int32_t i = 1; i < nn_cuda_radials(e); i++) {
        record_in(e, NN_CUDA_RADIAL + i, NN_CUDA_UNFOLDED);
        wait_in(e, NN_CUDA_RADIAL, NN_CUDA_UNFOLDED);
    }
    e->ops->use_stream(e->gpu, NN_CUDA_RADIAL);
}

void nn_cuda_there(nn_engine *e) { e->ops->record(e->gpu, NN_CUDA_THERE); }

void nn_cuda_beside(nn_engine *e, int32_t stream) { wait_in(e, stream, NN_CUDA_THERE); }

void nn_cuda_near_done(nn_engine *e) { record_in(e, NN_CUDA_NEAR, NN_CUDA_ADDED); }

void nn_cuda_near_wait(nn_engine *e) { e->ops->wait_event(e->gpu, e->gpu, NN_CUDA_ADDED); }

void nn_cuda_linear_done(nn_engine *e)
{
    record_in(e, NN_CUDA_BESIDE, NN_CUDA_LINEAR);
    e->linear_behind = true;
}

void nn_cuda_linear_wait(nn_engine *e)
{
    if (e->linear_behind)
        e->ops->wait_event(e->gpu, e->gpu, NN_CUDA_LINEAR);
}
