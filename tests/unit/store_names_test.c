/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of databases, of their copies and locks that are as long as they may be, and one byte longer. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/lock/lock.h"
#include "pipeline/run/runner.h"
#include "tests/unit/long_name.h"
#include "tests/unit/stores.h"

/* ---- paths that do not fit ---- */

/* The message has both ends of the path. */
static void too_long(const char *end, pl_code code, const pl_error *err)
{
    const size_t n = strlen(err->text);
    char want[60];
    const size_t tail = (size_t)snprintf(want, sizeof want, "/%s: path too long", end);

    assert_int_equal(code, PL_EIO);
    assert_true(n > tail + strlen(dir));
    assert_string_equal(err->text + n - tail, want);
    assert_memory_equal(err->text, dir, strlen(dir));
}

static void fits(pl_code code, const pl_error *err)
{
    if (code != PL_OK)
        fail_msg("%s", err->text);
}

static void names_of_copies_are_refused_only_where_they_do_not_fit(void **state)
{
    const size_t most = PATH_MAX - 1 - strlen(".tmp-journal");
    pl_error err = { 0 };

    (void)state;
    fits(pl_store_copy(s, long_name(dir, "copy", most), &err), &err);
    assert_int_equal(access(long_name(dir, "copy", most), F_OK), 0);
    too_long("copy", pl_store_copy(s, long_name(dir, "copy", most + 1), &err), &err);
}

/* Without ".format1" the name fits; with it, it would fit, too, but not as the name of what is being copied. */
static void a_copy_before_a_migration_needs_a_name_that_fits(void **state)
{
    static const char *const up[] = { NULL, "CREATE TABLE extra(x)" };
    static const char *const names[] = { "y.db", "x.db" }, *const named[] = { "y.db.format1", "x.db" };
    pl_schema two = toy_schema;

    (void)state;
    two.version = 2;
    two.migrate = up;
    for (size_t over = 0; over < 2; over++) {
        pl_error err = { 0 };
        t.wf.storage.results = pl_strdup(t.mem, long_name(dir, names[over], PATH_MAX - 1 - strlen(".format1") + over));
        assert_int_equal(reopen(&toy_schema, &err), PL_OK);
        too_long(named[over], reopen(&two, &err), &err);
    }
}

static void a_folder_of_results_is_made_only_if_its_name_fits(void **state)
{
    const size_t most = PATH_MAX + strlen("r.db");
    pl_error err = { 0 };

    (void)state;
    t.wf.storage.results = pl_strdup(t.mem, long_name(dir, "r.db", most));
    fits(reopen(&toy_schema, &err), &err); /* SQLite shortens it */
    t.wf.storage.results = pl_strdup(t.mem, long_name(dir, "r.db", most + 1));
    too_long("r.db", reopen(&toy_schema, &err), &err);
}

static void features_beside_results_need_a_name_that_fits(void **state)
{
    const size_t most = PATH_MAX - 1 - strlen("features.db") + strlen("results.db");
    pl_error err = { 0 };
    pl_store *r = NULL;

    (void)state;
    fits(pl_store_open_read(&r, long_name(dir, "results.db", most), &toy_schema, &err), &err);
    pl_store_close(r);
    too_long("results.db", pl_store_open_read(&r, long_name(dir, "results.db", most + 1), &toy_schema, &err), &err);
}

static void the_copy_of_earlier_results_has_a_name_of_its_own(void **state)
{
    static const struct {
        const char *results, *previous;
    } cases[] = { { "a/results.db", "a/results.previous.db" },
                  { "x.db", "x.previous.db" },
                  { ".db", ".db.previous.db" },
                  { "db", "db.previous.db" },
                  { "results.dbx", "results.dbx.previous.db" } };
    char out[100];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pl_store is = { .results_path = cases[i].results };
        const size_t n = strlen(cases[i].previous) + 1;
        assert_true(pl_previous_path(&is, out, n));
        assert_string_equal(out, cases[i].previous);
        assert_false(pl_previous_path(&is, out, n - 1));
    }
}

static void a_lock_of_results_elsewhere_needs_a_name_that_fits(void **state)
{
    const size_t most = PATH_MAX - 1 - strlen(".lock");
    pl_error err = { 0 };
    pl_locks locks;

    (void)state;
    t.wf.storage.results = pl_strdup(t.mem, long_name(dir, "r.db", most));
    fits(pl_locks_take(&locks, &t.wf, &err), &err);
    pl_locks_drop(&locks);
    t.wf.storage.results = pl_strdup(t.mem, long_name(dir, "r.db", most + 1));
    too_long("r.db", pl_locks_take(&locks, &t.wf, &err), &err);
}

static void a_run_that_cannot_keep_the_earlier_results_ends(void **state)
{
    static const char *const names[] = { "y.db", "x.db" }, *const named[] = { "y.previous.db", "x.db" };
    const size_t most = PATH_MAX - 1 - strlen(".previous.db") + strlen(".db");

    (void)state;
    for (size_t over = 0; over < 2; over++) {
        pl_error err = { 0 };
        t.wf.storage.results = pl_strdup(t.mem, long_name(dir, names[over], most + over));
        t.conf[1].offset = 0;
        fits(toy_run(&t, 1, &err), &err);
        t.conf[1].offset = 5;
        too_long(named[over], toy_run(&t, 1, &err), &err);
        assert_int_equal(toy_int(&t, "SELECT max(value) FROM square"), 168 * 168); /* nothing was removed */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(names_of_copies_are_refused_only_where_they_do_not_fit), CASE(a_copy_before_a_migration_needs_a_name_that_fits),
        CASE(a_folder_of_results_is_made_only_if_its_name_fits),      CASE(features_beside_results_need_a_name_that_fits),
        CASE(the_copy_of_earlier_results_has_a_name_of_its_own),      CASE(a_lock_of_results_elsewhere_needs_a_name_that_fits),
        CASE(a_run_that_cannot_keep_the_earlier_results_ends),
    };
    return cmocka_run_group_tests_name("store_names", tests, NULL, NULL);
}
