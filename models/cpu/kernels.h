/* models/cpu/kernels.h - the inner loops, one table of functions per instruction set.
 *
 * Every set is compiled from the same body (kernels_body.h). Sums run in an order
 * that does not depend on how many rows or edges are worked on together, so a
 * molecule's result does not depend on its batch. Channel counts are padded to
 * NN_LANE with zeros; no kernel has a ragged tail in the channel direction.
 *
 * Edges come in slots: slot 2t is the edge along pair t's frame, slot 2t+1 its
 * reverse (zeros where there is none). */
#ifndef NN_CPU_KERNELS_H
#define NN_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/cpu/bf16.h"
#include "models/cpu/product.h"
#include "models/se3.h"

enum {
    NN_LANE = 16,   /* channels are padded to multiples of this           */
    NN_PANEL = 32,  /* columns of folded weights stored together           */
    NN_H = NN_RADIAL_HIDDEN,
    NN_ROWS = 12,   /* row buffers of radial products are padded to this   */
    NN_PANEL_FLOATS = NN_H * NN_PANEL
};

/* Where the components of a feature vector are: degree l, component c, channel k
 * at at[l] + c * pad[l] + k. `half` splits values from keys (0: no keys). */
typedef struct nn_cpu_layout {
    int32_t n_degrees, size;
    int32_t ch[NN_DEGREES], pad[NN_DEGREES], at[NN_DEGREES], half[NN_DEGREES];
} nn_cpu_layout;

/* A feature vector in the frame of an edge, sorted by order: m = 0 of all degrees,
 * then for m = 1.. the components +m of all degrees l >= m, then the -m. Orders above
 * m_most are left out. Component c of degree l is at to[l][c] + k; pad and at (of
 * component 0) are those of the layout that it is turned from. */
typedef struct nn_cpu_edge_layout {
    int32_t n_degrees, m_most, size, ld; /* ld: from one edge to the next */
    int32_t pad[NN_DEGREES], at[NN_DEGREES], to[NN_DEGREES][2 * NN_MAX_DEGREE + 1];
} nn_cpu_edge_layout;

/* R[row][col] = sum over the active hidden units of h[row][q] w[panel][k[q]][col].
 * Only units that are not zero in the whole tile are listed: exact, and about
 * half of them after ReLU. h is packed: [rows][NN_H], active units first. */
typedef struct nn_cpu_radial {
    const float *w;    /* [n_panels][NN_H][NN_PANEL]                         */
    float *dw;         /* same shape                                         */
    int32_t n_panels, n_rows, n_k;
    const int32_t *k;  /* [n_k]                                              */
    const float *h;    /* [n_rows rounded up to NN_ROWS][NN_H]               */
    float *r;          /* [rows][r_ld]; gradient of R for the backward ones  */
    size_t r_ld;
    float *dh;         /* [rows][NN_H][NN_LANE] partial sums, see radial_dh  */
} nn_cpu_radial;

/* One piece of the SO(2) product: y+ += A x+ - B x-, y- += A x- + B x+ (m > 0),
 * y0 += A x0 (m = 0); R holds [n_in][A: n_out | B: n_out] of a pair. One matrix: B is 0 and not there. */
typedef struct nn_cpu_block {
    int32_t n_in, n_out, m, n_matrices, n_pairs;
    int32_t x[2], y[2];       /* first channel of components +m, -m           */
    float *r;
    const float *x_edges;     /* [2 n_pairs][x_ld]                            */
    float *y_edges;           /* [2 n_pairs][y_ld]                            */
    size_t r_ld, x_ld, y_ld;
} nn_cpu_block;

/* c[row][n_out] (=, +=) a[row][n_in] w[n_in][n_out]; n_out a multiple of NN_LANE. */
typedef struct nn_cpu_gemm {
    int32_t n_rows, n_in, n_out;
    const float *const *a;
    float *const *c;
    const float *w;
    bool add;
} nn_cpu_gemm;

/* One radial network up to its hidden vector. Matrices are [in][NN_H]; ln: with
 * LayerNorm. The gradient has the same shape (wt1 unused). */
typedef struct nn_cpu_hidden {
    int32_t n_in;
    bool ln;
    float *w0, *b0, *g0, *c0, *w1, *b1, *g1, *c1; /* g, c: LayerNorm gain, bias   */
    const float *wt1;
} nn_cpu_hidden;

typedef struct nn_cpu_attend {
    int32_t n_heads, n_edges;      /* edges into one node                        */
    const int32_t *edge;           /* [n_edges]                                  */
    const nn_cpu_layout *kv, *z;
    const float *y;                /* [all edges][kv->size]                      */
    const float *q;                /* [z->size], zero where there are no keys    */
    float *alpha;                  /* [n_edges][pad of value channels]           */
    float *out;                    /* [z->size]                                  */
    float scale;
    const float *dout;             /* backward: [z->size]                        */
    float *dalpha, *dq, *dy;       /* [n_edges][pad], [z->size], [..][dy_ld]     */
    size_t dy_ld;
} nn_cpu_attend;

/* Norms of one degree over some nodes, docs/model.md 5.1; rows are `ld` floats apart. */
typedef struct nn_cpu_norm {
    int32_t n_nodes, dim, ch, pad;
    size_t ld;
    const float *x, *gain, *bias;
    float *y;
    const float *dy;
    float *dx, *dgain, *dbias;
} nn_cpu_norm;

typedef struct nn_cpu_kernels {
    const char *name;
    double (*peak)(int64_t n, float *sink);    /* n rounds of nothing but multiply-adds; how many
                                                  float32 operations that was. sink [NN_LANE], small */
    void (*radial)(const nn_cpu_radial *g);
    void (*radial_dh)(const nn_cpu_radial *g); /* dh[row][q][lane] += r[row][.] w[.][k[q]][.] */
    void (*radial_dw)(const nn_cpu_radial *g); /* dw[.][k[q]][.]   += h[row][q] r[row][.]     */
    void (*contract)(const nn_cpu_block *b);
    void (*outer)(const nn_cpu_block *b);      /* R = gradient, from x_edges (in) and y_edges (out) */
    void (*rotate)(const float *d, const nn_cpu_layout *f, const float *x, float *y, bool transposed);
    void (*to_frame)(const float *d, const nn_cpu_edge_layout *f, const float *x, float *y);   /* y = D^T x */
    void (*from_frame)(const float *d, const nn_cpu_edge_layout *f, const float *x, float *y); /* y = D x   */
    void (*gemm)(const nn_cpu_gemm *g);
    void (*gemm_tn)(const nn_cpu_gemm *g, const float *const *b, float *dw); /* dw += a^T b   */
    void (*hidden)(const nn_cpu_hidden *w, const float *s, float *h);
    void (*hidden_back)(const nn_cpu_hidden *w, const float *s, const float *dh, const nn_cpu_hidden *grad);
    void (*attend)(const nn_cpu_attend *a);
    void (*attend_back)(const nn_cpu_attend *a);
    void (*norm)(const nn_cpu_norm *n);
    void (*norm_back)(const nn_cpu_norm *n);
    void (*add)(size_t n, const float *x, float *y); /* y += x */
    nn_cpu_products products;                        /* in float32 */
    nn_cpu_products products16[2];                   /* bf16x3, bf16 */
    nn_cpu_bf16 bf16;
} nn_cpu_kernels;

extern const nn_cpu_kernels nn_cpu_portable, nn_cpu_avx2, nn_cpu_avx512, nn_cpu_amx; /* amx: avx512, bf16 on tiles */

/* The best set of this processor, or the one that MOLSIEVE_CPU names. NULL: the
 * named one is unknown or not supported here. */
const nn_cpu_kernels *nn_cpu_kernels_choose(void);
const nn_cpu_kernels *nn_cpu_kernels_find(const char *name);

/* Set number i of those compiled, best first; false after the last. */
typedef struct nn_cpu_choice {
    const nn_cpu_kernels *kernels;
    const char *needs; /* of the processor and the system */
    bool here;         /* there is what it needs          */
} nn_cpu_choice;
bool nn_cpu_kernels_list(int i, nn_cpu_choice *out);
const char *nn_cpu_kernels_name(void); /* "avx512"; "none" if there is no such set */

#endif
