/* stages/steps/rank/written.h - whether the files of stage `write` are still as it wrote them.
 *
 * For each file, its size, time of change and SHA-256 are in results.db (meta, "write FORMAT"). Time and size alone tell that a
 * file is the same; bytes are read only if the time differs. Of a file written by an earlier version, nothing is known. */
#ifndef ST_WRITTEN_H
#define ST_WRITTEN_H

#include "pipeline/store/store.h"

typedef struct st_written {
    bool changed;
    char how[96]; /* "0 bytes, not 3,020"; "" if not changed */
} st_written;

/* A file that does not exist, a pipe and a device are not changed. */
pl_code st_written_check(pl_store *s, const char *format, const char *path, st_written *out, pl_error *err);
/* In a transaction, after the file has its name. */
pl_code st_written_put(pl_store *s, const char *format, const char *path, pl_error *err);
pl_code st_written_forget(pl_store *s, pl_error *err); /* all files */

#endif
