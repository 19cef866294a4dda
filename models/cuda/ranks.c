/* SPDX-License-Identifier: Apache-2.0 */
/* Steps with other ranks: the gradient is summed on the devices, bucket after bucket, while the
 * backward pass goes on.
 *
 * A bucket is handed over between two graphs, not inside one. NCCL can be captured, but a step
 * is captured anew for every batch: each time NCCL would make a plan that lives as long as its graph,
 * ncclCommDestroy would wait for those graphs, and whether cudaGraphExecUpdate keeps a plan alive
 * is nowhere promised. Cut at the buckets the order of work, and so the overlap, is the same. */
#include "models/cuda/inner.h"

/* ---- buckets ----------------------------------------------------------------------------- */

/* Modules are put together until they have their part of the numbers. Buckets begin at multiples of
 * the number of ranks, so that no slice of one reaches into the next; what is cut off goes
 * with the modules before, which come later. */
void nn_cuda_buckets_make(nn_engine *e)
{
    const nn_cuda_plan *p = e->plan;
    nn_cuda_training *t = &e->training;
    int64_t all = (int64_t)p->model->n_floats, end = all, size = t->conf.ranks->size;

    t->n_buckets = 0;
    for (int32_t i = p->n_modules - 1; i >= 0; i--) {
        int64_t at = i ? (p->module[i].param + size - 1) / size * size : 0;
        if (at > end)
            at = end;
        if (i && (end - at) * NN_CUDA_BUCKETS < all)
            continue;
        t->bucket[t->n_buckets++] = (nn_cuda_bucket){ i, at, end - at };
        end = at;
    }
}

/* ---- sums ---------------------------------------------------------------------------------- */

static const nn_collective_device *device_of(const nn_engine *e)
{
    return e->training.conf.ranks->kind->device;
}

static void sum(nn_engine *e, int64_t at, int64_t n)
{
    nn_cuda_training *t = &e->training;
    float *rows = (float *)(void *)e->grads;

    if (t->lost.code)
        return;
    (void)device_of(e)->sum(t->conf.ranks, &(nn_device_rows){ .stream = e->ops->fork(e->gpu), .part = rows + at,
                                                             .stride = e->grad_stride, .n = n, .shards = t->conf.shards },
                            &t->lost);
}

void nn_cuda_bucket_sum(nn_engine *e, int32_t bucket)
{
    sum(e, e->training.bucket[bucket].at, e->training.bucket[bucket].n);
}

void nn_cuda_losses_spread(nn_engine *e)
{
    nn_cuda_training *t = &e->training;

    if (!t->lost.code)
        (void)device_of(e)->spread(t->conf.ranks, e->ops->fork(e->gpu), t->shard, sizeof *t->shard, t->conf.shards, &t->lost);
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Asked while the device waits; a rank that is lost leaves kernels that never end. */
static bool go_on(void *ctx, double waited)
{
    nn_engine *e = ctx;
    nn_cuda_training *t = &e->training;

    if (!t->lost.code)
        (void)device_of(e)->look(t->conf.ranks, waited, &t->lost);
    return !t->lost.code;
}

/* The first sum makes connections and room, which must not be made while work is on its way. */
pl_code nn_cuda_ranks_open(nn_engine *e, pl_error *err)
{
    nn_cuda_training *t = &e->training;

    e->ops->watch(e->gpu, go_on, e);
    sum(e, 0, (int64_t)e->plan->model->n_floats);
    nn_cuda_losses_spread(e);
    e->ops->join(e->gpu);
    if (!t->lost.code && !e->ops->status(e->gpu))
        return PL_OK;
    if (t->lost.code && err)
        *err = t->lost;
    return t->lost.code ? t->lost.code : nn_cuda_check(e, err);
}
