/* stages/steps/train/learning.h - what a training says while it learns: the line of progress and the rows of the table `metric`. */
#ifndef ST_LEARNING_H
#define ST_LEARNING_H

#include "models/files/model_file.h"
#include "models/training/train_state.h"
#include "pipeline/workflow/stage.h"
#include "stages/steps/train/train_conf.h"

/* Of one member. */
typedef struct st_learning {
    pl_env *env;
    const st_train_conf *conf;
    const nn_train_conf *loop;
    const nn_model_file *m; /* its targets                                  */
    bool limits;            /* labels may be limits                         */
    int64_t member;         /* from 0                                       */
    double valid_error;     /* of the last epoch: MAE in the target's unit, else the loss; or NaN */
} st_learning;

/* "loss"; of the second member "member2.loss". NULL when refused. */
const char *st_learning_metric(const char *name, int64_t member, pl_arena *mem);

/* Molecules in all epochs of all members up to this state. */
int64_t st_learning_done(const st_learning *l, const nn_train_state *s, int64_t n_train);

/* After a step: sets the line of progress. */
void st_learning_step(const st_learning *l, const nn_train_state *s, int64_t n_train);

/* Stores the numbers of an epoch, in a transaction of its own; the same rows again after a resume from an older checkpoint. */
pl_code st_learning_epoch(st_learning *l, const nn_epoch_report *r, pl_error *err);

#endif
