/* models/family/tiles.h - symmetric matrices in tiles of 64 x 64, their Cholesky factors, and distances in the same tiles.
 *
 * Written here and not taken from a LAPACK because a model then has the same bytes on every machine: each number comes from the same
 * operations in the same order, whatever the width of the processor's vectors. One thread; 10,000 rows take 400 MB. */
#ifndef NN_TILES_H
#define NN_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

enum { NN_TILE = 64 };

/* The lower half of a symmetric matrix [n][n], or its factor L. */
typedef struct nn_tiles {
    int32_t n, n_tiles; /* rows; tiles in a column                                             */
    double *tile;       /* [n_tiles*(n_tiles+1)/2][NN_TILE][NN_TILE]: tile (i, j), j <= i, is the i*(i+1)/2+j th */
} nn_tiles;

pl_code nn_tiles_make(nn_tiles *out, int32_t n, pl_arena *mem, pl_error *err); /* zeros, in mem; ENOMEM */
double *nn_tiles_tile(const nn_tiles *a, int32_t i, int32_t j);                /* [NN_TILE][NN_TILE], j <= i */
double *nn_tiles_at(const nn_tiles *a, int32_t row, int32_t column);           /* column <= row */

/* a = L L^T in place. stop (may be NULL) is asked after each column of tiles' row. scratch: n_tiles * NN_TILE * NN_TILE.
 * ESTOP. EDATA: a is not positive definite; err may be NULL. */
pl_code nn_tiles_factor(const nn_tiles *a, double *scratch, bool (*stop)(void *), void *ctx, pl_error *err);

void nn_tiles_forward(const nn_tiles *l, double *x);  /* x [n] = L^-1 x   */
void nn_tiles_backward(const nn_tiles *l, double *x); /* x [n] = L^-T x   */
double nn_tiles_log(const nn_tiles *l);               /* sum of ln L[i][i] */

/* out[c] = sum over k of (x[k] - z[k][c])^2, k = 0..d-1, c = 0..NN_TILE-1. */
void nn_tile_distances(double out[NN_TILE], const double *x, const double *z, int32_t d);

#endif
