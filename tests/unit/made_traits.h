/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/made_traits.h - molecules made by hand, and their traits. Include it once, after cmocka.h. */
#ifndef TESTS_MADE_TRAITS_H
#define TESTS_MADE_TRAITS_H

#include <stdint.h>
#include <string.h>

#include "models/domain/range.h"

static pl_arena *mem;

static inline int mem_open(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 16);
    return mem != NULL ? 0 : 1;
}

static inline int mem_close(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

enum { ATOMS = 40, BONDS = 44 };

/* A molecule made by hand; its bonds are the edges of the graph. */
typedef struct made {
    int n_atoms, n_bonds;
    struct {
        int z, charge;
    } atom[ATOMS];
    struct {
        int a, b, order;
    } bond[BONDS];
} made;

static inline ch_graph graph_of(const made *m)
{
    const ch_graph_opts opts = { .edges = CH_EDGES_BONDS };
    ch_mol mol;
    ch_graph g;

    assert_int_equal(ch_mol_alloc(&mol, m->n_atoms, m->n_bonds, mem, NULL), PL_OK);
    for (int i = 0; i < m->n_atoms; i++) {
        mol.z[i] = (uint8_t)m->atom[i].z;
        mol.charge[i] = (int8_t)m->atom[i].charge;
        mol.xyz[i][0] = (float)i;
    }
    for (int k = 0; k < m->n_bonds; k++) {
        mol.bond[k][0] = m->bond[k].a;
        mol.bond[k][1] = m->bond[k].b;
        mol.order[k] = (uint8_t)m->bond[k].order;
    }
    assert_int_equal(ch_graph_build(&g, &mol, &opts, mem, NULL), PL_OK);
    return g;
}

static inline nn_traits traits_of(const made *m)
{
    const ch_graph g = graph_of(m);
    nn_traits t;

    assert_int_equal(nn_traits_of(&t, &g, mem, NULL), PL_OK);
    return t;
}

/* A chain of n carbon atoms. */
static inline made chain(int n)
{
    made m = { .n_atoms = n, .n_bonds = n - 1 };

    for (int i = 0; i < n; i++)
        m.atom[i].z = 6;
    for (int i = 0; i + 1 < n; i++) {
        m.bond[i].a = i;
        m.bond[i].b = i + 1;
        m.bond[i].order = 1;
    }
    return m;
}

/* Bonds are sorted by their first atom. */
static inline void bond_add(made *m, int a, int b, int order)
{
    int k = m->n_bonds++;

    for (; k > 0 && (m->bond[k - 1].a > a || (m->bond[k - 1].a == a && m->bond[k - 1].b > b)); k--)
        m->bond[k] = m->bond[k - 1];
    m->bond[k].a = a;
    m->bond[k].b = b;
    m->bond[k].order = order;
}

static inline made ring(int n)
{
    made m = chain(n);

    bond_add(&m, 0, n - 1, 1);
    return m;
}

/* The atom i gets n hydrogens. */
static inline void hydrogens_add(made *m, int i, int n)
{
    for (; n > 0; n--) {
        m->atom[m->n_atoms].z = 1;
        bond_add(m, i, m->n_atoms++, 1);
    }
}

#endif
