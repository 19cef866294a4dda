/* chem/records/qm9bin.h - QM9 as one compact file, "QM9BIN01", gzip or plain.
 *
 * Little-endian: 64 bytes of header (magic; u32 molecules, atoms, bonds, 11, 4, 64;
 * zeros), then arrays, each padded to 8 bytes: u32 gdb index, u32 atom offset [n+1],
 * u32 bond offset [n+1], u8 flags (bits 0-1: 0 train, 1 valid, 2 test, 3 excluded),
 * u8 Z, i8 charge, f32 xyz (Angstrom), u8 bond {a, b, order 1..3}, f32 A B C mu
 * alpha homo lumo gap r2 zpve Cv, f64 U0 U H G; units as in the original files
 * (Ramakrishnan et al., Sci. Data 1, 140022 (2014)).
 *
 * The whole file is held in memory: 47 MB for 117,748 molecules. Any bytes may be given: the
 * result has valid offsets, or the error is EINPUT. The header is compared with the size of the file before the rest is read; a
 * file with more or fewer bytes than the header tells is refused. */
#ifndef CH_QM9BIN_H
#define CH_QM9BIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

typedef struct ch_qm9 ch_qm9;

/* Whether a file with these first bytes (uncompressed) is such a file. */
bool ch_qm9_starts(const char *data, size_t n);

struct ch_gunzip;

pl_code ch_qm9_open(ch_qm9 **out, const char *path, pl_error *err);
pl_code ch_qm9_read(ch_qm9 **out, struct ch_gunzip *in, const char *path,
                    pl_error *err); /* reads an open file from its first byte */
void ch_qm9_close(ch_qm9 *q);       /* NULL is fine */
int32_t ch_qm9_count(const ch_qm9 *q);
int64_t ch_qm9_atoms(const ch_qm9 *q);             /* of all molecules */
int64_t ch_qm9_offset(const ch_qm9 *q, int32_t i); /* byte of the molecule's first position in the uncompressed file */

/* Adds molecule i (from 0) as an SDF record: bonds, charges, 3D, and the data
 * fields gdb_index, split and the 15 properties. EINPUT: the molecule is not valid. */
pl_code ch_qm9_record(pl_text *out, const ch_qm9 *q, int32_t i, pl_error *err);
int32_t ch_qm9_index(const ch_qm9 *q, int32_t i); /* gdb index of molecule i, 1..133885 */

#endif
