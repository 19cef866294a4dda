/* SPDX-License-Identifier: Apache-2.0 */
/* The labels that existing models are compared with, before a run. */
#include <stdio.h>
#include <string.h>

#include "chem/records/relation.h"
#include "stages/database/measured.h"
#include "stages/steps/dataset/classes.h"
#include "stages/steps/ingest/label_scan.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/score/evaluate_models.h"
#include "stages/steps/train/score_models.h"

static const st_evaluate_conf *conf_of(const pl_step *step) { return step->conf; }

const st_evaluate_target *st_evaluate_named(const st_evaluate_conf *c, const char *name)
{
    const st_evaluate_target *t = c->targets.items;

    for (int32_t k = 0; k < c->targets.n; k++)
        if (strcmp(t[k].name, name) == 0)
            return &t[k];
    return NULL;
}

/* With each label of the workflow that target `name` of a model is compared with. */
typedef void target_fn(void *ctx, const st_evaluate_target *said, const char *name, const char *unit);

/* false: no memory. */
static bool for_targets(const pl_workflow *wf, const pl_step *step, target_fn *each, void *ctx)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    const char *name[NN_TARGETS_MAX], *unit[NN_TARGETS_MAX];
    bool good = mem != NULL;
    st_model_list l = { 0 };

    if (good)
        st_model_list_fill(&l, wf, &conf_of(step)->models, mem);
    for (int k = 0; k < l.n; k++) {
        const int32_t n = nn_model_target_names(name, unit, l.path[k], mem);
        good = good && n >= 0;
        for (int32_t i = 0; i < n; i++)
            each(ctx, st_evaluate_named(conf_of(step), name[i]), name[i], unit[i]);
    }
    pl_arena_free(mem);
    return good;
}

static const char *label_of(const st_evaluate_target *said, const char *name)
{
    return said != NULL && said->column != NULL ? said->column : name;
}

typedef struct looking {
    const pl_workflow *wf;
    const pl_step *step;
    pl_problems *problems;
    pl_names done; /* labels and units */
} looking;

/* The tables of values that were added to the library may state another unit. */
static void added_look(const looking *x, const char *label, const char *name, const char *unit)
{
    char added[ST_UNIT_MAX];
    bool by_table;
    pl_error err = { 0 };

    if (st_measured_unit(added, &by_table, x->wf, label, &err) != PL_OK)
        pl_problem_add(x->problems, x->step->node, "%s", err.text);
    else if (by_table && ch_units_contradict(added, unit)) /* of others the property has the unit */
        pl_problem_add(x->problems, x->step->node,
                       "evaluate: the label %s is in %s (`molsieve label`), and the model predicts it in %s: say how to convert, "
                       "targets: [{name: %s, factor: ..}]",
                       label, added, unit, name);
}

/* A column of units may say another one than the model's where the workflow says none. */
static void unit_look(void *ctx, const st_evaluate_target *said, const char *name, const char *unit)
{
    looking *x = ctx;
    const char *label = label_of(said, name);
    char both[PL_NAME_BYTES];

    if ((said != NULL && said->factor != 0) || unit[0] == '\0' || st_label_unit(x->wf, label)[0] != '\0')
        return;
    const bool is_whole = (size_t)snprintf(both, sizeof both, "%s\t%s", label, unit) < sizeof both;
    if (is_whole && pl_names_find(&x->done, both) >= 0)
        return;
    added_look(x, label, name, unit);
    st_label_scan_unit(x->wf, label, unit, x->problems);
    pl_names_add(&x->done, both);
}

void st_evaluate_models_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_evaluate_target *t = conf_of(step)->targets.items;
    looking x = { .wf = wf, .step = step, .problems = problems };

    st_model_list_check(wf, step, &conf_of(step)->models, problems);
    for (int32_t k = 0; k < conf_of(step)->targets.n; k++)
        st_label_check(wf, step, t[k].column != NULL ? t[k].column : t[k].name, problems);
    if (!for_targets(wf, step, unit_look, &x))
        pl_problem_refused(problems, step->node, NULL);
}

static void label_add(void *ctx, const st_evaluate_target *said, const char *name, const char *unit)
{
    (void)unit;
    pl_names_add(ctx, label_of(said, name));
}

void st_evaluate_labels(const pl_workflow *wf, const pl_step *step, pl_names *out)
{
    out->no_memory = !for_targets(wf, step, label_add, out) || out->no_memory;
}
