/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/predict/flow.h"

#include <pthread.h>
#include <stdlib.h>

#include "pipeline/base/par.h"
#include "pipeline/base/stop.h"

enum { AHEAD = 4 * ST_FLOW_MOST }; /* records that may wait for each worker */

typedef struct flow_worker {
    st_flow *flow;
    int id;
    bool idle, used;
    pthread_t thread;
    pthread_cond_t wake;
} flow_worker;

struct st_flow {
    st_flow_calls calls;
    pthread_mutex_t lock;
    pthread_cond_t room, turned; /* an item was taken; a batch was written */
    void **item;                 /* [cap], a ring */
    int64_t cap, put, taken;
    int64_t batches, turn; /* taken; the one that may be written */
    bool ended, failed;
    pl_code code;
    pl_error err;
    int n_workers;
    flow_worker *worker;
};

/* ---- the state; all with the lock held ---- */

static void fail(st_flow *f, pl_code code, const pl_error *err)
{
    if (!f->failed) {
        f->code = code;
        f->err = *err;
    }
    f->failed = true;
    pl_stop_cancel(true); /* the thread that puts may be waiting for input */
    (void)pthread_cond_broadcast(&f->room);
    (void)pthread_cond_broadcast(&f->turned);
    for (int k = 0; k < f->n_workers; k++)
        (void)pthread_cond_signal(&f->worker[k].wake);
}

/* Whether there is work for it: a worker that has not worked yet leaves a lone record to those that have. */
static bool has_work(const st_flow *f, const flow_worker *w)
{
    return f->put - f->taken > (w->used || w->id == 0 || f->ended ? 0 : 1);
}

static void wake_one(st_flow *f)
{
    for (int k = 0; k < f->n_workers; k++)
        if (f->worker[k].idle && has_work(f, &f->worker[k])) {
            f->worker[k].idle = false;
            (void)pthread_cond_signal(&f->worker[k].wake);
            return;
        }
}

/* Waits for records and takes a fair share of them; 0: there will be none. */
static int32_t take(st_flow *f, flow_worker *w, void *item[ST_FLOW_MOST])
{
    int64_t n;

    while (!f->failed && !has_work(f, w) && !(f->ended && f->put == f->taken)) {
        w->idle = true;
        (void)pthread_cond_wait(&w->wake, &f->lock);
    }
    w->idle = false;
    if (f->failed)
        return 0;
    n = (f->put - f->taken + f->n_workers - 1) / f->n_workers;
    n = n < ST_FLOW_MOST ? n : ST_FLOW_MOST;
    for (int64_t k = 0; k < n; k++)
        item[k] = f->item[f->taken++ % f->cap];
    (void)pthread_cond_signal(&f->room);
    return (int32_t)n;
}

/* ---- the workers ---- */

/* Waits for the batch's turn and writes its answers. */
static void give(st_flow *f, int64_t batch, const pl_text *out, pl_code code, pl_error *err)
{
    (void)pthread_mutex_lock(&f->lock);
    if (code != PL_OK)
        fail(f, code, err);
    while (!f->failed && f->turn != batch)
        (void)pthread_cond_wait(&f->turned, &f->lock);
    if (!f->failed) {
        (void)pthread_mutex_unlock(&f->lock);
        code = f->calls.write(f->calls.ctx, out, err);
        (void)pthread_mutex_lock(&f->lock);
        f->turn++;
        if (code != PL_OK)
            fail(f, code, err);
        (void)pthread_cond_broadcast(&f->turned);
    }
    (void)pthread_mutex_unlock(&f->lock);
}

static void *worker_run(void *arg)
{
    flow_worker *w = arg;
    st_flow *f = w->flow;
    pl_text out = { 0 };

    for (;;) {
        void *item[ST_FLOW_MOST];
        pl_error err = { 0 };
        int64_t batch;
        int32_t n;
        pl_code code;
        (void)pthread_mutex_lock(&f->lock);
        n = take(f, w, item);
        w->used = n > 0;
        batch = f->batches;
        f->batches += n > 0;
        (void)pthread_mutex_unlock(&f->lock);
        if (n == 0)
            break;
        pl_text_reset(&out);
        code = f->calls.work(f->calls.ctx, w->id, item, n, &out, &err);
        if (!pl_text_ok(&out))
            code = pl_fail(&err, PL_ENOMEM, "no memory for the answers");
        for (int32_t k = 0; k < n; k++)
            f->calls.drop(item[k]);
        give(f, batch, &out, code, &err);
    }
    pl_text_free(&out);
    return NULL;
}

/* ---- the thread that puts ---- */

static void flow_free(st_flow *f)
{
    while (f->item != NULL && f->taken < f->put)
        f->calls.drop(f->item[f->taken++ % f->cap]);
    (void)pthread_mutex_destroy(&f->lock);
    (void)pthread_cond_destroy(&f->room);
    (void)pthread_cond_destroy(&f->turned);
    free(f->item);
    free(f->worker);
    free(f);
}

pl_code st_flow_open(st_flow **out, int workers, const st_flow_calls *calls, pl_error *err)
{
    st_flow *f = calloc(1, sizeof *f);

    *out = NULL;
    if (f == NULL)
        return pl_fail(err, PL_ENOMEM, "%d workers", workers);
    f->calls = *calls;
    f->cap = (int64_t)AHEAD * workers;
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->room, NULL);
    (void)pthread_cond_init(&f->turned, NULL);
    f->item = calloc((size_t)f->cap, sizeof *f->item);
    f->worker = calloc((size_t)workers, sizeof *f->worker);
    (void)pthread_mutex_lock(&f->lock); /* no worker looks at the others before all are there */
    for (int k = 0; f->item != NULL && f->worker != NULL && k < workers; k++) {
        f->worker[k] = (flow_worker){ .flow = f, .id = k };
        if (!pl_thread_start(&f->worker[k].thread, &f->worker[k].wake, worker_run, &f->worker[k]))
            break; /* fewer threads only make it slower */
        f->n_workers++;
    }
    (void)pthread_mutex_unlock(&f->lock);
    if (f->n_workers == 0) {
        flow_free(f);
        return pl_fail(err, PL_ENOMEM, "no thread could be started");
    }
    *out = f;
    return PL_OK;
}

bool st_flow_put(st_flow *f, void *item)
{
    bool failed;

    (void)pthread_mutex_lock(&f->lock);
    while (!f->failed && f->put - f->taken == f->cap)
        (void)pthread_cond_wait(&f->room, &f->lock);
    failed = f->failed;
    if (!failed) {
        f->item[f->put++ % f->cap] = item;
        wake_one(f);
    }
    (void)pthread_mutex_unlock(&f->lock);
    if (failed)
        f->calls.drop(item);
    return !failed;
}

pl_code st_flow_close(st_flow *f, pl_error *err)
{
    pl_code code;

    if (f == NULL)
        return PL_OK;
    (void)pthread_mutex_lock(&f->lock);
    f->ended = true;
    for (int k = 0; k < f->n_workers; k++)
        (void)pthread_cond_signal(&f->worker[k].wake);
    (void)pthread_mutex_unlock(&f->lock);
    for (int k = 0; k < f->n_workers; k++) {
        (void)pthread_join(f->worker[k].thread, NULL);
        (void)pthread_cond_destroy(&f->worker[k].wake);
    }
    code = f->code;
    if (code != PL_OK && err != NULL)
        *err = f->err;
    if (code != PL_OK)
        pl_stop_cancel(false);
    flow_free(f);
    return code;
}
