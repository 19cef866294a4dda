/* chem/records/gunzip.h - a plain or gzip file as bytes, in bounded memory.
 *
 * gzip is recognised by its first two bytes (RFC 1952). Consecutive members are one file; zeros
 * after the last one are padding. Unlike zlib's gzread, this reader skips nothing: other data after the compressed
 * data count as damage. All bytes of the members before the damaged one are returned; of the damaged member, those
 * decompressed before the faulty block. */
#ifndef CH_GUNZIP_H
#define CH_GUNZIP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

typedef struct ch_gunzip ch_gunzip;

/* The path of standard input, which is read on from where it is. */
#define CH_STDIN "/dev/stdin"

/* EIO: cannot be opened. */
pl_code ch_gunzip_open(ch_gunzip **out, const char *path, pl_error *err);
void ch_gunzip_close(ch_gunzip *g); /* NULL is fine */

/* A non-zero *stop ends reading and seeking with ESTOP, at the latest after the current buffer. Borrowed; NULL: none. */
void ch_gunzip_set_stop(ch_gunzip *g, const atomic_int *stop);

/* Reads up to n bytes; *got = 0 at the end, or where damage begins. EIO if the disk fails; *got bytes came before that. */
pl_code ch_gunzip_read(ch_gunzip *g, void *to, size_t n, size_t *got, pl_error *err);

/* Goes to a byte of the decompressed file; reading then gives the same bytes as the first pass. EIO if the file is shorter. */
pl_code ch_gunzip_seek(ch_gunzip *g, int64_t offset, pl_error *err);

/* Starts a SHA-256 of the file's own (compressed) bytes; call it before the first read. Each byte is hashed once. A forward seek in a
 * plain file then reads the bytes in between. Bytes read again after a backward seek are not compared, unless the seek goes to 0. */
void ch_gunzip_hash(ch_gunzip *g);
int64_t ch_gunzip_hashed(const ch_gunzip *g, char out[65]); /* the hash so far; returns how many bytes from the start it covers */
pl_code ch_gunzip_drain(ch_gunzip *g,
                        pl_error *err); /* reads the rest of the file for the hash only; afterwards the reader is at the end */

/* The decompressed file has at most this many bytes: the size of a plain file, 1,032 times that of a gzip file (the most that it can
 * expand); INT64_MAX for what is no regular file, such as a pipe. Call it after the first read. */
int64_t ch_gunzip_max(const ch_gunzip *g);
bool ch_gunzip_packed(const ch_gunzip *g); /* it is gzip; known after the first read */

/* A stream: a pipe, a socket or a terminal, and not gzip; known after the first read. It is read as its bytes come. */
bool ch_gunzip_live(const ch_gunzip *g);
/* Whether reading would wait for the writer of a stream, still after `ms` milliseconds. */
bool ch_gunzip_waits(const ch_gunzip *g, int ms);

const char *ch_gunzip_damage(const ch_gunzip *g); /* "damaged gzip: ...", or NULL */
bool ch_gunzip_whole(const ch_gunzip *g);         /* all bytes returned so far are of members whose checksums are correct */

#endif
