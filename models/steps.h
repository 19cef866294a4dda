/* models/steps.h - training steps that an engine does by itself (nn_engine_training), several
 * in flight.
 *
 * The training state stays that of the steps whose results have come, in their order: counts,
 * losses, skipped steps. Its arrays are the engine's until nn_steps_settle. */
#ifndef NN_STEPS_H
#define NN_STEPS_H

#include "models/train.h"

/* Whose steps they are; all of it must outlive them. */
typedef struct nn_steps_of {
    nn_train_state *s;
    const nn_train_conf *conf;
    const nn_engine_kind *kind;    /* with training                                  */
    nn_engine *engine;
    const nn_train_host *host;     /* its step is told of every result; or NULL      */
    int64_t n_train;
    nn_ranks *ranks;               /* NULL: alone                                    */
    int shards, own;               /* of a batch; of these this rank's               */
} nn_steps_of;

typedef struct nn_steps {
    nn_steps_of of;
    int64_t cursor;                /* molecules of this epoch given to the engine    */
    int32_t in_flight;
    bool behind;                   /* the state's arrays are older than the engine's */
} nn_steps;

/* The engine takes the state's arrays over. */
pl_code nn_steps_new(nn_steps **out, const nn_steps_of *of, pl_error *err);
void nn_steps_free(nn_steps *q);   /* what is in flight is lost; NULL is fine        */

/* Begins a shard of a step; in: NULL for a shard without molecules. Waits only where the engine
 * takes no more, for the oldest. Errors of earlier steps too: ELIMIT as nn_steps_skip. */
pl_code nn_steps_add(nn_steps *q, const nn_batch *in, const nn_training_step *step, pl_error *err);

/* Waits for all; the state, arrays too, is then that after the last step. */
pl_code nn_steps_settle(nn_steps *q, pl_error *err);

/* Waits for all; of the arrays params, if asked for, and ema are then those after the last step. The engine goes
 * on where it is. */
pl_code nn_steps_weights(nn_steps *q, bool params, pl_error *err);

/* Waits for all, which count for nothing; the state, but for its arrays, is what the caller made of it. */
pl_code nn_steps_drop(nn_steps *q, pl_error *err);

/* A step with an infinity in it must not reach the weights. It may be the loss' scale that is too
 * large (s->scale is still that of the step); where there is none, NN_BAD_STEPS_MAX in a row mean
 * that the weights themselves are lost: ELIMIT. */
pl_code nn_steps_skip(nn_train_state *s, pl_error *err);

#endif
