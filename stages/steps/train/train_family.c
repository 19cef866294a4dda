/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a model besides its network: which there are, and fitting them. */
#include <math.h>
#include <string.h>

#include "models/family/labels.h"
#include "models/family/table.h"
#include "pipeline/base/log.h"
#include "pipeline/base/text.h"
#include "pipeline/run/progress.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/ingest/positions.h"
#include "stages/steps/train/train.h"

enum { NETWORK_FROM = 500 }; /* training molecules; with fewer `auto` leaves the network out */

/* ---- which --------------------------------------------------------------- */

static bool has_word(const st_train_conf *c, const char *word)
{
    const char *const *words = c->family.items;

    for (int32_t k = 0; k < c->family.n; k++)
        if (!strcmp(words[k], word))
            return true;
    return false;
}

static bool is_auto(const st_train_conf *c) { return has_word(c, "auto"); }

bool st_family_may_have_network(const st_train_conf *c) { return c->family.n == 0 || is_auto(c) || has_word(c, "se3"); }

bool st_family_wants(const pl_workflow *wf, const pl_step *step, const char *what)
{
    (void)wf;
    return !strcmp(what, ST_POSITIONS) && st_family_may_have_network(step->conf);
}

/* Whether `auto` takes the kind for n training molecules. */
static bool auto_takes(const st_train_conf *c, const nn_member_kind *kind, int64_t n)
{
    if (!strcmp(kind->name, "forest"))
        return st_train_classifies(c);
    return !strcmp(kind->name, "trees") || (!strcmp(kind->name, "gp") && n <= kind->most);
}

st_family st_family_of(const pl_workflow *wf, const st_train_conf *c, int64_t n)
{
    st_family f = { 0 };

    f.network = is_auto(c) ? n >= NETWORK_FROM && !st_graph_is_flat(wf) : st_family_may_have_network(c);
    f.network_if_better = f.network && is_auto(c);
    for (int k = 0; nn_member_kinds[k] != NULL && f.n < NN_MEMBERS_MAX; k++) {
        const nn_member_kind *kind = nn_member_kinds[k];
        if (kind->averaged && (has_word(c, kind->name) || (is_auto(c) && auto_takes(c, kind, n))))
            f.kind[f.n++] = kind;
    }
    return f;
}

int32_t st_family_fewest(st_family f) { return f.n > 0 ? NN_FEWEST : 2; }

/* ---- check --------------------------------------------------------------- */

static void words_check(const st_train_conf *c, const pl_step *step, pl_problems *problems)
{
    const char *const *words = c->family.items;

    for (int32_t k = 0; k < c->family.n; k++) {
        const nn_member_kind *kind = nn_member_kind_of(words[k]);
        if (strcmp(words[k], "se3") != 0 && strcmp(words[k], "auto") != 0 && (kind == NULL || !kind->averaged))
            pl_problem_add(problems, step->node, "family: %s is not se3, trees, gp, forest or auto", words[k]);
        for (int32_t j = 0; j < k; j++)
            if (!strcmp(words[j], words[k]))
                pl_problem_add(problems, step->node, "family: %s is listed twice", words[k]);
    }
    if (is_auto(c) && c->family.n > 1)
        pl_problem_add(problems, step->node, "family: auto stands alone");
}

void st_family_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_train_conf *c = step->conf;
    const st_family f = st_family_of(wf, c, NETWORK_FROM);

    words_check(c, step, problems);
    for (int32_t k = 0; k < f.n; k++) {
        const char *missing = f.kind[k]->missing();
        if (missing != NULL)
            pl_problem_add(problems, step->node, "family: %s needs %s", f.kind[k]->name, missing);
    }
    if (st_graph_is_flat(wf) && f.network)
        pl_problem_add(
            problems, step->node,
            "a network needs positions, and graphs with edges: topology have none; use edges: radius, bonds, knn or full, "
            "or a family without se3, such as family: [trees, gp]");
    if (c->start != NULL && !st_family_may_have_network(c))
        pl_problem_add(problems, step->node, "start: only a network (family: se3) can start from another model");
}

/* ---- fitting ------------------------------------------------------------- */

/* The training molecules that have target k, and their values as the members learn them. */
typedef struct rows {
    nn_table x;
    double *y, *high; /* high: as in nn_fit_conf */
    const st_class_weight *weight;
    bool limits; /* there are molecules with limits */
} rows;

static pl_code rows_of(rows *out, const nn_table *all, const nn_model_file *m, int32_t k, const st_samples *train, bool limits,
                       pl_arena *mem, pl_error *err)
{
    const int32_t outputs = train->d->n_targets;
    int32_t *at = PL_NEW(mem, int32_t, train->n + 1), n = 0;

    out->y = PL_NEW(mem, double, train->n + 1);
    out->high = limits ? PL_NEW(mem, double, train->n + 1) : NULL;
    if (at == NULL || out->y == NULL || (limits && out->high == NULL))
        return pl_fail(err, PL_ENOMEM, "a training of %lld molecules", (long long)train->n);
    for (int32_t i = 0; i < (int32_t)train->n; i++) {
        const double y = st_dataset_value(train->d, train->at[i], k);
        if (isnan(y) && !(limits && st_dataset_is_limit(train->d, train->at[i], k)))
            continue;
        out->y[n] = m->classifies ? y : (double)train->target[(int64_t)i * outputs + k];
        if (limits)
            out->high[n] = (double)train->high[(int64_t)i * outputs + k];
        at[n++] = i;
    }
    return nn_table_take(&out->x, all, at, n, mem, err);
}

void st_family_limit_say(pl_text *out, const st_family *f, int64_t n)
{
    char most[32];

    for (int32_t i = 0; i < f->n; i++)
        if (f->kind[i]->most > 0 && n > f->kind[i]->most)
            pl_text_addf(out, "; %s learns from at most %s training molecules, an even selection of more", f->kind[i]->name,
                         pl_count_str(f->kind[i]->most, most));
}

/* Every n / most-th molecule, where there are more than the kind takes. */
static pl_code rows_thin(rows *out, const rows *r, const nn_member_kind *kind, const pl_env *env, pl_error *err)
{
    const int32_t n = kind->most;
    int32_t *at = n > 0 && r->x.n > n ? PL_NEW(env->mem, int32_t, n) : NULL;

    *out = *r;
    if (n == 0 || r->x.n <= n)
        return PL_OK;
    out->y = PL_NEW(env->mem, double, n);
    if (at == NULL || out->y == NULL)
        return pl_fail(err, PL_ENOMEM, "a training of %d molecules", (int)n);
    for (int32_t i = 0; i < n; i++) {
        at[i] = (int32_t)((int64_t)i * r->x.n / n);
        out->y[i] = r->y[at[i]];
    }
    return nn_table_take(&out->x, &r->x, at, n, env->mem, err);
}

static bool told_to_stop(void *ctx) { return *((const pl_env *)ctx)->stop != 0; }

/* all: what does not depend on the target. */
static pl_code fit_one(nn_member **out, const nn_member_kind *kind, const nn_model_file *m, int32_t k, const rows *r,
                       const nn_fit_conf *all, const pl_env *env, pl_error *err)
{
    nn_fit_conf conf = *all;
    const char *note;
    rows few;
    pl_error why = { 0 };
    pl_code code = rows_thin(&few, r, kind, env, err);

    if (code != PL_OK)
        return code;
    memcpy(conf.weight, r->weight->of, sizeof conf.weight);
    conf.high = r->high;
    note = pl_sprintf(env->mem, "%s learns %s from %d molecules", kind->name, m->target[k].name, (int)few.x.n);
    if (note != NULL)
        pl_progress_set(env->progress, r->x.n, r->x.n, note);
    if (few.x.n < r->x.n)
        pl_log(PL_WARN, "train     %s learns %s from %d of %d molecules, an even selection: it takes no more", kind->name,
               m->target[k].name, (int)few.x.n, (int)r->x.n);
    if (conf.weight[0] != conf.weight[1] && !kind->weighs)
        pl_log(PL_WARN, "train     %s learns %s without class weights: it has no use for them", kind->name, m->target[k].name);
    if (r->limits && !kind->limits)
        pl_log(PL_WARN, "train     %s learns %s from measured values alone: it has no use for limits", kind->name,
               m->target[k].name);
    code = kind->fit(out, &few.x, few.y, &conf, env->mem, &why);
    if (code == PL_ESTOP)
        return pl_fail(err, code, "%s", why.text);
    if (code == PL_OK)
        pl_log(PL_INFO, "train     %s", kind->describe(*out, env->mem));
    return code != PL_OK ? pl_fail(err, code, "%s for %s: %s", kind->name, m->target[k].name, why.text) : PL_OK;
}

pl_code st_family_fit(nn_model_file *m, const st_family *f, const pl_env *env, const st_samples *train,
                      const st_class_weight *weight, int64_t member, pl_error *err)
{
    const int32_t outputs = train->d->n_targets;
    const st_train_conf *c = env->step->conf;
    const nn_fit_conf conf = { .seed = st_train_seed(env, member),
                               .classifies = m->classifies,
                               .cuda = st_compute_engine(&c->compute) == &nn_engine_cuda,
                               .stop = told_to_stop,
                               .ctx = (void *)(uintptr_t)env };
    nn_member **one = PL_NEW(env->mem, nn_member *, (int64_t)f->n * outputs + 1);
    nn_table all;
    pl_code code;

    m->members = (nn_members){ .outputs = outputs };
    if (f->n == 0)
        return PL_OK;
    code = one != NULL ? st_samples_table(&all, train, env->mem, err) : pl_fail(err, PL_ENOMEM, "a model");
    for (int32_t k = 0; k < outputs && code == PL_OK; k++) {
        rows values = { .weight = &weight[k], .limits = train->high != NULL }, with_limits = values;
        code = rows_of(&values, &all, m, k, train, false, env->mem, err);
        if (code == PL_OK && train->high != NULL)
            code = rows_of(&with_limits, &all, m, k, train, true, env->mem, err);
        for (int32_t i = 0; i < f->n && code == PL_OK; i++)
            code = fit_one(&one[i * outputs + k], f->kind[i], m, k,
                           train->high != NULL && f->kind[i]->limits ? &with_limits : &values, &conf, env, err);
    }
    if (code != PL_OK)
        return code;
    for (int32_t i = 0; i < f->n; i++)
        m->members.at[m->members.n++] = (nn_model_member){ f->kind[i], one + (size_t)i * (size_t)outputs };
    return PL_OK;
}
