/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/folder.h"
#include "stages/commands/commands.h"
#include "stages/files/data_dir.h"
#include "stages/jobs/job.h"

enum { MAX_DEPTH = 3 };

typedef struct copier {
    const char *kind; /* workflows of this name only: "screen", "train"; "": all */
    pl_arena *mem;
    pl_text workflows; /* texts of those that are copied */
    int n_files;
    double bytes;
    bool kept_ignored; /* the .gitignore that was there */
} copier;

/* Workflows of other kinds and their scripts are not copied, nor, beside a training, what runs a screen as jobs. Data and models are shared. */
static bool is_of_kind(const char *kind, const char *name)
{
    if (pl_ends_with(name, ".yaml") || pl_ends_with(name, ".py"))
        return strncmp(name, kind, strlen(kind)) == 0;
    return strcmp(kind, "train") != 0 || (strcmp(name, "snakemake") != 0 && strcmp(name, "nextflow") != 0);
}

/* Models are large: one that no copied workflow names is not copied. `molsieve predict` finds it without. */
static bool is_unused_model(const copier *c, const char *name)
{
    return pl_ends_with(name, ".safetensors") && strstr(pl_text_str(&c->workflows), name) == NULL;
}

static bool is_wanted(const copier *c, const char *name, int depth)
{
    return name[0] != '.' && (depth > 0 ? !is_unused_model(c, name) : is_of_kind(c->kind, name));
}

static bool is_workflow(const char *name) { return pl_ends_with(name, ".yaml"); }

static pl_code add_workflow(copier *c, const char *from, const char *name, pl_error *err)
{
    const char *path = pl_sprintf(c->mem, "%s/%s", from, name);
    pl_bytes bytes = { 0 };
    pl_code code = path != NULL ? pl_file_read(&bytes, path, c->mem, err) : pl_fail(err, PL_ENOMEM, "out of memory");

    if (code == PL_OK)
        pl_text_add_n(&c->workflows, bytes.data, bytes.len);
    return code;
}

static pl_code read_workflows(copier *c, const char *from, pl_error *err)
{
    DIR *dir = opendir(from);
    struct dirent *e;
    pl_code code = dir != NULL ? PL_OK : pl_fail_errno(err, from);

    while (code == PL_OK && (e = readdir(dir)) != NULL)
        if (is_workflow(e->d_name) && is_wanted(c, e->d_name, 0))
            code = add_workflow(c, from, e->d_name, err);
    if (dir != NULL)
        (void)closedir(dir);
    if (!pl_text_ok(&c->workflows))
        code = pl_fail(err, PL_ENOMEM, "out of memory");
    return code;
}

static pl_code write_counted(copier *c, const char *to, pl_bytes bytes, pl_error *err)
{
    pl_code code = pl_file_write(to, bytes, err);

    if (code == PL_OK) {
        c->n_files++;
        c->bytes += (double)bytes.len;
    }
    return code;
}

/* Whether the line, n bytes, names a file or folder of dir that is not copied. */
static pl_code names_other(bool *out, const copier *c, const char *dir, const char *line, size_t n, pl_error *err)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    *out = false;
    if (d == NULL)
        return pl_fail_errno(err, dir);
    while (!*out && (e = readdir(d)) != NULL)
        *out = e->d_name[0] != '.' && !is_wanted(c, e->d_name, 0) && memmem(line, n, e->d_name, strlen(e->d_name)) != NULL;
    (void)closedir(d);
    return PL_OK;
}

/* README.md of the project, without the lines about what is not copied. */
static pl_code copy_readme(copier *c, const char *from, const char *to, pl_error *err)
{
    const char *path = pl_sprintf(c->mem, "%s/README.md", from), *target = pl_sprintf(c->mem, "%s/README.md", to);
    const char *line;
    pl_text kept = { 0 };
    pl_bytes all = { 0 };
    pl_code code =
        path != NULL && target != NULL ? pl_file_read(&all, path, c->mem, err) : pl_fail(err, PL_ENOMEM, "out of memory");

    line = (const char *)all.data;
    for (size_t n; code == PL_OK && *line != '\0'; line += n) {
        bool other;
        n = strcspn(line, "\n");
        n += line[n] == '\n';
        code = names_other(&other, c, from, line, n, err);
        if (!other)
            pl_text_add_n(&kept, line, n);
    }
    if (!pl_text_ok(&kept))
        code = pl_fail(err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        code = write_counted(c, target, (pl_bytes){ pl_text_str(&kept), kept.len }, err);
    pl_text_free(&kept);
    return code;
}

static pl_code copy_file(copier *c, const char *from, const char *to, pl_error *err)
{
    pl_arena *mem = pl_arena_new(0); /* one file at a time */
    pl_bytes bytes;
    pl_code code = mem != NULL ? pl_file_read(&bytes, from, mem, err) : pl_fail(err, PL_ENOMEM, "%s: out of memory", from);

    if (code == PL_OK)
        code = write_counted(c, to, bytes, err);
    pl_arena_free(mem);
    return code;
}

static pl_code copy_dir(copier *c, const char *from, const char *to, int depth, pl_error *err)
{
    DIR *dir = opendir(from);
    struct dirent *e;
    pl_code code = dir != NULL ? pl_mkdirs(to, err) : pl_fail_errno(err, from);

    while (code == PL_OK && (e = readdir(dir)) != NULL) {
        const char *a = pl_sprintf(c->mem, "%s/%s", from, e->d_name), *b = pl_sprintf(c->mem, "%s/%s", to, e->d_name);
        struct stat st;
        if (!is_wanted(c, e->d_name, depth) || (depth == 0 && strcmp(e->d_name, "README.md") == 0))
            continue;
        if (a == NULL || b == NULL)
            code = pl_fail(err, PL_ENOMEM, "out of memory");
        else if (stat(a, &st) != 0)
            code = pl_fail_errno(err, a);
        else if (S_ISREG(st.st_mode))
            code = copy_file(c, a, b, err);
        else if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH && strcmp(e->d_name, "runs") != 0)
            code = copy_dir(c, a, b, depth + 1, err);
    }
    if (dir != NULL)
        (void)closedir(dir);
    return code;
}

/* Files of runs are large and can be made again. The workflows name their work directories under runs. */
static const char ignored[] = "# made by runs: databases, checkpoints, hits\n/runs/\n*.db\n*.db-wal\n*.db-shm\n*.ckpt\n";

static pl_code write_ignored(copier *c, const char *to, pl_error *err)
{
    const char *path = pl_sprintf(c->mem, "%s/.gitignore", to);
    struct stat st;

    if (path == NULL)
        return pl_fail(err, PL_ENOMEM, "out of memory");
    c->kept_ignored = lstat(path, &st) == 0;
    return c->kept_ignored ? PL_OK : pl_file_write(path, (pl_bytes){ ignored, sizeof ignored - 1 }, err);
}

static pl_code make_project(copier *c, const char *to, pl_error *err)
{
    const char *share, *from, *workflows = pl_sprintf(c->mem, "%s/workflows", to),
                              *part = pl_sprintf(c->mem, "%s/workflows.part", to);
    pl_code code = st_data_dir_find(&share, c->mem, err);

    if (code != PL_OK)
        return code;
    from = pl_sprintf(c->mem, "%s/workflows", share);
    if (workflows == NULL || part == NULL || from == NULL)
        return pl_fail(err, PL_ENOMEM, "out of memory");
    if (access(workflows, F_OK) == 0)
        return pl_fail(err, PL_ECONFIG, "%s: exists already; nothing was overwritten", workflows);
    code = pl_mkdirs(to, err);
    if (code == PL_OK)
        code = pl_folder_remove(part, err); /* of one that was stopped, perhaps of another kind */
    if (code == PL_OK)
        code = read_workflows(c, from, err);
    if (code == PL_OK)
        code = copy_dir(c, from, part, 0, err);
    if (code == PL_OK)
        code = copy_readme(c, from, part, err);
    if (code == PL_OK && rename(part, workflows) != 0)
        code = pl_fail_errno(err, workflows);
    return code == PL_OK ? write_ignored(c, to, err) : code;
}

static void print_next(const copier *c, const char *to)
{
    char size[32];
    pl_text word = { 0 };
    bool train = strcmp(c->kind, "train") == 0;

    pl_cmd_print("%s: %d files, %s\n%s/.gitignore: %s\n\nnext:\n", to, c->n_files, pl_size_str(c->bytes, size), to,
                 c->kept_ignored ? "existed and was not changed; add runs/ to it" : "keeps runs/ and databases out of git");
    st_add_word(&word, to);
    if (strcmp(to, ".") != 0)
        pl_cmd_print("  cd %s\n", pl_text_str(&word));
    pl_text_free(&word);
    pl_cmd_print("  molsieve check workflows/%s.yaml\n", train ? "train-esol" : "screen");
    pl_cmd_print("  molsieve run workflows/%s.yaml\n", train ? "train-esol" : "screen");
    if (!train)
        pl_cmd_print("  molsieve top -n 20\n");
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *first = args->n > 0 ? args->arg[0] : ".";
    bool kind = strcmp(first, "screen") == 0 || strcmp(first, "train") == 0;
    const char *second = args->n > 1 ? args->arg[1] : ".", *to = kind ? second : first;
    copier c = { .kind = kind ? first : "", .mem = pl_arena_new(1 << 14) };
    pl_error err = { 0 };
    pl_code code;

    (void)app;
    if (args->n > 1 + kind) {
        pl_arena_free(c.mem);
        return pl_cmd_usage(args, "one folder is expected");
    }
    code = c.mem != NULL ? make_project(&c, to, &err) : pl_fail(&err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        print_next(&c, to);
    pl_text_free(&c.workflows);
    pl_arena_free(c.mem);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

const pl_cmd st_cmd_init = {
    .name = "init",
    .args = "[screen|train] [DIR]",
    .help = "make a small real project: workflows, molecules, a trained model",
    .about = "Writes DIR/workflows (DIR is the current folder by default) and, if there is\n"
             "none, a DIR/.gitignore for what runs write. Never overwrites a file.\n"
             "\n"
             "  molsieve init demo && cd demo && molsieve run workflows/screen.yaml\n",
    .run = run,
};
