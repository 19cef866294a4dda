/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a statement as text: a sink that fails once ends the writing with its error; what a table leaves out is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "stages/database/rows.h"

typedef struct taken {
    int n, fails_at; /* calls */
} taken;

static pl_code take(void *ctx, const pl_text *text, pl_error *err)
{
    taken *t = ctx;

    assert_true(text->len > 0);
    return ++t->n == t->fails_at ? pl_fail(err, PL_EIO, "no space for it") : PL_OK;
}

/* More text than is collected before a call, and more rows than a table looks ahead. */
static const char many[] = "WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<8000) SELECT n, "
                           "'a text that fills the line' AS text FROM k";

static pl_code written(sqlite3 *db, st_format format, taken *t, int64_t *n_rows, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code;

    assert_int_equal(sqlite3_prepare_v2(db, many, -1, &st, NULL), SQLITE_OK);
    code = st_rows_write(st, format, 0, n_rows, take, t, err);
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    return code;
}

static void a_sink_that_fails_once_is_not_called_again(void **state)
{
    sqlite3 *db = NULL;
    int64_t n_rows;

    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    for (st_format format = ST_TABLE; format <= ST_JSONL; format++) {
        taken all = { 0 };
        assert_int_equal(written(db, format, &all, &n_rows, NULL), PL_OK);
        assert_true(n_rows == 8000 && all.n > 3);
        for (int at = 1; at <= all.n; at++) {
            taken some = { .fails_at = at };
            pl_error err = { 0 };
            assert_int_equal(written(db, format, &some, &n_rows, &err), PL_EIO);
            assert_string_equal(err.text, "no space for it");
            assert_int_equal(some.n, at);
        }
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static pl_code collect(void *ctx, const pl_text *text, pl_error *err)
{
    (void)err;
    pl_text_add(ctx, pl_text_str(text));
    return PL_OK;
}

/* The table of a query with n columns, the last of which is called "last". */
static void table_of(pl_text *out, sqlite3 *db, int n)
{
    sqlite3_stmt *st = NULL;
    pl_text sql = { 0 };
    pl_error err = { 0 };

    pl_text_add(&sql, "SELECT ");
    for (int i = 1; i < n; i++)
        pl_text_addf(&sql, "%d, ", i);
    pl_text_add(&sql, "7 AS last");
    assert_int_equal(sqlite3_prepare_v2(db, pl_text_str(&sql), -1, &st, NULL), SQLITE_OK);
    pl_text_reset(out);
    assert_int_equal(st_rows_write(st, ST_TABLE, 0, NULL, collect, out, &err), PL_OK);
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    pl_text_free(&sql);
}

static void a_table_says_how_many_columns_it_leaves_out(void **state)
{
    sqlite3 *db = NULL;
    pl_text out = { 0 };

    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    table_of(&out, db, 256);
    assert_non_null(strstr(pl_text_str(&out), "last"));
    assert_null(strstr(pl_text_str(&out), "not shown"));
    table_of(&out, db, 300);
    assert_null(strstr(pl_text_str(&out), "last"));
    assert_non_null(strstr(pl_text_str(&out), "\nnot shown: 44 columns; --csv and --json show all columns\n"));
    pl_text_free(&out);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_sink_that_fails_once_is_not_called_again),
                                        cmocka_unit_test(a_table_says_how_many_columns_it_leaves_out) };

    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
