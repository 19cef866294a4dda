/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/log.h"
#include "pipeline/run/runner.h"

/* The stages to clear: [0] is the one that runs again, then its stored rows and those of all stages that depend on it. */
typedef struct clear_list {
    const char **name; /* [n] */
    int64_t *stage_id; /* [n] */
    int64_t n;
    bool complete; /* a done stage with rows is among them: keep a copy of the results */
} clear_list;

static bool needs_it(const char *needs_json, const char *name)
{
    json_t *needs = json_loads(needs_json, 0, NULL);
    const bool found = json_object_get(needs, name) != NULL;

    json_decref(needs);
    return found;
}

static bool depends_on(const clear_list *d, const char *needs_json)
{
    bool found = false;

    for (int64_t i = 0; i < d->n && !found; i++)
        found = needs_it(needs_json, d->name[i]);
    return found;
}

static const pl_stage *stage_named(const pl_runner *r, const char *name)
{
    int at = pl_step_find(r->wf, name);

    if (at >= 0)
        return r->wf->step[at].stage;
    for (int i = 0; r->opts->known != NULL && r->opts->known[i] != NULL; i++)
        if (strcmp(r->opts->known[i]->name, name) == 0)
            return r->opts->known[i];
    return NULL;
}

/* Whether the stage stores rows. One that only writes files needs no copy: its files stay until the new ones are complete. */
static bool has_rows(const pl_runner *r, const char *name)
{
    const pl_stage *stage = stage_named(r, name);

    return stage == NULL || stage->scope == PL_PER_UNIT || stage->reset_sql != NULL;
}

/* Finds the stages that depend on d->name[0]. Only within one run are stages stored in an
 * order that respects their needs, so the table is searched until nothing new is found. */
static pl_code find_dependents(const pl_runner *r, clear_list *d, pl_error *err)
{
    static const char sql[] = "SELECT stage_id,name,needs_json,state='done' FROM stage ORDER BY stage_id";
    sqlite3_stmt *st;
    bool changed = true;
    pl_code code = pl_db_prepare(r->store->db, &st, sql, err);

    while (changed) {
        changed = false;
        while (pl_db_next(st, &code, err)) {
            int64_t id = sqlite3_column_int64(st, 0);
            const char *name = (const char *)sqlite3_column_text(st, 1);
            bool known = false, named = strcmp(name, d->name[0]) == 0;

            for (int64_t i = 0; i < d->n; i++)
                known = known || d->stage_id[i] == id;
            if (known || !(named || depends_on(d, (const char *)sqlite3_column_text(st, 2))))
                continue;
            d->name[d->n] = pl_strdup(r->mem, name);
            if (d->name[d->n] == NULL) {
                code = pl_fail(err, PL_ENOMEM, "no memory for the stages that run again");
                break;
            }
            d->stage_id[d->n++] = id;
            d->complete = d->complete || (sqlite3_column_int(st, 3) != 0 && has_rows(r, name));
            changed = true;
        }
    }
    (void)sqlite3_finalize(st);
    return code;
}

bool pl_previous_path(const pl_store *s, char *out, size_t size)
{
    size_t n = strlen(s->results_path);
    int stem = (int)(n > 3 && strcmp(s->results_path + n - 3, ".db") == 0 ? n - 3 : n);

    return snprintf(out, size, "%.*s.previous.db", stem, s->results_path) < (int)size;
}

/* Copies results.db to results.previous.db, which is kept until the new results are complete. */
static pl_code keep_previous(pl_runner *r, pl_error *err)
{
    char path[PATH_MAX], size[32], left[32];
    struct stat st;
    double have = pl_disk_free(r->store->results_path);

    if (!pl_previous_path(r->store, path, sizeof path))
        return pl_fail(err, PL_EIO, "%s: path too long", r->store->results_path);
    if (access(path, F_OK) == 0)
        return PL_OK; /* an earlier rerun was interrupted: the copy is of the last complete results */
    if (stat(r->store->results_path, &st) == 0 && have >= 0 && have < 1.1 * (double)st.st_size)
        return pl_fail(err, PL_EIO,
                       "%s: %s free, %s needed to keep the old results until the new ones are complete; free some space", path,
                       pl_size_str(have, left), pl_size_str(1.1 * (double)st.st_size, size));
    pl_log(PL_INFO, "old results are kept in %s until the new ones are complete", path);
    return pl_store_copy(r->store, path, err);
}

static pl_code clear_one(pl_runner *r, const char *name, int64_t stage_id, pl_error *err)
{
    const pl_stage *stage = stage_named(r, name);
    pl_code code = PL_OK;

    for (int i = 0; code == PL_OK && stage != NULL && stage->reset_sql != NULL && stage->reset_sql[i] != NULL; i++)
        code = pl_db_exec(r->store->db, stage->reset_sql[i], err);
    if (code != PL_OK)
        return code;
    return pl_db_execf(r->store->db, err,
                       "DELETE FROM failure WHERE stage=%Q; DELETE FROM metric WHERE stage=%Q;"
                       "DELETE FROM unit WHERE stage_id=%lld; DELETE FROM stage WHERE stage_id=%lld;",
                       name, name, (long long)stage_id, (long long)stage_id);
}

static pl_code insert_stage(pl_runner *r, const pl_step *step, int64_t *stage_id, pl_error *err)
{
    static const char sql[] = "INSERT INTO stage(name,key,params_json,extra_json,needs_json,code_version,state,created_utc,"
                              "run_id) VALUES(?,?,?,?,?,?,'running',?,?)";
    const char *needs;
    char now[32];
    sqlite3_stmt *st;
    pl_code code = pl_needs_json(r->wf, step, &needs, r->mem, err);

    if (code == PL_OK)
        code = pl_db_prepare(r->store->db, &st, sql, err);
    if (code != PL_OK)
        return code;
    const char *text[] = { step->stage->name, step->key, step->params_json, step->extra_json, needs };
    for (int i = 0; i < 5; i++)
        (void)sqlite3_bind_text(st, i + 1, text[i], -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, 6, step->stage->version);
    (void)sqlite3_bind_text(st, 7, pl_utc_now(now), -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, 8, r->run_id);
    code = pl_db_run(st, err);
    (void)sqlite3_finalize(st);
    *stage_id = sqlite3_last_insert_rowid(r->store->db);
    return code;
}

/* A list with room for all stages of the database, and `first` on it. */
static pl_code list_open(clear_list *d, const pl_runner *r, const char *first, pl_error *err)
{
    int64_t stored = 0;
    pl_code code = pl_db_int(r->store->db, &stored, err, "SELECT count(*) FROM stage");

    if (code != PL_OK)
        return code;
    *d = (clear_list){ .name = PL_NEW(r->mem, const char *, stored + 1), .stage_id = PL_NEW(r->mem, int64_t, stored + 1), .n = 1 };
    if (d->name == NULL || d->stage_id == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the stages that run again");
    d->name[0] = first;
    d->stage_id[0] = -1;
    return PL_OK;
}

/* In the open transaction. */
static pl_code clear_all(pl_runner *r, const clear_list *d, pl_error *err)
{
    /* Rows of different stages refer to each other: foreign keys are checked only at the commit. */
    pl_code code = pl_db_exec(r->store->db, "PRAGMA defer_foreign_keys=ON", err);

    for (int64_t i = d->n - 1; code == PL_OK && i > 0; i--)
        code = clear_one(r, d->name[i], d->stage_id[i], err);
    return code;
}

/* Deletes the rows of a stage and of its dependents; step: inserts its new row, or NULL. */
static pl_code clear_from(pl_runner *r, const char *name, const pl_step *step, int64_t *stage_id, pl_error *err)
{
    clear_list d = { 0 };
    pl_code code = list_open(&d, r, name, err);

    if (code == PL_OK)
        code = find_dependents(r, &d, err);
    if (code == PL_OK && d.complete)
        code = keep_previous(r, err);
    if (code == PL_OK)
        code = pl_db_begin(r->store->db, err);
    if (code != PL_OK)
        return code;
    code = clear_all(r, &d, err);
    if (code == PL_OK && step != NULL)
        code = insert_stage(r, step, stage_id, err);
    if (code == PL_OK)
        return pl_db_commit(r->store->db, err);
    pl_db_rollback(r->store->db);
    return code;
}

pl_code pl_step_restart(pl_runner *r, int at, int64_t *stage_id, pl_error *err)
{
    const pl_step *step = &r->wf->step[at];

    return clear_from(r, step->stage->name, step, stage_id, err);
}

/* ---- stages that the workflow no longer has ---- */

static pl_code stored_read(pl_removed *out, const char **needs, double *seconds, pl_store *s, const pl_workflow *wf,
                           const pl_stage *const *known, pl_arena *mem, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st, "SELECT name,needs_json,wall_s FROM stage ORDER BY stage_id", err);

    while (pl_db_next(st, &code, err)) {
        const char *name = (const char *)sqlite3_column_text(st, 0);
        int k = 0;
        while (known[k] != NULL && strcmp(known[k]->name, name) != 0)
            k++;
        if (known[k] == NULL || pl_step_find(wf, name) >= 0)
            continue;
        seconds[out->n] = sqlite3_column_double(st, 2);
        needs[out->n] = pl_strdup(mem, (const char *)sqlite3_column_text(st, 1));
        out->stage[out->n++] = known[k];
        if (needs[out->n - 1] == NULL)
            code = pl_fail(err, PL_ENOMEM, "the plan");
    }
    (void)sqlite3_finalize(st);
    return code;
}

/* Marks (stage NULL) one more that stays, or that such a one needs. False: there is none. */
static bool keep_one(pl_removed *all, const bool *stays, const char *const *needs)
{
    for (int i = 0; i < all->n; i++)
        for (int j = 0; j < all->n && all->stage[i] != NULL; j++)
            if (stays[i] || (all->stage[j] == NULL && needs_it(needs[j], all->stage[i]->name))) {
                all->stage[i] = NULL;
                return true;
            }
    return false;
}

/* Takes out the stages that stay, and those that they need. */
static pl_code keep_some(pl_removed *all, const char *const *needs, const double *seconds, pl_arena *mem, pl_error *err)
{
    bool *stays = PL_NEW(mem, bool, all->n + 1);
    int n = 0;

    if (stays == NULL)
        return pl_fail(err, PL_ENOMEM, "the plan");
    for (int i = 0; i < all->n; i++)
        stays[i] = all->stage[i]->stays;
    while (keep_one(all, stays, needs))
        continue;
    for (int i = 0; i < all->n; i++) {
        if (all->stage[i] == NULL)
            continue;
        all->stage[n++] = all->stage[i];
        all->seconds += seconds[i];
    }
    all->n = n;
    return PL_OK;
}

pl_code pl_removed_find(pl_removed *out, pl_store *s, const pl_workflow *wf, const pl_stage *const *known, pl_arena *mem,
                        pl_error *err)
{
    const char **needs;
    double *seconds;
    int64_t n = 0;
    pl_code code;

    *out = (pl_removed){ 0 };
    if (s == NULL || known == NULL)
        return PL_OK;
    code = pl_db_int(s->db, &n, err, "SELECT count(*) FROM stage");
    if (code != PL_OK)
        return code;
    out->stage = PL_NEW(mem, const pl_stage *, n + 1);
    needs = PL_NEW(mem, const char *, n + 1);
    seconds = PL_NEW(mem, double, n + 1);
    if (out->stage == NULL || needs == NULL || seconds == NULL)
        return pl_fail(err, PL_ENOMEM, "the plan");
    code = stored_read(out, needs, seconds, s, wf, known, mem, err);
    return code == PL_OK ? keep_some(out, needs, seconds, mem, err) : code;
}

pl_code pl_removed_clear(pl_runner *r, pl_error *err)
{
    pl_removed removed;
    char time[32];
    pl_code code = pl_removed_find(&removed, r->store, r->wf, r->opts->known, r->mem, err);

    if (code == PL_OK && removed.n > 0 && removed.seconds > PL_REMOVED_LONG && !r->opts->delete_removed)
        return pl_fail(
            err, PL_ECONFIG,
            "results.db has what stage %s%s stored, %s of work, which the workflow no longer has and later stages would take "
            "for its own: put the stage back, run with another workdir=DIR, or delete that with --delete-removed",
            removed.stage[0]->name, removed.n > 1 ? " and others" : "", pl_duration_str(removed.seconds, time));
    for (int i = 0; i < removed.n && code == PL_OK; i++) {
        const char *name = removed.stage[i]->name;
        pl_log(PL_INFO, "stage %s is no longer in the workflow: its results are removed", name);
        pl_event_row(r->store, r->run_id, "info", name, "no longer in the workflow: its results were removed");
        code = clear_from(r, name, NULL, NULL, err);
    }
    return code;
}
