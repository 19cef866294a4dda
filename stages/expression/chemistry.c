/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/expression/chemistry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/fingerprint/fingerprint.h"
#include "chem/fingerprint/scaffold_smiles.h"

enum { KEPT = 8 };

/* An answer of smarts(): a query may evaluate one condition several times for a row. */
typedef struct known_match {
    char *smiles, *pattern; /* NULL: none */
    int8_t yes;
} known_match;

typedef struct chemistry {
    ch_worker *worker;
    pl_arena *mem; /* of one call */
    known_match kept[KEPT];
    int next; /* of kept, to be replaced */
} chemistry;

ch_worker_opts st_chemistry_limits(void) { return (ch_worker_opts){ .cpu_first_s = 2, .cpu_retry_s = 5 }; }

/* ---- arguments and results ---- */

/* What is no fault of the molecule has a code of its own. */
static void fail(sqlite3_context *ctx, const char *function, const pl_error *err)
{
    char text[600];

    if (err->code == PL_ENOMEM) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    (void)snprintf(text, sizeof text, "%s: %s%s%s", function, err->where, err->where[0] != '\0' ? ": " : "", err->text);
    sqlite3_result_error(ctx, text, -1);
    if (err->code == PL_EIO)
        sqlite3_result_error_code(ctx, SQLITE_IOERR);
}

/* The molecule of a SMILES, as it is written: nothing is removed, no charge is changed. EINPUT: it is none. */
static pl_code read_smiles(chemistry *c, const char *smiles, ch_mol *out, pl_error *err)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared p;
    pl_code code;

    pl_arena_reset(c->mem);
    opts.conformer = CH_3D_NONE;
    opts.largest_fragment = false;
    code = ch_worker_prepare(c->worker, smiles, strlen(smiles), "smi", &opts, &p, c->mem, err);
    *out = p.mol;
    return code;
}

static pl_code print_of(chemistry *c, const char *smiles, ch_fingerprint *out, pl_error *err)
{
    ch_mol mol;
    pl_code code = read_smiles(c, smiles, &mol, err);

    return code == PL_OK ? ch_fingerprint_of(out, &mol, c->mem, err) : code;
}

/* ---- the functions ---- */

static const known_match *find_kept(const chemistry *c, const char *smiles, const char *pattern)
{
    for (int i = 0; i < KEPT; i++)
        if (c->kept[i].smiles != NULL && strcmp(c->kept[i].smiles, smiles) == 0 && strcmp(c->kept[i].pattern, pattern) == 0)
            return &c->kept[i];
    return NULL;
}

static void clear_kept(known_match *k)
{
    free(k->smiles);
    free(k->pattern);
    *k = (known_match){ NULL, NULL, 0 };
}

/* Without memory nothing is kept. */
static void keep(chemistry *c, const char *smiles, const char *pattern, int8_t yes)
{
    known_match *k = &c->kept[c->next];

    clear_kept(k);
    *k = (known_match){ strdup(smiles), strdup(pattern), yes };
    if (k->smiles == NULL || k->pattern == NULL)
        clear_kept(k);
    c->next = (c->next + 1) % KEPT;
}

static void smarts(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    chemistry *c = sqlite3_user_data(ctx);
    const char *smiles = (const char *)sqlite3_value_text(v[0]), *pattern = (const char *)sqlite3_value_text(v[1]);
    const known_match *known;
    int8_t yes = -1;
    int32_t column = 0;
    pl_error err = { 0 };

    (void)n;
    if (smiles == NULL || pattern == NULL)
        return;
    known = find_kept(c, smiles, pattern);
    if (known != NULL) {
        yes = known->yes;
    } else if (ch_worker_match(c->worker, pattern, &smiles, 1, &yes, &column, &err) != PL_OK) {
        pl_at(&err, "%.100s on %.100s", pattern, smiles);
        fail(ctx, "smarts", &err);
    } else if (column > 0) {
        (void)pl_fail(&err, PL_ECONFIG, "'%.200s' is not a valid SMARTS, column %d", pattern, (int)column);
        fail(ctx, "smarts", &err);
    } else {
        keep(c, smiles, pattern, yes);
    }
    if (yes >= 0)
        sqlite3_result_int(ctx, yes);
}

/* The fingerprint of an argument. It is kept while the statement runs if the argument is the same in every row. *there: false for NULL,
 * and for a SMILES in a row that cannot be read. */
static pl_code print_of_value(sqlite3_context *ctx, sqlite3_value **v, int i, ch_fingerprint *out, bool *there, pl_error *err)
{
    chemistry *c = sqlite3_user_data(ctx);
    const ch_fingerprint *kept = sqlite3_get_auxdata(ctx, i);
    ch_fingerprint *keep;
    pl_code code;

    *there = sqlite3_value_type(v[i]) != SQLITE_NULL;
    if (kept != NULL)
        *out = *kept;
    if (kept != NULL || !*there)
        return PL_OK;
    if (sqlite3_value_type(v[i]) == SQLITE_BLOB) {
        if (sqlite3_value_bytes(v[i]) != CH_FINGERPRINT_BYTES)
            return pl_fail(err, PL_EINPUT, "a blob of %d bytes is no fingerprint; it has 256", sqlite3_value_bytes(v[i]));
        ch_fingerprint_unpack(out, sqlite3_value_blob(v[i]));
        return PL_OK;
    }
    code = print_of(c, (const char *)sqlite3_value_text(v[i]), out, err);
    if (code != PL_OK)
        return code;
    keep = malloc(sizeof *keep);
    if (keep != NULL) {
        *keep = *out;
        sqlite3_set_auxdata(ctx, i, keep, free);
    }
    return PL_OK;
}

static void similarity(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    ch_fingerprint print[2];
    pl_error err = { 0 };
    bool all = true;

    for (int i = 1; i >= 0 && all; i--) { /* the second first: it is mostly the constant */
        pl_code code = print_of_value(ctx, v, i, &print[i], &all, &err);
        if (code == PL_EINPUT && i == 0 && sqlite3_value_type(v[0]) == SQLITE_TEXT)
            return;
        if (code == PL_EINPUT && sqlite3_value_type(v[i]) == SQLITE_TEXT)
            pl_at(&err, "'%.100s' is not a SMILES", (const char *)sqlite3_value_text(v[i]));
        if (code != PL_OK) {
            fail(ctx, "similarity", &err);
            return;
        }
    }
    (void)n;
    if (all)
        sqlite3_result_double(ctx, ch_fingerprint_alike(&print[0], &print[1]));
}

static void scaffold(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    chemistry *c = sqlite3_user_data(ctx);
    const char *smiles = (const char *)sqlite3_value_text(v[0]), *out = NULL;
    pl_error err = { 0 };
    ch_mol mol;
    pl_code code;

    (void)n;
    if (smiles == NULL)
        return;
    code = read_smiles(c, smiles, &mol, &err);
    if (code == PL_EINPUT)
        return;
    if (code == PL_OK)
        code = ch_scaffold_smiles(&out, &mol, c->mem, &err);
    if (code != PL_OK)
        fail(ctx, "scaffold", &err);
    else
        sqlite3_result_text(ctx, out, -1, SQLITE_TRANSIENT);
}

static void fingerprint(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    const char *smiles = (const char *)sqlite3_value_text(v[0]);
    unsigned char bytes[CH_FINGERPRINT_BYTES];
    ch_fingerprint print;
    pl_error err = { 0 };
    pl_code code;

    (void)n;
    if (smiles == NULL)
        return;
    code = print_of(sqlite3_user_data(ctx), smiles, &print, &err);
    if (code == PL_EINPUT)
        return;
    if (code != PL_OK) {
        fail(ctx, "fingerprint", &err);
        return;
    }
    ch_fingerprint_pack(bytes, &print);
    sqlite3_result_blob(ctx, bytes, sizeof bytes, SQLITE_TRANSIENT);
}

/* ---- the connection ---- */

static void chemistry_free(void *p)
{
    chemistry *c = p;

    for (int i = 0; i < KEPT; i++)
        clear_kept(&c->kept[i]);
    ch_worker_close(c->worker);
    pl_arena_free(c->mem);
    free(c);
}

/* The first owns what all use: SQLite frees it when the connection is closed. */
static const struct {
    const char *name;
    int n;
    void (*call)(sqlite3_context *ctx, int n, sqlite3_value **v);
} functions[] = {
    { "smarts", 2, smarts }, { "similarity", 2, similarity }, { "scaffold", 1, scaffold }, { "fingerprint", 1, fingerprint }
};

pl_code st_chemistry_add(sqlite3 *db, const ch_worker_opts *opts, pl_error *err)
{
    const ch_worker_opts limits = st_chemistry_limits();
    chemistry *c = calloc(1, sizeof *c);
    pl_code code;

    if (c == NULL)
        return pl_fail(err, PL_ENOMEM, "functions for molecules");
    c->mem = pl_arena_new(1 << 16);
    code = c->mem != NULL ? ch_worker_open(&c->worker, opts != NULL ? opts : &limits, err)
                          : pl_fail(err, PL_ENOMEM, "functions for molecules");
    if (code != PL_OK) {
        chemistry_free(c);
        return code;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions && code == PL_OK; i++)
        if (sqlite3_create_function_v2(db, functions[i].name, functions[i].n,
                                       SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, c, functions[i].call, NULL, NULL,
                                       i == 0 ? chemistry_free : NULL) != SQLITE_OK)
            code = pl_fail(err, PL_ENOMEM, "functions for molecules: %s", sqlite3_errmsg(db));
    return code;
}
