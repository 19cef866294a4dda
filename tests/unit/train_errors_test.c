/* SPDX-License-Identifier: Apache-2.0
 * The training loop. An error of the engine, of the batches or of the host, at any call, is the error of the training, and nothing
 * is done after it. An engine with whole steps gives the training of one without, stopped anywhere. Which epoch is the best, also
 * without numbers. The network is y = w x. Linked with -Wl,--wrap=pl_arena_get. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/optim/adam.h"
#include "models/training/train.h"
#include "models/training/train_parts.h"
#include "pipeline/base/log.h"
#include "tests/unit/guarded.h"
#include "tests/unit/held.h"

static bool guards; /* arrays of arenas have nothing behind them */
void *__real_pl_arena_get(pl_arena *mem, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size);

void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size)
{
    return guards ? guarded(n, size) : __real_pl_arena_get(mem, n, size);
}

enum { TRAIN = 12, VALID = 5, ALL = TRAIN + VALID, EPOCHS = 2 };

typedef struct calls {
    int64_t n, fails_at; /* fails_at < 0: none fails */
} calls;

enum { DEPTH = 2 }; /* whole steps in flight */

struct nn_engine {
    float w;
    calls calls;
    /* of whole steps */
    nn_training training;
    float p, m, v, ema, grad;
    int64_t steps;
    nn_training_result sum, queue[DEPTH];
    int n_queue;
};

typedef struct bench {
    nn_engine engine;
    nn_train_conf conf;
    nn_train_state s;
    nn_train_host host;
    calls calls; /* of the host */
    float x[ALL], target[ALL], given[2][ALL];
    int32_t edges[ALL];
    const nn_engine_kind *kind;
    nn_engine second;            /* for validations beside the steps */
    int64_t second_fails;        /* its call; -1: none, -2: there is no room for it */
    int n_opened, n_closed;      /* second engines */
    int64_t stop_after, n_polls; /* stop_after < 0: it is not stopped */
    int64_t bad;                 /* a molecule without batch; -1: none */
    int64_t repair_at;           /* after this epoch x is finite      */
    nn_epoch_report report[64];
    int n_reports, n_steps;
    size_t n, place[2]; /* parameters, and those that w is the sum of */
    int n_places;
    pl_arena *mem;
} bench;

static bench b;

static pl_code count(calls *c, const char *who, pl_error *err)
{
    return c->n++ == c->fails_at ? pl_fail(err, PL_EDEVICE, "%s %d", who, (int)c->fails_at) : PL_OK;
}

/* ---- the engine ---- */

static pl_code set_params(nn_engine *e, const float *params, pl_error *err)
{
    e->w = 0;
    for (int k = 0; k < b.n_places; k++)
        e->w += params[b.place[k]];
    return count(&e->calls, "call", err);
}

static pl_code forward(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err)
{
    (void)keep;
    for (int32_t g = 0; g < in->n_graphs; g++)
        y[g] = e->w * in->node[g];
    return count(&e->calls, "call", err);
}

static pl_code backward(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    for (int32_t g = 0; g < in->n_graphs; g++)
        for (int k = 0; k < b.n_places; k++)
            grad[b.place[k]] += dy[g] * in->node[g];
    return count(&e->calls, "call", err);
}

static void engine_close(nn_engine *e) { b.n_closed += e == &b.second; }

static const nn_engine_kind plain = {
    .name = "plain", .set_params = set_params, .forward = forward, .backward = backward, .close = engine_close
};

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

/* ---- batches; the first molecule of the held-out ones is TRAIN ---- */

static pl_code batch_of(int slot, nn_batch *out, nn_which which, int64_t first, pl_error *err)
{
    float *to = &b.given[slot][first];

    for (int32_t i = 0; i < which.n; i++) {
        to[i] = b.x[first + which.at[i]];
        if (first + which.at[i] == b.bad)
            return pl_fail(err, PL_EINPUT, "molecule %d", (int)b.bad);
    }
    *out = (nn_batch){ .n_graphs = which.n, .n_nodes = which.n, .n_node_features = 1, .node = to };
    return PL_OK;
}

static pl_code train_batch(void *ctx, int slot, nn_batch *out, nn_which which, pl_error *err)
{
    (void)ctx;
    return batch_of(slot, out, which, 0, err);
}

static pl_code valid_batch(void *ctx, int slot, nn_batch *out, nn_which which, pl_error *err)
{
    (void)ctx;
    return batch_of(slot, out, which, TRAIN, err);
}

/* ---- the host ---- */

static const char *last; /* call of the host that has to do with saving */

static pl_code save(void *ctx, const nn_train_state *s, pl_error *err)
{
    (void)ctx, (void)s;
    last = "save";
    return count(&b.calls, "host", err);
}

static void step_seen(void *ctx, const nn_train_state *s, int64_t n)
{
    (void)ctx;
    assert_true(n == TRAIN && s->cursor > 0 && s->cursor <= TRAIN);
    b.n_steps++;
}

static pl_code saved(void *ctx, pl_error *err)
{
    (void)ctx;
    last = "saved";
    return count(&b.calls, "host", err);
}

static pl_code epoch(void *ctx, const nn_epoch_report *r, pl_error *err)
{
    (void)ctx;
    b.report[b.n_reports++] = *r;
    if (r->epoch == b.repair_at)
        b.x[TRAIN] = 0.5f;
    return count(&b.calls, "host", err);
}

static pl_code planned(void *ctx, const nn_budget *of, int64_t epochs, pl_error *err)
{
    (void)ctx, (void)of, (void)epochs;
    return count(&b.calls, "host", err);
}

static bool stop(void *ctx)
{
    (void)ctx;
    return b.stop_after >= 0 && b.n_polls++ >= b.stop_after;
}

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

static double now(void *ctx)
{
    (void)ctx;
    return 0;
}

/* ---- the bench ---- */

static void begin(void)
{
    static nn_se3 plan;

    plan = (nn_se3){ .n_floats = b.n, .conf.outputs = 1, .head = { -1, -1, -1, -1 } };
    assert_int_equal(nn_train_state_alloc(&b.s, &plan, b.conf.ema > 0, 1, b.mem, NULL), PL_OK);
    for (int k = 0; k < b.n_places; k++) {
        b.s.params[b.place[k]] = 0.25f / (float)b.n_places;
        if (b.s.ema != NULL)
            b.s.ema[b.place[k]] = 0.25f / (float)b.n_places;
    }
    b.engine = (nn_engine){ .calls.fails_at = -1 };
    b.calls = (calls){ .fails_at = -1 };
    b.n_reports = b.n_steps = 0;
}

static int make(void **state)
{
    (void)state;
    b = (bench){
        .bad = -1, .kind = &plain, .stop_after = -1, .second_fails = -1, .n = 1, .n_places = 1, .mem = pl_arena_new(1 << 12)
    };
    for (int i = 0; i < ALL; i++) {
        b.x[i] = 0.1f * (float)(i - 5);
        b.target[i] = 2 * b.x[i] + (i % 3 == 0 ? 0.3f : -0.1f);
        b.edges[i] = 1;
    }
    b.conf = (nn_train_conf){
        .epochs = EPOCHS, .molecules = 5, .lr = 0.05, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .ema = 0.5, .loss = NN_LOSS_L2
    };
    b.host = (nn_train_host){
        .save = save, .saved = saved, .step = step_seen, .epoch = epoch, .planned = planned, .clock = now, .stop = stop
    };
    begin();
    return b.mem == NULL;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(b.mem);
    return 0;
}

static pl_code train_on(const nn_engine_kind *kind, int64_t n, pl_error *err)
{
    const nn_samples train_s = { NULL, n, b.edges, b.target, train_batch, 1, NULL, NULL };
    const nn_samples valid_s = { NULL, VALID, b.edges + TRAIN, b.target + TRAIN, valid_batch, 1, NULL, NULL };

    return nn_train(&b.s, &b.conf, kind, &b.engine, &train_s, &valid_s, &b.host, err);
}

static pl_code train(pl_error *err) { return train_on(b.kind, TRAIN, err); }

static void refused(pl_code code, pl_code want, const pl_error *err, const char *text)
{
    if (code != want || strstr(err->text, text) == NULL)
        fail_msg("%d, \"%s\"; \"%s\" expected", (int)code, err->text, text);
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

/* ---- the norm of a gradient ---- */

static int64_t wide; /* numbers of the gradient: number k is 1 + k % 7 times the first */

static pl_code backward_wide(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    for (int32_t g = 0; g < in->n_graphs; g++)
        for (int64_t k = 0; k < wide; k++)
            grad[k] += dy[g] * in->node[g] * (float)(1 + k % 7);
    return count(&e->calls, "call", err);
}

/* After one step the first moments are 1 - beta1 of the clipped gradient, whose norm is grad_clip. */
static void a_clipped_gradient_has_the_norm_that_was_asked_for(void **state)
{
    static const int64_t sizes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 4095, 4096, 4097, 8194, 65535, 65536, 65539, 131077 };
    const nn_engine_kind kind = { .name = "wide", .set_params = set_params, .forward = forward, .backward = backward_wide };

    (void)state;
    b.conf.epochs = 1;
    b.conf.molecules = TRAIN;
    b.conf.grad_clip = 1e-4;
    b.conf.ema = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const nn_se3 plan = { .n_floats = (size_t)sizes[i], .conf.outputs = 1, .head = { -1, -1, -1, -1 } };
        double squares = 0;
        begin();
        wide = sizes[i];
        assert_int_equal(nn_train_state_alloc(&b.s, &plan, false, 1, b.mem, NULL), PL_OK);
        b.s.params[0] = 0.25f;
        assert_int_equal(train_on(&kind, TRAIN, NULL), PL_OK);
        assert_int_equal(b.s.step, 1);
        for (int64_t k = 0; k < wide; k++)
            squares += (double)b.s.m[k] * (double)b.s.m[k];
        if (!(fabs(sqrt(squares) / (0.1 * 1e-4) - 1) < 1e-5))
            fail_msg("%lld numbers: %g", (long long)wide, sqrt(squares));
        for (int64_t k = 0; k < wide; k++)
            assert_true(fabs((double)b.s.m[k] / (double)b.s.m[0] / (double)(1 + k % 7) - 1) < 1e-5);
    }
}

/* The first number of the gradient is 1, the others are of this size. */
static float far_below;

static pl_code backward_far(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    (void)in, (void)dy;
    for (int64_t k = 0; k < wide; k++)
        grad[k] = k == 0 ? 1.0f : far_below;
    return count(&e->calls, "call", err);
}

/* Of a whole group of four each number has a sum of its own; numbers after the last group are added to the first sum. The limit lies
 * between two floats, so the last bit of the norm decides by which of them the gradient is multiplied. */
static void the_squares_of_a_gradient_are_added_in_a_fixed_order(void **state)
{
    static const struct {
        int64_t n;
        float far_below, clip;
    } cases[] = { { 8, 0x1.1p-27f, 0x1.fffffep-1f }, { 11, 0x1.f6p-28f, 1 } }; /* norms 1 + 2^-52 and 1 */
    const nn_engine_kind kind = { .name = "far", .set_params = set_params, .forward = forward, .backward = backward_far };

    (void)state;
    b.conf.epochs = 1;
    b.conf.molecules = TRAIN;
    b.conf.grad_clip = 1 - 0x1p-25;
    b.conf.beta1 = 0;
    b.conf.ema = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const nn_se3 plan = { .n_floats = (size_t)cases[i].n, .conf.outputs = 1, .head = { -1, -1, -1, -1 } };
        begin();
        wide = cases[i].n;
        far_below = cases[i].far_below;
        assert_int_equal(nn_train_state_alloc(&b.s, &plan, false, 1, b.mem, NULL), PL_OK);
        b.s.params[0] = 0.25f;
        assert_int_equal(train_on(&kind, TRAIN, NULL), PL_OK);
        assert_int_equal(b.s.step, 1);
        assert_true(b.s.m[0] == cases[i].clip);
    }
}

/* ---- order and learning rate ---- */

static void each_order_of_molecules_is_as_likely(void **state)
{
    enum { N = 5, EPOCHS_OF_ALL = 2000 };
    int count[N][N] = { { 0 } };

    (void)state;
    for (int64_t e = 0; e < EPOCHS_OF_ALL; e++) {
        int64_t order[N + 1], again[N], sum = 0;
        order[N] = 77;
        nn_train_order(order, N, 3, e);
        nn_train_order(again, N, 3, e);
        assert_memory_equal(order, again, sizeof again);
        for (int i = 0; i < N; i++) {
            count[i][order[i]]++;
            sum += 1 << order[i];
        }
        assert_true(sum == (1 << N) - 1 && order[N] == 77);
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            assert_in_range(count[i][k], 320, 480); /* 400, 4.5 standard deviations */
}

/* By cos^2 of the half angle. */
static double rate_at(const nn_train_conf *c, int64_t epochs, double at)
{
    const double part = c->schedule == NN_LR_COSINE_EPOCH ? floor(at) : at;
    const double half = c->budget > 0 && at < 1 ? 1 : cos(acos(-1) * part / (2 * (double)epochs));
    const double full = c->schedule == NN_LR_CONSTANT ? c->lr : c->min_lr + (c->lr - c->min_lr) * half * half;

    return at < c->warmup ? full * at / c->warmup : full;
}

static void the_learning_rate_is_that_of_its_schedule(void **state)
{
    static const double warmup[] = { 0, 0.5, 1.5 };

    (void)state;
    for (int k = 0; k < 3 * 2 * 3 * 2; k++) {
        const nn_train_conf c = {
            .lr = 0.75, .min_lr = 0.25, .schedule = (nn_schedule)(k % 3), .budget = k / 3 % 2, .warmup = warmup[k / 6 % 3]
        };
        const int64_t epochs = k / 18 ? 8 : 1;
        for (double at = 0; at < (double)epochs; at += 0.125)
            assert_true(fabs(nn_train_lr(&c, epochs, at) - rate_at(&c, epochs, at)) < 1e-15);
        assert_true(nn_train_lr(&c, 0, 2) == 0.75); /* without a number of epochs */
    }
}

/* ---- the best epoch ---- */

static void without_finite_validations_there_is_no_model(void **state)
{
    static const float odd[] = { INFINITY, NAN };
    pl_error err = { 0 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        b.x[TRAIN] = odd[i];
        b.conf.epochs = 6;
        b.conf.patience = 0;
        begin();
        refused(train(&err), PL_ELIMIT, &err, "no epoch gave finite predictions for the validation molecules: try a smaller lr");
        assert_true(b.n_reports == 6 && b.s.best_epoch == -1);
        b.conf.patience = 4;
        begin();
        refused(train(&err), PL_ELIMIT, &err, "no epoch gave finite predictions");
        assert_int_equal(b.n_reports, 4);
    }
}

static void the_first_finite_validation_is_the_best_so_far(void **state)
{
    (void)state;
    b.x[TRAIN] = NAN;
    b.repair_at = 2;
    b.conf.epochs = 4;
    b.conf.lr = b.conf.min_lr = 0; /* all finite ones are equal */
    assert_int_equal(train(NULL), PL_OK);
    assert_int_equal(b.s.best_epoch, 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(b.report[i].best, i == 2);
    begin(); /* repaired by now */
    assert_int_equal(train(NULL), PL_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(b.report[i].best, i == 0);
}

static void a_stop_names_its_epoch(void **state)
{
    const char *want[] = { "stopped in epoch 1", "stopped in epoch 2", "stopped in epoch 3" };
    int next = 0;

    (void)state;
    b.conf.epochs = 3;
    for (int64_t after = 0; next < 3 && after < 40; after++) {
        pl_error err = { 0 };
        b.stop_after = after;
        b.n_polls = 0;
        begin();
        if (train(&err) == PL_OK)
            break;
        if (next + 1 < 3 && strcmp(err.text, want[next + 1]) == 0)
            next++;
        else if (strcmp(err.text, "stopped while predicting") != 0)
            assert_string_equal(err.text, want[next]);
        assert_int_equal(b.s.epoch, next);
    }
    assert_int_equal(next, 2);
}

/* Epoch of the smallest sum, the first of equal ones. */
static int smallest(bool loss)
{
    int best = 0;

    for (int i = 1; i < b.n_reports; i++) {
        const nn_loss_sum *now = &b.report[i].valid, *then = &b.report[best].valid;
        if (loss ? now->loss < then->loss : now->abs < then->abs)
            best = i;
    }
    return best;
}

/* Values by the mean absolute error, classes by the log loss. */
static void the_best_epoch_is_that_of_the_smallest_error(void **state)
{
    bool differ = false;

    (void)state;
    b.conf.epochs = 12;
    b.conf.lr = b.conf.min_lr = 0.9;
    for (int classes = 0; classes < 2; classes++)
        for (b.conf.seed = 1; b.conf.seed <= 30; b.conf.seed++) {
            for (int i = 0; classes && i < ALL; i++)
                b.target[i] = (i * 7) % 5 < 2 ? -1.0f : 1.0f;
            b.conf.loss = classes ? NN_LOSS_BCE : NN_LOSS_L2;
            begin();
            assert_int_equal(train(NULL), PL_OK);
            assert_int_equal(b.n_reports, 12);
            assert_int_equal(b.s.best_epoch, smallest(classes));
            const nn_loss_sum *best = &b.report[b.s.best_epoch].valid;
            assert_true(b.s.best_error == (classes ? best->loss : best->abs) / (double)best->n);
            differ = differ || (classes && smallest(false) != smallest(true));
        }
    assert_true(differ);
}

#define OF(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(an_error_of_the_engine_ends_it_at_any_call),
        OF(an_error_of_the_host_ends_it_at_any_call),
        OF(a_stop_waits_for_what_it_saves),
        OF(a_molecule_without_batch_ends_it),
        OF(what_cannot_be_trained_is_refused_before_it_begins),
        OF(refused_memory_ends_it),
        OF(memory_is_used_to_its_end_and_no_further),
        OF(whole_steps_give_the_training_of_single_ones),
        OF(parameters_in_any_piece_are_learned_alike),
        OF(an_error_of_the_second_engine_is_not_lost),
        OF(a_training_holds_nothing),
        OF(stopped_anywhere_whole_steps_end_alike),
        OF(without_finite_validations_there_is_no_model),
        OF(the_first_finite_validation_is_the_best_so_far),
        OF(a_clipped_gradient_has_the_norm_that_was_asked_for),
        OF(the_squares_of_a_gradient_are_added_in_a_fixed_order),
        OF(each_order_of_molecules_is_as_likely),
        OF(the_learning_rate_is_that_of_its_schedule),
        OF(a_stop_names_its_epoch),
        OF(the_best_epoch_is_that_of_the_smallest_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
