/* tests/twin/sample.h - random graphs and features that are the same everywhere. */
#ifndef TESTS_SAMPLE_H
#define TESTS_SAMPLE_H

#include "models/ref/ref.h"
#include "pipeline/base/rng.h"

enum { SAMPLE_NODES = 12, SAMPLE_EDGES = 48, SAMPLE_SCALARS = 3, SAMPLE_FEATURES = 4 };

/* A batch of molecules with every directed edge shorter than the cutoff. */
typedef struct sample {
    int32_t n_graphs, n_nodes, n_edges;
    int32_t first[4];
    double pos[SAMPLE_NODES][3], vec[SAMPLE_EDGES][3];
    double node[SAMPLE_NODES][SAMPLE_FEATURES], scalar[SAMPLE_EDGES][SAMPLE_SCALARS];
    int32_t src[SAMPLE_EDGES], dst[SAMPLE_EDGES];
} sample;

/* atoms[k] atoms in molecule k, n <= 3 molecules. */
void sample_make(sample *s, const int *atoms, int n, uint64_t seed);
/* vec from pos, edge scalars kept. */
void sample_vectors(sample *s);
nn_ref_edges sample_edges(const sample *s);

/* r <- a rotation; d <- exp(angle axis.G), how degree l turns with it; d [2l+1][2l+1]. */
void sample_rotation(double r[9], const double axis[3], double angle);
void sample_turn(double *d, int l, const double axis[3], double angle);

#endif
