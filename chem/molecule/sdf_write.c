/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/molecule/sdf_write.h"

#include <stdlib.h>
#include <string.h>

#include "chem/common/protocol.h"
#include "chem/molecule/element.h"

enum { V2000_MAX = 999, TITLE_MAX = 80, VALENCE_MAX = 14 };

/* Writes one line of at most n bytes, without splitting a UTF-8 character; line ends become blanks. A blank is put before
 * $$$$, which would otherwise end the record. */
static void add_line(pl_text *out, const char *s, size_t n)
{
    size_t len = strlen(s);

    if (len > n) {
        len = n;
        while (len > 0 && ((unsigned char)s[len] & 0xC0) == 0x80)
            len--;
    }
    if (strncmp(s, "$$$$", 4) == 0)
        pl_text_add(out, " ");
    for (size_t i = 0; i < len; i++)
        pl_text_add_n(out, s[i] == '\n' || s[i] == '\r' ? " " : &s[i], 1);
    pl_text_add(out, "\n");
}

static void position(const ch_mol *mol, int i, double xyz[3])
{
    for (int k = 0; k < 3; k++)
        xyz[k] = mol->xyz != NULL ? (double)mol->xyz[i][k] : 0.0;
}

/* "%10.4f" can hold -9999.9999 to 99999.9999; larger values need V3000. */
static bool fits_v2000(const ch_mol *mol)
{
    for (int i = 0; i < mol->n_atoms; i++) {
        double xyz[3];
        position(mol, i, xyz);
        for (int k = 0; k < 3; k++)
            if (!(xyz[k] > -9999 && xyz[k] < 99999))
                return false;
    }
    return mol->n_atoms <= V2000_MAX && mol->n_bonds <= V2000_MAX;
}

/* ---- valences ---- */

static int charge_of(const ch_mol *mol, int i) { return mol->charge[i]; }
static int mass_of(const ch_mol *mol, int i) { return mol->isotope != NULL ? mol->isotope[i] : 0; }

/* The sum of bond orders of each atom. */
static void add_valences(int8_t *valence, const ch_mol *mol)
{
    for (int b = 0; b < mol->n_bonds; b++)
        for (int k = 0; k < 2; k++) {
            int8_t *v = &valence[mol->bond[b][k]];
            *v = (int8_t)(*v < 100 ? *v + ch_order_drawn(mol->order[b]) : *v);
        }
}

/* Whether a reader expects this valence, so that it will not add hydrogens. Uses the neutral element with the same
 * number of electrons; below the second row two more bonds are accepted. */
static bool is_usual(const ch_mol *mol, int i, int valence)
{
    static const struct {
        uint8_t z, bonds;
    } usual[] = { { 1, 1 },  { 5, 3 },  { 6, 4 },  { 7, 3 },  { 8, 2 },  { 9, 1 },  { 14, 4 },
                  { 15, 3 }, { 16, 2 }, { 17, 1 }, { 33, 3 }, { 34, 2 }, { 35, 1 }, { 53, 1 } };
    const int z = mol->z[i] - mol->charge[i];

    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        if (usual[k].z == z)
            return valence == usual[k].bonds || (z > 10 && valence > usual[k].bonds && (valence - usual[k].bonds) % 2 == 0);
    return false;
}

/* The valence field: 0 if a reader infers it, else the number of bonds, or `zero` for none. */
static int valence_of(const ch_mol *mol, int i, const int8_t *valence, int zero)
{
    if (valence[i] > VALENCE_MAX || is_usual(mol, i, valence[i]))
        return 0;
    return valence[i] > 0 ? valence[i] : zero;
}

/* ---- V2000 ---- */

/* "M  CHG  2   1  -1   5   2": at most eight atoms in a line. */
static void add_property(pl_text *out, const ch_mol *mol, const char *name, int (*value)(const ch_mol *mol, int i))
{
    int total = 0, done = 0;

    for (int i = 0; i < mol->n_atoms; i++)
        total += value(mol, i) != 0;
    for (int i = 0; i < mol->n_atoms; i++) {
        if (value(mol, i) == 0)
            continue;
        if (done % 8 == 0)
            pl_text_addf(out, "%sM  %s%3d", done ? "\n" : "", name, total - done < 8 ? total - done : 8);
        pl_text_addf(out, " %3d %3d", i + 1, value(mol, i));
        done++;
    }
    if (total > 0)
        pl_text_add(out, "\n");
}

static void add_v2000(pl_text *out, const ch_mol *mol)
{
    int8_t valence[V2000_MAX] = { 0 };

    add_valences(valence, mol);
    pl_text_addf(out, "%3d%3d  0  0  0  0  0  0  0  0999 V2000\n", mol->n_atoms, mol->n_bonds);
    for (int i = 0; i < mol->n_atoms; i++) {
        double xyz[3];
        position(mol, i, xyz);
        pl_text_addf(out, "%10.4f%10.4f%10.4f %-3s 0  0  0  0  0%3d  0  0  0  0  0  0\n", xyz[0], xyz[1], xyz[2],
                     ch_element_symbol(mol->z[i]), valence_of(mol, i, valence, VALENCE_MAX + 1));
    }
    for (int b = 0; b < mol->n_bonds; b++)
        pl_text_addf(out, "%3d%3d%3d  0  0  0  0\n", mol->bond[b][0] + 1, mol->bond[b][1] + 1, ch_order_drawn(mol->order[b]));
    add_property(out, mol, "CHG", charge_of);
    add_property(out, mol, "ISO", mass_of);
}

/* ---- V3000 ---- */

static void add_v3000_atoms(pl_text *out, const ch_mol *mol, const int8_t *valence)
{
    for (int i = 0; i < mol->n_atoms; i++) {
        const int bonds = valence_of(mol, i, valence, -1);
        double xyz[3];
        position(mol, i, xyz);
        pl_text_addf(out, "M  V30 %d %s %.4f %.4f %.4f 0", i + 1, ch_element_symbol(mol->z[i]), xyz[0], xyz[1], xyz[2]);
        if (mol->charge[i] != 0)
            pl_text_addf(out, " CHG=%d", mol->charge[i]);
        if (mass_of(mol, i) != 0)
            pl_text_addf(out, " MASS=%d", mass_of(mol, i));
        if (bonds != 0)
            pl_text_addf(out, " VAL=%d", bonds);
        pl_text_add(out, "\n");
    }
}

static void add_v3000(pl_text *out, const ch_mol *mol)
{
    int8_t *valence = calloc((size_t)mol->n_atoms + 1, 1);

    if (valence == NULL) {
        out->refused = true;
        return;
    }
    add_valences(valence, mol);
    pl_text_add(out, "  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n");
    pl_text_addf(out, "M  V30 COUNTS %d %d 0 0 0\nM  V30 BEGIN ATOM\n", mol->n_atoms, mol->n_bonds);
    add_v3000_atoms(out, mol, valence);
    free(valence);
    pl_text_add(out, "M  V30 END ATOM\n");
    if (mol->n_bonds > 0)
        pl_text_add(out, "M  V30 BEGIN BOND\n");
    for (int b = 0; b < mol->n_bonds; b++)
        pl_text_addf(out, "M  V30 %d %d %d %d\n", b + 1, ch_order_drawn(mol->order[b]), mol->bond[b][0] + 1, mol->bond[b][1] + 1);
    pl_text_add(out, mol->n_bonds > 0 ? "M  V30 END BOND\nM  V30 END CTAB\n" : "M  V30 END CTAB\n");
}

/* ---- the record ---- */

/* Names are written between < and >, so these and line breaks cannot be part of a name. */
void ch_sdf_write_field(pl_text *out, const char *name, const char *value)
{
    pl_text_add(out, ">  <");
    for (; *name != '\0'; name++)
        pl_text_add_n(out, strchr("<>\r\n", *name) != NULL ? "_" : name, 1);
    pl_text_add(out, ">\n");
    if (value[0] != '\0') /* a blank line ends the item; an empty value already is one */
        add_line(out, value, strlen(value));
    pl_text_add(out, "\n");
}

static void add_fields(pl_text *out, const ch_sdf_field *fields, int n_fields)
{
    for (int i = 0; i < n_fields; i++)
        if (fields[i].value != NULL)
            ch_sdf_write_field(out, fields[i].name, fields[i].value);
}

void ch_sdf_write(pl_text *out, const ch_mol *mol, const char *title, const ch_sdf_field *fields, int n_fields)
{
    add_line(out, title != NULL ? title : "", TITLE_MAX);
    pl_text_add(out, mol->xyz != NULL ? "  molsieve          3D\n\n" : "  molsieve          2D\n\n");
    if (fits_v2000(mol))
        add_v2000(out, mol);
    else
        add_v3000(out, mol);
    pl_text_add(out, "M  END\n");
    add_fields(out, fields, n_fields);
    pl_text_add(out, "$$$$\n");
}

void ch_sdf_write_molfile(pl_text *out, const char *molfile, const char *title, const ch_sdf_field *fields, int n_fields)
{
    const char *body = strchr(molfile, '\n');

    add_line(out, title != NULL ? title : "", TITLE_MAX);
    pl_text_add(out, body != NULL ? body + 1 : "");
    add_fields(out, fields, n_fields);
    if (strstr(molfile, "\n" CH_NO_STEREO "\n") != NULL)
        ch_sdf_write_field(out, "drawing", CH_NO_STEREO);
    pl_text_add(out, "$$$$\n");
}

bool ch_is_molfile(const char *text)
{
    const size_t n = strlen(text);
    bool good = n > 7 && n < 200000 && strcmp(text + n - 7, "M  END\n") == 0 && strstr(text, "$$$$") == NULL;

    for (const char *c = text; *c != '\0' && good; c++)
        good = (*c >= ' ' && *c < 0x7f) || *c == '\n';
    return good;
}
