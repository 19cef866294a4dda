/* SPDX-License-Identifier: Apache-2.0 */
/* Non-dominated sorting, without weights. */
#include "stages/steps/rank/rank_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FRONT_MAX = 1 << 20 };

/* A front: candidates none of which dominates another (better in one objective and no worse in all). */
typedef struct front {
    int64_t n, cap;
    st_candidate *c; /* [n]                                        */
    double *v;       /* [n][d] values, larger is better            */
    double *apart;   /* [n] crowding distance; NULL until asked for */
} front;

/* Candidates come sorted by their values, so any dominating one came before: a front, once found, is final. Fronts that
 * the first `most` do not reach are dropped. */
typedef struct fronts {
    st_ranking *s;
    int d;
    int64_t max, total; /* total: in all fronts; without the last one fewer than most */
    front *f;
    int64_t n, cap;
} fronts;

/* ---- which front ---- */

/* Whether a member of the front dominates it; with two objectives the members increase in the second. */
static bool is_dominated(const front *f, const double *v, int d)
{
    bool found = false;

    for (int64_t i = f->n - 1; i >= (d == 2 ? f->n - 1 : 0) && !found; i--) {
        const double *w = f->v + i * d;
        bool worse = false, better = false;
        for (int k = 0; k < d && !worse; k++) {
            worse = w[k] < v[k];
            better = better || w[k] > v[k];
        }
        found = better && !worse;
    }
    return found;
}

/* A candidate dominated in a front is dominated in all fronts before it. */
static int64_t find_front(const fronts *x, const double *v)
{
    int64_t lo = 0, hi = x->n;

    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        if (is_dominated(&x->f[middle], v, x->d))
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static void front_free(front *f)
{
    free(f->c);
    free(f->v);
    free(f->apart);
    *f = (front){ 0 };
}

static pl_code front_add(front *f, const st_candidate *c, const double *v, int d, pl_error *err)
{
    if (f->n == f->cap) {
        int64_t cap = f->cap ? 2 * f->cap : 16;
        st_candidate *more = realloc(f->c, (size_t)cap * sizeof *more);
        double *values;
        f->c = more != NULL ? more : f->c;
        values = more != NULL ? realloc(f->v, (size_t)cap * (size_t)d * sizeof *values) : NULL;
        if (values == NULL)
            return pl_fail(err, PL_ENOMEM, "a front of %lld molecules", (long long)cap);
        f->v = values;
        f->cap = cap;
    }
    memcpy(f->v + f->n * d, v, (size_t)d * sizeof *v);
    f->c[f->n++] = *c;
    return PL_OK;
}

static pl_code fronts_more(fronts *x, pl_error *err)
{
    int64_t cap = x->cap ? 2 * x->cap : 64;
    front *more = x->n < x->cap ? x->f : realloc(x->f, (size_t)cap * sizeof *more);

    if (more == NULL)
        return pl_fail(err, PL_ENOMEM, "%lld fronts", (long long)cap);
    x->cap = x->n < x->cap ? x->cap : cap;
    x->f = more;
    x->f[x->n++] = (front){ 0 };
    return PL_OK;
}

static pl_code put(void *ctx, const st_candidate *c, pl_error *err)
{
    fronts *x = ctx;
    double v[ST_TERMS_MAX];
    int64_t at;
    pl_code code = PL_OK;

    for (int i = 0; i < x->d; i++)
        v[i] = (x->s->term[i]->goal == ST_MINIMISE ? -1 : 1) * sqlite3_column_double(x->s->query, st_rank_values(x->s) + i);
    at = find_front(x, v);
    if (at == x->n && x->total >= x->max)
        return PL_OK;
    if (at == x->n)
        code = fronts_more(x, err);
    if (code == PL_OK)
        code = front_add(&x->f[at], c, v, x->d, err);
    if (code != PL_OK)
        return code;
    x->total++;
    while (x->total - x->f[x->n - 1].n >= x->max) {
        x->total -= x->f[--x->n].n;
        front_free(&x->f[x->n]);
    }
    if (x->f[x->n - 1].n > FRONT_MAX)
        return pl_fail(err, PL_ELIMIT,
                       "front %lld has more than %d molecules: if almost no candidate dominates another, fronts "
                       "order little; use fewer objectives, add constraints, or set method: weighted",
                       (long long)x->n, (int)FRONT_MAX);
    return PL_OK;
}

/* ---- within a front ---- */

typedef struct place {
    double by;
    const st_candidate *c;
    int64_t at;
} place;

/* Equal numbers by InChIKey, so that nothing depends on the order of the work. */
static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    int by_key;

    if (x->by != y->by)
        return x->by < y->by ? -1 : 1;
    by_key = strcmp(x->c->key, y->c->key);
    return by_key != 0 ? by_key : (x->c->mol_id > y->c->mol_id) - (x->c->mol_id < y->c->mol_id);
}

/* Crowding distance, Deb et al. 2002: the ends of every objective are far from all. */
static void spread_out(front *f, place *p, int d)
{
    for (int k = 0; k < d; k++) {
        double range;
        for (int64_t i = 0; i < f->n; i++)
            p[i] = (place){ f->v[i * d + k], &f->c[i], i };
        qsort(p, (size_t)f->n, sizeof *p, compare_places);
        range = p[f->n - 1].by - p[0].by;
        f->apart[p[0].at] = f->apart[p[f->n - 1].at] = INFINITY;
        for (int64_t i = 1; i + 1 < f->n && range > 0 && isfinite(range); i++)
            f->apart[p[i].at] += (p[i + 1].by - p[i - 1].by) / range;
    }
}

/* Appends the front to s->best, in order of crowding distance, the largest first. */
static pl_code take_front(fronts *x, int64_t number, pl_error *err)
{
    st_ranking *s = x->s;
    front *f = &x->f[number];
    place *p = calloc((size_t)f->n, sizeof *p);

    f->apart = calloc((size_t)f->n, sizeof *f->apart);
    if (p == NULL || f->apart == NULL) {
        free(p);
        return pl_fail(err, PL_ENOMEM, "a front of %lld molecules", (long long)f->n);
    }
    spread_out(f, p, x->d);
    for (int64_t i = 0; i < f->n; i++)
        p[i] = (place){ -f->apart[i], &f->c[i], i };
    qsort(p, (size_t)f->n, sizeof *p, compare_places);
    for (int64_t i = 0; i < f->n; i++) {
        s->best[s->n_best] = *p[i].c;
        s->best[s->n_best++].front = (int32_t)number + 1;
    }
    free(p);
    return PL_OK;
}

static pl_code take_all(fronts *x, pl_error *err)
{
    st_ranking *s = x->s;
    pl_code code = PL_OK;
    int64_t skip = s->n_before;

    free(s->best);
    s->best = malloc((size_t)(x->total + 1) * sizeof *s->best);
    s->n_best = 0;
    if (s->best == NULL)
        return pl_fail(err, PL_ENOMEM, "a ranking of %lld molecules", (long long)x->total);
    for (int64_t i = 0; i < x->n && code == PL_OK; i++)
        code = take_front(x, i, err);
    skip = skip < s->n_best ? skip : s->n_best;
    s->n_best = s->n_best < x->max ? s->n_best - skip : x->max - skip;
    memmove(s->best, s->best + skip, (size_t)s->n_best * sizeof *s->best);
    return code;
}

pl_code st_rank_fronts(st_ranking *s, int64_t max, pl_error *err)
{
    fronts x = { .s = s, .d = s->conf->objectives.n, .max = s->n_before + max };
    pl_code code = st_rank_each(s, put, &x, err);

    if (code == PL_OK)
        code = take_all(&x, err);
    for (int64_t i = 0; i < x.n; i++)
        front_free(&x.f[i]);
    free(x.f);
    return code;
}
