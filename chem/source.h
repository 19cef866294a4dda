/* chem/source.h - a plain or gzip file as lines, in bounded memory; used by the readers only.
 *
 * Lines come without their end (\n, \r\n, or \r in a file that has no \n near
 * its start) and without a byte-order mark. A line longer than the limit is cut
 * to it; the rest is read over. */
#ifndef CH_SOURCE_H
#define CH_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

typedef struct ch_source ch_source;

typedef struct ch_line {
    const char *s;       /* not NUL-terminated; borrowed until the next call */
    size_t len, whole;   /* kept bytes; bytes there were                     */
    int64_t offset;      /* of its first byte, uncompressed                  */
    int64_t number;      /* from 1                                           */
} ch_line;

pl_code ch_source_open(ch_source **out, const char *path, size_t line_limit, pl_error *err);
void ch_source_close(ch_source *s); /* NULL is fine */

void ch_source_set_limit(ch_source *s, size_t line_limit);
/* Non-zero ends every call with ESTOP, also within a long line. Borrowed. */
void ch_source_set_stop(ch_source *s, const atomic_int *stop);

/* *more = false at the end. EIO when the disk fails; damaged gzip is an end (ch_source_damage). */
pl_code ch_source_line(ch_source *s, ch_line *out, bool *more, pl_error *err);
void ch_source_unread(ch_source *s); /* the line read last comes again; once */

/* The next line read will be this one: by offset and number of an earlier line. */
pl_code ch_source_seek(ch_source *s, int64_t offset, int64_t number, pl_error *err);

/* The first bytes of the file, for guessing its format; *n <= 64 KiB. Before the first line only. */
pl_code ch_source_peek(ch_source *s, const char **data, size_t *n, pl_error *err);

/* The file below, for its hash, and for who reads all of it from byte 0; borrowed. */
struct ch_gunzip *ch_source_file(ch_source *s);

/* Of the call for a line before this one: it gave none, or one without its end. */
bool ch_source_met_end(const ch_source *s);
/* Damage may have taken the end of what was given: not if that ends with a line and a whole gzip member. */
bool ch_source_may_be_cut(const ch_source *s);
void ch_source_where(const ch_source *s, int64_t *offset, int64_t *number); /* of the next line, or of the end */
const char *ch_source_damage(const ch_source *s); /* "damaged gzip: ...", or NULL */

#endif
