/* tests/bench/bench_batch.h - the default QM9 model and a batch of bond graphs.
 *
 * The molecules of $MOLSIEVE_SHARED/golden/molecules_bench, repeated; node features
 * one-hot H C N O F and Z, edge features one-hot of the bond kind. */
#ifndef BENCH_BATCH_H
#define BENCH_BATCH_H

#include "models/batch.h"
#include "models/se3.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

typedef struct bench_case {
    nn_batch batch;
    nn_se3 *model;
    float *params, *grad; /* [model->n_floats] */
    float *y, *dy;        /* [n_graphs]        */
} bench_case;

/* Everything lives in mem. */
pl_code bench_case_open(bench_case *c, int n_graphs, pl_arena *mem, pl_error *err);

#endif
