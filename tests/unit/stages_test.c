/* SPDX-License-Identifier: Apache-2.0 */
/* The schema and its documents, blocks of records, files that change while they are read, how long a job has. */
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/file.h"
#include "pipeline/store/store_parts.h"
#include "pipeline/store/sums.h"
#include "stages/commands/output/run_words.h"
#include "stages/database/blocks.h"
#include "stages/database/descriptor_columns.h"
#include "stages/database/schema.h"
#include "stages/expression/row_filter.h"
#include "stages/merge/shard_file.h"
#include "stages/steps/dataset/split.h"
#include "stages/steps/ingest/prefilter.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/ingest/read.h"
#include "stages/steps/ingest/record_block.h"
#include "stages/steps/rank/table_columns.h"
#include "toy.h"

static sqlite3 *open_schema(void)
{
    sqlite3 *db = NULL;
    pl_error err = { 0 };

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, pl_engine_sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(pl_schema_create(db, &st_schema, &err), PL_OK);
    assert_int_equal(pl_sums_fill(db, &err), PL_OK);
    return db;
}

static int find_doc(const char *table, const char *column)
{
    int n = 0;

    for (int i = 0; st_schema.docs[i][0] != NULL; i++)
        n += strcmp(st_schema.docs[i][0], table) == 0 && strcmp(st_schema.docs[i][1], column) == 0;
    return n;
}

static void every_column_of_every_table_and_view_has_one_document(void **state)
{
    static const char sql[] = "SELECT s.name, c.name FROM sqlite_schema s, pragma_table_info(s.name) c "
                              "WHERE s.type IN('table','view') AND s.name NOT LIKE 'sqlite_%' ORDER BY 1, c.cid";
    sqlite3 *db = open_schema();
    sqlite3_stmt *st = NULL;
    int columns = 0, docs = 0;

    (void)state;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    for (; sqlite3_step(st) == SQLITE_ROW; columns++) {
        const char *table = (const char *)sqlite3_column_text(st, 0), *column = (const char *)sqlite3_column_text(st, 1);
        if (find_doc(table, column) != 1)
            fail_msg("%s.%s has %d documents", table, column, find_doc(table, column));
    }
    while (st_schema.docs[docs][0] != NULL)
        assert_true(strlen(st_schema.docs[docs++][3]) > 3);
    assert_true(columns > 150);
    assert_int_equal(docs, columns); /* no document is left over */
    sqlite3_finalize(st);
    sqlite3_close(db);
}

static bool meets(const char *condition, const ch_prepared *p)
{
    st_prefilter *keep = NULL;
    pl_error err = { 0 };
    bool yes = false;

    assert_int_equal(st_prefilter_open(&keep, condition, NULL, &err), PL_OK);
    assert_int_equal(st_prefilter_ask(keep, p, &yes, &err), PL_OK);
    st_prefilter_close(keep);
    assert_int_equal(st_row_filter_check(condition, NULL, NULL, &err), PL_OK);
    return yes;
}

static bool is_kept(const char *name, const ch_prepared *p)
{
    char condition[80];

    (void)snprintf(condition, sizeof condition, "%s = 3", name);
    return meets(condition, p);
}

/* A condition meets the values of the molecule that it asks about; what the worker did not do is unknown. */
static void conditions_ask_what_the_worker_did(void **state)
{
    ch_prepared salt = { .smiles = "C[NH3+]",
                         .inchikey = "K",
                         .formula = "CH6N",
                         .removed = "[Cl-]",
                         .n_heavy = 2,
                         .charge = 1,
                         .n_neutralised = 2,
                         .charge_read = -1,
                         .undefined_stereo = 4 };
    ch_prepared pure = { .smiles = "C", .inchikey = "", .formula = "CH4", .removed = "" };

    (void)state;
    assert_true(meets("removed = '[Cl-]' and smiles = 'C[NH3+]' and inchikey = 'K' and formula = 'CH6N'", &salt));
    assert_false(meets("removed is null", &salt));
    assert_true(meets("n_heavy = 2 and charge = 1 and neutralised = -1 and undefined_stereo = 4", &salt));
    assert_true(meets("removed is null and neutralised is null", &pure));
    assert_false(meets("removed = '[Cl-]'", &pure));
}

/* In the schema, its documents, both kinds of conditions, objectives and files. */
static void every_descriptor_is_wherever_molecules_are(void **state)
{
    sqlite3 *db = open_schema();
    pl_error err = { 0 };

    (void)state;
    for (int i = 0; i < CH_N_DESCRIPTORS; i++) {
        const ch_descriptor *d = &ch_descriptors[i];
        ch_prepared p = { .smiles = "C", .inchikey = "", .formula = "CH4", .removed = "" };
        int64_t columns = 0;
        assert_int_equal(pl_db_int(db, &columns, &err,
                                   "SELECT count(*) FROM pragma_table_info('molecule') WHERE name=%Q AND type=%Q", d->name,
                                   d->whole ? "INTEGER" : "REAL"),
                         PL_OK);
        assert_int_equal(columns, 1);
        assert_int_equal(find_doc("v_hits", d->name), d->shown >= CH_SHOWN_HITS);
        assert_non_null(st_row_filter_column(d->name));
        assert_true(st_table_column_is_ours(d->name));
        assert_false(is_kept(d->name, &p));
        p.descriptor[i] = NAN;
        assert_false(is_kept(d->name, &p));
        p.descriptor[i] = 3;
        assert_true(is_kept(d->name, &p));
        assert_true(d->since >= 1 && d->since <= st_schema.version);
    }
    sqlite3_close(db);
}

/* SQL: one molecule. */
#define METHANE                                                                                          \
    "INSERT INTO molecule(mol_id, inchikey, smiles, formula, n_atoms, n_heavy, charge, geometry, unit) " \
    "VALUES(1, '', 'C', 'CH4', 5, 1, 0, 'none', 0);"

/* `next` writes a column acquisition behind the others, `search` query_similarity, and SDF begins with conformer or pose. */
static void a_property_called_like_another_column_is_renamed(void **state)
{
    static const char *const want[] = { "\"acquisition_predicted\"", "\"conformer_predicted\"", "\"pose_predicted\"",
                                        "\"query_predicted_similarity\"" };
    sqlite3 *db = open_schema();
    pl_text sql = { 0 };
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(pl_db_exec(db,
                                METHANE
                                "INSERT INTO property(property_id, name, unit, task, better) VALUES(1, 'acquisition', '', "
                                "'regression', 'high'), (2, 'conformer', '', 'regression', 'high'), (3, 'pose', '', 'regression', "
                                "'high'), (4, 'query', '', 'regression', 'high');"
                                "INSERT INTO score(mol_id, property_id, mean, n_models, similarity) SELECT 1, property_id, 1, 1, 1 "
                                "FROM property",
                                &err),
                     PL_OK);
    assert_int_equal(st_table_columns(db, &sql, &err), PL_OK);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_non_null(strstr(pl_text_str(&sql), want[i]));
    assert_null(strstr(pl_text_str(&sql), "\"acquisition\""));
    assert_null(strstr(pl_text_str(&sql), "\"query_similarity\""));
    pl_text_free(&sql);
    sqlite3_close(db);
}

/* As "gap (eV)" of a model, beside labels of gap in hartree: its unit has a column of its own. */
static void a_unit_behind_a_name_is_in_no_name_of_a_column(void **state)
{
    sqlite3 *db = open_schema();
    pl_text sql = { 0 };
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(pl_db_exec(db,
                                METHANE
                                "INSERT INTO property(property_id, name, unit, task, better) VALUES(1, 'gap (eV)', 'eV', "
                                "'regression', 'high'), (2, 'size (eV)', 'nm', 'regression', 'high'), (3, '(K)', 'K', "
                                "'regression', 'high'), (4, 'mass(u)', 'u', 'regression', 'high');"
                                "INSERT INTO score(mol_id, property_id, mean, n_models) SELECT 1, property_id, 1, 1 FROM property",
                                &err),
                     PL_OK);
    assert_int_equal(st_table_columns(db, &sql, &err), PL_OK);
    assert_non_null(strstr(pl_text_str(&sql), "AS \"gap\", 'eV' AS \"gap_unit\""));
    assert_non_null(strstr(pl_text_str(&sql), "AS \"size (eV)\", 'nm' AS \"size (eV)_unit\""));
    assert_non_null(strstr(pl_text_str(&sql), "AS \"(K)\", 'K' AS \"(K)_unit\""));
    assert_non_null(strstr(pl_text_str(&sql), "AS \"mass(u)\", 'u' AS \"mass(u)_unit\""));
    pl_text_free(&sql);
    sqlite3_close(db);
}

static void every_digest_query_fits_the_schema_and_names_no_row_id(void **state)
{
    sqlite3 *db = open_schema();
    sqlite3_stmt *st;

    (void)state;
    for (int i = 0; st_schema.digest[i][0] != NULL; i++) {
        if (sqlite3_prepare_v2(db, st_schema.digest[i][1], -1, &st, NULL) != SQLITE_OK)
            fail_msg("%s: %s", st_schema.digest[i][0], sqlite3_errmsg(db));
        for (int k = 0; k < sqlite3_column_count(st); k++) {
            const char *name = sqlite3_column_name(st, k);
            size_t n = strlen(name);
            if ((n > 3 && strcmp(name + n - 3, "_id") == 0) || strstr(name, "_utc") != NULL)
                fail_msg("%s reads %s", st_schema.digest[i][0], name);
        }
        sqlite3_finalize(st);
    }
    sqlite3_close(db);
}

/* ---- blocks of records ---- */

static const st_field two_fields[] = { { "gap (eV)", -0.25 }, { "homo", 1e300 } };
static const st_record three[] = {
    { .id = 7, .format = "smi", .text = "CCO ethanol\n", .len = 12 },
    { .id = 8, .format = "sdf", .text = "a\0b", .len = 3, .field = two_fields, .n_fields = 2 },
    { .id = INT64_MAX, .format = "xyz", .text = "", .len = 0 },
};

static bool same_records(const st_record *got, int32_t n)
{
    bool same = true;

    for (int i = 0; i < n && same; i++)
        same = got[i].id == three[i].id && got[i].len == three[i].len && got[i].n_fields == three[i].n_fields &&
               memcmp(got[i].text, three[i].text, three[i].len + 1) == 0;
    return same;
}

static void records_come_back_from_their_block_byte_for_byte(void **state)
{
    pl_arena *mem = pl_arena_new(0);
    st_record *got;
    pl_bytes block;
    int32_t n;

    (void)state;
    assert_int_equal(st_records_pack(&block, three, 3, mem, NULL), PL_OK);
    assert_int_equal(st_records_unpack(&got, &n, block, mem, NULL), PL_OK);
    assert_int_equal(n, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(same_records(got, 3));
        assert_string_equal(got[i].format, three[i].format);
        for (int k = 0; k < got[i].n_fields; k++) {
            assert_string_equal(got[i].field[k].name, three[i].field[k].name);
            assert_true(got[i].field[k].value == three[i].field[k].value);
        }
    }
    assert_int_equal(st_records_pack(&block, NULL, 0, mem, NULL), PL_OK);
    assert_int_equal(st_records_unpack(&got, &n, block, mem, NULL), PL_OK);
    assert_int_equal(n, 0);
    pl_arena_free(mem);
}

enum { HEAD = 16 }; /* of a block: a word, the version, the number of records, their bytes */

static bool damage_is_named(size_t byte, const char *text)
{
    const char *head = byte < 4 ? "not a block of records" : "a block of records of version ";

    return strncmp(text, head, strlen(head)) == 0 || (byte >= 8 && strcmp(text, "the block of records is damaged") == 0);
}

static void any_damage_to_a_block_is_bad_data(void **state)
{
    pl_error err = { 0 };
    pl_arena *mem = pl_arena_new(0);
    pl_bytes block;
    st_record *got;
    int32_t n;

    (void)state;
    assert_int_equal(st_records_pack(&block, three, 3, mem, NULL), PL_OK);
    for (size_t len = 0; len < block.len; len++) {
        unsigned char *copy = malloc(len + 1); /* exact size, so that a sanitizer sees a read beyond the end */
        memcpy(copy, block.data, len);
        assert_int_equal(st_records_unpack(&got, &n, (pl_bytes){ copy, len }, mem, &err), PL_EDATA);
        assert_string_equal(err.text, len < HEAD ? "not a block of records" : "the block of records is damaged");
        free(copy);
    }
    for (size_t bit = 0; bit < 8 * block.len; bit++) {
        unsigned char *copy = malloc(block.len);
        memcpy(copy, block.data, block.len);
        copy[bit / 8] ^= (unsigned char)(1 << bit % 8);
        pl_code code = st_records_unpack(&got, &n, (pl_bytes){ copy, block.len }, mem, &err);
        /* A smaller count gives a shorter list, and some bits of zlib have no meaning; all other damage is found. */
        assert_true(code == PL_EDATA || (code == PL_OK && n <= 3 && same_records(got, n)));
        if (bit < 8 * HEAD && code == PL_EDATA)
            assert_true(damage_is_named(bit / 8, err.text));
        free(copy);
    }
    pl_arena_free(mem);
}

/* ---- what is not whole ---- */

/* Results without any row, in a new folder. */
static pl_store *empty_open(char dir[256], pl_arena *mem)
{
    pl_store *s = NULL;
    pl_workflow *wf = PL_NEW(mem, pl_workflow, 1);

    toy_directory(dir);
    wf->workdir = dir;
    wf->storage.results = pl_sprintf(mem, "%s/results.db", dir);
    wf->storage.features = pl_sprintf(mem, "%s/features.db", dir);
    assert_int_equal(pl_store_open(&s, wf, &st_schema, NULL), PL_OK);
    assert_int_equal(pl_store_features(s, NULL), PL_OK);
    return s;
}

static void a_unit_that_is_lost_is_told_with_its_stage(void **state)
{
    char dir[256];
    pl_arena *mem = pl_arena_new(1 << 16);
    const st_blocks b = { empty_open(dir, mem), "graph", "graph", "key" };
    pl_block block;
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(st_blocks_get(&b, 7, &block, mem, &err), PL_EDATA);
    assert_string_equal(err.text, pl_sprintf(mem, "%s lacks unit 7 of stage graph: run with --from graph", b.store->features_path));
    pl_store_close(b.store);
    pl_arena_free(mem);
    toy_remove(dir);
}

static void a_shard_that_lacks_a_stage_is_not_written(void **state)
{
    pl_step step = { .stage = &st_read, .key = "key" };
    const pl_workflow wf = { .n_steps = 1, .step = &step };
    char dir[256];
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_store *s = empty_open(dir, mem);
    st_shard_file to = { .path = pl_sprintf(mem, "%s/0.db", dir), .shard = { 0, 2 } };
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(st_shard_file_write(&to, s, &wf, mem, &err), PL_EBUG);
    assert_string_equal(err.text, pl_sprintf(mem, "%s is not written: stage read has not begun", to.path));
    assert_int_not_equal(access(to.path, F_OK), 0);
    pl_store_close(s);
    pl_arena_free(mem);
    toy_remove(dir);
}

/* ---- a file that grows ---- */

#define FLOW "format: 1\nname: t\nworkdir: run\ninputs: [{path: a.smi}]\nlimits: {disk_free_min: 0B}\nstages: {read: {}}\n"
static const char *growing;

static pl_code prepare_and_append(void *state, pl_unit *unit, pl_error *err)
{
    FILE *f = fopen(growing, "a");

    (void)fputs("one test\n", f);
    (void)fclose(f);
    return st_prepare.commit(state, unit, err);
}

/* A file that changes during the first of two runs. */
typedef struct change {
    const char *file, *before, *flow, *says, *count; /* says: the first run; count: an SQL query */
    const char *between;                             /* SQL of another program, or NULL */
    const pl_stage *const *known[2];                 /* of the first run and of the second       */
    int64_t rows;                                    /* that it counts after the second; before 0 */
} change;

static void by_another_program(const char *path, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void the_second_run_is_right(const change *c)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_problems problems = { .mem = mem };
    pl_error err = { 0 };
    char dir[256];
    const char *flow;

    toy_directory(dir);
    growing = pl_sprintf(mem, "%s/%s", dir, c->file);
    flow = pl_sprintf(mem, "%s/flow.yaml", dir);
    assert_int_equal(pl_file_write(pl_sprintf(mem, "%s/a.smi", dir), (pl_bytes){ "C one\nCC two\n", 13 }, NULL), PL_OK);
    assert_int_equal(pl_file_write(growing, (pl_bytes){ c->before, strlen(c->before) }, NULL), PL_OK);
    assert_int_equal(pl_file_write(flow, (pl_bytes){ c->flow, strlen(c->flow) }, NULL), PL_OK);
    for (int i = 0; i < 2; i++) {
        pl_run_opts opts = { .workers = 1, .quiet = true, .command = "run", .known = c->known[i] };
        pl_workflow *wf = pl_workflow_load(flow, NULL, 0, c->known[i], &problems, mem);
        pl_store *s = NULL;
        int64_t n = -1;
        assert_non_null(wf);
        assert_int_equal(pl_run(wf, &st_schema, &opts, mem, &err), i ? PL_OK : PL_EINPUT);
        assert_true(i == 1 || strstr(err.text, c->says) != NULL);
        assert_int_equal(pl_store_open_read(&s, wf->storage.results, &st_schema, NULL), PL_OK);
        assert_int_equal(pl_db_int(s->db, &n, NULL, "%s", c->count), PL_OK);
        assert_int_equal(n, i ? c->rows : 0);
        pl_store_close(s);
        if (i == 0 && c->between != NULL)
            by_another_program(wf->storage.results, c->between);
    }
    pl_arena_free(mem);
    toy_remove(dir);
}

static void a_split_file_that_changes_under_its_key_is_refused(void **state)
{
    pl_stage meddled = st_prepare;
    const pl_stage *const known[] = { &st_read, &meddled, &st_split, NULL };

    (void)state;
    meddled.commit = prepare_and_append;
    the_second_run_is_right(&(change){
        .file = "parts.txt",
        .before = "two train\n",
        .says = "parts.txt was changed since the run began; run again when no program writes to it",
        .flow = "format: 1\nname: x\nworkdir: run\ninputs: [{path: a.smi}]\nlimits: {disk_free_min: 0B}\nstages:\n  read:\n"
                "  prepare: {conformers: {source: none}}\n  split: {method: file, path: parts.txt}\n",
        .count = "SELECT count(*) FROM split WHERE part='test'",
        .between = "CREATE INDEX theirs ON molecule(inchikey,smiles)", /* SQLite reads all of the query from it, in its order */
        .known = { known, known },
        .rows = 1 });
}

static pl_code commit_and_append(void *state, pl_unit *unit, pl_error *err)
{
    FILE *f = unit->index == 0 ? fopen(growing, "a") : NULL;

    if (f != NULL) {
        (void)fputs("CCN late\n", f);
        (void)fclose(f);
    }
    return st_read.commit(state, unit, err);
}

static void a_file_that_grows_while_it_is_read_is_read_again(void **state)
{
    pl_stage meddled = st_read;
    const pl_stage *const known[] = { &meddled, NULL }, *const plain[] = { &st_read, NULL };

    (void)state;
    meddled.commit = commit_and_append;
    the_second_run_is_right(&(change){ .file = "a.smi",
                                       .before = "C\nCC\n",
                                       .flow = FLOW,
                                       .says = "a.smi was changed while it was read",
                                       .count = "SELECT count(*) FROM record JOIN stage ON state='done'",
                                       .known = { known, plain },
                                       .rows = 3 });
}

/* ---- a library without molecules ---- */

static void why_a_library_is_empty_is_told_or_the_error_of_its_database(void **state)
{
    static const char *const tables[] = { "failure", "record" };
    pl_store s = { .db = open_schema() };
    const pl_env env = { .store = &s };
    pl_error err = { 0 };
    char want[60];

    (void)state;
    assert_int_equal(st_prepare_fail_empty(&env, &err), PL_EINPUT);
    assert_string_equal(err.text,
                        "none of the 0 records gave a molecule, most often: unknown: ; check `format` of `inputs` and see "
                        "`molsieve failures`");
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        assert_int_equal(pl_db_execf(s.db, &err, "DROP TABLE %s", tables[k]), PL_OK);
        assert_int_equal(st_prepare_fail_empty(&env, &err), PL_EBUG);
        (void)snprintf(want, sizeof want, "no such table: %s", tables[k]);
        assert_non_null(strstr(err.text, want));
    }
    assert_int_equal(sqlite3_close(s.db), SQLITE_OK);
}

/* ---- how long a job has ---- */

/* Two messages of each level, on standard error and in the file. */
static void logged(st_log log, const char *on_stderr, const char *in_file)
{
    char path[] = "/tmp/molsieve_log_XXXXXX", got[2][1000];
    const pl_workflow wf = { .workdir = "/nowhere", .storage = { .results = "/nowhere/r.db", .features = "/nowhere/f.db" } };
    int kept = dup(STDERR_FILENO), fd = mkstemp(path);
    FILE *screen = tmpfile(), *file;
    pl_error err = { 0 };

    assert_true(kept >= 0 && fd >= 0 && screen != NULL);
    (void)dup2(fileno(screen), STDERR_FILENO);
    assert_int_equal(st_log_open(&log, &wf, path, &err), PL_OK);
    pl_log(PL_ERROR, "one \"%d\"", 1);
    pl_log(PL_WARN, "two");
    pl_log(PL_INFO, "three");
    pl_log(PL_DEBUG, "four");
    st_log_close(&log);
    pl_log(PL_ERROR, "after");
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
    rewind(screen);
    got[0][fread(got[0], 1, 999, screen)] = '\0';
    file = fdopen(fd, "r");
    got[1][fread(got[1], 1, 999, file)] = '\0';
    (void)fclose(screen);
    (void)fclose(file);
    (void)unlink(path);
    for (int i = 0; i < 2; i++) /* times are left out */
        for (char *at; (at = strstr(got[i], "Z ")) != NULL || (at = strstr(got[i], "Z\"")) != NULL;)
            memmove(at - 19, at + 1, strlen(at));
    assert_string_equal(got[0], on_stderr);
    assert_string_equal(got[1], in_file);
}

static void a_line_of_the_log_has_time_level_and_message(void **state)
{
    static const char text[] = " error one \"1\"\n warn  two\n info  three\n", warn[] = " error one \"1\"\n warn  two\n";
    static const char all[] = " error one \"1\"\n warn  two\n info  three\n debug four\n";
    static const char json[] = "{\"time\":\"\",\"level\":\"error\",\"message\":\"one \\\"1\\\"\"}\n"
                               "{\"time\":\"\",\"level\":\"warn\",\"message\":\"two\"}\n";

    (void)state;
    logged((st_log){ .max = PL_INFO }, text, text);
    logged((st_log){ .max = PL_WARN }, warn, warn);
    logged((st_log){ .max = PL_DEBUG }, all, all);
    logged((st_log){ .max = PL_WARN, .json = true }, json, json);
    logged((st_log){ .max = PL_INFO, .tty = true }, "\r\033[Kerror: one \"1\"\n\r\033[Kwarn: two\n\r\033[Kthree\n", text);
}

static void auto_keeps_what_the_warning_says_and_a_quarter_at_most(void **state)
{
    static const double left[][3] = { { 7200, 300, 6900 }, { 7200, 30, 7170 }, { 60, 300, 45 }, { 60, 5, 55 }, { -9, 300, 1 } };

    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char end[32];
        double got;
        (void)snprintf(end, sizeof end, "%lld", (long long)time(NULL) + (long long)left[i][0]);
        (void)setenv("SLURM_JOB_END_TIME", end, 1);
        got = st_time_left(-1, left[i][1]);
        if (!(fabs(got - left[i][2]) <= 3))
            fail_msg("%g s left, %g s of warning: %g", left[i][0], left[i][1], got);
    }
    (void)unsetenv("SLURM_JOB_END_TIME");
    assert_true(st_time_left(100, 300) == 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_column_of_every_table_and_view_has_one_document),
        cmocka_unit_test(every_descriptor_is_wherever_molecules_are),
        cmocka_unit_test(a_property_called_like_another_column_is_renamed),
        cmocka_unit_test(a_unit_behind_a_name_is_in_no_name_of_a_column),
        cmocka_unit_test(conditions_ask_what_the_worker_did),
        cmocka_unit_test(every_digest_query_fits_the_schema_and_names_no_row_id),
        cmocka_unit_test(records_come_back_from_their_block_byte_for_byte),
        cmocka_unit_test(any_damage_to_a_block_is_bad_data),
        cmocka_unit_test(a_unit_that_is_lost_is_told_with_its_stage),
        cmocka_unit_test(a_shard_that_lacks_a_stage_is_not_written),
        cmocka_unit_test(a_file_that_grows_while_it_is_read_is_read_again),
        cmocka_unit_test(why_a_library_is_empty_is_told_or_the_error_of_its_database),
        cmocka_unit_test(a_line_of_the_log_has_time_level_and_message),
        cmocka_unit_test(auto_keeps_what_the_warning_says_and_a_quarter_at_most),
        cmocka_unit_test(a_split_file_that_changes_under_its_key_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
