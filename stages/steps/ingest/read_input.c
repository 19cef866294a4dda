/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/read_input.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline/base/file.h"
#include "pipeline/base/stop.h"
#include "pipeline/store/store.h"

const pl_input *st_input_at(const pl_workflow *wf, int32_t i) { return (const pl_input *)wf->inputs.items + i; }

const char *st_input_format(const pl_input *in)
{
    return in->format == NULL || strcmp(in->format, "auto") == 0 ? NULL : in->format;
}

pl_code st_input_open(ch_reader **out, const pl_input *in, const st_read_conf *conf, ch_worker *lister, pl_error *err)
{
    ch_reader_opts opts = {
        .title_from = in->title_from,
        .smiles_column = in->smiles_column,
        .title_column = in->title_column,
        .max_record_bytes = (size_t)conf->max_record,
        .max_file_bytes = (size_t)conf->max_file,
        .hash = lister != NULL,
        .lister = lister,
        .stop = pl_stop_flag(),
    };
    return ch_reader_open(out, in->path, st_input_format(in), &opts, err);
}

const char *st_input_repeats(const ch_reader *reader)
{
    int n;
    const char *const *name = ch_reader_columns(reader, &n);

    for (int i = 1; i < n; i++)
        for (int k = 0; k < i && name[i][0] != '\0'; k++)
            if (strcmp(name[i], name[k]) == 0)
                return name[i];
    return NULL;
}

/* ---- what must not be written to ---- */

static bool is_same(const struct stat *at, const char *path)
{
    struct stat other;

    return path != NULL && stat(path, &other) == 0 && pl_stat_is_same(at, &other);
}

static bool is_setting(const pl_step *step, const struct stat *at)
{
    bool same = false;

    for (const pl_field *f = step->stage->fields; f != NULL && f->type != PL_END && !same; f++)
        same = f->type == PL_PATH && is_same(at, *(const char *const *)((const char *)step->conf + f->at));
    return same;
}

bool st_is_read(const pl_workflow *wf, const char *path)
{
    const pl_model_ref *model = wf->models.items;
    struct stat at;
    bool same;

    if (stat(path, &at) != 0)
        return false;
    same = is_same(&at, wf->path);
    for (int32_t i = 0; i < wf->inputs.n && !same; i++)
        same = is_same(&at, st_input_at(wf, i)->path);
    for (int32_t i = 0; i < wf->models.n && !same; i++)
        same = is_same(&at, model[i].path);
    for (int i = 0; i < wf->n_steps && !same; i++)
        same = is_setting(&wf->step[i], &at);
    return same;
}

/* ---- what can be wrong with the inputs ---- */

static int compare_paths(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void check_formats(const pl_workflow *wf, pl_problems *problems)
{
    const pl_node *list = pl_node_get(wf->tree, "inputs");
    ch_worker *worker = NULL;

    for (int32_t i = 0; i < wf->patterns.n; i++) {
        const char *format = st_input_format((const pl_input *)wf->patterns.items + i);
        const pl_node *at = list != NULL && i < list->n ? pl_node_get(list->item[i], "format") : NULL;
        bool yes = false;
        /* Only other formats are worth starting the worker for. */
        if (format == NULL || ch_format_is_ours(format))
            continue;
        if (worker == NULL && ch_worker_open(&worker, NULL, NULL) != PL_OK)
            break; /* without a worker the run itself says so */
        if (ch_worker_reads(worker, format, &yes, NULL) == PL_OK && !yes)
            pl_problem_add(problems, at,
                           "inputs.%d.format: '%s' is no known format; allowed: auto, smi, sdf, mol2, xyz, pdb, csv, "
                           "or a name that `obabel -L formats` lists",
                           (int)i, format);
    }
    ch_worker_close(worker);
}

/* Settings of another format would have no effect. */
static void check_settings(const pl_input *in, const ch_reader *reader, const pl_node *at, pl_problems *problems)
{
    const char *format = ch_reader_format(reader);
    const bool table = strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0;

    if (in->title_from != NULL && strcmp(format, "sdf") != 0)
        pl_problem_add(problems, at, "inputs: %s is %s, and `title_from` names a data field of SDF%s", in->path, format,
                       table ? "; write `columns: {title: ...}`" : "");
    if ((in->smiles_column != NULL || in->title_column != NULL) && !table)
        pl_problem_add(problems, at, "inputs: %s is %s, and `columns` are of a table (csv, tsv)%s", in->path, format,
                       strcmp(format, "sdf") == 0 ? "; a title is named by `title_from`" : "");
}

/* Checks that every file has a reader and the named columns, as far as its first bytes show. */
static void check_files(const pl_workflow *wf, pl_problems *problems)
{
    const pl_node *at = pl_node_get(wf->tree, "inputs");
    ch_worker *worker = NULL;

    for (int32_t i = 0; i < wf->inputs.n; i++) {
        const pl_input *in = st_input_at(wf, i);
        static const st_read_conf any = { 0 };
        ch_reader *reader = NULL;
        pl_error err = { 0 };
        bool yes = true;
        if (st_input_open(&reader, in, &any, NULL, &err) != PL_OK) {
            pl_problem_add(problems, at, "inputs: %s", err.text);
            continue;
        }
        check_settings(in, reader, at, problems);
        if (st_input_format(in) == NULL && !ch_format_is_ours(ch_reader_format(reader)) &&
            (worker != NULL || ch_worker_open(&worker, NULL, NULL) == PL_OK) &&
            ch_worker_reads(worker, ch_reader_format(reader), &yes, NULL) == PL_OK && !yes)
            pl_problem_add(problems, at,
                           "inputs: %s: '%s' is no known format; unpack the file (only .gz is unpacked here), or set its "
                           "`format`",
                           in->path, ch_reader_format(reader));
        ch_reader_close(reader);
    }
    ch_worker_close(worker);
}

void st_read_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const char **paths;

    check_formats(wf, problems);
    check_files(wf, problems);
    if (wf->inputs.n == 0)
        pl_problem_add(problems, step->node, "read: there are no `inputs`; name the molecule files to read");
    paths = malloc(sizeof *paths * ((size_t)wf->inputs.n + 1));
    for (int32_t i = 0; i < wf->inputs.n && paths != NULL; i++)
        paths[i] = st_input_at(wf, i)->path;
    if (paths != NULL)
        qsort(paths, (size_t)wf->inputs.n, sizeof *paths, compare_paths);
    for (int32_t i = 1; i < wf->inputs.n && paths != NULL; i++)
        if (strcmp(paths[i - 1], paths[i]) == 0)
            pl_problem_add(problems, step->node, "inputs: %s is listed twice; remove one", paths[i]);
    free(paths);
}

/* ---- what the records depend on ---- */

static pl_code describe_input(json_t *list, const pl_input *in, const st_read_conf *conf, pl_store *store, bool *foreign,
                              bool *exact, pl_error *err)
{
    char hash[65];
    ch_reader *reader = NULL;
    pl_code code = pl_file_hash(store, in->path, hash, err);
    json_t *o;

    if (code == PL_OK)
        code = st_input_open(&reader, in, conf, NULL, err);
    if (code != PL_OK)
        return code;
    /* Formats that we split ourselves do not depend on the library. */
    *foreign = *foreign || !ch_format_is_ours(ch_reader_format(reader));
    *exact = *exact || *foreign || strcmp(ch_reader_format(reader), "qm9bin") == 0;
    o = json_pack("{s:s, s:s, s:s?, s:s?, s:s?}", "sha256", hash, "format", ch_reader_format(reader), "title_from", in->title_from,
                  "smiles_column", in->smiles_column, "title_column", in->title_column);
    ch_reader_close(reader);
    if (o == NULL || json_array_append_new(list, o) != 0)
        return pl_fail(err, PL_ENOMEM, "no memory for the key of read");
    return PL_OK;
}

static pl_code describe_library(json_t *root, pl_error *err)
{
    ch_worker *w = NULL;
    ch_worker_info info;
    pl_code code = ch_worker_open(&w, NULL, err);

    if (code == PL_OK)
        code = ch_worker_version(w, &info, err);
    if (code == PL_OK &&
        (json_object_set_new(root, "library", json_string(info.openbabel)) != 0 ||
         json_object_set_new(root, "bonds", json_string("own")) != 0)) /* earlier versions left them to the library */
        code = pl_fail(err, PL_ENOMEM, "no memory for the key of read");
    ch_worker_close(w);
    return code;
}

pl_code st_read_key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                    pl_error *err)
{
    json_t *list = json_array(), *root = json_pack("{s:o}", "inputs", list);
    bool foreign = false, exact = false; /* exact: earlier versions rounded their positions to four decimals */
    pl_code code = root == NULL ? pl_fail(err, PL_ENOMEM, "no memory for the key of read") : PL_OK;
    char *text = NULL;

    for (int32_t i = 0; i < wf->inputs.n && code == PL_OK; i++)
        code = describe_input(list, st_input_at(wf, i), step->conf, store, &foreign, &exact, err);
    if (code == PL_OK && foreign)
        code = describe_library(root, err);
    if (code == PL_OK && exact && json_object_set_new(root, "positions", json_string("exact")) != 0)
        code = pl_fail(err, PL_ENOMEM, "no memory for the key of read");
    if (code == PL_OK)
        text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(root);
    if (code != PL_OK)
        return code;
    *extra_json = text != NULL ? pl_strdup(mem, text) : NULL;
    free(text);
    return *extra_json ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the key of read");
}
