/* SPDX-License-Identifier: Apache-2.0 */
/* What atoms do for a network's prediction: by its definition, in any order of the atoms, with each engine. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "made_mol.h"
#include "models/family/table.h"
#include "stages/explain/occlude.h"
#include "stages/explain/moved.h"
#include "stages/explain/same_atoms.h"
#include "stages/explain/subject.h"
#include "stages/steps/features/graph.h"
#include "tests/unit/made_network.h"

enum { ATOMS = 14, OUTPUTS = 2 };

typedef struct bench {
    pl_arena *mem;
    nn_model_file m;
    nn_target target[OUTPUTS];
    ch_mol mol;
    nn_table x;
} bench;

static void table_of(nn_table *x, const ch_mol *mol, pl_arena *mem)
{
    const ch_graph_opts opts = { .edges = CH_EDGES_TOPOLOGY };
    const ch_graph **graph = PL_NEW(mem, const ch_graph *, 1);
    ch_graph *g = PL_NEW(mem, ch_graph, 1);

    assert_int_equal(ch_graph_build(g, mol, &opts, mem, NULL), PL_OK);
    *graph = g;
    assert_int_equal(nn_table_make(x, graph, 1, mem, NULL), PL_OK);
}

static int bench_open(void **state)
{
    bench *b = calloc(1, sizeof *b);

    if (b == NULL || (b->mem = pl_arena_new(0)) == NULL)
        return 1;
    b->target[0] = (nn_target){ "a", "eV", "low", { 1.25, 2, -3, { 0.5, -1, 2, 0.1, 0.2 } }, { .n = 0 }, 0, NULL, NULL };
    b->target[1] = (nn_target){ "b", "", "high", { 0, 1, 0, { 0 } }, { .n = 0 }, 0, NULL, NULL };
    b->m = (nn_model_file){ .name = "tiny", .target = b->target, .inputs = nn_inputs_qm9() };
    b->m.graph = (ch_graph_opts){ .edges = CH_EDGES_RADIUS, .cutoff = 4 };
    b->m.conf = (nn_se3_conf){ .layers = 2,
                               .degrees = 2,
                               .channels = 4,
                               .heads = 2,
                               .channels_div = 2,
                               .norm = true,
                               .pooling = NN_POOL_MEAN,
                               .parity = NN_PARITY_NATURAL,
                               .outputs = OUTPUTS };
    if (!made_network(&b->m, 5, b->mem))
        return 1;
    b->mol = made_mol(ATOMS, 12, 3, b->mem);
    table_of(&b->x, &b->mol, b->mem);
    *state = b;
    return 0;
}

static int bench_close(void **state)
{
    pl_arena_free(((bench *)*state)->mem);
    free(*state);
    return 0;
}

static st_compute with(int32_t engine)
{
    st_compute how = st_compute_defaults();

    how.engine = engine;
    return how;
}

static st_occlusion occluded(const bench *b, const ch_mol *mol, int32_t n, int32_t engine)
{
    const st_compute how = with(engine);
    st_occlusion out;
    nn_table x;
    pl_error err = { 0 };

    table_of(&x, mol, b->mem);
    if (st_occlude(&out, &b->m, &how, mol, n, &x, b->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    return out;
}

/* ---- the definition ---- */

/* What the network says of a molecule, computed without the code that is tested. */
static void predicted(double value[OUTPUTS], const bench *b, const ch_mol *mol)
{
    ch_graph_opts opts = b->m.graph;
    nn_collate *collate = nn_collate_new();
    nn_collated made;
    nn_engine *engine;
    nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_EXACT };
    ch_graph g;
    nn_item item = { .graph = &g, .feature = b->x.features[0] };
    float y[OUTPUTS];

    st_graph_limits(&opts);
    assert_int_equal(ch_graph_build(&g, mol, &opts, b->mem, NULL), PL_OK);
    assert_int_equal(nn_collate_run(collate, &made, &item, 1, &b->m.inputs, NULL), PL_OK);
    assert_int_equal(nn_engine_ref.open(&engine, b->m.model, &conf, NULL), PL_OK);
    assert_int_equal(nn_engine_ref.set_params(engine, b->m.params, NULL), PL_OK);
    assert_int_equal(nn_engine_ref.forward(engine, &made.batch, false, y, NULL), PL_OK);
    nn_engine_ref.close(engine);
    nn_collate_free(collate);
    for (int32_t k = 0; k < OUTPUTS; k++)
        value[k] = nn_model_value(&b->m, k, g.z, g.n_nodes, (double)y[k]);
}

static int32_t heavy_neighbour(const ch_mol *m, int32_t i)
{
    int32_t n = 0, found = -1;

    for (int32_t k = 0; k < m->n_bonds; k++)
        for (int s = 0; s < 2; s++)
            if (m->bond[k][s] == i && m->z[m->bond[k][1 - s]] != 1) {
                found = m->bond[k][1 - s];
                n++;
            }
    return n == 1 ? found : -1;
}

static ch_mol cut(const bench *b, int32_t atom)
{
    const ch_mol *m = &b->mol;
    ch_mol out;
    int32_t to[ATOMS], n = 0, bonds = 0;

    for (int32_t i = 0; i < m->n_atoms; i++)
        to[i] = i == atom || (m->z[i] == 1 && heavy_neighbour(m, i) == atom) ? -1 : n++;
    assert_int_equal(ch_mol_alloc(&out, n, m->n_bonds, b->mem, NULL), PL_OK);
    for (int32_t i = 0; i < m->n_atoms; i++)
        if (to[i] >= 0) {
            out.z[to[i]] = m->z[i];
            out.charge[to[i]] = m->charge[i];
            memcpy(out.xyz[to[i]], m->xyz[i], sizeof *m->xyz);
        }
    for (int32_t k = 0; k < m->n_bonds; k++)
        if (to[m->bond[k][0]] >= 0 && to[m->bond[k][1]] >= 0) {
            out.bond[bonds][0] = to[m->bond[k][0]];
            out.bond[bonds][1] = to[m->bond[k][1]];
            out.order[bonds++] = m->order[k];
        }
    out.n_bonds = bonds;
    return out;
}

static void a_part_is_what_the_prediction_loses(void **state)
{
    bench *b = *state;
    const st_occlusion is = occluded(b, &b->mol, 1, ST_ENGINE_REF);
    double all[OUTPUTS], some[OUTPUTS];
    int n_heavy = 0;

    assert_int_equal(is.n, ATOMS);
    predicted(all, b, &b->mol);
    for (int32_t i = 0; i < ATOMS; i++) {
        const ch_mol rest = cut(b, i);
        if (b->mol.z[i] != 1)
            predicted(some, b, &rest);
        n_heavy += b->mol.z[i] != 1;
        for (int32_t k = 0; k < OUTPUTS; k++) {
            const double part = b->mol.z[i] != 1 ? all[k] - some[k] : 0;
            assert_true(fabs(is.value[k] - all[k]) < 1e-6);
            assert_true(fabs(is.by[k * ATOMS + i] - part) < 1e-6);
        }
    }
    assert_in_range(n_heavy, 4, ATOMS - 2);
    assert_true(fabs(is.by[0]) + fabs(is.by[1]) + fabs(is.by[2]) > 1e-3);
}

/* The descriptors stay those of the whole molecule: a part is what the network loses with the atom's place in the graph. */
static void descriptors_stay_those_of_the_whole(void **state)
{
    bench *b = *state;
    nn_moments *all = PL_NEW(b->mem, nn_moments, CH_N_FEATURES);

    assert_non_null(all);
    for (int32_t k = 0; k < CH_N_FEATURES; k++)
        all[k] = (nn_moments){ 1, 2 };
    b->m.inputs.descriptors = true;
    b->m.inputs.descriptor = all;
    assert_true(made_network(&b->m, 5, b->mem));
    a_part_is_what_the_prediction_loses(state);
}

/* Columns are those of the table's row, in the order of the model, wherever they are in a file that is scored. */
static void columns_are_read_in_their_order(void **state)
{
    static const float values[] = { 0.25, 4 };
    bench *b = *state;
    const st_compute how = with(ST_ENGINE_REF);
    st_occlusion is[2];

    b->m.inputs.n_columns = 2;
    for (int k = 0; k < 2; k++)
        b->m.inputs.column[k] = (nn_input_column){ .over = { 1, 2 } };
    assert_true(made_network(&b->m, 5, b->mem));
    b->x.n_columns = 2;
    b->x.column = values;
    for (int32_t other = 0; other < 2; other++) {
        for (int32_t k = 0; k < 2; k++)
            b->m.inputs.column[k].at = other ? 1 - k : k;
        assert_int_equal(st_occlude(&is[other], &b->m, &how, &b->mol, 1, &b->x, b->mem, NULL), PL_OK);
        assert_int_equal(b->m.inputs.column[1].at, other ? 0 : 1); /* they stay where they are for others */
    }
    for (int32_t i = 0; i < OUTPUTS * ATOMS; i++)
        assert_true(is[0].by[i] == is[1].by[i]);
    assert_true(is[0].value[0] == is[1].value[0]);
    b->x.column = (const float[]){ 4, 0.25 };
    assert_int_equal(st_occlude(&is[1], &b->m, &how, &b->mol, 1, &b->x, b->mem, NULL), PL_OK);
    assert_true(is[0].value[0] != is[1].value[0]);
}

static void classes_have_log_odds(void **state)
{
    bench *b = *state;
    const st_occlusion number = occluded(b, &b->mol, 1, ST_ENGINE_REF);

    b->m.classifies = true;
    const st_occlusion odds = occluded(b, &b->mol, 1, ST_ENGINE_REF);
    assert_true(odds.log_odds && !number.log_odds);
    for (int32_t i = 0; i < OUTPUTS * ATOMS; i++)
        assert_true(fabs(odds.by[i] - number.by[i]) < 1e-6); /* without the logistic function: the same numbers */
}

static void several_structures_have_the_mean(void **state)
{
    bench *b = *state;
    ch_mol both[2] = { b->mol, b->mol };

    both[1].xyz = pl_arena_get(b->mem, ATOMS, sizeof *both[1].xyz);
    for (int32_t i = 0; i < ATOMS; i++)
        for (int d = 0; d < 3; d++)
            both[1].xyz[i][d] = b->mol.xyz[i][d] * (d == 0 ? 1.1f : 1);
    const st_occlusion one = occluded(b, both, 1, ST_ENGINE_REF), other = occluded(b, both + 1, 1, ST_ENGINE_REF);
    const st_occlusion mean = occluded(b, both, 2, ST_ENGINE_REF);
    for (int32_t i = 0; i < OUTPUTS * ATOMS; i++)
        assert_true(fabs(mean.by[i] - (one.by[i] + other.by[i]) / 2) < 1e-6);
    assert_true(fabs(one.by[1] - other.by[1]) + fabs(one.by[0] - other.by[0]) > 1e-5);
}

/* What the linker puts in its place (tests/stages.cmake). */
static int n_traits;
pl_code __real_nn_traits_of(nn_traits *to, const ch_graph *g, pl_arena *mem, pl_error *err);
pl_code __wrap_nn_traits_of(nn_traits *to, const ch_graph *g, pl_arena *mem, pl_error *err);

pl_code __wrap_nn_traits_of(nn_traits *to, const ch_graph *g, pl_arena *mem, pl_error *err)
{
    n_traits++;
    return __real_nn_traits_of(to, g, mem, err);
}

/* A range is of molecules; what is left of one without an atom is none, and nobody asks what it would have. */
static void parts_of_a_molecule_are_not_looked_up_in_a_range(void **state)
{
    bench *b = *state;

    b->m.range.molecules = 100;
    n_traits = 0;
    (void)occluded(b, &b->mol, 1, ST_ENGINE_CPU);
    assert_int_equal(n_traits, 0);
}

/* ---- what must not matter ---- */

static void the_order_of_atoms_changes_nothing(void **state)
{
    bench *b = *state;
    const int32_t *to = made_order(ATOMS, 9, b->mem);
    const ch_mol other = made_permuted(&b->mol, to, b->mem);
    const st_occlusion is = occluded(b, &b->mol, 1, ST_ENGINE_CPU), was = occluded(b, &other, 1, ST_ENGINE_CPU);

    for (int32_t k = 0; k < OUTPUTS; k++)
        for (int32_t i = 0; i < ATOMS; i++)
            assert_true(fabs(is.by[k * ATOMS + i] - was.by[k * ATOMS + to[i]]) < 2e-5);
}

static void engines_agree(void **state)
{
    bench *b = *state;
    const st_occlusion ref = occluded(b, &b->mol, 1, ST_ENGINE_REF), cpu = occluded(b, &b->mol, 1, ST_ENGINE_CPU);

    for (int32_t i = 0; i < OUTPUTS * ATOMS; i++)
        assert_true(fabs(ref.by[i] - cpu.by[i]) < 1e-3);
}

static void an_atom_that_is_alone_has_no_part(void **state)
{
    bench *b = *state;
    uint8_t z[5] = { 1, 1, 6, 1, 1 };
    int8_t charge[5] = { 0 };
    float xyz[5][3] = { { 1, 0, 0 }, { -1, 0, 0 }, { 0, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
    int32_t bond[4][2] = { { 0, 2 }, { 1, 2 }, { 2, 3 }, { 2, 4 } };
    uint8_t order[4] = { 1, 1, 1, 1 };
    const ch_mol methane = { .n_atoms = 5, .n_bonds = 4, .z = z, .charge = charge, .xyz = xyz, .bond = bond, .order = order };
    const st_occlusion is = occluded(b, &methane, 1, ST_ENGINE_CPU);

    for (int32_t i = 0; i < OUTPUTS * 5; i++)
        assert_true(is.by[i] == 0);
    assert_true(isfinite(is.value[0]) && is.value[0] != 0);
}

static void what_cannot_be_said_is_refused(void **state)
{
    bench *b = *state;
    const st_compute how = with(ST_ENGINE_CPU);
    st_occlusion out;
    pl_error err = { 0 };

    for (int32_t i = 0; i < ATOMS; i++)
        b->mol.z[i] = b->mol.z[i] == 9 ? 17 : b->mol.z[i];
    assert_int_equal(st_occlude(&out, &b->m, &how, &b->mol, 1, &b->x, b->mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "the network does not know its element Cl");
    b->mol.xyz = NULL;
    assert_int_equal(st_occlude(&out, &b->m, &how, &b->mol, 1, &b->x, b->mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "its structure has no positions");
}

/* Each request for memory is refused in turn; then atoms have what their places say, and hydrogens nothing. */
static void parts_have_the_places_of_their_atoms(void **state)
{
    static const double value[] = { 1, 5 }, by[] = { 0.5, 0.25, 0.125, 2, 4, 8 };
    bench *b = *state;
    const st_occlusion of = { 3, true, value, by };
    const st_subject s = { .graph.n_nodes = 3, .place = (int32_t[]){ 2, -1, 0 }, .x.n_columns = 1 };
    st_moves is;
    pl_error err = { 0 };

    for (long nth = 1; nth <= 3; nth++) {
        pl_arena_refuse(nth);
        assert_int_equal(st_moves_of_network(&is, &s, &of, 1, b->mem, &err), PL_ENOMEM);
        pl_arena_refuse(0);
        assert_string_equal(err.text, "an explanation: out of memory");
    }
    assert_int_equal(st_moves_of_network(&is, &s, &of, 1, b->mem, NULL), PL_OK);
    assert_true(is.log_odds && is.one_by_one && is.value == 5);
    assert_true(is.atom[0] == 8 && is.atom[1] == 0 && is.atom[2] == 2);
    for (int k = 0; k < CH_N_FEATURES; k++)
        assert_true(is.feature[k] == 0);
    assert_true(is.column[0] == 0);
}

/* ---- which atom is which ---- */

static bool bonded_as(const ch_mol *m, int32_t i, int32_t j, uint8_t order)
{
    for (int32_t k = 0; k < m->n_bonds; k++)
        if ((m->bond[k][0] == i && m->bond[k][1] == j) || (m->bond[k][0] == j && m->bond[k][1] == i))
            return m->order[k] == order;
    return false;
}

static void same_by_another_order(const ch_mol *one, uint64_t seed, pl_arena *mem)
{
    const ch_mol other = made_permuted(one, made_order(one->n_atoms, seed, mem), mem);
    int32_t *to = PL_NEW(mem, int32_t, one->n_atoms);

    assert_int_equal(st_same_atoms(to, one, &other, mem, NULL), PL_OK);
    for (int32_t i = 0; i < one->n_atoms; i++)
        assert_true(one->z[i] == 1 ? to[i] == -1 : other.z[to[i]] == one->z[i] && other.charge[to[i]] == one->charge[i]);
    for (int32_t k = 0; k < one->n_bonds; k++)
        if (to[one->bond[k][0]] >= 0 && to[one->bond[k][1]] >= 0)
            assert_true(bonded_as(&other, to[one->bond[k][0]], to[one->bond[k][1]], one->order[k]));
}

static void renamed_atoms_are_found(void **state)
{
    bench *b = *state;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        const ch_mol one = made_mol(2 + (int32_t)(seed % 40), 12, seed, b->mem);
        same_by_another_order(&one, seed, b->mem);
    }
}

/* Cubane: what is around each atom is the same, so only the bonds tell. */
static void equal_atoms_keep_their_bonds(void **state)
{
    bench *b = *state;
    ch_mol cube;
    int32_t n = 0;

    assert_int_equal(ch_mol_alloc(&cube, 8, 12, b->mem, NULL), PL_OK);
    for (int32_t i = 0; i < 8; i++)
        for (int32_t axis = 1; axis < 8; axis *= 2)
            if ((i & axis) == 0) {
                cube.bond[n][0] = i;
                cube.bond[n][1] = i | axis;
                cube.order[n++] = 1;
            }
    memset(cube.z, 6, 8);
    for (uint64_t seed = 1; seed <= 50; seed++)
        same_by_another_order(&cube, seed, b->mem);
}

/* A ring of six beside two of three: what is around each atom is the same for ever. */
static void another_molecule_is_refused(void **state)
{
    bench *b = *state;
    ch_mol six, threes;
    int32_t to[12];
    pl_error err = { 0 };

    assert_int_equal(ch_mol_alloc(&six, 12, 12, b->mem, NULL), PL_OK);
    assert_int_equal(ch_mol_alloc(&threes, 12, 12, b->mem, NULL), PL_OK);
    for (int32_t i = 0; i < 12; i++) {
        six.z[i] = threes.z[i] = 6;
        six.order[i] = threes.order[i] = 1;
        const int32_t ring = i - i % 6, next = ring + (i + 1) % 6, third = i - i % 3, beside = third + (i + 1) % 3;
        six.bond[i][0] = i < next ? i : next;
        six.bond[i][1] = i < next ? next : i;
        threes.bond[i][0] = i < beside ? i : beside;
        threes.bond[i][1] = i < beside ? beside : i;
    }
    assert_int_equal(st_same_atoms(to, &six, &six, b->mem, NULL), PL_OK);
    assert_int_equal(st_same_atoms(to, &threes, &threes, b->mem, NULL), PL_OK);
    assert_int_equal(st_same_atoms(to, &six, &threes, b->mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "its atoms are not those of its SMILES");
    six.charge[3] = 1;
    assert_int_equal(st_same_atoms(to, &six, &threes, b->mem, NULL), PL_EINPUT);
}

static void atoms_without_memory_are_not_compared(void **state)
{
    bench *b = *state;
    const ch_mol one = made_mol(9, 12, 3, b->mem);
    int32_t *to = PL_NEW(b->mem, int32_t, one.n_atoms);
    pl_code code = PL_ENOMEM;
    long nth = 0;

    while (code == PL_ENOMEM) {
        pl_error err = { 0 };
        pl_arena_refuse(++nth);
        code = st_same_atoms(to, &one, &one, b->mem, &err);
        pl_arena_refuse(0);
        assert_int_equal(code == PL_OK, err.text[0] == '\0');
    }
    assert_int_equal(code, PL_OK);
    assert_true(nth > 10);
}

/* Of a symmetrical molecule, whose parts are equal but for rounding, which another processor does in another way. */
static void parts_that_look_equal_have_one_order(void **state)
{
    enum { N = 14 };
    st_moved part[N];

    (void)state;
    for (int32_t i = 0; i < N; i++)
        part[i] = (st_moved){ (i % 2 ? -0.25 : 0.25) * (1 + (double)(i * 7 % N) * 1e-15), i % 3 ? "b" : "a", i };
    part[9].by = -3;
    st_moved_sort(part, N);
    assert_int_equal(part[0].place, 9);
    for (int32_t i = 1; i < N; i++)
        assert_int_equal(part[i].place, i <= 9 ? i - 1 : i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_part_is_what_the_prediction_loses, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(descriptors_stay_those_of_the_whole, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(columns_are_read_in_their_order, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(classes_have_log_odds, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(several_structures_have_the_mean, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(parts_of_a_molecule_are_not_looked_up_in_a_range, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(the_order_of_atoms_changes_nothing, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(engines_agree, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(an_atom_that_is_alone_has_no_part, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(parts_have_the_places_of_their_atoms, bench_open, bench_close),
        cmocka_unit_test(parts_that_look_equal_have_one_order),
        cmocka_unit_test_setup_teardown(what_cannot_be_said_is_refused, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(renamed_atoms_are_found, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(equal_atoms_keep_their_bonds, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(another_molecule_is_refused, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(atoms_without_memory_are_not_compared, bench_open, bench_close),
    };
    return cmocka_run_group_tests_name("occlude", tests, NULL, NULL);
}
