/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as arrays, by hand and without the library that learns them: from its text, in tensors, predicted, explained. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "models/family/boosted.h"
#include "pipeline/base/rng.h"
#include "pipeline/base/text.h"
#include "tests/unit/guarded.h"

static pl_arena *mem;

static int setup(void **unused)
{
    (void)unused;
    mem = pl_arena_new(0);
    return mem != NULL ? 0 : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    pl_arena_free(mem);
    return 0;
}

/* Two environments, one descriptor, two columns of the table. */
static const uint32_t all_ids[] = { 7, 9, 3, 0, 2 };
static const nn_columns all_columns = { 2, 1, 2, all_ids };

/* Children in any order; a second tree of one leaf. */
static const char *const good[] = {
    "{\"nodeid\":0,\"split\":\"f0\",\"split_condition\":2.5,\"yes\":1,\"no\":2,\"missing\":1,\"cover\":10,\"children\":["
    "{\"nodeid\":2,\"split\":\"f3\",\"split_condition\":-1,\"yes\":3,\"no\":4,\"missing\":4,\"cover\":6,\"children\":["
    "{\"nodeid\":3,\"leaf\":-0.25,\"cover\":1},{\"nodeid\":4,\"leaf\":0.125,\"cover\":5}]},"
    "{\"nodeid\":1,\"leaf\":0.5,\"cover\":4}]}",
    "{\"nodeid\":0,\"leaf\":1.5,\"cover\":3}",
};

enum { NODES = 6 };

static const nn_node nodes[NODES] = {
    { 0, 2.5F, 2, 102, true },   { -1, 0.5F, 0, 0, false },   { 1, -1, 4, 43, false },
    { -1, -0.25F, 0, 0, false }, { -1, 0.125F, 0, 0, false }, { -1, 1.5F, 0, 0, false },
};

static void are_nodes(const nn_tree_set *s, const nn_node *want, int n)
{
    assert_int_equal(s->n_nodes, n);
    for (int k = 0; k < n; k++) {
        const nn_node *is = &s->node[k];
        if (is->column != want[k].column || is->value != want[k].value || is->left != want[k].left ||
            is->absent_left != want[k].absent_left || (is->column >= 0 && is->right != want[k].right))
            fail_msg("node %d: column %d, %g, right %d, left %d, absent %d", k, (int)is->column, (double)is->value, (int)is->right,
                     (int)is->left, (int)is->absent_left);
    }
}

static nn_tree_set made(void)
{
    nn_tree_set s;
    pl_error err = { 0 };

    if (nn_tree_set_parse(&s, good, 2, &all_columns, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    return s;
}

/* ---- from the library's text ---- */

static void trees_are_taken_from_the_librarys_text(void **unused)
{
    const nn_tree_set s = made();

    (void)unused;
    are_nodes(&s, nodes, NODES);
    assert_int_equal(s.n_trees, 2);
    assert_true(s.first[0] == 0 && s.first[1] == 5 && s.first[2] == 6);
    assert_true(s.columns.n_environments == 1 && s.columns.n_features == 0 && s.columns.n_others == 1);
    assert_true(s.columns.id[0] == 7 && s.columns.id[1] == 0);
}

/* A node whose left branch has `part` of `all` molecules. */
static void shares_are_kept_from_1_to_254(void **unused)
{
    static const struct {
        const char *all, *part;
        int left;
    } cases[] = { { "10", "0", 1 },        { "10", "10", 254 },     { "0", "0", 127 }, { "255", "1.4", 1 }, { "255", "1.5", 2 },
                  { "255", "253.4", 253 }, { "255", "254.4", 254 }, { "2", "1", 128 }, { "-1", "3", 127 } };

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = pl_sprintf(mem,
                                      "{\"nodeid\":0,\"split\":\"f4\",\"split_condition\":0,\"yes\":1,\"no\":2,\"missing\":2,"
                                      "\"cover\":%s,\"children\":[{\"nodeid\":1,\"leaf\":0,\"cover\":%s},"
                                      "{\"nodeid\":2,\"leaf\":0,\"cover\":1}]}",
                                      cases[i].all, cases[i].part);
        nn_tree_set s;

        assert_int_equal(nn_tree_set_parse(&s, &text, 1, &all_columns, mem, NULL), PL_OK);
        assert_int_equal(s.node[0].left, cases[i].left);
        assert_false(s.node[0].absent_left);
    }
}

#define SPLIT(split, rest) "{\"nodeid\":0,\"split\":" split ",\"split_condition\":1,\"yes\":1,\"no\":2,\"children\":[" rest "]}"
#define LEAVES "{\"nodeid\":1,\"leaf\":0},{\"nodeid\":2,\"leaf\":0}"

static void text_of_another_form_is_refused(void **unused)
{
    static const char *const texts[] = {
        "",
        "{\"nodeid\":0,\"leaf\":1",
        "{\"nodeid\":0,\"leaf\":\"1\"}",
        "{\"leaf\":1}",
        SPLIT("\"f5\"", LEAVES),
        SPLIT("\"f-1\"", LEAVES),
        SPLIT("\"f-4294967296\"", LEAVES), /* 0 in 32 bits */
        SPLIT("\"f4294967296\"", LEAVES),
        SPLIT("\"f\"", LEAVES),
        SPLIT("\"g1\"", LEAVES),
        SPLIT("\"f1x\"", LEAVES),
        SPLIT("7", LEAVES),
        SPLIT("\"f1\"", "{\"nodeid\":1,\"leaf\":0}"),
        SPLIT("\"f1\"", "{\"nodeid\":2,\"leaf\":0}"),
        "{\"nodeid\":0,\"split\":\"f1\",\"split_condition\":\"1\",\"yes\":1,\"no\":2,\"children\":[" LEAVES "]}",
    };
    static const char *const fine[] = { SPLIT("\"f0\"", LEAVES), SPLIT("\"f4\"", LEAVES) };
    char want[120];
    nn_tree_set s;

    (void)unused;
    (void)snprintf(want, sizeof want, "XGBoost %s writes its trees in an unknown form", nn_xgboost_version());
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pl_error err = { 0 };
        if (nn_tree_set_parse(&s, &texts[i], 1, &all_columns, mem, &err) != PL_EBUG)
            fail_msg("taken: %s", texts[i]);
        assert_string_equal(err.text, want);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(nn_tree_set_parse(&s, &fine[i], 1, &all_columns, mem, NULL), PL_OK);
}

/* A tree of `levels` levels whose left branches go down. */
static const char *deep(int levels)
{
    const char *text = "{\"nodeid\":1,\"leaf\":0}";

    for (int k = 1; k < levels; k++)
        text = pl_sprintf(mem,
                          "{\"nodeid\":1,\"split\":\"f1\",\"split_condition\":%d,\"yes\":1,\"no\":2,\"children\":[%s,"
                          "{\"nodeid\":2,\"leaf\":%d}]}",
                          k, text, k);
    return text;
}

/* ---- in tensors ---- */

typedef struct stored {
    int32_t column[2], trees[3];
    float value[NODES];
    uint8_t node[3 * NODES], left[NODES];
    nn_tensor t[NN_TREE_TENSORS];
} stored;

static nn_tensors list_of(const nn_tensor *t) { return (nn_tensors){ .n = NN_TREE_TENSORS, .t = t }; }

static void store(stored *out, const char *prefix)
{
    const nn_tree_set s = made();

    assert_int_equal(nn_tree_set_tensors(out->t, &s, prefix, mem, NULL), PL_OK);
    memcpy(out->column, out->t[0].data, sizeof out->column);
    memcpy(out->value, out->t[1].data, sizeof out->value);
    memcpy(out->node, out->t[2].data, sizeof out->node);
    memcpy(out->left, out->t[3].data, sizeof out->left);
    memcpy(out->trees, out->t[4].data, sizeof out->trees);
    void *const data[] = { out->column, out->value, out->node, out->left, out->trees };
    for (int k = 0; k < NN_TREE_TENSORS; k++)
        out->t[k].data = data[k];
}

static void trees_are_stored_in_five_tensors(void **unused)
{
    static const char *const names[] = { "p.column", "p.value", "p.node", "p.left", "p.trees" };
    static const nn_dtype types[] = { NN_I32, NN_F32, NN_U8, NN_U8, NN_I32 };
    static const int counts[] = { 2, NODES, 3 * NODES, NODES, 3 };
    static const uint8_t words[3 * NODES] = { 1, 0, 0x80, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    static const uint8_t left[NODES] = { 102, 0, 43, 0, 0, 0 };
    nn_tree_set back;
    stored s;

    (void)unused;
    store(&s, "p");
    for (int k = 0; k < NN_TREE_TENSORS; k++) {
        assert_string_equal(s.t[k].name, names[k]);
        assert_true(s.t[k].dtype == types[k] && (int)s.t[k].count == counts[k]);
        assert_int_equal(s.t[k].n_dims, k == 2 ? 2 : 1);
        assert_int_equal(s.t[k].dims[0], k == 2 ? NODES : counts[k]);
        assert_int_equal(s.t[k].dims[1], k == 2 ? 3 : 1);
    }
    assert_memory_equal(s.node, words, sizeof words);
    assert_memory_equal(s.left, left, sizeof left);
    for (int k = 0; k < NODES; k++)
        assert_true(s.value[k] == nodes[k].value);
    assert_true(s.column[0] == 7 && s.column[1] == 0 && s.trees[0] == 1 && s.trees[1] == 0 && s.trees[2] == 2);
    const nn_tensors all = list_of(s.t);
    assert_int_equal(nn_tree_set_take(&back, &all, "p", mem, NULL), PL_OK);
    are_nodes(&back, nodes, NODES);
    assert_true(back.n_trees == 2 && back.first[0] == 0 && back.first[1] == 5 && back.first[2] == 6);
    assert_true(back.columns.n_environments == 1 && back.columns.n_features == 0 && back.columns.n_others == 1);
    assert_true(back.columns.id[0] == 7 && back.columns.id[1] == 0);
}

static void refused(const stored *s, const char *prefix, const char *want)
{
    const nn_tensors all = list_of(s->t);
    nn_tree_set back;
    pl_error err = { 0 };

    if (nn_tree_set_take(&back, &all, prefix, mem, &err) != PL_EDATA || strcmp(err.text, want) != 0)
        fail_msg("\"%s\", not \"%s\"", err.text, want);
}

static void tensors_that_are_missing_or_do_not_fit_are_named(void **unused)
{
    static const char misfit[] = "p.node, .value, .left and .trees do not fit each other";
    stored s;

    (void)unused;
    for (int k = 0; k < NN_TREE_TENSORS; k++) {
        store(&s, "p");
        const char *want = pl_sprintf(mem, "tensor %s is missing or of another type", s.t[k].name);
        s.t[k].name = "q";
        refused(&s, "p", want);
        store(&s, "p");
        s.t[k].dtype = NN_BF16;
        refused(&s, "p", want);
    }
    for (int k = 1; k < 4; k++) {
        store(&s, "p");
        s.t[k].count--;
        refused(&s, "p", misfit);
    }
    for (int k = 0; k < 2; k++) {
        store(&s, "p");
        s.trees[2] = k ? NODES + 1 : 0;
        refused(&s, "p", misfit);
        s.trees[2] = 2;
        s.trees[k] = -1;
        refused(&s, "p", "p.column has fewer columns than stated");
    }
    store(&s, "p");
    s.trees[1] = 2;
    refused(&s, "p", "p.column has fewer columns than stated");
    s.trees[1] = 1; /* as many as there are */
    const nn_tensors all = list_of(s.t);
    nn_tree_set back;
    assert_int_equal(nn_tree_set_take(&back, &all, "p", mem, NULL), PL_OK);
    assert_true(back.columns.n_environments == 1 && back.columns.n_features == 1 && back.columns.n_others == 0);
    s.t[4].count = 2;
    assert_int_equal(nn_tree_set_take(&back, &all, "p", mem, NULL), PL_EDATA);
}

/* Names of up to 127 bytes. */
static void a_prefix_that_is_too_long_names_no_tensor(void **unused)
{
    char prefix[130];
    nn_tree_set back;
    stored s;

    (void)unused;
    memset(prefix, 'p', sizeof prefix);
    prefix[120] = '\0';
    store(&s, prefix);
    const nn_tensors all = list_of(s.t);
    assert_int_equal(nn_tree_set_take(&back, &all, prefix, mem, NULL), PL_OK);
    prefix[120] = 'p';
    prefix[121] = '\0';
    store(&s, prefix);
    assert_int_equal(nn_tree_set_take(&back, &all, prefix, mem, NULL), PL_EDATA);
}

static void nodes_that_are_none_are_counted(void **unused)
{
    stored s;

    (void)unused;
    for (int k = 0; k < NODES; k++) {
        const char *want = pl_sprintf(mem, "node %d of its trees is damaged", k);
        store(&s, "p");
        s.value[k] = k % 2 ? NAN : INFINITY;
        refused(&s, "p", want);
        store(&s, "p");
        s.node[3 * k + k % 3] = k % 3 ? 1 : 3; /* a column that is not there */
        refused(&s, "p", want);
    }
    for (int k = 0; k < 4; k++) {
        const int at = k < 2 ? 0 : 2;
        store(&s, "p");
        s.left[at] = k % 2 ? 255 : 0;
        refused(&s, "p", pl_sprintf(mem, "node %d of its trees is damaged", at));
        s.left[at] = k % 2 ? 254 : 1;
        const nn_tensors all = list_of(s.t);
        nn_tree_set back;
        assert_int_equal(nn_tree_set_take(&back, &all, "p", mem, NULL), PL_OK);
        assert_int_equal(back.node[at].left, k % 2 ? 254 : 1);
    }
    store(&s, "p");
    s.node[15] = 1; /* the last leaf is none */
    s.left[5] = 1;
    refused(&s, "p", "tree 1 of 2 has no end");
    store(&s, "p");
    s.trees[2] = 3;
    refused(&s, "p", "tree 2 of 3 has no end");
    s.trees[2] = 1;
    refused(&s, "p", "nodes are left after tree 1, the last");
    store(&s, "p");
    s.column[1] = -1;
    refused(&s, "p", "column 4294967295 does not exist");
}

static void trees_have_up_to_64_levels(void **unused)
{
    (void)unused;
    for (int levels = NN_TREE_LEVELS - 1; levels <= NN_TREE_LEVELS + 1; levels++) {
        const char *text = deep(levels);
        nn_tensor t[NN_TREE_TENSORS];
        nn_tree_set s, back;
        const pl_code code = nn_tree_set_parse(&s, &text, 1, &all_columns, mem, NULL);

        assert_int_equal(code, levels <= NN_TREE_LEVELS ? PL_OK : PL_EBUG);
        if (code != PL_OK)
            continue;
        assert_int_equal(s.n_nodes, 2 * levels - 1);
        assert_int_equal(nn_tree_set_tensors(t, &s, "p", mem, NULL), PL_OK);
        const nn_tensors all = list_of(t);
        assert_int_equal(nn_tree_set_take(&back, &all, "p", mem, NULL), PL_OK);
        are_nodes(&back, s.node, s.n_nodes);
    }
    /* One level more than a program writes. */
    enum { DEEP = NN_TREE_LEVELS + 1, N = 2 * DEEP - 1 };
    int32_t column[] = { 7 }, trees[] = { 1, 0, 1 };
    float value[N] = { 0 };
    uint8_t node[3 * N] = { 0 }, left[N] = { 0 };
    for (int k = 0; k < DEEP - 1; k++)
        node[3 * k] = left[k] = 1;
    const nn_tensor t[] = {
        { .name = "p.column", .dtype = NN_I32, .count = 1, .data = column },
        { .name = "p.value", .dtype = NN_F32, .count = N, .data = value },
        { .name = "p.node", .dtype = NN_U8, .count = sizeof node, .data = node },
        { .name = "p.left", .dtype = NN_U8, .count = N, .data = left },
        { .name = "p.trees", .dtype = NN_I32, .count = 3, .data = trees },
    };
    stored s;
    memcpy(s.t, t, sizeof t);
    refused(&s, "p", "tree 0 of 1 has no end");
}

/* ---- predictions ---- */

enum { ROWS = 5 };

static const float rows[ROWS][2] = { { 2, 0 }, { 2.5F, -1 }, { 3, -1.5F }, { NAN, -2 }, { 3, NAN } };
static const float row_leaf[ROWS] = { 0.5F, 0.125F, -0.25F, 0.5F, 0.125F };

static float twice(const void *ctx, float x) { return x * *(const float *)ctx; }

static void margins_are_sums_of_leaves(void **unused)
{
    nn_tree_set s = made();
    const float two = 2;
    float many[ROWS], wide[ROWS][3];

    (void)unused;
    for (int i = 0; i < ROWS; i++) {
        assert_true(nn_tree_set_margin(&s, 10, rows[i]) == 10 + row_leaf[i] + 1.5F);
        memcpy(wide[i], rows[i], sizeof rows[i]);
    }
    nn_tree_set_margins(many, &s, 10, wide[0], 3, ROWS);
    for (int i = 0; i < ROWS; i++)
        assert_true(many[i] == 10 + row_leaf[i] + 1.5F);
    nn_tree_set_leaves(&s, twice, &two);
    for (int i = 0; i < ROWS; i++)
        assert_true(nn_tree_set_margin(&s, 10, rows[i]) == 10 + 2 * (row_leaf[i] + 1.5F));
}

/* ---- what moved a prediction ---- */

enum { FEW = 5 }; /* columns of small trees */

/* The mean of node k's leaves where only the columns in `known` are known. */
static double expected(const nn_node *node, int32_t k, const float *number, unsigned known)
{
    const nn_node *n = &node[k];
    const double share = n->left / 255.0;

    if (n->column < 0)
        return (double)n->value;
    if ((known >> n->column & 1) != 0) {
        const bool left = isnan(number[n->column]) ? n->absent_left : number[n->column] < n->value;
        return expected(node, left ? k + 1 : n->right, number, known);
    }
    return share * expected(node, k + 1, number, known) + (1 - share) * expected(node, n->right, number, known);
}

/* Shapley's value of a column by definition: what it adds to each subset of the others. */
static double shapley(const nn_node *node, const float *number, int column)
{
    static const double factorial[] = { 1, 1, 2, 6, 24, 120 };
    double sum = 0;

    for (unsigned known = 0; known < 1U << FEW; known++) {
        const int size = __builtin_popcount(known);
        if ((known >> column & 1) == 0)
            sum += factorial[size] * factorial[FEW - size - 1] / factorial[FEW] *
                   (expected(node, 0, number, known | 1U << column) - expected(node, 0, number, known));
    }
    return sum;
}

/* A random tree below `level`, in preorder; returns the place after it. Columns come again on a path. */
static int32_t grow(nn_node *node, int32_t k, int level, pl_rng *rng)
{
    const bool leaf = level == 7 || (level > 2 && pl_rng_below(rng, 4) == 0);

    node[k] = (nn_node){ .column = leaf ? -1 : (int32_t)pl_rng_below(rng, FEW),
                         .value = (float)pl_rng_normal(rng),
                         .left = (uint8_t)(1 + pl_rng_below(rng, 254)),
                         .absent_left = pl_rng_below(rng, 2) == 1 };
    if (leaf)
        return k + 1;
    node[k].right = grow(node, k + 1, level + 1, rng);
    return grow(node, node[k].right, level + 1, rng);
}

static void parts_are_shapley_values(void **unused)
{
    enum { ROOM = 256 };
    static const uint32_t id[FEW] = { 0, 1, 2, 3, 4 };
    pl_rng rng = pl_rng_at(6, 0, 0);

    (void)unused;

    for (int tree = 0; tree < 20; tree++) {
        nn_node node[ROOM];
        const int32_t first[] = { 0, grow(node, 0, 0, &rng) };
        const nn_tree_set s = { 1, first[1], { .n_others = FEW, .id = id }, first, node };
        float number[FEW];
        double part[FEW], base, sum;
        assert_in_range(first[1], 7, ROOM);
        for (int k = 0; k < FEW; k++)
            number[k] = pl_rng_below(&rng, 5) == 0 ? NAN : (float)pl_rng_normal(&rng);
        assert_int_equal(nn_tree_set_explain(&s, number, part, &base, mem, NULL), PL_OK);
        sum = base;
        for (int k = 0; k < FEW; k++) {
            sum += part[k];
            assert_true(fabs(part[k] - shapley(node, number, k)) < 1e-12);
        }
        assert_true(fabs(base - expected(node, 0, number, 0)) < 1e-12);
        assert_true(fabs(sum - (double)nn_tree_set_margin(&s, 0, number)) < 1e-12);
    }
}

/* ---- the member ---- */

static const char settings[] =
    "{\"classifies\":%s,\"log_odds\":%s,\"start\":0.5,\"mean\":10,\"scale\":2,\"library\":\"XGBoost 1.2.3\"}";

static nn_member *opened(const char *classifies, const char *log_odds)
{
    stored *s = PL_NEW(mem, stored, 1);
    nn_tensors all;
    nn_member *m;
    pl_error err = { 0 };

    store(s, "p");
    all = list_of(s->t);
    if (nn_boosted_open(&m, "p", &all, pl_sprintf(mem, settings, classifies, log_odds), mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    return m;
}

static void wrong_settings_are_named(void **unused)
{
    static const struct {
        const char *json, *said;
    } cases[] = {
        { "[]", "the settings of p are no JSON object" },
        { "{", "the settings of p are no JSON object" },
        { "{\"mean\":1,\"scale\":1,\"library\":\"XGBoost 1\"}", "setting start is not a number" },
        { "{\"start\":1,\"mean\":\"1\",\"scale\":1,\"library\":\"XGBoost 1\"}", "setting mean is not a number" },
        { "{\"start\":1,\"mean\":1,\"scale\":null,\"library\":\"XGBoost 1\"}", "setting scale is not a number" },
        { "{\"start\":1e300,\"mean\":1,\"scale\":1,\"library\":\"XGBoost 1\"}",
          "settings start and library are not those of trees" },
        { "{\"start\":1,\"mean\":1,\"scale\":1}", "settings start and library are not those of trees" },
        { "{\"start\":1,\"mean\":1,\"scale\":1,\"library\":\"XGBoost1\"}", "settings start and library are not those of trees" },
    };
    stored s;

    (void)unused;
    store(&s, "p");
    const nn_tensors all = list_of(s.t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nn_member *m;
        pl_error err = { 0 };
        assert_int_equal(nn_boosted_open(&m, "p", &all, cases[i].json, mem, &err), PL_EDATA);
        assert_string_equal(err.text, cases[i].said);
    }
}

/* 70 molecules: environment 7 occurs 0 to 3 times, column 0 is -2 or, as in the second node, -1. */
enum { MOLECULES = 70 };

static nn_table molecules(void)
{
    static ch_environment at[MOLECULES];
    static ch_environments environments[MOLECULES];
    static float features[MOLECULES][CH_N_FEATURES], column[MOLECULES];

    for (int i = 0; i < MOLECULES; i++) {
        at[i] = (ch_environment){ 7, (uint32_t)(i % 4) };
        environments[i] = (ch_environments){ i % 4 != 0, &at[i] };
        column[i] = i % 3 ? -1 : -2;
    }
    return (nn_table){ MOLECULES, environments, (const float(*)[CH_N_FEATURES])features, 1, column };
}

static double leaf_of_column(int i) { return i % 3 ? 0.125 : -0.25; }
static double margin_of_molecule(int i) { return 0.5 + 1.5 + (i % 4 != 3 ? 0.5 : leaf_of_column(i)); }

static void values_and_classes_come_from_margins(void **unused)
{
    const nn_table x = molecules();
    double value[MOLECULES], variance[MOLECULES];

    (void)unused;
    memset(variance, 0, sizeof variance);
    assert_int_equal(nn_boosted_predict(opened("false", "false"), &x, value, variance, mem, NULL), PL_OK);
    for (int i = 0; i < MOLECULES; i++)
        assert_true(value[i] == 10 + 2 * margin_of_molecule(i) && isnan(variance[i]));
    assert_int_equal(nn_boosted_predict(opened("true", "true"), &x, value, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < MOLECULES; i++)
        assert_true(fabs(value[i] - 1 / (1 + exp(-margin_of_molecule(i)))) < 1e-14);
    assert_int_equal(nn_boosted_predict(opened("true", "false"), &x, value, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < MOLECULES; i++)
        assert_true(value[i] == 1 - 0.001);
    const nn_table none = { 1, x.environments, x.features, 0, NULL };
    pl_error err = { 0 };
    assert_int_equal(nn_boosted_predict(opened("false", "false"), &none, value, NULL, mem, &err), PL_ECONFIG);
    assert_string_equal(err.text, "the model reads column 1 of the table, which has 0");
}

/* Shares of class 1 stay within 0.001 and 0.999. */
static void shares_of_a_class_stay_off_0_and_1(void **unused)
{
    static const struct {
        double mean, value;
    } cases[] = {
        { -4.5, 0.001 }, { 0.001 - 4, 0.001 }, { 0.5 - 4, 0.5 }, { 0.999 - 4, 0.999 }, { 7, 0.999 }, { 0.002 - 4, 0.002 }
    };
    const nn_table x = { 1, molecules().environments, molecules().features, 1, molecules().column };
    stored s;

    (void)unused;
    store(&s, "p");
    const nn_tensors all = list_of(s.t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nn_member *m;
        double value;
        char mean[32];
        const char *json = pl_sprintf(mem, "{\"classifies\":true,\"start\":0,\"mean\":%s,\"scale\":2,\"library\":\"XGBoost 1\"}",
                                      pl_real_str(cases[i].mean, mean));
        assert_int_equal(nn_boosted_open(&m, "p", &all, json, mem, NULL), PL_OK);
        assert_int_equal(nn_boosted_predict(m, &x, &value, NULL, mem, NULL), PL_OK);
        assert_true(fabs(value - cases[i].value) < 1e-12);
    }
}

/* By Shapley's formula for the two columns. */
static void a_prediction_is_explained_by_what_the_molecule_has(void **unused)
{
    const nn_table x = molecules();
    nn_member *m = opened("false", "false");

    (void)unused;
    for (int i = 0; i < 12; i++) {
        const double a = 102 / 255.0, b = 43 / 255.0, right = b * -0.25 + (1 - b) * 0.125, none = a * 0.5 + (1 - a) * right;
        const double deep_leaf = leaf_of_column(i), both = margin_of_molecule(i) - 2;
        const double first = i % 4 != 3 ? 0.5 : right, second = a * 0.5 + (1 - a) * deep_leaf;
        const double by_environment = 2 * (first - none + both - second) / 2, by_column = 2 * (second - none + both - first) / 2;
        nn_parts parts;

        assert_int_equal(nn_boosted_explain(m, &x, i, &parts, mem, NULL), PL_OK);
        assert_false(parts.log_odds);
        assert_true(fabs(parts.base - (10 + 2 * (2 + none))) < 1e-12);
        assert_true(fabs(parts.column[0] - by_column) < 1e-12);
        if (i % 4 == 0)
            assert_true(fabs(parts.absent - by_environment) < 1e-12);
        else
            assert_true(parts.absent == 0 && fabs(parts.environment[0] - by_environment) < 1e-12);
        for (int k = 0; k < CH_N_FEATURES; k++)
            assert_true(parts.feature[k] == 0);
    }
    nn_parts parts;
    assert_int_equal(nn_boosted_explain(opened("true", "true"), &x, 0, &parts, mem, NULL), PL_OK);
    assert_true(parts.log_odds);
}

static void a_member_is_described_and_saved_as_it_was(void **unused)
{
    nn_member *m = opened("true", "false");
    nn_tensor *t;
    const char *json;
    stored s;
    int n = 0;

    (void)unused;
    store(&s, "q");
    assert_string_equal(nn_boosted_describe(m, mem), "2 trees, 6 nodes, 2 columns, XGBoost 1.2.3");
    assert_int_equal(nn_boosted_save(m, "q", &t, &n, &json, mem, NULL), PL_OK);
    assert_int_equal(n, NN_TREE_TENSORS);
    assert_string_equal(json, pl_sprintf(mem, settings, "true", "false"));
    for (int k = 0; k < n; k++) {
        assert_string_equal(t[k].name, s.t[k].name);
        assert_memory_equal(t[k].data, s.t[k].data, s.t[k].count * nn_dtype_bytes(s.t[k].dtype));
    }
}

/* ---- memory that is refused: linked with -Wl,--wrap=pl_arena_get ---- */

static int until_refused; /* calls; 0: none is refused */
static bool guards;       /* requests get memory with nothing behind it */
void *__real_pl_arena_get(pl_arena *from, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *from, size_t n, size_t size);

void *__wrap_pl_arena_get(pl_arena *from, size_t n, size_t size)
{
    if (until_refused > 0 && --until_refused == 0)
        return NULL;
    return guards ? guarded(n, size) : __real_pl_arena_get(from, n, size);
}

typedef struct works {
    nn_tree_set set;
    stored s;
    nn_member *m;
    nn_table x;
} works;

static pl_code parses(works *w, pl_error *err)
{
    nn_tree_set s;

    (void)w;
    return nn_tree_set_parse(&s, good, 2, &all_columns, mem, err);
}

static pl_code stores(works *w, pl_error *err)
{
    nn_tensor t[NN_TREE_TENSORS];

    return nn_tree_set_tensors(t, &w->set, "p", mem, err);
}

static pl_code opens(works *w, pl_error *err)
{
    const nn_tensors all = list_of(w->s.t);
    nn_member *m;

    return nn_boosted_open(&m, "p", &all, "{\"start\":1,\"mean\":1,\"scale\":1,\"library\":\"XGBoost 1\"}", mem, err);
}

static pl_code saves(works *w, pl_error *err)
{
    const char *json;
    nn_tensor *t;
    int n;

    return nn_boosted_save(w->m, "p", &t, &n, &json, mem, err);
}

static pl_code predicts(works *w, pl_error *err)
{
    double value[MOLECULES];

    return nn_boosted_predict(w->m, &w->x, value, NULL, mem, err);
}

static pl_code explains(works *w, pl_error *err)
{
    nn_parts parts;

    return nn_boosted_explain(w->m, &w->x, 0, &parts, mem, err);
}

static pl_code makes_rows(works *w, pl_error *err)
{
    nn_columns c;
    nn_sparse rows_of;
    const pl_code code = nn_columns_of(&c, &w->x, 1, mem, err);

    return code == PL_OK ? nn_columns_rows(&rows_of, &c, &w->x, mem, err) : code;
}

/* Descriptors only: all that was asked for is used. */
static pl_code makes_columns(works *w, pl_error *err)
{
    const ch_environments none = { 0 };
    nn_columns c;

    return nn_columns_of(&c, &(nn_table){ .n = 1, .environments = &none, .features = w->x.features }, 1, mem, err);
}

static pl_code (*const all_works[])(works *, pl_error *) = { parses,   stores,   opens,      saves,
                                                             predicts, explains, makes_rows, makes_columns };
enum { WORKS = sizeof all_works / sizeof *all_works };

static void memory_is_used_to_its_end_and_no_further(void **unused)
{
    works w = { .set = made(), .m = opened("false", "false"), .x = molecules() };

    (void)unused;
    store(&w.s, "p");
    guards = true;
    for (int k = 0; k < WORKS; k++)
        assert_int_equal(all_works[k](&w, NULL), PL_OK);
    guards = false;
}

/* Each request in turn. */
static void memory_that_is_refused_is_told(void **unused)
{
    works w = { .set = made(), .m = opened("false", "false"), .x = molecules() };

    (void)unused;
    store(&w.s, "p");
    for (int k = 0; k < WORKS; k++) {
        pl_code code = PL_ENOMEM;
        int n = 0;
        while (code != PL_OK) {
            pl_error err = { 0 };
            until_refused = ++n;
            code = all_works[k](&w, &err);
            if (code == PL_OK)
                assert_int_equal(until_refused, 1); /* none was refused so far */
            until_refused = 0;
            if (code != PL_OK && (code != PL_ENOMEM || err.text[0] == '\0'))
                fail_msg("%d, request %d: %d, \"%s\"", k, n, (int)code, err.text);
        }
        assert_true(n > 1);
    }
    until_refused = 1;
    assert_null(nn_boosted_describe(w.m, mem));
    until_refused = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(trees_are_taken_from_the_librarys_text, setup, teardown),
        cmocka_unit_test_setup_teardown(shares_are_kept_from_1_to_254, setup, teardown),
        cmocka_unit_test_setup_teardown(text_of_another_form_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(trees_are_stored_in_five_tensors, setup, teardown),
        cmocka_unit_test_setup_teardown(tensors_that_are_missing_or_do_not_fit_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_prefix_that_is_too_long_names_no_tensor, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_that_are_none_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(trees_have_up_to_64_levels, setup, teardown),
        cmocka_unit_test_setup_teardown(margins_are_sums_of_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_are_shapley_values, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_settings_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(values_and_classes_come_from_margins, setup, teardown),
        cmocka_unit_test_setup_teardown(shares_of_a_class_stay_off_0_and_1, setup, teardown),
        cmocka_unit_test_setup_teardown(a_prediction_is_explained_by_what_the_molecule_has, setup, teardown),
        cmocka_unit_test_setup_teardown(a_member_is_described_and_saved_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_is_used_to_its_end_and_no_further, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_that_is_refused_is_told, setup, teardown),
    };

    return cmocka_run_group_tests_name("tree_set", tests, NULL, NULL);
}
