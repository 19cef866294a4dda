/* models/cuda/cuda_engine.h - internal to the cuda engine: its state and the functions that models/cuda shares.
 *
 * Device memory: one block for the model, one for the batch as cuda_batch.h lays it out,
 * one arena for everything computed, sized before the first operation of a step.
 * Between two arrays of the arena is a fence of guard bytes; if MOLSIEVE_CUDA_FENCES is
 * set, fences are checked after every pass.
 *
 * Stored for the backward pass: the output of every module and, per attention block,
 * values and keys of the edges (in the edges' frames), the attention weights (alpha), the
 * weighted sums (z) and the queries (q). With `recompute` only the outputs of attention
 * blocks are stored; norms and the rest of a block are computed again by the same operations.
 * The gradients of values and keys overwrite values and keys. */
#ifndef NN_CUDA_ENGINE_H
#define NN_CUDA_ENGINE_H

#include "models/cuda/cuda_batch.h"
#include "models/cuda/cuda_layout.h"
#include "models/engine/engine.h"

enum {
    NN_CUDA_BLOCKS = 264,
    NN_CUDA_SPLIT_K = 256,
    NN_CUDA_SPLIT_MMA = 640,
    NN_CUDA_SLOTS = 3,
    NN_CUDA_TABLES = 2,
    NN_CUDA_NODES = 3,
    NN_CUDA_RADIALS = 2,
    NN_CUDA_RADIAL_WORK = NN_CUDA_BLOCKS * 64 * NN_GPU_H
};

/* Streams of a pass, and events, which are numbered after those of the slots (side_by_side.c). */
enum { NN_CUDA_MAIN, NN_CUDA_BESIDE, NN_CUDA_NEAR, NN_CUDA_RADIAL }; /* RADIAL is the first of NN_CUDA_RADIALS streams */
enum {
    NN_CUDA_BEGUN = 2 * NN_CUDA_SLOTS,
    NN_CUDA_ENDED,
    NN_CUDA_MADE,                                  /* a table is computed                      */
    NN_CUDA_READ,                                  /* a table was read and may be overwritten; one event per table */
    NN_CUDA_THERE = NN_CUDA_READ + NN_CUDA_TABLES, /* the inputs of gradients of parameters are complete */
    NN_CUDA_LINEAR,                                /* the gradients of a module's linear layers are complete */
    NN_CUDA_FOLDED,                                /* the first convolution's matrices are folded; next event: all are */
    NN_CUDA_ZEROED = NN_CUDA_FOLDED + 2,           /* all gradients are set to zero            */
    NN_CUDA_ADDED,                                 /* the part of a module's dx that needs no edges was added */
    NN_CUDA_UNFOLDED                               /* the gradients of last radial layers are unfolded */
};

/* The operations that end at the marks of a pass; mark 0 is its start. */
typedef struct nn_cuda_marks {
    int32_t n;
    nn_op op[NN_GPU_MARKS];
} nn_cuda_marks;

/* Kinds of matrix products, each with one provider (provider.c): of tables from hidden vectors (exact radial networks: of each
 * pair's matrices), of the gradient of folded matrices, of linear layers of nodes and of the head, and of the gradients of
 * these layers' inputs. Other products, of which all have sums that are split, are our own. */
enum { NN_CUDA_OF_TABLES, NN_CUDA_OF_TABLES_BACK, NN_CUDA_OF_LINEAR, NN_CUDA_OF_LINEAR_BACK, NN_CUDA_KINDS };

/* Scratch for the gradients of a convolution's radial networks; one per stream, used in turn. */
typedef struct nn_cuda_radial {
    float *x;              /* [n_rows][max_edge], inputs of edges       */
    float *dtable, *outer; /* gradient of the table; partial sums of long cells */
    float *dfold, *work;   /* gradient of the folded matrix; splits of products */
} nn_cuda_radial;

/* Memory of one batch, on the host (pinned) and on the device. While a training step computes with
 * one slot, the next ones are filled and uploaded. */
typedef struct nn_cuda_slot {
    char *host, *device;
    size_t host_room, device_room;
} nn_cuda_slot;

/* A bucket: modules whose gradients are summed over ranks together, parameters at .. at+n-1. They are complete when the
 * backward pass has finished `module`, the first of these modules. */
typedef struct nn_cuda_bucket {
    int32_t module;
    int64_t at, n;
} nn_cuda_bucket;

/* Parameters at .. at+n-1 are updated by this rank; their moments and average begin at offset `state`. */
typedef struct nn_cuda_slice {
    int64_t at, n, state;
} nn_cuda_slice;

enum {
    NN_CUDA_BUCKETS = NN_GPU_SEGMENTS - 5
}; /* the optimiser needs up to three segments, earlier shards and small forward passes one each */

/* A training whose parameters, moments and average are on the device (step.c). */
typedef struct nn_cuda_training {
    nn_training conf;
    nn_span own;  /* shards of this rank                        */
    char *memory; /* one block for the arrays that follow, up to `came` */
    size_t bytes;
    float *m, *v, *average; /* [n_state]; average NULL: none              */
    double *part;
    int64_t *step;
    nn_gpu_loss_scale *scale;
    nn_gpu_lamb lamb;
    nn_gpu_rule *rule;
    nn_gpu_step_result *shard; /* [shards] losses of each                    */
    nn_gpu_step_result *result;
    nn_gpu_step_result *came;               /* [NN_CUDA_SLOTS], on the host, pinned       */
    int32_t graphs_of[NN_CUDA_SLOTS];       /* molecules of the steps in flight        */
    int64_t queued, given;                  /* steps queued, results returned; slot = number modulo NN_CUDA_SLOTS */
    int64_t laid;                           /* batches laid out; the slot likewise        */
    bool captured;                          /* all steps but the first run as graphs      */
    int32_t segment;                        /* the segment that is being captured         */
    nn_cuda_bucket bucket[NN_CUDA_BUCKETS]; /* of steps with other ranks, from the last module */
    int32_t n_buckets;
    bool sharded;                         /* each rank stores only the state of its slices */
    nn_cuda_slice slice[NN_CUDA_BUCKETS]; /* one for all parameters, or one for each bucket */
    int32_t n_slices;
    size_t n_state; /* floats                                     */
    pl_error lost;  /* the first error of the other ranks; code PL_OK: none */
} nn_cuda_training;

struct nn_engine {
    const nn_gpu_ops *ops;
    nn_gpu *gpu;
    const nn_cuda_plan *plan;
    nn_engine_conf conf;
    pl_arena *mem;
    nn_cuda_prep prep;
    bool fences, kept;
    bool graphs;    /* of few molecules: MOLSIEVE_CUDA_GRAPHS is not 0, and the engine does not yield */
    int64_t passes; /* forward passes so far         */
    nn_gpu_provider by[NN_CUDA_KINDS];
    bool parts;         /* compute a convolution by separate kernels instead of the fused one */
    bool units;         /* in exact mode compute it with tables of hidden units, where there are such kernels (parts.c) */
    size_t table_bytes; /* maximum bytes of one table                 */
    nn_cuda_slot slot[NN_CUDA_SLOTS];
    nn_cuda_training training;
    nn_op_clock *clock; /* borrowed; NULL: operations are not timed */
    nn_cuda_marks marks;
    char *model, *grads, *arena;
    char *batch; /* `device` of the current slot               */
    size_t arena_room, model_bytes, grads_bytes;
    void **fence;
    int32_t n_fences, max_fences;
    /* the model, on the device */
    nn_gpu_path *path;
    nn_gpu_fold_tile *tile;
    nn_gpu_net *net;
    nn_gpu_frame_rule *rule;
    float *params, *fold, *unity; /* unity: [NN_GPU_H][NN_GPU_H], hidden vectors that choose a unit each */
    float *grad;                  /* the current row of grads; allocated by the first backward */
    int32_t grad_rows;
    int64_t grad_stride; /* floats from row to row                     */
    float *host;         /* pinned, for downloads of results and gradients */
    size_t host_room;
    /* a batch, on the device */
    float *frames;          /* [n_pairs][2][size]                         */
    float *h, *dh, *h_work; /* [n_nets][radial nodes][32], ..[7][32]      */
    float *table[NN_CUDA_TABLES];
    int32_t tables; /* number of tables read since the pass began */
    nn_cuda_radial radial[NN_CUDA_RADIALS];
    int32_t radials;                 /* number of convolutions whose gradients were queued */
    bool stale, folding;             /* folded matrices are out of date; are made in this pass */
    bool linear_behind;              /* event NN_CUDA_LINEAR was recorded in this pass */
    float *work[NN_CUDA_BESIDE + 1]; /* partial gradients of norms and linear layers, per stream */
    float *logit;                    /* [orders][n_rows][max_heads]               */
    float *x_edge, *dx_edge;         /* [n_rows][max_edge]                        */
    float *dalpha;                   /* [n_rows][max_heads]                       */
    float *dz, *dq;                  /* [nodes][max_node]                         */
    float *dnode[NN_CUDA_NODES];
    float *pooled, *hidden, *y, *dpooled, *dhidden, *dy; /* [graphs][..]         */
    int32_t *pool_from;
    float **act, **edge, **alpha, **z, **q; /* [n_modules]                       */
};

/* The device address of an array of the prep; NULL for NULL. */
static inline const void *nn_cuda_at(const nn_engine *e, const void *host)
{
    return host != NULL ? e->batch + ((const char *)host - e->prep.host) : NULL;
}

/* Module i with its input and output. */
typedef struct nn_cuda_step {
    nn_engine *e;
    const nn_cuda_module *m;
    const nn_batch *in;
    const float *x;                  /* input                                      */
    float *y, *edge, *alpha, *z, *q; /* edge: values and keys; backward overwrites them with their gradient */
    const float *dy;                 /* gradient of the output                     */
    float *dx;                       /* of the input; NULL for the first module    */
} nn_cuda_step;

nn_cuda_step nn_cuda_step_of(nn_engine *e, const nn_batch *in, int i);

/* memory.c */

/* Cuts one block of device memory into arrays with a fence behind each. p NULL: only counts bytes.
 * e NULL: fences are not checked. */
typedef struct nn_cuda_cutter {
    nn_engine *e;
    char *p;
    size_t at;
} nn_cuda_cutter;

void *nn_cuda_cut(nn_cuda_cutter *c, size_t n, size_t size);
int64_t nn_cuda_pieces(int64_t n);                         /* ceil(n / NN_GPU_SQUARES): pieces of n numbers */
size_t nn_cuda_table_bytes(void);                          /* maximum bytes of one table  */
pl_code nn_cuda_modules_open(nn_engine *e, pl_error *err); /* allocates act, edge, alpha, z, q [n_modules] */
void nn_cuda_model_cut(nn_engine *e, nn_cuda_cutter *c);
/* Floats of e->grads with this many rows. Each row has room at its end, because sums over ranks round up (to one number
 * per rank, or to a whole piece). */
size_t nn_cuda_grads_floats(const nn_engine *e, int32_t rows, size_t *stride);
bool nn_cuda_host(nn_engine *e, size_t floats); /* grows e->host; false: no memory */
/* Allocates device memory for the batch that was laid out, in its slot (NULL: another engine has it) and in the arena. */
pl_code nn_cuda_batch_memory(nn_engine *e, const nn_batch *in, bool keep, nn_cuda_slot *to, pl_error *err);
/* EDEVICE: says how many bytes are needed and free, and how large a batch would fit (molecules: of the batch that did not
 * fit; 0: not a batch). If nn_cuda_check finds an earlier error, that is returned instead. */
pl_code nn_cuda_no_memory(nn_engine *e, const char *what, size_t bytes, int32_t molecules, pl_error *err);

/* cuda_engine.c */

/* Lays out the batch in a slot, with room for targets, and allocates device memory; earlier work with this slot
 * must be finished. Does not upload it. */
pl_code nn_cuda_batch(nn_engine *e, const nn_batch *in, bool keep, int slot, int32_t n_targets, pl_error *err);
pl_code nn_cuda_grads(nn_engine *e, int32_t rows, pl_error *err); /* allocates at least this many rows */
void nn_cuda_forward(nn_engine *e, const nn_batch *in);           /* from the batch on the device to e->y */
/* From e->dy to e->grad, which is overwritten. done (may be NULL) is called after each of the training's buckets. */
void nn_cuda_backward(nn_engine *e, const nn_batch *in, void (*done)(nn_engine *e, int32_t bucket));
pl_code nn_cuda_check(nn_engine *e, pl_error *err);     /* waits; EDEVICE: errors, overwritten fences */
pl_code nn_cuda_said(const char *fault, pl_error *err); /* NULL: PL_OK; any text: EDEVICE with it */
pl_code nn_cuda_shape_check(const nn_engine *e, const nn_batch *in, pl_error *err);

/* op_marks.c: nothing unless the engine is watched. start: what was called before is of no operation; lap: what was called since the
 * last lap is `op`; read: waits, and adds the times to the clock. */
void nn_cuda_watch(nn_engine *e, nn_op_clock *clock);
void nn_cuda_lap_start(nn_engine *e);
void nn_cuda_lap(nn_engine *e, nn_op op);
void nn_cuda_lap_read(nn_engine *e);

/* few.c */
void nn_cuda_results_ask(nn_engine *e, const nn_batch *in); /* forward, then e->y to e->host; returns before either is done */

/* provider.c */
pl_code nn_cuda_products_check(const nn_engine_conf *c, const nn_gpu_ops *ops, pl_error *err);
pl_code nn_cuda_products_open(nn_engine *e, pl_error *err); /* sets e->by, for the open device */

/* together.c */
pl_code nn_cuda_forward_all(nn_engine *const *e, const nn_batch *const *in, float *const *y, int n, pl_error *err);

/* step.c */
extern const nn_engine_training nn_cuda_trains;
void nn_cuda_training_close(nn_engine *e);
/* Device bytes of a training with AdamW and a moving average; with several ranks: on the first, sharded. */
size_t nn_cuda_training_bytes(const nn_engine *e, int ranks);

/* allreduce.c: a training's steps with other ranks. The first error is kept in training.lost. */
void nn_cuda_slices_make(nn_engine *e);                             /* sets buckets and the slices that this rank updates */
pl_code nn_cuda_ranks_open(nn_engine *e, pl_error *err);            /* a first sum over all ranks; from then on they are watched */
void nn_cuda_bucket_sum(nn_engine *e, int32_t bucket);              /* sums a complete bucket over ranks, on the lent stream */
void nn_cuda_losses_spread(nn_engine *e);                           /* gathers the losses of all shards, on the lent stream */
void nn_cuda_squares_spread(nn_engine *e);                          /* gathers the squares of the pieces of all slices, likewise */
void nn_cuda_params_spread(nn_engine *e);                           /* gathers the updated parameters, likewise */
const float *nn_cuda_state_gather(nn_engine *e, const float *mine); /* gathers all slices, into row 0 of the gradients */

/* forward.c */
void nn_cuda_fold(nn_engine *e);      /* from e->params                          */
void nn_cuda_geometry(nn_engine *e);  /* frames, hidden vectors                   */
void nn_cuda_attend(nn_cuda_step *s); /* an attention block up to its weighted sums */
void nn_cuda_attention(nn_cuda_step *s);
void nn_cuda_norm(nn_cuda_step *s);
void nn_cuda_sum_layer(nn_cuda_step *s);
void nn_cuda_head(nn_engine *e, const nn_batch *in, const float *x);

/* backward.c */
void nn_cuda_attention_back(nn_cuda_step *s);
void nn_cuda_norm_back(nn_cuda_step *s);
void nn_cuda_sum_back(nn_cuda_step *s);
void nn_cuda_head_back(nn_engine *e, const nn_batch *in, float *dx);
void nn_cuda_head_grads(nn_engine *e, const nn_batch *in);        /* after it; of its parameters */
void nn_cuda_hidden_back(nn_engine *e, int32_t first, int32_t n); /* networks first .. first+n-1 */

/* side_by_side.c: concurrent work in several streams. MAIN (stream 0) is selected, except between a function that selects
 * another stream and the next selection of MAIN. */
void nn_cuda_streams_begin(nn_engine *e);    /* all streams wait for the work called so far */
void nn_cuda_fold_beside(nn_engine *e);      /* folds in another stream; to be called before tables, which wait for it */
void nn_cuda_streams_end(nn_engine *e);      /* MAIN waits for all streams */
float *nn_cuda_table_begin(nn_engine *e);    /* selects BESIDE; returns the memory of the next table */
void nn_cuda_table_made(nn_engine *e);       /* the table is complete: selects MAIN, which waits for it */
void nn_cuda_table_read(nn_engine *e);       /* MAIN has read the last table: its memory may be reused */
int32_t nn_cuda_radials(const nn_engine *e); /* streams of that kind: one where memory is scarce */
const nn_cuda_radial *nn_cuda_radial_begin(nn_engine *e); /* the stream of a convolution's gradients, after what is there */
void nn_cuda_radial_end(nn_engine *e);                    /* in RADIAL, which waits for all streams of that kind */
void nn_cuda_there(nn_engine *e);                         /* what gradients of parameters are made of is there, */
void nn_cuda_beside(nn_engine *e, int32_t stream);        /* and what is called in that stream from now on uses it */
/* A module's arrays that others use, too, are those of the linear layers' gradients until these are done. */
void nn_cuda_linear_done(nn_engine *e); /* called in BESIDE; then in MAIN */
void nn_cuda_linear_wait(nn_engine *e);
void nn_cuda_near_done(nn_engine *e);  /* called in NEAR; then in MAIN, */
void nn_cuda_near_wait(nn_engine *e);  /* which waits for what NEAR added */
void nn_cuda_grads_zero(nn_engine *e); /* in RADIAL; BESIDE waits for it, */
void nn_cuda_zero_wait(nn_engine *e);  /* and so does MAIN */

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

/* Collects independent products of one precision, to run them in as few launches as possible. */
typedef struct nn_cuda_group {
    const nn_engine *e;
    float *work; /* for splits; NULL: no product is split      */
    int32_t n;
    int64_t used; /* of work                                    */
    nn_gpu_gemm product[NN_GPU_GROUP];
} nn_cuda_group;

void nn_cuda_join(nn_cuda_group *g, nn_gpu_gemm p);
void nn_cuda_group_run(nn_cuda_group *g);

/* The arguments of op 6 (docs/model.md 8) between nodes (layout, node of each row) and the frames of the batch's rows; other fields zero. */
nn_gpu_turn nn_cuda_turn(const nn_engine *e, const int32_t *node, const nn_gpu_nodes *nodes, const nn_gpu_edges *edges,
                         const float *x, float *y);
nn_gpu_sum nn_cuda_sum(const nn_engine *e, int32_t n_nodes, bool out, const nn_gpu_nodes *nodes, const nn_gpu_edges *edges,
                       const float *y);

/* A chunk: cells first .. end-1, whose tables (radial nodes node .. node+n_nodes-1) are in memory together. units: all cells, and
 * the tables are those of the hidden units. */
typedef struct nn_cuda_chunk {
    int32_t first, end, node, n_nodes;
    bool units;
} nn_cuda_chunk;

/* The chunk that begins at cell `first`; false at the end. */
bool nn_cuda_chunk_next(const nn_engine *e, const nn_cuda_conv *c, nn_cuda_chunk *k);
/* The same for products, with the tables of hidden units where the convolution has them. */
bool nn_cuda_product_next(const nn_engine *e, const nn_cuda_conv *c, nn_cuda_chunk *k);
/* Computes a chunk's tables and the products of its tiles (ops 5, 7). turned: the transpose, x has layout out_edges and y
 * in_edges. */
void nn_cuda_product(nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, bool turned, const float *x, float *y);
/* The same with the rotations and logits in one kernel (ops 5 to 8); fills all->s. false: not supported for this precision or
 * shape, nothing was done. */
bool nn_cuda_conv_fused(nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, nn_gpu_conv *all);
/* Gradients of a chunk's tables, and from them of the radial networks' last layer. */
void nn_cuda_outer(const nn_engine *e, const nn_cuda_radial *to, const nn_cuda_conv *c, const nn_cuda_chunk *k, float *dy);
void nn_cuda_table_back(const nn_engine *e, const nn_cuda_radial *to, const nn_cuda_conv *c, const nn_cuda_chunk *k);
int32_t nn_cuda_slots(const nn_engine *e, int32_t rows);

#endif
