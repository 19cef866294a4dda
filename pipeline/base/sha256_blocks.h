/* pipeline/base/sha256_blocks.h - the compression function of SHA-256 (FIPS 180-4, 6.2.2) in two versions. */
#ifndef PL_BASE_SHA256_BLOCKS_H
#define PL_BASE_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* Updates the state h with n blocks of 64 bytes each at p. */
typedef void pl_sha256_blocks(uint32_t h[8], const unsigned char *p, size_t n);

extern const uint32_t pl_sha256_k[64];

/* Plain C, for any processor. */
pl_sha256_blocks pl_sha256_blocks_plain;

/* The version that uses the SHA instructions of x86; NULL if the processor has none. */
pl_sha256_blocks *pl_sha256_blocks_x86(void);

#endif
