/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/workflow/shard.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"

/* Environment variables of a job array: the number of this task, and those that describe all task numbers. */
typedef struct array_names {
    const char *task, *first, *last, *step, *count;
    int64_t base; /* number of the first task if `first` is not set */
} array_names;

static const array_names arrays[] = {
    { "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT", 0 },
    { "PBS_ARRAY_INDEX", NULL, NULL, NULL, NULL, 0 },
    { "LSB_JOBINDEX", NULL, "LSB_JOBINDEX_END", "LSB_JOBINDEX_STEP", NULL, 1 },
    { "SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE", NULL, 1 },
};

static int64_t number(const char *name, int64_t otherwise)
{
    const char *text = name != NULL ? getenv(name) : NULL;
    int64_t n;

    return text != NULL && pl_parse_int(text, &n) ? n : otherwise;
}

/* Outside of an array LSF sets the number 0 and Grid Engine "undefined"; then this task is in no array. */
static const array_names *find_array(int64_t *task)
{
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *task = number(arrays[i].task, -1);
        if (*task >= arrays[i].base)
            return &arrays[i];
    }
    return NULL;
}

static pl_code set(pl_shard *out, int64_t k, int64_t n, const char *text, pl_error *err)
{
    if (n < 1 || n > PL_SHARDS_MAX || k < 0 || k >= n)
        return pl_fail(err, PL_ECONFIG, "%s: %lld/%lld is not a shard; write K/N with K from 0 to N-1 and N from 1 to %d", text,
                       (long long)k, (long long)n, PL_SHARDS_MAX);
    *out = (pl_shard){ (int32_t)k, (int32_t)n };
    return PL_OK;
}

/* Each task of the array is one shard; the task numbers must be evenly spaced. */
static pl_code from_array(pl_shard *out, const array_names *a, int64_t task, const char *text, pl_error *err)
{
    int64_t first = number(a->first, a->base), step = number(a->step, 1), last = number(a->last, -1);
    int64_t count = number(a->count, -1), even = last >= first && step > 0 ? (last - first) / step + 1 : count;

    count = count > 0 ? count : even;
    if (count <= 0 || step <= 0)
        return pl_fail(err, PL_ECONFIG, "%s: %s is set but not the number of tasks; write auto/N", text, a->task);
    if (count != even)
        return pl_fail(err, PL_ECONFIG,
                       "%s: the job array has %lld tasks, but its numbers are for %lld; write auto/N: the "
                       "number of a task is then its shard",
                       text, (long long)count, (long long)even);
    return set(out, (task - first) / step, count, text, err);
}

static pl_code parse_auto(pl_shard *out, const char *text, pl_error *err)
{
    int64_t task, n;
    const array_names *a = find_array(&task);

    if (a == NULL)
        return pl_fail(err, PL_ECONFIG,
                       "%s: this is not a task of a job array (none of SLURM_ARRAY_TASK_ID, "
                       "PBS_ARRAY_INDEX, LSB_JOBINDEX and SGE_TASK_ID is the number of a task); write K/N",
                       text);
    if (text[4] == '\0')
        return from_array(out, a, task, text, err);
    if (text[4] != '/' || !pl_parse_int(text + 5, &n))
        return pl_fail(err, PL_ECONFIG, "%s: write K/N, auto or auto/N", text);
    return set(out, task - a->base, n, text, err);
}

pl_code pl_shard_parse(pl_shard *out, const char *text, pl_error *err)
{
    const char *slash = strchr(text, '/');
    char head[24];
    int64_t k, n;

    if (strncmp(text, "auto", 4) == 0)
        return parse_auto(out, text, err);
    if (slash == NULL || slash - text >= (int)sizeof head)
        return pl_fail(err, PL_ECONFIG, "%s: write K/N, auto or auto/N", text);
    (void)snprintf(head, sizeof head, "%.*s", (int)(slash - text), text);
    if (!pl_parse_int(head, &k) || !pl_parse_int(slash + 1, &n))
        return pl_fail(err, PL_ECONFIG, "%s: write K/N, auto or auto/N", text);
    return set(out, k, n, text, err);
}

const char *pl_shard_dir(const pl_workflow *wf, pl_shard shard, pl_arena *mem)
{
    return pl_sprintf(mem, "%s/shards/%05d-of-%05d", wf->workdir, (int)shard.k, (int)shard.n);
}

/* /fast/screen.db -> /fast/screen-00003-of-00008.db */
static const char *features_outside(const char *path, pl_shard shard, pl_arena *mem)
{
    size_t n = strlen(path);
    bool named = n > 3 && strcmp(path + n - 3, ".db") == 0;

    return pl_sprintf(mem, "%.*s-%05d-of-%05d%s", (int)(named ? n - 3 : n), path, (int)shard.k, (int)shard.n, named ? ".db" : "");
}

pl_code pl_workflow_shard(pl_workflow *wf, pl_shard shard, pl_arena *mem, pl_error *err)
{
    const char *dir = pl_shard_dir(wf, shard, mem);

    if (dir == NULL)
        return pl_fail(err, PL_ENOMEM, "a path");
    if (pl_path_is_in(wf->storage.features, wf->workdir))
        wf->storage.features = pl_sprintf(mem, "%s%s", dir, wf->storage.features + strlen(wf->workdir));
    else
        wf->storage.features = features_outside(wf->storage.features, shard, mem);
    wf->storage.results = pl_sprintf(mem, "%s/results.db", dir);
    wf->workdir = dir;
    return wf->storage.results != NULL && wf->storage.features != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a path");
}

bool pl_step_in_shard(const pl_workflow *wf, int step)
{
    const pl_step *s = &wf->step[step];
    bool in = s->stage->scope == PL_PER_UNIT;

    for (int i = 0; i < s->n_needs && in; i++)
        in = pl_step_in_shard(wf, s->needs[i]);
    return in;
}
