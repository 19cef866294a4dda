/* SPDX-License-Identifier: Apache-2.0 */
#include "models/threads/background_thread.h"

#include <stdlib.h>

#include "pipeline/base/par.h"

/* A pool of one worker and one slot. */
struct nn_background {
    pl_pool *pool; /* NULL: the system refused a thread */
    bool begun;
    void (*work)(void *ctx);
    void *ctx;
};

static pl_code aside_work(void *ctx, int worker, int slot, pl_error *err)
{
    nn_background *a = ctx;

    (void)worker;
    (void)slot;
    (void)err;
    a->work(a->ctx); /* without a thread it runs here; the caller does nothing meanwhile */
    return PL_OK;
}

nn_background *nn_background_new(void)
{
    nn_background *a = calloc(1, sizeof *a);

    if (a != NULL)
        (void)pl_pool_open(&a->pool, 1, 1, aside_work, a, NULL);
    return a;
}

void nn_background_free(nn_background *a)
{
    if (a == NULL)
        return;
    nn_background_wait(a);
    pl_pool_close(a->pool);
    free(a);
}

void nn_background_begin(nn_background *a, void (*work)(void *ctx), void *ctx)
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

bool nn_background_busy(nn_background *a)
{
    pl_code code;

    a->begun = a->begun && !pl_pool_take(a->pool, 0, &code, NULL);
    return a->begun;
}

void nn_background_wait(nn_background *a)
{
    while (nn_background_busy(a))
        pl_pool_wait(a->pool);
}
