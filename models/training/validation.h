/* models/training/validation.h - validation during training: errors on held-out molecules with the weights of an epoch.
 *
 * The training engine measures them between steps, or a second engine does it in a background thread
 * while training goes on. Each rank predicts its share of the molecules; the predictions are gathered,
 * and all ranks have the same sums. */
#ifndef NN_VALIDATION_H
#define NN_VALIDATION_H

#include "models/training/predict.h"

enum { NN_VALIDATION_PARTS = 2 }; /* validation, test                                    */

typedef struct nn_validation_of {
    const nn_samples *part[NN_VALIDATION_PARTS]; /* NULL: none                                   */
    nn_predictor now;                            /* predicts with the training engine                   */
    nn_loss loss;
    nn_ranks *ranks;
} nn_validation_of;

typedef struct nn_validation nn_validation;

/* *out is in mem. *of is copied; what it points to must outlive *out. */
pl_code nn_validation_new(nn_validation **out, const nn_validation_of *of, pl_arena *mem, pl_error *err);
void nn_validation_free(nn_validation *h); /* NULL is fine                                        */

/* Measures now, with the training engine, whose parameters become `weights` [n_floats]. ESTOP: a rank was
 * asked to stop. */
pl_code nn_validation_measure(nn_validation *h, nn_loss_sum sum[NN_VALIDATION_PARTS], const float *weights, pl_error *err);

/* Gives h a second engine of the same kind for measuring in the background. h closes it in nn_validation_free or
 * nn_validation_alone; nn_validation_alone also frees its memory at once. */
pl_code nn_validation_second(nn_validation *h, nn_engine *engine, pl_error *err);
void nn_validation_alone(nn_validation *h);
/* Starts measuring in the background with the second engine. The caller must not change weights until
 * nn_validation_wait has returned. */
void nn_validation_begin(nn_validation *h, const float *weights);
bool nn_validation_busy(nn_validation *h);                   /* true while measuring is not finished                */
pl_code nn_validation_wait(nn_validation *h, pl_error *err); /* waits; the error of this rank         */
/* Waits and gathers the sums of all ranks. All ranks call it, and only if nn_validation_wait succeeded on all. */
pl_code nn_validation_end(nn_validation *h, nn_loss_sum sum[NN_VALIDATION_PARTS], pl_error *err);

#endif
