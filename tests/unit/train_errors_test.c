/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop. An error of the engine, of the batches or of the host, at any call, is the error of the training, and nothing
 * is done after it. An engine with whole steps gives the training of one without, stopped anywhere. Linked with
 * -Wl,--wrap=pl_arena_get. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "models/optim/adam.h"
#include "models/training/train_parts.h"
#include "pipeline/base/log.h"
#include "tests/unit/guarded.h"
#include "tests/unit/held.h"
#include "tests/unit/toy_training.h"

static bool guards; /* arrays of arenas have nothing behind them */
void *__real_pl_arena_get(pl_arena *mem, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size);

void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size)
{
    return guards ? guarded(n, size) : __real_pl_arena_get(mem, n, size);
}

static void vectors(nn_engine *e, float (*v)[3])
{
    (void)e, (void)v;
    fail_msg("asked for vectors");
}

/* It could predict noise. */
static const nn_engine_kind with_vectors = { .name = "plain", .set_params = set_params, .vectors = vectors, .close = engine_close };

/* ---- the same engine with whole steps ---- */

static pl_code steps_begin(nn_engine *e, const nn_training *t, const nn_adamw_arrays *from, int64_t steps, pl_error *err)
{
    e->training = *t;
    e->p = e->w = from->p[0];
    e->m = from->m[0];
    e->v = from->v[0];
    e->ema = from->ema != NULL ? from->ema[0] : 0;
    e->steps = steps;
    return count(&e->calls, "call", err);
}

static void step_end(nn_engine *e, const nn_training_step *s)
{
    const double norm = fabs((double)e->grad), clip = e->training.grad_clip;
    nn_adamw_rule r = nn_adamw_rule_make(&e->training.adam, ++e->steps, s->lr);

    r.clip = clip > 0 && norm > clip ? (float)(clip / norm) : 1;
    r.average = (float)(1.0 - fmin(e->training.ema, (1.0 + (double)e->steps) / (10.0 + (double)e->steps)));
    nn_adamw_update(
        &(nn_adamw_arrays){ .p = &e->p, .m = &e->m, .v = &e->v, .ema = e->training.ema > 0 ? &e->ema : NULL, .g = &e->grad }, 0, 1,
        &r);
    e->w = e->p;
    e->sum.n_graphs = s->n_graphs;
    e->sum.taken = true;
    e->sum.scale = e->training.scale;
    e->queue[e->n_queue++] = e->sum;
    e->sum = (nn_training_result){ 0 };
    e->grad = 0;
}

static pl_code steps_step(nn_engine *e, const nn_batch *in, const nn_training_step *s, pl_error *err)
{
    float y[TRAIN], dy[TRAIN];

    if (e->n_queue == DEPTH)
        return pl_fail(err, PL_EBUG, "too many steps in flight");
    for (int32_t g = 0; in != NULL && g < in->n_graphs; g++)
        y[g] = e->w * in->node[g];
    if (in != NULL) {
        nn_loss_sum one = nn_loss_backward(e->training.loss, y, s->target, s->high, in->n_graphs, s->measured, dy);
        nn_loss_add(&e->sum.loss, &one);
        for (int32_t g = 0; g < in->n_graphs; g++)
            e->grad += dy[g] * in->node[g];
    }
    if (s->shard + 1 == (e->training.shards > 0 ? e->training.shards : 1))
        step_end(e, s);
    return count(&e->calls, "call", err);
}

static pl_code steps_result(nn_engine *e, nn_training_result *out, pl_error *err)
{
    if (e->n_queue == 0)
        return pl_fail(err, PL_EBUG, "no step in flight");
    *out = e->queue[0];
    memmove(e->queue, e->queue + 1, (size_t)--e->n_queue * sizeof *e->queue);
    return count(&e->calls, "call", err);
}

static pl_code steps_fetch(nn_engine *e, const nn_adamw_arrays *to, pl_error *err)
{
    if (e->n_queue > 0)
        return pl_fail(err, PL_EBUG, "a step is in flight");
    if (to->p != NULL)
        to->p[0] = e->p;
    if (to->m != NULL)
        to->m[0] = e->m;
    if (to->v != NULL)
        to->v[0] = e->v;
    if (to->ema != NULL)
        to->ema[0] = e->ema;
    return count(&e->calls, "call", err);
}

static const nn_engine_training whole_steps = {
    .depth = DEPTH, .begin = steps_begin, .step = steps_step, .result = steps_result, .fetch = steps_fetch
};
static const nn_engine_kind whole = { .name = "whole",
                                      .set_params = set_params,
                                      .forward = forward,
                                      .backward = backward,
                                      .close = engine_close,
                                      .training = &whole_steps };

static nn_engine *beside(void *ctx, pl_error *err)
{
    (void)ctx;
    if (b.second_fails == -2) {
        (void)pl_fail(err, PL_EDEVICE, "no room for a second engine");
        return NULL;
    }
    b.n_opened++;
    b.second = (nn_engine){ .calls.fails_at = b.second_fails };
    return &b.second;
}

/* ---- errors ---- */

/* Each call of `of` fails in turn. The loop makes no further one. */
static int each_fails(calls *of, const char *who)
{
    for (int at = 0; at < 1000; at++) {
        pl_error err = { 0 };
        char want[32];
        pl_code code;
        begin();
        of->fails_at = at;
        code = train(&err);
        if (of->n <= at) {
            assert_int_equal(code, PL_OK);
            return at;
        }
        (void)snprintf(want, sizeof want, "%s %d", who, at);
        refused(code, PL_EDEVICE, &err, want);
        assert_int_equal(of->n, at + 1);
        assert_false(b.s.done && of != &b.calls && b.host.beside == NULL); /* the end may be what cannot be saved */
    }
    return 0;
}

static void an_error_of_the_engine_ends_it_at_any_call(void **state)
{
    (void)state;
    assert_true(each_fails(&b.engine.calls, "call") > 4 * 6); /* forward, backward, set; validation */
    b.kind = &whole;
    assert_true(each_fails(&b.engine.calls, "call") > 4 * 3);
    b.host.beside = beside;
    assert_true(each_fails(&b.engine.calls, "call") > 4 * 3);
}

static void an_error_of_the_host_ends_it_at_any_call(void **state)
{
    int without;

    (void)state;
    without = each_fails(&b.calls, "host");
    assert_true(without > 2 * EPOCHS);
    b.kind = &whole;
    assert_true(each_fails(&b.calls, "host") > 2 * EPOCHS);
    b.kind = &plain;
    b.conf.budget = 100;
    assert_true(each_fails(&b.calls, "host") > without);
}

/* The state is in the file, and no error of the host is lost, before it says that it stopped. */
static void a_stop_waits_for_what_it_saves(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++)
        for (int after = 0; after < 3; after++) { /* steps */
            pl_code code = PL_OK;
            b.kind = with ? &whole : &plain;
            for (int at = -1; code != PL_ESTOP || at == 0; at++) {
                pl_error err = { 0 };
                char want[32];
                begin();
                b.stop_after = after;
                b.n_polls = 0;
                b.calls.fails_at = at;
                last = "";
                code = train(&err);
                (void)snprintf(want, sizeof want, "host %d", at);
                if (at >= 0 && b.calls.n > at)
                    refused(code, PL_EDEVICE, &err, want);
                else
                    refused(code, PL_ESTOP, &err, "stopped in epoch ");
                assert_true(code != PL_ESTOP || strcmp(last, "saved") == 0);
            }
        }
}

static void a_molecule_without_batch_ends_it(void **state)
{
    (void)state;
    for (b.bad = 0; b.bad < ALL; b.bad++) {
        pl_error err = { 0 };
        char want[32];
        begin();
        (void)snprintf(want, sizeof want, "molecule %d", (int)b.bad);
        refused(train(&err), PL_EINPUT, &err, want);
        assert_true(b.n_reports == 0 && b.s.step <= (b.bad < TRAIN ? 2 : 3));
    }
}

static void what_cannot_be_trained_is_refused_before_it_begins(void **state)
{
    nn_ranks ranks = { .kind = &nn_collective_none, .size = 3, .rank = 2 };
    pl_error err = { 0 };

    (void)state;
    refused(train_on(&plain, 0, &err), PL_ECONFIG, &err, "no molecule to train on");
    b.host.ranks = &ranks;
    b.conf.shards = 2;
    refused(train(&err), PL_ECONFIG, &err, "3 ranks, but only 2 shards of a batch; raise batch.shards or start fewer ranks");
    b.host.ranks = NULL;
    b.conf.noise.weight = 1;
    refused(train(&err), PL_ECONFIG, &err, "engine plain cannot predict noise (train.noise) yet; use engine cpu or ref");
    refused(train_on(&with_vectors, TRAIN, &err), PL_EBUG, &err, "training with noise of a network that has no head for it");
    assert_true(b.engine.calls.n == 0 && b.calls.n == 0);
}

/* Each request for memory in turn; then none. */
static void refused_memory_ends_it(void **state)
{
    (void)state;
    for (int with = 0; with < 3; with++) {
        pl_code code = PL_ENOMEM;
        long n = 0;
        b.kind = with > 0 ? &whole : &plain;
        b.host.beside = with == 2 ? beside : NULL;
        while (code == PL_ENOMEM) {
            pl_error err = { 0 };
            begin();
            pl_arena_refuse(++n);
            code = train(&err);
            if (code == PL_OK)
                assert_null(pl_arena_get(b.mem, 1, 1)); /* none was refused so far */
            pl_arena_refuse(0);
            assert_int_equal(err.text[0] != '\0', code != PL_OK);
        }
        assert_int_equal(code, PL_OK);
        assert_true(n > 8);
    }
}

static void memory_is_used_to_its_end_and_no_further(void **state)
{
    (void)state;
    for (int with = 0; with < 6; with++) {
        b.kind = with % 3 > 0 ? &whole : &plain;
        b.host.beside = with % 3 == 2 ? beside : NULL;
        b.conf.molecules = with < 3 ? 5 : 0; /* of a batch; 0: as many as there are */
        b.conf.shards = with < 3 ? 1 : 2;
        guards = true;
        begin();
        assert_int_equal(train(NULL), PL_OK);
        guards = false;
    }
}

/* ---- whole steps: in the engine, several in flight ---- */

/* What a training ended with. */
typedef struct ended {
    nn_train_state s;
    float number[5];
    nn_epoch_report report[64];
    int n_reports, n_steps;
} ended;

static ended end_of(void)
{
    ended e = { .s = b.s, .number = { b.s.params[0], b.s.m[0], b.s.v[0], b.s.best[0], b.s.ema != NULL ? b.s.ema[0] : 0 } };

    memcpy(e.report, b.report, sizeof e.report);
    e.n_reports = b.n_reports;
    e.n_steps = b.n_steps;
    return e;
}

static void same(const ended *x, const ended *y)
{
    assert_true(x->number[3] == y->number[3]);
    if (b.conf.patience == 0) /* else steps of a further epoch may be in the arrays, which nobody reads */
        assert_true(x->n_steps == y->n_steps && memcmp(x->number, y->number, sizeof x->number) == 0);
    assert_true(x->s.step == y->s.step && x->s.epoch == y->s.epoch && x->s.best_epoch == y->s.best_epoch);
    assert_true(x->s.best_error == y->s.best_error && x->s.done && y->s.done);
    assert_int_equal(x->n_reports, y->n_reports);
    for (int i = 0; i < x->n_reports; i++) {
        const nn_epoch_report *p = &x->report[i], *q = &y->report[i];
        assert_true(p->epoch == q->epoch && p->step == q->step && p->best == q->best && p->lr == q->lr);
        assert_true(p->train.loss == q->train.loss && p->train.n == q->train.n && p->valid.abs == q->valid.abs);
    }
}

static ended trained(const nn_engine_kind *kind)
{
    pl_error err = { 0 };

    b.kind = kind;
    begin();
    if (train(&err) != PL_OK)
        fail_msg("%s", err.text);
    return end_of();
}

static void settings(int i)
{
    b.conf.epochs = 5;
    b.conf.schedule = i % 2 ? NN_LR_COSINE_STEP : NN_LR_COSINE_EPOCH;
    b.conf.warmup = 0.5;
    b.conf.grad_clip = i % 3 ? 0.05 : 0;
    b.conf.ema = i < 4 ? 0.5 : 0;
    b.conf.weight_decay = 0.01;
    b.conf.patience = i == 3 ? 2 : 0;
    b.conf.lr = i == 3 ? 1.5 : 0.05;
    b.conf.molecules = i == 2 ? TRAIN : 5;
}

static void whole_steps_give_the_training_of_single_ones(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        settings(i);
        b.host.beside = NULL;
        const ended one = trained(&plain), all = trained(&whole);
        same(&one, &all);
        assert_int_equal(one.n_steps, one.s.step);
        b.host.beside = beside; /* validations beside the steps of the next epoch */
        const ended two = trained(&whole);
        same(&one, &two);
        assert_true(b.second.calls.n > 0);
    }
}

/* w as the sum of two parameters that are beside each other, in the first and the last piece, and on both sides of a border. The
 * others stay as they are. */
static void parameters_in_any_piece_are_learned_alike(void **state)
{
    static const size_t places[][3] = { { 2, 0, 1 },
                                        { 2 * NN_LOOP_PIECE + 5, 0, 2 * NN_LOOP_PIECE + 4 },
                                        { 2 * NN_LOOP_PIECE, NN_LOOP_PIECE - 1, NN_LOOP_PIECE } };
    float first = 0;

    (void)state;
    settings(1);
    b.n_places = 2;
    for (int i = 0; i < 3; i++) {
        size_t others = 0;
        b.n = places[i][0];
        memcpy(b.place, places[i] + 1, sizeof b.place);
        guards = true;
        (void)trained(&plain);
        guards = false;
        first = i == 0 ? b.s.params[0] : first;
        assert_true(first != 0.125f && b.s.params[b.place[0]] == first && b.s.params[b.place[1]] == first);
        for (size_t k = 0; k < b.n; k++)
            others += b.s.params[k] != 0;
        assert_int_equal(others, 2);
    }
}

/* Stopped before any step and in any validation, then continued with another engine. */
static void stopped_anywhere_whole_steps_end_alike(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++)
        for (int i = 0; i < 4; i += 3) {
            int n = 0;
            settings(i);
            b.host.beside = with ? beside : NULL;
            b.stop_after = -1;
            const ended want = trained(&whole);
            for (bool stopped = true; stopped; n++) {
                pl_code code;
                b.kind = &whole;
                b.stop_after = n;
                b.n_polls = 0;
                begin();
                code = train(NULL);
                stopped = code == PL_ESTOP;
                b.stop_after = -1;
                if (stopped) {
                    const int reports = b.n_reports;
                    b.engine = (nn_engine){ .calls.fails_at = -1 };
                    b.n_reports = (int)b.s.epoch < reports ? (int)b.s.epoch : reports; /* an epoch may be told again */
                    code = train(NULL);
                }
                assert_int_equal(code, PL_OK);
                const ended got = end_of();
                same(&want, &got);
            }
            assert_true(n > 5);
        }
}

static char logged[300]; /* the last line */

static void keep_line(void *ctx, pl_level level, const char *line)
{
    (void)ctx;
    assert_int_equal(level, PL_WARN);
    (void)snprintf(logged, sizeof logged, "%s", line);
}

/* In the first validation it falls back to the engine that trains, and says so; later it ends the training. */
static void an_error_of_the_second_engine_is_not_lost(void **state)
{
    const char *between = "train     held-out molecules are measured between epochs: ";
    int n_fallen = 0, n_ended = 0;
    bool fails = true; /* the engine had the call that fails */

    (void)state;
    settings(0);
    b.host.beside = NULL;
    const ended want = trained(&whole);
    b.host.beside = beside;
    pl_log_to(keep_line, NULL, PL_WARN);
    for (b.second_fails = -2; fails; b.second_fails++) {
        pl_error err = { 0 };
        char why[300];
        pl_code code;
        logged[0] = '\0';
        b.n_opened = b.n_closed = 0;
        begin();
        code = train(&err);
        assert_int_equal(b.n_opened, b.n_closed);
        fails = b.second_fails < 0 || b.second.calls.n > b.second_fails;
        (void)snprintf(why, sizeof why, "call %d", (int)b.second_fails);
        if (code != PL_OK) {
            refused(code, PL_EDEVICE, &err, why);
            n_ended++;
            continue;
        }
        if (b.second_fails != -1 && fails) {
            const ended got = end_of();
            same(&want, &got);
            assert_memory_equal(logged, between, strlen(between));
            assert_string_equal(logged + strlen(between), b.second_fails == -2 ? "no room for a second engine" : why);
            n_fallen++;
        } else {
            assert_string_equal(logged, "");
        }
    }
    pl_log_to(NULL, NULL, PL_INFO);
    assert_true(n_fallen >= 3 && n_ended >= 8);
}

static void train_once(void *ctx)
{
    (void)ctx;
    begin();
    (void)train(NULL);
    pl_arena_free(b.mem);
    b.mem = pl_arena_new(1 << 12);
}

/* Whether it ends well or not. */
static void a_training_holds_nothing(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        b.kind = k % 2 ? &whole : &plain;
        b.host.beside = k == 3 ? beside : NULL;
        b.bad = k == 2 ? 3 : -1;
        assert_holds_nothing(train_once, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(an_error_of_the_engine_ends_it_at_any_call),
        OF(an_error_of_the_host_ends_it_at_any_call),
        OF(a_molecule_without_batch_ends_it),
        OF(what_cannot_be_trained_is_refused_before_it_begins),
        OF(refused_memory_ends_it),
        OF(whole_steps_give_the_training_of_single_ones),
        OF(an_error_of_the_second_engine_is_not_lost),
        OF(a_training_holds_nothing),
        OF(stopped_anywhere_whole_steps_end_alike),
        OF(a_stop_waits_for_what_it_saves),
        OF(memory_is_used_to_its_end_and_no_further),
        OF(parameters_in_any_piece_are_learned_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
