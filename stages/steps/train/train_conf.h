/* stages/steps/train/train_conf.h - the settings of the stage `train`, and what follows from them alone. */
#ifndef ST_TRAIN_CONF_H
#define ST_TRAIN_CONF_H

#include "models/files/model_file.h"
#include "models/training/train_state.h"
#include "pipeline/workflow/stage.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/dataset/dataset.h"
#include "stages/steps/train/compute.h"

enum {
    ST_MODELS_MAX = 64,             /* models of a workflow                            */
    ST_MEMBERS_MAX = ST_MODELS_MAX, /* networks of an ensemble                         */
    ST_SCORES_MAX = 256             /* predictions of a molecule by all of its models  */
};

/* The setting `ranks` of stage train. */
#define ST_RANKS_WORDS "auto|none|mpi|tcp|nccl"
enum { ST_RANKS_AUTO, ST_RANKS_NONE, ST_RANKS_MPI, ST_RANKS_TCP, ST_RANKS_NCCL };

enum { ST_EPOCHS_MOST = 1000000 };         /* what `epochs: auto` becomes with a budget */
#define ST_PLANNED_EPOCHS "planned_epochs" /* the metric */

/* The setting `task`: to learn targets, or only the noise on positions, for a later training to start from. */
enum { ST_TASK_PREDICT, ST_TASK_DENOISE };

/* The setting `class_weights`. */
enum { ST_WEIGHTS_NONE, ST_WEIGHTS_BALANCED };

extern const pl_field st_train_fields[]; /* of st_train_conf; ends with {0} */

typedef struct st_target {
    const char *name, *column, *unit; /* column NULL: as name */
    double factor, class_weight;      /* class_weight 0: as class_weights of the stage */
    int32_t better, transform;        /* low|high|none, none|composition */
} st_target;

typedef struct st_train_conf {
    pl_list targets;  /* st_target, 1 to NN_TARGETS_MAX; with ST_TASK_DENOISE one that no molecule has */
    int32_t task;     /* ST_TASK_PREDICT, ..DENOISE             */
    const char *name; /* NULL: the workflow's                   */
    pl_list family;   /* texts                                  */
    struct {
        pl_list columns; /* texts: columns of the user's table     */
        bool descriptors;
    } inputs;
    nn_train_conf loop; /* seed is set from the workflow          */
    int64_t members;    /* of an ensemble                         */
    const char *start;  /* in the workflow's `models`, or NULL    */
    struct {
        int64_t layers, degrees, channels, heads, channels_div;
        int32_t norm, pooling, fusion, parity; /* norm: nn_norms */
        int32_t radial, radial_envelope;       /* nn_radial_basis, nn_envelope */
        int64_t radial_number;
        double radial_cutoff;
        bool layer_norm, z, charge, bonds;
        pl_list elements;
    } model;
    double checkpoint_every, rank_timeout;
    int64_t domain; /* molecules that the file keeps, at most         */
    bool recompute, beside;
    int32_t ranks;                /* ST_RANKS_AUTO, ..NONE, ..MPI           */
    int32_t dtype, class_weights; /* ST_WEIGHTS_NONE, .. */
    st_compute compute;
    int64_t threads; /* -1: as many as the run has workers     */
} st_train_conf;

const st_target *st_train_target(const st_train_conf *c); /* [targets.n]               */
/* The target with this name; NULL: there is none. */
const st_target *st_train_target_named(const st_train_conf *c, const char *name);
/* Of c, the targets that m, of this file, predicts, in its order: what nothing can be learned of is left out. EDATA: m predicts others. */
pl_code st_train_learned(st_train_conf *out, const st_train_conf *c, const nn_model_file *m, const char *path, pl_arena *mem,
                         pl_error *err);
const char *st_target_label(const st_target *t); /* the property to learn     */
bool st_target_converts(const st_target *t);     /* to a target of its name   */
/* [targets.n]; NULL when refused. limits: as in st_wanted_label */
const st_wanted_label *st_train_labels(const st_train_conf *c, bool limits, pl_arena *mem);
/* The name of the model, or the beginning of the names of an ensemble; borrowed. */
const char *st_train_base_name(const pl_workflow *wf, const st_train_conf *c);
/* Of the network number `member`, from 0: the name of the model, of an ensemble NAME-1, NAME-2, ... NULL when refused. */
const char *st_train_name(const pl_workflow *wf, const st_train_conf *c, int64_t member, pl_arena *mem);
/* <workdir>/models/<name>.safetensors of the train step of a workflow; NULL when refused. */
const char *st_train_model_path(const pl_workflow *wf, const pl_step *train, int64_t member, pl_arena *mem);
/* Whether the labels are classes. Call it after st_train_settle. */
bool st_train_classifies(const st_train_conf *c);
/* Whether a class counts more than the other in training; likewise. */
bool st_train_weighs(const st_train_conf *c);
/* Whether it learns noise alone: no target has a value then. */
bool st_train_denoises(const st_train_conf *c);
void st_train_settle(const pl_workflow *wf, void *conf);
nn_se3_conf st_train_network(const st_train_conf *c, const nn_inputs *inputs);
/* Whether model.elements is `auto`: those of the training molecules. */
bool st_train_elements_auto(const st_train_conf *c);
/* Elements not yet: those named, or none for `auto`; columns by name alone. */
nn_inputs st_train_inputs(const st_train_conf *c);

#endif
