/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and stages whose n-th call of SQLite, or n-th request for arena memory, is refused, for many n.
 *
 * A command that was refused something fails and tells that error and no later one, or prints what it prints otherwise.
 * tests/golden/refused.txt has how often each does without a call of SQLite, how often it fails without telling why, and
 * whether it calls SQLite again after a refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "golden/command.h"
#include "golden/golden_text.h"
#include "golden/wrapped_sqlite.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/file.h"
#include "toy_folder.h"
#include "unit/statements.h"

/* ---- what refuses ---- */

enum { SQL, MEMORY, KINDS, FIRST = 6 /* requests for memory: of each command itself, before it reads a workflow */ };

static atomic_long countdown[KINDS], later; /* calls until the one that is refused; calls of SQLite since */
static atomic_bool refused, refused_sql;

void *__real_pl_arena_get(pl_arena *mem, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size);

static bool refuse(int kind)
{
    if (kind == SQL && atomic_load(&refused))
        (void)atomic_fetch_add(&later, 1);
    if (atomic_load(&countdown[kind]) <= 0 || atomic_fetch_sub(&countdown[kind], 1) != 1)
        return false;
    atomic_store(&refused, true);
    atomic_store(&refused_sql, kind == SQL);
    return true;
}

void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size)
{
    return refuse(MEMORY) ? NULL : __real_pl_arena_get(mem, n, size);
}

int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **st, const char **rest)
{
    if (!refuse(SQL))
        return __real_sqlite3_prepare_v2(db, sql, n, st, rest);
    *st = NULL;
    return SQLITE_IOERR;
}

int __wrap_sqlite3_step(sqlite3_stmt *st) { return refuse(SQL) ? SQLITE_IOERR : __real_sqlite3_step(st); }

int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, int (*each)(void *, int, char **, char **), void *ctx, char **told)
{
    return refuse(SQL) ? SQLITE_IOERR : __real_sqlite3_exec(db, sql, each, ctx, told);
}

int __wrap_sqlite3_extended_errcode(sqlite3 *db)
{
    return atomic_load(&refused_sql) ? SQLITE_IOERR : __real_sqlite3_extended_errcode(db);
}

const char *__wrap_sqlite3_errmsg(sqlite3 *db) { return atomic_load(&refused_sql) ? "it was refused" : __real_sqlite3_errmsg(db); }

/* ---- all refusals of a command ---- */

typedef struct tally {
    int refused, without, silent; /* silent: failed without telling why */
    long later;
} tally;

/* A run with other settings each time; its threads do not make the same calls each time. */
static bool is_run(const char *words) { return strchr(words, '%') != NULL; }

/* What a command printed; what a run stored. */
static void answer(const char *words, const said *s, pl_text *out)
{
    said top = { 0 };

    if (is_run(words))
        top = say("top run --csv");
    pl_text_add(out, pl_text_str(is_run(words) ? &top.out : &s->out));
    said_free(&top);
}

static void judge(const char *words, const said *got, int status, const char *want, const char *why, long nth, tally *t)
{
    pl_text is = { 0 };

    t->refused++;
    t->without += got->status == status;
    t->silent += got->status != status && strstr(pl_text_str(&got->err), why) == NULL;
    if (got->status == status) {
        answer(words, got, &is);
        if (strcmp(want, pl_text_str(&is)) != 0)
            fail_msg("%s, refusal %ld: status %d, but the answer is\n%s", words, nth, status, pl_text_str(&is));
    }
    pl_text_free(&is);
}

static void arm(int kind, long nth)
{
    atomic_store(&refused, false);
    atomic_store(&refused_sql, false);
    atomic_store(&later, 0);
    for (int k = 0; k < KINDS; k++)
        atomic_store(&countdown[k], k == kind ? nth : 0);
}

static tally sweep(const char *words, int status, const char *want, int kind, long step)
{
    static const char *const why[KINDS] = { "it was refused", "memory" };
    tally t = { 0 };

    for (long nth = 1;; nth += kind == MEMORY && nth < FIRST ? 1 : step) {
        said got;
        bool met;
        arm(kind, nth);
        got = say(words);
        met = atomic_load(&refused);
        t.later += atomic_load(&later);
        arm(KINDS, 0);
        if (met)
            judge(words, &got, status, want, why[kind], nth, &t);
        said_free(&got);
        if (!met)
            return t;
    }
}

/* How often memory is asked for depends on the number of settings and stages. */
static void tally_add(pl_text *text, const char *words, const tally *sql, const tally *memory)
{
    if (memory->silent > 0)
        fail_msg("%s: memory is refused, and not named, %d times", words, memory->silent);
    assert_true(sql->refused > 10 && memory->refused > 1 && memory->without <= memory->refused / 2);
    if (is_run(words))
        assert_true(sql->without < sql->refused / 2);
    else
        pl_text_addf(text, "  SQL: %d without, %d silent, %s\n", sql->without, sql->silent,
                     sql->later > 0 ? "goes on" : "ends at once");
}

static void command_add(pl_text *text, const char *words, const long *step)
{
    said good = say(words);
    pl_text want = { 0 };
    tally sql, memory;

    answer(words, &good, &want);
    sql = sweep(words, good.status, pl_text_str(&want), SQL, step[SQL]);
    memory = sweep(words, good.status, pl_text_str(&want), MEMORY, step[MEMORY]);
    pl_text_addf(text, "%s: status %d\n", words, good.status);
    tally_add(text, words, &sql, &memory);
    said_free(&good);
    pl_text_free(&want);
}

/* ---- which ---- */

static const char input[] =
    "CCO ethanol\nCCN amine\nc1ccccc1O phenol\nCC(=O)O acid\nCCCC butane\nC(x bad\nCCCl chloride\nCC=O aldehyde\n";
static const char workflow[] =
    "format: 1\nworkdir: run\ninputs: [{path: in.smi}]\nlimits: {failures: {max_fraction: 1}, disk_free_min: 0B}\n"
    "models:\n  esol: {path: esol.safetensors}\nstages:\n  read: {unit: 4}\n"
    "  prepare: {conformers: {source: generate}}\n  graph: {edges: bonds}\n  basis: {}\n"
    "  score: {models: [esol]}\n  rank: {objectives: [{property: logS, goal: maximise}], top: 5}\n"
    "  write: {csv: hits.csv, sdf: hits.sdf}\n";

static const struct {
    const char *words;
    long step[KINDS]; /* every how manieth call is refused */
} commands[] = {
    { "top run", { 1, 1 } },
    { "status run", { 1, 1 } },
    { "failures run", { 1, 1 } },
    { "plan w.yaml", { 1, 61 } },
    { "explain w.yaml rank", { 1, 97 } },
    { "export sdf run", { 1, 3 } },
    { "export csv run", { 1, 1 } },
    { "db check run", { 5, 1 } },
    { "db digest run", { 1, 1 } },
    { "db prune w.yaml", { 29, 61 } },
    { "query v_hits run", { 1, 1 } },
    { "report run -o r.html", { 7, 83 } },
    { "run w.yaml -q -j 1 stages.rank.top=%ld", { 13, 41 } },
};

static void every_refusal_ends_a_command_with_that_error(void **state)
{
    toy_folder folder;
    pl_text text = { 0 };
    said s;

    (void)state;
    toy_enter(&folder);
    write_text("in.smi", input);
    write_text("w.yaml", workflow);
    assert_int_equal(symlink(MOLSIEVE_TESTS "/../workflows/models/esol.safetensors", "esol.safetensors"), 0);
    s = say("run w.yaml -q -j 1");
    if (s.status != 0)
        fail_msg("%s", pl_text_str(&s.err));
    said_free(&s);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        double began = (double)clock() / CLOCKS_PER_SEC;
        command_add(&text, commands[i].words, commands[i].step);
        print_message("%s: %.1f s\n", commands[i].words, (double)clock() / CLOCKS_PER_SEC - began);
    }
    toy_leave(&folder);
    nothing_is_left_open();
    golden_check(MOLSIEVE_TESTS "/golden/refused.txt", &text);
}

/* Every request for memory of a check is refused in turn: the verdict stays, or memory is named. */
static void check_refused(const char *words, int status)
{
    bool met = true;

    for (long nth = 1; met; nth++) {
        said got;
        arm(MEMORY, nth);
        got = say(words);
        met = atomic_load(&refused);
        arm(KINDS, 0);
        if (got.status != status && (got.status != 6 || (strstr(pl_text_str(&got.out), "memory") == NULL &&
                                                         strstr(pl_text_str(&got.err), "memory") == NULL)))
            fail_msg("%s, refusal %ld: status %d\n%s%s", words, nth, got.status, pl_text_str(&got.out), pl_text_str(&got.err));
        said_free(&got);
    }
}

static void a_check_without_memory_finds_nothing_good_or_wrong(void **state)
{
    static const char stages[] = "stages:\n  read: {}\n  prepare: {conformers: {source: none}, labels: [y]}\n";
    toy_folder folder;
    char text[400];

    (void)state;
    toy_enter(&folder);
    write_text("bad.csv", "smiles,y\nCC,many\nCO,few\n");
    write_text("good.csv", "smiles,y\nCC,1\nCO,2\n");
    for (int good = 0; good < 2; good++) {
        (void)snprintf(text, sizeof text, "format: 1\nworkdir: none\nseed: &one 1\nworkers: *one\ninputs: [{path: %s.csv}]\n%s",
                       good ? "good" : "bad", stages);
        write_text("labels.yaml", text);
        check_refused("check labels.yaml", good ? 0 : 2);
        check_refused("check labels.yaml --json", good ? 0 : 2);
    }
    toy_leave(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_check_without_memory_finds_nothing_good_or_wrong),
        cmocka_unit_test(every_refusal_ends_a_command_with_that_error),
    };

    return cmocka_run_group_tests_name("commands, refused calls", tests, NULL, NULL);
}
