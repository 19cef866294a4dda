/* models/files/model_file.h - reads and writes a trained model, a single safetensors file.
 *
 * A model is a network, or members of other kinds (models/files/members.h), or both; it predicts their mean with equal weights.
 * Instead of one network it can have several of the same settings, inputs and targets (models/files/join.h): the mean of their outputs, for classes of
 * their log odds, is then what one network would give.
 *
 * A safetensors file (models/tensors/safetensors.h): the parameters under the names of
 * NVIDIA's SE3Transformer, float32 or rounded to bfloat16, and strings of
 * metadata, each a JSON object except the first four:
 *
 *   format "molsieve-model", format_version "1" to "9", name, w3j "e3nn-0.3.3" | "e3nn-0.5"
 *   model      the settings of the network (models/network/se3.h); absent where there is none
 *              and, in format 6, norm may be "gate", and there is what it reads of distances: radial {basis, envelope, cutoff, number} (models/network/radial.h)
 *              in format 8 also sparsity "2:4"; in format 9 networks, how many there are
 *   family     from format 4 on: the members (models/files/members.h); in formats 5 and 6 absent where there are none
 *   inputs     elements and features (models/features/feature.h); any_element true where nothing reads them;
 *              in format 5 also columns [{name, unit, mean, std, low, high}]
 *              and descriptors {version, mean, std}
 *   graph      edges, cutoff, k, max_neighbours (chem/graph/graph.h)
 *   target     name, unit, better, similarity_at_least (the lowest calibrated similarity, if known); in format 2 also
 *              task "classification" and output "logistic"; of several targets one that some molecules lack also has range (as below) and
 *              columns ([[low, high], ..] as in inputs), both of the training molecules that have it
 *   scale      mean, std, constant, offsets: see nn_model_value
 *              in format 3 target, scale and interval are {"targets": [...]}, one entry per output, and the task holds for all
 *   interval   part and bands (similarity, within, molecules): models/metrics/conformal.h; absent for classifiers and where there
 *              was no calibration
 *   range      the ranges of properties of the training molecules, and how their structures were made: models/domain/range_meta.c;
 *              absent in files of earlier versions
 *   provenance data, sizes, split, recipe, date, errors
 *   sha256     of the file itself: models/tensors/safetensors.h; absent in files of earlier versions
 *
 * The file may also contain the applicability domain (models/domain/domain.h) and the validation molecules (models/domain/seen.h).
 * Classifiers have format 2, because a program that knows only format 1 would take log odds for the target.
 * Models of several targets have format 3. Models with members have format 4, which is as 3 for one target, too. Models that read
 * the user's columns or whose network reads descriptors have format 5, which is otherwise as 4. Models whose network has a radial basis, an envelope or a gate have format 6, which is otherwise as 5.
 * Models that learned noise alone have format 7 and task "denoise"; the file is otherwise as 6, and its target, scale and outputs mean nothing.
 * Models with weights of 2:4 sparsity have format 8, which is otherwise as 7: a matrix NAME [rows][k] that nn_sparse_fits is stored as
 * NAME.values [rows][k/2] and NAME.index U8 (nn_sparse_pack).
 * Models of several networks have format 9, which is otherwise as 8; the parameters of those after the first are called networks.1.NAME and so on.
 * A file cannot contain executable code. Reading checks every tensor's name, shape and
 * numbers; PL_EDATA names the first one that is missing, unknown, of another shape or not
 * finite. Weights that were trained with the other sign convention of the 3j symbols are
 * converted when they are read (docs/model.md 2.3). Units: those of the target; Angstrom. */
#ifndef NN_MODEL_FILE_H
#define NN_MODEL_FILE_H

#include "chem/graph/graph.h"
#include "models/domain/domain.h"
#include "models/domain/range.h"
#include "models/domain/seen.h"
#include "models/features/feature.h"
#include "models/files/members.h"
#include "models/metrics/conformal.h"
#include "models/network/se3.h"

typedef struct nn_scale {
    double mean, stdev;             /* of (target - linear part) over the training set */
    double constant;                /* linear part = constant + sum over the atoms of */
    double offset[NN_MAX_ELEMENTS]; /* offset[element], elements in the order of inputs */
} nn_scale;

enum { NN_TARGETS_MAX = 64, NN_NETWORKS_MAX = 16 };

typedef struct nn_limits {
    double low, high;
} nn_limits;

/* One number that a model predicts. */
typedef struct nn_target {
    const char *name, *unit, *better; /* better: "low", "high" or "none"                */
    nn_scale scale;
    nn_conformal interval; /* prediction intervals; n = 0: none              */
    double lowest;         /* lowest calibrated similarity (models/metrics/conformal.h); 0: unknown  */
    nn_range *range;       /* of the training molecules that have it; NULL: it is that of the model */
    nn_limits *columns;    /* [inputs.n_columns] of the same molecules; NULL: they are those of the inputs */
} nn_target;

/* Whether these two values of `better` contradict each other. NULL: unknown. */
bool nn_target_opposed(const char *a, const char *b);

typedef struct nn_model_file {
    const char *name;
    nn_target *target; /* [conf.outputs]                                 */
    bool denoises;     /* learned noise alone: it predicts nothing, and a training may start from it */
    bool classifies;   /* targets are classes 0 and 1; values are probabilities of class 1 */
    nn_se3_conf conf;  /* without a network only outputs is set */
    nn_members members;
    nn_inputs inputs;
    ch_graph_opts graph;    /* max_atoms and max_edges are not kept           */
    nn_domain domain;       /* fingerprints of the training molecules         */
    nn_seen seen;           /* molecules that it met besides these            */
    nn_range range;         /* ranges of their properties                     */
    const char *provenance; /* JSON object                                    */
    bool bf16;              /* parameters are stored as bfloat16              */
    bool sparse;            /* matrices of 2:4 are stored packed (models/network/sparse.h) */
    const nn_se3 *model;    /* the plan of conf; NULL: no network             */
    int32_t networks;       /* how many, each with parameters of its own; 0 is 1 */
    float *params;          /* [networks][model->n_floats]; after a read exactly the
                                             values in the file                             */
    char sha256[65];        /* of the file; read only                         */
    bool verified;          /* the file has a checksum and it matches; read only */
} nn_model_file;

/* Reads a model; everything is in mem. EIO: the file cannot be read. EDATA: it is not a valid model file. ECONFIG: it predicts nothing. */
pl_code nn_model_read(nn_model_file **out, const char *path, pl_arena *mem, pl_error *err);

/* The same, also of one that predicts nothing: to look at, or to start a training from. */
pl_code nn_model_read_any(nn_model_file **out, const char *path, pl_arena *mem, pl_error *err);

/* Fills model, params and bf16 of m from weights of another program: the plan of m->conf, and its tensors; no others may be
 * there. other_signs: they use the other sign convention of the 3j symbols. ECONFIG: conf is invalid. EDATA: the weights do not fit it. */
pl_code nn_model_weights_take(nn_model_file *m, const nn_tensors *all, bool other_signs, pl_arena *mem, pl_error *err);

/* The names of the user's columns that the model in the file reads, at most NN_COLUMNS_MAX, in mem; 0 where there are none or the file
 * cannot be read, -1 where mem has no room for one. Reads only its head. */
int32_t nn_model_column_names(const char *name[NN_COLUMNS_MAX], const char *path, pl_arena *mem);

/* The names of the targets that the model in the file predicts, and their units, "" where there is none, at most NN_TARGETS_MAX, in mem; 0
 * where the file cannot be read, -1 where mem has no room for one. Reads only its head. */
int32_t nn_model_target_names(const char *name[NN_TARGETS_MAX], const char *unit[NN_TARGETS_MAX], const char *path, pl_arena *mem);

/* Whether a file may be a model with a network: false if it surely is one without. Reads only its head. */
bool nn_model_may_have_network(const char *path);

/* Whether its network reads functions of distances (model.radial.basis). false where the file cannot be read. Reads only its head. */
bool nn_model_has_basis(const char *path);

/* Rounds the parameters to the numbers that the file will contain: to bfloat16 if m->bf16. */
void nn_model_round(nn_model_file *m);

/* Writes a model: the file at path is replaced at once, so it is never incomplete. Equal models give equal bytes. */
pl_code nn_model_write(const nn_model_file *m, const char *path, pl_error *err);

/* The linear part of the target for a molecule with atomic numbers z[n]: constant + sum of the atoms' offsets.
 * An element that the model does not know has offset 0. */
double nn_model_offset(const nn_scale *scale, const nn_inputs *inputs, const uint8_t *z, int32_t n);

/* How many networks there are: 0 for a model of members alone. */
int32_t nn_model_networks(const nn_model_file *m);

/* The parameters of network k. */
float *nn_model_params(const nn_model_file *m, int32_t k);

/* How many are averaged: the members and the network, or the mean of its networks. */
int32_t nn_model_components(const nn_model_file *m);

/* Converts the network's output y for a target (0..outputs-1) to the target's unit: x = y stdev + mean + linear
 * part. For a classifier the logistic function of x, a probability. */
double nn_model_value(const nn_model_file *m, int32_t target, const uint8_t *z, int32_t n, double y);

/* The same for the output of a member, which for a class is a probability already. */
double nn_model_member_value(const nn_model_file *m, int32_t target, const uint8_t *z, int32_t n, double y);

/* The prediction: the mean of `network`, a value by nn_model_value (not read without a network), and what the members give for molecule i
 * (members: NULL where the model has none). */
double nn_model_mean(const nn_model_file *m, int32_t target, const uint8_t *z, int32_t n, double network,
                     const nn_member_outputs *members, int32_t i);

/* Appends why a molecule is outside of the domain of a target (nn_range_reasons), and why its columns are: those of an nn_item, or NULL. */
void nn_model_reasons(pl_text *out, const nn_model_file *m, int32_t target, const nn_case *c, const float *column);

/* nn_range_ignore_sources of the ranges of a model without a network. */
void nn_model_ignore_sources(nn_model_file *m);

/* Whether some target has a range of its own, as molecules of its table lack it. */
bool nn_model_has_gaps(const nn_model_file *m);

/* Whether a model of an earlier version has targets that not all of its molecules had, and one range, or one similarity, for all: a molecule may
 * then be inside of the domain of a target that was not measured for molecules of its kind. As far as the counts in its provenance tell. */
bool nn_model_shares_range(const nn_model_file *m);
bool nn_model_shares_similarity(const nn_model_file *m);

/* ECONFIG: graphs made with `opts` differ from those of the training; the text names
 * the setting: "cutoff 4 Angstrom, the model was trained with 5". */
pl_code nn_model_graph_check(const nn_model_file *m, const ch_graph_opts *opts, pl_error *err);

/* The metadata as one JSON object in mem, for the results database; NULL: no memory. */
const char *nn_model_metadata(const nn_model_file *m, pl_arena *mem);

/* Whether s is allowed as the name of a model, target or unit: one line of at most 200 bytes, no control characters. */
bool nn_model_name_fits(const char *s);

const char *nn_edges_name(ch_edges e); /* "radius"; never NULL */

#endif
