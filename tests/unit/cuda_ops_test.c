/* SPDX-License-Identifier: Apache-2.0 */
/* Single operations of the cuda engine's table against plain loops in double. Operations that are only useful together are
 * tested in twin/cuda_engine_test.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/network/frame.h"
#include "tests/unit/device_arrays.h"
#include "tests/unit/products.h"

/* One order pair (0, 1) of K channels in and N out; cells of 1100 and 200 rows on three nodes. */
enum { LONG = 1300, LONG_K = 5, LONG_N = 21, LONG_EACH = 8 * 24, LONG_SIZE = 3 * LONG_EACH };

static double outer_want(const float *x, const float *y, const float *phi, int node, int m, int b, int k, int n)
{
    double sum = 0;

    for (int row = 0; row < LONG; row++) {
        int cell = row >= 1100, j = node - cell;
        const float *xr = x + row * 3 * LONG_K + (m ? LONG_K : 0), *yr = y + row * 3 * LONG_N + (m ? LONG_N : 0);
        double xp = xr[k], xm = m ? xr[LONG_K + k] : 0, yp = yr[n], ym = m ? yr[LONG_N + n] : 0;
        if (j == 0 || j == 1)
            sum += (double)phi[2 * row + j] * (b ? xp * ym - xm * yp : xp * yp + xm * ym);
    }
    return sum;
}

static void gradients_of_tables_of_long_cells(void **state)
{
    static const nn_gpu_span span[] = { { { 0, 0 }, { 1100, 0 } }, { { 1100, 0 }, { LONG, 1100 } }, { { 0, 1100 }, { 0, LONG } } };
    static const double tol[] = { 1e-5, 1e-4, 3e-2, 3e-3, 3e-3 };
    float *x = random_floats(LONG * 3 * LONG_K), *y = random_floats(LONG * 3 * LONG_N), *phi = random_floats(2 * LONG);
    nn_gpu_so2 a = { .n_orders = 2,
                     .x_size = 3 * LONG_K,
                     .y_size = 3 * LONG_N,
                     .max_n = LONG_N,
                     .max_k = LONG_K,
                     .k = { LONG_K, LONG_K },
                     .n = { LONG_N, LONG_N },
                     .x_at = { 0, LONG_K },
                     .y_at = { 0, LONG_N },
                     .table_size = LONG_SIZE,
                     .table_at = { 0, LONG_EACH },
                     .n_nodes = 3,
                     .end_row = LONG,
                     .slots = (LONG + NN_GPU_OUTER - 1) / NN_GPU_OUTER,
                     .x = to_device(x, LONG * 3 * LONG_K),
                     .y = to_device(y, LONG * 3 * LONG_N),
                     .phi = to_device(phi, 2 * LONG) };
    nn_gpu_span *spans = ops->alloc(gpu, sizeof span);
    (void)state;

    ops->upload(gpu, spans, span, sizeof span);
    a.span = spans;
    a.table = ops->alloc(gpu, 3 * LONG_SIZE * sizeof(float));
    a.work = ops->alloc(gpu, 2 * (size_t)a.slots * LONG_SIZE * sizeof(float));
    for (int p = 0; p < 5; p++) {
        const float *got;
        a.precision = (nn_gpu_precision)p;
        ops->so2_outer(gpu, &a);
        got = from_device(a.table, 3 * LONG_SIZE);
        for (int i = 0; i < 3 * LONG_SIZE; i++) {
            int node = i / LONG_SIZE, at = i % LONG_SIZE, b = at >= 2 * LONG_EACH, k = at % LONG_EACH / 24, n = at % 24;
            bool filling = k >= LONG_K || n >= LONG_N;
            double want = filling ? 0 : outer_want(x, y, phi, node, at >= LONG_EACH, b, k, n);
            if (!(fabs(got[i] - want) <= tol[p] * (filling ? 0 : 30)))
                fail_msg("precision %d: node %d, number %d is %g, should be %g", p, node, at, (double)got[i], want);
        }
    }
    ops->free(gpu, (void *)a.x);
    ops->free(gpu, a.y);
    ops->free(gpu, (void *)a.phi);
    ops->free(gpu, spans);
    ops->free(gpu, a.table);
    ops->free(gpu, a.work);
}

static const nn_gpu_frame_rule *rule_kept(void)
{
    static nn_frame_rule rule;
    static nn_gpu_frame_rule flat;

    nn_frame_rule_make(&rule);
    for (int l = 0; l < NN_DEGREES; l++) {
        flat.n[l] = rule.n[l];
        for (int i = 0; i < rule.n[l]; i++)
            flat.term[l][i] = (nn_gpu_term){ rule.term[l][i].i, rule.term[l][i].j, rule.term[l][i].k, 0, rule.term[l][i].w };
    }
    return bytes_kept(&flat, sizeof flat);
}

/* Also along the axes, where the choice of the roll changes, and for a zero vector. */
static void frames_are_those_of_the_host(void **state)
{
    enum { PAIRS = 45, ALL = 2 * PAIRS * NN_FRAME_ALL };
    float *vec = random_floats(3 * PAIRS), want[NN_FRAME_ALL], sign[NN_FRAME_ALL], *got;
    nn_gpu_frames f = { .n_pairs = PAIRS, .rule = rule_kept(), .d = kept(random_floats(ALL), ALL) };
    const float end[2] = { 0.5f, -2.0f };
    nn_frame_rule host;
    (void)state;

    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 3; k++)
            vec[3 * i + k] = k != i / 2 ? 0 : end[i % 2];
    memset(vec + 18, 0, 3 * sizeof *vec);
    f.vec = kept(vec, 3 * PAIRS);
    nn_frame_rule_make(&host);
    for (f.l_max = 1; f.l_max <= 4; f.l_max++) {
        int size = f.size = nn_frame_size(f.l_max);
        ops->frames(gpu, &f);
        got = from_device(f.d, 2 * PAIRS * (size_t)size);
        nn_frame_reverse(f.l_max, sign);
        for (int p = 0; p < PAIRS; p++) {
            nn_frame_make(&host, vec + 3 * p, f.l_max, want);
            for (int i = 0; i < size; i++) {
                assert_true(fabsf(got[2 * p * size + i] - want[i]) < 1e-6f);
                assert_true(got[(2 * p + 1) * size + i] == got[2 * p * size + i] * sign[i]);
            }
        }
    }
}

/* ---- attention, one kernel forward and one backward, against its parts ---- */

enum { NODES = 9, ROWS = 40, HEADS = 4, CHANNELS = 8, PARTS = 3, FRAMES = 14 };

/* Rows in any order; node 2 has none of them and node 5 has one. */
typedef struct attention {
    int32_t dst[ROWS], frame[ROWS], first[NODES + 1], row[ROWS];
    nn_gpu_nodes nodes;
    nn_gpu_turn value, key; /* dst's numbers against the halves of the rows' channels */
    float *edges;           /* [ROWS][2 * 9 * CHANNELS]: the result for the rows      */
} attention;

static void attention_rows(attention *a)
{
    static const int32_t many[] = { 0, 1, 3, 4, 6, 7, 8 };
    int32_t n = 0;

    for (int32_t r = 0; r < ROWS; r++) {
        a->dst[r] = r == 7 ? 5 : many[pl_rng_below(&rng, 7)];
        a->frame[r] = (int32_t)pl_rng_below(&rng, FRAMES);
    }
    for (int32_t node = 0; node < NODES; node++) {
        a->first[node] = n;
        for (int32_t r = 0; r < ROWS; r++)
            if (a->dst[r] == node)
                a->row[n++] = r;
    }
    a->first[NODES] = n;
}

static int32_t *ints_kept(const int32_t *x, size_t n) { return bytes_kept(x, n * sizeof *x); }

/* Degrees 0, 1, 2; values, then keys. */
static void attention_open(attention *a)
{
    nn_gpu_turn t = { .n_rows = ROWS, .frame_size = nn_frame_size(2), .heads = HEADS, .edges = { .n_degrees = 3 } };

    attention_rows(a);
    a->nodes = (nn_gpu_nodes){ 3, 9 * CHANNELS, { CHANNELS, CHANNELS, CHANNELS }, { 0, CHANNELS, 4 * CHANNELS } };
    for (int m = 0; m < 3; m++)
        for (int sign = 0; sign < (m ? 2 : 1); sign++)
            for (int l = m; l < 3; l++, t.edges.size += 2 * CHANNELS)
                t.edges.at[l][sign ? l - m : l + m] = t.edges.size;
    t.edges.ch[0] = t.edges.ch[1] = t.edges.ch[2] = CHANNELS;
    t.nodes = a->nodes;
    t.node = ints_kept(a->dst, ROWS);
    t.frame = ints_kept(a->frame, ROWS);
    t.d = kept(random_floats(FRAMES * (size_t)t.frame_size), FRAMES * (size_t)t.frame_size);
    a->value = a->key = t;
    for (int l = 0; l < 3; l++)
        for (int c = 0; c < 2 * l + 1; c++)
            a->key.edges.at[l][c] += CHANNELS;
    a->edges = kept(random_floats(ROWS * (size_t)t.edges.size), ROWS * (size_t)t.edges.size);
}

static nn_gpu_sum attention_sum(const attention *a, const nn_gpu_turn *t, const float *weight)
{
    nn_gpu_sum s = { .t = *t,
                     .n_nodes = NODES,
                     .first = ints_kept(a->first, NODES + 1),
                     .row = ints_kept(a->row, ROWS),
                     .to = kept(random_floats(NODES * 72), NODES * 72) };

    s.t.y = a->edges;
    s.t.weight = weight;
    return s;
}

/* Error relative to the largest number; a NaN is never near. */
static void all_near(const float *got, const float *want, size_t n)
{
    double max = 0;

    for (size_t i = 0; i < n; i++)
        max = fmax(max, fabs((double)want[i]));
    assert_true(max > 0.01);
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= 4e-6 * max))
            fail_msg("number %zu is %.9g, should be %.9g", i, (double)got[i], (double)want[i]);
}

static void softmax(const attention *a, const float *logit, float *alpha)
{
    for (int32_t node = 0; node < NODES; node++)
        for (int h = 0; h < HEADS; h++) {
            double v[ROWS], sum = 0;
            for (int32_t e = a->first[node]; e < a->first[node + 1]; e++) {
                v[e] = 0;
                for (int i = 0; i < PARTS; i++)
                    v[e] += (double)logit[(i * ROWS + a->row[e]) * HEADS + h];
                sum += exp(v[e]);
            }
            for (int32_t e = a->first[node]; e < a->first[node + 1]; e++)
                alpha[a->row[e] * HEADS + h] = (float)(exp(v[e]) / sum);
        }
}

static void fused_attention_equals_softmax_and_a_sum(void **state)
{
    attention a;
    float *logit = random_floats(PARTS * ROWS * HEADS), want[ROWS * HEADS];
    nn_gpu_attend one_call;
    nn_gpu_sum parts;
    (void)state;

    attention_open(&a);
    softmax(&a, logit, want);
    one_call = (nn_gpu_attend){ .n_parts = PARTS,
                                .logit = kept(logit, PARTS * ROWS * HEADS),
                                .alpha = kept(random_floats(ROWS * HEADS), ROWS * HEADS) };
    one_call.sum = attention_sum(&a, &a.value, one_call.alpha);
    ops->attend(gpu, &one_call);
    parts = attention_sum(&a, &a.value, kept(want, ROWS * HEADS));
    ops->sum(gpu, &parts);
    all_near(from_device(one_call.alpha, ROWS * HEADS), want, ROWS * HEADS);
    all_near(from_device(one_call.sum.to, NODES * 72), from_device(parts.to, NODES * 72), NODES * 72);
}

/* ds of every row and head from alpha and the dots of the rows. */
static void softmax_back(const attention *a, const float *alpha, const float *dot, double scale, float *ds)
{
    for (int32_t node = 0; node < NODES; node++)
        for (int h = 0; h < HEADS; h++) {
            double mean = 0;
            for (int32_t e = a->first[node]; e < a->first[node + 1]; e++)
                mean += (double)alpha[a->row[e] * HEADS + h] * dot[a->row[e] * HEADS + h];
            for (int32_t e = a->first[node]; e < a->first[node + 1]; e++)
                ds[a->row[e] * HEADS + h] = (float)(alpha[a->row[e] * HEADS + h] * (dot[a->row[e] * HEADS + h] - mean) * scale);
        }
}

static void fused_attention_backward_equals_its_parts(void **state)
{
    attention a;
    float *logit = random_floats(PARTS * ROWS * HEADS), alpha[ROWS * HEADS], ds[ROWS * HEADS], *x[2], *made[2];
    nn_gpu_attend_back one_call = { .scale = 0.3f };
    nn_gpu_dot dot;
    nn_gpu_sum sum;
    (void)state;

    attention_open(&a);
    softmax(&a, logit, alpha);
    for (int i = 0; i < 2; i++) { /* gradient of the sums, queries; of the rows, in one and in parts */
        x[i] = kept(random_floats(NODES * 72), NODES * 72);
        made[i] = kept(random_floats(ROWS * 144), ROWS * 144);
    }
    one_call.alpha = kept(alpha, ROWS * HEADS);
    dot = (nn_gpu_dot){ a.value, 1, kept(alpha, ROWS * HEADS) };
    dot.t.x = x[0];
    dot.t.y = a.edges;
    one_call.dalpha = dot;
    one_call.dalpha.dot = kept(alpha, ROWS * HEADS);
    ops->dot(gpu, &dot);
    softmax_back(&a, alpha, from_device(dot.dot, ROWS * HEADS), 0.3, ds);
    for (int i = 0; i < 2; i++) {
        nn_gpu_turn *t = i ? &one_call.dkey : &one_call.dvalue, part;
        *t = i ? a.key : a.value;
        t->x = x[i];
        t->y = made[0];
        t->weight = i ? one_call.dalpha.dot : one_call.alpha;
        part = *t;
        part.y = made[1];
        part.weight = i ? kept(ds, ROWS * HEADS) : one_call.alpha;
        ops->turn(gpu, &part);
    }
    one_call.dq = attention_sum(&a, &a.key, one_call.dalpha.dot);
    ops->attend_back(gpu, &one_call);
    sum = attention_sum(&a, &a.key, kept(ds, ROWS * HEADS));
    ops->sum(gpu, &sum);
    all_near(from_device(one_call.dalpha.dot, ROWS * HEADS), ds, ROWS * HEADS);
    all_near(from_device(made[0], ROWS * 144), from_device(made[1], ROWS * 144), ROWS * 144);
    all_near(from_device(one_call.dq.to, NODES * 72), from_device(sum.to, NODES * 72), NODES * 72);
}

/* ---- products along edges on tensor cores: more columns and stages than shared memory holds at once ---- */

enum { LINES = 84, WIDE_X = 114, WIDE_Y = 400, WIDE_A = 40 * 200, WIDE_B = 40 * 104, WIDE = WIDE_A + 2 * WIDE_B };

static const nn_gpu_tile wide_tiles[] = { { 0, 64, { 0, 1 } }, { 64, LINES - 64, { 1, -1 } } };
static const nn_gpu_so2 wide = { .n_orders = 2,
                                 .n_tiles = 2,
                                 .x_size = WIDE_X,
                                 .y_size = WIDE_Y,
                                 .max_n = 200,
                                 .max_k = 40,
                                 .k = { 40, 37 },
                                 .n = { 200, 100 },
                                 .x_at = { 0, 40 },
                                 .y_at = { 0, 200 },
                                 .sign = 1,
                                 .table_size = WIDE,
                                 .table_at = { 0, WIDE_A },
                                 .n_nodes = 2,
                                 .end_row = LINES };

/* Number `at` of a row; *size: of all terms. */
static double wide_want(const float *table, const float *x, const float *phi, int row, int at, double *size)
{
    int m = at >= 200, minus = at >= 300, n = m ? at % 100 : at;
    double sum = *size = 0;

    for (int j = 0; j < (row < 64 ? 2 : 1); j++)
        for (int k = 0; k < wide.k[m]; k++) {
            const float *t = table + (row < 64 ? j : 1) * WIDE + m * WIDE_A + n * 40 + k, *in = x + row * WIDE_X + m * 40 + k;
            double a = (double)phi[2 * row + j] * t[0] * in[minus * 37];
            double b = m ? (double)phi[2 * row + j] * t[WIDE_B] * in[37 - minus * 37] : 0;
            sum += minus ? a + b : a - b;
            *size += fabs(a) + fabs(b);
        }
    return sum;
}

/* Made as in the engine, here from itself times 1. */
static void *wide_table(float *t, nn_gpu_precision p)
{
    static const float eye[] = { 1, 0, 0, 1 };
    nn_gpu_gemm g = { .m = 2,
                      .n = WIDE,
                      .k = 2,
                      .splits = 1,
                      .c_as = p == NN_GPU_BF16X3 ? NN_GPU_FP32 : p,
                      .a_k = one,
                      .a_m = { 1 << 30, 0, 2 },
                      .b_k = { 1 << 30, 0, WIDE },
                      .b_n = one,
                      .c_m = { 1 << 30, 0, WIDE },
                      .c_n = one,
                      .a = kept(eye, 4) };

    for (int i = 0; i < 2 * WIDE; i++) /* the padding is zero */
        t[i] = i % WIDE >= WIDE_A && (i % 40 >= 37 || (i % WIDE - WIDE_A) / 40 % 104 >= 100) ? 0 : t[i];
    g.b = kept(t, 2 * WIDE);
    g.c = kept(t, 2 * WIDE);
    return ops->gemm(gpu, &g, 1), g.c;
}

static void products_wider_than_shared_memory(void **state)
{
    static const double tol[] = { 0, 3e-5, 8e-3, 1e-3, 1e-3 };
    float *x = random_floats(LINES * WIDE_X), *phi = random_floats(2 * LINES), *table = random_floats(2 * WIDE), *got[2];
    nn_gpu_so2 s = wide;
    (void)state;

    s.tile = bytes_kept(wide_tiles, sizeof wide_tiles);
    s.x = kept(x, LINES * WIDE_X);
    s.phi = kept(phi, 2 * LINES);
    s.y = kept(random_floats(LINES * WIDE_Y), LINES * WIDE_Y);
    for (s.precision = NN_GPU_BF16X3; s.precision <= NN_GPU_FP16; s.precision++) {
        s.table = wide_table(table, s.precision);
        for (int i = 0; i < 2; i++, setenv("MOLSIEVE_EMULATOR_SEED", "77", 1)) {
            assert_true(ops->so2(gpu, &s)); /* once in lock-step, once in the order of a device: tests/emulator/emulator.h */
            got[i] = from_device(s.y, LINES * WIDE_Y);
        }
        unsetenv("MOLSIEVE_EMULATOR_SEED");
        assert_memory_equal(got[0], got[1], LINES * WIDE_Y * sizeof *got[0]);
        for (int i = 0; i < LINES * WIDE_Y; i++) {
            double size, want = wide_want(table, x, phi, i / WIDE_Y, i % WIDE_Y, &size);
            if (!(fabs(got[0][i] - want) <= tol[s.precision] * size))
                fail_msg("precision %d: number %d is %g, should be %g", (int)s.precision, i, (double)got[0][i], want);
        }
    }
}

/* So many rows that a warp sums several. */
static void a_norm_of_many_nodes_is_that_of_few(void **state)
{
    enum { MANY = 1300, FEW = 130, SIZE = 2 + 10, ALL = MANY * SIZE };
    static const float alive[] = {
        0.7f, 1.2f, 0.1f, 0.2f, 0.9f, 1.1f, 0.3f, 0.2f
    }; /* no ReLU sets a channel to zero for all rows */
    nn_gpu_norm a = { .channels = 4,
                      .nodes = { 3, SIZE, { 2, 0, 2 }, { 0, 2, 2 } },
                      .gain = { 0, 0, 4 },
                      .bias = { 2, 0, 6 },
                      .params = kept(alive, 8),
                      .work = kept(random_floats(ALL), 8 * NN_GPU_PARTS) };
    const float *x = kept(random_floats(ALL), ALL), *dy = kept(random_floats(ALL), ALL), none[8] = { 0 };
    float *dx = kept(random_floats(2 * ALL), 2 * ALL), *grad[2];
    (void)state;

    for (int i = 0; i < 2; i++) {
        a.n_nodes = i ? FEW : MANY;
        a.grad = kept(none, 8);
        for (int at = 0; at < ALL; at += a.n_nodes * SIZE) {
            a.x = x + at;
            a.dy = dy + at;
            a.dx = dx + i * ALL + at;
            ops->norm_back(gpu, &a);
            ops->norm_sums(gpu, &a);
        }
        grad[i] = from_device(a.grad, 8);
    }
    dx = from_device(dx, 2 * ALL);
    assert_memory_equal(dx, dx + ALL, ALL * sizeof *dx);
    for (int i = 0; i < 8; i++)
        assert_true(fabsf(grad[0][i] - grad[1][i]) < 1e-4f * (3 + fabsf(grad[0][i])) && grad[0][i] != 0); /* 1300 terms */
}

enum { NORM_MAX = 70, NORM_NODES = 3 };

/* One degree of a node, v: x [dim][ch], gain [ch], bias [ch]. y = relu(gain (|x| - mean) / deviation + bias) x / |x|; sum of dy y. */
static double norm_plain(int ch, int dim, const double *v, const float *dy, double *y)
{
    const double *gain = v + ch * dim, *bias = gain + ch;
    double size[NORM_MAX], mean = 0, var = 0, sum = 0;

    for (int k = 0; k < ch; k++) {
        size[k] = 0;
        for (int d = 0; d < dim; d++)
            size[k] += v[d * ch + k] * v[d * ch + k];
        size[k] = sqrt(size[k]);
        mean += size[k] / ch;
    }
    for (int k = 0; k < ch; k++)
        var += (size[k] - mean) * (size[k] - mean) / ch;
    for (int i = 0; i < ch * dim; i++) {
        double u = gain[i % ch] * (size[i % ch] - mean) / sqrt(var + 1e-5) + bias[i % ch];
        y[i] = u > 0 ? u * v[i] / size[i % ch] : 0;
        sum += dy[i] * y[i];
    }
    return sum;
}

/* grad [ch*dim + 2 ch] += differences of that sum. */
static void norm_slopes(int ch, int dim, double *v, const float *dy, double *grad)
{
    double y[5 * NORM_MAX], h = 1e-6;

    for (int i = 0; i < ch * dim + 2 * ch; i++) {
        double was = v[i], up;
        v[i] = was + h;
        up = norm_plain(ch, dim, v, dy, y);
        v[i] = was - h;
        grad[i] += (up - norm_plain(ch, dim, v, dy, y)) / (2 * h);
        v[i] = was;
    }
}

static void norm_near(const char *what, int ch, const float *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) < 2e-4 * (1 + fabs(want[i]))))
            fail_msg("%s, %d channels, number %d: %g, should be %g", what, ch, i, (double)got[i], want[i]);
}

/* Host copies of the device's inputs and results, for one degree. */
static void norm_degree(const nn_gpu_norm *a, int l, const float *params, const float *x, const float *dy, const float *y,
                        const float *dx, const float *grad)
{
    int ch = a->nodes.ch[l], dim = 2 * l + 1;
    double v[7 * NORM_MAX], want[5 * NORM_MAX], slope[7 * NORM_MAX], of_params[2 * NORM_MAX] = { 0 };

    for (int node = 0; node < NORM_NODES; node++) {
        int64_t at = (int64_t)node * a->nodes.size + a->nodes.at[l];
        for (int i = 0; i < ch * dim; i++)
            v[i] = x[at + i];
        for (int k = 0; k < ch; k++) {
            v[ch * dim + k] = params[a->gain[l] + k];
            v[ch * dim + ch + k] = params[a->bias[l] + k];
        }
        (void)norm_plain(ch, dim, v, dy + at, want);
        norm_near("y", ch, y + at, want, ch * dim);
        memset(slope, 0, sizeof slope);
        norm_slopes(ch, dim, v, dy + at, slope);
        norm_near("dx", ch, dx + at, slope, ch * dim);
        for (int k = 0; k < 2 * ch; k++)
            of_params[k] += slope[ch * dim + k];
    }
    norm_near("gain", ch, grad + a->gain[l], of_params, ch);
    norm_near("bias", ch, grad + a->bias[l], of_params + ch, ch);
}

static void norms_of_every_width(void **state)
{
    static const int ch[][3] = { { 32, 1, 31 }, { 33, 64, NORM_MAX }, { 4, 0, 8 } };
    (void)state;

    for (size_t set = 0; set < sizeof ch / sizeof *ch; set++) {
        nn_gpu_norm a = { .n_nodes = NORM_NODES, .nodes = { .n_degrees = 3 } };
        int n, n_params = 0;
        float *params, *x, *dy, *out, *grad;
        for (int l = 0; l < 3; l++) {
            a.nodes.ch[l] = ch[set][l];
            a.nodes.at[l] = a.nodes.size;
            a.gain[l] = n_params;
            a.bias[l] = n_params + ch[set][l];
            a.nodes.size += (2 * l + 1) * ch[set][l];
            a.channels += ch[set][l];
            n_params += 2 * ch[set][l];
        }
        n = NORM_NODES * a.nodes.size;
        params = random_floats((size_t)n_params);
        x = random_floats((size_t)n);
        dy = random_floats((size_t)n);
        a.params = kept(params, (size_t)n_params);
        a.x = kept(x, (size_t)n);
        a.dy = kept(dy, (size_t)n);
        a.y = kept(random_floats((size_t)n), (size_t)n);
        a.dx = kept(random_floats((size_t)n), (size_t)n);
        a.work = room((size_t)(2 * NN_GPU_PARTS * a.channels) * sizeof *a.work);
        a.grad = kept(PL_NEW(mem, float, (size_t)n_params), (size_t)n_params);
        ops->norm(gpu, &a);
        ops->norm_back(gpu, &a);
        ops->norm_sums(gpu, &a);
        out = from_device(a.y, (size_t)n);
        grad = from_device(a.grad, (size_t)n_params);
        for (int l = 0; l < 3; l++)
            if (ch[set][l])
                norm_degree(&a, l, params, x, dy, out, from_device(a.dx, (size_t)n), grad);
        ops->free(gpu, a.work);
    }
}

/* An argument names the tests to run. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_every_shape_and_precision),
        cmocka_unit_test(gradients_of_every_shape_and_precision),
        cmocka_unit_test(a_group_of_products_is_what_each_is_alone),
        cmocka_unit_test(gradients_of_tables_of_long_cells),
        cmocka_unit_test(layers_of_every_shape_and_precision),
        cmocka_unit_test(tables_of_every_shape_and_precision),
        cmocka_unit_test(a_row_of_a_layer_does_not_depend_on_how_many_there_are),
        cmocka_unit_test(a_sum_goes_on),
        cmocka_unit_test(frames_are_those_of_the_host),
        cmocka_unit_test(fused_attention_equals_softmax_and_a_sum),
        cmocka_unit_test(fused_attention_backward_equals_its_parts),
        cmocka_unit_test(products_wider_than_shared_memory),
        cmocka_unit_test(a_norm_of_many_nodes_is_that_of_few),
        cmocka_unit_test(norms_of_every_width),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, open_device, close_device);
}
