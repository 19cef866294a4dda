/* SPDX-License-Identifier: Apache-2.0 */
/* Files of shards that are given to `merge`: everything that is wrong with them is found before any work. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/run/runner.h"
#include "stages/database/settings_differ.h"
#include "stages/merge/merge.h"
#include "stages/merge/shard_file.h"

static const char again[] = "run the shard again with --out";

typedef struct given {
    st_shards *out;
    pl_workflow *wf;   /* NULL until a file has given one */
    const char *to;    /* of the result; without a workflow file */
    const char *first; /* whose number of shards and, without a workflow file, whose settings all must have */
    const pl_stage *const *known;
    const pl_schema *schema;
    pl_arena *mem;
} given;

static void add_problem(given *g, pl_code code, const char *path, const char *what, const char *advice)
{
    pl_text_addf(&g->out->problems, "%s: %s%s%s\n", path, what, advice[0] != '\0' ? "; " : "", advice);
    if (g->out->worst != PL_EDATA)
        g->out->worst = code;
}

/* Never NULL, which would say that nothing is wrong. */
static const char *said(const char *text) { return text != NULL ? text : "no memory to look at it"; }

/* ---- one file ---- */

/* Reads all of it: pages, rows and blocks have checksums. */
static const char *find_damage(pl_store *s, pl_arena *mem)
{
    pl_text report = { 0 };
    pl_error err = { 0 };
    bool good = false;
    pl_code code = pl_store_features(s, &err);
    const char *bad, *why = NULL;

    if (code == PL_OK)
        code = pl_store_check(s, &good, &report, &err);
    bad = strstr(pl_text_str(&report), "BAD  ");
    if (code != PL_OK)
        why = said(pl_strdup(mem, err.text));
    else if (!good)
        why = bad != NULL ? said(pl_sprintf(mem, "damaged: %.*s", (int)strcspn(bad + 5, "\n"), bad + 5)) : "damaged";
    pl_text_free(&report);
    return why;
}

/* The workflow that the last run of the shard stored; its keys are those of the shard. */
static pl_workflow *stored_workflow(given *g, pl_store *s, const char *path)
{
    pl_workflow *wf = st_last_workflow(s, path, g->known, g->mem);

    for (int i = 0; wf != NULL && i < wf->n_steps; i++) {
        pl_stage_row at;
        if (pl_stage_row_get(s, wf->step[i].stage->name, &at, g->mem, NULL) == PL_OK && at.stage_id != 0)
            (void)snprintf(wf->step[i].key, sizeof wf->step[i].key, "%s", at.key);
    }
    return wf;
}

/* The result is written beside nothing: where `to` says, without a work directory. */
static void settle(given *g, pl_workflow *wf, const char *path)
{
    wf->workdir = "";
    wf->storage.results = g->to;
    wf->storage.features = pl_sprintf(g->mem, "%s.features.db", g->to);
    g->wf = wf->storage.features != NULL ? wf : NULL;
    g->first = path;
}

/* Whether the blocks that later stages read are inside. */
static const char *find_lacking_blocks(given *g, pl_store *s)
{
    pl_packed want[ST_MERGE_KINDS];
    int n = g->out->alone ? 0 : st_merge_read_blocks(want, g->wf, s, g->mem);

    for (int i = 0; i < n; i++) {
        int64_t has = 0;
        if (pl_block_count(s, want[i].kind, want[i].key, &has, NULL) != PL_OK || has < want[i].n)
            return said(pl_sprintf(g->mem, "lacks %s blocks, which a later stage reads", want[i].kind));
    }
    return NULL;
}

static void put_shard(given *g, pl_shard shard, const char *text, const char *path)
{
    const char *const *there = g->out->path;

    if (shard.n != g->out->n)
        add_problem(g, PL_ECONFIG, path, said(pl_sprintf(g->mem, "shard %s, but %s is one of %d", text, g->first, (int)g->out->n)),
                    "give the files of one number of shards");
    else if (there[shard.k] != NULL)
        add_problem(g, PL_ECONFIG, path, said(pl_sprintf(g->mem, "shard %s, as is %s", text, there[shard.k])),
                    "give each shard once");
    else
        g->out->path[shard.k] = path;
}

/* The first file says how many shards there are. */
static bool count(given *g, pl_shard shard, const char *path)
{
    if (g->out->n > 0)
        return true;
    g->out->n = shard.n;
    g->first = path;
    g->out->path = PL_NEW(g->mem, const char *, shard.n);
    g->out->why = PL_NEW(g->mem, const char *, shard.n);
    if (g->out->path == NULL || g->out->why == NULL)
        g->out->n = 0;
    return g->out->n > 0;
}

static void look_inside(given *g, pl_store *s, const char *text, pl_shard shard, const char *path)
{
    const char *wrong = find_damage(s, g->mem);

    if (!count(g, shard, path)) {
        add_problem(g, PL_EDATA, path, "no memory", "");
        return;
    }
    put_shard(g, shard, text, path);
    if (wrong != NULL) {
        add_problem(g, PL_EDATA, path, wrong, again);
        return;
    }
    if (g->wf == NULL) {
        pl_workflow *wf = stored_workflow(g, s, path);
        if (wf == NULL) {
            add_problem(g, PL_EDATA, path, "the settings that it stores cannot be read", "give the workflow in front of the files");
            return;
        }
        settle(g, wf, path);
    }
    if (g->wf == NULL) {
        add_problem(g, PL_EDATA, path, "no memory", "");
        return;
    }
    wrong = st_merge_lacks(s, g->wf, g->mem);
    if (wrong != NULL)
        add_problem(g, PL_ECONFIG, path,
                    said(pl_sprintf(g->mem, "%s (compared with %s)", wrong, g->out->alone ? g->first : g->wf->path)), again);
    else if ((wrong = find_lacking_blocks(g, s)) != NULL)
        add_problem(g, PL_ECONFIG, path, wrong, again);
}

static void look(given *g, const char *path)
{
    pl_store *s = NULL;
    pl_error err = { 0 };
    const char *text = "";
    pl_shard shard;
    bool older = false;
    pl_code code;

    if (access(path, R_OK) != 0) {
        add_problem(g, PL_ECONFIG, path, strerror(errno), "make it with `molsieve run FILE --shard K/N --out` and its name");
        return;
    }
    code = pl_store_open_read(&s, path, g->schema, &err);
    if (code == PL_OK)
        code = pl_store_shard(s, &text, g->mem, &err);
    if (code == PL_OK)
        code = st_merge_is_older(&older, s, &err);
    if (code != PL_OK) /* it names the file */
        add_problem(g, PL_EDATA, "not usable", err.text, again);
    else if (!st_shard_read(&shard, text))
        add_problem(g, PL_ECONFIG, path, "not the file of a finished shard", "make it with `molsieve run FILE --shard K/N --out`");
    else if (older)
        add_problem(g, PL_EDATA, path, "made by an older molsieve", again);
    else
        look_inside(g, s, text, shard, path);
    pl_store_close(s);
}

/* ---- all of them ---- */

static void find_missing(given *g)
{
    st_shards *out = g->out;

    for (int32_t k = 0; k < out->n; k++)
        if (out->path[k] == NULL) {
            out->why[k] = "its file is not given";
            if (out->n_missing++ < 10)
                pl_text_addf(&out->problems,
                             "shard %d of %d: its file is missing; give it too, or make it with `--shard %d/%d --out`\n", (int)k,
                             (int)out->n, (int)k, (int)out->n);
        }
    if (out->n_missing > 10)
        pl_text_addf(&out->problems, "and %d more shards are missing\n", out->n_missing - 10);
    if (out->n_missing > 0 && out->worst == PL_OK)
        out->worst = PL_ECONFIG;
}

/* The inputs were hashed by the shards; the first file that can be read says so. */
static pl_code plan_keys(given *g, const st_shard_list *files, pl_error *err)
{
    pl_store *some = NULL;
    pl_code code;

    for (int i = 0; i < files->n && some == NULL; i++)
        if (pl_store_open_read(&some, files->file[i], g->schema, NULL) != PL_OK)
            some = NULL;
    code = pl_plan_keys(g->wf, some, g->mem, err);
    pl_store_close(some);
    return code;
}

pl_code st_shards_given(st_shards *out, pl_workflow **wf, const st_shard_list *files, const pl_stage *const *known,
                        const pl_schema *schema, pl_arena *mem, pl_error *err)
{
    given g = { .out = out, .wf = *wf, .to = files->to, .known = known, .schema = schema, .mem = mem };
    pl_code code;

    *out = (st_shards){ .files = true, .alone = *wf == NULL };
    code = *wf != NULL ? plan_keys(&g, files, err) : PL_OK;
    for (int i = 0; i < files->n && code == PL_OK; i++)
        look(&g, files->file[i]);
    if (code == PL_OK)
        find_missing(&g);
    *wf = g.wf;
    return !pl_text_ok(&out->problems) ? pl_fail(err, PL_ENOMEM, "the shards") : code;
}
