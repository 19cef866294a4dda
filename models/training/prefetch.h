/* models/training/prefetch.h - prefetch: one background thread collates the next batch while the current one is computed.
 *
 * The thread sleeps unless there is a batch to make. If the system refuses a thread,
 * the caller's thread makes each batch when it is needed. The batches are the same either way. */
#ifndef NN_PREFETCH_H
#define NN_PREFETCH_H

#include "models/features/batch.h"
#include "pipeline/base/error.h"
#include "pipeline/base/rng.h"

/* Molecule numbers at[0..n-1], borrowed from the caller, who leaves them unchanged until the batch is made. */
typedef struct nn_which {
    const int64_t *at;
    int32_t n;     /* 0: none */
    float noise;   /* Angstrom: deviation of the noise on their positions; 0: none */
    uint64_t seed; /* of the noise, another one in every epoch */
} nn_which;

/* The random stream of the noise of molecule i of these. It depends on its number and the seed alone. */
pl_rng nn_which_random(const nn_which *which, int32_t i);

/* A data set: molecules 0..n-1. `batch` fills *out with the molecules of `which`, in that order; *out is
 * valid until the next call for the same slot (0 or 1). `batch` is called by one thread at a time, but not
 * always by the same thread. */
typedef struct nn_samples {
    void *ctx;
    int64_t n;
    const int32_t *edges; /* [n] directed edges of each molecule, for the limit of a batch */
    const float *target;  /* [n][outputs] normalised; NaN: not measured; may be NULL
                               for prediction                                        */
    pl_code (*batch)(void *ctx, int slot, nn_batch *out, nn_which which, pl_error *err);
    int32_t outputs;      /* of the model                                           */
    const float *high;    /* [n][outputs] upper limits where target has lower ones (models/optim/loss.h); NULL: all are measured */
    const int32_t *atoms; /* [n] of each molecule; NULL: there is no training with noise */
} nn_samples;

/* How many molecules the next batch takes from the front of which[0..n-1]: at least 1. */
int32_t nn_samples_take(const nn_samples *s, const int64_t *which, int64_t n, int64_t molecules, int64_t max_edges);

typedef struct nn_prefetch nn_prefetch;

nn_prefetch *nn_prefetch_new(void);    /* NULL: no memory                                    */
void nn_prefetch_free(nn_prefetch *a); /* waits for a batch that is being made; NULL is fine */

/* Returns the batch `now` in *out and starts making the batch `next` in the background. *out is valid
 * until the call after the next one. An error in making `next` is returned by the call that asks for it. */
pl_code nn_prefetch_take(nn_prefetch *a, nn_batch *out, const nn_samples *s, nn_which now, nn_which next, pl_error *err);

#endif
