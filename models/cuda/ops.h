/* models/cuda/ops.h - what the cuda engine asks of a device: a table of operations.
 *
 * The engine (plan, prep, engine: C) runs in the program; the operations live in
 * libmolsieve_cuda.so, opened at run time. The same kernel text is also compiled
 * as C++ against tests/emulator, where every thread of a block is a fiber: that
 * library has the same table and is tested without a GPU. Op numbers are those of
 * docs/model.md 8.
 *
 * Rules: all work of one nn_gpu is in the order of the calls, except upload_beside and lanes;
 * calls return before the work is done, except download. Pointers are device addresses unless called
 * host. No operation adds floats in an order that chance decides: equal calls give
 * equal bytes. Self-contained: no other header of the project is needed.
 *
 * Layouts. Nodes: channel k of component c of degree l at at[l] + c*ch[l] + k.
 * Edges, in the frame of their pair (models/frame.h), by order m, plus then minus:
 * channel k of component l+m of degree l at at[l][l+m] + k; order m begins at
 * order[m] with half[m] channels of each sign (m = 0: once), degrees ascending. A
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
    NN_GPU_ABI = 11,
    NN_GPU_DEGREES = 5,      /* NN_DEGREES                                   */
    NN_GPU_FREQS = 9,        /* 2 NN_MAX_DEGREE + 1                          */
    NN_GPU_H = 32,           /* NN_RADIAL_HIDDEN: one hidden vector, one warp */
    NN_GPU_FRAME = 164,      /* NN_FRAME_ALL                                 */
    NN_GPU_TERMS = 40,
    NN_GPU_TILE = 64,        /* rows of one cell worked on together, at most */
    NN_GPU_FOLD = 8,         /* channels in and out of a fold's tile          */
    NN_GPU_PAD = 8,          /* rows and columns of tables: 16 bytes of 16-bit numbers */
    NN_GPU_GROUP = 16,       /* products in one launch, at most               */
    NN_GPU_OUTER = 256,      /* rows of a cell that one block sums            */
    NN_GPU_PARTS = 256,      /* of a sum over nodes                           */
    NN_GPU_FENCE = 64,       /* bytes between two arrays that nobody touches */
    NN_GPU_MARKS = 24,       /* places in the order of work that can be waited for */
    NN_GPU_LANES = 5,        /* of work that goes side by side                */
    NN_GPU_SEGMENTS = 11,    /* of a step, each a graph                       */
    NN_GPU_SQUARES = 4096,   /* numbers whose squares are summed together    */
    NN_GPU_SCALE_MOST = 1 << 24 /* NN_LOSS_SCALE_MOST                        */
};

/* Of the factors of products; sums are float32. */
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

/* Element i of an axis is i / inner * outer_step + i % inner * inner_step floats in. */
typedef struct nn_gpu_axis {
    int32_t inner;
    int64_t outer_step, inner_step;
} nn_gpu_axis;

/* c[m][n] (=, +=) sum over k of a[m][k] b[k][n]. splits > 1: k is cut in so many
 * parts, added in order; work is then [splits][m][n]. c_as: what c is kept as, without
 * splits and `add`: float32, float32 with the bits of tf32 alone, or 16-bit numbers. more: the next
 * one's sum over its k, of its a and b, is added to this one's; it has the same m, n and c, and no splits. */
typedef struct nn_gpu_gemm {
    int32_t m, n, k, splits;
    bool add, more;
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

typedef struct nn_gpu_frame_rule { /* nn_frame_rule: of every degree, terms of i = 0, then of 1, .. */
    int32_t n[NN_GPU_DEGREES + 1]; /* the last is padding */
    nn_gpu_term term[NN_GPU_DEGREES][NN_GPU_TERMS];
} nn_gpu_frame_rule;

/* Op 1. d[pair][2][size]: D_1..D_l_max along the pair's edge, then of its reverse. */
typedef struct nn_gpu_frames {
    int32_t n_pairs, l_max, size;
    const nn_gpu_frame_rule *rule;
    const float *vec;    /* [n_pairs][3], or NULL                       */
    const float *stored; /* [n_pairs][83] D_1..D_3 where vec is NULL    */
    float *d;
} nn_gpu_frames;

/* Where a radial network's numbers are in the parameters (docs/model.md 3.1). */
typedef struct nn_gpu_net {
    int64_t w0, b0, g0, c0, w1, b1, g1, c1; /* g, c: LayerNorm gain and bias     */
    int64_t ln;                             /* 1: with LayerNorm                 */
} nn_gpu_net;

/* Op 3, all networks of a model at once. back: adds to grad from dh. */
typedef struct nn_gpu_hidden {
    int32_t n_nets, n_nodes, n_in;
    const nn_gpu_net *net;  /* [n_nets]                                          */
    const float *params;
    const float *scalar;    /* [n_nodes][n_in]                                   */
    float *h;               /* [n_nets][n_nodes][32]                             */
    const float *dh;        /* the same                                          */
    float *work;            /* [n_nets][n_nodes][7][32], backward                */
    float *grad;
} nn_gpu_hidden;

/* A path (d_in, d_out) of a convolution's last radial layers; `w` is the place of its group's matrix in the
 * parameters, row (o*c_in + i)*group_freqs + f0 + f. Number q (a_m: q = m; b_m: q = min + m) of channels i -> o is
 * column at[0][q] + i*step[0][q] + o of the table [hidden unit][size] that begins at table[0], and of the turned
 * one at[1][q] + o*step[1][q] + i. */
typedef struct nn_gpu_path {
    float coef[NN_GPU_FREQS][NN_GPU_FREQS + 3]; /* nn_frame_coef; rows, and all, of 16 bytes */
    int64_t w, size, table[2], at[2][NN_GPU_FREQS];
    int32_t n_freq, f0, group_freqs, c_in, c_out, step[2][NN_GPU_FREQS], pad;
} nn_gpu_path;

/* Channels i .. i + NN_GPU_FOLD - 1 in and o .. out of a path, as far as there are so many. */
typedef struct nn_gpu_fold_tile {
    int32_t path, i, o;
} nn_gpu_fold_tile;

/* Op 4. A table has, for every order m, matrix a [k[m]][n[m]] and (m > 0) matrix b
 * behind it; k counts channels in, n channels out (turned: the other way round). Rows
 * and columns of both are filled up to multiples of NN_GPU_PAD: nobody writes the
 * filling of `folded`, which is zero. fold: any tiles. unfold: tiles of one convolution, from a
 * table that is not turned, whose beginning is dfolded; adds to grad. */
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

/* y[row] = D^T x[node[row]], times weight[row][head of the channel] where given. */
typedef struct nn_gpu_turn {
    int32_t n_rows, frame_size, heads;
    const int32_t *node;    /* [n_rows]                                          */
    const int32_t *frame;   /* [n_rows]  2 pair + (1: against the pair's edge)   */
    const float *d;         /* [..][frame_size]                                  */
    const float *weight;    /* [n_rows][heads] or NULL                           */
    nn_gpu_nodes nodes;
    nn_gpu_edges edges;
    const float *x;
    float *y;
} nn_gpu_turn;

/* dot[row][head] = scale * sum over the head's channels of (D^T x[node[row]]) . y[row]. */
typedef struct nn_gpu_dot {
    nn_gpu_turn t;
    float scale;
    float *dot;
} nn_gpu_dot;

/* x[node] (=, +=) sum over its rows of weight * D y[row]; `count`: x[node] is first
 * multiplied by the number of its rows (self-interaction, docs/model.md 3.4). */
typedef struct nn_gpu_sum {
    nn_gpu_turn t;          /* node unused; weight or NULL                       */
    int32_t n_nodes;
    const int32_t *first;   /* [n_nodes+1]                                       */
    const int32_t *row;     /* rows of each node, in the order of summation      */
    bool add, count;
    float *to;
} nn_gpu_sum;

/* y[node] = x[node] times the number of its rows. */
typedef struct nn_gpu_scale {
    int32_t n_nodes, size;
    const int32_t *first;
    const float *x;
    float *y;
} nn_gpu_scale;

/* Rows first .. first + n - 1, all of one cell, whose nodes are node[0] and, where
 * there is interpolation, node[1] (else -1). */
typedef struct nn_gpu_tile {
    int32_t first, n, node[2];
} nn_gpu_tile;

/* A radial node's rows: of the cells where it is node[0], then where it is node[1]. */
typedef struct nn_gpu_span {
    int32_t first[2], end[2];
} nn_gpu_span;

/* Op 7. For every row and order: y+ = A x+ - sign B x-, y- = A x- + sign B x+, with
 * A, B = sum over the cell's nodes of phi * table. The table's matrices are [k][n] in
 * float32 for NN_GPU_FP32; for others [n][k], kept as nn_gpu_gemm.c_as has them: TF32,
 * BF16, FP16 as such, BF16X3 as float32.
 * outer: table gradients from x and y, [k][n] in float32. */
typedef struct nn_gpu_so2 {
    int32_t n_orders, n_tiles, x_size, y_size, most_n, most_k;
    int32_t k[NN_GPU_DEGREES], n[NN_GPU_DEGREES], x_at[NN_GPU_DEGREES], y_at[NN_GPU_DEGREES];
    nn_gpu_precision precision;
    int64_t table_size, table_at[NN_GPU_DEGREES];
    float sign;
    const nn_gpu_tile *tile;     /* [n_tiles]                                    */
    const nn_gpu_span *span;     /* [n_nodes], outer                             */
    const float *phi;            /* [rows][2]                                    */
    int32_t first_node, n_nodes; /* the table holds nodes first_node ..          */
    int32_t first_row, end_row;  /* outer: only rows in this range               */
    int32_t slots;               /* outer: times NN_GPU_OUTER, at least that many rows; table and work
                                  * are then multiples of 16 bytes               */
    const float *x;
    float *y;
    void *table;                 /* [n_nodes][table_size]                        */
    float *work;                 /* outer: [2 slots][table_size]                 */
} nn_gpu_so2;

/* Ops 6, 7, 8 in one: s with its x made from nodes (`x`, whose y is unused), and where
 * there is a logit, the part of every order in q . keys (`q`, whose y is s.y):
 * logit[order][row][head]. Not for NN_GPU_FP32. */
typedef struct nn_gpu_conv {
    nn_gpu_turn x, q;
    nn_gpu_so2 s;
    int32_t channels, key_channels; /* of the degree that has most               */
    float scale;
    float *logit;
} nn_gpu_conv;

/* Op 9. alpha = softmax over a node's rows of logits that are the sum of n_parts parts
 * [part][row][head], then `sum`, whose weight is alpha. One row has weight 1 exactly. */
typedef struct nn_gpu_attend {
    nn_gpu_sum sum;
    int32_t n_parts;
    const float *logit;
    float *alpha;
} nn_gpu_attend;

/* Back from dz, the gradient of the sum: dalpha = dz . values of the rows, then in its place
 * ds = alpha (dalpha - sum alpha dalpha) scale; gradients of q (dq: keys by ds), then of the
 * rows' values (dvalue: dz by alpha) and keys (dkey: q by ds), which may take the place of
 * values and keys. */
typedef struct nn_gpu_attend_back {
    nn_gpu_dot dalpha;
    nn_gpu_turn dvalue, dkey;
    nn_gpu_sum dq;
    const float *alpha;
    float scale;
} nn_gpu_attend_back;

/* ---- nodes and graphs (ops 11, 12, 13) ---- */

/* Op 11. gain[l], bias[l]: places in the parameters. back writes dx and
 * adds the gradients of bias and gain to grad. */
typedef struct nn_gpu_norm {
    int32_t n_nodes, channels;
    nn_gpu_nodes nodes;
    int64_t gain[NN_GPU_DEGREES], bias[NN_GPU_DEGREES];
    const float *params, *x, *dy;
    float *y, *dx;
    float *work, *grad;            /* work [2][NN_GPU_PARTS][channels]: bias, gain; degrees end to end */
} nn_gpu_norm;

typedef enum nn_gpu_pooling { NN_GPU_POOL_MAX, NN_GPU_POOL_MEAN, NN_GPU_POOL_SUM } nn_gpu_pooling;

/* Op 12 over degree 0. from: node of the maximum. An empty graph gives zeros. */
typedef struct nn_gpu_pool {
    int32_t n_graphs, channels, ld, kind;
    const int32_t *first;   /* [n_graphs+1]                                      */
    const float *x, *dy;    /* x [node][ld], dy [n_graphs][channels]             */
    float *y, *dx;
    int32_t *from;          /* [n_graphs][channels]                              */
} nn_gpu_pool;

/* y[row][col] += bias[col], then ReLU if asked; back: dy = 0 where y is not positive. */
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

/* What a step gives back. Sums over the measured numbers (nn_loss_sum), the norm of the
 * gradient before clipping and without the loss' scale; the scale of the next step; taken 0: something
 * was not finite, the parameters are as before. */
typedef struct nn_gpu_step_result {
    double loss, abs, square, norm;
    int64_t measured, taken;
    nn_gpu_loss_scale scale;
} nn_gpu_step_result;

/* y, t, dy [n]; t NaN: not measured. dy, times the scale, result->loss, abs, square, measured are
 * written. */
typedef struct nn_gpu_loss {
    int32_t n, kind;
    int64_t measured;        /* how many t are                                   */
    const float *y, *t;
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

/* The numbers of one step: nn_adamw_rule, and with decay, lr, fix1 those of nn_lamb_rule
 * (whose fix2 is fix). */
typedef struct nn_gpu_rule {
    float b1, b2, a1, a2, eps, keep, rate, fix, clip, average;
    float decay, lr, fix1;
    int32_t taken;
} nn_gpu_rule;

/* A piece of one tensor: at most NN_GPU_SQUARES numbers. */
typedef struct nn_gpu_piece {
    int64_t first;
    int32_t n, tensor;
} nn_gpu_piece;

typedef struct nn_gpu_squares { /* nn_lamb_squares, of a piece */
    double p, u;
} nn_gpu_squares;

/* LAMB knows tensors; AdamW has n_pieces 0. */
typedef struct nn_gpu_lamb {
    int32_t n_pieces;
    const nn_gpu_piece *piece;                       /* [n_pieces], tensor after tensor */
    const int32_t *tensor;                           /* [tensors+1] their first pieces  */
    nn_gpu_squares *squares;                         /* [n_pieces]                  */
} nn_gpu_lamb;

/* A step of the optimiser is three operations. squares: of g, in pieces. decide: from all pieces the norm of
 * g / scale, clipping, and whether the step is taken: loss and norm are finite, else nothing is changed.
 * update: AdamW or LAMB, and the moving average. squares and AdamW's update may be called for parts that
 * begin at a multiple of NN_GPU_SQUARES, with n and the arrays those of the part.
 * *step counts the steps taken. *scale becomes that of the next step (nn_loss_scale_next). result: loss, abs,
 * square as sums over the shards, measured as theirs, norm, taken. */
typedef struct nn_gpu_optimise {
    int64_t n;
    nn_gpu_lamb lamb;
    double beta1, beta2, eps, decay, lr, grad_clip, ema; /* grad_clip 0: none       */
    float *p, *m, *v, *average;                      /* [n]; average NULL: none     */
    const float *g;                                  /* [n]                         */
    double *part;                                    /* [n / NN_GPU_SQUARES + 1]    */
    int64_t *step;
    nn_gpu_loss_scale *scale;
    int64_t scale_after;                             /* good steps until it grows; 0: stays */
    nn_gpu_rule *rule;
    int32_t n_shards;
    const nn_gpu_step_result *shard;                 /* [n_shards] from nn_gpu_loss; may be result itself */
    nn_gpu_step_result *result;
} nn_gpu_optimise;

typedef struct nn_gpu_ops {
    int32_t abi, bytes;     /* NN_GPU_ABI, sizeof(nn_gpu_ops)                    */
    const char *name;       /* "cuda", "emulated"                                */

    int32_t (*count)(void);                    /* devices that are visible       */
    /* "0000:3b:00.0", or "" where the driver does not say. */
    void (*pci)(int32_t device, char *text, size_t n);
    /* Whether there is such a device; `text` (host) says in one line what was found
     * or why not. Takes nothing from the device. */
    bool (*find)(int32_t device, char *text, size_t n);
    /* That device with streams of its own, or NULL and why not. yields: others' work comes first. */
    nn_gpu *(*open)(int32_t device, bool yields, char *text, size_t n);
    void (*close)(nn_gpu *g);                  /* NULL is fine                   */
    const char *(*status)(nn_gpu *g);          /* waits; NULL, or the first error */
    void (*memory)(nn_gpu *g, size_t *left, size_t *all); /* bytes                */

    void *(*alloc)(nn_gpu *g, size_t bytes);   /* NULL when refused              */
    void (*free)(nn_gpu *g, void *p);
    void *(*host_alloc)(nn_gpu *g, size_t bytes); /* host memory, pinned         */
    void (*host_free)(nn_gpu *g, void *p);
    /* host stays as it is until the work is waited for. */
    void (*upload)(nn_gpu *g, void *to, const void *host, size_t bytes);
    void (*download)(nn_gpu *g, void *host, const void *from, size_t bytes); /* waits */
    void (*zero)(nn_gpu *g, void *p, size_t bytes); /* a multiple of 4, of p too */
    void (*fence)(nn_gpu *g, void *p, bool on); /* NN_GPU_FENCE bytes            */
    bool (*intact)(nn_gpu *g, void *p);        /* waits; nobody wrote the fence  */

    /* Beside the work called before, which must have nothing to do with `to`; the work called
     * after waits for it. host is pinned and stays as it is until then. */
    void (*upload_beside)(nn_gpu *g, void *to, const void *host, size_t bytes);
    /* In the order of the calls, without waiting; host is pinned. */
    void (*download_later)(nn_gpu *g, void *host, const void *from, size_t bytes);
    void (*mark)(nn_gpu *g, int32_t i);        /* mark i is here: below NN_GPU_MARKS */
    void (*follow)(nn_gpu *g, nn_gpu *other, int32_t i); /* work called now waits for other's mark i */
    /* Operations, zero, mark and follow that are called from now on belong to lane i: they are in the order of their calls,
     * beside those of other lanes, and where one needs another's it follows a mark (follow(g, g, i)). All else is
     * called in lane 0, which is there at first and follows the others before it is waited for or a graph ends. */
    void (*lane)(nn_gpu *g, int32_t i);
    const char *(*wait)(nn_gpu *g, int32_t i); /* until work before mark i is done; as status */
    /* What is called between begin and run is captured and then runs as one graph. Between them
     * only operations, zero and download_later. segment, below NN_GPU_SEGMENTS: those of one
     * number are alike. */
    void (*graph_begin)(nn_gpu *g);
    void (*graph_run)(nn_gpu *g, int32_t segment);

    /* A stream (cudaStream_t) for work of others that comes after all that was called so far. */
    void *(*fork)(nn_gpu *g);
    void (*join)(nn_gpu *g);                   /* what is called from now on comes after theirs */
    /* From now on whatever waits asks go_on while it does, with the seconds waited; after a no
     * nothing waits any more and memory is never freed. NULL: no watch. */
    void (*watch)(nn_gpu *g, bool (*go_on)(void *ctx, double waited), void *ctx);

    void (*gemm)(nn_gpu *g, const nn_gpu_gemm *a, int32_t n); /* of each other independent */
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
    bool (*so2)(nn_gpu *g, const nn_gpu_so2 *a); /* false: no room for such a tile in this precision */
    void (*so2_outer)(nn_gpu *g, const nn_gpu_so2 *a);
    bool (*conv)(nn_gpu *g, const nn_gpu_conv *a); /* false, and nothing done: no room, as above; or fp32 */
    void (*attend)(nn_gpu *g, const nn_gpu_attend *a);
    void (*attend_back)(nn_gpu *g, const nn_gpu_attend_back *a);
    void (*norm)(nn_gpu *g, const nn_gpu_norm *a);
    void (*norm_back)(nn_gpu *g, const nn_gpu_norm *a); /* dx; parts of the gradients of gain and bias in work, */
    void (*norm_sums)(nn_gpu *g, const nn_gpu_norm *a); /* which are added to grad */
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

/* The one symbol of the plugin. */
const nn_gpu_ops *molsieve_gpu_ops(void);

#ifdef __cplusplus
}
#endif
#endif
