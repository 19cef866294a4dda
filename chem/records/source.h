/* chem/records/source.h - reads a plain or gzip file line by line in bounded memory; used by the readers only.
 *
 * Lines are returned without line end (\n, \r\n, or \r in a file that has no \n near
 * its start) and without a byte-order mark. A line longer than the limit is cut;
 * the rest of it is skipped. */
#ifndef CH_SOURCE_H
#define CH_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

typedef struct ch_source ch_source;

typedef struct ch_line {
    const char *s;     /* not NUL-terminated; borrowed until the next call */
    size_t len, whole; /* bytes kept; bytes in the file                    */
    int64_t offset;    /* of its first byte, uncompressed                  */
    int64_t number;    /* from 1                                           */
} ch_line;

pl_code ch_source_open(ch_source **out, const char *path, size_t line_limit, pl_error *err);
void ch_source_close(ch_source *s); /* NULL is fine */

void ch_source_set_limit(ch_source *s, size_t line_limit);
/* Non-zero ends every call with ESTOP, also within a long line. Borrowed. */
void ch_source_set_stop(ch_source *s, const atomic_int *stop);

/* *more = false at the end. EIO if the disk fails. Damaged gzip counts as the end (ch_source_damage). */
pl_code ch_source_line(ch_source *s, ch_line *out, bool *more, pl_error *err);
void ch_source_unread(ch_source *s); /* the next call returns the last line again; only once */

/* Goes back or forward to a line, given its offset and number from an earlier pass. */
pl_code ch_source_seek(ch_source *s, int64_t offset, int64_t number, pl_error *err);

/* The first bytes of the file, for recognising its format; *n <= 64 KiB. Call it before the first line is read. */
pl_code ch_source_peek(ch_source *s, const char **data, size_t *n, pl_error *err);

/* The underlying file, for its hash and for readers that load all of it from byte 0; borrowed. */
struct ch_gunzip *ch_source_file(ch_source *s);

/* The last line was the end of a stream (a pipe, a terminal) that ended without a line end: its writer may have been stopped within it. */
bool ch_source_is_open(const ch_source *s);

/* The last call of ch_source_line reached the end of the file: it returned no line, or one without line end. */
bool ch_source_met_end(const ch_source *s);
/* Damage may have cut off the end of the lines returned; false if they end with a complete line and a complete gzip member. */
bool ch_source_may_be_cut(const ch_source *s);
void ch_source_where(const ch_source *s, int64_t *offset, int64_t *number); /* position of the next line, or of the end */
const char *ch_source_damage(const ch_source *s);                           /* "damaged gzip: ...", or NULL */

#endif
