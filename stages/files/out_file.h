/* stages/files/out_file.h - a file written piece by piece; at the end it is complete or does not exist.
 *
 * Bytes go to "<path>.tmp"; keep makes them durable and gives the file its name,
 * close without keep removes them. A path ending in .gz is compressed. A database
 * is not replaced (ECONFIG): `-o results.db` is a typing error. A pipe or a device such as /dev/null is not replaced either: it gets the
 * bytes at once. */
#ifndef ST_OUT_FILE_H
#define ST_OUT_FILE_H

#include <stdbool.h>
#include <zlib.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

typedef struct st_out {
    gzFile file; /* NULL: not open */
    const char *path, *tmp;
    bool stream; /* a pipe or a device: no tmp */
} st_out;

/* Refuses (ECONFIG) an output that is the file which is read. Either may be missing. */
pl_code st_out_check(const char *output, const char *input, pl_error *err);
/* The same for the standard output: `>> input` would be read as it is written, without end. */
pl_code st_out_check_stdout(const char *input, pl_error *err);
/* Refuses (ECONFIG) to replace a database or another file of a run. */
pl_code st_out_guard(const char *path, pl_error *err);
/* Refuses a model, too. */
pl_code st_out_open(st_out *out, const char *path, pl_arena *mem, pl_error *err);
pl_code st_out_add(st_out *out, const pl_text *text, pl_error *err);
pl_code st_out_keep(st_out *out, pl_error *err);
void st_out_close(st_out *out); /* fine when zeroed or kept */

#endif
