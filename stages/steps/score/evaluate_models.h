/* stages/steps/score/evaluate_models.h - existing models evaluated on the labels of a workflow that trains none, and calibrated on them.
 *
 * Each model is evaluated alone. A molecule that shares the first 14 letters of the InChIKey with a training molecule in the model's file is in
 * train; of the others those that a split gives to calibration are in that part if `calibrate` is on (all of them without
 * a split), the rest is new. Calibration writes the same weights with new intervals, a new lowest similarity and
 * the range of the calibration molecules; the provenance keeps what it was calibrated on. */
#ifndef ST_EVALUATE_MODELS_H
#define ST_EVALUATE_MODELS_H

#include "models/training/train_state.h"
#include "stages/steps/dataset/dataset.h"
#include "stages/steps/score/evaluate_rows.h"
#include "stages/steps/train/compute.h"

typedef struct st_evaluate_target {
    const char *name, *column; /* column NULL: as name              */
    double factor;             /* 0: 1, and units must be the same  */
} st_evaluate_target;

typedef struct st_evaluate_conf {
    pl_list on, models, targets; /* targets: st_evaluate_target       */
    int64_t molecules, max_edges, threads;
    st_compute compute;
    bool calibrate;
    int32_t mirror; /* nn_mirror_mode */
} st_evaluate_conf;

/* What the settings say of a target; NULL: nothing. */
const st_evaluate_target *st_evaluate_named(const st_evaluate_conf *c, const char *name);

/* Adds the labels that the targets of its models are compared with. */
void st_evaluate_labels(const pl_workflow *wf, const pl_step *step, pl_names *out);

/* For a workflow without a train stage: whether it evaluates the part, its check, and its work. */
bool st_evaluate_wants(const st_evaluate_conf *c, st_part part);
void st_evaluate_models_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems);
pl_code st_evaluate_models(pl_env *env, st_evaluation *rows, const nn_train_host *host, pl_error *err);

/* As in a pl_stage; nothing in a workflow with a train stage. */
pl_code st_evaluate_models_key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                               pl_error *err);
pl_code st_evaluate_missing(const pl_workflow *wf, const pl_step *step, const char **out, pl_arena *mem, pl_error *err);

/* ---- recalibrate.c ---- */
/* <workdir>/models/NAME-calibrated.safetensors; NULL when refused. */
const char *st_calibrated_path(const pl_workflow *wf, const char *name, pl_arena *mem);

/* Makes of m, in *out, the model calibrated on the molecules of ST_CALIBRATION, whose errors are e [d->n_targets], and writes it.
 * ECONFIG: a target has fewer than NN_CONFORMAL_MIN of them. */
pl_code st_recalibrate(nn_model_file **out, const char *path, const pl_env *env, const nn_model_file *m, const char *from,
                       const st_dataset *d, st_errors *e, pl_error *err);

#endif
