/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/report/report.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "stages/report/report_parts.h"

extern const char st_report_css[]; /* stages/report/report.css */

/* ---- queries ---- */

static sqlite3_stmt *prepare(st_report *r, const char *fmt, va_list args)
{
    sqlite3_stmt *st = NULL;
    char *sql = r->code == PL_OK ? sqlite3_vmprintf(fmt, args) : NULL;

    if (r->code == PL_OK)
        r->code = sql != NULL ? pl_db_prepare(r->db, &st, sql, r->err) : pl_fail(r->err, PL_ENOMEM, "a query of the report");
    sqlite3_free(sql);
    return st;
}

sqlite3_stmt *st_report_query(st_report *r, const char *fmt, ...)
{
    va_list args;
    sqlite3_stmt *st = NULL;

    va_start(args, fmt);
    st = prepare(r, fmt, args);
    va_end(args);
    return st;
}

bool st_report_row(st_report *r, sqlite3_stmt **st)
{
    if (*st != NULL && pl_db_next(*st, &r->code, r->err))
        return true;
    (void)sqlite3_finalize(*st);
    *st = NULL;
    return false;
}

int64_t st_report_int(st_report *r, const char *fmt, ...)
{
    va_list args;
    sqlite3_stmt *st = NULL;
    int64_t n = 0;

    va_start(args, fmt);
    st = prepare(r, fmt, args);
    va_end(args);
    if (st_report_row(r, &st))
        n = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    return n;
}

const char *st_column(sqlite3_stmt *st, int i)
{
    const unsigned char *text = sqlite3_column_text(st, i);
    return text != NULL ? (const char *)text : "";
}

/* ---- pieces ---- */

void st_report_section(st_report *r, const char *id, const char *title)
{
    pl_text_addf(r->out, "<h2 id=\"%s\">%s</h2>\n", id, title);
}

void st_report_table(st_report *r, const char *class, const char *caption)
{
    pl_text_addf(r->out,
                 caption[0] ? "<div class=\"wide\"><table class=\"%s\"><caption>%s</caption>\n"
                            : "<div class=\"wide\"><table class=\"%s\">%s\n",
                 class, caption);
}

void st_report_heads(st_report *r, const char *const *names)
{
    pl_text_add(r->out, "<thead><tr>");
    for (int i = 0; names[i] != NULL; i++) {
        bool number = names[i][0] == '#';
        pl_text_add(r->out, number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
        st_html_cut(r->out, names[i] + number, 100);
        pl_text_add(r->out, "</th>");
    }
    pl_text_add(r->out, "</tr></thead>\n<tbody>\n");
}

void st_report_table_end(st_report *r) { pl_text_add(r->out, "</tbody></table></div>\n"); }

void st_report_cell(st_report *r, sqlite3_stmt *st, int i)
{
    int type = sqlite3_column_type(st, i);

    pl_text_add(r->out, type == SQLITE_INTEGER || type == SQLITE_FLOAT ? "<td class=\"n\">" : "<td>");
    if (type == SQLITE_INTEGER)
        st_html_count(r->out, sqlite3_column_int64(st, i));
    else if (type == SQLITE_FLOAT)
        st_html_real(r->out, sqlite3_column_double(st, i), 4);
    else
        st_html_cut(r->out, st_column(st, i), 400);
    pl_text_add(r->out, "</td>");
}

/* ---- the page ---- */

static void add_tile(st_report *r, const char *what, int64_t n)
{
    if (n <= 0)
        return;
    pl_text_add(r->out, "<div><b>");
    st_html_count(r->out, n);
    pl_text_addf(r->out, "</b><span>%s</span></div>", what);
}

static void add_tiles(st_report *r)
{
    pl_text_add(r->out, "<div class=\"tiles\">");
    for (sqlite3_stmt *st = st_report_query(r, "SELECT records, failed, molecules, scored, hits FROM v_funnel");
         st_report_row(r, &st);) {
        add_tile(r, "records read", sqlite3_column_int64(st, 0));
        add_tile(r, "records failed", sqlite3_column_int64(st, 1));
        add_tile(r, "molecules", sqlite3_column_int64(st, 2));
        add_tile(r, "scored", sqlite3_column_int64(st, 3));
        add_tile(r, "ranked", sqlite3_column_int64(st, 4));
    }
    add_tile(r, "molecules with labels", st_report_int(r, "SELECT count(DISTINCT mol_id) FROM label"));
    pl_text_add(r->out, "</div>\n");
}

static void add_head(st_report *r, const char *name)
{
    pl_text *out = r->out;

    pl_text_add(
        out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src ");
    st_report_policy(out);
    pl_text_add(out, "\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    st_html_cut(out, name, 100);
    pl_text_addf(out, " - molsieve report</title>\n<style>\n%s</style>\n</head>\n<body>\n<header><h1>", st_report_css);
    st_html_cut(out, name, 100);
    pl_text_add(out, "</h1>\n");
}

/* One line: how the last run ended, when, where, with what. */
static void add_run(st_report *r)
{
    static const char sql[] =
        "SELECT state, coalesce(stop_reason,''), (SELECT min(started_utc) FROM run), coalesce(ended_utc,''), "
        "coalesce(host,''), seed, program_version, (SELECT count(*) FROM run) FROM run ORDER BY run_id DESC LIMIT 1";
    static const char *const before[] = { "Last run: ",
                                          ": ",
                                          " &middot; first begun ",
                                          " &middot; ended ",
                                          " &middot; on ",
                                          " &middot; seed ",
                                          " &middot; molsieve ",
                                          " &middot; runs: " };

    pl_text_add(r->out, "<p class=\"sub\">");
    for (sqlite3_stmt *st = st_report_query(r, "%s", sql); st_report_row(r, &st);)
        for (int i = 0; i < 8; i++)
            if (st_column(st, i)[0] != '\0') {
                pl_text_add(r->out, before[i]);
                st_html_cut(r->out, st_column(st, i), 200);
            }
    pl_text_add(r->out, "</p>\n</header>\n");
}

/* Parts that are empty give nothing, and get no link. */
static const struct {
    const char *id, *title;
    void (*add)(st_report *r);
    const char *rows; /* there is something to show when this query is not 0 */
} parts[] = {
    { "funnel", "Funnel", st_report_funnel, "SELECT EXISTS(SELECT 1 FROM record)" },
    { "hits", "Top of the ranking", st_report_hits, "SELECT EXISTS(SELECT 1 FROM hit)" },
    { "campaign", "Rounds of the campaign", st_report_campaign, "SELECT EXISTS(SELECT 1 FROM acquired WHERE outcome IS NOT NULL)" },
    { "models", "Models", st_report_models,
      "SELECT EXISTS(SELECT 1 FROM model) OR EXISTS(SELECT 1 FROM metric WHERE stage<>'rank')" },
    { "distributions", "Distributions", st_report_histograms, "SELECT EXISTS(SELECT 1 FROM molecule)" },
    { "failures", "Failures", st_report_failures, "SELECT EXISTS(SELECT 1 FROM failure)" },
    { "timings", "Stages, runs and time", st_report_timings, "SELECT EXISTS(SELECT 1 FROM run)" },
    { "settings", "Settings and provenance", st_report_settings, "SELECT EXISTS(SELECT 1 FROM run)" },
};
enum { N_PARTS = sizeof parts / sizeof *parts };

static void add_cite(st_report *r)
{
    st_report_section(r, "cite", "How to cite");
    pl_text_add(
        r->out,
        "<p>Cite molsieve (CITATION.cff in its source), and the methods in it:</p>\n<ul>\n"
        "<li>F. B. Fuchs, D. E. Worrall, V. Fischer, M. Welling: SE(3)-Transformers: 3D Roto-Translation Equivariant "
        "Attention Networks. Advances in Neural Information Processing Systems 33 (2020).</li>\n"
        "<li>N. M. O&#39;Boyle, M. Banck, C. A. James, C. Morley, T. Vandermeersch, G. R. Hutchison: Open Babel: An open "
        "chemical toolbox. Journal of Cheminformatics 3:33 (2011).</li>\n"
        "<li>Descriptors: S. A. Wildman, G. M. Crippen, J. Chem. Inf. Comput. Sci. 39:868 (1999), log P; P. Ertl, B. Rohde, "
        "P. Selzer, J. Med. Chem. 43:3714 (2000), TPSA.</li>\n"
        "<li>The data that models were trained on; see the provenance of each model above.</li>\n</ul>\n");
}

/* A YAML scalar as pl_workflow_dump writes it: plain, or in double quotes as JSON has them. */
static const char *scalar(st_report *r, const char *at)
{
    const char *text = pl_strndup(r->mem, at, strcspn(at, "\n"));
    json_t *quoted = text != NULL && text[0] == '"' ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;

    if (json_is_string(quoted))
        text = pl_strdup(r->mem, json_string_value(quoted));
    json_decref(quoted);
    return st_report_text(r, text, "the name");
}

static const char *workflow_name(st_report *r)
{
    const char *name = "run";

    for (sqlite3_stmt *st = st_report_query(r, "SELECT config_yaml FROM run ORDER BY run_id DESC LIMIT 1");
         st_report_row(r, &st);) {
        const char *yaml = st_column(st, 0), *at = strstr(yaml, "\nname: ");
        if (at != NULL)
            name = scalar(r, at + 7);
    }
    return name;
}

static void add_page(st_report *r)
{
    bool shown[N_PARTS];

    add_head(r, workflow_name(r));
    add_run(r);
    add_tiles(r);
    st_report_warnings(r);
    pl_text_add(r->out, "<nav aria-label=\"sections\">");
    for (int i = 0; i < N_PARTS; i++) {
        shown[i] = st_report_int(r, "%s", parts[i].rows) != 0;
        if (shown[i])
            pl_text_addf(r->out, "<a href=\"#%s\">%s</a>", parts[i].id, parts[i].title);
    }
    pl_text_add(r->out, "<a href=\"#cite\">How to cite</a></nav>\n<main>\n");
    for (int i = 0; i < N_PARTS && r->code == PL_OK; i++)
        if (shown[i]) {
            st_report_section(r, parts[i].id, parts[i].title);
            parts[i].add(r);
        }
    add_cite(r);
    pl_text_add(
        r->out,
        "</main>\n<footer>Made by <code>molsieve report</code> from the run&#39;s results.db, and from "
        "nothing else but the models and structures that made its scores: the same database gives the same page.</footer>\n");
    st_report_script(r->out);
    pl_text_add(r->out, "</body>\n</html>\n");
}

pl_code st_report_make(pl_text *out, pl_store *store, pl_store *training, int64_t top, st_drawn *drawn, pl_arena *mem,
                       pl_error *err)
{
    st_report r = { .store = store,
                    .db = store->db,
                    .training = training != NULL ? training->db : NULL,
                    .out = out,
                    .mem = mem,
                    .top = top,
                    .drawn = drawn,
                    .err = err };

    *drawn = (st_drawn){ 0 };
    r.code = pl_db_exec(r.db, "BEGIN", err);
    if (r.code != PL_OK)
        return r.code;
    st_report_open_worker(&r);
    add_page(&r);
    ch_worker_close(r.worker);
    pl_db_rollback(r.db);
    return pl_text_ok(out) ? r.code : pl_fail(err, PL_ENOMEM, "the report");
}
