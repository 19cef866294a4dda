/* SPDX-License-Identifier: Apache-2.0 */
/* Shapley values of trees in polynomial time: Lundberg, Erion, Lee, "Consistent individualized feature attribution for tree ensembles"
 * (2018), algorithm 2. A path remembers, for each column that it has asked for, which share of all subsets goes on along it. */
#include <math.h>

#include "models/family/tree_set.h"

/* One column of a path. */
typedef struct step {
    int32_t column;
    double absent, present; /* share of subsets without and with the column that go on   */
    double weight;          /* of subsets of this size                                   */
} step;

typedef struct walk {
    const nn_node *node;
    const float *number;
    double *out;
    step *step; /* room for one path in each level */
} walk;

/* Adds a column to a path of n steps. */
static void extend(step *p, int n, double absent, double present, int32_t column)
{
    p[n] = (step){ column, absent, present, n == 0 ? 1 : 0 };
    for (int i = n - 1; i >= 0; i--) {
        p[i + 1].weight += present * p[i].weight * (i + 1) / (n + 1);
        p[i].weight = absent * p[i].weight * (n - i) / (n + 1);
    }
}

/* Takes step k out of a path whose last step is n. */
static void take_out(step *p, int n, int k)
{
    const double present = p[k].present, absent = p[k].absent;
    double next = p[n].weight;

    for (int i = n - 1; i >= 0; i--)
        if (present != 0) {
            const double was = p[i].weight;
            p[i].weight = next * (n + 1) / ((i + 1) * present);
            next = was - p[i].weight * absent * (n - i) / (n + 1);
        } else {
            p[i].weight = p[i].weight * (n + 1) / (absent * (n - i));
        }
    for (int i = k; i < n; i++) {
        p[i].column = p[i + 1].column;
        p[i].absent = p[i + 1].absent;
        p[i].present = p[i + 1].present;
    }
}

/* Sum of the weights of the path without step k. */
static double weight_without(const step *p, int n, int k)
{
    const double present = p[k].present, absent = p[k].absent;
    double next = p[n].weight, sum = 0;

    for (int i = n - 1; i >= 0; i--)
        if (present != 0) {
            const double its = next * (n + 1) / ((i + 1) * present);
            sum += its;
            next = p[i].weight - its * absent * (n - i) / (n + 1);
        } else {
            sum += p[i].weight * (n + 1) / (absent * (n - i));
        }
    return sum;
}

/* Visits node k of level 0, 1, ..., which the path `from` of n <= level steps and one more have reached. */
static void visit(const walk *w, int32_t k, int level, const step *from, int n, step last)
{
    const nn_node *node = &w->node[k];
    step *p = w->step + (size_t)level * ((size_t)level + 1) / 2; /* level + 1 steps */
    step again = { .absent = 1, .present = 1 };
    float x;
    bool left;
    double share;

    for (int i = 0; i < n; i++)
        p[i] = from[i];
    extend(p, n, last.absent, last.present, last.column);
    if (node->column < 0) {
        for (int i = 1; i <= n; i++)
            w->out[p[i].column] += weight_without(p, n, i) * (p[i].present - p[i].absent) * (double)node->value;
        return;
    }
    for (int i = 1; i <= n; i++)
        if (p[i].column == node->column) {
            again = p[i];
            take_out(p, n--, i);
            break;
        }
    x = w->number[node->column];
    left = isnan(x) ? node->absent_left : x < node->value;
    share = node->left / 255.0;
    visit(w, k + 1, level + 1, p, n + 1, (step){ node->column, again.absent * share, left ? again.present : 0, 0 });
    visit(w, node->right, level + 1, p, n + 1, (step){ node->column, again.absent * (1 - share), left ? 0 : again.present, 0 });
}

/* The mean of the leaves below node k, by the shares of the training molecules. */
static double mean_of(const nn_node *node, int32_t k)
{
    const double share = node[k].left / 255.0;

    if (node[k].column < 0)
        return (double)node[k].value;
    return share * mean_of(node, k + 1) + (1 - share) * mean_of(node, node[k].right);
}

pl_code nn_tree_set_explain(const nn_tree_set *s, const float *number, double *out, double *base, pl_arena *mem, pl_error *err)
{
    enum { LEVELS = NN_TREE_LEVELS + 2 };
    const walk w = { s->node, number, out, PL_NEW(mem, step, LEVELS * (LEVELS + 1) / 2) };
    const int32_t n_columns = nn_columns_count(&s->columns);

    if (w.step == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to explain a prediction");
    *base = 0;
    for (int32_t k = 0; k < n_columns; k++)
        out[k] = 0;
    for (int32_t t = 0; t < s->n_trees; t++) {
        *base += mean_of(s->node, s->first[t]);
        visit(&w, s->first[t], 0, NULL, 0, (step){ -1, 1, 1, 0 });
    }
    return PL_OK;
}
