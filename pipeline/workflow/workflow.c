/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/workflow/workflow.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/base/text.h"
#include "pipeline/workflow/tree.h"
#include "pipeline/workflow/workflow_parts.h"

#define AT(member) offsetof(pl_input, member)
static const pl_field input_fields[] = {
    { PL_PATH, "path", AT(path), .help = "file, or pattern such as data/*.sdf.gz", .flags = PL_REQUIRED | PL_EXISTS },
    { PL_TEXT, "format", AT(format), .text = "auto",
      .help = "smi, sdf, mol2, xyz, pdb, csv or any Open Babel format; auto: by file name" },
    { PL_TEXT, "title_from", AT(title_from), .help = "SDF data field that holds the title" },
    { PL_TEXT, "columns.smiles", AT(smiles_column), .help = "CSV: name or number (from 1) of the SMILES column" },
    { PL_TEXT, "columns.title", AT(title_column), .help = "CSV: name or number (from 1) of the title column" },
    { 0 },
};
#undef AT

#define AT(member) offsetof(pl_model_ref, member)
static const pl_field model_fields[] = {
    { PL_TEXT, "name", AT(name), .help = "name of the model: its key in the map" },
    { PL_PATH, "path", AT(path), .help = "model file (.safetensors)", .flags = PL_REQUIRED | PL_EXISTS },
    { PL_TEXT, "sha256", AT(sha256), .help = "expected SHA-256 of the file; any other file is refused" },
    { 0 },
};
#undef AT

#define AT(member) offsetof(pl_workflow, member)
const pl_field pl_workflow_fields[] = {
    { PL_INT, "format", AT(format), .dflt = 1, .min = 1, .max = 1, .flags = PL_REQUIRED, .help = "version of this file's format" },
    { PL_TEXT, "name", AT(name), .help = "name of the run; without it, the name of the file" },
    { PL_INT, "seed", AT(seed), .dflt = 1, .max = 9007199254740991.0, .help = "seed of all random numbers" },
    { PL_PATH, "workdir", AT(workdir), .help = "directory for everything that the run writes; default runs/<name>" },
    { PL_LIST, "inputs", AT(inputs), .help = "molecule files", .sub = input_fields, .sub_size = sizeof(pl_input) },
    { PL_LIST, "models", AT(models), .help = "model files by name", .flags = PL_KEYED, .sub = model_fields,
      .sub_size = sizeof(pl_model_ref) },
    { PL_REAL, "limits.failures.max_fraction", AT(limits.max_fraction), .dflt = 0.1, .max = 1,
      .help = "maximum fraction of failed records; above it, from 20 failures on, the run ends with exit status 3" },
    { PL_INT, "limits.failures.max_count", AT(limits.max_count), .dflt = 100000, .max = 1e15,
      .help = "maximum number of failed records" },
    { PL_SIZE, "limits.disk_free_min", AT(limits.disk_free_min), .dflt = 64 * 1048576.0, .max = 1e18,
      .help = "stop cleanly when less disk space is left" },
    { PL_DURATION, "limits.max_time", AT(limits.max_time), .dflt = -1, .min = 1, .max = 366 * 86400.0, .choices = "auto",
      .help = "stop cleanly after this time; auto: what the scheduler allows" },
    { PL_TEXT, "storage.results", AT(storage.results), .text = "results.db", .help = "results database, in workdir" },
    { PL_TEXT, "storage.features", AT(storage.features), .text = "features.db", .help = "feature database, in workdir" },
    { PL_CHOICE, "storage.journal", AT(storage.journal), .choices = "auto|wal|truncate",
      .help = "auto: wal on a local disk, truncate on a network disk" },
    { PL_BOOL, "storage.stage_out", AT(storage.stage_out),
      .help = "for features on a disk of the node: copy them beside results when the run ends or stops, and fetch them at its next "
              "start" },
    { PL_INT, "workers", AT(workers), .dflt = -1, .min = 1, .max = 4096, .choices = "auto",
      .help = "number of workers; auto: one per processor" },
    { PL_CHOICE, "scheduler.type", AT(scheduler.type), .choices = "auto|slurm|pbs|lsf|sge",
      .help = "scheduler for which `molsieve script` and `submit` write job scripts; auto: the one that is installed" },
    { PL_DURATION, "scheduler.time", AT(scheduler.time), .dflt = -1, .min = 60, .max = 366 * 86400.0, .choices = "auto",
      .help = "time limit of a job; auto: the default of the site" },
    { PL_DURATION, "scheduler.warn", AT(scheduler.warn), .dflt = 300, .min = 30, .max = 86400,
      .help = "how long before the time limit the job receives the signal to stop" },
    { PL_INT, "scheduler.nodes", AT(scheduler.nodes), .dflt = 1, .min = 1, .max = 100000,
      .help = "number of nodes; more than one only for stage train" },
    { PL_INT, "scheduler.tasks", AT(scheduler.tasks), .dflt = 1, .min = 1, .max = 1024,
      .help = "ranks per node; more than one only for stage train" },
    { PL_INT, "scheduler.cpus", AT(scheduler.cpus), .dflt = 1, .min = 1, .max = 4096, .help = "processors per task" },
    { PL_INT, "scheduler.gpus", AT(scheduler.gpus), .max = 1024, .help = "GPUs per node" },
    { PL_SIZE, "scheduler.memory", AT(scheduler.memory), .max = 1e15, .help = "memory per node; 0B: the default of the site" },
    { PL_TEXT, "scheduler.partition", AT(scheduler.partition), .help = "partition or queue" },
    { PL_TEXT, "scheduler.account", AT(scheduler.account), .help = "account or project" },
    { PL_INT, "scheduler.array", AT(scheduler.array), .max = 99999,
      .help = "number of shards, each a task of a job array; 0: one job without shards" },
    { PL_INT, "scheduler.max_running", AT(scheduler.max_running), .max = 99999,
      .help = "maximum number of tasks of the array that run at once; 0: all" },
    { PL_INT, "scheduler.restarts", AT(scheduler.restarts), .dflt = 50, .max = 100000,
      .help = "how often a job restarts itself at its time limit; LSF and Grid Engine do not count restarts" },
    { PL_TEXT, "scheduler.launcher", AT(scheduler.launcher),
      .help = "command that starts the ranks, such as srun --mpi=pmix; default: srun with Slurm, mpirun otherwise" },
    { PL_TEXTS, "scheduler.setup", AT(scheduler.setup), .help = "shell commands before the run, such as module load cuda" },
    { PL_TEXTS, "scheduler.options", AT(scheduler.options), .help = "further options of the job, such as --constraint=a100" },
    { 0 },
};
#undef AT

/* ---- names and paths ---- */

/* The absolute folder of the workflow file. */
static const char *folder_of(const char *path, pl_arena *mem)
{
    char real[PATH_MAX], *slash;

    if (realpath(path, real) == NULL)
        return NULL;
    slash = strrchr(real, '/');
    *(slash == real ? slash + 1 : slash) = '\0';
    return pl_strdup(mem, real);
}

static const char *name_of(const char *path, pl_arena *mem)
{
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path, *dot = strrchr(base, '.');
    return pl_strndup(mem, base, dot != NULL && dot > base ? (size_t)(dot - base) : strlen(base));
}

static const char *in_workdir(const pl_workflow *wf, const char *name, pl_arena *mem)
{
    return name[0] == '/' ? name : pl_sprintf(mem, "%s/%s", wf->workdir, name);
}

/* The name is used as a file name and is printed on terminals. */
static bool is_name(const char *name)
{
    char clean[128];

    if (strlen(name) > 100 || strchr(name, '/') != NULL || name[0] == '.')
        return false;
    (void)snprintf(clean, sizeof clean, "%s", name);
    pl_clean_line(clean);
    return strcmp(clean, name) == 0;
}

static void check_names(const pl_workflow *wf, const pl_settings *ctx)
{
    const pl_node *storage = pl_node_get(wf->tree, "storage"), *name = pl_node_get(wf->tree, "name");

    if (!is_name(wf->name))
        pl_problem_add(ctx->problems, name, "name: '%s': at most 100 characters, no / and no dot in front, no control characters",
                       wf->name);
    if (strcmp(wf->storage.results, wf->storage.features) == 0)
        pl_problem_add(ctx->problems, storage, "storage: results and features must be two files, both are %s", wf->storage.results);
    if (wf->storage.stage_out && pl_path_is_in(wf->storage.features, wf->workdir))
        pl_problem_add(
            ctx->problems, storage,
            "storage.stage_out: %s is in the workdir, where a stop leaves it; name a file on a disk of the node, such as "
            "storage.features: ${env:TMPDIR:-/tmp}/you/%s.db, or leave stage_out away",
            wf->storage.features, wf->name);
}

/* A run makes the work directory; it cannot where something else has the name. */
static void check_workdir(const pl_workflow *wf, const pl_settings *ctx)
{
    const pl_node *at = pl_node_get(wf->tree, "workdir");
    struct stat st;

    if (stat(wf->workdir, &st) == 0 && !S_ISDIR(st.st_mode))
        pl_problem_add(ctx->problems, at != NULL ? at : wf->tree, "workdir: %s is no directory; choose another", wf->workdir);
}

/* Checks a storage path as it was given, before it is joined to the workdir. */
static void check_place(const pl_workflow *wf, const pl_settings *ctx, const char *path)
{
    if (path != NULL && pl_path_leaves(path))
        pl_problem_add(ctx->problems, pl_node_get(wf->tree, "storage"),
                       "storage: %s leads out of the workdir; give an absolute path if that is meant", path);
}

static size_t length_without_slashes(const char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    return n;
}

static bool settle_paths(pl_workflow *wf, const pl_settings *ctx)
{
    if (wf->name == NULL || wf->name[0] == '\0')
        wf->name = name_of(wf->path, ctx->mem);
    if (wf->workdir == NULL && wf->name != NULL)
        wf->workdir = pl_sprintf(ctx->mem, "%s/runs/%s", ctx->folder, wf->name);
    if (wf->workdir != NULL) /* DIR/ means DIR: --fresh must make DIR-2, not DIR/-2 */
        wf->workdir = pl_strndup(ctx->mem, wf->workdir, length_without_slashes(wf->workdir));
    if (wf->name == NULL || wf->workdir == NULL)
        return false;
    check_workdir(wf, ctx);
    check_place(wf, ctx, wf->storage.results);
    check_place(wf, ctx, wf->storage.features);
    wf->storage.results = in_workdir(wf, wf->storage.results != NULL ? wf->storage.results : "results.db", ctx->mem);
    wf->storage.features = in_workdir(wf, wf->storage.features != NULL ? wf->storage.features : "features.db", ctx->mem);
    if (wf->storage.results == NULL || wf->storage.features == NULL)
        return false;
    check_names(wf, ctx);
    return true;
}

/* ---- inputs and models ---- */

typedef struct inputs {
    pl_input *list;
    int n, cap;
} inputs;

static void add_input(inputs *all, const pl_input *like, const char *path, const pl_settings *ctx)
{
    pl_input *grown;

    if (all->n == all->cap) {
        all->cap = all->cap ? all->cap * 2 : 16;
        grown = PL_NEW(ctx->mem, pl_input, all->cap);
        if (grown == NULL) {
            pl_problem_refused(ctx->problems, NULL, "");
            all->cap = all->n;
            return;
        }
        if (all->n > 0)
            memcpy(grown, all->list, (size_t)all->n * sizeof *grown);
        all->list = grown;
    }
    all->list[all->n] = *like;
    all->list[all->n].path = pl_strdup(ctx->mem, path);
    if (all->list[all->n++].path == NULL)
        pl_problem_refused(ctx->problems, NULL, "");
}

/* Compares bytes, so that the order is the same in every locale. */
static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Reports a folder that cannot be accessed; glob() would skip it silently. need: as in access(2). */
static bool check_folder(const char *folder, int need, const pl_node *node, const char *path, const pl_settings *ctx)
{
    struct stat st;

    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode) || access(folder, need) == 0)
        return true;
    pl_problem_add(ctx->problems, node,
                   "%s: cannot read the folder %s: %s; change its permissions, or use patterns that do not "
                   "include it",
                   path, folder, strerror(errno));
    return false;
}

/* Checks all folders that a pattern goes through. */
static bool check_folders(const char *pattern, const pl_node *node, const char *path, const pl_settings *ctx)
{
    bool good = true;

    for (const char *slash = strchr(pattern + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        const char *folder = pl_strndup(ctx->mem, pattern, (size_t)(slash - pattern));
        bool listed = strcspn(slash + 1, "*?[") < strcspn(slash + 1, "/");
        glob_t found = { 0 };
        if (folder != NULL && glob(folder, GLOB_NOSORT | GLOB_ONLYDIR, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc; i++)
                good = check_folder(found.gl_pathv[i], listed ? R_OK | X_OK : X_OK, node, path, ctx) && good;
        globfree(&found);
    }
    return good;
}

/* An existing file is taken as it is, even if its name has * ? or [; otherwise a name with these is a pattern. */
static void expand_input(inputs *all, const pl_input *in, const pl_node *node, const char *path, const pl_settings *ctx)
{
    bool pattern = strpbrk(in->path, "*?[") != NULL && access(in->path, F_OK) != 0;
    glob_t found = { 0 };
    struct stat st;

    if (ctx->stored) {
        add_input(all, in, in->path, ctx);
        return;
    }
    if (stat(in->path, &st) == 0 && S_ISDIR(st.st_mode)) {
        pl_problem_add(ctx->problems, node, "%s: %s is a folder; write a pattern such as %s/*.sdf", path, in->path, in->path);
        return;
    }
    if (!pattern) {
        if (pl_settings_find(ctx, in->path, node, path))
            add_input(all, in, in->path, ctx);
        return;
    }
    if (!check_folders(in->path, node, path, ctx))
        return;
    if (glob(in->path, GLOB_NOSORT, NULL, &found) != 0) {
        pl_problem_add(ctx->problems, node, "%s: no file matches %s; paths are relative to the workflow file", path, in->path);
        return;
    }
    qsort(found.gl_pathv, found.gl_pathc, sizeof found.gl_pathv[0], by_bytes);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (pl_settings_find(ctx, found.gl_pathv[i], node, path))
            add_input(all, in, found.gl_pathv[i], ctx);
    globfree(&found);
}

static void find_inputs(pl_workflow *wf, const pl_settings *ctx)
{
    const pl_node *list = pl_node_get(wf->tree, "inputs"), *node;
    const pl_input *given = wf->inputs.items;
    inputs all = { 0 };

    for (int i = 0; i < wf->inputs.n; i++) {
        const char *path = pl_sprintf(ctx->mem, "inputs.%d.path", i);
        node = list != NULL && list->kind == PL_SEQUENCE ? pl_node_get(list->item[i], "path") : NULL;
        if (given[i].path != NULL && node != NULL)
            expand_input(&all, &given[i], node, path != NULL ? path : "inputs", ctx);
    }
    wf->patterns = wf->inputs;
    wf->inputs = (pl_list){ all.list, all.n };
}

static void find_models(const pl_workflow *wf, const pl_settings *ctx)
{
    const pl_node *map = pl_node_get(wf->tree, "models");
    const pl_model_ref *m = wf->models.items;

    for (int i = 0; i < wf->models.n; i++) {
        const pl_node *one = map->item[i], *pin = pl_node_get(one, "sha256");
        const char *path = pl_sprintf(ctx->mem, "models.%s.path", m[i].name);
        if (m[i].path != NULL)
            (void)pl_settings_find(ctx, m[i].path, pl_node_get(one, "path"), path != NULL ? path : "models");
        if (m[i].sha256 != NULL && (strlen(m[i].sha256) != 64 || strspn(m[i].sha256, "0123456789abcdef") != 64))
            pl_problem_add(ctx->problems, pin, "models.%s.sha256: a SHA-256 has 64 digits 0-9 a-f", m[i].name);
    }
}

/* ---- the whole ---- */

static void call_checks(const pl_workflow *wf, pl_problems *problems)
{
    for (int i = 0; i < wf->n_steps; i++)
        if (wf->step[i].stage->check != NULL)
            wf->step[i].stage->check(wf, &wf->step[i], problems);
}

static void read_all(pl_workflow *wf, const pl_stage *const *known, pl_settings *ctx)
{
    static const char *const also[] = { "vars", "stages", NULL };
    const pl_node *stages = pl_node_get(wf->tree, "stages");

    pl_settings_read(ctx, pl_workflow_fields, wf, wf->tree, "", also);
    if (!settle_paths(wf, ctx)) {
        pl_problem_refused(ctx->problems, NULL, wf->path);
        return;
    }
    ctx->made = wf->workdir;
    ctx->find_files = true;
    find_inputs(wf, ctx);
    find_models(wf, ctx);
    if (stages == NULL)
        pl_problem_add(ctx->problems, wf->tree, "stages: required but not given; the steps of the workflow");
    else
        pl_steps_read(wf, stages, known, ctx);
    if (ctx->problems->n == 0 && !ctx->stored)
        call_checks(wf, ctx->problems);
}

pl_workflow *pl_workflow_load(const char *path, char *const *overrides, int n_overrides, const pl_stage *const *known,
                              pl_problems *problems, pl_arena *mem)
{
    pl_workflow *wf = PL_NEW(mem, pl_workflow, 1);
    pl_settings ctx = { .problems = problems, .mem = mem, .known = known };
    pl_bytes bytes;

    if (wf == NULL || (ctx.folder = folder_of(path, mem)) == NULL) {
        (void)pl_yaml_bytes(&bytes, path, problems, mem); /* adds the problem */
        if (problems->n == 0)
            pl_problem_refused(problems, NULL, path);
        return NULL;
    }
    if (!pl_yaml_bytes(&bytes, path, problems, mem))
        return NULL;
    wf->path = pl_strdup(mem, path);
    wf->text = bytes.data;
    wf->tree = pl_yaml_parse(bytes.data, bytes.len, path, problems, mem);
    if (wf->tree != NULL && wf->tree->kind != PL_MAPPING) {
        pl_problem_add(problems, wf->tree, "a workflow starts with `format: 1` and other settings (key: value)");
        wf->tree = NULL;
    }
    if (wf->path == NULL)
        pl_problem_refused(problems, NULL, path);
    if (wf->tree != NULL && wf->path != NULL) {
        for (int i = 0; i < n_overrides; i++)
            pl_tree_override(wf->tree, overrides[i], problems, mem);
        pl_tree_substitute(wf->tree, problems, mem);
        read_all(wf, known, &ctx);
    }
    pl_problems_sort(problems);
    return problems->n == 0 && wf->tree != NULL ? wf : NULL;
}

pl_workflow *pl_workflow_stored(const char *text, const char *origin, const pl_stage *const *known, pl_problems *problems,
                                pl_arena *mem)
{
    pl_workflow *wf = PL_NEW(mem, pl_workflow, 1);
    pl_settings ctx = { .problems = problems, .mem = mem, .known = known, .folder = "/", .stored = true };

    if (wf == NULL) {
        pl_problem_refused(problems, NULL, origin);
        return NULL;
    }
    wf->path = origin;
    wf->text = text;
    wf->tree = pl_yaml_parse(text, strlen(text), origin, problems, mem);
    if (wf->tree != NULL && wf->tree->kind == PL_MAPPING)
        pl_tree_substitute(wf->tree, problems, mem); /* $${ is ${ */
    if (wf->tree != NULL && wf->tree->kind == PL_MAPPING)
        read_all(wf, known, &ctx);
    return problems->n == 0 && wf->tree != NULL && wf->tree->kind == PL_MAPPING ? wf : NULL;
}

const pl_step *pl_workflow_step(const pl_workflow *wf, const char *name)
{
    for (int i = 0; i < wf->n_steps; i++)
        if (strcmp(wf->step[i].stage->name, name) == 0)
            return &wf->step[i];
    return NULL;
}
