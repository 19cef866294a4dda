/* pipeline/run/progress.h - one line with the progress, the rate and the time left of the stages that run.
 * On a terminal (stderr) the line is redrawn in place; elsewhere it is a log line, at most one
 * in 10 s. If several stages run at once, the line describes the last one in full, because
 * the run waits for it, and gives the counts of the others. Stages call only pl_progress_set
 * and pl_progress_from. All functions accept NULL for p. */
#ifndef PL_PROGRESS_H
#define PL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/run/heartbeat.h"

typedef struct pl_progress pl_progress;

/* beat: receives the same numbers; may be NULL. The result is NULL if out of memory. */
pl_progress *pl_progress_new(FILE *to, bool tty, bool quiet, pl_heartbeat *beat);
void pl_progress_free(pl_progress *p);
/* Adds a stage; call it in the order of the workflow. done, total: items; total -1: unknown; about: total is a guess. */
void pl_progress_start(pl_progress *p, const char *stage, const char *item, int64_t done, int64_t total, bool about);
/* Updates one of the stages that run at once. */
void pl_progress_units(pl_progress *p, const char *stage, int64_t done, int64_t total, bool about);
/* An earlier run did the first `done` items; the rate excludes them. Only for a stage that runs alone. */
void pl_progress_from(pl_progress *p, int64_t done);
/* Updates a stage that runs alone. note: "loss 0.123", or NULL: keep the last note. */
void pl_progress_set(pl_progress *p, int64_t done, int64_t total, const char *note);
/* Removes a stage and leaves its summary as a line that stays. */
void pl_progress_end(pl_progress *p, const char *stage, const char *summary);

#endif
