/* models/held.h - the held-out molecules of training: their errors with the weights of an epoch.
 *
 * Measured by the engine that trains, between steps, or by a second one on a thread of its own, beside
 * them. Each rank predicts its share, then each has all, and all have the same sums. */
#ifndef NN_HELD_H
#define NN_HELD_H

#include "models/predict.h"

enum { NN_HELD_PARTS = 2 };        /* validation, test                                    */

typedef struct nn_held_of {
    const nn_samples *part[NN_HELD_PARTS]; /* NULL: none                                   */
    nn_predictor now;              /* with the engine that trains                         */
    nn_loss loss;
    nn_ranks *ranks;
} nn_held_of;

typedef struct nn_held nn_held;

/* In mem; of is copied, all it points to must outlive it. */
pl_code nn_held_new(nn_held **out, const nn_held_of *of, pl_arena *mem, pl_error *err);
void    nn_held_free(nn_held *h);  /* NULL is fine                                        */

/* At once; the engine's parameters are then `weights` [n_floats]. ESTOP: a rank was told to stop. */
pl_code nn_held_measure(nn_held *h, nn_loss_sum sum[NN_HELD_PARTS], const float *weights, pl_error *err);

/* Another engine of the same kind, which h closes: at its end or, with its memory, by nn_held_alone. */
pl_code nn_held_second(nn_held *h, nn_engine *engine, pl_error *err);
void    nn_held_alone(nn_held *h);
/* With that one beside the caller, who leaves weights as they are until nn_held_wait. */
void    nn_held_begin(nn_held *h, const float *weights);
bool    nn_held_busy(nn_held *h);
pl_code nn_held_wait(nn_held *h, pl_error *err); /* how this rank fared                    */
/* Waits; by all ranks, of which none may have failed. */
pl_code nn_held_end(nn_held *h, nn_loss_sum sum[NN_HELD_PARTS], pl_error *err);

#endif
