/* models/training/predict.h - prediction with the batches of training. */
#ifndef NN_PREDICT_H
#define NN_PREDICT_H

#include "models/features/mirror.h"
#include "models/training/train_state.h"

/* Predicts y [samples->n][outputs], in the order of the samples, with the current parameters of
 * the engine. ESTOP: host->stop returned true; host may be NULL. */
pl_code nn_predict(float *y, const nn_engine_kind *kind, nn_engine *engine, const nn_samples *samples, int64_t molecules,
                   int64_t max_edges, const nn_train_host *host, pl_error *err);

/* The same, averaged over each molecule and its mirror image (models/features/mirror.h). */
pl_code nn_predict_average(float *y, const nn_engine_kind *kind, nn_engine *engine, const nn_samples *samples, int64_t molecules,
                           int64_t max_edges, const nn_train_host *host, pl_error *err);

/* ---- the parts of nn_predict ---- */

typedef struct nn_predictor {
    const nn_engine_kind *kind;
    nn_engine *engine;            /* with its parameters set                        */
    const nn_train_host *host;    /* host->stop is called before every batch; NULL: never */
    int64_t molecules, max_edges; /* limits of a batch, as in nn_train_conf         */
    nn_prefetch *prefetch;
    const int64_t *all; /* from nn_predict_numbers                        */
    nn_mirror *mirror;  /* not NULL: y is the mean over a molecule and its mirror image */
    float *image;       /* scratch for mirror: [samples->n][outputs]      */
} nn_predictor;

/* The numbers 0, 1, .. n-1, in mem; NULL: no memory. */
const int64_t *nn_predict_numbers(int64_t n, pl_arena *mem);

/* Predicts the molecules of `part`; only their rows of y [samples->n][outputs] are written. ESTOP: asked to stop. */
pl_code nn_predict_part(float *y, const nn_predictor *p, const nn_samples *samples, nn_span part, pl_error *err);

#endif
