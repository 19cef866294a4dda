/* models/predict.h - predicting with the batches of training: nn_predict (models/train.h), and the
 * held-out molecules of an epoch by one rank or several. */
#ifndef NN_PREDICT_H
#define NN_PREDICT_H

#include "models/train.h"

typedef struct nn_predictor {
    const nn_engine_kind *kind;
    nn_engine *engine;             /* with its parameters set                        */
    const nn_train_host *host;     /* whose stop is asked before every batch; or NULL */
    int64_t molecules, max_edges;  /* of a batch, as in nn_train_conf                */
    nn_ahead *ahead;
    const int64_t *all;            /* from nn_predict_numbers                        */
} nn_predictor;

/* 0, 1, .. n-1, in mem; NULL when there is no memory. */
const int64_t *nn_predict_numbers(int64_t n, pl_arena *mem);

/* y [samples->n][outputs] by all ranks, each its share, then each has all. first [r->size + 1]:
 * scratch. ESTOP: any of them was told to stop. */
pl_code nn_predict_shared(float *y, const nn_predictor *p, const nn_samples *samples, nn_ranks *r, int64_t *first,
                          pl_error *err);

bool nn_told_to_stop(const nn_train_host *host);

#endif
