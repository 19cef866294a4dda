/* models/network/se3.h - the SE(3)-Transformer: settings, layers and parameters (docs/model.md).
 *
 * F. B. Fuchs, D. E. Worrall, V. Fischer, M. Welling, SE(3)-Transformers,
 * NeurIPS 2020, in the form of NVIDIA's SE3Transformer (pooled model), whose
 * parameter names and shapes are kept so that its weights load.
 *
 * A model is a list of modules (attention block, norm, final convolution, head)
 * over one flat array of parameters. This file describes them; models/ref
 * and models/cpu compute them. All parameters are float32 in the file and in
 * the optimiser; ref can also run in double. */
#ifndef NN_SE3_H
#define NN_SE3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/network/radial.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

enum { NN_MAX_DEGREE = 4, NN_DEGREES = NN_MAX_DEGREE + 1, NN_RADIAL_HIDDEN = 32 };

typedef enum nn_pooling { NN_POOL_MAX, NN_POOL_MEAN, NN_POOL_SUM } nn_pooling;
typedef enum nn_fusion { NN_FUSE_NONE, NN_FUSE_PARTIAL, NN_FUSE_FULL } nn_fusion;

/* Behaviour under reflection. BOTH: all couplings |l_in - l_out| <= J <= l_in + l_out, as published; mirror
 * images get different outputs. NATURAL: features of degree l have parity (-1)^l, so only couplings with
 * l_in + l_out + J even exist; mirror images get the same outputs. */
typedef enum nn_parity { NN_PARITY_BOTH, NN_PARITY_NATURAL } nn_parity;

/* What follows an attention block: nothing, NormSE3 as published, or a gate (docs/model.md 5.1, 5.6). */
typedef enum nn_norms { NN_NORMS_NONE, NN_NORMS_SE3, NN_NORMS_GATE } nn_norms;

/* Channels of each degree; 0 = the degree is absent. */
typedef struct nn_fiber {
    int32_t ch[NN_DEGREES];
} nn_fiber;

typedef struct nn_se3_conf {
    int32_t layers;        /* attention blocks, 7                                     */
    int32_t degrees;       /* degrees 0..degrees-1, 4                                 */
    int32_t channels;      /* per degree, 32                                          */
    int32_t heads;         /* 8; divides channels / channels_div                      */
    int32_t channels_div;  /* 2; values and keys have channels / channels_div         */
    int32_t norm;          /* nn_norms: after each attention block                    */
    bool layer_norm;       /* LayerNorm inside the radial networks                    */
    int32_t pooling;       /* nn_pooling                                              */
    int32_t fusion;        /* nn_fusion wanted; the level of each convolution follows */
    int32_t node_features; /* scalars per node                                        */
    int32_t edge_features; /* scalars per edge without the distance                   */
    int32_t outputs;       /* numbers per molecule                                    */
    int32_t parity;        /* nn_parity                                               */
    nn_radial_conf radial; /* what radial networks read of a distance; the envelope   */
    bool denoise;          /* a head that predicts a vector of each atom, for training alone: no model file has it */
} nn_se3_conf;

/* The network that NVIDIA published for QM9, 9.3 million parameters, with one output. The caller sets node_features and edge_features. */
nn_se3_conf nn_se3_published(void);

/* ECONFIG: the text names the invalid setting. */
pl_code nn_se3_check(const nn_se3_conf *conf, pl_error *err);

typedef struct nn_group nn_group;

/* One tensor of the parameter list, row-major: floats at .. at+size-1 of the parameter array. */
typedef struct nn_param {
    const char *name; /* "transformer.graph_modules.2.project.weights.1" */
    int32_t n_dims, dims[2];
    size_t at, size;
    const nn_group *last_of; /* the radial network whose last layer it is, or NULL */
} nn_param;

/* A radial network serves one or more (degree in, degree out) pairs. Its last
 * layer has rows = sum over its paths of n_freq * c_out * c_in; in the file row
 * (o*c_in + c)*F + f with F the group's total frequencies (docs/model.md 3.1). A path
 * owns frequencies f0 .. f0+n_freq-1 of its group; J = |d_in-d_out| + j_step (f - f0). */
typedef struct nn_path {
    int32_t d_in, d_out, f0, n_freq;
    int32_t j_step; /* 1, or 2 with natural parity */
} nn_path;

struct nn_group {
    int32_t c_in, c_out, n_freq, n_paths; /* n_freq: of all paths                   */
    const nn_path *path;
    bool unit_00;                 /* basis of path 0->0 is 1, not 1/sqrt(4 pi): docs/model.md 3.3 */
    int32_t w0, b0, ln0_w, ln0_b; /* indices into nn_se3.param; -1: absent   */
    int32_t w1, b1, ln1_w, ln1_b, w2;
};

/* A tensor-field convolution in -> out as a list of radial groups (docs/model.md 3.3). */
typedef struct nn_conv {
    nn_fiber in, out, edge; /* edge: channels of degree > 0 edge features, else 0 */
    int32_t edge_scalars;   /* inputs of the radial networks, what stands for the distance included */
    int32_t level;          /* the nn_fusion that is used                         */
    bool by_input;          /* level PARTIAL: groups conv_in.{i}, not conv_out.{o} */
    int32_t n_groups;
    const nn_group *group;
    bool pool;                /* the messages are summed at dst                     */
    bool natural;             /* natural parity: +m and -m do not mix in the edge frame */
    int32_t self[NN_DEGREES]; /* index of to_kernel_self.{d} in param; -1: absent   */
} nn_conv;

typedef struct nn_attention {
    nn_conv conv; /* out: value channels first, then key channels  */
    nn_fiber in, out, value, key;
    int32_t heads;
    int32_t query[NN_DEGREES];   /* index of to_query.weights.{d} in param; -1: absent */
    int32_t project[NN_DEGREES]; /* index of project.weights.{d} in param           */
} nn_attention;

typedef struct nn_norm {
    nn_fiber fiber;
    bool grouped;                         /* one array of gains and biases for all degrees */
    bool gate;                            /* instead of NormSE3; grouped                */
    int32_t w[NN_DEGREES], b[NN_DEGREES]; /* indices into param; grouped: only [0], degree after degree */
} nn_norm;

typedef enum nn_module_kind { NN_ATTENTION, NN_NORM, NN_CONV } nn_module_kind;

typedef struct nn_module {
    nn_module_kind kind;
    union {
        nn_attention attention;
        nn_norm norm;
        nn_conv conv;
    } u;
} nn_module;

typedef struct nn_se3 {
    nn_se3_conf conf;
    int32_t n_modules, n_params;
    const nn_module *module; /* [n_modules]                                      */
    const nn_param *param;   /* [n_params], module after module                  */
    size_t n_floats;         /* floats of the parameter array                    */
    int32_t head[4];         /* indices of mlp.0.weight, mlp.0.bias, mlp.2.weight, mlp.2.bias in param */
    int32_t denoise; /* index of denoise.weight [1][channels], the last parameter, or -1; it reads degree 1 of what enters the
                                last module. The parameters before it are those of the network without it */
} nn_se3;

/* Plans the layers and parameters of a network; everything is in mem. ECONFIG as nn_se3_check; ENOMEM. */
pl_code nn_se3_plan(nn_se3 **out, const nn_se3_conf *conf, pl_arena *mem, pl_error *err);

/* Plans a single convolution, attention block or norm, for golden tests. Parameter
 * names have no prefix, head is all -1, conf is zero. */
typedef struct nn_layer_opts {
    nn_fusion wanted;
    bool layer_norm, pool, self_interaction;
    int32_t max_degree;
    nn_parity parity;
    nn_radial_conf radial;
    nn_fiber edge;               /* ch[0]: scalar edge features without the distance    */
    int32_t heads, channels_div; /* attention only                                 */
} nn_layer_opts;

pl_code nn_se3_plan_conv(nn_se3 **out, nn_fiber in, nn_fiber to, const nn_layer_opts *opts, pl_arena *mem, pl_error *err);
pl_code nn_se3_plan_attention(nn_se3 **out, nn_fiber in, nn_fiber to, const nn_layer_opts *opts, pl_arena *mem, pl_error *err);
pl_code nn_se3_plan_norm(nn_se3 **out, nn_fiber fiber, pl_arena *mem, pl_error *err);
pl_code nn_se3_plan_gate(nn_se3 **out, int32_t degrees, int32_t channels, pl_arena *mem, pl_error *err);

/* The index of the parameter with this name in model->param, or -1. */
int32_t nn_se3_find(const nn_se3 *model, const char *name);

/* Fills params [model->n_floats] with start values (docs/model.md 5.3) from the counter-based random
 * stream of `seed`: the same numbers on every machine. */
void nn_se3_init(const nn_se3 *model, float *params, uint64_t seed);

#endif
