/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/sdf_write.h"

#include <string.h>

#include "chem/element.h"

enum { V2000_MAX = 999, TITLE_MAX = 80 };

/* One line of at most n bytes and no half of a UTF-8 character: line ends become blanks. A blank stands before
 * $$$$, which would end the record. */
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
        xyz[k] = mol->xyz ? (double)mol->xyz[i][k] : 0.0;
}

/* "%10.4f" holds -9999.9999 to 99999.9999; farther out only V3000 has room. */
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

static void add_charges(pl_text *out, const ch_mol *mol)
{
    int total = 0, done = 0;

    for (int i = 0; i < mol->n_atoms; i++)
        total += mol->charge[i] != 0;
    for (int i = 0; i < mol->n_atoms; i++) {
        if (mol->charge[i] == 0)
            continue;
        if (done % 8 == 0) /* at most eight in a line */
            pl_text_addf(out, "%sM  CHG%3d", done ? "\n" : "", total - done < 8 ? total - done : 8);
        pl_text_addf(out, " %3d %3d", i + 1, mol->charge[i]);
        done++;
    }
    if (total > 0)
        pl_text_add(out, "\n");
}

static void add_v2000(pl_text *out, const ch_mol *mol)
{
    pl_text_addf(out, "%3d%3d  0  0  0  0  0  0  0  0999 V2000\n", mol->n_atoms, mol->n_bonds);
    for (int i = 0; i < mol->n_atoms; i++) {
        double xyz[3];
        position(mol, i, xyz);
        pl_text_addf(out, "%10.4f%10.4f%10.4f %-3s 0  0  0  0  0  0  0  0  0  0  0  0\n", xyz[0], xyz[1], xyz[2],
                     ch_element_symbol(mol->z[i]));
    }
    for (int b = 0; b < mol->n_bonds; b++)
        pl_text_addf(out, "%3d%3d%3d  0  0  0  0\n", mol->bond[b][0] + 1, mol->bond[b][1] + 1, mol->order[b]);
    add_charges(out, mol);
}

static void add_v3000(pl_text *out, const ch_mol *mol)
{
    pl_text_add(out, "  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n");
    pl_text_addf(out, "M  V30 COUNTS %d %d 0 0 0\nM  V30 BEGIN ATOM\n", mol->n_atoms, mol->n_bonds);
    for (int i = 0; i < mol->n_atoms; i++) {
        double xyz[3];
        position(mol, i, xyz);
        pl_text_addf(out, "M  V30 %d %s %.4f %.4f %.4f 0", i + 1, ch_element_symbol(mol->z[i]), xyz[0], xyz[1], xyz[2]);
        if (mol->charge[i] != 0)
            pl_text_addf(out, " CHG=%d", mol->charge[i]);
        pl_text_add(out, "\n");
    }
    pl_text_add(out, "M  V30 END ATOM\n");
    if (mol->n_bonds > 0)
        pl_text_add(out, "M  V30 BEGIN BOND\n");
    for (int b = 0; b < mol->n_bonds; b++)
        pl_text_addf(out, "M  V30 %d %d %d %d\n", b + 1, mol->order[b], mol->bond[b][0] + 1, mol->bond[b][1] + 1);
    pl_text_add(out, mol->n_bonds > 0 ? "M  V30 END BOND\nM  V30 END CTAB\n" : "M  V30 END CTAB\n");
}

/* Names stand between < and >, so those and line breaks cannot be part of one. */
static void add_field(pl_text *out, const char *name, const char *value)
{
    pl_text_add(out, ">  <");
    for (; *name != '\0'; name++)
        pl_text_add_n(out, strchr("<>\r\n", *name) ? "_" : name, 1);
    pl_text_add(out, ">\n");
    add_line(out, value, strlen(value));
    pl_text_add(out, "\n");
}

void ch_sdf_write(pl_text *out, const ch_mol *mol, const char *title, const ch_sdf_field *fields, int n_fields)
{
    add_line(out, title ? title : "", TITLE_MAX);
    pl_text_add(out, mol->xyz ? "  molsieve          3D\n\n" : "  molsieve          2D\n\n");
    if (fits_v2000(mol))
        add_v2000(out, mol);
    else
        add_v3000(out, mol);
    pl_text_add(out, "M  END\n");
    for (int i = 0; i < n_fields; i++)
        if (fields[i].value != NULL)
            add_field(out, fields[i].name, fields[i].value);
    pl_text_add(out, "$$$$\n");
}
