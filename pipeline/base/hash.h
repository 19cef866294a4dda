/* pipeline/base/hash.h - a fast 64-bit hash that detects accidental changes: a change of one 8-byte word always changes the
 * hash, a change of several does so except about once in 2^64. It does not detect deliberate changes: use sha256.h.
 * Little-endian machines only. */
#ifndef PL_BASE_HASH_H
#define PL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t pl_hash64(const void *data, size_t n, uint64_t seed);

#endif
