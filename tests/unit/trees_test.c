/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: learned by the library, predicted by our own code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "family_toy.h"
#include "models/family/tree_set.h"
#include "pipeline/base/rng.h"
#include "pipeline/base/text.h"
#include "tests/unit/trees.h"

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/* ---- against the library ---- */

/* The number in `all` of column k of `some`. */
static int place_in(const nn_columns *all, const nn_columns *some, int k)
{
    const int32_t some_others = some->n_environments + some->n_features;

    if (k >= some_others)
        return all->n_environments + all->n_features + (int)some->id[k];
    if (k >= some->n_environments)
        return all->n_environments + (int)some->id[k];
    for (int32_t i = 0; i < all->n_environments; i++)
        if (all->id[i] == some->id[k])
            return i;
    return -1;
}

static void our_margins_are_the_librarys(void **state)
{
    enum { LEARN = 300, NEW = 300, ROUNDS = 60 };
    static const nn_option option[] = { { "objective", "reg:squarederror" },
                                        { "base_score", "0.5" },
                                        { "tree_method", "hist" },
                                        { "nthread", "1" },
                                        { "max_depth", "6" },
                                        { "eta", "0.3" } };
    pl_arena *mem = *state;
    const char *const *tree;
    float y[LEARN], is[NEW], row[1000], *part;
    double ours_moved[1000], base, max = 0;
    family_toy a, b;
    nn_columns c;
    nn_sparse rows;
    nn_tree_set s;
    nn_booster *booster;
    int n, absent = 0;

    need_library();
    assert_true(family_toy_make(&a, LEARN, 1, mem) && family_toy_make(&b, NEW, 2, mem));
    for (int i = 0; i < LEARN; i++)
        y[i] = (float)a.y[i];
    assert_int_equal(nn_columns_of(&c, &a.x, 3, mem, NULL), PL_OK);
    assert_int_equal(nn_columns_rows(&rows, &c, &a.x, mem, NULL), PL_OK);
    assert_int_equal(nn_booster_open(&booster, &rows, y, 0.25F, option, sizeof option / sizeof *option, NULL), PL_OK);
    for (int r = 0; r < ROUNDS; r++)
        assert_int_equal(nn_booster_round(booster, r, NULL), PL_OK);
    assert_int_equal(nn_booster_trees(booster, &tree, &n, NULL), PL_OK);
    assert_int_equal(n, ROUNDS);
    assert_int_equal(nn_tree_set_parse(&s, tree, n, &c, mem, NULL), PL_OK);
    assert_int_equal(nn_columns_rows(&rows, &c, &b.x, mem, NULL), PL_OK);
    assert_int_equal(nn_booster_margins(booster, &rows, 0.25F, is, NULL), PL_OK);
    part = PL_NEW(mem, float, (size_t)NEW *(size_t)(rows.n_columns + 1));
    assert_int_equal(nn_booster_parts(booster, &rows, 0.25F, part, NULL), PL_OK);
    nn_booster_close(booster);
    assert_in_range(nn_columns_count(&s.columns), 50, 999);
    for (int i = 0; i < NEW; i += 20) { /* theirs know shares to the molecule, ours to 1/255 */
        nn_columns_row(row, &s.columns, &b.x, i);
        assert_int_equal(nn_tree_set_explain(&s, row, ours_moved, &base, mem, NULL), PL_OK);
        for (int k = 0; k < nn_columns_count(&s.columns); k++)
            max = fmax(max, fabs(ours_moved[k] - (double)part[i * (rows.n_columns + 1) + place_in(&c, &s.columns, k)]));
    }
    print_message("parts differ by at most %.4f from the library's\n", max);
    assert_true(max < 0.02);
    for (int i = 0; i < NEW; i++) {
        const float ours = (nn_columns_row(row, &s.columns, &b.x, i), nn_tree_set_margin(&s, 0.25F, row));
        assert_memory_equal(&ours, &is[i], sizeof ours);
        for (int k = 0; k < nn_columns_count(&s.columns); k++)
            absent += isnan(row[k]);
    }
    assert_true(absent > NEW); /* their directions matter */
}

/* ---- the member ---- */

static double error_of(const double *is, const double *y, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += (is[i] - y[i]) * (is[i] - y[i]) / n;
    return sqrt(sum);
}

static void trees_learn_and_are_the_same_again(void **state)
{
    enum { LEARN = 600, NEW = 200 };
    pl_arena *mem = *state;
    const nn_fit_conf conf = { .seed = 5, .stop = never };
    double first[NEW], again[NEW], variance[NEW], zero[NEW] = { 0 }, mean = 0;
    family_toy a, b;
    nn_member *m[3];

    need_library();
    assert_true(family_toy_make(&a, LEARN, 1, mem) && family_toy_make(&b, NEW, 2, mem));
    for (int k = 0; k < 2; k++) {
        assert_int_equal(nn_trees.fit(&m[k], &a.x, a.y, &(nn_fit_conf){ .seed = 9 - conf.seed }, mem, NULL), PL_OK);
        assert_int_equal(nn_trees.fit(&m[k], &a.x, a.y, &conf, mem, NULL), PL_OK);
    }
    assert_true(family_toy_again(&m[2], &nn_trees, m[1], mem));
    assert_int_equal(nn_trees.predict(m[0], &b.x, first, variance, mem, NULL), PL_OK);
    for (int k = 1; k < 3; k++) {
        assert_int_equal(nn_trees.predict(m[k], &b.x, again, NULL, mem, NULL), PL_OK);
        assert_memory_equal(first, again, sizeof first);
    }
    for (int i = 0; i < NEW; i++) {
        mean += b.y[i] / NEW;
        assert_true(isnan(variance[i]));
    }
    for (int i = 0; i < NEW; i++)
        zero[i] = mean;
    print_message("%s: error %.3f, of the mean %.3f\n", nn_trees.describe(m[2], mem), error_of(first, b.y, NEW),
                  error_of(zero, b.y, NEW));
    assert_true(error_of(first, b.y, NEW) < 0.6 * error_of(zero, b.y, NEW));
}

/* Without a GPU, or a library that can use it, these are the trees of the CPU; else others that are as good. */
static void a_gpu_is_used_where_there_is_one(void **state)
{
    enum { N = 300 };
    pl_arena *mem = *state;
    double host[N], device[2][N];
    family_toy a, b;
    nn_member *m;
    bool on_gpu = false;
    pl_error err = { 0 };

    need_library();
    assert_true(family_toy_make(&a, N, 1, mem) && family_toy_make(&b, N, 2, mem));
    assert_int_equal(nn_trees.fit(&m, &a.x, a.y, &(nn_fit_conf){ .seed = 5 }, mem, NULL), PL_OK);
    assert_null(strstr(nn_trees.describe(m, mem), "GPU"));
    assert_int_equal(nn_trees.predict(m, &b.x, host, NULL, mem, NULL), PL_OK);
    for (int k = 0; k < 2; k++) {
        if (nn_trees.fit(&m, &a.x, a.y, &(nn_fit_conf){ .seed = 5, .cuda = true }, mem, &err) != PL_OK)
            fail_msg("%s", err.text);
        assert_int_equal(nn_trees.predict(m, &b.x, device[k], NULL, mem, NULL), PL_OK);
        on_gpu = strstr(nn_trees.describe(m, mem), "on a GPU") != NULL;
    }
    print_message("%s\n", nn_trees.describe(m, mem));
    assert_memory_equal(device[0], device[1], sizeof host);
    assert_true(!on_gpu || nn_xgboost_has_cuda());
    if (!on_gpu)
        assert_memory_equal(host, device[0], sizeof host);
    assert_true(error_of(device[0], b.y, N) < 1.1 * error_of(host, b.y, N));
}

/* The same values in another unit, far from zero. */
static void another_unit_changes_nothing(void **state)
{
    enum { N = 120 };
    pl_arena *mem = *state;
    const nn_fit_conf conf = { .seed = 5 };
    double plain[N], scaled[N], y[N];
    family_toy a;
    nn_member *m;

    need_library();
    assert_true(family_toy_make(&a, N, 1, mem));
    assert_int_equal(nn_trees.fit(&m, &a.x, a.y, &conf, mem, NULL), PL_OK);
    assert_int_equal(nn_trees.predict(m, &a.x, plain, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < N; i++)
        y[i] = 1e12 + 1e6 * a.y[i];
    assert_int_equal(nn_trees.fit(&m, &a.x, y, &conf, mem, NULL), PL_OK);
    assert_int_equal(nn_trees.predict(m, &a.x, scaled, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < N; i++)
        assert_true(fabs((scaled[i] - 1e12) / 1e6 - plain[i]) < 0.02);
}

static void classes_are_probabilities(void **state)
{
    enum { LEARN = 400, NEW = 200 };
    pl_arena *mem = *state;
    const nn_fit_conf conf = { .seed = 5, .classifies = true };
    double is[NEW];
    family_toy a, b;
    nn_member *m;
    int right = 0;

    need_library();
    assert_true(family_toy_make(&a, LEARN, 1, mem) && family_toy_make(&b, NEW, 2, mem));
    assert_int_equal(nn_trees.fit(&m, &a.x, a.classes, &conf, mem, NULL), PL_OK);
    assert_true(family_toy_again(&m, &nn_trees, m, mem));
    assert_int_equal(nn_trees.predict(m, &b.x, is, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < NEW; i++) {
        assert_true(is[i] > 0 && is[i] < 1);
        right += (is[i] > 0.5) == (b.classes[i] == 1);
    }
    print_message("%d of %d right\n", right, NEW);
    assert_true(right > 0.75 * NEW);
}

static double sum_of(const nn_parts *p, const nn_table *x, int row)
{
    double sum = p->base + p->absent;

    for (int k = 0; k < CH_N_FEATURES; k++)
        sum += p->feature[k];
    for (int k = 0; k < x->environments[row].n; k++)
        sum += p->environment[k];
    for (int k = 0; k < x->n_columns; k++)
        sum += p->column[k];
    return sum;
}

static void parts_add_up_to_the_prediction(void **state)
{
    enum { N = 150 };
    pl_arena *mem = *state;
    double is[N], column = 0, absent = 0;
    family_toy a;
    nn_member *m;
    nn_parts p;

    need_library();
    assert_true(family_toy_make(&a, N, 1, mem));
    assert_int_equal(nn_trees.fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    assert_int_equal(nn_trees.predict(m, &a.x, is, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < N; i += 10) {
        assert_int_equal(nn_trees.explain(m, &a.x, i, &p, mem, NULL), PL_OK);
        assert_true(!p.log_odds && fabs(sum_of(&p, &a.x, i) - is[i]) < 1e-4);
        absent += fabs(p.absent);
        if (!isnan(a.x.column[(size_t)i * FAMILY_COLUMNS]))
            column += p.column[0] * (double)a.x.column[(size_t)i * FAMILY_COLUMNS];
    }
    assert_true(column > 1 && absent > 0); /* the more of column 0, the higher */
    assert_int_equal(nn_trees.fit(&m, &a.x, a.classes, &(nn_fit_conf){ .classifies = true }, mem, NULL), PL_OK);
    assert_int_equal(nn_trees.predict(m, &a.x, is, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < N; i += 10) {
        assert_int_equal(nn_trees.explain(m, &a.x, i, &p, mem, NULL), PL_OK);
        assert_true(p.log_odds && fabs(sum_of(&p, &a.x, i) - log(is[i] / (1 - is[i]))) < 1e-4);
    }
}

/* ---- forest ---- */

static void a_forest_learns_values_and_classes(void **state)
{
    enum { LEARN = 1000, NEW = 400 };
    pl_arena *mem = *state;
    const nn_fit_conf classes = { .seed = 5, .classifies = true }, values = { .seed = 5 };
    double is[NEW], again[NEW], spread = 0;
    family_toy a, b;
    nn_member *m;
    nn_parts p;
    int right = 0;

    need_library();
    assert_true(family_toy_make(&a, LEARN, 1, mem) && family_toy_make(&b, NEW, 2, mem));
    assert_int_equal(nn_forest.fit(&m, &a.x, a.classes, &classes, mem, NULL), PL_OK);
    assert_int_equal(nn_forest.predict(m, &b.x, is, NULL, mem, NULL), PL_OK);
    assert_true(family_toy_again(&m, &nn_forest, m, mem));
    assert_int_equal(nn_forest.predict(m, &b.x, again, NULL, mem, NULL), PL_OK);
    assert_memory_equal(is, again, sizeof is);
    for (int i = 0; i < NEW; i++) {
        assert_true(is[i] >= 0.001 && is[i] <= 0.999);
        right += (is[i] > 0.5) == (b.classes[i] == 1);
    }
    assert_int_equal(nn_forest.explain(m, &b.x, 3, &p, mem, NULL), PL_OK);
    assert_true(!p.log_odds && fabs(sum_of(&p, &b.x, 3) - is[3]) < 1e-5);
    assert_int_equal(nn_forest.fit(&m, &a.x, a.y, &values, mem, NULL), PL_OK);
    assert_int_equal(nn_forest.predict(m, &b.x, is, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < NEW; i++)
        spread += b.y[i] * b.y[i] / NEW;
    print_message("%s: %d of %d right, error %.3f of %.3f\n", nn_forest.describe(m, mem), right, NEW, error_of(is, b.y, NEW),
                  sqrt(spread));
    assert_true(right > 0.75 * NEW && error_of(is, b.y, NEW) < 0.75 * sqrt(spread));
}

/* A mean of leaves, each a mean of values: within their range, and of the right mean. */
static void a_forest_predicts_means_of_what_it_learned(void **state)
{
    enum { LEARN = 100, NEW = 100 };
    pl_arena *mem = *state;
    double is[NEW], low = INFINITY, high = -INFINITY, mean = 0, predicted = 0;
    family_toy a, b;
    nn_member *m;

    need_library();
    assert_true(family_toy_make(&a, LEARN, 1, mem) && family_toy_make(&b, NEW, 2, mem));
    for (int i = 0; i < LEARN; i++) {
        low = fmin(low, a.y[i]);
        high = fmax(high, a.y[i]);
        mean += a.y[i] / LEARN;
    }
    assert_int_equal(nn_forest.fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    assert_int_equal(nn_forest.predict(m, &a.x, is, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < LEARN; i++)
        predicted += is[i] / LEARN;
    assert_true(fabs(predicted - mean) < 0.05 * (high - low));
    assert_true(error_of(is, a.y, LEARN) < 0.15 * (high - low)); /* it has seen most of each */
    assert_int_equal(nn_forest.predict(m, &b.x, is, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < NEW; i++)
        assert_true(is[i] >= low && is[i] <= high);
}

/* Classes without a rule: what a forest says of a molecule is right where its trees have seen it, else by chance. */
static void a_forest_learns_from_every_molecule(void **state)
{
    enum { LEARN = 200 };
    pl_arena *mem = *state;
    double y[LEARN], is[LEARN];
    pl_rng rng = pl_rng_at(3, 0, 0);
    int right = 0;
    family_toy a;
    nn_member *m;

    need_library();
    assert_true(family_toy_make(&a, LEARN, 1, mem));
    for (int i = 0; i < LEARN; i++)
        y[i] = (double)pl_rng_below(&rng, 2);
    assert_int_equal(nn_forest.fit(&m, &a.x, y, &(nn_fit_conf){ .classifies = true }, mem, NULL), PL_OK);
    assert_int_equal(nn_forest.predict(m, &a.x, is, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < LEARN; i++)
        right += (is[i] > 0.5) == (y[i] > 0);
    print_message("%d of %d right\n", right, LEARN);
    assert_true(right > 0.95 * LEARN);
}

/* ---- what cannot be learned ---- */

static void refused(const family_toy *a, int32_t n, const double *y, bool classifies, const char *why, pl_arena *mem)
{
    nn_table x = a->x;
    nn_member *m;
    pl_error err = { 0 };

    x.n = n;
    assert_int_equal(nn_trees.fit(&m, &x, y, &(nn_fit_conf){ .classifies = classifies }, mem, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, why));
}

static void values_that_teach_nothing_are_refused(void **state)
{
    enum { N = 20 };
    pl_arena *mem = *state;
    double same[N], one[N], broken[N], wide[N];
    family_toy a;

    need_library();
    assert_true(family_toy_make(&a, N, 1, mem));
    for (int i = 0; i < N; i++) {
        same[i] = 3.25;
        one[i] = 1;
        broken[i] = i == 7 ? NAN : i;
        wide[i] = i % 2 ? 1.7e308 : -1.7e308;
    }
    refused(&a, 0, a.y, false, "0 training molecules", mem);
    refused(&a, 1, a.y, false, "1 training molecules; at least 10", mem);
    refused(&a, 9, a.y, false, "9 training molecules; at least 10", mem);
    refused(&a, N, same, false, "have the value 3.25", mem);
    refused(&a, N, one, true, "of class 1", mem);
    refused(&a, N, same, true, "classes are 0 and 1", mem);
    refused(&a, N, broken, false, "molecule 8 is not a number", mem);
    for (int i = 0; i < N; i++) {
        nn_member *m;
        assert_int_equal(nn_trees.fit(&m, &a.x, wide, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    }
}

static void ten_molecules_without_differences_are_learned(void **state)
{
    enum { N = 10 };
    pl_arena *mem = *state;
    float features[N][CH_N_FEATURES] = { { 0 } };
    ch_environments none[N] = { { 0 } };
    const nn_table x = { .n = N, .environments = none, .features = (const float(*)[CH_N_FEATURES])features };
    double y[N], is[N];
    nn_member *m;

    need_library();
    for (int i = 0; i < N; i++)
        y[i] = i;
    assert_int_equal(nn_trees.fit(&m, &x, y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    assert_true(family_toy_again(&m, &nn_trees, m, mem));
    assert_int_equal(nn_trees.predict(m, &x, is, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < N; i++)
        assert_true(fabs(is[i] - 4.5) < 1);
}

static bool third_time(void *ctx)
{
    int *asked = ctx;

    return ++*asked == 3;
}

static void a_stop_ends_learning_between_rounds(void **state)
{
    pl_arena *mem = *state;
    int asked = 0;
    pl_error err = { 0 };
    family_toy a;
    nn_member *m;

    need_library();
    assert_true(family_toy_make(&a, 40, 1, mem));
    assert_int_equal(nn_trees.fit(&m, &a.x, a.y, &(nn_fit_conf){ .stop = third_time, .ctx = &asked }, mem, &err), PL_ESTOP);
    assert_string_equal(err.text, "stopped after 2 of 600 rounds of trees");
}

static void a_missing_column_of_the_table_is_refused(void **state)
{
    pl_arena *mem = *state;
    double is[40];
    family_toy a;
    nn_member *m;

    need_library();
    assert_true(family_toy_make(&a, 40, 1, mem));
    assert_int_equal(nn_trees.fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    a.x.n_columns = 1;
    assert_int_equal(nn_trees.predict(m, &a.x, is, NULL, mem, NULL), PL_ECONFIG);
}

/* ---- memory ---- */

static void refused_memory_is_said(void **state)
{
    pl_arena *mem = *state;
    double is[12];
    int refusals = 0;
    family_toy a;
    nn_parts p;

    need_library();
    assert_true(family_toy_make(&a, 12, 1, mem));
    for (long nth = 1; nth < 200; nth++) {
        pl_arena *own = pl_arena_new(0);
        nn_member *m = NULL;
        pl_code code;
        pl_arena_refuse(nth);
        code = nn_trees.fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, own, NULL);
        if (code == PL_OK)
            code = family_toy_again(&m, &nn_trees, m, own) ? PL_OK : PL_ENOMEM;
        if (code == PL_OK)
            code = nn_trees.predict(m, &a.x, is, NULL, own, NULL);
        if (code == PL_OK)
            code = nn_trees.explain(m, &a.x, 0, &p, own, NULL);
        if (code == PL_OK)
            assert_null(pl_arena_get(own, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        pl_arena_free(own);
        if (code == PL_OK)
            break;
        assert_int_equal(code, PL_ENOMEM);
        refusals++;
    }
    print_message("%d requests refused\n", refusals);
    assert_in_range(refusals, 15, 150);
}

/* ---- damaged files ---- */

typedef struct saved {
    nn_tensor *t;
    int n;
    const char *json;
} saved;

/* Opens it, and predicts if it is accepted: nothing is read out of bounds (ASan looks). */
static pl_code try_it(const saved *s, const nn_table *x, pl_arena *mem)
{
    double is[40];
    nn_member *m;
    pl_code code = nn_trees.open(&m, "p", &(nn_tensors){ .n = s->n, .t = s->t }, s->json, mem, NULL);

    if (code == PL_OK) {
        const pl_code predicted = nn_trees.predict(m, x, is, NULL, mem, NULL);
        assert_true(predicted == PL_OK || predicted == PL_ECONFIG); /* another column of the user's table */
    }
    return code;
}

static void damaged_trees_are_refused_or_harmless(void **state)
{
    pl_arena *mem = *state;
    int refusals = 0, tries = 0;
    family_toy a;
    nn_member *m;
    saved s;

    need_library();
    assert_true(family_toy_make(&a, 40, 1, mem));
    assert_int_equal(nn_trees.fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    assert_int_equal(nn_trees.save(m, "p", &s.t, &s.n, &s.json, mem, NULL), PL_OK);
    assert_int_equal(try_it(&s, &a.x, mem), PL_OK);
    for (int k = 0; k < s.n; k++) {
        const size_t bytes = s.t[k].count * nn_dtype_bytes(s.t[k].dtype), step = bytes / 300 + 1;
        uint8_t *at = (uint8_t *)(uintptr_t)s.t[k].data; /* our own memory */
        const size_t count = s.t[k].count--;
        assert_int_equal(try_it(&s, &a.x, mem), PL_EDATA);
        s.t[k].count = count;
        for (size_t i = 0; i < bytes; i += step) {
            const uint8_t was = at[i];
            pl_arena *own = pl_arena_new(0);
            at[i] = (uint8_t)(i % 3 == 0 ? 255 : was ^ 1 << i % 8);
            refusals += try_it(&s, &a.x, own) == PL_EDATA;
            at[i] = was;
            tries++;
            pl_arena_free(own);
        }
    }
    print_message("%d of %d damages refused\n", refusals, tries);
    assert_true(refusals > tries / 4);
    for (int left = (int)strlen(s.json) - 1; left > 0; left -= 5) {
        s.json = pl_sprintf(mem, "%.*s", left, s.json);
        assert_int_equal(try_it(&s, &a.x, mem), PL_EDATA);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ARENA(our_margins_are_the_librarys),
        WITH_ARENA(trees_learn_and_are_the_same_again),
        WITH_ARENA(a_gpu_is_used_where_there_is_one),
        WITH_ARENA(another_unit_changes_nothing),
        WITH_ARENA(parts_add_up_to_the_prediction),
        WITH_ARENA(classes_are_probabilities),
        WITH_ARENA(a_forest_learns_values_and_classes),
        WITH_ARENA(a_forest_predicts_means_of_what_it_learned),
        WITH_ARENA(a_forest_learns_from_every_molecule),
        WITH_ARENA(values_that_teach_nothing_are_refused),
        WITH_ARENA(ten_molecules_without_differences_are_learned),
        WITH_ARENA(a_stop_ends_learning_between_rounds),
        WITH_ARENA(a_missing_column_of_the_table_is_refused),
        WITH_ARENA(refused_memory_is_said),
        WITH_ARENA(damaged_trees_are_refused_or_harmless),
    };

    return cmocka_run_group_tests_name("trees", tests, NULL, NULL);
}
