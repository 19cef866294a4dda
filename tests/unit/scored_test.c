/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of several models, and what a part of the stage `score` keeps of a unit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "entries.h"
#include "pipeline/base/file.h"
#include "pipeline/store/open.h"
#include "stages/database/schema.h"
#include "stages/steps/score/score_parts.h"
#include "toy.h"

enum { MOLECULES = 3, TARGETS = 5 };

static pl_arena *mem;

static int make(void **unused)
{
    (void)unused;
    return (mem = pl_arena_new(1 << 16)) == NULL;
}

static int drop(void **unused)
{
    (void)unused;
    pl_arena_free(mem);
    return 0;
}

/* Five targets: two have the training molecules of the first, one of a model without any, one others. */
static st_scorer *scorer(void)
{
    st_scorer *s = PL_NEW(mem, st_scorer, 1);
    static const int searched[] = { 0, 0, -1, 3, 0 };

    assert_non_null(s);
    s->n_targets = TARGETS;
    s->has_range = true;
    for (int k = 0; k < TARGETS; k++)
        s->target[k].searched = searched[k];
    return s;
}

static st_scored unit(void)
{
    static int64_t id[] = { 7, 9, 1LL << 40 };
    static st_outcome outcome[MOLECULES * TARGETS];
    static nn_near near[2][MOLECULES] = { { { 0.5, "ABC" }, { NAN, NULL }, { 1, "" } },
                                          { { 0.25, "D" }, { 0, "EF" }, { NAN, NULL } } };
    static nn_traits traits[MOLECULES];
    st_scored u = { .n = MOLECULES, .id = id, .outcome = outcome, .traits = traits, .radial_error = 1e-7 };

    for (int i = 0; i < MOLECULES * TARGETS; i++)
        outcome[i] = (st_outcome){ i + 0.5, i == 2 ? NAN : 0.1 * i, 0.01 * i, i == 4 ? 17 : 0 };
    for (int i = 0; i < MOLECULES; i++) {
        memset(&traits[i], 0, sizeof traits[i]);
        traits[i].number[0] = 3 + i;
        traits[i].ring_sizes = 1U << i;
        traits[i].n_kinds = i == 1 ? NN_KINDS_MAX + 1 : i;
        for (int k = 0; k < traits[i].n_kinds; k++)
            traits[i].kind[k] = (nn_kind){ (uint8_t)(6 + k), (int8_t)(i - 1), k == 1 };
    }
    for (int k = 0; k < TARGETS; k++)
        u.near[k] = k == 2 ? NULL : near[k == 3];
    return u;
}

static void same_near(const nn_near *a, const nn_near *b)
{
    for (int i = 0; i < MOLECULES; i++) {
        assert_memory_equal(&a[i].alike, &b[i].alike, sizeof a->alike);
        assert_int_equal(a[i].key == NULL, b[i].key == NULL);
        if (a[i].key != NULL)
            assert_string_equal(a[i].key, b[i].key);
    }
}

static void a_unit_is_the_same_after_it_was_kept(void **unused)
{
    const st_scorer *s = scorer();
    const st_scored u = unit();
    pl_text bytes = { 0 };
    st_scored got;

    (void)unused;
    st_score_bytes_put(&bytes, s, &u);
    assert_true(st_score_bytes_get(&got, s, (pl_bytes){ pl_text_str(&bytes), bytes.len }, mem));
    assert_int_equal(got.n, u.n);
    assert_true(got.radial_error == u.radial_error);
    assert_memory_equal(got.id, u.id, MOLECULES * sizeof *u.id);
    for (int i = 0; i < MOLECULES * TARGETS; i++) {
        assert_memory_equal(&got.outcome[i], &u.outcome[i], offsetof(st_outcome, unknown));
        assert_int_equal(got.outcome[i].unknown, u.outcome[i].unknown);
    }
    for (int k = 0; k < TARGETS; k++) {
        if (k == 2)
            assert_null(got.near[k]);
        else
            same_near(got.near[k], u.near[k]);
    }
    assert_true(got.near[1] == got.near[0] && got.near[4] == got.near[0] && got.near[3] != got.near[0]);
    for (int i = 0; i < MOLECULES; i++)
        assert_memory_equal(&got.traits[i], &u.traits[i],
                            offsetof(nn_traits, kind) + (size_t)u.traits[i].n_kinds * sizeof(nn_kind));
    pl_text_free(&bytes);
}

static void bytes_that_are_cut_or_of_another_scorer_are_refused(void **unused)
{
    st_scorer *s = scorer();
    const st_scored u = unit();
    pl_text bytes = { 0 };
    st_scored got;
    char *copy;

    (void)unused;
    st_score_bytes_put(&bytes, s, &u);
    copy = pl_arena_get(mem, bytes.len + 1, 1);
    assert_non_null(copy);
    for (size_t n = 0; n < bytes.len; n++) { /* in memory of its own, so that a sanitizer sees what is read behind it */
        char *part = malloc(n > 0 ? n : 1);
        assert_non_null(part);
        memcpy(part, pl_text_str(&bytes), n);
        assert_false(st_score_bytes_get(&got, s, (pl_bytes){ part, n }, mem));
        free(part);
    }
    memcpy(copy, pl_text_str(&bytes), bytes.len);
    copy[bytes.len] = 0;
    assert_false(st_score_bytes_get(&got, s, (pl_bytes){ copy, bytes.len + 1 }, mem));
    for (int32_t n = -1; n <= 1; n += 2) { /* of the molecules, and of a model's kinds of atoms */
        const int32_t wrong = n < 0 ? -1 : INT32_MAX;
        memcpy(copy, &wrong, sizeof wrong);
        assert_false(st_score_bytes_get(&got, s, (pl_bytes){ copy, bytes.len }, mem));
        memcpy(copy, &u.n, sizeof u.n);
        memcpy(copy + bytes.len - offsetof(nn_traits, kind) - 2 * sizeof(nn_kind) - sizeof wrong, &wrong, sizeof wrong);
        assert_false(st_score_bytes_get(&got, s, (pl_bytes){ copy, bytes.len }, mem));
        memcpy(copy, pl_text_str(&bytes), bytes.len);
    }
    s->has_range = false;
    assert_false(st_score_bytes_get(&got, s, (pl_bytes){ copy, bytes.len }, mem));
    pl_text_free(&bytes);
}

/* ---- files of parts ---- */

static const char *here(const pl_step *step, pl_arena *to)
{
    (void)step;
    return pl_strdup(to, "here");
}

/* A file of a part in `dir`, of this key and machine, with one unit. wrong: its hash is of other bytes (1), or cut (2). */
static void part_make(const char *dir, const char *part, const char *key, const char *level, int64_t unit, const pl_text *data,
                      int wrong)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *put = NULL;
    const char *path = pl_sprintf(mem, "%s/parts/%s", dir, part);
    pl_error err = { 0 };

    assert_int_equal(pl_mkdirs(path, NULL), PL_OK);
    path = pl_sprintf(mem, "%s/scores.db", path);
    if (pl_open_file(&db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 1000, &err) != PL_OK ||
        pl_db_execf(
            db, &err,
            "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT); INSERT INTO meta VALUES('key',%Q),('level',%Q),('state','done');"
            "CREATE TABLE scored(unit INTEGER PRIMARY KEY, data BLOB, sha256 BLOB)",
            key, level) != PL_OK ||
        pl_db_prepare(db, &put, "INSERT INTO scored VALUES(?,?,?)", &err) != PL_OK ||
        st_score_part_put(put, unit, data, &err) != PL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(sqlite3_finalize(put), SQLITE_OK);
    if (wrong != 0)
        assert_int_equal(
            pl_db_exec(db, wrong == 1 ? "UPDATE scored SET sha256=zeroblob(32)" : "UPDATE scored SET sha256=substr(sha256,1,31)",
                       NULL),
            PL_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t warnings(const pl_store *s)
{
    int64_t n = -1;
    pl_error err = { 0 };

    if (pl_db_int(s->db, &n, &err, "SELECT count(*) FROM event WHERE level='warn' AND message LIKE 'scores%%machine%%'") != PL_OK)
        fail_msg("%s", err.text);
    return n;
}

/* A unit is that of its part, of the same key and machine, and whole; nothing stays open. */
static void a_unit_is_taken_from_the_file_of_its_part(void **unused)
{
    static const pl_stage stage = { .name = "score", .level = here };
    const pl_step step = { .stage = &stage, .key = "key" };
    const char *level = st_score_part_level(&step, mem);
    const st_scorer *s = scorer();
    const st_scored u = unit();
    char dir[256];
    st_score_taken t = { 0 };
    pl_text bytes = { 0 }, cut = { 0 };
    const int open_before = count_in("/proc/self/fd");

    (void)unused;
    toy_directory(dir);
    const pl_workflow wf = { .workdir = dir,
                             .storage = { pl_sprintf(mem, "%s/a.db", dir), pl_sprintf(mem, "%s/b.db", dir), 0, false } };
    pl_env env = { .wf = &wf, .step = &step, .mem = mem, .run_id = 1 };
    assert_int_equal(pl_store_open(&env.store, &wf, &st_schema, NULL), PL_OK);
    assert_int_equal(pl_db_exec(env.store->db,
                                "INSERT INTO run(run_id,uuid,command,argv_json,config_yaml,config_sha256,state,started_utc,"
                                "program_version) VALUES(1,'u','run','[]','','','running','','0')",
                                NULL),
                     PL_OK);
    st_score_taken_open(&t, &env); /* there are none */
    assert_int_equal(t.n, 0);
    st_score_bytes_put(&bytes, s, &u);
    pl_text_add_n(&cut, bytes.s, bytes.len - 1);
    part_make(dir, "00001-of-00002", "key", level, 3, &bytes, 0);
    part_make(dir, "00000-of-00002", "key", level, 4, &bytes, 1);
    part_make(dir, "00004-of-00007", "key", level, 25, &bytes, 2);
    part_make(dir, "00001-of-00005", "other", level, 6, &bytes, 0);
    part_make(dir, "00002-of-00003", "key", level, 20, &cut, 0);
    part_make(dir, "00007-of-00011x", "key", level, 18, &bytes, 0);
    part_make(dir, "junk", "key", level, 0, &bytes, 0);
    st_score_taken_open(&t, &env);
    assert_int_equal(t.n, 4);
    for (int64_t k = 0; k < 30; k++) {
        st_scored got = { 0 };
        assert_int_equal(st_score_taken_unit(&got, &t, s, &env, k, mem), k == 3);
        assert_true(k != 3 || (got.n == u.n && got.id[2] == u.id[2]));
    }
    assert_int_equal(warnings(env.store), 0);
    part_make(dir, "00000-of-00013", "key", "there", 13, &bytes, 0); /* told of once */
    t = (st_score_taken){ 0 };
    st_score_taken_open(&t, &env);
    for (int k = 0; k < 2; k++)
        assert_false(st_score_taken_unit(&(st_scored){ 0 }, &t, s, &env, 13, mem));
    assert_int_equal(warnings(env.store), 1);
    pl_text_free(&bytes);
    pl_text_free(&cut);
    pl_store_close(env.store);
    assert_int_equal(count_in("/proc/self/fd"), open_before);
    toy_remove(dir);
}

/* ---- scores ---- */

/* Three models of the properties 1, 1 and 2, the last with two outputs; intervals of half-width 1, 2, 3 and 4, at similarities from 0. */
static st_scorer *predicting(void)
{
    static nn_model_file model[3];
    static nn_target target[4];
    st_scorer *s = PL_NEW(mem, st_scorer, 1);

    assert_non_null(s);
    memset(model, 0, sizeof model);
    for (int k = 0; k < 4; k++) {
        target[k] =
            (nn_target){ .name = k == 3 ? "other" : "first", .unit = "", .better = "none", .interval = { .part = "test", .n = 1 } };
        target[k].interval.band[0] = (nn_band){ .within = k + 1 };
    }
    for (int k = 0; k < 3; k++) {
        model[k] =
            (nn_model_file){ .name = (const char *[]){ "a", "b", "c" }[k], .target = target + k, .conf.outputs = 1 + (k == 2) };
        assert_int_equal(st_scorer_add(s, &model[k], NN_MIRROR_AS_IS, NULL), PL_OK);
        assert_true(s->n_models == k + 1 && s->model[k].m == &model[k] && s->target[k].searched == -1);
    }
    assert_true(s->n_targets == 4 && !s->has_range && !s->describes && !s->mirrors);
    for (int k = 0; k < 4; k++) {
        assert_true(s->target[k].model == (k < 3 ? k : 2) && s->target[k].output == (k == 3));
        s->target[k].property_id = k < 2 ? 1 : k;
    }
    return s;
}

static void a_score_is_the_mean_of_what_is_good(void **unused)
{
    const st_scorer *s = predicting();
    static const nn_near near[3][2] = { { { 0, NULL }, { 0.5, "A" } },
                                        { { 0, NULL }, { 0.4, "B" } },
                                        { { 0, NULL }, { 0.9, "C" } } };
    st_outcome o[2][4] = { { { .value = 9 } }, { { .value = 1 }, { .value = 4 }, { .value = 7 }, { .value = 8 } } };
    st_scored u = { .n = 2, .outcome = o[0], .near = { near[0], near[1], near[2], near[2] } };
    pl_text reasons = { 0 };
    st_value v;

    (void)unused;
    assert_int_equal(st_scorer_value(&v, s, &u, 1, 0, &(nn_case){ 0 }, &reasons, NULL), PL_OK);
    assert_true(v.mean == 2.5 && fabs(v.stdev - sqrt(4.5)) < 1e-15 && v.n_models == 2 && v.similarity == 0.4 && v.interval90 == 2);
    assert_true(v.domain == NULL && v.reasons == NULL); /* no model has a range */
    assert_int_equal(st_scorer_value(&v, s, &u, 1, 2, &(nn_case){ 0 }, &reasons, NULL), PL_OK);
    assert_true(v.mean == 7 && isnan(v.stdev) && v.n_models == 1 && v.similarity == 0.9 && v.interval90 == 3);
    assert_true(st_scorer_is_first(s, o[1], 0) && !st_scorer_is_first(s, o[1], 1) && st_scorer_is_first(s, o[1], 2));
    o[1][0].unknown = 35;
    assert_true(!st_scorer_is_first(s, o[1], 0) && st_scorer_is_first(s, o[1], 1));
    assert_int_equal(st_scorer_value(&v, s, &u, 1, 1, &(nn_case){ 0 }, &reasons, NULL), PL_OK);
    assert_true(v.mean == 4 && v.n_models == 1 && v.similarity == 0.4 && v.interval90 == 2);
    o[1][3].value = INFINITY;
    assert_false(st_outcome_is_good(&o[1][3]) || st_outcome_is_good(&o[1][0]) || st_scorer_is_first(s, o[1], 3));
    u.near[1] = NULL;
    assert_true(isnan(st_scored_near(&u, 1, 1).alike) && st_scored_near(&u, 1, 1).key == NULL &&
                st_scored_near(&u, 1, 0).alike == 0.5);
    pl_text_free(&reasons);
}

static void what_has_no_score_says_why(void **unused)
{
    const st_scorer *s = predicting();
    st_outcome o[4] = { { .value = NAN }, { .unknown = 35 }, { .unknown = 35 }, { .unknown = 35 } };
    const char *code;
    char out[480];

    (void)unused;
    assert_string_equal(st_scorer_problem(s, o, 0, out, &code), "model a gives no finite number");
    assert_string_equal(code, "not_finite");
    assert_string_equal(st_scorer_problem(s, o, 1, out, &code), "model b has not seen element Br");
    assert_string_equal(code, "element");
    assert_string_equal(st_scorer_problem(s, o, 2, out, &code), "model c has not seen element Br");
    assert_null(st_scorer_problem(s, o, 3, out, &code)); /* said for its first output */
    o[3] = (st_outcome){ .value = INFINITY };
    assert_string_equal(st_scorer_problem(s, o, 3, out, &code), "model c gives no finite number for other");
}

static void structures_of_one_molecule_are_adjacent(void **unused)
{
    const st_scorer *s = predicting();
    const int64_t id[] = { 5, 5, 2, 9, 9, 9 };
    st_scored u = { 0 };

    (void)unused;
    assert_int_equal(st_scored_make(&u, s, id, 6, mem, NULL), PL_OK);
    assert_true(u.n == 3 && u.n_structures == 6 && u.id[0] == 5 && u.id[1] == 2 && u.id[2] == 9);
    assert_true(u.structure[0] == 0 && u.structure[1] == 2 && u.structure[2] == 3 && u.structure[3] == 6);
    assert_int_equal(st_scored_make(&u, s, id, 0, mem, NULL), PL_OK);
    assert_true(u.n == 0 && u.structure[0] == 0);
}

static void models_may_predict_256_numbers(void **unused)
{
    static nn_target target[ST_SCORES_MAX];
    st_scorer *s = PL_NEW(mem, st_scorer, 1);
    nn_model_file m = { .name = "a", .conf.outputs = ST_SCORES_MAX - 1, .target = target },
                  two = { .name = "b", .conf.outputs = 2, .target = target };
    pl_error err = { 0 };

    (void)unused;
    for (int k = 0; k < ST_SCORES_MAX; k++)
        target[k] = (nn_target){ .name = "y", .unit = "", .better = "none" };
    assert_int_equal(st_scorer_add(s, &m, NN_MIRROR_AS_IS, NULL), PL_OK);
    assert_int_equal(st_scorer_add(s, &two, NN_MIRROR_AS_IS, &err), PL_ECONFIG);
    assert_string_equal(err.text, "models: they predict more than 256 numbers");
    two.conf.outputs = 1;
    s->n_models--;
    assert_int_equal(st_scorer_add(s, &two, NN_MIRROR_AS_IS, NULL), PL_OK);
    assert_int_equal(s->n_targets, ST_SCORES_MAX);
}

/* Each column that a model reads is looked up by its name; the model that reads another is named. */
static void columns_are_placed_by_name_for_each_model(void **state)
{
    static const char *const there[] = { "pH", "T", "pressure" };
    nn_model_file one = { .name = "one", .conf.outputs = 1 }, two = { .name = "two", .conf.outputs = 1 };
    st_scorer *s = PL_NEW(mem, st_scorer, 1);
    pl_error err = { 0 };

    (void)state;
    assert_non_null(s);
    one.inputs.n_columns = 2;
    one.inputs.column[0].name = "T";
    one.inputs.column[1].name = "pH";
    two.inputs.n_columns = 1;
    two.inputs.column[0].name = "pressure";
    s->n_models = 2;
    s->model[0].m = &one;
    s->model[1].m = &two;
    assert_int_equal(st_scorer_place(s, there, 3, &err), PL_OK);
    assert_true(one.inputs.column[0].at == 1 && one.inputs.column[1].at == 0 && two.inputs.column[0].at == 2);
    assert_int_equal(st_scorer_place(s, there, 2, &err), PL_ECONFIG);
    assert_string_equal(err.where, "model two");
    assert_string_equal(err.text, "there is no column pressure, which the model reads");
    err = (pl_error){ 0 };
    assert_int_equal(st_scorer_place(s, there + 1, 2, &err), PL_ECONFIG); /* the first one ends it */
    assert_string_equal(err.where, "model one");
    assert_string_equal(err.text, "there is no column pH, which the model reads");
}

#define WITH_MEMORY(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MEMORY(a_unit_is_the_same_after_it_was_kept),
        WITH_MEMORY(bytes_that_are_cut_or_of_another_scorer_are_refused),
        WITH_MEMORY(a_score_is_the_mean_of_what_is_good),
        WITH_MEMORY(what_has_no_score_says_why),
        WITH_MEMORY(a_unit_is_taken_from_the_file_of_its_part),
        WITH_MEMORY(structures_of_one_molecule_are_adjacent),
        WITH_MEMORY(models_may_predict_256_numbers),
        WITH_MEMORY(columns_are_placed_by_name_for_each_model),
    };

    return cmocka_run_group_tests_name("scored", tests, NULL, NULL);
}
