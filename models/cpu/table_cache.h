/* models/cpu/table_cache.h - a cache of the tables of radial nodes, valid while the parameters do not
 * change: in prediction most tables are computed only once.
 *
 * The first nodes that are used are cached, up to NN_KEEP_BYTES and NN_KEEP_MAX nodes.
 * The cache changes no result, only the time. */
#ifndef NN_CPU_TABLE_CACHE_H
#define NN_CPU_TABLE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nn_cpu_table_cache {
    int32_t n, max, n_scalars, n_convs;
    size_t size;   /* floats of all tables of a node            */
    float *scalar; /* [most][n_scalars] edge features, distance */
    float **table; /* [n][size]                                 */
    bool *filled;  /* [most][n_convs] the table is computed     */
} nn_cpu_table_cache;

enum { NN_KEEP_BYTES = 64 << 20, NN_KEEP_MAX = 1024 };

/* The number of the node with these scalars; a new node is added. -1: the cache is full, or no memory. */
int32_t nn_cpu_table_cache_find(nn_cpu_table_cache *k, const float *scalar);
void nn_cpu_table_cache_forget(nn_cpu_table_cache *k); /* empties the cache; to be called when the parameters change */
void nn_cpu_table_cache_free(nn_cpu_table_cache *k);
size_t nn_cpu_table_cache_bytes(const nn_cpu_table_cache *k);

#endif
