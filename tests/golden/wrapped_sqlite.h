/* tests/golden/wrapped_sqlite.h - the calls of SQLite that a test refuses; linked with -Wl,--wrap=.. */
#ifndef TESTS_WRAPPED_SQLITE_H
#define TESTS_WRAPPED_SQLITE_H

#include <sqlite3.h>

int __real_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **st, const char **rest);
int __real_sqlite3_step(sqlite3_stmt *st);
int __real_sqlite3_exec(sqlite3 *db, const char *sql, int (*each)(void *, int, char **, char **), void *ctx, char **told);
int __real_sqlite3_extended_errcode(sqlite3 *db);
const char *__real_sqlite3_errmsg(sqlite3 *db);
int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **st, const char **rest);
int __wrap_sqlite3_step(sqlite3_stmt *st);
int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, int (*each)(void *, int, char **, char **), void *ctx, char **told);
int __wrap_sqlite3_extended_errcode(sqlite3 *db);
const char *__wrap_sqlite3_errmsg(sqlite3 *db);

#endif
