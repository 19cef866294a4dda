/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of SQLite in a run of three small stages, and in what reads its results, refused in turn: it ends with that error, asks
 * SQLite for nothing more than what ends a run, and the next run gives what it gives otherwise. So is each request for memory of what
 * reads results (those of a run: plan_oom). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "golden/wrapped_sqlite.h"
#include "heap.h"
#include "told.h"
#include "toy.h"
#include "unit/statements.h"

enum { UNITS = 1 };

/* ---- what refuses ---- */

static long countdown;    /* calls until the one that is refused; 0: none */
static bool refused;      /* since the last arm() */
static int n_told;        /* errors since then */
static char which[2000];  /* the statement that was refused */
static char after[20000]; /* those that were asked for afterwards, each once and on a line */

static void note(const char *sql)
{
    if (strstr(after, sql) == NULL && strlen(after) + strlen(sql) + 2 < sizeof after)
        strcat(strcat(after, sql), "\n");
}

static bool refuse(const char *sql)
{
    if (refused)
        note(sql);
    if (countdown <= 0 || --countdown > 0)
        return false;
    (void)snprintf(which, sizeof which, "%s", sql);
    return refused = true;
}

int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **st, const char **rest)
{
    if (!refuse(sql))
        return __real_sqlite3_prepare_v2(db, sql, n, st, rest);
    *st = NULL;
    return SQLITE_IOERR;
}

int __wrap_sqlite3_step(sqlite3_stmt *st) { return refuse(sqlite3_sql(st)) ? SQLITE_IOERR : __real_sqlite3_step(st); }

int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, int (*each)(void *, int, char **, char **), void *ctx, char **told)
{
    return refuse(sql) ? SQLITE_IOERR : __real_sqlite3_exec(db, sql, each, ctx, told);
}

int __wrap_sqlite3_extended_errcode(sqlite3 *db) { return refused ? SQLITE_IOERR : __real_sqlite3_extended_errcode(db); }

/* A second error after the refusal has another text. */
const char *__wrap_sqlite3_errmsg(sqlite3 *db)
{
    if (!refused)
        return __real_sqlite3_errmsg(db);
    return n_told++ == 0 ? "it was refused" : "it was asked for more";
}

static void arm(long nth)
{
    countdown = nth;
    refused = false;
    n_told = 0;
    after[0] = '\0';
}

/* Whether one of the statements of list begins sql. */
static bool is_among(const char *const *list, const char *sql)
{
    for (; *list != NULL; list++)
        if (strncmp(sql, *list, strlen(*list)) == 0)
            return true;
    return false;
}

/* Fails at the first statement of `after` that is not allowed. */
static void only_asked_for(const char *const *allowed, const char *by)
{
    for (char *line = after, *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        if (!is_among(allowed, line))
            fail_msg("after \"%s\" was refused to %s: %s", which, by, line);
    }
}

/* Looks at how one call went that met a refusal. without: statements that it may do without. */
static void judge(pl_code code, const pl_error *err, const char *by, const char *const *without, const char *const *allowed)
{
    if (code == PL_OK && !is_among(without, which))
        fail_msg("%s is well, but was refused: %s", by, which);
    if (code != PL_OK && (code != PL_EIO || strstr(err->text, "it was refused") == NULL || strstr(err->text, strerror(0)) != NULL))
        fail_msg("%s was refused \"%s\" and says %d, \"%s\"", by, which, (int)code, err->text);
    if (code != PL_OK)
        only_asked_for(allowed, by);
}

/* ---- a run ---- */

/* A run that meets the nth call refused, if there are so many, and ends with that error. False: it makes fewer. */
static bool run_refused(toy *t, long nth, const char *by)
{
    static const char *const without[] = { "INSERT INTO event(", "ANALYZE", "PRAGMA wal_checkpoint(",
                                           "UPDATE run SET state=", NULL };
    static const char *const allowed[] = { "ROLLBACK", "INSERT INTO event(", "UPDATE run SET state=", "PRAGMA foreign_keys=ON",
                                           NULL };
    pl_error err = { 0 };

    arm(nth);
    const pl_code code = toy_run(t, 1, &err);
    const bool met = refused;
    countdown = 0;
    refused = false;
    if (met)
        judge(code, &err, by, without, allowed);
    return met;
}

/* A run with another key than all before it, and then again, which goes on where the first ended. False: it makes fewer calls. */
static bool refuse_nth_of_a_run(long nth, bool again, const char *dir)
{
    toy t;

    toy_make(&t, dir, UNITS);
    t.conf[0].fail_every = 1000 + nth;
    const bool met = run_refused(&t, nth, again ? "the run after it" : "a run");
    toy_free(&t);
    return met;
}

static void a_refused_call_ends_the_run_and_the_next_goes_on(void **state)
{
    char dir[256], place[256], clean[130], digest[130];
    int n = 0;
    toy t;

    (void)state;
    toy_directory(place);
    toy_make(&t, place, UNITS);
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    toy_digest(&t, clean);
    toy_free(&t);
    toy_directory(dir);
    while (refuse_nth_of_a_run(n + 1, false, dir)) {
        n++;
        (void)refuse_nth_of_a_run(n, true, dir);
    }
    assert_true(n > 200);
    toy_make(&t, dir, UNITS);
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    assert_true(toy_sound(&t));
    toy_digest(&t, digest);
    assert_string_equal(digest, clean);
    toy_free(&t);
    toy_remove(dir);
    toy_remove(place);
    nothing_is_left_open();
}

static const char *level_of(const pl_step *step, pl_arena *mem)
{
    (void)step, (void)mem;
    return "a level";
}

/* A run whose second unit fails, then one that goes on with it and compares what computed the first. */
static bool refuse_nth_of_the_rest(long nth, const char *dir)
{
    pl_stage square = toy_square;
    bool met = false;

    square.level = level_of;
    for (int rest = 0; rest < 2; rest++) {
        toy t;
        toy_make(&t, dir, 2);
        t.step[1].stage = &square;
        t.conf[0].fail_every = 1000 + nth;
        t.conf[1].fail_at = rest ? 0 : 1;
        if (rest)
            met = run_refused(&t, nth, "the rest of a run");
        else
            assert_int_not_equal(toy_run(&t, 1, NULL), PL_OK);
        toy_free(&t);
    }
    return met;
}

static void a_refused_call_ends_the_rest_of_a_run(void **state)
{
    char dir[256];
    long n = 0;

    (void)state;
    toy_directory(dir);
    while (refuse_nth_of_the_rest(n + 1, dir))
        n++;
    assert_true(n > 100);
    toy_remove(dir);
    nothing_is_left_open();
}

/* ---- what reads results ---- */

typedef pl_code reading(pl_store *s, toy *t, pl_error *err);

static pl_code digests(pl_store *s, toy *t, pl_error *err)
{
    char hex[65];

    (void)t;
    return pl_store_digest(s, hex, err);
}

static pl_code digests_blocks(pl_store *s, toy *t, pl_error *err)
{
    char hex[65];

    (void)t;
    return pl_store_digest_blocks(s, hex, err);
}

static pl_code checks(pl_store *s, toy *t, pl_error *err)
{
    pl_text report = { 0 };
    bool good = false;
    const pl_code code = pl_store_check(s, &good, &report, err);

    (void)t;
    assert_true(code != PL_OK || (good && strstr(pl_text_str(&report), "BAD") == NULL));
    assert_true(code == PL_OK || strstr(which, "row_sum") == NULL || strstr(pl_text_str(&report), "good rows of") == NULL);
    pl_text_free(&report);
    return code;
}

/* A file in the folder; the next call has the same memory. */
static const char *beside(const toy *t, const char *name)
{
    static char path[300];

    (void)snprintf(path, sizeof path, "%s/%s", t->dir, name);
    return path;
}

static pl_code copies(pl_store *s, toy *t, pl_error *err) { return pl_store_copy(s, beside(t, "copy.db"), err); }

static pl_code packs(pl_store *s, toy *t, pl_error *err)
{
    const pl_packed both[] = { { .kind = "number", .key = t->step[0].key, .n = UNITS },
                               { .kind = "square", .key = t->step[1].key, .n = UNITS } };

    return pl_store_pack(s, beside(t, "packed.db"), "0/1", both, 2, t->mem, err);
}

/* A file that `packs` made. */
static pl_code opens_packed(pl_store *s, toy *t, pl_error *err)
{
    const char *shard;
    pl_code code = pl_store_open_read(&s, beside(t, "packed.db"), &toy_schema, err);

    if (code == PL_OK)
        code = pl_store_features(s, err);
    if (code == PL_OK)
        code = pl_store_shard(s, &shard, t->mem, err);
    pl_store_close(s);
    return code;
}

/* Each time there is a copy of the last. */
static pl_code stages_out(pl_store *s, toy *t, pl_error *err)
{
    pl_code code;

    (void)t;
    s->stage_out = true;
    code = pl_store_mark(s, err);
    if (code == PL_OK)
        code = pl_store_stage_out(s, err);
    s->stage_out = false;
    return code;
}

/* On a node that has no features yet. */
static pl_code fetches(pl_store *s, toy *t, pl_error *err)
{
    static const char *const ends[] = { "", "-wal", "-shm" };
    pl_code code;

    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        (void)unlink(pl_sprintf(t->mem, "%s%s", t->wf.storage.features, ends[k]));
    t->wf.storage.stage_out = true;
    code = pl_store_open(&s, &t->wf, &toy_schema, err);
    if (code == PL_OK)
        code = pl_store_features(s, err);
    pl_store_close(s);
    t->wf.storage.stage_out = false;
    return code;
}

static pl_code plans(pl_store *s, toy *t, pl_error *err)
{
    pl_step_plan plan[3];

    return pl_plan_steps(&t->wf, s, plan, t->mem, err);
}

static pl_code explains(pl_store *s, toy *t, pl_error *err)
{
    pl_text out = { 0 };
    const pl_code code = pl_explain(&t->wf, s, "walk", &out, t->mem, err);

    pl_text_free(&out);
    return code;
}

static pl_code prunes(pl_store *s, toy *t, pl_error *err)
{
    pl_store *const others[] = { s, s };
    int64_t n = 0;

    (void)t;
    return pl_store_prune(s, others, 2, &n, err);
}

static pl_code adds(pl_store *s, toy *t, pl_error *err)
{
    pl_env env = { .step = &t->step[2], .store = s, .run_id = 1 };
    pl_code code = pl_failure_add(&env, &(pl_failure){ .record_id = 1, .code = "c", .message = "m" }, err);

    return code == PL_OK ? pl_metric_add(&env, 1, 0.5, "valid", "mae", 1, err) : code;
}

static pl_code marks(pl_store *s, toy *t, pl_error *err)
{
    (void)t;
    s->stage_out = true;
    const pl_code code = pl_store_mark(s, err);
    s->stage_out = false;
    return code;
}

/* s NULL: opens it, for reading or writing. */
static pl_code one_call(pl_store *s, toy *t, bool writes, reading *one, const pl_schema *schema, pl_error *err)
{
    pl_code code;

    if (one != NULL)
        return one(s, t, err);
    code = writes ? pl_store_open(&s, &t->wf, schema, err) : pl_store_open_read(&s, t->wf.storage.results, schema, err);
    if (code == PL_OK)
        code = pl_store_features(s, err);
    pl_store_close(s);
    return code;
}

static const char *const without[] = { "ROLLBACK", "PRAGMA wal_checkpoint(", NULL }; /* of a check that only read, too */
static const char *const allowed[] = { "ROLLBACK", NULL };

/* False: it makes fewer calls. */
static bool refuse_nth(long nth, const char *name, pl_store *s, toy *t, bool writes, reading *one, const pl_schema *schema)
{
    pl_error err = { 0 };

    arm(nth);
    const pl_code code = one_call(s, t, writes, one, schema, &err);
    const bool met = refused;
    countdown = 0;
    refused = false;
    if (met)
        judge(code, &err, name, without, allowed);
    return met;
}

static void refuse_each(toy *t, const char *name, bool writes, reading *one)
{
    pl_store *s = NULL;
    int n = 0;

    if (one != NULL) {
        assert_int_equal(writes ? pl_store_open(&s, &t->wf, &toy_schema, NULL)
                                : pl_store_open_read(&s, t->wf.storage.results, &toy_schema, NULL),
                         PL_OK);
        assert_int_equal(pl_store_features(s, NULL), PL_OK);
        assert_int_equal(one(s, t, NULL), PL_OK); /* what it makes is there then */
    }
    while (refuse_nth(n + 1, name, s, t, writes, one, &toy_schema))
        n++;
    pl_store_close(s);
    assert_true(n > 0);
}

static void a_refused_call_ends_what_reads_the_results(void **state)
{
    char dir[256];
    toy t;

    (void)state;
    toy_directory(dir);
    toy_make(&t, dir, UNITS);
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    refuse_each(&t, "opening to read", false, NULL);
    refuse_each(&t, "opening to write", true, NULL);
    refuse_each(&t, "digest", false, digests);
    refuse_each(&t, "digest of blocks", false, digests_blocks);
    refuse_each(&t, "check", false, checks);
    refuse_each(&t, "copy", false, copies);
    refuse_each(&t, "plan", false, plans);
    refuse_each(&t, "explanation", false, explains);
    refuse_each(&t, "pack", false, packs);
    refuse_each(&t, "opening a packed file", false, opens_packed);
    refuse_each(&t, "prune", true, prunes);
    refuse_each(&t, "copy of the features", true, stages_out);
    refuse_each(&t, "fetching the copy", true, fetches);
    refuse_each(&t, "mark", true, marks);
    refuse_each(&t, "failure and metric", true, adds);
    assert_true(toy_sound(&t));
    refuse_each(&t, "fetching what an older copy has", true, fetches);
    toy_free(&t);
    toy_remove(dir);
    nothing_is_left_open();
}

/* ---- memory ---- */

/* It may do without a request of the heap, such as that of a cache. False: it makes fewer requests. */
static bool refuse_nth_request(long nth, bool in_arena, const char *name, pl_store *s, toy *t, bool writes, reading *one)
{
    pl_error err = { 0 };

    pl_arena_refuse(in_arena ? nth : 0);
    atomic_store(&heap_countdown, in_arena ? 0 : nth);
    const pl_code code = one_call(s, t, writes, one, &toy_schema, &err);
    const bool met = in_arena ? code != PL_OK : atomic_exchange(&heap_countdown, 0) == 0;
    pl_arena_refuse(0);
    if (code != PL_OK && (code != PL_ENOMEM || strstr(err.text, "memory") == NULL || !tells_for_what(err.text)))
        fail_msg("%s had no memory and says %d, \"%s\"", name, (int)code, err.text);
    return met;
}

/* least: requests in arenas, and of the heap. */
static void refuse_memory_of(toy *t, const char *name, bool writes, reading *one, int in_arena, int of_heap)
{
    pl_store *s = NULL;
    int n[2] = { 0 };

    if (one != NULL) {
        assert_int_equal(pl_store_open(&s, &t->wf, &toy_schema, NULL), PL_OK);
        assert_int_equal(pl_store_features(s, NULL), PL_OK);
    }
    while (refuse_nth_request(n[0] + 1, true, name, s, t, writes, one))
        n[0]++;
    while (refuse_nth_request(n[1] + 1, false, name, s, t, writes, one))
        n[1]++;
    pl_store_close(s);
    print_message("%s: %d and %d requests\n", name, n[0], n[1]);
    assert_true(n[0] >= in_arena && n[1] >= of_heap);
}

static void refused_memory_ends_what_reads_the_results(void **state)
{
    char dir[256];
    toy t;

    (void)state;
    toy_directory(dir);
    toy_make(&t, dir, UNITS);
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    refuse_memory_of(&t, "opening to read", false, NULL, 0, 4);
    refuse_memory_of(&t, "opening to write", true, NULL, 0, 60);
    refuse_memory_of(&t, "digest of blocks", false, digests_blocks, 0, 3);
    refuse_memory_of(&t, "check", false, checks, 0, 5);
    refuse_memory_of(&t, "plan", false, plans, 15, 0);
    refuse_memory_of(&t, "explanation", false, explains, 20, 3);
    refuse_memory_of(&t, "pack", false, packs, 3, 60);
    refuse_memory_of(&t, "shard of a packed file", false, opens_packed, 1, 4);
    assert_true(toy_sound(&t));
    toy_free(&t);
    toy_remove(dir);
    nothing_is_left_open();
}

/* ---- what makes results, and reads those of an older version ---- */

static const char *const up[] = { NULL, "CREATE TABLE extra(x)", "CREATE TABLE more(y)" };
static const pl_added added[] = { { "number", "half REAL", 2 }, { "number", "third REAL", 3 }, { NULL, NULL, 0 } };
static const char *const docs[][4] = { { "number", "value", "", "a number" },
                                       { "number", "half", "", "its half" },
                                       { "extra", "x", "", "new" },
                                       { NULL, NULL, NULL, NULL } };

static void removed(const toy *t)
{
    static const char *const ends[] = { "", "-wal", "-shm", ".format1" };

    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        (void)unlink(pl_sprintf(t->mem, "%s%s", t->wf.storage.results, ends[k]));
    (void)unlink(t->wf.storage.features);
}

static void opened(toy *t, const pl_schema *schema)
{
    pl_store *s = NULL;

    assert_int_equal(pl_store_open(&s, &t->wf, schema, NULL), PL_OK);
    pl_store_close(s);
}

/* was: the schema of the results that are there; NULL: there are none. */
static void refuse_each_new(toy *t, const char *name, bool writes, const pl_schema *was, const pl_schema *is)
{
    int n = -1;
    bool met;

    do {
        removed(t);
        if (was != NULL)
            opened(t, was);
        n++;
        met = refuse_nth(n + 1, name, NULL, t, writes, NULL, is);
    } while (met);
    print_message("%s: %d calls\n", name, n);
    assert_true(n > 10);
}

static void a_refused_call_ends_what_makes_or_converts_results(void **state)
{
    pl_schema three = toy_schema;
    char dir[256];
    toy t;

    (void)state;
    three.version = 3;
    three.migrate = up;
    three.added = added;
    three.docs = docs;
    three.views = "DROP VIEW IF EXISTS v_half; CREATE VIEW v_half AS SELECT value FROM number;";
    toy_directory(dir);
    toy_make(&t, dir, UNITS);
    refuse_each_new(&t, "making", true, NULL, &three);
    refuse_each_new(&t, "migrating", true, &toy_schema, &three);
    refuse_each_new(&t, "reading older results", false, &toy_schema, &three);
    toy_free(&t);
    toy_remove(dir);
    nothing_is_left_open();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_refused_call_ends_the_run_and_the_next_goes_on),
                                        cmocka_unit_test(a_refused_call_ends_the_rest_of_a_run),
                                        cmocka_unit_test(a_refused_call_ends_what_reads_the_results),
                                        cmocka_unit_test(refused_memory_ends_what_reads_the_results),
                                        cmocka_unit_test(a_refused_call_ends_what_makes_or_converts_results) };

    return cmocka_run_group_tests_name("engine, refused calls", tests, NULL, NULL);
}
