/* SPDX-License-Identifier: Apache-2.0 */
/* The empirical rules of MMFF94 for torsions, written down a second time from Halgren, J. Comput. Chem. 17, 616 (1996), for atoms of
 * every kind that they ask for. No table is used. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chem/structures/parameters.h"
#include "chem/structures/rules.h"

enum { J = 2, K = 3 }; /* types of the two atoms in the middle */

static const struct {
    uint8_t z;
    double u, v, w;
} elements[] = { { 6, 2, 2.12, 0 },     { 7, 2, 1.5, 0 },     { 8, 2, 0.2, 2 },
                 { 14, 1.25, 1.22, 0 }, { 15, 1.25, 2.4, 0 }, { 16, 1.25, 0.49, 8 } };

enum { N_ELEMENTS = sizeof elements / sizeof *elements };

/* The k-th atom of all that differ in what the rules look at. */
static int atom_of(ch_mmff_type *type, int k)
{
    static const uint8_t valences[] = { 2, 3, 4, 34 };
    const int e = k % N_ELEMENTS, neighbours = k / N_ELEMENTS % 3, valence = k / N_ELEMENTS / 3 % 4;
    const int multiple = k / N_ELEMENTS / 12 % 4, lone_pair = k / N_ELEMENTS / 48 % 2;

    *type = (ch_mmff_type){ .known = true,
                            .z = elements[e].z,
                            .neighbours = (uint8_t)(2 + neighbours),
                            .valence = valences[valence],
                            .multiple = (uint8_t)multiple,
                            .lone_pair = lone_pair != 0 };
    return e;
}

enum { N_ATOMS = N_ELEMENTS * 3 * 4 * 4 * 2 };

static bool is_second_row(const ch_mmff_type *t) { return t->z <= 10; }

/* (e), (f) Whether an atom beside a tetrahedral one leaves a barrier: not where its pi electrons do not. */
static bool leaves_barrier(const ch_mmff_type *t)
{
    switch (t->neighbours) {
    case 3: return t->valence != 4 && t->valence != 34 && t->multiple == 0;
    case 2: return t->valence != 3 && t->multiple == 0;
    default: return true; /* it is tetrahedral, too: (d) */
    }
}

/* (g) V2 of a single bond between two multiple ones, or between one and a lone pair. */
static double conjugated(const ch_mmff_type *j, const ch_mmff_type *k, double u)
{
    const ch_mmff_type *with = j->lone_pair && k->multiple > 0 ? k : j; /* the one that is not the lone pair's */
    const double usual = is_second_row(j) && is_second_row(k) ? 0.3 : 0.15;

    if (j->lone_pair && k->lone_pair)
        return 0;
    if ((j->lone_pair && k->multiple > 0) || (k->lone_pair && j->multiple > 0))
        return 6 * u * (with->multiple == 1 ? 0.5 : usual);
    return 6 * u * ((j->multiple == 1 || k->multiple == 1) && (j->z != 6 || k->z != 6) ? 0.4 : 0.15);
}

static void expected(double v[3], const ch_mmff_type *j, int ej, const ch_mmff_type *k, int ek, bool aromatic, int order)
{
    const double u = sqrt(elements[ej].u * elements[ek].u), barrier = sqrt(elements[ej].v * elements[ek].v);
    const double share = (j->neighbours - 1.0) * (k->neighbours - 1.0);
    const bool multiple = j->multiple > 0 && k->multiple > 0;
    const bool lone_pair = (j->lone_pair && k->multiple > 0) || (k->lone_pair && j->multiple > 0);

    v[0] = v[1] = v[2] = 0;
    if (aromatic) { /* (b) */
        const bool is_3_and_4 = j->valence + k->valence == 7 && (j->valence == 3 || k->valence == 3);
        const double beta = is_3_and_4 ? 3 : 6, pi = !j->lone_pair && !k->lone_pair ? 0.5 : 0.3;
        v[1] = beta * pi * u;
    } else if (order == 2) { /* (c) */
        v[1] = j->multiple == 2 && k->multiple == 2 ? 6 * u : 2.4 * u;
    } else if (j->neighbours == 4 || k->neighbours == 4) { /* (d), (e), (f) */
        v[2] = leaves_barrier(j) && leaves_barrier(k) ? barrier / share : 0;
    } else if (multiple || lone_pair) { /* (g) */
        v[1] = conjugated(j, k, u);
    } else if (elements[ej].w > 0 && elements[ek].w > 0) { /* (h) */
        v[1] = -sqrt(elements[ej].w * elements[ek].w);
    } else {
        v[2] = barrier / share;
    }
}

static void torsions_without_constants_follow_the_rules(void **state)
{
    static const ch_bond_sight middles[] = {
        { .order = 1, .aromatic = true }, { .order = 2 }, { .order = 1 }, { .order = 1, .class = 1 }
    };
    const ch_bond_sight end = { .order = 1 };
    const int type[4] = { 1, J, K, 1 };
    static ch_mmff p;

    (void)state;
    for (int a = 0; a < N_ATOMS; a++)
        for (int b = a % 7; b < N_ATOMS; b += 7)
            for (size_t m = 0; m < sizeof middles / sizeof *middles; m++) {
                const ch_bond_sight *bond[3] = { &end, &middles[m], &end };
                const int ej = atom_of(&p.type[J], a), ek = atom_of(&p.type[K], b);
                double v[3] = { 9, 9, 9 }, want[3];
                expected(want, &p.type[J], ej, &p.type[K], ek, middles[m].aromatic, middles[m].order);
                const bool any = ch_rule_torsion(v, &p, false, 0, bond, type);
                for (int i = 0; i < 3; i++)
                    if (!(fabs(v[i] - want[i]) <= 1e-12))
                        fail_msg("atoms %d and %d, middle %zu: V%d is %.6f, not %.6f", a, b, m, i + 1, v[i], want[i]);
                assert_int_equal(any, want[0] != 0 || want[1] != 0 || want[2] != 0);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torsions_without_constants_follow_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
