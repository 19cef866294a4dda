/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/errors/domain_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/domain/range.h"
#include "pipeline/store/store.h"
#include "stages/database/external_models.h"

enum { NAME, N, INSIDE, OUTSIDE, FIRST_REASON, REASONS_MAX = 16 };

typedef struct reason {
    const char *word;
    int64_t n;
} reason;

static int compare_reasons(const void *a, const void *b)
{
    const reason *x = a, *y = b;

    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return strcmp(x->word, y->word);
}

/* A reason begins at the start of the text or after "; ". which: further conditions, with one ?1 at most. Properties with the same counts,
 * as those of one model, are one row. */
static pl_code counts_prepare(sqlite3_stmt **st, sqlite3 *db, const char *which, int64_t value, pl_error *err)
{
    pl_text sql = { 0 };
    pl_code code;

    pl_text_add(&sql, "SELECT CASE WHEN count(*)>1 THEN 'each of ' ELSE '' END||group_concat(name,', '), n, inside, outside");
    for (const char *const *w = nn_range_words; *w; w++)
        pl_text_addf(&sql, ", \"%s\"", *w);
    pl_text_add(&sql, " FROM (SELECT p.name, count(*) n, sum(s.domain='inside') inside, sum(s.domain='outside') outside");
    for (const char *const *w = nn_range_words; *w; w++)
        pl_text_addf(&sql, ", sum(instr('; '||s.reasons,'; %s ')>0) \"%s\"", *w, *w);
    pl_text_addf(&sql,
                 " FROM score s JOIN property p USING(property_id) WHERE NOT " ST_IS_OF_PROGRAM(
                     "p.") "%s GROUP BY p.property_id ORDER BY p.name) GROUP BY 2, 3, 4",
                 which);
    for (int k = 0; nn_range_words[k]; k++)
        pl_text_addf(&sql, ", %d", FIRST_REASON + 1 + k);
    pl_text_add(&sql, " ORDER BY min(name)");
    code = pl_text_ok(&sql) ? pl_db_prepare(db, st, pl_text_str(&sql), err) : pl_fail(err, PL_ENOMEM, "a query");
    pl_text_free(&sql);
    if (strchr(which, '?') != NULL)
        (void)sqlite3_bind_int64(*st, 1, value);
    return code;
}

static void reasons_add(pl_text *out, sqlite3_stmt *st)
{
    reason r[REASONS_MAX];
    char number[32];
    int n = 0;

    for (const char *const *w = nn_range_words; *w && n < REASONS_MAX; w++, n++)
        r[n] = (reason){ *w, sqlite3_column_int64(st, FIRST_REASON + n) };
    qsort(r, (size_t)n, sizeof *r, compare_reasons);
    for (int k = 0; k < n && r[k].n > 0; k++)
        pl_text_addf(out, "%s %s %s", k ? "," : ":", r[k].word, pl_count_str(r[k].n, number));
}

static void line_add(pl_text *out, sqlite3_stmt *st, bool hits)
{
    const int64_t n = sqlite3_column_int64(st, N), outside = sqlite3_column_int64(st, OUTSIDE);
    const int64_t unknown = n - outside - sqlite3_column_int64(st, INSIDE);
    const char *name = (const char *)sqlite3_column_text(st, NAME);
    char some[32], all[32];

    if (outside > 0) {
        pl_text_addf(out, "%s of %s %s of %s are outside of the domain of the model, without interval", pl_count_str(outside, some),
                     pl_count_str(n, all), hits ? "hits' scores" : "scores", name);
        reasons_add(out, st);
        pl_text_add(out, "\n");
    }
    if (unknown > 0)
        pl_text_addf(
            out,
            "%s of %s %s of %s have no known domain: the model or the score was made by an earlier version; train the model again\n",
            pl_count_str(unknown, some), pl_count_str(n, all), hits ? "hits' scores" : "scores", name);
}

pl_code st_domain_words(pl_text *out, sqlite3 *db, bool hits, int64_t max, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    const char *which = hits ? " AND s.mol_id IN (SELECT mol_id FROM hit WHERE rank<=?1)" : "";
    pl_code code = counts_prepare(&st, db, which, max, err);

    while (pl_db_next(st, &code, err))
        line_add(out, st, hits);
    (void)sqlite3_finalize(st);
    return code;
}

pl_code st_domain_reasons(pl_text *out, sqlite3 *db, int64_t property_id, const char *among, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    char which[128];
    pl_code code;

    (void)snprintf(which, sizeof which, " AND s.property_id=?1 AND s.mol_id IN (SELECT mol_id FROM %s)", among);
    code = counts_prepare(&st, db, which, property_id, err);
    if (pl_db_next(st, &code, err))
        reasons_add(out, st);
    (void)sqlite3_finalize(st);
    return code;
}
