/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/shells.h"

#include <stddef.h>

#include "chem/molecule/valence.h"

static void free_valences(sqlite3_context *ctx, int n, sqlite3_value **value)
{
    const char *smiles = (const char *)sqlite3_value_text(value[0]);
    int32_t free_ones = 0;

    (void)n;
    if (ch_smiles_free_valences(&free_ones, smiles != NULL ? smiles : "", NULL) == PL_OK)
        sqlite3_result_int(ctx, free_ones);
    else
        sqlite3_result_error_nomem(ctx);
}

static void axes(sqlite3_context *ctx, int n, sqlite3_value **value)
{
    const char *smiles = (const char *)sqlite3_value_text(value[0]);
    bool marked = false;

    (void)n;
    if (ch_smiles_marks_axis(&marked, smiles != NULL ? smiles : "", NULL) != PL_OK)
        sqlite3_result_error_nomem(ctx);
    else if (marked)
        sqlite3_result_value(ctx, value[0]);
    else
        sqlite3_result_text(ctx, "", 0, SQLITE_STATIC);
}

pl_code st_shells_open(sqlite3 *db, pl_error *err)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;

    return sqlite3_create_function(db, "free_valences", 1, flags, NULL, free_valences, NULL, NULL) == SQLITE_OK &&
                   sqlite3_create_function(db, "axes", 1, flags, NULL, axes, NULL, NULL) == SQLITE_OK
               ? PL_OK
               : pl_fail(err, PL_ENOMEM, "no memory for functions of SQL");
}
