/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/external/external.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chem/molecule/codec.h"
#include "pipeline/base/folder.h"
#include "stages/steps/external/external_parts.h"
#include "stages/steps/ingest/positions.h"
#include "stages/steps/ingest/size_estimate.h"
#include "stages/steps/train/model_row.h"

/* Seconds of a call with one worker if nothing is known: for estimates only. */
static const double CALL_S = 1;

#define OF(member) offsetof(st_ext_variable, member)
static const pl_field variable_fields[] = {
    { PL_TEXT, "name", OF(name), .help = "of the variable" },
    { PL_TEXT, "value", OF(value), .flags = PL_REQUIRED, .help = "its value" },
    { 0 },
};

#define AT(member) offsetof(st_external_conf, member)
static const pl_field fields[] = {
    { PL_TEXT, "name", AT(name), .text = "external", .help = "of the program, as a model in results.db" },
    { PL_TEXTS, "command", AT(command), .flags = PL_REQUIRED,
      .help =
          "program and arguments, no shell; {input}: file with the molecules, {output}: file that it writes (without: its standard output "
          "is read), {cores}, {dir}: its folder, {id} of the first molecule" },
    { PL_CHOICE, "input", AT(input), .choices = "smiles|csv|sdf|xyz|pdbqt", .flags = PL_REQUIRED,
      .help = "format of the molecules: smiles and csv from the SMILES, the others with 3D structures" },
    { PL_CHOICE, "output", AT(output), .choices = "csv|json|sdf|regex|pdbqt", .flags = PL_REQUIRED,
      .help = "format of its output" },
    { PL_TEXT, "property", AT(property), .flags = PL_REQUIRED, .help = "what it scores" },
    { PL_TEXT, "unit", AT(unit), .text = "", .help = "unit of the property" },
    { PL_CHOICE, "better", AT(better), .choices = "low|high|none", .flags = PL_REQUIRED,
      .help = "which values are better; of several values of a molecule the best counts (none: the first)" },
    { PL_TEXT, "value", AT(value),
      .help =
          "column of csv, key of json (a.b: below a), data field of sdf, remark of pdbqt, or a regular expression whose first group is "
          "the number; default: the property (pdbqt: VINA RESULT)" },
    { PL_DURATION, "timeout", AT(timeout), .dflt = 600, .min = 0.01, .max = 864000, .flags = PL_HOW,
      .help = "time for each molecule; a call that takes longer is killed" },
    { PL_INT, "cores", AT(cores), .dflt = 1, .min = 1, .max = 1024, .flags = PL_HOW,
      .help = "cores that a call uses: so many fewer calls run at once" },
    { PL_INT, "batch", AT(batch), .dflt = 1, .min = 1, .max = 10000, .unit = "molecules",
      .help = "in a call; results are found by the column or key id, or the SDF title" },
    { PL_CHOICE, "structures", AT(structures), .choices = "first|all",
      .help =
          "of several conformers the one of lowest energy, or all: sdf and xyz have a record of each, pdbqt gets a call for each, and the "
          "best value counts" },
    { PL_BOOL, "poses", AT(poses), .flags = PL_LATER,
      .help = "output sdf or pdbqt: keep the structures that it writes; `molsieve export sdf --conformers poses`" },
    { PL_TEXTS, "files", AT(files), .flags = PL_HOW, .help = "files that it reads: each is in its folder, under its own name" },
    { PL_LIST, "env", AT(env), .flags = PL_KEYED, .sub = variable_fields, .sub_size = sizeof(st_ext_variable),
      .help = "environment variables for the program, besides those of molsieve" },
    { PL_SIZE, "limits.memory", AT(memory), .dflt = 0, .min = 0, .max = 1e15, .flags = PL_HOW,
      .help = "address space of each of its processes; 0: no limit" },
    { PL_SIZE, "limits.output", AT(max_output), .dflt = 1 << 20, .min = 64, .max = 1 << 30, .flags = PL_HOW,
      .help = "maximum size of the output that is read" },
    { PL_SIZE, "limits.disk", AT(max_disk), .dflt = 1 << 30, .min = 4096, .max = 1e15, .flags = PL_HOW,
      .help = "maximum size of the folder of a call" },
    { PL_CHOICE, "keep", AT(keep), .choices = "none|failed|all", .flags = PL_HOW,
      .help = "which folders of calls stay in WORKDIR/scratch: to see what went wrong" },
    { 0 },
};

bool st_external_property(const pl_workflow *wf, const char **name, const char **unit)
{
    const pl_step *step = pl_workflow_step(wf, "external");

    if (step == NULL)
        return false;
    *name = ((const st_external_conf *)step->conf)->property;
    *unit = ((const st_external_conf *)step->conf)->unit;
    return *name != NULL;
}

const char *st_external_better(const pl_workflow *wf, const char *property)
{
    static const char *const ends[] = { "low", "high", "none" };
    const pl_step *step = pl_workflow_step(wf, "external");
    const st_external_conf *c = step != NULL ? step->conf : NULL;

    return c != NULL && c->property != NULL && strcmp(c->property, property) == 0 ? ends[c->better] : NULL;
}

bool st_external_has_poses(const pl_workflow *wf)
{
    const pl_step *step = pl_workflow_step(wf, "external");

    return step != NULL && ((const st_external_conf *)step->conf)->poses;
}

/* ---- before the run ---- */

static void settle(const pl_workflow *wf, void *conf)
{
    st_external_conf *c = conf;

    (void)wf;
    c->unit = c->unit != NULL ? c->unit : "";
    if (!st_ext_needs_3d(c))
        c->structures = ST_STRUCTURES_FIRST;
}

static bool wants(const pl_workflow *wf, const pl_step *step, const char *what)
{
    (void)wf;
    return strcmp(what, ST_POSITIONS) == 0 && st_ext_needs_3d(step->conf);
}

static pl_code add_hash(json_t *all, const char *name, const char *path, pl_store *store, pl_error *err)
{
    char hash[65];
    pl_code code = pl_file_hash(store, path, hash, err);

    if (code == PL_OK)
        (void)json_object_set_new(all, name, json_string(hash));
    return code;
}

static pl_code key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                   pl_error *err)
{
    const st_external_conf *c = step->conf;
    const char *const *file = c->files.items;
    json_t *files = json_object(), *all = json_pack("{s:o}", "files", files);
    const char *path;
    pl_code code = st_ext_program(&path, wf, c, mem, err);
    char *text;

    if (code == PL_OK)
        code = add_hash(all, "program", path, store, err);
    for (int32_t i = 0; i < c->files.n && code == PL_OK; i++) {
        code = st_ext_path(&path, wf, file[i], mem, err);
        if (code == PL_OK)
            code = add_hash(files, st_ext_base(file[i]), path, store, err);
    }
    text = code == PL_OK ? json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    *extra_json = text != NULL ? pl_strdup(mem, text) : NULL;
    free(text);
    json_decref(all);
    return code != PL_OK || *extra_json != NULL ? code : pl_fail(err, PL_ENOMEM, "key of the program");
}

/* Seconds a molecule of units that are done. */
static pl_code measured(pl_store *store, double *seconds, pl_error *err)
{
    int64_t ms = 0;
    pl_code code = store == NULL ? PL_OK
                                 : pl_db_int(store->db, &ms, err,
                                             "SELECT coalesce((SELECT 1e3*sum(u.wall_s)/sum(n_ok+n_failed) FROM unit u JOIN stage "
                                             "USING(stage_id) WHERE name='external'),0)");

    *seconds = (double)ms / 1e3;
    return code;
}

static pl_code estimate(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem, pl_error *err)
{
    const st_external_conf *c = step->conf;
    double seconds = 0;
    st_sizes sizes;
    pl_code code = st_sizes_get(&sizes, wf, store, err);

    (void)mem;
    *out = (pl_estimate){ .n_items = -1, .n_units = -1 };
    if (code == PL_OK)
        code = measured(store, &seconds, err);
    if (code != PL_OK || sizes.n_units < 0)
        return code;
    out->n_items = (int64_t)sizes.n;
    out->n_units = sizes.n_units;
    out->bytes_results = 60.0 * sizes.n;
    out->seconds = (seconds > 0 ? seconds : CALL_S / (double)c->batch) * sizes.n;
    if (seconds <= 0)
        out->note = "the time of the program is not known before it has run: 1 s a call is assumed";
    return PL_OK;
}

/* ---- open ---- */

/* The file is the one whose hash is in the stage's key; from now on its changes are noticed. */
static pl_code watch(st_ext_stage *s, const char *path, pl_error *err)
{
    st_ext_watched *w = &s->watched[s->n_watched];
    char hash[65];
    pl_code code = pl_file_hash(s->env->store, path, hash, err);

    if (code != PL_OK)
        return code;
    if (strstr(s->env->step->extra_json, hash) == NULL) {
        pl_file_forget(s->env->store, path);
        return pl_fail(err, PL_EINPUT, "%s was changed since the run began; run again when no program writes to it", path);
    }
    w->path = path;
    s->n_watched++;
    return stat(path, &w->was) == 0 ? PL_OK : pl_fail_errno(err, path);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_ino == b->st_ino && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static pl_code look(const st_ext_stage *s, pl_error *err)
{
    struct stat now;

    for (int32_t i = 0; i < s->n_watched; i++) {
        if (stat(s->watched[i].path, &now) != 0)
            return pl_fail_errno(err, s->watched[i].path);
        if (!is_same(&now, &s->watched[i].was))
            return pl_fail(err, PL_EINPUT, "%s was changed while external ran; run again: what it scored is scored again",
                           s->watched[i].path);
    }
    return PL_OK;
}

static pl_code files_open(st_ext_stage *s, pl_error *err)
{
    const pl_workflow *wf = s->env->wf;
    const st_external_conf *c = s->conf;
    const char *const *file = c->files.items;
    pl_code code = st_ext_program(&s->program, wf, c, s->env->mem, err);

    if (code != PL_OK)
        return code;
    s->scratch = pl_sprintf(s->env->mem, "%s/scratch", wf->workdir);
    s->watched = PL_NEW(s->env->mem, st_ext_watched, c->files.n + 1);
    if (s->scratch == NULL || s->watched == NULL)
        return pl_fail(err, PL_ENOMEM, "the files of a program");
    code = watch(s, s->program, err);
    for (int32_t i = 0; i < c->files.n && code == PL_OK; i++) {
        const char *path;
        code = st_ext_path(&path, wf, file[i], s->env->mem, err);
        if (code == PL_OK)
            code = watch(s, path, err);
    }
    return code;
}

static pl_code external_open(void *state, pl_env *env, pl_error *err)
{
    st_ext_stage *s = state;
    pl_code code;

    s->env = env;
    s->conf = env->step->conf;
    s->n_slots = env->workers / (int)s->conf->cores > 0 ? env->workers / (int)s->conf->cores : 1;
    if (pthread_mutex_init(&s->lock, NULL) != 0)
        return pl_fail(err, PL_ENOMEM, "a lock");
    s->has_lock = pthread_cond_init(&s->freed, NULL) == 0;
    code = files_open(s, err);
    if (code == PL_OK)
        code = st_blocks_open(&s->molecules, env, "prepare", "conformer", err);
    return code == PL_OK ? st_external_rows_open(s, err) : code;
}

static void external_close(void *state)
{
    st_ext_stage *s = state;

    st_external_rows_close(s);
    if (s->has_lock) {
        (void)pthread_cond_destroy(&s->freed);
        (void)pthread_mutex_destroy(&s->lock);
    }
    if (s->scratch != NULL && s->conf->keep == ST_KEEP_NONE)
        (void)pl_folder_remove(s->scratch, NULL);
}

/* ---- a unit ---- */

static pl_code unit_range(const st_ext_stage *s, int64_t unit, int64_t *first, int64_t *last, pl_error *err)
{
    static const char sql[] =
        "SELECT coalesce((SELECT u.%s FROM unit u JOIN stage USING(stage_id) WHERE name='prepare' AND u.unit=%lld),0)";
    pl_code code = pl_db_int(s->env->store->db, first, err, sql, "first", (long long)unit);

    return code == PL_OK ? pl_db_int(s->env->store->db, last, err, sql, "last", (long long)unit) : code;
}

static bool item_take(st_ext_item *m, sqlite3_stmt *st, pl_arena *mem)
{
    const char *const text[] = { (const char *)sqlite3_column_text(st, 1), (const char *)sqlite3_column_text(st, 2),
                                 (const char *)sqlite3_column_text(st, 3) };

    m->id = sqlite3_column_int64(st, 0);
    m->smiles = pl_strdup(mem, text[0] != NULL ? text[0] : "");
    m->inchikey = pl_strdup(mem, text[1] != NULL ? text[1] : "");
    m->title = pl_strdup(mem, text[2] != NULL ? text[2] : "");
    return m->smiles != NULL && m->inchikey != NULL && m->title != NULL;
}

static pl_code items_get(st_ext_stage *s, st_external_unit *u, pl_unit *unit, pl_error *err)
{
    int64_t first = 0, last = 0;
    pl_code code = unit_range(s, unit->index, &first, &last, err);

    if (code != PL_OK)
        return code;
    u->item = PL_NEW(unit->mem, st_ext_item, last - first + 1);
    if (u->item == NULL)
        return pl_fail(err, PL_ENOMEM, "a unit of molecules");
    (void)sqlite3_reset(s->get);
    (void)sqlite3_bind_int64(s->get, 1, first);
    (void)sqlite3_bind_int64(s->get, 2, last);
    while (pl_db_next(s->get, &code, err))
        if (!item_take(&u->item[u->n++], s->get, unit->mem))
            return pl_fail(err, PL_ENOMEM, "a unit of molecules");
    (void)sqlite3_reset(s->get);
    return code;
}

static pl_code external_next(void *state, pl_unit *unit, bool *more, pl_error *err)
{
    st_ext_stage *s = state;
    st_external_unit *u;
    pl_code code = st_blocks_has(&s->molecules, unit->index, more, err);

    if (code != PL_OK || !*more)
        return code;
    u = PL_NEW(unit->mem, st_external_unit, 1);
    if (u == NULL)
        return pl_fail(err, PL_ENOMEM, "a unit of molecules");
    unit->data = u;
    code = items_get(s, u, unit, err);
    return code == PL_OK && st_ext_needs_3d(s->conf) ? st_blocks_get(&s->molecules, unit->index, &u->block, unit->mem, err) : code;
}

/* ---- work ---- */

pl_code st_external_worker_open(void *worker, void *state, pl_error *err)
{
    st_external_worker *w = worker;
    const st_external_conf *c = ((st_ext_stage *)state)->conf;

    w->stage = state;
    w->scratch = pl_arena_new(1 << 16);
    w->out = malloc((size_t)c->max_output + 1);
    if (w->scratch == NULL || w->out == NULL)
        return pl_fail(err, PL_ENOMEM, "the output of a program (limits.output)");
    if (c->input == ST_IN_PDBQT) {
        const ch_worker_opts opts = { .stop = w->stage->env->stop };
        const pl_code code = ch_worker_open(&w->chem, &opts, err);
        if (code != PL_OK)
            return code;
    }
    w->has_re = c->output == ST_OUT_REGEX && regcomp(&w->re, c->value, REG_EXTENDED) == 0;
    return c->output != ST_OUT_REGEX || w->has_re ? PL_OK : pl_fail(err, PL_ENOMEM, "a regular expression");
}

void st_external_worker_close(void *worker)
{
    st_external_worker *w = worker;

    if (w->has_re)
        regfree(&w->re);
    free(w->out);
    ch_worker_close(w->chem);
    pl_arena_free(w->scratch);
}

/* Waits until a call may begin. */
static pl_code slot_take(st_ext_stage *s, pl_error *err)
{
    bool stopped = false;

    (void)pthread_mutex_lock(&s->lock);
    while (s->n_running >= s->n_slots && !stopped) {
        struct timespec soon;
        (void)clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_sec++;
        (void)pthread_cond_timedwait(&s->freed, &s->lock, &soon);
        stopped = atomic_load(s->env->stop) != 0;
    }
    s->n_running += !stopped;
    (void)pthread_mutex_unlock(&s->lock);
    return stopped ? pl_fail(err, PL_ESTOP, "stopped") : PL_OK;
}

static void slot_give(st_ext_stage *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->n_running--;
    (void)pthread_cond_signal(&s->freed);
    (void)pthread_mutex_unlock(&s->lock);
}

/* The structures of each molecule, which are adjacent in the block and in the order of the molecules. */
static pl_code structures_take(const st_external_conf *c, st_external_unit *u, pl_arena *mem, pl_error *err)
{
    ch_block_item *all = NULL;
    int32_t n = 0, k = 0;
    pl_code code = pl_block_check(&u->block, err);

    if (code == PL_OK)
        code = ch_block_unpack(&all, &n, u->block.data, mem, err);
    for (int32_t i = 0; i < u->n && code == PL_OK; i++) {
        st_ext_item *m = &u->item[i];
        int32_t end;
        while (k < n && all[k].id < m->id)
            k++;
        for (end = k; end < n && all[end].id == m->id && all[end].mol.xyz != NULL;)
            end++;
        m->n_mols = c->structures == ST_STRUCTURES_FIRST && end > k ? 1 : end - k;
        m->mol = PL_NEW(mem, const ch_mol *, m->n_mols + 1);
        if (m->mol == NULL)
            return pl_fail(err, PL_ENOMEM, "structures");
        for (int32_t j = 0; j < m->n_mols; j++)
            m->mol[j] = &all[k + j].mol;
    }
    return code;
}

bool st_ext_has_input(const st_external_conf *c, st_ext_item *m)
{
    if (!st_ext_needs_3d(c) || m->n_mols > 0)
        return true;
    m->code = "structure";
    (void)snprintf(m->message, sizeof m->message, "the molecule has no 3D structure, which the program needs");
    return false;
}

/* The molecules from i on that one call gets: *n of them. What has no input is passed over; its outcome is set. */
static int32_t batch_from(const st_external_conf *c, const st_external_unit *u, int32_t i, int32_t *n)
{
    *n = 0;
    while (i < u->n && !st_ext_has_input(c, &u->item[i]))
        i++;
    while (i + *n < u->n && *n < c->batch && st_ext_has_input(c, &u->item[i + *n]))
        ++*n;
    return i;
}

static pl_code external_work(void *worker, pl_unit *unit, pl_error *err)
{
    st_external_worker *w = worker;
    st_ext_stage *s = w->stage;
    st_external_unit *u = unit->data;
    int32_t n;
    pl_code code = st_ext_needs_3d(s->conf) ? structures_take(s->conf, u, unit->mem, err) : PL_OK;

    for (int32_t i = batch_from(s->conf, u, 0, &n); n > 0 && code == PL_OK; i = batch_from(s->conf, u, i + n, &n)) {
        w->mem = unit->mem;
        code = slot_take(s, err);
        if (code != PL_OK)
            break;
        code = st_external_call(w, &u->item[i], n, err);
        slot_give(s);
    }
    return code == PL_OK ? look(s, err) : code; /* behind the calls: what they read was the file of the key */
}

static bool reads_blocks(const pl_step *step) { return st_ext_needs_3d(step->conf); }

static const char *const needs[] = { "prepare", NULL };
static const char *const first[] = { "command", "the program and its arguments",   "input", "what it reads",
                                     "value",   "where its output has the number", NULL };

const pl_stage st_external = {
    .name = "external",
    .help = "score the molecules with a program of your own",
    .scope = PL_PER_UNIT,
    .version = 1,
    .fields = fields,
    .first = first,
    .conf_size = sizeof(st_external_conf),
    .state_size = sizeof(st_ext_stage),
    .worker_size = sizeof(st_external_worker),
    .needs = needs,
    .item = "molecules",
    .settle = settle,
    .wants = wants,
    .check = st_external_check,
    .key = key,
    .estimate = estimate,
    .open = external_open,
    .next = external_next,
    .worker_open = st_external_worker_open,
    .work = external_work,
    .worker_close = st_external_worker_close,
    .commit = st_external_commit,
    .finish = st_external_finish,
    .close = external_close,
    .reset_sql = st_external_reset_sql,
    .reads_blocks = reads_blocks,
};
