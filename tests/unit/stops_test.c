/* SPDX-License-Identifier: Apache-2.0 */
/* A stage that is asked to stop says in what it stopped and leaves no file; the runs after it store what one run would have stored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "chem/fingerprint/fingerprint.h"
#include "pipeline/base/stop.h"
#include "small_table.h"
#include "stages/database/schema.h"
#include "stages/registry/registry.h"
#include "stages/steps/rank/rank_parts.h"

/* ---- where the flag is set ---- */

enum { KNOWN_MAX = 40 };
typedef enum place { OPEN, WEIGHED, FINGERPRINT, COUNTED, PLACES } where; /* of a stage; the last three while it ranks */

static struct {
    pl_stage stage;
    pl_code (*open)(void *state, pl_env *env, pl_error *err);
    where place;               /* it is asked to stop at the call of this place and number */
    int at, n[PLACES], n_late; /* calls after that */
    bool is_open;
} asked;

static void met(where place)
{
    if (!asked.is_open)
        return;
    asked.n_late += *pl_stop_flag() != 0;
    if (++asked.n[place] == asked.at && place == asked.place)
        pl_stop_cancel(true);
}

#define MEETS(place, type, name, parameters, arguments) \
    extern type __real_##name parameters;               \
    extern type __wrap_##name parameters;               \
    type __wrap_##name parameters                       \
    {                                                   \
        met(place);                                     \
        return __real_##name arguments;                 \
    }
MEETS(FINGERPRINT, pl_code, ch_fingerprint_of, (ch_fingerprint * out, const ch_mol *mol, pl_arena *mem, pl_error *err),
      (out, mol, mem, err))
MEETS(COUNTED, pl_code, st_rank_count, (st_ranking * s, pl_error *err), (s, err))
MEETS(WEIGHED, void, st_retrieval_count, (st_retrieval * r, double value), (r, value))

/* Whether SQLite asks somebody while it works: a ranking, which does not live longer than its stage. */
static bool is_watched;

void __real_sqlite3_progress_handler(sqlite3 *db, int steps, int (*ask)(void *), void *ctx);
void __wrap_sqlite3_progress_handler(sqlite3 *db, int steps, int (*ask)(void *), void *ctx);
void __wrap_sqlite3_progress_handler(sqlite3 *db, int steps, int (*ask)(void *), void *ctx)
{
    is_watched = ask != NULL;
    __real_sqlite3_progress_handler(db, steps, ask, ctx);
}

static pl_code open_and_ask(void *state, pl_env *env, pl_error *err)
{
    pl_code code = asked.open(state, env, err);

    asked.is_open = true;
    met(OPEN);
    return code;
}

/* All stages; the one of this name, if any, is asked to stop. */
static const pl_stage *const *stages_with(const char *name, where place, int at)
{
    static const pl_stage *known[KNOWN_MAX];

    memset(&asked, 0, sizeof asked);
    asked.place = place;
    asked.at = at;
    for (int i = 0; (known[i] = st_stages[i]) != NULL; i++) {
        assert_true(i + 1 < KNOWN_MAX);
        if (strcmp(st_stages[i]->name, name) == 0) {
            asked.stage = *st_stages[i];
            asked.open = asked.stage.open;
            asked.stage.open = open_and_ask;
            known[i] = &asked.stage;
        }
    }
    return known;
}

/* ---- the runs ---- */

static const char flow[] =
    "format: 1\nworkdir: %s\nseed: 1\ninputs: [{path: in.csv}, {path: again.csv}]\nlimits: {disk_free_min: 0B}\nstages:\n  read: {unit: 9}\n"
    "  prepare: {conformers: {source: none}, labels: [y, z], properties: {y: {unit: u}, z: {task: classification}}}\n"
    "  graph: {edges: topology}\n  split: {method: scaffold, fractions: {train: 0.7, valid: 0.15, test: 0.15}}\n"
    "  train: {targets: [{name: y, unit: u, better: high}], family: [gp]}\n  evaluate: {on: [train, valid, test]}\n  score: {}\n"
    "  rank: {objectives: [{property: y, goal: maximise}], actives: z, where: mw < 900, diversity: {by: similarity, threshold: 0.9}, top: 9}\n"
    "  write: {csv: hits.csv, smi: hits.smi}\n";

static pl_code run_flow(const char *workdir, const pl_stage *const *known, char digest[130], pl_error *err)
{
    const pl_run_opts opts = { .workers = 1, .quiet = true, .command = "run", .known = known };
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_problems problems = { .mem = mem };
    pl_workflow *wf;
    pl_store *s = NULL;
    pl_code code;

    digest[0] = '\0';
    *err = (pl_error){ 0 };
    write_text("flow.yaml", pl_sprintf(mem, flow, workdir));
    wf = pl_workflow_load("flow.yaml", NULL, 0, known, &problems, mem);
    if (wf == NULL || problems.n > 0)
        fail_msg("%s", problems.n > 0 ? problems.list[0].text : "no workflow");
    code = pl_run(wf, &st_schema, &opts, mem, err);
    pl_stop_cancel(false);
    assert_false(is_watched);
    if (code == PL_OK) {
        assert_int_equal(pl_store_open_read(&s, wf->storage.results, &st_schema, NULL), PL_OK);
        assert_int_equal(pl_store_digest(s, digest, NULL), PL_OK);
        pl_store_close(s);
    }
    pl_arena_free(mem);
    return code;
}

/* In the order of the stages: each run goes on where the one before it stopped. */
static const struct {
    const char *stage;
    where place;
    int at;
    const char *says;
} stops[] = {
    { "read", OPEN, 1, "stopped" },
    { "prepare", OPEN, 1, "stopped" },
    { "graph", OPEN, 1, "stopped" },
    { "train", OPEN, 1, "stopped while loading graphs" },
    { "evaluate", OPEN, 1, "stopped while loading graphs" },
    { "score", OPEN, 1, "stopped" },
    { "rank", OPEN, 1, "stopped while ranking" },
    { "rank", WEIGHED, 1, "stopped while ranking" },
    { "rank", FINGERPRINT, 1, "stopped while ranking" },
    { "rank", FINGERPRINT, 20, "stopped while ranking" },
    { "rank", COUNTED, 1, "stopped while ranking" },
    { "write", OPEN, 1, "stopped while writing the hits" },
};

static void a_stage_that_stops_says_in_what_and_the_next_run_goes_on(void **state)
{
    char want[130], is[130];
    toy_folder folder;
    pl_error err;

    (void)state;
    toy_enter(&folder);
    small_table_write("in.csv", "");
    write_text("again.csv", "smiles,y,z\nCO,0,1\n"); /* of the other class than before: neither active nor not */
    if (run_flow("whole", st_stages, want, &err) != PL_OK)
        fail_msg("%s", err.text);
    for (size_t k = 0; k < sizeof stops / sizeof *stops; k++) {
        pl_code code = run_flow("parts", stages_with(stops[k].stage, stops[k].place, stops[k].at), is, &err);
        if (code != PL_ESTOP || strcmp(err.text, stops[k].says) != 0)
            fail_msg("row %d, %s: %d, '%s'", (int)k, stops[k].stage, code, err.text);
        assert_int_equal(asked.n_late, 0);
        assert_int_not_equal(access("parts/hits.csv", F_OK), 0);
        assert_int_not_equal(access("parts/hits.csv.tmp", F_OK), 0);
    }
    if (run_flow("parts", st_stages, is, &err) != PL_OK)
        fail_msg("%s", err.text);
    assert_string_equal(is, want);
    assert_int_equal(access("parts/hits.csv", F_OK), 0);
    toy_leave(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_stage_that_stops_says_in_what_and_the_next_run_goes_on) };

    return cmocka_run_group_tests_name("stops", tests, NULL, NULL);
}
