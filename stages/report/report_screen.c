/* SPDX-License-Identifier: Apache-2.0 */
/* The funnel of records, and failures. */
#include "stages/report/report_parts.h"

#include <string.h>

#include "stages/steps/ingest/alerts.h"

enum { MAX_GROUPS = 50, MAX_EXAMPLES = 3 };

/* ---- the funnel ---- */

static void add_step(st_report *r, const char *what, int64_t n, int64_t records, bool left)
{
    double wide = records > 0 ? 100.0 * (double)n / (double)records : 0;

    pl_text_addf(r->out, "<tr%s><th scope=\"row\">%s</th><td class=\"n\">", left ? " class=\"out\"" : "", what);
    st_html_count(r->out, n);
    pl_text_addf(r->out,
                 "</td><td class=\"n\">%.1f</td><td><svg class=\"share\" role=\"img\" aria-label=\"%.1f %%\" "
                 "viewBox=\"0 0 100 12\" preserveAspectRatio=\"none\"><rect%s width=\"%.2f\" height=\"12\"/></svg></td></tr>\n",
                 wide, wide, left ? " class=\"neg\"" : "", wide);
}

static bool has_alerts(st_report *r)
{
    bool yes = false;

    if (r->code == PL_OK)
        r->code = st_alerts_there(r->db, &yes, r->err);
    return yes;
}

/* The names of a row are a list in JSON but for its quotes: they have neither quotes nor backslashes. */
static void add_alerts(st_report *r)
{
    static const char *const heads[] = { "structural alert", "#molecules that have it", "#records set aside for it", NULL };
    static const char of[] =
        "WITH a(names, aside) AS (SELECT alerts, 0 FROM molecule WHERE alerts<>'' UNION ALL SELECT substr(reason,%d), 1 FROM record "
        "WHERE status='filtered' AND reason LIKE '" ST_ALERTS_REASON "%%'), each(name, aside) AS (SELECT value, aside FROM a, "
        "json_each('[\"'||replace(names,', ','\",\"')||'\"]')) ";
    const char *sql = pl_sprintf(
        r->mem, "%sSELECT name, sum(1-aside), sum(aside) FROM each GROUP BY name ORDER BY count(*) DESC, name LIMIT %%d", of);
    const char *count = pl_sprintf(r->mem, "%sSELECT count(DISTINCT name) FROM each", of);
    int64_t n;

    if (!st_report_has_memory(r, sql != NULL && count != NULL ? PL_OK : PL_ENOMEM, "the alerts"))
        return;
    n = st_report_int(r, count, (int)sizeof ST_ALERTS_REASON);
    st_report_table(r, "mid",
                    "Groups that react or disturb assays, by the rules of prepare.alerts: a reason to check the molecule, not to "
                    "reject it.");
    st_report_heads(r, heads);
    for (sqlite3_stmt *st = st_report_query(r, sql, (int)sizeof ST_ALERTS_REASON, MAX_GROUPS); st_report_row(r, &st);) {
        pl_text_add(r->out, "<tr>");
        for (int i = 0; i < 3; i++)
            st_report_cell(r, st, i);
        pl_text_add(r->out, "</tr>\n");
    }
    st_report_table_end(r);
    if (n > MAX_GROUPS)
        pl_text_addf(r->out, "<p class=\"note\">The %d that are found most often, of %lld.</p>\n", MAX_GROUPS, (long long)n);
}

/* What the rules of the ranking leave, between the scored and the ranked. */
static void add_rules(st_report *r, int64_t records)
{
    for (sqlite3_stmt *st =
             st_report_query(r, "SELECT name, value FROM metric WHERE stage='rank' AND split='funnel' AND step>1 AND "
                                "name<>'are ranked' ORDER BY step");
         st_report_row(r, &st);)
        add_step(r, st_column(st, 0), sqlite3_column_int64(st, 1), records, false);
}

void st_report_funnel(st_report *r)
{
    static const char *const heads[] = { "step", "#number", "#% of records", "", NULL };
    static const char *const names[] = { "records read",
                                         "duplicates of another record",
                                         "set aside by a filter",
                                         "failed, with a reason",
                                         "not prepared yet",
                                         "molecules",
                                         "scored",
                                         "ranked" };
    static const char sql[] = "SELECT records, duplicate, filtered, failed, waiting, molecules, scored, hits FROM v_funnel";

    st_report_table(r, "mid",
                    "Every record is accounted for: records = molecules + duplicates + filtered + failed (+ not prepared yet).");
    st_report_heads(r, heads);
    for (sqlite3_stmt *st = st_report_query(r, "%s", sql); st_report_row(r, &st);)
        for (int i = 0; i < 8; i++) {
            int64_t n = sqlite3_column_int64(st, i);
            bool later = i == 4 || i >= 6; /* only where there was such a step */
            if (i == 7)
                add_rules(r, sqlite3_column_int64(st, 0));
            if (n > 0 || !later)
                add_step(r, names[i], n, sqlite3_column_int64(st, 0), i > 0 && i < 5);
        }
    st_report_table_end(r);
    if (has_alerts(r))
        add_alerts(r);
}

/* ---- failures ---- */

static void add_examples(st_report *r, const char *stage, const char *code)
{
    static const char sql[] =
        "SELECT i.path, r.line, coalesce(r.title,''), f.message, coalesce(r.raw_smiles,m.smiles,'') "
        "FROM failure f JOIN record r ON r.record_id=coalesce(f.record_id,f.mol_id) JOIN input_file i USING(file_id) "
        "LEFT JOIN molecule m ON m.mol_id=f.mol_id WHERE f.stage=%Q AND f.code=%Q ORDER BY f.failure_id LIMIT %d";

    for (sqlite3_stmt *st = st_report_query(r, sql, stage, code, MAX_EXAMPLES); st_report_row(r, &st);) {
        const char *path = st_column(st, 0), *slash = strrchr(path, '/');
        pl_text_add(r->out, "<div>");
        st_html_cut(r->out, st_column(st, 3), 300);
        pl_text_add(r->out, " <span class=\"note\">");
        st_html_cut(r->out, slash != NULL ? slash + 1 : path, 100);
        pl_text_addf(r->out, ":%lld ", (long long)sqlite3_column_int64(st, 1));
        st_html_cut(r->out, st_column(st, 2), 80);
        pl_text_add(r->out, " <code>");
        st_html_cut(r->out, st_column(st, 4), 120);
        pl_text_add(r->out, "</code></span></div>");
    }
}

void st_report_failures(st_report *r)
{
    static const char *const heads[] = { "stage", "code", "#number", "first examples: what was found, where", NULL };
    static const char sql[] = "SELECT stage, code, count(*) AS n FROM failure GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT %d";

    st_report_table(r, "", "Records and molecules that could not be used. All of them: <code>molsieve failures --csv</code>.");
    st_report_heads(r, heads);
    for (sqlite3_stmt *st = st_report_query(r, sql, MAX_GROUPS); st_report_row(r, &st);) {
        pl_text_add(r->out, "<tr>");
        for (int i = 0; i < 3; i++)
            st_report_cell(r, st, i);
        pl_text_add(r->out, "<td>");
        add_examples(r, st_column(st, 0), st_column(st, 1));
        pl_text_add(r->out, "</td></tr>\n");
    }
    st_report_table_end(r);
}
