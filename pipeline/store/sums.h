/* pipeline/store/sums.h - checksums of the rows of each table of results.db; they detect changes by damage or by other programs.
 *
 * The table row_sum has, for each of our tables, the number of rows and the sum modulo 2^64 of a hash of every row. Its
 * row '' has the version and a sum over the definitions of the tables and views. Triggers change the sums in the same
 * transaction as the rows. Tables of other programs have no sums. If row_sum is empty, the sums were given up, and the
 * content is not compared until the next run computes them again. With SQLite before 3.35 every writer gives them up. */
#ifndef PL_SUMS_H
#define PL_SUMS_H

#include <sqlite3.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

/* Creates row_sum again from the tables as they are now; inside a transaction or without one. */
pl_code pl_sums_fill(sqlite3 *db, pl_error *err);
/* From now on, changes made through this connection also change the sums. The connection owns *out; NULL: they were given up. */
typedef struct pl_sums pl_sums;
pl_code pl_sums_watch(pl_sums **out, sqlite3 *db, pl_error *err);
/* Includes a table that was created later and is empty; does nothing if it has a sum already. s may be NULL, here and below. */
pl_code pl_sums_add(pl_sums *s, const char *table, pl_error *err);
/* For a transaction of many rows: from pl_sums_gather(s, true) on, changes are counted in memory, and pl_sums_put writes each table's sum
 * once, before the commit. A transaction in which a statement failed must be rolled back, and pl_sums_gather(s, false) forgets it. */
void pl_sums_gather(pl_sums *s, bool on);
pl_code pl_sums_put(pl_sums *s, pl_error *err);
/* For a statement that inserts rows and counts them itself, because for a table with an INSERT trigger SQLite copies all rows of a
 * statement into a temporary table first. Adds to `call` the SQL function that counts a row: 0, of a statement that inserts column1,
 * column2 ... as `columns` ("a,b,c") of the table. Outside of pl_sums_gather and pl_sums_put it fails. Until pl_sums_release other
 * statements must not insert into the table. Without sums nothing is added and *at is -1. */
pl_code pl_sums_claim(pl_sums *s, const char *table, const char *columns, pl_text *call, int *at, pl_error *err);
void pl_sums_release(pl_sums *s, int at);
/* Compares all sums. PL_EDATA if one differs, with one line of report for each; *n: number of compared rows of row_sum. */
pl_code pl_sums_check(sqlite3 *db, int *n, pl_text *report, pl_error *err);

#endif
