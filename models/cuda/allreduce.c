/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps of several ranks: gradients are summed on the devices, one bucket after another, while the backward pass
 * continues.  A bucket is summed between two graphs, not inside one. NCCL calls can be captured, but a step is captured again
 * for every batch: NCCL would make a plan each time that lives as long as its graph, ncclCommDestroy would wait for those
 * graphs, and no documentation promises that cudaGraphExecUpdate keeps a plan alive. With graphs cut at the buckets, the order
 * of work and so the overlap is the same.  With a sharded optimiser, each rank sums its own slice of each bucket and updates
 * its parameters there; the squares of its pieces, and then the parameters, are gathered in the same way, between graphs. */
#include "models/cuda/cuda_engine.h"

/* ---- buckets ----------------------------------------------------------------------------- */

/* Joins modules into buckets of about equal size. Slices are whole numbers or, for a sharded optimiser, whole pieces. A bucket
 * begins at a multiple of one slice unit per rank, so slices of different buckets never overlap and are equal for all ranks;
 * the numbers cut off belong to the modules before, which are summed later. */
static void buckets_make(nn_engine *e)
{
    const nn_cuda_plan *p = e->plan;
    nn_cuda_training *t = &e->training;
    int64_t all = (int64_t)p->model->n_floats, end = all, piece = t->sharded ? NN_GPU_SQUARES : 1;
    int64_t whole = t->conf.ranks->size * piece;

    t->n_buckets = 0;
    for (int32_t i = p->n_modules - 1; i >= 0; i--) {
        int64_t at = i ? (p->module[i].param + whole - 1) / whole * whole : 0;
        if (at > end)
            at = end;
        if (i && (end - at) * NN_CUDA_BUCKETS < all)
            continue;
        t->bucket[t->n_buckets++] = (nn_cuda_bucket){ i, at, end - at };
        end = at;
    }
}

/* Adds this rank's pieces of the bucket after its earlier slices. */
static void slice_add(nn_cuda_training *t, const nn_cuda_bucket *b)
{
    nn_span own = nn_share(nn_cuda_pieces(b->n), t->conf.ranks->size, t->conf.ranks->rank);
    int64_t first = own.first * NN_GPU_SQUARES, n = own.n * NN_GPU_SQUARES, left = b->n - first;

    if (n > 0)
        t->slice[t->n_slices++] = (nn_cuda_slice){ b->at + first, n < left ? n : left, (int64_t)t->n_state };
    t->n_state += (size_t)n;
}

void nn_cuda_slices_make(nn_engine *e)
{
    nn_cuda_training *t = &e->training;
    int64_t all = (int64_t)e->plan->model->n_floats;

    if (t->conf.ranks != NULL)
        buckets_make(e);
    t->slice[0] = (nn_cuda_slice){ 0, all, 0 };
    t->n_slices = t->sharded ? 0 : 1;
    t->n_state = t->sharded ? 0 : (size_t)all;
    for (int32_t i = 0; t->sharded && i < t->n_buckets; i++)
        slice_add(t, &t->bucket[i]);
}

/* ---- sums ---------------------------------------------------------------------------------- */

static const nn_collective_device *device_of(const nn_engine *e) { return e->training.conf.ranks->kind->device; }

static float *row_of(const nn_engine *e) { return (float *)(void *)e->grads; }

/* Reduces numbers at .. at+n-1, which ranks share in slices of whole items. */
static void reduce(nn_engine *e, int64_t at, int64_t n, int64_t item)
{
    nn_cuda_training *t = &e->training;

    if (t->lost.code == PL_OK)
        (void)device_of(e)->reduce(t->conf.ranks,
                                   &(nn_device_rows){ .stream = e->ops->fork(e->gpu),
                                                      .part = row_of(e) + at,
                                                      .stride = e->grad_stride,
                                                      .item = item,
                                                      .n = (n + item - 1) / item,
                                                      .shards = t->conf.shards },
                                   &t->lost);
}

static void spread(nn_engine *e, const nn_device_items *what, int n)
{
    nn_cuda_training *t = &e->training;

    if (t->lost.code == PL_OK)
        (void)device_of(e)->spread(t->conf.ranks, e->ops->fork(e->gpu), what, n, &t->lost);
}

/* Sums numbers at .. at+n-1 and, up to one number per rank, what follows them. */
static void sum(nn_engine *e, int64_t at, int64_t n)
{
    int64_t size = e->training.conf.ranks->size, whole = (n + size - 1) / size * size;

    reduce(e, at, whole, 1);
    spread(e, &(nn_device_items){ row_of(e) + at, sizeof(float), whole }, 1);
}

void nn_cuda_bucket_sum(nn_engine *e, int32_t bucket)
{
    const nn_cuda_bucket *b = &e->training.bucket[bucket];

    if (e->training.sharded)
        reduce(e, b->at, b->n, NN_GPU_SQUARES);
    else
        sum(e, b->at, b->n);
}

void nn_cuda_losses_spread(nn_engine *e)
{
    const nn_cuda_training *t = &e->training;

    spread(e, &(nn_device_items){ t->shard, sizeof *t->shard, t->conf.shards }, 1);
}

/* Gathers an array with `size` bytes for each piece of the parameters. */
static void pieces_spread(nn_engine *e, void *all, size_t size)
{
    const nn_cuda_training *t = &e->training;
    nn_device_items what[NN_CUDA_BUCKETS];

    for (int32_t i = 0; i < t->n_buckets; i++)
        what[i] = (nn_device_items){ (char *)all + (size_t)(t->bucket[i].at / NN_GPU_SQUARES) * size, size,
                                     nn_cuda_pieces(t->bucket[i].n) };
    spread(e, what, t->n_buckets);
}

void nn_cuda_squares_spread(nn_engine *e) { pieces_spread(e, e->training.part, sizeof *e->training.part); }

void nn_cuda_params_spread(nn_engine *e) { pieces_spread(e, e->params, NN_GPU_SQUARES * sizeof *e->params); }

/* No step is in flight, so the gradient's memory can be used. */
const float *nn_cuda_state_gather(nn_engine *e, const float *mine)
{
    const nn_cuda_training *t = &e->training;
    float *row = row_of(e);

    for (int32_t i = 0; i < t->n_slices; i++) {
        size_t bytes = (size_t)t->slice[i].n * sizeof *row;
        e->ops->download(e->gpu, e->host, mine + t->slice[i].state, bytes);
        e->ops->upload(e->gpu, row + t->slice[i].at, e->host, bytes);
    }
    pieces_spread(e, row, NN_GPU_SQUARES * sizeof *row);
    e->ops->join(e->gpu);
    return row;
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Called while the device waits: kernels that wait for a lost rank never end. */
static bool go_on(void *ctx, double waited)
{
    nn_engine *e = ctx;
    nn_cuda_training *t = &e->training;

    if (t->lost.code == PL_OK)
        (void)device_of(e)->look(t->conf.ranks, waited, &t->lost);
    return t->lost.code == PL_OK;
}

/* The first sums open connections and allocate memory, which must not happen while work is in flight; whole pieces need more
 * memory than single numbers. */
pl_code nn_cuda_ranks_open(nn_engine *e, pl_error *err)
{
    nn_cuda_training *t = &e->training;

    e->ops->watch(e->gpu, go_on, e);
    if (t->sharded)
        reduce(e, 0, (int64_t)e->plan->model->n_floats, NN_GPU_SQUARES);
    sum(e, 0, (int64_t)e->plan->model->n_floats);
    nn_cuda_losses_spread(e);
    e->ops->join(e->gpu);
    if (t->lost.code == PL_OK && e->ops->status(e->gpu) == NULL)
        return PL_OK;
    if (t->lost.code != PL_OK && err != NULL)
        *err = t->lost;
    return t->lost.code != PL_OK ? t->lost.code : nn_cuda_check(e, err);
}
