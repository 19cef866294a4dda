/* tests/twin/shapes.h - models and batches of many shapes, for the comparison of an engine with the oracle. */
#ifndef TESTS_TWIN_SHAPES_H
#define TESTS_TWIN_SHAPES_H

#include "models/network/se3.h"
#include "twin/made_batch.h"

typedef struct shape {
    nn_se3_conf conf;
    made_opts batch;
} shape;

/*   layers degrees channels heads div norm ln pooling fusion nodes edges out      graphs nodes .. .. cutoff one-way */
static const shape shapes[] = {
    { { 2, 2, 8, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 4, 7, 6, 4, 2.0, false, 1 } },
    { { 1, 1, 4, 1, 1, true, true, NN_POOL_MAX, NN_FUSE_FULL, 3, 0, 2, NN_PARITY_BOTH, { 0 }, false },
      { 5, 6, 3, 0, 2.0, false, 2 } },
    { { 2, 1, 5, 1, 1, false, true, NN_POOL_SUM, NN_FUSE_PARTIAL, 3, 1, 1, NN_PARITY_BOTH, { 0 }, false },
      { 6, 7, 3, 1, 2.2, true, 3 } },
    { { 2, 3, 16, 4, 4, false, false, NN_POOL_MEAN, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 4, 8, 6, 4, 1.8, false, 4 } },
    { { 2, 3, 16, 4, 4, false, false, NN_POOL_MEAN, NN_FUSE_PARTIAL, 6, 4, 3, NN_PARITY_BOTH, { 0 }, false },
      { 4, 8, 6, 4, 1.8, true, 5 } },
    { { 2, 3, 6, 3, 2, true, false, NN_POOL_SUM, NN_FUSE_NONE, 7, 6, 2, NN_PARITY_BOTH, { 0 }, false },
      { 5, 8, 7, 6, 2.5, false, 6 } },
    { { 2, 4, 7, 1, 1, true, true, NN_POOL_MAX, NN_FUSE_FULL, 17, 2, 1, NN_PARITY_BOTH, { 0 }, false },
      { 5, 8, 17, 2, 2.2, true, 7 } },
    { { 2, 5, 6, 3, 1, true, true, NN_POOL_MEAN, NN_FUSE_FULL, 5, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 5, 7, 5, 4, 2.0, false, 8 } },
    { { 2, 5, 3, 1, 3, false, true, NN_POOL_MAX, NN_FUSE_NONE, 5, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 5, 8, 5, 4, 2.0, true, 9 } },
    { { 1, 4, 40, 5, 2, true, false, NN_POOL_MAX, NN_FUSE_PARTIAL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 5, 7, 6, 4, 2.0, false, 10 } },
    { { 2, 4, 32, 8, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 5, 7, 6, 4, 1.9, false, 11 } },
    { { 3, 2, 24, 2, 1, true, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 17, NN_PARITY_BOTH, { 0 }, false },
      { 5, 10, 6, 4, 9.0, false, 12 } },
    /* as many inputs as with columns and descriptors */
    { { 1, 2, 8, 2, 2, true, true, NN_POOL_SUM, NN_FUSE_FULL, 133, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 3, 6, 133, 4, 2.0, false, 13 } },
    /* radial bases and envelopes; some edges are longer than the cutoff */
    { { 2,
        3,
        8,
        2,
        2,
        true,
        true,
        NN_POOL_SUM,
        NN_FUSE_FULL,
        6,
        4,
        1,
        NN_PARITY_BOTH,
        { NN_BASIS_BESSEL, 5, NN_ENVELOPE_POLYNOMIAL, 1.9 },
        false },
      { 4, 7, 6, 4, 2.2, false, 14 } },
    { { 2,
        2,
        6,
        3,
        2,
        true,
        false,
        NN_POOL_MAX,
        NN_FUSE_NONE,
        4,
        0,
        2,
        NN_PARITY_BOTH,
        { NN_BASIS_GAUSSIAN, 9, NN_ENVELOPE_NONE, 2.0 },
        false },
      { 4, 7, 4, 0, 2.2, true, 15 } },
    { { 1,
        2,
        8,
        1,
        1,
        false,
        true,
        NN_POOL_MEAN,
        NN_FUSE_PARTIAL,
        6,
        4,
        1,
        NN_PARITY_BOTH,
        { NN_BASIS_DISTANCE, 0, NN_ENVELOPE_POLYNOMIAL, 2.2 },
        false },
      { 4, 8, 6, 4, 2.2, false, 16 } },
    /* gates, of channels that fill lanes and warps and that do not */
    { { 2, 4, 6, 3, 2, NN_NORMS_GATE, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 4, 7, 6, 4, 2.0, false, 17 } },
    { { 2, 2, 40, 2, 1, NN_NORMS_GATE, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 4, 6, 6, 4, 2.0, false, 18 } },
};

#endif
