/* SPDX-License-Identifier: Apache-2.0 */
/* Divides device memory into arrays; without a device it only counts. */
#include "models/cuda/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/cuda/cuda_engine.h"
#include "models/cuda/plugin.h"

enum { TABLE_BYTES = 256 << 20, MAX_RANKS = 1024 };

size_t nn_cuda_table_bytes(void)
{
    const char *kb = getenv("MOLSIEVE_CUDA_TABLE_KB");

    return kb != NULL ? (size_t)strtoul(kb, NULL, 10) << 10 : TABLE_BYTES;
}

bool nn_cuda_units_asked(const nn_engine_conf *c)
{
    const char *asked = getenv("MOLSIEVE_CUDA_UNITS");

    return c->radial == NN_RADIAL_EXACT && (asked == NULL || strcmp(asked, "0") != 0);
}

void *nn_cuda_cut(nn_cuda_cutter *c, size_t n, size_t size)
{
    char *p = c->p != NULL ? c->p + c->at : NULL;

    if (c->p != NULL && c->e != NULL && c->e->n_fences < c->e->max_fences)
        c->e->fence[c->e->n_fences++] = p + n * size;
    c->at += (n * size + NN_GPU_FENCE + 255) / 256 * 256;
    return p;
}

int64_t nn_cuda_pieces(int64_t n) { return (n + NN_GPU_SQUARES - 1) / NN_GPU_SQUARES; }

static float *cut_floats(nn_cuda_cutter *c, size_t n) { return nn_cuda_cut(c, n, sizeof(float)); }

/* ---- of a model ---- */

pl_code nn_cuda_modules_open(nn_engine *e, pl_error *err)
{
    int n = e->plan->n_modules;

    e->max_fences = 48 + 6 * n;
    e->fence = PL_NEW(e->mem, void *, e->max_fences);
    e->act = PL_NEW(e->mem, float *, n);
    e->edge = PL_NEW(e->mem, float *, n);
    e->alpha = PL_NEW(e->mem, float *, n);
    e->z = PL_NEW(e->mem, float *, n);
    e->q = PL_NEW(e->mem, float *, n);
    if (e->fence == NULL || e->act == NULL || e->edge == NULL || e->alpha == NULL || e->z == NULL || e->q == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the cuda engine");
    return PL_OK;
}

void nn_cuda_model_cut(nn_engine *e, nn_cuda_cutter *c)
{
    const nn_cuda_plan *p = e->plan;

    e->path = nn_cuda_cut(c, (size_t)p->n_paths, sizeof *p->path);
    e->tile = nn_cuda_cut(c, (size_t)p->n_tiles, sizeof *p->tile);
    e->net = nn_cuda_cut(c, (size_t)p->n_nets, sizeof *p->net);
    e->rule = nn_cuda_cut(c, 1, sizeof *e->rule);
    e->params = cut_floats(c, (size_t)nn_cuda_pieces((int64_t)p->model->n_floats) * NN_GPU_SQUARES); /* ranks send whole pieces */
    e->fold = cut_floats(c, p->fold_size);
    e->unity = cut_floats(c, (size_t)NN_GPU_H * NN_GPU_H);
}

size_t nn_cuda_grads_floats(const nn_engine *e, int32_t rows, size_t *stride)
{
    *stride = (size_t)nn_cuda_pieces((int64_t)e->plan->model->n_floats + MAX_RANKS) * NN_GPU_SQUARES;
    return (size_t)rows * *stride + 64;
}

pl_code nn_cuda_no_memory(nn_engine *e, const char *what, size_t bytes, int32_t molecules, pl_error *err)
{
    char hint[120] = "";
    size_t left, all, held = e->arena_room, fit;
    pl_code code = nn_cuda_check(e, err);

    if (code != PL_OK)
        return code;
    e->ops->memory(e->gpu, &left, &all);
    fit = bytes ? (size_t)molecules * (left + held) / (bytes + bytes / 4) : 0; /* each piece of memory is enlarged by an eighth */
    if (molecules > 1 && fit >= 1)
        snprintf(hint, sizeof hint, "; about %zu molecules would fit: batch.molecules", fit);
    return pl_fail(err, PL_EDEVICE, "no memory on GPU %d for %s: %zu MB are needed, %zu of its %zu MB are free%s",
                   (int)e->conf.device, what, (bytes >> 20) + 1, left >> 20, all >> 20, hint);
}

/* ---- of a batch ---- */

/* Arrays that a backward pass reads exist for each module; with `recompute` only the outputs of convolutions and attention
 * blocks do. All other arrays are shared: a module overwrites those of the one before. */
static void acts_cut(nn_engine *e, const nn_batch *in, bool keep, nn_cuda_cutter *c)
{
    const nn_cuda_plan *p = e->plan;
    size_t n = (size_t)in->n_nodes, rows = (size_t)e->prep.n_rows;
    bool all = keep && !e->conf.recompute;
    float *turn[2] = { NULL, NULL }, *edge = NULL, *alpha = NULL, *z = NULL, *q = NULL;

    if (!all) {
        turn[0] = cut_floats(c, n * (size_t)p->max_node);
        turn[1] = keep ? turn[0] : cut_floats(c, n * (size_t)p->max_node);
        edge = cut_floats(c, rows * (size_t)p->max_edge);
        alpha = cut_floats(c, rows * (size_t)p->max_heads);
        z = cut_floats(c, n * (size_t)p->max_node);
        q = cut_floats(c, n * (size_t)p->max_node);
    }
    for (int i = 0; i < p->n_modules; i++) {
        const nn_cuda_module *m = &p->module[i];
        bool own = all || (keep && m->kind != NN_NORM);
        e->act[i] = own ? cut_floats(c, n * (size_t)m->out.size) : turn[i % 2];
        e->edge[i] = all && m->kind != NN_NORM ? cut_floats(c, rows * (size_t)m->conv.out_edges.size) : edge;
        e->alpha[i] = all && m->kind == NN_ATTENTION ? cut_floats(c, rows * (size_t)m->heads) : alpha;
        e->z[i] = all && m->kind == NN_ATTENTION ? cut_floats(c, n * (size_t)m->z.size) : z;
        e->q[i] = all && m->kind == NN_ATTENTION ? cut_floats(c, n * (size_t)m->q.size) : q;
    }
}

/* Floats of one table: of all radial nodes or as many as the limit allows, but at least two nodes, or all hidden units. */
static size_t table_floats(const nn_engine *e)
{
    size_t one = (size_t)e->plan->max_table, all = one * (size_t)e->prep.n_nodes, max = e->table_bytes / sizeof(float);
    size_t of_units = e->units ? NN_GPU_H * one : 0, n;

    if (max < 2 * one)
        max = 2 * one;
    n = all < max ? all : max;
    return n > of_units ? n : of_units;
}

static void works_cut(nn_engine *e, nn_cuda_cutter *c)
{
    e->work[NN_CUDA_MAIN] = cut_floats(c, 2 * NN_GPU_PARTS * (size_t)e->plan->max_channels);
    e->work[NN_CUDA_BESIDE] = cut_floats(c, (size_t)NN_CUDA_BLOCKS * e->plan->max_split);
}

/* The first array has the edges' inputs, where the forward pass has them. */
static void radials_cut(nn_engine *e, nn_cuda_cutter *c)
{
    size_t slots = (size_t)nn_cuda_slots(e, e->prep.n_rows), max = (size_t)e->plan->max_table;

    for (int i = 0; i < nn_cuda_radials(e); i++) {
        nn_cuda_radial *r = &e->radial[i];
        r->x = i ? cut_floats(c, (size_t)e->prep.n_rows * (size_t)e->plan->max_edge) : e->x_edge;
        r->dtable = cut_floats(c, table_floats(e));
        r->outer = cut_floats(c, 2 * slots * max);
        r->dfold = cut_floats(c, max * NN_GPU_H);
        r->work = cut_floats(c, NN_CUDA_RADIAL_WORK);
    }
}

static void back_cut(nn_engine *e, const nn_batch *in, nn_cuda_cutter *c)
{
    const nn_cuda_plan *p = e->plan;
    size_t n = (size_t)in->n_nodes, rows = (size_t)e->prep.n_rows, g = (size_t)in->n_graphs;
    size_t hidden = (size_t)p->n_nets * (size_t)e->prep.n_nodes * NN_GPU_H;

    e->dh = cut_floats(c, hidden);
    e->h_work = cut_floats(c, 7 * hidden);
    e->dx_edge = cut_floats(c, rows * (size_t)p->max_edge);
    works_cut(e, c);
    radials_cut(e, c);
    e->dalpha = cut_floats(c, rows * (size_t)p->max_heads);
    e->dz = cut_floats(c, n * (size_t)p->max_node);
    e->dq = cut_floats(c, n * (size_t)p->max_node);
    for (int i = 0; i < NN_CUDA_NODES; i++)
        e->dnode[i] = cut_floats(c, n * (size_t)p->max_node);
    e->dpooled = cut_floats(c, g * (size_t)p->head[0].n_in);
    e->dhidden = cut_floats(c, g * (size_t)p->head[0].n_out);
    e->dy = cut_floats(c, g * (size_t)p->head[1].n_out);
}

static size_t arena_cut(nn_engine *e, const nn_batch *in, bool keep, char *base)
{
    const nn_cuda_plan *p = e->plan;
    size_t g = (size_t)in->n_graphs;
    nn_cuda_cutter c = { e, base, 0 };

    e->n_fences = 0;
    e->frames = cut_floats(&c, 2 * (size_t)e->prep.n_pairs * (size_t)nn_frame_size(p->l_max));
    e->h = cut_floats(&c, (size_t)p->n_nets * (size_t)e->prep.n_nodes * NN_GPU_H);
    for (int i = 0; i < NN_CUDA_TABLES; i++)
        e->table[i] = cut_floats(&c, table_floats(e));
    e->x_edge = cut_floats(&c, (size_t)e->prep.n_rows * (size_t)p->max_edge);
    e->logit = cut_floats(&c, (size_t)(p->l_max + 1) * (size_t)e->prep.n_rows * (size_t)p->max_heads);
    e->pooled = cut_floats(&c, g * (size_t)p->head[0].n_in);
    e->hidden = cut_floats(&c, g * (size_t)p->head[0].n_out);
    e->y = cut_floats(&c, g * (size_t)p->head[1].n_out);
    e->pool_from = nn_cuda_cut(&c, g * (size_t)p->head[0].n_in, sizeof(int32_t));
    acts_cut(e, in, keep, &c);
    if (keep)
        back_cut(e, in, &c);
    return c.at;
}

/* An eighth more, so that a slightly larger batch fits without a new allocation. */
static size_t eighth_more(size_t bytes) { return bytes + bytes / 8; }

static bool device_grow(nn_engine *e, char **p, size_t *have, size_t bytes)
{
    if (bytes <= *have)
        return true;
    e->ops->free(e->gpu, *p);
    *have = eighth_more(bytes);
    *p = e->ops->alloc(e->gpu, *have);
    if (*p == NULL)
        *have = 0;
    return *p != NULL;
}

static void fences_set(nn_engine *e, bool on)
{
    for (int32_t i = 0; e->fences && i < e->n_fences; i++)
        e->ops->fence(e->gpu, e->fence[i], on);
}

bool nn_cuda_host(nn_engine *e, size_t floats)
{
    if (floats * sizeof(float) <= e->host_room)
        return true;
    e->ops->host_free(e->gpu, e->host);
    e->host_room = floats * sizeof(float);
    e->host = e->ops->host_alloc(e->gpu, e->host_room);
    if (e->host == NULL)
        e->host_room = 0;
    return e->host != NULL;
}

pl_code nn_cuda_batch_memory(nn_engine *e, const nn_batch *in, bool keep, nn_cuda_slot *to, pl_error *err)
{
    char what[80];
    size_t bytes;

    fences_set(e, false);
    bytes = arena_cut(e, in, keep, NULL);
    if ((to != NULL && !device_grow(e, &to->device, &to->device_room, e->prep.max)) ||
        !device_grow(e, &e->arena, &e->arena_room, bytes) ||
        !nn_cuda_host(e, (size_t)in->n_graphs * (size_t)e->plan->head[1].n_out + 1)) {
        e->n_fences = 0;
        snprintf(what, sizeof what, "a batch of %d molecules and %d edges", (int)in->n_graphs, (int)in->n_edges);
        return nn_cuda_no_memory(e, what, bytes + (to != NULL ? e->prep.max : 0), in->n_graphs, err);
    }
    if (to != NULL)
        e->batch = to->device;
    arena_cut(e, in, keep, e->arena);
    fences_set(e, true);
    return PL_OK;
}

/* ---- without a device ---- */

typedef struct counted {
    nn_engine e;
    char *host;
} counted;

static void *host_grow(void *ctx, size_t bytes)
{
    counted *c = ctx;

    free(c->host);
    return c->host = malloc(bytes);
}

static void need_count(nn_cuda_need *out, nn_engine *e, const nn_batch *in, int training)
{
    nn_cuda_cutter c = { 0 };
    size_t stride;

    nn_cuda_model_cut(e, &c);
    out->model = c.at;
    if (training)
        out->model += nn_cuda_grads_floats(e, 1, &stride) * sizeof(float) + nn_cuda_training_bytes(e, training);
    out->batch = eighth_more(e->prep.max) * (training ? NN_CUDA_SLOTS : 1);
    out->work = eighth_more(arena_cut(e, in, training, NULL));
}

pl_code nn_cuda_memory(nn_cuda_need *out, const nn_se3 *model, const nn_engine_conf *conf, const nn_batch *in, int training,
                       pl_error *err)
{
    counted c = { .e = { .conf = *conf,
                         .prep = { .radial = conf->radial, .width = conf->width, .inputs = &model->conf.radial },
                         .table_bytes = nn_cuda_table_bytes(),
                         .units = nn_cuda_units_asked(conf),
                         .mem = pl_arena_new(1 << 16) } };
    nn_cuda_plan *plan;
    pl_code code =
        c.e.mem != NULL ? nn_cuda_plan_make(&plan, model, c.e.mem, err) : pl_fail(err, PL_ENOMEM, "no memory for a plan");

    c.e.prep.n_targets = training ? in->n_graphs * model->conf.outputs : 0;
    if (code == PL_OK) {
        c.e.plan = plan;
        code = nn_cuda_modules_open(&c.e, err);
    }
    if (code == PL_OK)
        code = nn_cuda_prep_make(&c.e.prep, in, host_grow, &c, err);
    if (code == PL_OK)
        need_count(out, &c.e, in, training);
    nn_cuda_prep_free(&c.e.prep);
    free(c.host);
    pl_arena_free(c.e.mem);
    return code;
}
