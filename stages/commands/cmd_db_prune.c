/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "pipeline/lock/lock.h"
#include "stages/commands/commands.h"
#include "stages/database/results.h"

/* All results whose blocks are kept: the workflow's own and those named after it. */
typedef struct pruning {
    const pl_app *app;
    const pl_workflow *wf;
    const char **where; /* [n] */
    pl_store **other;   /* [n] */
    int n;
    bool alone;
    pl_arena *mem;
} pruning;

/* Protects the blocks of other workflows in that file: computing them again may take hours. */
static pl_code check_shared(const pruning *p, pl_error *err)
{
    if (p->n > 0 || p->alone || pl_path_is_in(p->wf->storage.features, p->wf->workdir))
        return PL_OK;
    return pl_fail(err, PL_ECONFIG,
                   "%s is outside the work directory: other workflows may use it, and prune would remove their blocks; "
                   "name their work directories or databases after the workflow, or give --alone",
                   p->wf->storage.features);
}

static pl_code open_others(pruning *p, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; i < p->n && code == PL_OK; i++) {
        const char *path;
        code = st_results_find(p->app, p->where[i], &path, p->mem, err);
        if (code == PL_OK)
            code = pl_store_open_read(&p->other[i], path, p->app->schema, err);
    }
    return code;
}

/* Under the lock of the work directory, so that no run is writing. */
static pl_code prune(pruning *p, int64_t *n, pl_error *err)
{
    pl_locks locks;
    pl_store *s = NULL;
    pl_code code = check_shared(p, err);

    if (code == PL_OK)
        code = pl_locks_take(&locks, p->wf, err);
    if (code != PL_OK)
        return code;
    code = open_others(p, err);
    if (code == PL_OK)
        code = pl_store_open(&s, p->wf, p->app->schema, err);
    if (code == PL_OK) {
        pl_store_guard(s, &locks);
        code = pl_store_features(s, err);
    }
    if (code == PL_OK)
        code = pl_store_prune(s, p->other, p->n, n, err);
    pl_store_close(s);
    for (int i = 0; i < p->n; i++)
        pl_store_close(p->other[i]);
    pl_locks_drop(&locks);
    return code;
}

/* Sorts the words after `prune`: the workflow and its overrides go to `rest`, the others to p. */
static bool sort_words(pruning *p, const pl_args *args, pl_args *rest)
{
    char **words = PL_NEW(p->mem, char *, args->n);

    p->where = PL_NEW(p->mem, const char *, args->n);
    p->other = PL_NEW(p->mem, pl_store *, args->n);
    if (words == NULL || p->where == NULL || p->other == NULL)
        return false;
    rest->n = 0;
    rest->arg = words;
    for (int i = 1; i < args->n; i++)
        if (i == 1 || strchr(args->arg[i], '=') != NULL)
            words[rest->n++] = args->arg[i];
        else
            p->where[p->n++] = args->arg[i];
    return true;
}

int st_db_prune(const pl_app *app, const pl_args *args)
{
    pruning p = { .app = app, .alone = pl_arg(args, "--alone") != NULL, .mem = pl_arena_new(1 << 16) };
    pl_args rest = *args;
    pl_error err = { 0 };
    int64_t n = 0;
    int status;

    if (args->n < 2) {
        pl_arena_free(p.mem);
        return pl_cmd_usage(args, "db prune: name the workflow whose features.db is to be pruned");
    }
    if (p.mem != NULL && sort_words(&p, args, &rest))
        p.wf = pl_cmd_load(app, &rest, p.mem, &status);
    else
        status = pl_cmd_no_memory();
    if (p.wf != NULL && prune(&p, &n, &err) != PL_OK)
        status = pl_cmd_fail(&err);
    else if (p.wf != NULL)
        status = (printf("%lld blocks removed from %s\n", (long long)n, p.wf->storage.features), 0);
    pl_arena_free(p.mem);
    return status;
}
