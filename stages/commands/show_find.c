/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/show_find.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "chem/worker/worker_client.h"
#include "stages/steps/ingest/prepared_as.h"

enum { NAMES_MAX = 20000 }; /* titles that suggestions are chosen from */

/* ---- by one query ---- */

/* Adds the numbers that a query with the word as its parameter gives. */
static pl_code add_all(int64_t *to, int *n, int64_t *n_more, sqlite3 *db, const char *sql, const char *word, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(db, &st, sql, err);

    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, word, -1, SQLITE_STATIC);
    while (pl_db_next(st, &code, err)) {
        if (*n < ST_SHOWN_MAX)
            to[(*n)++] = sqlite3_column_int64(st, 0);
        else
            ++*n_more;
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code by_title(st_shown *out, sqlite3 *db, const char *word, pl_error *err)
{
    pl_code code = add_all(out->mol_id, &out->n, &out->n_more, db,
                           "SELECT DISTINCT mol_id FROM record WHERE title=?1 AND mol_id IS NOT NULL ORDER BY 1", word, err);

    out->as = "title";
    return code == PL_OK ? add_all(out->record, &out->n_records, &out->n_more, db,
                                   "SELECT record_id FROM record WHERE title=?1 AND mol_id IS NULL ORDER BY 1", word, err)
                         : code;
}

/* mol_id, or record_id of a duplicate or of a record without molecule. */
static pl_code by_number(st_shown *out, sqlite3 *db, const char *word, pl_error *err)
{
    pl_code code;

    if (word[strspn(word, "0123456789")] != '\0')
        return PL_OK;
    out->as = "number";
    code = add_all(out->mol_id, &out->n, &out->n_more, db,
                   "SELECT mol_id FROM record WHERE record_id=CAST(?1 AS INTEGER) AND mol_id IS NOT NULL", word, err);
    return code == PL_OK ? add_all(out->record, &out->n_records, &out->n_more, db,
                                   "SELECT record_id FROM record WHERE record_id=CAST(?1 AS INTEGER) AND mol_id IS NULL", word, err)
                         : code;
}

/* Capitals in blocks of 14, 10 and 1, or the first block alone. */
static bool is_inchikey(const char *word)
{
    const size_t n = strlen(word);

    if (n != 14 && n != 27)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((i == 14 || i == 25) ? word[i] != '-' : !isupper((unsigned char)word[i]))
            return false;
    return true;
}

static pl_code by_inchikey(st_shown *out, sqlite3 *db, const char *word, pl_error *err)
{
    out->as = "InChIKey";
    return add_all(out->mol_id, &out->n, &out->n_more, db,
                   "SELECT mol_id FROM molecule WHERE inchikey>=?1 AND inchikey<?1||'~' ORDER BY 1", word, err);
}

/* ---- by SMILES ---- */

/* *key: InChIKey of a SMILES, prepared as the library was, or "". */
static pl_code read_smiles(pl_store *s, const char *word, const char **smiles, const char **key, pl_arena *mem, pl_error *err)
{
    st_prepared_as as;
    ch_worker *w = NULL;
    ch_prepared p = { 0 };
    pl_code code = st_prepared_as_read(&as, s, err);
    const ch_prepare_opts opts = st_prepare_opts(&as.conf, 0);

    if (code == PL_OK)
        code = ch_worker_open(&w, NULL, err);
    *smiles = *key = "";
    if (code == PL_OK)
        code = ch_worker_prepare(w, word, strlen(word), "smi", &opts, &p, mem, err);
    ch_worker_close(w);
    if (code == PL_EINPUT)
        return PL_OK;
    if (code == PL_OK) {
        *smiles = p.smiles;
        *key = p.inchikey;
    }
    return code;
}

static pl_code by_smiles(st_shown *out, pl_store *s, const char *word, const char **key, pl_arena *mem, pl_error *err)
{
    const char *smiles;
    pl_code code = read_smiles(s, word, &smiles, key, mem, err); /* both are empty if it fails */

    if ((*key)[0] != '\0')
        code = by_inchikey(out, s->db, *key, err);
    else if (smiles[0] != '\0')
        code = add_all(out->mol_id, &out->n, &out->n_more, s->db, "SELECT mol_id FROM molecule WHERE inchikey='' AND smiles=?1",
                       smiles, err);
    out->as = "SMILES";
    return code;
}

/* ---- nothing ---- */

/* The title closest to the word, of those that begin with the same letter. */
static const char *near_title(sqlite3 *db, const char *word, pl_arena *mem)
{
    const char **names = PL_NEW(mem, const char *, NAMES_MAX);
    sqlite3_stmt *st = NULL;
    bool row = true;
    int n = 0;

    if (names == NULL || pl_db_prepare(db, &st,
                                       "SELECT DISTINCT title FROM record WHERE title LIKE substr(?1,1,1)||'%' AND "
                                       "abs(length(title)-length(?1))<4 LIMIT 20000",
                                       NULL) != PL_OK)
        return NULL;
    (void)sqlite3_bind_text(st, 1, word, -1, SQLITE_STATIC);
    while (n < NAMES_MAX && pl_db_step(st, &row, NULL) == PL_OK && row) {
        names[n] = pl_strdup(mem, (const char *)sqlite3_column_text(st, 0));
        if (names[n] == NULL)
            break;
        n++;
    }
    (void)sqlite3_finalize(st);
    return pl_nearest(word, names, n);
}

static pl_code fail_none(const pl_store *s, const char *word, const char *key, pl_arena *mem, pl_error *err)
{
    const char *near = near_title(s->db, word, mem);

    if (near != NULL)
        return pl_fail(err, PL_ECONFIG, "'%.60s' is not in %s; did you mean %.80s?", word, s->results_path, near);
    if (is_inchikey(word) || key[0] != '\0')
        return pl_fail(err, PL_ECONFIG, "'%.60s'%s%s is not a molecule of %s%s", word, key[0] != '\0' ? ", " : "", key,
                       s->results_path, key[0] != '\0' ? "; `molsieve search --similar SMILES` finds similar ones" : "");
    return pl_fail(
        err, PL_ECONFIG,
        "'%.60s' is not in %s: no title, number or InChIKey there, and not a SMILES; `molsieve query record` lists the records",
        word, s->results_path);
}

pl_code st_show_find(st_shown *out, pl_store *s, const char *word, pl_arena *mem, pl_error *err)
{
    const char *key = "";
    pl_code code;

    *out = (st_shown){ 0 };
    code = by_title(out, s->db, word, err);
    if (code == PL_OK && out->n + out->n_records == 0)
        code = by_number(out, s->db, word, err);
    if (code == PL_OK && out->n + out->n_records == 0 && is_inchikey(word))
        code = by_inchikey(out, s->db, word, err);
    if (code == PL_OK && out->n + out->n_records == 0 && !is_inchikey(word))
        code = by_smiles(out, s, word, &key, mem, err);
    if (code != PL_OK || out->n + out->n_records > 0)
        return code;
    return fail_none(s, word, key, mem, err);
}
