/* SPDX-License-Identifier: Apache-2.0 */
/* Drawings of the molecules of data/redrawn.smi, what is read of them when their marks are changed, and what is read of structures, against
 * golden/redrawn.txt. Made with Open Babel 3.1.1; skipped with another version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/worker/worker_client.h"
#include "golden/golden_text.h"
#include "golden/golden_worker.h"

enum { ROOM = 1 << 20, NEITHER = 4, CROSSED = 3, SMALL = 16 }; /* SMALL: heavy atoms of what is built */

/* ---- the picture ------------------------------------------------------------------------ */

/* Of a picture: its elements in order, its words, and the sum of its numbers, each with a weight of its own. */
static void picture_say(pl_text *out, const char *svg)
{
    double sum = 0;
    int n = 0;

    for (const char *s = svg; *s != '\0';) {
        char *end;
        const double x = isdigit((unsigned char)*s) || *s == '-' ? strtod(s, &end) : (end = (char *)(uintptr_t)s, 0.0);
        if (end > s) {
            sum += x * (1 + (n++ * 37) % 101);
            s = end;
            continue;
        }
        if (*s == '<' && s[1] != '/')
            pl_text_addf(out, "%c", s[1]);
        if (*s == '>' && s[1] != '\n' && s[1] != '<') {
            const size_t len = strcspn(s + 1, "<");
            golden_bytes(out, s + 1, len, 200);
            s += len;
        }
        s++;
    }
    pl_text_addf(out, " %d numbers @%.4f\n", n, sum);
}

/* ---- the molfile and its variants ------------------------------------------------------ */

typedef struct molfile {
    char text[ROOM / 8];
    char *atom, *bond; /* the first line of each: 31 columns of positions, and 12 of a bond */
    int n_atoms, n_bonds;
} molfile;

static char *line_at(char *first, int k)
{
    while (k-- > 0)
        first = strchr(first, '\n') + 1;
    return first;
}

static void molfile_take(molfile *m, const char *text)
{
    assert_in_range(strlen(text), 1, sizeof m->text - 1);
    memcpy(m->text, text, strlen(text) + 1);
    char *counts = line_at(m->text, 3);
    assert_int_equal(sscanf(counts, "%3d%3d", &m->n_atoms, &m->n_bonds), 2);
    m->atom = line_at(counts, 1);
    m->bond = line_at(m->atom, m->n_atoms);
}

static char *order_of(char *bond) { return bond + 8; }
static char *mark_of(char *bond) { return bond + 11; }

/* The k-th bond with a mark, counted from 0, or NULL. */
static char *marked(molfile *m, int k)
{
    char *bond = m->bond;

    for (int b = 0; b < m->n_bonds; b++, bond = line_at(bond, 1))
        if (*order_of(bond) == '1' && *mark_of(bond) != '0' && k-- == 0)
            return bond;
    return NULL;
}

static bool set_mark(char *bond, int mark)
{
    if (bond != NULL)
        *mark_of(bond) = (char)('0' + mark);
    return bond != NULL;
}

static bool as_drawn(molfile *m) { return m->n_atoms > 0; }
static bool first_unmarked(molfile *m) { return set_mark(marked(m, 0), 0); }
static bool first_either(molfile *m) { return set_mark(marked(m, 0), NEITHER); }
static bool second_either(molfile *m) { return set_mark(marked(m, 1), NEITHER); }

static bool other_side(char *bond) { return bond != NULL && set_mark(bond, *mark_of(bond) == '1' ? 6 : 1); }

static bool first_other_side(molfile *m) { return other_side(marked(m, 0)); }

static bool every_other_side(molfile *m)
{
    int k = 0;

    while (other_side(marked(m, k)))
        k++;
    return k > 1;
}

/* The mark stands at the other end of the bond. */
static bool first_turned(molfile *m)
{
    char *bond = marked(m, 0), begin[3];

    if (bond == NULL)
        return false;
    memcpy(begin, bond, 3);
    memcpy(bond, bond + 3, 3);
    memcpy(bond + 3, begin, 3);
    return true;
}

static bool mirrored(molfile *m)
{
    char *atom = m->atom, x[12];

    for (int i = 0; i < m->n_atoms; i++, atom = line_at(atom, 1)) {
        (void)snprintf(x, sizeof x, "%10.4f", -strtod(atom, NULL));
        memcpy(atom, x, 10);
    }
    return true;
}

/* A double bond whose form is not known. */
static bool crossed(molfile *m)
{
    char *bond = m->bond;

    for (int b = 0; b < m->n_bonds; b++, bond = line_at(bond, 1))
        if (*order_of(bond) == '2')
            return set_mark(bond, CROSSED);
    return false;
}

/* Each third single bond gets one: most of them mean nothing, or are at odds with others. */
static bool many_marks(molfile *m)
{
    char *bond = m->bond;

    for (int b = 0; b < m->n_bonds; b++, bond = line_at(bond, 1))
        if (*order_of(bond) == '1' && b % 3 == 0)
            set_mark(bond, b % 2 ? 1 : 6);
    return true;
}

/* All atoms on a line. */
static bool no_width(molfile *m)
{
    char *atom = m->atom;

    for (int i = 0; i < m->n_atoms; i++, atom = line_at(atom, 1))
        memcpy(atom + 10, "    0.0000", 10);
    return marked(m, 0) != NULL;
}

static const struct {
    const char *name;
    bool (*change)(molfile *m); /* false: it has nothing to change */
} variants[] = { { "as drawn", as_drawn },
                 { "first mark removed", first_unmarked },
                 { "first mark either", first_either },
                 { "second mark either", second_either },
                 { "first mark of the other side", first_other_side },
                 { "all marks of the other side", every_other_side },
                 { "first mark turned", first_turned },
                 { "mirrored", mirrored },
                 { "crossed", crossed },
                 { "many marks", many_marks },
                 { "no width", no_width } };

/* ---- what is read ---------------------------------------------------------------------- */

/* Nothing is built; what would be is kept. */
static pl_code keep_text(void *ctx, ch_prepared *p, pl_arena *arena, pl_error *err)
{
    (void)arena;
    (void)err;
    *(const char **)ctx = p->built_from;
    p->set_aside = "a test";
    return PL_OK;
}

/* The stereo that the SMILES has no marks for, or "". */
static const char *beside_smiles(const char *built_from)
{
    const char *blank = strchr(built_from, ' ');

    return blank != NULL ? blank : "";
}

/* One line: what differs from `as`, the molecule as it was given. */
static void read_say(pl_text *out, ch_worker *w, const char *format, const char *text, const ch_prepare_opts *o, const char *as)
{
    const ch_input in = { .text = text, .format = format, .len = strlen(text) };
    const char *from = "";
    const ch_known known = { .ctx = &from, .judge = keep_text };
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    ch_prepared p;

    if (ch_worker_prepare_all(w, &in, 1, o, &known, &p, mem, &err) != PL_OK)
        fail_msg("%s: %s", text, err.text);
    const char *said = p.smiles[0] != '\0' ? p.smiles : p.message;
    pl_text_addf(out, " %s ", ch_status_name(p.code));
    if (strcmp(said, as) != 0)
        golden_bytes(out, said, strlen(said), 400);
    else
        pl_text_add(out, "=");
    pl_text_addf(out, "%s charge %d open %d lost %d\n", beside_smiles(from), (int)p.charge, (int)p.undefined_stereo,
                 (int)p.lost_stereo);
    pl_arena_free(mem);
}

static void charges_say(pl_text *out, ch_worker *w, const char *smiles, const char *as)
{
    static const double ph[] = { 2, 5, 7.4, 9, 12 };
    ch_prepare_opts o = ch_prepare_defaults();

    o.neutralise = true;
    pl_text_add(out, "   neutral:");
    read_say(out, w, "smi", smiles, &o, as);
    o.neutralise = false;
    for (size_t i = 0; i < sizeof ph / sizeof *ph; i++) {
        o.ph = ph[i];
        pl_text_addf(out, "   pH %g:", ph[i]);
        read_say(out, w, "smi", smiles, &o, as);
    }
}

static void drawing_say(pl_text *out, ch_worker *w, const char *smiles, const char *as)
{
    ch_prepare_opts o = ch_prepare_defaults();
    pl_arena *mem = pl_arena_new(0);
    molfile *m = calloc(1, sizeof *m);
    pl_error err = { 0 };
    ch_drawn drawn;

    assert_non_null(m);
    if (ch_worker_draw(w, smiles, &drawn, mem, &err) != PL_OK) {
        pl_text_addf(out, "   no drawing: %s\n", err.text);
        drawn.molfile = NULL;
    } else {
        pl_text_addf(out, "   %d overlaps ", (int)drawn.overlaps);
        picture_say(out, drawn.svg);
    }
    for (size_t i = 0; drawn.molfile != NULL && i < sizeof variants / sizeof *variants; i++) {
        molfile_take(m, drawn.molfile);
        if (!variants[i].change(m))
            continue;
        pl_text_addf(out, "   %s:", variants[i].name);
        read_say(out, w, "mol", m->text, &o, as);
    }
    free(m);
    pl_arena_free(mem);
}

/* What is read of the positions of a structure, and of their mirror image. Not of cumulenes, whose ends Open Babel's builder leaves at any
 * angle. */
static void space_say(pl_text *out, ch_worker *w, const char *smiles, const char *as)
{
    ch_prepare_opts o = ch_prepare_defaults();
    pl_arena *mem = pl_arena_new(0);
    ch_prepared p;
    const char *text = NULL;

    o.conformer = CH_3D_GENERATE;
    o.builder = CH_OPENBABEL;
    if (ch_worker_prepare(w, smiles, strlen(smiles), "smi", &o, &p, mem, NULL) != PL_OK)
        pl_text_addf(out, "   no structure: %s\n", ch_status_name(p.code));
    o.builder = CH_NATIVE; /* of what is read, the text for the builder is kept */
    for (int k = 0; p.code == CH_OK && k < 2; k++) {
        for (int32_t i = 0; i < p.mol.n_atoms && k == 1; i++)
            p.mol.xyz[i][0] = -p.mol.xyz[i][0];
        assert_int_equal(ch_worker_write(w, &p.mol, NULL, "sdf", &text, mem, NULL), PL_OK);
        pl_text_addf(out, "   %s:", k == 0 ? "in space" : "in space, mirrored");
        read_say(out, w, "sdf", text, &o, as);
    }
    pl_arena_free(mem);
}

static void molecule_say(pl_text *out, ch_worker *w, const char *smiles)
{
    ch_prepare_opts o = ch_prepare_defaults();
    pl_arena *mem = pl_arena_new(0);
    ch_prepared p;

    o.conformer = CH_3D_NONE;
    pl_text_addf(out, "== %s\n", smiles);
    const pl_code code = ch_worker_prepare(w, smiles, strlen(smiles), "smi", &o, &p, mem, NULL);
    pl_text_addf(out, "   %s %s %s\n", ch_status_name(p.code), code == PL_OK ? p.smiles : p.message, p.inchikey);
    if (code == PL_OK) {
        charges_say(out, w, smiles, p.smiles);
        drawing_say(out, w, p.smiles, p.smiles);
        if (p.n_heavy <= SMALL && strstr(p.smiles, "=C=") == NULL && strstr(p.smiles, "=[C@") == NULL)
            space_say(out, w, smiles, p.smiles);
    }
    pl_arena_free(mem);
}

static void drawings_and_what_is_read_of_them_are_known(void **state)
{
    ch_worker *w = golden_worker_open();
    FILE *file = fopen(MOLSIEVE_TESTS "/data/redrawn.smi", "r");
    pl_text out = { 0 };
    char line[1000];
    int n = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, " \t\n")] = '\0';
        molecule_say(&out, w, line);
        n++;
    }
    (void)fclose(file);
    assert_true(n > 50);
    ch_worker_close(w);
    golden_check(MOLSIEVE_TESTS "/golden/redrawn.txt", &out);
}

/* ---- a change elsewhere ------------------------------------------------------------------ */

/* What is known of the stereo of SMILES and another part. */
static void parts_say(pl_text *out, ch_worker *w, const char *smiles, const char *part, ch_prepare_opts o)
{
    pl_arena *mem = pl_arena_new(0);
    const char *text = pl_sprintf(mem, "%s.%s", smiles, part), *from = "";
    const ch_known known = { .ctx = &from, .judge = keep_text };
    const ch_input in = { .text = text, .format = "smi", .len = strlen(text) };
    ch_prepared p;

    pl_text_reset(out);
    o.largest_fragment = false;
    assert_int_equal(ch_worker_prepare_all(w, &in, 1, &o, &known, &p, mem, NULL), PL_OK);
    pl_text_addf(out, "%s %s %s open %d lost %d %s", p.smiles, p.inchikey, from, (int)p.undefined_stereo, (int)p.lost_stereo,
                 p.message);
    pl_arena_free(mem);
}

/* A group of another part is drawn in another way, or gets a proton: the stereo of this part is as it would be without. */
static void a_change_elsewhere_changes_no_stereo(void **state)
{
    static const char *const part[][2] = { { "FCN(=O)=O", "FC[N+](=O)[O-]" }, { "FCC(=O)[O-]", "FCC(=O)O" } };
    ch_worker *w = golden_worker_open();
    FILE *file = fopen(MOLSIEVE_TESTS "/data/redrawn.smi", "r");
    pl_text is = { 0 }, must = { 0 };
    ch_prepare_opts o = ch_prepare_defaults();
    char line[1000];

    (void)state;
    assert_non_null(file);
    o.neutralise = true;
    while (fgets(line, sizeof line, file) != NULL)
        for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
            line[strcspn(line, " \t\n")] = '\0';
            if (k == 1 && strpbrk(line, "+-") != NULL)
                continue; /* its charge decides which protons move */
            parts_say(&is, w, line, part[k][0], o);
            parts_say(&must, w, line, part[k][1], o);
            if (strcmp(pl_text_str(&is), pl_text_str(&must)) != 0)
                fail_msg("%s with %s:\n%s\nnot\n%s", line, part[k][0], pl_text_str(&is), pl_text_str(&must));
        }
    (void)fclose(file);
    pl_text_free(&is);
    pl_text_free(&must);
    ch_worker_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(drawings_and_what_is_read_of_them_are_known),
                                        cmocka_unit_test(a_change_elsewhere_changes_no_stereo) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
