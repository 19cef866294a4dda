/* SPDX-License-Identifier: Apache-2.0 */
/* Splits by whole scaffolds: our own, whose held-out parts are exchangeable, and those of DeepChem and Chemprop. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/rng.h"
#include "stages/steps/dataset/python_random.h"
#include "stages/steps/dataset/scaffolds.h"
#include "stages/steps/dataset/split_parts.h"

typedef struct group {
    uint64_t scaffold, order; /* order: hash of (seed, scaffold)         */
    int64_t n, first;         /* members, in a row from the first one    */
    int64_t lowest;           /* mol_id of the first in the order of ids */
} group;

static void scaffold_set(void *ctx, int64_t mol_id, uint64_t scaffold)
{
    member *m = st_split_member(ctx, mol_id);

    if (m != NULL)
        m->scaffold = scaffold;
}

/* Within a scaffold by id. */
static int compare_scaffold(const void *a, const void *b)
{
    const member *x = a, *y = b;

    return x->scaffold != y->scaffold ? (x->scaffold > y->scaffold) - (x->scaffold < y->scaffold) : st_split_by_id(a, b);
}

/* The largest first; equal sizes, which are the majority, in random order. */
static int compare_group(const void *a, const void *b)
{
    const group *x = a, *y = b;

    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static int compare_order_of_groups(const void *a, const void *b)
{
    const group *x = a, *y = b;

    return (x->order > y->order) - (x->order < y->order);
}

static void group_put(split_state *s, const group *g, int part, int64_t *have)
{
    have[part] += g->n;
    for (int64_t k = g->first; k < g->first + g->n; k++)
        s->m[k].part = part;
}

/* Groups larger than this go to train: half of the smallest held-out part. */
static double large_from(const split_state *s)
{
    double smallest = 1;

    for (int p = ST_TRAIN + 1; p < ST_SPLIT_PARTS; p++)
        if (s->conf->fraction[p] > 0 && s->conf->fraction[p] < smallest)
            smallest = s->conf->fraction[p];
    return fmax(1, 0.5 * smallest * (double)s->n);
}

/* The part that lacks the largest fraction of its size; of those that have room for n more molecules, where there are any. */
static int part_for(const split_state *s, const int64_t *have, int64_t n)
{
    double max = -INFINITY;
    bool any_fits = false;
    int best = ST_TRAIN;

    for (int p = 0; p < ST_SPLIT_PARTS; p++) {
        const double size = s->conf->fraction[p] * (double)s->n;
        const double lacks = size > 0 ? 1 - (double)have[p] / size : -INFINITY;
        const bool fits = size > 0 && (double)(have[p] + n) <= size + 1e-9;
        if ((fits && !any_fits) || (fits == any_fits && lacks > max)) {
            best = p;
            max = lacks;
            any_fits = fits;
        }
    }
    return best;
}

/* Large groups go to train, as long as it gets at most a quarter more than its share, and three quarters of what
 * the held-out parts want are left for these. The other groups are dealt in
 * random order, so that the held-out parts are exchangeable: prediction intervals that one of them calibrates hold on the others. */
static void groups_deal(split_state *s, group *g, int64_t n)
{
    const double large = large_from(s), share = s->conf->fraction[ST_TRAIN];
    const double train_max = (double)s->n * fmin(1 - 0.75 * (1 - share), 1.25 * share);
    int64_t have[ST_SPLIT_PARTS] = { 0 }, first = 0;

    while (first < n && (first == 0 || ((double)g[first].n > large && (double)(have[ST_TRAIN] + g[first].n) <= train_max))) {
        group_put(s, &g[first], ST_TRAIN, have);
        first++;
    }
    qsort(g + first, (size_t)(n - first), sizeof *g, compare_order_of_groups);
    for (int64_t i = first; i < n; i++)
        group_put(s, &g[i], part_for(s, have, g[i].n), have);
}

/* Each group, the largest first, goes to the fold with the fewest molecules. The groups outside of the test part are dealt as without folds. */
static void groups_fold(split_state *s, group *g, int64_t n)
{
    int64_t have[FOLDS_MAX] = { 0 }, test[ST_SPLIT_PARTS] = { 0 }, rest = 0;
    split_conf conf = *s->conf;
    split_state others = *s;

    for (int64_t i = 0; i < n; i++) {
        int64_t fewest = 0;
        for (int64_t k = 1; k < s->conf->folds; k++)
            fewest = have[k] < have[fewest] ? k : fewest;
        have[fewest] += g[i].n;
        if (fewest == s->conf->fold - 1)
            group_put(s, &g[i], ST_TEST, test);
        else
            g[rest++] = g[i];
    }
    for (int p = 0; p < ST_SPLIT_PARTS; p++)
        conf.fraction[p] /= 1 - s->conf->fraction[ST_TEST];
    conf.fraction[ST_TEST] = 0;
    others.conf = &conf;
    others.n = s->n - test[ST_TEST];
    groups_deal(&others, g, rest);
}

/* ---- as DeepChem and Chemprop do ---- */

/* ScaffoldSplitter of DeepChem 2: the largest first; of equal sizes the one whose first molecule is last. */
static int compare_deepchem(const void *a, const void *b)
{
    const group *x = a, *y = b;

    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return (x->lowest < y->lowest) - (x->lowest > y->lowest);
}

static int compare_lowest(const void *a, const void *b)
{
    const group *x = a, *y = b;

    return (x->lowest > y->lowest) - (x->lowest < y->lowest);
}

static void groups_deterministic(split_state *s, group *g, int64_t n)
{
    const double train = s->conf->fraction[ST_TRAIN] * (double)s->n;
    const double valid = (s->conf->fraction[ST_TRAIN] + s->conf->fraction[ST_VALID]) * (double)s->n;
    int64_t have[ST_SPLIT_PARTS] = { 0 };

    qsort(g, (size_t)n, sizeof *g, compare_deepchem);
    for (int64_t i = 0; i < n; i++) {
        if ((double)(have[ST_TRAIN] + g[i].n) <= train)
            group_put(s, &g[i], ST_TRAIN, have);
        else if ((double)(have[ST_TRAIN] + have[ST_VALID] + g[i].n) <= valid)
            group_put(s, &g[i], ST_VALID, have);
        else
            group_put(s, &g[i], ST_TEST, have);
    }
}

/* The order of scaffold_split(balanced=True) of Chemprop 1: groups larger than half of a held-out part, shuffled, then the others,
 * shuffled. order [n]: places in g, which is in the order of first molecules. */
static void balanced_order(const split_state *s, const group *g, int64_t n, int32_t *order)
{
    const double valid = s->conf->fraction[ST_VALID] * (double)s->n, test = s->conf->fraction[ST_TEST] * (double)s->n;
    const double large = fmin(valid, test) / 2;
    st_python_random random;
    int32_t n_large = 0, at = 0;

    for (int64_t i = 0; i < n; i++)
        if ((double)g[i].n > large)
            order[n_large++] = (int32_t)i;
    at = n_large;
    for (int64_t i = 0; i < n; i++)
        if (!((double)g[i].n > large))
            order[at++] = (int32_t)i;
    st_python_seed(&random, st_split_seed(s));
    st_python_shuffle(&random, order, n_large);
    st_python_shuffle(&random, order + n_large, (int32_t)n - n_large);
}

static void groups_balanced(split_state *s, group *g, int64_t n, int32_t *order)
{
    const double train = s->conf->fraction[ST_TRAIN] * (double)s->n, valid = s->conf->fraction[ST_VALID] * (double)s->n;
    int64_t have[ST_SPLIT_PARTS] = { 0 };

    qsort(g, (size_t)n, sizeof *g, compare_lowest);
    balanced_order(s, g, n, order);
    for (int64_t i = 0; i < n; i++) {
        const group *one = &g[order[i]];
        if ((double)(have[ST_TRAIN] + one->n) <= train)
            group_put(s, one, ST_TRAIN, have);
        else if ((double)(have[ST_VALID] + one->n) <= valid)
            group_put(s, one, ST_VALID, have);
        else
            group_put(s, one, ST_TEST, have);
    }
}

/* ---- all ---- */

/* Groups of members, which are put into the order of groups. Returns how many there are. */
static int64_t groups_make(split_state *s, group *g)
{
    int64_t n = 0;

    qsort(s->m, (size_t)s->n, sizeof *s->m, compare_scaffold);
    for (int64_t i = 0; i < s->n; i++) {
        if (!i || s->m[i].scaffold != s->m[i - 1].scaffold)
            g[n++] = (group){ .scaffold = s->m[i].scaffold,
                              .first = i,
                              .lowest = s->m[i].mol_id,
                              .order = pl_splitmix64(s->m[i].scaffold ^ pl_splitmix64(st_split_seed(s))) };
        g[n - 1].n++;
    }
    qsort(g, (size_t)n, sizeof *g, compare_group);
    return n;
}

pl_code st_split_scaffold(split_state *s, pl_error *err)
{
    group *g = PL_NEW(s->env->mem, group, s->n + 1), largest;
    int32_t *order = PL_NEW(s->env->mem, int32_t, s->n + 1);
    const bool strict = s->conf->variant != SCAFFOLD_RANDOM;
    int64_t n = 0;
    pl_code code =
        g != NULL && order != NULL ? st_scaffolds_read(s->env, strict, scaffold_set, s, err) : pl_fail(err, PL_ENOMEM, "scaffolds");

    if (code != PL_OK)
        return code;
    n = groups_make(s, g);
    largest = g[0];
    if (s->conf->variant == SCAFFOLD_DETERMINISTIC)
        groups_deterministic(s, g, n);
    else if (s->conf->variant == SCAFFOLD_BALANCED)
        groups_balanced(s, g, n, order);
    else if (s->conf->folds > 0)
        groups_fold(s, g, n);
    else
        groups_deal(s, g, n);
    if (n > 0)
        pl_event_add(s->env, PL_INFO, "%lld scaffolds; the largest group, %s, has %lld of %lld molecules", (long long)n,
                     largest.scaffold ? "of one scaffold" : "without rings", (long long)largest.n, (long long)s->n);
    return PL_OK;
}
