/* models/cpu/kernels/kernels.h - the inner loops of the cpu engine: one table of functions per instruction set.
 *
 * Every set is compiled from the same body (kernels_body.h). The order of a sum does not
 * depend on the number of rows or edges that are computed together, so a molecule's
 * result does not depend on its batch. Channel counts are padded with zeros to multiples
 * of NN_LANE, so loops over channels have no remainder.
 *
 * Edges are in slots: slot 2t is the edge along the frame of pair t, slot 2t+1 its
 * reverse (zeros if there is none). */
#ifndef NN_CPU_KERNELS_H
#define NN_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/cpu/kernels/bf16.h"
#include "models/cpu/kernels/product.h"
#include "models/network/se3.h"
#include "pipeline/base/error.h"

enum {
    NN_LANE = 16,  /* channels are padded to multiples of this           */
    NN_PANEL = 32, /* columns in a panel of folded weights                */
    NN_H = NN_RADIAL_HIDDEN,
    NN_ROWS = 12, /* rows of radial products are padded to multiples of this */
    NN_PANEL_FLOATS = NN_H * NN_PANEL
};

/* Layout of a feature vector: channel k of component c of degree l is at
 * at[l] + c * pad[l] + k. Channels before half[l] are values, those from half[l] on keys (0: no keys). */
typedef struct nn_cpu_layout {
    int32_t n_degrees, size;
    int32_t ch[NN_DEGREES], pad[NN_DEGREES], at[NN_DEGREES], half[NN_DEGREES];
} nn_cpu_layout;

/* Layout of a feature vector in the frame of an edge, sorted by order: m = 0 of all degrees,
 * then for m = 1.. the components +m of all degrees l >= m, then their -m. Orders above
 * m_max are left out. Channel k of component c of degree l is at to[l][c] + k; pad and at (of
 * component 0) are those of the layout that it is rotated from. */
typedef struct nn_cpu_edge_layout {
    int32_t n_degrees, m_max, size, ld; /* ld: from one edge to the next */
    int32_t pad[NN_DEGREES], at[NN_DEGREES], to[NN_DEGREES][2 * NN_MAX_DEGREE + 1];
} nn_cpu_edge_layout;

/* R[row][col] = sum over q of h[row][q] w[panel][k[q]][col], where k lists the active hidden units:
 * those that are not zero in the whole tile (docs/performance.md 2.3). This is exact, and about
 * half of the units remain after ReLU. h is packed: [rows][NN_H], active units first. */
typedef struct nn_cpu_radial {
    const float *w; /* [n_panels][NN_H][NN_PANEL]                         */
    float *dw;      /* same shape                                         */
    int32_t n_panels, n_rows, n_k;
    const int32_t *k; /* [n_k]                                              */
    const float *h;   /* [n_rows rounded up to NN_ROWS][NN_H]               */
    float *r;         /* [rows][r_ld]; gradient of R for the backward ones  */
    size_t r_ld;
    float *dh; /* [rows][NN_H][NN_LANE] partial sums, see radial_dh  */
} nn_cpu_radial;

/* One path and order m of the product along edges: y+ += A x+ - B x-, y- += A x- + B x+ (m > 0),
 * y0 += A x0 (m = 0). R of a pair is [n_in][A: n_out | B: n_out]; with n_matrices 1, B is 0 and not stored. */
typedef struct nn_cpu_block {
    int32_t n_in, n_out, m, n_matrices, n_pairs;
    int32_t x[2], y[2]; /* first channel of components +m, -m           */
    float *r;
    const float *x_edges; /* [2 n_pairs][x_ld]                            */
    float *y_edges;       /* [2 n_pairs][y_ld]                            */
    size_t r_ld, x_ld, y_ld;
} nn_cpu_block;

/* c[row][n_out] (=, +=) a[row][n_in] w[n_in][n_out]; n_out is a multiple of NN_LANE; a, c: pointers to the rows. */
typedef struct nn_cpu_gemm {
    int32_t n_rows, n_in, n_out;
    const float *const *a;
    float *const *c;
    const float *w;
    bool add;
} nn_cpu_gemm;

/* One radial network up to its hidden vector (op 3 of docs/model.md 8; 3.1). Matrices are [in][NN_H], wt1 is
 * w1 transposed; ln: with LayerNorm. The gradient has the same shape (wt1 unused). */
typedef struct nn_cpu_hidden {
    int32_t n_in;
    bool ln;
    float *w0, *b0, *g0, *c0, *w1, *b1, *g1, *c1; /* g, c: LayerNorm gain, bias   */
    const float *wt1;
} nn_cpu_hidden;

/* Attention over the edges into one node (op 9 of docs/model.md 8; 4). */
typedef struct nn_cpu_attend {
    int32_t n_heads, n_edges; /* n_edges: edges into the node               */
    const int32_t *edge;      /* [n_edges]                                  */
    const nn_cpu_layout *kv, *z;
    const float *y; /* [all edges][kv->size]                      */
    const float *q; /* [z->size], zero where there are no keys    */
    float *alpha;   /* [n_edges][pad of value channels]           */
    float *out;     /* [z->size]                                  */
    float scale;
    const float *log_envelope; /* [all edges] added to the logits; NULL: nothing */
    const float *dout;         /* backward: [z->size]                        */
    float *dalpha, *dq, *dy;   /* [n_edges][pad], [z->size], [..][dy_ld]     */
    size_t dy_ld;
} nn_cpu_attend;

/* NormSE3 of one degree for n_nodes nodes (op 11; docs/model.md 5.1); nodes are `ld` floats apart. */
typedef struct nn_cpu_norm {
    int32_t n_nodes, dim, ch, pad;
    size_t ld;
    const float *x, *gain, *bias;
    float *y;
    const float *dy;
    float *dx, *dgain, *dbias;
} nn_cpu_norm;

/* Gate of all degrees for n_nodes nodes (op 11; docs/model.md 5.6); nodes are f->size floats apart. */
typedef struct nn_cpu_gate {
    int32_t n_nodes;
    const nn_cpu_layout *f;
    const float *x, *gain[NN_DEGREES], *bias[NN_DEGREES];
    float *y;
    const float *dy;
    float *dx, *dgain[NN_DEGREES], *dbias[NN_DEGREES];
} nn_cpu_gate;

typedef struct nn_cpu_kernels {
    const char *name;
    double (*peak)(int64_t n, float *sink);   /* runs n rounds of multiply-adds, to measure the peak; returns
                                                  the number of float32 operations. sink [NN_LANE]: small numbers */
    double (*peak16)(int64_t n, float *sink); /* the same of AVX-512's dot products of bf16 pairs; NULL: not compiled */
    void (*radial)(const nn_cpu_radial *g);
    void (*radial_dh)(const nn_cpu_radial *g); /* dh[row][q][lane] += r[row][.] w[.][k[q]][.] */
    void (*radial_dw)(const nn_cpu_radial *g); /* dw[.][k[q]][.]   += h[row][q] r[row][.]     */
    void (*contract)(const nn_cpu_block *b);
    void (*outer)(const nn_cpu_block *b); /* r = gradient of R, from x_edges and the gradients y_edges */
    void (*rotate)(const float *d, const nn_cpu_layout *f, const float *x, float *y, bool transposed); /* y = D x or D^T x */
    void (*to_frame)(const float *d, const nn_cpu_edge_layout *f, const float *x, float *y);           /* y = D^T x */
    void (*from_frame)(const float *d, const nn_cpu_edge_layout *f, const float *x, float *y);         /* y = D x   */
    void (*gemm)(const nn_cpu_gemm *g);
    void (*gemm_tn)(const nn_cpu_gemm *g, const float *const *b, float *dw); /* dw += a^T b   */
    void (*hidden)(const nn_cpu_hidden *w, const float *s, float *h);
    void (*hidden_back)(const nn_cpu_hidden *w, const float *s, const float *dh, const nn_cpu_hidden *grad);
    void (*attend)(const nn_cpu_attend *a);
    void (*attend_back)(const nn_cpu_attend *a);
    void (*norm)(const nn_cpu_norm *n);
    void (*norm_back)(const nn_cpu_norm *n);
    void (*gate)(const nn_cpu_gate *g);
    void (*gate_back)(const nn_cpu_gate *g);
    void (*add)(size_t n, const float *x, float *y); /* y += x */
    nn_cpu_products products;                        /* in float32 */
    nn_cpu_products products16[2];                   /* bf16x3, bf16 */
    nn_cpu_bf16 bf16;
} nn_cpu_kernels;

extern const nn_cpu_kernels nn_cpu_portable, nn_cpu_avx2, nn_cpu_avx512, nn_cpu_amx; /* amx: avx512, bf16 on tiles */

/* The set named by MOLSIEVE_CPU, else the best one for this processor. NULL: the
 * named set is unknown or this processor does not support it. */
const nn_cpu_kernels *nn_cpu_kernels_choose(void);
const nn_cpu_kernels *nn_cpu_kernels_find(const char *name);

/* The set whose peak16 this processor can run; NULL: none. */
const nn_cpu_kernels *nn_cpu_kernels_dot16(void);

/* Set number i of those compiled, best first; false after the last. */
typedef struct nn_cpu_choice {
    const nn_cpu_kernels *kernels;
    const char *needs; /* features of processor and system that it needs */
    bool here;         /* they are available              */
} nn_cpu_choice;
bool nn_cpu_kernels_list(int i, nn_cpu_choice *out);
const char *nn_cpu_kernels_name(void); /* name of nn_cpu_kernels_choose(): "avx512"; "none" if that is NULL */

/* ---- which set computes ----
 *
 * Sets differ in the order of sums and in fused multiply-adds, so results differ
 * from about the seventh digit on; one set always gives the same bytes. */

/* The set named `pinned`; NULL: the set named by MOLSIEVE_CPU, else the best one for this processor. ECONFIG: the
 * processor lacks what the set needs, or MOLSIEVE_CPU names another set than `pinned`. */
pl_code nn_cpu_kernels_pick(const nn_cpu_kernels **out, const char *pinned, pl_error *err);

/* "x86_64 with fma, glibc 2.36": what else results depend on, because functions of the C library differ. */
const char *nn_cpu_machine(char buf[64]);

#endif
