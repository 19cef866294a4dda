/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/clock.h"
#include "pipeline/base/stop.h"
#include "pipeline/run/run.h"
#include "stages/campaign/campaign.h"
#include "stages/commands/commands.h"
#include "stages/commands/output/run_words.h"
#include "stages/steps/score/score_part.h"

enum { WORDS_MAX = 256 };

static const pl_opt opts[] = { { "--plan", 0, NULL, "print what is asked for and what it takes; do nothing" },
                               { "--jobs", 'j', "N", "threads (all processors)" },
                               { "--max-time", 0, "TIME", "stop cleanly after this time (3h50m); the same command continues" },
                               { "--quiet", 'q', NULL, "only warnings, errors and the table" },
                               { "--parts", 0, "N", "wait for N jobs that score the library in each round: status 75" },
                               { "--part", 0, "K/N", "be one of these jobs: score every N-th unit (auto: task of a job array)" },
                               { "--missing", 0, NULL, "with --parts: only print which parts are waited for, one a line" },
                               { 0 } };

typedef struct going {
    const pl_app *app;
    const pl_args *args;
    pl_workflow *wf;
    st_campaign x;
    double max_time, began; /* seconds; max_time 0: none */
    int32_t parts;          /* jobs that score the library; 0: this one does */
    int jobs;               /* threads; 0: not said */
    bool chosen;            /* the pending round, by the last step */
    bool looked;            /* at what is left of a round */
    pl_arena *mem;
} going;

static bool quiet(const going *g) { return pl_arg(g->args, "--quiet") != NULL; }

/* ---- the table ---- */

static const char *cell(char out[32], double x, const char *empty)
{
    char digits[32];

    (void)snprintf(out, 32, "%s", isfinite(x) ? pl_digits_str(x, 3, digits) : empty);
    return out;
}

static void print_round(const st_campaign *x, const st_round *r, int64_t tried, double best)
{
    char a[32], b[32], c[32], d[32];
    const double share = 100 * r->within90;

    pl_cmd_print("%5lld  %-20s %6lld %7lld  %9s  %9s  %8s  %9s\n", (long long)r->round, r->strategy, (long long)r->tried,
                 (long long)tried, x->is_class ? (snprintf(a, sizeof a, "%lld", (long long)r->n_best), a) : cell(a, r->best, "-"),
                 x->is_class ? (snprintf(b, sizeof b, "%.0f", best), b) : cell(b, best, "-"), cell(c, r->mae, "-"),
                 cell(d, share, "-"));
}

/* Rounds, the best so far, and how good the predictions of each round were when it was chosen. */
static pl_code print_rounds(const st_campaign *x, pl_error *err)
{
    static const char head[] = "%5s  %-20s %6s %7s  %9s  %9s  %8s  %9s\n";
    st_round *r = NULL;
    int64_t n = 0, tried = 0;
    double best = x->is_class ? 0 : NAN;
    pl_code code = st_campaign_rounds(&r, &n, x, err);

    if (code != PL_OK || n == 0)
        return code;
    if (x->is_class)
        pl_cmd_print(head, "round", "strategy", "tried", "in all", "hits", "in all", "MAE", "in 90 %");
    else
        pl_cmd_print(head, "round", "strategy", "tried", "in all", "its best", "best", "MAE", "in 90 %");
    for (int64_t k = 0; k < n; k++) {
        tried += r[k].tried;
        if (x->is_class)
            best += (double)r[k].n_best;
        else if (isnan(best) || (x->low ? r[k].best < best : r[k].best > best))
            best = r[k].best;
        print_round(x, &r[k], tried, best);
    }
    pl_cmd_print("%s%s%s; MAE%s: of the predictions by which a round was chosen\n", x->label, x->unit[0] ? ", " : "", x->unit,
                 x->is_class ? "" : ", in 90 %");
    return PL_OK;
}

/* ---- runs ---- */

/* What is left of --max-time, for one run, as text; NULL: no limit. */
static const char *time_left(const going *g)
{
    const char *left;

    if (!(g->max_time > 0))
        return NULL;
    left = pl_sprintf(g->mem, "%.3fs", fmax(g->max_time - (pl_clock() - g->began), 0.001));
    return left != NULL ? left : "0.001s"; /* without memory it stops at once */
}

/* The options of `run` that both have. */
static void same_options(const going *g, pl_args *run)
{
    for (int i = 0; st_cmd_run.opts[i].name != NULL; i++) {
        const char *name = st_cmd_run.opts[i].name;
        if (strcmp(name, "--jobs") == 0 || strcmp(name, "--quiet") == 0)
            run->value[i] = pl_arg(g->args, name);
        if (strcmp(name, "--max-time") == 0)
            run->value[i] = time_left(g);
    }
}

static int run_until(const going *g, const char *stage)
{
    pl_args run = *g->args;

    run.cmd = &st_cmd_run;
    memset(run.value, 0, sizeof run.value);
    same_options(g, &run);
    for (int i = 0; st_cmd_run.opts[i].name != NULL; i++)
        if (strcmp(st_cmd_run.opts[i].name, "--until") == 0)
            run.value[i] = stage;
    return st_run_command(g->app, &run, "campaign", NULL);
}

/* The workflow of answers, over the molecules of the round. */
static int run_answers(const going *g, const char *folder)
{
    char *word[3];
    pl_args run = { .cmd = &st_cmd_run, .n = 3, .arg = word, .argc = g->args->argc, .argv = g->args->argv };

    if (!st_campaign_words(word, &g->x, folder))
        return pl_cmd_no_memory();
    same_options(g, &run);
    return st_run_command(g->app, &run, "campaign", NULL);
}

/* ---- the scores of the library, by other jobs ---- */

static int parts_refuse(const going *g, const st_score_wait *wait)
{
    pl_text line = { 0 };
    pl_error err = { 0 };

    for (int32_t k = 0; k < wait->n_missing && k < 20; k++)
        pl_text_addf(&line, "%s%d", k > 0 ? " " : "", (int)wait->missing[k]);
    (void)pl_fail(
        &err, PL_EINPUT,
        "%d of %d parts of the scores are not there, and jobs for all were submitted: %s%s; see their logs, then submit the "
        "campaign again",
        (int)wait->n_missing, (int)g->parts, pl_text_str(&line), wait->n_missing > 20 ? " ..." : "");
    pl_text_free(&line);
    return pl_cmd_fail(&err);
}

/* 0: nothing is missing; 75: jobs are to be submitted. */
static int parts_wait(const going *g)
{
    st_score_wait wait;
    pl_error err = { 0 };

    if (st_score_wait_look(&wait, g->wf, g->app->schema, g->parts, g->mem, &err) != PL_OK)
        return pl_cmd_fail(&err);
    if (wait.n_missing == 0)
        return 0;
    if (wait.sent)
        return parts_refuse(g, &wait);
    (void)fprintf(stderr,
                  "the model is trained; %d of %d parts of the scores are to be computed: molsieve campaign %s --part K/%d\n",
                  (int)wait.n_missing, (int)g->parts, g->args->arg[0], (int)g->parts);
    return pl_code_exit(PL_ESTOP);
}

/* Runs to `stage`, or to the end, with the scores of other jobs if there are any. */
static int learn(const going *g, const char *stage)
{
    int status = g->parts > 0 ? run_until(g, "train") : 0;

    if (status == 0 && g->parts > 0)
        status = parts_wait(g);
    if (status == 0)
        status = run_until(g, stage);
    if (status == 0)
        st_score_parts_drop(g->wf, g->parts, g->mem);
    return status;
}

static int parts_print(const going *g)
{
    st_score_wait wait;
    pl_error err = { 0 };

    if (st_score_wait_look(&wait, g->wf, g->app->schema, g->parts, g->mem, &err) != PL_OK)
        return pl_cmd_fail(&err);
    for (int32_t k = 0; k < wait.n_missing; k++)
        pl_cmd_print("%d\n", (int)wait.missing[k]);
    return 0;
}

static int part_run(const going *g)
{
    st_score_part_opts o = { .grace = 25 };
    pl_run_opts workers = { 0 };
    pl_error err = { 0 };
    st_log log = { .max = quiet(g) ? PL_WARN : PL_INFO };
    pl_code code;

    if (pl_shard_parse(&o.part, pl_arg(g->args, "--part"), &err) != PL_OK)
        return pl_cmd_usage(g->args, "--part %s", err.text);
    workers.workers = g->jobs;
    o.workers = pl_workers(g->wf, &workers);
    o.max_time = g->max_time;
    if (st_log_open(&log, g->wf, NULL, &err) != PL_OK)
        return pl_cmd_fail(&err);
    code = st_score_part_run(g->wf, g->app->schema, &o, g->mem, &err);
    st_log_close(&log);
    if (code != PL_OK)
        return pl_cmd_fail(&err);
    if (!quiet(g))
        (void)fprintf(stderr, "part %d of %d is scored\n", (int)o.part.k, (int)o.part.n);
    return 0;
}

/* ---- a round ---- */

/* What was asked for in vain is told, also with --quiet. */
static int say_asked(const going *g, const st_campaign_state *before, int64_t round, int64_t n)
{
    st_campaign_state now;
    pl_error err = { 0 };
    int64_t lost;

    if (st_campaign_look(&now, &g->x, &err) != PL_OK)
        return pl_cmd_fail(&err);
    lost = n - (now.n_values - before->n_values);
    if (!quiet(g))
        (void)fprintf(stderr, "round %lld: %lld molecules asked for\n", (long long)round, (long long)n);
    if (lost > 0)
        pl_cmd_say("round %lld: %lld of %lld molecules have no value; molsieve query v_acquired says why", (long long)round,
                   (long long)lost, (long long)n);
    return 0;
}

static int ask(going *g, const st_campaign_state *s)
{
    const int64_t n = st_campaign_asked(&g->x, s), round = s->ended + 1;
    const char *folder = NULL;
    pl_error err = { 0 };
    int status = 0;

    if (g->x.c->answers.workflow != NULL) {
        if (st_campaign_batch(&folder, &g->x, round, n, &err) != PL_OK ||
            st_campaign_same(&g->x, g->app->stages, folder, &err) != PL_OK)
            return pl_cmd_fail(&err);
        status = run_answers(g, folder);
        if (status == pl_code_exit(PL_ELIMIT)) /* molecules that failed have no value, and cost no more than that */
            status = 0;
    }
    if (status == 0 && st_campaign_answer(&g->x, round, n, folder, &err) != PL_OK)
        return pl_cmd_fail(&err);
    return status == 0 ? say_asked(g, s, round, n) : status;
}

static int choose(going *g, const st_campaign_state *s)
{
    pl_error err = { 0 };
    int status;

    if (s->can_learn)
        return learn(g, "acquire");
    status = run_until(g, "graph");
    if (status == 0 && st_campaign_first(&g->x, &err) != PL_OK)
        return pl_cmd_fail(&err);
    return status;
}

/* Before the rest of a round is asked for: the library and the condition may be others by now. */
static int look_at_rest(going *g, const st_campaign_state *s)
{
    pl_error err = { 0 };
    int64_t n = 0;
    const int status = run_until(g, "graph");

    if (status != 0)
        return status;
    if (st_campaign_take_back(&n, &g->x, &err) != PL_OK)
        return pl_cmd_fail(&err);
    if (n > 0)
        pl_cmd_say("round %lld: %lld of the molecules that were left to ask %s taken back: not in the library any more, or "
                   "acquire.where does not hold",
                   (long long)s->ended + 1, (long long)n, pl_plural(n, "is", "are"));
    return 0;
}

/* One step: trains and chooses, or asks. A choice that an earlier command left is made again by today's settings, labels and library,
 * which costs nothing where these are the same. Only a round of which a part was asked for stays. */
static int step(going *g, const st_campaign_state *s)
{
    const bool asks = s->pending > 0 && (s->begun || g->chosen), looks = asks && s->begun && !g->looked;
    int status;

    g->chosen = !asks;
    if (!looks)
        return asks ? ask(g, s) : choose(g, s);
    status = look_at_rest(g, s);
    g->looked = true;
    return status;
}

/* The last model learns from all answers, and chooses what would be next. */
static int finish(going *g, const st_campaign_state *s, const char *why)
{
    pl_error err = { 0 };
    int status = s->can_learn ? learn(g, NULL) : 0;

    if (status != 0)
        return status;
    if (print_rounds(&g->x, &err) != PL_OK)
        return pl_cmd_fail(&err);
    pl_cmd_print("the campaign is over: %s\nresults: %s\n  molsieve report %s\n  molsieve query v_acquired %s\n", why,
                 g->wf->storage.results, g->wf->storage.results, g->wf->storage.results);
    return 0;
}

static int go(going *g)
{
    st_campaign_state s = { 0 };
    pl_error err = { 0 };
    const char *why = NULL;
    int status = 0;

    while (status == 0 && why == NULL) {
        const double from = pl_clock();
        if (*pl_stop_flag())
            return (pl_cmd_say("stopped by %s; the same command continues", pl_stop_reason()), pl_code_exit(PL_ESTOP));
        if (g->max_time > 0 && pl_clock() - g->began >= g->max_time)
            return (pl_cmd_say("the time of --max-time is over; the same command continues"), pl_code_exit(PL_ESTOP));
        if (st_campaign_look(&s, &g->x, &err) != PL_OK)
            return pl_cmd_fail(&err);
        if (!s.prepared) /* labels that the library has are not known before */
            status = run_until(g, "graph");
        if (s.prepared && st_campaign_end(&why, &g->x, &s, &err) != PL_OK)
            return pl_cmd_fail(&err);
        if (s.prepared && why == NULL)
            status = step(g, &s);
        if (status == 0 && s.prepared && why == NULL && s.pending == 0) {
            if (st_campaign_look(&s, &g->x, &err) != PL_OK)
                return pl_cmd_fail(&err);
            why = s.pending == 0 ? "no molecule is left to choose" : NULL;
        }
        if ((status == 0 || status == pl_code_exit(PL_ESTOP)) && st_campaign_spend(&g->x, pl_clock() - from, &err) != PL_OK)
            return pl_cmd_fail(&err);
    }
    return status == 0 ? finish(g, &s, why) : status;
}

/* ---- the plan ---- */

/* Rounds that the limits of rounds and of calls leave; -1: there is neither. */
static int64_t rounds_left(const st_acquire_conf *c, const st_campaign_state *s)
{
    int64_t by_rounds = c->rounds - s->n_rounds, by_calls = (c->calls - s->tried + c->count - 1) / c->count;

    if (c->calls <= 0)
        return c->rounds > 0 ? by_rounds : -1;
    return c->rounds > 0 && by_rounds < by_calls ? by_rounds : by_calls;
}

static int plan(going *g)
{
    const st_acquire_conf *c = g->x.c;
    st_campaign_state s;
    pl_error err = { 0 };
    const char *why;
    int64_t most = c->calls > 0 ? c->calls : st_acquire_first_count(c) + (c->rounds > 0 ? c->rounds - 1 : 0) * c->count;

    if (st_campaign_look(&s, &g->x, &err) != PL_OK)
        return pl_cmd_fail(&err);
    if (c->calls > 0 && c->rounds > 0 && st_acquire_first_count(c) + (c->rounds - 1) * c->count < most)
        most = st_acquire_first_count(c) + (c->rounds - 1) * c->count;
    if (st_campaign_end(&why, &g->x, &s, &err) != PL_OK)
        return pl_cmd_fail(&err);
    pl_cmd_print("answers: %s\n", c->answers.workflow != NULL ? c->answers.workflow : c->answers.table);
    pl_cmd_print("rounds: the first of %lld molecules, chosen %s; then %lld each by %s\n", (long long)st_acquire_first_count(c),
                 c->first == ST_FIRST_DIVERSE ? "for diversity" : "at random", (long long)c->count, st_strategy_names[c->strategy]);
    if (c->rounds > 0 || c->calls > 0)
        pl_cmd_print("at most %lld molecules are asked for%s\n", (long long)most,
                     c->patience > 0 ? ", or fewer without a gain" : "");
    pl_cmd_print("so far: %lld %s%s, %lld molecules asked for, %lld values, %.0f s\n", (long long)s.n_rounds,
                 pl_plural(s.n_rounds, "round", "rounds"), s.part > 0 ? " and a part of one more" : "", (long long)s.tried,
                 (long long)s.n_values, s.seconds);
    if (s.n_rounds > 1 && rounds_left(c, &s) > 0 && why == NULL)
        pl_cmd_print("the other rounds take about %.0f s at the speed of these\n",
                     s.seconds / (double)s.n_rounds * (double)rounds_left(c, &s));
    if (why != NULL)
        pl_cmd_print("over: %s\n", why);
    return 0;
}

static int check(going *g)
{
    const st_acquire_conf *c = st_acquire_conf_of(g->wf);
    const char *time = pl_arg(g->args, "--max-time"), *parts = pl_arg(g->args, "--parts"), *jobs = pl_arg(g->args, "--jobs");
    pl_problems problems = { .mem = g->mem }, advice = { .mem = g->mem };
    int64_t n = 0, n_jobs = 0;

    if (jobs != NULL && (!pl_parse_int(jobs, &n_jobs) || n_jobs < 1 || n_jobs > 4096))
        return pl_cmd_usage(g->args, "--jobs %s: write a number from 1 to 4096", jobs);
    g->jobs = (int)n_jobs;
    if (parts != NULL && (!pl_parse_int(parts, &n) || n < 1 || n > PL_SHARDS_MAX))
        return pl_cmd_usage(g->args, "--parts %s: write a number from 1 to %d", parts, (int)PL_SHARDS_MAX);
    g->parts = (int32_t)n;
    if (parts == NULL && pl_arg(g->args, "--missing") != NULL)
        return pl_cmd_usage(g->args, "--missing is about the parts of --parts N");
    if (parts != NULL && pl_arg(g->args, "--part") != NULL)
        return pl_cmd_usage(g->args, "--part is one of the jobs that --parts waits for; give one of them");
    if (time != NULL && strcmp(time, "auto") != 0 && (!pl_parse_duration(time, &g->max_time) || !(g->max_time > 0)))
        return pl_cmd_usage(g->args, "--max-time %s: write a time such as 3h50m, or auto", time);
    if (time != NULL && strcmp(time, "auto") == 0) /* of the job, for all runs together */
        g->max_time = st_time_left(-1, g->wf->scheduler.warn);

    if (c == NULL)
        return pl_cmd_usage(g->args, "%s: a campaign needs the stage acquire", g->wf->path);
    if (!st_acquire_has_answers(c))
        return pl_cmd_usage(g->args, "%s: acquire: say where values come from: answers: {table: FILE} or answers: {workflow: FILE}",
                            g->wf->path);
    st_campaign_answers_check(g->wf, g->app->stages, &problems, &advice, g->mem);
    if (problems.n != 0)
        pl_cmd_problems(&problems);
    for (int i = 0; problems.n == 0 && i < advice.n; i++)
        pl_cmd_say("%s", advice.list[i].text);
    return pl_code_exit(pl_problems_code(&problems));
}

/* A signal that comes between two runs stops the campaign as one during a run does. */
static int go_until_signal(going *g)
{
    pl_stop stop;
    int status;

    pl_stop_begin(&stop, 0, 0);
    status = go(g);
    pl_stop_end(&stop);
    return status;
}

static int work(going *g)
{
    if (pl_arg(g->args, "--plan") != NULL)
        return plan(g);
    if (pl_arg(g->args, "--missing") != NULL)
        return parts_print(g);
    return pl_arg(g->args, "--part") != NULL ? part_run(g) : go_until_signal(g);
}

static int run(const pl_app *app, const pl_args *args)
{
    going g = { .app = app, .args = args, .began = pl_clock(), .mem = pl_arena_new(1 << 18) };
    int status;

    g.wf = pl_cmd_load(app, args, g.mem, &status);
    if (g.wf != NULL)
        status = check(&g);
    if (g.wf != NULL && status == 0) {
        st_campaign_make(&g.x, g.wf, app->schema, g.mem);
        status = work(&g);
    }
    pl_arena_free(g.mem);
    return status;
}

const pl_cmd st_cmd_campaign = {
    .name = "campaign",
    .args = "FILE [stage.setting=value ...]",
    .help = "rounds of trying a few molecules, learning, and choosing",
    .about = "FILE is a workflow with the stages train, score and acquire. The library is\n"
             "prepared once. The first round is chosen without a model, at random or for\n"
             "diversity; its values are asked for: looked up in a table (acquire: {answers:\n"
             "{table: ..}}), or scored by another workflow, such as one with an external\n"
             "program (answers: {workflow: ..}). Then the model is trained on all values so\n"
             "far, scores the library, and the stage acquire chooses the next round, until the\n"
             "budget is used (acquire: {campaign: ..}).\n"
             "\n"
             "All rounds are in one results.db: what each chose, why, and what came of it\n"
             "(v_acquired, the report). You can stop it at any moment; the same command goes\n"
             "on and gives the same results.\n"
             "\n"
             "On a cluster `molsieve submit --campaign` runs it as jobs. With --array N there\n"
             "a round ends when its model is trained, N jobs score the library (--part), and\n"
             "the next job goes on (--parts).\n"
             "\n"
             "  molsieve check campaign.yaml\n"
             "  molsieve campaign campaign.yaml --plan\n"
             "  molsieve campaign campaign.yaml\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
