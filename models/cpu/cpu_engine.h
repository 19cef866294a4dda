/* models/cpu/cpu_engine.h - internal to the cpu engine: its state and the functions that models/cpu shares.
 *
 * Work is cut in pieces that do not depend on the number of threads. In the
 * backward pass each of the NN_PIECES pieces has its own gradient arrays, which
 * are added in the order of the pieces. Node features are [node][layout size].
 *
 * Stored for the backward pass: the output of every module and, per attention
 * block, the values and keys of every edge. Everything else is computed again. With
 * `recompute` only the outputs of attention blocks are stored, and folded weights exist
 * for one convolution at a time. */
#ifndef NN_CPU_ENGINE_H
#define NN_CPU_ENGINE_H

#include "models/cpu/cpu_batch.h"
#include "models/cpu/cpu_layout.h"
#include "models/cpu/radial_cells.h"
#include "models/cpu/table_cache.h"
#include "models/engine/engine.h"
#include "models/threads/pool.h"

enum {
    NN_TILE = 96, /* pairs of a tile; a multiple of NN_ROWS and 4     */
    NN_PIECES = 8,
    NN_CHUNK = 16, /* nodes computed together                           */
    NN_CHUNK_ROWS = NN_CHUNK * (2 * NN_MAX_DEGREE + 1)
};

/* Scratch of one thread. */
typedef struct nn_cpu_scratch {
    float *x, *y, *gy, *gx;    /* [2 NN_TILE][edge_max]; [NN_TILE_ROWS][edge_ld] */
    float *r;                  /* [NN_TILE][r_cols]                          */
    float *h, *packed;         /* [NN_TILE][NN_H]                            */
    float *dh;                 /* [NN_TILE][NN_H][NN_LANE]; bf16: [NN_TILE][NN_H] */
    nn_bf16 *h16, *h_turned16; /* [2 parts][NN_TILE][NN_H], [2][NN_H][NN_TILE] */
    nn_bf16 *r16;              /* [2][NN_TILE][r_cols]                       */
    float *q, *z, *dz, *dq;    /* [NN_CHUNK][size_max]                      */
    float *alpha, *dalpha;     /* [max_in][pad of value channels]           */
    nn_buf buf;
} nn_cpu_scratch;

/* Arrays of the convolution with radial nodes. */
typedef struct nn_cpu_nodes {
    float *w, *w_packed;   /* last radial layers of all tables, in panels; packed (= w if panels need no packing) */
    float *h;              /* [groups][NN_CHUNK_SUMS][NN_H]              */
    float *table, *packed; /* [nodes of a chunk][ld], [..][packed_ld]    */
    float *dtable;         /* [sums of a chunk][ld]                      */
    float *dw;             /* of one convolution, as w                   */
    float *dh;             /* [runs of columns][NN_CHUNK_SUMS][NN_H]     */
    size_t ld, packed_ld;
    int32_t *kept; /* [nodes of the batch] number in the cache `keep`, or -1; NULL: a backward pass follows */
    nn_cpu_table_cache keep;
    nn_buf buf;
} nn_cpu_nodes;

/* What differs between the radial modes: one row for each nn_radial, chosen when an engine is opened. */
typedef struct nn_cpu_mode {
    bool tables; /* the weights of convolutions are tables of radial nodes, in float32; else folded slabs,
                               * in the precision of the configuration      */
    size_t (*edge_floats)(const nn_cpu_plan *p);                              /* of one array of a tile's edges */
    bool (*memory)(nn_engine *e, bool keep);                                  /* of a batch; false: refused  */
    void (*weights)(nn_engine *e, const nn_cpu_conv *c, const float *params); /* of one convolution */
    void (*run)(nn_engine *e, const nn_cpu_conv *c, const float *x, float *y);
    void (*back)(nn_engine *e, const nn_cpu_conv *c, const float *x, bool first, float *grad);
} nn_cpu_mode;
extern const nn_cpu_mode nn_cpu_modes[]; /* [nn_radial]; cpu_engine.c */

struct nn_engine {
    nn_engine_conf conf;
    const nn_cpu_mode *mode; /* of conf.radial                             */
    const nn_cpu_plan *plan;
    const nn_cpu_kernels *kernels;
    const nn_cpu_products *of_radial, *of_contract;
    pl_arena *mem;
    nn_pool *pool;
    nn_frame_rule rule;
    nn_cpu_prep prep;
    nn_cpu_cells cells;
    nn_cpu_nodes nodes;
    nn_cpu_scratch *scratch;   /* [threads]                                  */
    const float *params;       /* borrowed from the last set_params          */
    const nn_cpu_conv *folded; /* recompute: the convolution whose weights are in fold, back, nodes.w */
    const nn_cpu_module *sent; /* recompute: the module whose values and keys are in y */
    float *small, *turned, *fold, *back;
    nn_bf16 *small16;                                /* matrices of small and turned, for bf16     */
    nn_bf16 *fold16, *back16, *back_turned16;        /* last radial layers, for bf16 */
    nn_precision precision_radial, precision_linear; /* of last radial layers, of linear layers of nodes */
    nn_buf weights, acts, edges, grads, pieces, pooled;
    float *input;                             /* [n_nodes][input.size]                      */
    float **act;                              /* [n_modules] outputs                        */
    float **y;                                /* [n_modules] values and keys of the edges   */
    float *dedge;                             /* [n_edges][edge_max]: of y, then of the gathered x */
    float *dnode[2];                          /* [n_nodes][size_max]                       */
    float *dsmall, *dback;                    /* [NN_PIECES][n_small], [NN_PIECES][back_max] */
    float *pool_x, *pool_h, *pool_y, *pool_d; /* [n_graphs][wide]           */
    int32_t *pool_from;                       /* [n_graphs][wide] node of the maximum       */
    const nn_batch *batch;                    /* of the current call                         */
    nn_op_clock *clock;                       /* borrowed; NULL: operations are not timed */
    int32_t n_nodes;                          /* of the last forward                         */
    bool kept;                                /* the last forward stored what backward needs */
};

/* The first of `count` items that belongs to piece i of n; the same for any number of threads. */
static inline int32_t nn_piece_at(int32_t count, int i, int n) { return (int32_t)((int64_t)count * i / n); }

/* cpu_engine.c: makes the folded weights of a convolution, unless they are there already. */
void nn_cpu_weights(nn_engine *e, const nn_cpu_conv *c);

/* conv.c: y [n_edges][c->out.size] from x [n_nodes][c->in.size]. */
void nn_cpu_conv_run(nn_engine *e, const nn_cpu_conv *c, const float *x, float *y);
/* On entry dedge is the gradient of y; on return, unless `first`, that of the gathered x. Adds to grad. */
void nn_cpu_conv_back(nn_engine *e, const nn_cpu_conv *c, const float *x, bool first, float *grad);

/* The same with exact radial networks; the weights are there. */
void nn_cpu_exact_run(nn_engine *e, const nn_cpu_conv *c, const float *x, float *y);
void nn_cpu_exact_back(nn_engine *e, const nn_cpu_conv *c, const float *x, bool first, float *grad);

/* radial16.c: the last radial layer in bf16, if `precision_radial` asks for it. In this order: converts a slab's weights;
 * converts the hidden vectors of a tile; R = h W; dh and dW from the gradient of R. */
void nn_cpu_radial16_load(const nn_engine *e, const nn_cpu_conv *c, int slab);
void nn_cpu_radial16_hidden(const nn_engine *e, nn_cpu_scratch *s, int32_t n_rows);
void nn_cpu_radial16_run(const nn_engine *e, const nn_cpu_scratch *s, const nn_cpu_radial *g, bool back);
void nn_cpu_radial16_back(const nn_engine *e, const nn_cpu_scratch *s, const nn_cpu_radial *g, const nn_cpu_slab *slab);
/* A hidden vector, and its gradient, from the scalars of an edge or a node: its features and the distance. */
void nn_cpu_hidden_run(const nn_engine *e, const nn_cpu_hidden *w, const float *s, float *h);
void nn_cpu_hidden_back(const nn_engine *e, const nn_cpu_hidden *w, const float *s, const float *dh, const nn_cpu_hidden *grad);
/* The view of a convolution's radial network in `small`, an array of parameters or gradients. */
nn_cpu_hidden nn_cpu_net_of(const nn_engine *e, const nn_cpu_conv *c, int group, float *small);

/* radial_grid.c: the same as conv.c, with radial nodes. Floats of all packed W; params -> W of one convolution. */
size_t nn_cpu_nodes_places(nn_engine *e, nn_cpu_plan *p);
void nn_cpu_nodes_weights(nn_engine *e, const nn_cpu_conv *c, const float *params);
void nn_cpu_nodes_find(nn_engine *e); /* looks up the batch's nodes in the cache */
void nn_cpu_nodes_run(nn_engine *e, const nn_cpu_conv *c, const float *x, float *y);
double nn_cpu_nodes_error(nn_engine *e);
void nn_cpu_nodes_back(nn_engine *e, const nn_cpu_conv *c, const float *x, bool first, float *grad);

/* node_layers.c */
typedef struct nn_cpu_step {
    nn_engine *e;
    const nn_batch *in;
    const nn_cpu_module *m;
    const float *x;            /* input of the module                        */
    float *y, *edge;           /* its output; values and keys of the edges   */
    const float *dy;           /* gradient of the output                     */
    float *dx;                 /* gradient of the input; NULL for the first  */
    const nn_cpu_module *norm; /* attention: the norm after it, or NULL      */
    float *normed;             /* and its output                             */
} nn_cpu_step;

void nn_cpu_attention(nn_cpu_step *s); /* and the norm after it */
void nn_cpu_sum_layer(nn_cpu_step *s); /* sum over edges, self interaction */
void nn_cpu_attention_back(nn_cpu_step *s, float *grad);
void nn_cpu_norm_again(nn_cpu_step *s);
void nn_cpu_norm_back(nn_cpu_step *s);
void nn_cpu_sum_back(nn_cpu_step *s, float *grad);

/* linear.c: the rows of degree d of n_nodes nodes (op 10 of docs/model.md 8). from, to: the vectors of the first node. */
typedef struct nn_cpu_rows {
    const float *from;
    float *to;
    const nn_cpu_layout *in, *out;
    int32_t n_nodes;
} nn_cpu_rows;

void nn_cpu_linear_run(const nn_engine *e, const nn_cpu_linear *l, int d, const nn_cpu_rows *r, bool add);
void nn_cpu_linear_back(const nn_engine *e, const nn_cpu_linear *l, int d, const nn_cpu_rows *r, bool add);
/* dw += in^T out, into the piece's small gradients. */
void nn_cpu_linear_grad(const nn_engine *e, const nn_cpu_linear *l, int d, const nn_cpu_rows *r, float *dsmall);

/* linear16.c: the same in bf16, if `linear` asks for it. shape: inputs, outputs. */
void nn_cpu_linear16_load(nn_engine *e);
void nn_cpu_linear16_run(const nn_engine *e, const nn_bf16 *w, const int32_t shape[2], int d, const nn_cpu_rows *r, bool add);
void nn_cpu_linear16_grad(const nn_engine *e, const nn_cpu_linear *l, int d, const nn_cpu_rows *r, float *dw);

/* head.c: pooling and the last two linear layers. */
void nn_cpu_head(nn_engine *e, const nn_batch *in, const float *x, float *y);
void nn_cpu_head_back(nn_engine *e, const nn_batch *in, const float *dy, float *dx);
/* The noise head, from x, the input of the last module: v [n_nodes][3]. Back: adds to dx and dsmall. */
void nn_cpu_noise(const nn_engine *e, int32_t n_nodes, const float *x, float (*v)[3]);
void nn_cpu_noise_back(nn_engine *e, int32_t n_nodes, const float *x, const float (*dv)[3], float *dx);

#endif
