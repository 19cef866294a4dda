/* SPDX-License-Identifier: Apache-2.0 */
#include "models/family/tree_set.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/refused.h"
#include "pipeline/base/text.h"

/* ---- from the library's text --------------------------------------------------------- */

typedef struct reader {
    nn_node *node; /* [room] */
    int32_t n, room, n_columns;
    bool *used;   /* [n_columns] */
    bool damaged; /* text of another kind */
} reader;

static int32_t count_nodes(const char *tree)
{
    int32_t n = 0;

    for (const char *at = strstr(tree, "\"nodeid\""); at != NULL; at = strstr(at + 1, "\"nodeid\""))
        n++;
    return n;
}

static const json_t *child_of(const json_t *j, const char *which)
{
    const json_int_t id = json_integer_value(json_object_get(j, which));
    const json_t *children = json_object_get(j, "children");

    for (size_t k = 0; k < json_array_size(children); k++)
        if (json_integer_value(json_object_get(json_array_get(children, k), "nodeid")) == id)
            return json_array_get(children, k);
    return NULL;
}

/* The share of the molecules below j that are below left, its child. */
static uint8_t share_of(const json_t *j, const json_t *left)
{
    const double all = json_number_value(json_object_get(j, "cover"));
    const double part = json_number_value(json_object_get(left, "cover"));
    const double share = all > 0 ? floor(255 * part / all + 0.5) : 127;

    if (!(share >= 1))
        return 1;
    return share > 254 ? 254 : (uint8_t)share;
}

static int32_t column_of(const json_t *j, int32_t n_columns)
{
    const char *name = json_string_value(json_object_get(j, "split"));
    int64_t column = -1;

    if (name == NULL || *name != 'f' || !pl_parse_int(name + 1, &column) || column < 0 || column >= n_columns)
        return -1;
    return (int32_t)column;
}

static void read_node(reader *r, const json_t *j, int level)
{
    const json_t *leaf = json_object_get(j, "leaf"), *at = json_object_get(j, "split_condition"), *left, *right;
    nn_node *node;

    r->damaged |= j == NULL || r->n == r->room || level > NN_TREE_LEVELS;
    if (r->damaged)
        return;
    node = &r->node[r->n++];
    if (leaf != NULL) {
        *node = (nn_node){ .column = -1, .value = (float)json_number_value(leaf) };
        r->damaged |= !json_is_number(leaf);
        return;
    }
    left = child_of(j, "yes");
    right = child_of(j, "no");
    *node = (nn_node){ .column = column_of(j, r->n_columns),
                       .value = (float)fmax(json_number_value(at), -FLT_MAX),
                       .left = share_of(j, left),
                       .absent_left =
                           json_integer_value(json_object_get(j, "missing")) == json_integer_value(json_object_get(j, "yes")) };
    r->damaged |= node->column < 0 || !json_is_number(at);
    if (r->damaged)
        return;
    r->used[node->column] = true;
    read_node(r, left, level + 1);
    node->right = r->n;
    read_node(r, right, level + 1);
}

/* A split of all numbers from absent ones has " -inf", which JSON does not know; on a GPU, and from XGBoost 3.4 on. " -inf" and
 * "-9e99" are as long. */
static void minus_infinity_to_number(char *text)
{
    for (char *at = strstr(text, " -inf"); at != NULL; at = strstr(at, " -inf"))
        memcpy(at, "-9e99", 5);
}

static pl_code read_tree(reader *r, const char *tree, pl_error *err)
{
    json_error_t why;
    char *text = strdup(tree);
    json_t *j;

    if (text == NULL) {
        pl_refused(strlen(tree) + 1);
        return pl_fail(err, PL_ENOMEM, "no memory for the text of a tree");
    }
    minus_infinity_to_number(text);
    j = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    read_node(r, j, 1);
    json_decref(j);
    free(text);
    return PL_OK;
}

/* Renumbers the columns of all nodes to those that are used. */
static pl_code keep_used(nn_tree_set *out, reader *r, const nn_columns *c, pl_arena *mem, pl_error *err)
{
    int32_t *place = PL_NEW(mem, int32_t, r->n_columns);
    pl_code code;

    if (place == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d columns", (int)r->n_columns);
    code = nn_columns_used(&out->columns, c, r->used, place, mem, err);
    for (int32_t k = 0; code == PL_OK && k < r->n; k++)
        if (r->node[k].column >= 0)
            r->node[k].column = place[r->node[k].column];
    return code;
}

pl_code nn_tree_set_parse(nn_tree_set *out, const char *const *tree, int n, const nn_columns *c, pl_arena *mem, pl_error *err)
{
    reader r = { .n_columns = nn_columns_count(c) };
    int32_t *first = PL_NEW(mem, int32_t, n + 1);
    pl_code code = PL_OK;

    for (int t = 0; t < n; t++)
        r.room += count_nodes(tree[t]);
    r.node = PL_NEW(mem, nn_node, r.room);
    r.used = PL_NEW(mem, bool, r.n_columns);
    if (first == NULL || r.node == NULL || r.used == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d trees", n);
    for (int t = 0; code == PL_OK && t < n; t++) {
        code = read_tree(&r, tree[t], err);
        first[t + 1] = r.n;
    }
    if (code != PL_OK)
        return code;
    if (r.damaged || r.n_columns > NN_TREE_COLUMNS)
        return pl_fail(err, PL_EBUG, "XGBoost %s writes its trees in an unknown form", nn_xgboost_version());
    *out = (nn_tree_set){ .n_trees = n, .n_nodes = r.n, .first = first, .node = r.node };
    return keep_used(out, &r, c, mem, err);
}

/* ---- prediction ------------------------------------------------------------------------ */

void nn_tree_set_leaves(nn_tree_set *s, float (*change)(const void *ctx, float leaf), const void *ctx)
{
    for (int32_t k = 0; k < s->n_nodes; k++)
        if (s->node[k].column < 0)
            s->node[k].value = change(ctx, s->node[k].value);
}

static float leaf_of(const nn_node *node, int32_t root, const float *number)
{
    int32_t k = root;

    while (node[k].column >= 0) {
        const float x = number[node[k].column];
        const bool left = isnan(x) ? node[k].absent_left : x < node[k].value;
        k = left ? k + 1 : node[k].right;
    }
    return node[k].value;
}

float nn_tree_set_margin(const nn_tree_set *s, float start, const float *number)
{
    float sum = start;

    for (int32_t t = 0; t < s->n_trees; t++)
        sum += leaf_of(s->node, s->first[t], number);
    return sum;
}

/* Tree by tree; the sum of a row has the same order. */
void nn_tree_set_margins(float *out, const nn_tree_set *s, float start, const float *number, size_t width, int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        out[k] = start;
    for (int32_t t = 0; t < s->n_trees; t++)
        for (int32_t k = 0; k < n; k++)
            out[k] += leaf_of(s->node, s->first[t], number + (size_t)k * width);
}

/* ---- storage ----------------------------------------------------------------------------- */

enum { BYTES = 3, ABSENT_LEFT = 1 << 23 };

/* Names of tensors, in the order of nn_tree_set_tensors. */
static const char *const names[NN_TREE_TENSORS] = { "column", "value", "node", "left", "trees" };

static void put_node(uint8_t to[BYTES], const nn_node *node)
{
    const uint32_t word = (uint32_t)(node->column + 1) | (node->absent_left ? ABSENT_LEFT : 0);

    for (int k = 0; k < BYTES; k++)
        to[k] = (uint8_t)(word >> (8 * k));
}

static nn_tensor tensor(nn_dtype type, int64_t n, int64_t m, const void *data)
{
    return (nn_tensor){ .dtype = type, .n_dims = m > 1 ? 2 : 1, .dims = { n, m }, .count = (size_t)(n * m), .data = data };
}

pl_code nn_tree_set_tensors(nn_tensor out[NN_TREE_TENSORS], const nn_tree_set *s, const char *prefix, pl_arena *mem, pl_error *err)
{
    const size_t n = (size_t)s->n_nodes;
    uint8_t *node = PL_NEW(mem, uint8_t, BYTES * n), *left = PL_NEW(mem, uint8_t, n);
    float *value = PL_NEW(mem, float, n);
    int32_t *columns = PL_NEW(mem, int32_t, 3);
    bool ok = node != NULL && left != NULL && value != NULL && columns != NULL;

    for (size_t k = 0; ok && k < n; k++) {
        put_node(node + BYTES * k, &s->node[k]);
        left[k] = s->node[k].left;
        value[k] = s->node[k].value;
    }
    out[0] = tensor(NN_I32, nn_columns_count(&s->columns), 1, s->columns.id);
    out[1] = tensor(NN_F32, s->n_nodes, 1, value);
    out[2] = tensor(NN_U8, s->n_nodes, BYTES, node);
    out[3] = tensor(NN_U8, s->n_nodes, 1, left);
    out[4] = tensor(NN_I32, 3, 1, columns);
    for (int k = 0; ok && k < NN_TREE_TENSORS; k++) {
        out[k].name = pl_sprintf(mem, "%s.%s", prefix, names[k]);
        ok = out[k].name != NULL;
    }
    if (!ok)
        return pl_fail(err, PL_ENOMEM, "no memory to store %d trees", (int)s->n_trees);
    columns[0] = s->columns.n_environments;
    columns[1] = s->columns.n_features;
    columns[2] = s->n_trees;
    return PL_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

typedef struct stored {
    const nn_tensor *t[NN_TREE_TENSORS];
    int64_t n_environments, n_features, n_trees, n_columns, n_nodes;
} stored;

static pl_code find_all(stored *s, const nn_tensors *all, const char *prefix, pl_error *err)
{
    static const nn_dtype type[NN_TREE_TENSORS] = { NN_I32, NN_F32, NN_U8, NN_U8, NN_I32 };
    int64_t head[3];
    char name[128];
    pl_code code = PL_OK;

    for (int k = 0; k < NN_TREE_TENSORS; k++) {
        const int n = snprintf(name, sizeof name, "%s.%s", prefix, names[k]);
        s->t[k] = n < (int)sizeof name ? nn_tensors_find(all, name) : NULL;
        if (s->t[k] == NULL || s->t[k]->dtype != type[k])
            return pl_fail(err, PL_EDATA, "tensor %s is missing or of another type", name);
    }
    code = nn_tensor_ints(head, 3, s->t[4], err);
    if (code != PL_OK)
        return code;
    s->n_environments = head[0];
    s->n_features = head[1];
    s->n_trees = head[2];
    s->n_columns = (int64_t)s->t[0]->count;
    s->n_nodes = (int64_t)s->t[1]->count;
    if (s->t[2]->count != BYTES * s->t[1]->count || s->t[3]->count != s->t[1]->count || s->n_nodes > INT32_MAX ||
        s->n_columns > NN_TREE_COLUMNS || s->n_trees < 1 || s->n_trees > s->n_nodes)
        return pl_fail(err, PL_EDATA, "%s.node, .value, .left and .trees do not fit each other", prefix);
    if (s->n_environments < 0 || s->n_features < 0 || s->n_environments + s->n_features > s->n_columns)
        return pl_fail(err, PL_EDATA, "%s.column has fewer columns than stated", prefix);
    return PL_OK;
}

/* The next node from the tensors; false: it is none. */
static bool take_node(nn_node *to, const uint8_t *from, uint8_t left, int64_t n_columns)
{
    const uint32_t word = from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;

    to->column = (int32_t)(word & (ABSENT_LEFT - 1)) - 1;
    to->absent_left = (word & ABSENT_LEFT) != 0;
    to->left = left;
    return isfinite(to->value) && to->column < n_columns && (to->column < 0 || (left >= 1 && left <= 254));
}

/* Finds the end of the tree that begins at node k and links its nodes; -1: there is none, or more than NN_TREE_LEVELS levels. */
static int32_t link_tree(nn_node *node, int32_t k, int32_t n)
{
    int32_t open[NN_TREE_LEVELS]; /* nodes whose left branch is being read */
    int depth = 0;

    for (; k < n; k++) {
        if (node[k].column >= 0) {
            if (depth == NN_TREE_LEVELS - 1)
                return -1;
            node[k].right = -1;
            open[depth++] = k;
            continue;
        }
        while (depth > 0 && node[open[depth - 1]].right >= 0)
            depth--;
        if (depth == 0)
            return k + 1;
        node[open[depth - 1]].right = k + 1;
    }
    return -1;
}

static pl_code take_nodes(nn_tree_set *out, const stored *s, pl_arena *mem, pl_error *err)
{
    const uint8_t *word = s->t[2]->data, *left = s->t[3]->data;
    const int32_t n = (int32_t)s->n_nodes, n_trees = (int32_t)s->n_trees;
    nn_node *node = PL_NEW(mem, nn_node, n);
    int32_t *first = PL_NEW(mem, int32_t, n_trees + 1);

    if (node == NULL || first == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d trees", (int)n_trees);
    for (int32_t k = 0; k < n; k++) {
        memcpy(&node[k].value, (const char *)s->t[1]->data + sizeof(float) * (size_t)k, sizeof(float));
        if (!take_node(&node[k], word + BYTES * (size_t)k, left[k], s->n_columns))
            return pl_fail(err, PL_EDATA, "node %d of its trees is damaged", (int)k);
    }
    for (int32_t t = 0; t < n_trees; t++) {
        first[t + 1] = link_tree(node, first[t], n);
        if (first[t + 1] < 0)
            return pl_fail(err, PL_EDATA, "tree %d of %d has no end", (int)t, (int)n_trees);
    }
    if (first[n_trees] != n)
        return pl_fail(err, PL_EDATA, "nodes are left after tree %d, the last", (int)n_trees);
    *out = (nn_tree_set){ .n_trees = n_trees, .n_nodes = n, .first = first, .node = node };
    return PL_OK;
}

pl_code nn_tree_set_take(nn_tree_set *out, const nn_tensors *all, const char *prefix, pl_arena *mem, pl_error *err)
{
    stored s = { 0 };
    uint32_t *id;
    pl_code code = find_all(&s, all, prefix, err);

    if (code == PL_OK)
        code = take_nodes(out, &s, mem, err);
    if (code != PL_OK)
        return code;
    id = PL_NEW(mem, uint32_t, s.n_columns);
    if (id == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d columns", (int)s.n_columns);
    memcpy(id, s.t[0]->data, sizeof *id * (size_t)s.n_columns);
    out->columns = (nn_columns){ (int32_t)s.n_environments, (int32_t)s.n_features,
                                 (int32_t)(s.n_columns - s.n_environments - s.n_features), id };
    return nn_columns_check(&out->columns, err);
}
