/* chem/worker/wire.h - writes and reads the messages of chem/common/protocol.h in the main process.
 *
 * Reading never goes beyond the message: after the first read past its end `ok` is false
 * and every value is zero or "". Little-endian hosts only, like the worker. */
#ifndef CH_WIRE_H
#define CH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chem/molecule/mol.h"
#include "chem/structures/stereo.h"
#include "pipeline/base/text.h"

typedef struct ch_wire {
    const char *at, *end;
    bool ok;
} ch_wire; /* borrowed view */

ch_wire ch_wire_of(const char *data, size_t n);
uint32_t ch_wire_u32(ch_wire *in);
int32_t ch_wire_i32(ch_wire *in);
double ch_wire_f64(ch_wire *in);
const char *ch_wire_str(ch_wire *in, size_t *n); /* not NUL-terminated; borrowed */

/* EINPUT if the bytes are not a molecule that ch_mol_check accepts. */
pl_code ch_wire_mol(ch_mol *out, ch_wire *in, pl_arena *mem, pl_error *err);

/* i32 n, then n molecules. */
pl_code ch_wire_mols(const ch_mol **out, int32_t *n, ch_wire *in, pl_arena *mem, pl_error *err);

/* EINPUT if an atom is not one of the n_atoms. */
pl_code ch_wire_stereo(ch_stereo *out, int32_t n_atoms, ch_wire *in, pl_arena *mem, pl_error *err);

void ch_wire_put_u32(pl_text *t, uint32_t x);
void ch_wire_put_u64(pl_text *t, uint64_t x);
void ch_wire_put_f64(pl_text *t, double x);
void ch_wire_put_str(pl_text *t, const char *s, size_t n);
void ch_wire_put_mol(pl_text *t, const ch_mol *mol);
void ch_wire_put_mols(pl_text *t, const ch_mol *mol, int32_t n);

#endif
