/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of what asks the chemistry worker is refused in turn: ENOMEM with what it was for each time; and the same worker
 * answers the next question. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/worker/worker_client.h"
#include "pipeline/base/text.h"
#include "tests/heap.h"
#include "tests/told.h"

/* ---- questions: each adds its answer to a text ---- */

typedef pl_code question(ch_worker *w, pl_text *out, pl_arena *mem, pl_error *err);

static void put(pl_text *out, const ch_prepared *p)
{
    pl_text_addf(out, "%d %s|%s %s %s|%s|%s|%s %d atoms, and %d: %.3f\n", (int)p->code, p->message, p->smiles, p->inchikey,
                 p->formula, p->removed, p->alerts, p->geometry, (int)p->mol.n_atoms, (int)p->n_other,
                 p->mol.n_atoms > 0 ? p->energy : 0);
}

static pl_code one_record(ch_worker *w, pl_text *out, pl_arena *mem, pl_error *err)
{
    ch_prepared p;
    const pl_code code = ch_worker_prepare(w, "[Na+].CC(=O)[O-]", 16, "smi", NULL, &p, mem, err);

    if (code == PL_OK)
        put(out, &p);
    return code;
}

static pl_code three_records(ch_worker *w, pl_text *out, pl_arena *mem, pl_error *err)
{
    static const ch_input in[] = { { "CCCO", "smi", 4 }, { "C(", "smi", 2 }, { "ClCC=O", "smi", 6 } };
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared p[3];
    pl_code code;

    opts.rules = "[Cl] chloro\n[CX3H1]=O aldehyde";
    opts.n_structures = 2;
    code = ch_worker_prepare_all(w, in, 3, &opts, NULL, p, mem, err);
    for (int i = 0; i < 3 && code == PL_OK; i++)
        put(out, &p[i]);
    return code;
}

static pl_code one_file(ch_worker *w, pl_text *out, pl_arena *mem, pl_error *err)
{
    static const char text[] = "@<TRIPOS>MOLECULE\nwater\n 3 2\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n 1 O 0 0 0.117 O.3\n"
                               " 2 H 0 0.757 -0.469 H\n 3 H 0 -0.757 -0.469 H\n@<TRIPOS>BOND\n 1 1 2 1\n 2 1 3 1\n";
    ch_listing list;
    const pl_code code = ch_worker_list(w, text, sizeof text - 1, "mol2", &list, mem, err);

    for (int32_t i = 0; code == PL_OK && i < list.n; i++)
        pl_text_addf(out, "%.*s|%s\n", (int)list.len[i], list.text[i], list.problem[i]);
    if (code == PL_OK)
        pl_text_add(out, list.message);
    return code;
}

static pl_code one_text(ch_worker *w, pl_text *out, pl_arena *mem, pl_error *err)
{
    uint8_t z[] = { 8, 1, 1 };
    int8_t charge[] = { 0, 0, 0 };
    float xyz[][3] = { { 0, 0, 0.117F }, { 0, 0.757F, -0.469F }, { 0, -0.757F, -0.469F } };
    int32_t bond[][2] = { { 0, 1 }, { 0, 2 } };
    uint8_t order[] = { CH_SINGLE, CH_SINGLE };
    const ch_mol mol = { .n_atoms = 3, .n_bonds = 2, .z = z, .charge = charge, .xyz = xyz, .bond = bond, .order = order };
    const char *text = NULL;
    const pl_code code = ch_worker_write(w, &mol, "water", "pdbqt", &text, mem, err);

    pl_text_add(out, code == PL_OK ? text : "");
    return code;
}

static pl_code one_picture(ch_worker *w, pl_text *out, pl_arena *mem, pl_error *err)
{
    ch_drawn d;
    const pl_code code = ch_worker_draw(w, "C[C@H](O)F", &d, mem, err);

    if (code == PL_OK)
        pl_text_addf(out, "%s\n%s%d\n", d.svg, d.molfile, (int)d.overlaps);
    return code;
}

static pl_code versions(ch_worker *w, pl_text *out, pl_arena *mem, pl_error *err)
{
    ch_worker_info info[2];
    pl_code code = ch_worker_hello(w, &info[0], err);

    (void)mem;
    if (code == PL_OK)
        code = ch_worker_version(w, &info[1], err);
    if (code == PL_OK)
        pl_text_addf(out, "%s %d, %s %d\n", info[0].openbabel, info[0].n_formats, info[1].openbabel, info[1].tables[0] != '\0');
    return code;
}

static pl_code patterns(ch_worker *w, pl_text *out, pl_arena *mem, pl_error *err)
{
    static const char *const smiles[] = { "CCO", "C(", "CC" };
    int8_t yes[3] = { 0 };
    int32_t n = 0, column = 0;
    ch_bad_rule *bad = NULL;
    bool reads = false;
    pl_code code = ch_worker_rules(w, "[Cl] good\n[Cl bad\nC( bad", &bad, &n, mem, err);

    for (int32_t i = 0; code == PL_OK && i < n; i++)
        pl_text_addf(out, "%d %d, ", (int)bad[i].rule, (int)bad[i].column);
    if (code == PL_OK)
        code = ch_worker_match(w, "CO", smiles, 3, yes, &column, err);
    if (code == PL_OK)
        code = ch_worker_reads(w, "mol2", &reads, err);
    pl_text_addf(out, "%d %d %d, %d, %d\n", yes[0], yes[1], yes[2], (int)column, reads);
    return code;
}

/* ---- refusals ---- */

/* By a worker of its own, which keeps no memory of before. */
static pl_code ask_another(question *ask, pl_text *out, pl_arena *mem, pl_error *err)
{
    ch_worker *w = NULL;
    pl_code code = ch_worker_open(&w, NULL, err);

    if (code == PL_OK)
        code = ask(w, out, mem, err);
    ch_worker_close(w);
    return code;
}

/* False: it makes fewer requests. */
static bool refuse_nth(long nth, bool in_arena, ch_worker *w, question *ask, const char *want, pl_arena *turn)
{
    pl_text out = { 0 };
    pl_error err = { 0 };
    pl_code code;
    bool met;

    pl_arena_reset(turn);
    pl_text_addf(&out, "%*s", 1 << 14, ""); /* room for the answer */
    pl_text_reset(&out);
    pl_arena_refuse(in_arena ? nth : 0);
    atomic_store(&heap_countdown, in_arena ? 0 : nth);
    code = in_arena ? ask(w, &out, turn, &err) : ask_another(ask, &out, turn, &err);
    met = in_arena ? pl_arena_get(turn, 1, 1) != NULL : atomic_exchange(&heap_countdown, 0) == 0;
    pl_arena_refuse(0);
    if (code == PL_OK && strcmp(pl_text_str(&out), want) != 0)
        fail_msg("request %ld: %s\ninstead of %s", nth, pl_text_str(&out), want);
    if (code != PL_OK && (!met || code != PL_ENOMEM || !tells_for_what(err.text)))
        fail_msg("request %ld: code %d, \"%s\"", nth, (int)code, err.text);
    if (code == PL_OK && met)
        fail_msg("request %ld was refused, and nothing said so", nth);
    pl_text_free(&out);
    return met;
}

static void refuse_each(ch_worker *w, question *ask, int in_arena, int of_heap, pl_arena *turn)
{
    pl_text want = { 0 };
    pl_error err = { 0 };
    long n[2] = { 0 };

    if (ask(w, &want, turn, &err) != PL_OK)
        fail_msg("%s", err.text);
    while (refuse_nth(n[0] + 1, true, w, ask, pl_text_str(&want), turn))
        n[0]++;
    while (refuse_nth(n[1] + 1, false, w, ask, pl_text_str(&want), turn))
        n[1]++;
    print_message("%ld and %ld requests\n", n[0], n[1]);
    assert_true(n[0] >= in_arena && n[1] >= of_heap);
    pl_text_free(&want);
}

static void refused_memory_is_told_and_the_worker_goes_on(void **state)
{
    pl_arena *turn = pl_arena_new(1 << 16);
    ch_worker *w = NULL;

    (void)state;
    assert_int_equal(ch_worker_open(&w, NULL, NULL), PL_OK);
    refuse_each(w, one_record, 40, 7, turn);
    refuse_each(w, three_records, 80, 7, turn);
    refuse_each(w, one_file, 5, 7, turn);
    refuse_each(w, one_text, 1, 7, turn);
    refuse_each(w, one_picture, 2, 6, turn);
    refuse_each(w, versions, 0, 8, turn);
    refuse_each(w, patterns, 1, 6, turn);
    ch_worker_close(w);
    pl_arena_free(turn);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(refused_memory_is_told_and_the_worker_goes_on) };

    return cmocka_run_group_tests_name("worker, refused memory", tests, NULL, NULL);
}
