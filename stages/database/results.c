/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/database/results.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stages/database/settings_differ.h"

/* The newest matching file, or NULL. */
static const char *newest(const char *pattern, pl_arena *mem)
{
    glob_t found = { 0 };
    const char *best = NULL;
    struct timespec when = { 0, 0 };

    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            struct stat st;
            if (pl_ends_with(found.gl_pathv[i], ".previous.db") || stat(found.gl_pathv[i], &st) != 0)
                continue;
            if (best != NULL &&
                (st.st_mtim.tv_sec < when.tv_sec || (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec <= when.tv_nsec)))
                continue;
            best = found.gl_pathv[i];
            when = st.st_mtim;
        }
    if (best != NULL)
        best = pl_strdup(mem, best);
    globfree(&found);
    return best;
}

static pl_code find_below(const char *dir, const char **path, pl_arena *mem, pl_error *err)
{
    const char *own = pl_sprintf(mem, "%s/results.db", dir), *shards = pl_sprintf(mem, "%s/shards", dir);
    const char *runs = pl_sprintf(mem, "%s/runs/*/results.db", dir), *parts = pl_sprintf(mem, "%s/runs/*/shards", dir);

    if (own == NULL || shards == NULL || runs == NULL || parts == NULL)
        return pl_fail(err, PL_ENOMEM, "out of memory");
    *path = access(own, F_OK) == 0 ? own : newest(runs, mem);
    if (*path == NULL && access(shards, F_OK) == 0)
        *path = own; /* not merged yet */
    if (*path == NULL && (parts = newest(parts, mem)) != NULL)
        *path = pl_sprintf(mem, "%.*sresults.db", (int)(strlen(parts) - strlen("shards")), parts);
    if (*path != NULL)
        return PL_OK;
    return pl_fail(err, PL_EIO,
                   "%s: no results.db and no runs/*/results.db here; name a database, a work directory or a "
                   "workflow",
                   strcmp(dir, ".") == 0 ? "current directory" : dir);
}

/* Results that are in shards but not in results.db. */
static bool only_shards(const char *results)
{
    const char *slash = strrchr(results, '/');
    char shards[4200];

    (void)snprintf(shards, sizeof shards, "%.*sshards", slash != NULL ? (int)(slash - results) + 1 : 0, results);
    return access(results, F_OK) != 0 && access(shards, F_OK) == 0;
}

/* The first problem, and where all of them are told. */
static pl_code workflow_fail(const char *file, const pl_problems *problems, pl_error *err)
{
    const pl_problem *first = problems->list;
    char place[32] = "";

    if (first->line > 0)
        (void)snprintf(place, sizeof place, ":%d:%d", first->line, first->column);
    return pl_fail(err, PL_ECONFIG, "%s%s: %s; see `molsieve check %s`, or name the work directory", first->origin, place,
                   first->text, file);
}

static pl_code find_of_workflow(const pl_app *app, const char *file, const char **path, pl_arena *mem, pl_error *err)
{
    pl_problems problems = { .mem = mem };
    pl_workflow *wf = pl_workflow_load(file, NULL, 0, app->stages, &problems, mem);

    if (wf == NULL && pl_problems_code(&problems) == PL_ENOMEM)
        return pl_fail(err, PL_ENOMEM, "%s: out of memory", file);
    if (wf == NULL)
        return workflow_fail(file, &problems, err);
    *path = wf->storage.results;
    return PL_OK;
}

pl_code st_results_find(const pl_app *app, const char *where, const char **path, pl_arena *mem, pl_error *err)
{
    struct stat st;

    if (where == NULL)
        return find_below(".", path, mem, err);
    if (stat(where, &st) == 0 && S_ISDIR(st.st_mode))
        return find_below(where, path, mem, err);
    if (pl_ends_with(where, ".yaml") || pl_ends_with(where, ".yml"))
        return find_of_workflow(app, where, path, mem, err);
    *path = where;
    return PL_OK;
}

/* Results may be of other settings than a workflow has now: it was edited, or the run had overrides. */
static void note_settings(const pl_app *app, const char *where, const st_ask *ask)
{
    pl_problems problems = { .mem = ask->mem };
    const bool file = where != NULL && (pl_ends_with(where, ".yaml") || pl_ends_with(where, ".yml"));
    const pl_workflow *wf = file ? pl_workflow_load(where, NULL, 0, app->stages, &problems, ask->mem) : NULL;
    const char *other = wf != NULL ? st_settings_differ(wf, ask->store, app->stages, ask->mem) : NULL;

    if (other != NULL)
        pl_cmd_say("note: the last run had other settings than %s has now: %s; `molsieve plan %s` says what a run would do", where,
                   other, where);
}

int st_results_ask(const pl_app *app, const pl_args *args, const char *where, st_answer *answer, void *ctx)
{
    st_ask ask = { .args = args, .ctx = ctx, .mem = pl_arena_new(1 << 16) };
    const char *path = NULL;
    pl_error err = { 0 };
    pl_code code = ask.mem != NULL ? st_results_find(app, where, &path, ask.mem, &err) : pl_fail(&err, PL_ENOMEM, "out of memory");

    if (code == PL_OK && only_shards(path))
        code = pl_fail(&err, PL_EIO, "%s does not exist yet, only shards do; run `molsieve merge WORKFLOW`", path);
    if (code == PL_OK)
        code = pl_store_open_read(&ask.store, path, app->schema, &err);
    if (code == PL_OK)
        note_settings(app, where, &ask);
    if (code == PL_OK)
        code = answer(&ask, &err);
    pl_store_close(ask.store);
    pl_arena_free(ask.mem);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}
