/* SPDX-License-Identifier: Apache-2.0 */
/* The funnel of records, and the top of the ranking. */
#include "stages/report/report_parts.h"
#include "stages/steps/errors/domain_words.h"

#include <jansson.h>
#include <string.h>

#include "stages/database/descriptor_columns.h"
#include "stages/steps/ingest/alerts.h"
#include "stages/steps/rank/rank.h"
#include "stages/steps/rank/score_columns.h"

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
    static const char sql[] =
        "WITH a(names, aside) AS (SELECT alerts, 0 FROM molecule WHERE alerts<>'' UNION ALL SELECT substr(reason,%d), 1 FROM record "
        "WHERE status='filtered' AND reason LIKE '" ST_ALERTS_REASON "%%') SELECT value, sum(1-aside), sum(aside) FROM a, "
        "json_each('[\"'||replace(names,', ','\",\"')||'\"]') GROUP BY value ORDER BY count(*) DESC, value LIMIT %d";

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
        "SELECT coalesce(i.path,''), coalesce(r.line,0), coalesce(r.title,''), f.message, coalesce(r.raw_smiles,m.smiles,'') "
        "FROM failure f LEFT JOIN record r ON r.record_id=coalesce(f.record_id,f.mol_id) LEFT JOIN input_file i USING(file_id) "
        "LEFT JOIN molecule m ON m.mol_id=f.mol_id WHERE f.stage=%Q AND f.code=%Q ORDER BY f.failure_id LIMIT %d";

    for (sqlite3_stmt *st = st_report_query(r, sql, stage, code, MAX_EXAMPLES); st_report_row(r, &st);) {
        const char *path = st_column(st, 0), *slash = strrchr(path, '/');
        pl_text_add(r->out, "<div>");
        st_html_cut(r->out, st_column(st, 3), 300);
        pl_text_add(r->out, " <span class=\"note\">");
        st_html_cut(r->out, slash != NULL ? slash + 1 : path, 100);
        if (sqlite3_column_int64(st, 1) > 0)
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

/* ---- hits ---- */

enum { RANK, SMILES, INCHIKEY, TITLES, FORMULA, N_HIDDEN }; /* columns with a special kind of cell   */

static sqlite3_stmt *query_hits(st_report *r)
{
    pl_text sql = { 0 };
    sqlite3_stmt *st = NULL;

    pl_text_add(&sql,
                "SELECT h.rank, m.smiles, m.inchikey, "
                "(SELECT group_concat(title,'; ') FROM (SELECT title FROM record r WHERE r.mol_id=m.mol_id LIMIT 20)), m.formula");
    if (r->code == PL_OK)
        r->code = st_score_columns(r->db, false, &sql, r->err);
    pl_text_add(&sql, ", h.objective");
    if (r->code == PL_OK)
        r->code = st_hit_columns(r->db, &sql, NULL, r->err);
    st_descriptors_in_report(&sql);
    pl_text_addf(&sql, " FROM hit h JOIN molecule m ON m.mol_id=h.mol_id ORDER BY h.rank LIMIT %lld", (long long)r->top);
    if (r->code == PL_OK)
        r->code = pl_text_ok(&sql) ? pl_db_prepare(r->db, &st, sql.s, r->err) : pl_fail(r->err, PL_ENOMEM, "the ranking");
    pl_text_free(&sql);
    return st;
}

static void add_heads(st_report *r, sqlite3_stmt *st)
{
    int n = sqlite3_column_count(st);
    const char **heads = PL_NEW(r->mem, const char *, n);
    bool good = heads != NULL;

    for (int i = N_HIDDEN; i < n && good; i++) {
        heads[i - 2] = pl_sprintf(r->mem, "#%s", sqlite3_column_name(st, i));
        good = heads[i - 2] != NULL;
    }
    if (!good) {
        r->code = pl_fail(r->err, PL_ENOMEM, "the ranking");
        return;
    }
    heads[0] = "#rank";
    heads[1] = "structure";
    heads[2] = "identifiers";
    st_report_heads(r, heads);
}

static void add_hit(st_report *r, sqlite3_stmt *st)
{
    pl_text_addf(r->out, "<tr><th scope=\"row\" class=\"n\">%lld</th>", (long long)sqlite3_column_int64(st, RANK));
    st_report_structure(r, st_column(st, SMILES));
    pl_text_add(r->out, "<td class=\"id\"><b>");
    st_html_cut(r->out, st_column(st, TITLES), 120);
    pl_text_add(r->out, "</b>");
    st_html_cut(r->out, st_column(st, FORMULA), 100);
    pl_text_add(r->out, "<br><code>");
    st_html_cut(r->out, st_column(st, INCHIKEY), 40);
    pl_text_add(r->out, "</code><br><code>");
    st_html_cut(r->out, st_column(st, SMILES), 200);
    pl_text_add(r->out, "</code></td>");
    for (int i = N_HIDDEN; i < sqlite3_column_count(st); i++)
        st_report_cell(r, st, i);
    pl_text_add(r->out, "</tr>\n");
}

static void add_term(pl_text *line, const json_t *term)
{
    const char *goal = json_string_value(json_object_get(term, "goal")), *use = json_string_value(json_object_get(term, "use"));
    const char *low = json_string_value(json_object_get(term, "at_least")),
               *high = json_string_value(json_object_get(term, "at_most"));
    const char *property = json_string_value(json_object_get(term, "property"));
    double weight = json_number_value(json_object_get(term, "weight")),
           alike = json_number_value(json_object_get(term, "similarity_at_least"));

    pl_text_addf(line, "%s%s%s", goal != NULL ? goal : "", goal != NULL ? " " : "", property != NULL ? property : "?");
    if (goal != NULL && weight != 1)
        pl_text_addf(line, " times %g", weight);
    if (use != NULL && strcmp(use, "mean") != 0)
        pl_text_addf(line, " (%s)", use);
    if (low != NULL)
        pl_text_addf(line, ", at least %s", low);
    if (high != NULL)
        pl_text_addf(line, ", at most %s", high);
    if (alike > 0)
        pl_text_addf(line, ", similarity at least %g", alike);
}

static void add_diversity(pl_text *line, const json_t *all)
{
    const char *by = json_string_value(json_object_get(all, "diversity.by"));
    const json_t *n = json_object_get(all, "diversity.at_most"), *threshold = json_object_get(all, "diversity.threshold");

    if (by != NULL && strcmp(by, "scaffold") == 0) /* settings at their default are absent */
        pl_text_addf(line, ", at most %lld of a scaffold", n != NULL ? (long long)json_integer_value(n) : ST_RANK_AT_MOST);
    else if (by != NULL)
        pl_text_addf(line, ", none above %g of similarity to a better one",
                     threshold != NULL ? json_number_value(threshold) : ST_RANK_THRESHOLD);
}

/* "maximise logS; mw, at most 500; where hbd <= 5; the first 50" */
static void add_rules(st_report *r, const char *params)
{
    static const char *const lists[] = { "objectives", "constraints" };
    json_t *all = json_loads(params, 0, NULL);
    const char *where = json_string_value(json_object_get(all, "where"));
    const json_t *term;
    pl_text line = { 0 };
    size_t i;

    for (int k = 0; k < 2; k++)
        json_array_foreach(json_object_get(all, lists[k]), i, term) {
            add_term(&line, term);
            pl_text_add(&line, "; ");
        }
    if (where != NULL)
        pl_text_addf(&line, "where %s; ", where);
    if (json_object_get(all, "domain") != NULL)
        pl_text_add(&line, "only inside of the domain of the models; ");
    if (json_object_get(all, "method") != NULL) /* settings at their default are absent */
        pl_text_add(&line, "by Pareto fronts, no weights; ");
    pl_text_addf(&line, "at most %lld molecules", (long long)json_integer_value(json_object_get(all, "top")));
    add_diversity(&line, all);
    json_decref(all);
    pl_text_add(r->out, "<p class=\"note\">How they were ranked: ");
    st_html_cut(r->out, pl_text_str(&line), 2000);
    pl_text_add(r->out, "</p>\n");
    if (!pl_text_ok(&line))
        r->code = pl_fail(r->err, PL_ENOMEM, "the ranking");
    pl_text_free(&line);
}

/* All scores, not those of the hits alone: a line each. */
static void add_domain(st_report *r)
{
    pl_text text = { 0 };

    if (r->code == PL_OK)
        r->code = st_domain_words(&text, r->db, false, 0, r->err);
    if (text.len > 0) {
        pl_text_add(r->out, "<p class=\"note\">");
        st_html_cut(r->out, pl_text_str(&text), 2000);
        pl_text_add(r->out, "</p>\n");
    }
    pl_text_free(&text);
}

void st_report_hits(st_report *r)
{
    int64_t n = st_report_int(r, "SELECT count(*) FROM hit");
    sqlite3_stmt *st = query_hits(r);

    for (sqlite3_stmt *q = st_report_query(r, "SELECT params_json FROM stage WHERE name='rank' ORDER BY stage_id DESC LIMIT 1");
         st_report_row(r, &q);)
        add_rules(r, st_column(q, 0));
    pl_text_addf(r->out, "<p>The first %lld of %lld. All of them: <code>molsieve export csv</code> or <code>sdf</code>.</p>\n",
                 (long long)(n < r->top ? n : r->top), (long long)n);
    add_domain(r);
    st_report_table(r, "mid",
                    "Scores are means over the models of a property; a structure that could not be drawn is shown as SMILES.");
    if (st != NULL)
        add_heads(r, st);
    while (st_report_row(r, &st))
        add_hit(r, st);
    st_report_table_end(r);
    st_report_retrieval(r);
}
