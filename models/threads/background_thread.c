/* SPDX-License-Identifier: Apache-2.0 */
#include "models/threads/background_thread.h"

#include <stdlib.h>

#include "pipeline/base/par.h"

/* A pool of one worker and one slot. */
struct nn_aside {
    pl_pool *pool; /* NULL: the system has no thread */
    bool begun;
    void (*work)(void *ctx);
    void *ctx;
};

static pl_code aside_work(void *ctx, int worker, int slot, pl_error *err)
{
    nn_aside *a = ctx;

    (void)worker;
    (void)slot;
    (void)err;
    a->work(a->ctx); /* the caller keeps away meanwhile */
    return PL_OK;
}

nn_aside *nn_aside_new(void)
{
    nn_aside *a = calloc(1, sizeof *a);

    if (a != NULL)
        (void)pl_pool_open(&a->pool, 1, 1, aside_work, a, NULL);
    return a;
}

void nn_aside_free(nn_aside *a)
{
    if (a == NULL)
        return;
    nn_aside_wait(a);
    pl_pool_close(a->pool);
    free(a);
}

void nn_aside_begin(nn_aside *a, void (*work)(void *ctx), void *ctx)
{
    if (a->pool == NULL) {
        work(ctx);
        return;
    }
    a->work = work;
    a->ctx = ctx;
    a->begun = true;
    pl_pool_put(a->pool, 0, 0);
}

bool nn_aside_busy(nn_aside *a)
{
    pl_code code;

    a->begun = a->begun && !pl_pool_take(a->pool, 0, &code, NULL);
    return a->begun;
}

void nn_aside_wait(nn_aside *a)
{
    while (nn_aside_busy(a))
        pl_pool_wait(a->pool);
}
