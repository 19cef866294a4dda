/* models/engine.h - one way to compute a model: ref, cpu or cuda.
 *
 * An engine owns its workspace, grows it as needed and never allocates in a
 * step once it has seen the largest batch. Forward overwrites, backward adds.
 * Results do not depend on the number of threads: molecules and reductions are
 * cut in fixed pieces and summed in a fixed order. Not for use by two threads
 * at once. */
#ifndef NN_ENGINE_H
#define NN_ENGINE_H

#include "models/adam.h"
#include "models/batch.h"
#include "models/collective.h"
#include "models/loss.h"
#include "models/se3.h"

typedef struct nn_engine nn_engine;

/* Where radial networks are evaluated: at the nodes of a fixed grid of distances with
 * linear interpolation of the hidden vector between two nodes (docs/performance.md 2.4),
 * or at the distance of every pair. In the order of NN_RADIAL_WORDS. */
typedef enum nn_radial { NN_RADIAL_NODES, NN_RADIAL_EXACT } nn_radial;
#define NN_RADIAL_WORDS "nodes|exact"

/* Factors of matrix products; sums, and everything else, are float32. BF16X3: each
 * factor as a sum of two bf16 numbers, three products, about 4e-6. The last two: on a
 * GPU alone; an engine's check refuses what it has not. */
typedef enum nn_precision { NN_PREC_FP32, NN_PREC_BF16X3, NN_PREC_BF16, NN_PREC_TF32, NN_PREC_FP16 } nn_precision;

typedef struct nn_engine_conf {
    int threads;
    const char *kernels;           /* cpu: name of the set (models/cpu/choose.h); NULL: the best */
    nn_radial radial;
    double width;                  /* Angstrom between two radial nodes              */
    nn_precision of_radial;        /* last layer of the radial networks (ops 4, 5 of docs/model.md 8) */
    nn_precision of_contract;      /* SO(2) products along edges (op 7)              */
    nn_precision of_linear;        /* linear layers of nodes (op 10)                 */
    int32_t device;                /* cuda: which of the visible GPUs                */
    bool yields;                   /* cuda: other engines' work on the same GPU comes first */
    bool recompute;                /* less memory, more time, same bits: what the backward pass
                                    * needs is computed again where that is possible  */
} nn_engine_conf;

/* ---- training done by the engine ---- */

/* What stays the same from step to step. */
typedef struct nn_training {
    nn_optimiser_kind optimiser;
    nn_adamw_conf adam;            /* of LAMB, too                                   */
    nn_loss loss;
    double grad_clip, ema;         /* as in nn_train_conf (models/train.h)           */
    nn_ranks *ranks;               /* that have kind->device; NULL: alone             */
    int shards;                    /* of a batch, on all ranks together; 0 is 1       */
    bool sharded;                  /* AdamW with ranks: each keeps moments and average of its own slices alone, same bits */
    nn_loss_scale scale;           /* of the first step                               */
    int64_t scale_after;           /* as in nn_train_conf                             */
} nn_training;

/* One of this rank's shards of a batch. */
typedef struct nn_training_step {
    const float *target;           /* [molecules of the shard][outputs]; NaN: not measured */
    int64_t measured;              /* how many are in the whole batch                */
    int32_t n_graphs;              /* molecules of the whole batch                   */
    int32_t shard;                 /* 0, 1, .. up to the last of this rank's, which ends the step */
    float lr;
} nn_training_step;

typedef struct nn_training_result {
    nn_loss_sum loss;
    int32_t n_graphs;
    bool taken;                    /* false: loss or gradient not finite, nothing changed */
    nn_loss_scale scale;           /* of the step after it                            */
} nn_training_result;

/* Whole steps with everything that belongs to them (forward, loss, backward, sum over shards, norm and
 * clipping of the gradient, AdamW or LAMB, moving average) where the parameters are: the caller
 * never waits for the step it asks for. One training at a time; between begin and the
 * last result only set_params and forward without keep may come in between, when no step
 * is in flight, and the parameters of the training must be set again before the next step. */
typedef struct nn_engine_training {
    int32_t depth;                 /* steps in flight at most                        */
    /* from: [n_floats] each, ema NULL for none, g not read; steps: taken so far. */
    pl_code (*begin)(nn_engine *e, const nn_training *t, const nn_adamw_arrays *from, int64_t steps, pl_error *err);
    /* Begins a shard of a step; in (NULL: no molecule) and what s points to are read before it
     * returns. EBUG: depth in flight. EDEVICE: another rank is lost. */
    pl_code (*step)(nn_engine *e, const nn_batch *in, const nn_training_step *s, pl_error *err);
    /* Waits for the oldest step in flight. EBUG: there is none. EDEVICE: another rank is lost; the
     * engine then can only be closed, and keeps its memory. */
    pl_code (*result)(nn_engine *e, nn_training_result *out, pl_error *err);
    /* Parameters, moments and average as they are, with no step in flight; to: as in begin, NULL for what is
     * not wanted. Sharded: by all ranks, who want the same. */
    pl_code (*fetch)(nn_engine *e, const nn_adamw_arrays *to, pl_error *err);
} nn_engine_training;

typedef struct nn_engine_kind {
    const char *name, *help;       /* "ref", "cpu", "cuda"                           */
    /* Whether this engine computes so on this machine; ECONFIG says what it lacks. */
    pl_code (*check)(const nn_engine_conf *conf, pl_error *err);
    pl_code (*open)(nn_engine **out, const nn_se3 *model, const nn_engine_conf *conf, pl_error *err);
    void (*close)(nn_engine *e);   /* NULL is fine                                   */

    /* Tells the engine that the parameters changed (refolds weights). They must stay as they
     * are until the next call: an engine may read them again. */
    pl_code (*set_params)(nn_engine *e, const float *params, pl_error *err);

    /* y [n_graphs][outputs]. keep: remember what backward needs. */
    pl_code (*forward)(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err);

    /* For the batch of the last forward with keep, once. dy [n_graphs][outputs];
     * grad [n_floats] is ADDED to. */
    pl_code (*backward)(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err);

    /* Forward without keep of n engines at once: y[k] of in[k] by e[k], the same bytes as one after
     * the other. The same pointer in `in` is the same batch, which is then prepared once for all
     * engines of the same settings. NULL: one after the other is as fast. */
    pl_code (*forward_all)(nn_engine *const *e, const nn_batch *const *in, float *const *y, int n, pl_error *err);

    size_t (*workspace_bytes)(const nn_engine *e); /* high-water mark               */

    /* How far interpolation between radial nodes is off: the root of the mean square of
     * hidden units minus interpolated ones over the edges of the last forward's batch, of
     * the network where it is largest; 0 in exact mode. NULL: the engine has no nodes. */
    double (*radial_error)(nn_engine *e);

    /* NULL: the caller (models/train.c) does what a step needs beside forward and backward. */
    const nn_engine_training *training;
} nn_engine_kind;

extern const nn_engine_kind nn_engine_ref; /* plain loops in double, float at the door: the oracle */
extern const nn_engine_kind nn_engine_cpu; /* edge frame, pair sharing, threads                    */
extern const nn_engine_kind nn_engine_cuda; /* the same on a GPU, if libmolsieve_cuda.so is there  */
extern const nn_engine_kind *const nn_engines[]; /* NULL-terminated */

/* nn_train_conf.scale_after for gradients that are computed so: only those of fp16 need it. */
int64_t nn_engine_scale_after(const nn_engine_conf *conf);

#endif
