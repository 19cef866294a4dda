/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/table_cache.h"

#include <stdlib.h>
#include <string.h>

static void lists_free(nn_cpu_table_cache *k)
{
    free(k->scalar);
    free(k->table);
    free(k->filled);
    k->scalar = NULL;
    k->table = NULL;
    k->filled = NULL;
}

/* All of them or none: the next search tries again. */
static bool lists_make(nn_cpu_table_cache *k)
{
    size_t max = NN_KEEP_BYTES / (k->size * sizeof(float) + 1);

    max = max < NN_KEEP_MAX ? max : NN_KEEP_MAX;
    k->scalar = calloc(max + 1, (size_t)k->n_scalars * sizeof *k->scalar);
    k->table = calloc(max + 1, sizeof *k->table);
    k->filled = calloc(max + 1, (size_t)k->n_convs);
    if (k->scalar == NULL || k->table == NULL || k->filled == NULL) {
        lists_free(k);
        return false;
    }
    k->max = (int32_t)max;
    return true;
}

int32_t nn_cpu_table_cache_find(nn_cpu_table_cache *k, const float *scalar)
{
    size_t n = (size_t)k->n_scalars;

    for (int32_t i = 0; i < k->n; i++)
        if (!memcmp(k->scalar + (size_t)i * n, scalar, n * sizeof *scalar))
            return i;
    if ((k->filled == NULL && !lists_make(k)) || k->n == k->max)
        return -1;
    if (k->table[k->n] == NULL)
        k->table[k->n] = aligned_alloc(64, (k->size * sizeof(float) + 63) / 64 * 64);
    if (k->table[k->n] == NULL)
        return -1;
    memcpy(k->scalar + (size_t)k->n * n, scalar, n * sizeof *scalar);
    memset(k->filled + (size_t)k->n * (size_t)k->n_convs, 0, (size_t)k->n_convs);
    return k->n++;
}

void nn_cpu_table_cache_forget(nn_cpu_table_cache *k) { k->n = 0; }

void nn_cpu_table_cache_free(nn_cpu_table_cache *k)
{
    for (int32_t i = 0; i < k->max; i++)
        free(k->table[i]);
    lists_free(k);
    *k = (nn_cpu_table_cache){ 0 };
}

size_t nn_cpu_table_cache_bytes(const nn_cpu_table_cache *k)
{
    size_t n = 0;

    for (int32_t i = 0; i < k->max; i++)
        n += k->table[i] != NULL ? k->size * sizeof(float) : 0;
    return n;
}
