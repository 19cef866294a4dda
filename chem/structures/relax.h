/* chem/structures/relax.h - moves a structure into the minimum of its MMFF94 energy.
 *
 * Preconditioned L-BFGS until the root mean square gradient is below `gradient`. Ends always: after max_steps at the latest, and
 * `converged` says which. Atoms at one place and angles of exactly 180 degrees, where the gradient is not defined, are moved
 * apart by a fixed small step first. Units: Angstrom, kcal/mol. A ch_relaxer serves one thread at a time, any number of
 * structures of one molecule; it lives in the arena, and `terms` must live as long. */
#ifndef CH_RELAX_H
#define CH_RELAX_H

#include "chem/structures/descent.h"
#include "chem/structures/energy_plan.h"
#include "chem/structures/terms.h"

typedef struct ch_relax_options {
    double gradient;   /* kcal/mol/A; 0: 0.01. Energies are within about 0.01 kcal/mol of the minimum then */
    int32_t max_steps; /* 0: 2000 */
} ch_relax_options;

typedef struct ch_relaxed {
    double energy, gradient; /* of the last position; both not finite if the start was not */
    int32_t steps, n_energies;
    bool converged;
} ch_relaxed;

typedef struct ch_relaxer {
    const ch_terms *terms;
    const ch_kernels *kernels;
    ch_energy_plan plan;
    ch_preconditioner preconditioner;
    float *x, *scratch, *work;
} ch_relaxer;

pl_code ch_relaxer_make(ch_relaxer *out, const ch_terms *terms, const ch_kernels *kernels, pl_arena *mem, pl_error *err);

/* xyz[n_atoms][3] is where it begins and ends. EINPUT if a position is not finite; xyz is then as it was. */
pl_code ch_relax(ch_relaxed *out, float (*xyz)[3], ch_relaxer *relaxer, const ch_relax_options *options, pl_error *err);

#endif
