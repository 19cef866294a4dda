/* stages/commands/output/status_beat.h - a run by its heartbeat.json (pipeline/run/heartbeat.h), for `status`. */
#ifndef ST_STATUS_BEAT_H
#define ST_STATUS_BEAT_H

#include <stdbool.h>

/* Prints it and says whether the run is at work, if the database of that path is not to be opened: a run
 * holds it that is on another host or has it on a network file system; or it is not there yet, and shards
 * are. False: nothing printed, look into the database. */
bool st_beat_show(const char *results, bool json, bool *running);

#endif
