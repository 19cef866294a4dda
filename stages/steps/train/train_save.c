/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/train/train_save.h"

#include <string.h>
#include <time.h>

#include "models/training/checkpoint.h"
#include "pipeline/run/run.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"

/* Saving at ends of epochs may take 1/SHARE of the time; a model of fewer than SMALL weights is saved in no time. */
enum { SHARE = 20, SMALL = 1 << 20 };

static double clock_seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Which training a checkpoint belongs to: the stage's key, and the run that began
 * the stage, so that a rerun by force, within the same second too, starts at zero. */
pl_code st_saves_begin_member(st_saves *v, pl_env *env, int64_t member, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    bool row;
    pl_code code = pl_db_prepare(env->store->db, &st, "SELECT uuid FROM stage JOIN run USING(run_id) WHERE stage_id=?", err);

    *v = (st_saves){ .env = env, .at = clock_seconds(), .aside = v->aside };
    if (code == PL_OK)
        (void)sqlite3_bind_int64(st, 1, env->stage_id);
    row = pl_db_next(st, &code, err);
    if (code == PL_OK)
        v->identity = pl_sprintf(env->mem, "%s %s", env->step->key,
                                 row && sqlite3_column_text(st, 0) != NULL ? (const char *)sqlite3_column_text(st, 0) : "");
    sqlite3_finalize(st);
    v->dir = pl_sprintf(env->mem, member ? "%s/checkpoints/%.16s-%lld" : "%s/checkpoints/%.16s", env->wf->workdir, env->step->key,
                        (long long)member + 1);
    return code != PL_OK || (v->identity != NULL && v->dir != NULL) ? code : pl_fail(err, PL_ENOMEM, "checkpoint");
}

void st_saves_close(st_saves *v)
{
    nn_background_free(v->aside);
    *v = (st_saves){ 0 };
}

pl_code st_saves_load(st_saves *v, nn_train_state *s, pl_error *err)
{
    const char *found = nn_checkpoint_identity(v->dir, v->env->mem);
    nn_checkpoint_from from;
    pl_error why = { 0 };
    pl_code code;

    if (found[0] && strcmp(found, v->identity) != 0 && !strncmp(found, v->identity, strlen(v->env->step->key))) {
        pl_event_add(v->env, PL_INFO, "a checkpoint of an earlier run of this stage is not used: the stage was started again");
        return PL_OK;
    }
    code = nn_checkpoint_load(v->dir, v->identity, s, &from, &why, err);
    if (code != PL_OK)
        return code;
    v->latest_good = from == NN_FROM_LATEST;
    v->step = s->step;
    if (from == NN_FROM_PREVIOUS)
        pl_event_add(v->env, PL_WARN, "checkpoint latest.ckpt: %s; going on from previous.ckpt", why.text);
    if (from != NN_FROM_NOTHING)
        pl_event_add(v->env, PL_INFO, "training continues in epoch %lld at step %lld", (long long)s->epoch + 1, (long long)s->step);
    return PL_OK;
}

static void write_run(void *ctx)
{
    st_saves *v = ctx;
    double began = clock_seconds();

    pl_fault("train", "checkpoint.before");
    v->code = nn_checkpoint_save(v->dir, v->identity, &v->s, v->latest_good, &v->err);
    pl_fault("train", "checkpoint.after");
    v->at = clock_seconds();
    v->took = v->at - began;
}

pl_code st_saves_write(st_saves *v, const nn_train_state *s, pl_error *err)
{
    pl_code code = st_saves_wait(v, err);

    if (code == PL_OK)
        code = pl_store_held(v->env->store, err);
    if (code != PL_OK)
        return code;
    v->aside = v->aside != NULL ? v->aside : nn_background_new();
    if (v->aside == NULL)
        return pl_fail(err, PL_ENOMEM, "checkpoint");
    v->s = *s;
    v->begun = true;
    nn_background_begin(v->aside, write_run, v);
    return PL_OK;
}

pl_code st_saves_wait(st_saves *v, pl_error *err)
{
    if (!v->begun)
        return PL_OK;
    nn_background_wait(v->aside);
    v->begun = false;
    v->latest_good = v->code == PL_OK;
    if (v->code != PL_OK && err != NULL)
        *err = v->err;
    if (v->code == PL_OK && v->s.step > v->step) {
        pl_further_add(v->env, "checkpoint at step %lld", (long long)v->s.step);
        v->step = v->s.step;
    }
    return v->code;
}

pl_code st_saves_tell(st_saves *v, pl_error *err)
{
    pl_error what = *err;

    (void)st_saves_wait(v, NULL);
    if (v->step == 0)
        return what.code;
    return pl_fail(err, what.code, "%.300s; the same command continues from the checkpoint at step %lld", what.text,
                   (long long)v->step);
}

/* Epochs may take a second, and a checkpoint as long. */
bool st_saves_due(st_saves *v, double every, bool epoch_over, size_t n)
{
    double since, often;

    if (v->begun && nn_background_busy(v->aside))
        return false;
    if (v->begun && v->code == PL_OK)
        (void)st_saves_wait(v, NULL);
    since = clock_seconds() - v->at;
    often = n < SMALL ? 0 : SHARE * v->took;
    return since >= every || (epoch_over && since >= often);
}
