/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden/golden.h"
#include "models/basis.h"
#include "models/sh.h"

enum { EDGES = 64, BIG = 16 * 44 * 16 };

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

static void harmonics_agree_with_the_reference(void **state)
{
    const nn_tensors *f = golden_open("b1_bases_pairwise", *state);
    const double *v = golden_get(f, NULL, *state, "in.rel_pos");

    for (int l = 0; l <= 6; l++) {
        const double *want = golden_get(f, NULL, *state, "64.sh.%d", l);
        double got[EDGES * 13], y[NN_SH_COUNT];
        for (int e = 0; e < EDGES; e++) {
            nn_sh(y, 6, v + 3 * e);
            memcpy(got + e * (2 * l + 1), y + l * l, sizeof(double) * (size_t)(2 * l + 1));
        }
        golden_check("64.sh", got, want, (size_t)(EDGES * (2 * l + 1)), 1e-12);
    }
}

static void harmonics_of_zero_axes_and_tiny_vectors_agree(void **state)
{
    const nn_tensors *f = golden_open("b1_bases_pairwise", *state);
    const double *v = golden_get(f, NULL, *state, "special.rel_pos");
    const double *want = golden_get(f, NULL, *state, "special.sh");
    double y[NN_SH_COUNT];

    for (int e = 0; e < 11; e++) {
        nn_sh(y, 6, v + 3 * e);
        golden_check("special.sh", y, want + 49 * e, 49, 1e-12);
    }
}

/* The file has them as [k][l][m]. */
static void coupling_check(const nn_tensors *f, int j, int i, int o, void *state)
{
    const double *want = golden_get(f, NULL, state, "q.%d.%d.%d", j, i, o);
    int nj = 2 * j + 1, ni = 2 * i + 1, no = 2 * o + 1;
    double w[13 * 7 * 7], got[13 * 7 * 7];

    nn_w3j(w, j, i, o, NN_W3J_E3NN_033);
    for (int k = 0; k < no; k++)
        for (int l = 0; l < ni; l++)
            for (int m = 0; m < nj; m++)
                got[(k * ni + l) * nj + m] = w[(m * ni + l) * no + k];
    golden_check("q", got, want, (size_t)(nj * ni * no), 1e-12);
}

static void coupling_tensors_agree_with_the_reference(void **state)
{
    const nn_tensors *f = golden_open("b1_bases_pairwise", *state);

    for (int i = 0; i <= 3; i++)
        for (int o = 0; o <= 3; o++)
            for (int j = i < o ? o - i : i - o; j <= i + o; j++)
                coupling_check(f, j, i, o, *state);
}

static void pairwise_bases_agree_with_the_reference(void **state)
{
    const nn_tensors *f = golden_open("b1_bases_pairwise", *state);
    const double *v = golden_get(f, NULL, *state, "in.rel_pos");
    nn_couplings *q;
    double y[NN_SH_COUNT], got[7 * 7 * 7];
    char name[64];

    assert_int_equal(nn_couplings_new(&q, 3, NN_W3J_E3NN_033, *state, NULL), PL_OK);
    for (int i = 0; i <= 3; i++)
        for (int o = 0; o <= 3; o++) {
            int n = (2 * i + 1) * nn_freqs(i, o) * (2 * o + 1);
            const double *want = golden_get(f, NULL, *state, "64.basis.%d,%d", i, o);
            const double *want32 = golden_get(f, NULL, *state, "32.basis.%d,%d", i, o);
            snprintf(name, sizeof name, "64.basis.%d,%d", i, o);
            for (int e = 0; e < EDGES; e++) {
                nn_sh(y, i + o, v + 3 * e);
                nn_basis_pair(got, q, i, o, y);
                golden_check(name, got, want + e * n, (size_t)n, 1e-12);
                golden_check("32.basis", got, want32 + e * n, (size_t)n, 1e-6);
            }
        }
}

static void layout_check(const nn_tensors *f, nn_basis_layout layout, int max, int d, const char *name,
                         pl_arena *mem)
{
    const double *v = golden_get(f, NULL, mem, "in.rel_pos");
    bool padded = strstr(name, "pad") != NULL;
    nn_couplings *q;
    static double got[BIG];
    double y[NN_SH_COUNT];
    size_t n;
    const double *want = golden_get(f, &n, mem, "%s", name);

    assert_int_equal(nn_couplings_new(&q, max, NN_W3J_E3NN_033, mem, NULL), PL_OK);
    size_t size = (size_t)nn_basis_size(q, layout, d, padded);
    assert_true(n % size == 0 && n >= 4 * size);
    for (size_t e = 0; e < n / size; e++) {
        nn_sh(y, 2 * max, v + 3 * e);
        nn_basis_fused(got, q, layout, d, padded, y);
        golden_check(name, got, want + e * size, size, 1e-6);
    }
}

static void fused_layouts_agree_with_the_reference(void **state)
{
    const nn_tensors *f = golden_open("b1_bases_fused", *state);
    char name[64];

    for (int max = 1; max <= 3; max++) {
        snprintf(name, sizeof name, "L%d.fully_fused", max);
        layout_check(f, NN_BASIS_FULL, max, 0, name, *state);
        for (int d = 0; d <= max; d++) {
            snprintf(name, sizeof name, "L%d.out%d_fused", max, d);
            layout_check(f, NN_BASIS_OUT, max, d, name, *state);
            snprintf(name, sizeof name, "L%dpad.out%d_fused", max, d);
            layout_check(f, NN_BASIS_OUT, max, d, name, *state);
            snprintf(name, sizeof name, "L%d.in%d_fused", max, d);
            layout_check(f, NN_BASIS_IN, max, d, name, *state);
        }
    }
}

/* The two conventions differ in exactly these couplings at degrees up to 4. */
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
static void generators_turn_the_harmonics(void **state)
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
        cmocka_unit_test_setup_teardown(harmonics_agree_with_the_reference, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(harmonics_of_zero_axes_and_tiny_vectors_agree, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(coupling_tensors_agree_with_the_reference, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(pairwise_bases_agree_with_the_reference, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(fused_layouts_agree_with_the_reference, open_arena, close_arena),
        cmocka_unit_test(sign_conventions_differ_in_the_known_triples),
        cmocka_unit_test(generators_turn_the_harmonics),
    };

    golden_folder();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
