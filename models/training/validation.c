/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/validation.h"

#include "models/threads/background_thread.h"

struct nn_validation {
    nn_validation_of of;
    nn_predictor beside;           /* runs on the second engine */
    float *y[NN_VALIDATION_PARTS]; /* [samples][outputs]                      */
    float *dy;                     /* [outputs] scratch */
    int64_t *first;                /* [ranks + 1] first prediction of each rank */
    nn_background *thread;         /* NULL: no second engine                  */
    const float *weights;          /* weights used by the second engine */
    pl_code code;                  /* result of the second engine */
    pl_error err;
};

static int64_t n_of(const nn_validation *h, int k) { return h->of.part[k] != NULL ? h->of.part[k]->n : 0; }

static int64_t largest(const nn_validation *h) { return n_of(h, 0) > n_of(h, 1) ? n_of(h, 0) : n_of(h, 1); }

pl_code nn_validation_new(nn_validation **out, const nn_validation_of *of, pl_arena *mem, pl_error *err)
{
    nn_validation *h = PL_NEW(mem, nn_validation, 1);
    int32_t outputs = of->part[0] != NULL ? of->part[0]->outputs : 1;
    bool there = h != NULL;

    *out = NULL;
    if (!there)
        return pl_fail(err, PL_ENOMEM, "held-out molecules");
    h->of = *of;
    h->of.now.all = nn_predict_numbers(largest(h), mem);
    h->first = PL_NEW(mem, int64_t, of->ranks->size + 1);
    h->dy = PL_NEW(mem, float, outputs);
    for (int k = 0; k < NN_VALIDATION_PARTS; k++)
        there = (h->y[k] = PL_NEW(mem, float, n_of(h, k) * outputs)) != NULL && there;
    *out = h;
    return there && h->of.now.all != NULL && h->first != NULL && h->dy != NULL
               ? PL_OK
               : pl_fail(err, PL_ENOMEM, "%lld held-out molecules", (long long)largest(h));
}

void nn_validation_alone(nn_validation *h)
{
    nn_background_free(h->thread); /* waits for it */
    nn_prefetch_free(h->beside.prefetch);
    if (h->beside.engine != NULL)
        h->of.now.kind->close(h->beside.engine);
    h->thread = NULL;
    h->beside = (nn_predictor){ 0 };
}

void nn_validation_free(nn_validation *h)
{
    if (h != NULL)
        nn_validation_alone(h);
}

/* Predicts this rank's share of the molecules of part k. */
static pl_code share_predict(nn_validation *h, const nn_predictor *p, int k, pl_error *err)
{
    const nn_ranks *r = h->of.ranks;
    const nn_samples *s = h->of.part[k];

    return s != NULL ? nn_predict_part(h->y[k], p, s, nn_share(s->n, r->size, r->rank), err) : PL_OK;
}

static pl_code part_gather(nn_validation *h, int k, pl_error *err)
{
    nn_ranks *r = h->of.ranks;
    const nn_samples *s = h->of.part[k];

    if (s == NULL)
        return PL_OK;
    for (int i = 0; i < r->size; i++)
        h->first[i] = nn_share(s->n, r->size, i).first * s->outputs;
    h->first[r->size] = s->n * s->outputs;
    return r->kind->gather(r, h->y[k], h->first, sizeof *h->y[k], err);
}

static void part_sum(nn_validation *h, int k, nn_loss_sum *out)
{
    const nn_samples *s = h->of.part[k];

    *out = (nn_loss_sum){ 0 };
    for (int64_t i = 0; i < n_of(h, k); i++) {
        const float *t = s->target + i * s->outputs;
        nn_loss_sum one =
            nn_loss_backward(h->of.loss, h->y[k] + i * s->outputs, t, NULL, s->outputs, nn_loss_measured(t, s->outputs), h->dy);
        nn_loss_add(out, &one);
    }
}

/* Gathers the predictions of all ranks and computes the sums. */
static pl_code sums_make(nn_validation *h, nn_loss_sum sum[NN_VALIDATION_PARTS], pl_error *err)
{
    pl_code code = PL_OK;

    for (int k = 0; k < NN_VALIDATION_PARTS && code == PL_OK; k++) {
        code = part_gather(h, k, err);
        if (code == PL_OK)
            part_sum(h, k, &sum[k]);
    }
    return code;
}

/* Predicts this rank's share of every part with these weights; no communication between ranks. */
static pl_code shares_predict(nn_validation *h, const nn_predictor *p, const float *weights, pl_error *err)
{
    pl_code code = p->kind->set_params(p->engine, weights, err);

    for (int k = 0; k < NN_VALIDATION_PARTS && code == PL_OK; k++)
        code = share_predict(h, p, k, err);
    return code;
}

pl_code nn_validation_measure(nn_validation *h, nn_loss_sum sum[NN_VALIDATION_PARTS], const float *weights, pl_error *err)
{
    pl_code code = shares_predict(h, &h->of.now, weights, err);
    uint32_t stop = code == PL_ESTOP;

    if (code == PL_OK || stop)
        code = nn_ranks_any(h->of.ranks, &stop, err);
    if (code == PL_OK && stop)
        return pl_fail(err, PL_ESTOP, "stopped while predicting");
    return code != PL_OK ? code : sums_make(h, sum, err);
}

/* ---- in the background, with the second engine ---- */

pl_code nn_validation_second(nn_validation *h, nn_engine *engine, pl_error *err)
{
    h->beside = h->of.now;
    h->beside.engine = engine;
    h->beside.host = NULL;
    h->beside.prefetch = nn_prefetch_new();
    h->thread = nn_background_new();
    return h->beside.prefetch != NULL && h->thread != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a thread for held-out molecules");
}

static void beside_run(void *ctx)
{
    nn_validation *h = ctx;

    h->code = shares_predict(h, &h->beside, h->weights, &h->err);
}

void nn_validation_begin(nn_validation *h, const float *weights)
{
    h->weights = weights;
    nn_background_begin(h->thread, beside_run, h);
}

bool nn_validation_busy(nn_validation *h) { return nn_background_busy(h->thread); }

pl_code nn_validation_wait(nn_validation *h, pl_error *err)
{
    nn_background_wait(h->thread);
    if (h->code != PL_OK && err != NULL)
        *err = h->err;
    return h->code;
}

pl_code nn_validation_end(nn_validation *h, nn_loss_sum sum[NN_VALIDATION_PARTS], pl_error *err)
{
    pl_code code = nn_validation_wait(h, err);

    return code != PL_OK ? code : sums_make(h, sum, err);
}
