/* pipeline/sums.h - what must be in each table of results.db, whoever wrote its pages.
 *
 * The table row_sum has, for each table of ours, the number of rows and the sum modulo 2^64 of a hash of every row; and
 * in the row '' the version and a sum over the definitions. The sums change with the rows, in the same transaction.
 * Tables of other programs have none. A row_sum without rows: somebody gave the sums up; contents are not compared until the
 * next run makes them anew. SQLite before 3.35 gives them up whenever it writes. */
#ifndef PL_SUMS_H
#define PL_SUMS_H

#include <sqlite3.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

/* Makes row_sum anew from the tables as they are. In a transaction or alone. */
pl_code pl_sums_fill(sqlite3 *db, pl_error *err);
/* From now on changes made through this connection change the sums too. */
pl_code pl_sums_watch(sqlite3 *db, pl_error *err);
/* A table made later; nothing if it is watched already. */
pl_code pl_sums_add(sqlite3 *db, const char *table, pl_error *err);
/* One line for each thing that is wrong. EDATA if any is; *n: how many tables were compared. */
pl_code pl_sums_check(sqlite3 *db, int *n, pl_text *report, pl_error *err);

#endif
