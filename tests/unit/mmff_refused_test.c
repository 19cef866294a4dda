/* SPDX-License-Identifier: Apache-2.0 */
/* Molecules without MMFF94 parameters are refused with the atom and the reason, damaged tables with file and line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "chem/structures/relax.h"
#include "mmff_graph.h"
#include "mmff_suite.h"
#include "pipeline/base/file.h"
#include "pipeline/base/rng.h"
#include "pipeline/base/text.h"

static pl_arena *mem;
static ch_mmff mmff;

static int setup(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 18);
    return mem != NULL && ch_mmff_read(&mmff, suite_tables(), mem, NULL) == PL_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

/* ---- molecules ---- */

/* An atom with n hydrogens and a charge. */
static ch_mol hydride(int z, int charge, int n)
{
    ch_mol mol;

    assert_int_equal(ch_mol_alloc(&mol, n + 1, n, mem, NULL), PL_OK);
    mol.z[0] = (uint8_t)z;
    mol.charge[0] = (int8_t)charge;
    for (int k = 0; k < n; k++) {
        mol.z[k + 1] = 1;
        mol.bond[k][0] = 0;
        mol.bond[k][1] = k + 1;
        mol.order[k] = CH_SINGLE;
    }
    return mol;
}

static void atoms_without_a_type_are_refused_with_their_number(void **state)
{
    static const struct {
        int z, charge, n;
    } wrong[] = { { 5, 0, 3 },  { 6, 0, 3 },  { 6, 1, 3 },  { 6, -1, 3 },  { 7, -1, 2 }, { 8, 0, 1 }, { 14, 0, 3 },
                  { 15, 1, 4 }, { 16, 1, 3 }, { 34, 0, 2 }, { 53, -1, 0 }, { 10, 0, 0 }, { 1, 0, 1 }, { 6, 0, 5 },
                  { 15, 0, 5 }, { 13, 0, 3 }, { 9, 0, 2 },  { 26, 0, 0 },  { 6, 0, 0 },  { 8, 2, 4 } };
    const ch_mmff_options options = { 0 };

    (void)state;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        const ch_mol mol = hydride(wrong[k].z, wrong[k].charge, wrong[k].n);
        pl_error err = { 0 };
        ch_terms terms;
        const pl_code code = ch_terms_make(&terms, &mol, &mmff, &options, mem, &err);
        if (wrong[k].z == 7) { /* NH2(-) has type 62 */
            assert_int_equal(code, PL_OK);
            continue;
        }
        if (code != PL_EINPUT || strncmp(err.text, "atom ", 5) != 0)
            fail_msg("element %d, charge %d, %d hydrogens: %d %s", wrong[k].z, wrong[k].charge, wrong[k].n, (int)code, err.text);
    }
}

static void simple_hydrides_have_their_types(void **state)
{
    static const struct {
        int z, charge, n, type, of_hydrogen;
    } right[] = { { 6, 0, 4, 1, 5 },    { 7, 0, 3, 8, 23 },   { 7, 1, 4, 34, 36 },  { 8, 0, 2, 70, 31 }, { 8, 1, 3, 49, 50 },
                  { 8, -1, 1, 35, 21 }, { 16, 0, 2, 15, 71 }, { 15, 0, 3, 26, 71 }, { 14, 0, 4, 19, 5 }, { 17, -1, 0, 90, 0 },
                  { 11, 1, 0, 93, 0 },  { 30, 2, 0, 95, 0 },  { 26, 3, 0, 88, 0 } };
    const ch_mmff_options options = { 0 };

    (void)state;
    for (size_t k = 0; k < sizeof right / sizeof *right; k++) {
        const ch_mol mol = hydride(right[k].z, right[k].charge, right[k].n);
        ch_terms terms;
        assert_int_equal(ch_terms_make(&terms, &mol, &mmff, &options, mem, NULL), PL_OK);
        assert_int_equal(terms.type[0], right[k].type);
        if (right[k].n > 0)
            assert_int_equal(terms.type[1], right[k].of_hydrogen);
    }
}

/* Nitromethane with two double bonds, its oxygens before and behind the other atoms. */
static void a_group_is_typed_alike_wherever_its_atoms_stand(void **state)
{
    static const int z[2][7] = { { 8, 7, 8, 6, 1, 1, 1 }, { 1, 1, 1, 6, 8, 7, 8 } };
    static const int bond[2][6][3] = { { { 0, 1, 2 }, { 1, 2, 2 }, { 1, 3, 1 }, { 3, 4, 1 }, { 3, 5, 1 }, { 3, 6, 1 } },
                                       { { 0, 3, 1 }, { 1, 3, 1 }, { 2, 3, 1 }, { 3, 5, 1 }, { 4, 5, 2 }, { 5, 6, 2 } } };
    const ch_mmff_options options = { 0 };

    (void)state;
    for (int k = 0; k < 2; k++) {
        pl_error err = { 0 };
        ch_mol mol;
        ch_terms terms;
        assert_int_equal(ch_mol_alloc(&mol, 7, 6, mem, NULL), PL_OK);
        for (int i = 0; i < 7; i++)
            mol.z[i] = (uint8_t)z[k][i];
        for (int b = 0; b < 6; b++) {
            mol.bond[b][0] = bond[k][b][0];
            mol.bond[b][1] = bond[k][b][1];
            mol.order[b] = bond[k][b][2] == 2 ? CH_DOUBLE : CH_SINGLE;
        }
        if (ch_terms_make(&terms, &mol, &mmff, &options, mem, &err) != PL_OK)
            fail_msg("order %d: %s", k, err.text);
        for (int i = 0; i < 7; i++)
            if (z[k][i] > 6)
                assert_int_equal(terms.type[i], z[k][i] == 8 ? 32 : 45); /* of nitro groups */
    }
}

/* The anion of N-methylmethanesulfonamide, with its charge on nitrogen and as some draw it: CS(=O)([O-])=NC. */
static void a_sulfonamide_may_have_its_charge_on_oxygen(void **state)
{
    static const int z[12] = { 6, 16, 8, 8, 7, 6, 1, 1, 1, 1, 1, 1 };
    static const int bond[11][2] = { { 0, 1 }, { 0, 6 }, { 0, 7 }, { 0, 8 },  { 1, 2 }, { 1, 3 },
                                     { 1, 4 }, { 4, 5 }, { 5, 9 }, { 5, 10 }, { 5, 11 } };
    const ch_mmff_options options = { 0 };
    ch_terms terms[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        pl_error err = { 0 };
        ch_mol mol;
        assert_int_equal(ch_mol_alloc(&mol, 12, 11, mem, NULL), PL_OK);
        for (int i = 0; i < 12; i++)
            mol.z[i] = (uint8_t)z[i];
        for (int b = 0; b < 11; b++) {
            mol.bond[b][0] = bond[b][0];
            mol.bond[b][1] = bond[b][1];
            mol.order[b] = b == 4 || b == 5 + k ? CH_DOUBLE : CH_SINGLE;
        }
        mol.charge[k == 0 ? 4 : 3] = -1;
        if (ch_terms_make(&terms[k], &mol, &mmff, &options, mem, &err) != PL_OK)
            fail_msg("drawing %d: %s", k, err.text);
    }
    for (int i = 0; i < 12; i++)
        assert_true(terms[0].type[i] == terms[1].type[i] && terms[0].charge[i] == terms[1].charge[i]);
    assert_int_equal(terms[1].type[4], 62); /* nitrogen of an anion beside sulfur */
}

/* Ketene and ethene: their double bonds have no torsions but those of MMFF94; allene's have. */
static void only_cumulenes_have_torsions_across_them(void **state)
{
    static const struct {
        int n, z[7], n_bonds, bond[6][3], more;
    } cases[] = {
        { 5, { 8, 6, 6, 1, 1 }, 4, { { 0, 1, 2 }, { 1, 2, 2 }, { 2, 3, 1 }, { 2, 4, 1 } }, 0 },
        { 6, { 6, 6, 1, 1, 1, 1 }, 5, { { 0, 1, 2 }, { 0, 2, 1 }, { 0, 3, 1 }, { 1, 4, 1 }, { 1, 5, 1 } }, 0 },
        { 7, { 6, 6, 6, 1, 1, 1, 1 }, 6, { { 0, 1, 2 }, { 0, 3, 1 }, { 0, 4, 1 }, { 1, 2, 2 }, { 2, 5, 1 }, { 2, 6, 1 } }, 4 },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ch_terms terms[2];
        ch_mol mol;
        assert_int_equal(ch_mol_alloc(&mol, cases[k].n, cases[k].n_bonds, mem, NULL), PL_OK);
        for (int i = 0; i < cases[k].n; i++)
            mol.z[i] = (uint8_t)cases[k].z[i];
        for (int b = 0; b < cases[k].n_bonds; b++) {
            mol.bond[b][0] = cases[k].bond[b][0];
            mol.bond[b][1] = cases[k].bond[b][1];
            mol.order[b] = cases[k].bond[b][2] == 2 ? CH_DOUBLE : CH_SINGLE;
        }
        for (int c = 0; c < 2; c++) {
            pl_error err = { 0 };
            if (ch_terms_make(&terms[c], &mol, &mmff, &(ch_mmff_options){ .cumulenes = c == 1 }, mem, &err) != PL_OK)
                fail_msg("case %zu: %s", k, err.text);
        }
        assert_int_equal(terms[1].n_torsions, terms[0].n_torsions + cases[k].more);
        assert_true((terms[1].offset > 0) == (cases[k].more > 0) && terms[0].offset == 0);
    }
}

/* The rule knows all elements of MMFF94's own tables: only tables of one's own can lack it. */
static void angles_that_no_table_knows_are_refused(void **state)
{
    const ch_mmff_options options = { 0 };
    ch_mmff own = mmff;
    ch_mol mol = hydride(17, 0, 4);
    pl_error err = { 0 };
    ch_terms terms;

    (void)state;
    for (int i = 1; i < 5; i++)
        mol.z[i] = 8, mol.order[i - 1] = i < 4 ? CH_DOUBLE : CH_SINGLE;
    mol.charge[4] = -1;
    assert_int_equal(ch_terms_make(&terms, &mol, &mmff, &options, mem, &err), PL_OK);
    assert_true(terms.type[0] == 77 && terms.n_angles == 6);
    own.angle.n = 0;
    own.type[77].z = 35;
    assert_int_equal(ch_terms_make(&terms, &mol, &own, &options, mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "atom 1 (Cl): MMFF94 has neither parameters nor a rule for one of its angles");
}

static void a_molecule_of_too_many_atoms_is_refused(void **state)
{
    const ch_mol many = { .n_atoms = CH_TERMS_MAX_ATOMS + 1 };
    pl_error err = { 0 };
    ch_terms terms;

    (void)state;
    assert_int_equal(ch_terms_make(&terms, &many, &mmff, &(ch_mmff_options){ 0 }, mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "4097 atoms: more than the 4096 that terms are made of");
}

/* Methane with one term of each kind that names other atoms, or is no number. */
static void terms_of_another_molecule_are_refused(void **state)
{
    const ch_mol mol = hydride(6, 0, 4);
    ch_terms good;

    (void)state;
    assert_int_equal(ch_terms_make(&good, &mol, &mmff, &(ch_mmff_options){ 0 }, mem, NULL), PL_OK);
    for (int k = 0; k < 12; k++) {
        ch_bond_term bond = good.bonds[0];
        ch_angle_term angle = good.angles[0];
        ch_stretch_bend_term both = { .i = 1, .j = 0, .k = 2 };
        ch_out_of_plane_term plane = { 1, 0, 2, 3, 0.1 };
        ch_torsion_term torsion = { 1, 0, 2, 3, 0, 0, 0 };
        ch_pair_term pair = { 1, 2, 3, 0.01, 0 };
        ch_terms bad = good;
        ch_relaxer relaxer;
        pl_error err = { 0 };
        switch (k) {
        case 1: bond.j = 5; break;
        case 2: bond.i = -1; break;
        case 3: bond.r0 = NAN; break;
        case 4: angle.k = angle.i; break;
        case 5: angle.theta0 = NAN; break;
        case 6: both.k = 5; break;
        case 7: plane.l = plane.i; break;
        case 8: torsion.l = 5; break;
        case 9: pair.j = 5; break;
        case 10: pair.i = 3; break;
        case 11: pair.r_star = 0; break;
        default: break;
        }
        bad.bonds = &bond, bad.angles = &angle, bad.stretch_bends = &both;
        bad.out_of_planes = &plane, bad.torsions = &torsion, bad.pairs = &pair;
        bad.n_bonds = bad.n_angles = bad.n_stretch_bends = bad.n_out_of_planes = bad.n_torsions = bad.n_pairs = 1;
        const pl_code code = ch_relaxer_make(&relaxer, &bad, ch_kernels_choose(), mem, &err);
        const char *const says = "a force field term names an atom that is not there, or a length that is not positive";
        if (k == 0 ? code != PL_OK : code != PL_EINPUT || strcmp(err.text, says) != 0)
            fail_msg("case %d: %s", k, err.text);
    }
}

static void random_graphs_are_typed_or_refused(void **state)
{
    pl_arena *scratch = pl_arena_new(1 << 16);
    int n_typed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        pl_rng rng = pl_rng_at(11, seed, 1);
        uint8_t bytes[400];
        const size_t n = 2 + pl_rng_below(&rng, seed % 50 == 0 ? 398 : 60);
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)pl_rng_u64(&rng);
        for (size_t k = 0; k < n && seed % 2 == 1; k += 2)
            bytes[k] &= 0xf7 & ~(bytes[k] >> 7 << 6); /* fewer charges and rare elements */
        const ch_mol mol = graph_molecule(bytes, n, scratch);
        n_typed += graph_check(&mol, &mmff, scratch);
        pl_arena_reset(scratch);
    }
    pl_arena_free(scratch);
    assert_true(n_typed > 2000);
}

static void minimising_ends_at_a_minimum_or_says_that_it_does_not(void **state)
{
    const ch_mmff_options options = { 0 };
    const ch_mol mol = hydride(6, 0, 4);
    float xyz[5][3] = { { 0, 0, 0 }, { 1, 0.2f, 0.1f }, { -0.8f, 0.9f, 0 }, { 0, -1.2f, 0.4f }, { 0.1f, 0, -1.3f } };
    double at[5][3], sums[CH_N_TERM_CLASSES];
    ch_terms terms;
    ch_relaxer relaxer;
    ch_relaxed result;

    (void)state;
    assert_int_equal(ch_terms_make(&terms, &mol, &mmff, &options, mem, NULL), PL_OK);
    assert_int_equal(ch_relaxer_make(&relaxer, &terms, ch_kernels_choose(), mem, NULL), PL_OK);
    assert_int_equal(ch_relax(&result, xyz, &relaxer, &(ch_relax_options){ 0.001, 1 }, NULL), PL_OK);
    assert_false(result.converged);
    assert_int_equal(ch_relax(&result, xyz, &relaxer, &(ch_relax_options){ 0.001, 1000 }, NULL), PL_OK);
    assert_true(result.converged && result.gradient < 0.001);
    for (int i = 0; i < 15; i++)
        at[i / 3][i % 3] = (double)xyz[i / 3][i % 3];
    ch_energy(sums, NULL, &terms, (const double(*)[3])at);
    assert_true(ch_energy_total(sums) < 0.01 + 0.0267); /* stretches and bends relax to where the table has methane */
    xyz[0][0] = NAN;
    assert_int_equal(ch_relax(&result, xyz, &relaxer, &(ch_relax_options){ 0 }, NULL), PL_EINPUT);
}

/* ---- tables ---- */

static const char *const files[] = { "mmffprop.par",  "mmffdef.par", "mmffpbci.par",  "mmffvdw.par",  "mmffbond.par",
                                     "mmffbndk.par",  "mmffang.par", "mmffstbn.par",  "mmffdfsb.par", "mmfftor.par",
                                     "mmffs_tor.par", "mmffoop.par", "mmffs_oop.par", "mmffchg.par" };
enum { N_FILES = sizeof files / sizeof *files };

/* A folder with links to the tables. */
static const char *folder_of_tables(void)
{
    static char dir[64];

    (void)snprintf(dir, sizeof dir, "/tmp/molsieve-mmff-XXXXXX");
    assert_non_null(mkdtemp(dir));
    for (int k = 0; k < N_FILES; k++)
        assert_int_equal(symlink(pl_sprintf(mem, "%s/%s", suite_tables(), files[k]), pl_sprintf(mem, "%s/%s", dir, files[k])), 0);
    return dir;
}

static void folder_remove(const char *dir)
{
    for (int k = 0; k < N_FILES; k++)
        (void)unlink(pl_sprintf(mem, "%s/%s", dir, files[k]));
    assert_int_equal(rmdir(dir), 0);
}

static void must_fail(const char *dir, pl_code want, const char *where, const char *text)
{
    pl_error err = { 0 };
    ch_mmff out;

    assert_int_equal(ch_mmff_read(&out, dir, mem, &err), want);
    if (strstr(err.where, where) == NULL || strstr(err.text, text) == NULL)
        fail_msg("%s: %s", err.where, err.text);
}

static void a_missing_table_is_named(void **state)
{
    const char *dir = folder_of_tables();

    (void)state;
    for (int k = 0; k < N_FILES; k++) {
        const char *path = pl_sprintf(mem, "%s/%s", dir, files[k]);
        assert_int_equal(unlink(path), 0);
        must_fail(dir, PL_ECONFIG, "",
                  pl_sprintf(mem,
                             "%s is not there: it is a table of the force field and comes with Open Babel; set BABEL_DATADIR to "
                             "its data folder",
                             path));
        assert_int_equal(symlink(pl_sprintf(mem, "%s/%s", suite_tables(), files[k]), path), 0);
    }
    folder_remove(dir);
}

/* The first row, the row again, and the file without its last line. */
static void damage(const char *dir, const char *file)
{
    const char *path = pl_sprintf(mem, "%s/%s", dir, file);
    pl_bytes whole;

    assert_int_equal(pl_file_read(&whole, path, mem, NULL), PL_OK);
    const char *text = whole.data, *row = text, *end = strrchr(text, '$');
    int line = 1;
    for (; *row == '*'; row = strchr(row, '\n') + 1)
        line++;
    const char *word = row + strspn(row, " "), *after = strchr(row, '\n');
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pl_file_write(path, (pl_bytes){ text, (size_t)(end - text) }, NULL), PL_OK);
    must_fail(dir, PL_EDATA, file, "the table ends without its last line");
    char *wrong = pl_sprintf(mem, "%.*s1x%s", (int)(row - text), text, row + 2);
    if (strcmp(file, "mmffdef.par") != 0) {
        assert_int_equal(pl_file_write(path, (pl_bytes){ wrong, strlen(wrong) }, NULL), PL_OK);
        must_fail(dir, PL_EDATA, pl_sprintf(mem, "%s:%d", file, line), "this is not a row of the table");
    }
    char *shorter =
        pl_sprintf(mem, "%.*s%.*s\n%s", (int)(row - text), text, (int)strcspn(word, " ") + (int)(word - row), row, after + 1);
    assert_int_equal(pl_file_write(path, (pl_bytes){ shorter, strlen(shorter) }, NULL), PL_OK);
    must_fail(dir, PL_EDATA, pl_sprintf(mem, "%s:%d", file, line), "this is not a row of the table");
}

/* The first row of a table of terms twice, and of the tables of types not at all. */
static void rows_are_there_once(void **state)
{
    (void)state;
    for (int k = 0; k < N_FILES; k++) {
        const char *dir = folder_of_tables(), *path = pl_sprintf(mem, "%s/%s", dir, files[k]);
        const bool of_types = k < 4;
        pl_bytes whole;
        assert_int_equal(pl_file_read(&whole, path, mem, NULL), PL_OK);
        const char *row = whole.data;
        while (*row == '*')
            row = strchr(row, '\n') + 1;
        const int before = (int)(row - (const char *)whole.data), n = (int)strcspn(row, "\n") + 1;
        const int again = of_types ? 0 : n; /* of the first row */
        const char *rest = of_types ? row + n : row;
        const char *text = pl_sprintf(mem, "%.*s%.*s%s", before, (const char *)whole.data, again, row, rest);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(pl_file_write(path, (pl_bytes){ text, strlen(text) }, NULL), PL_OK);
        if (!of_types)
            must_fail(dir, PL_EDATA, files[k], "the table has two rows ");
        else if (strcmp(files[k], "mmffdef.par") == 0 || strcmp(files[k], "mmffvdw.par") == 0)
            must_fail(dir, PL_EDATA, "", pl_sprintf(mem, "%s has no row for type 1", path));
        folder_remove(dir);
    }
}

static void a_damaged_table_is_named_with_its_line(void **state)
{
    (void)state;
    for (int k = 0; k < N_FILES; k++) {
        const char *dir = folder_of_tables();
        damage(dir, files[k]);
        folder_remove(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(atoms_without_a_type_are_refused_with_their_number),
        cmocka_unit_test(simple_hydrides_have_their_types),
        cmocka_unit_test(a_group_is_typed_alike_wherever_its_atoms_stand),
        cmocka_unit_test(a_sulfonamide_may_have_its_charge_on_oxygen),
        cmocka_unit_test(only_cumulenes_have_torsions_across_them),
        cmocka_unit_test(angles_that_no_table_knows_are_refused),
        cmocka_unit_test(a_molecule_of_too_many_atoms_is_refused),
        cmocka_unit_test(terms_of_another_molecule_are_refused),
        cmocka_unit_test(random_graphs_are_typed_or_refused),
        cmocka_unit_test(minimising_ends_at_a_minimum_or_says_that_it_does_not),
        cmocka_unit_test(a_missing_table_is_named),
        cmocka_unit_test(a_damaged_table_is_named_with_its_line),
        cmocka_unit_test(rows_are_there_once),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
