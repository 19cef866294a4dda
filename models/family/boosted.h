/* models/family/boosted.h - what the members `trees` and `forest` share: learned by XGBoost, kept as a set of trees. */
#ifndef NN_BOOSTED_H
#define NN_BOOSTED_H

#include "models/family/tree_set.h"

typedef struct nn_recipe {
    int rounds;
    bool log_odds;            /* classes are learned as log odds; false: as numbers 0 and 1 */
    bool forest;              /* all rounds learn the same values, not what earlier rounds left */
    const nn_option *options; /* of XGBoost, besides seed, threads and objective; ended by a name of NULL */
} nn_recipe;

/* The functions of nn_member_kind for members of this kind. */
pl_code nn_boosted_fit(nn_member **out, const nn_recipe *recipe, const nn_table *x, const double *y, const nn_fit_conf *conf,
                       pl_arena *mem, pl_error *err);
pl_code nn_boosted_save(const nn_member *m, const char *prefix, nn_tensor **out, int *n, const char **json, pl_arena *mem,
                        pl_error *err);
pl_code nn_boosted_open(nn_member **out, const char *prefix, const nn_tensors *all, const char *json, pl_arena *mem, pl_error *err);
pl_code nn_boosted_predict(const nn_member *m, const nn_table *x, double *value, double *variance, pl_arena *mem, pl_error *err);
pl_code nn_boosted_explain(const nn_member *m, const nn_table *x, int32_t row, nn_parts *out, pl_arena *mem, pl_error *err);
const char *nn_boosted_describe(const nn_member *m, pl_arena *mem);

#endif
