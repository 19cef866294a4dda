/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "pipeline/base/ids.h"
#include "pipeline/base/log.h"
#include "pipeline/base/stop.h"
#include "pipeline/run/level.h"
#include "pipeline/run/runner.h"

static pl_code mark_lost_runs(pl_runner *r, int64_t *resumed_from, pl_error *err)
{
    pl_code code = pl_db_exec(r->store->db,
                              "UPDATE run SET state='lost', stop_reason='the process ended without a message'"
                              " WHERE state='running'",
                              err);

    if (code == PL_OK)
        code = pl_db_int(r->store->db, resumed_from, err,
                         "SELECT run_id FROM (SELECT run_id,state FROM run ORDER BY run_id DESC LIMIT 1) WHERE state<>'done'");
    return code;
}

static void put_argv(const pl_run_opts *opts, pl_text *out)
{
    pl_text_add(out, "[");
    for (int i = 0; i < opts->argc; i++) {
        pl_text_add(out, i ? "," : "");
        pl_text_add_json(out, opts->argv[i]);
    }
    pl_text_add(out, "]");
}

static void bind(sqlite3_stmt *st, const char *name, const char *value)
{
    int at = sqlite3_bind_parameter_index(st, name);

    if (value != NULL)
        (void)sqlite3_bind_text(st, at, value, -1, SQLITE_TRANSIENT);
}

static void bind_int(sqlite3_stmt *st, const char *name, int64_t value)
{
    (void)sqlite3_bind_int64(st, sqlite3_bind_parameter_index(st, name), value);
}

/* The effective settings, every default written out, so that the run can be repeated. */
static void bind_config(sqlite3_stmt *st, const pl_workflow *wf)
{
    pl_text dump = { 0 };
    pl_sha256 sha;
    char hex[65];
    const char *text = wf->text != NULL ? wf->text : "";

    if (wf->tree != NULL && pl_workflow_dump(wf, false, &dump) == PL_OK && pl_text_ok(&dump))
        text = pl_text_str(&dump);
    pl_sha256_start(&sha);
    pl_sha256_add(&sha, text, strlen(text));
    pl_sha256_hex(&sha, hex);
    bind(st, ":config", text);
    bind(st, ":sha", hex);
    pl_text_free(&dump);
}

static void bind_place(sqlite3_stmt *st)
{
    char host[128] = "?";
    const char *job, *task, *scheduler = pl_scheduler(&job, &task);

    (void)gethostname(host, sizeof host - 1);
    bind(st, ":host", host);
    bind(st, ":scheduler", scheduler);
    bind(st, ":job", scheduler != NULL ? job : NULL);
    if (scheduler != NULL && task != NULL)
        bind_int(st, ":task", strtoll(task, NULL, 10));
}

static pl_code insert_row(pl_runner *r, int64_t resumed_from, pl_error *err)
{
    static const char sql[] =
        "INSERT INTO run(uuid,command,argv_json,config_yaml,config_sha256,resumed_from,state,started_utc,host,scheduler,"
        "scheduler_job_id,array_task,ranks,workers,seed,program_version,git_commit,openbabel_version,sqlite_version,kernels)"
        " VALUES(:uuid,:command,:argv,:config,:sha,:from,'running',:now,:host,:scheduler,:job,:task,:ranks,:workers,:seed,"
        ":version,:commit,:babel,:sqlite,:kernels)";
    sqlite3_stmt *st;
    pl_text argv = { 0 };
    char uuid[40], now[32];
    const char *kernels;
    pl_code code = pl_db_prepare(r->store->db, &st, sql, err);

    if (code != PL_OK)
        return code;
    pl_uuid(uuid);
    put_argv(r->opts, &argv);
    bind(st, ":uuid", uuid);
    bind(st, ":command", r->opts->command != NULL ? r->opts->command : "run");
    bind(st, ":argv", pl_text_str(&argv));
    bind_config(st, r->wf);
    if (resumed_from != 0)
        bind_int(st, ":from", resumed_from);
    bind(st, ":now", pl_utc_now(now));
    bind_place(st);
    bind_int(st, ":ranks", r->opts->ranks > 0 ? r->opts->ranks : 1);
    bind_int(st, ":workers", r->workers);
    bind_int(st, ":seed", r->wf->seed);
    bind(st, ":version", r->opts->program_version != NULL ? r->opts->program_version : "unknown");
    bind(st, ":commit", r->opts->git_commit);
    bind(st, ":babel", r->opts->openbabel_version);
    bind(st, ":sqlite", sqlite3_libversion());
    kernels = pl_levels_json(r->wf, r->mem);
    bind(st, ":kernels", kernels);
    code = kernels != NULL ? pl_db_run(st, err) : pl_fail(err, PL_ENOMEM, "a run");
    (void)sqlite3_finalize(st);
    pl_text_free(&argv);
    return code;
}

pl_code pl_run_row_begin(pl_runner *r, pl_error *err)
{
    int64_t resumed_from = 0;
    pl_code code = pl_db_begin(r->store->db, err);

    if (code != PL_OK)
        return code;
    code = mark_lost_runs(r, &resumed_from, err);
    if (code == PL_OK)
        code = insert_row(r, resumed_from, err);
    if (code != PL_OK) {
        pl_db_rollback(r->store->db);
        return code;
    }
    r->run_id = sqlite3_last_insert_rowid(r->store->db);
    return pl_db_commit(r->store->db, err);
}

void pl_run_row_look_back(const pl_runner *r)
{
    static const char restarts[] = "SELECT count(*)=2 AND min(state IN('stopped','lost')) AND min(scheduler IS '%q') FROM"
                                   " (SELECT state,scheduler FROM run WHERE run_id<%lld ORDER BY run_id DESC LIMIT 2)";
    static const char further[] = "SELECT EXISTS(SELECT 1 FROM unit WHERE run_id=p) OR EXISTS(SELECT 1 FROM event WHERE"
                                  " run_id=p AND level='" PL_FURTHER "') FROM (SELECT max(run_id) p FROM run WHERE run_id<%lld)";
    const char *job, *task, *scheduler = pl_scheduler(&job, &task);
    int64_t again = 0, got_further = 0;

    if (scheduler == NULL || pl_db_int(r->store->db, &again, NULL, restarts, scheduler, (long long)r->run_id) != PL_OK || !again ||
        pl_db_int(r->store->db, &got_further, NULL, further, (long long)r->run_id) != PL_OK || got_further)
        return;
    pl_log(PL_WARN, "the last restart finished no unit and no training step; if this one finishes none either, it ends with exit "
                    "status 1, so that the job is not restarted");
    pl_stop_stuck(true);
}

pl_code pl_run_row_judge(pl_code code, pl_error *err)
{
    if (code != PL_ESTOP || !pl_stop_is_stuck())
        return code;
    return pl_fail(err, PL_EINPUT,
                   "stopped by %s, and two restarts in a row finished no unit and no training step: a further one "
                   "would not help. Give the job more time, or make units smaller (stages.read.unit); then start it again",
                   pl_stop_reason());
}

/* Of child processes only those that have ended count; the workers have ended by now. */
static double cpu_seconds(int who)
{
    struct rusage use = { 0 };

    (void)getrusage(who, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

void pl_run_row_end(pl_runner *r, pl_code code, const pl_error *err)
{
    static const char sql[] =
        "UPDATE run SET state=?, exit_code=?, stop_reason=?, ended_utc=?, cpu_s=?, worker_cpu_s=? WHERE run_id=?";
    const char *broken = code == PL_ESTOP ? "stopped" : "failed", *state = code == PL_OK ? "done" : broken;
    sqlite3_stmt *st;
    char now[32];

    if (code != PL_OK && err != NULL)
        pl_event_row(r->store, r->run_id, code == PL_ESTOP ? "info" : "error", NULL, err->text);
    if (pl_db_prepare(r->store->db, &st, sql, NULL) != PL_OK)
        return;
    (void)sqlite3_bind_text(st, 1, state, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, 2, pl_code_exit(code));
    if (code != PL_OK && err != NULL)
        (void)sqlite3_bind_text(st, 3, err->text, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 4, pl_utc_now(now), -1, SQLITE_STATIC);
    (void)sqlite3_bind_double(st, 5, cpu_seconds(RUSAGE_SELF));
    (void)sqlite3_bind_double(st, 6, cpu_seconds(RUSAGE_CHILDREN));
    (void)sqlite3_bind_int64(st, 7, r->run_id);
    (void)sqlite3_step(st);
    (void)sqlite3_finalize(st);
}
