/* models/cuda/inner.h - the cuda engine's state and its steps; only models/cuda includes it.
 *
 * Device memory: one block for the model, one for the batch as prep.h lays it out,
 * one arena for everything computed, sized before the first operation of a step.
 * Between two arrays of the arena lies a fence that nobody may touch; with
 * MOLSIEVE_CUDA_FENCES set they are checked after every pass.
 *
 * Kept for the backward pass: the output of every module and, per attention block,
 * values and keys of the edges (in the edges' frames), their weights, the weighted
 * sums (z) and the queries (q). With `recompute` only the outputs of attention blocks;
 * norms and what is inside a block are computed again, by the same operations. The
 * gradients of values and keys take their place. */
#ifndef NN_CUDA_INNER_H
#define NN_CUDA_INNER_H

#include "models/cuda/plan.h"
#include "models/cuda/prep.h"
#include "models/engine.h"

enum { NN_CUDA_BLOCKS = 264, NN_CUDA_SPLIT_K = 256, NN_CUDA_SPLIT_MMA = 640, NN_CUDA_SLOTS = 3, NN_CUDA_TABLES = 2,
       NN_CUDA_NODES = 3, NN_CUDA_RADIALS = 2, NN_CUDA_RADIAL_WORK = NN_CUDA_BLOCKS * 64 * NN_GPU_H };

/* Lanes of a pass, and marks behind those of slots (lanes.c). */
enum { NN_CUDA_MAIN, NN_CUDA_BESIDE, NN_CUDA_NEAR, NN_CUDA_RADIAL }; /* and others behind it, NN_CUDA_RADIALS in all */
enum {
    NN_CUDA_BEGUN = 2 * NN_CUDA_SLOTS,
    NN_CUDA_ENDED,
    NN_CUDA_MADE,                             /* a table                                  */
    NN_CUDA_READ,                             /* and it may be overwritten                */
    NN_CUDA_THERE = NN_CUDA_READ + NN_CUDA_TABLES, /* what gradients of parameters are made of */
    NN_CUDA_LINEAR,                           /* those of a module's linear layers        */
    NN_CUDA_FOLDED,                           /* the first convolution's matrices, then all */
    NN_CUDA_ZEROED = NN_CUDA_FOLDED + 2,      /* all gradients                            */
    NN_CUDA_ADDED,                            /* a module's part of dx that needs no edges  */
    NN_CUDA_UNFOLDED                          /* gradients of radial networks' last layers  */
};

/* What the gradients of a convolution's radial networks are made in, a lane each, by turns. */
typedef struct nn_cuda_radial {
    float *x;                      /* [n_rows][most_edge], inputs of edges       */
    float *dtable, *outer;         /* and its parts, of long cells               */
    float *dfold, *work;           /* of the folded matrix; parts of products    */
} nn_cuda_radial;

/* Where a batch is laid out: on the host, pinned, and on the device. While a training
 * step computes with one, the next ones are filled and go up. */
typedef struct nn_cuda_slot {
    char *host, *device;
    size_t host_room, device_room;
} nn_cuda_slot;

/* Modules whose gradients are there together, as soon as the backward pass has left the first
 * of them: parameters at .. at+n-1. */
typedef struct nn_cuda_bucket {
    int32_t module;
    int64_t at, n;
} nn_cuda_bucket;

/* Parameters at .. at+n-1, which this rank updates; their moments and average begin at `state`. */
typedef struct nn_cuda_slice {
    int64_t at, n, state;
} nn_cuda_slice;

enum { NN_CUDA_BUCKETS = NN_GPU_SEGMENTS - 4 }; /* the optimiser has up to three, and earlier shards one */

/* A training whose parameters, moments and average are on the device (step.c). */
typedef struct nn_cuda_training {
    nn_training conf;
    nn_span own;                   /* shards of this rank                        */
    char *memory;                  /* of all that follows up to `came`           */
    size_t bytes;
    float *m, *v, *average;        /* [n_state]; average NULL: none              */
    double *part;
    int64_t *step;
    nn_gpu_loss_scale *scale;
    nn_gpu_lamb lamb;
    nn_gpu_rule *rule;
    nn_gpu_step_result *shard;     /* [shards] losses of each                    */
    nn_gpu_step_result *result;
    nn_gpu_step_result *came;      /* [NN_CUDA_SLOTS], on the host, pinned       */
    int32_t graphs_of[NN_CUDA_SLOTS]; /* molecules of the steps in flight        */
    int64_t queued, given;         /* steps; their slot is the rest by NN_CUDA_SLOTS */
    int64_t laid;                  /* batches laid out; their slot likewise      */
    bool captured;                 /* steps but the first run as graphs          */
    int32_t segment;               /* that is being captured                     */
    nn_cuda_bucket bucket[NN_CUDA_BUCKETS]; /* of steps with other ranks, from the last module */
    int32_t n_buckets;
    bool sharded;                  /* each rank has the state of its slices alone */
    nn_cuda_slice slice[NN_CUDA_BUCKETS]; /* one of everything, or one of each bucket */
    int32_t n_slices;
    size_t n_state;                /* floats                                     */
    pl_error lost;                 /* code: what went wrong with the other ranks */
} nn_cuda_training;

struct nn_engine {
    const nn_gpu_ops *ops;
    nn_gpu *gpu;
    const nn_cuda_plan *plan;
    nn_engine_conf conf;
    pl_arena *mem;
    nn_cuda_prep prep;
    bool fences, kept;
    bool parts;                    /* a convolution as its parts, though there is one kernel for it */
    size_t table_bytes;            /* of one table at most                       */
    nn_cuda_slot slot[NN_CUDA_SLOTS];
    nn_cuda_training training;
    char *model, *grads, *arena;
    char *batch;                   /* the present slot's `device`                */
    size_t arena_room, model_bytes, grads_bytes;
    void **fence;
    int32_t n_fences, most_fences;
    /* the model, on the device */
    nn_gpu_path *path;
    nn_gpu_fold_tile *tile;
    nn_gpu_net *net;
    nn_gpu_frame_rule *rule;
    float *params, *fold;
    float *grad;                   /* made by the first backward: the present row of grads */
    int32_t grad_rows;
    int64_t grad_stride;           /* floats from row to row                     */
    float *host;                   /* what comes back: results, gradients; pinned */
    size_t host_room;
    /* a batch, on the device */
    float *frames;                 /* [n_pairs][2][size]                         */
    float *h, *dh, *h_work;        /* [n_nets][radial nodes][32], ..[7][32]      */
    float *table[NN_CUDA_TABLES];
    int32_t tables;                /* that were read since the pass began        */
    nn_cuda_radial radial[NN_CUDA_RADIALS];
    int32_t radials;               /* convolutions whose gradients were called   */
    bool stale, folding;           /* folded matrices are of other parameters; are made in this pass */
    bool linear_behind;            /* a module's linear layers have their gradients, in this pass */
    float *work[NN_CUDA_BESIDE + 1]; /* parts of gradients of norms, linear layers */
    float *logit;                  /* [orders][n_rows][most_heads]               */
    float *x_edge, *dx_edge;       /* [n_rows][most_edge]                        */
    float *dalpha;                 /* [n_rows][most_heads]                       */
    float *dz, *dq;                /* [nodes][most_node]                         */
    float *dnode[NN_CUDA_NODES];
    float *pooled, *hidden, *y, *dpooled, *dhidden, *dy; /* [graphs][..]         */
    int32_t *pool_from;
    float **act, **edge, **alpha, **z, **q; /* [n_modules]                       */
};

/* The device's copy of an array of the prep. */
static inline const void *nn_cuda_at(const nn_engine *e, const void *host)
{
    return host ? e->batch + ((const char *)host - e->prep.host) : NULL;
}

/* Module i with its input and output. */
typedef struct nn_cuda_step {
    nn_engine *e;
    const nn_cuda_module *m;
    const nn_batch *in;
    const float *x;                /* input                                      */
    float *y, *edge, *alpha, *z, *q; /* edge: back, then the gradient of itself      */
    const float *dy;               /* gradient of the output                     */
    float *dx;                     /* of the input; NULL for the first module    */
} nn_cuda_step;

nn_cuda_step nn_cuda_step_of(nn_engine *e, const nn_batch *in, int i);

/* memory.c */

/* Cuts one piece of device memory into arrays with a fence behind each; p NULL: counts;
 * e NULL: nobody looks at the fences. */
typedef struct nn_cuda_cutter {
    nn_engine *e;
    char *p;
    size_t at;
} nn_cuda_cutter;

void *nn_cuda_cut(nn_cuda_cutter *c, size_t n, size_t size);
int64_t nn_cuda_pieces(int64_t n);                       /* of NN_GPU_SQUARES numbers that n have; the last may be shorter */
size_t nn_cuda_table_bytes(void);                        /* of one table at most        */
pl_code nn_cuda_modules_open(nn_engine *e, pl_error *err); /* from e->plan: arrays of arrays */
void nn_cuda_model_cut(nn_engine *e, nn_cuda_cutter *c);
/* Of e->grads: rows, each with room at its end for what a sum over ranks rounds up to (a number a rank, or a whole
 * piece). */
size_t nn_cuda_grads_floats(const nn_engine *e, int32_t rows, size_t *stride);
bool nn_cuda_host(nn_engine *e, size_t floats);          /* room in e->host             */
/* Room for the batch that was laid out, in its slot (NULL: another engine has it) and in the arena. */
pl_code nn_cuda_batch_memory(nn_engine *e, const nn_batch *in, bool keep, nn_cuda_slot *to, pl_error *err);
/* EDEVICE: how much is needed and free, and how large a batch would fit (molecules: of the one that
 * did not; 0: not a batch). What nn_cuda_check finds, where that is the reason. */
pl_code nn_cuda_no_memory(nn_engine *e, const char *what, size_t bytes, int32_t molecules, pl_error *err);

/* engine.c */

/* Lays the batch out in a slot, with room for targets, and makes room on the device; the slot's
 * work before must be done. What is laid out is not uploaded yet. */
pl_code nn_cuda_batch(nn_engine *e, const nn_batch *in, bool keep, int slot, int32_t n_targets, pl_error *err);
pl_code nn_cuda_grads(nn_engine *e, int32_t rows, pl_error *err); /* memory for at least so many rows */
void nn_cuda_forward(nn_engine *e, const nn_batch *in);  /* the batch on the device -> e->y */
/* e->dy -> e->grad, overwritten. done, or NULL: called after each of the training's buckets. */
void nn_cuda_backward(nn_engine *e, const nn_batch *in, void (*done)(nn_engine *e, int32_t bucket));
pl_code nn_cuda_check(nn_engine *e, pl_error *err);      /* waits; faults, broken fences */
pl_code nn_cuda_said(const char *fault, pl_error *err);  /* NULL is PL_OK, all else EDEVICE */
pl_code nn_cuda_shape_check(const nn_engine *e, const nn_batch *in, pl_error *err);

/* together.c */
pl_code nn_cuda_forward_all(nn_engine *const *e, const nn_batch *const *in, float *const *y, int n, pl_error *err);

/* step.c */
extern const nn_engine_training nn_cuda_trains;
void nn_cuda_training_close(nn_engine *e);
/* AdamW, with a moving average; of the first of so many ranks that have it sharded. */
size_t nn_cuda_training_bytes(const nn_engine *e, int ranks);

/* ranks.c: a training's steps with other ranks. The first error is kept in training.lost. */
void nn_cuda_slices_make(nn_engine *e);                     /* what this rank updates; its buckets, if it has others */
pl_code nn_cuda_ranks_open(nn_engine *e, pl_error *err);    /* all ranks sum once, and are watched from now on */
void nn_cuda_bucket_sum(nn_engine *e, int32_t bucket);      /* on the lent stream, when it is there */
void nn_cuda_losses_spread(nn_engine *e);                   /* the same for the shards' losses, */
void nn_cuda_squares_spread(nn_engine *e);                  /* the squares of each slice's pieces */
void nn_cuda_params_spread(nn_engine *e);                   /* and what was updated */
const float *nn_cuda_state_gather(nn_engine *e, const float *mine); /* of all slices, in row 0 of the gradients */

/* run.c */
void nn_cuda_fold(nn_engine *e);      /* from e->params                          */
void nn_cuda_geometry(nn_engine *e);  /* frames, hidden vectors                   */
void nn_cuda_attend(nn_cuda_step *s); /* an attention block up to its weighted sums */
void nn_cuda_attention(nn_cuda_step *s);
void nn_cuda_norm(nn_cuda_step *s);
void nn_cuda_sum_layer(nn_cuda_step *s);
void nn_cuda_head(nn_engine *e, const nn_batch *in, const float *x);

/* back.c */
void nn_cuda_attention_back(nn_cuda_step *s);
void nn_cuda_norm_back(nn_cuda_step *s);
void nn_cuda_sum_back(nn_cuda_step *s);
void nn_cuda_head_back(nn_engine *e, const nn_batch *in, float *dx);
void nn_cuda_head_grads(nn_engine *e, const nn_batch *in); /* after it; of its parameters */
void nn_cuda_hidden_back(nn_engine *e, int32_t first, int32_t n); /* networks first .. first+n-1 */

/* lanes.c: work side by side. All is called in lane 0, MAIN, but between a function that says so and the next
 * `lane` of MAIN. */
void nn_cuda_lanes_begin(nn_engine *e); /* lanes come after all that was called so far, */
void nn_cuda_fold_beside(nn_engine *e); /* before tables, which follow it */
void nn_cuda_lanes_end(nn_engine *e);   /* and what is called from now on after the lanes' work */
float *nn_cuda_table_begin(nn_engine *e); /* where the next table goes; its making is called in BESIDE */
void nn_cuda_table_made(nn_engine *e);    /* in MAIN again, which reads it */
void nn_cuda_table_read(nn_engine *e);    /* the last one that was made */
int32_t nn_cuda_radials(const nn_engine *e); /* lanes of that kind: one where memory is scarce */
const nn_cuda_radial *nn_cuda_radial_begin(nn_engine *e); /* the lane of a convolution's gradients, after what is there */
void nn_cuda_radial_end(nn_engine *e);    /* in RADIAL, which follows all lanes of that kind */
void nn_cuda_there(nn_engine *e);         /* what gradients of parameters are made of is there, */
void nn_cuda_beside(nn_engine *e, int32_t lane); /* and what is called in that lane from now on uses it */
/* A module's arrays that others use, too, are those of the linear layers' gradients until these are done. */
void nn_cuda_linear_done(nn_engine *e);   /* called in BESIDE; then in MAIN */
void nn_cuda_linear_wait(nn_engine *e);
void nn_cuda_near_done(nn_engine *e);     /* called in NEAR; then in MAIN, */
void nn_cuda_near_wait(nn_engine *e);     /* which follows what NEAR added */
void nn_cuda_grads_zero(nn_engine *e);    /* in RADIAL; BESIDE follows it, */
void nn_cuda_zero_wait(nn_engine *e);     /* and so does MAIN */

/* parts.c: what both directions are made of */

/* Rows of degree d of all nodes through a matrix: y (=, +=) W x, dx (=, +=) W^T dy,
 * dW += dy x^T. */
typedef struct nn_cuda_rows {
    nn_engine *e;
    const nn_cuda_linear *l;
    int d, n_nodes;
    const nn_gpu_nodes *in, *out;
} nn_cuda_rows;

nn_gpu_gemm nn_cuda_linear_run(const nn_cuda_rows *r, const float *x, float *y, bool add);
nn_gpu_gemm nn_cuda_linear_back(const nn_cuda_rows *r, const float *dy, float *dx, bool add);
nn_gpu_gemm nn_cuda_linear_grad(const nn_cuda_rows *r, const float *x, const float *dy);

/* Products of one precision, none of which needs another, in as few launches as it takes. */
typedef struct nn_cuda_group {
    const nn_engine *e;
    float *work;                   /* of splits; NULL: there are none            */
    int32_t n;
    int64_t used;                  /* of work                                    */
    nn_gpu_gemm product[NN_GPU_GROUP];
} nn_cuda_group;

void nn_cuda_join(nn_cuda_group *g, nn_gpu_gemm p);
void nn_cuda_group_run(nn_cuda_group *g);

/* `node` and its layout against the rows' frames; a pl of zeros otherwise. */
nn_gpu_turn nn_cuda_turn(const nn_engine *e, const int32_t *node, const nn_gpu_nodes *nodes,
                         const nn_gpu_edges *edges, const float *x, float *y);
nn_gpu_sum nn_cuda_sum(const nn_engine *e, int32_t n_nodes, bool out, const nn_gpu_nodes *nodes,
                       const nn_gpu_edges *edges, const float *y);

/* Cells first .. end-1 share the tables in memory; radial nodes node .. node+n_nodes-1. */
typedef struct nn_cuda_chunk {
    int32_t first, end, node, n_nodes;
} nn_cuda_chunk;

/* The chunk that begins at cell `first`; false at the end. */
bool nn_cuda_chunk_next(const nn_engine *e, const nn_cuda_conv *c, nn_cuda_chunk *k);
/* A chunk's tables and the products of its tiles; turned: x along out_edges, y along in_edges. */
void nn_cuda_product(nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, bool turned, const float *x,
                     float *y);
/* The same with what is around it in one kernel, s of `all` filled here; false: not for this precision or shape. */
bool nn_cuda_conv_fused(nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, nn_gpu_conv *all);
/* Gradients of a chunk's tables, and from them of the radial networks' last layer. */
void nn_cuda_outer(const nn_engine *e, const nn_cuda_radial *to, const nn_cuda_conv *c, const nn_cuda_chunk *k, float *dy);
void nn_cuda_table_back(const nn_engine *e, const nn_cuda_radial *to, const nn_cuda_conv *c, const nn_cuda_chunk *k);
int32_t nn_cuda_slots(const nn_engine *e, int32_t rows);

#endif
