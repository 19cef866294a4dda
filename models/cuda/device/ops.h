/* models/cuda/device/ops.h - the interface between the cuda engine and a device: a table of operations.
 *
 * The engine (plan, prep, engine: C) is part of the program; the operations are in
 * libmolsieve_cuda.so, which is opened at run time. The same kernel source is also
 * compiled as C++ against tests/emulator, where every thread of a block is a fiber:
 * that library has the same table and is tested without a GPU. Op numbers are those
 * of docs/model.md 8.
 *
 * Rules: all work of one nn_gpu runs in the order of the calls, except upload_beside and
 * streams. Calls are asynchronous, except download. Pointers are device addresses
 * unless they are called host. Every sum of floats has a fixed order: equal calls give
 * equal bytes. This header includes no other header of the project.
 *
 * Layouts. Nodes (atoms): channel k of component c of degree l is at at[l] + c*ch[l] + k.
 * Edges, in the frame of their pair (models/network/frame.h), are sorted by order m, plus then minus:
 * channel k of component l+m of degree l is at at[l][l+m] + k. Order m begins at
 * order[m] and has half[m] channels of each sign (m = 0: once), degrees ascending. A
 * row is one directed edge; rows are sorted by radial cell. */
#ifndef NN_CUDA_OPS_H
#define NN_CUDA_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NN_GPU_ABI = 18,
    NN_GPU_DEGREES = 5,        /* NN_DEGREES                                   */
    NN_GPU_FREQS = 9,          /* 2 NN_MAX_DEGREE + 1                          */
    NN_GPU_H = 32,             /* NN_RADIAL_HIDDEN: one warp has one hidden vector */
    NN_GPU_FRAME = 164,        /* NN_FRAME_ALL: floats of a frame              */
    NN_GPU_TERMS = 40,         /* maximum terms of nn_gpu_frame_rule per degree */
    NN_GPU_TILE = 64,          /* maximum rows of a tile: rows of one cell that a block computes together */
    NN_GPU_FOLD = 8,           /* channels in and channels out of a fold tile   */
    NN_GPU_PAD = 8,            /* rows and columns of tables are multiples of this: 16 bytes of 16-bit numbers */
    NN_GPU_GROUP = 16,         /* maximum products in one launch                */
    NN_GPU_OUTER = 256,        /* rows of a cell that one block sums            */
    NN_GPU_PARTS = 256,        /* partial sums of a sum over nodes              */
    NN_GPU_FENCE = 64,         /* guard bytes between two arrays                */
    NN_GPU_EVENTS = 24,        /* events that record and wait_event know        */
    NN_GPU_STREAMS = 5,        /* streams of operations                         */
    NN_GPU_MARKS = 256,        /* marks that mark and between know              */
    NN_GPU_SEGMENTS = 12,      /* maximum segments of a step, and one of small forward passes; each is a graph */
    NN_GPU_SQUARES = 4096,     /* numbers of a piece, whose squares are summed together */
    NN_GPU_SCALE_MAX = 1 << 24 /* NN_LOSS_SCALE_MAX                        */
};

/* Number format of the factors of products; sums are float32. */
typedef enum nn_gpu_precision { NN_GPU_FP32, NN_GPU_BF16X3, NN_GPU_BF16, NN_GPU_TF32, NN_GPU_FP16 } nn_gpu_precision;

typedef struct nn_gpu nn_gpu; /* a device and its streams */

typedef struct nn_gpu_nodes {
    int32_t n_degrees, size, ch[NN_GPU_DEGREES], at[NN_GPU_DEGREES];
} nn_gpu_nodes;

typedef struct nn_gpu_edges {
    int32_t n_degrees, size, ch[NN_GPU_DEGREES], at[NN_GPU_DEGREES][NN_GPU_FREQS];
    int32_t order[NN_GPU_DEGREES], half[NN_GPU_DEGREES];
} nn_gpu_edges;

/* ---- matrix products (ops 5, 10, 13) ---- */

/* One axis of a matrix: element i is at offset i / inner * outer_step + i % inner * inner_step, in floats. */
typedef struct nn_gpu_axis {
    int32_t inner;
    int64_t outer_step, inner_step;
} nn_gpu_axis;

/* What computes a product: kernels of this library, or NVIDIA's cuBLASLt. */
typedef enum nn_gpu_provider { NN_GPU_OWN, NN_GPU_CUBLASLT } nn_gpu_provider;

/* c[m][n] (=, +=) sum over k of a[m][k] b[k][n]. splits > 1: k is cut in that many
 * parts, whose sums are added in order; work is then [splits][m][n]. c_as: the format in which c is stored
 * (only without splits and `add`): float32, float32 rounded to tf32, or 16-bit numbers. more: the product of
 * the next entry is added to this one before c is stored; the next entry has the same m, n and c, and no splits.
 * by: a wish, which the kernels of this library fulfil where cuBLASLt was not opened or cannot: not float32, with splits, other
 * strides. sums: k follows the molecules of the batch, not m; cuBLASLt's algorithm depends on the other two and the strides alone. */
typedef struct nn_gpu_gemm {
    int32_t m, n, k, splits;
    bool add, more, sums;
    nn_gpu_provider by;
    nn_gpu_precision precision, c_as;
    nn_gpu_axis a_m, a_k, b_k, b_n, c_m, c_n;
    const float *a, *b;
    void *c;
    float *work;
} nn_gpu_gemm;

/* y[j] += sum over rows of x[row][j]. */
typedef struct nn_gpu_column_sum {
    int32_t rows, cols, ld;
    const float *x;
    float *y;
} nn_gpu_column_sum;

/* ---- geometry and radial networks (ops 1, 3, 4) ---- */

typedef struct nn_gpu_term {
    int32_t i, j, k, pad;
    double w;
} nn_gpu_term;

typedef struct nn_gpu_frame_rule { /* nn_frame_rule: for every degree, terms with i = 0, then i = 1, .. */
    int32_t n[NN_GPU_DEGREES + 1]; /* number of terms; the last entry is padding */
    nn_gpu_term term[NN_GPU_DEGREES][NN_GPU_TERMS];
} nn_gpu_frame_rule;

/* Op 1. d[pair][2][size]: D_1..D_l_max of the pair's edge, then those of its reverse. */
typedef struct nn_gpu_frames {
    int32_t n_pairs, l_max, size;
    const nn_gpu_frame_rule *rule;
    const float *vec;    /* [n_pairs][3], or NULL                       */
    const float *stored; /* [n_pairs][83] D_1..D_3 where vec is NULL    */
    float *d;
} nn_gpu_frames;

/* Offsets of a radial network's hidden layers in the parameters (docs/model.md 3.1). */
typedef struct nn_gpu_net {
    int64_t w0, b0, g0, c0, w1, b1, g1, c1; /* g, c: LayerNorm gain and bias     */
    int64_t ln;                             /* 1: with LayerNorm                 */
} nn_gpu_net;

/* Op 3 for all radial networks of a model. hidden writes h; hidden_back adds the gradients of the hidden layers'
 * parameters, from dh, to grad. */
typedef struct nn_gpu_hidden {
    int32_t n_nets, n_nodes, n_in;
    const nn_gpu_net *net; /* [n_nets]                                          */
    const float *params;
    const float *scalar; /* [n_nodes][n_in]                                   */
    float *h;            /* [n_nets][n_nodes][32]                             */
    const float *dh;     /* the same shape; backward                          */
    float *work;         /* [n_nets][n_nodes][7][32]; backward                */
    float *grad;         /* the layout of params                              */
} nn_gpu_hidden;

/* A path (d_in, d_out) of a convolution's last radial layers. w: offset of its group's matrix in the parameters;
 * its rows are (o*c_in + i)*group_freqs + f0 + f. Number q (a_m: q = m; b_m: q = min + m) of channels i -> o is
 * column at[0][q] + i*step[0][q] + o of the folded matrix [hidden unit][size] that begins at table[0], and
 * column at[1][q] + o*step[1][q] + i of the transposed one at table[1]. */
typedef struct nn_gpu_path {
    float coef[NN_GPU_FREQS][NN_GPU_FREQS + 3]; /* nn_frame_coef; rows padded to multiples of 16 bytes */
    int64_t w, size, table[2], at[2][NN_GPU_FREQS];
    int32_t n_freq, f0, group_freqs, c_in, c_out, step[2][NN_GPU_FREQS], pad;
} nn_gpu_path;

/* A fold tile of a path: input channels i .. i + NN_GPU_FOLD - 1 and output channels o .. o + NN_GPU_FOLD - 1,
 * without those that the path does not have. */
typedef struct nn_gpu_fold_tile {
    int32_t path, i, o;
} nn_gpu_fold_tile;

/* Op 4. A table has for every order m a matrix a [k[m]][n[m]] and (m > 0) a matrix b
 * behind it; k counts input channels, n output channels (transposed: the other way round).
 * Rows and columns of both are padded to multiples of NN_GPU_PAD. The padding of `folded` must be zero
 * before the call; fold does not write it. fold: any tiles. unfold: the tiles of one convolution, from
 * the gradient of its forward matrix, which begins at dfolded; adds to grad. */
typedef struct nn_gpu_fold {
    int32_t n_tiles;
    const nn_gpu_fold_tile *tile;
    const nn_gpu_path *path;
    const float *params;
    float *folded;
    const float *dfolded;
    float *grad;
} nn_gpu_fold;

/* ---- along edges (ops 6, 7, 8, 9, 15) ---- */

/* Op 6. y[row] = D^T x[node[row]], times weight[row][head of the channel] if weight is given. */
typedef struct nn_gpu_turn {
    int32_t n_rows, frame_size, heads;
    const int32_t *node;  /* [n_rows]                                          */
    const int32_t *frame; /* [n_rows]  2 pair + (1: against the pair's edge)   */
    const float *d;       /* [..][frame_size]                                  */
    const float *weight;  /* [n_rows][heads] or NULL                           */
    nn_gpu_nodes nodes;
    nn_gpu_edges edges;
    const float *x;
    float *y;
} nn_gpu_turn;

/* Op 8. dot[row][head] = scale * sum over the head's channels of (D^T x[node[row]]) . y[row]. */
typedef struct nn_gpu_dot {
    nn_gpu_turn t;
    float scale;
    float *dot;
} nn_gpu_dot;

/* Op 15, and the transpose of op 6. to[node] (=, +=) sum over the node's rows of weight * D t.y[row] (t.x is
 * not read). times: to[node] is first multiplied by times[node], the sum of the envelopes of its rows (self-interaction,
 * docs/model.md 3.4, 3.6). */
typedef struct nn_gpu_sum {
    nn_gpu_turn t; /* node unused; weight or NULL                       */
    int32_t n_nodes;
    const int32_t *first; /* [n_nodes+1]                                       */
    const int32_t *row;   /* rows of node i: row[first[i]..first[i+1]-1], in the order of summation */
    bool add;
    const float *times; /* [n_nodes] or NULL                                 */
    float *to;
} nn_gpu_sum;

/* y[node] = x[node] times[node] (backward of `times` above). */
typedef struct nn_gpu_scale {
    int32_t n_nodes, size;
    const float *times;
    const float *x;
    float *y;
} nn_gpu_scale;

/* A tile: rows first .. first + n - 1, all of one cell with the radial nodes node[0] and node[1]
 * (-1 without interpolation). */
typedef struct nn_gpu_tile {
    int32_t first, n, node[2];
} nn_gpu_tile;

/* The rows first[j] .. end[j]-1 of the cells in which a radial node is node[j], j = 0, 1. */
typedef struct nn_gpu_span {
    int32_t first[2], end[2];
} nn_gpu_span;

/* Op 7. so2: for every row and order y+ = A x+ - sign B x-, y- = A x- + sign B x+, with
 * A, B = sum over the cell's nodes of phi * table. The table's matrices are [k][n] in
 * float32 for NN_GPU_FP32; otherwise [n][k] in the format of nn_gpu_gemm.c_as: TF32,
 * BF16 and FP16 as such, BF16X3 as float32.
 * so2_outer: gradients of the tables from x and the gradient y, [k][n] in float32. */
typedef struct nn_gpu_so2 {
    int32_t n_orders, n_tiles, x_size, y_size, max_n, max_k;
    int32_t k[NN_GPU_DEGREES], n[NN_GPU_DEGREES], x_at[NN_GPU_DEGREES], y_at[NN_GPU_DEGREES];
    nn_gpu_precision precision;
    int64_t table_size, table_at[NN_GPU_DEGREES];
    float sign;
    const nn_gpu_tile *tile;     /* [n_tiles]                                    */
    const nn_gpu_span *span;     /* [n_nodes], outer                             */
    const float *phi;            /* [rows][2]                                    */
    int32_t first_node, n_nodes; /* the table holds nodes first_node .. first_node+n_nodes-1 */
    int32_t first_row, end_row;  /* outer: only rows first_row .. end_row-1      */
    int32_t slots;               /* outer: slots * NN_GPU_OUTER >= end_row - first_row; the sizes of table
                                  * and work are then multiples of 16 bytes      */
    const float *x;
    float *y;
    void *table; /* [n_nodes][table_size]                        */
    float *work; /* outer: [2 slots][table_size]                 */
    /* so2, conv: with `unit` the table has a matrix for each hidden unit of the radial network instead of each radial node, the same
     * for all rows: a row's weights are unit[frame / 2] times phi[0]. Exact mode, where radial node = pair = frame / 2. Not fp32. */
    const float *unit;    /* [radial node][NN_GPU_H] or NULL              */
    const int32_t *frame; /* [rows], as in nn_gpu_turn                    */
} nn_gpu_so2;

/* Ops 6, 7 and 8 in one kernel: product s, whose x is made from node features by `x` (x.y is unused).
 * If logit is given, the contribution of every order to q . keys is written to logit[order][row][head];
 * q rotates the queries (q.y is s.y). Not for NN_GPU_FP32. */
typedef struct nn_gpu_conv {
    nn_gpu_turn x, q;
    nn_gpu_so2 s;
    int32_t channels, key_channels; /* maximum over the degrees                  */
    float scale;                    /* factor on the logits                      */
    float *logit;
} nn_gpu_conv;

/* Op 9. alpha = softmax over a node's rows of the logits, which are the sum of n_parts parts
 * [part][row][head], and log_envelope; then `sum`, whose weight is alpha. A single row has weight 1 exactly. */
typedef struct nn_gpu_attend {
    nn_gpu_sum sum;
    int32_t n_parts;
    const float *logit;
    const float *log_envelope; /* [row] or NULL */
    float *alpha;
} nn_gpu_attend;

/* Op 9 backward, from dz, the gradient of the sum (docs/model.md 5.5): dalpha = dz . values, then in its place
 * ds = alpha (dalpha - sum alpha dalpha) scale; the gradient of q (dq: sum of ds keys), then those of the
 * rows' values (dvalue: alpha dz) and keys (dkey: ds q), which may overwrite values and keys. */
typedef struct nn_gpu_attend_back {
    nn_gpu_dot dalpha;
    nn_gpu_turn dvalue, dkey;
    nn_gpu_sum dq;
    const float *alpha;
    float scale;
} nn_gpu_attend_back;

/* ---- nodes and graphs (ops 11, 12, 13) ---- */

/* Op 11. gain[l], bias[l]: offsets in the parameters. norm_back writes dx and partial sums in work; norm_sums
 * adds the gradients of bias and gain to grad. */
typedef struct nn_gpu_norm {
    int32_t n_nodes, channels;
    bool gate; /* instead of NormSE3 (docs/model.md 5.6); all degrees have equal channels */
    nn_gpu_nodes nodes;
    int64_t gain[NN_GPU_DEGREES], bias[NN_GPU_DEGREES];
    const float *params, *x, *dy;
    float *y, *dx;
    float *work, *grad; /* work [2][NN_GPU_PARTS][channels]: bias, gain; degrees end to end */
} nn_gpu_norm;

typedef enum nn_gpu_pooling { NN_GPU_POOL_MAX, NN_GPU_POOL_MEAN, NN_GPU_POOL_SUM } nn_gpu_pooling;

/* Op 12, of degree 0. from: the node that has the maximum. A graph without nodes gives zeros. */
typedef struct nn_gpu_pool {
    int32_t n_graphs, channels, ld, kind;
    const int32_t *first; /* [n_graphs+1]                                      */
    const float *x, *dy;  /* x [node][ld], dy [n_graphs][channels]             */
    float *y, *dx;
    int32_t *from; /* [n_graphs][channels]                              */
} nn_gpu_pool;

/* y[row][col] += bias[col], then ReLU if relu; bias_back: dy = 0 where y is not positive. */
typedef struct nn_gpu_bias {
    int32_t rows, cols;
    bool relu;
    const float *bias;
    float *y, *dy;
} nn_gpu_bias;

/* ---- training (ops 14, 16, 17) ---- */

typedef enum nn_gpu_loss_kind { NN_GPU_L1, NN_GPU_L2, NN_GPU_BCE } nn_gpu_loss_kind;

typedef struct nn_gpu_loss_scale { /* nn_loss_scale: a power of two */
    double by;
    int64_t good;
} nn_gpu_loss_scale;

/* The result of a step: sums over the measured numbers (nn_loss_sum); the norm of the gradient before
 * clipping and without the loss scale; the scale of the next step; taken 0: loss or norm was not finite
 * and the parameters were not changed. */
typedef struct nn_gpu_step_result {
    double loss, abs, square, norm;
    int64_t measured, taken;
    nn_gpu_loss_scale scale;
} nn_gpu_step_result;

/* Op 14. y, t, high, dy [n]; t, high: the limits of what was measured, equal if it is a number; t NaN: not measured; of BCE its sign is the class and its size the weight, as in models/optim/loss.h. Writes dy, multiplied by the scale, and loss, abs, square and
 * measured of result. */
typedef struct nn_gpu_loss {
    int32_t n, kind;
    int64_t measured; /* measured numbers of the whole batch              */
    const float *y, *t, *high;
    float *dy;
    const nn_gpu_loss_scale *scale;
    nn_gpu_step_result *result;
} nn_gpu_loss;

/* y += x */
typedef struct nn_gpu_add {
    int64_t n;
    const float *x;
    float *y;
} nn_gpu_add;

/* The constants of one step: those of nn_adamw_rule; decay, lr and fix1 of nn_lamb_rule, whose fix2
 * is fix. */
typedef struct nn_gpu_rule {
    float b1, b2, a1, a2, eps, keep, rate, fix, clip, average;
    float decay, lr, fix1;
    int32_t taken;
} nn_gpu_rule;

/* A piece of one tensor: numbers first .. first+n-1, n <= NN_GPU_SQUARES. */
typedef struct nn_gpu_piece {
    int64_t first;
    int32_t n, tensor;
} nn_gpu_piece;

typedef struct nn_gpu_squares { /* nn_lamb_squares, of a piece */
    double p, u;
} nn_gpu_squares;

/* LAMB needs the tensors. n_pieces 0: AdamW. */
typedef struct nn_gpu_lamb {
    int32_t n_pieces;
    const nn_gpu_piece *piece; /* [n_pieces], tensor after tensor */
    const int32_t *tensor;     /* [tensors+1] their first pieces  */
    nn_gpu_squares *squares;   /* [n_pieces]                  */
} nn_gpu_lamb;

/* Ops 16 and 17: a step of the optimiser is three operations. squares: sums of squares of the pieces of g.
 * decide: from all pieces the norm of g / scale, the clipping factor, and whether the step is taken; it is
 * skipped if loss or norm is not finite. update: AdamW or LAMB, and the moving average. squares and AdamW's
 * update may be called for a part of the arrays that begins at a multiple of NN_GPU_SQUARES; n and the
 * pointers are then those of the part.
 * *step counts the steps taken. *scale becomes that of the next step (nn_loss_scale_next). result: loss, abs
 * and square summed over the shards, measured, norm, taken. */
typedef struct nn_gpu_optimise {
    int64_t n;
    nn_gpu_lamb lamb;
    double beta1, beta2, eps, decay, lr, grad_clip, ema; /* grad_clip 0: none       */
    float *p, *m, *v, *average;                          /* [n]; average NULL: none     */
    const float *g;                                      /* [n]                         */
    double *part;                                        /* [n / NN_GPU_SQUARES + 1]    */
    int64_t *step;
    nn_gpu_loss_scale *scale;
    int64_t scale_after; /* good steps until it grows; 0: stays */
    nn_gpu_rule *rule;
    int32_t n_shards;
    const nn_gpu_step_result *shard; /* [n_shards] from nn_gpu_loss; may be result itself */
    nn_gpu_step_result *result;
} nn_gpu_optimise;

typedef struct nn_gpu_ops {
    int32_t abi, bytes; /* NN_GPU_ABI, sizeof(nn_gpu_ops)                    */
    const char *name;   /* "cuda", "emulated"                                */

    int32_t (*count)(void); /* number of visible devices      */
    /* The device's PCI address, "0000:3b:00.0"; "" if the driver does not give it. */
    void (*pci)(int32_t device, char *text, size_t n);
    /* Whether the device exists and is usable; `text` (host) describes it in one line, or says
     * why not. Allocates nothing on the device. */
    bool (*find)(int32_t device, char *text, size_t n);
    /* Opens the device with its own streams; NULL: text says why not. yields: streams of low priority. */
    nn_gpu *(*open)(int32_t device, bool yields, char *text, size_t n);
    void (*close)(nn_gpu *g); /* NULL is fine                   */
    /* Opens cuBLASLt for products of this device, or with NULL only looks for it. text (host): its version, or, if false, why
     * there is none. MOLSIEVE_CUBLASLT names the library. */
    bool (*cublaslt)(nn_gpu *g, char *text, size_t n);
    const char *(*status)(nn_gpu *g);                     /* waits for all work; NULL, or the first error */
    void (*memory)(nn_gpu *g, size_t *left, size_t *all); /* bytes free, and in all */

    void *(*alloc)(nn_gpu *g, size_t bytes); /* NULL: no memory                */
    void (*free)(nn_gpu *g, void *p);
    void *(*host_alloc)(nn_gpu *g, size_t bytes); /* host memory, pinned         */
    void (*host_free)(nn_gpu *g, void *p);
    /* host must not change until the work has been waited for. */
    void (*upload)(nn_gpu *g, void *to, const void *host, size_t bytes);
    void (*download)(nn_gpu *g, void *host, const void *from, size_t bytes); /* waits */
    void (*zero)(nn_gpu *g, void *p, size_t bytes);                          /* p and bytes are multiples of 4 */
    void (*fence)(nn_gpu *g, void *p, bool on);                              /* writes a fence of NN_GPU_FENCE guard bytes */
    bool (*intact)(nn_gpu *g, void *p);                                      /* waits; false: the fence was overwritten */

    /* Uploads in another stream, concurrently with earlier work, which must not use `to`; later work
     * waits for it. host is pinned and must not change until then. */
    void (*upload_beside)(nn_gpu *g, void *to, const void *host, size_t bytes);
    /* Asynchronous download, in the order of the calls; host is pinned. */
    void (*download_later)(nn_gpu *g, void *host, const void *from, size_t bytes);
    void (*record)(nn_gpu *g, int32_t i);                    /* records event i < NN_GPU_EVENTS in the current stream */
    void (*wait_event)(nn_gpu *g, nn_gpu *other, int32_t i); /* later work in the current stream waits for event i of `other` */
    /* Selects stream i for operations, zero, record and wait_event. Work of one stream runs in the order of its calls,
     * concurrently with other streams; a stream that needs another's result waits for an event (wait_event(g, g, i)). Stream 0
     * is selected at first. All other functions must be called in stream 0, and stream 0 must wait for the other streams before
     * the host waits for it or a graph ends. */
    void (*use_stream)(nn_gpu *g, int32_t i);
    const char *(*synchronize)(nn_gpu *g, int32_t i); /* the host waits until all work before event i is done; returns as status */
    /* Calls between graph_begin and graph_run are captured and then run as one graph. Only operations,
     * zero, download_later and streams are allowed between them. segment < NN_GPU_SEGMENTS: graphs of the same
     * segment have the same shape. */
    void (*graph_begin)(nn_gpu *g);
    void (*graph_run)(nn_gpu *g, int32_t segment);
    /* As graph_run; the graph is also kept under a key that is not 0, beside those of the last few other keys of the segment.
     * graph_again runs the one of a key without capturing anything, if it is still kept: the caller promises that every operation
     * and every argument would be the same. */
    void (*graph_keep)(nn_gpu *g, int32_t segment, uint64_t key);
    bool (*graph_again)(nn_gpu *g, int32_t segment, uint64_t key);

    /* Times on the device. alone(g, true), with no work called: from now on every stream is stream 0, so that nothing runs beside
     * what lies between two marks. mark records mark i < NN_GPU_MARKS there, after that and not during a capture; between
     * gives the seconds from mark i to mark j, once both are done, or 0 after an error. */
    void (*alone)(nn_gpu *g, bool on);
    void (*mark)(nn_gpu *g, int32_t i);
    double (*between)(nn_gpu *g, int32_t i, int32_t j);

    /* A stream (cudaStream_t) for work of another library; it waits for all work called so far. */
    void *(*fork)(nn_gpu *g);
    void (*join)(nn_gpu *g); /* later calls wait for the work in that stream */
    /* From now on every wait calls go_on repeatedly with the seconds waited. Once it returns false, nothing
     * waits any more and memory is never freed. go_on NULL: no watch. */
    void (*watch)(nn_gpu *g, bool (*go_on)(void *ctx, double waited), void *ctx);

    void (*gemm)(nn_gpu *g, const nn_gpu_gemm *a, int32_t n); /* n products that do not depend on each other */
    void (*column_sum)(nn_gpu *g, const nn_gpu_column_sum *a);
    void (*frames)(nn_gpu *g, const nn_gpu_frames *a);
    void (*hidden)(nn_gpu *g, const nn_gpu_hidden *a);
    void (*hidden_back)(nn_gpu *g, const nn_gpu_hidden *a);
    void (*fold)(nn_gpu *g, const nn_gpu_fold *a);
    void (*unfold)(nn_gpu *g, const nn_gpu_fold *a);
    void (*turn)(nn_gpu *g, const nn_gpu_turn *a);
    void (*dot)(nn_gpu *g, const nn_gpu_dot *a);
    void (*sum)(nn_gpu *g, const nn_gpu_sum *a);
    void (*scale)(nn_gpu *g, const nn_gpu_scale *a);
    /* false: such a tile does not fit into shared memory in this precision, which a call without tiles tells, too */
    bool (*so2)(nn_gpu *g, const nn_gpu_so2 *a);
    void (*so2_outer)(nn_gpu *g, const nn_gpu_so2 *a);
    bool (*conv)(nn_gpu *g, const nn_gpu_conv *a); /* false, and nothing done: it does not fit, as above, or fp32 */
    void (*attend)(nn_gpu *g, const nn_gpu_attend *a);
    void (*attend_back)(nn_gpu *g, const nn_gpu_attend_back *a);
    void (*norm)(nn_gpu *g, const nn_gpu_norm *a);
    void (*norm_back)(nn_gpu *g, const nn_gpu_norm *a); /* writes dx, and partial gradients of gain and bias in work */
    void (*norm_sums)(nn_gpu *g, const nn_gpu_norm *a); /* adds these partial gradients to grad */
    void (*pool)(nn_gpu *g, const nn_gpu_pool *a);
    void (*pool_back)(nn_gpu *g, const nn_gpu_pool *a);
    void (*bias)(nn_gpu *g, const nn_gpu_bias *a);
    void (*bias_back)(nn_gpu *g, const nn_gpu_bias *a);
    void (*loss)(nn_gpu *g, const nn_gpu_loss *a);
    void (*add)(nn_gpu *g, const nn_gpu_add *a);
    void (*squares)(nn_gpu *g, const nn_gpu_optimise *a);
    void (*decide)(nn_gpu *g, const nn_gpu_optimise *a);
    void (*update)(nn_gpu *g, const nn_gpu_optimise *a);
} nn_gpu_ops;

/* The only symbol that the plugin exports. */
const nn_gpu_ops *molsieve_gpu_ops(void);

#ifdef __cplusplus
}
#endif
#endif
