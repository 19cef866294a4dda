/* pipeline/base/sha256.h - SHA-256 (FIPS 180-4): keys of stages, inputs and models. */
#ifndef PL_BASE_SHA256_H
#define PL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

typedef struct pl_sha256 {
    uint32_t h[8];
    uint64_t n_bytes;
    unsigned char block[64];
} pl_sha256;

void pl_sha256_start(pl_sha256 *s);
void pl_sha256_add(pl_sha256 *s, const void *data, size_t n);
/* Adds the length and the text, so that ("ab","c") and ("a","bc") differ. */
void pl_sha256_add_str(pl_sha256 *s, const char *text);
/* End the hash: as 32 bytes, or as 64 lower-case hexadecimal digits and a NUL. */
void pl_sha256_end(pl_sha256 *s, unsigned char out[32]);
void pl_sha256_hex(pl_sha256 *s, char out[65]);

/* The hash of a file, as hexadecimal digits. PL_EIO: it cannot be read. */
pl_code pl_sha256_file(const char *path, char out[65], pl_error *err);

#endif
