/* SPDX-License-Identifier: Apache-2.0
 * Training steps in flight, with an engine that computes nothing: its results say which step they belong to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "models/training/steps.h"

enum { DEPTH = 3, NEVER = -1 };

struct nn_engine {
    nn_training training;
    int32_t graphs[8]; /* molecules of each step that was begun */
    int begun, read, shards, fetched, fails_at;
    int64_t steps;
    bool skips;
    float ema;
    const float *p; /* where the parameters were last copied to */
};

static pl_code begin(nn_engine *e, const nn_training *t, const nn_adamw_arrays *from, int64_t steps, pl_error *err)
{
    e->training = *t;
    e->steps = steps;
    e->ema = from->ema[0];
    return e->fails_at == 0 ? pl_fail(err, PL_ENOMEM, "no room") : PL_OK;
}

static pl_code step(nn_engine *e, const nn_batch *in, const nn_training_step *s, pl_error *err)
{
    (void)in;
    if (e->begun - e->read >= DEPTH)
        return pl_fail(err, PL_EBUG, "too many steps in flight");
    e->shards++;
    if (s->shard + 1 == 2)
        e->graphs[e->begun++] = s->n_graphs;
    return PL_OK;
}

static pl_code result(nn_engine *e, nn_training_result *out, pl_error *err)
{
    if (e->read >= e->begun)
        return pl_fail(err, PL_EBUG, "no step in flight");
    *out = (nn_training_result){ .loss = { .loss = 1 << e->read, .n = 1 },
                                 .n_graphs = e->graphs[e->read],
                                 .taken = !e->skips,
                                 .scale = { .by = 1, .good = e->read + 1 } };
    return ++e->read == e->fails_at ? pl_fail(err, PL_EDEVICE, "step %d is lost", e->read) : PL_OK;
}

static pl_code fetch(nn_engine *e, const nn_adamw_arrays *to, pl_error *err)
{
    if (e->read != e->begun)
        return pl_fail(err, PL_EBUG, "a step is in flight");
    e->p = to->p;
    to->ema[0] = (float)++e->fetched;
    return PL_OK;
}

static const nn_engine_training training = { .depth = DEPTH, .begin = begin, .step = step, .result = result, .fetch = fetch };
static const nn_engine_kind kind = { .name = "counts", .training = &training };

typedef struct queue {
    nn_steps *q;
    nn_engine engine;
    nn_train_state s;
    nn_train_conf conf;
    float p[1], m[1], v[1], ema[1];
    int told;
} queue;

static queue a; /* of the test that runs */

static void tell(void *ctx, const nn_train_state *s, int64_t n_train)
{
    queue *x = ctx;

    assert_ptr_equal(s, &x->s);
    assert_int_equal(n_train, 100);
    assert_int_equal(s->cursor, 20 + x->engine.graphs[0] * x->engine.read); /* steps of one size */
    x->told++;
}

static pl_code make(int fails_at, pl_error *err)
{
    static const nn_train_host host = { .ctx = &a, .step = tell };

    a = (queue){ .engine = { .fails_at = fails_at },
                 .s = { .n = 1, .params = a.p, .m = a.m, .v = a.v, .ema = a.ema, .step = 7, .cursor = 20, .scale = { .by = 1 } },
                 .conf = { .grad_clip = 3, .ema = 0.5, .scale_after = 9, .sharded = true },
                 .ema = { 44 } };
    const nn_steps_of of = { &a.s, &a.conf, &kind, &a.engine, &host, 100, NULL, 4, 2 };
    return nn_steps_new(&a.q, &of, err);
}

/* A step of two shards. */
static pl_code add(int32_t n_graphs, pl_error *err)
{
    nn_training_step x = { .n_graphs = n_graphs, .measured = n_graphs };
    pl_code code = nn_steps_add(a.q, NULL, &x, err);

    x.shard = 1;
    return code == PL_OK ? nn_steps_add(a.q, NULL, &x, err) : code;
}

static void steps_are_counted_when_their_results_arrive(void **state)
{
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(make(NEVER, &err), PL_OK);
    assert_true(a.engine.steps == 7 && a.engine.ema == 44 && a.engine.training.shards == 4 && a.engine.training.sharded);
    assert_true(a.engine.training.grad_clip == 3 && a.engine.training.ema == 0.5 && a.engine.training.scale_after == 9);
    assert_int_equal(a.q->cursor, 20);
    for (int i = 0; i < 5; i++)
        assert_int_equal(add(2, &err), PL_OK);
    assert_true(a.engine.begun == 5 && a.engine.read == 2 && a.engine.shards == 10 && a.q->in_flight == DEPTH);
    assert_true(a.s.step == 9 && a.s.cursor == 20 + 4 && a.q->cursor == 20 + 10 && a.s.seen.loss == 1 + 2);
    assert_int_equal(a.told, 2);
    assert_int_equal(nn_steps_settle(a.q, &err), PL_OK);
    assert_true(a.s.step == 12 && a.s.cursor == a.q->cursor && a.s.seen.loss == 31 && a.s.seen.n == 5 && a.s.scale.good == 5);
    assert_true(a.engine.fetched == 1 && a.engine.p == a.p && a.ema[0] == 1 && a.q->in_flight == 0);
    assert_int_equal(nn_steps_settle(a.q, &err), PL_OK); /* nothing new: nothing is copied */
    assert_int_equal(nn_steps_weights(a.q, true, &err), PL_OK);
    assert_int_equal(a.engine.fetched, 1);
    nn_steps_free(a.q);
    nn_steps_free(NULL);
}

static void weights_are_copied_and_more_steps_follow(void **state)
{
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(make(NEVER, &err), PL_OK);
    assert_int_equal(add(4, &err), PL_OK);
    assert_int_equal(nn_steps_weights(a.q, false, &err), PL_OK);
    assert_true(a.engine.fetched == 1 && a.engine.p == NULL && a.s.step == 8);
    assert_int_equal(nn_steps_weights(a.q, true, &err), PL_OK); /* the moments are still those of before */
    assert_true(a.engine.fetched == 2 && a.engine.p == a.p);
    assert_int_equal(add(4, &err), PL_OK);
    assert_int_equal(nn_steps_settle(a.q, &err), PL_OK);
    assert_true(a.engine.fetched == 3 && a.s.step == 9);
    nn_steps_free(a.q);
}

static void steps_that_are_dropped_leave_the_state_as_it_was(void **state)
{
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(make(NEVER, &err), PL_OK);
    for (int i = 0; i < DEPTH; i++)
        assert_int_equal(add(5, &err), PL_OK);
    assert_int_equal(nn_steps_drop(a.q, &err), PL_OK);
    assert_true(a.engine.read == DEPTH && a.q->in_flight == 0 && a.q->cursor == 20 && a.told == 0);
    assert_true(a.s.step == 7 && a.s.cursor == 20 && a.s.seen.n == 0);
    nn_steps_free(a.q);
}

static void a_step_that_fails_ends_the_queue_with_its_error(void **state)
{
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(make(2, &err), PL_OK);
    for (int i = 0; i < DEPTH; i++)
        assert_int_equal(add(1, &err), PL_OK);
    assert_int_equal(nn_steps_settle(a.q, &err), PL_EDEVICE);
    assert_string_equal(err.text, "step 2 is lost");
    assert_true(a.s.step == 8 && a.engine.read == 2 && a.engine.fetched == 0 && a.told == 1);
    nn_steps_free(a.q);
    assert_int_equal(make(1, &err), PL_OK);
    for (int i = 0; i < DEPTH; i++)
        assert_int_equal(add(1, &err), PL_OK);
    assert_int_equal(add(1, &err), PL_EDEVICE);
    assert_true(a.engine.shards == 2 * DEPTH && a.q->cursor == 20 + DEPTH);
    nn_steps_free(a.q);
    assert_int_equal(make(1, &err), PL_OK);
    assert_int_equal(add(1, &err), PL_OK);
    assert_int_equal(add(1, &err), PL_OK);
    assert_int_equal(nn_steps_weights(a.q, true, &err), PL_EDEVICE);
    assert_int_equal(a.engine.fetched, 0);
    nn_steps_free(a.q);
    assert_int_equal(make(0, &err), PL_ENOMEM);
    assert_null(a.q);
}

static void steps_without_numbers_end_the_training(void **state)
{
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(make(NEVER, &err), PL_OK);
    a.engine.skips = true;
    a.s.bad_run = NN_BAD_STEPS_MAX - 2;
    a.s.epoch = 4;
    assert_int_equal(add(6, &err), PL_OK);
    assert_int_equal(nn_steps_settle(a.q, &err), PL_OK);
    assert_true(a.s.step == 7 && a.s.cursor == 26 && a.s.seen.n == 0 && a.s.bad_total == 1 && a.told == 1);
    assert_int_equal(add(6, &err), PL_OK);
    assert_int_equal(nn_steps_settle(a.q, &err), PL_ELIMIT);
    assert_string_equal(err.text, "loss or gradient not finite in 10 steps in a row (epoch 5, step 7): try a smaller lr");
    assert_true(a.s.bad_total == 2 && a.told == 1);
    a.engine.skips = false;
    assert_int_equal(add(6, &err), PL_OK);
    assert_int_equal(nn_steps_settle(a.q, &err), PL_OK);
    assert_true(a.s.bad_run == 0 && a.s.bad_total == 2 && a.s.step == 8);
    nn_steps_free(a.q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_counted_when_their_results_arrive),
        cmocka_unit_test(weights_are_copied_and_more_steps_follow),
        cmocka_unit_test(steps_that_are_dropped_leave_the_state_as_it_was),
        cmocka_unit_test(a_step_that_fails_ends_the_queue_with_its_error),
        cmocka_unit_test(steps_without_numbers_end_the_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
