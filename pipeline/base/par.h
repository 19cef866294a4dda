/* pipeline/base/par.h - a pool of threads that compute the slots of one caller.
 *
 * One thread owns the pool. It fills a slot, puts it in, and takes it out again
 * when it has been computed; from put to take the slot is not touched by others.
 * Of the slots that wait, the one with the smallest rank is computed first. The
 * caller bounds what is in flight by its number of slots, and orders results by
 * the order in which it takes them: neither depends on the number of workers. */
#ifndef PL_BASE_PAR_H
#define PL_BASE_PAR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"

typedef struct pl_pool pl_pool;

/* Called on worker 0..workers-1; the code and the error come out of pl_pool_take. */
typedef pl_code pl_compute(void *ctx, int worker, int slot, pl_error *err);

pl_code pl_pool_open(pl_pool **out, int workers, int n_slots, pl_compute *compute, void *ctx, pl_error *err);
void    pl_pool_put(pl_pool *p, int slot, int64_t rank);
/* True: the slot has been computed and is the caller's again; *code is what compute returned. */
bool    pl_pool_take(pl_pool *p, int slot, pl_code *code, pl_error *err);
/* Until a slot has been computed that no earlier wait reported. Only with slots in the pool. */
void    pl_pool_wait(pl_pool *p);
/* Drops slots not yet begun and waits for those in work. NULL is fine. */
void    pl_pool_close(pl_pool *p);

/* A thread beside the main one: signals are not for it, and waits of `wake`, which is made here, go by CLOCK_MONOTONIC,
 * since somebody may set the other clock. False: there is no thread, and no condition. */
bool pl_thread_start(pthread_t *thread, pthread_cond_t *wake, void *(*work)(void *), void *ctx);

int pl_cpu_count(void); /* processors this process may use (affinity), at least 1 */

#endif
