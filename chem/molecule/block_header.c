/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/molecule/block_header.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blocks are written and read as they are");
static_assert(sizeof(ch_block_header) == 12, "no holes");

static uint32_t crc_of(const void *block, size_t len)
{
    return (uint32_t)crc32_z(0, (const unsigned char *)block + sizeof(ch_block_header), (z_size_t)(len - sizeof(ch_block_header)));
}

void ch_block_header_put(void *block, size_t len, const char *magic, uint32_t version)
{
    ch_block_header seal = { .version = version, .crc = crc_of(block, len) };

    memcpy(seal.magic, magic, sizeof seal.magic);
    memcpy(block, &seal, sizeof seal);
}

pl_code ch_block_header_open(void *header, size_t size, pl_bytes in, const char *magic, uint32_t version, const char *what,
                             pl_error *err)
{
    ch_block_header seal;
    uint32_t crc;

    if (in.len < size)
        return pl_fail(err, PL_EDATA, "block of %s: only %zu bytes", what, in.len);
    memcpy(header, in.data, size);
    memcpy(&seal, in.data, sizeof seal);
    if (memcmp(seal.magic, magic, sizeof seal.magic) != 0)
        return pl_fail(err, PL_EDATA, "not a block of %s", what);
    if (seal.version != version)
        return pl_fail(err, PL_EDATA, "block of %s: version %u, this program reads %u", what, seal.version, version);
    crc = crc_of(in.data, in.len);
    if (crc != seal.crc)
        return pl_fail(err, PL_EDATA, "block of %s: checksum %08x, should be %08x", what, crc, seal.crc);
    return PL_OK;
}

const void *ch_bytes_aligned(pl_bytes in, pl_arena *mem)
{
    void *copy;

    if ((uintptr_t)in.data % 8 == 0)
        return in.data;
    copy = pl_arena_get(mem, in.len, 1);
    return copy == NULL ? NULL : memcpy(copy, in.data, in.len);
}
