/* SPDX-License-Identifier: Apache-2.0 */
#include "models/aside.h"

#include <pthread.h>
#include <stdlib.h>

struct nn_aside {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, closing, busy;
    void (*work)(void *ctx);
    void *ctx;
};

static void *aside_main(void *arg)
{
    nn_aside *a = arg;

    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (!a->busy && !a->closing)
            pthread_cond_wait(&a->changed, &a->lock);
        if (!a->busy)
            break;
        pthread_mutex_unlock(&a->lock);
        a->work(a->ctx); /* the caller keeps away while busy */
        pthread_mutex_lock(&a->lock);
        a->busy = false;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

nn_aside *nn_aside_new(void)
{
    nn_aside *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->has_thread = pthread_create(&a->thread, NULL, aside_main, a) == 0;
    return a;
}

void nn_aside_free(nn_aside *a)
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

void nn_aside_begin(nn_aside *a, void (*work)(void *ctx), void *ctx)
{
    if (!a->has_thread) {
        work(ctx);
        return;
    }
    pthread_mutex_lock(&a->lock);
    a->work = work;
    a->ctx = ctx;
    a->busy = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

bool nn_aside_busy(nn_aside *a)
{
    bool busy;

    pthread_mutex_lock(&a->lock);
    busy = a->busy;
    pthread_mutex_unlock(&a->lock);
    return busy;
}

void nn_aside_wait(nn_aside *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->busy)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
}
