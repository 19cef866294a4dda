/* SPDX-License-Identifier: Apache-2.0
 * The loop with the real engines, on small made-up molecules: it learns, stops
 * and goes on with the same bits, for one and two threads, and ref and cpu agree. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/checkpoint.h"
#include "models/feature.h"
#include "models/train.h"
#include "pipeline/base/rng.h"

enum { TRAIN = 40, VALID = 8, ALL = TRAIN + VALID };

/* ---- every request for memory, or for a thread, of this program's own code (tests/train.cmake) ---- */

static atomic_long n_requests;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);

void *__wrap_malloc(size_t n)
{
    n_requests++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    n_requests++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    n_requests++;
    return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    n_requests++;
    return __real_aligned_alloc(align, n);
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
    n_requests++;
    return __real_pthread_create(t, a, f, arg);
}

/* ---- molecules ---- */

typedef struct bench {
    pl_arena *mem;
    ch_graph graph[ALL];
    int32_t edges[ALL];
    float target[ALL];
    nn_inputs inputs;
    nn_se3 *model;
    char dir[64];
    nn_train_conf conf;
} bench;

typedef struct part {
    const bench *b;
    nn_collate *collate[2];
    int64_t first;
} part;

/* Chains of 3 to 8 atoms; the target is their end-to-end distance. */
static void molecule_make(bench *b, int i)
{
    static const uint8_t elements[] = { 1, 6, 7, 8 };
    const ch_graph_opts opts = { .edges = CH_EDGES_BONDS };
    pl_rng r = pl_rng_at(11, (uint64_t)i, 0);
    int32_t n = 3 + (int32_t)pl_rng_below(&r, 6);
    pl_error err = { 0 };
    ch_mol m;

    assert_int_equal(ch_mol_alloc(&m, n, n - 1, b->mem, NULL), PL_OK);
    for (int32_t k = 0; k < n; k++) {
        m.z[k] = elements[pl_rng_below(&r, 4)];
        for (int c = 0; c < 3; c++)
            m.xyz[k][c] = (k ? m.xyz[k - 1][c] : 0.0f) + (c == 0 ? 1.0f : 0.6f * (float)pl_rng_normal(&r));
        if (k) {
            m.bond[k - 1][0] = k - 1;
            m.bond[k - 1][1] = k;
            m.order[k - 1] = (uint8_t)(1 + pl_rng_below(&r, 2));
        }
    }
    if (ch_graph_build(&b->graph[i], &m, &opts, b->mem, &err))
        fail_msg("%s", err.text);
    b->edges[i] = b->graph[i].n_edges;
    b->target[i] = (float)(0.3 * (hypot(hypot(m.xyz[n - 1][0], m.xyz[n - 1][1]), m.xyz[n - 1][2]) - 5.0));
}

static int bench_open(void **state)
{
    bench *b = calloc(1, sizeof *b);
    nn_se3_conf conf = { .layers = 2, .degrees = 3, .channels = 8, .heads = 2, .channels_div = 2, .norm = true,
                         .layer_norm = true, .pooling = NN_POOL_SUM, .fusion = NN_FUSE_FULL, .outputs = 1 };

    if (!b || !(b->mem = pl_arena_new(1 << 16)))
        return 1;
    for (int i = 0; i < ALL; i++)
        molecule_make(b, i);
    b->inputs = (nn_inputs){ .n_elements = 4, .element = { 1, 6, 7, 8 }, .z = true, .bonds = true };
    conf.node_features = nn_inputs_node_features(&b->inputs);
    conf.edge_features = nn_inputs_edge_features(&b->inputs);
    b->conf = (nn_train_conf){ .epochs = 4, .molecules = 16, .max_edges = 0, .lr = 0.003, .min_lr = 0.001,
                               .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01, .grad_clip = 5,
                               .ema = 0.9, .schedule = NN_LR_COSINE_EPOCH, .loss = NN_LOSS_L1, .seed = 3 };
    strcpy(b->dir, "/tmp/molsieve-engine-XXXXXX");
    if (nn_se3_plan(&b->model, &conf, b->mem, NULL) || !mkdtemp(b->dir))
        return 1;
    *state = b;
    return 0;
}

static int bench_close(void **state)
{
    static const char *const name[] = { "latest", "previous" };
    bench *b = *state;

    for (int k = 0; k < 2; k++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s.ckpt", b->dir, name[k]);
        (void)unlink(path);
    }
    (void)rmdir(b->dir);
    pl_arena_free(b->mem);
    free(b);
    return 0;
}

static pl_code part_batch(void *ctx, int slot, nn_batch *out, const int64_t *which, int32_t n, pl_error *err)
{
    part *p = ctx;
    nn_item item[ALL];
    nn_collated c;
    pl_code rc;

    for (int32_t i = 0; i < n; i++)
        item[i] = (nn_item){ .graph = &p->b->graph[p->first + which[i]] };
    rc = nn_collate_run(p->collate[slot], &c, item, n, &p->b->inputs, err);
    *out = c.batch;
    return rc;
}

typedef struct run {
    bench *b;
    nn_train_state s;
    int64_t polls, stop_at;
    long before, first, later; /* requests for memory: before a step, in steps of the first epoch, of others */
    int64_t steps_later;
    double last_valid, first_valid;
} run;

static bool run_stop(void *ctx)
{
    run *r = ctx;

    r->before = n_requests;
    return r->polls++ == r->stop_at;
}

/* Called after a step: nothing but the step lies between this and the poll of stop. */
static void run_step(void *ctx, const nn_train_state *s, int64_t n_train)
{
    run *r = ctx;

    (void)n_train;
    *(s->epoch ? &r->later : &r->first) += n_requests - r->before;
    r->steps_later += s->epoch > 0;
}

static pl_code run_save(void *ctx, const nn_train_state *s, pl_error *err)
{
    run *r = ctx;

    return nn_checkpoint_save(r->b->dir, "engine", s, true, err);
}

static pl_code run_epoch(void *ctx, const nn_epoch_report *report, pl_error *err)
{
    run *r = ctx;

    (void)err;
    r->last_valid = report->valid.abs / (double)report->valid.n;
    if (report->epoch == 1)
        r->first_valid = r->last_valid;
    return PL_OK;
}

static pl_code run_train(run *r, const nn_engine_kind *kind, int threads)
{
    bench *b = r->b;
    part train = { b, { nn_collate_new(), nn_collate_new() }, 0 };
    part valid = { b, { nn_collate_new(), nn_collate_new() }, TRAIN };
    nn_samples train_s = { &train, TRAIN, b->edges, b->target, part_batch, 1 };
    nn_samples valid_s = { &valid, VALID, b->edges + TRAIN, b->target + TRAIN, part_batch, 1 };
    nn_train_host host = { .ctx = r, .stop = run_stop, .save = run_save, .epoch = run_epoch, .step = run_step };
    nn_engine *engine = NULL;
    pl_error err = { 0 };
    pl_code rc = kind->open(&engine, b->model, &(nn_engine_conf){ .threads = threads }, &err);

    if (!rc)
        rc = nn_train(&r->s, &b->conf, kind, engine, &train_s, &valid_s, &host, &err);
    if (rc && rc != PL_ESTOP)
        fail_msg("%s", err.text);
    kind->close(engine);
    for (int i = 0; i < 2; i++) {
        nn_collate_free(train.collate[i]);
        nn_collate_free(valid.collate[i]);
    }
    return rc;
}

static run fresh(bench *b, int64_t stop_at)
{
    run r = { .b = b, .stop_at = stop_at };

    assert_int_equal(nn_train_state_alloc(&r.s, b->model, b->conf.ema > 0, b->conf.seed, b->mem, NULL), PL_OK);
    return r;
}

static void same_weights(const nn_train_state *x, const nn_train_state *y)
{
    assert_memory_equal(x->params, y->params, x->n * sizeof(float));
    assert_memory_equal(x->v, y->v, x->n * sizeof(float));
    assert_memory_equal(x->best, y->best, x->n * sizeof(float));
}

static void a_stopped_training_goes_on_with_the_same_bits_for_any_threads(void **state)
{
    bench *b = *state;
    run whole = fresh(b, -1);

    assert_int_equal(run_train(&whole, &nn_engine_cpu, 1), PL_OK);
    for (int64_t at = 1; at < 14; at += 3) {
        nn_checkpoint_from from;
        pl_error why;
        run first = fresh(b, at), second = fresh(b, -1);
        assert_int_equal(run_train(&first, &nn_engine_cpu, 2), PL_ESTOP);
        assert_int_equal(nn_checkpoint_load(b->dir, "engine", &second.s, &from, &why, NULL), PL_OK);
        assert_int_equal(run_train(&second, &nn_engine_cpu, 1 + (int)(at % 2)), PL_OK);
        same_weights(&second.s, &whole.s);
    }
}

static void a_step_asks_for_no_memory_once_it_has_seen_the_batches(void **state)
{
    run r = fresh(*state, -1);

    assert_int_equal(run_train(&r, &nn_engine_cpu, 2), PL_OK);
    assert_true(r.first > 0); /* the counter counts */
    assert_true(r.steps_later >= 9);
    assert_int_equal(r.later, 0);
}

static void the_distance_is_learned(void **state)
{
    bench *b = *state;
    run r;

    b->conf.epochs = 40;
    b->conf.ema = 0;
    r = fresh(b, -1);
    assert_int_equal(run_train(&r, &nn_engine_cpu, 1), PL_OK);
    if (!(r.s.best_mae < 0.5 * r.first_valid))
        fail_msg("valid MAE %g at first, %g at best", r.first_valid, r.s.best_mae);
}

/* Rounding grows with the steps: Adam's first steps depend on signs alone. */
static void ref_and_cpu_learn_alike(void **state)
{
    bench *b = *state;
    run x, y;

    b->conf.epochs = 1;
    b->conf.lr = b->conf.min_lr = 1e-5;
    b->conf.ema = 0;
    x = fresh(b, -1);
    y = fresh(b, -1);
    assert_int_equal(run_train(&x, &nn_engine_cpu, 2), PL_OK);
    assert_int_equal(run_train(&y, &nn_engine_ref, 1), PL_OK);
    if (!(fabs(x.s.best_mae - y.s.best_mae) <= 1e-5 * y.s.best_mae + 1e-7))
        fail_msg("valid MAE %.9g by cpu, %.9g by ref", x.s.best_mae, y.s.best_mae);
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(a_stopped_training_goes_on_with_the_same_bits_for_any_threads),
        WITH_BENCH(a_step_asks_for_no_memory_once_it_has_seen_the_batches),
        WITH_BENCH(the_distance_is_learned),
        WITH_BENCH(ref_and_cpu_learn_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
