/* models/model_file.h - a trained model in one file that any tool can open.
 *
 * A safetensors file (models/safetensors.h): the parameters under the names of
 * NVIDIA's SE3Transformer, float32 or rounded to bfloat16, and strings of
 * metadata, each a JSON object except the first four:
 *
 *   format "molsieve-model", format_version "1" | "2" | "3", name, w3j "e3nn-0.3.3" | "e3nn-0.5"
 *   model      the settings of the network (models/se3.h)
 *   inputs     elements and features (models/feature.h)
 *   graph      edges, cutoff, k, max_neighbours (chem/graph.h)
 *   target     name, unit, better, similarity_at_least (the lowest calibrated one, if it is known); in format 2 task "classification", output "logistic"
 *   scale      mean, std, constant, offsets: see nn_model_value
 *              in format 3 these, and interval, are {"targets": [...]}, one for each output, and a task is that of all
 *   interval   part and bands (similarity, within, molecules): models/interval.h; not of classes, and not there if
 *              nobody knows
 *   range      what the training molecules are like, and how their structures were made: models/range_meta.c; not in
 *              files of earlier versions
 *   provenance where it comes from: data, sizes, split, recipe, date, errors
 *   sha256     of the file itself: models/safetensors.h; earlier files have none
 *
 * and, where the training kept them, the molecules it was trained on (models/domain.h).
 * A classifier has format 2: a program that knows only 1 would take its log odds for the target. A model
 * of several targets has format 3.
 * Nothing in it can execute. A file that is read is not trusted: every tensor's
 * name, shape and numbers are checked, the first that is missing, extra, of
 * another shape or not finite is named (PL_EDATA). Weights that were trained
 * under the other sign convention of the 3j symbols are moved to ours when read
 * (docs/model.md 2.3). Units: those of the target; Angstrom. */
#ifndef NN_MODEL_FILE_H
#define NN_MODEL_FILE_H

#include "chem/graph.h"
#include "models/domain.h"
#include "models/feature.h"
#include "models/interval.h"
#include "models/range.h"
#include "models/se3.h"

typedef struct nn_scale {
    double mean, stdev;                   /* of the target less its offsets, training set   */
    double constant;                      /* linear part: constant + sum over the atoms of  */
    double offset[NN_MAX_ELEMENTS];       /* their element's offset, in order of inputs     */
} nn_scale;

enum { NN_TARGETS_MAX = 64 };

/* One number that a model predicts. */
typedef struct nn_target {
    const char *name, *unit, *better;     /* better: "low", "high" or "none"                */
    nn_scale scale;
    nn_interval interval;                 /* how far predictions are off, where it is known */
    double lowest;                        /* lowest calibrated similarity (models/interval.h); 0: none     */
} nn_target;

typedef struct nn_model_file {
    const char *name;
    nn_target *target;                    /* [conf.outputs]                                 */
    bool classifies;                      /* the targets are classes, values the probabilities of 1 */
    nn_se3_conf conf;
    nn_inputs inputs;
    ch_graph_opts graph;                  /* max_atoms and max_edges are not kept           */
    nn_domain domain;                     /* the molecules it was trained on                */
    nn_range range;                       /* and what they are like                         */
    const char *provenance;               /* JSON object                                    */
    bool bf16;                            /* parameters are stored as bfloat16              */
    const nn_se3 *model;                  /* the plan of conf                               */
    float *params;                        /* [model->n_floats]; after a read exactly the
                                             values in the file                             */
    char sha256[65];                      /* of the file; read only                         */
    bool verified;                        /* the file has a checksum, and it holds; read only */
} nn_model_file;

/* Everything lives in mem. EIO: cannot be read. EDATA: not what it must be. */
pl_code nn_model_read(nn_model_file **out, const char *path, pl_arena *mem, pl_error *err);

/* Rounds the parameters to what the file will hold: to bfloat16 if m->bf16. */
void nn_model_round(nn_model_file *m);

/* Old file or new file, never half. The same contents give the same bytes. */
pl_code nn_model_write(const nn_model_file *m, const char *path, pl_error *err);

/* The linear part of the target: constant + offsets of the atoms. Elements that
 * the model does not know count 0. */
double nn_model_offset(const nn_scale *scale, const nn_inputs *inputs, const uint8_t *z, int32_t n);

/* The network's number y of a target (0..outputs-1) in its unit: x = y stdev + mean + linear part; of a
 * classifier the logistic function of x. */
double nn_model_value(const nn_model_file *m, int32_t target, const uint8_t *z, int32_t n, double y);

/* ECONFIG when graphs made with `opts` are not those the model was trained on;
 * the text names the setting: "cutoff 4 Angstrom, the model was trained with 5". */
pl_code nn_model_graph_check(const nn_model_file *m, const ch_graph_opts *opts, pl_error *err);

/* Metadata as one JSON object, for the results database; NULL when refused. */
const char *nn_model_metadata(const nn_model_file *m, pl_arena *mem);

/* Whether s can be a model's, target's or unit's name: one line of at most 200 bytes, no control characters. */
bool nn_model_name_fits(const char *s);

const char *nn_edges_name(ch_edges e); /* "radius"; never NULL */

#endif
