/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/rank/write.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "chem/worker/sdf_drawn.h"
#include "pipeline/base/file.h"
#include "pipeline/run/progress.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"
#include "stages/database/rows.h"
#include "stages/files/out_file.h"
#include "stages/files/own_files.h"
#include "stages/steps/ingest/conformers.h"
#include "stages/steps/ingest/positions.h"
#include "stages/steps/ingest/read_input.h"
#include "stages/steps/rank/table_columns.h"
#include "stages/steps/rank/written.h"

enum { FORMATS = 3, PROGRESS_EVERY = 1024, HIDDEN = 2 /* mol_id and unit, last */ };
enum { CSV, SDF, SMI };

typedef struct write_conf {
    const char *path[FORMATS];
} write_conf;

#define AT(member) offsetof(write_conf, member)
static const pl_field fields[] = {
    { PL_TEXT, "csv", AT(path[CSV]), .text = "hits.csv", .help = "table of the hits; in the workdir unless absolute" },
    { PL_TEXT, "sdf", AT(path[SDF]), .help = "conformers, or drawings where there are none, with the same columns as data fields" },
    { PL_TEXT, "smi", AT(path[SMI]), .help = "SMILES and title" },
    { 0 },
};

static bool wants(const pl_workflow *wf, const pl_step *step, const char *what)
{
    const write_conf *c = step->conf;

    (void)wf;
    return strcmp(what, ST_POSITIONS) == 0 && c->path[SDF] != NULL;
}

typedef struct write_state {
    pl_env *env;
    sqlite3_stmt *hits;
    st_out out[FORMATS];
    bool wanted[FORMATS];
    int n_columns;
    const char **name, **value; /* [n_columns] */
    ch_sdf_field *field;        /* [n_columns] */
    pl_arena *row_mem;
    st_conformers conformers;
    ch_worker *chem; /* opened when there is something to draw */
    pl_text line;
} write_state;

static bool is_wanted(const write_conf *c, int i) { return c->path[i] != NULL && c->path[i][0] != '\0'; }

/* The file by its one name; NULL: the path is too long. */
static const char *canonical(const pl_workflow *wf, const char *path, char out[PATH_MAX])
{
    char full[PATH_MAX];

    if (snprintf(full, sizeof full, "%s%s%s", path[0] == '/' ? "" : wf->workdir, path[0] == '/' ? "" : "/", path) >=
        (int)sizeof full)
        return NULL;
    return st_path_canonical(out, full) ? out : NULL;
}

/* Two outputs are one file, or one is the other until that is whole; some file systems see no difference between A and a. */
static bool is_twice(const pl_workflow *wf, const write_conf *c, int i)
{
    char a[PATH_MAX], b[PATH_MAX];
    const size_t tmp = sizeof ".tmp" - 1;
    bool same = false;

    for (int k = 0; k < i && !same; k++) {
        if (!is_wanted(c, k) || canonical(wf, c->path[i], a) == NULL || canonical(wf, c->path[k], b) == NULL)
            continue;
        size_t na = strlen(a), nb = strlen(b);
        same = strcasecmp(a, b) == 0 || (na == nb + tmp && strncasecmp(a, b, nb) == 0 && strcasecmp(a + nb, ".tmp") == 0) ||
               (nb == na + tmp && strncasecmp(a, b, na) == 0 && strcasecmp(b + na, ".tmp") == 0);
    }
    return same;
}

static void check_place(const pl_workflow *wf, const pl_node *at, const char *path, pl_problems *problems)
{
    char full[PATH_MAX];
    struct stat there;
    const size_t n = strlen(path);

    if (canonical(wf, path, full) == NULL) {
        pl_problem_add(problems, at, "write: %.100s...: the path is too long", path);
        return;
    }
    if (st_is_own(wf, full))
        pl_problem_add(problems, at, "write: %s is a file of the run itself", path);
    else if (st_is_read(wf, full))
        pl_problem_add(problems, at, "write: %s is a file that the run reads", path);
    else if (path[n - 1] == '/' || (stat(full, &there) == 0 && S_ISDIR(there.st_mode)))
        pl_problem_add(problems, at, "write: %s is a folder; name a file", path);
}

static void check_path(const pl_workflow *wf, const pl_step *step, int i, pl_problems *problems)
{
    const write_conf *c = step->conf;
    const char *path = c->path[i];
    const pl_node *own = pl_node_get(step->node, fields[i].key), *at = own != NULL ? own : step->node;

    if (strncmp(path, "~/", 2) == 0 || path[0] == '$')
        pl_problem_add(problems, at, "write: %s: ~ and $ are not expanded here; write ${env:HOME} for ~", path);
    if (is_twice(wf, c, i))
        pl_problem_add(problems, at, "write: %s is written twice", path);
    if (pl_path_leaves(path))
        pl_problem_add(problems, at, "write: %s leads out of the workdir; give an absolute path if that is intended", path);
    check_place(wf, at, path, problems);
}

static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    int n = 0;

    for (int i = 0; i < FORMATS; i++)
        if (is_wanted(step->conf, i)) {
            n++;
            check_path(wf, step, i, problems);
        }
    if (n == 0)
        pl_problem_add(problems, step->node, "write: nothing to write; set csv, sdf or smi");
}

static pl_code prepare_hits(write_state *s, pl_error *err)
{
    pl_text sql = { 0 };
    pl_code code;

    pl_text_add(&sql, "SELECT ");
    code = st_table_columns(s->env->store->db, &sql, err);
    pl_text_add(&sql, ", m.mol_id, m.unit FROM hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id ORDER BY h.rank");
    if (code == PL_OK)
        code = pl_text_ok(&sql) ? pl_db_prepare(s->env->store->db, &s->hits, sql.s, err) : pl_fail(err, PL_ENOMEM, "the hits");
    pl_text_free(&sql);
    return code;
}

static pl_code name_columns(write_state *s, pl_error *err)
{
    const int n = sqlite3_column_count(s->hits) - HIDDEN;

    s->name = PL_NEW(s->env->mem, const char *, n);
    s->value = PL_NEW(s->env->mem, const char *, n);
    s->field = PL_NEW(s->env->mem, ch_sdf_field, n);
    if (s->name == NULL || s->value == NULL || s->field == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the columns");
    s->n_columns = n;
    for (int i = 0; i < n; i++)
        s->name[i] = sqlite3_column_name(s->hits, i);
    return PL_OK;
}

static const char *full_path(const pl_workflow *wf, const char *path, pl_arena *mem)
{
    return path[0] == '/' ? path : pl_sprintf(mem, "%s/%s", wf->workdir, path);
}

static pl_code open_files(write_state *s, const write_conf *c, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; i < FORMATS && code == PL_OK; i++) {
        const char *path = is_wanted(c, i) ? full_path(s->env->wf, c->path[i], s->env->mem) : NULL;
        s->wanted[i] = is_wanted(c, i);
        if (path != NULL)
            code = st_out_open(&s->out[i], path, s->env->mem, err);
        else if (s->wanted[i])
            code = pl_fail(err, PL_ENOMEM, "no memory for a path");
    }
    return code;
}

static pl_code missing(const pl_workflow *wf, const pl_step *step, const char **path, pl_arena *mem, pl_error *err)
{
    const write_conf *c = step->conf;

    *path = NULL;
    for (int i = 0; i < FORMATS && *path == NULL; i++) {
        const char *full = is_wanted(c, i) ? full_path(wf, c->path[i], mem) : "/";
        if (full == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for a path");
        if (pl_path_is_gone(full))
            *path = c->path[i];
    }
    return PL_OK;
}

/* The next changed file from `format` on, or FORMATS. */
static pl_code next_changed(const pl_workflow *wf, const write_conf *c, pl_store *store, int *format, st_written *file,
                            pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    for (; *format < FORMATS; ++*format) {
        const char *full = is_wanted(c, *format) ? full_path(wf, c->path[*format], mem) : "/";
        if (full == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for a path");
        code = st_written_check(store, fields[*format].key, full, file, err);
        if (code != PL_OK || file->changed)
            return code;
    }
    return PL_OK;
}

static pl_code changed(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **path, pl_arena *mem, pl_error *err)
{
    const write_conf *c = step->conf;
    st_written file;
    int i = 0;
    pl_code code = next_changed(wf, c, store, &i, &file, mem, err);

    *path = i < FORMATS ? c->path[i] : NULL;
    return code;
}

/* Warns of changed files, because they are replaced. */
static pl_code tell_changed(pl_env *env, pl_error *err)
{
    const write_conf *c = env->step->conf;
    st_written file;
    int i = 0;
    pl_code code = next_changed(env->wf, c, env->store, &i, &file, env->mem, err);

    while (code == PL_OK && i < FORMATS) {
        pl_event_add(env, PL_WARN, "%s was changed after it was written (%s) and is replaced", c->path[i], file.how);
        i++;
        code = next_changed(env->wf, c, env->store, &i, &file, env->mem, err);
    }
    return code;
}

static pl_code open_stage(void *state, pl_env *env, pl_error *err)
{
    write_state *s = state;
    const char *prepare_key = NULL;
    pl_code code;

    s->env = env;
    for (int i = 0; i < env->step->n_needs; i++) {
        const pl_step *need = &env->wf->step[env->step->needs[i]];
        if (strcmp(need->stage->name, "prepare") == 0)
            prepare_key = need->key;
    }
    s->row_mem = pl_arena_new(1 << 14);
    if (s->row_mem == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to write the hits");
    code = st_conformers_open(&s->conformers, env->store, prepare_key, err);
    if (code == PL_OK)
        code = prepare_hits(s, err);
    if (code == PL_OK)
        code = name_columns(s, err);
    if (code == PL_OK)
        code = tell_changed(env, err);
    return code == PL_OK ? open_files(s, env->step->conf, err) : code;
}

static void close_stage(void *state)
{
    write_state *s = state;

    for (int i = 0; i < FORMATS; i++)
        st_out_close(&s->out[i]);
    (void)sqlite3_finalize(s->hits);
    pl_text_free(&s->line);
    pl_arena_free(s->row_mem);
    st_conformers_close(&s->conformers);
    ch_worker_close(s->chem);
}

/* ---- one row ---- */

static pl_code fill_row(write_state *s, pl_error *err)
{
    bool good = true;

    pl_arena_reset(s->row_mem);
    for (int i = 0; i < s->n_columns; i++) {
        s->value[i] = st_cell_str(s->hits, i, s->row_mem);
        good = good && s->value[i] != NULL;
    }
    return good ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a row");
}

static pl_code write_csv(write_state *s, const char *const *cells, pl_error *err)
{
    pl_text_reset(&s->line);
    for (int i = 0; i < s->n_columns; i++) {
        pl_text_add(&s->line, i ? "," : "");
        st_csv_add(&s->line, cells[i]);
    }
    pl_text_add(&s->line, "\n");
    return st_out_add(&s->out[CSV], &s->line, err);
}

static pl_code write_smi(write_state *s, pl_error *err)
{
    pl_text_reset(&s->line);
    pl_text_addf(&s->line, "%s\t%s\n", s->value[ST_TABLE_SMILES], s->value[ST_TABLE_TITLE]);
    return st_out_add(&s->out[SMI], &s->line, err);
}

static pl_code write_sdf(write_state *s, pl_error *err)
{
    static const ch_mol none;
    const ch_mol *mol;
    int n = 0;
    int64_t mol_id = sqlite3_column_int64(s->hits, s->n_columns), unit = sqlite3_column_int64(s->hits, s->n_columns + 1);
    pl_code code = st_conformer_find(&s->conformers, unit, mol_id, &mol, err);

    if (code != PL_OK)
        return code;
    for (int i = 0; i < s->n_columns; i++)
        if (s->value[i][0] != '\0')
            s->field[n++] = (ch_sdf_field){ s->name[i], s->value[i] };
    pl_text_reset(&s->line);
    code = ch_sdf_write_drawn(&s->line, &s->chem, mol != NULL ? mol : &none, s->value[ST_TABLE_SMILES], s->value[ST_TABLE_TITLE],
                              s->field, n, err); /* a hit is written, without atoms if need be */
    return code == PL_OK ? st_out_add(&s->out[SDF], &s->line, err) : code;
}

static pl_code write_row(write_state *s, pl_error *err)
{
    pl_code code = fill_row(s, err);

    if (code == PL_OK && s->wanted[CSV])
        code = write_csv(s, s->value, err);
    if (code == PL_OK && s->wanted[SDF])
        code = write_sdf(s, err);
    if (code == PL_OK && s->wanted[SMI])
        code = write_smi(s, err);
    return code;
}

/* Between the two commits nothing is known of the files: a run killed there does not call them changed. */
static pl_code keep_files(write_state *s, pl_error *err)
{
    pl_store *store = s->env->store;
    pl_code code = st_written_forget(store, err);

    for (int i = 0; i < FORMATS && code == PL_OK; i++)
        if (s->wanted[i])
            code = st_out_keep(&s->out[i], err);
    if (code == PL_OK)
        code = pl_db_begin(store->db, err);
    for (int i = 0; i < FORMATS && code == PL_OK; i++)
        if (s->wanted[i])
            code = st_written_put(store, fields[i].key, s->out[i].path, err);
    return code; /* the runner marks the stage done in the same transaction */
}

static pl_code finish(void *state, pl_error *err)
{
    write_state *s = state;
    int64_t n = 0;
    pl_code code = s->wanted[CSV] ? write_csv(s, s->name, err) : PL_OK;

    while (pl_db_next(s->hits, &code, err)) {
        code = *s->env->stop ? pl_fail(err, PL_ESTOP, "stopped while writing the hits") : write_row(s, err);
        if (++n % PROGRESS_EVERY == 0)
            pl_progress_set(s->env->progress, n, -1, NULL);
    }
    if (code == PL_OK)
        code = pl_store_held(s->env->store, err);
    if (code == PL_OK)
        code = keep_files(s, err);
    pl_progress_set(s->env->progress, n, n, NULL);
    return code;
}

/* Conformers; without them hits are written with no atoms. */
static bool reads_blocks(const pl_step *step)
{
    const char *sdf = ((const write_conf *)step->conf)->path[SDF];

    return sdf != NULL && sdf[0] != '\0';
}

static const char *const needs[] = { "rank", "prepare", NULL };

const pl_stage st_write = {
    .name = "write",
    .help = "write the ranking as csv, sdf and smi files",
    .scope = PL_WHOLE,
    .version = 3, /* 3: molecules without structures are drawn */
    .fields = fields,
    .conf_size = sizeof(write_conf),
    .state_size = sizeof(write_state),
    .needs = needs,
    .reads_blocks = reads_blocks,
    .missing = missing,
    .changed = changed,
    .item = "hits",
    .wants = wants,
    .check = check,
    .open = open_stage,
    .finish = finish,
    .close = close_stage,
};
