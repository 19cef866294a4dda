/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the Gaussian process on a few made-up molecules: which columns it keeps, where the search of its kernel ends, and who
 * is told what when it stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/family/family.h"
#include "models/family/gp_parts.h"
#include "pipeline/base/rng.h"
#include "tests/unit/guarded.h"

enum { MOST = 210, IDS = 9, USED = 4 };

/* Molecules whose counts and first USED descriptors are small whole numbers, so no library's last digit has a part in it. */
typedef struct molecules {
    ch_environment at[MOST][IDS];
    ch_environments environments[MOST];
    float features[MOST][CH_N_FEATURES];
    nn_table x;
} molecules;

static molecules *molecules_make(int n, pl_arena *mem)
{
    molecules *m = PL_NEW(mem, molecules, 1);
    pl_rng rng = pl_rng_at(5, 0, 0);

    assert_non_null(m);
    for (int i = 0; i < n; i++) {
        ch_environments *e = &m->environments[i];
        e->at = m->at[i];
        for (uint32_t id = 1; id <= IDS; id++)
            if (pl_rng_below(&rng, 3) > 0)
                m->at[i][e->n++] = (ch_environment){ .id = 7 * id, .count = 1 + (uint32_t)pl_rng_below(&rng, 4) };
        for (int k = 0; k < USED; k++)
            m->features[i][k] = (float)pl_rng_below(&rng, 6);
    }
    m->x = (nn_table){ .n = n, .environments = m->environments, .features = (const float(*)[CH_N_FEATURES])m->features };
    return m;
}

static double of_environments(const molecules *m, int i)
{
    double sum = 0;

    for (int32_t k = 0; k < m->environments[i].n; k++)
        sum += (m->at[i][k].id % 2 ? 1 : -1) * (double)m->at[i][k].count;
    return sum / 4;
}

static double of_numbers(const molecules *m, int i)
{
    const double a = (double)m->features[i][0] - 2, b = (double)m->features[i][1] - 3;

    return (a * b + (double)m->features[i][2]) / 4;
}

static double chance(int i)
{
    pl_rng rng = pl_rng_at(6, (uint64_t)i, 0);

    return (double)pl_rng_below(&rng, 2001) / 1000 - 1;
}

/* How much the values owe to environments, to descriptors and to chance, and the kernel that is found after so many questions
 * whether to stop. */
typedef struct found {
    int n;
    double environments, numbers, chance;
    nn_gp_kernel k;
    int asked;
} found;

/* The numbers are this program's own; that they are the most likely ones is the test gp's. Four lie on the edges of the box: w of
 * 1 / (1 + exp(6)) and 1 / (1 + exp(-4)), lengths exp(-3) and exp(3), noise exp(-10) and exp(2). */
static const found all[] = {
    { 40, 1, 0, 0, { 0.982013790037908, 20.0855369231877, 4.53999297624849e-5, 0.854447801292 }, 40 },
    { 40, 0, 1, 0, { 0.00247262315663477, 1.64256755333, 4.53999297624849e-5, 1.66469942664 }, 70 },
    { 40, 0, 0, 1, { 0.00247262315663477, 0.138742820792, 7.38905609893065, 0.0399279277853 }, 72 },
    { 40, 1, 1, 0.3, { 0.788972086815, 1.37942261768, 4.53999297624849e-5, 1.92472361419 }, 55 },
    { 70, 0, 1, 0.1, { 0.00247262315663477, 2.03878306557, 0.00073073313614, 4.23735891852 }, 225 },
    { 210, 0.3, 0.3, 0.3, { 0.065112745253, 2.1100020144, 0.0100308321065, 1.44477286808 }, 820 },
    { 63, 1, 1, 0.3, { 0.240530888413, 1.46816941065, 5.11993609675e-5, 3.73493934175 }, 70 }, /* just below a tile, and one */
    { 64, 1, 1, 0.3, { 0.235470254015, 1.49493439711, 4.53999297624849e-5, 3.78194027379 }, 92 },
    { 5, 1, 1, 0, { 0.982013790037908, 0.0497870683678639, 4.53999297624849e-5, 1.45115146546 }, 38 },
    { 40, 0, 0, 0, { 0.268941421369995, 0.49658530379141, 0.0183156388887342, 0 }, 373 }, /* the first point, exp(-4), stays */
};

static bool never(void *ctx)
{
    ++*(int *)ctx;
    return false;
}

static void values_fill(double *y, const found *f, const molecules *m)
{
    for (int i = 0; i < f->n; i++)
        y[i] = f->environments * of_environments(m, i) + f->numbers * of_numbers(m, i) + f->chance * chance(i);
}

static pl_code searched(nn_gp_kernel *k, const found *f, bool (*stop)(void *), int *ctx, pl_error *err, pl_arena *mem)
{
    const molecules *m = molecules_make(f->n, mem);
    int32_t *which = guarded((size_t)f->n, sizeof *which);
    double *y = guarded((size_t)f->n, sizeof *y);
    nn_gp_stored stored;
    nn_gp_data g;

    assert_true(which != NULL && y != NULL);
    for (int i = 0; i < f->n; i++)
        which[i] = i;
    values_fill(y, f, m);
    assert_int_equal(nn_gp_store(&stored, &m->x, mem, NULL), PL_OK);
    assert_int_equal(nn_gp_derive(&g, &stored, mem, NULL), PL_OK);
    return nn_gp_search(k, &g, which, f->n, y, &(nn_fit_conf){ .stop = stop, .ctx = ctx }, err);
}

static bool is_near(double is, double want) { return fabs(is - want) <= 1e-7 * fabs(want); }

/* A box, a step, a first corner or a limit that is another one ends elsewhere. */
static void the_search_ends_where_it_did(void **unused)
{
    (void)unused;
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        const found *f = &all[c];
        pl_arena *mem = pl_arena_new(0);
        nn_gp_kernel k;
        int asked = 0;
        assert_int_equal(searched(&k, f, never, &asked, NULL, mem), PL_OK);
        if (!is_near(k.w, f->k.w) || !is_near(k.length, f->k.length) || !is_near(k.noise, f->k.noise) ||
            !is_near(k.signal, f->k.signal) || asked != f->asked)
            fail_msg("case %d: { %.12g, %.12g, %.12g, %.12g }, %d", (int)c, k.w, k.length, k.noise, k.signal, asked);
        pl_arena_free(mem);
    }
}

static bool nth_time(void *ctx) { return --*(int *)ctx == 0; }

/* Whenever the user stops it, and without any further question. */
static void a_stop_ends_the_search_at_once(void **unused)
{
    pl_arena *mem = pl_arena_new(0);
    nn_gp_kernel k;
    pl_error err;

    (void)unused;
    for (int nth = 1; nth <= all[3].asked + 1; nth++) {
        int left = nth;
        err = (pl_error){ 0 };
        assert_int_equal(searched(&k, &all[3], nth_time, &left, &err, mem), nth <= all[3].asked ? PL_ESTOP : PL_OK);
        assert_string_equal(err.text, nth <= all[3].asked ? "stopped in column 0 of 40" : "");
        assert_int_equal(left, nth <= all[3].asked ? 0 : 1);
    }
    pl_arena_free(mem);
}

/* Column 0 differs, 1 is constant, 2 constant with gaps, 3 absent, 4 differs only behind gaps, 5 only in the last molecule, 6 is one
 * number and infinities. */
static void columns_that_differ_are_kept(void **unused)
{
    enum { N = 4, COLUMNS = 7 };
    static const float column[N][COLUMNS] = { { 1, 5, NAN, NAN, NAN, 2, INFINITY },
                                              { 2, 5, 5, NAN, 1, 2, 3 },
                                              { 1, 5, NAN, NAN, NAN, 2, -INFINITY },
                                              { 2, 5, 5, NAN, 0, 3, NAN } };
    static const uint32_t kept[] = { 0, 4, 5 };
    pl_arena *mem = pl_arena_new(0);
    const molecules *m = molecules_make(N, mem);
    nn_table x = m->x;
    nn_gp_stored s;
    nn_gp_data g;

    (void)unused;
    x.n_columns = COLUMNS;
    x.column = column[0];
    assert_int_equal(nn_gp_store(&s, &x, mem, NULL), PL_OK);
    assert_true(s.numbers.n_environments == 0 && s.numbers.n_features == USED && s.numbers.n_others == 3);
    for (uint32_t k = 0; k < USED; k++)
        assert_int_equal(s.numbers.id[k], k);
    assert_memory_equal(s.numbers.id + USED, kept, sizeof kept);
    for (int i = 0; i < N; i++) {
        const float *row = s.number + i * (USED + 3);
        assert_memory_equal(row, m->features[i], USED * sizeof *row);
        for (int k = 0; k < 3; k++)
            assert_true(row[USED + k] == column[i][kept[k]] || (isnan(row[USED + k]) && isnan(column[i][kept[k]])));
    }
    assert_int_equal(nn_gp_derive(&g, &s, mem, NULL), PL_OK);
    assert_true(g.mean[USED + 1] == 0.5 && g.inverse[USED + 1] == 1 / (0.5 * sqrt(USED + 3))); /* of the two that have it */
    for (int i = 0; i < N; i++) {
        int32_t total = 0;
        for (int32_t k = 0; k < m->environments[i].n; k++)
            total += (int32_t)m->at[i][k].count;
        assert_int_equal(g.total[i], total);
        assert_true(g.z[(USED + 1) * NN_TILE + i] ==
                    (isnan(column[i][4]) ? 0 : ((double)column[i][4] - 0.5) * g.inverse[USED + 1]));
    }
    pl_arena_free(mem);
}

/* The matrix is told by its size, a stop by the column where it came. */
static void matrices_say_why_they_have_no_factor(void **unused)
{
    enum { N = 130 };
    pl_arena *mem = pl_arena_new(0);
    nn_tiles t;
    double *room;
    pl_error err = { 0 };

    (void)unused;
    for (int left = 1; left <= 7; left++) { /* 3 tiles of the first column, 2 of the second, 1 of the third */
        static const char *const why[] = { "0", "0", "0", "64", "64", "128" };
        char text[60];
        int asked = left;
        assert_int_equal(nn_tiles_make(&t, N, mem, NULL), PL_OK);
        room = PL_NEW(mem, double, t.n_tiles *NN_TILE *NN_TILE);
        for (int i = 0; i < N; i++)
            *nn_tiles_at(&t, i, i) = 2;
        assert_int_equal(nn_tiles_factor(&t, room, nth_time, &asked, &err), left < 7 ? PL_ESTOP : PL_OK);
        if (left < 7)
            (void)snprintf(text, sizeof text, "stopped in column %s of 130", why[left - 1]);
        assert_string_equal(err.text, text);
    }
    *nn_tiles_at(&t, 129, 129) = 0;
    assert_int_equal(nn_tiles_factor(&t, room, NULL, NULL, &err), PL_EDATA);
    assert_string_equal(err.text, "the matrix of 130 molecules is not positive definite");
    pl_arena_free(mem);
}

/* After the search, the matrix of the subset and that of all are filled a molecule at a time, and factored. */
static void a_stop_names_the_molecule(void **unused)
{
    enum { N = 12 };
    const found f = { N, 1, 1, 0.3, { 0, 0, 0, 0 }, 0 };
    pl_arena *mem = pl_arena_new(0);
    const molecules *m = molecules_make(N, mem);
    double y[N];
    nn_member *one;
    pl_code code = PL_ESTOP;
    int told = 0;

    (void)unused;
    values_fill(y, &f, m);
    for (int nth = 1; code == PL_ESTOP; nth++) {
        pl_error err = { 0 };
        char text[60];
        int left = nth;
        code = nn_gp.fit(&one, &m->x, y, &(nn_fit_conf){ .stop = nth_time, .ctx = &left }, mem, &err);
        (void)snprintf(text, sizeof text, "stopped at molecule %d of %d", told % N, N);
        if (code == PL_ESTOP && strcmp(err.text, text) == 0)
            told++;
        else if (code == PL_ESTOP)
            assert_string_equal(err.text, "stopped in column 0 of 12");
    }
    assert_int_equal(code, PL_OK);
    assert_int_equal(told, 2 * N);
    pl_arena_free(mem);
}

static void more_environments_than_numbers_are_refused(void **unused)
{
    enum { N = 3 };
    const ch_environments many[N] = { { .n = INT32_MAX - 1 }, { .n = 1 }, { .n = 1 } };
    const float features[N][CH_N_FEATURES] = { { 0 } };
    const nn_table x = { .n = N, .environments = many, .features = features };
    pl_arena *mem = pl_arena_new(0);
    nn_gp_stored s;
    pl_error err = { 0 };

    (void)unused;
    assert_int_equal(nn_gp_store(&s, &x, mem, &err), PL_ECONFIG);
    assert_string_equal(err.text, "3 molecules have more environments than a Gaussian process holds");
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_search_ends_where_it_did), cmocka_unit_test(a_stop_ends_the_search_at_once),
        cmocka_unit_test(columns_that_differ_are_kept), cmocka_unit_test(matrices_say_why_they_have_no_factor),
        cmocka_unit_test(a_stop_names_the_molecule),    cmocka_unit_test(more_environments_than_numbers_are_refused),
    };

    return cmocka_run_group_tests_name("gp_parts", tests, NULL, NULL);
}
