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
/* For a database that was just opened and has such a log: PL_EDATA if the rows are not those of their sums, which means that the log
 * belongs to another database. Closing the connection then leaves the file as it is. */
pl_code pl_judge_log(sqlite3 *db, const char *path, pl_error *err);

#endif
