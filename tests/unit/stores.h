/* tests/unit/stores.h - a database of a workflow of three toy stages. Include it once, after cmocka.h. */
#ifndef STORES_H
#define STORES_H

#include <stdint.h>
#include <stdio.h>

#include "toy.h"

static toy t;
static pl_store *s;
static char dir[256];

static int make(void **state)
{
    (void)state;
    toy_directory(dir);
    toy_make(&t, dir, 3);
    return pl_store_open(&s, &t.wf, &toy_schema, NULL) != PL_OK || pl_store_features(s, NULL) != PL_OK;
}

static int drop(void **state)
{
    (void)state;
    pl_store_close(s);
    s = NULL;
    toy_free(&t);
    toy_remove(dir);
    return 0;
}

static inline void write_file(const char *name, const char *text)
{
    char path[400];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static inline pl_code reopen(const pl_schema *schema, pl_error *err)
{
    pl_store_close(s);
    return pl_store_open(&s, &t.wf, schema, err);
}

static inline int64_t count(sqlite3 *db, const char *sql)
{
    int64_t n = -1;

    assert_int_equal(pl_db_int(db, &n, NULL, "%s", sql), PL_OK);
    return n;
}

/* All stages are run; results and features are open again. */
static inline void run_all(void)
{
    pl_store_close(s);
    s = NULL;
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, NULL), PL_OK);
    assert_int_equal(pl_store_features(s, NULL), PL_OK);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make, drop)

#endif
