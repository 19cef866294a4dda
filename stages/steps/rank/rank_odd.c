/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of programs that may stand for "no score". */
#include <string.h>

#include "pipeline/base/log.h"
#include "stages/database/external_models.h"
#include "stages/steps/ingest/placeholder.h"
#include "stages/steps/rank/rank_parts.h"

static void tell(const st_ranking *s, const st_placeholders *p, const char *name)
{
    const int i = st_placeholders_find(p);

    if (i >= 0)
        pl_event_add(
            s->env, PL_WARN,
            "%s is %.10g for %lld molecules, and between %.4g and %.4g for others, and ranked as a score: if the program means "
            "that it has none, let it print no number",
            name, p->nines[i].value, (long long)p->nines[i].n, p->low, p->high);
}

pl_code st_rank_odd(const st_ranking *s, pl_error *err)
{
    st_placeholders numbers = { 0 };
    sqlite3_stmt *st = NULL;
    char name[200] = "";
    pl_code code = pl_db_prepare(s->env->store->db, &st,
                                 "SELECT q.name, p.value FROM model m JOIN prediction p USING(model_id) JOIN property q "
                                 "USING(property_id) WHERE " ST_IS_EXTERNAL("m.") " ORDER BY q.name",
                                 err);

    while (pl_db_next(st, &code, err)) {
        const char *next = (const char *)sqlite3_column_text(st, 0);
        if (strncmp(next, name, sizeof name - 1) != 0) {
            tell(s, &numbers, name);
            numbers = (st_placeholders){ 0 };
            (void)snprintf(name, sizeof name, "%s", next);
        }
        st_placeholders_add(&numbers, sqlite3_column_double(st, 1), 1);
    }
    tell(s, &numbers, name);
    (void)sqlite3_finalize(st);
    return code;
}
