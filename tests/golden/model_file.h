/* tests/golden/model_file.h - a stored case of a whole model (B4), opened. */
#ifndef TESTS_MODEL_FILE_H
#define TESTS_MODEL_FILE_H

#include "golden/golden.h"
#include "models/engine/engine.h"
#include "models/ref/ref.h"

enum { MODEL_LARGE = 1 << 20 }; /* parameters; the oracle needs minutes above that */

typedef struct model_file {
    const nn_tensors *file;
    nn_se3 *model;
    const double *w; /* [model->n_floats]         */
    int32_t n_graphs, n_nodes, n_edges;
    const int32_t *src, *dst, *first;
    const double *node, *edge, *target, *pos;
    double (*vec)[3]; /* [n_edges] in double       */
} model_file;

/* All memory is in mem; a missing tensor fails the test. */
void model_file_open(model_file *f, const char *name, pl_arena *mem);

/* wide: differences of positions in double, else in float. */
nn_ref_edges model_edges(const model_file *f, bool wide, pl_arena *mem);

/* The case as engines read it, with the reverse edges and pairs found; numbers as floats. */
nn_batch model_batch(const model_file *f, pl_arena *mem);
float *model_floats(const double *x, size_t n, pl_arena *mem);

#endif
