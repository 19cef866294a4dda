/* tests/bench/bench_blas.h - the reference's way of computing, on OpenBLAS.
 *
 * Every convolution materialises its radial matrix R per edge (one large sgemm for
 * a chunk of edges), multiplies features with the dense fused basis, T, and R with
 * that (two sgemms an edge), as the reference does with batched products; in
 * training also the gradients of all four operands. Left out, all in its favour:
 * bases, gathers, radial hidden layers, attention, norms, linear layers, pooling.
 * One thread; the best of several chunk sizes. */
#ifndef BENCH_BLAS_H
#define BENCH_BLAS_H

#include "bench/bench_batch.h"

typedef struct bench_blas {
    double forward;                   /* seconds for all convolutions of the batch      */
    double train;                     /* R and T kept from forward to backward           */
    double train_cached;              /* backward at once after each chunk: what no network
                                         can do, a bound                                 */
    int chunk_forward, chunk_train;   /* edges at a time                                 */
    double off;                       /* largest difference from plain loops, relative   */
} bench_blas;

/* repeats: how often each figure is measured (the best is kept). EDEVICE: built without OpenBLAS. */
pl_code bench_blas_run(bench_blas *out, const bench_case *c, int repeats, pl_arena *mem, pl_error *err);

#endif
