/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of a condition: checked, and its text as SQLite gets it (stages/expression/expression.h). */
#include <string.h>

#include "chem/fingerprint/scaffold_smiles.h"
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

/* The molecule of a SMILES. what: the function or column that it stands beside. */
static pl_code read_smiles(ch_worker *w, ch_prepared *out, const char *what, const char *smiles, pl_arena *mem, pl_error *err)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    pl_error said = { 0 };
    pl_code code;

    opts.conformer = CH_3D_NONE;
    opts.largest_fragment = false;
    code = ch_worker_prepare(w, smiles, strlen(smiles), "smi", &opts, out, mem, &said);
    if (code == PL_OK)
        return PL_OK;
    return pl_fail(err, code == PL_EINPUT ? PL_ECONFIG : code, "%s: '%.60s' is not a SMILES: %s", what, smiles, said.text);
}

/* Equality is that of texts, and those of the library are canonical. */
static pl_code check_canonical(ch_worker *w, const char *smiles, bool scaffold, pl_arena *mem, pl_error *err)
{
    const char *what = scaffold ? "scaffold" : "smiles", *own = "";
    ch_prepared p;
    pl_code code = read_smiles(w, &p, what, smiles, mem, err);

    if (code == PL_OK && scaffold)
        code = ch_scaffold_smiles(&own, &p.mol, mem, err);
    if (code != PL_OK)
        return code;
    if (!scaffold)
        own = p.smiles;
    if (strcmp(own, smiles) == 0)
        return PL_OK;
    if (own[0] == '\0')
        return pl_fail(err, PL_ECONFIG, "scaffold: '%.60s' has no rings, so no scaffold; without rings it is ''", smiles);
    return pl_fail(err, PL_ECONFIG, "%s: nothing is equal to '%.60s', which is written '%.200s' here", what, smiles, own);
}

static pl_code check_text(ch_worker *w, const char *text, st_text_is is, size_t *at, pl_arena *mem, pl_error *err)
{
    ch_prepared p;

    if (is == ST_IS_SMARTS)
        return check_smarts(w, text, at, err);
    if (is == ST_IS_MOLECULE)
        return read_smiles(w, &p, "similarity", text, mem, err);
    return check_canonical(w, text, is == ST_IS_SCAFFOLD, mem, err);
}

static pl_code check_all(ch_worker *w, const char *text, const st_structural *s, size_t *at, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; i < s->n_texts && code == PL_OK; i++) {
        char *one;
        pl_arena_reset(mem);
        one = unquoted(text + s->text[i].at, s->text[i].n, mem);
        if (one == NULL)
            return pl_fail(err, PL_ENOMEM, "a condition");
        *at = s->text[i].at;
        code = check_text(w, one, s->text[i].is, at, mem, err);
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
