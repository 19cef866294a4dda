/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/made_trees.h - sets of trees made by hand. Include it once, after cmocka.h. */
#ifndef TESTS_MADE_TREES_H
#define TESTS_MADE_TREES_H

#include <stdint.h>
#include <string.h>

#include "models/family/boosted.h"

static pl_arena *mem;

static inline int setup(void **unused)
{
    (void)unused;
    mem = pl_arena_new(0);
    return mem != NULL ? 0 : -1;
}

static inline int teardown(void **unused)
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

static inline void are_nodes(const nn_tree_set *s, const nn_node *want, int n)
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

static inline nn_tree_set made(void)
{
    nn_tree_set s;
    pl_error err = { 0 };

    if (nn_tree_set_parse(&s, good, 2, &all_columns, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    return s;
}

typedef struct stored {
    int32_t column[2], trees[3];
    float value[NODES];
    uint8_t node[3 * NODES], left[NODES];
    nn_tensor t[NN_TREE_TENSORS];
} stored;

static inline nn_tensors list_of(const nn_tensor *t) { return (nn_tensors){ .n = NN_TREE_TENSORS, .t = t }; }

static inline void store(stored *out, const char *prefix)
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

#endif
