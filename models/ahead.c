/* SPDX-License-Identifier: Apache-2.0 */
#include "models/ahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct nn_ahead {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, closing;
    bool begun;                /* there is a batch that is being made, or made      */
    bool busy;                 /* it is not made yet                                */
    const nn_samples *samples; /* of that batch, and the rest too                   */
    nn_which which;
    int slot;
    nn_batch batch;
    pl_code code;
    pl_error err;
};

static void make(nn_ahead *a)
{
    a->code = a->samples->batch(a->samples->ctx, a->slot, &a->batch, a->which.at, a->which.n, &a->err);
}

static void *ahead_main(void *arg)
{
    nn_ahead *a = arg;

    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (!a->busy && !a->closing)
            pthread_cond_wait(&a->changed, &a->lock);
        if (!a->busy)
            break;
        pthread_mutex_unlock(&a->lock);
        make(a); /* the caller keeps away while busy */
        pthread_mutex_lock(&a->lock);
        a->busy = false;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

nn_ahead *nn_ahead_new(void)
{
    nn_ahead *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->has_thread = pthread_create(&a->thread, NULL, ahead_main, a) == 0;
    return a;
}

void nn_ahead_free(nn_ahead *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->closing = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    if (a->has_thread)
        pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static void begin(nn_ahead *a, const nn_samples *s, nn_which which)
{
    pthread_mutex_lock(&a->lock);
    a->samples = s;
    a->which = which;
    a->slot ^= 1;
    a->begun = true;
    a->busy = a->has_thread;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    if (!a->has_thread)
        make(a);
}

static void finish(nn_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->busy)
        pthread_cond_wait(&a->changed, &a->lock);
    a->begun = false;
    pthread_mutex_unlock(&a->lock);
}

pl_code nn_ahead_take(nn_ahead *a, nn_batch *out, const nn_samples *s, nn_which now, nn_which next, pl_error *err)
{
    bool mine = a->begun && a->samples == s && a->which.at == now.at && a->which.n == now.n;
    pl_code rc;

    if (a->begun)
        finish(a);
    if (!mine) {
        begin(a, s, now);
        finish(a);
    }
    rc = a->code;
    if (rc && err)
        *err = a->err;
    *out = a->batch;
    if (!rc && next.n > 0)
        begin(a, s, next);
    return rc;
}
