/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/cpu_engine.h"

#include <math.h>
#include <string.h>

/* A convolution with radial nodes (docs/performance.md 2.4), one chunk of nodes after another: hidden vectors of the nodes,
 * their tables, then tiles of edges, whose rows are multiplied by the tables of the two nodes of their cell. */
typedef struct nodes_job {
    nn_engine *e;
    const nn_cpu_conv *c;
    const nn_cpu_table *table; /* the table that is being made */
    const nn_cpu_chunk *chunk;
    const float *x; /* node features                         */
    float *y;       /* forward: output of the edges          */
    bool first;     /* backward: dx of the input is not needed */
    float *grad;
    int32_t n_rows;               /* number of nodes whose tables are made now */
    int32_t row[NN_CHUNK_NODES];  /* [n_rows] index of these in the chunk */
    float *place[NN_CHUNK_NODES]; /* packed tables of the chunk's nodes  */
    int group;                    /* error: number of the radial network */
} nodes_job;

/* One tile on one thread. */
typedef struct tile {
    const nodes_job *job;
    const nn_cpu_tile *t;
    nn_cpu_scratch *s;
} tile;

static float *hidden_of(const nn_engine *e, int group, int32_t row)
{
    return e->nodes.h + ((size_t)group * NN_CHUNK_SUMS + (size_t)row) * NN_H;
}

/* ---- places in packed matrices, for the products that the engine uses --------------- */

static void table_places(const nn_engine *e, nn_cpu_table *t, size_t *w_packed)
{
    t->w_packed_at = *w_packed;
    t->packed_size = 0;
    for (int m = 0; m < t->n_orders; m++) {
        nn_cpu_order *o = &t->order[m];
        o->packed_at = t->packed_size;
        t->packed_size += e->of_contract->packed_size(o->n_matrices * o->k, o->n);
    }
    for (int i = 0; i < t->n_runs; i++) {
        t->run[i].packed_at = *w_packed - t->w_packed_at;
        *w_packed += e->of_radial->packed_size(NN_H, t->run[i].n);
    }
}

size_t nn_cpu_nodes_places(nn_engine *e, nn_cpu_plan *p)
{
    size_t n = 0, max = 0, kept = 0;

    for (int i = 0; i < p->n_modules; i++)
        if (p->module[i].kind != NN_NORM) {
            nn_cpu_table *const both[] = { &p->module[i].conv.table, &p->module[i].conv.turned };
            p->module[i].conv.number = i;
            p->module[i].conv.kept_at = kept;
            n = e->conf.recompute ? 0 : n;
            for (int k = 0; k < 2; k++) {
                table_places(e, both[k], &n);
                if (both[k]->packed_size > p->packed_max)
                    p->packed_max = both[k]->packed_size;
            }
            kept += both[0]->packed_size;
            max = max > n ? max : n;
        }
    e->nodes.keep = (nn_cpu_table_cache){ .n_scalars = p->model->conf.edge_features + 1, .n_convs = p->n_modules, .size = kept };
    return max;
}

void nn_cpu_nodes_find(nn_engine *e)
{
    for (int32_t i = 0; i < e->cells.n_nodes && e->nodes.kept != NULL; i++)
        e->nodes.kept[i] = nn_cpu_table_cache_find(&e->nodes.keep, e->cells.scalar + (size_t)i * (size_t)e->prep.n_scalars);
}

/* ---- weights ------------------------------------------------------------------------ */

typedef struct weights_job {
    const nn_engine *e;
    const nn_cpu_conv *c;
    const nn_cpu_table *table;
    const float *params;
} weights_job;

static void path_fold(void *ctx, int worker, int i)
{
    const weights_job *j = ctx;

    (void)worker;
    if (j->c->slab[i].m == 0)
        nn_cpu_table_fold(j->c, i, j->params, j->e->plan->model, j->e->nodes.w);
}

static void run_pack(void *ctx, int worker, int i)
{
    const weights_job *j = ctx;
    const nn_cpu_run *r = &j->table->run[i];

    (void)worker;
    j->e->of_radial->pack(j->e->nodes.w + j->table->w_at + r->at * NN_H, NN_H, r->n,
                          j->e->nodes.w_packed + j->table->w_packed_at + r->packed_at);
}

void nn_cpu_nodes_weights(nn_engine *e, const nn_cpu_conv *c, const float *params)
{
    weights_job j = { e, c, NULL, params };
    const nn_cpu_table *const both[] = { &c->table, &c->turned };

    nn_pool_run(e->pool, c->n_slabs, path_fold, &j);
    for (int i = 0; i < 2 && e->of_radial->pack != NULL; i++) {
        j.table = both[i];
        nn_pool_run(e->pool, j.table->n_runs, run_pack, &j);
    }
}

/* ---- tables of a chunk ------------------------------------------------------------ */

/* Sets the places of the chunk's tables, and lists those that have to be made. */
static void chunk_open(nodes_job *j, int32_t number)
{
    nn_engine *e = j->e;
    nn_cpu_table_cache *keep = &e->nodes.keep;

    j->chunk = &e->cells.chunk[number];
    j->n_rows = 0;
    for (int32_t i = 0; i < j->chunk->n_nodes; i++) {
        int32_t k = e->nodes.kept != NULL ? e->nodes.kept[j->chunk->node + i] : -1;
        bool *filled = k < 0 ? NULL : keep->filled + (size_t)k * (size_t)keep->n_convs + j->c->number;
        j->place[i] = filled != NULL ? keep->table[k] + j->c->kept_at : e->nodes.packed + (size_t)j->n_rows * e->nodes.packed_ld;
        if (filled == NULL || !*filled)
            j->row[j->n_rows++] = i;
        if (filled != NULL)
            *filled = true;
    }
}

static void node_hidden(void *ctx, int worker, int i)
{
    const nodes_job *j = ctx;
    const nn_engine *e = j->e;
    const float *s = e->cells.scalar + (size_t)(j->chunk->node + j->row[i]) * (size_t)e->prep.n_scalars;

    (void)worker;
    for (int g = 0; g < j->c->def->n_groups; g++) {
        nn_cpu_hidden w = nn_cpu_net_of(e, j->c, g, e->small);
        nn_cpu_hidden_run(e, &w, s, hidden_of(e, g, i));
    }
}

static void run_table(void *ctx, int worker, int i)
{
    const nodes_job *j = ctx;
    const nn_engine *e = j->e;
    const nn_cpu_run *r = &j->table->run[i];
    nn_cpu_product p = { .n_rows = j->n_rows,
                         .k = NN_H,
                         .n = r->n,
                         .a = { hidden_of(e, r->group, 0) },
                         .c = { e->nodes.table + r->at },
                         .a_ld = NN_H,
                         .c_ld = e->nodes.ld,
                         .b = e->nodes.w_packed + j->table->w_packed_at + r->packed_at };

    (void)worker;
    e->of_radial->run(&p);
}

static void node_pack(void *ctx, int worker, int i)
{
    const nodes_job *j = ctx;
    const nn_engine *e = j->e;
    const float *table = e->nodes.table + (size_t)i * e->nodes.ld;
    float *to = j->place[j->row[i]];

    (void)worker;
    for (int m = 0; m < j->table->n_orders; m++) {
        const nn_cpu_order *o = &j->table->order[m];
        int32_t k = o->n_matrices * o->k;
        if (e->of_contract->pack != NULL)
            e->of_contract->pack(table + o->at, k, o->n, to + o->packed_at);
        else if (to != table)
            memcpy(to + o->packed_at, table + o->at, (size_t)k * (size_t)o->n * sizeof *to);
    }
}

static void tables_make(nodes_job *j, const nn_cpu_table *t)
{
    nn_engine *e = j->e;

    j->table = t;
    nn_pool_run(e->pool, t->n_runs, run_table, j);
    nn_pool_run(e->pool, j->n_rows, node_pack, j);
}

/* ---- tiles ------------------------------------------------------------------------ */

static int32_t slot_of(const tile *t, int32_t row) { return t->job->e->cells.slot[t->t->first + row]; }

static const float *frame_of(const tile *t, int32_t row)
{
    const nn_cpu_prep *p = &t->job->e->prep;

    return p->frame + (size_t)slot_of(t, row) * (size_t)p->frame_size;
}

static const float *row_of(const tile *t, int32_t i, const float *from, const int32_t *of, size_t ld)
{
    int32_t edge = t->job->e->prep.slot[slot_of(t, i)];

    return from + (size_t)(of != NULL ? of[edge] : edge) * ld;
}

/* Rows are anywhere in memory: prefetch one while the previous one is rotated. */
static void row_prefetch(const float *p, int32_t n)
{
    for (int32_t k = 0; k < n; k += NN_LANE)
        __builtin_prefetch(p + k);
}

/* Row i of `to`: the vector of edge i's source node, or of the edge itself, rotated into the edge frame. */
static void tile_gather(const tile *t, const nn_cpu_edge_layout *f, const float *from, const int32_t *of, size_t ld, float *to)
{
    const nn_engine *e = t->job->e;

    for (int32_t i = 0; i < t->t->n_rows; i++) {
        const float *row = row_of(t, i, from, of, ld);
        if (i + 1 < t->t->n_rows)
            row_prefetch(row_of(t, i + 1, from, of, ld), f->size);
        e->kernels->to_frame(frame_of(t, i), f, row, to + (size_t)i * f->ld);
    }
}

static void tile_scatter(const tile *t, const nn_cpu_edge_layout *f, const float *from, float *to, size_t ld)
{
    const nn_engine *e = t->job->e;

    for (int32_t i = 0; i < t->t->n_rows; i++)
        e->kernels->from_frame(frame_of(t, i), f, from + (size_t)i * f->ld, to + (size_t)e->prep.slot[slot_of(t, i)] * ld);
}

/* A real matrix of order m > 0 acts on +m, then on -m; the gradient of the matrix is the sum of both. */
static void order_run(void (*run)(const nn_cpu_product *p), const nn_cpu_order *o, const nn_cpu_product *p)
{
    nn_cpu_product plus = *p, minus = *p;

    if (!o->m || o->n_matrices == 2) {
        run(p);
        return;
    }
    plus.a[1] = minus.a[1] = NULL;
    plus.c[1] = minus.c[1] = NULL;
    minus.a[0] = p->a[1];
    minus.c[0] = p->c[1];
    minus.add = p->add || p->db != NULL;
    run(&plus);
    run(&minus);
}

/* y = sum of both nodes of weight * x table, x and y in layouts f and g. */
static void tile_multiply(const tile *t, const nn_cpu_table *table, const float *x, const nn_cpu_edge_layout *f, float *y,
                          const nn_cpu_edge_layout *g)
{
    const nn_engine *e = t->job->e;

    for (int m = 0; m < table->n_orders; m++)
        for (int j = 0; j < 2; j++) {
            const nn_cpu_order *o = &table->order[m];
            nn_cpu_product p = { .n_rows = t->t->n_rows,
                                 .k = o->k,
                                 .n = o->n,
                                 .a = { x + o->x[0], m ? x + o->x[1] : NULL },
                                 .c = { y + o->y[0], m ? y + o->y[1] : NULL },
                                 .a_ld = f->ld,
                                 .c_ld = g->ld,
                                 .scale = e->cells.weight[j] + t->t->first,
                                 .add = j,
                                 .b = t->job->place[t->t->node[j]] + o->packed_at };
            order_run(e->of_contract->run, o, &p);
        }
}

static tile tile_open(const nodes_job *j, int worker, int i) { return (tile){ j, &j->e->cells.tile[i], &j->e->scratch[worker] }; }

static void tile_forward(void *ctx, int worker, int i)
{
    const nodes_job *j = ctx;
    const nn_cpu_conv *c = j->c;
    tile t = tile_open(j, worker, j->chunk->tile + i);

    tile_gather(&t, &c->x, j->x, j->e->batch->src, (size_t)c->in.size, t.s->x);
    tile_multiply(&t, &c->table, t.s->x, &c->x, t.s->y, &c->y);
    tile_scatter(&t, &c->y, t.s->y, j->y, (size_t)c->out.size);
}

void nn_cpu_nodes_run(nn_engine *e, const nn_cpu_conv *c, const float *x, float *y)
{
    nodes_job j = { .e = e, .c = c, .x = x, .y = y };

    for (int32_t k = 0; k < e->cells.n_chunks; k++) {
        chunk_open(&j, k);
        nn_pool_run(e->pool, j.n_rows, node_hidden, &j);
        tables_make(&j, &c->table);
        nn_op_lap(e->clock, NN_OP_RADIAL);
        nn_pool_run(e->pool, j.chunk->n_tiles, tile_forward, &j);
        nn_op_lap(e->clock, NN_OP_EDGES);
    }
}

/* ---- how good the grid is ------------------------------------------------------------ */

/* Sum over a tile of the squared interpolation errors of one network's hidden vectors. */
static void tile_error(void *ctx, int worker, int i)
{
    const nodes_job *j = ctx;
    const nn_engine *e = j->e;
    const nn_cpu_tile *t = &e->cells.tile[j->chunk->tile + i];
    nn_cpu_hidden w = nn_cpu_net_of(e, j->c, j->group, e->small);
    size_t n = (size_t)e->prep.n_scalars;
    float h[NN_H], end[2][NN_H];
    double sum = 0;

    (void)worker;
    for (int k = 0; k < 2; k++)
        nn_cpu_hidden_run(e, &w, e->cells.scalar + (size_t)(j->chunk->node + t->node[k]) * n, end[k]);
    for (int32_t row = t->first; row < t->first + t->n_rows; row++) {
        const int32_t pair = e->cells.slot[row] / 2;
        const float u = e->prep.envelope != NULL ? e->prep.envelope[pair] : 1;
        nn_cpu_hidden_run(e, &w, e->prep.scalar + (size_t)pair * n, h);
        for (int k = 0; k < NN_H; k++) {
            double off = (double)u * h[k] - e->cells.weight[0][row] * end[0][k] - e->cells.weight[1][row] * end[1][k];
            sum += off * off;
        }
    }
    e->cells.tile_sum[j->chunk->tile + i] = sum;
}

static double network_error(nodes_job *j)
{
    const nn_cpu_cells *c = &j->e->cells;
    double sum = 0;

    for (int32_t k = 0; k < c->n_chunks; k++) {
        j->chunk = &c->chunk[k];
        nn_pool_run(j->e->pool, j->chunk->n_tiles, tile_error, j);
    }
    for (int32_t i = 0; i < c->n_tiles; i++)
        sum += c->tile_sum[i];
    return c->n_rows ? sqrt(sum / (NN_H * (double)c->n_rows)) : 0;
}

double nn_cpu_nodes_error(nn_engine *e)
{
    nodes_job j = { .e = e };
    double max = 0;

    for (int m = 0; m < e->plan->n_modules; m++) {
        j.c = &e->plan->module[m].conv;
        for (j.group = 0; e->plan->module[m].kind != NN_NORM && j.group < j.c->def->n_groups; j.group++) {
            double off = network_error(&j);
            if (!(off <= max)) /* a NaN replaces any number */
                max = off;
        }
    }
    return max;
}

/* ---- backward --------------------------------------------------------------------- */

/* Adds the gradients with respect to the tables of both nodes to the sums of the piece. */
static void tile_outer(const tile *t)
{
    const nodes_job *job = t->job;
    const nn_engine *e = job->e;
    const nn_cpu_conv *c = job->c;

    for (int m = 0; m < c->table.n_orders; m++)
        for (int j = 0; j < 2; j++) {
            const nn_cpu_order *o = &c->table.order[m];
            float *x = t->s->x, *dy = t->s->gy;
            nn_cpu_product p = { .n_rows = t->t->n_rows,
                                 .k = o->k,
                                 .n = o->n,
                                 .a = { x + o->x[0], m ? x + o->x[1] : NULL },
                                 .c = { dy + o->y[0], m ? dy + o->y[1] : NULL },
                                 .a_ld = c->x.ld,
                                 .c_ld = c->y.ld,
                                 .scale = e->cells.weight[j] + t->t->first,
                                 .add = !t->t->fresh[j],
                                 .db = e->nodes.dtable + (size_t)t->t->sum[j] * e->nodes.ld + o->at };
            order_run(e->of_contract->outer, o, &p);
        }
}

static void tile_backward(const tile *t)
{
    const nodes_job *j = t->job;
    const nn_cpu_conv *c = j->c;
    size_t ld = (size_t)j->e->plan->edge_max;

    tile_gather(t, &c->x, j->x, j->e->batch->src, (size_t)c->in.size, t->s->x);
    tile_gather(t, &c->y, j->e->dedge, NULL, ld, t->s->gy);
    tile_outer(t);
    if (j->first)
        return;
    tile_multiply(t, &c->turned, t->s->gy, &c->y, t->s->gx, &c->x);
    tile_scatter(t, &c->x, t->s->gx, j->e->dedge, ld);
}

static void piece_backward(void *ctx, int worker, int i)
{
    const nodes_job *j = ctx;
    const int32_t *piece = j->e->cells.piece + j->chunk->piece + i;

    for (int32_t k = piece[0]; k < piece[1]; k++) {
        tile t = tile_open(j, worker, k);
        tile_backward(&t);
    }
}

/* Gradients of W and of the hidden vectors from those of the tables, for one run of columns. */
static void run_back(void *ctx, int worker, int i)
{
    const nodes_job *j = ctx;
    const nn_engine *e = j->e;
    const nn_cpu_run *r = &j->c->table.run[i];
    nn_cpu_product dw = { .n_rows = j->chunk->n_sums,
                          .k = NN_H,
                          .n = r->n,
                          .a = { hidden_of(e, r->group, 0) },
                          .c = { e->nodes.dtable + r->at },
                          .a_ld = NN_H,
                          .c_ld = e->nodes.ld,
                          .db = e->nodes.dw + r->at * NN_H,
                          .add = j->chunk != e->cells.chunk };
    nn_cpu_product dh = { .n_rows = j->chunk->n_sums,
                          .k = r->n,
                          .n = NN_H,
                          .a = { e->nodes.dtable + r->at },
                          .c = { e->nodes.dh + (size_t)i * NN_CHUNK_SUMS * NN_H },
                          .a_ld = e->nodes.ld,
                          .c_ld = NN_H,
                          .b = e->nodes.w + j->c->table.w_at + r->at * NN_H };

    (void)worker;
    e->of_radial->outer(&dw);
    e->of_radial->run_turned(&dh);
}

/* Gradient of one hidden vector of the chunk: adds all its sums and runs in order. */
static void hidden_gradient(const nodes_job *j, int group, int32_t node, float d[NN_H])
{
    const nn_engine *e = j->e;

    memset(d, 0, NN_H * sizeof *d);
    for (int32_t s = 0; s < j->chunk->n_sums; s++) {
        if (e->cells.sum_node[j->chunk->sum + s] != node)
            continue;
        for (int i = 0; i < j->c->table.n_runs; i++)
            if (j->c->table.run[i].group == group)
                e->kernels->add(NN_H, e->nodes.dh + ((size_t)i * NN_CHUNK_SUMS + (size_t)s) * NN_H, d);
    }
}

static void nodes_backward(void *ctx, int worker, int i)
{
    const nodes_job *j = ctx;
    nn_engine *e = j->e;
    int32_t end = nn_piece_at(j->chunk->n_nodes, i + 1, NN_PIECES);
    float d[NN_H], *dsmall = e->dsmall + (size_t)i * e->plan->n_small;

    (void)worker;
    for (int g = 0; g < j->c->def->n_groups; g++) {
        nn_cpu_hidden w = nn_cpu_net_of(e, j->c, g, e->small), grad = nn_cpu_net_of(e, j->c, g, dsmall);
        for (int32_t k = nn_piece_at(j->chunk->n_nodes, i, NN_PIECES); k < end; k++) {
            hidden_gradient(j, g, k, d);
            nn_cpu_hidden_back(e, &w, e->cells.scalar + (size_t)(j->chunk->node + k) * (size_t)e->prep.n_scalars, d, &grad);
        }
    }
}

/* Reorders hidden vectors from rows of nodes to rows of sums, in place: the node of a sum never comes after it. */
static void hidden_spread(const nodes_job *j)
{
    const int32_t *node = j->e->cells.sum_node + j->chunk->sum;

    for (int g = 0; g < j->c->def->n_groups; g++)
        for (int32_t s = j->chunk->n_sums - 1; s >= 0; s--)
            memmove(hidden_of(j->e, g, s), hidden_of(j->e, g, node[s]), NN_H * sizeof(float));
}

static void path_unfold(void *ctx, int worker, int i)
{
    const nodes_job *j = ctx;

    (void)worker;
    if (j->c->slab[i].m == 0)
        nn_cpu_table_unfold(j->c, i, j->e->nodes.dw, j->e->plan->model, j->grad);
}

void nn_cpu_nodes_back(nn_engine *e, const nn_cpu_conv *c, const float *x, bool first, float *grad)
{
    nodes_job j = { .e = e, .c = c, .x = x, .first = first, .grad = grad };

    for (int32_t k = 0; k < e->cells.n_chunks; k++) {
        chunk_open(&j, k);
        nn_pool_run(e->pool, j.n_rows, node_hidden, &j);
        if (!first)
            tables_make(&j, &c->turned);
        nn_op_lap(e->clock, NN_OP_RADIAL_BACK);
        nn_pool_run(e->pool, j.chunk->n_pieces, piece_backward, &j);
        nn_op_lap(e->clock, NN_OP_EDGES_BACK);
        hidden_spread(&j);
        nn_pool_run(e->pool, c->table.n_runs, run_back, &j);
        nn_pool_run(e->pool, NN_PIECES, nodes_backward, &j);
        nn_op_lap(e->clock, NN_OP_RADIAL_BACK);
    }
    if (e->cells.n_chunks)
        nn_pool_run(e->pool, c->n_slabs, path_unfold, &j);
    nn_op_lap(e->clock, NN_OP_WEIGHTS);
}
