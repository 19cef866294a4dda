/* tests/unit/statements.h - checks that every statement is finalized when its database is closed.
 *
 * For programs linked with -Wl,--wrap=sqlite3_close,--wrap=sqlite3_close_v2. */
#ifndef TESTS_STATEMENTS_H
#define TESTS_STATEMENTS_H

#include <sqlite3.h>
#include <stdio.h>

static int statements_left; /* in databases that were closed */

int __real_sqlite3_close(sqlite3 *db);
int __real_sqlite3_close_v2(sqlite3 *db);
int __wrap_sqlite3_close(sqlite3 *db);
int __wrap_sqlite3_close_v2(sqlite3 *db);

static void statements_count(sqlite3 *db)
{
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

#endif
