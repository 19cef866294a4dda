/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "stages/commands/commands.h"
#include "stages/commands/output/status_beat.h"
#include "stages/commands/output/cmd_json.h"
#include "stages/database/results.h"

static const pl_opt opts[] = { { "--watch", 'w', NULL, "look again every two seconds until the run ends" },
                               { "--json", 0, NULL, "print JSON" },
                               { "--prometheus", 0, NULL, "print metrics in the text format of Prometheus" },
                               { 0 } };

/* The newest row of the run table. */
typedef struct last_run {
    int64_t run_id;
    char state[16], command[32], host[128], started[32], ended[32], reason[400];
} last_run;

static void copy_column(char *to, size_t size, sqlite3_stmt *st, int column)
{
    const unsigned char *text = sqlite3_column_text(st, column);
    (void)snprintf(to, size, "%s", text != NULL ? (const char *)text : "");
}

static pl_code read_run(pl_store *s, last_run *out, pl_error *err)
{
    static const char sql[] = "SELECT run_id,state,command,coalesce(host,''),started_utc,coalesce(ended_utc,''),"
                              "coalesce(stop_reason,'') FROM run ORDER BY run_id DESC LIMIT 1";
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st, sql, err);

    *out = (last_run){ 0 };
    if (pl_db_next(st, &code, err)) {
        out->run_id = sqlite3_column_int64(st, 0);
        copy_column(out->state, sizeof out->state, st, 1);
        copy_column(out->command, sizeof out->command, st, 2);
        copy_column(out->host, sizeof out->host, st, 3);
        copy_column(out->started, sizeof out->started, st, 4);
        copy_column(out->ended, sizeof out->ended, st, 5);
        copy_column(out->reason, sizeof out->reason, st, 6);
    }
    (void)sqlite3_finalize(st);
    return code;
}

static bool is_listed(const char *want)
{
    char line[256];
    bool listed = false;
    FILE *f = fopen("/proc/locks", "re");

    while (f != NULL && !listed && fgets(line, sizeof line, f) != NULL)
        listed = strstr(line, "FLOCK") != NULL && strstr(line, want) != NULL;
    if (f != NULL)
        (void)fclose(f);
    return listed;
}

/* Whether some process of this machine holds the lock, without touching it: taking it even for a moment could turn away a run
 * that starts just then. The kernel gives the list of locks a page at a time. When other locks are released between two pages, one
 * that is held can move to the page before, and is not seen. So the list is read up to five times. */
static bool lock_is_held(const char *results)
{
    static const struct timespec moment = { 0, 10000000 };
    char path[4096], want[64];
    const char *slash = strrchr(results, '/');
    struct stat st;
    bool held = false;

    (void)snprintf(path, sizeof path, "%.*s.lock", slash != NULL ? (int)(slash - results) + 1 : 0, results);
    if (stat(path, &st) != 0)
        return false;
    (void)snprintf(want, sizeof want, ":%llu ", (unsigned long long)st.st_ino);
    for (int tries = 0; tries < 5 && !held; tries++) {
        if (tries > 0)
            (void)nanosleep(&moment, NULL);
        held = is_listed(want);
    }
    return held;
}

/* A run whose process died without recording its end is still `running` in the table. */
static void judge(last_run *r, const char *results)
{
    char host[128] = "";

    (void)gethostname(host, sizeof host - 1);
    if (strcmp(r->state, "running") != 0 || strcmp(host, r->host) != 0 || lock_is_held(results))
        return;
    (void)snprintf(r->state, sizeof r->state, "lost");
    (void)snprintf(r->reason, sizeof r->reason, "the process is gone; run the same command again to continue");
}

static json_t *value_json(sqlite3_stmt *st, int i)
{
    switch (sqlite3_column_type(st, i)) {
    case SQLITE_INTEGER: return json_integer(sqlite3_column_int64(st, i));
    case SQLITE_FLOAT: return json_real(sqlite3_column_double(st, i));
    case SQLITE_NULL: return json_null();
    default: return json_string((const char *)sqlite3_column_text(st, i));
    }
}

/* *code keeps the first error, after which nothing is read. */
static json_t *query_json(pl_store *s, const char *sql, pl_code *code, pl_error *err)
{
    json_t *list = json_array();
    sqlite3_stmt *st = NULL;

    if (*code == PL_OK)
        *code = pl_db_prepare(s->db, &st, sql, err);
    while (pl_db_next(st, code, err)) {
        json_t *o = json_object();
        for (int i = 0; i < sqlite3_column_count(st); i++)
            (void)json_object_set_new(o, sqlite3_column_name(st, i), value_json(st, i));
        (void)json_array_append_new(list, o);
    }
    (void)sqlite3_finalize(st);
    return list;
}

/* If the run is not running, a stage with state `running` is shown as begun. */
static const char *stages_sql(const last_run *r)
{
    return strcmp(r->state, "running") == 0
               ? "SELECT stage,state,units,done,ok,failed,wall_s FROM v_progress"
               : "SELECT stage,CASE state WHEN 'running' THEN 'begun' ELSE state END AS state,units,done,ok,failed,wall_s"
                 " FROM v_progress";
}

static pl_code print_metrics(const json_t *all, const char *results, pl_error *err)
{
    pl_text t = { 0 };
    bool good;

    st_prometheus_add(&t, all, results);
    good = all != NULL && pl_text_ok(&t);
    if (good)
        pl_cmd_print("%s", pl_text_str(&t));
    pl_text_free(&t);
    return good ? PL_OK : pl_fail(err, PL_ENOMEM, "metrics");
}

static pl_code print_json(pl_store *s, const last_run *r, st_status_form form, pl_error *err)
{
    pl_code code = PL_OK;
    json_t *stages = query_json(s, stages_sql(r), &code, err);
    json_t *failures = query_json(s, "SELECT stage,code,count(*) AS n FROM failure GROUP BY 1,2 ORDER BY 3 DESC,1,2", &code, err);
    json_t *all = json_pack("{s:s, s:{s:I, s:s, s:s, s:s, s:s, s:s, s:s}, s:o, s:o, s:o}", "results", s->results_path, "run",
                            "run_id", (json_int_t)r->run_id, "state", r->state, "command", r->command, "host", r->host,
                            "started_utc", r->started, "ended_utc", r->ended, "reason", r->reason, "stages", stages, "failures",
                            failures, "funnel", query_json(s, "SELECT * FROM v_funnel", &code, err));

    if (code == PL_OK && form == ST_STATUS_PROMETHEUS)
        code = print_metrics(all, s->results_path, err);
    else if (code == PL_OK)
        code = st_json_print(all, 0, err);
    json_decref(all);
    return code;
}

/* Train, rank and the like have no units: nothing is counted. The number of all units is not known before the last. */
static const char *count_str(sqlite3_stmt *st, int column, char to[32])
{
    const bool none = sqlite3_column_int64(st, 2) == 0 && sqlite3_column_int64(st, 3) == 0;

    return none ? "-" : pl_count_str(sqlite3_column_int64(st, column), to);
}

static pl_code print_stages(pl_store *s, const last_run *r, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    char a[32], b[32], c[32], d[32];
    pl_code code = pl_db_prepare(s->db, &st, stages_sql(r), err);

    if (code == PL_OK)
        pl_cmd_print("  %-9s %-8s %8s %14s %10s %9s\n", "stage", "state", "units", "ok", "failed", "time");
    while (pl_db_next(st, &code, err))
        pl_cmd_print("  %-9s %-8s %8s %14s %10s %9s\n", (const char *)sqlite3_column_text(st, 0),
                     (const char *)sqlite3_column_text(st, 1), count_str(st, 3, a), count_str(st, 4, b), count_str(st, 5, c),
                     pl_duration_str(sqlite3_column_double(st, 6), d));
    (void)sqlite3_finalize(st);
    return code;
}

/* The last epoch of a training, which has no units. */
static pl_code print_epoch(pl_store *s, pl_error *err)
{
    static const char sql[] =
        "SELECT stage, max(epoch), coalesce((SELECT CAST(max(value) AS INTEGER) FROM metric WHERE name='planned_epochs'),"
        " (SELECT json_extract(params_json,'$.epochs') FROM stage s WHERE s.name=stage)),"
        " group_concat(split||' '||name||' '||printf('%.4g',value),', ') FROM (SELECT * FROM metric WHERE name IN('loss','mae','noise_loss')"
        " AND split IN('train','valid') AND step=(SELECT max(step) FROM metric WHERE split='train') ORDER BY split,name)"
        " GROUP BY stage";
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st, sql, err);

    if (pl_db_next(st, &code, err))
        pl_cmd_print("  %s: epoch %lld of %lld: %s\n", (const char *)sqlite3_column_text(st, 0),
                     (long long)sqlite3_column_int64(st, 1), (long long)sqlite3_column_int64(st, 2),
                     (const char *)sqlite3_column_text(st, 3));
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code print_text(pl_store *s, const last_run *r, pl_error *err)
{
    pl_code code;

    pl_cmd_print("%s\n", s->results_path);
    if (r->run_id == 0)
        pl_cmd_print("no run yet\n");
    else
        pl_cmd_print("run %lld (%s): %s, on %s since %s%s%s%s%s\n", (long long)r->run_id, r->command, r->state, r->host, r->started,
                     r->ended[0] ? ", ended " : "", r->ended, r->reason[0] ? ": " : "", r->reason);
    code = print_stages(s, r, err);
    if (code == PL_OK && strcmp(r->state, "running") == 0)
        code = st_beat_left(s, r->run_id, err);
    return code == PL_OK ? print_epoch(s, err) : code;
}

static int show_once(const pl_app *app, const char *where, st_status_form form, pl_arena *mem, bool *running)
{
    pl_store *s = NULL;
    pl_error err = { 0 };
    last_run r = { 0 };
    const char *path = NULL;
    bool shown = false;
    pl_code code = st_results_find(app, where, &path, mem, &err);

    if (code == PL_OK)
        code = st_beat_show(&shown, path, form, running, &err);
    if (code == PL_OK && shown)
        return 0;
    if (code == PL_OK)
        code = pl_store_open_read(&s, path, app->schema, &err);
    if (code == PL_OK)
        code = read_run(s, &r, &err);
    if (code == PL_OK) {
        judge(&r, s->results_path);
        code = form == ST_STATUS_TEXT ? print_text(s, &r, &err) : print_json(s, &r, form, &err);
    }
    *running = strcmp(r.state, "running") == 0;
    pl_store_close(s);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *where = args->n > 0 ? args->arg[0] : NULL;
    const bool json = pl_arg(args, "--json") != NULL, metrics = pl_arg(args, "--prometheus") != NULL,
               watch = pl_arg(args, "--watch") != NULL;
    const st_status_form other = metrics ? ST_STATUS_PROMETHEUS : ST_STATUS_TEXT, form = json ? ST_STATUS_JSON : other;
    bool running = true;
    int status = 0;

    if (metrics && (json || watch))
        return pl_cmd_usage(args, "--prometheus cannot be used with --json or --watch: it prints the metrics once");

    do {
        pl_arena *mem = pl_arena_new(1 << 14);
        if (watch && form == ST_STATUS_TEXT && pl_cmd_tty(stdout))
            (void)printf("\033[H\033[2J");
        if (mem == NULL)
            return pl_cmd_no_memory();
        status = show_once(app, where, form, mem, &running);
        (void)fflush(stdout); /* --watch into a pipe */
        pl_arena_free(mem);
        if (watch && running && status == 0)
            (void)sleep(2);
    } while (watch && running && status == 0);
    return status;
}

const pl_cmd st_cmd_status = {
    .name = "status",
    .args = "[WHERE]",
    .help = "show the progress of a run; safe while it runs",
    .about = "WHERE is a workflow, a work directory or a results.db; without it, the newest\n"
             "one below the current directory. A run whose process is gone is shown as lost:\n"
             "run the same command again to continue it. For a run on another host or on a\n"
             "network file system, reads its heartbeat.json instead of the database; if there\n"
             "are shards but no results yet, the heartbeats of the shards.\n"
             "\n"
             "  molsieve status\n"
             "  molsieve status runs/screen --watch\n"
             "  molsieve status workflows/screen.yaml --json\n"
             "  molsieve status runs/screen --prometheus > screen.prom\n",
    .opts = opts,
    .max_args = 1,
    .run = run,
};
