/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/ids.h"
#include "pipeline/store/open.h"
#include "pipeline/store/store_parts.h"

/* storage.stage_out: features.db is on a disk of the node, and RESULTS.staged beside results.db is a copy of it.
 *
 * Which of these files belongs to results.db is told by a mark, a random number. It is in `meta` of results.db and in a table
 * `staged` of the two others. Before a run stores its first block it draws a new one: first in features.db, beside the one before,
 * then in results.db, so that a kill between the two leaves them together. A copy is of the state whose mark it has. */

enum { MARK = 40 }; /* bytes with the NUL */

typedef struct marks {
    bool there;                    /* the file exists */
    bool has_blocks;               /* of features.db  */
    char mark[MARK], before[MARK]; /* "": none        */
} marks;

/* ---- reading the marks ---- */

static pl_code mark_of_results(const pl_store *s, char out[MARK], pl_error *err)
{
    return pl_db_text(s->db, out, MARK, err, "SELECT value FROM meta WHERE key='features_mark'");
}

static pl_code marks_of_features(sqlite3 *db, marks *out, pl_error *err)
{
    int64_t has = 0;
    pl_code code = pl_db_int(db, &has, err, "SELECT count(*) FROM sqlite_master WHERE name='block'");

    *out = (marks){ .there = true };
    if (has > 0)
        code = pl_db_int(db, &has, err, "SELECT count(*) FROM (SELECT 1 FROM block LIMIT 1)");
    out->has_blocks = has > 0;
    if (code == PL_OK)
        code = pl_db_int(db, &has, err, "SELECT count(*) FROM sqlite_master WHERE name='staged'");
    if (code != PL_OK || has == 0)
        return code;
    code = pl_db_text(db, out->mark, MARK, err, "SELECT mark FROM staged");
    return code == PL_OK ? pl_db_text(db, out->before, MARK, err, "SELECT before FROM staged") : code;
}

/* A file that is not there has no marks. One that is empty, as a copy that was stopped early, counts as not there. */
static pl_code marks_of_file(const char *path, marks *out, pl_error *err)
{
    pl_identity is = { 0 };
    sqlite3 *db = NULL;
    pl_code code;

    *out = (marks){ 0 };
    if (access(path, F_OK) != 0)
        return PL_OK;
    code = pl_open_reader(&db, path, &is, err);
    if (code == PL_OK && (is.n_tables > 0 || is.application_id != 0))
        code = pl_open_ours(&is, path, PL_FEATURES_ID, PL_FEATURES_VERSION, err);
    if (code == PL_OK && is.n_tables > 0)
        code = marks_of_features(db, out, err);
    (void)sqlite3_close(db);
    return code;
}

/* ---- which file belongs to results.db ---- */

typedef struct staging {
    char copy_path[PATH_MAX];
    char mark[MARK];   /* of results.db */
    marks local, copy; /* of the file at features_path, and at copy_path */
} staging;

static pl_code name_copy(const pl_store *s, char out[PATH_MAX], pl_error *err)
{
    int n = snprintf(out, PATH_MAX, "%s" PL_STAGED, s->results_path);

    return n < PATH_MAX ? PL_OK : pl_fail(err, PL_EIO, "%s: path too long", s->results_path);
}

static bool copy_belongs(const staging *g) { return g->copy.there && strcmp(g->copy.mark, g->mark) == 0; }

/* Before the first run with stage_out: a file without a mark. */
static bool local_belongs(const staging *g)
{
    const marks *is = &g->local;

    return is->there && (strcmp(g->mark, is->mark) == 0 || (g->mark[0] != '\0' && strcmp(g->mark, is->before) == 0));
}

static pl_code look(const pl_store *s, const char *features_path, staging *g, pl_error *err)
{
    pl_code code = name_copy(s, g->copy_path, err);

    if (code == PL_OK)
        code = mark_of_results(s, g->mark, err);
    if (code == PL_OK)
        code = s->features != NULL ? marks_of_features(s->features, &g->local, err) : marks_of_file(features_path, &g->local, err);
    if (code != PL_OK)
        return code;
    code = marks_of_file(g->copy_path, &g->copy, err);
    if (code == PL_EDATA)
        pl_at(err, "the copy of storage.stage_out cannot be used; remove it, and what is missing is computed again");
    return code;
}

bool pl_store_has_features(const pl_store *s)
{
    char copy[PATH_MAX];

    return s->features != NULL || access(s->features_path, F_OK) == 0 ||
           (s->stage_out && name_copy(s, copy, NULL) == PL_OK && access(copy, F_OK) == 0);
}

void pl_staged_find(const pl_store *s, char path[PATH_MAX])
{
    staging g;

    if (name_copy(s, g.copy_path, NULL) == PL_OK && access(g.copy_path, F_OK) == 0 && look(s, path, &g, NULL) == PL_OK &&
        !local_belongs(&g) && copy_belongs(&g))
        memcpy(path, g.copy_path, sizeof g.copy_path);
}

/* ---- copies ---- */

enum { TMP = PATH_MAX + 8 };

/* The database first: without it nobody reads a log, and a log never meets another database. */
static void remove_database(const char *path)
{
    static const char *const tails[] = { "", "-wal", "-shm", "-journal" };
    char file[TMP + 8];

    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        (void)snprintf(file, sizeof file, "%s%s", path, tails[i]);
        (void)unlink(file);
    }
}

/* Whether a killed program left a log. */
static bool has_log(const char *path)
{
    char wal[TMP], journal[TMP + 8];

    (void)snprintf(wal, sizeof wal, "%s-wal", path);
    (void)snprintf(journal, sizeof journal, "%s-journal", path);
    return access(wal, F_OK) == 0 || access(journal, F_OK) == 0;
}

static void name_tmp(const char *to, char tmp[TMP]) { (void)snprintf(tmp, TMP, "%s.tmp", to); }

static pl_code check_room(sqlite3 *from, const char *to, pl_error *err)
{
    static const char sql[] = "SELECT (page_count-freelist_count)*page_size FROM pragma_page_count,pragma_freelist_count,"
                              "pragma_page_size";
    char want[32], have[32];
    double left = pl_disk_free(to);
    int64_t bytes = 0;
    pl_code code = pl_db_int(from, &bytes, err, sql);

    if (code != PL_OK || left < 0 || left >= (double)bytes)
        return code;
    return pl_fail(err, PL_EIO, "%s: a copy of %s, but only %s free; free some space and run again, nothing is lost", to,
                   pl_size_str((double)bytes, want), pl_size_str(left, have));
}

static pl_code remove_blocks(const char *path, pl_error *err)
{
    sqlite3 *db = NULL;
    pl_code code = pl_open_file(&db, path, SQLITE_OPEN_READWRITE, 0, err);

    if (code == PL_OK)
        code = pl_db_exec(db, "DELETE FROM block", err);
    (void)sqlite3_close(db);
    return code;
}

/* A copy that is complete or not there. */
static pl_code copy_db(sqlite3 *from, const char *to, bool blocks, pl_error *err)
{
    char tmp[TMP];
    pl_code code;

    name_tmp(to, tmp);
    remove_database(tmp);
    code = check_room(from, to, err);
    if (code == PL_OK)
        code = pl_db_execf(from, err, "VACUUM INTO %Q", tmp);
    if (code == PL_OK && !blocks)
        code = remove_blocks(tmp, err);
    if (code == PL_OK && has_log(to))
        remove_database(to);
    if (code == PL_OK)
        code = pl_store_rename(tmp, to, err);
    if (code != PL_OK)
        remove_database(tmp);
    return code;
}

/* ---- the start of a run ---- */

/* The copy becomes features.db. Of a copy of an earlier state only the cache of built structures is used. */
static pl_code fetch(const pl_store *s, const staging *g, pl_error *err)
{
    const bool all = copy_belongs(g);
    pl_identity is = { 0 };
    sqlite3 *db = NULL;
    pl_code code = pl_open_reader(&db, g->copy_path, &is, err);

    if (all)
        pl_log(PL_INFO, "features are fetched from %s", g->copy_path);
    else if (g->mark[0] == '\0')
        pl_log(PL_INFO, "%s is of an earlier run; of its features only the built structures are used", g->copy_path);
    else
        pl_log(PL_WARN, "%s: the features of its last units are lost; units are made again, with the structures that %s has",
               s->results_path, g->copy_path);
    if (code == PL_OK)
        code = copy_db(db, s->features_path, all, err);
    if (code != PL_OK)
        pl_at(err, "features are not fetched (storage.stage_out)");
    (void)sqlite3_close(db);
    return code;
}

pl_code pl_staged_in(pl_store *s, pl_error *err)
{
    staging g;
    pl_code code;

    if (!s->stage_out)
        return PL_OK;
    code = look(s, s->features_path, &g, err);
    if (code != PL_OK || local_belongs(&g))
        return code;
    if (g.local.has_blocks && g.local.mark[0] == '\0')
        return pl_fail(err, PL_ECONFIG,
                       "%s: features of a run without storage.stage_out; choose another storage.features, or remove the file",
                       s->features_path);
    if (g.local.has_blocks)
        pl_log(PL_INFO, "%s is of another run or of an earlier state, and is replaced", s->features_path);
    remove_database(s->features_path);
    return g.copy.there ? fetch(s, &g, err) : PL_OK;
}

pl_code pl_store_mark(pl_store *s, pl_error *err)
{
    char mark[MARK], fresh[MARK], copy[PATH_MAX];
    pl_code code = s->features != NULL ? mark_of_results(s, mark, err) : PL_OK;

    if (code == PL_OK)
        code = name_copy(s, copy, err);
    if (code != PL_OK || s->features == NULL || (!s->stage_out && mark[0] == '\0' && access(copy, F_OK) != 0))
        return code;
    pl_uuid(fresh);
    code = pl_db_execf(s->features, err,
                       "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS staged(mark TEXT, before TEXT); DELETE FROM staged;"
                       "INSERT INTO staged VALUES(%Q,%Q); COMMIT",
                       fresh, mark);
    return code == PL_OK ? pl_db_execf(s->db, err, "INSERT OR REPLACE INTO meta(key,value) VALUES('features_mark',%Q)", fresh)
                         : code;
}

/* ---- the end of a run ---- */

pl_code pl_store_stage_out(pl_store *s, pl_error *err)
{
    staging g = { 0 };
    struct stat at = { 0 };
    char size[32], tmp[TMP];
    pl_code code;

    if (!s->stage_out)
        return PL_OK;
    code = look(s, s->features_path, &g, err);
    if (code != PL_OK && code != PL_EDATA) /* EDATA: a copy that is damaged is replaced */
        return code;
    name_tmp(g.copy_path, tmp);
    remove_database(tmp);
    if (g.mark[0] == '\0' || copy_belongs(&g) || !local_belongs(&g))
        return PL_OK;
    code = pl_store_features(s, err);
    if (code == PL_OK)
        code = pl_store_held(s, err);
    if (code == PL_OK)
        code = copy_db(s->features, g.copy_path, true, err);
    if (code == PL_OK && stat(g.copy_path, &at) == 0)
        pl_log(PL_INFO, "features are copied to %s (%s)", g.copy_path, pl_size_str((double)at.st_size, size));
    return code;
}
