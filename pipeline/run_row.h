/* pipeline/run_row.h - the row of the run table: who ran what, where, when, and how it ended. */
#ifndef PL_RUN_ROW_H
#define PL_RUN_ROW_H

#include "pipeline/engine.h"

/* A row left `running` by a run that died becomes `lost` (we hold the lock, so it
 * is dead), and the new row says what it continues. Sets r->run_id. */
pl_code pl_run_row_begin(pl_runner *r, pl_error *err);
/* Sets pl_stop_stuck when this is the second restart in a row under a scheduler and the
 * first one got nowhere: no unit, no checkpoint of more steps, no stage. What gets further
 * clears it. A run that stops with it set would be started again for ever: its ESTOP
 * becomes EINPUT (status 1), which the next start does not count as a restart. */
void pl_run_row_look_back(const pl_runner *r);
pl_code pl_run_row_judge(pl_code code, pl_error *err);
/* Never fails the caller: on a full disk the row stays `running` and is lost next time. */
void pl_run_row_end(pl_runner *r, pl_code code, const pl_error *err);

#endif
