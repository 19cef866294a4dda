/* chem/gunzip.h - a plain or gzip file as bytes, in bounded memory.
 *
 * Told apart by the first byte pair, as gzip does (RFC 1952). Members that follow each other are one file; zeros
 * behind the last one are padding. Unlike zlib's gzread, nothing is passed over: what follows the compressed data
 * and is no gzip is damage too. Every byte of a member before the damaged one is given; of that, what was unpacked
 * before the block that does not unpack. */
#ifndef CH_GUNZIP_H
#define CH_GUNZIP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

typedef struct ch_gunzip ch_gunzip;

/* EIO: cannot be opened. */
pl_code ch_gunzip_open(ch_gunzip **out, const char *path, pl_error *err);
void ch_gunzip_close(ch_gunzip *g); /* NULL is fine */

/* Non-zero ends reading and seeking with ESTOP within a block. Borrowed; NULL: none. */
void ch_gunzip_set_stop(ch_gunzip *g, const atomic_int *stop);

/* Up to n bytes; *got = 0 at the end, which damage is as well. EIO when the disk fails. */
pl_code ch_gunzip_read(ch_gunzip *g, void *to, size_t n, size_t *got, pl_error *err);

/* To a byte of the unpacked file; gives what a first pass gave. EIO when there is no such byte. */
pl_code ch_gunzip_seek(ch_gunzip *g, int64_t offset, pl_error *err);

/* From here on, before the first read: a SHA-256 of the file's own bytes as they are read, each once. A seek ahead in a
 * plain file then reads what it would pass over. Bytes read again after a seek back are not compared, unless it goes to 0. */
void ch_gunzip_hash(ch_gunzip *g);
int64_t ch_gunzip_hashed(const ch_gunzip *g, char out[65]); /* the hash so far, and of how many bytes from the first on */
pl_code ch_gunzip_drain(ch_gunzip *g, pl_error *err); /* reads the rest of the file for the hash only; it is at its end then */

const char *ch_gunzip_damage(const ch_gunzip *g); /* "damaged gzip: ...", or NULL */
bool ch_gunzip_whole(const ch_gunzip *g); /* all that was given is of members whose checksums are right */

#endif
