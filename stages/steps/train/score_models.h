/* stages/steps/train/score_models.h - which models a workflow's `score` computes. */
#ifndef ST_SCORE_MODELS_H
#define ST_SCORE_MODELS_H

#include "models/files/model_file.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/stage.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/train/train_conf.h"

typedef struct st_model_list {
    int n;
    const char *name[ST_MODELS_MAX], *path[ST_MODELS_MAX], *sha256[ST_MODELS_MAX]; /* sha256 NULL: not pinned */
    bool trained_here;                                                             /* the file comes later    */
} st_model_list;

/* The entry of the workflow's `models` with that name, or NULL. */
const pl_model_ref *st_model_ref(const pl_workflow *wf, const char *name);
/* The nearest name there is, for a message; NULL: none is near. */
const char *st_model_near(const pl_workflow *wf, const char *name);

/* The names in `wanted` (texts) that the workflow has; if there are none: the model trained in
 * this workflow, or all of its `models`. Texts belong to the workflow or to mem. */
void st_model_list_fill(st_model_list *l, const pl_workflow *wf, const pl_list *wanted, pl_arena *mem);

/* Names that are unknown or too many, files that cannot be read or are not the pinned ones, and
 * graphs that are not the models'. */
void st_model_list_check(const pl_workflow *wf, const pl_step *step, const pl_list *wanted, pl_problems *problems);

/* Whether one of them reads positions: it has a network, or its file cannot be read. A model that is trained here does not count. */
bool st_model_list_is_spatial(const pl_workflow *wf, const pl_list *wanted);

/* Whether one of them, or the model that is trained here, reads functions of distances (model.radial.basis). */
bool st_model_list_has_basis(const pl_workflow *wf, const pl_list *wanted);

/* As in a pl_stage: the columns that they read. A model that is trained here does not count. */
void st_model_list_names(const pl_workflow *wf, const pl_list *wanted, const char *what, pl_names *out);

/* The hashes of their files as JSON, for the key of a stage. */
pl_code st_model_list_key(const pl_workflow *wf, const pl_list *wanted, pl_store *store, const char **extra_json, pl_arena *mem,
                          pl_error *err);

/* Whether a network of an earlier version, which does not tell it, learned from several structures of a molecule, as its number of steps says;
 * and what is then said behind the name of the model. */
bool st_may_have_several(const nn_model_file *m);
extern const char st_untold_several[];

/* Adds a warning if m was trained on molecules in another form (neutral, at a pH) than this workflow makes. */
void st_model_form_check(pl_env *env, const nn_model_file *m);

#endif
