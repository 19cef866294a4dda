/* models/threads/pool.h - a pool of worker threads.
 *
 * nn_pool_run calls work(ctx, worker, i) for i = 0..n-1 and returns when all calls are
 * finished; the caller is worker 0. Which worker gets which i varies, so results must
 * not depend on it. One run at a time. */
#ifndef NN_CPU_POOL_H
#define NN_CPU_POOL_H

typedef struct nn_pool nn_pool;
typedef void nn_pool_work(void *ctx, int worker, int i);

nn_pool *nn_pool_new(int threads); /* NULL: no memory; fewer threads if the system refuses some */
void nn_pool_free(nn_pool *p);     /* NULL is fine */
int nn_pool_threads(const nn_pool *p);
void nn_pool_run(nn_pool *p, int n, nn_pool_work *work, void *ctx);

#endif
