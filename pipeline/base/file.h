/* pipeline/base/file.h - whole files, written so that they are old or new, never half. */
#ifndef PL_BASE_FILE_H
#define PL_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

typedef struct pl_bytes {
    const void *data;
    size_t len;
} pl_bytes; /* borrowed view */

/* To read; -1 with EIO in err. A pipe or a device is refused, not waited for. */
int pl_open_regular(const char *path, pl_error *err);

/* The whole file, plus one NUL byte that len does not count. */
pl_code pl_file_read(pl_bytes *out, const char *path, pl_arena *mem, pl_error *err);

/* Temporary name, fsync, rename, fsync of the directory. */
pl_code pl_file_write(const char *path, pl_bytes what, pl_error *err);
pl_code pl_file_write_secret(const char *path, pl_bytes what, pl_error *err); /* for the user alone to read */

/* fsync of the directory that holds path, so that a name just given to it outlives a power cut. */
pl_code pl_file_sync_name(const char *path, pl_error *err);

/* A relative path with a "..": it may lead out of where it begins. */
bool pl_path_leaves(const char *path);

/* Nothing is there; false where nobody can tell. */
bool pl_path_is_gone(const char *path);

/* By name: does path begin with the directory? */
bool pl_path_is_in(const char *path, const char *dir);

/* The directory and every missing parent; fine if it exists. */
pl_code pl_mkdirs(const char *path, pl_error *err);

/* The EIO for what errno says, worded for people: "library.db: no space left on device". */
pl_code pl_fail_errno(pl_error *err, const char *path);

#endif
