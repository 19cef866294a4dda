/* stages/steps/train/train_save.h - the checkpoints of a training, written in the background during the next steps.
 *
 * In <workdir>/checkpoints, a folder for each member. Rank 0 alone has any. */
#ifndef ST_TRAIN_SAVE_H
#define ST_TRAIN_SAVE_H

#include "models/threads/background_thread.h"
#include "models/training/train_state.h"
#include "pipeline/workflow/stage.h"

typedef struct st_saves {
    pl_env *env;
    const char *dir, *identity; /* of the present member                       */
    bool latest_good;           /* latest.ckpt may become previous.ckpt        */
    double at, took;            /* seconds: the end of the last one            */
    int64_t step;               /* of the last one; when none, 0               */
    nn_background *aside;       /* made when it is first needed                */
    bool begun;
    nn_train_state s; /* what is written                             */
    pl_code code;     /* its result                                  */
    pl_error err;
} st_saves;

/* For member number `member`, from 0, of the stage that env runs. */
pl_code st_saves_begin_member(st_saves *v, pl_env *env, int64_t member, pl_error *err);
void st_saves_close(st_saves *v); /* waits; zeroed is fine */

/* Loads the newest intact checkpoint, if there is one, and adds an event that says so. */
pl_code st_saves_load(st_saves *v, nn_train_state *s, pl_error *err);

/* Whether one is due: every `every` seconds, and at the end of an epoch unless saving takes more than a twentieth of the time. n: numbers of the
 * model. Logs the previous one as soon as it is written. */
bool st_saves_due(st_saves *v, double every, bool epoch_over, size_t n);

/* Starts writing. The arrays of s must not change until st_saves_wait. */
pl_code st_saves_write(st_saves *v, const nn_train_state *s, pl_error *err);
pl_code st_saves_wait(st_saves *v, pl_error *err);

/* Adds to the error of a device that failed, which ends the process, where the same command continues. Returns the error's code. */
pl_code st_saves_tell(st_saves *v, pl_error *err);

#endif
