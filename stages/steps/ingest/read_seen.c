/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/read_seen.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/ingest/read_input.h"

static bool key_value(const pl_step *step, int32_t file, const char *name, char *out, size_t size)
{
    json_t *key = json_loads(step->extra_json, 0, NULL);
    const char *value = json_string_value(json_object_get(json_array_get(json_object_get(key, "inputs"), (size_t)file), name));

    (void)snprintf(out, size, "%s", value != NULL ? value : "");
    json_decref(key);
    return value != NULL;
}

bool st_seen_key(const pl_step *step, int32_t file, char out[65]) { return key_value(step, file, "sha256", out, 65); }

pl_code st_seen_changed(const pl_env *env, int32_t file, pl_error *err)
{
    const char *path = st_input_at(env->wf, file)->path;

    pl_file_forget(env->store, path);
    return pl_fail(err, PL_EINPUT,
                   "%s was changed while it was read; run again when no program writes to it: it is read again from the start",
                   path);
}

pl_code st_seen_whole(const pl_env *env, int32_t file, ch_reader *reader, int64_t *bytes, pl_error *err)
{
    char was[65], now[65];
    pl_code code = ch_reader_hash(reader, true, bytes, now, err);

    if (code != PL_OK)
        return code;
    if (!st_seen_key(env->step, file, was))
        return pl_fail(err, PL_ENOMEM, "no memory for the key of read");
    return strcmp(was, now) != 0 ? st_seen_changed(env, file, err) : PL_OK;
}

pl_code st_seen_format(const pl_env *env, int32_t file, const ch_reader *reader, pl_error *err)
{
    char was[64];

    if (!key_value(env->step, file, "format", was, sizeof was))
        return pl_fail(err, PL_ENOMEM, "no memory for the key of read");
    return strcmp(was, ch_reader_format(reader)) != 0 ? st_seen_changed(env, file, err) : PL_OK;
}

pl_code st_seen_put(pl_env *env, int64_t unit, const st_seen *seen, pl_error *err)
{
    return pl_db_execf(env->store->db, err, "INSERT OR REPLACE INTO meta VALUES('read_seen','%lld %d %lld %s')",
                       (long long)unit + 1, (int)seen->file, (long long)seen->bytes, seen->sha256);
}

/* ---- at the end ---- */

/* A file that changes after it was read makes the stored records out of date. */
pl_code st_seen_unchanged(const pl_env *env, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t i = 0; i < env->wf->inputs.n && code == PL_OK; i++) {
        char was[65], now[65];
        code = pl_file_hash(env->store, st_input_at(env->wf, i)->path, now, err);
        if (code == PL_OK && (!st_seen_key(env->step, i, was) || strcmp(was, now) != 0))
            code = st_seen_changed(env, i, err);
    }
    return code;
}

static pl_code fail_count(const pl_env *env, int32_t file, int64_t stored, int64_t there, pl_error *err)
{
    return pl_fail(err, PL_EDATA, "%s: %lld records are stored, but the file has %lld; run again with --from read",
                   st_input_at(env->wf, file)->path, (long long)stored, (long long)there);
}

/* n [inputs.n] becomes the number of records that are stored of each file. */
static pl_code count_stored(const pl_env *env, int64_t *n, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    int64_t file = 0, last = 0;
    pl_code code = pl_db_prepare(env->store->db, &st, "SELECT file_id-1, ordinal FROM record ORDER BY record_id", err);

    while (pl_db_next(st, &code, err)) {
        const int64_t next = sqlite3_column_int64(st, 0), ordinal = sqlite3_column_int64(st, 1);
        const bool known = next >= file && next < env->wf->inputs.n;
        last = next == file ? last : 0;
        if (!known)
            code = pl_fail(err, PL_EDATA, "records are not in the order of the inputs; run again with --from read");
        else if (ordinal <= last || (env->n_shards == 0 && ordinal != last + 1))
            code = fail_count(env, (int32_t)next, n[next], ordinal - 1, err);
        else
            n[next]++;
        file = next;
        last = ordinal;
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code put_counts(const pl_env *env, const int64_t *n, const st_found *found, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t i = 0; i < env->wf->inputs.n && code == PL_OK; i++) {
        if (env->n_shards == 0 && found[i].whole && found[i].records != n[i])
            return fail_count(env, i, n[i], found[i].records, err);
        code =
            pl_db_execf(env->store->db, err, "UPDATE input_file SET n_records=%lld WHERE file_id=%d", (long long)n[i], (int)i + 1);
        if (code == PL_OK && found[i].whole)
            code = pl_db_execf(env->store->db, err, "UPDATE input_file SET size_bytes=%lld WHERE file_id=%d",
                               (long long)found[i].bytes, (int)i + 1);
    }
    return code;
}

pl_code st_seen_count(const pl_env *env, const st_found *found, pl_error *err)
{
    int64_t *n = PL_NEW(env->mem, int64_t, env->wf->inputs.n + 1), in_units = 0, all = 0;
    pl_code code =
        n != NULL ? count_stored(env, n, err) : pl_fail(err, PL_ENOMEM, "no memory for %d files", (int)env->wf->inputs.n);

    if (code == PL_OK)
        code = pl_db_int(env->store->db, &in_units, err, "SELECT sum(n_ok+n_failed) FROM unit WHERE stage_id=%lld",
                         (long long)env->stage_id);
    if (code != PL_OK)
        return code;
    for (int32_t i = 0; i < env->wf->inputs.n; i++)
        all += n[i];
    if (all != in_units)
        return pl_fail(err, PL_EDATA, "%lld records are stored, but the units of read count %lld; run again with --from read",
                       (long long)all, (long long)in_units);
    return put_counts(env, n, found, err);
}

/* ---- before a stage goes on ---- */

/* The hash of the first n bytes, or of all if there are fewer. */
static pl_code hash_start(const char *path, int64_t n, char out[65], pl_error *err)
{
    char buf[1 << 16];
    pl_sha256 sha;
    ssize_t got = 1;
    int fd = pl_open_regular(path, err);

    if (fd < 0)
        return PL_EIO;
    pl_sha256_start(&sha);
    while (n > 0 && got != 0 && (got > 0 || errno == EINTR)) {
        got = read(fd, buf, n < (int64_t)sizeof buf ? (size_t)n : sizeof buf);
        pl_sha256_add(&sha, buf, got > 0 ? (size_t)got : 0);
        n -= got > 0 ? got : 0;
    }
    pl_sha256_hex(&sha, out);
    if (got < 0)
        (void)pl_fail_errno(err, path);
    (void)close(fd);
    return got < 0 ? PL_EIO : PL_OK;
}

static pl_code compare(const pl_workflow *wf, const st_seen *seen, const char **why, pl_arena *mem, pl_error *err)
{
    char now[65];
    pl_code code;

    if (seen->file < 0 || seen->file > wf->inputs.n)
        *why = "the input file of its stored units is not known";
    if (*why != NULL || seen->file == wf->inputs.n)
        return PL_OK;
    code = hash_start(st_input_at(wf, seen->file)->path, seen->bytes, now, err);
    if (code != PL_OK || strcmp(now, seen->sha256) == 0)
        return code;
    *why = pl_sprintf(mem, "%s was changed while it was read", st_input_at(wf, seen->file)->path);
    return *why ? PL_OK : pl_fail(err, PL_ENOMEM, "the plan");
}

/* One statement: units and note of the same moment, also beside a run. */
pl_code st_read_doubt(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **why, pl_arena *mem, pl_error *err)
{
    static const char sql[] = "SELECT (SELECT count(*) FROM unit JOIN stage USING(stage_id) WHERE name='read'),"
                              " (SELECT value FROM meta WHERE key='read_seen')";
    sqlite3_stmt *st = NULL;
    st_seen seen = { .file = -1 };
    long long n_units = 0, units = -1, bytes = 0;
    pl_code code = pl_db_prepare(store->db, &st, sql, err);

    (void)step;
    *why = NULL;
    if (pl_db_next(st, &code, err)) {
        const char *note = (const char *)sqlite3_column_text(st, 1);
        n_units = sqlite3_column_int64(st, 0);
        if (note == NULL || sscanf(note, "%lld %d %lld %64s", &units, &seen.file, &bytes, seen.sha256) < 3 || units != n_units)
            seen.file = -1;
    }
    (void)sqlite3_finalize(st);
    seen.bytes = bytes;
    return n_units > 0 ? compare(wf, &seen, why, mem, err) : code;
}
