/* SPDX-License-Identifier: Apache-2.0 */
/* The top of the ranking. */
#include "stages/report/report_parts.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "stages/database/descriptor_columns.h"
#include "stages/steps/errors/domain_words.h"
#include "stages/steps/rank/rank.h"
#include "stages/steps/rank/score_columns.h"

enum { RANK, MOL, SMILES, INCHIKEY, TITLES, FORMULA, N_HIDDEN, N_FIRST = 3 }; /* N_FIRST: columns of the page made from these */

/* ---- which hits, and their scaffolds ---- */

static bool load(st_report *r)
{
    const int64_t n = st_report_int(r, "SELECT min(count(*),%lld) FROM hit", (long long)r->top);

    r->hit = PL_NEW(r->mem, st_hit, n + 1);
    if (r->hit == NULL && r->code == PL_OK)
        r->code = pl_fail(r->err, PL_ENOMEM, "the ranking");
    for (sqlite3_stmt *st =
             st_report_query(r,
                             "SELECT rank, mol_id, smiles, coalesce((SELECT group_concat(title,'; ') FROM (SELECT title FROM "
                             "record r WHERE r.mol_id=m.mol_id ORDER BY r.record_id LIMIT 20)),'') FROM hit JOIN molecule m "
                             "USING(mol_id) ORDER BY rank LIMIT %lld",
                             (long long)n);
         st_report_row(r, &st) && r->n_hits < n;)
        r->hit[r->n_hits++] = (st_hit){ .rank = sqlite3_column_int64(st, 0),
                                        .mol_id = sqlite3_column_int64(st, 1),
                                        .smiles = pl_strdup(r->mem, st_column(st, 2)),
                                        .title = pl_strdup(r->mem, st_column(st, 3)) };
    for (int64_t i = 0; i < r->n_hits && r->code == PL_OK; i++)
        if (r->hit[i].smiles == NULL || r->hit[i].title == NULL)
            r->code = pl_fail(r->err, PL_ENOMEM, "the ranking");
    return r->code == PL_OK;
}

static int32_t group_of(const st_report *r, int64_t i, int32_t *n_groups)
{
    for (int64_t k = 0; k < i; k++)
        if (r->hit[k].group > 0 && r->hit[k].scaffold == r->hit[i].scaffold)
            return r->hit[k].group;
    return ++*n_groups;
}

static void group(st_report *r)
{
    int32_t n_groups = 0;

    for (int64_t i = 0; i < r->n_hits; i++) {
        st_hit *h = &r->hit[i];
        if (!st_report_scaffold(r, h->smiles, &h->scaffold))
            h->group = -1;
        else if (h->scaffold != 0)
            h->group = group_of(r, i, &n_groups);
    }
}

/* ---- the table ---- */

static sqlite3_stmt *query_hits(st_report *r)
{
    pl_text sql = { 0 };
    sqlite3_stmt *st = NULL;

    pl_text_add(&sql,
                "SELECT h.rank, m.mol_id, m.smiles, m.inchikey, (SELECT group_concat(title,'; ') FROM (SELECT title FROM record r "
                "WHERE r.mol_id=m.mol_id ORDER BY r.record_id LIMIT 20)), m.formula");
    if (r->code == PL_OK)
        r->code = st_score_columns_of_hits(r->db, r->top, true, &sql, r->err);
    st_descriptors_in_report(&sql);
    pl_text_addf(&sql, " FROM hit h JOIN molecule m ON m.mol_id=h.mol_id ORDER BY h.rank LIMIT %lld", (long long)r->n_hits);
    if (r->code == PL_OK)
        r->code = pl_text_ok(&sql) ? pl_db_prepare(r->db, &st, sql.s, r->err) : pl_fail(r->err, PL_ENOMEM, "the ranking");
    pl_text_free(&sql);
    return st;
}

static void add_heads(st_report *r, sqlite3_stmt *st)
{
    const int n = sqlite3_column_count(st), n_heads = n - N_HIDDEN + N_FIRST;
    const char **heads = PL_NEW(r->mem, const char *, n_heads + 2);
    bool good = heads != NULL;

    for (int i = N_HIDDEN; i < n && good; i++) {
        const char *name = sqlite3_column_name(st, i);
        const bool is_text = strcmp(name, "domain") == 0 || strcmp(name, "alerts") == 0;
        heads[i - N_HIDDEN + N_FIRST] = pl_sprintf(r->mem, "%s%s", is_text ? "" : "#", name);
        good = heads[i - N_HIDDEN + N_FIRST] != NULL;
    }
    if (!good) {
        r->code = pl_fail(r->err, PL_ENOMEM, "the ranking");
        return;
    }
    heads[0] = "#rank";
    heads[1] = "structure";
    heads[2] = "identifiers";
    heads[n_heads] = "#scaffold";
    st_report_heads(r, heads);
}

/* The name of its column is for narrow screens, where there are no heads. */
static void add_cell(st_report *r, sqlite3_stmt *st, int i)
{
    const int type = sqlite3_column_type(st, i);

    pl_text_add(r->out, type == SQLITE_TEXT ? "<td data-h=\"" : "<td class=\"n\" data-h=\"");
    st_html_cut(r->out, sqlite3_column_name(st, i), 60);
    pl_text_add(r->out, "\">");
    if (type == SQLITE_FLOAT)
        st_html_real(r->out, sqlite3_column_double(st, i), 3);
    else if (type == SQLITE_INTEGER)
        st_html_count(r->out, sqlite3_column_int64(st, i));
    else
        st_html_cut(r->out, st_column(st, i), 400);
    pl_text_add(r->out, "</td>");
}

static void add_identifiers(st_report *r, sqlite3_stmt *st)
{
    pl_text_add(r->out, "<td class=\"id\"><b>");
    st_html_cut(r->out, st_column(st, TITLES), 120);
    pl_text_add(r->out, "</b>");
    st_html_cut(r->out, st_column(st, FORMULA), 100);
    pl_text_add(r->out, "<br><code>");
    st_html_cut(r->out, st_column(st, INCHIKEY), 40);
    pl_text_add(r->out, "</code><br><code>");
    st_html_cut(r->out, st_column(st, SMILES), 200);
    pl_text_add(r->out, "</code></td>");
}

static void add_group(st_report *r, const st_hit *h)
{
    pl_text_add(r->out, "<td class=\"n\" data-h=\"scaffold\">");
    if (h->group > 0)
        pl_text_addf(r->out, "<a href=\"#scaffold%d\"><data value=\"%d\">%d</data></a>", h->group, h->group, h->group);
    pl_text_add(r->out, "</td>");
}

static void add_hit(st_report *r, sqlite3_stmt *st, st_hit *h)
{
    char id[24];

    (void)snprintf(id, sizeof id, "hit%lld", (long long)h->rank);
    pl_text_addf(r->out, "<tr><th scope=\"row\" class=\"n\"><data value=\"%lld\">%lld</data></th><td class=\"pic\">",
                 (long long)h->rank, (long long)h->rank);
    st_report_draw(r, h->smiles, id, &h->structure);
    pl_text_add(r->out, "</td>");
    add_identifiers(r, st);
    for (int i = N_HIDDEN; i < sqlite3_column_count(st); i++)
        add_cell(r, st, i);
    add_group(r, h);
    pl_text_add(r->out, "</tr>\n");
}

/* ---- what was asked for ---- */

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

static void add_notes(st_report *r)
{
    const int64_t n = st_report_int(r, "SELECT count(*) FROM hit");

    for (sqlite3_stmt *q = st_report_query(r, "SELECT params_json FROM stage WHERE name='rank' ORDER BY stage_id DESC LIMIT 1");
         st_report_row(r, &q);)
        add_rules(r, st_column(q, 0));
    pl_text_addf(r->out, "<p>The first %lld of %lld. All of them: <code>molsieve export csv</code> or <code>sdf</code>.</p>\n",
                 (long long)r->n_hits, (long long)n);
    add_domain(r);
}

void st_report_hits(st_report *r)
{
    int64_t i = 0;
    sqlite3_stmt *st;

    if (!load(r))
        return;
    group(r);
    add_notes(r);
    st = query_hits(r);
    pl_text_add(r->out,
                "<div class=\"wide\"><table class=\"mid\" id=\"ranking\"><caption>Scores are means over the models of a property; "
                "&plusmn; 90 % is the half-width of the 90 % prediction interval, empty outside of the domain. A structure that "
                "could not be drawn is shown as SMILES.</caption>\n");
    if (st != NULL)
        add_heads(r, st);
    while (st_report_row(r, &st) && i < r->n_hits)
        add_hit(r, st, &r->hit[i++]);
    (void)sqlite3_finalize(st);
    st_report_table_end(r);
    st_report_files(r);
    st_report_scaffolds(r);
    st_report_moved(r);
    st_report_retrieval(r);
}
