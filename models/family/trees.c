/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient-boosted trees (Friedman 2001; Chen and Guestrin 2016). The recipe was chosen on public sets by random and scaffold splits; it is
 * not a setting, because none of its numbers mattered much there. */
#include "models/family/boosted.h"

static const nn_option options[] = {
    { "max_bin", "64" },
    { "eta", "0.05" },
    { "max_depth", "5" },
    { "subsample", "0.8" },
    { "colsample_bytree", "0.3" },
    { "min_child_weight", "2" },
    { 0 },
};
static const nn_recipe recipe = { .rounds = 600, .log_odds = true, .options = options };

static pl_code fit(nn_member **out, const nn_table *x, const double *y, const nn_fit_conf *conf, pl_arena *mem, pl_error *err)
{
    return nn_boosted_fit(out, &recipe, x, y, conf, mem, err);
}

const nn_member_kind nn_trees = {
    .name = "trees",
    .help = "gradient-boosted trees on descriptors and circular environments, learned by XGBoost",
    .averaged = true,
    .weighs = true,
    .limits = true,
    .missing = nn_xgboost_missing,
    .fit = fit,
    .save = nn_boosted_save,
    .open = nn_boosted_open,
    .predict = nn_boosted_predict,
    .explain = nn_boosted_explain,
    .describe = nn_boosted_describe,
};
