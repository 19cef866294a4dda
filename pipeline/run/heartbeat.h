/* pipeline/run/heartbeat.h - the progress of a run, in a small file beside its databases.
 *
 * WORKDIR/heartbeat.json is replaced every PL_HEARTBEAT_S seconds during a run, and once at
 * its end. It is for readers on other hosts: on a network file system they must not open the
 * databases during a run (docs/design.md 4.6). If it cannot be written, the run goes on without it. A thread of
 * its own writes it, so a long step of the run does not stop the beats.
 *
 *   {"host":"n17","pid":4711,"job":"slurm 815","run_id":3,"command":"run","state":"running",
 *    "reason":"","started_utc":"...","at_utc":"...","every_s":5,
 *    "stages":[{"stage":"read","state":"running","item":"records","done":45000,"total":100000,"note":""}],"crc32":"9c1185a5"}
 *
 * crc32: of all bytes before `,"crc32":`; files of earlier versions have none. state: running, done, stopped or failed;
 * state of a stage: running or done. done and total count items; total -1: unknown. */
#ifndef PL_HEARTBEAT_H
#define PL_HEARTBEAT_H

#include "pipeline/base/error.h"
#include "pipeline/base/file.h"

#include <stdint.h>

enum { PL_HEARTBEAT_S = 5 };

typedef struct pl_heartbeat pl_heartbeat;

/* NULL: out of memory, or no thread could be started; then no file is written, and the functions below do nothing. */
pl_heartbeat *pl_heartbeat_start(const char *workdir, int64_t run_id, const char *command);
void pl_heartbeat_stage(pl_heartbeat *h, const char *stage, const char *item, int64_t done, int64_t total, const char *note);
void pl_heartbeat_stage_done(pl_heartbeat *h, const char *stage);
/* Whether the content of a heartbeat file is complete and its CRC matches. */
bool pl_heartbeat_holds(pl_bytes file);
/* Writes how the run ended (after PL_ELOCK nothing: the file may belong to another run), stops the thread and frees h. */
void pl_heartbeat_end(pl_heartbeat *h, pl_code code, const char *reason);

#endif
