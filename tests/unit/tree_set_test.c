/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as arrays, by hand and without the library that learns them: from its text, in tensors, predicted, explained. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/base/rng.h"
#include "pipeline/base/text.h"
#include "tests/unit/made_trees.h"

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

/* As XGBoost writes it (src/tree/tree_model.cc): every number goes to the right, and what is absent to the left. */
static void a_split_from_absent_values_alone_is_read(void **unused)
{
    static const char *const text =
        "{ \"nodeid\": 0, \"depth\": 0, \"split\": \"f1\", \"split_condition\": -inf, \"yes\": 1, \"no\": 2, \"missing\": 1, "
        "\"gain\": 7, \"cover\": 2, \"children\": [{ \"nodeid\": 1, \"leaf\": 4, \"cover\": 1 }, "
        "{ \"nodeid\": 2, \"depth\": 1, \"split\": \"f1\", \"split_condition\": -inf, \"yes\": 3, \"no\": 4, \"missing\": 4, "
        "\"children\": [{ \"nodeid\": 3, \"leaf\": 5 }, { \"nodeid\": 4, \"leaf\": 6 }]}]}";
    static const float numbers[] = { -FLT_MAX, -1, 0, FLT_MAX, INFINITY };
    const float absent = NAN;
    nn_tree_set s;

    (void)unused;
    assert_int_equal(nn_tree_set_parse(&s, &text, 1, &all_columns, mem, NULL), PL_OK);
    assert_int_equal(s.n_nodes, 5);
    assert_true(nn_tree_set_margin(&s, 0, &absent) == 4);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(nn_tree_set_margin(&s, 0, &numbers[i]) == 6);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(trees_are_taken_from_the_librarys_text, setup, teardown),
        cmocka_unit_test_setup_teardown(shares_are_kept_from_1_to_254, setup, teardown),
        cmocka_unit_test_setup_teardown(text_of_another_form_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_split_from_absent_values_alone_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(trees_are_stored_in_five_tensors, setup, teardown),
        cmocka_unit_test_setup_teardown(tensors_that_are_missing_or_do_not_fit_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_prefix_that_is_too_long_names_no_tensor, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_that_are_none_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(trees_have_up_to_64_levels, setup, teardown),
        cmocka_unit_test_setup_teardown(margins_are_sums_of_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_are_shapley_values, setup, teardown),
    };

    return cmocka_run_group_tests_name("tree_set", tests, NULL, NULL);
}
