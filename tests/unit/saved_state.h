/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/saved_state.h - a folder for checkpoints, and a state of a training with numbers in all that it has. Include it once, after
 * cmocka.h. */
#ifndef TESTS_SAVED_STATE_H
#define TESTS_SAVED_STATE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/training/checkpoint.h"
#include "pipeline/base/rng.h"

enum { N = 37 };

typedef struct bench {
    pl_arena *mem;
    nn_train_state s;
    char dir[64], latest[96], previous[96];
} bench;

static inline void state_make(nn_train_state *s, pl_arena *mem, bool ema, uint64_t seed)
{
    static nn_se3 plan;
    pl_rng r = pl_rng_at(seed, 0, 0);

    plan = (nn_se3){ .n_floats = N, .conf.outputs = 1, .head = { -1, -1, -1, -1 } };
    assert_int_equal(nn_train_state_alloc(s, &plan, ema, 1, mem, NULL), PL_OK);
    for (int i = 0; i < N; i++) {
        s->params[i] = (float)pl_rng_normal(&r);
        s->m[i] = (float)pl_rng_normal(&r);
        s->v[i] = (float)pl_rng_normal(&r);
        s->best[i] = (float)pl_rng_normal(&r);
        if (ema)
            s->ema[i] = (float)pl_rng_normal(&r);
    }
    s->step = 100 + (int64_t)seed;
    s->epoch = 3 + (int64_t)seed;
    s->cursor = 17 + (int64_t)seed;
    s->best_epoch = 2 + (int64_t)seed;
    s->best_error = 0.1 + (double)seed;
    s->bad_run = 1 + (int64_t)seed;
    s->bad_total = 4 + (int64_t)seed;
    s->done = seed % 2 == 0;
    s->seen = (nn_loss_sum){ 1.5 + (double)seed, 2.5 + (double)seed, 3.5 + (double)seed, 9 + (int64_t)seed };
    s->scale = (nn_loss_scale){ 4096, 77 + (int64_t)seed };
    s->seconds = 12.5 + (double)seed;
    s->planned = 30 + (int64_t)seed;
    s->noise = (nn_noise_sum){ 4.5 + (double)seed, 3 * (int64_t)seed };
}

static inline int bench_open(void **state)
{
    bench *b = calloc(1, sizeof *b);

    if (b == NULL || (b->mem = pl_arena_new(0)) == NULL)
        return 1;
    strcpy(b->dir, "/tmp/molsieve-ckpt-XXXXXX");
    if (mkdtemp(b->dir) == NULL)
        return 1;
    snprintf(b->latest, sizeof b->latest, "%s/latest.ckpt", b->dir);
    snprintf(b->previous, sizeof b->previous, "%s/previous.ckpt", b->dir);
    state_make(&b->s, b->mem, true, 1);
    *state = b;
    return 0;
}

static inline int bench_close(void **state)
{
    bench *b = *state;

    (void)unlink(b->latest);
    (void)unlink(b->previous);
    if (rmdir(b->dir) != 0) /* nothing else is left there */
        return 1;
    pl_arena_free(b->mem);
    free(b);
    return 0;
}

static inline void same(const nn_train_state *a, const nn_train_state *b)
{
    assert_memory_equal(a->params, b->params, N * sizeof(float));
    assert_memory_equal(a->m, b->m, N * sizeof(float));
    assert_memory_equal(a->v, b->v, N * sizeof(float));
    assert_memory_equal(a->best, b->best, N * sizeof(float));
    if (a->ema != NULL)
        assert_memory_equal(a->ema, b->ema, N * sizeof(float));
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->cursor, b->cursor);
    assert_int_equal(a->best_epoch, b->best_epoch);
    assert_int_equal(a->done, b->done);
    assert_int_equal(a->bad_run, b->bad_run);
    assert_int_equal(a->bad_total, b->bad_total);
    assert_memory_equal(&a->best_error, &b->best_error, sizeof a->best_error);
    assert_memory_equal(&a->seen, &b->seen, sizeof a->seen);
    assert_true(a->scale.by == b->scale.by && a->scale.good == b->scale.good);
    assert_int_equal(a->done, b->done);
    assert_true(a->seconds == b->seconds && a->planned == b->planned);
    assert_true(a->noise.square == b->noise.square && a->noise.n == b->noise.n);
}

static inline pl_code load(bench *b, nn_train_state *s, nn_checkpoint_from *from, pl_error *why, pl_error *err)
{
    state_make(s, b->mem, true, 999);
    return nn_checkpoint_load(b->dir, "this", s, from, why, err);
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

#endif
