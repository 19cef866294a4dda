/* models/training/steps.h - a queue of training steps that an engine computes by itself (nn_engine_training),
 * several of them in flight.
 *
 * Counts, losses and skipped steps in the training state are updated when a step's result arrives,
 * in the order of the steps. The state's arrays are out of date until nn_steps_settle: the current
 * ones are in the engine. */
#ifndef NN_STEPS_H
#define NN_STEPS_H

#include "models/training/train_state.h"

/* What the steps belong to; everything it points to must outlive the queue. */
typedef struct nn_steps_of {
    nn_train_state *s;
    const nn_train_conf *conf;
    const nn_engine_kind *kind; /* with `training`                                */
    nn_engine *engine;
    const nn_train_host *host; /* host->step is called for every result; or NULL */
    int64_t n_train;
    nn_ranks *ranks; /* NULL: a single rank                            */
    int shards, own; /* shards of a batch; of these, this rank's       */
} nn_steps_of;

typedef struct nn_steps {
    nn_steps_of of;
    int64_t cursor; /* molecules of this epoch passed to the engine   */
    int32_t in_flight;
    bool behind; /* the state's arrays are out of date             */
} nn_steps;

/* Begins the engine's training with the arrays of the state. */
pl_code nn_steps_new(nn_steps **out, const nn_steps_of *of, pl_error *err);
void nn_steps_free(nn_steps *q); /* steps in flight are lost; NULL is fine         */

/* Queues one shard of a step; in: NULL for a shard without molecules. If the maximum number of steps is
 * in flight, it first waits for the oldest. May return an error of an earlier step; ELIMIT as nn_steps_skip. */
pl_code nn_steps_add(nn_steps *q, const nn_batch *in, const nn_training_step *step, pl_error *err);

/* Waits for all steps in flight; then the whole state, with its arrays, is that after the last step. */
pl_code nn_steps_settle(nn_steps *q, pl_error *err);

/* Waits for all steps in flight and copies the moving average and, if `params`, the parameters to the state's
 * arrays. Further steps can be queued as before. */
pl_code nn_steps_weights(nn_steps *q, bool params, pl_error *err);

/* Waits for all steps in flight and discards their results. Except for its arrays the state is not changed. */
pl_code nn_steps_drop(nn_steps *q, pl_error *err);

/* Counts a step that was skipped because its loss or gradient was not finite. With a loss scale the cause may
 * be a scale that is too large, and training goes on (s->scale is still that of the step). ELIMIT: without
 * one, NN_BAD_STEPS_MAX steps in a row were skipped, so the weights themselves are unusable. */
pl_code nn_steps_skip(nn_train_state *s, pl_error *err);

#endif
