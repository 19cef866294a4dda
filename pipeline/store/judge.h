/* pipeline/store/judge.h - whether the content of results.db is intact although the checksum of a page differs. */
#ifndef PL_JUDGE_H
#define PL_JUDGE_H

#include <stdbool.h>

/* Checks the structure, the indexes, and the sums of all rows (pipeline/store/sums.h). True: intact, or the database of another
 * program. The type is pl_pages_judge. */
bool pl_judge(const char *path);
/* The message of the last check that failed: the file, what is wrong and what to do; "" if none failed. */
void pl_judge_said(char *out, int size);

#endif
