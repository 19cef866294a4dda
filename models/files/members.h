/* models/files/members.h - the members of a model besides its network: how a model file keeps them, and their predictions.
 *
 * A model predicts the mean, with equal weights, of its network (if it has one) and its members (models/family/family.h). Members of
 * numbers learn the normalised target, as the network does; members of classes predict the probability of class 1. */
#ifndef NN_MEMBERS_H
#define NN_MEMBERS_H

#include "chem/graph/graph.h"
#include "models/family/family.h"
#include "models/features/feature.h"

enum { NN_MEMBERS_MAX = 8, NN_MEMBER_TENSORS_MAX = 32 };

typedef struct nn_model_member {
    const nn_member_kind *kind;
    nn_member *const *one; /* [outputs] */
} nn_model_member;

typedef struct nn_members {
    int32_t n, outputs;
    nn_model_member at[NN_MEMBERS_MAX];
} nn_members;

/* What all members predict for n molecules. */
typedef struct nn_member_outputs {
    int32_t n, outputs;
    double *y[NN_MEMBERS_MAX]; /* [n][outputs]: normalised targets or probabilities */
    double *variance;          /* [n][outputs], of y: of the first member that knows it; NaN: none does */
} nn_member_outputs;

/* The metadata `family`: {"features": version, "members": [{"kind": "trees", "settings": [{..}, ..]}, ..]}, settings for each output.
 * In mem; NULL: no memory. json: of each member and output, from nn_members_tensors. */
const char *nn_members_text(const nn_members *all, const char *const *json, pl_arena *mem);

/* The tensors that hold all members, named KIND.OUTPUT.NAME with a name of the kind's, and the settings of each, json [all->n *
 * all->outputs]. Everything in mem. ENOMEM; errors of the kinds. */
pl_code nn_members_tensors(nn_tensor **out, int *n, const char ***json, const nn_members *all, pl_arena *mem, pl_error *err);

/* Whether the tensor belongs to a member. */
bool nn_members_has(const nn_members *all, const char *tensor);

/* Reads the members of a model with `outputs` targets from the metadata `family` and the tensors of its file, which must outlive them.
 * EDATA says what is wrong: an unknown kind, features of another version, ... */
pl_code nn_members_take(nn_members *out, int32_t outputs, const char *text, const nn_tensors *file, pl_arena *mem, pl_error *err);

/* Gives x the columns that `in` names: value[x->n] are those of nn_items; not read where there are none. In mem. ENOMEM. */
pl_code nn_members_columns(nn_table *x, const nn_inputs *in, const float *const *value, pl_arena *mem, pl_error *err);

/* The predictions of all members; arrays in mem. */
pl_code nn_members_predict(nn_member_outputs *out, const nn_members *all, const nn_table *x, pl_arena *mem, pl_error *err);

#endif
