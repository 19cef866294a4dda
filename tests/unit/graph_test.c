/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "chem/graph/graph_block.h"
#include "chem/worker/wire.h"
#include "made_mol.h"

static pl_arena *mem;

static int fresh(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 20);
    return mem == NULL;
}

static int done(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

static void expect_refused(const ch_mol *m, ch_graph_opts o, pl_code code, const char *text)
{
    ch_graph g;
    pl_error err = { 0 };

    assert_int_equal(ch_graph_build(&g, m, &o, mem, &err), code);
    assert_int_equal(err.code, code);
    if (strstr(err.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, err.text);
}

static void bad_molecules_are_refused_with_a_reason(void **state)
{
    ch_graph_opts radius = { .cutoff = 5 };
    ch_mol m = made_mol(10, 9, 1, mem), none = { 0 }, flat = m;
    (void)state;
    expect_refused(&none, radius, PL_EINPUT, "atoms: ");
    flat.xyz = NULL;
    expect_refused(&flat, radius, PL_EINPUT, "geometry: the molecule has no 3D");
    m.xyz[3][1] = NAN;
    expect_refused(&m, radius, PL_EINPUT, "geometry: atom 4");
    m.xyz[3][1] = INFINITY;
    expect_refused(&m, radius, PL_EINPUT, "geometry: atom 4");
    m.xyz[3][1] = 1e6f;
    expect_refused(&m, radius, PL_EINPUT, "geometry: atom 4");
}

/* One changed number of a good molecule, and the message, or NULL if the molecule is still good. */
static void expect_mol(const ch_mol *m, const char *text)
{
    pl_error err = { 0 };
    pl_code code = ch_mol_check(m, &err);

    if (text == NULL && code == PL_OK)
        return;
    assert_int_equal(code, PL_EINPUT);
    assert_string_equal(err.text, text ? text : "");
}

static void each_fault_of_a_molecule_is_named_with_its_place(void **state)
{
    uint8_t z[3] = { 6, 118, 1 }, order[2] = { 1, CH_AROMATIC_DOUBLE };
    uint16_t isotope[3] = { 0, CH_MASS_MAX, 0 };
    float xyz[3][3] = { { 0 }, { 1, 0, 0 }, { 0, 0, 2 } };
    int32_t bond[2][2] = { { 0, 1 }, { 0, 2 } };
    ch_mol m = { .n_atoms = 3, .n_bonds = 2, .z = z, .xyz = xyz, .bond = bond, .order = order, .isotope = isotope };

    (void)state;
    expect_mol(&m, NULL);
    z[1] = 119, expect_mol(&m, "atom 2 has atomic number 119");
    z[1] = 0, expect_mol(&m, "atom 2 has atomic number 0");
    z[1] = 1, isotope[2] = CH_MASS_MAX + 1, expect_mol(&m, "atom 3 has the mass number 1000, which is impossible");
    m.isotope = NULL, expect_mol(&m, NULL);
    xyz[2][2] = INFINITY, expect_mol(&m, "atom 3 has no finite position");
    m.xyz = NULL, expect_mol(&m, NULL);
    order[1] = CH_AROMATIC_DOUBLE + 1, expect_mol(&m, "bond 2 has order 6");
    order[1] = 0, expect_mol(&m, "bond 2 has order 0");
    order[1] = 1, bond[1][1] = 1, expect_mol(&m, "bond 2 is a duplicate or out of order");
    bond[0][1] = 2, expect_mol(&m, "bond 2 is a duplicate or out of order");
    bond[0][0] = 1, expect_mol(&m, "bond 2 is a duplicate or out of order");
    bond[0][0] = 2, expect_mol(&m, "bond 1 joins atoms 3 and 3 of 3");
    bond[0][0] = 0, bond[0][1] = 3, expect_mol(&m, "bond 1 joins atoms 1 and 4 of 3");
    bond[0][0] = -1, bond[0][1] = 1, expect_mol(&m, "bond 1 joins atoms 0 and 2 of 3");
    m.n_bonds = 0, expect_mol(&m, NULL);
    m.n_atoms = 0, expect_mol(&m, NULL);
    m.n_bonds = -1, expect_mol(&m, "0 atoms and -1 bonds");
    m.n_bonds = CH_MOL_MAX_BONDS + 1, expect_mol(&m, "0 atoms and 2097153 bonds");
    m.n_bonds = 0, m.n_atoms = -1, expect_mol(&m, "-1 atoms and 0 bonds");
    m.n_atoms = CH_MOL_MAX_ATOMS + 1, expect_mol(&m, "1048577 atoms and 0 bonds");
}

/* With and without positions and isotopes; every shorter text is refused. */
static void a_molecule_comes_back_from_the_wire_and_never_half_of_it(void **state)
{
    uint16_t isotope[9] = { 0, 13, 2, 0, 0, CH_MASS_MAX, 0, 0, 1 };
    float(*xyz)[3];
    ch_mol m = made_mol(9, 9, 3, mem), back;

    (void)state;
    xyz = m.xyz;
    for (int how = 0; how < 4; how++) {
        pl_text text = { 0 };
        ch_wire in;
        m.xyz = how & 1 ? xyz : NULL;
        m.isotope = how & 2 ? isotope : NULL;
        ch_wire_put_mol(&text, &m);
        in = ch_wire_of(text.s, text.len);
        assert_int_equal(ch_wire_mol(&back, &in, mem, NULL), PL_OK);
        assert_ptr_equal(in.at, text.s + text.len);
        assert_true(back.n_atoms == 9 && back.n_bonds == m.n_bonds);
        assert_memory_equal(back.z, m.z, 9);
        assert_memory_equal(back.charge, m.charge, 9);
        assert_memory_equal(back.bond, m.bond, (size_t)m.n_bonds * sizeof *m.bond);
        assert_memory_equal(back.order, m.order, (size_t)m.n_bonds);
        assert_true((back.xyz != NULL) == ((how & 1) != 0) && (back.isotope != NULL) == ((how & 2) != 0));
        if (how & 1)
            assert_memory_equal(back.xyz, xyz, 9 * sizeof *xyz);
        if (how & 2)
            assert_memory_equal(back.isotope, isotope, sizeof isotope);
        for (size_t n = 0; n < text.len; n++) {
            pl_error err = { 0 };
            in = ch_wire_of(text.s, n);
            assert_int_equal(ch_wire_mol(&back, &in, mem, &err), PL_EINPUT);
            assert_string_equal(err.text, "internal: a molecule is cut short");
        }
        pl_text_free(&text);
    }
}

/* A centre, a double bond and an axis of six atoms; every shorter text is refused, and so are atoms that there are not. */
static void stereo_comes_back_from_the_wire_and_never_half_of_it(void **state)
{
    static const uint32_t sent[] = { 1, 1, 1, 0, 1, 2, 3, 4, (uint32_t)-1, 1, 0, 5, 4, 1, 2, 0, 1, 5 };
    static const int32_t of_centre[4] = { 1, 2, 3, 4 }, of_axis[4] = { 2, 0, 1, 5 };
    pl_text text = { 0 };
    ch_stereo back;
    ch_wire in;

    (void)state;
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
        ch_wire_put_u32(&text, sent[i]);
    in = ch_wire_of(text.s, text.len);
    assert_int_equal(ch_wire_stereo(&back, 6, &in, mem, NULL), PL_OK);
    assert_true(in.at == in.end && back.n_centres == 1 && back.n_double_bonds == 1 && back.n_axes == 1);
    assert_true(back.centres->atom == 0 && back.centres->sign == -1);
    assert_memory_equal(back.centres->neighbour, of_centre, sizeof of_centre);
    const ch_double_bond d = back.double_bonds[0];
    assert_true(d.a == 1 && d.b == 0 && d.c == 5 && d.d == 4 && d.cis);
    assert_memory_equal(back.axes->atom, of_axis, sizeof of_axis);
    for (size_t n = 0; n <= text.len; n++) {
        pl_error err = { 0 };
        in = ch_wire_of(text.s, n);
        assert_int_equal(ch_wire_stereo(&back, n == text.len ? 5 : 6, &in, mem, &err), PL_EINPUT);
        assert_string_equal(err.text, "internal: stereo is cut short");
    }
    pl_text_free(&text);
}

static void one_bad_molecule_of_several_refuses_all(void **state)
{
    ch_mol m[3] = { made_mol(4, 9, 1, mem), made_mol(5, 9, 2, mem), made_mol(6, 9, 3, mem) };
    const ch_mol *back;
    int32_t n;

    (void)state;
    for (int bad = 0; bad <= 3; bad++) {
        pl_text text = { 0 };
        pl_error err = { 0 };
        uint8_t was = bad < 3 ? m[bad].z[2] : 0;
        ch_wire in;
        if (bad < 3)
            m[bad].z[2] = 0;
        ch_wire_put_mols(&text, m, 3);
        in = ch_wire_of(text.s, text.len);
        n = 7;
        assert_int_equal(ch_wire_mols(&back, &n, &in, mem, &err), bad < 3 ? PL_EINPUT : PL_OK);
        assert_int_equal(n, bad < 3 ? 0 : 3);
        assert_string_equal(err.text, bad < 3 ? "atom 3 has atomic number 0" : "");
        if (bad < 3)
            m[bad].z[2] = was;
        pl_text_free(&text);
    }
    assert_true(back[0].n_atoms == 4 && back[1].n_atoms == 5 && back[2].n_atoms == 6);
    assert_memory_equal(back[2].bond, m[2].bond, (size_t)m[2].n_bonds * sizeof *m[2].bond);
    {
        pl_text text = { 0 };
        ch_wire in;
        pl_error err = { 0 };
        ch_wire_put_mols(&text, m, 3);
        in = ch_wire_of(text.s, text.len - 1);
        assert_int_equal(ch_wire_mols(&back, &n, &in, mem, &err), PL_EINPUT);
        in = ch_wire_of("\xff\xff\xff\xff", 4);
        assert_int_equal(ch_wire_mols(&back, &n, &in, mem, &err), PL_EINPUT);
        assert_string_equal(err.text, "internal: molecules are cut short");
        pl_text_free(&text);
    }
}

static bool has_edge(const ch_graph *g, int32_t src, int32_t dst)
{
    for (int32_t e = g->row[dst]; e < g->row[dst + 1]; e++)
        if (g->src[e] == src)
            return true;
    return false;
}

/* For cutoffs below, among and above the lengths of bonds, with and without a limit on neighbours. */
static void bonds_and_radius_together_are_the_union_of_both(void **state)
{
    (void)state;

    for (int k = 0; k < 8; k++) {
        const ch_mol m = made_mol(14, 9, (uint64_t)(k + 1), mem);
        ch_graph_opts o = { .edges = CH_EDGES_RADIUS, .cutoff = 0.7f + 0.6f * (float)(k / 2), .max_neighbours = k % 2 ? 3 : 0 };
        ch_graph near, bonds, both;
        int32_t n = 0;
        assert_int_equal(ch_graph_build(&near, &m, &o, mem, NULL), PL_OK);
        o.edges = CH_EDGES_BONDS;
        assert_int_equal(ch_graph_build(&bonds, &m, &o, mem, NULL), PL_OK);
        o.edges = CH_EDGES_BONDS_RADIUS;
        assert_int_equal(ch_graph_build(&both, &m, &o, mem, NULL), PL_OK);
        assert_int_equal(ch_graph_check(&both, NULL), PL_OK);
        for (int32_t i = 0; i < m.n_atoms; i++)
            for (int32_t j = 0; j < m.n_atoms; j++) {
                assert_int_equal(has_edge(&both, i, j), has_edge(&near, i, j) || has_edge(&bonds, i, j));
                n += has_edge(&both, i, j);
            }
        assert_int_equal(both.n_edges, n);
        print_message("cutoff %g: %d near, %d bonds, %d both\n", (double)o.cutoff, near.n_edges, bonds.n_edges, both.n_edges);
    }
}

static void settings_of_graphs_are_refused_at_their_edges(void **state)
{
    ch_mol m = made_mol(4, 9, 1, mem);
    ch_graph g;

    (void)state;
    expect_refused(&m, (ch_graph_opts){ .edges = CH_EDGES_RADIUS, .cutoff = 0 }, PL_ECONFIG, "cutoff 0 is not a distance");
    expect_refused(&m, (ch_graph_opts){ .edges = CH_EDGES_RADIUS, .cutoff = 1.1e5f }, PL_ECONFIG,
                   "cutoff 110000 is not a distance");
    expect_refused(&m, (ch_graph_opts){ .edges = CH_EDGES_KNN, .k = 0 }, PL_ECONFIG, "k 0 is less than 1");
    expect_refused(&m, (ch_graph_opts){ .cutoff = 5, .max_neighbours = -1 }, PL_ECONFIG,
                   "a graph option (max_neighbours, max_atoms or max_edges) is negative");
    expect_refused(&m, (ch_graph_opts){ .cutoff = 5, .max_atoms = -1 }, PL_ECONFIG,
                   "a graph option (max_neighbours, max_atoms or max_edges) is negative");
    expect_refused(&m, (ch_graph_opts){ .cutoff = 5, .max_edges = -1 }, PL_ECONFIG,
                   "a graph option (max_neighbours, max_atoms or max_edges) is negative");
    assert_int_equal(ch_graph_build(&g, &m, &(ch_graph_opts){ .edges = CH_EDGES_KNN, .k = 1 }, mem, NULL), PL_OK);
    assert_int_equal(
        ch_graph_build(&g, &m, &(ch_graph_opts){ .edges = CH_EDGES_RADIUS, .cutoff = 1e5f, .max_atoms = 4 }, mem, NULL), PL_OK);
}

static void coinciding_atoms_are_found_for_every_kind_of_edges(void **state)
{
    (void)state;
    for (int kind = CH_EDGES_RADIUS; kind <= CH_EDGES_FULL; kind++) {
        ch_mol m = made_mol(30, 9, 1, mem);
        ch_graph_opts o = { .edges = (ch_edges)kind, .cutoff = 5, .k = 3 };
        memcpy(m.xyz[20], m.xyz[4], sizeof m.xyz[4]);
        m.xyz[20][2] += 0.009f;
        expect_refused(&m, o, PL_EINPUT, "coincide: atoms 5 and 21");
        m.xyz[20][2] += 0.01f;
        ch_graph g;
        assert_int_equal(ch_graph_build(&g, &m, &o, mem, NULL), PL_OK);
    }
}

static void limits_are_kept(void **state)
{
    ch_mol m = made_mol(30, 9, 1, mem);
    (void)state;
    expect_refused(&m, (ch_graph_opts){ .cutoff = 5, .max_atoms = 29 }, PL_EINPUT, "atoms: 30");
    expect_refused(&m, (ch_graph_opts){ .cutoff = 5, .max_atoms = 1 }, PL_EINPUT, "atoms: 30, more than max_atoms 1");
    expect_refused(&m, (ch_graph_opts){ .cutoff = 50, .max_edges = 869 }, PL_EINPUT, "edges: more than 869 within 50 Angstrom");
    expect_refused(&m, (ch_graph_opts){ .edges = CH_EDGES_FULL, .max_edges = 869 }, PL_EINPUT,
                   "edges: 870, more than max_edges 869");
    expect_refused(&m, (ch_graph_opts){ .edges = CH_EDGES_KNN, .k = 4, .max_edges = 119 }, PL_EINPUT,
                   "edges: 120, more than max_edges 119");
    expect_refused(&m, (ch_graph_opts){ .cutoff = 0 }, PL_ECONFIG, "cutoff");
    expect_refused(&m, (ch_graph_opts){ .edges = CH_EDGES_KNN }, PL_ECONFIG, "k 0");
    ch_graph g;
    assert_int_equal(ch_graph_build(&g, &m, &(ch_graph_opts){ .cutoff = 50, .max_edges = 870 }, mem, NULL), PL_OK);
}

/* How many edges these kinds have is known only when they are listed. */
static void limits_are_kept_by_what_is_counted_late(void **state)
{
    const ch_graph_opts kinds[] = { { .cutoff = 50, .max_neighbours = 3 }, { .edges = CH_EDGES_BONDS_RADIUS, .cutoff = 0.7f } };
    ch_mol m = made_mol(30, 9, 1, mem);

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        ch_graph_opts o = kinds[k];
        ch_graph g;
        char want[80];
        assert_int_equal(ch_graph_build(&g, &m, &o, mem, NULL), PL_OK);
        o.max_edges = g.n_edges;
        assert_int_equal(ch_graph_build(&g, &m, &o, mem, NULL), PL_OK);
        o.max_edges--;
        (void)snprintf(want, sizeof want, "edges: %d, more than max_edges %d", g.n_edges, g.n_edges - 1);
        expect_refused(&m, o, PL_EINPUT, want);
    }
}

static void a_single_atom_is_a_graph_without_edges(void **state)
{
    ch_mol m = made_mol(1, 9, 1, mem);
    (void)state;
    for (int kind = CH_EDGES_RADIUS; kind <= CH_EDGES_FULL; kind++) {
        ch_graph g;
        ch_graph_opts o = { .edges = (ch_edges)kind, .cutoff = 5, .k = 3, .max_neighbours = 2 };
        assert_int_equal(ch_graph_build(&g, &m, &o, mem, NULL), PL_OK);
        assert_int_equal(g.n_nodes, 1);
        assert_int_equal(g.n_edges, 0);
        assert_int_equal(ch_graph_check(&g, NULL), PL_OK);
    }
}

static void same_graph(const ch_graph *a, const ch_graph *b)
{
    size_t n = (size_t)a->n_nodes, e = (size_t)a->n_edges, p = (size_t)a->n_pairs;

    assert_int_equal(a->n_nodes, b->n_nodes);
    assert_int_equal(a->n_edges, b->n_edges);
    assert_int_equal(a->n_pairs, b->n_pairs);
    assert_memory_equal(a->z, b->z, n);
    assert_memory_equal(a->charge, b->charge, n);
    assert_memory_equal(a->row, b->row, 4 * (n + 1));
    assert_memory_equal(a->src, b->src, 2 * e);
    assert_memory_equal(a->rev, b->rev, 4 * e);
    assert_memory_equal(a->pair, b->pair, 4 * e);
    assert_memory_equal(a->pair_edge, b->pair_edge, 4 * p);
    assert_memory_equal(a->type, b->type, p);
    assert_memory_equal(a->vec, b->vec, 12 * p);
    assert_memory_equal(a->dist, b->dist, 4 * p);
}

/* Bonds without positions, which need not be there nor be any good. */
static void a_topology_has_the_edges_of_the_bonds_and_no_vectors(void **state)
{
    ch_mol m = made_mol(30, 9, 1, mem);
    ch_graph flat, bonds;
    ch_graph_block back;
    pl_bytes bytes;
    const int64_t id = 7;

    (void)state;
    assert_int_equal(ch_graph_build(&bonds, &m, &(ch_graph_opts){ .edges = CH_EDGES_BONDS }, mem, NULL), PL_OK);
    m.xyz = NULL;
    assert_int_equal(ch_graph_build(&flat, &m, &(ch_graph_opts){ .edges = CH_EDGES_TOPOLOGY }, mem, NULL), PL_OK);
    assert_true(ch_graph_is_flat(&flat) && !ch_graph_is_flat(&bonds));
    assert_int_equal(ch_graph_check(&flat, NULL), PL_OK);
    assert_int_equal(ch_graph_block_pack(&bytes, &id, &flat, 1, mem, NULL), PL_OK);
    assert_int_equal(ch_graph_block_unpack(&back, bytes, mem, NULL), PL_OK);
    same_graph(&back.graph[0], &flat);
    assert_memory_equal(flat.type, bonds.type, (size_t)flat.n_pairs);
    for (int32_t p = 0; p < flat.n_pairs; p++)
        assert_true(flat.dist[p] == 0 && flat.vec[p][0] == 0 && flat.vec[p][1] == 0 && flat.vec[p][2] == 0);
    expect_refused(&m, (ch_graph_opts){ .edges = CH_EDGES_TOPOLOGY, .max_edges = flat.n_edges - 1 }, PL_EINPUT, "edges: ");
    expect_refused(&m, (ch_graph_opts){ .edges = CH_EDGES_TOPOLOGY, .max_atoms = 29 }, PL_EINPUT, "atoms: 30");
}

/* A length, a part of a vector, or a pair without a bond: no topology. */
static void a_graph_with_some_positions_is_refused(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        ch_mol m = made_mol(12, 9, 4, mem);
        ch_graph g;
        assert_int_equal(ch_graph_build(&g, &m, &(ch_graph_opts){ .edges = CH_EDGES_TOPOLOGY }, mem, NULL), PL_OK);
        switch (how) {
        case 0: ((float *)g.dist)[2] = 1; break;
        case 1: ((float(*)[3])g.vec)[2][1] = 0.5f; break;
        case 2: ((uint8_t *)g.type)[2] = CH_PAIR_NOT_BONDED; break;
        default: ((float *)g.dist)[0] = NAN; break;
        }
        assert_int_equal(ch_graph_check(&g, NULL), PL_EDATA);
    }
}

/* Each line breaks one promise of the header; the check must find each. */
static void each_broken_promise_of_a_graph_is_found(void **state)
{
    static const char *const says[] = { "graph of 0 atoms, ",
                                        "graph: row 3 is out of order",
                                        "graph: atom 0 has number 119",
                                        "graph: edge 0 to atom 0 is inconsistent",
                                        "graph: edge 0 to atom 0",
                                        "graph: edge 1 to atom 0",
                                        "graph: edge 1 to atom 0",
                                        "graph: edge 1 to atom 0",
                                        "graph: edge 1 to atom 0",
                                        "graph: edge ",
                                        "graph: pair 0 is inconsistent",
                                        "graph: pair 1 is inconsistent",
                                        "graph: pair 0",
                                        "graph: pair 0" };
    pl_error err = { 0 };

    (void)state;
    for (int how = 0; how < 14; how++) {
        ch_mol m = made_mol(12, 9, 4, mem);
        ch_graph g;
        ch_graph_opts o = { .cutoff = 3 };
        assert_int_equal(ch_graph_build(&g, &m, &o, mem, NULL), PL_OK);
        int32_t *row = (int32_t *)g.row, *rev = (int32_t *)g.rev, *pair = (int32_t *)g.pair;
        int32_t *pair_edge = (int32_t *)g.pair_edge, r = g.rev[1];
        uint16_t *src = (uint16_t *)g.src;
        uint8_t *z = (uint8_t *)g.z, *type = (uint8_t *)g.type;
        float(*vec)[3] = (float(*)[3])g.vec, *dist = (float *)g.dist;
        switch (how) {
        case 0: g.n_nodes = 0; break;
        case 1: row[3] = row[4] + 1; break;
        case 2: z[0] = 119; break;
        case 3: src[0] = src[1]; break;
        case 4: src[0] = 12; break;
        case 5: rev[1] = -1; break;
        case 6: rev[1] = rev[0]; break;
        case 7: pair[1] = g.n_pairs; break;
        case 8: pair[1] = pair[r] = pair[0]; break;
        case 9: pair_edge[0] = g.rev[pair_edge[0]]; break;
        case 10: type[0] = CH_PAIR_KINDS; break;
        case 11: vec[0][0] = vec[0][1] = vec[0][2] = dist[0] = 0; break;
        case 12: dist[0] *= 1.001f; break;
        default: vec[0][0] = NAN; break;
        }
        if (ch_graph_check(&g, &err) != PL_EDATA || strncmp(err.text, says[how], strlen(says[how])) != 0)
            fail_msg("break %d: %s", how, err.text);
        err = (pl_error){ 0 };
    }
}

static void an_edge_from_an_atom_to_itself_is_seen(void **state)
{
    const uint8_t z[2] = { 6, 6 }, type[1] = { 0 };
    const int8_t charge[2] = { 0 };
    const int32_t row[3] = { 0, 1, 1 }, rev[1] = { -1 }, zero[1] = { 0 };
    const uint16_t from_other[1] = { 1 }, from_itself[1] = { 0 };
    const float vec[1][3] = { { 0, 0, 2 } }, dist[1] = { 2 };
    ch_graph g = { 2, 1, 1, z, charge, row, from_other, rev, zero, zero, type, vec, dist };
    (void)state;
    assert_int_equal(ch_graph_check(&g, NULL), PL_OK);
    g.src = from_itself;
    assert_int_equal(ch_graph_check(&g, NULL), PL_EDATA);
}

/* ---- blocks ---- */

enum { N_GRAPHS = 7 };

static pl_bytes packed(ch_graph graph[N_GRAPHS], int64_t id[N_GRAPHS])
{
    pl_bytes bytes;

    for (int32_t i = 0; i < N_GRAPHS; i++) {
        ch_mol m = made_mol(1 + 5 * i, 9, (uint64_t)i, mem);
        ch_graph_opts o = { .edges = i % 2 ? CH_EDGES_KNN : CH_EDGES_RADIUS, .cutoff = 3, .k = 3 };
        id[i] = 10 + 3 * i;
        assert_int_equal(ch_graph_build(&graph[i], &m, &o, mem, NULL), PL_OK);
    }
    assert_int_equal(ch_graph_block_pack(&bytes, id, graph, N_GRAPHS, mem, NULL), PL_OK);
    return bytes;
}

static void a_block_gives_back_its_graphs(void **state)
{
    ch_graph graph[N_GRAPHS];
    int64_t id[N_GRAPHS];
    ch_graph_block b;
    pl_bytes bytes = packed(graph, id);
    (void)state;
    assert_int_equal(ch_graph_block_unpack(&b, bytes, mem, NULL), PL_OK);
    assert_int_equal(b.n, N_GRAPHS);
    for (int32_t i = 0; i < N_GRAPHS; i++) {
        assert_int_equal(b.id[i], id[i]);
        same_graph(&b.graph[i], &graph[i]);
        assert_int_equal(b.id[i], id[i]);
    }
    assert_true(ch_graph_block_bytes(b.n, (double)b.n_nodes, (double)b.n_edges, (double)b.n_pairs) <= (double)bytes.len);
    assert_true((double)bytes.len - ch_graph_block_bytes(b.n, (double)b.n_nodes, (double)b.n_edges, (double)b.n_pairs) < 128);
}

/* Only its counts are looked at. */
static void a_block_of_too_many_edges_is_refused(void **state)
{
    ch_graph graph[2] = { { .n_nodes = 1, .n_edges = INT32_MAX }, { .n_nodes = 1, .n_edges = 1 } };
    const int64_t id[2] = { 1, 2 };
    pl_error err = { 0 };
    pl_bytes bytes;

    (void)state;
    assert_int_equal(ch_graph_block_pack(&bytes, id, graph, 2, mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "a block of 2147483648 edges is too large: use smaller units");
}

static void an_empty_block_is_fine(void **state)
{
    pl_bytes bytes;
    ch_graph_block b;
    (void)state;
    assert_int_equal(ch_graph_block_pack(&bytes, NULL, NULL, 0, mem, NULL), PL_OK);
    assert_int_equal(ch_graph_block_unpack(&b, bytes, mem, NULL), PL_OK);
    assert_int_equal(b.n, 0);
}

static void unaligned_bytes_are_read_all_the_same(void **state)
{
    ch_graph graph[N_GRAPHS];
    int64_t id[N_GRAPHS];
    ch_graph_block b;
    pl_bytes bytes = packed(graph, id);
    char *moved = pl_arena_get(mem, bytes.len + 1, 1);
    (void)state;
    memcpy(moved + 1, bytes.data, bytes.len);
    assert_int_equal(ch_graph_block_unpack(&b, (pl_bytes){ moved + 1, bytes.len }, mem, NULL), PL_OK);
    same_graph(&b.graph[6], &graph[6]);
}

static void a_shortened_block_is_refused(void **state)
{
    ch_graph graph[N_GRAPHS];
    int64_t id[N_GRAPHS];
    pl_bytes bytes = packed(graph, id);
    (void)state;
    for (size_t len = 0; len < bytes.len; len += 13) {
        /* An exact copy, so that a sanitizer sees a read past the end. */
        unsigned char *copy = malloc(len + 1);
        ch_graph_block b;
        memcpy(copy, bytes.data, len);
        assert_int_equal(ch_graph_block_unpack(&b, (pl_bytes){ copy, len }, mem, NULL), PL_EDATA);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bad_molecules_are_refused_with_a_reason, fresh, done),
        cmocka_unit_test_setup_teardown(each_fault_of_a_molecule_is_named_with_its_place, fresh, done),
        cmocka_unit_test_setup_teardown(a_molecule_comes_back_from_the_wire_and_never_half_of_it, fresh, done),
        cmocka_unit_test_setup_teardown(stereo_comes_back_from_the_wire_and_never_half_of_it, fresh, done),
        cmocka_unit_test_setup_teardown(one_bad_molecule_of_several_refuses_all, fresh, done),
        cmocka_unit_test_setup_teardown(settings_of_graphs_are_refused_at_their_edges, fresh, done),
        cmocka_unit_test_setup_teardown(bonds_and_radius_together_are_the_union_of_both, fresh, done),
        cmocka_unit_test_setup_teardown(coinciding_atoms_are_found_for_every_kind_of_edges, fresh, done),
        cmocka_unit_test_setup_teardown(limits_are_kept, fresh, done),
        cmocka_unit_test_setup_teardown(limits_are_kept_by_what_is_counted_late, fresh, done),
        cmocka_unit_test_setup_teardown(a_single_atom_is_a_graph_without_edges, fresh, done),
        cmocka_unit_test_setup_teardown(a_topology_has_the_edges_of_the_bonds_and_no_vectors, fresh, done),
        cmocka_unit_test_setup_teardown(a_graph_with_some_positions_is_refused, fresh, done),
        cmocka_unit_test_setup_teardown(each_broken_promise_of_a_graph_is_found, fresh, done),
        cmocka_unit_test(an_edge_from_an_atom_to_itself_is_seen),
        cmocka_unit_test_setup_teardown(a_block_gives_back_its_graphs, fresh, done),
        cmocka_unit_test_setup_teardown(a_block_of_too_many_edges_is_refused, fresh, done),
        cmocka_unit_test_setup_teardown(an_empty_block_is_fine, fresh, done),
        cmocka_unit_test_setup_teardown(unaligned_bytes_are_read_all_the_same, fresh, done),
        cmocka_unit_test_setup_teardown(a_shortened_block_is_refused, fresh, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
