/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of a condition: checked, and its text as SQLite gets it (stages/expression/expression.h). */
#include <string.h>

#include "pipeline/base/text.h"
#include "stages/expression/chemistry.h"
#include "stages/expression/expression.h"

const char *st_expression_sql(const char *text, const st_structural *s, pl_arena *mem)
{
    pl_text out = { 0 };
    size_t from = 0;
    const char *sql;

    for (int i = 0; i < s->n_edits; i++) {
        pl_text_add_n(&out, text + from, s->edit[i].at - from);
        pl_text_add(&out, s->edit[i].sql);
        pl_text_add(&out, s->edit[i].n == 0 ? ", " : "");
        from = s->edit[i].at + s->edit[i].n;
    }
    pl_text_add(&out, text + from);
    sql = pl_text_ok(&out) ? pl_strdup(mem, pl_text_str(&out)) : NULL;
    pl_text_free(&out);
    return sql;
}

/* A text of SQL without its doubled quotes. */
static char *unquoted(const char *s, size_t n, pl_arena *mem)
{
    char *out = pl_strndup(mem, s, n);
    size_t k = 0;

    for (size_t i = 0; out != NULL && i < n; i++) {
        out[k++] = s[i];
        i += s[i] == '\'';
    }
    if (out != NULL)
        out[k] = '\0';
    return out;
}

static pl_code check_smarts(ch_worker *w, const char *smarts, size_t *at, pl_error *err)
{
    int32_t column = 0;
    pl_error said = { 0 };
    pl_code code = ch_worker_match(w, smarts, NULL, 0, NULL, &column, &said);

    if (code == PL_EINPUT)
        return pl_fail(err, PL_ECONFIG, "smarts: '%.60s' cannot be used: %s", smarts, said.text);
    if (code != PL_OK)
        return pl_fail(err, code, "%s", said.text);
    if (column == 0)
        return PL_OK;
    *at += (size_t)column - 1;
    return pl_fail(err, PL_ECONFIG, "smarts: '%.60s' is not a valid SMARTS, see column %d of it", smarts, (int)column);
}

static pl_code check_smiles(ch_worker *w, const char *smiles, pl_arena *mem, pl_error *err)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared p;
    pl_error said = { 0 };
    pl_code code;

    opts.conformer = CH_3D_NONE;
    opts.largest_fragment = false;
    code = ch_worker_prepare(w, smiles, strlen(smiles), "smi", &opts, &p, mem, &said);
    if (code == PL_OK)
        return PL_OK;
    return pl_fail(err, code == PL_EINPUT ? PL_ECONFIG : code, "similarity: '%.60s' is not a SMILES: %s", smiles, said.text);
}

static pl_code check_all(ch_worker *w, const char *text, const st_structural *s, size_t *at, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; i < s->n_texts && code == PL_OK; i++) {
        char *pattern = unquoted(text + s->text[i].at, s->text[i].n, mem);
        if (pattern == NULL)
            return pl_fail(err, PL_ENOMEM, "a condition");
        *at = s->text[i].at;
        code = s->text[i].smarts ? check_smarts(w, pattern, at, err) : check_smiles(w, pattern, mem, err);
    }
    return code;
}

pl_code st_structural_check(const char *text, const st_structural *s, size_t *at, pl_error *err)
{
    const ch_worker_opts limits = st_chemistry_limits();
    pl_arena *mem;
    ch_worker *w = NULL;
    size_t place = 0;
    pl_code code;

    if (s->n_texts == 0)
        return PL_OK;
    mem = pl_arena_new(1 << 16);
    code = mem != NULL ? ch_worker_open(&w, &limits, err) : pl_fail(err, PL_ENOMEM, "a condition");
    if (code == PL_OK)
        code = check_all(w, text, s, &place, mem, err);
    if (at != NULL && code == PL_ECONFIG)
        *at = place;
    ch_worker_close(w);
    pl_arena_free(mem);
    return code;
}
