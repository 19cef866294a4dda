/* SPDX-License-Identifier: Apache-2.0 */
/* What can be wrong with a choice and with a campaign, before any work. */
#include <string.h>
#include <strings.h>

#include "pipeline/base/file.h"
#include "pipeline/base/text.h"
#include "pipeline/workflow/settings.h"
#include "pipeline/workflow/workflow.h"
#include "stages/expression/expression.h"
#include "stages/expression/row_filter.h"
#include "stages/steps/acquire/acquire_conf.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/condition.h"
#include "stages/steps/ingest/label_scan.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/ingest/read_input.h"
#include "stages/steps/score/score.h"
#include "stages/steps/train/score_models.h"
#include "stages/steps/train/train.h"

enum { FEWEST = 10 }; /* molecules in a first round */

static const char *const ends[] = { "low", "high", "none" }; /* st_target.better */

typedef struct checking {
    const pl_workflow *wf;
    const pl_step *step;
    const st_acquire_conf *c;
    pl_problems *problems;
    pl_arena *mem;
    const st_train_conf *train;    /* NULL: the workflow trains nothing */
    const st_predicted *predicted; /* [n_predicted]; -1: unknown */
    int n_predicted;
} checking;

static const pl_node *at(const checking *x, const char *group, const char *name)
{
    const pl_node *g = group != NULL ? pl_node_get(x->step->node, group) : x->step->node;
    const pl_node *n = pl_node_get(g, name);

    return n != NULL ? n : x->step->node;
}

/* ---- the property ---- */

static void property_check(const checking *x)
{
    const st_predicted *predicted = x->predicted;
    const int n = x->n_predicted;
    const char *name[ST_SCORES_MAX];
    int n_names = 0;
    bool found = x->c->property == NULL;

    for (int k = 0; k < n; k++) {
        bool twice = false;
        for (int i = 0; i < n_names; i++)
            twice = twice || strcmp(name[i], predicted[k].name) == 0;
        found = found || strcmp(predicted[k].name, x->c->property) == 0 || strcmp(predicted[k].own, x->c->property) == 0;
        if (!twice)
            name[n_names++] = predicted[k].name;
    }
    if (n > 0 && !found)
        pl_unknown_name(x->problems, at(x, NULL, "property"), "acquire: property: not scored by this workflow", x->c->property,
                        name, n_names);
    else if (n_names > 1 && x->c->property == NULL)
        pl_problem_add(x->problems, x->step->node, "acquire: property: several are scored; name one");
}

/* ---- the standard deviation ---- */

static bool trains_gp(const checking *x)
{
    const st_family f = st_family_of(x->wf, x->train, 0);

    for (int32_t k = 0; k < f.n; k++)
        if (strcmp(f.kind[k]->name, "gp") == 0)
            return true;
    return false;
}

/* An interval is calibrated on molecules that are held out. */
static bool holds_out(const checking *x)
{
    const pl_step *split = pl_workflow_step(x->wf, "split");
    const pl_node *train = split != NULL ? pl_node_get(pl_node_get(split->node, "fractions"), "train") : NULL;
    double share;

    return train == NULL || train->text == NULL || !pl_parse_real(train->text, &share) || share < 1;
}

static void deviation_check(const checking *x)
{
    const st_strategy by = (st_strategy)x->c->strategy;
    const char *name = st_strategy_names[by];
    const st_sigma from = (st_sigma)x->c->sigma;
    bool gp, several, interval;

    if (x->train == NULL || !st_strategy_is_uncertain(by))
        return;
    if (st_train_classifies(x->train)) {
        if (by != ST_UNCERTAINTY)
            pl_problem_add(
                x->problems, at(x, NULL, "strategy"),
                "acquire: strategy: %s needs a number with a standard deviation, and the target is a class; use greedy, uncertainty "
                "or random",
                name);
        return;
    }
    gp = trains_gp(x);
    several = x->train->members > 1;
    interval = holds_out(x);
    if ((from == ST_SIGMA_GP && !gp) || (from == ST_SIGMA_STDEV && !several) || (from == ST_SIGMA_INTERVAL && !interval) ||
        (from == ST_SIGMA_AUTO && !gp && !several && !interval))
        pl_problem_add(
            x->problems, at(x, NULL, "strategy"),
            "acquire: strategy: %s needs a standard deviation%s%s, which this training does not give: set train.family to [trees, "
            "gp], members above 1 (stdev), or hold molecules out in split (interval); greedy needs none",
            name, from != ST_SIGMA_AUTO ? " from " : "", from != ST_SIGMA_AUTO ? st_sigma_names[from] : "");
}

static void where_check(const checking *x)
{
    pl_error err = { 0 };
    pl_code code = PL_OK;

    if (x->c->where == NULL || !st_condition_check(x->wf, x->step, x->c->where, x->problems))
        return;
    for (int k = 0; k < x->n_predicted && code == PL_OK; k++)
        code = st_row_filter_ambiguous(x->c->where, x->predicted[k].name, &err);
    if (code != PL_OK)
        st_expression_problem(x->problems, at(x, NULL, "where"), "acquire", 0, &err);
}

/* ---- the campaign ---- */

/* The answers must not be learned before they are asked for. */
static void answers_hidden_check(const checking *x, const char *label)
{
    const pl_step *prepare = pl_workflow_step(x->wf, "prepare");

    for (int32_t i = 0; prepare != NULL && x->c->answers.table != NULL && i < x->wf->inputs.n; i++)
        if (pl_path_is_same(x->c->answers.table, st_input_at(x->wf, i)->path) && st_label_wanted(prepare->conf, label)) {
            pl_problem_add(
                x->problems, at(x, "answers", "table"),
                "acquire: answers.table is an input of this workflow, so all answers would be labels from the start; set "
                "stages.prepare.labels: [none]");
            return;
        }
}

/* Records of the inputs, but no more than `enough` are counted; -1: cannot be told. */
static int64_t records_count(const checking *x, int64_t enough)
{
    const pl_step *read = pl_workflow_step(x->wf, "read");
    int64_t n = 0;

    for (int32_t i = 0; read != NULL && i < x->wf->inputs.n && n < enough; i++) {
        ch_reader *r = NULL;
        bool more = true;
        pl_code code = st_input_open(&r, st_input_at(x->wf, i), read->conf, NULL, NULL);
        const bool ours = code == PL_OK && ch_format_is_ours(ch_reader_format(r));
        while (code == PL_OK && ours && more && n < enough) {
            ch_record record;
            code = ch_reader_next(r, &record, &more, NULL);
            n += more;
        }
        ch_reader_close(r);
        if (!ours || code != PL_OK)
            return -1;
    }
    return read != NULL ? n : -1;
}

static void budget_check(const checking *x)
{
    const st_acquire_conf *c = x->c;
    const int64_t by_rounds = c->rounds > 0 ? st_acquire_first_count(c) + (c->rounds - 1) * c->count : 0;
    const int64_t most = c->calls > 0 && (by_rounds == 0 || c->calls < by_rounds) ? c->calls : by_rounds;
    int64_t n;

    if (c->rounds == 0 && c->calls == 0 && !(c->hours > 0) && c->patience == 0)
        pl_problem_add(x->problems, at(x, "campaign", "rounds"),
                       "acquire: campaign: no end: set rounds, calls, time or no_gain; a limit of 0 is none");
    if (st_acquire_first_count(c) < FEWEST)
        pl_problem_add(x->problems, at(x, "campaign", "first_count"),
                       "acquire: campaign.first_count: a model cannot be trained on %lld molecules; choose %d or more",
                       (long long)st_acquire_first_count(c), (int)FEWEST);
    if (c->calls > 0 && c->calls < st_acquire_first_count(c))
        pl_problem_add(x->problems, at(x, "campaign", "calls"), "acquire: campaign.calls: %lld, but the first round has %lld",
                       (long long)c->calls, (long long)st_acquire_first_count(c));
    n = most > 0 ? records_count(x, most) : -1;
    if (n >= 0 && n < most)
        pl_problem_add(
            x->problems, at(x, "campaign", c->calls > 0 && c->calls == most ? "calls" : "rounds"),
            "acquire: campaign: the library has %lld records, and the budget is %lld molecules; lower calls, rounds or count, or "
            "measure the whole library",
            (long long)n, (long long)most);
}

/* The column of a table with columns: it is there, and once; of IC50 and ic50 that which is written so. */
static void column_check(const checking *x, const char *column, const char *const *columns, int n)
{
    const pl_node *where = at(x, "answers", x->c->answers.column != NULL ? "column" : "table");
    int exact = 0, any = 0;

    for (int k = 0; k < n; k++) {
        exact += strcmp(columns[k], column) == 0;
        any += strcasecmp(columns[k], column) == 0;
    }
    if (any == 0)
        pl_unknown_name(x->problems, where, pl_sprintf(x->mem, "acquire: answers: the table has no column %s", column), column,
                        columns, n);
    else if (exact > 1 || (exact == 0 && any > 1))
        pl_problem_add(x->problems, where,
                       "acquire: answers: the table has %d columns called %s: which one? give them different names", any, column);
}

/* As many records as are looked at for labels: a damaged file is told before the library is prepared. */
static pl_code records_read(ch_reader *r, pl_error *err)
{
    ch_record record;
    bool more = true;
    pl_code code = PL_OK;

    for (int64_t k = 0; k < ST_LABELS_LOOKED_AT && code == PL_OK && more; k++)
        code = ch_reader_next(r, &record, &more, err);
    if (code == PL_OK && ch_reader_damage(r) != NULL)
        code = pl_fail(err, PL_EINPUT, "%s", ch_reader_damage(r));
    return code;
}

static void answers_check(const checking *x, const char *label)
{
    ch_reader *r = NULL;
    pl_error err = { 0 };
    pl_code code;
    int n = 0;

    if (x->c->answers.table == NULL)
        return;
    code = ch_reader_open(&r, x->c->answers.table, NULL, &(ch_reader_opts){ .smiles_later = true }, &err);
    if (code == PL_OK) {
        const char *const *columns = ch_reader_columns(r, &n);
        if (n > 0)
            column_check(x, x->c->answers.column != NULL ? x->c->answers.column : label, columns, n);
        code = records_read(r, &err);
    }
    if (code != PL_OK)
        pl_problem_add(x->problems, at(x, "answers", "table"), "acquire: answers.table: %s", err.text);
    ch_reader_close(r);
}

/* Values of another unit would be learned as if they were of this one. */
static void unit_check(const checking *x, int32_t k)
{
    const st_target *t = st_train_target(x->train) + k;
    const pl_node *list = pl_node_get(pl_workflow_step(x->wf, "train")->node, "targets");
    const char *unit = x->c->answers.unit;

    if (unit == NULL || unit[0] == '\0' || t->unit[0] == '\0' || strcmp(unit, t->unit) == 0)
        return;
    if (list == NULL || k >= list->n || pl_node_get(list->item[k], "factor") == NULL)
        pl_problem_add(
            x->problems, at(x, "answers", "unit"),
            "acquire: answers.unit: the answers are in %s, and the target %s in %s: a campaign learns answers as they are; give them "
            "in the unit of the target, or write factor: 1 for it if these are two names of one unit",
            unit, t->name, t->unit);
}

static void target_check(const checking *x)
{
    const st_target *t = st_train_target(x->train);
    const bool any = x->c->goal != ST_GOAL_AUTO || x->c->strategy == ST_UNCERTAINTY || x->c->strategy == ST_RANDOM;

    for (int32_t k = 0; k < x->train->targets.n; k++) {
        if (x->c->property != NULL && strcmp(t[k].name, x->c->property) != 0)
            continue;
        if (t[k].factor != 1)
            pl_problem_add(
                x->problems, at(x, "answers", "table"),
                "acquire: answers: the target has a factor; a campaign learns answers as they are: give them in the unit of the "
                "prediction, and leave factor out");
        unit_check(x, k);
        if (!any && strcmp(ends[t[k].better], "none") == 0)
            pl_problem_add(
                x->problems, at(x, NULL, "goal"),
                "acquire: goal: neither high nor low values of %s are said to be better; set goal, or better of the target",
                t[k].name);
    }
}

/* An answer names a molecule by its structure or title, of which there may be several observations. */
static void inputs_check(const checking *x)
{
    const pl_names *columns = st_columns(x->wf);

    if (columns->n > 0)
        pl_problem_add(
            x->problems, x->step->node,
            "acquire: answers: a model reads columns (%s), so a molecule may be there with several values of them, and an "
            "answer would not say which it belongs to; leave them out",
            columns->name[0]);
}

static void campaign_check(const checking *x)
{
    const char *label = st_acquire_label(x->wf, x->c);

    if (!st_acquire_has_answers(x->c))
        return;
    if (x->c->answers.table != NULL && x->c->answers.workflow != NULL)
        pl_problem_add(x->problems, at(x, "answers", "workflow"), "acquire: answers: table and workflow are given; choose one");
    if (label == NULL) {
        pl_problem_add(
            x->problems, x->step->node,
            "acquire: answers: this workflow has no `train` whose target is the property, so nothing would learn from them");
        return;
    }
    inputs_check(x);
    target_check(x);
    answers_check(x, label);
    answers_hidden_check(x, label);
    budget_check(x);
}

void st_acquire_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const pl_step *train = pl_workflow_step(wf, "train");
    st_predicted predicted[ST_SCORES_MAX];
    checking x = { .wf = wf,
                   .step = step,
                   .c = step->conf,
                   .problems = problems,
                   .mem = pl_arena_new(1 << 13),
                   .train = train != NULL ? train->conf : NULL };

    if (x.mem == NULL) {
        pl_problem_refused(problems, step->node, NULL);
        return;
    }
    x.predicted = predicted;
    x.n_predicted = st_score_properties(wf, predicted, x.mem);
    property_check(&x);
    deviation_check(&x);
    where_check(&x);
    campaign_check(&x);
    pl_arena_free(x.mem);
}
