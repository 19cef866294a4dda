/* pipeline/stop.h - signals and time limits become one flag.
 *
 * PIPE is ignored meanwhile: that nobody reads the progress any more ends no run.
 * TERM, INT, USR1, USR2, XCPU and the end of --max-time set the flag; the work
 * stops at the next good place. A second signal, or `grace` seconds without
 * having stopped, ends the process at once: the databases are safe then too. */
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
void pl_stop_end(pl_stop *s); /* puts the old handlers back */

const atomic_int *pl_stop_flag(void);
/* The exit status when the grace is over, instead of 75; until the next begin. */
void pl_stop_again(int status);
/* True: the run has not got further, and another start would not help (pipeline/run_row.h);
 * the end of the grace exits with 1. */
void pl_stop_stuck(bool yes);
bool pl_stop_is_stuck(void);
/* The flag without a signal: one part of the work failed and the rest ends early. A
 * signal that comes then still counts as the first one. */
void pl_stop_cancel(bool yes);
/* "signal TERM", "time limit", or NULL when nothing asked to stop. */
const char *pl_stop_reason(void);

#endif
