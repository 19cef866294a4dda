/* models/cpu/table.h - the layout of the tables of radial nodes (op 5 of docs/model.md 8).
 *
 * In the edge frame a convolution is one matrix product per order m: the channels of all
 * degrees l >= m, side by side, times a matrix that is real for m = 0 and complex for
 * m > 0, with +m as the real and -m as the imaginary part (docs/performance.md 2.1). With
 * natural parity the matrix is real, and +m and -m are two rows of a real product. The
 * matrices of one radial node are its table: order after order, each in panels
 * (product.h). table = H W, with H the hidden vectors of the node and W the folded last
 * radial layers; each range of columns belongs to one radial network.
 *
 * A convolution has two tables: `table`, and `turned` with the conjugate transposed
 * matrices, for the gradient of the input. W is stored in panels:
 * [column / NN_LANE][NN_H][NN_LANE]. */
#ifndef NN_CPU_TABLE_H
#define NN_CPU_TABLE_H

#include "models/cpu/kernels/kernels.h"

enum { NN_TABLE_RUN = 2048 }; /* columns computed together: their part of W stays in the L2 cache */

typedef struct nn_cpu_order {
    int32_t m, k, n;      /* padded channels in and out                          */
    int32_t n_matrices;   /* 2: complex; 1: real, the same for both parts        */
    int32_t x[2], y[2];   /* first float of real and imaginary part in an edge vector */
    size_t at, packed_at; /* first float of its panels in a table; in a packed table */
} nn_cpu_order;

/* A range of columns of a table that one radial network computes. */
typedef struct nn_cpu_run {
    size_t at, packed_at; /* first column; first float of its packed W           */
    int32_t n, group;
} nn_cpu_run;

typedef struct nn_cpu_table {
    int32_t n_orders, n_runs;
    nn_cpu_order order[NN_DEGREES];
    nn_cpu_run *run;          /* [n_runs]                                            */
    size_t size, packed_size; /* columns of a table; floats of a packed table     */
    size_t w_at, w_packed_at; /* first float of W in the array of all convolutions; packed */
} nn_cpu_table;

#endif
