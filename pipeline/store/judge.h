/* pipeline/store/judge.h - whether the content of results.db is intact although the checksum of a page differs. */
#ifndef PL_JUDGE_H
#define PL_JUDGE_H

#include "pipeline/base/error.h"
#include "pipeline/store/pages.h"

/* Checks the structure, the indexes, and the sums of all rows (pipeline/store/sums.h). True: intact, or the database of another
 * program. It is a pl_pages_judge. */
bool pl_judge(const char *path, char why[PL_PAGES_WHY]);

/* Whether a log (-wal or -journal) with content lies beside a database. */
bool pl_judge_has_log(const char *path);
/* Until pl_judge_log accepts it, closing a connection does not copy the log into the file. */
void pl_judge_keep(sqlite3 *db);
/* For a database that has such a log and was just opened, with `code`. PL_EDATA: it cannot be read, or its rows are not those of their
 * sums, which means that the log belongs to another database. Any other code that is not PL_OK is returned as it is. */
pl_code pl_judge_log(sqlite3 *db, const char *path, pl_code code, pl_error *err);

#endif
