/* models/network/basis.h - the equivariant kernels of one edge (docs/model.md 2.1, 2.4).
 *
 *   B_{i,o}[l][f][k] = sum_m Y_J(u)[m] w3j(J,i,o)[m][l][k],  J = |i-o| + f
 *
 * l = 0..2i, f = 0..2 min(i,o), k = 0..2o. The distance does not enter. */
#ifndef NN_BASIS_H
#define NN_BASIS_H

#include <stdbool.h>

#include "models/network/se3.h"
#include "models/network/w3j.h"

/* The 3j tensors of all pairs (i, o) up to max_degree; in the caller's arena. */
typedef struct nn_couplings {
    int max_degree;
    const double *q[NN_DEGREES][NN_DEGREES]; /* [i][o]: for each f [2J+1][2i+1][2o+1] */
} nn_couplings;

pl_code nn_couplings_new(nn_couplings **out, int max_degree, nn_w3j_sign sign, pl_arena *mem, pl_error *err);

static inline int nn_freqs(int d_in, int d_out) { return 2 * (d_in < d_out ? d_in : d_out) + 1; }

/* out [2i+1][F][2o+1], F = nn_freqs(i, o); sh: Y_0 .. Y_(i+o) in the layout of nn_sh. */
void nn_basis_pair(double *out, const nn_couplings *q, int i, int o, const double *sh);

/* How NVIDIA's code lays the bases of several (i, o) pairs in one array: degree d begins at row or
 * column d*d of the concatenated axis; frequencies are in the order of docs/model.md 2.4. */
typedef enum nn_basis_layout {
    NN_BASIS_OUT,  /* [(L+1)^2][F_o][2o+1 (+1 if padded)] of output degree d */
    NN_BASIS_IN,   /* [2i+1][F_i][(L+1)^2] of input degree d                 */
    NN_BASIS_FULL, /* [(L+1)^2][F_total][(L+1)^2]                            */
} nn_basis_layout;

/* Number of doubles in one edge's basis of that layout; d is ignored for NN_BASIS_FULL. */
int nn_basis_size(const nn_couplings *q, nn_basis_layout layout, int d, bool padded);
void nn_basis_fused(double *out, const nn_couplings *q, nn_basis_layout layout, int d, bool padded, const double *sh);

#endif
