/* models/training/predict.h - the parts of nn_predict (models/training/train.h): prediction with the batches of training. */
#ifndef NN_PREDICT_H
#define NN_PREDICT_H

#include "models/features/mirror.h"
#include "models/training/train.h"

typedef struct nn_predictor {
    const nn_engine_kind *kind;
    nn_engine *engine;            /* with its parameters set                        */
    const nn_train_host *host;    /* host->stop is called before every batch; NULL: never */
    int64_t molecules, max_edges; /* limits of a batch, as in nn_train_conf         */
    nn_prefetch *ahead;
    const int64_t *all; /* from nn_predict_numbers                        */
    nn_mirror *mirror;  /* not NULL: y is the mean over a molecule and its mirror image */
    float *image;       /* scratch for mirror: [samples->n][outputs]      */
} nn_predictor;

/* The numbers 0, 1, .. n-1, in mem; NULL: no memory. */
const int64_t *nn_predict_numbers(int64_t n, pl_arena *mem);

/* Predicts the molecules of `part`; only their rows of y [samples->n][outputs] are written. ESTOP: asked to stop. */
pl_code nn_predict_part(float *y, const nn_predictor *p, const nn_samples *samples, nn_span part, pl_error *err);

bool nn_told_to_stop(const nn_train_host *host);

#endif
