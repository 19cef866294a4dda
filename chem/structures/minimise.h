/* chem/structures/minimise.h - the nearest minimum of the MMFF94 energy, by a plain L-BFGS in double.
 *
 * Simple and exact rather than fast: for single structures, and to compare faster minimisers with. Angstrom, kcal/mol. */
#ifndef CH_MINIMISE_H
#define CH_MINIMISE_H

#include <stdbool.h>

#include "chem/structures/terms.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

typedef struct ch_minimised {
    int32_t steps;
    double gradient; /* root mean square over the 3 n coordinates, kcal/mol/A */
    bool converged;  /* gradient is below the goal; false: most_steps were not enough, or no lower energy was found */
} ch_minimised;

/* Moves xyz[n_atoms][3] to a minimum where the root mean square gradient is below `goal`. EINPUT if the energy at the start is not
 * finite. Memory for the steps is taken from mem. */
pl_code ch_minimise(ch_minimised *out, double (*xyz)[3], const ch_terms *terms, double goal, int32_t most_steps, pl_arena *mem,
                    pl_error *err);

#endif
