/* models/cpu/kernels/product.h - products of dense matrices, real or complex (op 7 of docs/model.md 8): one
 * table of functions per kernel set and precision.
 *
 * C = s A B, where A and C are stored by rows and B is packed. A complex matrix is two
 * real ones: [0] is the real and [1] the imaginary part; [1] is NULL in all operands, or
 * in none.
 *
 * "Panels" of a k x n matrix, n a multiple of NN_LANE: [n / NN_LANE][k][NN_LANE].
 * Of a complex one: [n / NN_LANE][real: k, imaginary: k][NN_LANE], the panels of a
 * real matrix with 2k rows. k is a multiple of NN_LANE too.
 *
 * The order of a row's sum over k does not depend on the other rows or their number,
 * because a molecule's result must not depend on its batch. Sums are float32 in every
 * table. */
#ifndef NN_CPU_PRODUCT_H
#define NN_CPU_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nn_cpu_product {
    int32_t n_rows, k, n;
    const float *a[2];  /* [n_rows][a_ld], k numbers of a row               */
    float *c[2];        /* [n_rows][c_ld], n numbers of a row; an input of `outer` */
    size_t a_ld, c_ld;  /* multiples of NN_LANE; best not powers of two, which share cache sets */
    const float *scale; /* s [n_rows], or NULL: 1                           */
    const float *b;     /* run: packed; run_turned: panels                  */
    float *db;          /* outer: panels                                    */
    bool add;           /* add to C instead of overwriting it                */
} nn_cpu_product;

typedef struct nn_cpu_products {
    const char *name;
    size_t (*packed_size)(int32_t k, int32_t n);                        /* floats of a packed matrix of k (complex: 2k) rows */
    void (*pack)(const float *panels, int32_t k, int32_t n, float *to); /* NULL: panels are used as they are */
    void (*run)(const nn_cpu_product *p);                               /* C (+)= s A B                                     */
    void (*run_turned)(const nn_cpu_product *p); /* real: C [n_rows][n] (+)= A [n_rows][k] B^T, B panels of n x k,
                                                    k long, n short; n need not be a multiple of NN_LANE */
    void (*outer)(const nn_cpu_product *p);      /* B (+)= (s A)^H C, conjugate of A                */
} nn_cpu_products;

#endif
