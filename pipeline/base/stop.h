/* pipeline/base/stop.h - turns signals and time limits into one flag.
 *
 * TERM, INT, USR1, USR2, XCPU and the end of --max-time set the flag, and the run
 * stops at the next safe point. A second signal, or `grace` seconds without
 * having stopped, ends the process at once; the databases are safe then too.
 * PIPE is ignored: a run goes on if the reader of its output goes away. */
#ifndef PL_STOP_H
#define PL_STOP_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct pl_stop {
    struct sigaction old[6], old_pipe;
} pl_stop;

/* max_time, grace: seconds; 0 means none. */
void pl_stop_begin(pl_stop *s, double max_time, double grace);
void pl_stop_end(pl_stop *s); /* restores the old handlers */
/* Until then, for work that may take longer than the grace period: no alarm ends it, and the warnings of schedulers (USR1, USR2,
 * XCPU) are ignored. A second INT or TERM still ends the program at once. */
void pl_stop_patient(void);

/* The flag: 0, the number of the first signal (> 0), or -1 after pl_stop_cancel(true). */
const atomic_int *pl_stop_flag(void);
/* The exit status when the grace period is over, instead of 75; until the next pl_stop_begin. */
void pl_stop_again(int status);
/* True: the run has made no progress, and a restart would not help (pipeline/run/runner.h).
 * If the grace period then ends, the exit status is 1. */
void pl_stop_stuck(bool yes);
bool pl_stop_is_stuck(void);
/* True sets the flag without a signal: one part of the work failed and the rest is to end early.
 * False clears it again. A signal that arrives in between still counts as the first one. */
void pl_stop_cancel(bool yes);
/* "signal TERM", "the time limit", ..., or NULL if no signal or limit asked to stop. */
const char *pl_stop_reason(void);

#endif
