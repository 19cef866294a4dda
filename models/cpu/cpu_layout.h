/* models/cpu/cpu_layout.h - the layout of a model's parameters and features in the cpu engine.
 *
 * Small parameters (all except the last radial layers) are in one array `small`,
 * matrices as [in][out padded]. nn_cpu_map relates this array to the model's parameters.
 * Gradients have the same layout, so one map serves both directions. Matrices that the
 * backward pass needs transposed are also in a second array (`turned`).
 *
 * The last radial layer of every convolution is folded (op 4 of docs/model.md 8): the
 * fixed matrix of nn_frame_coef takes frequencies J to orders m of the edge frame
 * (docs/performance.md 2.1). It is stored twice, in panels of NN_PANEL columns: `slab` with
 * columns [c_in][a, b][c_out] for the forward product, and `back` with columns
 * [c_out][a, -b][c_in] for the transposed product. Gradients have the layout of `back`;
 * unfolding takes them to the model's own basis. With natural parity all b are zero and
 * left out. */
#ifndef NN_CPU_LAYOUT_H
#define NN_CPU_LAYOUT_H

#include "models/cpu/table.h"
#include "models/network/frame.h"
#include "pipeline/base/arena.h"

/* small[at + r*ld + c] is params[param + r*row_step + c*col_step]. turned >= 0: the offset
 * of the transposed matrix [cols][turned_ld] in the array `turned`. */
typedef struct nn_cpu_map {
    size_t at, param;
    int32_t rows, cols, ld, row_step, col_step;
    int64_t turned;
    int32_t turned_ld;
    size_t half, half_turned; /* matrices only: as in nn_cpu_linear */
} nn_cpu_map;

typedef struct nn_cpu_linear {
    int32_t n_in, n_out, in_pad, out_pad; /* n_in 0: absent */
    size_t w;                             /* offset of [n_in][out_pad] in small  */
    size_t turned;                        /* offset of [n_out][in_pad] in turned */
    size_t half, half_turned;             /* offsets of both, packed for bf16 products, with room for two parts */
} nn_cpu_linear;

enum { NN_CPU_FREQS = 2 * NN_MAX_DEGREE + 1 };

/* The matrices a and b (or only a) of one path and one order m. */
typedef struct nn_cpu_slab {
    int32_t group, path, m, n_matrices, n_in, n_out, n_panels, step; /* step: inputs computed together */
    int32_t x[2], y[2];                                              /* first float of components +m, -m in an edge vector */
    size_t at;                                                       /* first float of its panels  */
    const double (*coef)[NN_CPU_FREQS];                              /* of the path: nn_frame_coef, [q][f] */
} nn_cpu_slab;

typedef struct nn_cpu_net { /* offsets in small; wt1: in turned */
    size_t w0, b0, g0, c0, w1, b1, g1, c1, wt1;
} nn_cpu_net;

typedef struct nn_cpu_conv {
    const nn_conv *def;
    nn_cpu_layout in, out;
    int32_t n_slabs;
    nn_cpu_slab *slab, *back;
    nn_cpu_net *net;           /* [n_groups]                 */
    size_t fold_at, fold_size; /* first float and floats of its slabs in the fold array */
    size_t back_at, back_size;
    int32_t r_cols;          /* columns of the widest block of R */
    nn_cpu_edge_layout x, y; /* edge vectors of in and out, with the orders that both have */
    nn_cpu_table table, turned;
    int32_t number;                 /* index of the module                  */
    size_t kept_at;                 /* first float of `table` in a node's cached tables (table_cache.h) */
    nn_cpu_linear self[NN_DEGREES]; /* self-interaction, docs/model.md 3.4  */
} nn_cpu_conv;

typedef struct nn_cpu_module {
    nn_module_kind kind;
    nn_cpu_layout in, out;
    nn_cpu_conv conv; /* attention, conv            */
    nn_cpu_layout z;  /* attention: value channels  */
    float scale;      /* attention: 1 / divisor of the logits */
    int32_t heads;
    nn_cpu_linear query[NN_DEGREES], project_z[NN_DEGREES], project_x[NN_DEGREES];
    size_t gain[NN_DEGREES], bias[NN_DEGREES]; /* norm                  */
    bool gate;                                 /* norm: a gate          */
} nn_cpu_module;

typedef struct nn_cpu_plan {
    const nn_se3 *model;
    int32_t n_modules, n_maps, l_max;
    nn_cpu_module *module;
    nn_cpu_map *map;
    size_t n_small, n_turned, n_half, back_max;
    size_t n_fold, n_back;        /* floats of all convolutions; if shared, of the largest */
    size_t n_table, table_max;    /* floats of W of all tables (if shared, of the largest); columns of the largest */
    size_t packed_max;            /* floats of the largest packed table                */
    int32_t runs_max, groups_max; /* maximum of a convolution                          */
    nn_cpu_layout input;
    nn_cpu_linear head[2];
    size_t head_bias[2];
    size_t noise; /* offset of denoise.weight in small, if the model has it */
    int32_t size_max, edge_max, edge_ld,
        r_cols; /* floats of the widest node and edge vectors, edge vector in a frame, block of R */
} nn_cpu_plan;

/* Makes the plan in mem. shared: folded weights have room for one convolution only (nn_engine_conf.recompute).
 * ECONFIG: a single layer, not a whole model. ENOMEM. */
pl_code nn_cpu_plan_make(nn_cpu_plan **out, const nn_se3 *model, bool shared, pl_arena *mem, pl_error *err);

/* Lays out the tables of a convolution; its edge layouts x and y must be set. false: no memory. */
bool nn_cpu_table_plan(nn_cpu_conv *c, pl_arena *mem);

/* The padded channel of channel o of degree d of a convolution's output. */
int32_t nn_cpu_out_channel(const nn_cpu_layout *out, int d, int32_t o);

/* Folds the slab slab_first and the others of its path: params -> fold, back. Unfold is the transpose: the gradient
 * of this convolution's part of back is ADDED to grad. */
void nn_cpu_fold(const nn_cpu_conv *c, int slab_first, const float *params, const nn_se3 *model, float *fold, float *back);
void nn_cpu_unfold(const nn_cpu_conv *c, int slab_first, const float *dback, const nn_se3 *model, float *grad);

/* The same for radial nodes: params -> W of both tables w. Unfold: the gradient of W of `table` (of this
 * convolution alone) is ADDED to grad. */
void nn_cpu_table_fold(const nn_cpu_conv *c, int slab_first, const float *params, const nn_se3 *model, float *w);
void nn_cpu_table_unfold(const nn_cpu_conv *c, int slab_first, const float *dw, const nn_se3 *model, float *grad);

void nn_cpu_small_load(const nn_cpu_plan *p, const float *params, float *small, float *turned); /* params -> small, turned */
void nn_cpu_small_store(const nn_cpu_plan *p, const float *dsmall, float *grad);                /* adds */

#endif
