/* pipeline/heartbeat.h - how far a run is, in a small file beside its databases.
 *
 * WORKDIR/heartbeat.json is replaced every few seconds while a run is at work, and once at
 * its end. It is for readers on other hosts: on a network file system they must not open the
 * database of a run (docs/design.md 4.6). Nothing depends on it; where it cannot be written
 * the run goes on. One thread of its own, so that a long step does not look like death.
 *
 *   {"host":"n17","pid":4711,"job":"slurm 815","run_id":3,"command":"run","state":"running",
 *    "reason":"","started_utc":"...","at_utc":"...","every_s":5,
 *    "stages":[{"stage":"read","state":"running","item":"records","done":45000,"total":100000,"note":""}],"crc32":"9c1185a5"}
 *
 * crc32: of all that stands before it (`,"crc32":...`); files of earlier versions have none. state: running, done, stopped or failed; of a stage running or done; total -1: unknown. */
#ifndef PL_HEARTBEAT_H
#define PL_HEARTBEAT_H

#include "pipeline/base/error.h"
#include "pipeline/base/file.h"

#include <stdint.h>

enum { PL_HEARTBEAT_S = 5 };

typedef struct pl_heartbeat pl_heartbeat;

/* NULL: no memory or no thread; then there is no file, and all below do nothing. */
pl_heartbeat *pl_heartbeat_start(const char *workdir, int64_t run_id, const char *command);
void pl_heartbeat_stage(pl_heartbeat *h, const char *stage, const char *item, int64_t done, int64_t total, const char *note);
void pl_heartbeat_stage_done(pl_heartbeat *h, const char *stage);
/* Whether the bytes are those that were written. */
bool pl_heartbeat_holds(pl_bytes file);
/* Says how it ended, and frees. */
void pl_heartbeat_end(pl_heartbeat *h, pl_code code, const char *reason);

#endif
