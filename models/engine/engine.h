/* models/engine/engine.h - the interface of the engines that compute a model: ref, cpu and cuda.
 *
 * An engine owns its workspace and grows it as needed; after the largest batch it
 * allocates nothing in a step. Forward overwrites its outputs, backward adds to gradients.
 * Results do not depend on the number of threads: molecules and reductions are
 * cut in fixed pieces and summed in a fixed order. One engine must not be used by two
 * threads at once. */
#ifndef NN_ENGINE_H
#define NN_ENGINE_H

#include "models/comm/collective.h"
#include "models/engine/op_clock.h"
#include "models/features/batch.h"
#include "models/network/se3.h"
#include "models/optim/adam.h"
#include "models/optim/loss.h"

typedef struct nn_engine nn_engine;

/* Where radial networks are evaluated: at the nodes of a fixed grid of distances with
 * linear interpolation of the hidden vector between two nodes (docs/performance.md 2.4),
 * or at the distance of every pair. In the order of NN_RADIAL_WORDS. */
typedef enum nn_radial { NN_RADIAL_NODES, NN_RADIAL_EXACT } nn_radial;
#define NN_RADIAL_WORDS "nodes|exact"

/* Number format of the factors of matrix products; sums and everything else are float32. BF16X3: each
 * factor is a sum of two bf16 numbers, three products, relative error about 4e-6. TF32 and FP16 exist
 * only on GPUs; `check` rejects a precision that the engine lacks. */
typedef enum nn_precision { NN_PREC_FP32, NN_PREC_BF16X3, NN_PREC_BF16, NN_PREC_TF32, NN_PREC_FP16 } nn_precision;

/* cuda: what computes matrix products of float32: its own kernels, NVIDIA's cuBLASLt, or for each kind of product
 * what the table in models/cuda/provider.c says. In the order of NN_PRODUCTS_WORDS. */
typedef enum nn_products { NN_PRODUCTS_AUTO, NN_PRODUCTS_OWN, NN_PRODUCTS_CUBLASLT } nn_products;
#define NN_PRODUCTS_WORDS "auto|own|cublaslt"

typedef struct nn_engine_conf {
    int threads;
    const char *kernels; /* cpu: name of the set (models/cpu/kernels/kernels.h); NULL: the best */
    nn_radial radial;
    double width;             /* Angstrom between two radial nodes              */
    nn_precision of_radial;   /* last layer of the radial networks (ops 4, 5 of docs/model.md 8) */
    nn_precision of_contract; /* SO(2) products along edges (op 7)              */
    nn_precision of_linear;   /* linear layers of nodes (op 10)                 */
    nn_products products;     /* of cuda                                         */
    int32_t device;           /* cuda: number of the GPU among the visible ones  */
    bool yields;              /* cuda: low priority, other engines on the same GPU run first */
    bool recompute;           /* keep less for the backward pass and compute it again: less
                                    * memory, more time, the same bits                */
} nn_engine_conf;

/* ---- whole training steps in the engine ---- */

/* Settings of a training; constant from step to step. */
typedef struct nn_training {
    nn_optimiser_kind optimiser;
    nn_adamw_conf adam; /* used by LAMB, too                              */
    nn_loss loss;
    double grad_clip, ema; /* as in nn_train_conf (models/training/train_state.h)           */
    nn_ranks *ranks;       /* a kind with `device`; NULL: a single rank       */
    int shards;            /* shards of a batch, on all ranks together; 0 means 1 */
    bool sharded;          /* AdamW with ranks: each rank stores only its slices of moments and average; same bits */
    nn_loss_scale scale;   /* loss scale of the first step                    */
    int64_t scale_after;   /* as in nn_train_conf                             */
} nn_training;

/* One of this rank's shards of a batch. */
typedef struct nn_training_step {
    const float *target; /* [molecules of the shard][outputs]; NaN: not measured */
    const float *high;   /* the same: upper limits, as in nn_samples; or NULL */
    int64_t measured;    /* measured targets in the whole batch            */
    int32_t n_graphs;    /* molecules of the whole batch                   */
    int32_t shard;       /* 0, 1, .. among this rank's shards; the last one ends the step */
    float lr;            /* learning rate                                  */
} nn_training_step;

typedef struct nn_training_result {
    nn_loss_sum loss;
    int32_t n_graphs;
    bool taken;          /* false: loss or gradient was not finite, the step was skipped */
    nn_loss_scale scale; /* loss scale of the next step                     */
} nn_training_result;

/* Whole training steps where the parameters are: forward, loss, backward, sum over shards, norm and
 * clipping of the gradient, AdamW or LAMB, moving average. Steps are asynchronous: the caller queues a
 * step and reads its result later. One training at a time. Between begin and the last result the
 * caller may also call set_params and forward without keep, but only while no step is in flight, and
 * must set the parameters of the training again before the next step. */
typedef struct nn_engine_training {
    int32_t depth; /* maximum number of steps in flight              */
    /* from: the starting state, [n_floats] each; ema NULL: no moving average; g is not read. steps: steps
     * taken so far. */
    pl_code (*begin)(nn_engine *e, const nn_training *t, const nn_adamw_arrays *from, int64_t steps, pl_error *err);
    /* Queues one shard of a step. in: NULL for a shard without molecules. `in` and what s points to are
     * read before the call returns. EBUG: `depth` steps are in flight already. EDEVICE: another rank is lost. */
    pl_code (*step)(nn_engine *e, const nn_batch *in, const nn_training_step *s, pl_error *err);
    /* Waits for the oldest step in flight. EBUG: no step is in flight. EDEVICE: another rank is lost; the
     * engine can then only be closed, and its device memory is not freed. */
    pl_code (*result)(nn_engine *e, nn_training_result *out, pl_error *err);
    /* Copies parameters, moments and average to the host; no step may be in flight. to: as in begin; NULL
     * for an array that is not wanted. If sharded, all ranks must call it for the same arrays. */
    pl_code (*fetch)(nn_engine *e, const nn_adamw_arrays *to, pl_error *err);
} nn_engine_training;

typedef struct nn_engine_kind {
    const char *name, *help; /* "ref", "cpu", "cuda"                           */
    /* Whether this engine supports these settings on this machine. ECONFIG says what is missing. */
    pl_code (*check)(const nn_engine_conf *conf, pl_error *err);
    pl_code (*open)(nn_engine **out, const nn_se3 *model, const nn_engine_conf *conf, pl_error *err);
    void (*close)(nn_engine *e); /* NULL is fine                                   */

    /* Sets the parameters [n_floats] and folds the last radial layers again. params is borrowed and must
     * not change until the next set_params: an engine may read it later. */
    pl_code (*set_params)(nn_engine *e, const float *params, pl_error *err);

    /* Writes y [n_graphs][outputs]. keep: store what backward needs. */
    pl_code (*forward)(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err);

    /* The gradient for the batch of the last forward with keep; once per forward. dy [n_graphs][outputs];
     * the gradient is ADDED to grad [n_floats]. */
    pl_code (*backward)(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err);

    /* Of a model with conf.denoise; both NULL: the engine has no such head. vectors: after forward with keep, v [n_nodes][3] in
     * x, y, z. backward_vectors: as backward, with the gradient dv [n_nodes][3] of these vectors besides. */
    void (*vectors)(nn_engine *e, float (*v)[3]);
    pl_code (*backward_vectors)(nn_engine *e, const nn_batch *in, const float *dy, const float (*dv)[3], float *grad,
                                pl_error *err);

    /* Forward without keep of n engines at once: engine e[k] computes y[k] from in[k], with the same bytes
     * as n single calls. Equal pointers in `in` mean the same batch, which is prepared once for all
     * engines with the same settings. NULL: n single calls are as fast. */
    pl_code (*forward_all)(nn_engine *const *e, const nn_batch *const *in, float *const *y, int n, pl_error *err);

    size_t (*workspace_bytes)(const nn_engine *e); /* bytes, high-water mark        */

    /* The error of interpolation between radial nodes: root mean square of (exact - interpolated) hidden
     * units over the edges of the last forward's batch, for the radial network where it is largest; 0 in
     * exact mode. NULL: the engine has no radial nodes. */
    double (*radial_error)(nn_engine *e);

    /* NULL: the engine does no whole steps; models/training/train.c does loss, sums and optimiser itself. */
    const nn_engine_training *training;

    /* Times the operations of every later set_params, forward and backward; clock NULL: no longer. NULL: the engine cannot. */
    void (*watch)(nn_engine *e, nn_op_clock *clock);
} nn_engine_kind;

extern const nn_engine_kind nn_engine_ref;       /* plain loops in double, float32 inputs and outputs: the reference for tests */
extern const nn_engine_kind nn_engine_cpu;       /* edge frame, pair sharing, threads                    */
extern const nn_engine_kind nn_engine_cuda;      /* the same on a GPU; needs libmolsieve_cuda.so        */
extern const nn_engine_kind *const nn_engines[]; /* NULL-terminated */

/* The value of nn_train_conf.scale_after for these settings: not zero only with fp16. */
int64_t nn_engine_scale_after(const nn_engine_conf *conf);

#endif
