/* pipeline/store/insert.h - INSERT of many rows into one table, several with one statement.
 *
 * A statement of one row costs more for its call, for opening the table and for finding the place than for the row; in one of several
 * rows that are in the order of the table's key the next place is beside the last. Within a transaction of the caller. */
#ifndef PL_INSERT_H
#define PL_INSERT_H

#include <sqlite3.h>

#include "pipeline/base/error.h"
#include "pipeline/store/sums.h"

/* Initialise it with zeros. */
typedef struct pl_insert {
    sqlite3_stmt *st; /* to bind values of                        */
    pl_sums *sums;
    int table; /* in sums; -1: the rows are not counted here */
    int n_columns;
    int n; /* rows that are bound and not stored yet   */
} pl_insert;

/* columns: "a,b,c", of which the first is never NULL. With sums, which may be NULL, rows are stored between pl_sums_gather and
 * pl_sums_put only, and until the end other statements must not insert into the table (pl_sums_claim). */
pl_code pl_insert_open(pl_insert *in, sqlite3 *db, pl_sums *sums, const char *table, const char *columns, pl_error *err);
void pl_insert_close(pl_insert *in); /* zeroed is fine */
/* The parameter of the first column of the next row; those behind it follow. What is bound SQLITE_STATIC lives until pl_insert_end. */
int pl_insert_at(const pl_insert *in);
/* The next row is bound. */
pl_code pl_insert_row(pl_insert *in, pl_error *err);
/* Stores the rows that are left; call it before the commit. */
pl_code pl_insert_end(pl_insert *in, pl_error *err);

#endif
