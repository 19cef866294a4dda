/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from tables of results, on rows that are made here: answers to a campaign, labels in keys, cumulenes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/base/file.h"
#include "pipeline/base/stop.h"
#include "stages/campaign/campaign.h"
#include "stages/database/measured.h"
#include "stages/database/schema.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/ingest/read_seen.h"
#include "stages/steps/ingest/shells.h"
#include "toy.h"

static char dir[256], path[300], table[300];

static int folder_make(void **state)
{
    (void)state;
    toy_directory(dir);
    (void)snprintf(path, sizeof path, "%s/results.db", dir);
    (void)snprintf(table, sizeof table, "%s/t.csv", dir);
    return 0;
}

static int folder_drop(void **state)
{
    (void)state;
    toy_remove(dir);
    return 0;
}

static pl_store *results_open(const char *sql)
{
    char features[300];
    const pl_workflow wf = { .workdir = dir, .storage = { path, features, 0, false } };
    pl_store *s = NULL;
    pl_error err = { 0 };

    (void)snprintf(features, sizeof features, "%s/features.db", dir);
    if (pl_store_open(&s, &wf, &st_schema, &err) != PL_OK || pl_db_exec(s->db, sql, &err) != PL_OK)
        fail_msg("%s", err.text);
    return s;
}

static void results_make(const char *sql) { pl_store_close(results_open(sql)); }

/* A store of an empty database in memory. */
static pl_store memory_open(const char *sql)
{
    pl_store s = { .db = NULL };
    pl_error err = { 0 };

    assert_int_equal(sqlite3_open(":memory:", &s.db), SQLITE_OK);
    if (pl_schema_create(s.db, &st_schema, &err) != PL_OK || pl_db_exec(s.db, sql, &err) != PL_OK)
        fail_msg("%s", err.text);
    return s;
}

static void memory_close(pl_store *s) { assert_int_equal(sqlite3_close(s->db), SQLITE_OK); /* no statement is left */ }

/* ---- answers to a campaign ---- */

#define MOLECULES                                                                                                                     \
    "INSERT INTO molecule(mol_id,inchikey,smiles,formula,n_atoms,n_heavy,charge,geometry,unit) VALUES (1,'A','C','',1,1,0,'none',0)," \
    "(2,'B','CC','',1,1,0,'none',0),(3,'C','CCC','',1,1,0,'none',0);"

/* Molecule 1 has scores of two properties, 2 and 3 of one; D and E gave no molecule; a title is there twice. */
static const char scored[] =
    "INSERT INTO run(run_id,uuid,command,argv_json,config_yaml,config_sha256,state,started_utc,program_version) "
    "VALUES(1,'u','run','[]','','','done','2026-01-01T00:00:00Z','0');"
    "INSERT INTO input_file(file_id,path,size_bytes,sha256,format) VALUES(1,'in.smi',1,'h','smi');" MOLECULES
    "INSERT INTO record(record_id,file_id,ordinal,byte_offset,line,title,mol_id,status) VALUES(1,1,1,0,1,'A',1,'ok'),(2,1,2,0,2,'B',2,'ok'),"
    "(3,1,3,0,3,'C',3,'ok'),(4,1,4,0,4,'D',NULL,'failed'),(5,1,5,0,5,'E',NULL,'failed'),(6,1,6,0,6,'A',2,'duplicate');"
    "INSERT INTO property(property_id,name,unit,task,better) VALUES(1,'unscored','g','regression','none'),(2,'depth','cm','regression','low'),"
    "(3,'size','','regression','low');"
    "INSERT INTO score(mol_id,property_id,mean,n_models) VALUES(1,2,1.5,1),(2,2,2.5,1),(1,3,7,1),(3,3,9,1);"
    "INSERT INTO failure(run_id,stage,record_id,mol_id,code,message,attempt,at_utc) VALUES(1,'read',5,NULL,'long','later',1,''),"
    "(1,'prepare',4,NULL,'parse','no SMILES',1,''),(1,'score',NULL,3,'element','unknown',1,''),(1,'prepare',4,NULL,'crash','second',1,'');";

enum { ROWS = 6 };

static void rows_make(st_outcome_row row[ROWS])
{
    static const char *const names[] = { "A", "B", "C", "D", "E", "F" };

    for (int i = 0; i < ROWS; i++)
        row[i] = (st_outcome_row){ .inchikey = names[i], .smiles = "S" };
}

/* "1.5 RESULTS", or why there is none. */
static void rows_are(const st_outcome_row row[ROWS], const char *from, const char *const want[ROWS])
{
    char is[400];

    for (int i = 0; i < ROWS; i++) {
        if (row[i].n > 0)
            (void)snprintf(is, sizeof is, "%g %s", row[i].sum / (double)row[i].n,
                           strcmp(row[i].source, from) == 0 ? "RESULTS" : row[i].source);
        else
            (void)snprintf(is, sizeof is, "%s", row[i].why);
        assert_string_equal(is, want[i]);
    }
}

static st_campaign campaign(const st_acquire_conf *c, const char *unit, pl_arena *mem)
{
    return (st_campaign){ .schema = &st_schema, .c = c, .label = "logS", .unit = unit, .mem = mem };
}

static const char *const depths[] = { "1.5 RESULTS",         "2.5 RESULTS", "failed: element: unknown", "failed: parse: no SMILES",
                                      "failed: long: later", "no value" };
static const char *const sizes[] = { "7 RESULTS",           "no value", "9 RESULTS", "failed: parse: no SMILES",
                                     "failed: long: later", "no value" };

static void the_property_that_is_named_answers(void **state)
{
    const st_acquire_conf depth = { .answers = { .workflow = "o.yaml", .property = "depth" } },
                          size = { .answers = { .workflow = "o.yaml", .property = "size" } };
    pl_arena *mem = pl_arena_new(1 << 16);
    st_outcome_row row[ROWS];
    st_campaign x = campaign(&depth, "cm", mem);

    (void)state;
    results_make(scored);
    rows_make(row);
    assert_int_equal(st_answers_of_results(&x, dir, row, ROWS, NULL), PL_OK);
    rows_are(row, path, depths);
    x.unit = ""; /* not known */
    rows_make(row);
    assert_int_equal(st_answers_of_results(&x, dir, row, ROWS, NULL), PL_OK);
    rows_are(row, path, depths);
    x = campaign(&size, "cm", mem); /* it has no unit */
    rows_make(row);
    assert_int_equal(st_answers_of_results(&x, dir, row, ROWS, NULL), PL_OK);
    rows_are(row, path, sizes);
    pl_arena_free(mem);
}

static void the_only_property_answers_without_a_name(void **state)
{
    const st_acquire_conf any = { .answers.workflow = "o.yaml" };
    pl_arena *mem = pl_arena_new(1 << 16);
    st_outcome_row row[ROWS];
    const st_campaign x = campaign(&any, "cm", mem);
    pl_error err = { 0 };

    (void)state;
    results_make(scored);
    rows_make(row);
    assert_int_equal(st_answers_of_results(&x, dir, row, ROWS, &err), PL_ECONFIG);
    assert_string_equal(err.text, "o.yaml scores several properties; name one with answers.property");
    results_make("DELETE FROM score WHERE property_id=3");
    assert_int_equal(st_answers_of_results(&x, dir, row, ROWS, NULL), PL_OK);
    rows_are(row, path, depths);
    pl_arena_free(mem);
}

static void another_unit_or_another_property_is_no_answer(void **state)
{
    static const char *const none[] = {
        "no value", "no value", "failed: element: unknown", "failed: parse: no SMILES", "failed: long: later", "no value"
    };
    const st_acquire_conf depth = { .answers = { .workflow = "o.yaml", .property = "depth" } },
                          other = { .answers = { .workflow = "o.yaml", .property = "unscored" } };
    pl_arena *mem = pl_arena_new(1 << 16);
    st_outcome_row row[ROWS];
    st_campaign x = campaign(&depth, "mm", mem);
    pl_error err = { 0 };

    (void)state;
    results_make(scored);
    rows_make(row);
    assert_int_equal(st_answers_of_results(&x, dir, row, ROWS, &err), PL_ECONFIG);
    assert_string_equal(err.text,
                        "o.yaml scores depth in cm, and logS is learned in mm; set answers.unit, or the unit of the target");
    x = campaign(&other, "mm", mem);
    rows_make(row);
    assert_int_equal(st_answers_of_results(&x, dir, row, ROWS, NULL), PL_OK);
    rows_are(row, path, none);
    pl_arena_free(mem);
}

/* Whichever request for memory is refused: no molecule has another outcome than it has otherwise. */
static void an_answer_without_memory_is_no_outcome(void **state)
{
    static const char *const of_table[] = {
        "2 T:3", "no number: 'abc'", "no value", "-1 T:6", "not in the table of answers", "not in the table of answers"
    };
    const st_acquire_conf both[] = { { .answers = { .workflow = "o.yaml", .property = "depth" } }, { .answers.table = table } };
    const char text[] = "inchikey,logS\nB,abc\nA,1\nA,3\nC,\nD,-1\nX,5\n";
    static const char prepared[] = "INSERT INTO stage(name,key,params_json,extra_json,needs_json,code_version,state,created_utc) "
                                   "VALUES('prepare','','{}','{}','[]',1,'done','')";
    pl_store *s;

    (void)state;
    results_make(scored);
    assert_int_equal(pl_file_write(table, (pl_bytes){ text, sizeof text - 1 }, NULL), PL_OK);
    for (int k = 0; k < 2; k++) {
        int n_refused = 0;
        s = results_open(k == 0 ? "SELECT 1" : prepared);
        for (bool met = true; met;) {
            pl_arena *mem = pl_arena_new(1 << 16), *other = pl_arena_new(0);
            const st_campaign x = campaign(&both[k], "cm", mem);
            st_outcome_row row[ROWS];
            pl_error err = { 0 };
            ch_units said;
            pl_code code;
            rows_make(row);
            pl_arena_refuse(++n_refused);
            code = k == 0 ? st_answers_of_results(&x, dir, row, ROWS, &err) : st_answers_of_table(&said, &x, s, row, ROWS, &err);
            met = pl_arena_get(other, 1, 1) != NULL; /* else this one is refused */
            pl_arena_refuse(0);
            if (code != PL_OK)
                assert_true(met && code == PL_ENOMEM && strstr(err.text, "out of memory") != NULL);
            else if (k == 0)
                rows_are(row, path, depths);
            for (int i = 0; i < ROWS && code == PL_OK && k == 1; i++) /* its name is shown as T */
                if (row[i].n > 0) {
                    assert_memory_equal(row[i].source, table, strlen(table));
                    row[i].source = pl_sprintf(mem, "T%s", row[i].source + strlen(table));
                }
            if (code == PL_OK && k == 1)
                rows_are(row, "", of_table);
            pl_arena_free(other);
            pl_arena_free(mem);
        }
        assert_true(n_refused > 5);
        pl_store_close(s);
    }
}

/* What the linker puts in its place (tests/stages.cmake): after the second record somebody stops the campaign. */
#define REAL(name) __real_##name
#define WRAPPED(name) __wrap_##name

static int n_records = -1; /* -1: nobody does */

pl_code REAL(ch_reader_next)(ch_reader *r, ch_record *out, bool *more, pl_error *err);
pl_code WRAPPED(ch_reader_next)(ch_reader *r, ch_record *out, bool *more, pl_error *err);
pl_code WRAPPED(ch_reader_next)(ch_reader *r, ch_record *out, bool *more, pl_error *err)
{
    const pl_code code = REAL(ch_reader_next)(r, out, more, err);

    if (n_records >= 0 && ++n_records == 2)
        assert_int_equal(raise(SIGTERM), 0);
    return code;
}

static void a_stop_while_answers_are_read_is_no_outcome(void **state)
{
    const st_acquire_conf conf = { .answers.table = table };
    const char text[] = "inchikey,logS\nA,1\nB,2\nC,3\nD,4\n";
    pl_arena *mem = pl_arena_new(1 << 16);
    const st_campaign x = campaign(&conf, "cm", mem);
    st_outcome_row row[ROWS];
    pl_error err = { 0 };
    pl_stop stop;
    pl_store *s;

    (void)state;
    assert_int_equal(pl_file_write(table, (pl_bytes){ text, sizeof text - 1 }, NULL), PL_OK);
    s = results_open("INSERT INTO stage(name,key,params_json,extra_json,needs_json,code_version,state,created_utc) "
                     "VALUES('prepare','','{}','{}','[]',1,'done','')");
    rows_make(row);
    pl_stop_begin(&stop, 0, 0);
    n_records = 0;
    assert_int_equal(st_answers_of_table(&(ch_units){ 0 }, &x, s, row, ROWS, &err), PL_ESTOP);
    assert_string_equal(err.text, "stopped by signal TERM");
    assert_int_equal(n_records, 2);
    for (int i = 0; i < ROWS; i++)
        assert_null(row[i].why);
    n_records = -1;
    pl_stop_end(&stop);
    pl_stop_begin(&stop, 0, 0); /* which forgets the signal */
    pl_stop_end(&stop);
    pl_store_close(s);
    pl_arena_free(mem);
}

static void a_round_that_chose_nothing_has_no_answers(void **state)
{
    const st_acquire_conf depth = { .answers = { .workflow = "o.yaml", .property = "depth" } };
    pl_arena *mem = pl_arena_new(1 << 16);
    const pl_workflow wf = { .workdir = dir, .storage = { path, pl_sprintf(mem, "%s/features.db", dir), 0, false } };
    st_campaign x = campaign(&depth, "cm", mem);
    pl_error err = { 0 };

    (void)state;
    results_make(scored);
    x.wf = &wf;
    assert_int_equal(st_campaign_answer(&x, 1, 3, dir, &err), PL_EINPUT);
    assert_string_equal(err.text, "round 1: none of its 0 molecules has an answer; the first: nothing was chosen");
    pl_arena_free(mem);
}

/* ---- labels in keys ---- */

/* A label of each kind, whose hash is in a key or is not. */
static const struct {
    const char *row;
    bool in_key, of_all;
} labels[] = {
    { "'logS','B',1.5,'mol','regression',0,'s'", true, true },
    { "'logS at least','A',1,'mol','regression',0,'s'", true, true },
    { "'logS at most','A',2,'mol','regression',0,'s'", true, true },
    { "'gap','A',2,'mol','regression',0,'s'", false, true },
    { "'logS at','A',2,'mol','regression',0,'s'", false, true },
};

static bool hash_is(pl_store *s, const char *const *property, char hash[65], pl_arena *mem)
{
    const char *now = NULL;
    bool same;

    assert_int_equal(st_measured_hash(&now, s, property, property != NULL ? 1 : 0, mem, NULL), PL_OK);
    same = strcmp(hash, now != NULL ? now : "") == 0;
    (void)snprintf(hash, 65, "%s", now != NULL ? now : "");
    return same;
}

static void a_key_has_labels_of_its_property_and_its_limits(void **state)
{
    static const char *const logs[] = { "logS" };
    static const char *const changes[] = { "value=value+1", "unit='other'", "task='classification'", "inchikey='Z'" };
    pl_store s = memory_open("SELECT 1");
    pl_arena *mem = pl_arena_new(1 << 16);
    char one[65] = "", all[65] = "", sql[300];

    (void)state;
    assert_true(hash_is(&s, logs, one, mem) && hash_is(&s, NULL, all, mem)); /* none */
    assert_true(hash_is(NULL, logs, one, mem) && hash_is(NULL, NULL, all, mem));
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO measured(property,inchikey,value,unit,task,round,source) VALUES(%s)",
                       labels[i].row);
        assert_int_equal(pl_db_exec(s.db, sql, NULL), PL_OK);
        assert_true(hash_is(&s, logs, one, mem) != labels[i].in_key);
        assert_true(hash_is(&s, NULL, all, mem) != labels[i].of_all);
    }
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        (void)snprintf(sql, sizeof sql, "UPDATE measured SET %s WHERE property='logS'", changes[i]);
        assert_int_equal(pl_db_exec(s.db, sql, NULL), PL_OK);
        assert_true(!hash_is(&s, logs, one, mem) && !hash_is(&s, NULL, all, mem));
    }
    assert_int_equal(pl_db_exec(s.db, "UPDATE measured SET round=3, source='t'", NULL),
                     PL_OK); /* when and from where changes no result */
    assert_true(hash_is(&s, logs, one, mem) && hash_is(&s, NULL, all, mem));
    pl_arena_free(mem);
    memory_close(&s);
}

/* ---- records of a file, counted at the end ---- */

#define RECORDS(rows)                                                                                                                      \
    "DELETE FROM record; INSERT INTO record(file_id,ordinal,byte_offset,line,status) SELECT column1,column2,0,0,'read' FROM (VALUES " rows \
    ")"

/* Of two files, of which the first has `first` records by its reader and the second one. */
static void counted(int n_shards, int64_t first, const char *sql, const char *want)
{
    static const pl_input input[] = { { .path = "a.smi" }, { .path = "b.smi" } };
    const pl_workflow wf = { .inputs = { (void *)(uintptr_t)input, 2 }, .workdir = dir, .storage = { path, path, 0, false } };
    const st_found found[] = { { .records = first, .bytes = 10, .whole = true },
                               { .records = 1, .bytes = 20, .whole = n_shards > 0 } };
    pl_env env = { .wf = &wf, .stage_id = 7, .n_shards = n_shards, .mem = pl_arena_new(1 << 12) };
    pl_error err = { 0 };
    pl_code code;

    if (pl_store_open(&env.store, &wf, &st_schema, &err) != PL_OK || pl_db_exec(env.store->db, sql, &err) != PL_OK)
        fail_msg("%s", err.text);
    code = st_seen_count(&env, found, &err);
    if (strcmp(err.text, want) != 0 || (code == PL_OK) != (want[0] == '\0'))
        fail_msg("%s: %d %s", sql, (int)code, err.text);
    pl_store_close(env.store);
    pl_arena_free(env.mem);
}

static int64_t number(const char *sql)
{
    pl_store *s = NULL;
    int64_t n = -1;

    assert_int_equal(pl_store_open_read(&s, path, &st_schema, NULL), PL_OK);
    assert_int_equal(pl_db_int(s->db, &n, NULL, "%s", sql), PL_OK);
    pl_store_close(s);
    return n;
}

static void records_that_are_lost_or_double_are_noticed(void **state)
{
    static const char lost[] = "a.smi: 1 records are stored, but the file has 2; run again with --from read",
                      order[] = "records are not in the order of the inputs; run again with --from read";

    (void)state;
    results_make(
        "INSERT INTO run(run_id,uuid,command,argv_json,config_yaml,config_sha256,state,started_utc,program_version) "
        "VALUES(1,'u','run','[]','','','running','2026-01-01T00:00:00Z','0');"
        "INSERT INTO input_file(file_id,path,size_bytes,sha256,format) VALUES(1,'a.smi',1,'h','smi'),(2,'b.smi',1,'h','smi'),"
        "(3,'c.smi',1,'h','smi');"
        "INSERT INTO stage(stage_id,name,key,params_json,extra_json,needs_json,code_version,state,created_utc) "
        "VALUES(7,'read','k','','','',1,'running',''),(8,'prepare','l','','','',1,'running','');"
        "INSERT INTO unit(stage_id,unit,n_ok,n_failed) VALUES(7,0,1,1),(7,1,1,0),(8,0,9,9)");
    counted(0, 2, RECORDS("(1,1),(1,2),(2,1)"), "");
    assert_int_equal(number("SELECT n_records FROM input_file WHERE file_id=1"), 2);
    assert_int_equal(number("SELECT n_records FROM input_file WHERE file_id=2"), 1);
    assert_int_equal(number("SELECT size_bytes FROM input_file WHERE file_id=1"), 10);
    assert_int_equal(number("SELECT size_bytes FROM input_file WHERE file_id=2"), 1); /* it was not read to its end */
    counted(0, 2, RECORDS("(1,1),(1,3),(2,1)"), lost);
    counted(0, 2, RECORDS("(1,2),(1,3),(2,1)"), "a.smi: 0 records are stored, but the file has 1; run again with --from read");
    counted(0, 2, RECORDS("(1,1),(1,2),(2,2)"), "b.smi: 0 records are stored, but the file has 1; run again with --from read");
    counted(0, 2, RECORDS("(2,1),(1,1),(1,2)"), order);
    counted(0, 2, RECORDS("(1,1),(1,2),(3,1)"), order);
    counted(0, 2, RECORDS("(1,1),(1,2)"), "2 records are stored, but the units of read count 3; run again with --from read");
    counted(0, 3, RECORDS("(1,1),(1,2),(2,1)"), "a.smi: 2 records are stored, but the file has 3; run again with --from read");
    counted(2, 9, RECORDS("(1,1),(1,7),(2,4)"), ""); /* a shard has some of them */
    counted(2, 9, RECORDS("(1,7),(1,1),(2,4)"), "a.smi: 1 records are stored, but the file has 0; run again with --from read");
    assert_int_equal(number("SELECT size_bytes FROM input_file WHERE file_id=2"), 20);
}

/* ---- cumulenes that are two molecules ---- */

#define AXIS(id, key, smiles)                                                                                                      \
    "INSERT INTO molecule(mol_id,inchikey,smiles,formula,n_atoms,n_heavy,charge,geometry,unit) VALUES (" #id ",'" key "','" smiles \
    "','',1,1,0,'none',0);"

static void one_cumulene_with_two_keys_is_told_of(void **state)
{
    static const struct {
        const char *sql;
        int n;
    } steps[] = {
        { AXIS(1, "A", "CC=[C@]=CC") AXIS(2, "A", "CC=[C@]=CC"), 0 },                        /* one molecule */
        { AXIS(3, "B", "CC=[C@]=CC"), 1 },                                                   /* an allene with a mark */
        { AXIS(4, "C", "CC=C=CC") AXIS(5, "D", "CC=C=CC"), 1 },                              /* without */
        { AXIS(6, "E", "C/C=C=C=C/C") AXIS(7, "F", "C/C=C=C=C/C"), 2 },                      /* a longer cumulene */
        { AXIS(8, "G", "CC=[C@@]=CC") AXIS(9, "H", "C/C=C/C") AXIS(10, "I", "C/C=C/C"), 2 }, /* another allene; no cumulene */
        { AXIS(11, "J", "CC(F)=[13C@@]=CC") AXIS(12, "K", "CC(F)=[13C@@]=CC"), 3 },
    };
    pl_store s = memory_open("SELECT 1");

    (void)state;
    assert_int_equal(st_shells_open(s.db, NULL), PL_OK);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char text[256] = "earlier", want[256] = "";
        assert_int_equal(pl_db_exec(s.db, steps[i].sql, NULL), PL_OK);
        assert_int_equal(st_axes_text(&s, text, NULL), PL_OK);
        if (steps[i].n > 0)
            (void)snprintf(
                want, sizeof want,
                "SMILES of allenes or longer cumulenes that are two molecules, because the InChIKeys of their records differ: %d; "
                "see SELECT smiles FROM molecule GROUP BY smiles HAVING count(*)>1",
                steps[i].n);
        assert_string_equal(text, want);
    }
    memory_close(&s);
}

static void drawings_of_one_molecule_are_told_of(void **state)
{
    pl_store s =
        memory_open(MOLECULES "INSERT INTO record(record_id,file_id,ordinal,byte_offset,line,title,mol_id,status,reason) VALUES"
                              "(1,1,1,0,1,'a',1,'ok',NULL),(2,1,2,0,2,'b',1,'duplicate',NULL),(3,1,3,0,3,'c',NULL,'failed','x')");
    char text[256] = "earlier";

    (void)state;
    assert_int_equal(st_drawings_text(&s, text, NULL), PL_OK);
    assert_string_equal(text, "");
    assert_int_equal(pl_db_exec(s.db,
                                "INSERT INTO record(record_id,file_id,ordinal,byte_offset,line,mol_id,status,reason) VALUES"
                                "(4,1,4,0,4,1,'duplicate','r'),(5,1,5,0,5,1,'duplicate','r'),(6,1,6,0,6,2,'duplicate','r')",
                                NULL),
                     PL_OK);
    assert_int_equal(st_drawings_text(&s, text, NULL), PL_OK);
    assert_memory_equal(text, "molecules given in more than one drawing (such as tautomers): 2; each is", 72);
    memory_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_property_that_is_named_answers, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(the_only_property_answers_without_a_name, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(another_unit_or_another_property_is_no_answer, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(an_answer_without_memory_is_no_outcome, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(a_stop_while_answers_are_read_is_no_outcome, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(a_round_that_chose_nothing_has_no_answers, folder_make, folder_drop),
        cmocka_unit_test(a_key_has_labels_of_its_property_and_its_limits),
        cmocka_unit_test_setup_teardown(records_that_are_lost_or_double_are_noticed, folder_make, folder_drop),
        cmocka_unit_test(drawings_of_one_molecule_are_told_of),
        cmocka_unit_test(one_cumulene_with_two_keys_is_told_of),
    };

    return cmocka_run_group_tests_name("results that are read", tests, NULL, NULL);
}
