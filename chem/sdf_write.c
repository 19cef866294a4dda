/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/sdf_write.h"

#include <string.h>

#include "chem/element.h"

enum { V2000_MAX = 999, TITLE_MAX = 80 };

/* One line: what would end it is a blank. */
static void add_line(pl_text *out, const char *s, size_t max)
{
    size_t n = strlen(s);

    for (size_t i = 0; i < n && i < max; i++)
        pl_text_add_n(out, s[i] == '\n' || s[i] == '\r' ? " " : &s[i], 1);
}

static const float *position(const ch_mol *mol, int32_t i)
{
    static const float zero[3] = { 0 };
    return mol->xyz ? mol->xyz[i] : zero;
}

static void add_v2000(pl_text *out, const ch_mol *mol)
{
    pl_text_addf(out, "%3d%3d  0  0  0  0  0  0  0  0999 V2000\n", mol->n_atoms, mol->n_bonds);
    for (int32_t i = 0; i < mol->n_atoms; i++) {
        const float *x = position(mol, i);
        pl_text_addf(out, "%10.4f%10.4f%10.4f %-3s 0  0  0  0  0  0  0  0  0  0  0  0\n", (double)x[0], (double)x[1],
                     (double)x[2], ch_element_symbol(mol->z[i]));
    }
    for (int32_t i = 0; i < mol->n_bonds; i++)
        pl_text_addf(out, "%3d%3d%3d  0\n", mol->bond[i][0] + 1, mol->bond[i][1] + 1, mol->order[i]);
    for (int32_t i = 0; i < mol->n_atoms; i++)
        if (mol->charge[i] != 0)
            pl_text_addf(out, "M  CHG  1%4d%4d\n", i + 1, mol->charge[i]);
}

static void add_v3000(pl_text *out, const ch_mol *mol)
{
    pl_text_add(out, "  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n");
    pl_text_addf(out, "M  V30 COUNTS %d %d 0 0 0\nM  V30 BEGIN ATOM\n", mol->n_atoms, mol->n_bonds);
    for (int32_t i = 0; i < mol->n_atoms; i++) {
        const float *x = position(mol, i);
        pl_text_addf(out, "M  V30 %d %s %.4f %.4f %.4f 0", i + 1, ch_element_symbol(mol->z[i]), (double)x[0],
                     (double)x[1], (double)x[2]);
        if (mol->charge[i] != 0)
            pl_text_addf(out, " CHG=%d", mol->charge[i]);
        pl_text_add(out, "\n");
    }
    pl_text_add(out, "M  V30 END ATOM\nM  V30 BEGIN BOND\n");
    for (int32_t i = 0; i < mol->n_bonds; i++)
        pl_text_addf(out, "M  V30 %d %d %d %d\n", i + 1, mol->order[i], mol->bond[i][0] + 1, mol->bond[i][1] + 1);
    pl_text_add(out, "M  V30 END BOND\nM  V30 END CTAB\n");
}

void ch_sdf_write(pl_text *out, const ch_mol *mol, const char *title, const ch_sdf_field *fields, int n_fields)
{
    add_line(out, title ? title : "", TITLE_MAX);
    pl_text_add(out, mol->xyz ? "\n  molsieve          3D\n\n" : "\n  molsieve          2D\n\n");
    if (mol->n_atoms > V2000_MAX || mol->n_bonds > V2000_MAX)
        add_v3000(out, mol);
    else
        add_v2000(out, mol);
    pl_text_add(out, "M  END\n");
    for (int i = 0; i < n_fields; i++) {
        pl_text_add(out, "> <");
        add_line(out, fields[i].name, 200);
        pl_text_add(out, ">\n");
        add_line(out, fields[i].value, (size_t)-1);
        pl_text_add(out, "\n\n");
    }
    pl_text_add(out, "$$$$\n");
}
