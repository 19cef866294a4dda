/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/steps.h"

#include <stdlib.h>

pl_code nn_steps_skip(nn_train_state *s, pl_error *err)
{
    s->bad_total++;
    if (s->scale.by > 1 || ++s->bad_run < NN_BAD_STEPS_MAX)
        return PL_OK;
    return pl_fail(err, PL_ELIMIT, "loss or gradient not finite in %d steps in a row (epoch %lld, step %lld): try a smaller lr",
                   (int)NN_BAD_STEPS_MAX, (long long)s->epoch + 1, (long long)s->step);
}

static nn_adamw_arrays arrays_of(const nn_train_state *s)
{
    return (nn_adamw_arrays){ .p = s->params, .m = s->m, .v = s->v, .ema = s->ema };
}

pl_code nn_steps_new(nn_steps **out, const nn_steps_of *of, pl_error *err)
{
    const nn_train_conf *c = of->conf;
    const nn_training t = { .optimiser = (nn_optimiser_kind)c->optimiser,
                            .adam = { c->beta1, c->beta2, c->eps, c->weight_decay },
                            .loss = (nn_loss)c->loss,
                            .grad_clip = c->grad_clip,
                            .ema = c->ema,
                            .ranks = of->ranks,
                            .shards = of->shards,
                            .sharded = c->sharded,
                            .scale = of->s->scale,
                            .scale_after = c->scale_after };
    const nn_adamw_arrays from = arrays_of(of->s);
    nn_steps *q = calloc(1, sizeof *q);
    pl_code code = q != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "training");

    if (code == PL_OK) {
        q->of = *of;
        q->cursor = of->s->cursor;
        code = of->kind->training->begin(of->engine, &t, &from, of->s->step, err);
    }
    if (code != PL_OK) {
        nn_steps_free(q);
        q = NULL;
    }
    *out = q;
    return code;
}

void nn_steps_free(nn_steps *q) { free(q); }

/* Waits for the oldest step in flight and counts its result. */
static pl_code oldest_count(nn_steps *q, pl_error *err)
{
    const nn_train_host *host = q->of.host;
    nn_train_state *s = q->of.s;
    nn_training_result r;
    pl_code code = q->of.kind->training->result(q->of.engine, &r, err);

    if (code != PL_OK)
        return code;
    q->in_flight--;
    if (r.taken) {
        nn_loss_add(&s->seen, &r.loss);
        s->bad_run = 0;
        s->step++;
    } else {
        code = nn_steps_skip(s, err);
    }
    s->scale = r.scale;
    s->cursor += r.n_graphs;
    if (code == PL_OK && host != NULL && host->step != NULL)
        host->step(host->ctx, s, q->of.n_train);
    return code;
}

pl_code nn_steps_add(nn_steps *q, const nn_batch *in, const nn_training_step *step, pl_error *err)
{
    const nn_engine_training *training = q->of.kind->training;
    pl_code code = step->shard == 0 && q->in_flight == training->depth ? oldest_count(q, err) : PL_OK;

    if (code == PL_OK)
        code = training->step(q->of.engine, in, step, err);
    if (code != PL_OK || step->shard + 1 < q->of.own)
        return code;
    q->in_flight++;
    q->cursor += step->n_graphs;
    q->behind = true;
    return PL_OK;
}

static pl_code all_count(nn_steps *q, pl_error *err)
{
    pl_code code = PL_OK;

    while (q->in_flight && code == PL_OK)
        code = oldest_count(q, err);
    return code;
}

pl_code nn_steps_settle(nn_steps *q, pl_error *err)
{
    const nn_adamw_arrays to = arrays_of(q->of.s);
    pl_code code = all_count(q, err);

    if (code == PL_OK && q->behind)
        code = q->of.kind->training->fetch(q->of.engine, &to, err);
    q->behind = q->behind && code != PL_OK;
    return code;
}

pl_code nn_steps_weights(nn_steps *q, bool params, pl_error *err)
{
    const nn_adamw_arrays to = { .p = params ? q->of.s->params : NULL, .ema = q->of.s->ema };
    pl_code code = all_count(q, err);

    return code != PL_OK || !q->behind ? code : q->of.kind->training->fetch(q->of.engine, &to, err);
}

pl_code nn_steps_drop(nn_steps *q, pl_error *err)
{
    nn_training_result r;
    pl_code code = PL_OK;

    for (; q->in_flight && code == PL_OK; q->in_flight--)
        code = q->of.kind->training->result(q->of.engine, &r, err);
    q->cursor = q->of.s->cursor;
    return code;
}
