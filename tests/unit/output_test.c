/* SPDX-License-Identifier: Apache-2.0 */
/* What commands print of plans, results and themselves, word for word: of rows, stages and commands that are made here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "stages/commands/about/topics.h"
#include "stages/commands/output/fit_words.h"
#include "stages/commands/output/plan_print.h"
#include "stages/commands/output/run_words.h"
#include "stages/database/schema.h"
#include "stages/registry/registry.h"
#include "stages/steps/train/train_conf.h"
#include "toy.h"

/* ---- what is printed on standard output ---- */

static char printed[8000];

static int stdout_begin(FILE **to)
{
    const int kept = dup(STDOUT_FILENO);

    (void)fflush(stdout);
    *to = tmpfile();
    assert_true(kept >= 0 && *to != NULL && dup2(fileno(*to), STDOUT_FILENO) >= 0);
    return kept;
}

static void stdout_end(FILE *to, int kept)
{
    (void)fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    (void)close(kept);
    rewind(to);
    printed[fread(printed, 1, sizeof printed - 1, to)] = '\0';
    (void)fclose(to);
}

/* ---- a plan ---- */

/* What the linker puts in their places (tests/stages.cmake). */
#define WRAPPED(name) __wrap_##name

static double free_bytes;

double WRAPPED(pl_disk_free)(const char *path);
double WRAPPED(pl_disk_free)(const char *path)
{
    assert_string_equal(path, "/r/results.db");
    return free_bytes;
}

int WRAPPED(pl_cpu_count)(void);
int WRAPPED(pl_cpu_count)(void) { return 7; }

enum { STEPS = 9 };

static pl_code guess(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem, pl_error *err)
{
    (void)wf, (void)step, (void)store, (void)out, (void)mem, (void)err;
    return PL_OK;
}

#define STAGE(word, how, estimates)                                                \
    {                                                                              \
        .name = (word), .help = "does it", .scope = (how), .estimate = (estimates) \
    }
static const pl_stage stages[STEPS] = {
    STAGE("read", PL_PER_UNIT, guess), STAGE("prepare", PL_PER_UNIT, guess), STAGE("graph", PL_PER_UNIT, guess),
    STAGE("split", PL_WHOLE, guess),   STAGE("train", PL_WHOLE, guess),      STAGE("rank", PL_WHOLE, NULL),
    STAGE("write", PL_WHOLE, guess),   STAGE("acquire", PL_WHOLE, guess),    STAGE("basis", PL_PER_UNIT, guess),
};

/* Numbers of stages that do not run are large: they count nowhere. */
static st_plan plan_made(int workers)
{
    static pl_step step[STEPS];
    static pl_workflow wf = { .path = "w.yaml", .storage.results = "/r/results.db", .n_steps = STEPS, .step = step };
    static bool wanted[STEPS];
    static pl_step_plan plan[STEPS] = {
        { PL_STEP_DONE, 0, 0, true, "done: from the cache", { 5, 6, 5e9, 5e9, 5e9, "hidden", false }, false },
        { PL_STEP_RUN, 1, 0, true, "never run", { 1234, 3, 2000, 1e6, 90, "by a \"guess\"", false }, false },
        { PL_STEP_RESUME, 2, 0, true, "done: x", { 0, 0, 0, 0, 0, NULL, false }, false },
        { PL_STEP_STALE, 0, 0, true, "edges: a -> b", { -1, -1, 1, 1, 30, NULL, false }, false },
        { PL_STEP_RUN, 0, 0, true, "never run", { 7, 7, 5e9, 5e9, 5e9, "hidden too", false }, false },
        { PL_STEP_RUN, 0, 0, true, "never run", { 1, 1, 0, 0, 0, NULL, false }, false },
        { PL_STEP_RUN, 0, 0, true, "never run", { 1, -1, 0, 0, 0, NULL, false }, false },
        { PL_STEP_RUN, 0, 0, true, "never run", { 9, 9, 0, 0, 0.5, NULL, false }, false },
        { PL_STEP_DONE, 0, 0, true, "earlier", { 5, 6, 5e9, 5e9, 5e9, NULL, false }, false },
    };

    for (int i = 0; i < STEPS; i++) {
        step[i].stage = &stages[i];
        (void)snprintf(step[i].key, sizeof step[i].key, "k%d", i);
        wanted[i] = i != 4;
    }
    return (st_plan){ &wf, plan, wanted, workers, { NULL, 0, 0 } };
}

static void plan_prints(const st_plan *p, double left, const char *end)
{
    static const char table[] = "w.yaml -> /r/results.db\n"
                                "  stage    state      items results features 1 worker  why\n"
                                "  read     done           -       -        -        -  from the cache\n"
                                "  prepare  run        1,234  2.0 kB   1.0 MB    1m30s  never run\n"
                                "  graph    resume         0       -        -        -  done: x\n"
                                "  split    again          -     1 B      1 B      30s  edges: a -> b\n"
                                "  train    left           -       -        -        -  never run\n"
                                "  rank     run            1       -        -        -  never run\n"
                                "  write    run            1       -        -        -  never run\n"
                                "  acquire  run            9       -        -     0.5s  never run\n"
                                "  basis    done           -       -        -        -  earlier\n"
                                "prepare: by a \"guess\"\n";
    FILE *to;
    int kept;

    free_bytes = left;
    kept = stdout_begin(&to);
    st_plan_print(p);
    stdout_end(to, kept);
    assert_memory_equal(printed, table, sizeof table - 1);
    assert_string_equal(printed + sizeof table - 1, end);
}

#define TOTAL(time, workers, left)                                                                    \
    "6 of 9 stages to run; about 2.0 kB in results.db, 1.0 MB in features.db, " time " with " workers \
    " without graph, write; " left " free\n"
#define WARNING "WARNING: that is more than the disk has; choose another basis or another workdir\n"

static void a_plan_adds_up_what_will_run(void **state)
{
    st_plan p = plan_made(2);

    (void)state;
    plan_prints(&p, 1002002, TOTAL("1m16s", "2 workers", "1.0 MB")); /* exactly enough */
    plan_prints(&p, 1002001, TOTAL("1m16s", "2 workers", "1.0 MB") WARNING);
    plan_prints(&p, 0, TOTAL("1m16s", "2 workers", "0 B") WARNING);
    plan_prints(&p, -1, TOTAL("1m16s", "2 workers", "unknown space"));
    p.workers = 1;
    plan_prints(&p, 3e9, TOTAL("2m01s", "1 worker", "3.0 GB"));
}

static void a_plan_without_work_says_so(void **state)
{
    st_plan p = plan_made(2);
    FILE *to;
    int kept;

    (void)state;
    memset(p.wanted, 0, STEPS * sizeof *p.wanted);
    kept = stdout_begin(&to);
    st_plan_print(&p);
    stdout_end(to, kept);
    assert_non_null(
        strstr(printed, "  basis    left           -       -        -        -  earlier\nnothing to do: everything is done\n"));
    assert_null(strstr(printed, "to run"));
    assert_null(strstr(printed, "guess"));
}

#define NONE "\"bytes_results\":null,\"bytes_features\":null,\"seconds_one_worker\":null"
#define ZERO "\"bytes_results\":0,\"bytes_features\":0,\"seconds_one_worker\":0"

static void a_plan_for_programs_has_numbers_or_null(void **state)
{
    static const char want[] =
        "{\"workflow\":\"w.yaml\",\"results\":\"/r/results.db\",\"workers\":2,\"stages\":["
        "\n {\"stage\":\"read\",\"state\":\"done\",\"key\":\"k0\",\"reason\":\"done: from the cache\",\"units_done\":0,\"items\":5,\"units\":6," NONE
        ",\"note\":\"hidden\"},"
        "\n {\"stage\":\"prepare\",\"state\":\"run\",\"key\":\"k1\",\"reason\":\"never run\",\"units_done\":1,\"items\":1234,\"units\":3,"
        "\"bytes_results\":2000,\"bytes_features\":1000000,\"seconds_one_worker\":90,\"note\":\"by a \\\"guess\\\"\"},"
        "\n {\"stage\":\"graph\",\"state\":\"resume\",\"key\":\"k2\",\"reason\":\"done: x\",\"units_done\":2,\"items\":0,\"units\":0," ZERO
        ",\"note\":null},"
        "\n {\"stage\":\"split\",\"state\":\"again\",\"key\":\"k3\",\"reason\":\"edges: a -> b\",\"units_done\":0,\"items\":null,\"units\":null,"
        "\"bytes_results\":1,\"bytes_features\":1,\"seconds_one_worker\":30,\"note\":null},"
        "\n {\"stage\":\"train\",\"state\":\"left\",\"key\":\"k4\",\"reason\":\"never run\",\"units_done\":0,\"items\":7,\"units\":7," NONE
        ",\"note\":\"hidden too\"},"
        "\n {\"stage\":\"rank\",\"state\":\"run\",\"key\":\"k5\",\"reason\":\"never run\",\"units_done\":0,\"items\":1,\"units\":1," ZERO
        ",\"note\":null},"
        "\n {\"stage\":\"write\",\"state\":\"run\",\"key\":\"k6\",\"reason\":\"never run\",\"units_done\":0,\"items\":1,\"units\":null," ZERO
        ",\"note\":null},"
        "\n {\"stage\":\"acquire\",\"state\":\"run\",\"key\":\"k7\",\"reason\":\"never run\",\"units_done\":0,\"items\":9,\"units\":9,"
        "\"bytes_results\":0,\"bytes_features\":0,\"seconds_one_worker\":0.5,\"note\":null},"
        "\n {\"stage\":\"basis\",\"state\":\"done\",\"key\":\"k8\",\"reason\":\"earlier\",\"units_done\":0,\"items\":5,\"units\":6," NONE
        ",\"note\":null}"
        "\n],\"removed\":[]}\n";
    const st_plan p = plan_made(2);
    pl_text out = { 0 };

    (void)state;
    st_plan_json(&p, &out);
    assert_string_equal(pl_text_str(&out), want);
    pl_text_free(&out);
}

static void a_plan_has_the_workers_of_the_command_or_the_workflow(void **state)
{
    static const struct {
        int asked, workflow, want;
    } cases[] = { { 3, 5, 3 }, { 1, 5, 1 }, { 0, 5, 5 }, { 0, 1, 1 }, { 0, -1, 7 }, { 0, 0, 7 } };
    const pl_app app = { .stages = st_stages, .schema = &st_schema };
    pl_arena *mem = pl_arena_new(1 << 16);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_workflow wf = { .workdir = "/nowhere",
                           .storage = { "/nowhere/r.db", "/nowhere/f.db", 0, false },
                           .workers = cases[i].workflow };
        const pl_run_opts opts = { .workers = cases[i].asked };
        st_plan p;
        pl_error err = { 0 };
        if (st_plan_make(&p, &app, &wf, &opts, mem, &err) != PL_OK)
            fail_msg("%s", err.text);
        assert_int_equal(p.workers, cases[i].want);
    }
    pl_arena_free(mem);
}

/* ---- the last words of a run ---- */

static const char results[] =
    "INSERT INTO run(run_id,uuid,command,argv_json,config_yaml,config_sha256,state,started_utc,program_version) "
    "VALUES(1,'u','run','[]','','','done','2026-01-01T00:00:00Z','0');"
    "INSERT INTO input_file(file_id,path,size_bytes,sha256,format) VALUES(1,'in.smi',1,'h','smi');"
    "INSERT INTO molecule(mol_id,inchikey,smiles,formula,n_atoms,n_heavy,charge,geometry,unit) VALUES "
    "(1,'A','C','',1,1,0,'none',0),(2,'B','CC','',1,1,0,'none',0),(3,'C',replace(hex(zeroblob(42)),'0','C'),'',1,1,0,'none',0),"
    "(4,'D','CCCC','',1,1,0,'none',0),(5,'E','CO','',1,1,0,'none',0),(6,'F','CN','',1,1,0,'none',0),(7,'G','CF','',1,1,0,'none',0),"
    "(8,'H','CI','',1,1,0,'none',0);"
    "WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<15) INSERT INTO record(record_id,file_id,ordinal,byte_offset,"
    "line,title,mol_id,status) SELECT n,1,n,0,n,CASE n WHEN 3 THEN 'a title of more than 24 letters' WHEN 4 THEN NULL ELSE 't'||n END,"
    "CASE WHEN n<8 THEN n END,CASE WHEN n<=5 THEN 'ok' WHEN n<=9 THEN 'duplicate' WHEN n<=12 THEN 'filtered' WHEN n<=14 THEN 'failed' "
    "ELSE 'read' END FROM k;"
    "INSERT INTO property(property_id,name,unit,task,better) VALUES(1,'logS','mol','regression','high'),(2,'gap','','regression','low');"
    "INSERT INTO score(mol_id,property_id,mean,n_models,interval90,domain) VALUES(3,1,1.25,1,0.5,'inside'),(3,2,2,1,NULL,'outside'),"
    "(1,1,-0.5,1,NULL,'outside'),(2,1,3,1,NULL,NULL),(5,1,0.0625,1,0.25,'inside'),(6,1,9,1,9,'inside'),(8,1,9,1,9,'inside');"
    "INSERT INTO hit(rank,mol_id,objective) VALUES(1,3,7),(2,1,6),(3,2,5),(4,4,4.5),(5,5,4),(6,6,3),(7,7,2);";
static const char failures[] =
    "INSERT INTO failure(run_id,stage,record_id,code,message,attempt,at_utc) VALUES (1,'prepare',13,'parse','m',1,''),(1,'prepare',14,'parse',"
    "'m',1,''),(1,'prepare',15,'parse','m',1,''),(1,'read',13,'long','m',1,''),(1,'read',13,'long','m',1,''),(1,'graph',13,'x','m',1,''),"
    "(1,'graph',13,'x','m',1,''),(1,'prepare',13,'crash','m',1,''),(1,'score',13,'a','m',1,'');";

#define RECORDS "15 records: 5 ok, 4 duplicate, 3 filtered, 2 failed -> 8 molecules"
#define FAILED "9 failures: prepare parse 3, graph x 2, read long 2, prepare crash 1, others 1\n"
#define CARBONS "CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC" /* the first 80 of 84 */
#define TOP                                                                                                         \
    "   1  a title of more than 24   gap 2.000 (no interval: outside domain)  logS 1.250 +- 0.5 mol  " CARBONS "\n" \
    "   2  t1                logS -0.500 mol (no interval: outside domain)  C\n"                                    \
    "   3  t2                logS 3.000 mol  CC\n"                                                                  \
    "   4                    objective 4.500  CCCC\n"                                                               \
    "   5  t5                logS 0.062 +- 0.25 mol  CO\n"
#define OUTSIDE                                                                        \
    "1 of 1 scores of gap are outside of the domain of the model, without interval\n"  \
    "1 of 6 scores of logS are outside of the domain of the model, without interval\n" \
    "1 of 6 scores of logS have no known domain: the model or the score was made by an earlier version; train the model again\n"

static struct {
    char dir[256], path[300], features[300], model[400];
} at;

/* Of a workflow of these stages, whose results are in the folder a of the test's. here: from which folder of it, or from /. */
static void summary_prints(const pl_stage *const *of, int n, int ran, const char *want, const char *here)
{
    static st_train_conf train = { .name = "m", .members = 1 };
    static pl_step step[8];
    const pl_app app = { .stages = st_stages, .schema = &st_schema };
    pl_workflow wf = { .workdir = at.dir, .storage = { at.path, at.features, 0, false }, .n_steps = n, .step = step };
    char back[4096], folder[300], told[8000] = "";
    FILE *to;
    int kept;

    for (int i = 0; i < n; i++)
        step[i] = (pl_step){ .stage = of[i], .conf = of[i] == &st_train ? &train : NULL };
    assert_non_null(getcwd(back, sizeof back));
    (void)snprintf(folder, sizeof folder, "%s/%s", strcmp(here, "/") == 0 ? "" : at.dir, here);
    assert_int_equal(chdir(folder), 0);
    kept = stdout_begin(&to);
    st_summary_print(&app, &wf, ran);
    stdout_end(to, kept);
    assert_int_equal(chdir(back), 0);
    for (char *from = printed, *dir; *from != '\0'; from = dir + strlen(at.dir)) { /* D: the folder */
        dir = strstr(from, at.dir);
        if (dir == NULL) {
            (void)snprintf(told + strlen(told), sizeof told - strlen(told), "%s", from);
            break;
        }
        (void)snprintf(told + strlen(told), sizeof told - strlen(told), "%.*sD", (int)(dir - from), from);
    }
    assert_string_equal(told, want);
}

static void results_make(const char *sql)
{
    pl_workflow wf = { .workdir = at.dir, .storage = { at.path, at.features, 0, false } };
    pl_store *s = NULL;
    pl_error err = { 0 };

    if (pl_store_open(&s, &wf, &st_schema, &err) != PL_OK || pl_db_exec(s->db, sql, &err) != PL_OK)
        fail_msg("%s", err.text);
    pl_store_close(s);
}

static int folder_make(void **state)
{
    char *whole;

    (void)state;
    toy_directory(at.dir);
    whole = realpath(at.dir, NULL);
    (void)snprintf(at.dir, sizeof at.dir, "%s", whole != NULL ? whole : "");
    free(whole);
    (void)snprintf(at.path, sizeof at.path, "%s/a", at.dir);
    (void)snprintf(at.features, sizeof at.features, "%s/b", at.dir); /* a name of the same length */
    if (pl_mkdirs(at.path, NULL) != PL_OK || pl_mkdirs(at.features, NULL) != PL_OK)
        return -1;
    (void)snprintf(at.features, sizeof at.features, "%s/features.db", at.dir);
    (void)snprintf(at.path, sizeof at.path, "%s/a/results.db", at.dir);
    return 0;
}

static int folder_drop(void **state)
{
    (void)state;
    toy_remove(at.dir);
    return 0;
}

#define NEXT(more, of) "results: " of "\nnext:\n" more "  molsieve failures " of "\n  molsieve report " of "\n"
#define RANKED(of) "  molsieve top -n 20 " of "\n  molsieve query \"SELECT * FROM v_hits LIMIT 10\" " of "\n"

static void a_run_ends_with_counts_hits_and_what_comes_next(void **state)
{
    static const pl_stage *const screen[] = { &st_read, &st_prepare, &st_score, &st_rank }, *const program[] = { &st_read,
                                                                                                                 &st_external };

    (void)state;
    results_make(results);
    results_make(failures);
    summary_prints(screen, 4, 1,
                   RECORDS " -> 6 scored -> 7 ranked\n" FAILED TOP OUTSIDE NEXT(RANKED("D/a/results.db"), "D/a/results.db"), "b");
    summary_prints(screen, 2, 1, RECORDS "\n" FAILED TOP OUTSIDE NEXT(RANKED("results.db"), "results.db"), "a");
    summary_prints(screen, 2, 1, RECORDS "\n" FAILED TOP OUTSIDE NEXT(RANKED("a/results.db"), "a/results.db"), "");
    summary_prints(program, 2, 1, RECORDS " -> 6 scored\n" FAILED TOP OUTSIDE NEXT(RANKED("D/a/results.db"), "D/a/results.db"),
                   "/");
    summary_prints(screen, 4, 0,
                   "everything is done already: nothing ran\n" FAILED TOP OUTSIDE NEXT(RANKED("D/a/results.db"), "D/a/results.db"),
                   "b");
}

static void without_hits_other_commands_come_next(void **state)
{
    static const pl_stage *const training[] = { &st_read, &st_train };
    char folder[300];
    FILE *f;

    (void)state;
    results_make("SELECT 1");
    summary_prints(training, 1, 1,
                   NEXT("  molsieve status D/a/results.db\n  molsieve query v_funnel D/a/results.db\n", "D/a/results.db"), "b");
    summary_prints(training, 2, 1,
                   NEXT("  molsieve status D/a/results.db\n  molsieve query metric D/a/results.db\n", "D/a/results.db"), "b");
    (void)snprintf(folder, sizeof folder, "%s/models", at.dir);
    assert_int_equal(pl_mkdirs(folder, NULL), PL_OK);
    (void)snprintf(at.model, sizeof at.model, "%s/m.safetensors", folder);
    f = fopen(at.model, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    summary_prints(
        training, 2, 1,
        NEXT(
            "  molsieve model info D/models/m.safetensors\n  molsieve status D/a/results.db\n  molsieve query metric D/a/results.db\n",
            "D/a/results.db"),
        "b");
    results_make("INSERT INTO run(run_id,uuid,command,argv_json,config_yaml,config_sha256,state,started_utc,program_version) "
                 "VALUES(1,'u','run','[]','','','done','2026-01-01T00:00:00Z','0');"
                 "INSERT INTO failure(run_id,stage,code,message,attempt,at_utc) VALUES (1,'read','x','m',1,'')");
    summary_prints(training, 1, 1,
                   "1 failure: read x 1\n" NEXT("  molsieve status D/a/results.db\n  molsieve query v_funnel D/a/results.db\n",
                                                "D/a/results.db"),
                   "b");
}

static void without_results_a_run_ends_without_a_word(void **state)
{
    static const pl_stage *const screen[] = { &st_read };

    (void)state;
    summary_prints(screen, 1, 1, "", "b");
}

/* ---- errors of models ---- */

/* Two models together and one beside them, each with numbers of other parts, models, properties and metrics beside those that are told. */
static const char evaluated[] =
    "INSERT INTO model(model_id,name,path,sha256,metadata_json) VALUES(1,'m','','',''),(2,'n','','',''),(3,'g','','',''),(4,'c','','','');"
    "INSERT INTO property(property_id,name,unit,task,better) VALUES(1,'logS','mol','regression','high'),(2,'gap','','regression','low'),"
    "(3,'cls','','classification','high');"
    "INSERT INTO evaluation(model_id,property_id,part,metric,unit,value,n) VALUES"
    "(1,1,'test','mae','mol',0.5,10),(2,1,'test','mae','mol',0.7,10),(1,1,'test','ensemble.mae','mol',0.4,10),"
    "(2,1,'test','ensemble.mae','mol',0.39,10),(1,1,'valid','mae','mol',0.1,99),(1,1,'valid','ensemble.mae','mol',0.2,99),"
    "(1,1,'train','mae','mol',0.05,99),(3,1,'test','mae','mol',0.45,10),(1,1,'test','mean.mae','mol',0.9,10),(1,1,'test','neighbours.mae','mol',0.6,10),"
    "(1,1,'test','composition.mae','mol',0.8,10),(1,1,'test','gp.mae','mol',0.01,10),(1,1,'test','mean.rmse','mol',0.001,10),"
    "(2,1,'test','mean.mae','mol',0.02,10),(1,1,'valid','mean.mae','mol',0.04,10),(1,1,'test','coverage90',NULL,0.875,1208),"
    "(1,1,'valid','coverage90',NULL,0.1,9),(2,1,'test','coverage90',NULL,0.2,7),(3,1,'test','coverage90',NULL,0.05,2000),"
    "(1,2,'test','mae',NULL,0.3,20),(1,2,'test','mean.mae',NULL,0.03,20),(3,2,'test','mae','',0.35,20),"
    "(1,1,'test','interval90','mol',0.3,1),(4,3,'test','roc_auc',NULL,0.8,30),(4,3,'test','mean.roc_auc',NULL,0.5,30),(4,3,'test','pr_auc',NULL,0.6,30)";

static void a_model_is_told_with_its_error_and_the_best_simple_one(void **state)
{
    pl_store s = { .db = NULL };
    pl_error err = { 0 };
    FILE *to;
    int kept;

    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &s.db), SQLITE_OK);
    if (pl_schema_create(s.db, &st_schema, &err) != PL_OK || pl_db_exec(s.db, evaluated, &err) != PL_OK)
        fail_msg("%s", err.text);
    kept = stdout_begin(&to);
    st_model_errors_print(&s);
    stdout_end(to, kept);
    assert_string_equal(
        printed,
        "model m and 1 more: logS, test MAE 0.4 mol together, each 0.5 to 0.7 (10 molecules); the best simple prediction, "
        "nearest neighbours: 0.6; interval90 of each holds 20.0 to 87.5 % of 1,208 inside of the domain\n"
        "model g: logS, test MAE 0.45 mol (10 molecules); interval90 holds 5.0 % of 2,000 inside of the domain\n"
        "model m: gap, test MAE 0.3 (20 molecules); the best simple prediction, the mean: 0.03\n"
        "On the test part the model is no better than a simple prediction (the mean MAE 0.03, the model 0.3): do not screen "
        "with it.\n"
        "model g: gap, test MAE 0.35 (20 molecules)\n"
        "model c: cls, test ROC-AUC 0.8 (30 molecules); the best simple prediction, the mean: 0.5\n");
    assert_int_equal(sqlite3_close(s.db), SQLITE_OK); /* no statement is left */
}

/* The table that fit prints: the model and 23 more, without a name that is too long; of the first part that was held out. */
static void errors_of_a_fit_are_told_for_the_first_24(void **state)
{
    const pl_app app = { .stages = st_stages, .schema = &st_schema };
    pl_text sql = { 0 }, want = { 0 };
    FILE *to;
    int kept;

    (void)state;
    pl_text_add(&sql, "INSERT INTO model(model_id,name,path,sha256,metadata_json) VALUES(1,'m','','',''); INSERT INTO "
                      "property(property_id,name,unit,task,better) VALUES(1,'logS','mol','regression','high');"
                      "INSERT INTO evaluation(model_id,property_id,part,metric,unit,value,n) VALUES(1,1,'valid','mae','mol',9,99)");
    pl_text_addf(&sql, ",(1,1,'test','r2','mol',0.75,40),(1,1,'test','mae','mol',0.5,40)");
    for (int i = 0; i < 2; i++)
        pl_text_addf(&sql, ",(1,1,'test','%0*d.mae','mol',0.25,40)", 47 + i, i);
    for (int i = 1; i < 25; i++)
        pl_text_addf(&sql, ",(1,1,'test','c%02d.mae','mol',%d,40)", i, i);
    results_make(pl_text_str(&sql));
    kept = stdout_begin(&to);
    st_fit_errors_print(&app, at.path, false);
    stdout_end(to, kept);
    pl_text_addf(&want, "errors on 40 held-out molecules (test), in mol:\n%39s%9s%9s\n", "MAE", "RMSE", "R2");
    pl_text_addf(&want, "  the model%28s%18s\n    its %047d    0.250%18s\n", "0.500", "0.750", 0, "");
    for (int i = 1; i < 23; i++)
        pl_text_addf(&want, "    its c%02d%19s%#9.3g%18s\n", i, "", (double)i, "");
    assert_string_equal(printed, pl_text_str(&want));
    pl_text_free(&sql), pl_text_free(&want);
}

/* Who reads the file of a run that goes on, or that is killed, finds what was said so far. */
static void a_line_of_the_log_is_there_at_once(void **state)
{
    const pl_workflow wf = { .workdir = at.dir, .storage = { at.path, at.features, 0, false } };
    pl_error err = { 0 };
    char path[300], text[100];

    (void)state;
    for (int json = 0; json < 2; json++) {
        st_log log = { .max = PL_INFO, .json = json == 1 };
        (void)snprintf(path, sizeof path, "%s/b/%d.log", at.dir, json);
        assert_int_equal(st_log_open(&log, &wf, path, &err), PL_OK);
        pl_log(PL_INFO, "first");
        FILE *f = fopen(path, "r");
        assert_true(f != NULL && fgets(text, sizeof text, f) != NULL && fclose(f) == 0);
        assert_string_equal(text + strlen(json ? "{'time':'2026-11-27T08:00:00Z'" : "2026-11-27T08:00:00Z"),
                            json ? ",\"level\":\"info\",\"message\":\"first\"}\n" : " info  first\n");
        st_log_close(&log);
    }
}

static void a_log_is_no_database_that_is_still_to_be_made(void **state)
{
    const pl_workflow wf = { .workdir = at.dir, .storage = { at.path, at.features, 0, false } };
    st_log log = { .max = PL_INFO };
    pl_error err = { 0 };
    char path[300], want[400];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/b/to.db", at.dir);
    (void)snprintf(want, sizeof want, "--log %s: a database of the run has that name; name another file", path);
    assert_int_equal(symlink(path, at.path), 0); /* results.db is to be made there */
    assert_int_equal(st_log_open(&log, &wf, path, &err), PL_ECONFIG);
    assert_string_equal(err.text, want);
    assert_true(log.file == NULL && access(path, F_OK) != 0);
}

/* ---- the manual page ---- */

/* As troff reads it: line by line. */
static void roff_add(pl_text *out, const char *text)
{
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        if (text[0] == '.' || text[0] == '\'')
            pl_text_add(out, "\\&");
        for (size_t i = 0; i < n; i++)
            switch (text[i]) {
            case '\\': pl_text_add(out, "\\e"); break;
            case '-': pl_text_add(out, "\\-"); break;
            default: pl_text_add_n(out, text + i, 1); break;
            }
        pl_text_add(out, "\n");
        text += n + (text[n] == '\n');
    }
}

static void verbatim_add(pl_text *out, const char *text)
{
    pl_text_add(out, ".nf\n");
    roff_add(out, text);
    pl_text_add(out, ".fi\n");
}

static const pl_opt options[] = { { "--dry-run", 'n', NULL, "do nothing" },
                                  { "--to", 0, "FILE", ".hidden\n'quoted\nback\\slash" },
                                  { 0 } };
static const pl_cmd first = { .name = "first", .args = "FILE [x-y]", .help = "make-it", .about = "Text.\n.dot\n", .opts = options },
                    second = { .name = "second", .args = "", .help = "plain\n" };

static void the_manual_page_has_every_command_stage_and_topic(void **state)
{
    static const pl_cmd *const commands[] = { &first, &second, NULL };
    static const pl_stage *const known[] = { &stages[0], &stages[3], NULL };
    const pl_app app = { .commands = commands, .stages = known, .version = "1.2" };
    pl_text want = { 0 }, part = { 0 }, is = { 0 };
    int n_workflow = 0;

    (void)state;
    pl_text_add(&want, ".TH MOLSIEVE 1 \"\" \"molsieve 1.2\" \"User commands\"\n"
                       ".SH NAME\nmolsieve \\- screen molecules: files in, ranked and queryable results out\n"
                       ".SH SYNOPSIS\n.B molsieve\n.I command\n[arguments]\n.SH DESCRIPTION\n");
    pl_app_help(&app, &part);
    verbatim_add(&want, pl_text_str(&part));
    pl_text_add(&want, ".SH COMMANDS\n.SS molsieve first FILE [x\\-y]\nmake\\-it\n.PP\n.nf\nText.\n\\&.dot\n.fi\n"
                       ".TP\n\\-n, \\-\\-dry\\-run \ndo nothing\n"
                       ".TP\n\\-\\-to FILE\n\\&.hidden\n\\&'quoted\nback\\eslash\n"
                       ".SS molsieve second \nplain\n.SH STAGES\n");
    for (int k = 0; known[k] != NULL; k++) {
        pl_text_reset(&part);
        pl_stage_help(known[k], &part);
        pl_text_addf(&want, ".SS %s\n", known[k]->name);
        verbatim_add(&want, pl_text_str(&part));
    }
    for (const st_topic *t = st_topics; t->name != NULL; t++) {
        const bool workflow = strcmp(t->name, "workflow") == 0;
        pl_text_reset(&part);
        if (workflow)
            pl_workflow_help(&part);
        n_workflow += workflow && part.len > 100;
        pl_text_addf(&want, ".SH \"%s\"\n", t->title);
        verbatim_add(&want, t->text);
        verbatim_add(&want, pl_text_str(&part));
    }
    assert_int_equal(n_workflow, 1);
    st_man_write(&app, &is);
    assert_string_equal(pl_text_str(&is), pl_text_str(&want));
    pl_text_free(&want);
    pl_text_free(&part);
    pl_text_free(&is);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_adds_up_what_will_run),
        cmocka_unit_test(a_plan_without_work_says_so),
        cmocka_unit_test(a_plan_for_programs_has_numbers_or_null),
        cmocka_unit_test(a_plan_has_the_workers_of_the_command_or_the_workflow),
        cmocka_unit_test_setup_teardown(a_run_ends_with_counts_hits_and_what_comes_next, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(without_hits_other_commands_come_next, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(without_results_a_run_ends_without_a_word, folder_make, folder_drop),
        cmocka_unit_test(a_model_is_told_with_its_error_and_the_best_simple_one),
        cmocka_unit_test_setup_teardown(errors_of_a_fit_are_told_for_the_first_24, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(a_line_of_the_log_is_there_at_once, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(a_log_is_no_database_that_is_still_to_be_made, folder_make, folder_drop),
        cmocka_unit_test(the_manual_page_has_every_command_stage_and_topic),
    };

    return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
