/* chem/molecule/codec.h - molecules as bytes, and back.
 *
 * A block is one value in the features database: many molecules, each with the
 * id of its row; the conformers of one molecule have the same id and are adjacent. Little-endian, versioned, checksummed:
 *
 *   char magic[4] "MSCB", u32 version, u32 crc32 of all that follows this
 *   field, u32 n, u32 total bytes, u32 zero; i64 id[n]; u32 offset[n+1] from
 *   the start of the block; then each molecule: i32 n_atoms, i32 n_bonds,
 *   u8 has_xyz, has_isotope, 2 zeros, f32 xyz[n_atoms][3], i32 bond[n_bonds][2],
 *   u8 z[n_atoms], i8 charge[n_atoms], u8 order[n_bonds], u16 isotope[n_atoms]
 *   if it has them, zeros to 4 bytes.
 *
 * The same molecules give the same bytes. Unpacking accepts any bytes: it
 * gives valid molecules (ch_mol_check) or EDATA and never reads out of bounds. */
#ifndef CH_CODEC_H
#define CH_CODEC_H

#include <stdint.h>

#include "chem/molecule/mol.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/file.h"

typedef struct ch_block_item {
    int64_t id;
    ch_mol mol;
} ch_block_item;

pl_code ch_block_pack(pl_bytes *out, const ch_block_item *items, int32_t n, pl_arena *mem, pl_error *err);

/* All molecules of a block. The arrays are copies in `mem`, so `in` may be freed. */
pl_code ch_block_unpack(ch_block_item **out, int32_t *n, pl_bytes in, pl_arena *mem, pl_error *err);

#endif
