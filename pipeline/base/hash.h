/* pipeline/base/hash.h - a fast 64-bit hash against accidents: a changed word of 8 bytes is always noticed, more than one
 * but for one time in 2^64. It is no protection against people: see sha256.h. Machines with little-endian numbers. */
#ifndef PL_BASE_HASH_H
#define PL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t pl_hash64(const void *data, size_t n, uint64_t seed);

#endif
