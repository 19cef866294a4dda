/* chem/seal.h - the first 12 bytes of blocks in features.db, little-endian:
 *
 *   char magic[4], u32 version, u32 crc32 of all that follows this field
 *
 * A block's own header begins with them. */
#ifndef CH_SEAL_H
#define CH_SEAL_H

#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/file.h"

typedef struct ch_seal {
    char magic[4];
    uint32_t version, crc;
} ch_seal;

/* Writes the three fields over the first bytes of a block that is otherwise complete. */
void ch_seal_put(void *block, size_t len, const char *magic, uint32_t version);

/* Copies the block's header, which begins with the seal, out of it. EDATA, naming
 * the block as `what`, when it is shorter or the three fields are not as put. */
pl_code ch_seal_open(void *header, size_t size, pl_bytes in, const char *magic, uint32_t version,
                     const char *what, pl_error *err);

/* Bytes whose 8-byte numbers may be read in place: the same, or a copy in mem; NULL without memory. */
const void *ch_bytes_aligned(pl_bytes in, pl_arena *mem);

#endif
