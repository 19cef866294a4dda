/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes of few molecules. Their kernels take less time than launching them, so the whole pass is one graph, as a training
 * step is: captured again for each batch, and the graph that is there receives the new arguments. A pass whose arguments are all
 * those of one of the last few graphs is not even captured. */
#include "models/cuda/cuda_engine.h"

enum { FEW = 8, FORWARD = NN_GPU_SEGMENTS - 1 };

/* FNV-1a */
static void mix(uint64_t *key, const void *p, size_t n)
{
    const unsigned char *c = p;

    for (size_t i = 0; i < n; i++)
        *key = (*key ^ c[i]) * 0x100000001b3u;
}

/* Where the pass reads and writes. The arrays of a batch lie as its counts say, those of the arena as its counts and the model. */
static void places_mix(uint64_t *key, const nn_engine *e)
{
    const nn_cuda_prep *p = &e->prep;
    const void *const place[] = {
        e->batch,        e->arena,  e->host,   p->host,   p->vec,      p->stored,   p->scalar,    p->node,
        p->phi,          p->src,    p->dst,    p->frame,  p->in_first, p->in_row,   p->out_first, p->out_row,
        p->log_envelope, p->in_sum, p->graph,  p->tile,   p->whole,    p->span,     e->frames,    e->h,
        e->logit,        e->x_edge, e->pooled, e->hidden, e->y,        e->table[0], e->table[1]
    };

    mix(key, place, sizeof place);
    for (int i = 0; i < e->plan->n_modules; i++) {
        const void *const of_module[] = { e->act[i], e->edge[i], e->alpha[i], e->z[i], e->q[i] };
        mix(key, of_module, sizeof of_module);
    }
}

/* Of all arguments of all operations of the pass; not 0. */
static uint64_t key_of(const nn_engine *e, const nn_batch *in)
{
    const nn_cuda_prep *p = &e->prep;
    const int32_t count[] = { in->n_graphs, in->n_nodes, p->n_pairs, p->n_rows, p->n_nodes, p->n_tiles, p->n_cells, p->n_scalars };
    uint64_t key = 0xcbf29ce484222325u;

    mix(&key, count, sizeof count);
    mix(&key, p->cell, (size_t)(p->n_cells + 1) * sizeof *p->cell);
    places_mix(&key, e);
    return key != 0 ? key : 1;
}

/* The first pass loads its kernels; one with stale weights folds them; one that is timed has marks. An engine beside a training
 * makes no graphs: it has few passes of few molecules, and no two threads of the process then capture at once. */
static bool is_graph(const nn_engine *e, const nn_batch *in)
{
    return e->graphs && e->passes > 0 && in->n_graphs <= FEW && !e->stale && e->clock == NULL;
}

void nn_cuda_results_ask(nn_engine *e, const nn_batch *in)
{
    size_t bytes = (size_t)in->n_graphs * (size_t)e->plan->head[1].n_out * sizeof *e->host;
    uint64_t key = is_graph(e, in) ? key_of(e, in) : 0;

    if (key != 0 && e->ops->graph_again(e->gpu, FORWARD, key))
        return;
    if (key != 0)
        e->ops->graph_begin(e->gpu);
    nn_cuda_forward(e, in);
    nn_cuda_lap_read(e);
    e->ops->download_later(e->gpu, e->host, e->y, bytes);
    if (key != 0)
        e->ops->graph_keep(e->gpu, FORWARD, key);
    e->passes++;
}
