/* SPDX-License-Identifier: Apache-2.0 */
/* Where a reader finds features.db after directories were moved and copied; what a migration that fails leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/store/open.h"
#include "toy.h"

static toy t;
static char top[256], dir[300], other[300]; /* a directory of the test; the workdir and another place in it */
static char at[400];

static const char *in(const char *folder, const char *name)
{
    (void)snprintf(at, sizeof at, "%s/%s", folder, name);
    return at;
}

static int make(void **unused)
{
    (void)unused;
    toy_directory(top);
    (void)snprintf(dir, sizeof dir, "%s/w", top);
    (void)snprintf(other, sizeof other, "%s/other", top);
    toy_make(&t, dir, 2);
    return pl_mkdirs(other, NULL) != PL_OK;
}

static int drop(void **unused)
{
    (void)unused;
    toy_free(&t);
    toy_remove(top);
    return 0;
}

/* A run with its features at this path. */
static void run_with(const char *features)
{
    pl_error err = { 0 };

    t.wf.storage.features = pl_strdup(t.mem, features);
    if (toy_run(&t, 1, &err) != PL_OK)
        fail_msg("%s", err.text);
}

/* A reader of these results opens those features, and finds the blocks of two units there. */
static void reads(const char *results, const char *features)
{
    pl_store *s = NULL;
    pl_error err = { 0 };
    int64_t n = 0;

    assert_int_equal(pl_store_open_read(&s, results, &toy_schema, &err), PL_OK);
    assert_string_equal(s->features_path, features);
    assert_true(pl_store_has_features(s));
    assert_int_equal(pl_store_features(s, &err), PL_OK);
    assert_int_equal(pl_db_int(s->features, &n, &err, "SELECT count(*) FROM block"), PL_OK);
    assert_int_equal(n, 4);
    pl_store_close(s);
}

/* ---- features.db ---- */

static void a_directory_that_was_copied_or_moved_has_its_own(void **unused)
{
    char a[400], b[400], moved[300];

    (void)unused;
    run_with(in(dir, "features.db"));
    (void)snprintf(a, sizeof a, "%s/results.db", other);
    (void)snprintf(b, sizeof b, "%s/features.db", other);
    assert_int_equal(toy_copy(in(dir, "results.db"), a), PL_OK);
    assert_int_equal(toy_copy(in(dir, "features.db"), b), PL_OK);
    reads(a, b);
    (void)snprintf(moved, sizeof moved, "%s/moved", top);
    assert_int_equal(rename(other, moved), 0);
    (void)snprintf(a, sizeof a, "%s/results.db", moved);
    (void)snprintf(b, sizeof b, "%s/features.db", moved);
    reads(a, b);
    assert_int_equal(unlink(b), 0); /* without its own it reads those of the run */
    (void)snprintf(b, sizeof b, "%s/features.db", dir);
    reads(a, b);
}

static void features_of_another_name_are_found_beside_the_results(void **unused)
{
    char a[400], b[400];

    (void)unused;
    run_with(in(dir, "mine.db"));
    (void)snprintf(a, sizeof a, "%s/results.db", other);
    assert_int_equal(toy_copy(in(dir, "results.db"), a), PL_OK);
    (void)snprintf(b, sizeof b, "%s/mine.db", other);
    assert_int_equal(toy_copy(in(dir, "mine.db"), b), PL_OK);
    reads(a, b);
}

static void features_elsewhere_are_read_there_even_if_others_are_near(void **unused)
{
    char elsewhere[400], a[400], near[400];

    (void)unused;
    (void)snprintf(elsewhere, sizeof elsewhere, "%s/fast.db", other);
    run_with(elsewhere);
    (void)snprintf(a, sizeof a, "%s/results.db", dir);
    (void)snprintf(near, sizeof near, "%s/features.db", dir);
    reads(a, elsewhere);
    assert_int_equal(toy_copy(elsewhere, near), PL_OK);
    reads(a, elsewhere);
    assert_int_equal(unlink(elsewhere), 0); /* a disk of a node that is not there any more */
    reads(a, near);
}

/* ---- migrations ---- */

static int64_t version_of(const char *path)
{
    pl_identity is = { 0 };
    sqlite3 *db = NULL;

    assert_int_equal(pl_open_reader(&db, path, &is, NULL), PL_OK);
    (void)sqlite3_close(db);
    return is.version;
}

static pl_code open_as(const pl_schema *schema, pl_error *err)
{
    pl_store *s = NULL;
    pl_code code = pl_store_open(&s, &t.wf, schema, err);

    assert_int_equal(s != NULL, code == PL_OK);
    pl_store_close(s);
    return code;
}

static void a_format_without_a_way_to_ours_is_left_as_it_is(void **unused)
{
    static const char *const up[] = { NULL, NULL, "CREATE TABLE extra(x)" };
    pl_schema three = toy_schema;
    pl_error err = { 0 };
    char results[400];

    (void)unused;
    run_with(in(dir, "features.db"));
    (void)snprintf(results, sizeof results, "%s/results.db", dir);
    three.version = 3;
    three.migrate = up;
    assert_int_equal(open_as(&three, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "results.db: format 1 is too old for this program; use --fresh"));
    assert_int_equal(version_of(results), 1);
    assert_true(pl_path_is_gone(in(dir, "results.db.format1")));
    assert_int_equal(open_as(&toy_schema, &err), PL_OK);
}

static void a_migration_that_fails_goes_on_where_it_was(void **unused)
{
    const char *up[] = { NULL, "CREATE TABLE extra(x)", "ALTER TABLE nothing ADD COLUMN y" };
    pl_schema three = toy_schema;
    pl_error err = { 0 };
    char results[400];

    (void)unused;
    run_with(in(dir, "features.db"));
    (void)snprintf(results, sizeof results, "%s/results.db", dir);
    three.version = 3;
    three.migrate = up;
    assert_int_equal(open_as(&three, &err), PL_EBUG);
    assert_non_null(strstr(err.text, "nothing"));
    assert_int_equal(version_of(results), 2);
    assert_int_equal(version_of(in(dir, "results.db.format1")), 1);
    up[2] = "ALTER TABLE extra ADD COLUMN y";
    assert_int_equal(open_as(&three, &err), PL_OK);
    assert_int_equal(version_of(results), 3);
    assert_int_equal(version_of(in(dir, "results.db.format2")), 2);
    assert_int_equal(version_of(in(dir, "results.db.format1")), 1);
}

#define OF_RUN(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_RUN(a_directory_that_was_copied_or_moved_has_its_own),
        OF_RUN(features_of_another_name_are_found_beside_the_results),
        OF_RUN(features_elsewhere_are_read_there_even_if_others_are_near),
        OF_RUN(a_format_without_a_way_to_ours_is_left_as_it_is),
        OF_RUN(a_migration_that_fails_goes_on_where_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
