/* stages/steps/train/train.h - the stage `train`: fits an SE(3)-Transformer to one label or to several at once.
 *
 * Writes <workdir>/models/<name>.safetensors with the held-out errors in its
 * metadata, and its row in `model`. Checkpoints are in <workdir>/checkpoints; a
 * stop loses nothing, a kill at most `checkpoint.every`, and either way the
 * weights end up the same bit for bit.
 *
 * The settings are in train_conf.h, the targets in train_targets.c, the loop in
 * models/training/train.c, what is stored at the end in train_finish.c. */
#ifndef ST_TRAIN_H
#define ST_TRAIN_H

#include "models/files/model_file.h"
#include "models/training/train_state.h"
#include "pipeline/workflow/stage.h"
#include "pipeline/workflow/workflow.h"
#include "stages/registry/registry.h"
#include "stages/steps/dataset/dataset.h"
#include "stages/steps/errors/errors.h"
#include "stages/steps/ingest/label_scan.h"
#include "stages/steps/train/distributed.h"
#include "stages/steps/train/train_conf.h"

/* The main loop of a rank other than 0: takes part in each training that rank 0 begins, until rank 0 releases it. It reads and
 * writes no file of the work directory. */
pl_code st_train_follow(st_team *team, const pl_workflow *wf, int workers, pl_error *err);

/* ---- train_check.c: mistakes in the settings ---- */
void st_train_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems);
/* What the labels of a workflow must have for it; targets_only: as in st_label_need. wf may be NULL or have no training. */
st_label_need st_train_need(const pl_workflow *wf, bool targets_only);
/* Sizes of a network that take about as long as larger ones. */
void st_train_advise(const pl_workflow *wf, const pl_step *step, pl_problems *advice);
/* The seed of network number `member`, from 0. */
static inline uint64_t st_train_seed(const pl_env *env, int64_t member) { return env->seed + (uint64_t)member; }

/* How much a molecule of class 0 and of class 1 counts in training. */
typedef struct st_class_weight {
    double of[2];
} st_class_weight;

/* ---- train_family.c: members besides the network ---- */
/* Of what the model is the mean. */
typedef struct st_family {
    bool network, network_if_better; /* if_better: only if held-out errors are smaller with it */
    int32_t n;
    const nn_member_kind *kind[NN_MEMBERS_MAX];
} st_family;
/* Words that are unknown or that do not go together, and libraries that are missing. */
void st_family_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems);
/* For n training molecules of a workflow. */
st_family st_family_of(const pl_workflow *wf, const st_train_conf *c, int64_t n);
/* Training molecules that a target needs. */
int32_t st_family_fewest(st_family f);
/* Adds what is to be known before n training molecules are learned from: "; gp learns from at most 10,000 ...", or nothing. */
void st_family_limit_say(pl_text *out, const st_family *f, int64_t n);
/* Whether a network may be among them. */
bool st_family_may_have_network(const st_train_conf *c);
bool st_family_wants(const pl_workflow *wf, const pl_step *step, const char *what); /* as in a pl_stage */
/* Fits the members of f for m (whose scale is known) to the training molecules. ESTOP. In env->mem. */
pl_code st_family_fit(nn_model_file *m, const st_family *f, const pl_env *env, const st_samples *train,
                      const st_class_weight *weight, int64_t member, pl_error *err);

/* ---- train_inputs.c: elements, columns of the user's table, and descriptors ---- */
/* in: of st_train_inputs. Without a list in the settings the elements of the training molecules; any element where neither a network nor a
 * target's transform reads them. Returns how many rare elements the model does not have. */
int32_t st_train_elements(nn_inputs *in, const st_dataset *d, const pl_workflow *wf, const st_train_conf *c);
/* Says that n_left training molecules have one of these. */
void st_train_elements_tell(pl_env *env, int64_t n_left, int32_t n_rare);
void st_train_names(const pl_workflow *wf, const pl_step *step, const char *what, pl_names *out); /* as in a pl_stage */
void st_train_inputs_check(const pl_step *step, pl_problems *problems);
/* in: of st_train_inputs and of train. Means, deviations, domains. ECONFIG: a column has one value, or is not there. */
pl_code st_train_inputs_fit(nn_inputs *in, st_dataset *d, const st_samples *train, const pl_workflow *wf, pl_error *err);

/* ---- train_targets.c ---- */
/* ECONFIG: a label that should be a class is not (stages/steps/dataset/classes.h). */
pl_code st_targets_check(pl_env *env, const st_train_conf *c, pl_error *err);
/* A target that the model does not have. */
typedef struct st_left {
    const char *name, *why; /* "all 812 training molecules that have it are of class 0" */
} st_left;
/* Of several targets: *less is c without those that nothing can be learned of, which become left [0, *n_left); c's own targets and none where
 * something can be learned of each. fewest: training molecules that a target needs. In mem. ECONFIG: nothing can be learned of any. */
pl_code st_targets_leave(st_train_conf *less, st_left **left, int32_t *n_left, const st_train_conf *c, const st_samples *train,
                         int32_t fewest, pl_arena *mem, pl_error *err);
/* Warns of each. */
void st_targets_left_tell(pl_env *env, const st_left *left, int32_t n);
/* The scale of each target, from the training molecules that have it. ECONFIG: none has it, all have the same value, or
 * the fit to their composition leaves nothing. */
pl_code st_targets_scale(nn_model_file *m, const st_train_conf *c, const st_samples *train, pl_error *err);
/* How much a molecule of class 0 and of class 1 counts in training, of each target; 1 on average over the training molecules that have
 * it. All 1 without class weights. */
pl_code st_targets_weigh(st_class_weight **out, const st_train_conf *c, const st_samples *train, pl_arena *mem, pl_error *err);
/* Warns of targets that no held-out molecule has; says how many limits each is learned from, and which are not used. */
void st_targets_tell(pl_env *env, const st_train_conf *c, const st_samples *train, const st_samples *valid, const st_samples *test);
/* Sets the normalised targets for the molecules of a part, classes by weight as a loss reads them; NaN: not measured. */
void st_targets_fill(st_samples *s, const nn_model_file *m, const st_class_weight *weight);
/* What a network learned by weight has log odds of the weighted classes: corrects the last bias, so that it predicts the probabilities of
 * the classes as they are. params: of m's network. */
void st_targets_unweigh(float *params, const nn_model_file *m, const st_class_weight *weight);

/* ---- train_start.c: fine-tuning ---- */
void st_start_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems);
/* Of train: the hash of that file, and of labels that came later. */
pl_code st_train_key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                     pl_error *err);
/* *out: the model to start from, NULL for random weights. ECONFIG: it does not fit. */
pl_code st_start_open(nn_model_file **out, const pl_env *env, const nn_se3_conf *network, pl_error *err);
/* Warns of held-out molecules that the start model learned from or, for test and calibration, met otherwise. */
pl_code st_start_met_tell(pl_env *env, const st_dataset *d, const nn_model_file *start, pl_error *err);
/* params: of m's network, initialised at random. Copies weights of `from` where they fit; returns how many. */
size_t st_start_fill(float *params, const nn_model_file *m, const nn_model_file *from);

/* The end of the training of one network. */
typedef struct st_trained {
    pl_env *env;
    nn_model_file m; /* params: what the file will hold        */
    int64_t member;
    const nn_engine_kind *kind;
    nn_engine *engine;
    const st_dataset *d;
    const st_samples *train;
    const nn_train_state *state;
    const nn_train_host *host;
    const nn_model_file *start; /* or NULL                                */
    const st_family *family;
    const st_train_conf *conf; /* with the targets that are learned */
    const st_left *left;       /* [n_left] those that are not */
    int32_t n_left;
    const st_class_weight *weight; /* [targets] */
    const char *path;              /* set by st_train_write, as are the      */
    const st_errors *test;         /* [targets] errors on the test part      */
} st_trained;
/* Adds the errors on all parts to the provenance and writes the file. */
pl_code st_train_write(st_trained *t, pl_error *err);
/* Inside a transaction. */
pl_code st_train_rows(st_trained *t, pl_error *err);

/* ---- train_budget.c: a time in place of a number of epochs ---- */
/* Logs what was decided, and stores it as an event and as the metric planned_epochs. */
pl_code st_budget_tell(pl_env *env, const nn_budget *b, int64_t epochs, pl_error *err);
/* "100 epochs", "as many epochs as fit into 2h", in mem. */
const char *st_budget_plan(const st_train_conf *c, pl_arena *mem);
/* Of an estimate without a budget: what fits into so many seconds; not known if the time is not. */
void st_budget_cut(pl_estimate *e, double seconds);

/* Structures seen in all epochs, the size of the network, and how long it takes (train_cost.c): a step of it is timed here. */
pl_code st_train_estimate(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem,
                          pl_error *err);

#endif
