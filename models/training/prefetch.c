/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/prefetch.h"

#include <stdbool.h>
#include <stdlib.h>

#include "models/threads/background_thread.h"

struct nn_prefetch {
    nn_background *thread;
    bool begun;                /* a batch is being made, or is ready */
    const nn_samples *samples; /* arguments of that batch, up to the end */
    nn_which which;
    int slot;
    nn_batch batch;
    pl_code code;
    pl_error err;
};

enum { PURPOSE_NOISE = 0x6e6f6973 }; /* "nois" */

pl_rng nn_which_random(const nn_which *which, int32_t i) { return pl_rng_at(which->seed, (uint64_t)which->at[i], PURPOSE_NOISE); }

int32_t nn_samples_take(const nn_samples *s, const int64_t *which, int64_t n, int64_t molecules, int64_t max_edges)
{
    int64_t edges = 0;
    int32_t k = 0;

    while (k < n && (molecules <= 0 || k < molecules)) {
        edges += s->edges[which[k]];
        if (k > 0 && max_edges > 0 && edges > max_edges)
            break;
        k++;
    }
    return k;
}

nn_prefetch *nn_prefetch_new(void)
{
    nn_prefetch *a = calloc(1, sizeof *a);

    if (a != NULL && (a->thread = nn_background_new()) == NULL) {
        free(a);
        return NULL;
    }
    return a;
}

void nn_prefetch_free(nn_prefetch *a)
{
    if (a != NULL)
        nn_background_free(a->thread);
    free(a);
}

static void make(void *ctx)
{
    nn_prefetch *a = ctx;

    a->code = a->samples->batch(a->samples->ctx, a->slot, &a->batch, a->which, &a->err);
}

static void begin(nn_prefetch *a, const nn_samples *s, nn_which which)
{
    a->samples = s;
    a->which = which;
    a->slot ^= 1;
    a->begun = true;
    nn_background_begin(a->thread, make, a);
}

static void finish(nn_prefetch *a)
{
    nn_background_wait(a->thread);
    a->begun = false;
}

static bool same(const nn_which *a, const nn_which *b)
{
    return a->at == b->at && a->n == b->n && a->noise == b->noise && a->seed == b->seed;
}

pl_code nn_prefetch_take(nn_prefetch *a, nn_batch *out, const nn_samples *s, nn_which now, nn_which next, pl_error *err)
{
    bool mine = a->begun && a->samples == s && same(&a->which, &now);
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
