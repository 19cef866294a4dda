/* SPDX-License-Identifier: Apache-2.0 */
#include "models/family/boosted.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "models/family/exact.h"
#include "models/family/labels.h"
#include "pipeline/base/rng.h"
#include "pipeline/base/text.h"

/* An environment that fewer training molecules have is no column. */
enum { SEEN_MIN = 3, OPTIONS_MAX = 24, PURPOSE_DRAW = 1 };
static const double MIN_PROBABILITY = 0.001;

struct nn_member {
    nn_tree_set set;
    float start;        /* margin of every row before the first tree        */
    double mean, scale; /* value = mean + scale * margin, if not log_odds   */
    bool classifies, log_odds;
    const char *library;    /* "1.7.4", "3.2.0 on a GPU" */
    double weight[2], each; /* while learning: of the classes, of a tree in a forest */
};

/* ---- learning ---------------------------------------------------------------------------- */

/* What the library learns: standardised values; of classes 0 and 1. In limits it learns what it has, as far as it is within them, so the
 * gradient is that of the squared distance to them. */
typedef struct targets {
    int32_t n;
    float *low, *high;   /* high NULL: all are measured */
    float *now, *margin; /* of a round with limits; now is finite, as the library wants it, and 0 before the first */
} targets;

static float *standardised(const nn_member *m, const double *y, int32_t n, pl_arena *mem)
{
    float *out = PL_NEW(mem, float, n);

    for (int32_t i = 0; out != NULL && i < n; i++)
        out[i] = (float)((y[i] - m->mean) / m->scale);
    return out;
}

static pl_code targets_make(targets *t, const nn_member *m, const double *y, const double *high, int32_t n, pl_arena *mem,
                            pl_error *err)
{
    *t = (targets){ .n = n, .low = standardised(m, y, n, mem) };
    if (high != NULL) {
        t->high = standardised(m, high, n, mem);
        t->now = PL_NEW(mem, float, n);
        t->margin = PL_NEW(mem, float, n);
    }
    if (t->low == NULL || (high != NULL && (t->high == NULL || t->now == NULL || t->margin == NULL)))
        return pl_fail(err, PL_ENOMEM, "no memory for the values of %d molecules", (int)n);
    return PL_OK;
}

/* Before each round. */
static pl_code targets_move(targets *t, nn_booster *b, pl_error *err)
{
    pl_code code = nn_booster_learned(b, t->margin, err);

    if (code != PL_OK)
        return code;
    for (int32_t i = 0; i < t->n; i++)
        t->now[i] = fminf(fmaxf(t->margin[i], t->low[i]), t->high[i]);
    return nn_booster_labels(b, t->now, err);
}

typedef struct settings {
    nn_option option[OPTIONS_MAX];
    int n;
    char seed[16], share[32];
} settings;

static void add(settings *s, const char *name, const char *value)
{
    if (s->n < OPTIONS_MAX)
        s->option[s->n++] = (nn_option){ name, value };
}

/* A forest tries at each branching about the root of the number of columns for classes, a third of them for values: as is
 * usual (Breiman 2001). 1.5: columns of environments are mostly absent. */
static double share_of_columns(bool classifies, int32_t n_columns) { return classifies ? 1.5 / sqrt(n_columns + 2.25) : 1.0 / 3; }

/* The recipe's options and those of every recipe. */
static void settings_make(settings *s, const nn_recipe *recipe, const nn_member *m, const nn_fit_conf *conf, int32_t n_columns)
{
    s->n = 0;
    (void)snprintf(s->seed, sizeof s->seed, "%u", (unsigned)(conf->seed % INT32_MAX));
    add(s, "objective", m->log_odds ? "binary:logistic" : "reg:squarederror");
    add(s, "base_score", "0.5");
    add(s, "tree_method", "hist");
    add(s, "nthread", "1");
    add(s, "seed", s->seed);
    add(s, "disable_default_eval_metric", "1");
    if (conf->cuda && nn_xgboost_has_cuda())
        add(s, "device", "cuda");
    if (!recipe->forest)
        add(s, "seed_per_iteration", "1");
    else
        add(s, "colsample_bynode", pl_float_str((float)share_of_columns(m->classifies, n_columns), s->share));
    for (const nn_option *o = recipe->options; o->name != NULL; o++)
        add(s, o->name, o->value);
}

static bool is_weighted(const nn_member *m) { return m->weight[0] != m->weight[1]; }

/* The margin that learning begins with: of classes the log odds, or the share, of class 1 by weight. */
static float margin_of(const nn_member *m)
{
    const double share = m->weight[1] * (double)m->start, rest = m->weight[0] * (1 - (double)m->start);

    if (!is_weighted(m))
        return m->start;
    return (float)(m->log_odds ? (double)m->start + nn_log(m->weight[1] / m->weight[0]) : share / (share + rest));
}

/* A leaf of a forest that learned with weights: adds the share by weight of its molecules; returns what their share by number adds. */
static float leaf_unweigh(const void *ctx, float leaf)
{
    const nn_member *m = ctx;
    const double by_weight = fmin(fmax((double)margin_of(m) + (double)leaf / m->each, 0), 1);
    const double one = by_weight / m->weight[1], zero = (1 - by_weight) / m->weight[0];

    return (float)(m->each * (one / (one + zero) - (double)m->start));
}

/* How much each molecule counts; equal for all but in classes with weights. Boosted trees have at most 1: the recipe limits what few molecules
 * can do by min_child_weight and lambda, and a molecule that counts as many would pass both alone and make them overconfident. */
static float *weights_of(const nn_member *m, const float *y, int32_t n, pl_arena *mem)
{
    const double unit = m->log_odds ? fmax(m->weight[0], m->weight[1]) : 1;
    float *out = PL_NEW(mem, float, n);

    for (int32_t i = 0; out != NULL && i < n; i++)
        out[i] = is_weighted(m) ? (float)(m->weight[y[i] > 0] / unit) : 1;
    return out;
}

/* What a tree of a forest learns: first and second derivatives of half the squared error of the margin that all begin with, for as many
 * molecules as there are, drawn with replacement. The draw is not left to the library: given derivatives, XGBoost 1.7 counts
 * no rounds, so a seed for each round is the same seed, and all trees get the same molecules. */
typedef struct grove {
    const float *y, *weight;
    float *first, *second; /* of the next tree; 0: not drawn */
} grove;

static pl_code grove_make(grove *g, const float *y, const float *weight, int32_t n, pl_arena *mem, pl_error *err)
{
    *g = (grove){ y, weight, PL_NEW(mem, float, n), PL_NEW(mem, float, n) };
    if (g->first == NULL || g->second == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the values of %d molecules", (int)n);
    return PL_OK;
}

static pl_code grow(nn_booster *b, grove *g, const nn_member *m, int32_t n, uint64_t seed, int tree, pl_error *err)
{
    pl_rng rng = pl_rng_at(seed, (uint64_t)tree, PURPOSE_DRAW);

    memset(g->second, 0, (size_t)n * sizeof *g->second);
    for (int32_t i = 0; i < n; i++) {
        const int32_t drawn = (int32_t)pl_rng_below(&rng, (uint64_t)n);
        g->second[drawn] += g->weight[drawn];
    }
    for (int32_t i = 0; i < n; i++)
        g->first[i] = g->second[i] * (margin_of(m) - g->y[i]);
    return nn_booster_round_by(b, g->first, g->second, err);
}

/* g: of a forest; NULL: each round learns what the earlier ones left. */
static pl_code rounds(nn_booster *b, int n, targets *t, grove *g, const nn_member *m, const nn_fit_conf *conf, pl_error *err)
{
    pl_code code = PL_OK;

    for (int r = 0; code == PL_OK && r < n; r++) {
        if (conf->stop != NULL && conf->stop(conf->ctx))
            return pl_fail(err, PL_ESTOP, "stopped after %d of %d rounds of trees", r, n);
        if (t->high != NULL)
            code = targets_move(t, b, err);
        if (code == PL_OK)
            code = g != NULL ? grow(b, g, m, t->n, conf->seed, r, err) : nn_booster_round(b, r, err);
    }
    return code;
}

static pl_code device_note(nn_member *m, nn_booster *b, pl_arena *mem, pl_error *err)
{
    bool on_gpu = false;
    pl_code code = nn_booster_device(b, &on_gpu, err);

    if (code != PL_OK || !on_gpu)
        return code;
    m->library = pl_sprintf(mem, "%s on a GPU", m->library);
    return m->library != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for trees");
}

static pl_code learn(nn_member *m, const nn_recipe *recipe, const nn_table *x, const double *y, const nn_fit_conf *conf,
                     pl_arena *mem, pl_arena *scratch, pl_error *err)
{
    settings s;
    nn_columns columns;
    nn_sparse rows;
    targets t;
    const char *const *tree = NULL;
    float *weight = NULL;
    grove drawn = { 0 };
    nn_booster *b = NULL;
    int n_trees = 0;
    pl_code code = targets_make(&t, m, y, conf->high, x->n, scratch, err);

    if (code == PL_OK)
        weight = weights_of(m, t.low, x->n, scratch);
    if (weight == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory for the values of %d molecules", (int)x->n);
    if (code == PL_OK && recipe->forest)
        code = grove_make(&drawn, t.low, weight, x->n, scratch, err);
    if (code == PL_OK)
        code = nn_columns_of(&columns, x, SEEN_MIN, scratch, err);
    if (code == PL_OK)
        code = nn_columns_rows(&rows, &columns, x, scratch, err);
    if (code == PL_OK) {
        settings_make(&s, recipe, m, conf, rows.n_columns);
        code = nn_booster_open(&b, &rows, t.high != NULL ? t.now : t.low, margin_of(m), s.option, s.n, err);
    }
    if (code == PL_OK && conf->cuda)
        code = device_note(m, b, mem, err);
    if (code == PL_OK && is_weighted(m))
        code = nn_booster_weights(b, weight, err);
    if (code == PL_OK)
        code = rounds(b, recipe->rounds, &t, recipe->forest ? &drawn : NULL, m, conf, err);
    if (code == PL_OK)
        code = nn_booster_trees(b, &tree, &n_trees, err);
    if (code == PL_OK)
        code = nn_tree_set_parse(&m->set, tree, n_trees, &columns, mem, err);
    if (code == PL_OK && recipe->forest && is_weighted(m))
        nn_tree_set_leaves(&m->set, leaf_unweigh, m);
    nn_booster_close(b);
    return code;
}

/* Mean and standard deviation of the values that were measured. */
static pl_code measured_check(double *mean, double *stdev, const double *y, int32_t n, const nn_fit_conf *conf, pl_arena *scratch,
                              pl_error *err)
{
    double *measured = conf->high != NULL ? PL_NEW(scratch, double, n) : NULL;
    int32_t some = 0;

    if (conf->high == NULL)
        return nn_labels_check(y, n, conf->classifies, mean, stdev, err);
    if (measured == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the values of %d molecules", (int)n);
    for (int32_t i = 0; i < n; i++)
        if (!(y[i] < conf->high[i]))
            measured[some++] = y[i];
    return nn_labels_check(measured, some, conf->classifies, mean, stdev, err);
}

pl_code nn_boosted_fit(nn_member **out, const nn_recipe *recipe, const nn_table *x, const double *y, const nn_fit_conf *conf,
                       pl_arena *mem, pl_error *err)
{
    nn_member *m = PL_NEW(mem, nn_member, 1);
    pl_arena *scratch = pl_arena_new(1 << 20);
    double mean = 0, stdev = 1;
    pl_code code = m != NULL && scratch != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for trees");

    if (code == PL_OK)
        code = measured_check(&mean, &stdev, y, x->n, conf, scratch, err);
    if (code == PL_OK) {
        m->classifies = conf->classifies;
        m->log_odds = conf->classifies && recipe->log_odds;
        m->each = 1.0 / recipe->rounds;
        memcpy(m->weight, conf->weight, sizeof m->weight);
        m->mean = conf->classifies ? 0 : mean;
        m->scale = conf->classifies ? 1 : stdev;
        if (conf->classifies)
            m->start = (float)(m->log_odds ? nn_log(mean / (1 - mean)) : mean);
        m->library = pl_strdup(mem, nn_xgboost_version());
        code = m->library != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for trees");
    }
    if (code == PL_OK)
        code = learn(m, recipe, x, y, conf, mem, scratch, err);
    pl_arena_free(scratch);
    *out = m;
    return code;
}

/* ---- storage ------------------------------------------------------------------------------- */

pl_code nn_boosted_save(const nn_member *m, const char *prefix, nn_tensor **out, int *n, const char **json, pl_arena *mem,
                        pl_error *err)
{
    char start[32], mean[32], scale[32];
    pl_code code;

    *out = PL_NEW(mem, nn_tensor, NN_TREE_TENSORS);
    *n = NN_TREE_TENSORS;
    *json = pl_sprintf(mem, "{\"classifies\":%s,\"log_odds\":%s,\"start\":%s,\"mean\":%s,\"scale\":%s,\"library\":\"XGBoost %s\"}",
                       m->classifies ? "true" : "false", m->log_odds ? "true" : "false", pl_float_str(m->start, start),
                       pl_real_str(m->mean, mean), pl_real_str(m->scale, scale), m->library);
    code = *out != NULL && *json != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory to store trees");
    return code == PL_OK ? nn_tree_set_tensors(*out, &m->set, prefix, mem, err) : code;
}

static pl_code take_number(double *out, const json_t *j, const char *key, pl_error *err)
{
    const json_t *number = json_object_get(j, key);

    *out = json_number_value(number);
    return json_is_number(number) && isfinite(*out) ? PL_OK : pl_fail(err, PL_EDATA, "setting %s is not a number", key);
}

static pl_code take_settings(nn_member *m, const json_t *j, pl_arena *mem, pl_error *err)
{
    const char *library = json_string_value(json_object_get(j, "library"));
    double start = 0;
    pl_code code = take_number(&start, j, "start", err);

    if (code == PL_OK)
        code = take_number(&m->mean, j, "mean", err);
    if (code == PL_OK)
        code = take_number(&m->scale, j, "scale", err);
    if (code != PL_OK)
        return code;
    m->start = (float)start;
    m->classifies = json_is_true(json_object_get(j, "classifies"));
    m->log_odds = json_is_true(json_object_get(j, "log_odds"));
    if (!isfinite(m->start) || library == NULL || strncmp(library, "XGBoost ", 8) != 0)
        return pl_fail(err, PL_EDATA, "settings start and library are not those of trees");
    m->library = pl_strdup(mem, library + 8);
    return m->library != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for trees");
}

pl_code nn_boosted_open(nn_member **out, const char *prefix, const nn_tensors *all, const char *json, pl_arena *mem, pl_error *err)
{
    nn_member *m = PL_NEW(mem, nn_member, 1);
    json_error_t why;
    json_t *j = json_loads(json, JSON_REJECT_DUPLICATES, &why);
    pl_code code = m != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for trees");

    if (code == PL_OK && !json_is_object(j))
        code = pl_fail(err, PL_EDATA, "the settings of %s are no JSON object", prefix);
    if (code == PL_OK)
        code = take_settings(m, j, mem, err);
    if (code == PL_OK)
        code = nn_tree_set_take(&m->set, all, prefix, mem, err);
    json_decref(j);
    *out = m;
    return code;
}

/* ---- prediction ------------------------------------------------------------------------------ */

static double value_of(const nn_member *m, double margin)
{
    const double x = m->mean + m->scale * margin;

    if (m->log_odds)
        return 1 / (1 + nn_exp(-margin));
    if (!m->classifies)
        return x;
    if (x < MIN_PROBABILITY)
        return MIN_PROBABILITY;
    return x > 1 - MIN_PROBABILITY ? 1 - MIN_PROBABILITY : x;
}

/* Rows that are predicted together: their numbers and a tree stay in the cache. */
enum { TOGETHER = 32 };

pl_code nn_boosted_predict(const nn_member *m, const nn_table *x, double *value, double *variance, pl_arena *mem, pl_error *err)
{
    const size_t width = (size_t)nn_columns_count(&m->set.columns) + 1;
    float *number = PL_NEW(mem, float, TOGETHER *width), margin[TOGETHER];
    pl_code code = nn_columns_fit(&m->set.columns, x, err);

    if (number == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory to predict with trees");
    for (int32_t i = 0; code == PL_OK && i < x->n; i += TOGETHER) {
        const int32_t n = x->n - i < TOGETHER ? x->n - i : TOGETHER;
        for (int32_t k = 0; k < n; k++)
            nn_columns_row(number + (size_t)k * width, &m->set.columns, x, i + k);
        nn_tree_set_margins(margin, &m->set, m->start, number, width, n);
        for (int32_t k = 0; k < n; k++)
            value[i + k] = value_of(m, margin[k]);
        for (int32_t k = 0; k < n && variance != NULL; k++)
            variance[i + k] = NAN;
    }
    return code;
}

/* Writes what each column of the trees moved to its place; all of out is zero before. */
static void place_parts(nn_parts *out, const nn_columns *c, const double *moved, double scale, const ch_environments *e)
{
    int32_t at = 0; /* both ascend */

    for (int32_t i = 0; i < c->n_environments; i++) {
        while (at < e->n && e->at[at].id < c->id[i])
            at++;
        if (at < e->n && e->at[at].id == c->id[i])
            out->environment[at] = scale * moved[i];
        else
            out->absent += scale * moved[i];
    }
    for (int32_t i = 0; i < c->n_features; i++)
        out->feature[c->id[c->n_environments + i]] = scale * moved[c->n_environments + i];
    for (int32_t i = c->n_environments + c->n_features; i < nn_columns_count(c); i++)
        out->column[c->id[i]] = scale * moved[i];
}

pl_code nn_boosted_explain(const nn_member *m, const nn_table *x, int32_t row, nn_parts *out, pl_arena *mem, pl_error *err)
{
    const nn_columns *c = &m->set.columns;
    const int32_t n = nn_columns_count(c);
    float *number = PL_NEW(mem, float, n);
    double *moved = PL_NEW(mem, double, n), base = 0;
    pl_code code = nn_columns_fit(c, x, err);

    if (number == NULL || moved == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory to explain a prediction");
    if (code == PL_OK)
        code = nn_parts_make(out, x, row, mem, err);
    if (code != PL_OK)
        return code;
    nn_columns_row(number, c, x, row);
    code = nn_tree_set_explain(&m->set, number, moved, &base, mem, err);
    out->log_odds = m->log_odds;
    out->base = m->mean + m->scale * ((double)m->start + base);
    place_parts(out, c, moved, m->scale, &x->environments[row]);
    return code;
}

/* ---- words ------------------------------------------------------------------------------------- */

const char *nn_boosted_describe(const nn_member *m, pl_arena *mem)
{
    char nodes[32], columns[32];

    return pl_sprintf(mem, "%d trees, %s nodes, %s columns, XGBoost %s", (int)m->set.n_trees, pl_count_str(m->set.n_nodes, nodes),
                      pl_count_str(nn_columns_count(&m->set.columns), columns), m->library);
}
