/* stages/commands/output/status_beat.h - a run by its heartbeat.json (pipeline/run/heartbeat.h), for `status`. */
#ifndef ST_STATUS_BEAT_H
#define ST_STATUS_BEAT_H

#include <stdbool.h>

#include "pipeline/store/store.h"
#include "stages/commands/output/status_prometheus.h"

/* Prints the heartbeat if the database at `results` must not be opened: a run on another host, or on a network file
 * system, holds it, or it does not exist yet but shards do. *running: whether the run is running. *shown false: nothing was
 * printed; read the database. */
pl_code st_beat_show(bool *shown, const char *results, st_status_form form, bool *running, pl_error *err);

/* Prints how much time the slowest stage of the running run needs for the rest, if its heartbeat tells. */
pl_code st_beat_left(pl_store *s, int64_t run_id, pl_error *err);

#endif
