/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "pipeline/lock.h"
#include "stages/cmd.h"

/* Under the lock of the work directory, so that no run is writing. */
static pl_code prune(const pl_app *app, const pl_workflow *wf, int64_t *n, pl_error *err)
{
    pl_locks locks;
    pl_store *s = NULL;
    pl_code code = pl_locks_take(&locks, wf, err);

    if (code != PL_OK)
        return code;
    code = pl_store_open(&s, wf, app->schema, err);
    if (code == PL_OK)
        code = pl_store_features(s, err);
    if (code == PL_OK)
        code = pl_store_prune(s, n, err);
    pl_store_close(s);
    pl_locks_drop(&locks);
    return code;
}

int st_db_prune(const pl_app *app, const pl_args *args)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_args rest = *args; /* without the word `prune` */
    pl_error err = { 0 };
    int64_t n = 0;
    int status = pl_code_exit(PL_ENOMEM);
    pl_workflow *wf = NULL;

    if (args->n < 2) {
        pl_arena_free(mem);
        return pl_cmd_usage(args, "db prune: name the workflow whose features.db is to be pruned");
    }
    rest.arg++;
    rest.n--;
    if (mem != NULL)
        wf = pl_cmd_load(app, &rest, mem, &status);
    if (wf != NULL && prune(app, wf, &n, &err) != PL_OK)
        status = pl_cmd_fail(&err);
    else if (wf != NULL)
        status = (printf("%lld blocks removed from %s\n", (long long)n, wf->storage.features), 0);
    pl_arena_free(mem);
    return status;
}
