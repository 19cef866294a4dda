/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/rank/retrieval.h"

#include <math.h>
#include <stdlib.h>

#include "models/metrics/enrichment.h"

enum { POINTS_MAX = 200 }; /* of the curve that is stored */

/* A value of the objective that some active has. Sorted, best first and without repetition, before candidates are counted. */
typedef struct step {
    double objective;     /* larger is better                                */
    int64_t better, same; /* candidates between the step before and this; with this value */
    int64_t actives;
} step;

struct st_retrieval {
    double sign;
    step *step;
    double *undecided;
    int64_t n, cap, n_undecided, cap_undecided, n_labelled, n_candidates;
    bool sorted;
};

pl_code st_retrieval_new(st_retrieval **out, bool lower_is_better, pl_error *err)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the actives of a ranking");
    (*out)->sign = lower_is_better ? -1 : 1;
    return PL_OK;
}

void st_retrieval_free(st_retrieval *r)
{
    if (r == NULL)
        return;
    free(r->step);
    free(r->undecided);
    free(r);
}

/* One more of `size` bytes. */
static pl_code grow(void **list, int64_t n, int64_t *cap, size_t size, pl_error *err)
{
    int64_t wide = *cap ? 2 * *cap : 256;
    void *grown = n < *cap ? *list : realloc(*list, (size_t)wide * size);

    if (grown == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the actives of a ranking");
    *cap = n < *cap ? *cap : wide;
    *list = grown;
    return PL_OK;
}

pl_code st_retrieval_label(st_retrieval *r, double objective, double label, pl_error *err)
{
    void *list = label == 1 ? (void *)r->step : (void *)r->undecided;
    pl_code code = PL_OK;

    r->n_labelled += label == 0 || label == 1;
    if (label == 1) {
        code = grow(&list, r->n, &r->cap, sizeof *r->step, err);
        r->step = list;
        if (code == PL_OK)
            r->step[r->n++] = (step){ .objective = r->sign * objective, .actives = 1 };
    } else if (label != 0) {
        code = grow(&list, r->n_undecided, &r->cap_undecided, sizeof *r->undecided, err);
        r->undecided = list;
        if (code == PL_OK)
            r->undecided[r->n_undecided++] = objective;
    }
    return code;
}

static int best_first(const void *a, const void *b)
{
    double x = ((const step *)a)->objective, y = ((const step *)b)->objective;

    return (x < y) - (x > y);
}

/* Best first, each objective once. */
static void sort(st_retrieval *r)
{
    int64_t kept = 0;

    r->sorted = true;
    if (r->n == 0)
        return;
    qsort(r->step, (size_t)r->n, sizeof *r->step, best_first);
    for (int64_t i = 1; i < r->n; i++)
        if (r->step[i].objective == r->step[kept].objective)
            r->step[kept].actives++;
        else
            r->step[++kept] = r->step[i];
    r->n = kept + 1;
}

static void count(st_retrieval *r, double objective, int64_t by)
{
    int64_t low = 0, high = r->n; /* the first step that is not better */

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (r->step[middle].objective > objective)
            low = middle + 1;
        else
            high = middle;
    }
    r->n_candidates += by;
    if (low == r->n)
        return;
    if (r->step[low].objective == objective)
        r->step[low].same += by;
    else
        r->step[low].better += by;
}

void st_retrieval_count(st_retrieval *r, double objective)
{
    if (!r->sorted) {
        sort(r);
        for (int64_t i = 0; i < r->n_undecided; i++)
            count(r, r->sign * r->undecided[i], -1);
    }
    count(r, r->sign * objective, 1);
}

static nn_tie *ties_of(const st_retrieval *r)
{
    nn_tie *tie = calloc((size_t)r->n + 1, sizeof *tie);
    int64_t above = 0;

    for (int64_t i = 0; tie != NULL && i < r->n; i++) {
        above += r->step[i].better;
        tie[i] = (nn_tie){ above, r->step[i].same, r->step[i].actives };
        above += r->step[i].same;
    }
    return tie;
}

/* Puts a row if *code is PL_OK, and stores what came of it there. */
static void row(pl_env *env, int64_t at, const char *name, double value, pl_code *code, pl_error *err)
{
    if (*code == PL_OK)
        *code = pl_metric_add(env, at, 0, "ranking", name, value, err);
}

static void put_curve(const st_retrieval *r, const nn_tie *tie, int64_t actives, pl_env *env, pl_code *code, pl_error *err)
{
    int64_t every = (r->n + POINTS_MAX - 1) / POINTS_MAX, found = 0;

    row(env, 0, "found", 0, code, err);
    for (int64_t i = 0; i < r->n; i++) {
        found += tie[i].actives;
        if (i % every == 0 || i == r->n - 1)
            row(env, tie[i].above + tie[i].n, "found", (double)found / (double)actives, code, err);
    }
    row(env, r->n_candidates, "found", 1, code, err);
}

static pl_code put_all(const st_retrieval *r, const nn_tie *tie, pl_env *env, const char *label, pl_error *err)
{
    const nn_enrichment e = nn_enrichment_of(tie, r->n, r->n_candidates);
    pl_code code = PL_OK;

    if (isnan(e.roc_auc)) {
        pl_event_add(env, PL_WARN, "actives: of %lld candidates %lld have %s = 1; enrichment needs actives and others",
                     (long long)r->n_candidates, (long long)e.actives, label);
        return PL_OK;
    }
    if (r->n_undecided > 0)
        pl_event_add(env, PL_WARN, "actives: %lld %s with labels of %s that contradict each other %s left out",
                     (long long)r->n_undecided, pl_plural(r->n_undecided, "molecule", "molecules"), label,
                     pl_plural(r->n_undecided, "is", "are"));
    row(env, 0, "candidates", (double)r->n_candidates, &code, err);
    row(env, 0, "unlabelled", (double)(r->n_candidates - r->n_labelled), &code, err);
    for (int k = 0; k < NN_ENRICHMENTS; k++)
        row(env, 0, nn_enrichment_name(k), nn_enrichment_value(&e, k), &code, err);
    put_curve(r, tie, e.actives, env, &code, err);
    if (code == PL_OK)
        pl_event_add(env, PL_INFO,
                     "actives: %lld of %lld candidates have %s = 1; ROC-AUC %.4g, EF 1 %% %.4g "
                     "of at most %.4g, EF 5 %% %.4g of %.4g, BEDROC %.4g",
                     (long long)e.actives, (long long)e.n, label, e.roc_auc, e.ef1, e.ef1_max, e.ef5, e.ef5_max, e.bedroc20);
    return code;
}

pl_code st_retrieval_put(const st_retrieval *r, pl_env *env, const char *label, pl_error *err)
{
    nn_tie *tie = ties_of(r);
    pl_code code =
        tie != NULL ? put_all(r, tie, env, label, err) : pl_fail(err, PL_ENOMEM, "no memory for the actives of a ranking");

    free(tie);
    return code;
}
