/* tests/unit/statements.h - checks that every statement is finalized when its database is closed, and that every database is closed.
 *
 * For programs linked with -Wl,--wrap=sqlite3_open,--wrap=sqlite3_open_v2,--wrap=sqlite3_close,--wrap=sqlite3_close_v2. */
#ifndef TESTS_STATEMENTS_H
#define TESTS_STATEMENTS_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>

static int statements_left; /* in databases that were closed */
static atomic_int databases_open;

int __real_sqlite3_open(const char *path, sqlite3 **db);
int __real_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs);
int __wrap_sqlite3_open(const char *path, sqlite3 **db);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs);
int __real_sqlite3_close(sqlite3 *db);
int __real_sqlite3_close_v2(sqlite3 *db);
int __wrap_sqlite3_close(sqlite3 *db);
int __wrap_sqlite3_close_v2(sqlite3 *db);

/* A database is there, and is to be closed, also where it could not be opened. */
int __wrap_sqlite3_open(const char *path, sqlite3 **db)
{
    const int rc = __real_sqlite3_open(path, db);

    (void)atomic_fetch_add(&databases_open, *db != NULL);
    return rc;
}

int __wrap_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs)
{
    const int rc = __real_sqlite3_open_v2(path, db, flags, vfs);

    (void)atomic_fetch_add(&databases_open, *db != NULL);
    return rc;
}

static void statements_count(sqlite3 *db)
{
    (void)atomic_fetch_sub(&databases_open, db != NULL);
    for (sqlite3_stmt *st = NULL; db != NULL && (st = sqlite3_next_stmt(db, st)) != NULL; statements_left++)
        (void)fprintf(stderr, "not finalized: %s\n", sqlite3_sql(st));
}

int __wrap_sqlite3_close(sqlite3 *db)
{
    statements_count(db);
    return __real_sqlite3_close(db);
}

int __wrap_sqlite3_close_v2(sqlite3 *db)
{
    statements_count(db);
    return __real_sqlite3_close_v2(db);
}

static inline void nothing_is_left_open(void)
{
    assert_int_equal(statements_left, 0);
    assert_int_equal(atomic_load(&databases_open), 0);
}

#endif
