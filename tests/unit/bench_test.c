/* SPDX-License-Identifier: Apache-2.0
 * The work that `molsieve bench` divides by: docs/performance.md 1.2, 2.4, of one hidden layer and edge. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/cpu/kernels/kernels.h"
#include "stages/bench/bench.h"
#include "twin/made_batch.h"

static st_bench_case network(int32_t layers, pl_arena *mem)
{
    const nn_se3_conf conf = { layers, 4, 32, 8, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false };
    nn_se3 *model;

    assert_int_equal(nn_se3_plan(&model, &conf, mem, NULL), PL_OK);
    return (st_bench_case){ .model = model, .batch = { .n_edges = 2, .n_pairs = 1 } };
}

static void is_near(double got, double want)
{
    if (!(fabs(got - want) <= 0.01 * want))
        fail_msg("%g, not %g", got, want);
}

static void work_is_what_the_page_counts(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    st_bench_case many = network(7, mem), few = network(6, mem);
    st_bench_work a = st_bench_work_reference(&many), b = st_bench_work_reference(&few);

    (void)state;
    is_near((a.forward - b.forward) / 2, 5.05e6);
    is_near((a.train - b.train) / 2, 14.43e6);
    is_near(a.forward / 2 * 37.3, 1.19e9 * 0.99); /* of one molecule, all layers */
    a = st_bench_work_engine(&many, NN_RADIAL_EXACT);
    b = st_bench_work_engine(&few, NN_RADIAL_EXACT);
    is_near((a.forward - b.forward) / 2, 1.59e6);
    is_near((a.train - b.train) / 2, 6.21e6);
    a = st_bench_work_engine(&many, NN_RADIAL_NODES);
    b = st_bench_work_engine(&few, NN_RADIAL_NODES);
    is_near((a.forward - b.forward) / 2, 0.295e6);
    is_near((a.train - b.train) / 2, 0.885e6);
    pl_arena_free(mem);
}

/* ---- operations, counted one multiply-add at a time ---- */

/* Along one edge, what is done to every channel: rotations of a fiber, entry by entry. */
static double turns(const nn_fiber *f)
{
    double n = 0;

    for (int d = 0; d < NN_DEGREES; d++)
        for (int ch = 0; ch < f->ch[d]; ch++)
            for (int row = -d; row <= d; row++)
                for (int col = -d; col <= d; col++)
                    n += 2;
    return n;
}

/* An output component m reads the inputs +m and -m, with natural parity only m; both nodes' tables. */
static double contracted(const nn_conv *c)
{
    double n = 0;

    for (int g = 0; g < c->n_groups; g++)
        for (int k = 0; k < c->group[g].n_paths; k++)
            for (int to = -c->group[g].path[k].d_out; to <= c->group[g].path[k].d_out; to++)
                for (int from = -c->group[g].path[k].d_in; from <= c->group[g].path[k].d_in; from++)
                    if (c->natural ? from == to : abs(from) == abs(to))
                        n += 2.0 * c->group[g].c_in * c->group[g].c_out;
    return n;
}

/* A row of the radial networks: two hidden layers, and the last layer, of which the model has the parameters. */
static double radial_row(const nn_se3 *m, const nn_conv *c)
{
    double n = 0;

    for (int g = 0; g < c->n_groups; g++)
        n += 2.0 * (double)(m->param[c->group[g].w0].size + m->param[c->group[g].w1].size + m->param[c->group[g].w2].size);
    return n;
}

static double components(const nn_fiber *f)
{
    double n = 0;

    for (int d = 0; d < NN_DEGREES; d++)
        for (int k = -d; k <= d; k++)
            n += f->ch[d];
    return n;
}

/* In out[..]: edges, radial networks, attention, of 5 nodes, 8 edges and `rows` rows. */
static void counted(double out[NN_OPS], const nn_se3 *m, double rows, int tables)
{
    for (int i = 0; i < m->n_modules; i++) {
        const nn_attention *a = &m->module[i].u.attention;
        const nn_conv *c = m->module[i].kind == NN_ATTENTION ? &a->conv : &m->module[i].u.conv;
        if (m->module[i].kind == NN_NORM)
            continue;
        out[NN_OP_RADIAL] += rows * radial_row(m, c);
        out[NN_OP_EDGES] += 8 * (tables * contracted(c) + turns(&c->in) + turns(&c->out));
        if (m->module[i].kind == NN_CONV)
            continue;
        for (int d = 0; d < NN_DEGREES; d++) {
            double q = a->key.ch[d] && a->in.ch[d] ? a->in.ch[d] * a->key.ch[d] : 0;
            double z = (a->value.ch[d] + a->in.ch[d]) * a->out.ch[d];
            out[NN_OP_ATTENTION] += 2 * 5 * (2 * d + 1) * (q + z);
        }
        out[NN_OP_ATTENTION] += 2 * 8 * (components(&a->key) + components(&a->value));
    }
}

static nn_se3 *small_network(nn_parity parity, pl_arena *mem)
{
    const nn_se3_conf conf = { 2, 3, 4, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, parity, { 0 }, false };
    nn_se3 *model;

    assert_int_equal(nn_se3_plan(&model, &conf, mem, NULL), PL_OK);
    return model;
}

static void operations_are_counted_by_the_plan(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 16);

    (void)state;
    for (int i = 0; i < 4; i++) {
        const nn_se3 *m = small_network(i % 2 ? NN_PARITY_NATURAL : NN_PARITY_BOTH, mem);
        st_bench_case c = { .model = m,
                            .batch = { .n_graphs = 1, .n_nodes = 5, .n_edges = 8, .n_pairs = 4, .n_edge_features = 4 } };
        const st_bench_variant conf = { .conf.radial = i / 2 ? NN_RADIAL_EXACT : NN_RADIAL_NODES };
        st_bench_roof_op got[NN_OPS] = { [NN_OP_EDGES] = { .seconds = 7 } };
        double want[NN_OPS] = { 0 };
        st_bench_roof_count(got, &c, &conf, 3);
        counted(want, m, 3, i / 2 ? 1 : 2);
        assert_true(got[NN_OP_EDGES].seconds == 7); /* what was measured stays */
        assert_true(got[NN_OP_RADIAL].flops + got[NN_OP_EDGES].flops == want[NN_OP_RADIAL] + want[NN_OP_EDGES]);
        assert_true(i / 2 || got[NN_OP_RADIAL].flops == want[NN_OP_RADIAL]);
        assert_true(got[NN_OP_ATTENTION].flops == want[NN_OP_ATTENTION]);
        assert_true(got[NN_OP_HEAD].flops == 2.0 * (double)(m->param[m->head[0]].size + m->param[m->head[2]].size));
    }
    pl_arena_free(mem);
}

/* Backward, one operation after the other, of 5 nodes and 8 edges; the first module has no gradient of its input. */
static void counted_back(double out[NN_OPS], const nn_se3 *m, double rows, int tables)
{
    for (int i = 0; i < m->n_modules; i++) {
        const nn_attention *a = &m->module[i].u.attention;
        const nn_conv *c = m->module[i].kind == NN_ATTENTION ? &a->conv : &m->module[i].u.conv;
        int input = i ? 1 : 0;
        if (m->module[i].kind == NN_NORM)
            continue;
        for (int g = 0; g < c->n_groups; g++) {
            double w0 = (double)m->param[c->group[g].w0].size, w1 = (double)m->param[c->group[g].w1].size;
            double w2 = (double)m->param[c->group[g].w2].size, again = 2 * (w0 + w1);
            out[NN_OP_RADIAL_BACK] += 2 * rows * (again + w0 + 2 * w1 + w2 + w2 + input * w2);
        }
        out[NN_OP_EDGES_BACK] += 8 * (tables * contracted(c) + turns(&c->in) + turns(&c->out)); /* of the matrices */
        out[NN_OP_EDGES_BACK] += input * 8 * (tables * contracted(c) + turns(&c->in));          /* of the input    */
        if (m->module[i].kind == NN_CONV)
            continue;
        for (int d = 0; d < NN_DEGREES; d++) {
            double q = a->key.ch[d] && a->in.ch[d] ? a->in.ch[d] * a->key.ch[d] : 0;
            double z = a->value.ch[d] * a->out.ch[d], x = a->in.ch[d] * a->out.ch[d];
            out[NN_OP_ATTENTION_BACK] += 2 * 5 * (2 * d + 1) * (q + q + input * q + z + z + x + input * x);
        }
        out[NN_OP_ATTENTION_BACK] += (2 + 3) * 8 * (components(&a->key) + components(&a->value));
    }
}

static void operations_back_are_counted_by_the_plan(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 16);

    (void)state;
    for (int i = 0; i < 4; i++) {
        const nn_se3 *m = small_network(i % 2 ? NN_PARITY_NATURAL : NN_PARITY_BOTH, mem);
        st_bench_case c = { .model = m,
                            .batch = { .n_graphs = 1, .n_nodes = 5, .n_edges = 8, .n_pairs = 4, .n_edge_features = 4 } };
        st_bench_roof_op got[NN_OPS] = { { 0 } };
        double want[NN_OPS] = { 0 };
        st_bench_roof_count(got, &c, &(st_bench_variant){ .conf.radial = i / 2 ? NN_RADIAL_EXACT : NN_RADIAL_NODES }, 3);
        counted_back(want, m, 3, i / 2 ? 1 : 2);
        assert_true(got[NN_OP_RADIAL_BACK].flops + got[NN_OP_EDGES_BACK].flops == want[NN_OP_RADIAL_BACK] + want[NN_OP_EDGES_BACK]);
        assert_true(i / 2 || got[NN_OP_RADIAL_BACK].flops == want[NN_OP_RADIAL_BACK]);
        assert_true(got[NN_OP_ATTENTION_BACK].flops == want[NN_OP_ATTENTION_BACK]);
    }
    pl_arena_free(mem);
}

/* By hand: 3 scalars of an atom, keys, values and outputs of 2, so a first matrix of 3 x 4 and a last one of 2 x 2; 2 scalars of an
 * edge, 32 hidden units; 3 atoms, 4 edges, 5 radial nodes. Every edge has both nodes' matrices; a scalar's rotation is one product. */
static void a_tiny_network_has_the_products_of_a_hand_count(void **state)
{
    const nn_se3_conf conf = { 1, 1, 2, 1, 1, true, true, NN_POOL_MAX, NN_FUSE_FULL, 3, 1, 1, NN_PARITY_BOTH, { 0 }, false };
    const double hidden = 2 * 32 * (2 + 32), hidden_back = 2 * 32 * (2 + 32) + 2 * 32 * (2 + 2 * 32), last[2] = { 32 * 12, 32 * 4 };
    const double want[NN_OPS] = {
        [NN_OP_RADIAL] = 5 * (2 * hidden + 2 * (last[0] + last[1])),
        [NN_OP_EDGES] = 4 * 2 * (2 * 12 + 3 + 4) + 4 * 2 * (2 * 4 + 2 + 2),
        [NN_OP_ATTENTION] = 2 * 3 * (3 * 2 + (2 + 3) * 2) + 2 * 4 * (2 + 2),
        [NN_OP_SUM] = 2 * 3 * 4,
        [NN_OP_HEAD] = 2 * (4 + 2),
        [NN_OP_HEAD_BACK] = 4 * (4 + 2),
        [NN_OP_SUM_BACK] = 2 * 2 * 3 * 4,
        [NN_OP_EDGES_BACK] = 4 * 2 * (2 * 12 + 3 + 4) + 4 * 2 * (2 * 2 * 4 + 2 + 2 + 2),
        [NN_OP_RADIAL_BACK] = 5 * (2 * (hidden + hidden_back) + 2 * (2 * last[0] + 3 * last[1])),
        [NN_OP_ATTENTION_BACK] = 2 * 3 * (2 * 3 * 2 + (2 + 3) * 2 + 2 * 2) + 5 * 4 * (2 + 2),
        [NN_OP_WEIGHTS] = 2 * 2 * (last[0] + last[1]),
    };
    /* last radial layers, edges, linear layers of atoms; the gradient of a hidden vector from that of its table stays in float32 */
    const double rounded[NN_OPS] = {
        [NN_OP_RADIAL] = 5 * 2 * (last[0] + last[1]),
        [NN_OP_EDGES] = 4 * 2 * 2 * 12 + 4 * 2 * 2 * 4,
        [NN_OP_ATTENTION] = 2 * 3 * (3 * 2 + (2 + 3) * 2),
        [NN_OP_SUM] = 2 * 3 * 4,
        [NN_OP_SUM_BACK] = 2 * 2 * 3 * 4,
        [NN_OP_EDGES_BACK] = 4 * 2 * 2 * 12 + 4 * 2 * 2 * 2 * 4,
        [NN_OP_RADIAL_BACK] = 5 * 2 * (last[0] + 2 * last[1]),
        [NN_OP_ATTENTION_BACK] = 2 * 3 * (2 * 3 * 2 + (2 + 3) * 2 + 2 * 2),
    };
    const double floats[NN_OPS] = {
        [NN_OP_HEAD_BACK] = 2 * (4 + 2) + 3 * 2,
        [NN_OP_SUM_BACK] = 2 * 4 + 4 * (2 + 2) + 3 * (2 + 2 + 2),
        [NN_OP_EDGES_BACK] = 4 * (3 + 4 + 1) + 5 * 12 + 4 * (2 + 2 + 2 + 1) + 2 * 5 * 4,
        [NN_OP_RADIAL_BACK] = 2 * last[0] + 5 * 2 + 5 * 12 + 3 * last[1] + 5 * 2 + 2 * 5 * 4,
        [NN_OP_ATTENTION_BACK] = 2 * (3 * 2 + 5 * 2) + 2 * 4 * 4 + 3 * (3 + 2) + 3 * 3 * 2, /* the last: the norm */
        [NN_OP_WEIGHTS] = 5 * (last[0] + last[1]),
    };
    st_bench_case c = { .batch = { .n_graphs = 1, .n_nodes = 3, .n_edges = 4, .n_pairs = 2, .n_edge_features = 1 } };
    pl_arena *mem = pl_arena_new(1 << 16);
    st_bench_roof_op got[NN_OPS] = { { 0 } };
    nn_se3 *model;

    (void)state;
    assert_int_equal(nn_se3_plan(&model, &conf, mem, NULL), PL_OK);
    c.model = model;
    st_bench_roof_count(got, &c, &(st_bench_variant){ .conf.radial = NN_RADIAL_NODES }, 5);
    for (int i = 0; i < NN_OPS; i++)
        if (got[i].flops != want[i] || (i >= NN_OP_HEAD_BACK && got[i].bytes != 4 * floats[i]))
            fail_msg("operation %d has %g, %g bytes, not %g, %g", i, got[i].flops, got[i].bytes, want[i], 4 * floats[i]);
    st_bench_roof_count(got, &c, &(st_bench_variant){ .conf = { .radial = NN_RADIAL_NODES, .of_contract = NN_PREC_BF16 } }, 5);
    for (int i = 0; i < NN_OPS; i++)
        if (got[i].flops != want[i] || got[i].rounded != rounded[i])
            fail_msg("operation %d has %g in bf16 of %g, not %g of %g", i, got[i].rounded, got[i].flops, rounded[i], want[i]);
    assert_true(got[NN_OP_RADIAL].bytes == 2 * (last[0] + last[1]) + 5 * 4 * (2 + 2) + 5 * (4 + 2) * (12 + 4)); /* both tables */
    pl_arena_free(mem);
}

/* A gathered vector of a node, a message and a frame for each edge: degrees 0 .. 2 of 4 channels have 36 floats. */
static void bytes_grow_with_edges_nodes_and_rows(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    const nn_se3 *m = small_network(NN_PARITY_BOTH, mem);
    st_bench_case c = { .model = m, .batch = { .n_graphs = 1, .n_nodes = 5, .n_edges = 8 } };
    const st_bench_variant exact = { .conf.radial = NN_RADIAL_EXACT };
    st_bench_roof_op a[NN_OPS] = { { 0 } }, b[NN_OPS] = { { 0 } };
    double edge = 0;

    (void)state;
    for (int i = 0; i < m->n_modules; i++) {
        const nn_conv *v = m->module[i].kind == NN_ATTENTION ? &m->module[i].u.attention.conv : &m->module[i].u.conv;
        if (m->module[i].kind != NN_NORM)
            edge += 4 * (components(&v->in) + components(&v->out) + 1 + 3 * 3 + 5 * 5);
    }
    st_bench_roof_count(a, &c, &exact, 3);
    c.batch.n_edges++;
    st_bench_roof_count(b, &c, &exact, 3);
    assert_true(b[NN_OP_EDGES].bytes - a[NN_OP_EDGES].bytes == edge);
    c.batch.n_graphs++;
    c.batch.n_nodes++;
    st_bench_roof_count(a, &c, &exact, 3);
    assert_true(a[NN_OP_EDGES].bytes == b[NN_OP_EDGES].bytes);
    assert_true(a[NN_OP_HEAD].bytes - b[NN_OP_HEAD].bytes == 4.0 * m->param[m->head[0]].dims[1]);
    pl_arena_free(mem);
}

/* Whatever the number of threads; with exact radial networks these have no time of their own. */
static void operations_take_no_longer_than_their_step(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    const nn_se3 *m = small_network(NN_PARITY_BOTH, mem);
    made_batch b = made_batch_new(&(made_opts){ 3, 7, 6, 4, 2.5, false, 8 }, mem);
    float *params = PL_NEW(mem, float, m->n_floats), y[3], dy[3] = { 1, 1, 1 };
    st_bench_case c = { .model = m, .params = params, .batch = b.b, .y = y, .dy = dy, .grad = PL_NEW(mem, float, m->n_floats) };

    (void)state;
    nn_se3_init(m, params, 5);
    for (int i = 0; i < 6; i++) {
        const nn_precision p = i / 2 == 1 ? NN_PREC_FP32 : NN_PREC_BF16;
        const nn_radial radial = i / 2 ? NN_RADIAL_EXACT : NN_RADIAL_NODES;
        st_bench_variant v = { .kind = &nn_engine_cpu, .models = 1, .conf = { .radial = radial, .width = 0.01 } };
        st_bench_roof r = { .threads = 1 + i % 2 };
        double sum = 0;
        v.conf.of_radial = v.conf.of_contract = v.conf.of_linear = p;
        DONE(st_bench_roof_run(&r, &c, &v, 0, &why));
        for (int k = 0; k < NN_OPS; k++) {
            bool other = i / 2 && (k == NN_OP_RADIAL || k == NN_OP_RADIAL_BACK);
            assert_true(other ? r.op[k].seconds == 0 : r.op[k].seconds > 0);
            assert_true(other || k == NN_OP_PREPARE || r.op[k].bytes > 0);
            sum += r.op[k].seconds;
        }
        assert_true(sum <= r.step * (1 + 1e-12));
    }
    pl_arena_free(mem);
}

/* 100 operations in float32 and 100 of bf16, at 10 and 50 in a second: 10 + 2 s; with bf16x3 three products for each: 10 + 6 s. */
static void rounded_products_have_the_peak_of_their_unit(void **state)
{
    const st_bench_roof_op op = { .flops = 200, .rounded = 100 };
    const st_bench_peak tiles = { .fp32 = 10, .bf16 = 50, .dot16 = 20 }, none = { .fp32 = 10 };
    st_bench_variant v = { .set = "amx", .conf.of_contract = NN_PREC_BF16 };
    st_bench_roof r = st_bench_roof_of(&v, 1, &tiles, 1);

    (void)state;
    assert_string_equal(r.unit, "bf16 tiles");
    assert_true(fabs(st_bench_roof_least(&r, &op) - 12) < 1e-9);
    v.conf.of_contract = NN_PREC_BF16X3;
    r = st_bench_roof_of(&v, 1, &tiles, 1);
    assert_true(fabs(st_bench_roof_least(&r, &op) - 16) < 1e-9);
    v = (st_bench_variant){ .set = "avx512", .conf.of_contract = NN_PREC_BF16 };
    r = st_bench_roof_of(&v, 1, &tiles, 1);
    assert_true(fabs(st_bench_roof_least(&r, &op) - 15) < 1e-9);
    r = st_bench_roof_of(&v, 1, &none, 1);
    assert_true(fabs(st_bench_roof_least(&r, &op) - 20) < 1e-9);
    v.conf.of_contract = NN_PREC_FP32;
    assert_null(st_bench_roof_of(&v, 1, &tiles, 1).unit);
}

static void the_machine_has_a_bandwidth(void **state)
{
    double rate = st_bench_bandwidth_find(1);

    (void)state;
    assert_true(rate > 1e7 && rate < 1e13);
}

static void the_machine_has_a_peak(void **state)
{
    st_bench_peak one = st_bench_peak_find(1);

    (void)state;
    assert_true(one.fp32 > 1e8 && one.fp32 < 1e13);
    assert_true(one.bf16 == 0 || one.bf16 > one.fp32);
    assert_true((one.dot16 > 1e8 && one.dot16 < 1e13) == (nn_cpu_kernels_dot16() != NULL));
}

/* ---- the reference formulation, by a BLAS ---- */

typedef void sgemm_fn(int order, int turn_a, int turn_b, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                      int ldb, float beta, float *c, int ldc);

static sgemm_fn *real_sgemm;
static double multiplied; /* operations of all calls */

/* The product T of an edge with the edge's basis, which the way back must find again. */
static struct {
    const float *t, *basis;
} made[4096];
static int n_made, strangers; /* T on a way back that is another edge's, or none */

static int find_made(const float *t)
{
    int k = 0;

    while (k < n_made && made[k].t != t)
        k++;
    return k;
}

/* Forward makes T = x * basis, c[m][n]; the way back reads T in the second of its products, and the basis in the third. */
static void look_at_edge(int turn_a, int turn_b, float beta, const float *b, const float *c)
{
    enum { AS_IS = 111, TURNED = 112 };
    static int step;       /* of the way back along an edge; 0: none */
    static const float *t; /* of its second product */

    if (turn_a == AS_IS && turn_b == AS_IS) {
        const int k = find_made(c);
        assert_true(k < (int)(sizeof made / sizeof *made));
        made[k].t = c;
        made[k].basis = b;
        n_made += k == n_made;
    }
    if (turn_a == TURNED && beta == 0)
        step = 1;
    else if (step > 0)
        step++;
    if (step == 2)
        t = b;
    if (step == 3) {
        const int k = find_made(t);
        strangers += k == n_made || made[k].basis != b;
        step = 0;
    }
}

// NOLINTNEXTLINE(readability-function-size): the arguments of BLAS
static void counted_sgemm(int order, int turn_a, int turn_b, int m, int n, int k, float alpha, const float *a, int lda,
                          const float *b, int ldb, float beta, float *c, int ldc)
{
    multiplied += 2.0 * m * n * k;
    look_at_edge(turn_a, turn_b, beta, b, c);
    real_sgemm(order, turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* What the linker puts in its place (tests/stages.cmake). */
#define REAL(name) __real_##name
#define WRAPPED(name) __wrap_##name

static enum { AS_HERE, ABSENT, BROKEN } blas; /* broken: it computes nothing */

// NOLINTNEXTLINE(readability-function-size): the arguments of BLAS
static void broken_sgemm(int order, int turn_a, int turn_b, int m, int n, int k, float alpha, const float *a, int lda,
                         const float *b, int ldb, float beta, float *c, int ldc)
{
    (void)order, (void)turn_a, (void)turn_b, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb,
        (void)beta, (void)c, (void)ldc;
}

void *REAL(dlopen)(const char *name, int flags);
void *WRAPPED(dlopen)(const char *name, int flags);

void *WRAPPED(dlopen)(const char *name, int flags)
{
    if (blas == ABSENT)
        return NULL;
    return REAL(dlopen)(blas == BROKEN ? NULL : name, flags);
}

void *REAL(dlsym)(void *library, const char *name);
void *WRAPPED(dlsym)(void *library, const char *name);

void *WRAPPED(dlsym)(void *library, const char *name)
{
    const bool wanted = strcmp(name, "cblas_sgemm") == 0;
    sgemm_fn *instead = blas == BROKEN ? broken_sgemm : counted_sgemm;
    void *found = blas == BROKEN ? NULL : REAL(dlsym)(library, name);

    if (!wanted || (found == NULL && blas != BROKEN))
        return found;
    memcpy(&real_sgemm, &found, sizeof found);
    memcpy(&found, &instead, sizeof found);
    return found;
}

/* It agrees with plain loops, and multiplies as often as the page counts: once along one edge, for that; then forward twice for each
 * of four sizes of a chunk and once at the size that is best, and with the way back twice for each size and once, in each of two orders. */
static void the_reference_formulation_does_the_work_that_is_counted(void **state)
{
    enum { EDGES = 20, CALLS = 2 * 4 + 1 };
    pl_arena *mem = pl_arena_new(1 << 20);
    const st_bench_case c = { .model = small_network(NN_PARITY_BOTH, mem), .batch = { .n_edges = EDGES } };
    const st_bench_work w = st_bench_work_reference(&c);
    st_bench_blas b = { 0 };
    pl_error err = { 0 };

    (void)state;
    multiplied = 0;
    n_made = strangers = 0;
    if (st_bench_blas_run(&b, &c, 1, mem, &err) != PL_OK) {
        if (strstr(err.text, "is not installed") == NULL)
            fail_msg("%s", err.text);
        pl_arena_free(mem);
        skip();
    }
    assert_true(b.off > 0 && b.off < 1e-5);
    assert_true(b.forward > 0 && b.train > 0 && b.train_cached > 0);
    assert_true(multiplied == w.forward / EDGES + CALLS * w.forward + 2 * CALLS * w.train);
    assert_true(n_made > EDGES && strangers == 0);
    pl_arena_free(mem);
}

static void what_cannot_be_measured_is_told(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    const st_bench_case c = { .model = small_network(NN_PARITY_BOTH, mem), .batch = { .n_edges = 3 } };
    const st_bench_variant v = { .kind = &nn_engine_ref, .models = 1 };
    st_bench_blas b = { 0 };
    st_bench_roof r = { .threads = 1 };
    pl_error err = { 0 };

    (void)state;
    blas = ABSENT;
    assert_int_equal(st_bench_blas_run(&b, &c, 1, mem, &err), PL_EDEVICE);
    assert_string_equal(err.text, "not measured: OpenBLAS (libopenblas.so.0) is not installed");
    blas = BROKEN;
    assert_int_equal(st_bench_blas_run(&b, &c, 1, mem, &err), PL_EDEVICE);
    assert_string_equal(err.text, "libopenblas.so.0 is off by 1 from plain loops");
    blas = AS_HERE;
    assert_int_equal(st_bench_roof_run(&r, &c, &v, 0, &err), PL_EDEVICE);
    assert_string_equal(err.text, "engine ref cannot time its operations");
    pl_arena_free(mem);
}

/* As many as fit, beside the arrays of one chunk. */
static void edges_fit_into_the_memory_for_them(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    const nn_se3 *m = small_network(NN_PARITY_BOTH, mem);
    st_bench_conv conv[ST_BENCH_CONVS];
    double edge = 1, largest = 0;

    (void)state;
    for (int i = st_bench_convs(conv, m) - 1; i >= 0; i--) {
        const double r = 4.0 * conv[i].c_out * conv[i].c_in * conv[i].f, t = 4.0 * conv[i].c_in * conv[i].f * conv[i].d_out;
        edge += r + t + 4.0 * conv[i].d_in * conv[i].f * conv[i].d_out;
        largest = r + t > largest ? r + t : largest;
    }
    assert_int_equal(st_bench_blas_edges(m, 306 * largest + 100 * edge), 100);
    assert_int_equal(st_bench_blas_edges(m, 306 * largest + 100 * edge - 1), 99);
    assert_int_equal(st_bench_blas_edges(m, 0), 1);
    assert_int_equal(st_bench_blas_edges(m, 1e12), 1200);
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_what_the_page_counts),
        cmocka_unit_test(operations_are_counted_by_the_plan),
        cmocka_unit_test(operations_back_are_counted_by_the_plan),
        cmocka_unit_test(a_tiny_network_has_the_products_of_a_hand_count),
        cmocka_unit_test(operations_take_no_longer_than_their_step),
        cmocka_unit_test(rounded_products_have_the_peak_of_their_unit),
        cmocka_unit_test(bytes_grow_with_edges_nodes_and_rows),
        cmocka_unit_test(the_machine_has_a_bandwidth),
        cmocka_unit_test(the_machine_has_a_peak),
        cmocka_unit_test(the_reference_formulation_does_the_work_that_is_counted),
        cmocka_unit_test(what_cannot_be_measured_is_told),
        cmocka_unit_test(edges_fit_into_the_memory_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
