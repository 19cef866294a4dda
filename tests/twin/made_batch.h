/* tests/twin/made_batch.h - random molecular graphs as a batch, for the engines' tests. */
#ifndef MADE_BATCH_H
#define MADE_BATCH_H

#include <stdbool.h>

#include "models/features/batch.h"
#include "pipeline/base/arena.h"

typedef struct made_opts {
    int32_t n_graphs, max_nodes, node_features, edge_features;
    double cutoff; /* Angstrom; atoms lie in a box of side 3              */
    bool one_way;  /* drop some reverse edges, as neighbour lists of knn do */
    uint64_t seed;
} made_opts;

/* Positions, so that a test can move them; everything lives in mem. */
typedef struct made_batch {
    nn_batch b;
    float (*xyz)[3];
} made_batch;

/* One graph is a single atom and one (of 3 or more) has no edges. */
made_batch made_batch_new(const made_opts *opts, pl_arena *mem);

/* vec and dist again, after xyz changed. */
void made_batch_move(made_batch *m);

/* Every vec and dist to the nearest multiple of `width`, where radial nodes are exact. */
void made_batch_snap(made_batch *m, double width);

/* The first molecule alone; its arrays are those of b. */
nn_batch made_batch_first(const nn_batch *b);

/* DONE(open(.., &why)): if the code is not PL_OK, the test fails with the text of `why`. */
#define DONE(call)                    \
    do {                              \
        pl_error why = { 0 };         \
        if (call)                     \
            fail_msg("%s", why.text); \
    } while (0)

#endif
