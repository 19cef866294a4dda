/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/par.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

bool pl_thread_start(pthread_t *thread, pthread_cond_t *wake, void *(*work)(void *), void *ctx)
{
    pthread_condattr_t steady;
    sigset_t all, old;
    int bad;

    (void)pthread_condattr_init(&steady);
    (void)pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    (void)pthread_cond_init(wake, &steady);
    (void)pthread_condattr_destroy(&steady);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    bad = pthread_create(thread, NULL, work, ctx);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (bad != 0)
        (void)pthread_cond_destroy(wake);
    return bad == 0;
}

int pl_cpu_count(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? n : 1;
}

/* ---- the pool ---- */

typedef enum slot_state { OUTSIDE, WAITING, BUSY, COMPUTED } slot_state;

typedef struct pool_slot {
    slot_state state;
    int64_t rank;
    pl_code code;
    pl_error err;
} pool_slot;

typedef struct pool_worker {
    pl_pool *pool;
    int id;
    pthread_t thread;
} pool_worker;

struct pl_pool {
    pl_compute *compute;
    void *ctx;
    int n_slots, n_workers;
    pool_slot *slot;
    pool_worker *worker;
    pthread_mutex_t lock;
    pthread_cond_t work, result;    /* signalled when a slot waits or on stop; when a slot has been computed */
    int64_t n_computed, n_reported; /* slots computed so far; how many of them pl_pool_wait knows of */
    bool stop;
};

/* The waiting slot with the smallest rank; -1: none waits. */
static int first_waiting(const pl_pool *p)
{
    int best = -1;

    for (int i = 0; i < p->n_slots; i++)
        if (p->slot[i].state == WAITING && (best < 0 || p->slot[i].rank < p->slot[best].rank))
            best = i;
    return best;
}

static void *pool_work(void *arg)
{
    pool_worker *w = arg;
    pl_pool *p = w->pool;

    (void)pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        int at = first_waiting(p);
        if (at < 0) {
            (void)pthread_cond_wait(&p->work, &p->lock);
            continue;
        }
        pool_slot *slot = &p->slot[at];
        slot->state = BUSY;
        (void)pthread_mutex_unlock(&p->lock);
        slot->code = p->compute(p->ctx, w->id, at, &slot->err);
        (void)pthread_mutex_lock(&p->lock);
        slot->state = COMPUTED;
        p->n_computed++;
        (void)pthread_cond_signal(&p->result);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

void pl_pool_put(pl_pool *p, int slot, int64_t rank)
{
    (void)pthread_mutex_lock(&p->lock);
    p->slot[slot] = (pool_slot){ .state = WAITING, .rank = rank };
    (void)pthread_cond_signal(&p->work);
    (void)pthread_mutex_unlock(&p->lock);
}

bool pl_pool_take(pl_pool *p, int slot, pl_code *code, pl_error *err)
{
    pool_slot *s = &p->slot[slot];
    bool computed;

    (void)pthread_mutex_lock(&p->lock);
    computed = s->state == COMPUTED;
    if (computed)
        s->state = OUTSIDE;
    (void)pthread_mutex_unlock(&p->lock);
    if (!computed)
        return false;
    *code = s->code;
    if (s->code != PL_OK && err != NULL)
        *err = s->err;
    return true;
}

void pl_pool_wait(pl_pool *p)
{
    (void)pthread_mutex_lock(&p->lock);
    while (p->n_computed == p->n_reported)
        (void)pthread_cond_wait(&p->result, &p->lock);
    p->n_reported = p->n_computed;
    (void)pthread_mutex_unlock(&p->lock);
}

static void pool_free(pl_pool *p)
{
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->work);
    (void)pthread_cond_destroy(&p->result);
    free(p->slot);
    free(p->worker);
    free(p);
}

pl_code pl_pool_open(pl_pool **out, int workers, int n_slots, pl_compute *compute, void *ctx, pl_error *err)
{
    pl_pool *p = calloc(1, sizeof *p);

    *out = NULL;
    if (p == NULL)
        return pl_fail(err, PL_ENOMEM, "%d workers", workers);
    p->compute = compute;
    p->ctx = ctx;
    p->n_slots = n_slots;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->work, NULL);
    (void)pthread_cond_init(&p->result, NULL);
    p->slot = calloc((size_t)n_slots, sizeof *p->slot);
    p->worker = calloc((size_t)workers, sizeof *p->worker);
    for (int i = 0; p->slot != NULL && p->worker != NULL && i < workers; i++) {
        p->worker[i] = (pool_worker){ .pool = p, .id = i };
        if (pthread_create(&p->worker[i].thread, NULL, pool_work, &p->worker[i]) != 0)
            break; /* fewer threads only make it slower */
        p->n_workers++;
    }
    if (p->n_workers == 0) {
        pool_free(p);
        return pl_fail(err, PL_ENOMEM, "no thread could be started");
    }
    *out = p;
    return PL_OK;
}

void pl_pool_close(pl_pool *p)
{
    if (p == NULL)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    (void)pthread_cond_broadcast(&p->work);
    (void)pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_workers; i++)
        (void)pthread_join(p->worker[i].thread, NULL);
    pool_free(p);
}
