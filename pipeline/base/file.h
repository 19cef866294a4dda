/* pipeline/base/file.h - reading and writing whole files. A crash during a write leaves the old or the new file, never a part. */
#ifndef PL_BASE_FILE_H
#define PL_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

typedef struct pl_bytes {
    const void *data;
    size_t len;
} pl_bytes; /* a view: somebody else owns the len bytes */

/* Opens a file for reading; the caller closes the descriptor. -1: PL_EIO in err; a pipe or a device is refused at once. */
int pl_open_regular(const char *path, pl_error *err);

/* The whole file, in mem, followed by one NUL byte that len does not count. */
pl_code pl_file_read(pl_bytes *out, const char *path, pl_arena *mem, pl_error *err);

/* Writes path.tmp, syncs it, renames it to path and syncs the directory. */
pl_code pl_file_write(const char *path, pl_bytes what, pl_error *err);
pl_code pl_file_write_secret(const char *path, pl_bytes what, pl_error *err); /* mode 0600: only the user can read it */

/* Syncs the directory that holds path, so that a new name in it survives a power cut. */
pl_code pl_file_sync_name(const char *path, pl_error *err);

/* Whether path is relative and has a "..", so that it may lead out of its directory. */
bool pl_path_leaves(const char *path);

/* Whether nothing exists at path; false if stat fails for another reason. */
bool pl_path_is_gone(const char *path);

/* Whether both are of one file, under whatever names. */
bool pl_stat_is_same(const struct stat *a, const struct stat *b);

/* Whether both lead to one file that exists; symbolic links are followed. */
bool pl_path_is_same(const char *a, const char *b);

/* Whether path begins with dir and a slash; compares names only, not files. */
bool pl_path_is_in(const char *path, const char *dir);

/* Makes the directory and every missing parent; an existing one is fine. */
pl_code pl_mkdirs(const char *path, pl_error *err);

/* PL_EIO with the text of errno: "library.db: No space left on device". */
pl_code pl_fail_errno(pl_error *err, const char *path);

#endif
