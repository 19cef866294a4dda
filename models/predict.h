/* models/predict.h - predicting with the batches of training: nn_predict (models/train.h), and parts of it. */
#ifndef NN_PREDICT_H
#define NN_PREDICT_H

#include "models/mirror.h"
#include "models/train.h"

typedef struct nn_predictor {
    const nn_engine_kind *kind;
    nn_engine *engine;             /* with its parameters set                        */
    const nn_train_host *host;     /* whose stop is asked before every batch; or NULL */
    int64_t molecules, max_edges;  /* of a batch, as in nn_train_conf                */
    nn_ahead *ahead;
    const int64_t *all;            /* from nn_predict_numbers                        */
    nn_mirror *mirror;             /* y: mean over molecules and their mirror images; NULL: as they are */
    float *image;                  /* then: [samples->n][outputs]                    */
} nn_predictor;

/* 0, 1, .. n-1, in mem; NULL when there is no memory. */
const int64_t *nn_predict_numbers(int64_t n, pl_arena *mem);

/* y [samples->n][outputs], of which those of a part are filled. ESTOP: told to stop. */
pl_code nn_predict_part(float *y, const nn_predictor *p, const nn_samples *samples, nn_span part, pl_error *err);

bool nn_told_to_stop(const nn_train_host *host);

#endif
