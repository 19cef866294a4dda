/* models/cuda/plan.h - a model laid out for the cuda engine.
 *
 * Parameters stay on the device as the model has them; everything here says where
 * in them a number is. Only the last radial layers are kept in another shape: per
 * convolution a folded matrix [32][size] for the forward products and its turned
 * form for the way back (ops.h; op 4 of docs/model.md 8). */
#ifndef NN_CUDA_PLAN_H
#define NN_CUDA_PLAN_H

#include "models/cuda/ops.h"
#include "models/frame.h"
#include "pipeline/base/arena.h"

/* Columns skip .. skip+n_in-1 of an [n_out][ld] matrix. */
typedef struct nn_cuda_linear {
    int32_t n_in, n_out, ld; /* n_in 0: absent                                   */
    int64_t w;
} nn_cuda_linear;

/* Columns of a table that belong to one radial network: `count` of them, `inner`
 * side by side, then outer_step further. */
typedef struct nn_cuda_region {
    int32_t net, count, inner;
    int64_t at, outer_step;
} nn_cuda_region;

typedef struct nn_cuda_conv {
    const nn_conv *def;
    nn_gpu_nodes in, out;
    nn_gpu_edges in_edges, out_edges, value, key; /* value, key: parts of out_edges */
    int32_t net;                  /* number of its first radial network          */
    int32_t n_paths, tile, n_tiles; /* of folding: its first                    */
    int64_t at[NN_GPU_DEGREES], size;    /* of a table                           */
    bool padded;                  /* some of it is filling                       */
    int64_t fold[2];              /* places of the folded matrices: as is, turned */
    int32_t n_regions;
    nn_cuda_region *region[2];
    nn_cuda_linear self[NN_GPU_DEGREES];
} nn_cuda_conv;

typedef struct nn_cuda_module {
    nn_module_kind kind;
    int32_t net;                  /* number of radial networks before            */
    int64_t param;                /* where its parameters begin, up to the next module's */
    nn_gpu_nodes in, out, z;      /* z: value channels                           */
    nn_gpu_nodes q;               /* key channels                                */
    nn_cuda_conv conv;
    float scale;
    int32_t heads, channels;      /* channels of all degrees, norm               */
    nn_cuda_linear query[NN_GPU_DEGREES], project_z[NN_GPU_DEGREES], project_x[NN_GPU_DEGREES];
    int64_t gain[NN_GPU_DEGREES], bias[NN_GPU_DEGREES];
} nn_cuda_module;

typedef struct nn_cuda_plan {
    const nn_se3 *model;
    int32_t n_modules, l_max, n_nets, n_paths, n_tiles, n_scalars;
    nn_cuda_module *module;
    nn_gpu_net *net;              /* [n_nets]                                    */
    nn_gpu_path *path;            /* [n_paths]                                   */
    nn_gpu_fold_tile *tile;       /* [n_tiles]                                   */
    nn_gpu_nodes input;
    nn_cuda_linear head[2];
    int64_t head_bias[2];
    size_t fold_size;             /* floats of all folded matrices               */
    int64_t most_table;           /* floats of the largest table of one node     */
    int32_t most_node, most_edge; /* widest node and edge vectors                */
    int32_t most_heads, most_channels;
    size_t most_split;            /* floats of a part of the gradients of all linear layers of a module */
} nn_cuda_plan;

pl_code nn_cuda_plan_make(nn_cuda_plan **out, const nn_se3 *model, pl_arena *mem, pl_error *err);

#endif
