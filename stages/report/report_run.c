/* SPDX-License-Identifier: Apache-2.0 */
/* Stages, runs, times; settings and provenance. */
#include "stages/report/report_parts.h"

#include <string.h>

enum { MAX_RUNS = 100, MAX_FILES = 100, MAX_WARNINGS = 20 };

/* A table whose cells are the columns of a query. */
static void add_rows(st_report *r, sqlite3_stmt *st)
{
    while (st_report_row(r, &st)) {
        pl_text_add(r->out, "<tr>");
        for (int i = 0; i < sqlite3_column_count(st); i++)
            st_report_cell(r, st, i);
        pl_text_add(r->out, "</tr>\n");
    }
    st_report_table_end(r);
}

/* Seconds that workers spent on stage s. */
#define WORK "coalesce((SELECT sum(w.wall_s) FROM unit w WHERE w.stage_id=s.stage_id),s.wall_s)"

static void add_stages(st_report *r)
{
    static const char *const heads[] = { "stage",
                                         "state",
                                         "#units",
                                         "#ok",
                                         "#failed",
                                         "#workers",
                                         "#begin to end / s",
                                         "#work / s",
                                         "#items a second and worker",
                                         "share of the work",
                                         NULL };
    double all = 0;

    for (sqlite3_stmt *st = st_report_query(r, "SELECT %s FROM stage s", WORK); st_report_row(r, &st);)
        all += sqlite3_column_double(st, 0);
    st_report_table(r, "mid",
                    "Stages that go unit by unit run at the same time: from begin to end they overlap, their work does not "
                    "(seconds of all workers together). Items are records or molecules; workers are those of the run that "
                    "began the stage.");
    st_report_heads(r, heads);
    for (
        sqlite3_stmt *st = st_report_query(
            r,
            "SELECT name, state, n, ok, failed, workers, wall_s, work, (ok+failed)/nullif(work,0.0) FROM (SELECT s.stage_id, s.name, "
            "s.state, nullif(count(u.unit),0) AS n, sum(u.n_ok) AS ok, sum(u.n_failed) AS failed, r.workers, s.wall_s, %s AS work "
            "FROM stage s LEFT JOIN unit u USING(stage_id) LEFT JOIN run r ON r.run_id=s.run_id GROUP BY s.stage_id) "
            "ORDER BY stage_id",
            WORK);
        st_report_row(r, &st);) {
        double share = all > 0 ? 100 * sqlite3_column_double(st, 7) / all : 0;
        pl_text_add(r->out, "<tr>");
        for (int i = 0; i < 9; i++)
            st_report_cell(r, st, i);
        pl_text_addf(r->out,
                     "<td><svg class=\"share\" role=\"img\" aria-label=\"%.0f %%\" viewBox=\"0 0 100 12\" "
                     "preserveAspectRatio=\"none\"><rect width=\"%.2f\" height=\"12\"/></svg></td></tr>\n",
                     share, share);
    }
    st_report_table_end(r);
}

static void add_runs(st_report *r)
{
    static const char *const heads[] = { "#run",          "command",     "state",           "why it stopped",
                                         "started (UTC)", "ended (UTC)", "#wall clock / s", "host",
                                         "#workers",      "version",     "continued run",   NULL };
    int64_t n = st_report_int(r, "SELECT count(*) FROM run");

    st_report_table(r, "", "All starts of the program on this database, resumed runs included.");
    st_report_heads(r, heads);
    add_rows(
        r,
        st_report_query(
            r,
            "SELECT run_id, command, state, stop_reason, started_utc, ended_utc, "
            "round((julianday(ended_utc)-julianday(started_utc))*86400,1), host||coalesce(' '||scheduler||' '||scheduler_job_id,''), workers, program_version||coalesce(' '||git_commit,''), "
            "resumed_from FROM (SELECT * FROM run ORDER BY run_id DESC LIMIT %d) ORDER BY run_id",
            MAX_RUNS));
    if (n > MAX_RUNS)
        pl_text_addf(r->out, "<p class=\"note\">The last %d of %lld.</p>\n", MAX_RUNS, (long long)n);
}

/* SQL: events of the results as they are stored, each text once: of a stage those of the runs since the one that began it, and its errors only
 * until it is done; the others, such as those of a stage that is not there, of the last run. */
#define SHOWN_EVENTS                                                                                                               \
    "SELECT min(level) AS level, coalesce(group_concat(DISTINCT e.stage),'run') AS stage, message, "                               \
    "coalesce(nullif(count(e.stage),0),count(*)) AS n, max(event_id) AS last FROM event e LEFT JOIN (SELECT name, max(run_id) AS " \
    "began, min(state='done') AS done FROM stage GROUP BY name) s ON s.name=e.stage WHERE level IN('error','warn') AND "           \
    "(run_id=(SELECT max(run_id) FROM run) OR run_id>=s.began AND (level='warn' OR NOT s.done)) GROUP BY message"

/* What the run warned of, each message once, errors first, then the newest. */
void st_report_warnings(st_report *r)
{
    static const char sql[] = "SELECT level, stage, message, n FROM (" SHOWN_EVENTS ") ORDER BY level, last DESC LIMIT %d";
    const int64_t n = st_report_int(r, "SELECT count(*) FROM (" SHOWN_EVENTS ")");

    if (n == 0)
        return;
    pl_text_addf(r->out, "<section class=\"warnings\" aria-label=\"warnings\"><h2 id=\"warnings\">Warnings</h2>\n<ul>\n");
    for (sqlite3_stmt *st = st_report_query(r, sql, MAX_WARNINGS); st_report_row(r, &st);) {
        pl_text_add(r->out, "<li><b>");
        st_html_cut(r->out, st_column(st, 1), 40);
        pl_text_addf(r->out, "</b>%s: ", strcmp(st_column(st, 0), "error") == 0 ? ", error" : "");
        st_html_cut(r->out, st_column(st, 2), 500);
        if (sqlite3_column_int64(st, 3) > 1)
            pl_text_addf(r->out, " (%lld times)", (long long)sqlite3_column_int64(st, 3));
        pl_text_add(r->out, "</li>\n");
    }
    pl_text_add(r->out, "</ul>\n");
    if (n > MAX_WARNINGS)
        pl_text_addf(r->out, "<p class=\"note\">%d of %lld; all of them: <code>molsieve query event</code></p>\n", MAX_WARNINGS,
                     (long long)n);
    pl_text_add(r->out, "</section>\n");
}

void st_report_timings(st_report *r)
{
    add_stages(r);
    add_runs(r);
}

/* ---- settings ---- */

static void add_keys(st_report *r)
{
    static const char *const heads[] = { "stage", "key", "settings that matter", "inputs, libraries", "#code version", NULL };
    static const char *const cell[] = { "<td>", "<td class=\"key\"><code>", "<td><code>", "<td><code>", "<td class=\"n\">" };

    st_report_table(r, "", "What each result depends on. The key is a hash of all this; equal keys give equal results.");
    st_report_heads(r, heads);
    for (sqlite3_stmt *st =
             st_report_query(r, "SELECT name, key, params_json, extra_json, code_version FROM stage ORDER BY stage_id");
         st_report_row(r, &st);) {
        pl_text_add(r->out, "<tr>");
        for (int i = 0; i < 5; i++) {
            pl_text_add(r->out, cell[i]);
            st_html_cut(r->out, st_column(st, i), 3000);
            pl_text_add(r->out, i % 4 ? "</code></td>" : "</td>");
        }
        pl_text_add(r->out, "</tr>\n");
    }
    st_report_table_end(r);
}

static void add_inputs(st_report *r)
{
    static const char *const heads[] = { "file", "format", "#bytes", "#records", "SHA-256", NULL };
    int64_t n = st_report_int(r, "SELECT count(*) FROM input_file");

    st_report_table(r, "any", "Input files.");
    st_report_heads(r, heads);
    add_rows(r, st_report_query(r, "SELECT path, format, size_bytes, n_records, sha256 FROM input_file ORDER BY file_id LIMIT %d",
                                MAX_FILES));
    if (n > MAX_FILES)
        pl_text_addf(r->out, "<p class=\"note\">The first %d of %lld.</p>\n", MAX_FILES, (long long)n);
}

static void add_text(st_report *r, const char *what, const char *text)
{
    pl_text_addf(r->out, "<details><summary>%s</summary><pre>", what);
    st_html_cut(r->out, text, 200000);
    pl_text_add(r->out, "</pre></details>\n");
}

void st_report_settings(st_report *r)
{
    /* A run that only reused results had no use for Open Babel. */
    static const char sql[] =
        "SELECT argv_json, config_sha256, (SELECT openbabel_version FROM run WHERE openbabel_version IS NOT NULL "
        "ORDER BY run_id DESC LIMIT 1), sqlite_version, git_commit, config_yaml FROM run ORDER BY run_id DESC LIMIT 1";

    add_inputs(r);
    add_keys(r);
    for (sqlite3_stmt *st = st_report_query(r, "%s", sql); st_report_row(r, &st);) {
        static const char *const names[] = { "command line of the last run, overrides included", "SHA-256 of its settings",
                                             "Open Babel", "SQLite", "commit" };
        pl_text_add(r->out, "<ul>\n");
        for (int i = 0; i < 5; i++) {
            pl_text_addf(r->out, "<li>%s: <code>", names[i]);
            st_html_cut(r->out, st_column(st, i)[0] ? st_column(st, i) : "not known", 4000);
            pl_text_add(r->out, "</code></li>\n");
        }
        pl_text_add(r->out, "</ul>\n");
        add_text(r, "The whole workflow as it ran, defaults included", st_column(st, 5));
    }
    pl_text_add(r->out, "<p class=\"note\"><code>molsieve check WORKFLOW --show</code> says of each setting where it came from; "
                        "<code>molsieve db digest</code> is a hash of all results, without times and row numbers.</p>\n");
}
