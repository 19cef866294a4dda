/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussian process: against its definition in plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "family_toy.h"
#include "models/family/exact.h"
#include "models/family/gp_parts.h"
#include "pipeline/base/rng.h"
#include "tests/unit/arena_state.h"

/* ---- exact functions ---- */

static void exponential_and_logarithm_agree_with_libm(void **state)
{
    (void)state;
    for (double x = -707; x < 709; x += 0.37)
        assert_true(fabs(nn_exp(x) / exp(x) - 1) < 1e-15);
    for (double x = 1e-300; x < 1e300; x *= 1.7)
        assert_true(fabs(nn_log(x) - log(x)) < 1e-15 * fabs(log(x)) + 1e-16);
    for (double x = 0.5; x < 2; x += 0.001)
        assert_true(fabs(nn_log(x) - log(x)) < 3e-16);
    assert_true(nn_exp(-INFINITY) == 0 && nn_exp(-1e9) == 0 && isinf(nn_exp(710)) && isnan(nn_exp(NAN)) && nn_exp(0) == 1);
    assert_true(fabs(nn_exp(-708) / exp(-708) - 1) < 1e-15 && nn_exp(nextafter(-708, -INFINITY)) == 0);
    assert_true(fabs(nn_exp(709) / exp(709) - 1) < 1e-15 && isinf(nn_exp(nextafter(709, INFINITY))));
    assert_true(nn_log(1) == 0);
}

/* ---- tiles ---- */

/* The factor by definition, each number by the same operations in the same order. */
static void factor_plainly(double *a, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (int p = 0; p < j; p++) {
                const volatile double product = a[i * n + p] * a[j * n + p]; /* not fused */
                sum -= product;
            }
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
}

static void factor_of(int n, pl_arena *mem)
{
    double *a = PL_NEW(mem, double, n *n), *room, *x = PL_NEW(mem, double, n), *y = PL_NEW(mem, double, n), log_sum = 0;
    pl_rng rng = pl_rng_at(3, (uint64_t)n, 0);
    nn_tiles t;

    assert_int_equal(nn_tiles_make(&t, n, mem, NULL), PL_OK);
    room = PL_NEW(mem, double, t.n_tiles *NN_TILE *NN_TILE);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            a[i * n + j] = a[j * n + i] = pl_rng_normal(&rng) + (i == j ? 2 * n : 0);
            *nn_tiles_at(&t, i, j) = a[i * n + j];
        }
    for (int i = 0; i < n; i++) {
        x[i] = i % 5 - 2;
        for (int j = 0; j < n; j++)
            y[i] += a[i * n + j] * (j % 5 - 2);
    }
    assert_int_equal(nn_tiles_factor(&t, room, NULL, NULL, NULL), PL_OK);
    factor_plainly(a, n);
    nn_tiles_forward(&t, y);
    nn_tiles_backward(&t, y);
    for (int i = 0; i < n; i++) {
        assert_true(fabs(y[i] - x[i]) < 1e-9);
        for (int j = 0; j <= i; j++)
            assert_memory_equal(nn_tiles_at(&t, i, j), &a[i * n + j], sizeof *a);
        log_sum += log(a[i * n + i]);
    }
    assert_true(fabs(nn_tiles_log(&t) - log_sum) < 1e-9 * n);
}

static void factors_have_the_bits_of_plain_loops(void **state)
{
    static const int size[] = { 1, 2, 63, 64, 65, 128, 200, 321 };

    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        factor_of(size[i], *state);
}

static void a_matrix_that_is_not_definite_is_said(void **state)
{
    double room[NN_TILE * NN_TILE];
    nn_tiles t;

    assert_int_equal(nn_tiles_make(&t, 2, *state, NULL), PL_OK);
    *nn_tiles_at(&t, 0, 0) = *nn_tiles_at(&t, 1, 1) = 1;
    *nn_tiles_at(&t, 1, 0) = 2;
    assert_int_equal(nn_tiles_factor(&t, room, NULL, NULL, NULL), PL_EDATA);
    *nn_tiles_at(&t, 0, 0) = NAN;
    assert_int_equal(nn_tiles_factor(&t, room, NULL, NULL, NULL), PL_EDATA);
}

/* ---- against the definition ---- */

static double count_of(const ch_environments *e, uint32_t id)
{
    for (int32_t k = 0; k < e->n; k++)
        if (e->at[k].id == id)
            return e->at[k].count < 255 ? e->at[k].count : 255;
    return 0;
}

static double tanimoto(const ch_environments *a, const ch_environments *b)
{
    double both = 0, either = 0;

    for (int32_t k = 0; k < a->n; k++) {
        const double x = count_of(a, a->at[k].id), y = count_of(b, a->at[k].id);
        both += x < y ? x : y;
        either += x < y ? y : x;
    }
    for (int32_t k = 0; k < b->n; k++)
        either += count_of(a, b->at[k].id) > 0 ? 0 : count_of(b, b->at[k].id);
    return either > 0 ? both / either : 1;
}

/* Descriptors and columns of row i, scaled by the molecules of `by`. */
static double distance(const nn_table *by, const nn_table *a, int i, const nn_table *b, int j)
{
    enum { ALL = CH_N_FEATURES + FAMILY_COLUMNS };
    double sum = 0;
    int used = 0;

    for (int k = 0; k < ALL; k++) {
        double mean = 0, square = 0, z[2];
        int n = 0;
#define AT(x, i) (k < CH_N_FEATURES ? (x)->features[i][k] : (x)->column[(i)*FAMILY_COLUMNS + k - CH_N_FEATURES])
        for (int m = 0; m < by->n; m++)
            if (!isnan(AT(by, m))) {
                mean += AT(by, m);
                n++;
            }
        mean /= n;
        for (int m = 0; m < by->n; m++)
            if (!isnan(AT(by, m)))
                square += (AT(by, m) - mean) * (AT(by, m) - mean);
        if (square == 0)
            continue;
        z[0] = isnan(AT(a, i)) ? 0 : (AT(a, i) - mean) / sqrt(square / n);
        z[1] = isnan(AT(b, j)) ? 0 : (AT(b, j) - mean) / sqrt(square / n);
        sum += (z[0] - z[1]) * (z[0] - z[1]);
        used++;
#undef AT
    }
    return sum / used;
}

static double kernel(const nn_gp_kernel *k, const nn_table *by, const nn_table *a, int i, const nn_table *b, int j)
{
    return k->w * tanimoto(&a->environments[i], &b->environments[j]) +
           (1 - k->w) * exp(-distance(by, a, i, b, j) / (2 * k->length * k->length));
}

static void solve_plainly(double *a, double *x, int n) /* Gauss; a is definite */
{
    for (int i = 0; i < n; i++)
        for (int r = i + 1; r < n; r++) {
            const double f = a[r * n + i] / a[i * n + i];
            for (int c = i; c < n; c++)
                a[r * n + c] -= f * a[i * n + c];
            x[r] -= f * x[i];
        }
    for (int i = n - 1; i >= 0; i--) {
        for (int c = i + 1; c < n; c++)
            x[i] -= a[i * n + c] * x[c];
        x[i] /= a[i * n + i];
    }
}

static void predictions_are_those_of_the_definition(void **state)
{
    enum { LEARN = 90, NEW = 12 };
    pl_arena *mem = *state;
    double *a = PL_NEW(mem, double, LEARN *LEARN), *alpha = PL_NEW(mem, double, LEARN), is[NEW], variance[NEW];
    family_toy l, t;
    nn_member *m;

    assert_true(family_toy_make(&l, LEARN, 1, mem) && family_toy_make(&t, NEW, 2, mem));
    ((ch_environments *)(uintptr_t)t.x.environments)[3].n = 0; /* made here */
    ((ch_environment *)(uintptr_t)l.x.environments[3].at)[0].count = 1000;
    assert_int_equal(nn_gp.fit(&m, &l.x, l.y, &(nn_fit_conf){ .seed = 4 }, mem, NULL), PL_OK);
    assert_int_equal(nn_gp.predict(m, &t.x, is, variance, mem, NULL), PL_OK);
    for (int i = 0; i < LEARN; i++) {
        alpha[i] = (l.y[i] - m->mean) / m->scale;
        for (int j = 0; j < LEARN; j++)
            a[i * LEARN + j] = kernel(&m->k, &l.x, &l.x, i, &l.x, j) + (i == j ? m->k.noise : 0);
    }
    solve_plainly(a, alpha, LEARN);
    for (int i = 0; i < NEW; i++) {
        double value = 0, known = 0, *solved = PL_NEW(mem, double, LEARN), *again = PL_NEW(mem, double, LEARN *LEARN);
        for (int j = 0; j < LEARN; j++) {
            solved[j] = kernel(&m->k, &l.x, &t.x, i, &l.x, j);
            value += alpha[j] * solved[j];
            for (int c = 0; c < LEARN; c++)
                again[j * LEARN + c] = kernel(&m->k, &l.x, &l.x, j, &l.x, c) + (j == c ? m->k.noise : 0);
        }
        solve_plainly(again, solved, LEARN);
        for (int j = 0; j < LEARN; j++)
            known += solved[j] * kernel(&m->k, &l.x, &t.x, i, &l.x, j);
        assert_true(fabs(is[i] - (m->mean + m->scale * value)) < 1e-9 * m->scale);
        assert_true(fabs(variance[i] / (m->scale * m->scale * m->k.signal) - (1 + m->k.noise - known)) < 1e-4);
    }
}

/* Minus the logarithm of the likelihood, less a constant: ln |a| / 2 + n / 2 ln (y a^-1 y / n). */
static double loss_of(const nn_gp_kernel *k, const nn_table *x, const double *y, pl_arena *mem)
{
    const int n = x->n;
    double *a = PL_NEW(mem, double, n *n), *solved = PL_NEW(mem, double, n), squares = 0, sum = 0;

    for (int i = 0; i < n; i++) {
        solved[i] = y[i];
        for (int j = 0; j < n; j++)
            a[i * n + j] = kernel(k, x, x, i, x, j) + (i == j ? k->noise : 0);
    }
    solve_plainly(a, solved, n); /* its pivots multiply to the determinant */
    for (int i = 0; i < n; i++) {
        squares += y[i] * solved[i];
        sum += log(a[i * n + i]) / 2;
    }
    return sum + n / 2.0 * log(squares / n);
}

static void the_kernel_is_the_most_likely_one(void **state)
{
    enum { N = 60 };
    pl_arena *mem = *state;
    double y[N], best;
    family_toy a;
    nn_member *m;

    assert_true(family_toy_make(&a, N, 1, mem));
    assert_int_equal(nn_gp.fit(&m, &a.x, a.y, &(nn_fit_conf){ .seed = 4 }, mem, NULL), PL_OK);
    for (int i = 0; i < N; i++)
        y[i] = (a.y[i] - m->mean) / m->scale;
    best = loss_of(&m->k, &a.x, y, mem);
    print_message("%s, length %.2f, loss %.3f\n", nn_gp.describe(m, mem), m->k.length, best);
    for (int k = 0; k < 6; k++) {
        nn_gp_kernel other = m->k;
        const double factor = k % 2 ? 1.3 : 1 / 1.3;
        other.w = k / 2 == 0 ? other.w / (other.w + (1 - other.w) * factor) : other.w;
        other.length *= k / 2 == 1 ? factor : 1;
        other.noise *= k / 2 == 2 ? factor : 1;
        assert_true(loss_of(&other, &a.x, y, mem) > best - 0.05);
    }
}

/* ---- the member ---- */

static double error_of(const double *is, const double *y, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += (is[i] - y[i]) * (is[i] - y[i]) / n;
    return sqrt(sum);
}

/* Each in turn is taken with the share of those that are still wanted (Knuth, The Art of Computer Programming, 3.4.2, algorithm S). */
static void subset_check(const nn_member *m, int n, uint64_t seed)
{
    pl_rng rng = pl_rng_at(seed, 0, 0);
    int taken = 0;

    for (int i = 0; i < n; i++)
        if ((int64_t)pl_rng_below(&rng, (uint64_t)(n - i)) < NN_GP_SUBSET - taken)
            assert_int_equal(m->subset[taken++], i);
    assert_int_equal(m->m, taken);
    assert_int_equal(taken, NN_GP_SUBSET);
}

static void a_process_learns_and_is_the_same_again(void **state)
{
    enum { LEARN = 760, NEW = 150 };
    pl_arena *mem = *state;
    const nn_fit_conf conf = { .seed = 4 };
    double first[NEW], again[NEW], variance[2][NEW], spread = 0, z = 0;
    pl_rng rng = pl_rng_at(8, 0, 0);
    family_toy a, b;
    nn_member *m[3];

    assert_true(family_toy_make(&a, LEARN, 1, mem) && family_toy_make(&b, NEW, 2, mem));
    for (int i = 0; i < LEARN; i++) /* as measured: errors of 1 */
        a.y[i] += pl_rng_normal(&rng);
    for (int i = 0; i < NEW; i++)
        b.y[i] += pl_rng_normal(&rng);
    for (int k = 0; k < 2; k++)
        assert_int_equal(nn_gp.fit(&m[k], &a.x, a.y, &conf, mem, NULL), PL_OK);
    assert_true(family_toy_again(&m[2], &nn_gp, m[1], mem));
    assert_int_equal(nn_gp.predict(m[0], &b.x, first, variance[0], mem, NULL), PL_OK);
    for (int k = 1; k < 3; k++) {
        assert_int_equal(nn_gp.predict(m[k], &b.x, again, variance[1], mem, NULL), PL_OK);
        assert_memory_equal(first, again, sizeof first);
        assert_memory_equal(variance[0], variance[1], sizeof variance[0]);
    }
    assert_string_equal(nn_gp.describe(m[0], mem), nn_gp.describe(m[2], mem));
    subset_check(m[0], LEARN, conf.seed);
    for (int i = 0; i < NEW; i++) {
        spread += b.y[i] * b.y[i] / NEW;
        z += (first[i] - b.y[i]) * (first[i] - b.y[i]) / variance[0][i] / NEW;
    }
    print_message("%s: error %.3f of %.3f, square of error / variance %.2f\n", nn_gp.describe(m[0], mem), error_of(first, b.y, NEW),
                  sqrt(spread), z);
    assert_true(error_of(first, b.y, NEW) < 0.6 * sqrt(spread));
    assert_true(z > 0.5 && z < 2); /* the variance is that of the errors */
}

/* The value of a molecule depends on it alone. */
static void predictions_depend_on_no_other_molecule(void **state)
{
    enum { LEARN = 70, NEW = 30 };
    pl_arena *mem = *state;
    double all[NEW], one, variance[NEW], its;
    family_toy a, b;
    nn_member *m;

    assert_true(family_toy_make(&a, LEARN, 1, mem) && family_toy_make(&b, NEW, 2, mem));
    assert_int_equal(nn_gp.fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    assert_int_equal(nn_gp.predict(m, &b.x, all, variance, mem, NULL), PL_OK);
    for (int i = NEW - 1; i >= 0; i--) {
        const nn_table x = { 1, b.x.environments + i, b.x.features + i, FAMILY_COLUMNS, b.x.column + i * FAMILY_COLUMNS };
        assert_int_equal(nn_gp.predict(m, &x, &one, &its, mem, NULL), PL_OK);
        assert_memory_equal(&one, &all[i], sizeof one);
        assert_memory_equal(&its, &variance[i], sizeof its);
    }
}

/* base is near the prediction of a molecule without environments whose numbers are the mean ones. */
static void parts_add_up_to_the_prediction(void **state)
{
    enum { N = 150 };
    pl_arena *mem = *state;
    float features[1][CH_N_FEATURES];
    float gaps[FAMILY_COLUMNS];
    double is[N], start, column = 0;
    ch_environments none = { 0 };
    family_toy a;
    nn_member *m;
    nn_parts p;

    assert_true(family_toy_make(&a, N, 1, mem));
    assert_int_equal(nn_gp.fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    assert_int_equal(nn_gp.predict(m, &a.x, is, NULL, mem, NULL), PL_OK);
    memcpy(features[0], a.x.features[0], sizeof features[0]);
    for (int k = 0; k < m->g.s.numbers.n_features; k++) /* the others do not differ */
        features[0][m->g.s.numbers.id[k]] = (float)m->g.mean[k];
    for (int k = 0; k < FAMILY_COLUMNS; k++)
        gaps[k] = NAN;
    assert_int_equal(nn_gp.predict(m, &(nn_table){ 1, &none, (const float(*)[CH_N_FEATURES])features, FAMILY_COLUMNS, gaps },
                                   &start, NULL, mem, NULL),
                     PL_OK);
    for (int i = 0; i < N; i += 10) {
        double sum;
        assert_int_equal(nn_gp.explain(m, &a.x, i, &p, mem, NULL), PL_OK);
        sum = p.base + p.absent;
        for (int k = 0; k < CH_N_FEATURES; k++)
            sum += p.feature[k];
        for (int k = 0; k < a.x.environments[i].n; k++)
            sum += p.environment[k];
        for (int k = 0; k < a.x.n_columns; k++)
            sum += p.column[k];
        assert_true(!p.log_odds && fabs(sum - is[i]) < 1e-9);
        assert_true(fabs(p.base - start) < 0.01 * m->scale);
        if (!isnan(a.x.column[(size_t)i * FAMILY_COLUMNS]))
            column += p.column[0] * (double)a.x.column[(size_t)i * FAMILY_COLUMNS];
    }
    assert_true(column > 1); /* the more of column 0, the higher */
}

/* ---- parts, by definition: slopes along the way from nothing to the molecule, in the middle of 64 steps ---- */

enum { WAY_LEARN = 40, WAY_MOST = 50, WAY_STEPS = 64 };

/* The counts of a molecule's environments in those that were learned, and sums. */
typedef struct way {
    const nn_member *m;
    const ch_environments *e;
    double its[WAY_MOST], in[WAY_LEARN][WAY_MOST], all[WAY_LEARN]; /* at most 255 each */
} way;

static void way_make(way *w, const nn_member *m, const nn_table *learned, const ch_environments *e)
{
    *w = (way){ .m = m, .e = e };
    assert_true(learned->n == WAY_LEARN && e->n <= WAY_MOST);
    for (int k = 0; k < e->n; k++)
        w->its[k] = count_of(e, e->at[k].id);
    for (int i = 0; i < WAY_LEARN; i++) {
        for (int k = 0; k < e->n; k++)
            w->in[i][k] = count_of(&learned->environments[i], e->at[k].id);
        for (int k = 0; k < learned->environments[i].n; k++)
            w->all[i] += count_of(&learned->environments[i], learned->environments[i].at[k].id);
    }
}

/* The sum of alpha T with all counts times t, that of environment k a little more. */
static double likeness_at(const way *w, double t, int more, double little)
{
    double sum = 0;

    for (int i = 0; i < WAY_LEARN; i++) {
        double both = 0, total = 0;
        for (int k = 0; k < w->e->n; k++) {
            const double count = t * w->its[k] + (k == more ? little : 0);
            both += fmin(count, w->in[i][k]);
            total += count;
        }
        sum += w->m->alpha[i] * both / (total + w->all[i] - both);
    }
    return sum;
}

/* The sum of alpha exp(-D / (2 length^2)) with all numbers times t, number k a little more. */
static double nearness_at(const way *w, const double *z, double t, int more, double little)
{
    const nn_gp_data *g = &w->m->g;
    double sum = 0;

    for (int i = 0; i < WAY_LEARN; i++) {
        double d = 0;
        for (int k = 0; k < g->d; k++) {
            const float number = g->s.number[i * g->d + k];
            const double of_it = isnan(number) ? 0 : ((double)number - g->mean[k]) * g->inverse[k];
            const double off = t * z[k] + (k == more ? little : 0) - of_it;
            d += off * off;
        }
        sum += w->m->alpha[i] * exp(-d / (2 * w->m->k.length * w->m->k.length));
    }
    return sum;
}

static double part_of_environment(const way *w, int k)
{
    double slope = 0;

    for (int s = 0; s < WAY_STEPS; s++) {
        const double t = (s + 0.5) / WAY_STEPS;
        slope += (likeness_at(w, t, k, 1e-5) - likeness_at(w, t, k, -1e-5)) / 2e-5 / WAY_STEPS;
    }
    return w->m->scale * w->m->k.w * w->its[k] * slope;
}

static double part_of_number(const way *w, const double *z, int k)
{
    double slope = 0;

    for (int s = 0; s < WAY_STEPS; s++) {
        const double t = (s + 0.5) / WAY_STEPS;
        slope += (nearness_at(w, z, t, k, 1e-5) - nearness_at(w, z, t, k, -1e-5)) / 2e-5 / WAY_STEPS;
    }
    return w->m->scale * (1 - w->m->k.w) * z[k] * slope;
}

/* The molecule has an environment that was never learned, one of which it has more than count, and a gap. */
static void parts_are_integrated_gradients(void **state)
{
    pl_arena *mem = *state;
    way *w = PL_NEW(mem, way, 1);
    double z[CH_N_FEATURES + FAMILY_COLUMNS], largest = 0;
    float row[CH_N_FEATURES + FAMILY_COLUMNS];
    family_toy a, b;
    nn_member *m;
    nn_parts p;

    assert_true(family_toy_make(&a, WAY_LEARN, 1, mem) && family_toy_make(&b, 1, 2, mem));
    assert_int_equal(nn_gp.fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    m->k.w = 0.5; /* both kinds of numbers count */
    b.x.environments[0].at[0].count = 1000;
    b.x.environments[0].at[1].id--; /* no kind's number; they still ascend */
    ((float *)(uintptr_t)b.x.column)[1] = NAN;
    way_make(w, m, &a.x, b.x.environments);
    nn_columns_row(row, &m->g.s.numbers, &b.x, 0);
    for (int k = 0; k < m->g.d; k++)
        z[k] = isnan(row[k]) ? 0 : ((double)row[k] - m->g.mean[k]) * m->g.inverse[k];
    assert_int_equal(nn_gp.explain(m, &b.x, 0, &p, mem, NULL), PL_OK);
    for (int k = 0; k < w->e->n; k++) {
        assert_true(fabs(p.environment[k] - part_of_environment(w, k)) < 1e-6 * m->scale);
        largest = fmax(largest, fabs(p.environment[k]));
    }
    assert_true(p.environment[1] != 0 && largest > 1e-3 * m->scale);
    for (int k = 0; k < m->g.d; k++) {
        const int id = (int)m->g.s.numbers.id[k];
        const double is = k < m->g.s.numbers.n_features ? p.feature[id] : p.column[id];
        assert_true(fabs(is - part_of_number(w, z, k)) < 1e-6 * m->scale && (is != 0) == (z[k] != 0));
    }
    assert_true(p.column[1] == 0 && p.absent == 0 && !p.log_odds);
}

static void classes_are_between_their_limits(void **state)
{
    enum { LEARN = 300, NEW = 200 };
    pl_arena *mem = *state;
    double is[NEW];
    family_toy a, b;
    nn_member *m;
    int right = 0;

    assert_true(family_toy_make(&a, LEARN, 1, mem) && family_toy_make(&b, NEW, 2, mem));
    assert_int_equal(nn_gp.fit(&m, &a.x, a.classes, &(nn_fit_conf){ .classifies = true }, mem, NULL), PL_OK);
    assert_true(family_toy_again(&m, &nn_gp, m, mem));
    assert_int_equal(nn_gp.predict(m, &b.x, is, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < NEW; i++) {
        assert_true(is[i] >= 0.001 && is[i] <= 0.999);
        right += (is[i] > 0.5) == (b.classes[i] == 1);
    }
    print_message("%d of %d right\n", right, NEW);
    assert_true(right > 0.75 * NEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponential_and_logarithm_agree_with_libm),
        WITH_ARENA(factors_have_the_bits_of_plain_loops),
        WITH_ARENA(a_matrix_that_is_not_definite_is_said),
        WITH_ARENA(predictions_are_those_of_the_definition),
        WITH_ARENA(the_kernel_is_the_most_likely_one),
        WITH_ARENA(a_process_learns_and_is_the_same_again),
        WITH_ARENA(predictions_depend_on_no_other_molecule),
        WITH_ARENA(parts_add_up_to_the_prediction),
        WITH_ARENA(parts_are_integrated_gradients),
        WITH_ARENA(classes_are_between_their_limits),
    };

    return cmocka_run_group_tests_name("gp", tests, NULL, NULL);
}
