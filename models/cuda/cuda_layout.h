/* models/cuda/cuda_layout.h - the layout of a model's parameters and features in the cuda engine.
 *
 * Parameters are on the device in the model's own order; the plan has offsets into them.
 * Only the last radial layers also have another form: per convolution a folded matrix
 * [32][size] for the forward products and a transposed one for the backward pass (ops.h;
 * op 4 of docs/model.md 8). */
#ifndef NN_CUDA_LAYOUT_H
#define NN_CUDA_LAYOUT_H

#include "models/cuda/device/ops.h"
#include "models/network/frame.h"
#include "pipeline/base/arena.h"

/* Columns of a matrix [n_out][ld]: n_in columns, the first at offset w in the parameters. */
typedef struct nn_cuda_linear {
    int32_t n_in, n_out, ld; /* n_in 0: absent                                   */
    int64_t w;
} nn_cuda_linear;

/* The columns of a table that belong to one radial network: `count` columns from `at` on, in runs of `inner`
 * adjacent columns that begin outer_step apart. */
typedef struct nn_cuda_region {
    int32_t net, count, inner;
    int64_t at, outer_step;
} nn_cuda_region;

typedef struct nn_cuda_conv {
    const nn_conv *def;
    nn_gpu_nodes in, out;
    nn_gpu_edges in_edges, out_edges, value, key; /* value, key: parts of out_edges */
    int32_t net;                                  /* index of its first radial network           */
    int32_t n_paths, tile, n_tiles;               /* tile: index of its first fold tile        */
    int64_t at[NN_GPU_DEGREES], size;             /* offset of order m in a table; floats of a table */
    bool padded;                                  /* the table contains padding                  */
    int64_t fold[2];                              /* offsets of the folded matrices: forward, transposed */
    int32_t n_regions;
    nn_cuda_region *region[2];
    nn_cuda_linear self[NN_GPU_DEGREES];
} nn_cuda_conv;

typedef struct nn_cuda_module {
    nn_module_kind kind;
    int32_t net;             /* number of radial networks in modules before */
    int64_t param;           /* first parameter; they end where the next module's begin */
    nn_gpu_nodes in, out, z; /* z: value channels                           */
    nn_gpu_nodes q;          /* key channels                                */
    nn_cuda_conv conv;
    float scale;             /* attention: 1 / divisor of the logits        */
    int32_t heads, channels; /* channels: norm, of all degrees together     */
    bool gate;               /* norm: a gate                                */
    nn_cuda_linear query[NN_GPU_DEGREES], project_z[NN_GPU_DEGREES], project_x[NN_GPU_DEGREES];
    int64_t gain[NN_GPU_DEGREES], bias[NN_GPU_DEGREES];
} nn_cuda_module;

typedef struct nn_cuda_plan {
    const nn_se3 *model;
    int32_t n_modules, l_max, n_nets, n_paths, n_tiles, n_scalars;
    nn_cuda_module *module;
    nn_gpu_net *net;        /* [n_nets]                                    */
    nn_gpu_path *path;      /* [n_paths]                                   */
    nn_gpu_fold_tile *tile; /* [n_tiles]                                   */
    nn_gpu_nodes input;
    nn_cuda_linear head[2];
    int64_t head_bias[2];
    size_t fold_size;           /* floats of all folded matrices               */
    int64_t max_table;          /* floats of the largest table of one node     */
    int32_t max_node, max_edge; /* widest node and edge vectors                */
    int32_t max_heads, max_channels;
    size_t max_split; /* floats of a part of the gradients of all linear layers of a module */
} nn_cuda_plan;

/* Makes the plan in mem. ECONFIG: the engine does not support the model. ENOMEM. */
pl_code nn_cuda_plan_make(nn_cuda_plan **out, const nn_se3 *model, pl_arena *mem, pl_error *err);

#endif
