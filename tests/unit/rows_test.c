/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a statement as text: a sink that fails once ends the writing with its error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_sink_that_fails_once_is_not_called_again) };

    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
