/* models/family/tree_set.h - regression trees as flat arrays: taken from a library's text, stored, predicted, explained.
 *
 * A row's margin is `start` plus one leaf of each tree, added in float in the order of the trees: the sum of XGBoost, to the last bit.
 * In a tensor a node is its column + 1 (0: a leaf) in 23 bits, bit 23 set if an absent number goes left, and a float; of
 * nodes in preorder (a node, its left branch, its right branch) no more is needed. */
#ifndef NN_TREE_SET_H
#define NN_TREE_SET_H

#include "models/family/columns.h"

enum { NN_TREE_LEVELS = 64, NN_TREE_COLUMNS = (1 << 23) - 2, NN_TREE_TENSORS = 5 };

typedef struct nn_node {
    int32_t column; /* -1: a leaf                                                      */
    float value;    /* left if the number is less than value; of a leaf: what it adds  */
    int32_t right;  /* the right child; the left one is the next node                  */
    uint8_t left;   /* share of the training molecules that went left, in 1/255: 1..254 */
    bool absent_left;
} nn_node;

typedef struct nn_tree_set {
    int32_t n_trees, n_nodes;
    nn_columns columns;
    const int32_t *first; /* [n_trees+1] nodes of tree t: first[t]..first[t+1]-1 */
    nn_node *node;        /* [n_nodes]   in preorder                             */
} nn_tree_set;

/* From n trees of nn_booster_trees, whose columns are those of c; keeps the columns that a tree asks for. In mem. ENOMEM.
 * EBUG: text of another kind. */
pl_code nn_tree_set_parse(nn_tree_set *out, const char *const *tree, int n, const nn_columns *c, pl_arena *mem, pl_error *err);

/* The margin of a row: number[i] for column i, NaN where it is absent. */
float nn_tree_set_margin(const nn_tree_set *s, float start, const float *number);

/* The same for n rows, `width` numbers apart. */
void nn_tree_set_margins(float *out, const nn_tree_set *s, float start, const float *number, size_t width, int32_t n);

/* By how much each column moved the margin: out[i] for column i. Shapley values of trees (Lundberg, Erion, Lee 2018, algorithm 2), in
 * which a branch that is not followed counts by its share of the training molecules. Returns the margin that all of out
 * are added to, less `start`: that of the mean training molecule. Scratch in mem. ENOMEM. */
pl_code nn_tree_set_explain(const nn_tree_set *s, const float *number, double *out, double *base, pl_arena *mem, pl_error *err);

/* Replaces what each leaf adds by change(ctx, it). */
void nn_tree_set_leaves(nn_tree_set *s, float (*change)(const void *ctx, float leaf), const void *ctx);

/* The tensors that store s, named prefix.trees and so on; all in mem. ENOMEM. */
pl_code nn_tree_set_tensors(nn_tensor out[NN_TREE_TENSORS], const nn_tree_set *s, const char *prefix, pl_arena *mem, pl_error *err);

/* The opposite, into mem. EDATA: says what is wrong; a prediction of what is accepted never reads outside of it. */
pl_code nn_tree_set_take(nn_tree_set *out, const nn_tensors *all, const char *prefix, pl_arena *mem, pl_error *err);

#endif
