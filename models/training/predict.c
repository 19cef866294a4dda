/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/predict.h"

const int64_t *nn_predict_numbers(int64_t n, pl_arena *mem)
{
    int64_t *all = PL_NEW(mem, int64_t, n);

    for (int64_t i = 0; all != NULL && i < n; i++)
        all[i] = i;
    return all;
}

static nn_which take(const nn_predictor *p, const nn_samples *s, int64_t from, int64_t end)
{
    return (nn_which){ .at = p->all + from, .n = nn_samples_take(s, p->all + from, end - from, p->molecules, p->max_edges) };
}

/* Averages y over the batch and its mirror image. y: predictions of the batch; image: room for as many. */
static pl_code image_join(float *y, float *image, const nn_predictor *p, const nn_batch *in, int64_t n, pl_error *err)
{
    nn_batch other;
    pl_code code = nn_mirror_batch(p->mirror, &other, in, err);

    if (code == PL_OK)
        code = p->kind->forward(p->engine, &other, false, image, err);
    for (int64_t i = 0; i < n && code == PL_OK; i++)
        y[i] = 0.5f * (y[i] + image[i]);
    return code;
}

pl_code nn_predict_part(float *y, const nn_predictor *p, const nn_samples *samples, nn_span part, pl_error *err)
{
    int64_t end = part.first + part.n;
    nn_which now = take(p, samples, part.first, end), next;
    nn_batch batch;
    pl_code code = PL_OK;

    for (int64_t at = part.first; now.n && code == PL_OK; at += now.n, now = next) {
        next = take(p, samples, at + now.n, end);
        if (nn_train_must_stop(p->host))
            return pl_fail(err, PL_ESTOP, "stopped while predicting");
        code = nn_prefetch_take(p->prefetch, &batch, samples, now, next, err);
        if (code == PL_OK)
            code = p->kind->forward(p->engine, &batch, false, y + at * samples->outputs, err);
        if (code == PL_OK && p->mirror != NULL)
            code =
                image_join(y + at * samples->outputs, p->image + at * samples->outputs, p, &batch, now.n * samples->outputs, err);
    }
    return code;
}

static pl_code predict(float *y, nn_predictor p, const nn_samples *samples, bool mirror, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    bool ready = mem != NULL;
    pl_code code;

    p.prefetch = nn_prefetch_new();
    p.all = mem != NULL ? nn_predict_numbers(samples->n, mem) : NULL;
    if (mem != NULL && mirror) {
        p.mirror = nn_mirror_new();
        p.image = PL_NEW(mem, float, samples->n * samples->outputs);
        ready = p.mirror != NULL && p.image != NULL;
    }
    code = ready && p.prefetch != NULL && p.all != NULL
               ? nn_predict_part(y, &p, samples, (nn_span){ 0, samples->n }, err)
               : pl_fail(err, PL_ENOMEM, "predicting %lld molecules", (long long)samples->n);
    nn_prefetch_free(p.prefetch);
    nn_mirror_free(p.mirror);
    pl_arena_free(mem);
    return code;
}

pl_code nn_predict(float *y, const nn_engine_kind *kind, nn_engine *engine, const nn_samples *samples, int64_t molecules,
                   int64_t max_edges, const nn_train_host *host, pl_error *err)
{
    return predict(y,
                   (nn_predictor){ .kind = kind, .engine = engine, .host = host, .molecules = molecules, .max_edges = max_edges },
                   samples, false, err);
}

pl_code nn_predict_average(float *y, const nn_engine_kind *kind, nn_engine *engine, const nn_samples *samples, int64_t molecules,
                           int64_t max_edges, const nn_train_host *host, pl_error *err)
{
    return predict(y,
                   (nn_predictor){ .kind = kind, .engine = engine, .host = host, .molecules = molecules, .max_edges = max_edges },
                   samples, true, err);
}
