/* pipeline/progress.h - one line: what each stage has done, rate, time left.
 * On a terminal it is redrawn in place (stderr); elsewhere plain log lines, at
 * most one per 10 s. NO_COLOR is honoured. Of several stages at work at once the
 * last one is told in full, because it is the one that the run waits for; of the
 * others how far they are. Stages call pl_progress_set only. */
#ifndef PL_PROGRESS_H
#define PL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/heartbeat.h"

typedef struct pl_progress pl_progress;

/* beat: is told too; NULL is fine. */
pl_progress *pl_progress_new(FILE *to, bool tty, bool quiet, pl_heartbeat *beat);
void pl_progress_free(pl_progress *p);
/* In the order of the workflow. total -1: unknown; about: a guess. */
void pl_progress_start(pl_progress *p, const char *stage, const char *item, int64_t done, int64_t total, bool about);
/* Of one of the stages at work. */
void pl_progress_units(pl_progress *p, const char *stage, int64_t done, int64_t total, bool about);
/* So much was done before, by an earlier run: the rate is of what comes now. Of the only one. */
void pl_progress_from(pl_progress *p, int64_t done);
/* Of the only one. note: "loss 0.123", or NULL. */
void pl_progress_set(pl_progress *p, int64_t done, int64_t total, const char *note);
/* Leaves a line that stays. */
void pl_progress_end(pl_progress *p, const char *stage, const char *summary);

#endif
