/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/fit/smiles_column.h"

#include <string.h>

enum { COLUMNS_MAX = 64, LOOKED_AT = 40 };

/* Heavy atoms of the molecule that the field describes; 0: it is none. */
static pl_code atoms_of(int32_t *out, ch_worker *w, const ch_field *f, pl_arena *scratch, pl_error *err)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared p;
    pl_code code;

    *out = 0;
    opts.conformer = CH_3D_NONE;
    if (f->is_number || f->text[0] == '\0' || strpbrk(f->text, " \t") != NULL)
        return PL_OK;
    code = ch_worker_prepare(w, f->text, strlen(f->text), "smi", &opts, &p, scratch, err);
    *out = code == PL_OK ? p.n_heavy : 0;
    return code == PL_EINPUT ? PL_OK : code;
}

/* Of each column: the heavy atoms of its SMILES in the first rows; -1: most of its values are none. */
static pl_code columns_weigh(int64_t *weight, int n, ch_reader *r, ch_worker *w, pl_error *err)
{
    pl_arena *scratch = pl_arena_new(1 << 14);
    int64_t good[COLUMNS_MAX] = { 0 };
    int64_t rows = 0;
    bool more = true;
    pl_code code = scratch != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a table");

    while (code == PL_OK && rows < LOOKED_AT) {
        ch_record record;
        ch_field *field;
        int n_fields = 0;
        code = ch_reader_next(r, &record, &more, err);
        if (code != PL_OK || !more)
            break;
        pl_arena_reset(scratch);
        code = ch_record_fields(&field, &n_fields, r, &record, scratch, err);
        for (int k = 0; k < n_fields && k < n && code == PL_OK; k++) {
            int32_t atoms;
            code = atoms_of(&atoms, w, &field[k], scratch, err);
            weight[k] += atoms;
            good[k] += atoms > 0;
        }
        rows++;
    }
    for (int k = 0; k < n; k++)
        weight[k] = 2 * good[k] > rows ? weight[k] : -1;
    pl_arena_free(scratch);
    return code;
}

pl_code st_smiles_column(const char **out, ch_reader *r, ch_worker *w, pl_error *err)
{
    int64_t weight[COLUMNS_MAX] = { 0 };
    int n, best = 0;
    const char *const *column = ch_reader_columns(r, &n);
    pl_code code = columns_weigh(weight, n < COLUMNS_MAX ? n : COLUMNS_MAX, r, w, err);

    for (int k = 1; k < n && k < COLUMNS_MAX; k++)
        best = weight[k] > weight[best] ? k : best;
    *out = n > 0 && weight[best] > 0 ? column[best] : NULL;
    return code == PL_OK && *out != NULL ? ch_reader_headed(r, *out, err) : code;
}
