/* stages/bench/bench.h - what `molsieve bench` measures: a model, real molecules, and the
 * reference's own way of computing.
 *
 * Work is counted in floating-point operations for a batch (a multiply-add is two),
 * along edges only: attention, norms and linear layers of nodes are left out.
 * Seconds are those of the best repeat. */
#ifndef ST_BENCH_H
#define ST_BENCH_H

#include "chem/graph/graph.h"
#include "chem/molecule/mol.h"
#include "models/engine/engine.h"
#include "models/features/feature.h"

/* ---- molecules and batches ---- */

typedef struct st_bench_mols {
    int32_t n;
    ch_mol *mol;
    pl_arena *mem;
} st_bench_mols;

/* The first molecules of a file of any format that `read` takes, at most `most`, with
 * 3D structures from the file or generated. Arrays in m->mem. ECONFIG: not one could be used. */
pl_code st_bench_mols_open(st_bench_mols *m, const char *path, int32_t max, pl_error *err);
void st_bench_mols_close(st_bench_mols *m); /* zeroed is fine */

typedef struct st_bench_case {
    const nn_se3 *model;
    const float *params;
    nn_batch batch;
    float *y, *dy, *grad; /* [n_graphs][outputs] twice, [model->n_floats] */
    nn_collate *collate;  /* owns the batch                               */
} st_bench_case;

/* One batch, the molecules repeated: n_graphs of them, or fewer if max_edges
 * (0: no limit) is reached before; at least one. model and params are borrowed. */
pl_code st_bench_case_open(st_bench_case *c, const nn_se3 *model, const float *params, const nn_inputs *inputs,
                           const st_bench_mols *mols, const ch_graph_opts *graph, const int32_t limits[2],
                           pl_error *err);  /* limits: n_graphs, max_edges */
void st_bench_case_close(st_bench_case *c); /* zeroed is fine */

/* ---- work ---- */

typedef struct st_bench_work {
    double forward, train;
} st_bench_work;

/* By materialised radial matrices and dense bases, as the reference does it
 * (docs/performance.md 1.2), and by what the cpu engine does: pairs in their own frame
 * (docs/performance.md 2.1), radial networks once a pair, zeros not skipped, or at nodes
 * (docs/performance.md 2.4), whose table is not counted. */
st_bench_work st_bench_work_reference(const st_bench_case *c);
st_bench_work st_bench_work_engine(const st_bench_case *c, nn_radial radial);

/* One radial group of the reference formulation: R [c_out][c_in f] of an edge,
 * features [c_in][d_in], basis [d_in][f d_out]. */
typedef struct st_bench_conv {
    int32_t c_in, c_out, f, d_in, d_out;
} st_bench_conv;

enum { ST_BENCH_CONVS = 256 };
int st_bench_convs(st_bench_conv *out, const nn_se3 *model); /* how many, at most ST_BENCH_CONVS */

/* ---- the machine ---- */

/* Seconds: with one thread its processor time, which other programs disturb least; with several
 * threads the wall-clock time. */
double st_bench_now(int threads);

/* Operations per second, measured with this many threads at once: multiply-adds in registers
 * by the widest vectors; bf16 tile products, and AVX-512's dot products of bf16 pairs, 0 where there are none. */
typedef struct st_bench_peak {
    double fp32, bf16, dot16;
} st_bench_peak;
st_bench_peak st_bench_peak_find(int threads);

/* Bytes per second of a = b + 3 c (STREAM's triad, 24 bytes an element), arrays of 64 MiB each or as large as the
 * last cache if that is larger, up to 256 MiB. 0: no memory. */
double st_bench_bandwidth_find(int threads);

/* ---- ways to compute ---- */

enum { ST_BENCH_VARIANTS = 128, ST_BENCH_TOGETHER = 5 };

typedef struct st_bench_variant {
    const nn_engine_kind *kind;
    const char *set; /* of kernels, or NULL                        */
    nn_engine_conf conf;
    bool main;    /* of the kernel set that is chosen here      */
    int models;   /* ST_BENCH_TOGETHER: forward of this many .. */
    bool at_once; /* .. at once, or one after the other         */
    char name[64];
    char refused[384]; /* why it cannot run here, or ""              */
} st_bench_variant;

/* Seconds of the best step for one model; bytes of memory for all models. train 0: not measured. */
typedef struct st_bench_times {
    double forward, train, bytes;
} st_bench_times;

/* Chooses the kernel set of later engines, by MOLSIEVE_CPU; NULL: as it is. */
void st_bench_set_use(const char *set);
/* All variants of the engines, refused ones included. Returns their number. */
int st_bench_variants(st_bench_variant *out, int max);
/* Whether it matches `words` ("nodes,avx2 exact"). NULL: all variants of the chosen set, and of other sets
 * and of the reference engine those that show their speed in float32, with one thread. */
bool st_bench_variant_wanted(const st_bench_variant *v, const char *words, int threads);
pl_code st_bench_variant_time(st_bench_times *out, st_bench_variant *v, const st_bench_case *c, int threads, double seconds,
                              pl_error *err);

/* ---- operations ---- */

/* Of one operation in all layers: floating-point operations of matrix products, rotations and attention (a multiply-add is two;
 * additions, norms and exponentials are not counted), and bytes of the arrays in memory that it reads and writes, each
 * once, vectors of nodes once for each edge that gathers them. What stays in a cache within the operation is not counted. */
typedef struct st_bench_roof_op {
    double flops, bytes, seconds;
    double rounded; /* of flops: those in products whose factors `precision` rounds to bf16 */
} st_bench_roof_op;

/* A training step, measured with so many threads: its operations, and what they are compared with. */
typedef struct st_bench_roof {
    const char *variant;
    int threads;
    double flops, bytes;     /* of the machine, in a second: peak in float32, and bandwidth          */
    const char *unit;        /* what computes products of rounded factors: "bf16 tiles"; NULL: nothing is rounded */
    double unit_flops;       /* its peak                                                           */
    int products;            /* of rounded factors, for each that is counted: 3 with bf16x3        */
    double cublaslt[NN_OPS]; /* seconds of the operations with products by cuBLASLt; 0: not measured */
    double step;             /* seconds of the whole step; those of all operations are not more */
    st_bench_roof_op op[NN_OPS];
} st_bench_roof;

/* The machine's part of a roof, from what was measured with these threads, or is known of a GPU: peak in float32 and, as bf16, of
 * its tensor cores in the variant's precision; 0: not known. On a CPU a variant of bf16 is compared with the tiles if it
 * uses them, else with the processor's dot products of bf16 pairs, which no kernel uses yet, else with float32. */
st_bench_roof st_bench_roof_of(const st_bench_variant *v, int threads, const st_bench_peak *peak, double bandwidth);

/* Seconds that the arithmetic of an operation takes at least: each part at the peak of its unit; 0: no peak. */
double st_bench_roof_least(const st_bench_roof *r, const st_bench_roof_op *op);

/* Counts by the plan of the model, without padding, zeros not skipped; what the backward pass computes again counts again.
 * rows: nn_op_clock.radial_rows. seconds stay as they are. On a GPU what only its kernels keep between them is not counted.
 * bench_roof_count.c */
void st_bench_roof_count(st_bench_roof_op out[NN_OPS], const st_bench_case *c, const st_bench_variant *v, double rows);
/* Fills step and op with the counts, and the times of the quickest training step without its optimiser, with r->threads.
 * EDEVICE: the engine cannot time its operations. */
pl_code st_bench_roof_run(st_bench_roof *r, const st_bench_case *c, const st_bench_variant *v, double seconds, pl_error *err);
/* Fills cublaslt; leaves it where engine or precision have no such products, or this machine no such library. */
pl_code st_bench_roof_beside(st_bench_roof *r, const st_bench_case *c, const st_bench_variant *v, double seconds, pl_error *err);
/* Whether --roofline shows it: our own kernels, one model, nothing computed again, an engine that times its operations; bf16x3 if it is asked for. */
bool st_bench_roof_wanted(const st_bench_variant *v, const char *words, int threads);

/* ---- whole steps ---- */

/* Wall-clock seconds of a training step that the engine does by itself, with as many in flight as it
 * accepts: the mean over about `seconds` after a first round. The learning rate is 0. EDATA: steps are
 * skipped, as loss or gradient is not finite, which is faster than doing them. */
pl_code st_bench_steps(double *each, const st_bench_case *c, const st_bench_variant *v, nn_engine *engine, double seconds,
                       pl_error *err);

/* ---- the reference formulation ---- */

typedef struct st_bench_blas {
    const char *library;            /* "libopenblas.so.0"                               */
    double forward;                 /* seconds for all convolutions of the batch        */
    double train;                   /* R and T kept from forward to backward             */
    double train_cached;            /* backward at once after each chunk: no network
                                         can do this; a bound                              */
    int chunk_forward, chunk_train; /* edges at a time                                   */
    double off;                     /* largest difference from plain loops, relative     */
} st_bench_blas;

/* Every convolution materialises R for a chunk of edges (one large sgemm), multiplies
 * features with the dense basis, T, and R with that (two sgemms an edge), as the
 * reference does with batched products; in training also the gradients of all four
 * operands. Not counted, all in its favour: bases, gathers, radial hidden layers,
 * attention, norms, linear layers, pooling. One thread, processor time, the best of
 * several chunk sizes and of `repeats`. BLAS is loaded at the first call; EDEVICE:
 * this machine has none. Memory in mem. */
pl_code st_bench_blas_run(st_bench_blas *out, const st_bench_case *c, int repeats, pl_arena *mem, pl_error *err);

/* The number of edges in a batch for which it needs this many bytes. */
int32_t st_bench_blas_edges(const nn_se3 *model, double bytes);

#endif
