/* models/cpu/kernels/bf16.h - matrix products whose factors are rounded to bf16; part of kernels.h.
 *
 * C [rows][out] (=, +=) A [rows][in] B [in][out], sums in float32. A factor is stored
 * in one part (the nearest bf16, ties to even) or in two (the second is the rounded
 * remainder): A B is then A0 B0 + A1 B0 + A0 B1, with an error of about 2^-17 |A||B|
 * ("bf16x3"; G. Henry, P. Tang, A. Heinecke, ARITH 2019).
 *
 * A is stored by rows, B in the order that the processor's tile product (AMX) reads.
 * All kernel sets compute the same bits: for each 32 inputs the sum of the even ones and
 * the sum of the odd ones start at 0, and their total is added to C; with two parts the
 * three products are added one after the other. So the sums of a row do not depend on
 * the number of rows. Subnormal factors count as 0 (AMX also drops subnormal sums). A
 * factor that is not finite gives a result that is not finite. */
#ifndef NN_CPU_BF16_H
#define NN_CPU_BF16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint16_t nn_bf16; /* the upper half of a float */

enum {
    NN_BF16_IN = 32,   /* inputs are padded to this with zeros, in A and in B */
    NN_BF16_ROWS = 16, /* rows of A must be readable up to a multiple of this; the extra rows have no effect */
    NN_BF16_TILE = 512 /* numbers of a piece of B: 16 pairs of inputs, 16 outputs */
};

static inline size_t nn_bf16_in(int32_t n) { return ((size_t)n + NN_BF16_IN - 1) / NN_BF16_IN * NN_BF16_IN; }

static inline size_t nn_bf16_rows(int32_t n) { return ((size_t)n + NN_BF16_ROWS - 1) / NN_BF16_ROWS * NN_BF16_ROWS; }

/* Number of bf16 of a packed B [n_in][n_out]; n_out a multiple of 16. */
static inline size_t nn_bf16_packed(int32_t n_in, int32_t n_out, int parts)
{
    return nn_bf16_in(n_in) * (size_t)n_out * (size_t)parts;
}

/* A matrix to convert: element (i, k) is factor * scale[i] * at[i * ld + k], i < n_rows, k < n; n is a
 * multiple of 16. scale NULL: 1. If row is not NULL, row i is at row[i]. */
typedef struct nn_bf16_source {
    const float *at;
    size_t ld;
    const float *const *row;
    const float *scale;
    float factor;
    int32_t n_rows, n;
} nn_bf16_source;

/* A matrix of bf16 by rows: element k of row i of part p is at[p * part + i * ld + k]. */
typedef struct nn_bf16_mat {
    nn_bf16 *at;
    size_t ld, part;
    int32_t n; /* numbers of a row */
    int parts;
} nn_bf16_mat;

/* B: [n_out / 16] panels of [n_in / 32][parts][16 pairs of inputs][16][2]. */
typedef struct nn_bf16_panels {
    nn_bf16 *at;
    size_t panel; /* numbers from a panel to the next */
    int parts;
} nn_bf16_panels;

/* a.n: inputs, a multiple of NN_BF16_IN. Output 16 j + i of a row is at
 * c[row * c_ld + j * c_panel + i]; n_out is a multiple of 16. */
typedef struct nn_bf16_product {
    nn_bf16_mat a;
    nn_bf16_panels b;
    int32_t n_rows, n_out;
    float *c;
    size_t c_ld, c_panel;
    bool add;
} nn_bf16_product;

typedef struct nn_cpu_bf16 {
    void (*rows)(const nn_bf16_source *from, const nn_bf16_mat *to);    /* zeros from from->n to to->n     */
    void (*turn)(const nn_bf16_source *from, const nn_bf16_mat *to);    /* to [from->n][to->n], transposed;
                                                                           zeros to the next multiple of 32 */
    void (*pack)(const nn_bf16_source *from, const nn_bf16_panels *to); /* from [n_in][n_out]               */
    void (*product)(const nn_bf16_product *g);
} nn_cpu_bf16;

#endif
