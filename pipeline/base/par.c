/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/par.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

int pl_cpu_count(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? n : 1;
}

/* ---- pl_pipe_run ---- */

typedef enum slot_state { EMPTY, READ, BUSY, COMPUTED } slot_state;

typedef struct pipe_run {
    const pl_pipe *p;
    int depth;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    slot_state *state;    /* [depth] */
    pl_code *code;        /* [depth] of compute */
    pl_error *err;        /* [depth] */
    int64_t n_read, n_taken; /* items read; items handed to a worker */
    bool stop;
} pipe_run;

typedef struct pipe_worker {
    pipe_run *r;
    int id;
    pthread_t thread;
} pipe_worker;

static void *pipe_work(void *arg)
{
    pipe_worker *w = arg;
    pipe_run *r = w->r;

    (void)pthread_mutex_lock(&r->lock);
    for (;;) {
        while (!r->stop && r->n_taken == r->n_read)
            (void)pthread_cond_wait(&r->changed, &r->lock);
        if (r->n_taken == r->n_read)
            break;
        int slot = (int)(r->n_taken++ % r->depth);
        r->state[slot] = BUSY;
        (void)pthread_mutex_unlock(&r->lock);
        pl_code code = r->p->compute(r->p->ctx, w->id, slot, &r->err[slot]);
        (void)pthread_mutex_lock(&r->lock);
        r->code[slot] = code;
        r->state[slot] = COMPUTED;
        (void)pthread_cond_broadcast(&r->changed);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void hand_over(pipe_run *r, int slot)
{
    (void)pthread_mutex_lock(&r->lock);
    r->state[slot] = READ;
    r->n_read++;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

static void wait_computed(pipe_run *r, int slot)
{
    (void)pthread_mutex_lock(&r->lock);
    while (r->state[slot] != COMPUTED)
        (void)pthread_cond_wait(&r->changed, &r->lock);
    r->state[slot] = EMPTY;
    (void)pthread_mutex_unlock(&r->lock);
}

/* The calling thread's part: keep the slots full, write the oldest. */
static pl_code pipe_main(pipe_run *r, pl_error *err)
{
    int64_t n_written = 0;
    bool more = true;
    pl_code code = PL_OK;

    for (;;) {
        while (more && r->n_read - n_written < r->depth) {
            int slot = (int)(r->n_read % r->depth);
            r->err[slot] = (pl_error){ 0 };
            code = r->p->read(r->p->ctx, slot, &more, err);
            if (code != PL_OK)
                return code;
            if (more)
                hand_over(r, slot);
        }
        if (n_written == r->n_read)
            return PL_OK;
        int slot = (int)(n_written % r->depth);
        wait_computed(r, slot);
        if (r->code[slot] != PL_OK) {
            if (err != NULL)
                *err = r->err[slot];
            return r->code[slot];
        }
        code = r->p->write(r->p->ctx, slot, err);
        if (code != PL_OK)
            return code;
        n_written++;
    }
}

static void pipe_stop(pipe_run *r, pipe_worker *w, int started)
{
    (void)pthread_mutex_lock(&r->lock);
    r->stop = true;
    r->n_taken = r->n_read; /* items not yet begun are dropped */
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < started; i++)
        (void)pthread_join(w[i].thread, NULL);
}

pl_code pl_pipe_run(const pl_pipe *p, int workers, int depth, pl_error *err)
{
    pipe_run r = { .p = p, .depth = depth };
    pipe_worker *w = calloc((size_t)workers, sizeof *w);
    pl_code code;
    int started = 0;

    r.state = calloc((size_t)depth, sizeof *r.state);
    r.code = calloc((size_t)depth, sizeof *r.code);
    r.err = calloc((size_t)depth, sizeof *r.err);
    (void)pthread_mutex_init(&r.lock, NULL);
    (void)pthread_cond_init(&r.changed, NULL);
    if (w == NULL || r.state == NULL || r.code == NULL || r.err == NULL) {
        code = pl_fail(err, PL_ENOMEM, "%d workers", workers);
    } else {
        while (started < workers) {
            w[started] = (pipe_worker){ .r = &r, .id = started };
            if (pthread_create(&w[started].thread, NULL, pipe_work, &w[started]) != 0)
                break;
            started++;
        }
        code = started > 0 ? pipe_main(&r, err) : pl_fail(err, PL_ENOMEM, "no thread could be started");
        pipe_stop(&r, w, started);
    }
    (void)pthread_mutex_destroy(&r.lock);
    (void)pthread_cond_destroy(&r.changed);
    free(r.state);
    free(r.code);
    free(r.err);
    free(w);
    return code;
}
