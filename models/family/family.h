/* models/family/family.h - models that are no networks: each learns one number from descriptors and circular environments.
 *
 * A kind of member is one record of functions, nn_member_kind, and one line in nn_member_kinds. Members of one target are averaged
 * with equal weights, with or without a network (models/files/model_file.h); so all predict in the unit of the target, of classes the
 * probability of class 1. Fitting and predicting use one thread and give the same bits for any number of workers, batch and order of
 * predicted molecules; rows of the table that is learned from must be in a fixed order. */
#ifndef NN_FAMILY_H
#define NN_FAMILY_H

#include <stdbool.h>
#include <stdint.h>

#include "chem/features/features.h"
#include "models/tensors/safetensors.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

/* Molecules as rows of numbers. Borrowed. */
typedef struct nn_table {
    int32_t n;
    const ch_environments *environments;    /* [n]                            */
    const float (*features)[CH_N_FEATURES]; /* [n] descriptors, finite        */
    int32_t n_columns;                      /* columns of the user's table     */
    const float *column;                    /* [n][n_columns]; NaN: not there  */
} nn_table;

typedef struct nn_fit_conf {
    uint64_t seed;
    bool classifies;  /* y is 0 or 1 */
    double weight[2]; /* of a molecule of class 0 and 1 while learning; equal, such as 0 and 0: none. Predictions stay probabilities
                                of the classes as they are in y; a kind that has no use for weights ignores them */
    const double
        *high; /* [x->n] upper limits, y then holds lower ones; equal: measured, infinite: none; NULL: all are measured. Only
                                for a kind with `limits` */
    bool cuda; /* on a GPU, if the kind's library can; other bits than on the CPU. The member says where it was learned */
    bool (*stop)(void *ctx); /* asked at least every second or so; may be NULL */
    void *ctx;
} nn_fit_conf;

typedef struct nn_member nn_member;

/* What moved a prediction: base + absent + sum of the three arrays = the value, or with log_odds its log odds. What a member predicts
 * outside of its limits (a class's probability above 0.999) is added up before it is limited. */
typedef struct nn_parts {
    bool log_odds;
    double base;         /* the prediction of a mean molecule              */
    double absent;       /* environments that the molecule does not have   */
    double *feature;     /* [CH_N_FEATURES] by descriptor                  */
    double *environment; /* [row's environments.n]                         */
    double *column;      /* [n_columns]                                    */
} nn_parts;

/* Parts of zero for a row of x, in mem. ENOMEM. */
pl_code nn_parts_make(nn_parts *out, const nn_table *x, int32_t row, pl_arena *mem, pl_error *err);

typedef struct nn_member_kind {
    const char *name, *help; /* "trees" */
    bool averaged;           /* joins the mean; false: only compared with */
    bool weighs;             /* uses the weights of classes */
    bool limits;             /* learns limits */
    int32_t most;            /* training molecules that it takes; 0: any number */

    /* NULL: fitting can begin; else what is missing, with the package that has it: "libxgboost.so.0 (Debian: libxgboost0)". */
    const char *(*missing)(void);

    /* Learns y [x->n] from x. *out lives in mem. ECONFIG: it cannot be learned from these molecules, with the reason (all values equal, too few,
     * one class, too many). ESTOP. ENOMEM. Other codes: the library's error. */
    pl_code (*fit)(nn_member **out, const nn_table *x, const double *y, const nn_fit_conf *conf, pl_arena *mem, pl_error *err);

    /* Tensors that hold the member, named PREFIX followed by a name of its own, and one JSON object of settings; all in mem. */
    pl_code (*save)(const nn_member *m, const char *prefix, nn_tensor **out, int *n, const char **json, pl_arena *mem,
                    pl_error *err);

    /* The opposite. Checks everything, so that a prediction never reads out of bounds; EDATA says what is wrong. Keeps what it needs in mem. */
    pl_code (*open)(nn_member **out, const char *prefix, const nn_tensors *all, const char *json, pl_arena *mem, pl_error *err);

    /* value [x->n]; variance [x->n] of the prediction's error, NaN where the kind has none; variance may be NULL. Scratch in mem. */
    pl_code (*predict)(const nn_member *m, const nn_table *x, double *value, double *variance, pl_arena *mem, pl_error *err);

    /* What moved the prediction of one row; makes *out, in mem. NULL: the kind cannot say. */
    pl_code (*explain)(const nn_member *m, const nn_table *x, int32_t row, nn_parts *out, pl_arena *mem, pl_error *err);

    /* One line for people: "600 trees of at most 6 levels, 1,214 columns". In mem; NULL: no memory. */
    const char *(*describe)(const nn_member *m, pl_arena *mem);
} nn_member_kind;

extern const nn_member_kind nn_trees, nn_forest, nn_gp;

/* All kinds, ended by NULL. */
extern const nn_member_kind *const nn_member_kinds[];
const nn_member_kind *nn_member_kind_of(const char *name); /* or NULL */

#endif
