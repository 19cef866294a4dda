/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a model against similarity to its training molecules. */
#include "stages/report/report_parts.h"

void st_report_similarity(st_report *r, int64_t model, int64_t property)
{
    static const char *const heads[] = {
        "part", "similarity to the nearest training molecule", "#molecules", "#MAE", "unit", NULL
    };

    if (!st_report_int(
            r,
            "SELECT EXISTS(SELECT 1 FROM evaluated WHERE model_id=%lld AND property_id=%lld AND part<>'train' AND similarity IS NOT NULL)",
            (long long)model, (long long)property))
        return;
    st_report_table(r, "",
                    "Error against similarity (Tanimoto, ECFP4): where it grows as similarity falls, trust distant hits less.");
    st_report_heads(r, heads);
    for (
        sqlite3_stmt *st = st_report_query(
            r,
            "SELECT part, (band/10.0)||' to '||((band+1)/10.0), count(*), avg(error), unit FROM (SELECT part, unit, "
            "abs(predicted-measured) AS error, min(9,CAST(similarity*10 AS INTEGER)) AS band FROM evaluated JOIN property p "
            "USING(property_id) WHERE model_id=%lld AND property_id=%lld AND part<>'train' AND similarity IS NOT NULL) GROUP BY part, band "
            "ORDER BY part, band",
            (long long)model, (long long)property);
        st_report_row(r, &st);) {
        pl_text_add(r->out, "<tr>");
        for (int i = 0; i < 5; i++)
            st_report_cell(r, st, i);
        pl_text_add(r->out, "</tr>\n");
    }
    st_report_table_end(r);
}
