/* SPDX-License-Identifier: Apache-2.0 */
/* What the worker reads of each record of data/read.txt, or why it does not, against golden/read.txt: pairs of records of which one is
 * just right and one just wrong. Behind "keep:" its positions are kept. Made with Open Babel 3.1.1; skipped with another version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/common/descriptors.h"
#include "chem/worker/worker_client.h"
#include "golden/golden_text.h"
#include "golden/golden_worker.h"

enum { ROOM = 1 << 20 };

/* In another order of atoms a sum has other last digits. */
static const char *other_descriptor(const ch_prepared *p, const ch_prepared *q)
{
    for (int k = 0; k < CH_N_DESCRIPTORS; k++)
        if (!(fabs((double)p->descriptor[k] - (double)q->descriptor[k]) <= 1e-4 + 1e-5 * fabs((double)p->descriptor[k])) &&
            !(isnan(p->descriptor[k]) && isnan(q->descriptor[k])))
            return ch_descriptors[k].name;
    return NULL;
}

/* The SMILES of a molecule is the molecule: it is read as the same one. */
static void read_back(pl_text *out, ch_worker *w, const ch_prepared *p, ch_prepare_opts o)
{
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    const char *other;
    ch_prepared q;

    o.conformer = CH_3D_NONE;
    if (ch_worker_prepare(w, p->smiles, strlen(p->smiles), "smi", &o, &q, mem, &err) != PL_OK)
        pl_text_addf(out, "; its SMILES: %s", q.message);
    else if (strcmp(p->inchikey, q.inchikey) != 0 || p->mol.n_atoms != q.mol.n_atoms)
        pl_text_addf(out, "; its SMILES: %s, %d atoms, %s", q.smiles, (int)q.mol.n_atoms, q.inchikey);
    else if ((other = other_descriptor(p, &q)) != NULL)
        pl_text_addf(out, "; its SMILES: another %s", other);
    pl_arena_free(mem);
}

/* The sum of 1/distance over all pairs of heavy atoms: hydrogens may have been added. */
static double inverse_distances(const ch_mol *m)
{
    double sum = 0;

    for (int32_t i = 0; i < m->n_atoms; i++)
        for (int32_t j = 0; j < i && m->z[i] > 1; j++)
            sum += m->z[j] == 1
                       ? 0
                       : 1 / hypot(hypot((double)m->xyz[i][0] - (double)m->xyz[j][0], (double)m->xyz[i][1] - (double)m->xyz[j][1]),
                                   (double)m->xyz[i][2] - (double)m->xyz[j][2]);
    return sum;
}

static void record_say(pl_text *out, ch_worker *w, const char *format, const char *text, size_t len)
{
    const bool keep = strncmp(format, "keep:", 5) == 0;
    pl_arena *mem = pl_arena_new(0);
    ch_prepare_opts o = ch_prepare_defaults();
    pl_error err = { 0 };
    ch_prepared p;

    o.conformer = keep ? CH_3D_KEEP : CH_3D_NONE;
    o.largest_fragment = false;
    const pl_code code = ch_worker_prepare(w, text, len, keep ? format + 5 : format, &o, &p, mem, &err);
    if (code != PL_OK && code != PL_EINPUT)
        fail_msg("%.*s: %s", (int)len, text, err.text);
    assert_int_equal(code == PL_OK, p.code == CH_OK);
    pl_text_addf(out, "%s ", ch_status_name(p.code));
    const char *said = p.code == CH_OK ? p.smiles : p.message;
    golden_bytes(out, said, strlen(said), 300);
    if (p.code == CH_OK)
        pl_text_addf(out, " charge %d, %d heavy atoms of %d", (int)p.charge, (int)p.n_heavy, (int)p.mol.n_atoms);
    if (p.code == CH_OK && keep)
        pl_text_addf(out, ", %s ~%.4f", p.geometry, inverse_distances(&p.mol));
    if (p.code == CH_OK)
        read_back(out, w, &p, o);
    pl_text_add(out, "\n");
    pl_arena_free(mem);
}

/* Of a file that the worker splits: each molecule, or what is wrong with it. */
static void list_say(pl_text *out, ch_worker *w, const char *format, const char *text, size_t len)
{
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    ch_listing list = { 0 };

    if (ch_worker_list(w, text, len, format, &list, mem, &err) != PL_OK)
        pl_text_addf(out, "%s\n", err.text);
    for (int32_t i = 0; i < list.n; i++)
        if (list.problem[i][0] != '\0')
            pl_text_addf(out, "not read: %s\n", list.problem[i]);
        else
            record_say(out, w, "sdf", list.text[i], list.len[i]);
    if (list.message != NULL && list.message[0] != '\0')
        pl_text_addf(out, "%s\n", list.message);
    pl_arena_free(mem);
}

/* Behind "== smi" each line is a record, behind another format all lines up to the next "== " are one. */
static void block_say(pl_text *out, ch_worker *w, const char *format, const char *text, size_t len, int n)
{
    if (strcmp(format, "smi") != 0) {
        pl_text_addf(out, "%d %s: ", n, format);
        if (strncmp(format, "list:", 5) == 0)
            list_say(out, w, format + 5, text, len);
        else
            record_say(out, w, format, text, len);
        return;
    }
    for (const char *line = text; line < text + len; line += strcspn(line, "\n") + 1) {
        const size_t end = strcspn(line, "\n");
        pl_text_addf(out, "%.*s: ", (int)end, line);
        record_say(out, w, "smi", line, end);
    }
}

static void what_is_read_of_each_record_is_known(void **state)
{
    ch_worker *w = golden_worker_open();
    char *data = calloc(1, ROOM), format[16];
    FILE *file = fopen(MOLSIEVE_TESTS "/data/read.txt", "r");
    pl_text out = { 0 };
    int n = 0;

    (void)state;
    assert_true(data != NULL && file != NULL);
    assert_in_range(fread(data, 1, ROOM - 1, file), 1000, ROOM - 2);
    (void)fclose(file);
    for (char *at = data; sscanf(at, "== %15s", format) == 1; n++) {
        char *text = strchr(at, '\n') + 1, *next = strstr(text - 1, "\n== ");
        const size_t len = next != NULL ? (size_t)(next + 1 - text) : strlen(text);
        block_say(&out, w, format, text, len, n + 1);
        at = text + len;
    }
    assert_true(n > 300);
    ch_worker_close(w);
    free(data);
    golden_check(MOLSIEVE_TESTS "/golden/read.txt", &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_read_of_each_record_is_known) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
