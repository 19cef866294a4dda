/* stages/results.h - which results.db a command means.
 *
 * WHERE may be a database, a work directory, a workflow file, or nothing: then
 * ./results.db, or the newest runs/<name>/results.db below the current directory. */
#ifndef ST_RESULTS_H
#define ST_RESULTS_H

#include "pipeline/cmd.h"

/* The path; where may be NULL. EIO when there is none, with what was looked for. */
pl_code st_results_find(const pl_app *app, const char *where, const char **path, pl_arena *mem, pl_error *err);

/* Found and opened for reading. */
pl_code st_results_open(const pl_app *app, const char *where, pl_store **out, pl_arena *mem, pl_error *err);

#endif
