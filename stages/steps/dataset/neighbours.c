/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/dataset/neighbours.h"

#include <math.h>
#include <string.h>

enum { PART = 512, ASKED = 128 }; /* fingerprints of the pool that stay in cache while ASKED molecules are compared with them */

static pl_code rooms(st_pool *p, int32_t n, pl_arena *mem, pl_error *err)
{
    p->at = PL_NEW(mem, int64_t, n + 1);
    p->print = PL_NEW(mem, ch_fingerprint, n + 1);
    p->folds = PL_NEW(mem, ch_folds, n / CH_FOLD + 1);
    p->near = PL_NEW(mem, st_near, p->d->n + 1);
    return p->at != NULL && p->print != NULL && p->folds != NULL && p->near != NULL
               ? PL_OK
               : pl_fail(err, PL_ENOMEM, "the neighbours of %lld molecules", (long long)p->d->n);
}

static bool has(const st_samples *train, int64_t i, int32_t target)
{
    return !isnan(st_dataset_value(train->d, train->at[i], target));
}

/* Whether the molecules with the target are those of the pool. */
static bool is_of(const st_pool *p, const st_samples *train, int32_t target)
{
    int32_t n = 0;

    for (int64_t i = 0; i < train->n; i++)
        if (has(train, i, target) && (n == p->n || p->at[n++] != train->at[i]))
            return false;
    return n == p->n;
}

static pl_code fill(st_pool *p, const st_samples *train, int32_t target, pl_arena *scratch, pl_error *err)
{
    pl_code code = PL_OK;

    for (int64_t i = 0; i < train->n && code == PL_OK; i++) {
        if (!has(train, i, target))
            continue;
        pl_arena_reset(scratch);
        code = ch_fingerprint_of_graph(&p->print[p->n], p->d->item[train->at[i]].graph, scratch, err);
        ch_folds_put(p->folds, p->n, &p->print[p->n]);
        p->at[p->n++] = train->at[i];
    }
    return code;
}

pl_code st_pool_make(st_pool **out, const st_samples *train, int32_t target, st_pool *before, pl_error *err)
{
    pl_arena *mem = train->d->mem, *scratch;
    int32_t n = 0;
    pl_code code;

    *out = before;
    if (before != NULL && is_of(before, train, target))
        return PL_OK;
    for (int64_t i = 0; i < train->n; i++)
        n += has(train, i, target);
    *out = PL_NEW(mem, st_pool, 1);
    scratch = pl_arena_new(1 << 16);
    if (*out == NULL || scratch == NULL) {
        pl_arena_free(scratch);
        return pl_fail(err, PL_ENOMEM, "the neighbours of %lld molecules", (long long)train->d->n);
    }
    (*out)->d = train->d;
    code = rooms(*out, n, mem, err);
    if (code == PL_OK)
        code = fill(*out, train, target, scratch, err);
    pl_arena_free(scratch);
    return code;
}

/* ---- searching ---------------------------------------------------------- */

/* The number of a position in the pool; -1: it is not in it. */
static int32_t number_of(const st_pool *p, int64_t at)
{
    int32_t low = 0, high = p->n;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (p->at[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->n && p->at[low] == at ? low : -1;
}

static st_near near_of(const ch_nearest *s)
{
    st_near near = { .n = s->n };

    for (int32_t k = 0; k < s->n; k++) {
        near.at[k] = s->near[k].at;
        near.alike[k] = (float)ch_nearest_alike(s, k);
    }
    return near;
}

/* Searches for the neighbours of up to ASKED molecules at once. */
static pl_code some_find(st_pool *p, const int64_t *at, int32_t n, pl_arena *scratch, pl_error *err)
{
    ch_fingerprint print[ASKED];
    ch_nearest s[ASKED];
    pl_code code = PL_OK;

    for (int32_t i = 0; i < n && code == PL_OK; i++) {
        pl_arena_reset(scratch);
        code = ch_fingerprint_of_graph(&print[i], p->d->item[at[i]].graph, scratch, err);
        ch_nearest_open(&s[i], &print[i], number_of(p, at[i]));
    }
    if (code != PL_OK)
        return code;
    for (int32_t from = 0; from < p->n; from += PART)
        for (int32_t i = 0; i < n; i++)
            ch_nearest_in(&s[i], &(ch_among){ p->print, p->folds, NULL }, from, p->n - from < PART ? p->n : from + PART);
    for (int32_t i = 0; i < n; i++)
        p->near[at[i]] = near_of(&s[i]);
    return PL_OK;
}

pl_code st_pool_find(st_pool *p, st_part part, pl_error *err)
{
    pl_arena *scratch = p->found[part] ? NULL : pl_arena_new(1 << 16);
    int64_t at[ASKED];
    int32_t n = 0;
    pl_code code = PL_OK;

    if (p->found[part])
        return PL_OK;
    if (scratch == NULL)
        return pl_fail(err, PL_ENOMEM, "nearest neighbours");
    for (int64_t i = 0; i < p->d->n && code == PL_OK; i++) {
        if (p->d->part[i] == part)
            at[n++] = i;
        if (n == ASKED || (n > 0 && i == p->d->n - 1)) {
            code = some_find(p, at, n, scratch, err);
            n = 0;
        }
    }
    p->found[part] = code == PL_OK;
    pl_arena_free(scratch);
    return code;
}

double st_pool_mean(const st_pool *p, int64_t at, int32_t target, double otherwise)
{
    const st_near *near = &p->near[at];
    double sum = 0, weight = 0;

    for (int32_t k = 0; k < near->n; k++) {
        weight += (double)near->alike[k];
        sum += (double)near->alike[k] * st_dataset_value(p->d, p->at[near->at[k]], target);
    }
    return weight > 0 ? sum / weight : otherwise;
}
