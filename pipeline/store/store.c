/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/store/store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/lock/lock.h"
#include "pipeline/store/judge.h"
#include "pipeline/store/open.h"
#include "pipeline/store/pages.h"
#include "pipeline/store/store_parts.h"
#include "pipeline/store/sums.h"

/* Files of version 1 are not migrated: their CRCs cover only the data (see block.c). */
const char pl_block_sql[] = "CREATE TABLE block("
                            " block_id INTEGER PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, unit INTEGER NOT NULL,"
                            " first INTEGER NOT NULL, n_items INTEGER NOT NULL, crc32 INTEGER NOT NULL, data BLOB NOT NULL,"
                            " UNIQUE(key,kind,unit));";

/* Added later; files without it still work, so PL_FEATURES_VERSION was not raised. */
static const char cache_sql[] = "CREATE TABLE IF NOT EXISTS cache(cache_id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
                                " crc32 INTEGER NOT NULL, data BLOB NOT NULL)";

enum { WRITE = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE };

/* ---- results.db ---- */

static pl_code put_docs(sqlite3 *db, const pl_schema *schema, pl_error *err)
{
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(db, &st, "INSERT OR REPLACE INTO column_doc(tbl,col,unit,description) VALUES(?,?,?,?)", err);

    for (int i = 0; code == PL_OK && schema->docs != NULL && schema->docs[i][0] != NULL; i++) {
        for (int k = 0; k < 4; k++)
            (void)sqlite3_bind_text(st, k + 1, schema->docs[i][k], -1, SQLITE_STATIC);
        code = pl_db_run(st, err);
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code create_results(sqlite3 *db, const pl_schema *schema, pl_error *err)
{
    pl_code code = pl_db_begin(db, err);

    if (code == PL_OK)
        code = pl_db_exec(db, pl_engine_sql, err);
    if (code == PL_OK)
        code = pl_schema_create(db, schema, err);
    if (code == PL_OK)
        code = put_docs(db, schema, err);
    if (code == PL_OK)
        code = pl_open_version(db, PL_RESULTS_ID, schema->version, err);
    if (code == PL_OK)
        code = pl_sums_fill(db, err);
    if (code == PL_OK)
        return pl_db_commit(db, err);
    pl_db_rollback(db);
    return code;
}

static const char *step_sql(const pl_schema *schema, int from) { return schema->migrate != NULL ? schema->migrate[from] : NULL; }

/* Whether the schema knows a step from this version to the next. */
static bool is_known(const pl_schema *schema, int from)
{
    bool known = from >= 1 && step_sql(schema, from) != NULL;

    for (const pl_added *a = schema->added; a != NULL && a->table != NULL && from >= 1; a++)
        known = known || a->version == from + 1;
    return known;
}

/* Migrates from one version to the next, in one transaction. */
static pl_code migrate_once(pl_store *s, int from, pl_error *err)
{
    const pl_schema *schema = s->schema;
    pl_code code = pl_db_begin(s->db, err);

    if (code == PL_OK && step_sql(schema, from) != NULL)
        code = pl_db_exec(s->db, step_sql(schema, from), err);
    if (code == PL_OK)
        code = pl_schema_add(s->db, schema, from, from + 1, err);
    if (code == PL_OK && from + 1 == schema->version && schema->views != NULL)
        code = pl_db_exec(s->db, schema->views, err);
    if (code == PL_OK)
        code = put_docs(s->db, s->schema, err);
    if (code == PL_OK)
        code = pl_open_version(s->db, PL_RESULTS_ID, from + 1, err);
    if (code == PL_OK)
        return pl_db_commit(s->db, err);
    pl_db_rollback(s->db);
    return code;
}

/* Before a migration: checks that every step of it is known, and copies the file. */
static pl_code copy_before(pl_store *s, int from, pl_error *err)
{
    char copy[PATH_MAX];

    for (int v = from; v < s->schema->version; v++)
        if (!is_known(s->schema, v))
            return pl_fail(err, PL_EDATA, "%s: format %d is too old for this program; use --fresh", s->results_path, from);
    if (snprintf(copy, sizeof copy, "%s.format%d", s->results_path, from) >= (int)sizeof copy)
        return pl_fail(err, PL_EIO, "%s: path too long", s->results_path);
    return pl_store_copy(s, copy, err);
}

/* Rewrites the file so that its pages have room for checksums. */
static pl_code make_room(sqlite3 *db, pl_error *err)
{
    pl_code code = pl_db_exec(db, "PRAGMA journal_mode=DELETE", err);

    if (code == PL_OK)
        pl_pages_reserve(db);
    return code == PL_OK ? pl_db_exec(db, "VACUUM", err) : code;
}

static pl_code migrate_results(pl_store *s, int from, pl_error *err)
{
    pl_code code = PL_OK;

    for (int v = from; code == PL_OK && v < s->schema->version; v++)
        code = migrate_once(s, v, err);
    return code;
}

/* Computes the sums again after a migration and where they were given up; then starts to watch changes. */
static pl_code keep_sums(pl_store *s, bool migrated, pl_error *err)
{
    int64_t there = 0;
    pl_code code = pl_db_int(s->db, &there, err, "SELECT count(*) FROM sqlite_master WHERE name='row_sum'");

    if (there > 0)
        code = pl_db_int(s->db, &there, err, "SELECT count(*) FROM row_sum");
    if (code == PL_OK && (there == 0 || migrated)) {
        code = pl_db_begin(s->db, err);
        if (code == PL_OK)
            code = pl_sums_fill(s->db, err);
        if (code == PL_OK)
            code = pl_db_commit(s->db, err);
        pl_db_rollback(s->db);
    }
    return code == PL_OK ? pl_sums_watch(&s->sums, s->db, err) : code;
}

static pl_code remember(pl_store *s, const char *key, const char *value, pl_error *err)
{
    static const char sql[] = "INSERT INTO meta(key,value) VALUES(?1,?2)"
                              " ON CONFLICT(key) DO UPDATE SET value=?2 WHERE value<>?2";
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(s->db, &st, sql, err);

    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 2, value, -1, SQLITE_STATIC);
    code = pl_db_run(st, err);
    (void)sqlite3_finalize(st);
    return code;
}

/* Length of the directory of a path, with its slash. */
static size_t dir_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

/* Stores where features.db is: the whole path, for a copy of results.db elsewhere; and its name
 * if both are in one directory, for a copied or moved directory. */
static pl_code remember_features_path(pl_store *s, pl_error *err)
{
    size_t n = dir_length(s->features_path);
    bool beside = n == dir_length(s->results_path) && strncmp(s->features_path, s->results_path, n) == 0;
    pl_code code = remember(s, "features_path", s->features_path, err);

    return code == PL_OK ? remember(s, "features_beside", beside ? s->features_path + n : "", err) : code;
}

static pl_code open_results(pl_store *s, int journal, pl_error *err)
{
    pl_identity is = { 0 };
    const bool has_log = pl_judge_has_log(s->results_path);
    bool fresh, old;
    pl_code code = pl_open_file(&s->db, s->results_path, WRITE | SQLITE_OPEN_NOMUTEX, 60000, err);

    if (code == PL_OK && has_log)
        pl_judge_keep(s->db);
    if (code == PL_OK)
        code = pl_open_identity(s->db, &is, err);
    if (code != PL_OK)
        return has_log && s->db != NULL ? pl_judge_log(s->db, s->results_path, code, err) : code;
    fresh = is.n_tables == 0 && is.application_id == 0;
    if (!fresh)
        code = pl_open_ours(&is, s->results_path, PL_RESULTS_ID, s->schema->version, err);
    if (code == PL_OK && !fresh && has_log)
        code = pl_judge_log(s->db, s->results_path, code, err);
    old = !fresh && is.version < s->schema->version;
    if (code == PL_OK)
        pl_pages_renew(s->db);
    if (code == PL_OK && old)
        code = copy_before(s, (int)is.version, err);
    if (code == PL_OK && old)
        code = make_room(s->db, err);
    if (fresh)
        pl_pages_reserve(s->db);
    if (code == PL_OK)
        code = pl_open_writer(s->db, fresh, &pl_results_kind, s->network, journal, err);
    if (code == PL_OK)
        code = fresh ? create_results(s->db, s->schema, err) : migrate_results(s, (int)is.version, err);
    if (code == PL_OK)
        code = keep_sums(s, old, err);
    if (code == PL_OK)
        code = remember_features_path(s, err);
    return code;
}

static pl_code make_parent(const char *path, pl_error *err)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');

    if (slash == NULL || slash == path)
        return PL_OK;
    if (snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path) >= (int)sizeof dir)
        return pl_fail(err, PL_EIO, "%s: path too long", path);
    return pl_mkdirs(dir, err);
}

static pl_store *new_store(const char *results, const char *features, const pl_schema *schema)
{
    pl_store *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->schema = schema;
    (void)pthread_mutex_init(&s->get_lock, NULL);
    s->results_path = strdup(results);
    s->features_path = strdup(features);
    if (s->results_path != NULL && s->features_path != NULL)
        return s;
    pl_store_close(s);
    return NULL;
}

pl_code pl_store_open(pl_store **out, const pl_workflow *wf, const pl_schema *schema, pl_error *err)
{
    pl_store *s = new_store(wf->storage.results, wf->storage.features, schema);
    pl_code code;

    *out = NULL;
    if (s == NULL)
        return pl_fail(err, PL_ENOMEM, "the database");
    s->journal = wf->storage.journal;
    s->stage_out = wf->storage.stage_out;
    s->network = pl_is_network_fs(s->results_path);
    code = make_parent(s->results_path, err);
    if (code == PL_OK)
        code = open_results(s, s->journal, err);
    if (code == PL_OK)
        *out = s;
    else
        pl_store_close(s);
    return code;
}

/* ---- reading ---- */

static pl_code recall(pl_store *s, const char *key, char *out, size_t size, pl_error *err)
{
    return pl_db_text(s->db, out, size, err, "SELECT value FROM meta WHERE key=%Q", key);
}

static pl_code set_features_path(pl_store *s, const char *path, pl_error *err)
{
    free((char *)s->features_path);
    s->features_path = strdup(path);
    return s->features_path != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a path");
}

/* Finds features.db: beside results.db if the writer had it there, so that a copied
 * directory uses its own; otherwise at the path that the writer stored. */
static pl_code find_features(pl_store *s, pl_error *err)
{
    char path[PATH_MAX], noted[PATH_MAX], name[NAME_MAX + 1], shard[32];
    pl_code code = recall(s, "features_path", noted, sizeof noted, err);

    if (code == PL_OK)
        code = recall(s, "features_beside", name, sizeof name, err);
    if (code == PL_OK)
        code = recall(s, PL_SHARD_META, shard, sizeof shard, err);
    if (code != PL_OK)
        return code;
    if (shard[0] != '\0') /* a packed file has its blocks inside */
        return set_features_path(s, s->results_path, err);
    if (snprintf(path, sizeof path, "%.*s%s", (int)dir_length(s->results_path), s->results_path, name[0] ? name : "features.db") >=
        (int)sizeof path)
        return pl_fail(err, PL_EIO, "%s: path too long", s->results_path);
    if (access(noted, R_OK) == 0 && (name[0] == '\0' || access(path, R_OK) != 0))
        (void)snprintf(path, sizeof path, "%s", noted);
    pl_staged_find(s, path);
    return set_features_path(s, path, err);
}

static pl_code open_reader(pl_store *s, pl_error *err)
{
    pl_identity is = { 0 };
    pl_code code = pl_open_reader(&s->db, s->results_path, &is, err);

    if (code == PL_OK && is.n_tables == 0)
        code = pl_fail(err, PL_EDATA, "%s: empty, nothing has run yet", s->results_path);
    if (code == PL_OK)
        code = pl_open_ours(&is, s->results_path, PL_RESULTS_ID, s->schema->version, err);
    if (code == PL_OK && is.version > 0 && is.version < s->schema->version)
        code = pl_schema_complete(s->db, s->schema, err);
    if (code == PL_OK)
        code = find_features(s, err);
    return code;
}

pl_code pl_store_open_read(pl_store **out, const char *results_path, const pl_schema *schema, pl_error *err)
{
    pl_store *s;
    pl_code code;

    *out = NULL;
    if (access(results_path, R_OK) != 0)
        return pl_fail(err, PL_EIO, "%s: %s; has this workflow run yet?", results_path, strerror(errno));
    s = new_store(results_path, "", schema);
    if (s == NULL)
        return pl_fail(err, PL_ENOMEM, "the database");
    code = open_reader(s, err);
    if (code == PL_OK)
        *out = s;
    else
        pl_store_close(s);
    return code;
}

/* ---- no commit after the lock is lost ---- */

/* Commit hook; not 0 turns the commit into a rollback. The check is within the write transaction: another run that has got the
 * lock begins with a write transaction, too, and so can start only after this one. */
static int refuse_commit(void *ctx) { return pl_store_held(ctx, NULL) != PL_OK; }

/* Blocks in a features.db that was moved or deleted would be lost without a word. */
static int refuse_blocks(void *ctx)
{
    int moved = 0;

    return sqlite3_file_control(((pl_store *)ctx)->features, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved
               ? 1
               : refuse_commit(ctx);
}

static void guard(pl_store *s)
{
    if (s->db != NULL && s->locks != NULL)
        (void)sqlite3_commit_hook(s->db, refuse_commit, s);
    if (s->features != NULL && s->locks != NULL)
        (void)sqlite3_commit_hook(s->features, refuse_blocks, s);
}

void pl_store_guard(pl_store *s, const struct pl_locks *locks)
{
    s->locks = locks;
    guard(s);
}

pl_code pl_store_held(const pl_store *s, pl_error *err) { return s->locks != NULL ? pl_locks_held(s->locks, err) : PL_OK; }

/* ---- features.db ---- */

static pl_code create_features(sqlite3 *db, pl_error *err)
{
    pl_code code = pl_db_begin(db, err);

    if (code == PL_OK)
        code = pl_db_exec(db, pl_block_sql, err);
    if (code == PL_OK)
        code = pl_open_version(db, PL_FEATURES_ID, PL_FEATURES_VERSION, err);
    if (code == PL_OK)
        return pl_db_commit(db, err);
    pl_db_rollback(db);
    return code;
}

/* Opens features.db for reading. A file that was created but is still empty is read as one without blocks. */
static pl_code read_features(pl_store *s, pl_error *err)
{
    pl_identity is = { 0 };
    pl_code code = pl_open_reader(&s->features, s->features_path, &is, err);

    if (code == PL_OK && strcmp(s->features_path, s->results_path) == 0) { /* packed: pl_store_open_read has looked at it */
        s->features_version = PL_FEATURES_VERSION;
        return PL_OK;
    }
    s->features_version = is.n_tables > 0 ? (int)is.version : PL_FEATURES_VERSION;
    if (code != PL_OK || is.n_tables > 0 || is.application_id != 0)
        return code == PL_OK ? pl_open_ours(&is, s->features_path, PL_FEATURES_ID, PL_FEATURES_VERSION, err) : code;
    (void)sqlite3_close(s->features);
    code = pl_open_file(&s->features, ":memory:", WRITE | SQLITE_OPEN_FULLMUTEX, 0, err);
    return code == PL_OK ? create_features(s->features, err) : code;
}

static pl_code open_features(pl_store *s, pl_error *err)
{
    pl_identity is = { 0 };
    pl_code code;
    bool fresh;

    if (sqlite3_db_readonly(s->db, "main") == 1)
        return read_features(s, err);
    code = pl_open_file(&s->features, s->features_path, WRITE | SQLITE_OPEN_FULLMUTEX, 60000, err);
    if (code == PL_OK)
        code = pl_open_identity(s->features, &is, err);
    if (code != PL_OK)
        return code;
    fresh = is.n_tables == 0 && is.application_id == 0;
    s->features_version = fresh ? PL_FEATURES_VERSION : (int)is.version;
    if (!fresh)
        code = pl_open_ours(&is, s->features_path, PL_FEATURES_ID, PL_FEATURES_VERSION, err);
    if (code == PL_OK)
        code = pl_open_writer(s->features, fresh, &pl_features_kind, pl_is_network_fs(s->features_path), s->journal, err);
    if (s->patient)
        pl_db_patient(s->features);
    if (code == PL_OK && fresh)
        code = create_features(s->features, err);
    return code == PL_OK ? pl_db_exec(s->features, cache_sql, err) : code;
}

pl_code pl_store_features(pl_store *s, pl_error *err)
{
    pl_code code;

    if (s->features != NULL)
        return PL_OK;
    code = make_parent(s->features_path, err);
    if (code == PL_OK)
        code = pl_staged_in(s, err);
    if (code == PL_OK)
        code = open_features(s, err);
    if (code == PL_OK)
        code = pl_block_ready(s, err);
    if (code != PL_OK) {
        (void)sqlite3_close(s->features);
        s->features = NULL;
    }
    guard(s);
    return code;
}

void pl_store_close(pl_store *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < sizeof s->kept / sizeof s->kept[0]; i++)
        (void)sqlite3_finalize(s->kept[i]);
    (void)sqlite3_close_v2(s->features);
    (void)sqlite3_close_v2(s->db);
    (void)pthread_mutex_destroy(&s->get_lock);
    free((char *)s->results_path);
    free((char *)s->features_path);
    free(s);
}
