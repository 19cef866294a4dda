/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/sparsity.h"

#include "models/network/sparse.h"

int64_t nn_sparsity_epoch(const nn_train_conf *c, const nn_train_state *s)
{
    if (c->sparsity == NN_DENSE || (!c->prune_first && c->budget > 0 && s->planned == 0))
        return INT64_MAX;
    return c->prune_first ? 0 : nn_train_epochs(c, s) / 2;
}

bool nn_sparsity_begins(const nn_train_conf *c, const nn_train_state *s)
{
    return s->cursor == 0 && s->epoch == nn_sparsity_epoch(c, s);
}

bool nn_sparsity_holds(const nn_train_conf *c, const nn_train_state *s) { return s->epoch >= nn_sparsity_epoch(c, s); }

void nn_sparsity_prune(nn_train_state *s)
{
    float *const follows[] = { s->m, s->v, s->ema };

    for (int32_t k = 0; k < s->n_tensors; k++) {
        const nn_param *p = &s->tensor[k];
        if (!nn_sparse_fits(p))
            continue;
        nn_sparse_prune(s->params + p->at, p);
        for (int i = 0; i < 3; i++)
            if (follows[i] != NULL)
                nn_sparse_follow(follows[i] + p->at, s->params + p->at, p->size);
    }
    s->best_epoch = -1;
    s->best_error = 0;
}

typedef struct gradient {
    float *grad;
    const nn_train_state *s;
} gradient;

static void gradient_clear(void *ctx, int worker, int k)
{
    const gradient *g = ctx;
    const nn_param *p = &g->s->tensor[k];

    (void)worker;
    if (nn_sparse_fits(p))
        nn_sparse_follow(g->grad + p->at, g->s->params + p->at, p->size);
}

void nn_sparsity_gradient(float *grad, const nn_train_state *s, nn_pool *pool)
{
    gradient g = { grad, s };

    nn_pool_run(pool, s->n_tensors, gradient_clear, &g);
}
