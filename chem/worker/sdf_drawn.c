/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/worker/sdf_drawn.h"

#include <string.h>

#include "chem/common/protocol.h"

typedef struct record {
    const ch_mol *mol;
    const char *smiles, *title;
    const ch_sdf_field *fields;
    int n_fields;
} record;

/* The record without a drawing. */
static pl_code add_plain(pl_text *out, const record *r, pl_arena *mem, pl_error *err)
{
    ch_sdf_field *all = PL_NEW(mem, ch_sdf_field, r->n_fields + 1);
    const bool stereo = strpbrk(r->smiles, "@/\\") != NULL;

    if (all == NULL)
        return pl_fail(err, PL_ENOMEM, "the fields of a record");
    for (int i = 0; i < r->n_fields; i++)
        all[i] = r->fields[i];
    all[r->n_fields] = (ch_sdf_field){ "drawing", CH_NO_STEREO };
    ch_sdf_write(out, r->mol, r->title, all, r->n_fields + stereo);
    return PL_OK;
}

static pl_code add_drawing(pl_text *out, ch_worker **chem, const record *r, pl_arena *mem, pl_error *err)
{
    ch_drawn drawn = { 0 };
    pl_error why = { 0 };
    pl_code code = *chem != NULL ? PL_OK : ch_worker_open(chem, NULL, &why);

    if (code == PL_OK)
        code = ch_worker_draw(*chem, r->smiles, &drawn, mem, &why);
    if (code == PL_OK && ch_is_molfile(drawn.molfile))
        ch_sdf_write_molfile(out, drawn.molfile, r->title, r->fields, r->n_fields);
    else if (code == PL_OK || code == PL_EINPUT)
        code = add_plain(out, r, mem, &why);
    return code == PL_OK ? PL_OK : pl_fail(err, code, "%s", why.text);
}

pl_code ch_sdf_write_drawn(pl_text *out, ch_worker **chem, const ch_mol *mol, const char *smiles, const char *title,
                           const ch_sdf_field *fields, int n_fields, pl_error *err)
{
    const record r = { mol, smiles, title, fields, n_fields };
    pl_arena *mem;
    pl_code code;

    if (mol->xyz != NULL || mol->n_atoms == 0) {
        ch_sdf_write(out, mol, title, fields, n_fields);
        return PL_OK;
    }
    mem = pl_arena_new(1 << 16);
    code = mem != NULL ? add_drawing(out, chem, &r, mem, err) : pl_fail(err, PL_ENOMEM, "a drawing");
    pl_arena_free(mem);
    return code;
}
