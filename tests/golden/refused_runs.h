/* tests/golden/refused_runs.h - runs of which each place is refused once and again: the run ends with that error, and the next one starts
 * where it must; or what it stores is what it stores otherwise. Include it once, after cmocka.h; main calls count_memory first. */
#ifndef REFUSED_RUNS_H
#define REFUSED_RUNS_H

#include <sqlite3.h>
#include <time.h>

#include "golden/command.h"
#include "golden/refused_places.h"
#include "toy_folder.h"
#include "unit/statements.h"

/* inputs, models, stages */
#define HEAD "format: 1\nworkdir: run\nseed: 1\ninputs: [%s]\n%slimits: {failures: {max_fraction: 1}, disk_free_min: 0B}\nstages:\n"
#define PREPARED                                                                      \
    "  read: {unit: 9}\n  prepare: {conformers: {source: generate}, labels: [y, z], " \
    "properties: {y: {unit: u}, z: {task: classification}}}\n"

#define WHOLE { NULL, NULL }, NULL, NULL

/* A workflow, and a run of it in which some stages do their work again; places of stages before them are refused in another row.
 * `first` makes what `again` needs: as a rule the whole run. */
typedef struct row {
    const char *inputs, *models, *stages, *again;
    int places, without, twice; /* at least; those that it does without in the first and in the second pass, at most */
    const char *first[2], *removed;
    const char *of;          /* the database whose digest is compared; NULL: what run/results.db answers */
    int part, share, shares; /* the part of the test in which a share of its places is refused; of 0 shares all are */
} row;

static inline bool is_wanted(const row *r) { return r->part == part; }

static void answer_add(pl_text *out, const char *words)
{
    said s = say(words);

    pl_text_add(out, pl_text_str(&s.out));
    said_free(&s);
}

/* What it stored. */
static void stored(const row *r, pl_text *out)
{
    static const char *const asked[] = { "top run --csv", "query -f csv evaluation run", "query -f csv acquired run",
                                         "query -f csv split run", "query -f csv score run" };

    if (r->of != NULL) {
        char words[80];
        (void)snprintf(words, sizeof words, "db digest %s", r->of);
        answer_add(out, words);
        assert_true(out->len > 64); /* a digest */
        return;
    }
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++)
        answer_add(out, asked[k]);
    file_read("run/hits.csv", out);
    file_read("run/hits.smi", out);
}

/* Stages that store their rows together with the mark that they are done. */
static void undone_stages_have_no_rows(const char *results)
{
    static const char *const pairs[][2] = { { "split", "split" }, { "rank", "hit" }, { "acquire", "acquired" } };
    sqlite3 *db = NULL;
    int64_t n = 0;

    assert_int_equal(sqlite3_open_v2(results, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        assert_int_equal(pl_db_int(db, &n, NULL,
                                   "SELECT count(*) FROM %s WHERE NOT EXISTS(SELECT 1 FROM stage WHERE name=%Q AND state='done')",
                                   pairs[k][1], pairs[k][0]),
                         PL_OK);
        if (n > 0)
            fail_msg("%s: %lld rows of %s, which is not done", name_of(where), (long long)n, pairs[k][0]);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A file that cannot be read when the workflow is checked is a problem of the workflow; memory that is refused is not. */
static bool is_told_by_check(const said *s) { return s->status == 2 && strcmp(what, "memory") != 0; }

/* A merge lists shards that it cannot use, and why. */
static bool is_told_by_merge(const row *r, const said *s) { return strncmp(r->again, "merge ", 6) == 0 && s->status != 0; }

/* The functions of SQL for shards and for drawings of one molecule lack memory or nothing, and SQLite has no other words for that. */
static bool is_told_by_sql(const row *r, const said *s)
{
    return (r->of != NULL || strstr(r->inputs, "bad.csv") != NULL) && strstr(pl_text_str(&s->err), ".db: out of memory\n") != NULL;
}

/* A file that cannot be read because of what was refused is one of "2 problems with the 2 files". */
static bool is_told_by_files(const row *r, const said *s)
{
    return strstr(r->again, " -o ") != NULL && strstr(pl_text_str(&s->err), " files; nothing was written\n") != NULL &&
           s->status != 0;
}

static bool is_told(const row *r, const said *s)
{
    return is_told_by_files(r, s) || ((strstr(pl_text_str(&s->err), what) != NULL || is_told_by_sql(r, s)) &&
                                      (s->status == 6 || is_told_by_check(s) || is_told_by_merge(r, s)));
}

/* Removes databases, and what SQLite keeps beside them. */
static void databases_remove(const char *names)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
    char list[100], path[120];

    (void)snprintf(list, sizeof list, "%s", names);
    for (char *name = strtok(list, " "); name != NULL; name = strtok(NULL, " "))
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
            (void)snprintf(path, sizeof path, "%s%s", name, ends[k]);
            (void)unlink(path);
        }
}

/* Nothing is half done: of a merge the results are not there. */
static void nothing_is_half_done(const row *r)
{
    const char *results = r->of != NULL ? r->of : "run/results.db";

    if (r->removed != NULL && strstr(r->removed, results) != NULL)
        assert_int_equal(access(results, F_OK), -1);
    else
        undone_stages_have_no_rows(results);
}

/* One run, in which a new place is refused. False: there is none left. */
static bool refuse_one(const row *r, const char *want, int *n_without)
{
    pl_text is = { 0 };
    said s;
    bool met;

    databases_remove(r->removed != NULL ? r->removed : "");
    refusing();
    s = say(r->again);
    atomic_store(&armed, false);
    met = what != NULL;
    if (s.status == 0) {
        stored(r, &is);
        if (strcmp(want, pl_text_str(&is)) != 0)
            fail_msg("%s in %s (%p); the run ends with status 0 and stores\n%s\ninstead of\n%s", what != NULL ? what : "nothing",
                     name_of(where), where, pl_text_str(&is), want);
        n_without[pass] += met;
    } else if (!met || !is_told(r, &s)) {
        fail_msg("%s, %s: status %d\n%s", what != NULL ? what : "nothing", name_of(where), s.status, pl_text_str(&s.err));
    }
    if (met && s.status != 0 && (s.out.len != told[0] || (n_told(&s) != 1 && !is_told_by_merge(r, &s))))
        fail_msg("%s: %s, and more:\n%s%s", name_of(where), what, pl_text_str(&s.out) + told[0], pl_text_str(&s.err) + told[1]);
    if (s.status != 0)
        nothing_is_half_done(r);
    if (!tells_for_what(pl_text_str(&s.err)))
        fail_msg("%s: %s", name_of(where), pl_text_str(&s.err));
    if (met && getenv("SHOW") != NULL)
        print_message("%s %p: %s, status %d\n", name_of(where), where, what, s.status);
    pl_text_free(&is);
    said_free(&s);
    return met;
}

/* Runs what a row finds done. */
static void row_begin(const row *r)
{
    pl_text text = { 0 };

    pl_text_addf(&text, HEAD "%s", r->inputs, r->models, r->stages);
    write_text("w.yaml", pl_text_str(&text));
    pl_text_free(&text);
    toy_remove("run"); /* each run makes the next one a little longer */
    databases_remove("0.db 1.db all.db");
    for (int k = 0; k < 2; k++)
        if (k == 0 || r->first[k] != NULL) {
            said s = say(r->first[k] != NULL ? r->first[k] : "run w.yaml -q -j 1");
            if (s.status != 0)
                fail_msg("%s", pl_text_str(&s.err));
            said_free(&s);
        }
}

static void row_refuse(const row *r)
{
    int n = 0, without[2] = { 0 };
    clock_t began = clock();
    pl_text want = { 0 };

    row_begin(r);
    share = r->share;
    n_shares = r->shares;
    assert_int_equal(leaves_nothing(r->again), 0);
    stored(r, &want);
    while (refuse_one(r, pl_text_str(&want), without))
        n++;
    print_message("%s: %d places, %d and %d without, %.1f s\n", r->again, n, without[0], without[1],
                  (double)(clock() - began) / CLOCKS_PER_SEC);
    assert_true(n >= r->places && without[0] <= r->without + PLACES_MORE && without[1] <= r->twice + PLACES_MORE);
    pl_text_free(&want);
}

#endif
