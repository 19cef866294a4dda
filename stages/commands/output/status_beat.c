/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/output/status_beat.h"
#include "stages/commands/output/cmd_json.h"

#include <glob.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/cmd.h"
#include "pipeline/run/heartbeat.h"
#include "pipeline/store/store.h"

/* Without a heartbeat for longer the run is taken for dead: three missed beats, plus what clocks and file-system caches may add. */
enum { PATIENCE_S = 60 };

static const char *text_of(const json_t *beat, const char *name)
{
    const char *s = json_string_value(json_object_get(beat, name));
    return s != NULL ? s : "";
}

static double silence(const json_t *beat)
{
    struct tm tm = { 0 };

    return strptime(text_of(beat, "at_utc"), "%Y-%m-%dT%H:%M:%SZ", &tm) != NULL ? difftime(time(NULL), timegm(&tm)) : 1e9;
}

/* "running", "done", ... as in the heartbeat, or "lost". */
static const char *state_of(const json_t *beat)
{
    double patience = 3 * json_number_value(json_object_get(beat, "every_s")) + PATIENCE_S;
    const char *state = text_of(beat, "state");

    return strcmp(state, "running") == 0 && silence(beat) > patience ? "lost" : state;
}

static bool is_elsewhere(const json_t *beat)
{
    char host[128] = "";

    (void)gethostname(host, sizeof host - 1);
    return strcmp(text_of(beat, "host"), host) != 0;
}

/* NULL: the file is not there, or it is damaged and a message says so. */
static json_t *read_beat(const char *path, bool *damaged)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    pl_bytes file = { 0 };
    json_t *beat = NULL;

    *damaged = false;
    if (mem != NULL && access(path, F_OK) == 0 && pl_file_read(&file, path, mem, NULL) == PL_OK) {
        beat = pl_heartbeat_holds(file) ? json_loadb(file.data, file.len, 0, NULL) : NULL;
        *damaged = beat == NULL;
    }
    if (*damaged)
        (void)fprintf(stderr, "%s: damaged, not used\n", path);
    (void)json_object_del(beat, "crc32");
    pl_arena_free(mem);
    return beat;
}

/* ---- one run ---- */

static pl_code print_metrics(const json_t *status, const char *results, pl_error *err)
{
    pl_text t = { 0 };
    bool good;

    st_prometheus_add(&t, status, results);
    good = status != NULL && pl_text_ok(&t);
    if (good)
        pl_cmd_print("%s", pl_text_str(&t));
    pl_text_free(&t);
    return good ? PL_OK : pl_fail(err, PL_ENOMEM, "metrics");
}

static pl_code print_json(json_t *beat, const char *results, st_status_form form, pl_error *err)
{
    (void)json_object_set_new(beat, "results", json_string(results));
    (void)json_object_set_new(beat, "state", json_string(state_of(beat)));
    return form == ST_STATUS_JSON ? st_json_print(beat, 0, err) : print_metrics(beat, results, err);
}

static void print_text(const json_t *beat, const char *results)
{
    const json_t *stage;
    const char *job = text_of(beat, "job");
    char a[32], b[32];
    size_t i;

    pl_cmd_print("%s\nrun %lld (%s): %s, on %s%s%s since %s%s%s; by its heartbeat, %s ago\n", results,
                 (long long)json_integer_value(json_object_get(beat, "run_id")), text_of(beat, "command"), state_of(beat),
                 text_of(beat, "host"), job[0] ? ", " : "", job, text_of(beat, "started_utc"),
                 text_of(beat, "reason")[0] ? ": " : "", text_of(beat, "reason"), pl_duration_str(silence(beat), a));
    if (strcmp(state_of(beat), "lost") == 0)
        pl_cmd_print(
            "  no heartbeat: the process or its host is dead; run the same command again to continue, when the lock is free\n");
    json_array_foreach(json_object_get(beat, "stages"), i, stage) {
        int64_t total = json_integer_value(json_object_get(stage, "total"));
        pl_cmd_print("  %-9s %-8s %14s %s%s%s  %s\n", text_of(stage, "stage"), text_of(stage, "state"),
                     pl_count_str(json_integer_value(json_object_get(stage, "done")), a), text_of(stage, "item"),
                     total >= 0 ? " of " : "", total >= 0 ? pl_count_str(total, b) : "", text_of(stage, "note"));
    }
}

/* ---- the time left ---- */

typedef struct left {
    const char *stage, *item;
    int64_t done, total;
    double seconds;
} left;

/* By what this run has done of the stage since it began. */
static pl_code left_of(left *out, pl_store *s, int64_t run_id, const json_t *stage, pl_error *err)
{
    int64_t n = 0, ms = 0;
    pl_code code =
        pl_db_int(s->db, &n, err,
                  "SELECT coalesce(sum(n_ok+n_failed),0) FROM unit JOIN stage USING(stage_id) WHERE name=%Q AND unit.run_id=%lld",
                  text_of(stage, "stage"), (long long)run_id);

    *out = (left){ .stage = text_of(stage, "stage"), .item = text_of(stage, "item") };
    out->done = json_integer_value(json_object_get(stage, "done"));
    out->total = json_integer_value(json_object_get(stage, "total"));
    if (code == PL_OK)
        code = pl_db_int(s->db, &ms, err, "SELECT 1000*86400*(julianday('now')-julianday(started_utc)) FROM run WHERE run_id=%lld",
                         (long long)run_id);
    if (n > 0 && out->total > out->done)
        out->seconds = (double)(out->total - out->done) * (double)ms / 1000 / (double)n;
    return code;
}

pl_code st_beat_left(pl_store *s, int64_t run_id, pl_error *err)
{
    const char *slash = strrchr(s->results_path, '/');
    char path[PATH_MAX + 20], a[32], b[32], c[32];
    left worst = { 0 };
    const json_t *stage;
    json_t *beat;
    size_t i;
    bool damaged;
    pl_code code = PL_OK;

    (void)snprintf(path, sizeof path, "%.*sheartbeat.json", slash != NULL ? (int)(slash - s->results_path) + 1 : 0,
                   s->results_path);
    beat = read_beat(path, &damaged);
    if (json_integer_value(json_object_get(beat, "run_id")) == run_id)
        json_array_foreach(json_object_get(beat, "stages"), i, stage) {
            left one = { 0 };
            if (code == PL_OK)
                code = left_of(&one, s, run_id, stage, err);
            if (one.seconds > worst.seconds)
                worst = one;
        }
    if (code == PL_OK && worst.seconds > 0)
        pl_cmd_print("  about %s left: %s has done %s of %s %s, %d %%\n", pl_duration_str(worst.seconds, a), worst.stage,
                     pl_count_str(worst.done, b), pl_count_str(worst.total, c), worst.item,
                     (int)(100.0 * (double)worst.done / (double)worst.total));
    json_decref(beat);
    return code;
}

/* ---- many shards ---- */

typedef struct shard_counts {
    int running, done, stopped, failed, lost, damaged;
    int64_t items; /* of the stage `prepare`: it is the slow one */
} shard_counts;

static void count_shard(shard_counts *c, const json_t *beat)
{
    const char *state = state_of(beat);
    const json_t *stage;
    size_t i;

    c->running += strcmp(state, "running") == 0;
    c->done += strcmp(state, "done") == 0;
    c->stopped += strcmp(state, "stopped") == 0;
    c->failed += strcmp(state, "failed") == 0;
    c->lost += strcmp(state, "lost") == 0;
    json_array_foreach(json_object_get(beat, "stages"), i, stage)
        if (strcmp(text_of(stage, "stage"), "prepare") == 0)
            c->items += json_integer_value(json_object_get(stage, "done"));
}

static pl_code print_shards(const shard_counts *c, const char *results, pl_error *err)
{
    json_t *all = json_pack("{s:{s:i, s:i, s:i, s:i, s:i, s:i}}", "shards", "running", c->running, "done", c->done, "stopped",
                            c->stopped, "failed", c->failed, "lost", c->lost, "damaged", c->damaged);
    pl_code code = print_metrics(all, results, err);

    json_decref(all);
    return code;
}

static pl_code show_shards(bool *shown, const char *dir, const char *results, st_status_form form, bool *running, pl_error *err)
{
    char pattern[PATH_MAX + 40], n[32];
    shard_counts c = { 0 };
    glob_t found = { 0 };

    (void)snprintf(pattern, sizeof pattern, "%s/shards/*/heartbeat.json", dir);
    *shown = glob(pattern, 0, NULL, &found) == 0;
    if (!*shown)
        return PL_OK;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        bool damaged;
        json_t *beat = read_beat(found.gl_pathv[i], &damaged);
        c.damaged += damaged;
        if (beat != NULL)
            count_shard(&c, beat);
        json_decref(beat);
    }
    globfree(&found);
    *running = c.running > 0;
    if (form == ST_STATUS_PROMETHEUS)
        return print_shards(&c, results, err);
    if (form == ST_STATUS_JSON)
        (void)printf("{\"shards\":{\"running\":%d,\"done\":%d,\"stopped\":%d,\"failed\":%d,\"lost\":%d,\"damaged\":%d}}\n",
                     c.running, c.done, c.stopped, c.failed, c.lost, c.damaged);
    else
        pl_cmd_print(
            "shards: %d running, %d done, %d stopped, %d failed, %d lost, %d with a damaged heartbeat; %s records prepared "
            "by their latest runs\n`molsieve merge FILE --missing` prints the shards that are not finished\n",
            c.running, c.done, c.stopped, c.failed, c.lost, c.damaged, pl_count_str(c.items, n));
    return PL_OK;
}

pl_code st_beat_show(bool *shown, const char *results, st_status_form form, bool *running, pl_error *err)
{
    const char *slash = strrchr(results, '/');
    char dir[PATH_MAX], path[PATH_MAX + 20];
    json_t *beat;
    bool damaged;
    pl_code code = PL_OK;

    *shown = false;
    (void)snprintf(dir, sizeof dir, "%.*s", slash != NULL ? (int)(slash - results) : 1, slash != NULL ? results : ".");
    if (access(results, F_OK) != 0)
        code = show_shards(shown, dir, results, form, running, err);
    if (code != PL_OK || *shown)
        return code;
    (void)snprintf(path, sizeof path, "%s/heartbeat.json", dir);
    beat = read_beat(path, &damaged);
    *shown = beat != NULL && strcmp(text_of(beat, "state"), "running") == 0 && (is_elsewhere(beat) || pl_is_network_fs(results));
    if (*shown) {
        *running = strcmp(state_of(beat), "running") == 0;
        if (form != ST_STATUS_TEXT)
            code = print_json(beat, results, form, err);
        else
            print_text(beat, results);
    }
    json_decref(beat);
    return code;
}
