/* pipeline/progress.h - one line per stage: done, rate, time left.
 * On a terminal it is redrawn in place (stderr); elsewhere plain log lines, at
 * most one per 10 s. NO_COLOR is honoured. Stages call pl_progress_set only. */
#ifndef PL_PROGRESS_H
#define PL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct pl_progress pl_progress;

pl_progress *pl_progress_new(FILE *to, bool tty, bool quiet);
void pl_progress_free(pl_progress *p);
void pl_progress_start(pl_progress *p, const char *stage, const char *item, int64_t done, int64_t total); /* total -1: unknown */
void pl_progress_set(pl_progress *p, int64_t done, int64_t total, const char *note); /* note: "loss 0.123", or NULL */
void pl_progress_end(pl_progress *p, const char *summary); /* leaves a line that stays */

#endif
