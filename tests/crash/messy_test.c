/* SPDX-License-Identifier: Apache-2.0 */
/* The messy corpus and QM9's original files through reader and worker: nothing
 * hangs, no record is lost, and each one is a molecule or fails with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/records/record.h"
#include "chem/worker/worker_client.h"

enum { WITH_3D = 2 }; /* records of a file that get a structure: the rest is checked in 2D, for time */

/* A folder with `files` and their manifest, and the expected numbers. */
typedef struct corpus {
    const char *folder;
    int files, molecules, crashers; /* at least */
} corpus;

/* Files whose number of records is not the number of delimiters in the manifest, and why. */
static const struct {
    const char *file;
    int records;
    const char *why;
} exceptions[] = {
    { "ob__c3.cml", 3, "no delimiters in cml; listed by the worker" },
    { "ob__maereader.mae", 2, "no delimiters in mae; listed by the worker" },
    { "ob__random2.smi", 560, "two lines begin with #" },
    { "ob__ant-2026-00770.sdf", 1, "text without $$$$ is a record" },
    { "ob__clusterfuzz-testcase-minimized-fuzz_obconversion_sdf-4554638784528384.sdf", 1, "the same" },
    { "ob__clusterfuzz-testcase-minimized-fuzz_obconversion_sdf-4904772219240448.sdf", 1, "the same" },
    { "rdkit__missingCR.sdf", 1, "the same" },
};

static int records_wanted(const char *file, const char *delimiters)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (strcmp(file, exceptions[i].file) == 0)
            return exceptions[i].records;
    return delimiters[0] != '\0' ? atoi(delimiters) : 1; /* a file of a format without delimiters has one record */
}

/* Reads a file to its end; every record must come to an end, too. */
static int read_file(ch_worker *w, const char *path, int *n_ok)
{
    const ch_reader_opts ropts = { .lister = w };
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_error err = { 0 };
    ch_reader *r;
    ch_record rec;
    bool more;
    int n = 0;

    if (ch_reader_open(&r, path, NULL, &ropts, &err) != PL_OK)
        fail_msg("%s", err.text);
    while (ch_reader_next(r, &rec, &more, &err) == PL_OK && more) {
        ch_prepare_opts o = ch_prepare_defaults();
        ch_prepared p;

        o.conformer = n++ < WITH_3D ? CH_3D_AUTO : CH_3D_NONE;
        if (rec.problem != NULL)
            continue;
        pl_code code = ch_worker_prepare(w, rec.text, rec.len, rec.format, &o, &p, mem, &err);
        if (code == PL_OK) {
            assert_int_equal(ch_mol_check(&p.mol, NULL), PL_OK);
            assert_true(p.mol.n_atoms > 0 && p.smiles[0] != '\0');
            ++*n_ok;
        } else if (code != PL_EINPUT || p.code == CH_OK || p.message[0] == '\0') {
            fail_msg("%s record %d: %s", path, n, err.text);
        }
        pl_arena_reset(mem);
    }
    ch_reader_close(r);
    pl_arena_free(mem);
    return n;
}

static ch_worker *open_worker(double first, double retry)
{
    const ch_worker_opts opts = { .cpu_first_s = first, .cpu_retry_s = retry };
    pl_error err = { 0 };
    ch_worker *w;

    if (ch_worker_open(&w, &opts, &err) != PL_OK)
        fail_msg("%s", err.text);
    return w;
}

/* The cell of column `i` of a manifest row, quotes taken off. */
static void cell(const char *row, int i, char *out, size_t n)
{
    bool quoted = false;
    size_t m = 0;

    for (; *row != '\0' && *row != '\n'; row++) {
        if (*row == '"')
            quoted = !quoted;
        else if (*row == ',' && !quoted)
            i--;
        else if (i == 0 && m + 1 < n)
            out[m++] = *row;
    }
    out[m] = '\0';
}

static int files_in(const char *folder)
{
    struct dirent *e;
    int n = 0;
    DIR *d;

    d = opendir(folder);
    assert_non_null(d);
    while ((e = readdir(d)) != NULL)
        n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static FILE *manifest_open(const corpus *c)
{
    char path[1024], row[4096];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/manifest.csv", c->folder);
    f = fopen(path, "r");
    if (f == NULL)
        fail_msg("cannot read %s", path);
    assert_non_null(fgets(row, sizeof row, f)); /* names of columns */
    return f;
}

/* The file of one row of the manifest; its records are counted in n_all, its molecules in n_ok. */
static void row_check(ch_worker *w, const corpus *c, const char *row, int *n_all, int *n_ok)
{
    char path[1024], name[256], delimiters[32], converted[32];
    int before = *n_ok, n;

    cell(row, 0, name, sizeof name);
    cell(row, 9, delimiters, sizeof delimiters);
    cell(row, 12, converted, sizeof converted);
    (void)snprintf(path, sizeof path, "%s/files/%s", c->folder, name);
    n = read_file(w, path, n_ok);
    if (converted[0] != '\0' && *n_ok - before > atoi(converted))
        fail_msg("%s: %d molecules, Open Babel alone gives %s", name, *n_ok - before, converted);
    if (n != records_wanted(name, delimiters))
        fail_msg("%s: %d records, expected %d", name, n, records_wanted(name, delimiters));
    *n_all += n;
}

static void corpus_check(const corpus *c)
{
    ch_worker *w = open_worker(0.5, 1.0);
    FILE *manifest = manifest_open(c);
    int files = 0, n_ok = 0, n_all = 0, crashers = 0;
    char row[4096], folder[1024];
    int64_t lost;

    while (fgets(row, sizeof row, manifest) != NULL) {
        row_check(w, c, row, &n_all, &n_ok);
        crashers += strstr(row, "CRASHER") != NULL;
        files++;
    }
    (void)fclose(manifest);
    ch_worker_counts(w, NULL, NULL, &lost);
    print_message("%d files, %d records, %d molecules, %d workers lost\n", files, n_all, n_ok, (int)lost);
    (void)snprintf(folder, sizeof folder, "%s/files", c->folder);
    assert_int_equal(files, files_in(folder)); /* no file of the manifest is left out */
    assert_true(files >= c->files && crashers >= c->crashers && n_ok >= c->molecules);
    assert_true(lost >= 1); /* the corpus has files that crash Open Babel */
    ch_worker_close(w);
}

static void every_messy_record_is_a_molecule_or_has_a_reason(void **state)
{
    const char *shared = getenv("MOLSIEVE_SHARED");
    char more[1024];

    (void)state;
    corpus_check(&(corpus){ MOLSIEVE_TESTS "/data/messy", 60, 63, 2 });
    if (shared == NULL || shared[0] == '\0')
        return;
    (void)snprintf(more, sizeof more, "%s/data/messy", shared);
    corpus_check(&(corpus){ more, 123, 2000, 11 });
}

/* The formula of the SMILES that a QM9 file has itself. */
static void qm9_identity(ch_worker *w, const ch_record *rec, pl_arena *mem, char *smiles, size_t n_smiles)
{
    const char *line = rec->raw, *tab;
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p;
    int lines = atoi(rec->raw) + 3; /* count, comment, atoms, frequencies */

    for (int i = 0; i < lines; i++)
        line = strchr(line, '\n') + 1;
    tab = strchr(line, '\t');
    assert_non_null(tab);
    o.conformer = CH_3D_NONE;
    assert_int_equal(ch_worker_prepare(w, line, (size_t)(tab - line), "smi", &o, &p, mem, NULL), PL_OK);
    (void)snprintf(smiles, n_smiles, "%.14s %s", p.inchikey, p.formula);
}

static void original_qm9_files_give_the_molecule_they_name(void **state)
{
    static const int ids[] = { 1,  2,  3,  4,  5,  6,   7,    8,    9,    10,   12,   13,   15,   16,   17,
                               18, 19, 20, 21, 23, 212, 1460, 1513, 1616, 2091, 2624, 2693, 2993, 3299, 3454 };
    ch_worker *w = open_worker(2, 4);
    pl_arena *mem = pl_arena_new(1 << 16);
    int files = 0;
    (void)state;

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char path[1024], want[128], got[128];
        ch_reader *r;
        ch_record rec;
        ch_prepared p;
        bool more;

        (void)snprintf(path, sizeof path, MOLSIEVE_TESTS "/data/qm9/xyz_original/dsgdb9nsd_%06d.xyz", ids[i]);
        assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
        assert_true(more && rec.problem == NULL);
        qm9_identity(w, &rec, mem, want, sizeof want);
        assert_int_equal(ch_worker_prepare(w, rec.text, rec.len, rec.format, NULL, &p, mem, NULL), PL_OK);
        assert_string_equal(p.geometry, "input");
        (void)snprintf(got, sizeof got, "%.14s %s", p.inchikey, p.formula);
        assert_string_equal(got, want);
        assert_int_equal(p.mol.n_atoms, atoi(rec.raw));
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
        assert_false(more);
        ch_reader_close(r);
        pl_arena_reset(mem);
        files++;
    }
    assert_int_equal(files, 30);
    pl_arena_free(mem);
    ch_worker_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(original_qm9_files_give_the_molecule_they_name),
        cmocka_unit_test(every_messy_record_is_a_molecule_or_has_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
