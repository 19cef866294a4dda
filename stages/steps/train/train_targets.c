/* SPDX-License-Identifier: Apache-2.0 */
/* The normalised targets of a training: mean 0 and standard deviation 1, or classes. */
#include <math.h>
#include <string.h>

#include "pipeline/run/run.h"
#include "stages/steps/dataset/classes.h"
#include "stages/steps/train/train.h"

/* Rank 0 alone has labels to check. */
pl_code st_targets_check(pl_env *env, const st_train_conf *c, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t k = 0; k < c->targets.n && st_train_classifies(c) && env->store != NULL && code == PL_OK; k++) {
        const char *label = st_target_label(&st_train_target(c)[k]);
        int64_t undecided = 0;
        code = st_classes_check(env, label, &undecided, err);
        if (undecided > 0)
            pl_event_add(env, PL_WARN, "left out: %lld %s whose measurements of %s disagree, so that no class is known",
                         (long long)undecided, pl_plural(undecided, "molecule", "molecules"), label);
    }
    return code;
}

/* Least squares on element counts, if wanted. */
static pl_code linear_part(nn_scale *scale, const st_target *target, int32_t k, const st_samples *train, pl_error *err)
{
    st_baselines base;
    pl_code code = target->transform ? st_baselines_fit(&base, train, k, train->d->mem, err) : PL_OK;

    if (code != PL_OK || !target->transform)
        return code;
    scale->constant = base.composition[0];
    memcpy(scale->offset, base.composition + 1, (size_t)train->inputs->n_elements * sizeof(double));
    return PL_OK;
}

/* ---- targets that nothing can be learned of ---- */

/* Why, in mem; NULL: something can, or the target is not there at all, which is refused later. */
static const char *nothing_to_learn(const st_samples *train, int32_t k, bool is_class, int32_t fewest, pl_arena *mem)
{
    char number[32], n_text[32];
    double first = NAN;
    bool same = true, there = false;
    int64_t n = 0;

    for (int64_t i = 0; i < train->d->n && !there; i++)
        there = !isnan(st_dataset_value(train->d, i, k));
    for (int64_t i = 0; i < train->n; i++) {
        const double value = st_dataset_value(train->d, train->at[i], k);
        first = isnan(first) ? value : first;
        same = same && (isnan(value) || value == first);
        n += !isnan(value);
    }
    (void)pl_count_str(n, n_text);
    if (n == 0)
        return there ? "no training molecule has it" : NULL;
    if (n < fewest)
        return pl_sprintf(mem, "%s training molecule%s it; at least %d are needed", n_text, n == 1 ? " has" : "s have",
                          (int)fewest);
    if (!same)
        return NULL;
    return pl_sprintf(mem, "all %s training molecules that have it %s %s", n_text, is_class ? "are of class" : "have the value",
                      pl_real_str(first, number));
}

static pl_code none_left(const st_left *left, int32_t n, pl_arena *mem, pl_error *err)
{
    const char *all = "";

    for (int32_t k = 0; k < n && all != NULL; k++)
        all = pl_sprintf(mem, "%s%s%s: %s", all, k > 0 ? "; " : "", left[k].name, left[k].why);
    if (all == NULL)
        return pl_fail(err, PL_ENOMEM, "targets");
    return pl_fail(err, PL_ECONFIG, "nothing can be learned of any of the %d targets; split otherwise, or give more labels: %.300s",
                   (int)n, all);
}

pl_code st_targets_leave(st_train_conf *less, st_left **left, int32_t *n_left, const st_train_conf *c, const st_samples *train,
                         int32_t fewest, pl_arena *mem, pl_error *err)
{
    const st_target *target = st_train_target(c);
    st_target *kept = PL_NEW(mem, st_target, c->targets.n + 1);
    int32_t n = 0;

    *less = *c;
    *left = PL_NEW(mem, st_left, c->targets.n + 1);
    *n_left = 0;
    if (kept == NULL || *left == NULL)
        return pl_fail(err, PL_ENOMEM, "targets");
    for (int32_t k = 0; k < c->targets.n && c->targets.n > 1; k++) {
        const char *why = nothing_to_learn(train, k, st_train_classifies(c), fewest, mem);
        if (why != NULL)
            (*left)[(*n_left)++] = (st_left){ target[k].name, why };
        else
            kept[n++] = target[k];
    }
    if (*n_left > 0 && n == 0)
        return none_left(*left, *n_left, mem, err);
    if (*n_left > 0)
        less->targets = (pl_list){ .items = kept, .n = n };
    return PL_OK;
}

void st_targets_left_tell(pl_env *env, const st_left *left, int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        pl_event_add(env, PL_WARN, "the target %s is left out of the model: %s", left[k].name, left[k].why);
}

/* What of a value is to be learned. */
static double rest_of_value(const st_samples *s, int64_t i, const nn_scale *scale, double value)
{
    const ch_graph *g = s->d->item[s->at[i]].graph;

    return value - nn_model_offset(scale, s->inputs, g->z, g->n_nodes);
}

static double rest_of(const st_samples *s, int64_t i, int32_t k, const nn_scale *scale)
{
    return rest_of_value(s, i, scale, st_dataset_value(s->d, s->at[i], k));
}

/* What is left of values that a sum over atoms gives is rounding: at most this part of their standard deviation. */
static const double left_by_rounding = 1e-7;

/* values: [n] of target k. */
static pl_code rest_check(const st_target *target, double left, const double *values, int64_t n, const st_samples *train,
                          pl_error *err)
{
    const int32_t elements = train->inputs->n_elements;
    double mean, stdev;

    nn_metric_moments(values, n, &mean, &stdev);
    if (!target->transform || left > left_by_rounding * stdev)
        return PL_OK;
    if (n <= elements + 1)
        return pl_fail(err, PL_ECONFIG,
                       "the target %s: transform: composition fits a number for each of %d elements, and %lld training molecules "
                       "are too few: nothing is left to learn; remove the transform, or give more molecules",
                       target->name, (int)elements, (long long)n);
    return pl_fail(err, PL_ECONFIG,
                   "the target %s is a sum over the atoms of a molecule, so that transform: composition leaves nothing to learn; "
                   "remove the target, or its transform",
                   target->name);
}

/* Of a smaller deviation the squares are not normal numbers, and errors would be 0. */
static const double STDEV_MIN = 1e-150;

/* Whether something is left to learn of n values, which may all be the same. */
static pl_code scale_check(const nn_scale *scale, const st_target *target, const double *values, int64_t n, bool same,
                           const st_samples *train, pl_error *err)
{
    if (!isfinite(scale->stdev))
        return pl_fail(err, PL_ECONFIG,
                       "the target %s has values too large to compute with; does a label use a large number for \"not "
                       "measured\"?",
                       target->name);
    if (n == 1)
        return pl_fail(err, PL_ECONFIG, "only one training molecule has the target %s: nothing to learn", target->name);
    if (!same && !target->transform && scale->stdev < STDEV_MIN)
        return pl_fail(err, PL_ECONFIG, "the target %s has values too small to compute with; take another unit", target->name);
    if (same)
        return pl_fail(err, PL_ECONFIG, "the target %s is the same for all %lld training molecules: nothing to learn", target->name,
                       (long long)n);
    return rest_check(target, scale->stdev, values, n, train, err);
}

/* Mean and standard deviation of the residuals; a class is not scaled. */
static pl_code scale_fit(nn_scale *scale, const st_target *target, int32_t k, bool is_class, const st_samples *train, pl_error *err)
{
    double *rest = PL_NEW(train->d->mem, double, train->n + 1), *values = PL_NEW(train->d->mem, double, train->n + 1);
    bool same = true; /* stdev alone would not do: the mean of n times 0.1 is not 0.1 */
    int64_t n = 0;
    pl_code code = rest != NULL && values != NULL ? linear_part(scale, target, k, train, err) : pl_fail(err, PL_ENOMEM, "targets");

    for (int64_t i = 0; i < train->n && code == PL_OK; i++) {
        const double value = st_dataset_value(train->d, train->at[i], k);
        if (isnan(value))
            continue;
        values[n] = value;
        same = same && value == values[0];
        rest[n++] = rest_of(train, i, k, scale);
    }
    if (code != PL_OK)
        return code;
    nn_metric_moments(rest, n, &scale->mean, &scale->stdev);
    if (is_class && !same)
        *scale = (nn_scale){ .stdev = 1 };
    return scale_check(scale, target, values, n, same, train, err);
}

static int64_t values_of(const st_samples *s, int32_t k)
{
    int64_t n = 0;

    for (int64_t i = 0; i < s->n; i++)
        n += !isnan(st_dataset_value(s->d, s->at[i], k));
    return n;
}

static pl_code none_scale(nn_model_file *m, const st_samples *train, pl_error *err)
{
    m->target->scale = (nn_scale){ .stdev = 1 };
    return train->n > 0 ? PL_OK : pl_fail(err, PL_ECONFIG, "no molecule of the training part has a graph and only known elements");
}

pl_code st_targets_scale(nn_model_file *m, const st_train_conf *c, const st_samples *train, pl_error *err)
{
    const st_target *target = st_train_target(c);
    pl_code code = PL_OK;

    if (st_train_denoises(c))
        return none_scale(m, train, err);
    for (int32_t k = 0; k < c->targets.n && code == PL_OK; k++) {
        if (values_of(train, k) == 0)
            return pl_fail(err, PL_ECONFIG, "no training molecule has a label called %s, a graph and only known elements",
                           st_target_label(&target[k]));
        code = scale_fit(&m->target[k].scale, &target[k], k, st_train_classifies(c), train, err);
    }
    return code;
}

/* Molecules of class 0 and of class 1. */
static void classes_count(int64_t count[2], const st_samples *train, int32_t k)
{
    count[0] = count[1] = 0;
    for (int64_t i = 0; i < train->n; i++) {
        const double y = st_dataset_value(train->d, train->at[i], k);
        if (!isnan(y))
            count[y > 0]++;
    }
}

pl_code st_targets_weigh(st_class_weight **out, const st_train_conf *c, const st_samples *train, pl_arena *mem, pl_error *err)
{
    const st_target *target = st_train_target(c);
    st_class_weight *w = PL_NEW(mem, st_class_weight, c->targets.n);

    *out = w;
    for (int32_t k = 0; k < c->targets.n && w != NULL; k++) {
        int64_t count[2];
        double ratio = target[k].class_weight;
        classes_count(count, train, k);
        w[k] = (st_class_weight){ { 1, 1 } };
        if (!(ratio > 0) && c->class_weights == ST_WEIGHTS_BALANCED)
            ratio = (double)count[0] / (double)count[1];
        if (!st_train_classifies(c) || !(ratio > 0) || !isfinite(ratio))
            continue;
        w[k].of[0] = (double)(count[0] + count[1]) / ((double)count[0] + ratio * (double)count[1]);
        w[k].of[1] = ratio * w[k].of[0];
    }
    return w != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the weights of classes");
}

/* A class as the loss reads it (models/optim/loss.h). */
static float class_weighed(float y, const st_class_weight *w)
{
    if (w->of[0] == w->of[1] || isnan(y))
        return y;
    return (float)(y > 0 ? w->of[1] : -w->of[0]);
}

void st_targets_unweigh(float *params, const nn_model_file *m, const st_class_weight *weight)
{
    float *bias = params + m->model->param[m->model->head[3]].at;

    for (int32_t k = 0; k < m->conf.outputs; k++)
        if (weight[k].of[0] != weight[k].of[1])
            bias[k] = (float)((double)bias[k] - log(weight[k].of[1] / weight[k].of[0]));
}

static void limits_fill(st_samples *s, int64_t i, int32_t k, const nn_scale *scale)
{
    const int64_t to = i * s->d->n_targets + k, from = s->at[i] * s->d->n_targets + k;

    s->high[to] = s->target[to];
    if (!st_dataset_is_limit(s->d, s->at[i], k))
        return;
    s->target[to] = (float)((rest_of_value(s, i, scale, s->d->low[from]) - scale->mean) / scale->stdev);
    s->high[to] = (float)((rest_of_value(s, i, scale, s->d->high[from]) - scale->mean) / scale->stdev);
}

static void limits_tell(pl_env *env, const st_train_conf *c, const st_samples *train)
{
    for (int32_t k = 0; k < c->targets.n; k++) {
        int64_t limits = 0;
        for (int64_t i = 0; i < train->n; i++)
            limits += st_dataset_is_limit(train->d, train->at[i], k);
        pl_event_add(env, PL_INFO, "%s: learned from %lld values and %lld limits; errors and intervals are those of values alone",
                     st_train_target(c)[k].name, (long long)values_of(train, k), (long long)limits);
    }
    if (train->d->n_untested > 0)
        pl_event_add(env, PL_INFO, "%lld limits of held-out molecules are not used", (long long)train->d->n_untested);
    if (train->d->n_contrary > 0)
        pl_event_add(env, PL_WARN, "left out: %lld limits that contradict each other, such as >10 and <5 of one molecule",
                     (long long)train->d->n_contrary);
}

/* Targets that no held-out molecule has, where there are some. */
static void gaps_tell(pl_env *env, const st_train_conf *c, const st_samples *valid, const st_samples *test)
{
    for (int32_t k = 0; k < c->targets.n; k++) {
        const char *name = st_train_target(c)[k].name;
        if (valid->n > 0 && values_of(valid, k) == 0 && st_family_may_have_network(c))
            pl_event_add(env, PL_WARN, "%s: no validation molecule has it, so the best epoch is chosen without it", name);
        if (test->n > 0 && values_of(test, k) == 0)
            pl_event_add(env, PL_WARN, "%s: no test molecule has it, so its error is not known", name);
    }
}

void st_targets_tell(pl_env *env, const st_train_conf *c, const st_samples *train, const st_samples *valid, const st_samples *test)
{
    if (c->targets.n > 1)
        gaps_tell(env, c, valid, test);
    if (train->d->limits)
        limits_tell(env, c, train);
}

void st_targets_fill(st_samples *s, const nn_model_file *m, const st_class_weight *weight)
{
    const int32_t n = s->d->n_targets;

    for (int64_t i = 0; i < s->samples.n; i++)
        for (int32_t k = 0; k < n; k++) {
            const nn_scale *scale = &m->target[k].scale;
            s->target[i * n + k] = (float)((rest_of(s, i, k, scale) - scale->mean) / scale->stdev); /* NaN stays NaN */
            s->target[i * n + k] = class_weighed(s->target[i * n + k], &weight[k]);
            if (s->high != NULL)
                limits_fill(s, i, k, scale);
        }
}
