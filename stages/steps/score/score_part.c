/* SPDX-License-Identifier: Apache-2.0 */
/* The files of parts: which are there, and what the stage takes from them. */
#include "stages/steps/score/score_part.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/base/sha256.h"
#include "pipeline/run/run.h"
#include "pipeline/store/open.h"
#include "stages/steps/score/score_parts.h"

static const char *part_dir(const pl_workflow *wf, pl_shard part, pl_arena *mem)
{
    return pl_sprintf(mem, "%s/parts/%05d-of-%05d", wf->workdir, (int)part.k, (int)part.n);
}

const char *st_score_part_file(const pl_workflow *wf, pl_shard part, pl_arena *mem)
{
    const char *dir = part_dir(wf, part, mem);

    return dir != NULL ? pl_sprintf(mem, "%s/scores.db", dir) : NULL;
}

static const char *sent_file(const pl_workflow *wf, pl_arena *mem) { return pl_sprintf(mem, "%s/parts/sent", wf->workdir); }

/* What the numbers depend on besides the key: the machine, and how this program lays them out. */
const char *st_score_part_level(const pl_step *step, pl_arena *mem)
{
    const char *level = step->stage->level(step, mem);

    return level != NULL ? pl_sprintf(mem, "1 %zu %zu %s", sizeof(nn_traits), sizeof(void *), level) : NULL;
}

/* Whether `key` in the file's table meta has this value. False also if there is no such file. */
static bool file_says(sqlite3 *db, const char *key, const char *value)
{
    int64_t same = 0;

    return db != NULL && pl_db_int(db, &same, NULL, "SELECT count(*) FROM meta WHERE key=%Q AND value=%Q", key, value) == PL_OK &&
           same == 1;
}

/* NULL: there is none, or it is of another key. */
static sqlite3 *file_open(const char *path, const char *key)
{
    sqlite3 *db = NULL;

    if (path == NULL || access(path, R_OK) != 0 || pl_open_file(&db, path, SQLITE_OPEN_READONLY, 1000, NULL) != PL_OK)
        return NULL;
    if (file_says(db, "key", key))
        return db;
    (void)sqlite3_close(db);
    return NULL;
}

/* ---- which are missing ---- */

static bool is_complete(const pl_workflow *wf, pl_shard part, const char *key, pl_arena *mem)
{
    sqlite3 *db = file_open(st_score_part_file(wf, part, mem), key);
    const bool done = file_says(db, "state", "done");

    (void)sqlite3_close(db);
    return done;
}

/* Whether `score` is all that is left of what it needs. */
static pl_code plan_look(st_score_wait *out, pl_workflow *wf, pl_store *s, pl_arena *mem, pl_error *err)
{
    pl_step_plan *plan = PL_NEW(mem, pl_step_plan, wf->n_steps);
    const pl_step *score = pl_workflow_step(wf, "score");
    pl_code code = plan != NULL ? pl_plan_keys(wf, s, mem, err) : pl_fail(err, PL_ENOMEM, "the plan");

    if (code == PL_OK)
        code = pl_plan_steps(wf, s, plan, mem, err);
    if (code != PL_OK || score == NULL)
        return code;
    out->key = score->key;
    out->waits = plan[score - wf->step].state != PL_STEP_DONE;
    for (int i = 0; i < score->n_needs; i++)
        out->waits = out->waits && plan[score->needs[i]].state == PL_STEP_DONE;
    return code;
}

static bool was_sent(const pl_workflow *wf, const char *key, pl_arena *mem)
{
    const char *path = sent_file(wf, mem);
    pl_bytes text = { 0 };

    return path != NULL && access(path, R_OK) == 0 && pl_file_read(&text, path, mem, NULL) == PL_OK && strcmp(text.data, key) == 0;
}

pl_code st_score_wait_look(st_score_wait *out, pl_workflow *wf, const pl_schema *schema, int32_t n, pl_arena *mem, pl_error *err)
{
    pl_store *s = NULL;
    pl_code code;

    *out = (st_score_wait){ .missing = PL_NEW(mem, int32_t, n + 1) };
    if (out->missing == NULL)
        return pl_fail(err, PL_ENOMEM, "%d parts", (int)n);
    if (access(wf->storage.results, F_OK) != 0)
        return PL_OK;
    code = pl_store_open_read(&s, wf->storage.results, schema, err);
    if (code == PL_OK)
        code = plan_look(out, wf, s, mem, err);
    pl_store_close(s);
    for (int32_t k = 0; out->waits && k < n; k++)
        if (!is_complete(wf, (pl_shard){ k, n }, out->key, mem))
            out->missing[out->n_missing++] = k;
    out->sent = out->waits && was_sent(wf, out->key, mem);
    return code;
}

pl_code st_score_parts_sent(const pl_workflow *wf, const char *key, pl_arena *mem, pl_error *err)
{
    const char *path = sent_file(wf, mem), *dir = pl_sprintf(mem, "%s/parts", wf->workdir);
    pl_code code = path != NULL && dir != NULL ? pl_mkdirs(dir, err) : pl_fail(err, PL_ENOMEM, "a path");

    return code == PL_OK ? pl_file_write(path, (pl_bytes){ key, strlen(key) }, err) : code;
}

void st_score_parts_drop(const pl_workflow *wf, int32_t n, pl_arena *mem)
{
    for (int32_t k = 0; k < n; k++) {
        const char *path = st_score_part_file(wf, (pl_shard){ k, n }, mem);
        if (path != NULL)
            (void)unlink(path);
    }
}

/* ---- what the stage takes ---- */

static bool has_number(const st_score_taken *t, int of)
{
    for (int i = 0; i < t->n; i++)
        if (t->of[i] == of)
            return true;
    return false;
}

void st_score_taken_open(st_score_taken *t, const pl_env *env)
{
    const char *path = pl_sprintf(env->mem, "%s/parts", env->wf->workdir);
    DIR *dir = path != NULL ? opendir(path) : NULL;
    struct dirent *e;
    char more;
    int k, of;

    while (dir != NULL && (e = readdir(dir)) != NULL && t->n < (int)(sizeof t->of / sizeof *t->of))
        if (sscanf(e->d_name, "%5d-of-%5d%c", &k, &of, &more) == 2 && of > 0 && !has_number(t, of))
            t->of[t->n++] = of;
    if (dir != NULL)
        (void)closedir(dir);
}

static void hash_of(unsigned char out[32], const void *data, size_t n)
{
    pl_sha256 sha;

    pl_sha256_start(&sha);
    pl_sha256_add(&sha, data, n);
    pl_sha256_end(&sha, out);
}

/* A unit that is damaged is computed. */
static bool unit_read(st_scored *u, const st_scorer *s, sqlite3 *db, int64_t unit, pl_arena *mem)
{
    sqlite3_stmt *get = NULL;
    bool row = false, good = false;
    unsigned char hash[32];

    if (pl_db_prepare(db, &get, "SELECT data, sha256 FROM scored WHERE unit=?", NULL) == PL_OK)
        (void)sqlite3_bind_int64(get, 1, unit);
    if (get != NULL && pl_db_step(get, &row, NULL) == PL_OK && row && sqlite3_column_bytes(get, 1) == (int)sizeof hash) {
        pl_bytes data = { sqlite3_column_blob(get, 0), (size_t)sqlite3_column_bytes(get, 0) };
        hash_of(hash, data.data, data.len);
        good = memcmp(hash, sqlite3_column_blob(get, 1), sizeof hash) == 0 && st_score_bytes_get(u, s, data, mem);
    }
    (void)sqlite3_finalize(get);
    return good;
}

static bool same_machine(st_score_taken *t, pl_env *env, sqlite3 *db, pl_arena *mem)
{
    const char *level = st_score_part_level(env->step, mem);
    const bool same = level != NULL && file_says(db, "level", level);

    if (!same && !t->warned)
        pl_event_add(env, PL_WARN,
                     "scores that were computed on another kind of machine are computed again here; choose equal nodes, or set "
                     "score.kernels");
    t->warned = t->warned || !same;
    return same;
}

/* The file is open for one unit only, so the number of parts is not limited by that of open files. */
bool st_score_taken_unit(st_scored *u, st_score_taken *t, const st_scorer *s, pl_env *env, int64_t unit, pl_arena *mem)
{
    bool found = false;

    for (int i = 0; i < t->n && !found; i++) {
        const pl_shard part = { (int32_t)(unit % t->of[i]), t->of[i] };
        sqlite3 *db = file_open(st_score_part_file(env->wf, part, mem), env->step->key);
        found = db != NULL && same_machine(t, env, db, mem) && unit_read(u, s, db, unit, mem);
        (void)sqlite3_close(db);
    }
    return found;
}

pl_code st_score_part_put(sqlite3_stmt *put, int64_t unit, const pl_text *data, pl_error *err)
{
    unsigned char hash[32];

    hash_of(hash, data->s, data->len);
    (void)sqlite3_bind_int64(put, 1, unit);
    (void)sqlite3_bind_blob64(put, 2, data->s, data->len, SQLITE_STATIC);
    (void)sqlite3_bind_blob(put, 3, hash, sizeof hash, SQLITE_STATIC);
    return pl_db_run(put, err);
}
