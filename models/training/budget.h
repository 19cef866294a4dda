/* models/training/budget.h - how many epochs fit into a given time.
 *
 * The schedule of the learning rate needs the number of epochs. With a time in place of it the number is computed
 * once, from what the first epoch took, and is part of the training state from then on. No clock is read here. */
#ifndef NN_BUDGET_H
#define NN_BUDGET_H

#include <stdint.h>

/* Times are in seconds. */
typedef struct nn_budget {
    double seconds;    /* of the whole training                                     */
    double used;       /* of these, by the epochs that are over                     */
    double step;       /* one training step                                         */
    double steps;      /* training steps in an epoch                                */
    double evaluation; /* of the held-out molecules after an epoch                  */
    int64_t over;      /* epochs that are over                                      */
    int64_t most;      /* the result is at most this, but never less than `over`    */
} nn_budget;

/* What an epoch takes. */
double nn_budget_epoch(const nn_budget *b);

/* Epochs of the whole training, at least 1. Only whole epochs fit. Where an epoch takes no measurable time: most. */
int64_t nn_budget_epochs(const nn_budget *b);

#endif
