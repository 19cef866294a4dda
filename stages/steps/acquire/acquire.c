/* SPDX-License-Identifier: Apache-2.0 */
/* The stage `acquire`: which molecules to try next, as rows with reasons. */
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/run/progress.h"
#include "pipeline/workflow/workflow.h"
#include "stages/database/measured.h"
#include "stages/steps/acquire/acquire_conf.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/condition.h"
#include "stages/steps/ingest/positions.h"

#define AT(member) offsetof(st_acquire_conf, member)
static const pl_field fields[] = {
    { PL_TEXT, "property", AT(property), .help = "the score to go by; needed if several are scored" },
    { PL_CHOICE, "strategy", AT(strategy), .choices = "greedy|ucb|expected_improvement|thompson|uncertainty|random",
      .help =
          "acquisition function, as of `molsieve next`: the prediction, that and beta standard deviations, the expected gain over the "
          "best that was measured, a draw, the standard deviation, or a random number" },
    { PL_INT, "count", AT(count), .dflt = 96, .min = 1, .max = 1000000, .unit = "molecules", .help = "chosen in a round" },
    { PL_CHOICE, "goal", AT(goal), .choices = "auto|maximise|minimise", .help = "which end is wanted; auto: as the property says" },
    { PL_REAL, "beta", AT(beta), .dflt = 2, .min = 0, .max = 1000, .help = "ucb: standard deviations that are added" },
    { PL_CHOICE, "sigma", AT(sigma), .choices = "auto|gp|stdev|interval",
      .help =
          "standard deviation: of the Gaussian process, over models, half-width of the 90 % interval / 1.645, or the first there is" },
    { PL_REAL, "diversity.max_similarity", AT(max_similarity), .dflt = 1, .min = 0, .max = 1,
      .help = "no two of a round with a higher similarity (Tanimoto, ECFP4)" },
    { PL_INT, "diversity.per_scaffold", AT(per_scaffold), .min = 0, .max = 1000000, .unit = "molecules",
      .help = "of one Bemis-Murcko scaffold in a round, at most; a molecule without rings has none; 0: any number" },
    { PL_BOOL, "inside", AT(inside), .help = "only molecules inside of the model's domain" },
    { PL_TEXT, "where", AT(where), .help = "only molecules for which this condition holds, as in rank" },
    { PL_CHOICE, "exclude", AT(exclude), .choices = "tried|measured|none",
      .help = "left out: molecules that were measured or that an earlier round chose; only those that were measured; none" },
    { PL_INT, "seed", AT(seed), .dflt = -1, .min = 0, .max = 1e15, .choices = "auto",
      .help = "of thompson, random and the first round; auto: the workflow's" },
    { PL_PATH, "answers.table", AT(answers.table), .flags = PL_EXISTS | PL_HOW,
      .help =
          "campaign: table with the values of molecules, which a round looks up (a retrospective campaign, or results by hand)" },
    { PL_TEXT, "answers.column", AT(answers.column), .flags = PL_HOW,
      .help = "campaign: column of that table, if not called as the label" },
    { PL_PATH, "answers.workflow", AT(answers.workflow), .flags = PL_EXISTS | PL_HOW,
      .help =
          "campaign: workflow that scores the molecules of a round, such as one with an external program; its inputs are replaced" },
    { PL_TEXT, "answers.property", AT(answers.property), .flags = PL_HOW,
      .help = "campaign: what that workflow scores, if several" },
    { PL_TEXT, "answers.unit", AT(answers.unit), .flags = PL_HOW,
      .help = "campaign: unit of the answers, if not that of the target" },
    { PL_INT, "campaign.rounds", AT(rounds), .dflt = 10, .min = 0, .max = 100000, .flags = PL_HOW,
      .help = "campaign: rounds at most, the first included; 0: no limit" },
    { PL_INT, "campaign.calls", AT(calls), .min = 0, .max = 1e12, .unit = "molecules", .flags = PL_HOW,
      .help = "campaign: molecules tried at most; 0: no limit" },
    { PL_DURATION, "campaign.time", AT(hours), .min = 0, .max = 1e9, .flags = PL_HOW,
      .help = "campaign: time that it works at most, getting answers included; no round begins later; 0s: no limit" },
    { PL_INT, "campaign.no_gain", AT(patience), .min = 0, .max = 100000, .flags = PL_HOW,
      .help = "campaign: ends after this many rounds without a better value; 0: never" },
    { PL_CHOICE, "campaign.first", AT(first), .choices = "random|diverse", .flags = PL_HOW,
      .help = "campaign: how the first round is chosen, if nothing is measured" },
    { PL_INT, "campaign.first_count", AT(first_count), .min = 0, .max = 1000000, .unit = "molecules", .flags = PL_HOW,
      .help = "campaign: chosen in that round; 0: as count" },
    { 0 },
};

static void settle(const pl_workflow *wf, void *conf)
{
    st_acquire_conf *c = conf;

    c->seed = c->seed < 0 ? wf->seed : c->seed;
    if (c->strategy != ST_UCB)
        c->beta = 2;
    if (!st_strategy_is_uncertain((st_strategy)c->strategy))
        c->sigma = ST_SIGMA_AUTO;
}

static bool wants(const pl_workflow *wf, const pl_step *step, const char *what)
{
    (void)wf;
    return strcmp(what, ST_POSITIONS) == 0 && st_condition_is_spatial(((const st_acquire_conf *)step->conf)->where);
}

/* The answers of a campaign are labels that come later. */
static void names(const pl_workflow *wf, const pl_step *step, const char *what, pl_names *out)
{
    const st_acquire_conf *c = step->conf;
    const char *label = strcmp(what, ST_LATER_LABELS) == 0 && st_acquire_has_answers(c) ? st_acquire_label(wf, c) : NULL;

    if (label != NULL)
        pl_names_add(out, label);
}

static pl_code key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                   pl_error *err)
{
    int64_t round = 0;
    pl_code code = store != NULL ? st_acquire_round(&round, store, err) : PL_OK;

    (void)wf;
    (void)step;
    if (code != PL_OK)
        return code;
    *extra_json = pl_sprintf(mem, "{\"round\":%lld}", (long long)round);
    return *extra_json != NULL ? st_measured_key(extra_json, store, NULL, 0, mem, err) : pl_fail(err, PL_ENOMEM, "a key");
}

/* ---- the work ---- */

typedef struct acquire_state {
    pl_env *env;
} acquire_state;

static pl_code open_stage(void *state, pl_env *env, pl_error *err)
{
    (void)err;
    ((acquire_state *)state)->env = env;
    return PL_OK;
}

static void say(pl_env *env, const st_chosen *said, const st_choice *choice, int64_t round)
{
    const char *less = said->n_chosen < choice->n ? ", and no more are left" : "";
    const int64_t others = said->n_outside + said->n_unsure + said->n_where + said->n_twice + said->n_similar + said->n_scaffold;

    pl_event_add(
        env, PL_INFO,
        "round %lld: %lld of %lld molecules chosen by %s of %s%s; left out: %lld measured, %lld chosen before, %lld others",
        (long long)round, (long long)said->n_chosen, (long long)said->n_scored, st_strategy_names[choice->a.by], said->property,
        less, (long long)said->n_measured, (long long)said->n_listed, (long long)others);
}

static pl_code finish(void *state, pl_error *err)
{
    pl_env *env = ((acquire_state *)state)->env;
    const st_acquire_conf *c = env->step->conf;
    st_choice choice = st_acquire_choice(c);
    st_chosen said;
    int64_t round = 0;
    pl_code code = st_acquire_round(&round, env->store, err);

    if (code == PL_OK)
        code = st_acquire_list(c, env->store, round, err);
    if (code == PL_OK)
        code = st_choose(&said, &choice, env->store, env->mem, err);
    if (code == PL_OK)
        code = pl_db_begin(env->store->db, err);
    if (code == PL_OK)
        code = st_acquire_store(env->store, &said, &choice, round, err);
    if (code != PL_OK)
        return code;
    pl_progress_set(env->progress, said.n_chosen, said.n_chosen, NULL);
    say(env, &said, &choice, round);
    return PL_OK;
}

static void close_stage(void *state) { (void)state; /* everything lives in env->mem */ }

static bool reads_blocks(const pl_step *step)
{
    (void)step;
    return false;
}

static const char *const needs[] = { "score", NULL };
static const char *const reset_sql[] = { "DELETE FROM acquired WHERE round>" ST_LAST_ROUND, NULL };

const pl_stage st_acquire = {
    .name = "acquire",
    .help = "choose which molecules to try next",
    .scope = PL_WHOLE,
    .version =
        5, /* 1 numbered the choice from 2; 2 took molecules without rings for one scaffold; 3 chose one InChIKey several times; 4 ordered
              expected improvements of 0 by InChIKey */
    .fields = fields,
    .conf_size = sizeof(st_acquire_conf),
    .state_size = sizeof(acquire_state),
    .needs = needs,
    .reads_blocks = reads_blocks,
    .item = "molecules",
    .settle = settle,
    .names = names,
    .wants = wants,
    .check = st_acquire_check,
    .key = key,
    .open = open_stage,
    .finish = finish,
    .close = close_stage,
    .reset_sql = reset_sql,
};
