/* SPDX-License-Identifier: Apache-2.0 */
#include "models/network/sparse.h"

#include <string.h>

enum { G = NN_SPARSE_GROUP };

bool nn_sparse_fits(const nn_param *p)
{
    return p->n_dims == 2 && p->dims[0] >= NN_SPARSE_ROWS && p->dims[1] >= NN_SPARSE_K && p->dims[1] % G == 0;
}

nn_sparse_count nn_sparse_count_of(const nn_param *param, int32_t n, const float *params)
{
    nn_sparse_count c = { 0 };

    for (int32_t k = 0; k < n; k++) {
        const nn_param *p = &param[k];
        if (!nn_sparse_fits(p)) {
            c.dense += p->n_dims == 2;
            continue;
        }
        c.matrices++;
        c.weights += p->size;
        for (size_t i = 0; params != NULL && i < p->size; i++)
            c.zeros += params[p->at + i] == 0;
    }
    return c;
}

/* How many others of the group come before number i: larger ones, and equal ones before it. */
static int rank_of(const double *size, int i)
{
    int rank = 0;

    for (int j = 0; j < G; j++)
        rank += size[j] > size[i] || (j < i && size[j] == size[i]);
    return rank;
}

/* Rows of k weights that share their zeros. */
static void rows_prune(float *w, size_t rows, size_t k)
{
    for (size_t g = 0; g < k; g += G) {
        double size[G] = { 0 };
        for (size_t i = 0; i < rows * G; i++) {
            const double x = w[i / G * k + g + i % G];
            size[i % G] += x * x;
        }
        for (int i = 0; i < G; i++)
            for (size_t r = 0; r < rows && rank_of(size, i) >= NN_SPARSE_KEPT; r++)
                w[r * k + g + (size_t)i] = 0;
    }
}

void nn_sparse_prune(float *w, const nn_param *p)
{
    const nn_group *of = p->last_of;
    const size_t k = (size_t)p->dims[1], step = of != NULL ? (size_t)of->n_freq : 1;

    for (size_t row = 0; row < (size_t)p->dims[0]; row += step) {
        if (of == NULL)
            rows_prune(w + row * k, 1, k);
        for (int32_t i = 0; of != NULL && i < of->n_paths; i++)
            rows_prune(w + (row + (size_t)of->path[i].f0) * k, (size_t)of->path[i].n_freq, k);
    }
}

void nn_sparse_follow(float *to, const float *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = w[i] == 0 ? 0 : to[i];
}

size_t nn_sparse_index_bytes(size_t n) { return (n / G + 1) / 2; }

/* The places of a group's numbers, ascending; -1: there are more than two. Returns them as four bits. */
static int places_of(const float *w)
{
    int at[NN_SPARSE_KEPT], n = 0;

    for (int i = 0; i < G; i++)
        if (w[i] != 0) {
            if (n == NN_SPARSE_KEPT)
                return -1;
            at[n++] = i;
        }
    if (n == 0)
        return 0 | 1 << 2;
    if (n == 1)
        return at[0] ? 0 | at[0] << 2 : 0 | 1 << 2;
    return at[0] | at[1] << 2;
}

bool nn_sparse_pack(float *value, uint8_t *index, const float *w, size_t n)
{
    memset(index, 0, nn_sparse_index_bytes(n));
    for (size_t g = 0; g < n / G; g++) {
        const int places = places_of(w + g * G);
        if (places < 0)
            return false;
        value[2 * g] = w[g * G + (size_t)(places & 3)];
        value[2 * g + 1] = w[g * G + (size_t)(places >> 2)];
        index[g / 2] = (uint8_t)(index[g / 2] | places << (g % 2 ? 4 : 0));
    }
    return true;
}

size_t nn_sparse_unpack(float *w, const float *value, const uint8_t *index, size_t n)
{
    const size_t groups = n / G;

    memset(w, 0, n * sizeof *w);
    for (size_t g = 0; g < groups; g++) {
        const unsigned places = index[g / 2] >> (g % 2 ? 4 : 0), a = places & 3, b = places >> 2 & 3;
        if (a >= b)
            return g;
        w[g * G + a] = value[2 * g];
        w[g * G + b] = value[2 * g + 1];
    }
    return groups % 2 && index[groups / 2] >> 4 ? groups + 1 : groups;
}
