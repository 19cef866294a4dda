/* pipeline/run/run_row.h - the row of the run table: who ran what, where, when, and how it ended. */
#ifndef PL_RUN_ROW_H
#define PL_RUN_ROW_H

#include "pipeline/run/runner.h"

/* Inserts the row of this run and sets r->run_id. Rows still `running` belong to runs that
 * died (we hold the lock), so they become `lost`. resumed_from is the run that this one continues. */
pl_code pl_run_row_begin(pl_runner *r, pl_error *err);
/* Calls pl_stop_stuck(true) if this is the second restart in a row under a scheduler and the
 * first one made no progress: it finished no unit, no checkpoint and no stage. Any progress of
 * this run clears that again. */
void pl_run_row_look_back(const pl_runner *r);
/* The final code of the run. A run that stops while pl_stop_is_stuck would be restarted for
 * ever: its PL_ESTOP becomes PL_EINPUT (exit status 1), and the next start does not count it
 * as a restart. */
pl_code pl_run_row_judge(pl_code code, pl_error *err);
/* Writes the end of the run into its row. If that fails (disk full), the row stays `running`
 * and the next run marks it `lost`. */
void pl_run_row_end(pl_runner *r, pl_code code, const pl_error *err);

#endif
