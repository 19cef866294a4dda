/* SPDX-License-Identifier: Apache-2.0 */
#include "mmff_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"
#include "chem/records/record.h"
#include "pipeline/base/file.h"
#include "pipeline/base/text.h"

enum { MAX_MOLECULES = 2000 };

const char *suite_tables(void)
{
    const char *named = getenv("BABEL_DATADIR");
    return named != NULL ? named : MOLSIEVE_FORCE_FIELD_TABLES;
}

/* ---- V2000 ---- */

/* The number in columns of a line. */
static double columns(const char *line, int from, int n)
{
    char field[16] = "";
    const size_t length = strcspn(line, "\n");

    for (int k = 0; k < n && (size_t)(from + k) < length; k++)
        field[k] = line[from + k];
    return atof(field);
}

static const char *next(const char *line)
{
    const char *end = strchr(line, '\n');
    return end != NULL ? end + 1 : line + strlen(line);
}

static const char *read_atoms(suite_molecule *m, const char *line)
{
    for (int32_t i = 0; i < m->mol.n_atoms; i++, line = next(line)) {
        char symbol[4] = { line[31], line[32] != ' ' ? line[32] : '\0', '\0' };
        const int charge = (int)columns(line, 36, 3);
        m->mol.z[i] = (uint8_t)ch_element_number(symbol);
        m->mol.charge[i] = (int8_t)(charge > 0 ? 4 - charge : 0);
        for (int x = 0; x < 3; x++) {
            m->xyz[i][x] = columns(line, 10 * x, 10);
            m->mol.xyz[i][x] = (float)m->xyz[i][x];
        }
    }
    return line;
}

static int compare_bonds(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return x[0] != y[0] ? x[0] - y[0] : x[1] - y[1];
}

static const char *read_bonds(suite_molecule *m, const char *line, pl_arena *mem)
{
    const int32_t n = m->mol.n_bonds;
    int32_t(*rows)[3] = pl_arena_get(mem, (size_t)n, sizeof *rows);

    for (int32_t b = 0; b < n && rows != NULL; b++, line = next(line)) {
        const int32_t i = (int32_t)columns(line, 0, 3) - 1, j = (int32_t)columns(line, 3, 3) - 1;
        rows[b][0] = i < j ? i : j;
        rows[b][1] = i < j ? j : i;
        rows[b][2] = (int32_t)columns(line, 6, 3);
    }
    qsort(rows, (size_t)n, sizeof *rows, compare_bonds);
    for (int32_t b = 0; b < n && rows != NULL; b++) {
        m->mol.bond[b][0] = rows[b][0];
        m->mol.bond[b][1] = rows[b][1];
        m->mol.order[b] = (uint8_t)rows[b][2];
    }
    return line;
}

static void read_charges(suite_molecule *m, const char *line)
{
    if (strstr(line, "\nM  CHG") != NULL)
        memset(m->mol.charge, 0, (size_t)m->mol.n_atoms);
    for (; *line != '\0'; line = next(line)) {
        if (strncmp(line, "M  CHG", 6) != 0)
            continue;
        for (int k = 0; k < (int)columns(line, 6, 3); k++)
            m->mol.charge[(int)columns(line, 9 + 8 * k, 4) - 1] = (int8_t)columns(line, 13 + 8 * k, 4);
    }
}

static pl_code read_molecule(suite_molecule *m, const ch_record *record, pl_arena *mem, pl_error *err)
{
    const char *line = next(next(next(record->text)));
    const int32_t n_atoms = (int32_t)columns(line, 0, 3), n_bonds = (int32_t)columns(line, 3, 3);
    const pl_code code = ch_mol_alloc(&m->mol, n_atoms, n_bonds, mem, err);

    m->name = pl_strdup(mem, record->title);
    m->xyz = pl_arena_get(mem, (size_t)n_atoms, sizeof *m->xyz);
    if (code != PL_OK || m->xyz == NULL)
        return code;
    line = read_atoms(m, next(line));
    read_charges(m, read_bonds(m, line, mem));
    return ch_mol_check(&m->mol, err);
}

/* ---- energies ---- */

/* name,total,vdw,electrostatic,bond,angle,stretch_bend,out_of_plane,torsion */
static pl_code read_energies(suite *s, const char *folder, pl_arena *mem, pl_error *err)
{
    static const int class[] = { CH_VDW, CH_ELECTROSTATIC, CH_BOND, CH_ANGLE, CH_STRETCH_BEND, CH_OUT_OF_PLANE, CH_TORSION };
    const char *path = pl_sprintf(mem, "%s/energies.csv", folder);
    pl_bytes bytes;
    pl_code code = pl_file_read(&bytes, path, mem, err);

    if (code != PL_OK)
        return code;
    const char *line = bytes.data;
    for (int i = 0; i < s->n; i++) {
        line = next(line);
        suite_molecule *m = &s->molecules[i];
        const size_t n = strcspn(line, ",");
        if (n != strlen(m->name) || strncmp(line, m->name, n) != 0)
            return pl_fail(err, PL_EDATA, "%s: not the row of %s", path, m->name);
        char *at = strchr(line + n + 1, ',');
        for (int c = 0; c < CH_N_TERM_CLASSES && at != NULL; c++)
            m->energy[class[c]] = strtod(at + 1, &at);
    }
    return PL_OK;
}

pl_code suite_read(suite *out, const char *folder, pl_arena *mem, pl_error *err)
{
    ch_reader *reader = NULL;
    ch_record record;
    bool more;
    pl_code code = ch_reader_open(&reader, pl_sprintf(mem, "%s/molecules.sdf.gz", folder), NULL, NULL, err);

    *out = (suite){ .molecules = PL_NEW(mem, suite_molecule, MAX_MOLECULES) };
    while (code == PL_OK && (code = ch_reader_next(reader, &record, &more, err)) == PL_OK && more && out->n < MAX_MOLECULES)
        code = read_molecule(&out->molecules[out->n++], &record, mem, err);
    ch_reader_close(reader);
    return code != PL_OK ? code : read_energies(out, folder, mem, err);
}

/* ---- classes ---- */

ch_terms suite_only(const ch_terms *terms, int class, pl_arena *mem)
{
    ch_terms out = *terms;
    int32_t *const count[] = { &out.n_bonds, &out.n_angles, &out.n_stretch_bends, &out.n_out_of_planes, &out.n_torsions };

    for (int c = 0; c <= CH_TORSION; c++)
        if (class != CH_N_TERM_CLASSES && class != c)
            *count[c] = 0;
    if (class != CH_N_TERM_CLASSES && class < CH_VDW)
        out.n_pairs = 0;
    out.pairs = PL_NEW(mem, ch_pair_term, out.n_pairs + 1);
    for (int32_t k = 0; k < out.n_pairs && out.pairs != NULL; k++) {
        out.pairs[k] = terms->pairs[k];
        if (class == CH_VDW)
            out.pairs[k].charges = 0;
        if (class == CH_ELECTROSTATIC)
            out.pairs[k].epsilon = 0;
    }
    return out;
}
