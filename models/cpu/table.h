/* models/cpu/table.h - the convolution with radial nodes, laid out.
 *
 * In the edge frame a convolution is one product per order m: the channels of all
 * degrees l >= m, side by side, times a matrix that is real for m = 0 and complex
 * for m > 0 (+m the real and -m the imaginary part; docs/performance.md 2.1; with natural
 * parity it is real, and +m and -m are two rows of a real product). A radial
 * node has one such set of matrices, its table: order after order, each in panels
 * (product.h). A table is H W, H the hidden vectors of the node and W the folded
 * last radial layers; a range of its columns belongs to one radial network.
 *
 * A convolution has two: `table`, and `turned` with the conjugate transposed
 * matrices, for the gradient of the input. W is kept in panels:
 * [column / NN_LANE][NN_H][NN_LANE]. */
#ifndef NN_CPU_TABLE_H
#define NN_CPU_TABLE_H

#include "models/cpu/kernels.h"

enum { NN_TABLE_RUN = 2048 }; /* columns worked on together: W of them stays in the L2 cache */

typedef struct nn_cpu_order {
    int32_t m, k, n;       /* padded channels in and out                          */
    int32_t n_matrices;    /* 2: complex; 1: real, for both parts alike           */
    int32_t x[2], y[2];    /* first float of the parts in a vector of the frame   */
    size_t at, packed_at;  /* first float of its panels in a table; of them packed */
} nn_cpu_order;

/* Columns of a table that one radial network makes. */
typedef struct nn_cpu_run {
    size_t at, packed_at;  /* first column; first float of its packed W           */
    int32_t n, group;
} nn_cpu_run;

typedef struct nn_cpu_table {
    int32_t n_orders, n_runs;
    nn_cpu_order order[NN_DEGREES];
    nn_cpu_run *run;       /* [n_runs]                                            */
    size_t size, packed_size; /* columns; floats of a packed table                */
    size_t w_at, w_packed_at; /* of W in the array of all convolutions            */
} nn_cpu_table;

#endif
