/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/prefetch.h"

#include <stdbool.h>
#include <stdlib.h>

#include "models/threads/background_thread.h"

struct nn_prefetch {
    nn_background *aside;
    bool begun;                /* a batch is being made, or is ready */
    const nn_samples *samples; /* arguments of that batch, up to the end */
    nn_which which;
    int slot;
    nn_batch batch;
    pl_code code;
    pl_error err;
};

nn_prefetch *nn_prefetch_new(void)
{
    nn_prefetch *a = calloc(1, sizeof *a);

    if (a != NULL && (a->aside = nn_background_new()) == NULL) {
        free(a);
        return NULL;
    }
    return a;
}

void nn_prefetch_free(nn_prefetch *a)
{
    if (a != NULL)
        nn_background_free(a->aside);
    free(a);
}

static void make(void *ctx)
{
    nn_prefetch *a = ctx;

    a->code = a->samples->batch(a->samples->ctx, a->slot, &a->batch, a->which.at, a->which.n, &a->err);
}

static void begin(nn_prefetch *a, const nn_samples *s, nn_which which)
{
    a->samples = s;
    a->which = which;
    a->slot ^= 1;
    a->begun = true;
    nn_background_begin(a->aside, make, a);
}

static void finish(nn_prefetch *a)
{
    nn_background_wait(a->aside);
    a->begun = false;
}

pl_code nn_prefetch_take(nn_prefetch *a, nn_batch *out, const nn_samples *s, nn_which now, nn_which next, pl_error *err)
{
    bool mine = a->begun && a->samples == s && a->which.at == now.at && a->which.n == now.n;
    pl_code code;

    if (a->begun)
        finish(a);
    if (!mine) {
        begin(a, s, now);
        finish(a);
    }
    code = a->code;
    if (code != PL_OK && err != NULL)
        *err = a->err;
    *out = a->batch;
    if (code == PL_OK && next.n > 0)
        begin(a, s, next);
    return code;
}
