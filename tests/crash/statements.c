/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: prints on standard error the statements that are not finalized when their database is closed (cli/transcript.py). */
#include <dlfcn.h>
#include <sqlite3.h>
#include <stdio.h>

typedef int close_one(sqlite3 *db);

static int look(sqlite3 *db, const char *name)
{
    close_one *next = (close_one *)dlsym(RTLD_NEXT, name);

    for (sqlite3_stmt *st = NULL; db != NULL && (st = sqlite3_next_stmt(db, st)) != NULL;)
        (void)fprintf(stderr, "not finalized: %s\n", sqlite3_sql(st));
    return next(db);
}

int sqlite3_close(sqlite3 *db) { return look(db, "sqlite3_close"); }
int sqlite3_close_v2(sqlite3 *db) { return look(db, "sqlite3_close_v2"); }
