/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/merge/merge.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/log.h"
#include "pipeline/base/stop.h"
#include "pipeline/lock/lock.h"
#include "pipeline/run/level.h"
#include "pipeline/run/runner.h"
#include "stages/database/measured.h"
#include "stages/steps/ingest/prepare.h"

/* ---- what is there ---- */

/* The one number of shards in WORKDIR/shards; -1: several. */
static int32_t count_shards(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int32_t n = 0;
    char more;
    int k, of;

    while (d != NULL && (e = readdir(d)) != NULL)
        if (sscanf(e->d_name, "%5d-of-%5d%c", &k, &of, &more) == 2 && of > 0)
            n = n == 0 || n == of ? of : -1;
    if (d != NULL)
        (void)closedir(d);
    return n;
}

static const char *results_of(const pl_workflow *wf, int32_t k, int32_t n, pl_arena *mem)
{
    const char *dir = pl_shard_dir(wf, (pl_shard){ k, n }, mem);

    return dir != NULL ? pl_sprintf(mem, "%s/results.db", dir) : NULL;
}

/* The files that are read were hashed by the shards. */
static pl_code plan_keys(pl_workflow *wf, const pl_schema *schema, int32_t n, pl_arena *mem, pl_error *err)
{
    pl_store *some = NULL;
    pl_code code;

    for (int32_t k = 0; k < n && some == NULL; k++) {
        const char *path = results_of(wf, k, n, mem);
        if (path != NULL && pl_store_open_read(&some, path, schema, NULL) != PL_OK)
            some = NULL;
    }
    code = pl_plan_keys(wf, some, mem, err);
    pl_store_close(some);
    return code;
}

/* What a stage lacks; never NULL, which would say that it lacks nothing. */
static const char *lack(const char *stage, const char *what, pl_arena *mem)
{
    const char *words = pl_sprintf(mem, "stage %s %s", stage, what);

    return words != NULL ? words : "no memory to look at its stages";
}

static const char *unread(pl_code code)
{
    return code == PL_ENOMEM ? "no memory to look at its stages" : "its results.db cannot be read";
}

const char *st_merge_lacks(pl_store *s, const pl_workflow *wf, pl_arena *mem)
{
    for (int i = 0; i < wf->n_steps; i++) {
        const char *name = wf->step[i].stage->name;
        pl_stage_row row;
        pl_code code;

        if (!pl_step_in_shard(wf, i))
            continue;
        code = pl_stage_row_get(s, name, &row, mem, NULL);
        if (code != PL_OK)
            return unread(code);
        if (row.stage_id == 0)
            return lack(name, "has not begun", mem);
        if (strcmp(row.key, wf->step[i].key) != 0)
            return lack(name, "was run with other settings or inputs", mem);
        if (!row.done)
            return lack(name, "is not complete", mem);
    }
    return NULL;
}

pl_code st_merge_is_older(bool *older, pl_store *s, pl_error *err)
{
    int64_t version = 0;
    const pl_code code = pl_db_int(s->db, &version, err, "PRAGMA user_version");

    *older = version < s->schema->version;
    return code;
}

/* Its rows would become those of the whole run. */
static const char *lacks_or_has_too_many(pl_store *s, const pl_workflow *wf, pl_arena *mem)
{
    const char *why = st_merge_lacks(s, wf, mem);
    sqlite3_stmt *st = NULL;
    pl_error err = { 0 };
    pl_code code = why == NULL ? pl_db_prepare(s->db, &st, "SELECT name FROM stage ORDER BY stage_id", &err) : PL_OK;

    while (why == NULL && pl_db_next(st, &code, &err))
        if (pl_workflow_step(wf, (const char *)sqlite3_column_text(st, 0)) == NULL)
            why = lack((const char *)sqlite3_column_text(st, 0), "is no longer in the workflow: run the shard again", mem);
    (void)sqlite3_finalize(st);
    if (why == NULL && code != PL_OK)
        why = pl_strdup(mem, err.text);
    return why == NULL && code != PL_OK ? unread(code) : why;
}

static const char *why_missing(const pl_workflow *wf, const pl_schema *schema, const char *path, pl_arena *mem)
{
    pl_store *s = NULL;
    pl_error err = { 0 };
    const char *why = NULL;
    bool older = false;
    pl_code code;

    if (access(path, F_OK) != 0)
        return "not begun";
    code = pl_store_open_read(&s, path, schema, &err);
    if (code == PL_OK)
        code = st_merge_is_older(&older, s, &err);
    if (code != PL_OK)
        why = pl_strdup(mem, err.text);
    else if (older)
        why = "made by an older molsieve: run the shard again, which only brings its results.db up to date";
    else
        why = lacks_or_has_too_many(s, wf, mem);
    pl_store_close(s);
    return code != PL_OK && why == NULL ? "no memory to look at it" : why;
}

pl_code st_shards_find(st_shards *out, pl_workflow *wf, const pl_schema *schema, int32_t of, pl_arena *mem, pl_error *err)
{
    const char *dir = pl_sprintf(mem, "%s/shards", wf->workdir);
    int32_t n = of;
    pl_code code;

    if (of <= 0)
        n = dir != NULL ? count_shards(dir) : 0;
    *out = (st_shards){ .n = n };
    if (dir == NULL)
        return pl_fail(err, PL_ENOMEM, "a path");
    if (n <= 0)
        return pl_fail(err, PL_ECONFIG,
                       n == 0 ? "%s: no shards; make them with `molsieve run FILE --shard K/N`, or give their number with --of "
                                "N"
                              : "%s: shards of several numbers N were made; choose one with --of N",
                       dir);
    code = plan_keys(wf, schema, n, mem, err);
    if (code != PL_OK)
        return code;
    out->why = PL_NEW(mem, const char *, n);
    out->path = PL_NEW(mem, const char *, n);
    if (out->why == NULL || out->path == NULL)
        return pl_fail(err, PL_ENOMEM, "%d shards", (int)n);
    for (int32_t k = 0; k < n; k++) {
        out->path[k] = results_of(wf, k, n, mem);
        out->why[k] = out->path[k] != NULL ? why_missing(wf, schema, out->path[k], mem) : "no memory";
        out->n_missing += out->why[k] != NULL;
    }
    return PL_OK;
}

/* ---- shards, one after another ---- */

pl_code st_merge_attach(st_merging *m, int32_t shard, pl_error *err)
{
    return pl_db_execf(m->store->db, err, "ATTACH %Q AS s", m->path[shard]);
}

pl_code st_merge_detach(st_merging *m, pl_code code, pl_error *err)
{
    const pl_code gone = pl_db_exec(m->store->db, "DETACH s", code == PL_OK ? err : NULL);

    return code != PL_OK ? code : gone;
}

static pl_code fold_one(st_merging *m, int32_t k, pl_error *err)
{
    sqlite3 *db = m->store->db;
    pl_code code = st_merge_attach(m, k, err);

    if (code == PL_OK)
        code = pl_db_begin(db, err);
    if (code == PL_OK)
        code = st_merge_fold(m, k, err);
    if (code == PL_OK) {
        pl_fault("merge", "shard.before_commit");
        code = pl_db_commit(db, err);
    }
    pl_db_rollback(db);
    code = st_merge_detach(m, code, err);
    if (code != PL_OK)
        pl_at(err, "shard %d", (int)k);
    return code;
}

static pl_code fold_all(st_merging *m, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t k = 0; k < m->n && code == PL_OK; k++) {
        int64_t there = 0;
        if (*pl_stop_flag())
            return pl_fail(err, PL_ESTOP, "stopped by %s before shard %d; run the same command again to continue", pl_stop_reason(),
                           (int)k);
        code = pl_db_int(m->store->db, &there, err, "SELECT count(*) FROM merge_done WHERE shard=%d", (int)k);
        if (code == PL_OK && there == 0)
            code = fold_one(m, k, err);
    }
    return code;
}

/* ---- the end ---- */

static pl_code check_whole(st_merging *m, pl_error *err)
{
    int64_t n_units = 0, n_mols = 0;
    pl_code code = pl_db_int(m->store->db, &n_units, err,
                             "SELECT count(*) FROM (SELECT stage_id FROM unit GROUP BY stage_id "
                             "HAVING min(unit)<>0 OR max(unit)+1<>count(*))");

    if (n_units != 0)
        return pl_fail(err, PL_EDATA, "the shards do not fit together: units are missing; remove the shards and run them again");
    if (code == PL_OK)
        code = pl_db_int(m->store->db, &n_mols, err, "SELECT EXISTS(SELECT 1 FROM molecule)");
    if (code == PL_OK && n_mols == 0)
        return pl_fail(err, PL_EINPUT,
                       "none of the records gave a molecule; check `format` of `inputs` and what `prepare` sets aside, and see "
                       "`molsieve failures` of a shard");
    return code;
}

static pl_code warn_drawings(st_merging *m, pl_error *err)
{
    char text[2][256];
    pl_code code = st_drawings_text(m->store, text[0], err);

    if (code == PL_OK)
        code = st_axes_text(m->store, text[1], err);
    if (code != PL_OK)
        return code;
    for (int i = 0; i < 2; i++)
        if (text[i][0] != '\0') {
            pl_log(PL_WARN, "%-9s %s", "prepare", text[i]);
            pl_event_row(m->store, m->run_id, "warn", "prepare", text[i]);
        }
    return PL_OK;
}

static pl_code finish(st_merging *m, pl_error *err)
{
    sqlite3 *db = m->store->db;
    pl_code code = check_whole(m, err);

    if (code == PL_OK)
        code = st_merge_same(m, err);
    if (code == PL_OK && !m->alone)
        code = st_merge_blocks(m, err);
    if (code == PL_OK)
        code = pl_db_begin(db, err);
    if (code == PL_OK)
        code = st_merge_unite(m, err);
    if (code == PL_OK)
        code = st_measured_apply(m->store, err);
    if (code == PL_OK)
        code = pl_levels_compare(m->wf, m->store, m->run_id, err);
    if (code == PL_OK)
        code = warn_drawings(m, err);
    if (code == PL_OK)
        code = pl_db_execf(
            m->store->db, err,
            "UPDATE stage SET state='done'; INSERT INTO event(run_id,at_utc,level,stage,message) "
            "SELECT %lld, strftime('%%Y-%%m-%%dT%%H:%%M:%%SZ','now'), 'info', name, 'merged from %d shards' FROM stage ORDER "
            "BY stage_id; DROP TABLE merge_index; DROP TABLE merge_done; DROP TABLE merge_step; DROP TABLE "
            "merge_property; DROP TABLE merge_label; DROP TABLE merge_same; DELETE FROM meta WHERE key LIKE "
            "'merge_%%'",
            (long long)m->run_id, (int)m->n);
    pl_fault("merge", "finish.before_commit");
    if (code == PL_OK)
        code = pl_db_commit(db, err);
    pl_db_rollback(db);
    return code;
}

/* ---- the file ---- */

/* results.db -> results.merging.db */
static const char *merging_path(const pl_workflow *wf, pl_arena *mem)
{
    const char *results = wf->storage.results, *end = strrchr(results, '.');
    const size_t stem = end != NULL && strcmp(end, ".db") == 0 ? (size_t)(end - results) : strlen(results);

    return pl_sprintf(mem, "%.*s.merging.db", (int)stem, results);
}

static void remove_file(const char *path, pl_arena *mem)
{
    static const char *const tails[] = { "", "-wal", "-shm", "-journal" };

    for (int i = 0; i < 4; i++) {
        const char *file = pl_sprintf(mem, "%s%s", path, tails[i]);
        if (file != NULL)
            (void)unlink(file);
    }
}

/* Foreign keys hold only at the end. */
static pl_code open_file(st_merging *m, const char *path, pl_error *err)
{
    pl_workflow there = *m->wf;
    pl_code code;

    there.storage.results = path;
    if (m->wf->storage.stage_out) /* the next run, and a merge that goes on elsewhere, find it */
        there.storage.features = pl_sprintf(m->mem, "%s" PL_STAGED, m->wf->storage.results);
    if (there.storage.features == NULL)
        return pl_fail(err, PL_ENOMEM, "a path");
    code = pl_store_open(&m->store, &there, m->schema, err);
    if (code == PL_OK)
        pl_store_guard(m->store, m->locks);
    return code == PL_OK ? pl_db_exec(m->store->db, "PRAGMA foreign_keys=OFF", err) : code;
}

/* Identifies the merge that began the file: the number of shards and the keys of their stages. */
static const char *purpose(const st_merging *m)
{
    const char *all = pl_sprintf(m->mem, "%d", (int)m->n);

    for (int i = 0; i < m->wf->n_steps && all != NULL; i++)
        if (pl_step_in_shard(m->wf, i))
            all = pl_sprintf(m->mem, "%s %s", all, m->wf->step[i].key);
    return all;
}

/* Continues a file that was begun for the same shards and keys, else begins a new one. */
static pl_code open_or_begin(st_merging *m, const char *path, bool *complete, pl_error *err)
{
    const char *what = purpose(m);
    int64_t same = 0;
    pl_code code = what != NULL ? open_file(m, path, err) : pl_fail(err, PL_ENOMEM, "a merge");

    *complete = false;
    if (code != PL_OK)
        return code;
    *complete = st_merge_lacks(m->store, m->wf, m->mem) == NULL;
    if (*complete)
        return PL_OK;
    code = pl_db_int(m->store->db, &same, err,
                     "SELECT count(*) FROM meta WHERE (key='merge_of' AND value=%Q) OR "
                     "key='merge_begun'",
                     what);
    if (code != PL_OK || same == 2)
        return code;
    pl_store_close(m->store);
    m->store = NULL;
    remove_file(path, m->mem);
    code = open_file(m, path, err);
    if (code == PL_OK)
        code = pl_db_execf(m->store->db, err, "INSERT INTO meta VALUES('merge_of',%Q)", what);
    return code == PL_OK ? st_merge_begin(m, err) : code;
}

/* ---- the file becomes results.db ---- */

static pl_code fail_backup(sqlite3 *to, int rc, pl_error *err)
{
    pl_error local = { 0 };
    pl_code code = pl_db_fail(to, &local);

    return code != PL_OK ? pl_fail(err, code, "%s", local.text) : pl_fail(err, PL_EIO, "results.db: %s", sqlite3_errstr(rc));
}

/* In one transaction: readers see the old or the new content. */
static pl_code replace_pages(sqlite3 *to, sqlite3 *from, pl_error *err)
{
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    int rc = SQLITE_ERROR;

    if (b != NULL) {
        (void)sqlite3_backup_step(b, -1);
        rc = sqlite3_backup_finish(b);
    }
    return rc == SQLITE_OK ? PL_OK : fail_backup(to, rc, err);
}

/* Copies into an existing file. */
static pl_code replace(st_merging *m, pl_error *err)
{
    pl_store *old = NULL;
    char keep[PATH_MAX];
    pl_code code = pl_store_open(&old, m->wf, m->schema, err);

    if (code == PL_OK && pl_previous_path(old, keep, sizeof keep) && access(keep, F_OK) != 0) {
        pl_log(PL_INFO, "old results are kept in %s until the new ones are complete", keep);
        code = pl_store_copy(old, keep, err);
    }
    if (code == PL_OK)
        code = pl_store_held(m->store, err);
    if (code == PL_OK)
        code = replace_pages(old->db, m->store->db, err);
    pl_store_close(old);
    return code;
}

static pl_code publish(st_merging *m, const char *path, pl_error *err)
{
    bool there = access(m->wf->storage.results, F_OK) == 0;
    pl_code code = there ? replace(m, err) : pl_store_held(m->store, err);

    pl_store_close(m->store);
    m->store = NULL;
    pl_fault("merge", "publish");
    if (code == PL_OK && !there && rename(path, m->wf->storage.results) != 0)
        code = pl_fail_errno(err, m->wf->storage.results);
    if (code == PL_OK)
        remove_file(path, m->mem);
    return code;
}

/* Labels that were added to the results of an earlier merge, and what was chosen there, go over. */
static pl_code keep_later(st_merging *m, pl_error *err)
{
    sqlite3 *db = m->store->db;
    int64_t has = 0;
    pl_code code = PL_OK;

    if (access(m->wf->storage.results, F_OK) != 0)
        return PL_OK;
    code = pl_db_execf(db, err, "ATTACH %Q AS old", m->wf->storage.results);
    if (code == PL_OK)
        code = pl_db_int(db, &has, err, "SELECT count(*) FROM old.sqlite_master WHERE name IN ('measured','acquired')");
    if (code == PL_OK && has == 2)
        code = pl_db_exec(db,
                          "INSERT OR IGNORE INTO main.measured SELECT * FROM old.measured;"
                          "INSERT OR IGNORE INTO main.acquired SELECT * FROM old.acquired;"
                          "INSERT OR IGNORE INTO main.meta SELECT * FROM old.meta WHERE key LIKE 'stated %'", /* labels/stated.h */
                          err);
    (void)pl_db_exec(db, "DETACH old", NULL);
    return code;
}

static pl_code work(st_merging *m, const pl_run_opts *opts, const char *path, pl_error *err)
{
    pl_runner r = { .wf = m->wf, .schema = m->schema, .opts = opts, .mem = m->mem };
    bool complete;
    pl_code code = open_or_begin(m, path, &complete, err);

    if (code != PL_OK)
        return code;
    if (!complete) {
        r.store = m->store;
        code = pl_run_row_begin(&r, err);
        m->run_id = r.run_id;
        if (code == PL_OK)
            code = fold_all(m, err);
        if (code == PL_OK)
            code = keep_later(m, err);
        if (code == PL_OK)
            code = finish(m, err);
        pl_run_row_end(&r, code, err);
    }
    if (code == PL_OK)
        code = pl_db_exec(m->store->db, "ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)", err);
    if (code == PL_OK && m->alone) /* one file, also for a reader in a folder that cannot be written */
        code = pl_db_exec(m->store->db, "PRAGMA journal_mode=DELETE", err);
    return code == PL_OK ? publish(m, path, err) : code;
}

/* Whether the next run would repeat work of the shards, because it reads blocks that no earlier run read. */
static pl_code look_whether_again(st_merging *m, pl_store *s, bool *again, pl_error *err)
{
    pl_step_plan *plan = PL_NEW(m->mem, pl_step_plan, m->wf->n_steps);
    pl_code code = plan != NULL ? pl_plan_steps(m->wf, s, plan, m->mem, err) : pl_fail(err, PL_ENOMEM, "the plan");

    *again = false;
    if (code != PL_OK)
        return code;
    for (int i = 0; i < m->wf->n_steps; i++)
        *again = *again || (pl_step_in_shard(m->wf, i) && plan[i].state != PL_STEP_DONE);
    return PL_OK;
}

/* Whether a finished results.db already has the results for these keys. */
static pl_code look_whether_done(st_merging *m, bool *already, pl_error *err)
{
    pl_store *s = NULL;
    bool again = false;
    pl_code code = PL_OK;

    *already = false;
    if (access(m->wf->storage.results, F_OK) != 0)
        return PL_OK;
    code = pl_store_open_read(&s, m->wf->storage.results, m->schema, err);
    if (code == PL_OK && !m->alone)
        code = look_whether_again(m, s, &again, err);
    if (code == PL_OK)
        *already = !again && st_merge_lacks(s, m->wf, m->mem) == NULL;
    pl_store_close(s);
    return code;
}

static pl_code merge_locked(st_merging *m, const pl_run_opts *opts, bool *already, pl_error *err)
{
    const char *path = merging_path(m->wf, m->mem);
    pl_stop stop;
    pl_code code = path != NULL ? look_whether_done(m, already, err) : pl_fail(err, PL_ENOMEM, "a path");

    if (code != PL_OK)
        return code;
    if (*already) {
        remove_file(path, m->mem);
        return PL_OK;
    }
    pl_stop_begin(&stop, opts->max_time, opts->grace);
    code = work(m, opts, path, err);
    pl_store_close(m->store);
    pl_stop_end(&stop);
    return code;
}

pl_code st_merge(pl_workflow *wf, const pl_schema *schema, const st_shards *shards, const pl_run_opts *opts, bool *already,
                 pl_arena *mem, pl_error *err)
{
    st_merging m = { .wf = wf, .schema = schema, .n = shards->n, .path = shards->path, .alone = shards->alone, .mem = mem };
    pl_locks locks;
    pl_code code = m.alone ? pl_locks_take_results(&locks, wf, err) : pl_locks_take(&locks, wf, err);

    if (code != PL_OK)
        return code;
    m.locks = &locks;
    code = merge_locked(&m, opts, already, err);
    pl_locks_drop(&locks);
    return code;
}
