/* models/features/feature.h - makes the inputs of a network from stored graphs and bases.
 *
 * nn_inputs says which numbers describe an atom and an edge; it is stored in the
 * model file. The `basis` stage stores basis blocks. nn_collate lays graphs end to
 * end as an nn_batch.
 *
 * Node features, in this order: one-hot of the element list; the atomic number
 * (inputs.z); the formal charge (inputs.charge); then, the same for all atoms of a
 * molecule, the user's columns (inputs.column) and the descriptors (inputs.descriptors),
 * each as (value - mean) / deviation over the training. The reference model has
 * [H C N O F] + Z = 6. Edge features: one-hot single, double, triple, aromatic
 * (inputs.bonds); all zero for neighbours without a bond. The distance is not
 * among them.
 *
 * Units: Angstrom, elementary charge. */
#ifndef NN_FEATURE_H
#define NN_FEATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chem/features/features.h"
#include "chem/graph/graph_block.h"
#include "models/features/batch.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/file.h"
#include "pipeline/base/rng.h"

/* ---- inputs of a model ---- */

enum { NN_MAX_ELEMENTS = 32, NN_BOND_FEATURES = 4, NN_COLUMNS_MAX = 16, NN_DESCRIPTOR_MOST = 8 };

/* Mean and standard deviation over the training; a deviation of 0: the number is the same in all of it and is read as 0. */
typedef struct nn_moments {
    double mean, stdev;
} nn_moments;

/* A number that comes with a molecule, such as the temperature of a measurement: a column of the user's table. */
typedef struct nn_input_column {
    const char *name, *unit; /* unit: "" if it is not known                          */
    nn_moments over;         /* the training                                         */
    double low, high;        /* what the model has seen: its domain                  */
    int32_t at;              /* place among the columns of an nn_item                */
} nn_input_column;

typedef struct nn_inputs {
    int32_t n_elements;
    uint8_t element[NN_MAX_ELEMENTS]; /* atomic numbers, in the order of the one-hot */
    bool z;                           /* atomic number as a number                   */
    bool charge;                      /* formal charge as a number                   */
    bool bonds;                       /* one-hot of the bond kind on edges           */
    bool any_element;                 /* nothing in the model reads elements: one that the list lacks is fine. Not with a network */
    int32_t n_columns;
    nn_input_column column[NN_COLUMNS_MAX]; /* also of the other members of a model  */
    bool descriptors;                       /* the network reads those of chem/features/features.h */
    const nn_moments *descriptor;           /* [CH_N_FEATURES]; a value counts as at most NN_DESCRIPTOR_MOST deviations */
} nn_inputs;

nn_inputs nn_inputs_qm9(void);                        /* H C N O F, z, bonds            */
int32_t nn_inputs_node_features(const nn_inputs *in); /* scalars per node               */
int32_t nn_inputs_edge_features(const nn_inputs *in); /* scalars per edge, no distance  */

/* Whether both give the same batch for the same graphs. */
bool nn_inputs_same(const nn_inputs *a, const nn_inputs *b);

/* ECONFIG: no elements, more than NN_MAX_ELEMENTS, an atomic number outside 1..118, or an element named twice. */
pl_code nn_inputs_check(const nn_inputs *in, pl_error *err);

/* The atomic number of the graph's first atom whose element is not in the list, or 0; 0 where any is fine. */
int32_t nn_inputs_unknown(const nn_inputs *in, const ch_graph *graph);

/* Mean, deviation and domain of a column: value[n] of the training, which is sorted here. The domain leaves out as many of the
 * largest and the smallest values as that of the molecules does: 1 %, at most 4. ECONFIG: all values are equal. */
pl_code nn_input_column_fit(nn_input_column *c, float *value, int64_t n, pl_error *err);

/* Its domain alone. n > 0. */
void nn_input_column_limits(double *low, double *high, float *value, int64_t n);

/* Finds the columns by name among name[n], those of the items to come. ECONFIG names one that is not there. */
pl_code nn_inputs_place(nn_inputs *in, const char *const *name, int32_t n, pl_error *err);

/* ---- bases of a block of graphs ---- */

/* frame_*: the rotation D_1 D_2 D_3 of each pair's edge frame (models/network/frame.h),
 * in 16-bit fixed point (value * 32767, absolute error 1.6e-5) or float32.
 * sh_f32: spherical harmonics Y_0..Y_2L of each pair's vector. pairwise_f32: all
 * bases d_in, d_out <= L of each directed edge (models/network/basis.h), d_in outermost. */
typedef enum nn_basis_kind {
    NN_BASIS_FRAME_Q15,
    NN_BASIS_FRAME_F32,
    NN_BASIS_SH_F32,
    NN_BASIS_PAIRWISE_F32,
    NN_BASIS_NONE,
    NN_BASIS_KINDS
} nn_basis_kind;

const char *nn_basis_name(nn_basis_kind kind); /* "frame_q15"; never NULL */

/* Numbers per pair (per directed edge for pairwise_f32) for degrees 0..max_degree. */
int32_t nn_basis_width(nn_basis_kind kind, int32_t max_degree);

/* Bytes of the bases of n_pairs pairs or n_edges directed edges, without the block's header and index. */
double nn_basis_bytes(nn_basis_kind kind, int32_t max_degree, double n_pairs, double n_edges);

/* A block, little-endian:
 *   header, 40 bytes: char magic[4] "MSBB", u32 version, u32 crc32 of all that follows this
 *   field, u32 kind, u32 max_degree, u32 n, u32 width, u32 crc of the graph block, u64 total bytes
 *   u64 at[n+1]   first pair (edge) of each graph; last = all
 *   then [at[n]][width] int16 or float32, zeros to 8 bytes */
typedef struct nn_basis_block {
    nn_basis_kind kind;
    int32_t max_degree, n, width;
    const uint64_t *at; /* [n+1]                                        */
    const int16_t *q15; /* [at[n]][width] or NULL                       */
    const float *f32;   /* [at[n]][width] or NULL                       */
} nn_basis_block;       /* points into the bytes it was unpacked from   */

/* Computes the bases of a block of graphs; *out in mem. kind is not NN_BASIS_NONE. max_degree 0..4; frames always have degrees 1..3. */
pl_code nn_basis_pack(pl_bytes *out, nn_basis_kind kind, int32_t max_degree, const ch_graph_block *graphs, pl_arena *mem,
                      pl_error *err);

/* Reads a block; *out points into `in`. EDATA: damaged, or made from other graphs than `graphs`. */
pl_code nn_basis_unpack(nn_basis_block *out, pl_bytes in, const ch_graph_block *graphs, pl_arena *mem, pl_error *err);

/* ---- batches ---- */

typedef struct nn_item {
    const ch_graph *graph;
    const int16_t *frame_q15; /* [n_pairs][83] or NULL */
    const float *frame_f32;   /* [n_pairs][83] or NULL */
    const float *column;      /* the user's columns; NULL: there are none */
    const float *feature;     /* [CH_N_FEATURES]; NULL if no network reads them */
    float noise;              /* Angstrom: deviation of normal noise on each coordinate; 0: none */
    pl_rng random;            /* of the noise                                   */
} nn_item;

/* Graph i of a block with its stored frames. basis may be NULL or of a kind without frames: the engine then
 * computes the frames. */
nn_item nn_item_of(const ch_graph_block *graphs, const nn_basis_block *basis, int32_t i);

typedef struct nn_left_out {
    int32_t item;    /* position in the list given  */
    int32_t element; /* atomic number not in inputs */
} nn_left_out;

typedef struct nn_collated {
    nn_batch batch;
    const int32_t *item; /* [batch.n_graphs] position of each graph in the list given */
    int32_t n_left;
    const nn_left_out *left; /* [n_left] molecules that are not in the batch              */
} nn_collated;

/* Makes batches. Owns the arrays of the last batch and reuses them: it allocates nothing
 * after the largest batch. One per thread. */
typedef struct nn_collate nn_collate;

nn_collate *nn_collate_new(void);    /* NULL: no memory   */
void nn_collate_free(nn_collate *c); /* NULL is fine      */

/* Lays n items end to end, in their order. A molecule with an element that `inputs` lacks
 * is left out and listed in out->left. batch.frame is set only if every graph of the batch
 * has stored frames (converted to float32) and no noise; with noise the edges are still those of the clean graph. `out` is valid until the next call. An
 * empty batch (n = 0, or all left out) is fine. ENOMEM. EINPUT: 2^31 - 1 atoms or directed
 * edges, or more. */
pl_code nn_collate_run(nn_collate *c, nn_collated *out, const nn_item *items, int32_t n, const nn_inputs *inputs, pl_error *err);

size_t nn_collate_bytes(const nn_collate *c); /* bytes allocated now */

/* How many of the items first..n-1 fit into one batch of at most max_graphs molecules
 * (0: no limit) and max_edges directed edges (0: no limit); at least one. */
int32_t nn_collate_take(const nn_item *items, int32_t first, int32_t n, int32_t max_graphs, int64_t max_edges);

#endif
