/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's complete answers for molecules, as SMILES and from the files in data/messy, against golden/molecules_*.txt. Made with
 * Open Babel 3.1.1; skipped with another version. Built positions are not compared: they depend on the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/records/record.h"
#include "chem/worker/worker_client.h"
#include "chem/common/descriptors.h"
#include "golden/golden_text.h"
#include "golden/golden_worker.h"

#define DONE(call)                    \
    do {                              \
        pl_error why = { 0 };         \
        if (call)                     \
            fail_msg("%s", why.text); \
    } while (0)

static void mol_say(pl_text *out, const ch_mol *m, bool positions)
{
    pl_text_addf(out, "   %d atoms, %d bonds:", (int)m->n_atoms, (int)m->n_bonds);
    for (int32_t i = 0; i < m->n_atoms && i < 60; i++) {
        pl_text_addf(out, " %d", m->z[i]);
        if (m->charge[i] != 0)
            pl_text_addf(out, "%+d", m->charge[i]);
        if (m->isotope != NULL && m->isotope[i] != 0)
            pl_text_addf(out, "^%d", m->isotope[i]);
    }
    pl_text_add(out, " |");
    for (int32_t b = 0; b < m->n_bonds && b < 60; b++)
        pl_text_addf(out, " %d-%d:%d", (int)m->bond[b][0], (int)m->bond[b][1], m->order[b]);
    pl_text_add(out, "\n");
    for (int32_t i = 0; positions && m->xyz != NULL && i < m->n_atoms && i < 30; i++)
        pl_text_addf(out, "   x~%.3f y~%.3f z~%.3f\n", (double)m->xyz[i][0], (double)m->xyz[i][1], (double)m->xyz[i][2]);
}

/* The sum of 1/distance over all pairs of atoms: it depends on the shape, not on the place. */
static double inverse_distances(const ch_mol *m)
{
    double sum = 0;

    for (int32_t i = 0; m->xyz != NULL && i < m->n_atoms; i++)
        for (int32_t j = 0; j < i; j++) {
            double r = 0;
            for (int k = 0; k < 3; k++)
                r += pow((double)m->xyz[i][k] - (double)m->xyz[j][k], 2);
            sum += 1 / sqrt(r + 1e-9);
        }
    return sum;
}

static void prepared_say(pl_text *out, const ch_prepared *p)
{
    const bool given = strcmp(p->geometry, "input") == 0 || strcmp(p->geometry, "none") == 0;

    pl_text_addf(out, "%s", ch_status_name(p->code));
    if (p->message[0] != '\0') {
        pl_text_add(out, ": ");
        golden_bytes(out, p->message, strlen(p->message), 200);
    }
    pl_text_addf(out, " (attempts %d, signal %d)\n   ", p->attempts, p->signal);
    golden_bytes(out, p->smiles, strlen(p->smiles), 300);
    pl_text_addf(out, " %s %s removed [%s] alerts [%s]\n", p->inchikey, p->formula, p->removed, p->alerts);
    pl_text_addf(out, "   heavy %d charge %d read %d neutralised %d open %d\n  ", (int)p->n_heavy, (int)p->charge,
                 (int)p->charge_read, (int)p->n_neutralised, (int)p->undefined_stereo);
    for (int i = 0; i < CH_N_DESCRIPTORS; i++)
        pl_text_addf(out, " %s=%.7g", ch_descriptors[i].name, p->descriptor[i]);
    pl_text_addf(out, "\n   geometry [%s] others %d", p->geometry, (int)p->n_other);
    if (!given && p->geometry[0] != '\0')
        pl_text_addf(out, " E~%.3f D~%.3f", p->energy, inverse_distances(&p->mol));
    else
        pl_text_addf(out, " energy %s", isnan(p->energy) ? "none" : "known");
    pl_text_add(out, "\n");
    mol_say(out, &p->mol, given);
    for (int32_t k = 0; k < p->n_other; k++)
        pl_text_addf(out, "   other: %d atoms D~%.3f\n", (int)p->other[k].n_atoms, inverse_distances(&p->other[k]));
}

static void record_prepare(pl_text *out, ch_worker *w, const char *text, size_t len, const char *format, const ch_prepare_opts *o)
{
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    ch_prepared p;
    pl_code code = ch_worker_prepare(w, text, len, format, o, &p, mem, &err);

    if (code != PL_OK && code != PL_EINPUT)
        fail_msg("%s", err.text);
    assert_int_equal(code == PL_OK, p.code == CH_OK);
    prepared_say(out, &p);
    if (p.code == CH_OK)
        assert_int_equal(ch_mol_check(&p.mol, NULL), PL_OK);
    pl_arena_free(mem);
}

/* ---- files ------------------------------------------------------------------------------ */

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static int not_hidden(const struct dirent *e) { return e->d_name[0] != '.'; }

static void file_say(pl_text *out, ch_worker *w, const char *path)
{
    const ch_reader_opts ropts = { .lister = w };
    ch_prepare_opts o = ch_prepare_defaults();
    pl_error err = { 0 };
    bool more = true;
    ch_record rec;
    ch_reader *r;
    int n = 0;

    o.conformer = CH_3D_KEEP;
    if (ch_reader_open(&r, path, NULL, &ropts, &err) != PL_OK)
        fail_msg("%s", err.text);
    while (ch_reader_next(r, &rec, &more, &err) == PL_OK && more && n++ < 6) {
        pl_text_addf(out, "%d %s [%s] %s\n", (int)rec.ordinal, rec.format, rec.title, rec.problem != NULL ? rec.problem : "");
        if (rec.problem == NULL)
            record_prepare(out, w, rec.text, rec.len, rec.format, &o);
    }
    ch_reader_close(r);
}

static void what_the_worker_tells_of_messy_files_is_known(void **state)
{
    ch_worker *w = golden_worker_open();
    struct dirent **name;
    pl_text out = { 0 };
    int n = scandir(MOLSIEVE_TESTS "/data/messy/files", &name, not_hidden, by_name);
    (void)state;

    assert_true(n > 60);
    for (int i = 0; i < n; i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/data/messy/files/%s", MOLSIEVE_TESTS, name[i]->d_name);
        pl_text_addf(&out, "== %s\n", name[i]->d_name);
        file_say(&out, w, path);
        free(name[i]);
    }
    free(name);
    ch_worker_close(w);
    golden_check(MOLSIEVE_TESTS "/golden/molecules_messy.txt", &out);
}

/* ---- drawn molecules --------------------------------------------------------------------- */

typedef struct drawn {
    const char *smiles;
    void (*change)(ch_prepare_opts *o);
} drawn;

static void flat(ch_prepare_opts *o) { o->conformer = CH_3D_NONE; }

static void whole(ch_prepare_opts *o)
{
    flat(o);
    o->largest_fragment = false;
}

static void neutral(ch_prepare_opts *o)
{
    flat(o);
    o->neutralise = true;
}

static void ph_low(ch_prepare_opts *o)
{
    flat(o);
    o->ph = 2;
}

static void ph_blood(ch_prepare_opts *o)
{
    flat(o);
    o->ph = 7.4;
}

static void ph_high(ch_prepare_opts *o)
{
    flat(o);
    o->ph = 12;
}

static void few_heavy(ch_prepare_opts *o)
{
    flat(o);
    o->max_heavy_atoms = 6;
}

static void few_atoms(ch_prepare_opts *o) { o->max_atoms = 14; }

static void alerts(ch_prepare_opts *o)
{
    flat(o);
    o->rules = "[OX2H] alcohol\nC(=O)[OX2H1] acid of carbon\n[N+](=O)[O-] nitro\nc1ccccc1 benzene\n";
}

static void uff(ch_prepare_opts *o) { o->force_field = CH_FF_UFF; }

static void no_steps(ch_prepare_opts *o) { o->steps = 0; }

static void several(ch_prepare_opts *o)
{
    o->n_structures = 4;
    o->window = 20;
}

static void built(ch_prepare_opts *o) { o->seed = 7; }

static const drawn drawings[] = {
    { "CC(=O)Oc1ccccc1C(=O)O", flat },
    { "CC(=O)Oc1ccccc1C(=O)[O-].[Na+]", flat },
    { "CC(=O)Oc1ccccc1C(=O)[O-].[Na+]", whole },
    { "CC(=O)Oc1ccccc1C(=O)[O-].[Na+].O", neutral },
    { "c1ccncc1.Cl", flat },
    { "C[NH3+].[Cl-].[Cl-].[K+]", neutral },
    { "CCO.CCN", flat },
    { "CCCO.CCCN", flat },
    { "[Na+].[Cl-]", flat },
    { "[Na+].[Cl-]", whole },
    { "O", flat },
    { "[H][H]", flat },
    { "[2H]C([2H])([2H])O", flat },
    { "[13CH3]C", flat },
    { "C[C@H](N)C(=O)O", flat },
    { "C[C@@H](N)C(=O)O", flat },
    { "CC(N)C(=O)O", flat },
    { "C/C=C/C", flat },
    { "C/C=C\\C", flat },
    { "CC=CC", flat },
    { "F[C@]12CC[C@@H](C1)C2", flat },
    { "C[N+](C)(C)CC(=O)[O-]", neutral },
    { "C[N+](C)(C)C", neutral },
    { "[O-][N+](=O)c1ccccc1", neutral },
    { "CS(=O)(=O)[O-]", neutral },
    { "OP(=O)([O-])[O-]", neutral },
    { "[NH3+][C@@H](C)C(=O)[O-]", neutral },
    { "c1cc[nH+]cc1", neutral },
    { "CC(=O)O", ph_low },
    { "CC(=O)O", ph_blood },
    { "CCN", ph_blood },
    { "CCN", ph_high },
    { "NCC(=O)O", ph_low },
    { "NCC(=O)O", ph_blood },
    { "NCC(=O)O", ph_high },
    { "NC(=N)NCCC[C@H](N)C(=O)O", ph_blood },
    { "N[C@@H](Cc1c[nH]cn1)C(=O)O", ph_low },
    { "N[C@@H](Cc1c[nH]cn1)C(=O)O", ph_blood },
    { "Oc1ccccc1", ph_blood },
    { "Oc1ccccc1", ph_high },
    { "Oc1ccc(cc1)[N+](=O)[O-]", ph_blood },
    { "CS", ph_high },
    { "OP(=O)(O)O", ph_blood },
    { "CS(=O)(=O)O", ph_low },
    { "CS(=O)(=O)N", ph_high },
    { "C1CN(C)CCN1", ph_blood },
    { "c1ccncc1", ph_low },
    { "Nc1ccccc1", ph_low },
    { "CC(=O)[O-].[Na+]", ph_blood },
    { "O=c1[nH]c(=O)[nH]cc1", ph_high },
    { "OB(O)c1ccccc1", ph_high },
    { "CCCCCC", few_heavy },
    { "CCCCCCC", few_heavy },
    { "CCCC", few_atoms },
    { "CCCCC", few_atoms },
    { "OCC(=O)O", alerts },
    { "O=[N+]([O-])c1ccc(O)cc1", alerts },
    { "CC", alerts },
    { "C1CC", flat },
    { "C(C", flat },
    { "C=", flat },
    { "Xx", flat },
    { "[Zz]", flat },
    { "*C", flat },
    { "C[R]", flat },
    { "C~C", flat },
    { "C.", flat },
    { "", flat },
    { "[CH3]", flat },
    { "[Fe]", flat },
    { "[Cu+2].[O-]C=O.[O-]C=O", flat },
    { "C[Si](C)(C)C", flat },
    { "FS(F)(F)(F)(F)F", flat },
    { "O=S1(=O)NC(=O)c2ccccc12", flat },
    { "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", flat },
    { "CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O", flat },
    { "CN1CCC[C@H]1c1cccnc1", flat },
    { "C1=CC=CC=C1", flat },
    { "c1ccc2ccccc2c1", flat },
    { "C1CC2CCC1C2", flat },
    { "N#CC#N", flat },
    { "OC(=O)CC(O)(CC(=O)O)C(=O)O", flat },
    { "O", built },
    { "CCO", built },
    { "c1ccccc1", built },
    { "C[C@H](N)C(=O)O", built },
    { "C/C=C\\C", built },
    { "CC#N", built },
    { "C1CCCCC1", built },
    { "C1CC1", built },
    { "CC", uff },
    { "c1ccccc1", uff },
    { "CCO", no_steps },
    { "CCCC", several },
    { "CB(O)O", built },
    { "[Fe]", built },
    { "C[Se]C", built },
    { "C[P@](CC)c1ccccc1", flat },
    { "C[P@@](CC)c1ccccc1", flat },
    { "CC[Te@+](CCC)C", flat },
    { "CC[As@](C)c1ccccc1", flat },
    { "C[S@](=O)CC", flat },
    { "C[N@+](CC)(CCC)c1ccccc1", flat },
    { "C[N@]1C[C@H]1C", flat },
    { "C[N@@]1C[C@H]1C", flat },
    { "C/C=C=C=C/C", flat },
    { "C/C=C=C=C\\C", flat },
    { "C(/C)=C=C=C/C", flat },
    { "C/C=C/C=C=C=C\\C", flat },
    { "CC=[C@]=CC", flat },
    { "CC=[C@@]=CC", flat },
    { "OC(Br)=[C@@]=C(F)CC", flat },
    { "C(=[C@]=CC)C=[C@]=CC", flat },
    { "CC=C=CC", flat },
    { "[2H]C([2H])([2H])O", built },
    { "[2H]c1ccccc1", built },
    { "[13CH3]C[18OH]", built },
    { "CC=[C@]=CC", built },
    { "CC=[C@@]=CC", built },
    { "C/C=C=C=C/C", built },
    { "C/C=C=C=C\\C", built },
    { "C/C=C/Cl", built },
    { "C[C@H](F)/C=C/Cl", built },
    { "C[C@@](F)(Cl)Br", built },
    { "CC(=O)NC", built },
    { "C[C@H](F)Cl", uff },
    { "C/C=C\\C", uff },
    { "C/C=C/C", uff },
    { "[2H]OC", uff },
    { "C[Se]C", uff },
    { "FB(F)F", uff },
};

static void what_the_worker_tells_of_drawn_molecules_is_known(void **state)
{
    ch_worker *w = golden_worker_open();
    pl_text out = { 0 };
    (void)state;

    for (size_t i = 0; i < sizeof drawings / sizeof *drawings; i++) {
        ch_prepare_opts o = ch_prepare_defaults();
        drawings[i].change(&o);
        pl_text_addf(&out, "== %zu %s\n", i + 1, drawings[i].smiles);
        record_prepare(&out, w, drawings[i].smiles, strlen(drawings[i].smiles), "smi", &o);
    }
    ch_worker_close(w);
    golden_check(MOLSIEVE_TESTS "/golden/molecules_drawn.txt", &out);
}

/* ---- structures as files ------------------------------------------------------------------- */

static void text_say(pl_text *out, const char *what, pl_code code, const char *text, const pl_error *err)
{
    pl_text_addf(out, "-- %s: ", what);
    golden_bytes(out, code == PL_OK ? text : err->text, strlen(code == PL_OK ? text : err->text), 2500);
    pl_text_add(out, "\n");
}

static void what_the_worker_writes_is_known(void **state)
{
    static const char *const smiles[] = { "CC(=O)[O-]", "C[C@H](N)O", "c1ccccc1", "[13CH4]", "F/C=C/F" };
    static const char *const formats[] = { "sdf", "mol", "mol2", "smi", "can", "inchi", "xyz", "pdb", "cml", "none" };
    pl_arena *mem = pl_arena_new(0);
    ch_worker *w = golden_worker_open();
    ch_prepare_opts o = ch_prepare_defaults();
    pl_text out = { 0 };
    (void)state;

    o.conformer = CH_3D_NONE;
    for (size_t i = 0; i < sizeof smiles / sizeof *smiles; i++) {
        pl_error err = { 0 };
        const char *text = "";
        ch_prepared p;
        DONE(ch_worker_prepare(w, smiles[i], strlen(smiles[i]), "smi", &o, &p, mem, &why));
        pl_text_addf(&out, "== %s\n", smiles[i]);
        for (int32_t k = 0; k < p.mol.n_atoms && p.mol.xyz != NULL; k++)
            for (int d = 0; d < 3; d++)
                p.mol.xyz[k][d] = 1.5f * (float)((k >> d) & 1) + 0.25f * (float)k;
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
            pl_code code = ch_worker_write(w, &p.mol, k % 2 ? NULL : "a title", formats[k], &text, mem, &err);
            text_say(&out, formats[k], code, text, &err);
        }
        pl_code drawing = ch_worker_svg(w, smiles[i], &text, mem, &err);
        text_say(&out, "svg", drawing, text, &err);
    }
    ch_worker_close(w);
    pl_arena_free(mem);
    golden_check(MOLSIEVE_TESTS "/golden/molecules_written.txt", &out);
}

/* ---- questions ------------------------------------------------------------------------------ */

static void what_the_worker_answers_is_known(void **state)
{
    static const char rules[] = "[OX2H] alcohol\n[OX2H\nC(( x\n\nQq y\nc1ccccc1 benzene\n";
    static const char *const formats[] = { "smi", "sdf", "cml", "g09", "none", "", "xyz", "qm9bin", "png" };
    pl_arena *mem = pl_arena_new(0);
    ch_worker *w = golden_worker_open();
    pl_text out = { 0 };
    ch_bad_rule *bad;
    int32_t n_bad;
    (void)state;

    DONE(ch_worker_rules(w, rules, &bad, &n_bad, mem, &why));
    for (int32_t i = 0; i < n_bad; i++)
        pl_text_addf(&out, "rule %d, column %d\n", (int)bad[i].rule, (int)bad[i].column);
    DONE(ch_worker_rules(w, "C ethane\n", &bad, &n_bad, mem, &why));
    assert_int_equal(n_bad, 0);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        bool yes;
        DONE(ch_worker_reads(w, formats[i], &yes, &why));
        pl_text_addf(&out, "%s %s\n", formats[i], yes ? "yes" : "no");
    }
    ch_worker_close(w);
    pl_arena_free(mem);
    golden_check(MOLSIEVE_TESTS "/golden/molecules_answers.txt", &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_worker_answers_is_known),
        cmocka_unit_test(what_the_worker_writes_is_known),
        cmocka_unit_test(what_the_worker_tells_of_drawn_molecules_is_known),
        cmocka_unit_test(what_the_worker_tells_of_messy_files_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
