/* SPDX-License-Identifier: Apache-2.0 */
/* tests/twin/line_training.h - a training with a network that is small enough to do by hand: y = sum_k w_k sum over the atoms of
 * feature k; its data, and a host that stops it and keeps its checkpoints. Include it once, after cmocka.h. */
#ifndef TESTS_LINE_TRAINING_H
#define TESTS_LINE_TRAINING_H

#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/training/checkpoint.h"
#include "models/training/train.h"
#include "pipeline/base/rng.h"

enum { FEATURES = 4, TRAIN = 53, VALID = 11, EPOCHS = 6 };

struct nn_engine {
    float w[FEATURES];
    int64_t poison_at, calls; /* this call of backward gives a NaN; -1: none */
    int64_t poison_n;
    float max; /* larger gradients overflow; 0: none does           */
};

static inline pl_code line_set(nn_engine *e, const float *params, pl_error *err)
{
    (void)err;
    memcpy(e->w, params, sizeof e->w);
    return PL_OK;
}

static inline pl_code line_forward(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err)
{
    (void)keep;
    (void)err;
    for (int32_t g = 0; g < in->n_graphs; g++) {
        y[g] = 0;
        for (int k = 0; k < FEATURES; k++)
            y[g] += e->w[k] * in->node[g * FEATURES + k];
    }
    return PL_OK;
}

static inline pl_code line_backward(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    (void)err;
    for (int32_t g = 0; g < in->n_graphs; g++)
        for (int k = 0; k < FEATURES; k++)
            grad[k] += dy[g] * in->node[g * FEATURES + k];
    for (int k = 0; k < FEATURES && e->max > 0; k++)
        grad[k] = fabsf(grad[k]) <= e->max ? grad[k] : INFINITY;
    if (e->poison_at >= 0 && e->calls >= e->poison_at && e->calls < e->poison_at + e->poison_n)
        grad[1] = NAN;
    e->calls++;
    return PL_OK;
}

static const nn_engine_kind line = { .name = "line", .set_params = line_set, .forward = line_forward, .backward = line_backward };

/* One atom a molecule. */
typedef struct data {
    float node[TRAIN + VALID][FEATURES], target[TRAIN + VALID], gathered[2][TRAIN + VALID][FEATURES];
    int32_t edges[TRAIN + VALID];
    int64_t first;
    int largest, max_edges; /* of the batches asked for; edges: of those of more than one molecule */
} data;

static inline pl_code data_batch(void *ctx, int slot, nn_batch *out, nn_which which, pl_error *err)
{
    data *d = ctx;
    const int32_t n = which.n;
    int edges = 0;

    (void)err;
    if (n > d->largest)
        d->largest = n;
    for (int32_t i = 0; i < n; i++)
        edges += d->edges[d->first + which.at[i]];
    if (n > 1 && edges > d->max_edges)
        d->max_edges = edges;
    for (int32_t i = 0; i < n; i++)
        memcpy(d->gathered[slot][i], d->node[d->first + which.at[i]], sizeof d->gathered[slot][i]);
    *out = (nn_batch){ .n_graphs = n, .n_nodes = n, .n_node_features = FEATURES, .node = d->gathered[slot][0] };
    return PL_OK;
}

static inline void data_make(data *d)
{
    static const float law[FEATURES] = { 1.0f, -0.5f, 0.25f, 2.0f };
    pl_rng r = pl_rng_at(3, 0, 0);

    memset(d, 0, sizeof *d);
    for (int i = 0; i < TRAIN + VALID; i++) {
        d->edges[i] = 1 + (int32_t)pl_rng_below(&r, 9);
        for (int k = 0; k < FEATURES; k++) {
            d->node[i][k] = (float)pl_rng_normal(&r);
            d->target[i] += law[k] * d->node[i][k];
        }
    }
}

/* A training that can be stopped after so many steps, and its checkpoint directory. */
typedef struct bench {
    pl_arena *mem;
    data train, valid;
    nn_samples train_s, valid_s;
    nn_train_conf conf;
    nn_engine engine;
    nn_train_state s;
    nn_train_host host;
    char dir[64];
    int64_t stop_after, polls;
    nn_epoch_report report[64];
    int n_reports;
    bool saved;
    double now; /* of a clock that a step moves by `pace` */
    double pace;
    int64_t planned;
    int n_planned;
    int n_saves, due_at, killed_at; /* due: ends of so many epochs are saved; epochs, 0 is none */
    double scales[128];             /* of the loss, after every step                       */
    int n_scales;
} bench;

static inline void host_step(void *ctx, const nn_train_state *s, int64_t n_train)
{
    bench *b = ctx;

    (void)n_train;
    b->now += b->pace;
    if (b->n_scales < 128)
        b->scales[b->n_scales++] = s->scale.by;
}

static inline double host_clock(void *ctx) { return ((const bench *)ctx)->now; }

static inline pl_code host_planned(void *ctx, const nn_budget *of, int64_t epochs, pl_error *err)
{
    bench *b = ctx;

    (void)of, (void)err;
    b->planned = epochs;
    b->n_planned++;
    return PL_OK;
}

static inline bool host_stop(void *ctx)
{
    bench *b = ctx;

    return b->stop_after >= 0 && b->polls++ >= b->stop_after;
}

static inline pl_code host_save(void *ctx, const nn_train_state *s, pl_error *err)
{
    bench *b = ctx;
    pl_code code = nn_checkpoint_save(b->dir, "one", s, b->saved, err);

    b->saved = code == PL_OK;
    b->n_saves++;
    return code;
}

static inline pl_code host_epoch(void *ctx, const nn_epoch_report *r, pl_error *err)
{
    bench *b = ctx;

    assert_true(r->epoch >= 1 && r->epoch <= EPOCHS);
    b->report[r->epoch - 1] = *r;
    b->n_reports = (int)r->epoch;
    return r->epoch == b->killed_at ? pl_fail(err, PL_EIO, "killed") : PL_OK;
}

static inline bool host_due(void *ctx, bool epoch_over)
{
    const bench *b = ctx;

    return epoch_over && b->s.epoch == b->due_at;
}

static inline void state_make(bench *b)
{
    static const nn_param matrix = { .n_dims = 2, .dims = { 2, 2 }, .size = FEATURES };
    static nn_se3 plan;

    plan = (nn_se3){ .n_floats = FEATURES, .conf.outputs = 1, .head = { -1, -1, -1, -1 }, .param = &matrix, .n_params = 1 };
    assert_int_equal(nn_train_state_alloc(&b->s, &plan, b->conf.ema > 0, 1, b->mem, NULL), PL_OK);
    assert_int_equal(nn_train_state_bases(&b->s, (nn_optimiser_kind)b->conf.optimiser, b->mem, NULL), PL_OK);
    for (int k = 0; k < FEATURES; k++)
        b->s.params[k] = 0.1f * (float)k;
    if (b->s.ema != NULL)
        memcpy(b->s.ema, b->s.params, FEATURES * sizeof(float));
}

static inline int bench_open(void **state)
{
    bench *b = calloc(1, sizeof *b);

    if (b == NULL || (b->mem = pl_arena_new(0)) == NULL)
        return 1;
    data_make(&b->train);
    b->valid = b->train;
    b->valid.first = TRAIN;
    b->train_s = (nn_samples){ &b->train, TRAIN, b->train.edges, b->train.target, data_batch, 1, NULL, NULL };
    b->valid_s = (nn_samples){ &b->valid, VALID, b->valid.edges + TRAIN, b->valid.target + TRAIN, data_batch, 1, NULL, NULL };
    b->conf = (nn_train_conf){ .epochs = EPOCHS,
                               .molecules = 7,
                               .max_edges = 30,
                               .lr = 0.05,
                               .min_lr = 0.005,
                               .warmup = 0.5,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = 0.01,
                               .grad_clip = 0.7,
                               .ema = 0.9,
                               .schedule = NN_LR_COSINE_STEP,
                               .loss = NN_LOSS_L2,
                               .seed = 42 };
    b->host = (nn_train_host){ .ctx = b, .stop = host_stop, .save = host_save, .epoch = host_epoch, .step = host_step };
    b->stop_after = -1;
    b->engine.poison_at = -1;
    strcpy(b->dir, "/tmp/molsieve-train-XXXXXX");
    if (mkdtemp(b->dir) == NULL)
        return 1;
    state_make(b);
    *state = b;
    return 0;
}

static inline void remove_in(const char *dir, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    (void)unlink(path);
}

static inline int bench_close(void **state)
{
    bench *b = *state;

    remove_in(b->dir, "latest.ckpt");
    remove_in(b->dir, "previous.ckpt");
    (void)rmdir(b->dir);
    pl_arena_free(b->mem);
    free(b);
    return 0;
}

static inline pl_code train(bench *b, pl_error *err)
{
    return nn_train(&b->s, &b->conf, &line, &b->engine, &b->train_s, &b->valid_s, &b->host, err);
}

#endif
