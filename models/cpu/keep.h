/* models/cpu/keep.h - tables of radial nodes that outlive a batch, for as long as the
 * parameters stay: a model that only predicts computes most of them once.
 *
 * The first nodes that come are kept, up to a fixed number of bytes; which ones are
 * kept changes no result, only the time. */
#ifndef NN_CPU_KEEP_H
#define NN_CPU_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nn_cpu_keep {
    int32_t n, most, n_scalars, n_convs;
    size_t size;     /* floats of all tables of a node            */
    float *scalar;   /* [most][n_scalars]                         */
    float **table;   /* [n][size]                                 */
    bool *filled;    /* [most][n_convs]                           */
} nn_cpu_keep;

enum { NN_KEEP_BYTES = 64 << 20, NN_KEEP_MOST = 1024 };

/* The node's number, given to it if it is new; -1: no room (or no memory). */
int32_t nn_cpu_keep_find(nn_cpu_keep *k, const float *scalar);
void nn_cpu_keep_forget(nn_cpu_keep *k); /* the parameters changed */
void nn_cpu_keep_free(nn_cpu_keep *k);
size_t nn_cpu_keep_bytes(const nn_cpu_keep *k);

#endif
