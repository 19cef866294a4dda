/* chem/molecule/block_header.h - the first 12 bytes of blocks in features.db, little-endian:
 *
 *   char magic[4], u32 version, u32 crc32 of all that follows this field
 *
 * Each kind of block has a header that begins with them. */
#ifndef CH_BLOCK_HEADER_H
#define CH_BLOCK_HEADER_H

#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/file.h"

typedef struct ch_block_header {
    char magic[4];
    uint32_t version, crc;
} ch_block_header;

/* Writes the three fields to the first 12 bytes of a block that is otherwise complete. */
void ch_block_header_put(void *block, size_t len, const char *magic, uint32_t version);

/* Checks a block and copies its header, which begins with the seal. EDATA, naming
 * the block as `what`, if it is shorter than the header or a field does not match. */
pl_code ch_block_header_open(void *header, size_t size, pl_bytes in, const char *magic, uint32_t version, const char *what,
                             pl_error *err);

/* The bytes aligned to 8: `in` itself, or a copy in mem; NULL if out of memory. */
const void *ch_bytes_aligned(pl_bytes in, pl_arena *mem);

#endif
