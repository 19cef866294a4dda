/* stages/files/own_files.h - files of a run that nothing else may be written over. */
#ifndef ST_OWN_FILES_H
#define ST_OWN_FILES_H

#include "pipeline/workflow/workflow.h"

/* The canonical path of a file, which need not exist: without symbolic links, "." and "..". out [PATH_MAX]; false: too long. */
bool st_path_canonical(char *out, const char *path);

/* Whether a path is one of the run's own files, in upper or lower case: results.db and features.db with all that begins like
 * them (-wal, .lock, copies), .lock, .reserve, heartbeat.json, ranks-*, and what lies in models/, checkpoints/ and shards/. */
bool st_is_own(const pl_workflow *wf, const char *path);

/* The same for a path without a workflow: whether it is an own file beside an existing results.db. */
bool st_is_beside_results(const char *path);

/* Whether the file is an SQLite database, by its first bytes; false if it cannot be read. */
bool st_is_database(const char *path);
/* Whether the file is one of tensors, as models are, by its first bytes; false if it cannot be read. */
bool st_is_model(const char *path);

#endif
