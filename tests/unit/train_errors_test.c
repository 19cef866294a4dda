/* SPDX-License-Identifier: Apache-2.0
 * What ends a training: an error of the engine, of the batches or of the host, at any call, is the error of the training, and nothing
 * is done after it; validations without numbers; which epoch is the best. The network is y = w x. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/training/train.h"

enum { TRAIN = 12, VALID = 5, ALL = TRAIN + VALID, EPOCHS = 2 };

typedef struct calls {
    int64_t n, fails_at; /* fails_at < 0: none fails */
} calls;

struct nn_engine {
    float w;
    calls calls;
};

typedef struct bench {
    nn_engine engine;
    nn_train_conf conf;
    nn_train_state s;
    nn_train_host host;
    calls calls; /* of the host */
    float x[ALL], target[ALL], given[2][ALL];
    int32_t edges[ALL];
    int64_t bad;       /* a molecule without batch; -1: none */
    int64_t repair_at; /* after this epoch x is finite      */
    nn_epoch_report report[64];
    int n_reports;
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
    e->w = params[0];
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
        grad[0] += dy[g] * in->node[g];
    return count(&e->calls, "call", err);
}

static const nn_engine_kind plain = { .name = "plain", .set_params = set_params, .forward = forward, .backward = backward };

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

static pl_code save(void *ctx, const nn_train_state *s, pl_error *err)
{
    (void)ctx, (void)s;
    return count(&b.calls, "host", err);
}

static pl_code saved(void *ctx, pl_error *err)
{
    (void)ctx;
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

static double now(void *ctx)
{
    (void)ctx;
    return 0;
}

/* ---- the bench ---- */

static void begin(void)
{
    static nn_se3 plan;

    plan = (nn_se3){ .n_floats = 1, .conf.outputs = 1, .head = { -1, -1, -1, -1 } };
    assert_int_equal(nn_train_state_alloc(&b.s, &plan, b.conf.ema > 0, 1, b.mem, NULL), PL_OK);
    b.s.params[0] = 0.25f;
    if (b.s.ema != NULL)
        b.s.ema[0] = 0.25f;
    b.engine = (nn_engine){ .calls.fails_at = -1 };
    b.calls = (calls){ .fails_at = -1 };
    b.n_reports = 0;
}

static int make(void **state)
{
    (void)state;
    b = (bench){ .bad = -1, .mem = pl_arena_new(1 << 12) };
    for (int i = 0; i < ALL; i++) {
        b.x[i] = 0.1f * (float)(i - 5);
        b.target[i] = 2 * b.x[i] + (i % 3 == 0 ? 0.3f : -0.1f);
        b.edges[i] = 1;
    }
    b.conf = (nn_train_conf){
        .epochs = EPOCHS, .molecules = 5, .lr = 0.05, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .ema = 0.5, .loss = NN_LOSS_L2
    };
    b.host = (nn_train_host){ .save = save, .saved = saved, .epoch = epoch, .planned = planned, .clock = now };
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

static pl_code train(pl_error *err) { return train_on(&plain, TRAIN, err); }

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
        assert_false(b.s.done && of != &b.calls); /* the end may be what cannot be saved */
    }
    return 0;
}

static void an_error_of_the_engine_ends_it_at_any_call(void **state)
{
    (void)state;
    assert_true(each_fails(&b.engine.calls, "call") > 4 * 6); /* forward, backward, set; validation */
}

static void an_error_of_the_host_ends_it_at_any_call(void **state)
{
    int without;

    (void)state;
    without = each_fails(&b.calls, "host");
    assert_true(without > 2 * EPOCHS);
    b.conf.budget = 100;
    assert_true(each_fails(&b.calls, "host") > without);
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
    assert_true(b.engine.calls.n == 0 && b.calls.n == 0);
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
        OF(a_molecule_without_batch_ends_it),
        OF(what_cannot_be_trained_is_refused_before_it_begins),
        OF(without_finite_validations_there_is_no_model),
        OF(the_first_finite_validation_is_the_best_so_far),
        OF(the_best_epoch_is_that_of_the_smallest_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
