/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the charges of each molecule of data/ions.smi, as drawn, in its neutral form and at some pH, against golden/ions.txt.
 * Made with Open Babel 3.1.1; skipped with another version. Neutral forms were compared with those of RDKit's Uncharger, and each that
 * differs was judged by docs/SCIENCE.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/worker/worker_client.h"
#include "golden/golden_text.h"
#include "golden/golden_worker.h"

/* What says that nothing else happened: the atoms that changed are counted, and hydrogens follow the charge. */
static void form_say(pl_text *out, ch_worker *w, const char *smiles, const char *name, ch_prepare_opts o)
{
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    ch_prepared p;

    o.conformer = CH_3D_NONE;
    const pl_code code = ch_worker_prepare(w, smiles, strlen(smiles), "smi", &o, &p, mem, &err);
    if (code != PL_OK && code != PL_EINPUT)
        fail_msg("%s: %s", smiles, err.text);
    pl_text_addf(out, "   %s: ", name);
    if (p.code != CH_OK)
        pl_text_addf(out, "%s %s\n", ch_status_name(p.code), p.message);
    else
        pl_text_addf(out, "%s charge %d, %d atoms, %d changed, %s\n", p.smiles, (int)p.charge, (int)p.mol.n_atoms,
                     (int)p.n_neutralised, p.inchikey);
    pl_arena_free(mem);
}

static void ion_say(pl_text *out, ch_worker *w, const char *line)
{
    static const double ph[] = { 1, 4.5, 7.4, 10, 13 };
    ch_prepare_opts o = ch_prepare_defaults();
    char smiles[200], name[40];

    assert_int_equal(sscanf(line, "%199s", smiles), 1);
    pl_text_addf(out, "== %s\n", line);
    o.largest_fragment = false;
    form_say(out, w, smiles, "as drawn", o);
    o.neutralise = true;
    form_say(out, w, smiles, "neutral", o);
    o.largest_fragment = true;
    if (strchr(smiles, '.') != NULL)
        form_say(out, w, smiles, "its largest part, neutral", o);
    o.largest_fragment = o.neutralise = false;
    for (size_t i = 0; i < sizeof ph / sizeof *ph; i++) {
        o.ph = ph[i];
        (void)snprintf(name, sizeof name, "pH %g", ph[i]);
        form_say(out, w, smiles, name, o);
    }
}

static void what_becomes_of_each_charge_is_known(void **state)
{
    ch_worker *w = golden_worker_open();
    FILE *file = fopen(MOLSIEVE_TESTS "/data/ions.smi", "r");
    pl_text out = { 0 };
    char line[300];
    int n = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#')
            continue;
        ion_say(&out, w, line);
        n++;
    }
    (void)fclose(file);
    assert_true(n > 200);
    ch_worker_close(w);
    golden_check(MOLSIEVE_TESTS "/golden/ions.txt", &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_becomes_of_each_charge_is_known) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
