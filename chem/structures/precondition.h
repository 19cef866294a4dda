/* chem/structures/precondition.h - an approximate second derivative of the energy, for the minimiser.
 *
 * The Gauss-Newton matrix of bonds, angles, out-of-plane angles and torsions plus a stiffness on the diagonal: positive
 * definite at any geometry. Atoms are renumbered along the bonds, so that the matrix is a narrow band, and its Cholesky factor
 * costs a tenth of the dense one. Units: kcal/mol/A^2. One object serves one thread; its memory is the arena's. */
#ifndef CH_PRECONDITION_H
#define CH_PRECONDITION_H

#include "chem/structures/kernels.h"
#include "chem/structures/terms.h"
#include "pipeline/base/error.h"

typedef struct ch_preconditioner {
    const ch_terms *terms;
    const ch_kernels *kernels;
    int32_t *place; /* [n_atoms] of an atom in the matrix */
    ch_block_matrix matrix;
    int64_t n_floats; /* of matrix.data */
    float *b;         /* [3 n_atoms], rounded up */
} ch_preconditioner;

pl_code ch_preconditioner_make(ch_preconditioner *out, const ch_terms *terms, const ch_kernels *kernels, pl_arena *mem,
                               pl_error *err);

/* Computes the matrix at x[3][stride]; refresh: and then its factor in the same place. */
void ch_preconditioner_assemble(ch_preconditioner *p, const float *x, int32_t stride);
void ch_preconditioner_refresh(ch_preconditioner *p, const float *x, int32_t stride);

/* d[3][stride] becomes the solution of matrix * solution = d. */
void ch_preconditioner_solve(ch_preconditioner *p, float *d, int32_t stride);

#endif
