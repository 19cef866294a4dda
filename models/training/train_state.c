/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/train_state.h"

#include <string.h>

/* Sets the first state; its arrays are zeroed. */
static void state_begin(nn_train_state *s, const nn_se3 *model, uint64_t seed)
{
    nn_se3_init(model, s->params, seed);
    if (s->ema != NULL)
        memcpy(s->ema, s->params, s->n * sizeof *s->ema);
}

pl_code nn_train_state_alloc(nn_train_state *s, const nn_se3 *model, bool ema, uint64_t seed, pl_arena *mem, pl_error *err)
{
    size_t n = model->n_floats;

    *s = (nn_train_state){
        .n = n, .outputs = model->conf.outputs, .best_epoch = -1, .tensor = model->param, .n_tensors = model->n_params
    };
    s->params = PL_NEW(mem, float, n);
    s->m = PL_NEW(mem, float, n);
    s->v = PL_NEW(mem, float, n);
    s->best = PL_NEW(mem, float, n);
    s->ema = ema ? PL_NEW(mem, float, n) : NULL;
    if (s->params == NULL || s->m == NULL || s->v == NULL || s->best == NULL || (ema && s->ema == NULL))
        return pl_fail(err, PL_ENOMEM, "a training state of %zu parameters", n);
    state_begin(s, model, seed);
    return PL_OK;
}

pl_code nn_train_state_bases(nn_train_state *s, nn_optimiser_kind kind, pl_arena *mem, pl_error *err)
{
    s->n_bases = nn_optimiser_bases(kind, s->tensor, s->n_tensors);
    s->bases = s->n_bases ? PL_NEW(mem, float, s->n_bases) : NULL;
    if (s->n_bases && s->bases == NULL)
        return pl_fail(err, PL_ENOMEM, "%zu numbers of the optimiser's bases", s->n_bases);
    return PL_OK;
}

pl_code nn_train_state_again(nn_train_state *s, const nn_se3 *model, uint64_t seed, pl_arena *mem, pl_error *err)
{
    nn_train_state old = *s;
    size_t bytes = s->n * sizeof *s->params;

    *s = (nn_train_state){ .n = old.n,
                           .outputs = old.outputs,
                           .params = old.params,
                           .m = old.m,
                           .v = old.v,
                           .ema = old.ema,
                           .n_bases = old.n_bases,
                           .bases = old.bases,
                           .best = PL_NEW(mem, float, old.n),
                           .best_epoch = -1,
                           .tensor = old.tensor,
                           .n_tensors = old.n_tensors };
    if (s->best == NULL)
        return pl_fail(err, PL_ENOMEM, "a training state of %zu parameters", s->n);
    memset(s->params, 0, bytes);
    memset(s->m, 0, bytes);
    memset(s->v, 0, bytes);
    if (s->bases != NULL)
        memset(s->bases, 0, s->n_bases * sizeof *s->bases);
    state_begin(s, model, seed);
    return PL_OK;
}

pl_code nn_train_state_broadcast(nn_ranks *r, nn_train_state *s, pl_error *err)
{
    float *array[] = { s->params, s->m, s->v, s->best, s->ema, s->bases };
    const size_t n[] = { s->n, s->n, s->n, s->n, s->n, s->n_bases };
    nn_train_state told = *s;
    pl_code code = r->kind->broadcast(r, &told, sizeof told, err);

    for (int k = 0; code == PL_OK && k < 6; k++)
        if (array[k] != NULL)
            code = r->kind->broadcast(r, array[k], n[k] * sizeof(float), err);
    if (code != PL_OK)
        return code;
    told.tensor = s->tensor;
    *s = told;
    s->params = array[0];
    s->m = array[1];
    s->v = array[2];
    s->best = array[3];
    s->ema = array[4];
    s->bases = array[5];
    return PL_OK;
}

int64_t nn_train_epochs(const nn_train_conf *c, const nn_train_state *s) { return s->planned > 0 ? s->planned : c->epochs; }

bool nn_train_must_stop(const nn_train_host *host) { return host != NULL && host->stop != NULL && host->stop(host->ctx); }
