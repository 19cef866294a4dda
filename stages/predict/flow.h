/* stages/predict/flow.h - records from one thread to several workers, answers in the order of the records, as soon as they are there.
 *
 * One thread, the caller, puts records. Workers take those that wait, up to ST_FLOW_MOST at once, so a lone record is answered at
 * once and a long file in large batches. Which records share a batch depends on the moment: an answer must not depend on it. A worker
 * that has not worked yet is woken only when several records wait, so that a slow stream stays with the workers that are ready. */
#ifndef ST_FLOW_H
#define ST_FLOW_H

#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

enum { ST_FLOW_MOST = 32 };

typedef struct st_flow st_flow;

typedef struct st_flow_calls {
    void *ctx;
    /* On the thread of the worker: appends the answers to item[n] to out. */
    pl_code (*work)(void *ctx, int worker, void *const *item, int32_t n, pl_text *out, pl_error *err);
    /* Of any thread, but one call at a time, in the order of the records. */
    pl_code (*write)(void *ctx, const pl_text *out, pl_error *err);
    void (*drop)(void *item); /* frees a record; each is dropped once */
} st_flow_calls;

/* Starts up to `workers` threads. ENOMEM: not even one. */
pl_code st_flow_open(st_flow **out, int workers, const st_flow_calls *calls, pl_error *err);

/* Gives a record to the workers; waits while many do. False: a worker has failed, and item was dropped. */
bool st_flow_put(st_flow *f, void *item);

/* Waits until everything is answered, unless something failed, and frees the flow. Returns the first failure. NULL is fine. */
pl_code st_flow_close(st_flow *f, pl_error *err);

#endif
