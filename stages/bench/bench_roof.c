/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/threads/pool.h"
#include "stages/bench/bench.h"

enum { H = NN_RADIAL_HIDDEN, F = sizeof(float), REPEATS = 5, THREADS = 256 };

/* ---- bandwidth ----------------------------------------------------------- */

typedef struct triad_job {
    size_t n;
    int threads;
    float *a;
    const float *b, *c;
} triad_job;

static void triad(void *ctx, int worker, int i)
{
    const triad_job *j = ctx;
    size_t end = j->n * (size_t)(i + 1) / (size_t)j->threads;

    (void)worker;
    for (size_t k = j->n * (size_t)i / (size_t)j->threads; k < end; k++)
        j->a[k] = j->b[k] + 3 * j->c[k];
}

static size_t triad_floats(void)
{
    size_t least = (size_t)64 << 20, most = (size_t)256 << 20, bytes = least;
#ifdef _SC_LEVEL3_CACHE_SIZE
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    bytes = cache > (long)least ? (size_t)cache : least;
#endif
    return (bytes < most ? bytes : most) / F;
}

static double triad_rate(const triad_job *j, nn_pool *pool)
{
    double best = HUGE_VAL;

    for (int k = 0; k < REPEATS; k++) {
        double from = st_bench_now(j->threads);
        nn_pool_run(pool, j->threads, triad, (void *)j);
        best = k ? fmin(best, st_bench_now(j->threads) - from) : best; /* the first touches the pages */
    }
    return 3.0 * F * (double)j->n / best;
}

double st_bench_bandwidth_find(int threads)
{
    int n = threads < THREADS ? threads : THREADS;
    size_t floats = triad_floats();
    nn_pool *pool = nn_pool_new(n);
    float *all = malloc(3 * floats * sizeof *all);
    triad_job j = { floats, n, all, all + floats, all + 2 * floats };
    double rate = 0;

    if (pool != NULL && all != NULL) {
        for (size_t i = 0; i < 3 * floats; i++)
            all[i] = 1;
        rate = triad_rate(&j, pool);
    }
    free(all);
    nn_pool_free(pool);
    return rate;
}

/* ---- counts -------------------------------------------------------------- */

static double floats_of(const nn_fiber *f)
{
    double n = 0;

    for (int d = 0; d < NN_DEGREES; d++)
        n += (2 * d + 1) * f->ch[d];
    return n;
}

/* Turns an edge's vectors into its frame, or back. */
static double rotation(const nn_fiber *f)
{
    double n = 0;

    for (int d = 0; d < NN_DEGREES; d++)
        n += 2.0 * (2 * d + 1) * (2 * d + 1) * f->ch[d];
    return n;
}

static double frame_floats(const nn_conv *c)
{
    double n = 0;

    for (int d = 0; d < NN_DEGREES; d++)
        n += c->in.ch[d] || c->out.ch[d] ? (2 * d + 1) * (2 * d + 1) : 0;
    return n;
}

/* Of one row of the radial networks: operations, floats of the matrices it makes, floats of the last layers. */
static void radial_count(double n[3], const nn_conv *c)
{
    n[0] = n[1] = n[2] = 0;
    for (int32_t g = 0; g < c->n_groups; g++) {
        const nn_group *v = &c->group[g];
        double columns = (double)v->c_in * v->c_out * v->n_freq;
        n[0] += 2.0 * H * (c->edge_scalars + H + columns);
        n[1] += columns;
        n[2] += H * columns;
    }
}

/* An edge's products in its frame: order 0, then +m and -m, which mix unless parity is natural. */
static double contraction(const nn_conv *c)
{
    double n = 0;

    for (int32_t g = 0; g < c->n_groups; g++)
        for (int32_t k = 0; k < c->group[g].n_paths; k++) {
            const nn_path *p = &c->group[g].path[k];
            int m = p->d_in < p->d_out ? p->d_in : p->d_out;
            n += 2.0 * c->group[g].c_in * c->group[g].c_out * (1 + (c->natural ? 2 : 4) * m);
        }
    return n;
}

static void conv_count(st_bench_roof_op op[NN_OPS], const nn_conv *v, const nn_batch *b, nn_radial radial, double rows)
{
    bool nodes = radial == NN_RADIAL_NODES;
    double n[3], edges = b->n_edges, in = floats_of(&v->in), out = floats_of(&v->out);
    st_bench_roof_op *r = &op[nodes ? NN_OP_RADIAL : NN_OP_EDGES], *e = &op[NN_OP_EDGES];

    radial_count(n, v);
    r->flops += rows * n[0];
    r->bytes += F * (n[2] + rows * (b->n_edge_features + 1 + (nodes ? n[1] : 0)));
    e->flops += edges * ((nodes ? 2 : 1) * contraction(v) + rotation(&v->in) + rotation(&v->out));
    e->bytes += F * (edges * (in + out + frame_floats(v)) + (nodes ? rows * n[1] : 0));
}

/* Linear layers of nodes, one matrix for each degree; `at`: its index in param, or -1. */
static void linear_count(st_bench_roof_op *op, const nn_se3 *model, const int32_t at[NN_DEGREES], double n_nodes)
{
    for (int d = 0; d < NN_DEGREES; d++) {
        double size = at[d] >= 0 ? (double)model->param[at[d]].size : 0;
        op->flops += 2 * n_nodes * (2 * d + 1) * size;
        op->bytes += F * size;
    }
}

static void module_count(st_bench_roof_op op[NN_OPS], const st_bench_case *c, const nn_module *m, nn_radial radial, double rows)
{
    double nodes = c->batch.n_nodes, edges = c->batch.n_edges;
    const nn_attention *a = &m->u.attention;

    if (m->kind == NN_NORM) {
        op[NN_OP_ATTENTION].bytes += F * nodes * floats_of(&m->u.norm.fiber); /* it reads what is in the cache */
    } else if (m->kind == NN_CONV) {
        conv_count(op, &m->u.conv, &c->batch, radial, rows);
        linear_count(&op[NN_OP_SUM], c->model, m->u.conv.self, nodes);
        op[NN_OP_SUM].bytes +=
            F * (edges * floats_of(&m->u.conv.out) + nodes * (floats_of(&m->u.conv.in) + floats_of(&m->u.conv.out)));
    } else {
        conv_count(op, &a->conv, &c->batch, radial, rows);
        linear_count(&op[NN_OP_ATTENTION], c->model, a->query, nodes);
        linear_count(&op[NN_OP_ATTENTION], c->model, a->project, nodes);
        op[NN_OP_ATTENTION].flops += 2 * edges * (floats_of(&a->key) + floats_of(&a->value));
        op[NN_OP_ATTENTION].bytes += F * (edges * floats_of(&a->conv.out) + nodes * (floats_of(&a->in) + floats_of(&a->out)));
    }
}

void st_bench_roof_count(st_bench_roof_op out[NN_OPS], const st_bench_case *c, nn_radial radial, double rows)
{
    st_bench_roof_op op[NN_OPS] = { { 0 } };
    const nn_se3 *m = c->model;

    for (int32_t i = 0; i < m->n_modules; i++)
        module_count(op, c, &m->module[i], radial, rows);
    for (int k = 0; k < 4; k += 2) {
        double size = (double)m->param[m->head[k]].size;
        op[NN_OP_HEAD].flops += 2 * c->batch.n_graphs * size;
        op[NN_OP_HEAD].bytes += F * size;
    }
    op[NN_OP_HEAD].bytes += F * (double)c->batch.n_nodes * m->param[m->head[0]].dims[1];
    for (int i = 0; i < NN_OPS; i++)
        out[i] = (st_bench_roof_op){ op[i].flops, op[i].bytes, out[i].seconds };
}

/* ---- measuring ----------------------------------------------------------- */

bool st_bench_roof_wanted(const st_bench_variant *v, const char *words, int threads)
{
    return v->kind->watch != NULL && v->models == 1 && !v->conf.recompute && v->conf.of_contract == NN_PREC_FP32 &&
           (words != NULL || v->main) && st_bench_variant_wanted(v, words, threads);
}

/* The first step is not counted. */
static pl_code best_run(nn_op_clock *best, nn_op_clock *clock, const st_bench_case *c, const nn_engine_kind *kind, nn_engine *e,
                        double seconds, pl_error *err)
{
    pl_code code = kind->forward(e, &c->batch, true, c->y, err);
    double start = st_bench_now(clock->threads), least = HUGE_VAL;

    for (int i = 0; code == PL_OK && (i < 1 || st_bench_now(clock->threads) - start < seconds); i++) {
        double sum = 0;
        code = kind->forward(e, &c->batch, true, c->y, err);
        for (int k = 0; k < NN_OPS; k++)
            sum += clock->seconds[k];
        if (sum < least)
            *best = *clock;
        least = fmin(least, sum);
    }
    return code;
}

pl_code st_bench_roof_run(st_bench_roof_op out[NN_OPS], const st_bench_case *c, const st_bench_variant *v, int threads,
                          double seconds, pl_error *err)
{
    nn_op_clock clock = { .now = st_bench_now, .threads = threads }, best = { 0 };
    nn_engine_conf conf = v->conf;
    nn_engine *e = NULL;
    pl_code code;

    if (v->kind->watch == NULL)
        return pl_fail(err, PL_EDEVICE, "engine %s cannot time its operations", v->kind->name);
    conf.threads = threads;
    st_bench_set_use(v->set);
    code = v->kind->open(&e, c->model, &conf, err);
    if (code == PL_OK)
        code = v->kind->set_params(e, c->params, err);
    if (code == PL_OK) {
        v->kind->watch(e, &clock);
        code = best_run(&best, &clock, c, v->kind, e, seconds, err);
    }
    v->kind->close(e);
    for (int i = 0; i < NN_OPS; i++)
        out[i].seconds = best.seconds[i];
    if (code == PL_OK)
        st_bench_roof_count(out, c, v->conf.radial, (double)best.radial_rows);
    return code;
}
