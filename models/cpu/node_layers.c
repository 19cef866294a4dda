/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/cpu_engine.h"

#include <string.h>

/* Nodes first .. first+n-1 of a step, on one thread. */
typedef struct chunk {
    const nn_cpu_step *s;
    nn_cpu_scratch *scratch;
    int32_t first, n;
    float *dsmall; /* backward: gradients of this piece */
} chunk;

typedef struct step_job {
    nn_cpu_step *s;
    void (*chunk)(const chunk *c);
} step_job;

static int32_t chunk_count(const nn_cpu_step *s) { return (s->in->n_nodes + NN_CHUNK - 1) / NN_CHUNK; }

static chunk chunk_open(const nn_cpu_step *s, int worker, int32_t i)
{
    chunk c = { s, &s->e->scratch[worker], i * NN_CHUNK, s->in->n_nodes - i * NN_CHUNK, NULL };

    c.n = c.n < NN_CHUNK ? c.n : NN_CHUNK;
    return c;
}

static void chunk_work(void *ctx, int worker, int i)
{
    const step_job *j = ctx;
    chunk c = chunk_open(j->s, worker, i);

    j->chunk(&c);
}

static void piece_work(void *ctx, int worker, int i)
{
    const step_job *j = ctx;
    int32_t n = chunk_count(j->s), end = nn_piece_at(n, i + 1, NN_PIECES);

    for (int32_t k = nn_piece_at(n, i, NN_PIECES); k < end; k++) {
        chunk c = chunk_open(j->s, worker, k);
        c.dsmall = j->s->e->dsmall + (size_t)i * j->s->e->plan->n_small;
        j->chunk(&c);
    }
}

static void run_chunks(nn_cpu_step *s, void (*work)(const chunk *c))
{
    step_job j = { s, work };

    nn_pool_run(s->e->pool, chunk_count(s), chunk_work, &j);
}

static void run_pieces(nn_cpu_step *s, void (*work)(const chunk *c))
{
    step_job j = { s, work };

    nn_pool_run(s->e->pool, NN_PIECES, piece_work, &j);
}

/* ---- attention -------------------------------------------------------------------- */

static nn_cpu_rows rows_of(const chunk *c, const float *from, const nn_cpu_layout *in, float *to, const nn_cpu_layout *out)
{
    return (nn_cpu_rows){ from, to, in, out, c->n };
}

static const float *input_of(const chunk *c) { return c->s->x + (size_t)c->first * (size_t)c->s->m->in.size; }

/* The queries of the chunk's nodes; zero for degrees without keys. */
static void queries(const chunk *c)
{
    const nn_cpu_module *m = c->s->m;
    nn_cpu_rows r = rows_of(c, input_of(c), &m->in, c->scratch->q, &m->z);

    memset(c->scratch->q, 0, (size_t)c->n * (size_t)m->z.size * sizeof(float));
    for (int d = 0; d < m->z.n_degrees; d++)
        if (m->query[d].n_in)
            nn_cpu_linear_run(c->s->e, &m->query[d], d, &r, false);
}

static nn_cpu_attend attend_open(const chunk *c, int32_t i)
{
    const nn_cpu_module *m = c->s->m;
    const nn_cpu_prep *p = &c->s->e->prep;
    int32_t node = c->first + i, row = p->in_row[node];
    size_t at = (size_t)i * (size_t)m->z.size;

    return (nn_cpu_attend){ .n_heads = m->heads,
                            .n_edges = p->in_row[node + 1] - row,
                            .edge = p->in_edge + row,
                            .kv = &m->conv.out,
                            .z = &m->z,
                            .y = c->s->edge,
                            .q = c->scratch->q + at,
                            .alpha = c->scratch->alpha,
                            .out = c->scratch->z + at,
                            .scale = m->scale,
                            .log_envelope = p->log_envelope,
                            .dalpha = c->scratch->dalpha,
                            .dout = c->scratch->dz + at,
                            .dq = c->scratch->dq + at,
                            .dy = c->s->e->dedge,
                            .dy_ld = (size_t)c->s->e->plan->edge_max };
}

/* Prefetches the edges of the next node, which are anywhere in memory, while the present one is computed. */
static void edges_prefetch(const chunk *c, int32_t i)
{
    const nn_cpu_prep *p = &c->s->e->prep;
    size_t size = (size_t)c->s->m->conv.out.size;

    if (i >= c->n)
        return;
    for (int32_t k = p->in_row[c->first + i]; k < p->in_row[c->first + i + 1]; k++)
        for (size_t at = 0; at < size; at += NN_LANE)
            __builtin_prefetch(c->s->edge + (size_t)p->in_edge[k] * size + at);
}

static void norm_chunk(const chunk *c);

/* Computes the following norm while the chunk's features are still in the cache. */
static void norm_after(const chunk *c)
{
    nn_cpu_step s = *c->s;
    chunk after = *c;

    s.m = c->s->norm;
    s.x = c->s->y;
    s.y = c->s->normed;
    after.s = &s;
    norm_chunk(&after);
}

static void attention_chunk(const chunk *c)
{
    const nn_cpu_module *m = c->s->m;
    float *y = c->s->y + (size_t)c->first * (size_t)m->out.size;
    nn_cpu_rows from_z = rows_of(c, c->scratch->z, &m->z, y, &m->out);
    nn_cpu_rows from_x = rows_of(c, input_of(c), &m->in, y, &m->out);

    queries(c);
    for (int32_t i = 0; i < c->n; i++) {
        nn_cpu_attend a = attend_open(c, i);
        edges_prefetch(c, i + 1);
        c->s->e->kernels->attend(&a);
    }
    for (int d = 0; d < m->out.n_degrees; d++) {
        nn_cpu_linear_run(c->s->e, &m->project_z[d], d, &from_z, false);
        if (m->project_x[d].n_in)
            nn_cpu_linear_run(c->s->e, &m->project_x[d], d, &from_x, true);
    }
    if (c->s->norm != NULL)
        norm_after(c);
}

void nn_cpu_attention(nn_cpu_step *s)
{
    nn_cpu_conv_run(s->e, &s->m->conv, s->x, s->edge);
    s->e->sent = s->m;
    nn_op_lap(s->e->clock, NN_OP_EDGES);
    run_chunks(s, attention_chunk);
    nn_op_lap(s->e->clock, NN_OP_ATTENTION);
}

/* Propagates gradients through the projection to dz and, except in the first module, directly to dx. */
static void project_back(const chunk *c, const float *dy)
{
    const nn_cpu_module *m = c->s->m;
    const nn_engine *e = c->s->e;
    nn_cpu_rows to_z = rows_of(c, dy, &m->out, c->scratch->dz, &m->z);

    for (int d = 0; d < m->out.n_degrees; d++) {
        nn_cpu_linear_back(e, &m->project_z[d], d, &to_z, false);
        if (m->project_x[d].n_in && c->s->dx != NULL) {
            float *dx = c->s->dx + (size_t)c->first * (size_t)m->in.size;
            nn_cpu_rows to_x = rows_of(c, dy, &m->out, dx, &m->in);
            nn_cpu_linear_back(e, &m->project_x[d], d, &to_x, false);
        }
    }
}

/* Gradients of the weights; adds the part of dq to dx. */
static void weights_back(const chunk *c, const float *dy)
{
    const nn_cpu_module *m = c->s->m;
    const nn_engine *e = c->s->e;
    nn_cpu_rows z = rows_of(c, c->scratch->z, &m->z, (float *)dy, &m->out);
    nn_cpu_rows x = rows_of(c, input_of(c), &m->in, (float *)dy, &m->out);
    nn_cpu_rows q = rows_of(c, input_of(c), &m->in, c->scratch->dq, &m->z);

    for (int d = 0; d < m->out.n_degrees; d++) {
        nn_cpu_linear_grad(e, &m->project_z[d], d, &z, c->dsmall);
        if (m->project_x[d].n_in)
            nn_cpu_linear_grad(e, &m->project_x[d], d, &x, c->dsmall);
        if (!m->query[d].n_in)
            continue;
        nn_cpu_linear_grad(e, &m->query[d], d, &q, c->dsmall);
        if (c->s->dx != NULL) {
            float *dx = c->s->dx + (size_t)c->first * (size_t)m->in.size;
            nn_cpu_rows back = rows_of(c, c->scratch->dq, &m->z, dx, &m->in);
            nn_cpu_linear_back(e, &m->query[d], d, &back, true);
        }
    }
}

static void attention_back_chunk(const chunk *c)
{
    const float *dy = c->s->dy + (size_t)c->first * (size_t)c->s->m->out.size;

    queries(c);
    project_back(c, dy);
    for (int32_t i = 0; i < c->n; i++) {
        nn_cpu_attend a = attend_open(c, i);
        edges_prefetch(c, i + 1);
        c->s->e->kernels->attend(&a);
        c->s->e->kernels->attend_back(&a);
    }
    weights_back(c, dy);
}

/* dx += the gradients of all edges that leave the node, in the order of the edges. */
static void edges_collect(const chunk *c)
{
    const nn_cpu_prep *p = &c->s->e->prep;
    size_t size = (size_t)c->s->m->in.size, ld = (size_t)c->s->e->plan->edge_max;

    for (int32_t i = c->first; i < c->first + c->n; i++)
        for (int32_t k = p->out_row[i]; k < p->out_row[i + 1]; k++)
            c->s->e->kernels->add(size, c->s->e->dedge + (size_t)p->out_edge[k] * ld, c->s->dx + (size_t)i * size);
}

void nn_cpu_attention_back(nn_cpu_step *s, float *grad)
{
    if (s->e->conf.recompute && s->e->sent != s->m)
        nn_cpu_conv_run(s->e, &s->m->conv, s->x, s->edge);
    run_pieces(s, attention_back_chunk);
    nn_op_lap(s->e->clock, NN_OP_ATTENTION_BACK);
    nn_cpu_conv_back(s->e, &s->m->conv, s->x, s->dx == NULL, grad);
    if (s->dx != NULL)
        run_chunks(s, edges_collect);
    nn_op_lap(s->e->clock, NN_OP_ATTENTION_BACK);
}

/* ---- norm ------------------------------------------------------------------------- */

static nn_cpu_norm norm_open(const chunk *c, int d)
{
    const nn_cpu_module *m = c->s->m;
    const float *small = c->s->e->small;
    size_t at = (size_t)c->first * (size_t)m->in.size + (size_t)m->in.at[d];

    return (nn_cpu_norm){ .n_nodes = c->n,
                          .dim = 2 * d + 1,
                          .ch = m->in.ch[d],
                          .pad = m->in.pad[d],
                          .ld = (size_t)m->in.size,
                          .x = c->s->x + at,
                          .gain = small + m->gain[d],
                          .bias = small + m->bias[d],
                          .y = c->s->y != NULL ? c->s->y + at : NULL,
                          .dy = c->s->dy != NULL ? c->s->dy + at : NULL,
                          .dx = c->s->dx != NULL ? c->s->dx + at : NULL };
}

static nn_cpu_gate gate_open(const chunk *c)
{
    const nn_cpu_module *m = c->s->m;
    size_t at = (size_t)c->first * (size_t)m->in.size;
    nn_cpu_gate g = { .n_nodes = c->n,
                      .f = &m->in,
                      .x = c->s->x + at,
                      .y = c->s->y != NULL ? c->s->y + at : NULL,
                      .dy = c->s->dy != NULL ? c->s->dy + at : NULL,
                      .dx = c->s->dx != NULL ? c->s->dx + at : NULL };

    for (int d = 0; d < m->in.n_degrees; d++) {
        g.gain[d] = c->s->e->small + m->gain[d];
        g.bias[d] = c->s->e->small + m->bias[d];
        g.dgain[d] = c->dsmall != NULL ? c->dsmall + m->gain[d] : NULL;
        g.dbias[d] = c->dsmall != NULL ? c->dsmall + m->bias[d] : NULL;
    }
    return g;
}

static void norm_chunk(const chunk *c)
{
    if (c->s->m->gate) {
        nn_cpu_gate g = gate_open(c);
        c->s->e->kernels->gate(&g);
        return;
    }
    for (int d = 0; d < c->s->m->in.n_degrees; d++) {
        nn_cpu_norm n = norm_open(c, d);
        c->s->e->kernels->norm(&n);
    }
}

static void norm_back_chunk(const chunk *c)
{
    if (c->s->m->gate) {
        nn_cpu_gate g = gate_open(c);
        c->s->e->kernels->gate_back(&g);
        return;
    }
    for (int d = 0; d < c->s->m->in.n_degrees; d++) {
        nn_cpu_norm n = norm_open(c, d);
        n.dgain = c->dsmall + c->s->m->gain[d];
        n.dbias = c->dsmall + c->s->m->bias[d];
        c->s->e->kernels->norm_back(&n);
    }
}

void nn_cpu_norm_again(nn_cpu_step *s) { run_chunks(s, norm_chunk); }

void nn_cpu_norm_back(nn_cpu_step *s) { run_pieces(s, norm_back_chunk); }

/* ---- the last convolution: sum over edges, self interaction times in-degree --------- */

/* By what the self-interaction of a node is multiplied: its incoming edges, each times its envelope (docs/model.md 3.4, 3.6). */
static float in_edges(const nn_cpu_prep *p, int32_t node)
{
    return p->in_sum != NULL ? p->in_sum[node] : (float)(p->in_row[node + 1] - p->in_row[node]);
}

static void sum_chunk(const chunk *c)
{
    const nn_cpu_module *m = c->s->m;
    const nn_cpu_prep *p = &c->s->e->prep;
    size_t size = (size_t)m->out.size;
    float *y = c->s->y + (size_t)c->first * size;
    nn_cpu_rows r = rows_of(c, input_of(c), &m->in, y, &m->out);

    memset(y, 0, (size_t)c->n * size * sizeof *y);
    for (int d = 0; d < m->out.n_degrees; d++)
        if (m->conv.self[d].n_in)
            nn_cpu_linear_run(c->s->e, &m->conv.self[d], d, &r, false);
    for (int32_t i = 0; i < c->n; i++) {
        int32_t row = p->in_row[c->first + i], end = p->in_row[c->first + i + 1];
        for (size_t k = 0; k < size; k++)
            y[(size_t)i * size + k] *= in_edges(p, c->first + i);
        for (; row < end; row++)
            c->s->e->kernels->add(size, c->s->edge + (size_t)p->in_edge[row] * size, y + (size_t)i * size);
    }
}

void nn_cpu_sum_layer(nn_cpu_step *s)
{
    nn_cpu_conv_run(s->e, &s->m->conv, s->x, s->edge);
    nn_op_lap(s->e->clock, NN_OP_EDGES);
    run_chunks(s, sum_chunk);
    nn_op_lap(s->e->clock, NN_OP_SUM);
}

static void sum_back_chunk(const chunk *c)
{
    const nn_cpu_module *m = c->s->m;
    nn_engine *e = c->s->e;
    size_t size = (size_t)m->out.size;
    float *scaled = c->scratch->dz, *dx = c->s->dx + (size_t)c->first * (size_t)m->in.size;
    nn_cpu_rows grad = rows_of(c, input_of(c), &m->in, scaled, &m->out);
    nn_cpu_rows back = rows_of(c, scaled, &m->out, dx, &m->in);

    memset(dx, 0, (size_t)c->n * (size_t)m->in.size * sizeof *dx);
    for (int32_t i = 0; i < c->n; i++) {
        const float *dy = c->s->dy + (size_t)(c->first + i) * size;
        int32_t row = e->prep.in_row[c->first + i], end = e->prep.in_row[c->first + i + 1];
        for (size_t k = 0; k < size; k++)
            scaled[(size_t)i * size + k] = dy[k] * in_edges(&e->prep, c->first + i);
        for (; row < end; row++)
            memcpy(e->dedge + (size_t)e->prep.in_edge[row] * (size_t)e->plan->edge_max, dy, size * sizeof *dy);
    }
    for (int d = 0; d < m->out.n_degrees; d++) {
        if (!m->conv.self[d].n_in)
            continue;
        nn_cpu_linear_grad(e, &m->conv.self[d], d, &grad, c->dsmall);
        nn_cpu_linear_back(e, &m->conv.self[d], d, &back, false);
    }
}

void nn_cpu_sum_back(nn_cpu_step *s, float *grad)
{
    run_pieces(s, sum_back_chunk);
    nn_op_lap(s->e->clock, NN_OP_SUM_BACK);
    nn_cpu_conv_back(s->e, &s->m->conv, s->x, false, grad);
    run_chunks(s, edges_collect);
    nn_op_lap(s->e->clock, NN_OP_SUM_BACK);
}
