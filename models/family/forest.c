/* SPDX-License-Identifier: Apache-2.0 */
/* A forest (Breiman 2001): each tree learns the values themselves from molecules drawn with replacement, and from another part of the columns at
 * each branching; the prediction is the mean over the trees. The second derivatives of squared errors are 1, so a leaf holds the mean of its
 * molecules (lambda 0) and min_child_weight counts them; of classes a leaf is the share of class 1, as in a forest of the usual kind. Weights
 * of classes choose the branchings; a leaf stays the share of its molecules. */
#include "models/family/boosted.h"

/* eta: 1 / number of trees. */
static const nn_option options[] = {
    { "max_bin", "64" }, { "eta", "0.005" }, { "max_depth", "40" }, { "lambda", "0" }, { "min_child_weight", "1" }, { 0 },
};
static const nn_recipe recipe = { .rounds = 200, .forest = true, .options = options };

static pl_code fit(nn_member **out, const nn_table *x, const double *y, const nn_fit_conf *conf, pl_arena *mem, pl_error *err)
{
    return nn_boosted_fit(out, &recipe, x, y, conf, mem, err);
}

const nn_member_kind nn_forest = {
    .name = "forest",
    .help = "mean of 200 trees on descriptors and circular environments, learned by XGBoost",
    .averaged = true,
    .weighs = true,
    .missing = nn_xgboost_missing,
    .fit = fit,
    .save = nn_boosted_save,
    .open = nn_boosted_open,
    .predict = nn_boosted_predict,
    .explain = nn_boosted_explain,
    .describe = nn_boosted_describe,
};
