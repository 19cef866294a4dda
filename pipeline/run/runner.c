/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/log.h"
#include "pipeline/base/par.h"
#include "pipeline/base/stop.h"
#include "pipeline/lock/lock.h"
#include "pipeline/run/progress.h"
#include "pipeline/run/runner.h"

/* ---- WORKDIR/.reserve: disk space for the last rows of a run when the disk is full ---- */

enum { RESERVE_BYTES = 1 << 20 };

static void reserve_path(const pl_workflow *wf, char out[PATH_MAX]) { (void)snprintf(out, PATH_MAX, "%s/.reserve", wf->workdir); }

/* Whether the file has only zeros or is empty: a reserve file of ours, complete or begun. */
static bool is_reserve(int fd)
{
    static const char zeros[1 << 12];
    char some[sizeof zeros];
    struct stat at;
    ssize_t n;

    if (fstat(fd, &at) != 0 || !S_ISREG(at.st_mode) || at.st_size > RESERVE_BYTES)
        return false;
    for (off_t from = 0; (n = pread(fd, some, sizeof some, from)) > 0; from += n)
        if (memcmp(some, zeros, (size_t)n) != 0)
            return false;
    return n == 0;
}

/* Opens the reserve file. -1: there is none, or the file is not ours and is left alone. */
static int reserve_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);

    if (fd < 0 || is_reserve(fd))
        return fd;
    (void)close(fd);
    return -1;
}

static void reserve_make(const pl_workflow *wf)
{
    char path[PATH_MAX];
    struct stat at;
    int fd;

    reserve_path(wf, path);
    fd = reserve_open(path, O_RDWR | O_CREAT); /* without fallocate(2), posix_fallocate also reads the file */
    if (fd < 0)
        return;
    if ((fstat(fd, &at) != 0 || at.st_size != RESERVE_BYTES) && posix_fallocate(fd, 0, RESERVE_BYTES) != 0)
        (void)unlink(path); /* too little space even for this: the check of disk_free_min reports it next */
    (void)close(fd);
}

static void reserve_release(const pl_workflow *wf)
{
    char path[PATH_MAX];
    int fd;

    reserve_path(wf, path);
    fd = reserve_open(path, O_RDONLY);
    if (fd < 0)
        return;
    (void)close(fd);
    (void)unlink(path);
}

/* If the database was moved or deleted, SQLite would go on writing to the old file. */
static pl_code check_is_there(const pl_runner *r, pl_error *err)
{
    int moved = 0;

    if (sqlite3_file_control(r->store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || !moved)
        return PL_OK;
    return pl_fail(err, PL_EIO,
                   "%s was moved or deleted while this run wrote to it; put it back and run again, or the next run "
                   "starts from the beginning",
                   r->wf->storage.results);
}

pl_code pl_disk_check(const pl_runner *r, pl_error *err)
{
    const char *const places[] = { r->wf->storage.results, r->wf->storage.features };
    double min_free = r->wf->limits.disk_free_min;
    char have[32], want[32];
    pl_code code = check_is_there(r, err);

    if (code != PL_OK)
        return code;
    for (int i = 0; min_free > 0 && i < 2; i++) {
        double left = places[i] != NULL ? pl_disk_free(places[i]) : -1;
        if (left >= 0 && left < min_free)
            return pl_fail(err, PL_EIO,
                           "%s: only %s free, limits.disk_free_min is %s; free some space and run again, nothing is lost",
                           places[i], pl_size_str(left, have), pl_size_str(min_free, want));
    }
    return PL_OK;
}

/* ---- a fresh directory ---- */

/* A path below the directory `from` moves to `to`; others stay. */
static const char *moved(const char *path, const char *from, const char *to, pl_arena *mem)
{
    size_t n = strlen(from);

    if (path == NULL || strncmp(path, from, n) != 0 || path[n] != '/')
        return path;
    return pl_sprintf(mem, "%s%s", to, path + n);
}

pl_code pl_workflow_fresh(pl_workflow *wf, pl_arena *mem, pl_error *err)
{
    const char *from = wf->workdir, *to = from;

    for (int i = 2; to != NULL && access(to, F_OK) == 0; i++)
        to = pl_sprintf(mem, "%s-%d", from, i);
    if (to == NULL)
        return pl_fail(err, PL_ENOMEM, "a path");
    wf->workdir = to;
    wf->storage.results = moved(wf->storage.results, from, to, mem);
    wf->storage.features = moved(wf->storage.features, from, to, mem);
    return wf->storage.results != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a path");
}

/* ---- the steps ---- */

/* Whether a stage that step i needs has failed. With --keep-going the other stages go on. */
static bool blocked(const pl_runner *r, int i, const bool *failed)
{
    for (int k = 0; k < r->wf->step[i].n_needs; k++)
        if (failed[r->wf->step[i].needs[k]])
            return true;
    return false;
}

static bool can_go_on(pl_code code)
{
    return code == PL_EINPUT || code == PL_ECONFIG || code == PL_ELIMIT || code == PL_EDATA || code == PL_EDEVICE;
}

/* The steps that run next: one whole stage, or all per-unit stages up to the next whole one. Returns their number. */
static int next_steps(const pl_runner *r, bool *failed, int *step)
{
    int n = 0;

    for (int i = 0; i < r->wf->n_steps; i++) {
        bool whole = r->wf->step[i].stage->scope == PL_WHOLE;
        if (!r->wanted[i] || r->plan[i].state == PL_STEP_DONE)
            continue;
        failed[i] = failed[i] || blocked(r, i, failed);
        if (failed[i])
            continue;
        if (whole && n > 0)
            break;
        step[n++] = i;
        if (whole)
            break;
    }
    return n;
}

static pl_code run_steps(pl_runner *r, pl_error *err)
{
    bool *failed = PL_NEW(r->mem, bool, r->wf->n_steps);
    int *step = PL_NEW(r->mem, int, r->wf->n_steps), n, bad;
    pl_code worst = PL_OK;

    if (failed == NULL || step == NULL)
        return pl_fail(err, PL_ENOMEM, "the run");
    while ((n = next_steps(r, failed, step)) > 0) {
        pl_error here = { 0 };
        pl_code code;

        if (r->opts->ran != NULL)
            *r->opts->ran += n;
        code = pl_steps_run(r, step, n, &bad, &here);
        if (code == PL_OK)
            continue;
        if (code != PL_ESTOP) /* its text names the running stages itself */
            pl_at(&here, "stage %s", r->wf->step[step[bad]].stage->name);
        failed[step[bad]] = true;
        if (worst == PL_OK && err != NULL)
            *err = here;
        worst = worst == PL_OK ? code : worst;
        if (!r->opts->keep_going || !can_go_on(code))
            break;
        pl_log(PL_ERROR, "stage %s: %s", r->wf->step[step[bad]].stage->name, here.text);
    }
    if (worst == PL_OK && r->limit.code != PL_OK && err != NULL)
        *err = r->limit;
    return worst == PL_OK ? r->limit.code : worst;
}

/* Deletes the copy of the previous results when the new ones are complete, that is, when no step was left out. */
static void drop_previous(const pl_runner *r)
{
    char path[PATH_MAX];

    for (int i = 0; i < r->wf->n_steps; i++)
        if (!r->wanted[i])
            return;
    if (pl_previous_path(r->store, path, sizeof path))
        (void)unlink(path);
}

static pl_code plan_all(pl_runner *r, pl_error *err)
{
    pl_code code;

    r->plan = PL_NEW(r->mem, pl_step_plan, r->wf->n_steps);
    r->wanted = PL_NEW(r->mem, bool, r->wf->n_steps);
    if (r->plan == NULL || r->wanted == NULL)
        return pl_fail(err, PL_ENOMEM, "the plan");
    code = pl_removed_clear(r, err);
    if (code == PL_OK)
        code = pl_plan_keys(r->wf, r->store, r->mem, err);
    if (code == PL_OK)
        code = pl_plan_steps_with(r->wf, r->store, r->opts, r->plan, r->wanted, r->mem, err);
    for (int i = 0; code == PL_OK && i < r->wf->n_steps; i++)
        if (r->plan[i].other_level && r->wanted[i])
            pl_log(PL_INFO, "%-9s %s", r->wf->step[i].stage->name, r->plan[i].reason);
    return code;
}

int pl_workers(const pl_workflow *wf, const pl_run_opts *opts)
{
    int64_t n = opts->workers > 0 ? opts->workers : wf->workers;

    return n > 0 && n < 4096 ? (int)n : pl_cpu_count();
}

static void say_network(const pl_runner *r)
{
    bool wal = r->wf->storage.journal == 1;

    if (r->store->network)
        pl_log(PL_WARN, "%s is on a network file system: %s; on other hosts only `molsieve status` is safe until the run ends",
               r->store->results_path, wal ? "storage.journal wal is not safe there, leave it auto" : "commits are slower there");
}

/* The part of a run that has a row in the table run; the database is open. */
static pl_code run_recorded(pl_runner *r, pl_error *err)
{
    pl_code code = pl_run_row_begin(r, err);

    if (code != PL_OK)
        return code;
    say_network(r);
    r->beat = pl_heartbeat_start(r->wf->workdir, r->run_id, r->opts->command);
    r->progress = pl_progress_new(stderr, r->opts->progress_tty, r->opts->quiet, r->beat);
    pl_run_row_look_back(r);
    code = pl_disk_check(r, err);
    if (code == PL_OK)
        code = plan_all(r, err);
    if (code == PL_OK)
        code = run_steps(r, err);
    if (code == PL_OK)
        code = check_is_there(r, err);
    if (code == PL_OK)
        drop_previous(r);
    if (code == PL_EIO)
        reserve_release(r->wf);
    code = pl_run_row_judge(code, err);
    pl_run_row_end(r, code, err);
    pl_progress_free(r->progress);
    pl_heartbeat_end(r->beat, code, err != NULL ? err->text : NULL);
    return code;
}

/* However the run ended, unless its files or its locks are not what they must be. */
static pl_code stage_out(const pl_runner *r, pl_code code, pl_error *err)
{
    pl_error local = { 0 };
    pl_code copied;

    if (code == PL_ELOCK || code == PL_EDATA || !r->wf->storage.stage_out)
        return code;
    pl_stop_patient();
    copied = pl_store_stage_out(r->store, &local);
    if (copied == PL_OK)
        return code;
    if (code == PL_OK || code == PL_ESTOP)
        return pl_fail(err, copied, "features are not copied back (storage.stage_out): %s", local.text);
    pl_log(PL_WARN, "features are not copied back (storage.stage_out): %s", local.text);
    return code;
}

static pl_code run_locked(pl_runner *r, const pl_locks *locks, pl_error *err)
{
    pl_stop stop;
    pl_code code;

    reserve_make(r->wf);
    pl_stop_begin(&stop, r->opts->max_time, r->opts->grace);
    if (r->opts->requeue_exit != 0)
        pl_stop_again(r->opts->requeue_exit);
    code = pl_store_open(&r->store, r->wf, r->schema, err);
    if (code == PL_OK) {
        pl_store_guard(r->store, locks);
        pl_db_patient(r->store->db);
        r->store->patient = true;
        code = run_recorded(r, err);
        if (code == PL_OK && r->opts->publish != NULL)
            code = r->opts->publish(r->opts->publish_ctx, r->store, r->wf, r->mem, err);
        code = stage_out(r, code, err);
        pl_store_close(r->store);
    }
    pl_stop_end(&stop);
    return code;
}

pl_code pl_run(pl_workflow *wf, const pl_schema *schema, const pl_run_opts *opts, pl_arena *mem, pl_error *err)
{
    pl_runner r = { .wf = wf, .schema = schema, .opts = opts, .mem = mem, .workers = pl_workers(wf, opts) };
    pl_locks locks;
    pl_code code = opts->fresh ? pl_workflow_fresh(wf, mem, err) : PL_OK;

    if (code == PL_OK)
        code = pl_locks_take(&locks, wf, err);
    if (code != PL_OK)
        return code;
    code = run_locked(&r, &locks, err);
    pl_locks_drop(&locks);
    return code;
}
