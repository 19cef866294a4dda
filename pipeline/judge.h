/* pipeline/judge.h - whether what results.db says is right although the checksum of a page does not hold. */
#ifndef PL_JUDGE_H
#define PL_JUDGE_H

#include <stdbool.h>

/* Structure, indices, and the sums of all rows (pipeline/sums.h). A pl_pages_judge; a database of another program passes. */
bool pl_judge(const char *path);
/* What the last one found that was not right, with the file and what to do. */
void pl_judge_said(char *out, int size);

#endif
