/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/size_estimate.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chem/records/record.h"
#include "stages/steps/ingest/positions.h"
#include "stages/steps/ingest/prepare_conf.h"
#include "stages/steps/ingest/read_input.h"

enum {
    SAMPLE_FILES = 8,
    SAMPLE_RECORDS = 200,
    UNITS = 16,
    MOST_RECORDS = 500,
    PROGRAM_RECORDS = 16 /* each takes seconds, and a kill costs a unit */
};

/* Atoms with hydrogens per heavy atom of drug-like molecules; how much gzip shrinks text files. */
static const double ATOMS_A_HEAVY = 1.9, GZIP_RATIO = 4;

typedef struct sample {
    double n, atoms, flat;
} sample;

static double heavy_atoms_of_smiles(const char *s)
{
    double n = 0;

    for (; *s != '\0' && !isspace((unsigned char)*s); s++)
        n += (isupper((unsigned char)*s) && *s != 'H') || strchr("cnops", *s) != NULL;
    return n;
}

/* The start of the line that is n lines further on; NULL: there is none. */
static const char *lines_on(const char *s, int n)
{
    for (int i = 0; i < n && s != NULL; i++)
        s = (s = strchr(s, '\n')) != NULL ? s + 1 : NULL;
    return s;
}

static const char v3000_counts[] = "M  V30 COUNTS ", v3000_atoms[] = "M  V30 BEGIN ATOM";

/* In an SDF of version 3000 the line with this word; NULL: it is of version 2000. */
static const char *v3000_find(const ch_record *r, const char *word)
{
    const char *counts = lines_on(r->text, 3), *flag = counts != NULL ? strstr(counts, "V3000") : NULL;

    return flag != NULL && flag < counts + strcspn(counts, "\n") ? strstr(flag, word) : NULL;
}

static double atoms_of_sdf(const ch_record *r)
{
    const char *line = lines_on(r->text, 3), *v3000 = v3000_find(r, v3000_counts);
    char count[4] = { 0 };

    if (v3000 != NULL)
        return fmax(1, strtod(v3000 + sizeof v3000_counts - 1, NULL));
    if (line == NULL)
        return fmax(1, (double)r->raw_len / 60);
    (void)snprintf(count, sizeof count, "%.3s", line);
    return fmax(1, strtod(count, NULL));
}

/* The number of atoms, estimated from the text without parsing it. */
static double atoms_of(const ch_record *r)
{
    if (strcmp(r->format, "smi") == 0)
        return ATOMS_A_HEAVY * heavy_atoms_of_smiles(r->text);
    if (strcmp(r->format, "xyz") == 0)
        return fmax(1, strtod(r->text, NULL));
    return strcmp(r->format, "sdf") == 0 ? atoms_of_sdf(r) : fmax(1, (double)r->raw_len / 60);
}

/* z of an atom's line; 0 if it has none. */
static double z_of(const char *line, bool v3000)
{
    double z = 0;
    char column[11] = { 0 };

    if (v3000) /* number, element, x, y, z */
        return sscanf(line, "M V30 %*s %*s %*s %*s %lf", &z) == 1 ? z : 0;
    if (strlen(line) > 30)
        (void)snprintf(column, sizeof column, "%.10s", line + 20);
    return strtod(column, NULL);
}

/* Whether a record has no 3D positions: no letters for them, or an SDF whose first atoms all have z = 0. */
static bool is_flat(const ch_record *r)
{
    const char *line, *v3000;

    if (strcmp(r->format, "sdf") != 0)
        return strcmp(r->format, "smi") == 0 || strcmp(r->format, "inchi") == 0;
    v3000 = v3000_find(r, v3000_atoms);
    line = v3000 != NULL ? lines_on(v3000, 1) : lines_on(r->text, 4);
    for (int i = 0; i < 10 && line != NULL; i++, line = lines_on(line, 1))
        if (z_of(line, v3000 != NULL) != 0)
            return false;
    return true;
}

static double unpacked_bytes(const char *path)
{
    unsigned char magic[2] = { 0 };
    struct stat st;
    FILE *f = fopen(path, "rbe");
    size_t got = f != NULL ? fread(magic, 1, 2, f) : 0;

    if (f != NULL)
        (void)fclose(f);
    if (stat(path, &st) != 0)
        return 0;
    return (double)st.st_size * (got == 2 && magic[0] == 0x1f && magic[1] == 0x8b ? GZIP_RATIO : 1);
}

/* The first records of a file, scaled to its size; a file that ends before is counted, and what its header tells is not guessed. */
static void sample_file(sample *s, const pl_input *in)
{
    ch_reader_opts opts = { .title_from = in->title_from, .smiles_column = in->smiles_column, .title_column = in->title_column };
    double n = 0, atoms = 0, flat = 0, end = 0, scale = 1;
    ch_reader *reader = NULL;
    ch_record r;
    bool more = true;

    if (ch_reader_open(&reader, in->path, st_input_format(in), &opts, NULL) != PL_OK)
        return;
    while (n < SAMPLE_RECORDS && ch_reader_next(reader, &r, &more, NULL) == PL_OK && more) {
        n++;
        end = (double)r.offset + (double)r.raw_len + 1;
        atoms += r.problem == NULL ? atoms_of(&r) : 0;
        flat += r.problem == NULL && is_flat(&r);
    }
    if (n > 0 && ch_reader_count(reader) > 0)
        scale = (double)ch_reader_count(reader) / n;
    else if (more && end > 0)
        scale = fmax(1, unpacked_bytes(in->path) / end);
    if (ch_reader_atoms(reader) > 0) /* its first molecules may be the smallest */
        atoms = (double)ch_reader_atoms(reader) / scale;
    ch_reader_close(reader);
    s->n += n * scale;
    s->atoms += atoms * scale;
    s->flat += flat * scale;
}

/* Of 8 conformers asked for, drug-like molecules have 4 on average (docs/SCIENCE.md). */
double st_structures_a_molecule(const pl_workflow *wf)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");

    return prepare != NULL ? 1 + 0.45 * (double)(((const st_prepare_conf *)prepare->conf)->structures - 1) : 1;
}

static void guess(st_sizes *out, const pl_workflow *wf)
{
    const pl_step *read = pl_workflow_step(wf, "read");
    const pl_input *in = wf->inputs.items;
    int32_t n = wf->inputs.n < SAMPLE_FILES ? wf->inputs.n : SAMPLE_FILES;
    sample s = { 0 };
    double all;

    for (int32_t i = 0; i < n; i++)
        sample_file(&s, &in[i]);
    if (!(s.n > 0))
        return;
    all = (double)wf->inputs.n / n;
    out->n_records = round(s.n * all);
    out->n = out->n_records;
    out->atoms = s.atoms * all;
    out->flat = s.flat / s.n;
    out->bonds = out->atoms + out->n; /* about two rings */
    out->structures = out->n * st_structures_a_molecule(wf);
    out->n_units = read != NULL ? (int64_t)ceil(out->n_records / (double)((const st_read_conf *)read->conf)->unit) : 0;
}

pl_code st_sizes_get(st_sizes *out, const pl_workflow *wf, pl_store *store, pl_error *err)
{
    /* Bonds of a connected molecule: atoms - 1 + rings. */
    const pl_step *prepare = pl_workflow_step(wf, "prepare");
    static const char sql[] =
        "SELECT count(*), total(n_atoms), total(n_atoms-1+coalesce(rings,0)),"
        " (SELECT n_units FROM stage WHERE name='prepare' AND state='done'),"
        " (SELECT count(*) FROM record), total(coalesce(structures,1)) FROM molecule WHERE ?1 OR geometry<>'none'";
    sqlite3_stmt *st = NULL;
    pl_code code;

    *out = (st_sizes){ .n_units = -1 };
    if (store != NULL) {
        code = pl_db_prepare(store->db, &st, sql, err);
        (void)sqlite3_bind_int(st, 1, prepare != NULL && st_prepare_is_flat(prepare->conf));
        if (pl_db_next(st, &code, err) && sqlite3_column_type(st, 3) != SQLITE_NULL)
            *out = (st_sizes){ .n = sqlite3_column_double(st, 0),
                               .atoms = sqlite3_column_double(st, 1),
                               .bonds = sqlite3_column_double(st, 2),
                               .n_units = sqlite3_column_int64(st, 3),
                               .n_records = sqlite3_column_double(st, 4),
                               .structures = sqlite3_column_double(st, 5) };
        (void)sqlite3_finalize(st);
        if (code != PL_OK || out->n_units >= 0)
            return code;
    }
    guess(out, wf);
    return PL_OK;
}

int64_t st_unit_records(const pl_workflow *wf)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");
    const st_prepare_conf *c = prepare != NULL ? prepare->conf : NULL;
    st_sizes sizes = { 0 };
    int64_t least = 0, share = 0;

    if (pl_workflow_step(wf, "external") != NULL)
        return PROGRAM_RECORDS;
    if (c == NULL || !st_prepare_builds(c) || st_structures_skipped(wf))
        return 1000;
    least = c->conformer == CH_3D_GENERATE ? 50 : 200;
    if (c->builder == CH_NATIVE && c->force_field != CH_FF_UFF && st_sizes_get(&sizes, wf, NULL, NULL) == PL_OK)
        share = (int64_t)(sizes.n_records / UNITS);
    share = share < MOST_RECORDS ? share : MOST_RECORDS;
    return share > least ? share : least;
}
