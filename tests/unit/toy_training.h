/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/toy_training.h - the training loop with an engine, batches and a host of the test, each of whose calls can fail. The network
 * is y = w x. Include it once, after cmocka.h. */
#ifndef TESTS_TOY_TRAINING_H
#define TESTS_TOY_TRAINING_H

#include <stdint.h>
#include <string.h>

#include "models/training/train.h"

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

static inline pl_code count(calls *c, const char *who, pl_error *err)
{
    return c->n++ == c->fails_at ? pl_fail(err, PL_EDEVICE, "%s %d", who, (int)c->fails_at) : PL_OK;
}

/* ---- the engine ---- */

static inline pl_code set_params(nn_engine *e, const float *params, pl_error *err)
{
    e->w = 0;
    for (int k = 0; k < b.n_places; k++)
        e->w += params[b.place[k]];
    return count(&e->calls, "call", err);
}

static inline pl_code forward(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err)
{
    (void)keep;
    for (int32_t g = 0; g < in->n_graphs; g++)
        y[g] = e->w * in->node[g];
    return count(&e->calls, "call", err);
}

static inline pl_code backward(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    for (int32_t g = 0; g < in->n_graphs; g++)
        for (int k = 0; k < b.n_places; k++)
            grad[b.place[k]] += dy[g] * in->node[g];
    return count(&e->calls, "call", err);
}

static inline void engine_close(nn_engine *e) { b.n_closed += e == &b.second; }

static const nn_engine_kind plain = {
    .name = "plain", .set_params = set_params, .forward = forward, .backward = backward, .close = engine_close
};

/* ---- batches; the first molecule of the held-out ones is TRAIN ---- */

static inline pl_code batch_of(int slot, nn_batch *out, nn_which which, int64_t first, pl_error *err)
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

static inline pl_code train_batch(void *ctx, int slot, nn_batch *out, nn_which which, pl_error *err)
{
    (void)ctx;
    return batch_of(slot, out, which, 0, err);
}

static inline pl_code valid_batch(void *ctx, int slot, nn_batch *out, nn_which which, pl_error *err)
{
    (void)ctx;
    return batch_of(slot, out, which, TRAIN, err);
}

/* ---- the host ---- */

static const char *last; /* call of the host that has to do with saving */

static inline pl_code save(void *ctx, const nn_train_state *s, pl_error *err)
{
    (void)ctx, (void)s;
    last = "save";
    return count(&b.calls, "host", err);
}

static inline void step_seen(void *ctx, const nn_train_state *s, int64_t n)
{
    (void)ctx;
    assert_true(n == TRAIN && s->cursor > 0 && s->cursor <= TRAIN);
    b.n_steps++;
}

static inline pl_code saved(void *ctx, pl_error *err)
{
    (void)ctx;
    last = "saved";
    return count(&b.calls, "host", err);
}

static inline pl_code epoch(void *ctx, const nn_epoch_report *r, pl_error *err)
{
    (void)ctx;
    b.report[b.n_reports++] = *r;
    if (r->epoch == b.repair_at)
        b.x[TRAIN] = 0.5f;
    return count(&b.calls, "host", err);
}

static inline pl_code planned(void *ctx, const nn_budget *of, int64_t epochs, pl_error *err)
{
    (void)ctx, (void)of, (void)epochs;
    return count(&b.calls, "host", err);
}

static inline bool stop(void *ctx)
{
    (void)ctx;
    return b.stop_after >= 0 && b.n_polls++ >= b.stop_after;
}

static inline double now(void *ctx)
{
    (void)ctx;
    return 0;
}

/* ---- the bench ---- */

static inline void begin(void)
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

static inline int make(void **state)
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

static inline int drop(void **state)
{
    (void)state;
    pl_arena_free(b.mem);
    return 0;
}

static inline pl_code train_on(const nn_engine_kind *kind, int64_t n, pl_error *err)
{
    const nn_samples train_s = { NULL, n, b.edges, b.target, train_batch, 1, NULL, NULL };
    const nn_samples valid_s = { NULL, VALID, b.edges + TRAIN, b.target + TRAIN, valid_batch, 1, NULL, NULL };

    return nn_train(&b.s, &b.conf, kind, &b.engine, &train_s, &valid_s, &b.host, err);
}

static inline pl_code train(pl_error *err) { return train_on(b.kind, TRAIN, err); }

static inline void refused(pl_code code, pl_code want, const pl_error *err, const char *text)
{
    if (code != want || strstr(err->text, text) == NULL)
        fail_msg("%d, \"%s\"; \"%s\" expected", (int)code, err->text, text);
}

#define OF(f) cmocka_unit_test_setup_teardown(f, make, drop)

#endif
