/* pipeline/base/par.h - a pool of worker threads that computes numbered slots.
 *
 * One thread, the caller, owns the pool. It fills a slot, puts it into the pool, and
 * takes it back when a worker has computed it; in between it must not touch the slot.
 * Among the waiting slots, the one with the smallest rank is computed first. The
 * number of slots limits the work in flight, and the caller decides in which order it
 * takes the results: neither depends on the number of workers. */
#ifndef PL_BASE_PAR_H
#define PL_BASE_PAR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"

typedef struct pl_pool pl_pool;

/* Computes a slot on worker 0..workers-1; pl_pool_take returns its code and error. */
typedef pl_code pl_compute(void *ctx, int worker, int slot, pl_error *err);

/* Starts up to `workers` threads; fewer if the system refuses more. PL_ENOMEM: not even one could be started. */
pl_code pl_pool_open(pl_pool **out, int workers, int n_slots, pl_compute *compute, void *ctx, pl_error *err);
/* Gives slot 0..n_slots-1 to the workers. */
void pl_pool_put(pl_pool *p, int slot, int64_t rank);
/* True: the slot has been computed and belongs to the caller again; *code is what compute returned. */
bool pl_pool_take(pl_pool *p, int slot, pl_code *code, pl_error *err);
/* Waits until some slot has been computed since the last wait. Call it only while slots are in the pool. */
void pl_pool_wait(pl_pool *p);
/* Drops slots that no worker has begun, waits for the others and frees the pool. NULL is fine. */
void pl_pool_close(pl_pool *p);

/* Starts a background thread that receives no signals, and initialises the condition `wake`. Timed waits on it use
 * CLOCK_MONOTONIC, because the real-time clock may be set. False: neither the thread nor the condition exists. */
bool pl_thread_start(pthread_t *thread, pthread_cond_t *wake, void *(*work)(void *), void *ctx);

int pl_cpu_count(void); /* processors this process may use (its CPU affinity), at least 1 */

#endif
