/* SPDX-License-Identifier: Apache-2.0 */
/* Input files that change while a run reads them: the run is refused or its results are right, and so is the next run. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "chem/records/record.h"
#include "stages/database/schema.h"
#include "stages/registry/registry.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/ingest/read.h"
#include "tests/toy.h"

enum { LINES = 8000, FEW = 400, UNIT = 400, LINE = 80 }; /* 20 units; three quarters of a.smi are more than the reader is ahead */

typedef enum how { TRUNCATED, APPENDED, REPLACED, REWRITTEN } how;

/* A change of a.smi at the commit of one unit. back: at the commit of which it is undone, 0: after the run.
 * cut: at the commit of which the run dies, 0: never. */
typedef struct change {
    how how;
    int64_t at, back, cut;
    bool gzip;
} change;

static struct {
    change c;
    char path[300], aside[320];
    bool changed, undone;
    struct stat was;
    int commits;
} now;

/* ---- the files ---- */

static void put_line(void *to, bool gzip, int i)
{
    char line[LINE + 1];

    (void)snprintf(line, sizeof line, "C%.*s one%07d%*s\n", i % 3, "CC", i, LINE - 16, "");
    if (gzip)
        assert_true(gzputs(to, line) > 0);
    else
        assert_true(fputs(line, to) >= 0);
}

static void put_lines(const char *path, int first, int n, bool gzip)
{
    void *to = gzip ? (void *)gzopen(path, "wb0") : (void *)fopen(path, "w"); /* not packed: as long as the plain one */

    assert_non_null(to);
    for (int i = 0; i < n; i++)
        put_line(to, gzip, first + i);
    assert_int_equal(gzip ? gzclose(to) : fclose(to), 0);
}

static void make_inputs(const char *dir, bool gzip)
{
    char b[300];

    (void)snprintf(now.path, sizeof now.path, "%s/a.smi%s", dir, gzip ? ".gz" : "");
    (void)snprintf(now.aside, sizeof now.aside, "%s.aside", now.path);
    (void)snprintf(b, sizeof b, "%s/b.smi", dir);
    put_lines(now.path, 0, LINES, gzip);
    put_lines(b, LINES, FEW, false);
}

/* Changes a few letters in the middle, which gives other molecules; a second call undoes it. */
static void flip_letters(void)
{
    char some[4000];
    const struct timespec times[] = { now.was.st_atim, now.was.st_mtim };
    int fd = open(now.path, O_RDWR);

    assert_int_equal(pread(fd, some, sizeof some, now.was.st_size * 3 / 4), sizeof some);
    for (size_t i = 0; i < sizeof some; i++)
        if (some[i] == 'C' || some[i] == 'N')
            some[i] = some[i] == 'C' ? 'N' : 'C';
    assert_int_equal(pwrite(fd, some, sizeof some, now.was.st_size * 3 / 4), sizeof some);
    assert_int_equal(futimens(fd, times), 0);
    (void)close(fd);
}

static void copy(const char *from, const char *to)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_bytes all;
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666); /* into the existing file, in place */

    assert_int_equal(pl_file_read(&all, from, mem, NULL), PL_OK);
    assert_int_equal(write(fd, all.data, all.len), (ssize_t)all.len);
    (void)close(fd);
    pl_arena_free(mem);
}

static void make_change(void)
{
    FILE *f;

    assert_int_equal(stat(now.path, &now.was), 0);
    now.changed = true;
    switch (now.c.how) {
    case TRUNCATED:
        copy(now.path, now.aside);
        assert_int_equal(truncate(now.path, now.was.st_size * 3 / 4 + 5), 0);
        return;
    case APPENDED:
        f = fopen(now.path, "a");
        assert_true(fputs("CCO late\n", f) >= 0 && fclose(f) == 0);
        return;
    case REPLACED:
        assert_int_equal(rename(now.path, now.aside), 0);
        put_lines(now.path, 7, LINES, now.c.gzip);
        return;
    case REWRITTEN: flip_letters(); return;
    }
}

static void undo_change(void)
{
    if (!now.changed || now.undone)
        return;
    now.undone = true;
    if (now.c.how == TRUNCATED)
        copy(now.aside, now.path);
    else if (now.c.how == APPENDED)
        assert_int_equal(truncate(now.path, now.was.st_size), 0);
    else if (now.c.how == REPLACED)
        assert_int_equal(rename(now.aside, now.path), 0);
    else
        flip_letters();
}

/* ---- the runs ---- */

static pl_code commit_and_meddle(void *state, pl_unit *unit, pl_error *err)
{
    now.commits++;
    if (unit->index == now.c.at && !now.changed)
        make_change();
    if (now.c.back > 0 && unit->index == now.c.back)
        undo_change();
    if (now.c.cut > 0 && unit->index == now.c.cut)
        return pl_fail(err, PL_EIO, "cut off");
    return st_read.commit(state, unit, err);
}

/* The run's code and, if it is done, the digests of rows and blocks. */
static pl_code run_flow(const char *dir, const char *text, const pl_stage *const *known, char digest[130], pl_error *err)
{
    const pl_run_opts opts = { .workers = 1, .quiet = true, .command = "run", .known = known };
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_problems problems = { .mem = mem };
    const char *flow = pl_sprintf(mem, "%s/flow.yaml", dir);
    pl_workflow *wf;
    pl_store *s = NULL;
    pl_code code;

    digest[0] = '\0';
    *err = (pl_error){ 0 };
    assert_int_equal(pl_file_write(flow, (pl_bytes){ text, strlen(text) }, NULL), PL_OK);
    wf = pl_workflow_load(flow, NULL, 0, known, &problems, mem);
    assert_non_null(wf);
    code = pl_run(wf, &st_schema, &opts, mem, err);
    if (code == PL_OK) {
        assert_int_equal(pl_store_open_read(&s, wf->storage.results, &st_schema, NULL), PL_OK);
        assert_int_equal(pl_store_digest(s, digest, NULL), PL_OK);
        assert_int_equal(pl_store_features(s, NULL), PL_OK);
        assert_int_equal(pl_store_digest_blocks(s, digest + 65, NULL), PL_OK);
        digest[64] = ' ';
        pl_store_close(s);
    }
    pl_arena_free(mem);
    return code;
}

static pl_code go(const char *dir, const char *workdir, bool gzip, const pl_stage *read, char digest[130], pl_error *err)
{
    const pl_stage *const known[] = { read, NULL };
    char text[300];

    (void)snprintf(text, sizeof text,
                   "format: 1\nname: t\nworkdir: %s\ninputs: [{path: a.smi%s}, {path: b.smi}]\n"
                   "limits: {disk_free_min: 0B}\nstages: {read: {unit: %d}}\n",
                   workdir, gzip ? ".gz" : "", UNIT);
    return run_flow(dir, text, known, digest, err);
}

static void both_runs_are_refused_or_right(const change *c)
{
    pl_stage meddled = st_read;
    pl_error err;
    char dir[256], first[130], second[130], right[130];
    pl_code code;

    memset(&now, 0, sizeof now);
    now.c = *c;
    meddled.commit = commit_and_meddle;
    toy_directory(dir);
    make_inputs(dir, c->gzip);
    assert_int_equal(go(dir, "calm", c->gzip, &st_read, right, &err), PL_OK);
    code = go(dir, "run", c->gzip, &meddled, first, &err);
    assert_true(now.changed);
    if (code == PL_OK ? strcmp(first, right) != 0 : code != PL_EINPUT && (code != PL_EIO || c->cut == 0))
        fail_msg("how %d at %d: first run: code %d: %s", (int)c->how, (int)c->at, (int)code, err.text);
    assert_true(code != PL_EINPUT ||
                strstr(err.text,
                       "was changed while it was read; run again when no program writes to it: it is read again from the start") !=
                    NULL);
    undo_change();
    code = go(dir, "run", c->gzip, &st_read, second, &err);
    if (code != PL_OK || strcmp(second, right) != 0)
        fail_msg("how %d at %d: second run: code %d: %s", (int)c->how, (int)c->at, (int)code, err.text);
    toy_remove(dir);
}

static void changed_while_read_and_restored_before_the_next_run(void **state)
{
    (void)state;
    for (how h = TRUNCATED; h <= REWRITTEN; h++)
        both_runs_are_refused_or_right(&(change){ .how = h });
}

static void changed_in_a_gzip_file_and_restored(void **state)
{
    static const how hows[] = { TRUNCATED, REPLACED, REWRITTEN };

    (void)state;
    for (int i = 0; i < 3; i++)
        both_runs_are_refused_or_right(&(change){ .how = hows[i], .gzip = true });
}

static void changed_and_restored_while_the_run_goes_on(void **state)
{
    (void)state;
    for (how h = TRUNCATED; h <= REWRITTEN; h++)
        both_runs_are_refused_or_right(&(change){ .how = h, .at = 1, .back = h == REWRITTEN ? 17 : 8 });
}

static void changed_then_the_run_dies_and_the_file_is_restored(void **state)
{
    (void)state;
    for (how h = TRUNCATED; h <= REWRITTEN; h++)
        both_runs_are_refused_or_right(&(change){ .how = h, .cut = 18 });
    both_runs_are_refused_or_right(&(change){ .how = REWRITTEN, .cut = 18, .gzip = true });
}

static void what_an_unchanged_file_gave_is_not_read_again(void **state)
{
    pl_stage meddled = st_read;
    pl_error err;
    char dir[256], digest[130];

    (void)state;
    memset(&now, 0, sizeof now);
    now.c = (change){ .at = -1, .cut = 18 };
    meddled.commit = commit_and_meddle;
    toy_directory(dir);
    make_inputs(dir, false);
    assert_int_equal(go(dir, "run", false, &meddled, digest, &err), PL_EIO);
    assert_false(now.changed);
    now.c.cut = now.commits = 0;
    assert_int_equal(go(dir, "run", false, &meddled, digest, &err), PL_OK);
    assert_int_equal(now.commits, (LINES + FEW) / UNIT - 18);
    toy_remove(dir);
}

/* ---- other files that a key names ---- */

static pl_code open_and_add_a_rule(void *state, pl_env *env, pl_error *err)
{
    FILE *f = fopen(now.path, "a");

    assert_true(fputs("[#7] nitrogen\n", f) >= 0 && fclose(f) == 0);
    return st_read.open(state, env, err);
}

static void rules_that_change_after_the_plan_are_refused(void **state)
{
    static const char flow[] = "format: 1\nname: t\nworkdir: run\ninputs: [{path: b.smi}]\nlimits: {disk_free_min: 0B}\n"
                               "stages:\n  read:\n  prepare: {conformers: {source: none}, alerts: {file: a.txt}}\n";
    pl_stage meddled = st_read;
    const pl_stage *const first[] = { &meddled, &st_prepare, NULL }, *const second[] = { &st_read, &st_prepare, NULL };
    char dir[256], b[300], digest[130];
    pl_error err;

    (void)state;
    meddled.open = open_and_add_a_rule;
    toy_directory(dir);
    (void)snprintf(now.path, sizeof now.path, "%s/a.txt", dir);
    (void)snprintf(b, sizeof b, "%s/b.smi", dir);
    assert_int_equal(pl_file_write(b, (pl_bytes){ "CN\nCC\n", 6 }, NULL), PL_OK);
    assert_int_equal(pl_file_write(now.path, (pl_bytes){ "[#8] oxygen\n", 12 }, NULL), PL_OK);
    assert_int_equal(run_flow(dir, flow, first, digest, &err), PL_EINPUT);
    assert_non_null(
        strstr(err.text, "alerts: the rules were changed since the run began; run again when no program writes to their file"));
    assert_int_equal(run_flow(dir, flow, second, digest, &err), PL_OK);
    toy_remove(dir);
}

/* What the script says is the same before and after. */
static pl_code open_and_add_a_remark(void *state, pl_env *env, pl_error *err)
{
    FILE *f = fopen(now.path, "a");

    assert_true(fputs("# remark\n", f) >= 0 && fclose(f) == 0);
    return st_read.open(state, env, err);
}

static void a_script_that_changes_after_the_plan_is_refused(void **state)
{
    static const char flow[] =
        "format: 1\nname: t\nworkdir: run\ninputs: [{path: b.smi}]\nlimits: {disk_free_min: 0B}\n"
        "stages:\n  read:\n  prepare: {conformers: {source: none}}\n  external: {command: [sh, a.sh, '{input}'], files: "
        "[a.sh], input: smiles, output: regex, value: '^y: (.*)', property: y, better: low}\n";
    pl_stage meddled = st_read;
    const pl_stage *const first[] = { &meddled, &st_prepare, &st_external, NULL };
    const pl_stage *const second[] = { &st_read, &st_prepare, &st_external, NULL };
    char dir[256], b[300], digest[130], told[400];
    pl_error err;

    (void)state;
    meddled.open = open_and_add_a_remark;
    toy_directory(dir);
    (void)snprintf(now.path, sizeof now.path, "%s/a.sh", dir);
    (void)snprintf(b, sizeof b, "%s/b.smi", dir);
    assert_int_equal(pl_file_write(b, (pl_bytes){ "CN\nCC\n", 6 }, NULL), PL_OK);
    assert_int_equal(pl_file_write(now.path, (pl_bytes){ "echo y: 1\n", 10 }, NULL), PL_OK);
    assert_int_equal(run_flow(dir, flow, first, digest, &err), PL_EINPUT);
    (void)snprintf(told, sizeof told, "%s was changed since the run began; run again when no program writes to it", now.path);
    assert_non_null(strstr(err.text, told));
    assert_int_equal(run_flow(dir, flow, second, digest, &err), PL_OK);
    toy_remove(dir);
}

#define LEARN(name, y)                                                                                         \
    "format: 1\nname: " name "\nworkdir: " name "\ninputs: [{path: b.csv}]\nlimits: {disk_free_min: 0B}\n"     \
    "stages:\n  read:\n  prepare: {conformers: {source: none}, labels: [" y "]}\n  graph: {edges: topology}\n" \
    "  split: {method: random}\n  train: {family: [gp], targets: [{name: " y "}]}\n  score:\n"

static void table_make(const char *dir)
{
    pl_text text = { 0 };
    char path[300], smiles[32] = "";

    pl_text_add(&text, "smiles,y,z\n");
    for (int i = 0; i < 20; i++) {
        smiles[i] = 'C';
        pl_text_addf(&text, "%s,%d,%d\n", smiles, i, i * i % 7);
    }
    (void)snprintf(path, sizeof path, "%s/b.csv", dir);
    assert_int_equal(pl_file_write(path, (pl_bytes){ pl_text_str(&text), text.len }, NULL), PL_OK);
    pl_text_free(&text);
}

static pl_code open_and_change_the_model(void *state, pl_env *env, pl_error *err)
{
    copy(now.aside, now.path);
    return st_read.open(state, env, err);
}

static void a_model_that_changes_after_the_plan_is_refused(void **state)
{
    static const char flow[] = "format: 1\nname: t\nworkdir: run\ninputs: [{path: b.csv}]\nlimits: {disk_free_min: 0B}\n"
                               "models: {m: {path: one/models/one.safetensors}}\n"
                               "stages:\n  read:\n  prepare: {conformers: {source: none}}\n  graph: {edges: topology}\n  score:\n";
    pl_stage meddled = st_read;
    const pl_stage *const all[] = { &st_read, &st_prepare, &st_graph, &st_split, &st_train, &st_score, NULL };
    const pl_stage *const changed[] = { &meddled, &st_prepare, &st_graph, &st_score, NULL };
    char dir[256], digest[130], told[400];
    pl_error err;

    (void)state;
    meddled.open = open_and_change_the_model;
    toy_directory(dir);
    table_make(dir);
    (void)snprintf(now.path, sizeof now.path, "%s/one/models/one.safetensors", dir);
    (void)snprintf(now.aside, sizeof now.aside, "%s/other/models/other.safetensors", dir);
    assert_int_equal(run_flow(dir, LEARN("one", "y"), all, digest, &err), PL_OK);
    assert_int_equal(run_flow(dir, LEARN("other", "z"), all, digest, &err), PL_OK);
    assert_int_equal(run_flow(dir, flow, changed, digest, &err), PL_EINPUT);
    (void)snprintf(told, sizeof told, "%s was changed since the run began; run again when no program writes to it", now.path);
    assert_non_null(strstr(err.text, told));
    assert_int_equal(run_flow(dir, flow, all, digest, &err), PL_OK);
    toy_remove(dir);
}

static pl_code score_and_remove_properties(void *worker, pl_unit *unit, pl_error *err)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(now.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DELETE FROM property", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return st_score.work(worker, unit, err);
}

static void scores_of_a_removed_property_are_not_stored(void **state)
{
    pl_stage meddled = st_score;
    const pl_stage *const all[] = { &st_read, &st_prepare, &st_graph, &st_split, &st_train, &meddled, NULL };
    char dir[256], digest[130];
    pl_error err;

    (void)state;
    meddled.work = score_and_remove_properties;
    toy_directory(dir);
    table_make(dir);
    (void)snprintf(now.path, sizeof now.path, "%s/one/results.db", dir);
    assert_int_equal(run_flow(dir, LEARN("one", "y"), all, digest, &err), PL_EDATA);
    assert_non_null(strstr(err.text,
                           "one/results.db: the row of this run, its stage, a property or a model was removed while scores "
                           "were stored; run again with --from score"));
    toy_remove(dir);
}

/* ---- the hash is that of the bytes read ---- */

static void hash_whole(const char *path, const char *format, char out[65], int64_t *n)
{
    const ch_reader_opts opts = { .hash = true, .smiles_later = true };
    ch_reader *r;
    ch_record rec;
    bool more = true;

    assert_int_equal(ch_reader_open(&r, path, format, &opts, NULL), PL_OK);
    while (more)
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_int_equal(ch_reader_hash(r, true, n, out, NULL), PL_OK);
    ch_reader_close(r);
}

/* Every format reads the file to its end, and bytes that are read twice are hashed once. */
static void a_reader_hashes_each_byte_of_its_file_once(void **state)
{
    static const char *const formats[] = { "smi", "sdf", "mol2", "xyz", "pdb", "csv", "cif", "inchi", "cml", "qm9bin" };
    static const char *const texts[] = { "",
                                         "C\n",
                                         ("\xFF\xFE"
                                          "C\0\n\0"),
                                         "3\nx\nC 0 0 0\nno\n2\ny\nH 0 0 0\nH 0 0 1\n",
                                         "QM9BIN01 and no more",
                                         "\x1f\x8b\x08 no gzip" };
    char dir[256], path[300], want[65], got[65];
    int64_t n;

    (void)state;
    toy_directory(dir);
    for (size_t t = 0; t <= sizeof texts / sizeof *texts; t++) {
        const bool last = t == sizeof texts / sizeof *texts;
        struct stat at;
        (void)snprintf(path, sizeof path, "%s/in", dir);
        if (last)
            put_lines(path, 0, LINES, false);
        else
            assert_int_equal(pl_file_write(path, (pl_bytes){ texts[t], t == 2 ? 6 : strlen(texts[t]) }, NULL), PL_OK);
        assert_int_equal(pl_sha256_file(path, want, NULL), PL_OK);
        assert_int_equal(stat(path, &at), 0);
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
            hash_whole(path, formats[f], got, &n);
            if (strcmp(want, got) != 0 || n != at.st_size)
                fail_msg("text %d as %s: %lld bytes", (int)t, formats[f], (long long)n);
        }
    }
    toy_remove(dir);
}

static void a_reader_that_goes_on_hashes_what_lies_before(void **state)
{
    const ch_reader_opts opts = { .hash = true };
    char dir[256], path[300], want[65], got[65];
    ch_reader *r;
    ch_record rec;
    bool more = true;
    int64_t n;

    (void)state;
    toy_directory(dir);
    (void)snprintf(path, sizeof path, "%s/a.smi", dir);
    put_lines(path, 0, LINES, false);
    assert_int_equal(pl_sha256_file(path, want, NULL), PL_OK);
    assert_int_equal(ch_reader_open(&r, path, "smi", &opts, NULL), PL_OK);
    assert_int_equal(ch_reader_seek(r, 400000, 5000, 5000, NULL), PL_OK);
    while (more)
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_int_equal(ch_reader_hash(r, true, &n, got, NULL), PL_OK);
    assert_string_equal(want, got);
    ch_reader_close(r);
    toy_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_hashes_each_byte_of_its_file_once),
        cmocka_unit_test(a_reader_that_goes_on_hashes_what_lies_before),
        cmocka_unit_test(changed_while_read_and_restored_before_the_next_run),
        cmocka_unit_test(changed_in_a_gzip_file_and_restored),
        cmocka_unit_test(changed_and_restored_while_the_run_goes_on),
        cmocka_unit_test(what_an_unchanged_file_gave_is_not_read_again),
        cmocka_unit_test(rules_that_change_after_the_plan_are_refused),
        cmocka_unit_test(a_script_that_changes_after_the_plan_is_refused),
        cmocka_unit_test(a_model_that_changes_after_the_plan_is_refused),
        cmocka_unit_test(scores_of_a_removed_property_are_not_stored),
        cmocka_unit_test(changed_then_the_run_dies_and_the_file_is_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
