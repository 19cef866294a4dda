/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: prints on standard error the statements that are not finalized when their database is closed, and a progress handler
 * that is still there when another is set or the database is closed (cli/transcript.py). With REVERSED=1 SQLite gives the rows of a query
 * without ORDER BY in another order, as it may with an index of another program. With INTERRUPTED=TEXT the first statement that has the
 * text sends SIGTERM to the program. */
#include <dlfcn.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int open_one(const char *name, sqlite3 **db, int flags, const char *vfs);
typedef int close_one(sqlite3 *db);
typedef int prepare_one(sqlite3 *db, const char *sql, int n, sqlite3_stmt **st, const char **end);
typedef void set_handler(sqlite3 *db, int steps, int (*call)(void *), void *ctx);

static sqlite3 *watched; /* the last database with a progress handler */

int sqlite3_open_v2(const char *name, sqlite3 **db, int flags, const char *vfs)
{
    const int rc = ((open_one *)dlsym(RTLD_NEXT, "sqlite3_open_v2"))(name, db, flags, vfs);

    if (rc == SQLITE_OK && getenv("REVERSED") != NULL)
        (void)sqlite3_exec(*db, "PRAGMA reverse_unordered_selects=ON", NULL, NULL, NULL);
    return rc;
}

int sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **st, const char **end)
{
    static int is_sent;
    const char *at = getenv("INTERRUPTED");

    if (at != NULL && !is_sent && strstr(sql, at) != NULL) {
        is_sent = 1;
        (void)raise(SIGTERM);
    }
    return ((prepare_one *)dlsym(RTLD_NEXT, "sqlite3_prepare_v2"))(db, sql, n, st, end);
}

static void look_at_handler(const sqlite3 *db)
{
    if (db == NULL || db != watched)
        return;
    (void)fprintf(stderr, "its progress handler was not removed\n");
    watched = NULL;
}

void sqlite3_progress_handler(sqlite3 *db, int steps, int (*call)(void *), void *ctx)
{
    if (call != NULL)
        look_at_handler(db);
    if (call != NULL || db == watched)
        watched = call != NULL ? db : NULL;
    ((set_handler *)dlsym(RTLD_NEXT, "sqlite3_progress_handler"))(db, steps, call, ctx);
}

static int look(sqlite3 *db, const char *name)
{
    close_one *next = (close_one *)dlsym(RTLD_NEXT, name);

    for (sqlite3_stmt *st = NULL; db != NULL && (st = sqlite3_next_stmt(db, st)) != NULL;)
        (void)fprintf(stderr, "not finalized: %s\n", sqlite3_sql(st));
    look_at_handler(db);
    return next(db);
}

int sqlite3_close(sqlite3 *db) { return look(db, "sqlite3_close"); }
int sqlite3_close_v2(sqlite3 *db) { return look(db, "sqlite3_close_v2"); }
