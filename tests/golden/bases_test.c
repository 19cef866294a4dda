/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden/golden.h"
#include "models/network/basis.h"
#include "models/network/sh.h"

enum { BIG = 16 * 44 * 16 };

static int open_arena(void **state)
{
    *state = pl_arena_new(1 << 20);
    return *state ? 0 : -1;
}

static int close_arena(void **state)
{
    pl_arena_free(*state);
    return 0;
}

/* ---- one stored tensor ---------------------------------------------------- */

typedef struct stored {
    const nn_tensors *file;
    const nn_tensor *t;
    const double *want, *vec; /* in.rel_pos of the file */
    size_t n;
    nn_couplings *q[NN_MAX_DEGREE + 1]; /* of each largest degree */
    pl_arena *mem;
} stored;

static void harmonics_check(const stored *s, const double *v, int l, double rel)
{
    double y[NN_SH_COUNT];
    size_t m = (size_t)(2 * l + 1);

    assert_true(l <= 6 && s->n % m == 0 && s->n > 0);
    for (size_t e = 0; e < s->n / m; e++) {
        nn_sh(y, 6, v + 3 * e);
        golden_check(s->t->name, y + l * l, s->want + e * m, m, rel);
    }
}

/* [11][49]: all degrees of the zero vector, the axes and tiny vectors. */
static void special_check(const stored *s)
{
    const double *v = golden_get(s->file, NULL, s->mem, "special.rel_pos");
    double y[NN_SH_COUNT];

    assert_true(s->n % 49 == 0 && s->n > 0);
    for (size_t e = 0; e < s->n / 49; e++) {
        nn_sh(y, 6, v + 3 * e);
        golden_check(s->t->name, y, s->want + 49 * e, 49, 1e-12);
    }
}

/* The file has couplings as [k][l][m]. */
static void coupling_check(const stored *s, int j, int i, int o)
{
    int nj = 2 * j + 1, ni = 2 * i + 1, no = 2 * o + 1;
    double w[13 * 7 * 7], got[13 * 7 * 7];

    assert_true(j <= 6 && i <= 3 && o <= 3);
    assert_int_equal(s->n, nj * ni * no);
    nn_w3j(w, j, i, o, NN_W3J_E3NN_033);
    for (int k = 0; k < no; k++)
        for (int l = 0; l < ni; l++)
            for (int m = 0; m < nj; m++)
                got[(k * ni + l) * nj + m] = w[(m * ni + l) * no + k];
    golden_check(s->t->name, got, s->want, s->n, 1e-12);
}

/* padded: one zero behind the components of the output degree. */
static void pairwise_check(const stored *s, int i, int o, bool padded, double rel)
{
    int no = 2 * o + 1, wide = no + padded, rows = (2 * i + 1) * nn_freqs(i, o);
    double y[NN_SH_COUNT], plain[7 * 7 * 7], got[7 * 7 * 8] = { 0 };
    size_t one = (size_t)(rows * wide);

    assert_true(i <= 3 && o <= 3 && s->n % one == 0 && s->n > 0);
    for (size_t e = 0; e < s->n / one; e++) {
        nn_sh(y, i + o, s->vec + 3 * e);
        nn_basis_pair(plain, s->q[3], i, o, y);
        for (int r = 0; r < rows; r++)
            memcpy(got + r * wide, plain + r * no, (size_t)no * sizeof *got);
        golden_check(s->t->name, got, s->want + e * one, one, rel);
    }
}

static void layout_check(const stored *s, nn_basis_layout layout, int max, int d, bool padded)
{
    static double got[BIG];
    double y[NN_SH_COUNT];
    size_t size = (size_t)nn_basis_size(s->q[max], layout, d, padded);

    assert_true(size <= BIG && s->n % size == 0 && s->n >= 4 * size);
    for (size_t e = 0; e < s->n / size; e++) {
        nn_sh(y, 2 * max, s->vec + 3 * e);
        nn_basis_fused(got, s->q[max], layout, d, padded, y);
        golden_check(s->t->name, got, s->want + e * size, size, 1e-6);
    }
}

/* "L3.out1_fused", "L3pad.in0_fused", "L3.fully_fused", "L3.1,2" */
static bool fused_check(const stored *s)
{
    bool padded = !strncmp(s->t->name + 2, "pad.", 4);
    const char *name = s->t->name + (padded ? 6 : 3);
    int max = s->t->name[1] - '0', a, b, end = 0;

    if (s->t->name[0] != 'L' || max < 1 || max > 3 || (!padded && s->t->name[2] != '.'))
        return false;
    if (!strcmp(name, "fully_fused"))
        layout_check(s, NN_BASIS_FULL, max, 0, false);
    else if (sscanf(name, "out%d_fused%n", &a, &end) == 1 && !name[end])
        layout_check(s, NN_BASIS_OUT, max, a, padded);
    else if (sscanf(name, "in%d_fused%n", &a, &end) == 1 && !name[end])
        layout_check(s, NN_BASIS_IN, max, a, padded);
    else if (sscanf(name, "%d,%d%n", &a, &b, &end) == 2 && !name[end])
        pairwise_check(s, a, b, padded, 1e-6);
    else
        return false;
    return true;
}

static bool tensor_check(const stored *s)
{
    const char *name = s->t->name;
    int a, b, c, end = 0;

    if (!strncmp(name, "in.", 3) || !strcmp(name, "special.rel_pos"))
        return true; /* inputs */
    if (!strcmp(name, "special.sh"))
        special_check(s);
    else if (sscanf(name, "64.sh.%d%n", &a, &end) == 1 && !name[end])
        harmonics_check(s, s->vec, a, 1e-12);
    else if (sscanf(name, "32.sh.%d%n", &a, &end) == 1 && !name[end])
        harmonics_check(s, s->vec, a, 1e-6);
    else if (sscanf(name, "q.%d.%d.%d%n", &a, &b, &c, &end) == 3 && !name[end])
        coupling_check(s, a, b, c);
    else if (sscanf(name, "64.basis.%d,%d%n", &a, &b, &end) == 2 && !name[end])
        pairwise_check(s, a, b, false, 1e-12);
    else if (sscanf(name, "32.basis.%d,%d%n", &a, &b, &end) == 2 && !name[end])
        pairwise_check(s, a, b, false, 1e-6);
    else
        return fused_check(s);
    return true;
}

static void every_stored_harmonic_coupling_and_basis_agrees(void **state)
{
    for (const char *const *name = golden_names("b1_", *state); *name; name++) {
        stored s = { .file = golden_open(*name, *state), .mem = *state };
        s.vec = golden_get(s.file, NULL, s.mem, "in.rel_pos");
        for (int max = 1; max <= 3; max++)
            assert_int_equal(nn_couplings_new(&s.q[max], max, NN_W3J_E3NN_033, s.mem, NULL), PL_OK);
        for (int i = 0; i < s.file->n; i++) {
            s.t = &s.file->t[i];
            s.want = golden_get(s.file, &s.n, s.mem, "%s", s.t->name);
            if (!tensor_check(&s))
                fail_msg("%s: no test knows the tensor %s", *name, s.t->name);
        }
        print_message("%s: %d tensors\n", *name, s.file->n);
    }
}

/* The couplings at degrees up to 4 in which the two sign conventions differ. */
static void sign_conventions_differ_in_the_known_triples(void **state)
{
    static const int known[][3] = { { 1, 2, 2 }, { 1, 3, 3 }, { 2, 1, 2 }, { 2, 2, 1 }, { 3, 1, 3 }, { 3, 3, 1 },
                                    { 1, 4, 4 }, { 4, 1, 4 }, { 4, 4, 1 }, { 5, 4, 4 }, { 6, 3, 4 }, { 6, 4, 3 } };
    (void)state;

    for (int i = 0; i <= 4; i++)
        for (int o = 0; o <= 4; o++)
            for (int j = i < o ? o - i : i - o; j <= i + o; j++) {
                bool listed = false;
                for (size_t k = 0; k < sizeof known / sizeof *known; k++)
                    listed |= known[k][0] == j && known[k][1] == i && known[k][2] == o;
                if (nn_w3j_sign_differs(j, i, o) != listed)
                    fail_msg("(J,i,o) = (%d,%d,%d): differs is %d", j, i, o, !listed);
            }
}

/* d/da Y(R u) at a = 0 is G Y(u), for every degree and axis. */
static void generators_rotate_the_harmonics(void **state)
{
    const double u[3] = { 0.36, 0.48, 0.8 }, h = 1e-5;
    (void)state;

    for (int a = 0; a < 3; a++) {
        int b = (a + 1) % 3, c = (a + 2) % 3;
        double up[3] = { u[0], u[1], u[2] }, down[3] = { u[0], u[1], u[2] };
        double y[NN_SH_COUNT], yp[NN_SH_COUNT], ym[NN_SH_COUNT], g[81];
        up[b] = u[b] * cos(h) - u[c] * sin(h), up[c] = u[c] * cos(h) + u[b] * sin(h);
        down[b] = u[b] * cos(h) + u[c] * sin(h), down[c] = u[c] * cos(h) - u[b] * sin(h);
        nn_sh(y, 4, u), nn_sh(yp, 4, up), nn_sh(ym, 4, down);
        for (int l = 1; l <= 4; l++) {
            nn_generator(g, l, a);
            for (int i = 0; i <= 2 * l; i++) {
                double turned = 0.0, slope = (yp[l * l + i] - ym[l * l + i]) / (2 * h);
                for (int j = 0; j <= 2 * l; j++)
                    turned += g[i * (2 * l + 1) + j] * y[l * l + j];
                if (!(fabs(turned - slope) <= 1e-8))
                    fail_msg("degree %d, axis %d, row %d: %g, slope %g", l, a, i, turned, slope);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_stored_harmonic_coupling_and_basis_agrees, open_arena, close_arena),
        cmocka_unit_test(sign_conventions_differ_in_the_known_triples),
        cmocka_unit_test(generators_rotate_the_harmonics),
    };

    golden_folder();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
