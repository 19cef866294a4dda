/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/train.h"

#include <math.h>
#include <string.h>

#include "models/training/train_parts.h"
#include "pipeline/base/rng.h"

enum { PURPOSE_SHUFFLE = 0x73687566 }; /* "shuf" */

/* ---- order, batches, learning rate --------------------------------------- */

void nn_train_order(int64_t *order, int64_t n, uint64_t seed, int64_t epoch)
{
    pl_rng r = pl_rng_at(seed, (uint64_t)epoch, PURPOSE_SHUFFLE);

    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)pl_rng_below(&r, (uint64_t)i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

double nn_train_lr(const nn_train_conf *c, int64_t epochs, double at)
{
    double lr = c->lr, part = c->schedule == NN_LR_COSINE_EPOCH ? floor(at) : at;

    if (c->budget > 0 && at < 1)
        part = 0;
    if (c->schedule != NN_LR_CONSTANT && epochs > 0)
        lr = c->min_lr + 0.5 * (c->lr - c->min_lr) * (1.0 + cos(3.14159265358979323846 * part / (double)epochs));
    return c->warmup > 0 && at < c->warmup ? lr * at / c->warmup : lr;
}

/* ---- whole --------------------------------------------------------------- */

static pl_code loop_alloc(nn_loop *l, pl_error *err)
{
    int64_t wide = l->conf->molecules > 0 && l->conf->molecules < l->train->n ? l->conf->molecules : l->train->n;
    int64_t n = wide * l->outputs;
    nn_optimiser_conf optimiser = { .kind = (nn_optimiser_kind)l->conf->optimiser, .kernels = l->conf->kernels };

    l->mem = pl_arena_new(1 << 16);
    l->pool = nn_pool_new(l->conf->threads);
    l->prefetch = nn_prefetch_new();
    if (l->mem == NULL || l->pool == NULL || l->prefetch == NULL)
        return pl_fail(err, PL_ENOMEM, "training");
    optimiser.threads = nn_pool_threads(l->pool);
    l->order = PL_NEW(l->mem, int64_t, l->train->n);
    l->dealt = PL_NEW(l->mem, int64_t, l->train->n);
    l->first = PL_NEW(l->mem, int64_t, l->ranks->size + 1);
    l->card = PL_NEW(l->mem, nn_card, wide);
    l->y = PL_NEW(l->mem, float, n);
    l->t = PL_NEW(l->mem, float, n);
    l->dy = PL_NEW(l->mem, float, n);
    l->high = l->train->high != NULL ? PL_NEW(l->mem, float, n) : NULL;
    l->grad = PL_NEW(l->mem, float, (size_t)l->own.n * l->s->n);
    l->square = PL_NEW(l->mem, double, l->s->n / NN_LOOP_PIECE + 1);
    l->optimiser = nn_optimiser_new(&optimiser, l->s->n, l->s->tensor, l->s->n_tensors, l->mem);
    if (l->optimiser == NULL || l->order == NULL || l->dealt == NULL || l->first == NULL || l->card == NULL || l->y == NULL ||
        l->t == NULL || l->dy == NULL || (l->train->high != NULL && l->high == NULL) || l->grad == NULL || l->square == NULL)
        return pl_fail(err, PL_ENOMEM, "training on %lld molecules", (long long)l->train->n);
    return PL_OK;
}

/* Room for the vectors of the largest batch that there can be. */
static pl_code noise_alloc(nn_loop *l, pl_error *err)
{
    int64_t all = 0, most = 0, wide = l->conf->molecules > 0 ? l->conf->molecules : l->train->n;

    if (!(l->conf->noise.weight > 0))
        return PL_OK;
    if (l->kind->vectors == NULL)
        return pl_fail(err, PL_ECONFIG, "engine %s cannot predict noise (train.noise) yet; use engine cpu or ref", l->kind->name);
    if (l->train->atoms == NULL || strcmp(l->s->tensor[l->s->n_tensors - 1].name, "denoise.weight") != 0)
        return pl_fail(err, PL_EBUG, "training with noise of a network that has no head for it");
    for (int64_t i = 0; i < l->train->n; i++) {
        all += l->train->atoms[i];
        most = l->train->atoms[i] > most ? l->train->atoms[i] : most;
    }
    all = most < all / wide ? wide * most : all;
    l->v = (float(*)[3])PL_NEW(l->mem, float, 3 * all);
    l->dv = (float(*)[3])PL_NEW(l->mem, float, 3 * all);
    l->noise = PL_NEW(l->mem, nn_noise_sum, l->shards);
    return l->v != NULL && l->dv != NULL && l->noise != NULL ? PL_OK
                                                             : pl_fail(err, PL_ENOMEM, "the noise of %lld atoms", (long long)all);
}

/* Prepares whole steps on the engine, if it can do them; with several ranks only where gradients are summed on devices. */
static pl_code steps_open(nn_loop *l, pl_error *err)
{
    bool alone = l->ranks->size == 1;
    bool known = l->conf->sparsity == NN_DENSE && l->conf->optimiser != NN_SOAP; /* to devices: they have neither mask nor bases */
    bool whole = known && (alone || l->ranks->kind->device != NULL);
    const nn_steps_of of = { .s = l->s,
                             .conf = l->conf,
                             .kind = l->kind,
                             .engine = l->engine,
                             .host = l->host,
                             .n_train = l->train->n,
                             .ranks = alone ? NULL : l->ranks,
                             .shards = l->shards,
                             .own = (int)l->own.n };

    return whole && l->kind->training != NULL ? nn_steps_new(&l->steps, &of, err) : PL_OK;
}

static pl_code validation_open(nn_loop *l, pl_error *err)
{
    const nn_train_host *host = l->host;
    const nn_validation_of of = { .part = { l->valid, host != NULL ? host->test : NULL },
                                  .loss = (nn_loss)l->conf->loss,
                                  .ranks = l->ranks,
                                  .now = { .kind = l->kind,
                                           .engine = l->engine,
                                           .host = host,
                                           .molecules = l->conf->molecules,
                                           .max_edges = l->conf->max_edges,
                                           .prefetch = l->prefetch } };

    l->beside = l->steps != NULL && host != NULL && host->beside != NULL ? BESIDE_UNTRIED : BESIDE_NOT;
    return nn_validation_new(&l->validation, &of, l->mem, err);
}

static pl_code loop_run(nn_loop *l, pl_error *err)
{
    pl_code code = l->kind->set_params(l->engine, l->s->params, err);

    l->s->scale = nn_loss_scale_begin(l->s->scale, l->conf->scale_after);
    l->time.began = nn_loop_clock(l) - l->s->seconds;
    if (code == PL_OK)
        code = steps_open(l, err);
    if (code == PL_OK)
        code = validation_open(l, err);
    while (code == PL_OK && !l->s->done)
        code = nn_loop_epoch(l, err);
    if (code == PL_OK)
        code = nn_loop_saved(l, err);
    if (code == PL_OK && l->s->best_epoch < 0)
        code = pl_fail(err, PL_ELIMIT, "no epoch gave finite predictions for the validation molecules: try a smaller lr");
    return code;
}

static void loop_free(nn_loop *l)
{
    nn_validation_free(l->validation);
    nn_steps_free(l->steps);
    nn_prefetch_free(l->prefetch);
    nn_pool_free(l->pool);
    pl_arena_free(l->mem);
}

pl_code nn_train(nn_train_state *s, const nn_train_conf *conf, const nn_engine_kind *kind, nn_engine *engine,
                 const nn_samples *train, const nn_samples *valid, const nn_train_host *host, pl_error *err)
{
    nn_loop l = {
        .s = s, .conf = conf, .kind = kind, .engine = engine, .train = train, .valid = valid, .host = host, .outputs = s->outputs
    };
    pl_code code;

    l.alone = (nn_ranks){ .kind = &nn_collective_none, .size = 1 };
    l.ranks = host != NULL && host->ranks != NULL ? host->ranks : &l.alone;
    l.shards = conf->shards > 0 ? (int)conf->shards : 1;
    l.own = nn_share(l.shards, l.ranks->size, l.ranks->rank);
    if (train->n < 1)
        return pl_fail(err, PL_ECONFIG, "no molecule to train on");
    if (l.own.n < 1)
        return pl_fail(err, PL_ECONFIG, "%d ranks, but only %d shards of a batch; raise batch.shards or start fewer ranks",
                       l.ranks->size, l.shards);
    code = loop_alloc(&l, err);
    if (code == PL_OK)
        code = noise_alloc(&l, err);
    if (code == PL_OK)
        code = loop_run(&l, err);
    loop_free(&l);
    return code;
}
