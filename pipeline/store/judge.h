/* pipeline/store/judge.h - whether the content of results.db is intact although the checksum of a page differs. */
#ifndef PL_JUDGE_H
#define PL_JUDGE_H

#include "pipeline/store/pages.h"

/* Checks the structure, the indexes, and the sums of all rows (pipeline/store/sums.h). True: intact, or the database of another
 * program. It is a pl_pages_judge. */
bool pl_judge(const char *path, char why[PL_PAGES_WHY]);

#endif
