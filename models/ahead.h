/* models/ahead.h - the next batch is put together while the present one is computed.
 *
 * One thread beside the caller's, asleep unless there is a batch to make. Where
 * the system has no thread to give, batches are made by the caller, later. The
 * batches are the same either way. */
#ifndef NN_AHEAD_H
#define NN_AHEAD_H

#include "models/batch.h"
#include "pipeline/base/error.h"

/* Molecules by number, 0..n-1. batch fills a batch of the molecules which[0..n-1],
 * in that order, valid until the next call for the same slot (0 or 1). One call at
 * a time, on any thread. */
typedef struct nn_samples {
    void *ctx;
    int64_t n;
    const int32_t *edges;   /* [n] for the edge budget                              */
    const float *target;    /* [n][outputs] normalised; NaN: not measured; may be NULL
                               for predicting                                        */
    pl_code (*batch)(void *ctx, int slot, nn_batch *out, const int64_t *which, int32_t n, pl_error *err);
    int32_t outputs;        /* of the model                                           */
} nn_samples;

/* A run of numbers in the caller's array, which stays as it is until they are used. */
typedef struct nn_which {
    const int64_t *at;
    int32_t n;              /* 0: none */
} nn_which;

typedef struct nn_ahead nn_ahead;

nn_ahead *nn_ahead_new(void);      /* NULL when refused                                  */
void nn_ahead_free(nn_ahead *a);   /* waits for a batch that is being made; NULL is fine */

/* The batch `now`, and the batch `next` is begun on the other thread. *out is valid
 * until the call after the next one. An error of `next` comes when it is asked for. */
pl_code nn_ahead_take(nn_ahead *a, nn_batch *out, const nn_samples *s, nn_which now, nn_which next, pl_error *err);

#endif
