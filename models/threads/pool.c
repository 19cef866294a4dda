/* SPDX-License-Identifier: Apache-2.0 */
#include "models/threads/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    THREADS_MAX = 256,
    SPINS = 400 /* checks before a thread sleeps, about 20 us: the next run often begins sooner than a thread wakes up */
};

typedef struct worker {
    nn_pool *pool;
    int number;
    pthread_t thread;
} worker;

struct nn_pool {
    pthread_mutex_t lock;
    pthread_cond_t start, finished;
    nn_pool_work *work;
    void *ctx;
    int n, n_workers;
    atomic_int busy;  /* helpers still in the present run */
    atomic_ulong run; /* number of the present run        */
    bool closing;
    atomic_int next;
    worker worker[THREADS_MAX];
};

static void items_take(nn_pool *p, int number)
{
    int i;

    while ((i = atomic_fetch_add(&p->next, 1)) < p->n)
        p->work(p->ctx, number, i);
}

static void rest(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void *helper_main(void *arg)
{
    worker *w = arg;
    nn_pool *p = w->pool;
    unsigned long seen = 0;

    for (;;) {
        for (int k = 0; k < SPINS && atomic_load(&p->run) == seen; k++)
            rest();
        pthread_mutex_lock(&p->lock);
        while (p->run == seen && !p->closing)
            pthread_cond_wait(&p->start, &p->lock);
        if (p->closing)
            break;
        seen = p->run;
        pthread_mutex_unlock(&p->lock);
        items_take(p, w->number);
        pthread_mutex_lock(&p->lock);
        if (atomic_fetch_sub(&p->busy, 1) == 1)
            pthread_cond_signal(&p->finished);
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

nn_pool *nn_pool_new(int threads)
{
    nn_pool *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->start, NULL);
    pthread_cond_init(&p->finished, NULL);
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    for (p->n_workers = 1; p->n_workers < threads; p->n_workers++) {
        worker *w = &p->worker[p->n_workers];
        w->pool = p;
        w->number = p->n_workers;
        if (pthread_create(&w->thread, NULL, helper_main, w))
            break;
    }
    return p;
}

void nn_pool_free(nn_pool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i < p->n_workers; i++)
        pthread_join(p->worker[i].thread, NULL);
    pthread_cond_destroy(&p->finished);
    pthread_cond_destroy(&p->start);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

int nn_pool_threads(const nn_pool *p) { return p->n_workers; }

void nn_pool_run(nn_pool *p, int n, nn_pool_work *work, void *ctx)
{
    pthread_mutex_lock(&p->lock);
    p->work = work;
    p->ctx = ctx;
    p->n = n;
    p->busy = p->n_workers - 1;
    p->run++;
    atomic_store(&p->next, 0);
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    items_take(p, 0);
    for (int k = 0; k < SPINS && atomic_load(&p->busy); k++)
        rest();
    pthread_mutex_lock(&p->lock);
    while (p->busy)
        pthread_cond_wait(&p->finished, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
