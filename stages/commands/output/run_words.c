/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/base/wrap.h"
#include "stages/commands/output/run_words.h"
#include "stages/files/out_file.h"
#include "stages/files/own_files.h"
#include "stages/jobs/job.h"
#include "stages/steps/errors/domain_words.h"
#include "stages/steps/ingest/read_input.h"
#include "stages/steps/train/train.h"

/* ---- the log ---- */

static void put_json(FILE *to, const char *at, const char *level, const char *line)
{
    pl_text text = { 0 };

    pl_text_addf(&text, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":", at, level);
    pl_text_add_json(&text, line);
    pl_text_add(&text, "}\n");
    (void)fputs(pl_text_str(&text), to);
    (void)fflush(to);
    pl_text_free(&text);
}

static void put_text(FILE *to, const char *at, const char *level, const char *line)
{
    (void)fprintf(to, "%s %-5s %s\n", at, level, line);
    (void)fflush(to);
}

/* On a terminal. The progress line is where the cursor is. */
static void put_person(pl_level level, const char *word, const char *line)
{
    pl_text said = { 0 }, wrapped = { 0 };
    int columns = pl_columns(stderr);

    pl_text_addf(&said, "%s%s%s", level <= PL_WARN ? word : "", level <= PL_WARN ? ": " : "", line);
    pl_text_wrap(&wrapped, pl_text_str(&said), columns > 0 ? columns : PL_COLUMNS);
    (void)fprintf(stderr, "\r\033[K%s\n", pl_text_str(&wrapped));
    pl_text_free(&said);
    pl_text_free(&wrapped);
}

static void sink(void *ctx, pl_level level, const char *line)
{
    static const char *const words[] = { "error", "warn", "info", "debug" };
    st_log *log = ctx;
    time_t now = time(NULL);
    struct tm tm;
    char at[32];

    (void)gmtime_r(&now, &tm);
    (void)strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (log->file != NULL)
        (log->json ? put_json : put_text)(log->file, at, words[level], line);
    if (log->tty)
        put_person(level, words[level], line);
    else
        (log->json ? put_json : put_text)(stderr, at, words[level], line);
}

/* A database that is not there yet has this name when the file for the log has just been made. */
static bool is_own(const pl_workflow *wf, FILE *file)
{
    struct stat log, own[2];
    bool there[] = { stat(wf->storage.results, &own[0]) == 0, stat(wf->storage.features, &own[1]) == 0 };
    bool is = false;

    for (int i = 0; i < 2 && fstat(fileno(file), &log) == 0; i++)
        is = is || (there[i] && pl_stat_is_same(&own[i], &log));
    return is;
}

pl_code st_log_open(st_log *log, const pl_workflow *wf, const char *path, pl_error *err)
{
    const bool new = path != NULL &&access(path, F_OK) != 0;

    if (path != NULL && (st_is_database(path) || st_is_read(wf, path)))
        return pl_fail(err, PL_ECONFIG, "--log %s: %s; name another file", path,
                       st_is_database(path) ? "it is a database" : "the run reads it");
    if (path != NULL && st_is_own(wf, path))
        return pl_fail(err, PL_ECONFIG, "--log %s: %s; name another file", path, "the run itself writes a file of that name");
    if (path != NULL && (log->file = fopen(path, "ae")) == NULL)
        return pl_fail(err, PL_ECONFIG, "--log %s: %s", path, strerror(errno));
    if (new &&is_own(wf, log->file)) {
        (void)unlink(path);
        st_log_close(log);
        return pl_fail(err, PL_ECONFIG, "--log %s: a database of the run has that name; name another file", path);
    }
    pl_log_to(sink, log, log->max);
    return PL_OK;
}

void st_log_close(st_log *log)
{
    pl_log_to(NULL, NULL, PL_ERROR);
    if (log->file != NULL)
        (void)fclose(log->file);
    log->file = NULL;
}

/* ---- shards ---- */

const char *st_left_out(const pl_workflow *wf, pl_arena *mem)
{
    const char *words = NULL;

    for (int i = 0; i < wf->n_steps; i++)
        if (!pl_step_in_shard(wf, i))
            words = pl_sprintf(mem, "%s%s", words != NULL ? pl_sprintf(mem, "%s, ", words) : "left out: ", wf->step[i].stage->name);
    return words != NULL ? words : "no stage was left out";
}

/* ---- the last words ---- */

static bool has_rows(pl_store *s, const char *table)
{
    int64_t n = 0;

    return pl_db_int(s->db, &n, NULL, "SELECT EXISTS(SELECT 1 FROM %w)", table) == PL_OK && n == 1;
}

/* Later counts are printed only if the workflow has the stage. */
static void print_funnel(const pl_workflow *wf, pl_store *s)
{
    static const char sql[] = "SELECT records,ok,duplicate,filtered,failed,molecules,scored,hits FROM v_funnel";
    static const char *const names[] = { " records: ",  " ok, ",      " duplicate, ", " filtered, ",
                                         " failed -> ", " molecules", " scored",      " ranked" };
    sqlite3_stmt *st = NULL;
    bool row = false;
    char n[32];

    if (!has_rows(s, "record") || pl_db_prepare(s->db, &st, sql, NULL) != PL_OK)
        return;
    if (pl_db_step(st, &row, NULL) == PL_OK && row)
        for (int i = 0; i < 8; i++)
            if (i < 6 || pl_workflow_step(wf, i == 6 ? "score" : "rank") != NULL ||
                (i == 6 && pl_workflow_step(wf, "external") != NULL))
                pl_cmd_print("%s%s%s", i < 6 ? "" : " -> ", pl_count_str(sqlite3_column_int64(st, i), n), names[i]);
    pl_cmd_print("\n");
    (void)sqlite3_finalize(st);
}

/* Failures of all stages, the largest numbers first: a molecule may fail after it was prepared. */
static void print_failures(pl_store *s)
{
    static const char sql[] =
        "SELECT stage, code, count(*), (SELECT count(*) FROM failure) FROM failure GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 "
        "LIMIT 4";
    sqlite3_stmt *st = NULL;
    bool row = false;
    int64_t left = 0;
    char n[32];

    if (!has_rows(s, "failure") || pl_db_prepare(s->db, &st, sql, NULL) != PL_OK)
        return;
    for (int k = 0; pl_db_step(st, &row, NULL) == PL_OK && row; k++) {
        if (k == 0) {
            left = sqlite3_column_int64(st, 3);
            pl_cmd_print("%s failure%s:", pl_count_str(left, n), left == 1 ? "" : "s");
        }
        pl_cmd_print("%s %s %s %s", k ? "," : "", (const char *)sqlite3_column_text(st, 0),
                     (const char *)sqlite3_column_text(st, 1), pl_count_str(sqlite3_column_int64(st, 2), n));
        left -= sqlite3_column_int64(st, 2);
    }
    if (left > 0)
        pl_cmd_print(", others %s", pl_count_str(left, n));
    pl_cmd_print("\n");
    (void)sqlite3_finalize(st);
}

static void print_top(pl_store *s)
{
    static const char sql[] =
        "SELECT rank,smiles,coalesce(property,'objective'),coalesce(nullif(' '||unit,' '),''),coalesce(score,objective),"
        "coalesce(titles,''),interval90,domain FROM v_hits WHERE rank<=5"
        " ORDER BY rank,property";
    sqlite3_stmt *st = NULL;
    bool row = false;
    int64_t last = 0;
    char smiles[84] = ""; /* of the molecule of the last row; it ends the line */

    if (!has_rows(s, "hit") || pl_db_prepare(s->db, &st, sql, NULL) != PL_OK)
        return;
    while (pl_db_step(st, &row, NULL) == PL_OK && row) {
        if (sqlite3_column_int64(st, 0) != last)
            pl_cmd_print("%s%s%4lld  %-16.24s", smiles, last ? "\n" : "", (long long)sqlite3_column_int64(st, 0),
                         (const char *)sqlite3_column_text(st, 5));
        last = sqlite3_column_int64(st, 0);
        (void)snprintf(smiles, sizeof smiles, "  %.80s", (const char *)sqlite3_column_text(st, 1));
        pl_cmd_print("  %s %.3f", (const char *)sqlite3_column_text(st, 2), sqlite3_column_double(st, 4));
        if (sqlite3_column_type(st, 6) != SQLITE_NULL)
            pl_cmd_print(" +- %.2g", sqlite3_column_double(st, 6));
        pl_cmd_print("%s", (const char *)sqlite3_column_text(st, 3));
        if (sqlite3_column_type(st, 7) != SQLITE_NULL && strcmp((const char *)sqlite3_column_text(st, 7), "outside") == 0)
            pl_cmd_print(" (no interval: outside domain)");
    }
    pl_cmd_print("%s\n", smiles);
    (void)sqlite3_finalize(st);
}

/* How many scores have no interval, and why. */
static void print_domain(pl_store *s)
{
    pl_text text = { 0 };

    if (st_domain_words(&text, s->db, false, 0, NULL) == PL_OK)
        pl_cmd_print("%s", pl_text_str(&text));
    pl_text_free(&text);
}

static const char *from_here(const char *path)
{
    char *here = getcwd(NULL, 0);
    const size_t n = here != NULL ? strlen(here) : 0;

    if (here != NULL && strncmp(path, here, n) == 0 && path[n] == '/')
        path += n + 1;
    free(here);
    return path;
}

static void print_next(const char *what, const char *path)
{
    pl_text word = { 0 };

    st_add_word(&word, from_here(path));
    (void)printf("  molsieve %s %s\n", what, pl_text_str(&word));
    pl_text_free(&word);
}

static void print_all_next(const pl_workflow *wf, bool ranked)
{
    const pl_step *train = pl_workflow_step(wf, "train");
    pl_arena *mem = pl_arena_new(1 << 12);
    const char *model = train != NULL && mem != NULL ? st_train_model_path(wf, train, 0, mem) : NULL, *path = wf->storage.results;

    pl_cmd_print("next:\n");
    if (model != NULL && access(model, F_OK) == 0)
        print_next("model info", model);
    print_next(ranked ? "top -n 20" : "status", path);
    if (ranked)
        print_next("query \"SELECT * FROM v_hits LIMIT 10\"", path);
    else
        print_next(train != NULL ? "query metric" : "query v_funnel", path);
    print_next("failures", path);
    print_next("report", path);
    pl_arena_free(mem);
}

void st_summary_print(const pl_app *app, const pl_workflow *wf, int stages_ran)
{
    pl_store *s = NULL;

    if (pl_store_open_read(&s, wf->storage.results, app->schema, NULL) != PL_OK)
        return;
    if (stages_ran > 0)
        print_funnel(wf, s);
    else
        pl_cmd_print("everything is done already: nothing ran\n");
    print_failures(s);
    print_top(s);
    print_domain(s);
    st_model_errors_print(s);
    st_trust_print(s);
    pl_cmd_print("results: %s\n", from_here(wf->storage.results));
    print_all_next(wf, has_rows(s, "hit"));
    pl_store_close(s);
}
