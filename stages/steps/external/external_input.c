/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/molecule/element.h"
#include "chem/molecule/sdf_write.h"
#include "stages/database/rows.h"
#include "stages/steps/external/external_parts.h"

const char *st_ext_input_name(st_ext_input format)
{
    static const char *const names[] = { "input.smi", "input.csv", "input.sdf", "input.xyz", "input.pdbqt" };

    return names[format];
}

const char *st_ext_output_name(st_ext_output format)
{
    static const char *const names[] = { "output.csv", "output.json", "output.sdf", "output.txt", "output.pdbqt" };

    return names[format];
}

static void add_smiles(pl_text *out, const st_ext_item *m) { pl_text_addf(out, "%s\t%lld\n", m->smiles, (long long)m->id); }

static void add_row(pl_text *out, const st_ext_item *m)
{
    pl_text_addf(out, "%lld,", (long long)m->id);
    st_csv_add(out, m->smiles);
    pl_text_add(out, ",");
    st_csv_add(out, m->inchikey);
    pl_text_add(out, ",");
    st_csv_add(out, m->title);
    pl_text_add(out, "\n");
}

static void add_sdf(pl_text *out, const st_ext_item *m)
{
    const ch_sdf_field fields[] = { { "smiles", m->smiles }, { "inchikey", m->inchikey }, { "title", m->title } };
    char id[32];

    (void)snprintf(id, sizeof id, "%lld", (long long)m->id);
    for (int32_t k = 0; k < m->n_mols; k++)
        ch_sdf_write(out, m->mol[k], id, fields, 3);
}

static void add_xyz(pl_text *out, const st_ext_item *m)
{
    for (int32_t k = 0; k < m->n_mols; k++) {
        const ch_mol *mol = m->mol[k];
        int charge = 0;
        for (int32_t i = 0; i < mol->n_atoms; i++)
            charge += mol->charge[i];
        pl_text_addf(out, "%d\n%lld charge=%d\n", (int)mol->n_atoms, (long long)m->id, charge);
        for (int32_t i = 0; i < mol->n_atoms; i++)
            pl_text_addf(out, "%-2s %12.6f %12.6f %12.6f\n", ch_element_symbol(mol->z[i]), (double)mol->xyz[i][0],
                         (double)mol->xyz[i][1], (double)mol->xyz[i][2]);
    }
}

/* Torsion tree, atom types and charges are Open Babel's. */
static pl_code add_pdbqt(pl_text *out, const st_ext_item *m, ch_worker *chem, pl_arena *mem, pl_error *err)
{
    const char *text = NULL;
    char id[32];
    pl_code code;

    (void)snprintf(id, sizeof id, "%lld", (long long)m->id);
    code = ch_worker_write(chem, m->mol[0], id, "pdbqt", &text, mem, err);
    if (code == PL_OK)
        pl_text_add(out, text);
    return code;
}

pl_code st_ext_write(pl_text *out, st_ext_input format, const st_ext_item *item, int32_t n, ch_worker *chem, pl_arena *mem,
                     pl_error *err)
{
    static void (*const add[])(pl_text *, const st_ext_item *) = { add_smiles, add_row, add_sdf, add_xyz };

    if (format == ST_IN_PDBQT)
        return add_pdbqt(out, item, chem, mem, err);
    if (format == ST_IN_CSV)
        pl_text_add(out, "id,smiles,inchikey,title\n");
    for (int32_t i = 0; i < n; i++)
        add[format](out, &item[i]);
    return pl_text_ok(out) ? PL_OK : pl_fail(err, PL_ENOMEM, "the input of a program");
}
