/* chem/structures/descent.h - limited-memory BFGS (Nocedal, Math. Comput. 35, 773 (1980)) over the positions of a molecule.
 *
 * Positions are x[dims][stride] as the kernels have them. The search always ends: at a small gradient, after max_steps, or when
 * no shorter step lowers the energy. A start whose energy or gradient is not finite ends at once. Deterministic. */
#ifndef CH_DESCENT_H
#define CH_DESCENT_H

#include "chem/structures/kernels.h"
#include "chem/structures/precondition.h"
#include "pipeline/base/error.h"

enum { CH_MEMORY_STEPS = 8 }; /* pairs that the approximation remembers; 5 to 30 hardly matter */

enum ch_stop {
    CH_CONVERGED, /* the gradient is small enough */
    CH_OUT_OF_STEPS,
    CH_NO_DESCENT, /* float has no lower energy along any direction tried */
    CH_NOT_FINITE
};

typedef struct ch_search {
    const ch_kernels *kernels;
    double (*objective)(const void *of, const float *x, float *g);
    const void *of;
    ch_preconditioner *preconditioner; /* NULL: none */
    int32_t n_atoms, stride, dims;
    double gradient;                  /* root mean square over the dims * n_atoms components at which it stops */
    int32_t max_steps, refresh_steps; /* refresh_steps: a new preconditioner after so many */
    float max_move;                   /* of one atom in one step, Angstrom */
    float first_scale;                /* of the gradient in the first step without a preconditioner */
    float *work;                      /* ch_search_floats */
} ch_search;

typedef struct ch_search_result {
    double value, gradient;
    int32_t steps, n_values; /* accepted steps, calls of the objective */
    enum ch_stop stop;
} ch_search_result;

int64_t ch_search_floats(int32_t stride, int32_t dims);

/* x is where it begins and ends. */
ch_search_result ch_descend(const ch_search *s, float *x);

#endif
