/* pipeline/store/db.h - SQL with our errors: PL_EIO for a full disk, a read-only file or an I/O error, PL_EDATA for a damaged
 * file or one that is no database. */
#ifndef PL_DB_H
#define PL_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

enum {
    PL_RESULTS_ID = 0x4d4f4c53, /* "MOLS": application_id of results.db  */
    PL_FEATURES_ID = 0x4d4f4c46 /* "MOLF": application_id of features.db */
};

pl_code pl_db_exec(sqlite3 *db, const char *sql, pl_error *err);
pl_code pl_db_execf(sqlite3 *db, pl_error *err, const char *fmt, ...); /* fmt as in sqlite3_mprintf */
pl_code pl_db_prepare(sqlite3 *db, sqlite3_stmt **out, const char *sql, pl_error *err);
/* *row = true: the statement returned a row. Resets the statement when it is done or has failed. */
pl_code pl_db_step(sqlite3_stmt *st, bool *row, pl_error *err);
/* Steps a statement if *code is PL_OK, and stores what came of it there; true: the statement returned a row. */
bool pl_db_next(sqlite3_stmt *st, pl_code *code, pl_error *err);
/* Runs a statement to its end, resets it and clears its bindings. */
pl_code pl_db_run(sqlite3_stmt *st, pl_error *err);
/* *out: the first column of the first row, 0 if there is none; fmt as in sqlite3_mprintf. */
pl_code pl_db_int(sqlite3 *db, int64_t *out, pl_error *err, const char *fmt, ...);
/* The same of a text; "" if there is none. */
pl_code pl_db_text(sqlite3 *db, char *out, size_t size, pl_error *err, const char *fmt, ...);
pl_code pl_db_fail(sqlite3 *db, pl_error *err); /* the last error of SQLite as pl_code and text */
/* The same where SQLite does not know the name of the file: it could not be opened. */
pl_code pl_db_fail_at(sqlite3 *db, const char *file, pl_error *err);
pl_code pl_db_begin(sqlite3 *db, pl_error *err);
pl_code pl_db_commit(sqlite3 *db, pl_error *err); /* rolls back when it fails */
void pl_db_rollback(sqlite3 *db);
/* While another program uses the database, wait for it, without a limit, until the run is asked to stop (PL_ESTOP), and
 * name the program in the log. Without this call SQLite waits for one minute. */
void pl_db_patient(sqlite3 *db);

#endif
