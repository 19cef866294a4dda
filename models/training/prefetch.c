/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/prefetch.h"

#include <stdbool.h>
#include <stdlib.h>

#include "models/threads/background_thread.h"

struct nn_ahead {
    nn_aside *aside;
    bool begun;                /* there is a batch that is being made, or made      */
    const nn_samples *samples; /* of that batch, and the rest too                   */
    nn_which which;
    int slot;
    nn_batch batch;
    pl_code code;
    pl_error err;
};

nn_ahead *nn_ahead_new(void)
{
    nn_ahead *a = calloc(1, sizeof *a);

    if (a != NULL && (a->aside = nn_aside_new()) == NULL) {
        free(a);
        return NULL;
    }
    return a;
}

void nn_ahead_free(nn_ahead *a)
{
    if (a != NULL)
        nn_aside_free(a->aside);
    free(a);
}

static void make(void *ctx)
{
    nn_ahead *a = ctx;

    a->code = a->samples->batch(a->samples->ctx, a->slot, &a->batch, a->which.at, a->which.n, &a->err);
}

static void begin(nn_ahead *a, const nn_samples *s, nn_which which)
{
    a->samples = s;
    a->which = which;
    a->slot ^= 1;
    a->begun = true;
    nn_aside_begin(a->aside, make, a);
}

static void finish(nn_ahead *a)
{
    nn_aside_wait(a->aside);
    a->begun = false;
}

pl_code nn_ahead_take(nn_ahead *a, nn_batch *out, const nn_samples *s, nn_which now, nn_which next, pl_error *err)
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
