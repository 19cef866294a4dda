/* SPDX-License-Identifier: Apache-2.0 */
#include "sdf_mol.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "chem/molecule/element.h"
#include "chem/structures/check.h"
#include "chem/structures/cycles.h"
#include "mmff_suite.h"

/* The columns from `at` on as a number. */
static long column(const char *line, int at, int width)
{
    char text[16] = "";

    if ((int)strlen(line) > at)
        (void)snprintf(text, sizeof text, "%.*s", width, line + at);
    return strtol(text, NULL, 10);
}

static void read_atom(ch_mol *m, int32_t i, const char *line)
{
    static const int8_t charges[8] = { 0, 3, 2, 1, 0, -1, -2, -3 };
    char symbol[4] = "";

    (void)sscanf(line + 31, "%3s", symbol);
    m->z[i] = (uint8_t)ch_element_number(symbol);
    m->charge[i] = charges[column(line, 36, 3) & 7];
    for (int c = 0; c < 3; c++)
        m->xyz[i][c] = strtof(line + 10 * c, NULL);
}

static void read_charges(ch_mol *m, const char *line)
{
    for (long k = 0; k < column(line, 6, 3); k++)
        m->charge[column(line, (int)(10 + 8 * k), 3) - 1] = (int8_t)column(line, (int)(14 + 8 * k), 3);
}

static void read_bond(ch_mol *m, int32_t at, const char *line)
{
    const int32_t a = (int32_t)column(line, 0, 3) - 1, b = (int32_t)column(line, 3, 3) - 1;
    const int32_t i = a < b ? a : b, j = a < b ? b : a;
    const uint8_t order = (uint8_t)column(line, 6, 3);

    for (; at > 0 && (m->bond[at - 1][0] > i || (m->bond[at - 1][0] == i && m->bond[at - 1][1] > j)); at--) {
        m->bond[at][0] = m->bond[at - 1][0];
        m->bond[at][1] = m->bond[at - 1][1];
        m->order[at] = m->order[at - 1];
    }
    m->bond[at][0] = i;
    m->bond[at][1] = j;
    m->order[at] = order;
}

static void read_one(sdf_mol *out, gzFile f, char *line, int size, pl_arena *mem)
{
    (void)snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(line, "\r\n"), line);
    for (int k = 0; k < 3; k++)
        (void)gzgets(f, line, size);
    const int32_t n = (int32_t)column(line, 0, 3), bonds = (int32_t)column(line, 3, 3);
    if (ch_mol_alloc(&out->mol, n, bonds, mem, NULL) != PL_OK)
        abort();
    for (int32_t i = 0; i < n && gzgets(f, line, size) != NULL; i++)
        read_atom(&out->mol, i, line);
    for (int32_t b = 0; b < bonds && gzgets(f, line, size) != NULL; b++)
        read_bond(&out->mol, b, line);
    while (gzgets(f, line, size) != NULL && strncmp(line, "$$$$", 4) != 0)
        if (strncmp(line, "M  CHG", 6) == 0)
            read_charges(&out->mol, line);
}

int32_t sdf_read(sdf_mol *out, int32_t max, const char *path, pl_arena *mem)
{
    gzFile f = gzopen(path, "rb");
    char line[512];
    int32_t n = 0;

    if (f == NULL) {
        (void)fprintf(stderr, "%s: not readable\n", path);
        exit(1);
    }
    while (n < max && gzgets(f, line, sizeof line) != NULL)
        read_one(&out[n++], f, line, sizeof line, mem);
    (void)gzclose(f);
    return n;
}

static bool is_connected(const ch_mol *m, pl_arena *mem)
{
    ch_cycles c;

    return ch_cycles_make(&c, m, mem, NULL) == PL_OK && c.connected;
}

static int32_t keep_typed(sdf_mol *all, int32_t n, const ch_mmff *tables, pl_arena *mem)
{
    const ch_mmff_options o = { false };
    int32_t kept = 0;

    for (int32_t k = 0; k < n; k++) {
        pl_error err;
        if (is_connected(&all[k].mol, mem) && ch_terms_make(&all[k].terms, &all[k].mol, tables, &o, mem, &err) == PL_OK)
            all[kept++] = all[k];
    }
    return kept;
}

int32_t sdf_read_terms(sdf_mol *out, int32_t max, int32_t ligands, const char *folder, pl_arena *mem)
{
    ch_mmff *tables = PL_NEW(mem, ch_mmff, 1);
    pl_error err;
    char path[400];
    int32_t n = 0;

    if (tables == NULL || ch_mmff_read(tables, suite_tables(), mem, &err) != PL_OK) {
        (void)fprintf(stderr, "no tables of MMFF94: %s\n", tables != NULL ? err.text : "no memory");
        exit(1);
    }
    (void)snprintf(path, sizeof path, "%s/data/ligands.sdf.gz", folder);
    n = keep_typed(out, sdf_read(out, max < ligands ? max : ligands, path, mem), tables, mem);
    (void)snprintf(path, sizeof path, "%s/data/shapes.sdf.gz", folder);
    return n + keep_typed(out + n, sdf_read(out + n, max - n, path, mem), tables, mem);
}

static bool centre_of(ch_centre *out, const ch_cycles *c, int32_t i)
{
    int hydrogens = 0;

    if (c->mol->z[i] != 6 || ch_cycles_degree(c, i) != 4)
        return false;
    *out = (ch_centre){ .atom = i, .sign = 1 };
    for (int k = 0; k < 4; k++) {
        out->neighbour[k] = c->neighbour[c->first[i] + k];
        hydrogens += c->mol->z[out->neighbour[k]] == 1;
    }
    const double v = ch_centre_volume((const float(*)[3])c->mol->xyz, out);
    out->sign = v > 0 ? 1 : -1;
    return hydrogens < 2 && fabs(v) > 2;
}

static int32_t neighbour_but(const ch_cycles *c, int32_t i, int32_t j)
{
    const int32_t *a = c->neighbour + c->first[i];

    return a[0] == j ? a[1] : a[0];
}

static bool bond_of(ch_double_bond *out, const ch_cycles *c, int32_t b)
{
    const int32_t i = c->mol->bond[b][0], j = c->mol->bond[b][1];

    if (c->mol->order[b] != CH_DOUBLE || c->mol->z[i] != 6 || c->mol->z[j] != 6 || c->of_bond[b] % 8 != 0 ||
        ch_cycles_degree(c, i) != 3 || ch_cycles_degree(c, j) != 3)
        return false;
    *out = (ch_double_bond){ neighbour_but(c, i, j), i, j, neighbour_but(c, j, i), true };
    const double turn = fabs(ch_torsion_angle((const float(*)[3])c->mol->xyz, out->a, i, j, out->d));
    out->cis = turn < 90;
    return turn < 40 || turn > 140;
}

ch_stereo sdf_stereo(const ch_mol *mol, pl_arena *mem)
{
    ch_centre *centres = PL_NEW(mem, ch_centre, mol->n_atoms + 1);
    ch_double_bond *bonds = PL_NEW(mem, ch_double_bond, mol->n_bonds + 1);
    ch_cycles c;
    ch_stereo s = { .centres = centres, .double_bonds = bonds };

    if (centres == NULL || bonds == NULL || ch_cycles_make(&c, mol, mem, NULL) != PL_OK)
        abort();
    for (int32_t i = 0; i < mol->n_atoms; i++)
        s.n_centres += centre_of(&centres[s.n_centres], &c, i);
    for (int32_t b = 0; b < mol->n_bonds; b++)
        s.n_double_bonds += bond_of(&bonds[s.n_double_bonds], &c, b);
    return s;
}
