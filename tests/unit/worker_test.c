/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "chem/common/protocol.h"
#include "chem/worker/worker_client.h"
#include "tests/unit/wedge_angles.h"

typedef struct bench_side {
    ch_worker *w;
    pl_arena *mem;
} bench_side;

static int setup(void **state)
{
    bench_side *b = calloc(1, sizeof *b);
    pl_error err = { 0 };

    if (ch_worker_open(&b->w, NULL, &err) != PL_OK)
        print_error("%s\n", err.text);
    b->mem = pl_arena_new(0);
    *state = b;
    return b->w != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    bench_side *b = *state;
    ch_worker_close(b->w);
    pl_arena_free(b->mem);
    free(b);
    return 0;
}

static pl_code prepare(bench_side *b, const char *smiles, ch_prepared *out, pl_error *err)
{
    return ch_worker_prepare(b->w, smiles, strlen(smiles), "smi", NULL, out, b->mem, err);
}

static double seconds_of_children(void)
{
    struct rusage use;

    assert_int_equal(getrusage(RUSAGE_CHILDREN, &use), 0);
    return (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
           1e-6 * ((double)use.ru_utime.tv_usec + (double)use.ru_stime.tv_usec);
}

static void kill_children(void)
{
    char path[64];
    int pid, n = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    f = fopen(path, "r");
    assert_non_null(f);
    while (fscanf(f, "%d", &pid) == 1)
        n += kill(pid, SIGKILL) == 0;
    (void)fclose(f);
    assert_true(n > 0);
}

/* The CPU time in `time` and in a cluster's accounting includes workers that are killed. */
static void cpu_seconds_of_building_are_those_of_a_child(void **state)
{
    static const char *const smiles[] = { "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "CC(=O)OC1CC2CCC(C1)N2C", "CCN(CC)CCNC(=O)c1ccc(N)cc1",
                                          "CN1CCC[C@H]1c1cccnc1", "COc1ccc2nccc(C(O)C3CC4CCN3CC4C=C)c2c1" };

    (void)state;
    for (int kill_it = 0; kill_it < 2; kill_it++) {
        const double before = seconds_of_children();
        double said = 0, seen;
        bench_side b = { .mem = pl_arena_new(0) };
        assert_int_equal(ch_worker_open(&b.w, NULL, NULL), PL_OK);
        for (size_t i = 0; said <= 0.05; i++) { /* on a fast machine more than once */
            ch_prepared p;
            assert_int_equal(prepare(&b, smiles[i % (sizeof smiles / sizeof *smiles)], &p, NULL), PL_OK);
            assert_true(p.cpu_s > 0);
            said += p.cpu_s;
        }
        if (kill_it)
            kill_children();
        ch_worker_close(b.w);
        pl_arena_free(b.mem);
        seen = seconds_of_children() - before;
        if (!(seen >= 0.9 * said))
            fail_msg("%g s of work, %g s seen", said, seen);
    }
}

static void aspirin_gets_its_known_properties(void **state)
{
    ch_prepared p;
    pl_error err = { 0 };

    assert_int_equal(prepare(*state, "CC(=O)Oc1ccccc1C(=O)O aspirin", &p, &err), PL_OK);
    assert_string_equal(p.inchikey, "BSYNRYMUTXBXSQ-UHFFFAOYSA-N");
    assert_string_equal(p.formula, "C9H8O4");
    assert_string_equal(p.geometry, "mmff94");
    assert_int_equal(p.n_heavy, 13);
    assert_true(p.descriptor[CH_D_hbd] == 1);
    assert_true(p.descriptor[CH_D_hba] == 4);
    assert_true(p.descriptor[CH_D_rotb] == 3);
    assert_true(p.descriptor[CH_D_rings] == 1);
    assert_true(fabs(p.descriptor[CH_D_logp] - 1.3101) <= 1e-6);
    assert_true(fabs(p.descriptor[CH_D_tpsa] - 63.6) <= 1e-6);
    assert_true(fabs(p.descriptor[CH_D_mw] - 180.1574) <= 1e-3);
    assert_int_equal(p.mol.n_atoms, 21);
    assert_int_equal(p.mol.n_bonds, 21);
    assert_int_equal(ch_mol_check(&p.mol, &err), PL_OK);
    assert_int_equal(p.attempts, 1);
}

/* RDKit's values; Open Babel 3.1.1 gives 2.1465 and 97.64 for the first molecule, and -0.6755 for the last. */
static void log_p_and_polar_surface_are_those_of_the_papers(void **state)
{
    static const struct {
        const char *smiles;
        double logp, tpsa;
    } known[] = { { "CC(=O)Nc1ccc(S(N)(=O)=O)cc1", 0.2924, 89.26 },
                  { "O=C(O)c1ccc(Cl)cc1F", 2.1773, 37.3 },
                  { "C1CN1CC(=O)O", -0.6134, 40.31 } };

    for (int builder = CH_NATIVE; builder <= CH_OPENBABEL; builder++)
        for (int conformer = CH_3D_AUTO; conformer <= CH_3D_NONE; conformer += CH_3D_NONE)
            for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
                bench_side *b = *state;
                ch_prepare_opts o = ch_prepare_defaults();
                ch_prepared p;
                o.builder = (ch_builder)builder;
                o.conformer = (ch_conformer)conformer;
                assert_int_equal(ch_worker_prepare(b->w, known[i].smiles, strlen(known[i].smiles), "smi", &o, &p, b->mem, NULL),
                                 PL_OK);
                assert_true(fabs(p.descriptor[CH_D_logp] - known[i].logp) <= 1e-6);
                assert_true(fabs(p.descriptor[CH_D_tpsa] - known[i].tpsa) <= 1e-6);
            }
}

static double bond_length(const ch_mol *m, int b)
{
    const float *p = m->xyz[m->bond[b][0]], *q = m->xyz[m->bond[b][1]];
    return sqrt(pow(p[0] - q[0], 2) + pow(p[1] - q[1], 2) + pow(p[2] - q[2], 2));
}

static void a_nitrile_is_relaxed_although_it_is_built_on_a_line(void **state)
{
    ch_prepared p;
    pl_error err = { 0 };
    int seen = 0;

    assert_int_equal(prepare(*state, "CC#N", &p, &err), PL_OK);
    for (int b = 0; b < p.mol.n_bonds; b++)
        if (p.mol.order[b] == 3) {
            assert_true(fabs(bond_length(&p.mol, b) - 1.16) <= 0.01);
            seen++;
        }
    assert_int_equal(seen, 1);
}

static void counter_ions_go_even_when_they_are_bigger(void **state)
{
    ch_prepared p;
    pl_error err = { 0 };

    /* methylamine tosylate, and a sodium salt hydrate */
    assert_int_equal(prepare(*state, "C[NH3+].Cc1ccc(cc1)S(=O)(=O)[O-]", &p, &err), PL_OK);
    assert_string_equal(p.smiles, "C[NH3+]");
    assert_int_equal(p.charge, 1);
    assert_int_equal(prepare(*state, "[Na+].[O-]C(=O)c1ccccc1CC.O", &p, &err), PL_OK);
    assert_non_null(strstr(p.removed, "[Na+]"));
    assert_non_null(strstr(p.removed, "O"));
    assert_int_equal(p.charge, -1);
}

static void every_failure_has_its_own_word(void **state)
{
    static const struct {
        const char *smiles;
        ch_status code;
    } cases[] = { { "C1CC", CH_PARSE },  { "c1cccc1", CH_PARSE },       { "", CH_EMPTY }, { "C(C)(C)(C)(C)C", CH_VALENCE },
                  { "*CC", CH_VALENCE }, { "not a molecule", CH_PARSE } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ch_prepared p;
        pl_error err = { 0 };
        assert_int_equal(prepare(*state, cases[i].smiles, &p, &err), PL_EINPUT);
        assert_string_equal(ch_status_name(p.code), ch_status_name(cases[i].code));
        assert_int_equal(strncmp(err.text, ch_status_name(p.code), strlen(ch_status_name(p.code))), 0);
        assert_int_equal(p.mol.n_atoms, 0);
    }
}

/* It is not sent, and the worker goes on. */
static void a_request_that_is_too_long_is_refused(void **state)
{
    bench_side *b = *state;
    char *text = malloc(CH_MESSAGE_MAX);
    const ch_input in[] = { { .text = text, .format = "smi", .len = CH_MESSAGE_MAX }, { .text = "CC", .format = "smi", .len = 2 } };
    ch_prepared p[2];
    int64_t lost[2];

    assert_non_null(text);
    memset(text, 'C', CH_MESSAGE_MAX);
    ch_worker_counts(b->w, NULL, NULL, &lost[0]);
    assert_int_equal(ch_worker_prepare_all(b->w, in, 2, NULL, NULL, p, b->mem, NULL), PL_OK);
    free(text);
    ch_worker_counts(b->w, NULL, NULL, &lost[1]);
    assert_int_equal(p[0].code, CH_TOO_LARGE);
    assert_string_equal(p[0].message, "more bytes than one request may have");
    assert_true(p[0].attempts == 1 && p[1].code == CH_OK && lost[0] == lost[1]);
}

static void a_large_molecule_is_refused_by_the_callers_limit(void **state)
{
    bench_side *b = *state;
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p;

    o.max_heavy_atoms = 12;
    assert_int_equal(ch_worker_prepare(b->w, "CC(=O)Oc1ccccc1C(=O)O", 21, "smi", &o, &p, b->mem, NULL), PL_EINPUT);
    assert_int_equal(p.code, CH_TOO_LARGE);
}

static void a_molecule_may_have_250_heavy_atoms_unless_said(void **state)
{
    bench_side *b = *state;
    ch_prepare_opts o = ch_prepare_defaults();
    char text[251];
    ch_prepared p;

    o.conformer = CH_3D_NONE;
    memset(text, 'C', sizeof text);
    assert_int_equal(ch_worker_prepare(b->w, text, 250, "smi", &o, &p, b->mem, NULL), PL_OK);
    assert_int_equal(ch_worker_prepare(b->w, text, 251, "smi", &o, &p, b->mem, NULL), PL_EINPUT);
    assert_int_equal(p.code, CH_TOO_LARGE);
}

static void without_conformer_there_are_hydrogens_and_no_positions(void **state)
{
    bench_side *b = *state;
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p;

    o.conformer = CH_3D_NONE;
    assert_int_equal(ch_worker_prepare(b->w, "CCO", 3, "smi", &o, &p, b->mem, NULL), PL_OK);
    assert_int_equal(p.mol.n_atoms, 9);
    assert_null(p.mol.xyz);
    assert_true(isnan(p.energy));
}

static void benzene_has_six_aromatic_bonds(void **state)
{
    ch_prepared p;
    int aromatic = 0, drawn_double = 0;

    assert_int_equal(prepare(*state, "C1=CC=CC=C1", &p, NULL), PL_OK);
    for (int b = 0; b < p.mol.n_bonds; b++) {
        aromatic += p.mol.order[b] >= CH_AROMATIC_SINGLE;
        drawn_double += p.mol.order[b] == CH_AROMATIC_DOUBLE;
    }
    assert_true(aromatic == 6 && drawn_double == 3);
}

static void arrays_written_as_sdf_come_back_the_same(void **state)
{
    bench_side *b = *state;
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p, q;
    const char *sdf;
    pl_error err = { 0 };

    assert_int_equal(prepare(b, "CC(=O)Oc1ccccc1C(=O)[O-]", &p, &err), PL_OK);
    if (ch_worker_write(b->w, &p.mol, "aspirin", "sdf", &sdf, b->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    o.conformer = CH_3D_KEEP;
    if (ch_worker_prepare(b->w, sdf, strlen(sdf), "sdf", &o, &q, b->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    assert_string_equal(p.inchikey, q.inchikey);
    assert_string_equal(q.geometry, "input");
    assert_int_equal(p.mol.n_atoms, q.mol.n_atoms);
    assert_memory_equal(p.mol.z, q.mol.z, (size_t)p.mol.n_atoms);
    assert_memory_equal(p.mol.charge, q.mol.charge, (size_t)p.mol.n_atoms);
    assert_memory_equal(p.mol.bond, q.mol.bond, (size_t)p.mol.n_bonds * 8);
    assert_memory_equal(p.mol.order, q.mol.order, (size_t)p.mol.n_bonds);
    for (int i = 0; i < p.mol.n_atoms; i++)
        for (int k = 0; k < 3; k++)
            assert_true(fabs(p.mol.xyz[i][k] - q.mol.xyz[i][k]) <= 1e-4);
}

static void a_molecule_without_atoms_is_written_as_one(void **state)
{
    bench_side *b = *state;
    const ch_mol none = { 0 };
    const char *sdf;
    pl_error err = { 0 };

    if (ch_worker_write(b->w, &none, "nothing", "sdf", &sdf, b->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    assert_true(strncmp(sdf, "nothing\n", 8) == 0 && strstr(sdf, "\n  0  0") != NULL && strstr(sdf, "$$$$") != NULL);
}

static void a_drawing_is_one_svg_element(void **state)
{
    bench_side *b = *state;
    const char *svg;

    assert_int_equal(ch_worker_svg(b->w, "CC(=O)Oc1ccccc1C(=O)O", &svg, b->mem, NULL), PL_OK);
    assert_int_equal(strncmp(svg, "<svg", 4), 0);
    assert_string_equal(svg + strlen(svg) - 6, "</svg>");
    assert_int_equal(ch_worker_svg(b->w, "C1CC", &svg, b->mem, NULL), PL_EINPUT);
}

/* gen2D leaves a ring of the first one open; the others have stereo that a turned part could break. */
static const char *const crowded[] = {
    "CCOC(=O)c1ccc(NC(=O)c2c(NCc3cccc(OC)c3OC)sc3c2CCC3)cc1",
    "CC(=O)O[C@H]1[C@H](OC(C)=O)[C@@H](COC(C)=O)O[C@@H](OC(C)=O)[C@@H]1OC(C)=O",
    "C/C=C/C(=O)N(Cc1ccccc1)[C@@H](C)C(=O)Nc1c(C)cccc1C",
};

/* The longest and the shortest bond of a V2000 molfile. */
static void bonds_of(const char *molfile, double *shortest, double *longest)
{
    double x[200], y[200];
    int n, m;
    const char *line = molfile;

    for (int i = 0; i < 3; i++)
        line = strchr(line, '\n') + 1;
    assert_int_equal(sscanf(line, "%3d%3d", &n, &m), 2);
    *shortest = 1e9;
    *longest = 0;
    for (int i = 0; i < n; i++) {
        line = strchr(line, '\n') + 1;
        assert_int_equal(sscanf(line, "%lf %lf", &x[i], &y[i]), 2);
    }
    for (int i = 0; i < m; i++) {
        int a, b;
        line = strchr(line, '\n') + 1;
        assert_int_equal(sscanf(line, "%3d%3d", &a, &b), 2);
        *shortest = fmin(*shortest, hypot(x[a - 1] - x[b - 1], y[a - 1] - y[b - 1]));
        *longest = fmax(*longest, hypot(x[a - 1] - x[b - 1], y[a - 1] - y[b - 1]));
    }
}

/* The wedges of these rings depend on the order in which the centres get theirs. Each request leaves the heap in another state. */
static void a_drawing_does_not_depend_on_where_atoms_lie_in_memory(void **state)
{
    bench_side *b = *state;
    const char *smiles = "C[C@]12[C@H]3[C@H]4[C@@H]2[C@@H]1[C@@H]34";
    const char *between[] = { "CC", "C[C@H](F)Cl", "CCCCCCCCCCc1ccccc1" };
    ch_drawn first = { 0 };
    assert_int_equal(ch_worker_draw(b->w, smiles, &first, b->mem, NULL), PL_OK);
    for (int i = 0; i < 12; i++) {
        ch_drawn again = { 0 }, other = { 0 };
        assert_int_equal(ch_worker_draw(b->w, smiles, &again, b->mem, NULL), PL_OK);
        assert_string_equal(again.svg, first.svg);
        assert_string_equal(again.molfile, first.molfile);
        assert_int_equal(ch_worker_draw(b->w, between[i % 3], &other, b->mem, NULL), PL_OK);
    }
}

static void drawings_have_equal_bonds_no_overlap_and_their_stereo(void **state)
{
    bench_side *b = *state;

    for (size_t i = 0; i < sizeof crowded / sizeof *crowded; i++) {
        ch_drawn d = { 0 };
        ch_prepared p, q;
        ch_prepare_opts opts = ch_prepare_defaults();
        double shortest, longest;
        opts.conformer = CH_3D_NONE;
        assert_int_equal(ch_worker_draw(b->w, crowded[i], &d, b->mem, NULL), PL_OK);
        assert_int_equal(d.overlaps, 0);
        bonds_of(d.molfile, &shortest, &longest);
        assert_true(shortest > 0.75 && longest < 1.25);
        assert_int_equal(ch_worker_prepare(b->w, crowded[i], strlen(crowded[i]), "smi", &opts, &p, b->mem, NULL), PL_OK);
        assert_int_equal(ch_worker_prepare(b->w, d.molfile, strlen(d.molfile), "mol", &opts, &q, b->mem, NULL), PL_OK);
        assert_string_equal(p.inchikey, q.inchikey);
    }
}

/* Whether a molfile has a wedge, a hash, or no mark at all. */
static bool has_wedges(const char *molfile)
{
    const char *line = molfile;
    int n, m, order, mark, found = 0;

    for (int i = 0; i < 3; i++)
        line = strchr(line, '\n') + 1;
    assert_int_equal(sscanf(line, "%3d%3d", &n, &m), 2);
    for (int i = 0; i < n + m; i++) {
        line = strchr(line, '\n') + 1;
        if (i >= n && sscanf(line + 6, "%3d%3d", &order, &mark) == 2)
            found += order == 1 && mark != 0;
    }
    return found > 0;
}

static void check_stereo(bench_side *b, const char *smiles, const char *kind)
{
    const bool noted = strcmp(kind, "noted") == 0;
    ch_drawn d = { 0 };
    ch_prepared p, q;
    ch_prepare_opts opts = ch_prepare_defaults();
    bool said, right;

    opts.conformer = CH_3D_NONE;
    assert_int_equal(ch_worker_draw(b->w, smiles, &d, b->mem, NULL), PL_OK);
    assert_int_equal(ch_worker_prepare(b->w, smiles, strlen(smiles), "smi", &opts, &p, b->mem, NULL), PL_OK);
    assert_int_equal(ch_worker_prepare(b->w, d.molfile, strlen(d.molfile), "mol", &opts, &q, b->mem, NULL), PL_OK);
    said = strstr(d.svg, ">" CH_NO_STEREO "</text>") != NULL;
    right = strcmp(p.inchikey, q.inchikey) == 0 && strcmp(p.smiles, q.smiles) == 0;
    assert_int_equal(said, strstr(d.molfile, "\n" CH_NO_STEREO "\n") != NULL);
    if (said != noted || right == noted || (said && has_wedges(d.molfile)))
        fail_msg("%s: %s, read back as %s", smiles, said ? "noted" : "not noted", q.smiles);
    if (strcmp(kind, "few_wedges") == 0 && !wedges_are_clear(d.molfile))
        fail_msg("%s: a wedge that can be read in two ways:\n%s", smiles, d.molfile);
}

/* Too few wedges, wedges that readers do not understand, and double bonds the other way round; some cannot be drawn. */
static void a_drawing_shows_its_stereo_or_says_that_it_does_not(void **state)
{
    char line[500], smiles[400], kind[40];
    FILE *f = fopen(MOLSIEVE_TESTS "/data/drawings.smi", "r");
    int n = 0;

    assert_non_null(f);
    for (; fgets(line, sizeof line, f) != NULL; n++) {
        assert_int_equal(sscanf(line, "%399s %39s", smiles, kind), 2);
        check_stereo(*state, smiles, kind);
    }
    (void)fclose(f);
    assert_true(n >= 16);
}

static int count(const char *text, const char *word)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

/* Cortisol has more centres than Open Babel finds bonds for. */
static void the_svg_has_the_wedges_of_the_molfile(void **state)
{
    bench_side *b = *state;
    ch_drawn d = { 0 };

    assert_int_equal(ch_worker_draw(b->w, "O=C1CC[C@]2(C(=C1)CC[C@@H]1[C@@H]2[C@@H](O)C[C@]2([C@H]1CC[C@]2(O)C(=O)CO)C)C", &d,
                                    b->mem, NULL),
                     PL_OK);
    assert_int_equal(count(d.svg, "<polygon"), count(d.molfile, "  1  1  0  0  0\n"));
    assert_int_equal(count(d.svg, "stroke-width=\"1.0\""), 6 * count(d.molfile, "  1  6  0  0  0\n"));
    assert_int_equal(count(d.svg, "<polygon") + count(d.svg, "stroke-width=\"1.0\"") / 6, 7);
}

static void patterns_are_matched_or_refused(void **state)
{
    bench_side *b = *state;
    const char *const smiles[] = { "c1ccccc1O", "CCO", "C1CC" };
    char longest[CH_SMARTS_MAX + 2];
    int8_t yes[3] = { 9, 9, 9 };
    int32_t column = 9;
    pl_error err = { 0 };

    assert_int_equal(ch_worker_match(b->w, "c[OH]", smiles, 3, yes, &column, &err), PL_OK);
    assert_int_equal(column, 0);
    assert_memory_equal(yes, ((int8_t[]){ 1, 0, -1 }), 3);
    assert_int_equal(ch_worker_match(b->w, "c(O", smiles, 3, yes, &column, &err), PL_OK);
    assert_true(column > 0);
    for (size_t k = 0; k < CH_SMARTS_MAX; k += 2)
        memcpy(longest + k, "N,", 2);
    memcpy(longest, "[#7,", 4); /* one atom: a chain of as many takes all the time of a worker in a slow build */
    memcpy(longest + CH_SMARTS_MAX - 2, "N]", 3);
    assert_int_equal(ch_worker_match(b->w, longest, smiles, 1, yes, &column, &err), PL_OK);
    assert_true(column == 0 && yes[0] == 0);
    longest[CH_SMARTS_MAX] = 'C';
    longest[CH_SMARTS_MAX + 1] = '\0';
    assert_int_equal(ch_worker_match(b->w, longest, smiles, 1, yes, &column, &err), PL_EINPUT);
    assert_string_equal(err.text, "too_large: a pattern of 10001 characters; at most 10000 are allowed");
}

/* The matcher compares the mark of some atoms only, and takes [2H] for something else: what it would pass over is refused. */
static void a_pattern_means_what_it_says_or_is_refused(void **state)
{
    static const struct {
        const char *smarts;
        int8_t yes[3]; /* of the molecules; 9: it is refused */
    } asked[] = { { "C[C@H](F)Cl", { 1, 0, 0 } },
                  { "C[C@@H](F)Cl", { 0, 1, 0 } },
                  { "[C@H](C)(F)Cl", { 0, 1, 0 } },
                  { "[C@@](C)(F)([#1])Cl", { 1, 0, 0 } },
                  { "CC[C@](C)(F)Cl", { 0, 0, 1 } },
                  { "CC[C@@](C)(F)Cl", { 0, 0, 0 } },
                  { "[CX4@H](C)(F)Cl", { 0, 1, 0 } },
                  { "[$(C[C@H](F)Cl)]", { 1, 0, 0 } },
                  { "[C@@]1(C)CC1", { 9 } },
                  { "F[C@]12CC1CC2", { 0, 0, 0 } },
                  { "C[C@](F)Cl", { 9 } },
                  { "[C@](C)(F)Cl", { 9 } },
                  { "C[C@H1](F)Cl", { 9 } },
                  { "C[C@H]F", { 9 } },
                  { "C[C@HX4](F)Cl", { 9 } },
                  { "C[N,C@H](F)Cl", { 9 } },
                  { "C[C;@H](F)Cl", { 9 } },
                  { "C[CH@](F)Cl", { 9 } },
                  { "[$([C@](C)F)]", { 9 } },
                  { "C[S@](=O)CC", { 9 } },
                  { "C(C)[C@](C)(F)Cl", { 0, 0, 1 } },
                  { "[2H]C", { 9 } },
                  { "C[3H]", { 9 } },
                  { "[2H+]C", { 9 } },
                  { "[3H1]C", { 9 } },
                  { "[2H,F]", { 1, 1, 1 } },
                  { "[2#1]C", { 0, 0, 0 } },
                  { "[13C]", { 0, 0, 0 } },
                  { "[H]", { 1, 1, 1 } },
                  { "C1@CC1", { 0, 0, 0 } },
                  { "C[C@H](F)[#17]", { 1, 0, 0 } },
                  { "C[C@@H](F)*", { 0, 1, 0 } },
                  { "C[C@H]([F])[!#9]", { 1, 0, 0 } },
                  { "C[C@H](F)%10.Cl%10", { 9 } },
                  { "C[C@H](F)%10Cl%10", { 9 } } };
    const char *const smiles[] = { "C[C@H](F)Cl", "C[C@@H](F)Cl", "CC[C@](C)(F)Cl" };
    bench_side *b = *state;

    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int8_t yes[3] = { 9, 9, 9 };
        int32_t column = 0;
        pl_error err = { 0 };
        const bool refused = asked[i].yes[0] == 9;
        const pl_code code = ch_worker_match(b->w, asked[i].smarts, smiles, 3, yes, &column, &err);
        if (code != (refused ? PL_EINPUT : PL_OK) || column != 0 || (!refused && memcmp(yes, asked[i].yes, 3) != 0))
            fail_msg("%s: code %d, column %d, %d %d %d %s", asked[i].smarts, (int)code, (int)column, yes[0], yes[1], yes[2],
                     err.text);
    }
}

static void the_worker_says_what_it_is_and_what_it_reads(void **state)
{
    bench_side *b = *state;
    ch_worker_info info;
    bool yes;

    assert_int_equal(ch_worker_hello(b->w, &info, NULL), PL_OK);
    assert_int_equal(info.openbabel[0], '3');
    assert_true(info.n_formats > 100);
    assert_int_equal(ch_worker_reads(b->w, "cml", &yes, NULL), PL_OK);
    assert_true(yes);
    assert_int_equal(ch_worker_reads(b->w, "svg", &yes, NULL), PL_OK);
    assert_false(yes);
    assert_int_equal(ch_worker_reads(b->w, "nonsense", &yes, NULL), PL_OK);
    assert_false(yes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aspirin_gets_its_known_properties),
        cmocka_unit_test(log_p_and_polar_surface_are_those_of_the_papers),
        cmocka_unit_test(cpu_seconds_of_building_are_those_of_a_child),
        cmocka_unit_test(a_nitrile_is_relaxed_although_it_is_built_on_a_line),
        cmocka_unit_test(counter_ions_go_even_when_they_are_bigger),
        cmocka_unit_test(every_failure_has_its_own_word),
        cmocka_unit_test(a_request_that_is_too_long_is_refused),
        cmocka_unit_test(a_large_molecule_is_refused_by_the_callers_limit),
        cmocka_unit_test(a_molecule_may_have_250_heavy_atoms_unless_said),
        cmocka_unit_test(without_conformer_there_are_hydrogens_and_no_positions),
        cmocka_unit_test(benzene_has_six_aromatic_bonds),
        cmocka_unit_test(arrays_written_as_sdf_come_back_the_same),
        cmocka_unit_test(a_molecule_without_atoms_is_written_as_one),
        cmocka_unit_test(a_drawing_is_one_svg_element),
        cmocka_unit_test(a_drawing_does_not_depend_on_where_atoms_lie_in_memory),
        cmocka_unit_test(drawings_have_equal_bonds_no_overlap_and_their_stereo),
        cmocka_unit_test(a_drawing_shows_its_stereo_or_says_that_it_does_not),
        cmocka_unit_test(the_svg_has_the_wedges_of_the_molfile),
        cmocka_unit_test(the_worker_says_what_it_is_and_what_it_reads),
        cmocka_unit_test(patterns_are_matched_or_refused),
        cmocka_unit_test(a_pattern_means_what_it_says_or_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
