/* chem/structures/ideal.h - ideal lengths and angles of a molecule, as distance geometry needs them.
 *
 * Those of the force field, changed so that flat rings close and flat centres are flat. Angstrom, radians. */
#ifndef CH_IDEAL_H
#define CH_IDEAL_H

#include "chem/structures/cycles.h"
#include "chem/structures/terms.h"

/* The angle at `centre` between its p-th and q-th neighbour is angle[from[centre] + ch_ideal_at(p, q)]. */
typedef struct ch_ideal {
    const ch_cycles *cycles;
    double *length; /* [n_bonds] of the molecule */
    double *angle;
    int32_t *from; /* [n_atoms + 1] */
    bool *flat;    /* [n_atoms] three neighbours in a plane */
} ch_ideal;

static inline int32_t ch_ideal_at(int32_t p, int32_t q) { return p > q ? p * (p - 1) / 2 + q : q * (q - 1) / 2 + p; }

/* EINPUT if the terms lack a bond or an angle of the molecule; ENOMEM. */
pl_code ch_ideal_make(ch_ideal *out, const ch_cycles *cycles, const ch_terms *terms, pl_arena *mem, pl_error *err);

/* The angle at b between neighbours a and c. */
double ch_ideal_angle(const ch_ideal *x, int32_t a, int32_t b, int32_t c);

#endif
