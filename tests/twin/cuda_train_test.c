/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a training step besides forward and backward, on the device, against models/optim/loss.c,
 * models/optim/adam.c and models/optim/lamb.c; copies beside the work and graphs. On the emulator or, where MOLSIEVE_PLUGINS has
 * the real plugin, on a GPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/optim/adam.h"
#include "models/optim/lamb.h"
#include "models/optim/loss.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/rng.h"
#include "tests/twin/device.h"

enum { MAX = 12345, STEPS = 6 };

typedef struct arrays {
    float p[MAX], m[MAX], v[MAX], ema[MAX], g[MAX];
} arrays;

static void near(const char *what, double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol * (0.02 + fabs(want))))
        fail_msg("%s is %.9g, should be %.9g", what, got, want);
}

static void all_near(const char *what, const float *device, const float *want, size_t n)
{
    static float got[MAX];

    ops->download(gpu, got, device, n * sizeof *got);
    works(ops->status(gpu));
    for (size_t i = 0; i < n; i++)
        near(what, (double)got[i], (double)want[i], 2e-6);
}

/* ---- loss ---- */

static nn_gpu_loss_scale *scale_upload(double by, int64_t good)
{
    nn_gpu_loss_scale s = { by, good }, *p = room(sizeof s);

    ops->upload(gpu, p, &s, sizeof s);
    works(ops->status(gpu));
    return p;
}

static void loss_check(nn_loss kind, int32_t n, double scale, pl_rng *r)
{
    float y[1000], t[1000], high[1000], dy[1000];
    nn_gpu_step_result *result = room(sizeof *result), got = { 0 };
    nn_loss_sum want;
    nn_gpu_loss a = { .n = n, .kind = (int32_t)kind, .scale = scale_upload(scale, 0), .result = result };

    for (int32_t i = 0; i < n; i++) {
        y[i] = (float)pl_rng_normal(r);
        if (i % 7 == 3)
            t[i] = NAN;
        else
            t[i] = i % 5 == 1 ? y[i] : (float)pl_rng_normal(r);
        if (kind == NN_LOSS_BCE) {
            y[i] *= i % 11 == 2 ? 1e4f : 3;
            t[i] = isnan(t[i]) ? NAN : t[i] > 0;
            if (i % 3 == 1) /* by weight */
                t[i] = t[i] > 0 ? 2.5f : -0.75f;
        }
    }
    memcpy(high, t, (size_t)n * sizeof *t);
    for (int32_t i = 0; i < n && kind != NN_LOSS_BCE; i++) { /* limits below, above, on both sides */
        if (i % 4 == 1)
            high[i] = INFINITY;
        else if (i % 8 == 2)
            t[i] = isnan(t[i]) ? NAN : -INFINITY;
        else if (i % 8 == 6)
            high[i] = t[i] + 1;
    }
    a.measured = nn_loss_measured(t, n);
    want = nn_loss_backward(kind, y, t, high, n, a.measured, dy);
    for (int32_t i = 0; i < n; i++)
        dy[i] *= (float)scale;
    a.y = to_device(y, (size_t)n);
    a.t = to_device(t, (size_t)n);
    a.high = to_device(high, (size_t)n);
    a.dy = room(1000 * sizeof(float));
    ops->upload(gpu, result, &got, sizeof got); /* the loss writes a part of it */
    ops->loss(gpu, &a);
    all_near("dy", a.dy, dy, (size_t)n);
    ops->download(gpu, &got, result, sizeof got);
    near("loss", got.loss, want.loss, 1e-12);
    near("abs", got.abs, want.abs, 1e-12);
    near("square", got.square, want.square, 1e-12);
    assert_int_equal(got.measured, want.n);
    ops->free(gpu, (void *)a.y);
    ops->free(gpu, (void *)a.t);
    ops->free(gpu, (void *)a.high);
    ops->free(gpu, a.dy);
    ops->free(gpu, (void *)a.scale);
    ops->free(gpu, result);
}

static void losses_and_their_gradients_are_those_of_the_host(void **state)
{
    static const int32_t sizes[] = { 1, 4, 31, 256, 257, 1000 };
    pl_rng r = pl_rng_at(5, 0, 0);
    (void)state;

    for (int i = 0; i < 6; i++) {
        loss_check(NN_LOSS_L1, sizes[i], 1, &r);
        loss_check(NN_LOSS_L2, sizes[i], i % 2 ? 1 : 4096, &r);
        loss_check(NN_LOSS_BCE, sizes[i], i % 2 ? 4096 : 1, &r);
    }
}

static void column_sums_add_to_what_is_there(void **state)
{
    enum { ROWS = 145, COLS = 70, LD = 75 };
    float x[ROWS * LD], y[COLS], got[COLS];
    pl_rng r = pl_rng_at(6, 0, 0);
    nn_gpu_column_sum s = { .rows = ROWS, .cols = COLS, .ld = LD };
    (void)state;

    for (int i = 0; i < ROWS * LD; i++)
        x[i] = (float)pl_rng_normal(&r);
    for (int j = 0; j < COLS; j++)
        y[j] = (float)j;
    s.x = to_device(x, ROWS * LD);
    s.y = to_device(y, COLS);
    ops->column_sum(gpu, &s);
    ops->download(gpu, got, s.y, sizeof got);
    works(ops->status(gpu));
    for (int j = 0; j < COLS; j++) {
        double want = y[j];
        for (int i = 0; i < ROWS; i++)
            want += x[i * LD + j];
        assert_true(fabs(got[j] - want) < 1e-4);
    }
    ops->free(gpu, (void *)s.x);
    ops->free(gpu, s.y);
}

/* ---- optimiser ---- */

typedef struct optimiser_case {
    size_t n;
    double grad_clip, ema, decay;
    bool lamb;
    double scale; /* of the loss */
} optimiser_case;

/* Where the tensors of the tests of LAMB end; the first begins with p = 0. */
enum { TENSORS = 5 };
static const int32_t tensor_end[TENSORS] = { 3, 64, 64 + NN_GPU_SQUARES, 65 + 2 * NN_GPU_SQUARES, MAX };

static const nn_adamw_conf adam = { 0.9, 0.999, 1e-8, 0.1 };

static nn_gpu_lamb lamb_open(void)
{
    nn_gpu_piece piece[16];
    int32_t tensor[TENSORS + 1] = { 0 }, n = 0;
    nn_gpu_lamb l = { .piece = room(sizeof piece), .tensor = room(sizeof tensor), .squares = room(16 * sizeof *l.squares) };

    for (int32_t t = 0, at = 0; t < TENSORS; tensor[++t] = n)
        for (; at < tensor_end[t]; at += piece[n++].n) {
            int32_t left = tensor_end[t] - at;
            piece[n] = (nn_gpu_piece){ at, left < NN_GPU_SQUARES ? left : NN_GPU_SQUARES, t };
        }
    l.n_pieces = n;
    ops->upload(gpu, (void *)l.piece, piece, sizeof piece);
    ops->upload(gpu, (void *)l.tensor, tensor, sizeof tensor);
    works(ops->status(gpu));
    return l;
}

static nn_gpu_optimise device_open(const arrays *a, const optimiser_case *c)
{
    int64_t zero = 0;
    nn_gpu_step_result result = { .loss = 1 };
    nn_gpu_optimise o = { .n = (int64_t)c->n,
                          .beta1 = adam.beta1,
                          .beta2 = adam.beta2,
                          .eps = adam.eps,
                          .decay = c->decay,
                          .grad_clip = c->grad_clip,
                          .ema = c->ema,
                          .p = to_device(a->p, c->n),
                          .m = to_device(a->m, c->n),
                          .v = to_device(a->v, c->n),
                          .average = c->ema > 0 ? to_device(a->ema, c->n) : NULL,
                          .part = room((c->n / NN_GPU_SQUARES + 1) * sizeof(double)),
                          .step = room(sizeof(int64_t)),
                          .scale = scale_upload(c->scale, 0),
                          .rule = room(sizeof(nn_gpu_rule)),
                          .n_shards = 1,
                          .result = room(sizeof result) };

    ops->upload(gpu, o.step, &zero, sizeof zero);
    o.shard = o.result;
    ops->upload(gpu, o.result, &result, sizeof result);
    if (c->lamb)
        o.lamb = lamb_open();
    works(ops->status(gpu));
    return o;
}

static void optimise(const nn_gpu_optimise *o)
{
    ops->squares(gpu, o);
    ops->decide(gpu, o);
    ops->update(gpu, o);
}

static void device_close(const nn_gpu_optimise *o)
{
    void *all[] = { o->p,
                    o->m,
                    o->v,
                    o->average,
                    o->part,
                    o->step,
                    o->scale,
                    o->rule,
                    o->result,
                    (void *)o->lamb.piece,
                    (void *)o->lamb.tensor,
                    o->lamb.squares };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ops->free(gpu, all[i]);
}

static void host_lamb(const nn_adamw_arrays *all, const nn_lamb_rule *rule)
{
    for (int32_t t = 0, at = 0; t < TENSORS; at = tensor_end[t++]) {
        size_t n = (size_t)(tensor_end[t] - at);
        float ratio = nn_lamb_ratio(nn_lamb_moments(all, (size_t)at, n, rule));
        nn_lamb_update(all, (size_t)at, n, rule, ratio);
    }
}

/* One step as models/training/train.c does it. */
static double host_step(arrays *a, const optimiser_case *c, int64_t step, double lr)
{
    nn_adamw_conf conf = adam;
    const nn_adamw_arrays all = { a->p, a->m, a->v, c->ema > 0 ? a->ema : NULL, a->g };
    nn_adamw_rule rule;
    nn_lamb_rule lamb;
    double norm = 0;

    conf.decay = c->decay;
    for (size_t i = 0; i < c->n; i++)
        norm += (double)a->g[i] * (double)a->g[i];
    norm = sqrt(norm);
    rule = nn_adamw_rule_make(&conf, step, (float)lr);
    if (c->grad_clip > 0 && norm > c->grad_clip)
        rule.clip = (float)(c->grad_clip / norm);
    rule.average = (float)(1.0 - fmin(c->ema, (1.0 + (double)step) / (10.0 + (double)step)));
    lamb = nn_lamb_rule_make(&conf, step, (float)lr);
    lamb.clip = rule.clip;
    lamb.average = rule.average;
    if (c->lamb)
        host_lamb(&all, &lamb);
    else
        nn_adamw_update(&all, 0, c->n, &rule);
    return norm;
}

static void arrays_fill(arrays *a, pl_rng *r)
{
    for (int i = 0; i < MAX; i++) {
        a->p[i] = a->ema[i] = (float)pl_rng_normal(r);
        a->m[i] = a->v[i] = 0;
    }
}

static void optimiser_check(const optimiser_case *c)
{
    static arrays a;
    pl_rng r = pl_rng_at(7, (uint64_t)c->n, 0);
    nn_gpu_optimise o;

    arrays_fill(&a, &r);
    memset(a.p, 0, (c->lamb ? (size_t)tensor_end[0] : 0) * sizeof *a.p);
    o = device_open(&a, c);
    for (int64_t step = 1; step <= STEPS; step++) {
        double lr = 0.01 / (double)step, norm;
        nn_gpu_step_result got;
        for (size_t i = 0; i < c->n; i++)
            a.g[i] = (float)(pl_rng_normal(&r) * (step % 2 ? 1 : 0.01));
        o.lr = (double)(float)lr;
        norm = host_step(&a, c, step, lr);
        for (size_t i = 0; i < c->n; i++)
            a.g[i] *= (float)c->scale;
        o.g = to_device(a.g, c->n);
        optimise(&o);
        ops->download(gpu, &got, o.result, sizeof got);
        near("norm", got.norm, norm, 1e-12);
        assert_int_equal(got.taken, 1);
        ops->free(gpu, (void *)o.g);
    }
    all_near("p", o.p, a.p, c->n);
    all_near("m", o.m, a.m, c->n);
    all_near("v", o.v, a.v, c->n);
    if (o.average != NULL)
        all_near("average", o.average, a.ema, c->n);
    device_close(&o);
}

static void optimisers_clipping_and_average_are_those_of_the_host(void **state)
{
    static const optimiser_case cases[] = {
        { 1, 0, 0, 0, false, 1 },       { 255, 1, 0.99, 0.1, false, 1 },      { 4096, 0, 0.9, 0, false, 65536 },
        { 4097, 20, 0, 0.1, false, 1 }, { MAX, 5, 0.999, 0.1, false, 65536 }, { MAX, 5, 0.999, 0.1, true, 512 },
        { MAX, 0, 0, 0, true, 1 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        optimiser_check(&cases[i]);
}

/* An infinity or NaN anywhere: nothing is changed, and the steps are counted without it. */
static void a_step_that_is_not_finite_changes_nothing(void **state)
{
    static const float bad[] = { INFINITY, NAN, 0 };
    static const optimiser_case c = { MAX, 1, 0.9, 0.1, true, 1 };
    static arrays a;
    pl_rng r = pl_rng_at(9, 0, 0);
    nn_gpu_optimise o;
    nn_gpu_lamb lamb;
    (void)state;

    arrays_fill(&a, &r);
    o = device_open(&a, &c);
    lamb = o.lamb;
    o.lr = 0.01;
    for (int i = 0; i < 6; i++) {
        nn_gpu_step_result result = { .loss = bad[i / 2] == 0 ? (double)NAN : 1 }, got;
        int64_t steps = -1;
        memset(a.g, 0, sizeof a.g);
        a.g[4999] = bad[i / 2];
        o.lamb = i % 2 ? lamb : (nn_gpu_lamb){ 0 };
        o.g = to_device(a.g, c.n);
        ops->upload(gpu, o.result, &result, sizeof result);
        optimise(&o);
        ops->download(gpu, &got, o.result, sizeof got);
        ops->download(gpu, &steps, o.step, sizeof steps);
        assert_int_equal(got.taken, 0);
        assert_int_equal(steps, 0);
        ops->free(gpu, (void *)o.g);
    }
    all_near("p", o.p, a.p, c.n);
    all_near("average", o.average, a.ema, c.n);
    all_near("v", o.v, a.v, c.n);
    o.lamb = lamb;
    device_close(&o);
}

/* Steps of which some are not finite, from every initial scale: down to 1, up to the maximum. */
static void the_scale_of_the_next_step_is_that_of_the_host(void **state)
{
    static const optimiser_case c = { .n = 1, .scale = 4 };
    static const int64_t after[] = { 3, 0 };
    static arrays a;
    nn_loss_scale want[] = { { 4, 0 }, { NN_LOSS_SCALE_MAX / 2, 2 } };
    float good = 0.25f, bad = INFINITY;
    nn_gpu_optimise o = device_open(&a, &c);
    pl_rng r = pl_rng_at(3, 0, 0);
    double min = 99, max = 0;
    (void)state;

    for (int i = 0; i < 160; i++) {
        nn_loss_scale *w = &want[i >= 80];
        bool taken = pl_rng_below(&r, i < 80 ? 2 : 9) > 0;
        nn_gpu_loss_scale begin = { w->by, w->good }; /* may be read until to_device */
        nn_gpu_step_result got;
        if (i % 80 == 0)
            ops->upload(gpu, o.scale, &begin, sizeof begin);
        o.scale_after = after[i % 40 == 39];
        o.g = to_device(taken ? &good : &bad, 1);
        optimise(&o);
        ops->download(gpu, &got, o.result, sizeof got);
        if (taken)
            near("norm", got.norm, 0.25 / w->by, 1e-15);
        *w = nn_loss_scale_next(*w, o.scale_after, taken);
        assert_int_equal(got.taken, taken);
        assert_true(got.scale.by == w->by && got.scale.good == w->good);
        min = fmin(min, w->by);
        max = fmax(max, w->by);
        ops->free(gpu, (void *)o.g);
    }
    assert_true(min == 1 && max == NN_LOSS_SCALE_MAX);
    device_close(&o);
}

/* ---- copies and graphs ---- */

/* y = x times 1, 2, 3 .. (op scale); shape: with another operation in between. */
static void graph_times(float *x, float *y, const float *times, int32_t n, bool shape)
{
    ops->graph_begin(gpu);
    if (shape)
        ops->zero(gpu, y, (size_t)n * sizeof *y);
    ops->scale(gpu, &(nn_gpu_scale){ .n_nodes = n, .size = 1, .times = times, .x = x, .y = y });
    ops->graph_run(gpu, 0);
}

static void graphs_run_again_with_other_arguments_and_shapes(void **state)
{
    static const float count[] = { 1, 2, 3, 4 };
    static const float x[] = { 5, 6, 7, 8 };
    float *dx = to_device(x, 4), *dy = room(16 * sizeof(float)), y[4];
    float *times = room(sizeof count);
    (void)state;

    ops->upload(gpu, times, count, sizeof count);
    for (int round = 0; round < 12; round++) {
        int32_t n = 1 + round % 4;
        float *to = dy + 4 * (round % 3);
        graph_times(dx, to, times, n, round % 5 > 2);
        ops->download(gpu, y, to, (size_t)n * sizeof *y);
        works(ops->status(gpu));
        for (int32_t i = 0; i < n; i++)
            assert_true(y[i] == x[i] * (float)(i + 1));
    }
    ops->free(gpu, dx);
    ops->free(gpu, dy);
    ops->free(gpu, times);
}

static void copies_beside_the_work_come_before_what_is_called_after_them(void **state)
{
    enum { N = 4 };
    float *host = ops->host_alloc(gpu, N * sizeof *host), *back = ops->host_alloc(gpu, N * sizeof *back);
    float *device[N], *sum = room(N * sizeof *sum);
    (void)state;

    assert_true(host && back);
    ops->zero(gpu, sum, N * sizeof *sum);
    for (int i = 0; i < N; i++) {
        device[i] = room(sizeof *sum);
        host[i] = (float)(i + 1);
        ops->upload_beside(gpu, device[i], &host[i], sizeof *host);
        ops->column_sum(gpu, &(nn_gpu_column_sum){ 1, 1, 1, device[i], sum });
        ops->download_later(gpu, &back[i], sum, sizeof *sum);
        ops->record(gpu, i);
    }
    for (int i = 0; i < N; i++) {
        works(ops->synchronize(gpu, i));
        assert_true(back[i] == (float)((i + 1) * (i + 2) / 2));
    }
    for (int i = 0; i < N; i++)
        ops->free(gpu, device[i]);
    ops->free(gpu, sum);
    ops->host_free(gpu, host);
    ops->host_free(gpu, back);
}

/* x times 1, 2, 3 .. in a stream, and from there to y in stream 0; n times with other arguments. */
static void streams_times(float *x, float *between, float *y, const float *times, int32_t n, int32_t stream)
{
    const nn_gpu_scale once = { .n_nodes = n, .size = 1, .times = times, .x = x, .y = between };
    const nn_gpu_scale twice = { .n_nodes = n, .size = 1, .times = times, .x = between, .y = y };

    ops->record(gpu, 0);
    ops->use_stream(gpu, stream);
    ops->wait_event(gpu, gpu, 0);
    ops->scale(gpu, &once);
    ops->record(gpu, 1);
    ops->use_stream(gpu, 0);
    ops->zero(gpu, y, (size_t)n * sizeof *y);
    ops->wait_event(gpu, gpu, 1);
    ops->scale(gpu, &twice);
}

static void streams_wait_for_events_with_and_without_graphs(void **state)
{
    static const float count[] = { 1, 2, 3, 4 };
    static const float x[] = { 5, 6, 7, 8 };
    float *dx = to_device(x, 4), *between = room(4 * sizeof(float)), *dy = room(4 * sizeof(float)), y[4];
    float *times = room(sizeof count);
    (void)state;

    ops->upload(gpu, times, count, sizeof count);
    for (int round = 0; round < 12; round++) {
        int32_t n = 1 + round % 4;
        bool captured = round > 3;
        if (captured)
            ops->graph_begin(gpu);
        streams_times(dx, between, dy, times, n, round % NN_GPU_STREAMS);
        if (captured)
            ops->graph_run(gpu, 0);
        ops->download(gpu, y, dy, (size_t)n * sizeof *y);
        works(ops->status(gpu));
        for (int32_t i = 0; i < n; i++)
            assert_true(y[i] == x[i] * (float)((i + 1) * (i + 1)));
    }
    ops->free(gpu, dx);
    ops->free(gpu, between);
    ops->free(gpu, dy);
    ops->free(gpu, times);
}

static int device_setup(void **state)
{
    (void)state;
    return gpu_open();
}

static int device_teardown(void **state)
{
    (void)state;
    ops->close(gpu);
    return 0;
}

static void a_write_beyond_a_buffer_is_reported(void **state)
{
    char *p = ops->alloc(gpu, 1024), byte = 1;
    (void)state;

    ops->fence(gpu, p + 256, true);
    assert_true(ops->intact(gpu, p + 256));
    ops->zero(gpu, p, 256);
    ops->zero(gpu, p + 256 + NN_GPU_FENCE, 64);
    assert_true(ops->intact(gpu, p + 256));
    ops->fence(gpu, p + 256, false);
    ops->fence(gpu, p + 512, true);
    ops->fence(gpu, p + 512, false);
    ops->upload(gpu, p + 512 + NN_GPU_FENCE - 1, &byte, 1);
    assert_false(ops->intact(gpu, p + 512));
    ops->fence(gpu, p + 512, false);
    ops->free(gpu, p);
}

/* An argument names the tests to run. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_their_gradients_are_those_of_the_host),
        cmocka_unit_test(column_sums_add_to_what_is_there),
        cmocka_unit_test(optimisers_clipping_and_average_are_those_of_the_host),
        cmocka_unit_test(a_step_that_is_not_finite_changes_nothing),
        cmocka_unit_test(the_scale_of_the_next_step_is_that_of_the_host),
        cmocka_unit_test(graphs_run_again_with_other_arguments_and_shapes),
        cmocka_unit_test(streams_wait_for_events_with_and_without_graphs),
        cmocka_unit_test(copies_beside_the_work_come_before_what_is_called_after_them),
        cmocka_unit_test(a_write_beyond_a_buffer_is_reported),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
