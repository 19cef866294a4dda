/* stages/steps/dataset/dataset.h - molecules with one or more labels and their graphs, in memory, in the form that a model reads.
 *
 * Loaded once from the split, the labels and the blocks of features.db; stored
 * frames are used when the workflow has a basis stage that keeps them. In the
 * order of the molecule ids. About 1 kB a molecule for bond graphs, 7 kB for
 * radius 5 with frames. Units: as in the label table, times `factor`. */
#ifndef ST_DATASET_H
#define ST_DATASET_H

#include <math.h>

#include "chem/common/descriptors.h"
#include "models/features/feature.h"
#include "models/metrics/metric.h"
#include "models/training/train_state.h"
#include "pipeline/store/store.h"

/* ST_NEW: labelled molecules that an existing model was not trained on; no part of a split. */
typedef enum st_part { ST_TRAIN, ST_VALID, ST_TEST, ST_CALIBRATION, ST_NEW, ST_PARTS } st_part;
enum { ST_SPLIT_PARTS = ST_NEW }; /* those that a split has: the ones before ST_NEW */
extern const char *const st_part_name[ST_PARTS];

/* The descriptors of version 1, so that baselines of models stay comparable. */
#define ST_IS_FIRST(name, kind, unit, heading, title, shown, since, ...) +((since) == 1)
enum { ST_DESCRIPTORS = 0 CH_DESCRIPTORS(ST_IS_FIRST) };

/* A label to learn, by its name in the property table. */
typedef struct st_wanted_label {
    const char *name; /* NULL: no molecule has it                          */
    double factor;    /* label times this is the target                    */
    bool limits;      /* the training molecules that have only limits of it, too */
    bool none;        /* all molecules are wanted, and none has it: for a training without labels */
} st_wanted_label;

typedef struct st_dataset {
    int64_t n; /* molecules with a part, a label at least, and a graph */
    int32_t n_targets;
    int64_t n_no_graph;             /* had a part and a label, but no graph              */
    bool limits;                    /* those of training molecules are in low and high   */
    int64_t n_contrary, n_untested; /* limits that contradict each other; of held-out molecules, which are not used */
    const char *from;               /* SQL: the rows (mol_id, part)                      */
    int64_t *mol_id;                /* [n] growing                                       */
    double *value;                  /* [n][n_targets] in the unit of each; NaN: not measured */
    double *low, *high; /* the same: limits of what was not measured, infinite on an open side, NaN: none. NULL: not asked for */
    double (*descriptor)[ST_DESCRIPTORS]; /* [n]                                      */
    uint8_t *part;                        /* [n] st_part                                       */
    nn_item *item;                        /* [n] the structure with the lowest energy          */
    const pl_names *columns;              /* of the workflow (stages/steps/ingest/columns.h)   */
    float *column;                        /* [n when read][columns->n], in the order of then; item[i].column is a row */
    struct st_others {
        nn_item *item;
        int32_t n;
    } * other;     /* [n] its other structures                          */
    pl_arena *mem; /* the blocks                                        */
} st_dataset;

/* ECONFIG when one of the n labels is on no molecule. ranks: all ranks call it, rank 0 reads (env->store of the
 * others may be NULL) and all get the data; NULL: a single process. */
pl_code st_dataset_open(st_dataset *d, pl_env *env, const st_wanted_label *label, int32_t n, nn_ranks *ranks, pl_error *err);
/* The labelled molecules of a workflow without training. Their part is ST_CALIBRATION if a split says so, else ST_NEW. */
pl_code st_dataset_open_all(st_dataset *d, pl_env *env, const st_wanted_label *label, int32_t n, pl_error *err);
void st_dataset_close(st_dataset *d); /* zeroed is fine */

/* The target k of molecule i. */
static inline double st_dataset_value(const st_dataset *d, int64_t i, int32_t k) { return d->value[i * d->n_targets + k]; }

/* Whether target k of molecule i was not measured, but has a limit. */
static inline bool st_dataset_is_limit(const st_dataset *d, int64_t i, int32_t k)
{
    return d->low != NULL && !isnan(d->low[i * d->n_targets + k]);
}

/* Whether molecule i has a measured value of any target. */
bool st_dataset_is_labelled(const st_dataset *d, int64_t i);

/* Keeps only the wanted molecules. Call it before samples are opened. */
void st_dataset_keep(st_dataset *d, bool (*wanted)(const st_dataset *d, int64_t i));

/* The places of a model's columns among those of the items. ECONFIG: one is not there. */
pl_code st_dataset_place(nn_inputs *in, const st_dataset *d, pl_error *err);
/* Computes the descriptors of all molecules for the networks that read them: item[i].feature. ENOMEM. */
pl_code st_dataset_describe(st_dataset *d, pl_error *err);

/* Elements of the molecules of a part, by atomic number: if a model cannot have all of them, those that most molecules
 * contain (of equally common ones the lightest). The number of elements left out. */
int32_t st_dataset_elements(nn_inputs *in, const st_dataset *d, st_part part);

/* The molecules of a part that a model with these inputs can read, as samples: each once, then their other structures. */
typedef struct st_samples {
    nn_samples samples; /* its ctx points back here: do not move             */
    const st_dataset *d;
    int64_t n;            /* molecules; samples.n: structures                  */
    int64_t *at;          /* [samples.n] positions in the data set             */
    const nn_item **item; /* [samples.n]                                       */
    int32_t *atoms;       /* [samples.n]                                       */
    int64_t n_unknown;    /* left out: an element the model does not know      */
    float *target;        /* [samples.n][d->n_targets]                         */
    float *high;          /* the same: as in nn_samples, or NULL               */
    const nn_inputs *inputs;
    struct {
        nn_collate *collate;
        nn_item *gathered;
        int32_t cap;
    } slot[2]; /* one batch is computed, the next one made          */
} st_samples;

/* part = ST_PARTS: all parts. Targets are not set. Arrays in d->mem. */
pl_code st_samples_open(st_samples *s, const st_dataset *d, st_part part, const nn_inputs *inputs, pl_error *err);
void st_samples_close(st_samples *s); /* zeroed is fine */
/* The molecules of s that have a measured value, without those with limits alone: d, n and at. Not to be closed; in d->mem. */
pl_code st_samples_measured(st_samples *out, const st_samples *s, pl_error *err);

#endif
