/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's numbers by the largest marginal likelihood (Rasmussen and Williams 2006, 5.4.1), found with the simplex method of Nelder and
 * Mead (1965). The signal's variance has a closed form, so three numbers are searched. */
#include <math.h>

#include "models/family/exact.h"
#include "models/family/gp_parts.h"

enum { DIMS = 3, CORNERS = DIMS + 1, COARSE = 200, STEPS = 70 };

/* A kernel as a point: logarithm of w / (1 - w), of length and of noise. */
typedef struct point {
    double at[DIMS], loss; /* loss: minus the logarithm of the likelihood, less a constant */
} point;

typedef struct search {
    int32_t n;
    const double *t, *d, *y; /* [n*(n+1)/2] rows of T and of D; [n] */
    nn_tiles tiles;
    double *scratch, *x; /* x [n] */
    const nn_fit_conf *conf;
} search;

static const double LOW[DIMS] = { -6, -3, -10 }, HIGH[DIMS] = { 4, 3, 2 };

double nn_gp_alike(const nn_gp_kernel *k, double t, double d)
{
    return k->w * t + (1 - k->w) * nn_exp(-d / (2 * k->length * k->length));
}

static nn_gp_kernel kernel_of(const point *p)
{
    double in[DIMS];

    for (int i = 0; i < DIMS; i++)
        in[i] = fmin(fmax(p->at[i], LOW[i]), HIGH[i]);
    return (nn_gp_kernel){ 1 / (1 + nn_exp(-in[0])), nn_exp(in[1]), nn_exp(in[2]), 1 };
}

/* The loss of the first n molecules. ESTOP. */
static pl_code judge(search *s, point *p, nn_gp_kernel *out, int32_t n, pl_error *err)
{
    nn_gp_kernel k = kernel_of(p);
    double squares = 0;
    pl_code code;

    if (out != NULL)
        *out = k;
    s->tiles.n = n;
    s->tiles.n_tiles = (n + NN_TILE - 1) / NN_TILE;
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j <= i; j++) {
            const size_t ij = (size_t)i * ((size_t)i + 1) / 2 + (size_t)j;
            *nn_tiles_at(&s->tiles, i, j) = nn_gp_alike(&k, s->t[ij], s->d[ij]) + (i == j ? k.noise : 0);
        }
    code = nn_tiles_factor(&s->tiles, s->scratch, s->conf->stop, s->conf->ctx, err);
    p->loss = INFINITY;
    if (code != PL_OK)
        return code == PL_EDATA ? PL_OK : code; /* not definite: as unlikely as can be */
    for (int32_t i = 0; i < n; i++)
        s->x[i] = s->y[i];
    nn_tiles_forward(&s->tiles, s->x);
    for (int32_t i = 0; i < n; i++)
        squares += s->x[i] * s->x[i];
    k.signal = squares / n;
    p->loss = squares > 0 ? n / 2.0 * nn_log(k.signal) + nn_tiles_log(&s->tiles) : INFINITY;
    if (out != NULL)
        *out = k;
    return PL_OK;
}

/* ---- where to begin ------------------------------------------------------------------------- */

static pl_code begin(search *s, point *best, pl_error *err)
{
    static const double w[] = { -1, 1 }, length[] = { -0.7, 0, 0.7 }, noise[] = { -4, -2.5, -1 };
    const int32_t n = s->n < COARSE ? s->n : COARSE;
    pl_code code = PL_OK;

    *best = (point){ .loss = INFINITY };
    for (int k = 0; code == PL_OK && k < 18; k++) {
        point p = { .at = { w[k / 9], length[k / 3 % 3], noise[k % 3] } };
        code = judge(s, &p, NULL, n, err);
        if (k == 0 || p.loss < best->loss)
            *best = p;
    }
    return code;
}

/* ---- simplex ---------------------------------------------------------------------------------- */

static void sort(point p[CORNERS])
{
    for (int i = 1; i < CORNERS; i++)
        for (int j = i; j > 0 && p[j].loss < p[j - 1].loss; j--) {
            const point t = p[j];
            p[j] = p[j - 1];
            p[j - 1] = t;
        }
}

/* The point at `far` from the worst corner to the middle of the others: 1 is the middle, 2 the worst one's mirror image. */
static point reach(const point p[CORNERS], double far)
{
    point out = { .loss = INFINITY };

    for (int i = 0; i < DIMS; i++) {
        double middle = 0;
        for (int c = 0; c < DIMS; c++)
            middle += p[c].at[i] / DIMS;
        out.at[i] = p[DIMS].at[i] + far * (middle - p[DIMS].at[i]);
    }
    return out;
}

/* All corners come half the way to the best. */
static pl_code shrink(search *s, point p[CORNERS], pl_error *err)
{
    pl_code code = PL_OK;

    for (int c = 1; code == PL_OK && c < CORNERS; c++) {
        for (int i = 0; i < DIMS; i++)
            p[c].at[i] = (p[c].at[i] + p[0].at[i]) / 2;
        code = judge(s, &p[c], NULL, s->n, err);
    }
    return code;
}

static pl_code step(search *s, point p[CORNERS], pl_error *err)
{
    point mirror = reach(p, 2), other;
    pl_code code = judge(s, &mirror, NULL, s->n, err);

    if (code != PL_OK)
        return code;
    if (mirror.loss >= p[0].loss && mirror.loss < p[DIMS - 1].loss) {
        p[DIMS] = mirror;
        return PL_OK;
    }
    if (mirror.loss < p[0].loss)
        other = reach(p, 3);
    else
        other = reach(p, mirror.loss < p[DIMS].loss ? 1.5 : 0.5);
    code = judge(s, &other, NULL, s->n, err);
    if (code != PL_OK)
        return code;
    if (mirror.loss < p[DIMS].loss)
        p[DIMS] = mirror;
    if (other.loss < p[DIMS].loss)
        p[DIMS] = other;
    else if (mirror.loss >= p[DIMS - 1].loss)
        return shrink(s, p, err);
    return PL_OK;
}

static pl_code descend(search *s, point *best, pl_error *err)
{
    point p[CORNERS];
    pl_code code = PL_OK;

    for (int c = 0; code == PL_OK && c < CORNERS; c++) {
        p[c] = *best;
        if (c > 0)
            p[c].at[c - 1] += 0.7;
        code = judge(s, &p[c], NULL, s->n, err);
    }
    for (int k = 0; code == PL_OK && k < STEPS; k++) {
        sort(p);
        if (p[DIMS].loss - p[0].loss < 0.01) /* likelihoods that differ by a hundredth are equally good */
            break;
        code = step(s, p, err);
    }
    sort(p);
    *best = p[0];
    return code;
}

/* ---- all -------------------------------------------------------------------------------------------- */

/* T and D of the molecules `which`, a row of a triangle each. */
static pl_code compare(search *s, double *t, double *d, const nn_gp_data *g, const int32_t *which, pl_arena *mem, pl_error *err)
{
    nn_gp_query q;
    double *ti = PL_NEW(mem, double, g->s.n), *di = PL_NEW(mem, double, g->s.n);
    int32_t max = 0;
    pl_code code;

    for (int32_t i = 0; i < g->s.n; i++)
        max = g->s.first[i + 1] - g->s.first[i] > max ? g->s.first[i + 1] - g->s.first[i] : max;
    code = nn_gp_query_make(&q, g, max, mem, err);
    if (ti == NULL || di == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory to compare %d molecules", (int)g->s.n);
    for (int32_t i = 0; code == PL_OK && i < s->n; i++) {
        nn_gp_query_own(&q, g, which[i]);
        nn_gp_tanimoto(ti, g, &q, which[i] + 1);
        nn_gp_distance(di, g, &q, which[i] + 1);
        for (int32_t j = 0; j <= i; j++) {
            *t++ = ti[which[j]];
            *d++ = di[which[j]];
        }
    }
    return code;
}

pl_code nn_gp_search(nn_gp_kernel *out, const nn_gp_data *g, const int32_t *which, int32_t n, const double *y,
                     const nn_fit_conf *conf, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    const size_t half = (size_t)n * ((size_t)n + 1) / 2;
    double *t = mem != NULL ? PL_NEW(mem, double, half) : NULL, *d = mem != NULL ? PL_NEW(mem, double, half) : NULL;
    search s = { .n = n, .t = t, .d = d, .y = y, .conf = conf };
    point best;
    pl_code code = mem != NULL ? nn_tiles_make(&s.tiles, n, mem, err) : PL_OK;

    if (code == PL_OK && mem != NULL) {
        s.scratch = PL_NEW(mem, double, (size_t)s.tiles.n_tiles *NN_TILE *NN_TILE);
        s.x = PL_NEW(mem, double, n);
    }
    if (t == NULL || d == NULL || s.scratch == NULL || s.x == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process of %d molecules", (int)n);
    if (code == PL_OK)
        code = compare(&s, t, d, g, which, mem, err);
    if (code == PL_OK)
        code = begin(&s, &best, err);
    if (code == PL_OK)
        code = descend(&s, &best, err);
    if (code == PL_OK)
        code = judge(&s, &best, out, n, err);
    pl_arena_free(mem);
    return code;
}
