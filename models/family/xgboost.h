/* models/family/xgboost.h - boosted trees by XGBoost's C interface (versions 1.7 to 3), a library that is opened at run time.
 *
 * Only fitting needs it: trees are taken out of it as text (models/family/tree_set.h). It is called with one thread, so
 * the trees do not depend on the number of processors; they do depend on the version of the library. */
#ifndef NN_XGBOOST_H
#define NN_XGBOOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

/* Rows of numbers of which most are absent. Absent is not zero: a tree has a direction for what is absent. Borrowed. */
typedef struct nn_sparse {
    int32_t n, n_columns;
    const size_t *first;    /* [n+1]      numbers of row i: first[i]..first[i+1]-1 */
    const unsigned *column; /* [first[n]] ascending within a row                   */
    const float *value;     /* [first[n]] finite                                   */
} nn_sparse;

typedef struct nn_option {
    const char *name, *value;
} nn_option;

/* NULL: the library can be used; else what is missing: "libxgboost.so.0 (Debian: libxgboost0)". */
const char *nn_xgboost_missing(void);
const char *nn_xgboost_version(void); /* "1.7.4"; "" if it is missing */

/* The library is one with CUDA (2.0 and later), so the option device=cuda has an effect where there is a GPU. */
bool nn_xgboost_has_cuda(void);

typedef struct nn_booster nn_booster;

/* Begins with x, labels y [x->n], the margin that all rows start from, and n options of XGBoost. Close *out in any case.
 * ECONFIG: the library is missing. ENOMEM. EBUG: the library's error, as of all that follows. */
pl_code nn_booster_open(nn_booster **out, const nn_sparse *x, const float *y, float margin, const nn_option *options, int n,
                        pl_error *err);
/* Where the rounds will run: of device=cuda the library makes the CPU where it finds no GPU. */
pl_code nn_booster_device(nn_booster *b, bool *on_gpu, pl_error *err);
/* How much each row [x->n] counts, before the first round. */
pl_code nn_booster_weights(nn_booster *b, const float *weight, pl_error *err);
pl_code nn_booster_round(nn_booster *b, int round, pl_error *err); /* rounds 0, 1, 2, ... */
/* Other labels [x->n] for the rounds that follow. */
pl_code nn_booster_labels(nn_booster *b, const float *y, pl_error *err);
/* The margins [x->n] of the rows that are learned, after the rounds so far. */
pl_code nn_booster_learned(nn_booster *b, float *out, pl_error *err);
/* A round that learns given first and second derivatives [x->n] of the loss, instead of the options' objective. */
pl_code nn_booster_round_by(nn_booster *b, float *first, float *second, pl_error *err);

/* Each tree as a JSON object with covers; n_trees strings that belong to b until the next call. */
pl_code nn_booster_trees(nn_booster *b, const char *const **tree, int *n_trees, pl_error *err);

/* The library's own margins [x->n], which start from `margin`: what our own prediction is compared with. */
pl_code nn_booster_margins(nn_booster *b, const nn_sparse *x, float margin, float *out, pl_error *err);
/* The library's own parts [x->n][n_columns+1] of the margins (Shapley values), the last of each row what all rows start from. */
pl_code nn_booster_parts(nn_booster *b, const nn_sparse *x, float margin, float *out, pl_error *err);

void nn_booster_close(nn_booster *b); /* NULL is fine */

#endif
