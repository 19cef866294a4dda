/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/label_scan.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/ingest/size_estimate.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/log.h"
#include "pipeline/workflow/workflow.h"
#include "stages/database/blocks.h"
#include "stages/expression/expression.h"
#include "stages/steps/ingest/alerts.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/cost.h"
#include "stages/steps/ingest/device.h"
#include "stages/steps/ingest/machine.h"
#include "stages/steps/ingest/native.h"
#include "stages/steps/ingest/positions.h"
#include "stages/steps/ingest/prefilter.h"
#include "stages/steps/ingest/structures.h"

typedef struct prepare_state {
    pl_env *env;
    st_blocks records;
    st_molecules *molecules;
    ch_prepare_opts opts;
    ch_worker_opts budget;
    st_structures structures;
    st_native native; /* if opts.builder is CH_NATIVE */
    bool device;      /* a GPU builds */
} prepare_state;

typedef struct prepare_worker {
    ch_worker *chem;
    st_prefilter *keep; /* or NULL */
    ch_device *device;  /* or NULL */
    pl_arena *scratch;
    prepare_state *state;
} prepare_worker;

/* ---- before the run ---- */

static void check_keep(const pl_step *step, pl_problems *problems)
{
    const st_prepare_conf *c = step->conf;
    st_prefilter *keep = NULL;
    size_t at = 0;
    pl_error err = { 0 };

    if (c->keep != NULL && st_prefilter_open(&keep, c->keep, &at, &err) != PL_OK)
        st_expression_problem(problems, pl_node_get(step->node, "keep"), "prepare", at, &err);
    st_prefilter_close(keep);
}

static void check_alerts(const pl_step *step, pl_problems *problems)
{
    const int before = problems->n;
    st_alerts alerts;

    st_alerts_read(&alerts, step, problems, problems->mem);
    if (alerts.n > 0 && problems->n == before)
        st_alerts_check(&alerts, step, problems, problems->mem);
}

static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_prepare_conf *c = step->conf;
    const char *const *label = c->labels.items;
    ch_worker *w = NULL;
    pl_error err = { 0 };

    for (int32_t i = 0; i < c->labels.n && c->labels.n > 1; i++)
        if (strcmp(label[i], "all") == 0 || strcmp(label[i], "none") == 0)
            pl_problem_add(problems, pl_node_get(step->node, "labels"),
                           "prepare.labels: \"%s\" cannot be combined with other names", label[i]);
    if (c->retry_cpu_limit < c->cpu_limit)
        pl_problem_add(problems, step->node,
                       "prepare.conformers: retry_cpu_limit is below cpu_limit; the second attempt "
                       "must have more time");
    if (c->force_field == CH_FF_MMFF94S && c->builder == CH_OPENBABEL)
        pl_problem_add(problems, pl_node_get(pl_node_get(step->node, "conformers"), "force_field"),
                       "prepare.conformers: only the native builder has mmff94s; set builder to native or force_field to mmff94");
    if (ch_worker_open(&w, NULL, &err) != PL_OK)
        pl_problem_add(problems, step->node, "prepare: %s", err.text);
    ch_worker_close(w);
    if (c->device == ST_DEVICE_CUDA && c->builder == CH_OPENBABEL && st_prepare_builds(c))
        pl_problem_add(problems, pl_node_get(pl_node_get(step->node, "conformers"), "device"),
                       "prepare.conformers: only the native builder has `device: cuda`; set builder to native");
    if (pl_node_get(pl_node_get(step->node, "conformers"), "dielectric") != NULL && c->builder == CH_OPENBABEL &&
        st_prepare_builds(c))
        pl_problem_add(problems, pl_node_get(pl_node_get(step->node, "conformers"), "dielectric"),
                       "prepare.conformers: only the native builder has `dielectric`; set builder to native");
    if (st_prepare_on_gpu(c))
        st_device_check(step, problems);
    st_columns_check(wf, step, problems);
    st_label_scan_others(wf, problems);
    check_keep(step, problems);
    check_alerts(step, problems);
}

static void hash_rules(const char *text, char hash[65])
{
    pl_sha256 sha;

    pl_sha256_start(&sha);
    pl_sha256_add_str(&sha, text);
    pl_sha256_hex(&sha, hash);
}

/* ,"alerts":"hash of the rules": only what the library is given, without comments and the file's name. "" without rules. */
static pl_code alerts_json(const pl_step *step, const char **out, pl_arena *mem, pl_error *err)
{
    pl_problems problems = { .mem = mem };
    st_alerts alerts;
    char hash[65];

    *out = "";
    st_alerts_read(&alerts, step, &problems, mem);
    if (problems.n != 0)
        return pl_fail(err, pl_problems_code(&problems), "%s", problems.n > 0 ? problems.list[0].text : "out of memory");
    if (alerts.text == NULL)
        return PL_OK;
    hash_rules(alerts.text, hash);
    *out = pl_sprintf(mem, ",\"alerts\":\"%s\"", hash);
    return *out ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the key of prepare");
}

/* ,"descriptors":"fsp3": those after version 1, which a run before them has not. "" without any. */
static const char *descriptors_json(pl_arena *mem)
{
    const char *names = "";

    for (int i = 0; i < CH_N_DESCRIPTORS && names != NULL; i++)
        if (ch_descriptors[i].since > 1)
            names = pl_sprintf(mem, "%s%s%s", names, names[0] ? " " : "", ch_descriptors[i].name);
    return names == NULL || names[0] == '\0' ? names : pl_sprintf(mem, ",\"descriptors\":\"%s\"", names);
}

/* Built structures depend on the seed, everything on the library. */
static pl_code key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                   pl_error *err)
{
    const st_prepare_conf *c = step->conf;
    ch_worker *w = NULL;
    ch_worker_info info;
    const char *alerts = "", *descriptors = descriptors_json(mem), *version = "";
    const char *columns = st_names_json(&c->columns, ST_COLUMNS, mem), *times = st_names_json(&c->times, ST_TIMES, mem);
    char seed[128] = "";
    const char *groups = c->ph >= 0 ? ",\"groups\":\"" CH_GROUPS_VERSION "\"" : "";
    pl_code code = ch_worker_open(&w, NULL, err);

    (void)store;
    if (code == PL_OK)
        code = ch_worker_version(w, &info, err);
    ch_worker_close(w);
    if (code == PL_OK)
        code = alerts_json(step, &alerts, mem, err);
    if (code != PL_OK)
        return code;
    if (c->builder == CH_NATIVE)
        version = c->structures > 1 ? ",\"structures\":\"" ST_NATIVE_VERSION ST_ENSEMBLE_VERSION "\""
                                    : ",\"structures\":\"" ST_NATIVE_VERSION "\"";
    if (st_prepare_builds(c))
        (void)snprintf(seed, sizeof seed, ",\"seed\":%lld%s%s", (long long)wf->seed, version,
                       st_prepare_on_gpu(c) ? ",\"device\":\"cuda\"" : "");
    *extra_json = descriptors == NULL || columns == NULL || times == NULL
                      ? NULL
                      : pl_sprintf(mem, "{\"library\":\"%s\",\"protocol\":\"%s\"%s%s%s%s%s%s}", info.openbabel, CH_ANSWERS_VERSION,
                                   seed, alerts, groups, descriptors, columns, times);
    return *extra_json ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the key of prepare");
}

/* By the size of the sampled molecules and the speed of this machine; 3D records keep their structure unless all are built. */
static double seconds_a_record(const st_prepare_conf *c, const st_sizes *sizes, pl_arena *mem)
{
    const st_cost cost = st_cost_get(c, mem);
    const double atoms = sizes->n > 0 ? sizes->atoms / sizes->n : 45, flat = c->conformer == CH_3D_AUTO ? sizes->flat : 1;
    const double read = st_cost_seconds(&cost, atoms, 0);

    return st_prepare_builds(c) ? read + flat * (st_cost_seconds(&cost, atoms, (double)c->structures) - read) : read;
}

static pl_code estimate(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem, pl_error *err)
{
    const st_prepare_conf *c = step->conf;
    st_sizes sizes;
    int64_t n = 0;
    /* While records are still being read their number is not final. */
    pl_code code = store != NULL ? pl_db_int(store->db, &n, err,
                                             "SELECT (SELECT count(*) FROM record) WHERE EXISTS(SELECT 1 FROM "
                                             "stage WHERE name='read' AND state='done')")
                                 : PL_OK;

    if (code == PL_OK)
        code = st_sizes_get(&sizes, wf, NULL, err);
    if (code != PL_OK)
        return code;
    if (n > 0)
        sizes.n_records = (double)n;
    out->guessed = n == 0;
    out->n_items = (int64_t)sizes.n_records;
    out->n_units = -1;
    out->bytes_results = 660.0 * sizes.n_records;
    out->bytes_features = (st_prepare_builds(c) ? 1900.0 * st_structures_a_molecule(wf) : 900.0) *
                          sizes.n_records; /* blocks, and the cache of structures */
    out->seconds = sizes.n_records > 0 ? sizes.n_records * seconds_a_record(c, &sizes, mem) : 0;
    out->note = c->skips ? "no 3D structures: no stage needs them (conformers.source: auto makes them)" : NULL;
    return PL_OK;
}

/* Where positions are computed: built structures, hydrogens that the input lacks. */
static const char *level(const pl_step *step, pl_arena *mem)
{
    const st_prepare_conf *c = step->conf;
    const ch_kernels *kernels = st_prepare_builds(c) && c->builder == CH_NATIVE ? ch_kernels_choose() : NULL;
    const char *machine = c->conformer == CH_3D_NONE ? "" : st_machine_level(mem);

    if (machine == NULL || kernels == NULL)
        return machine;
    return pl_sprintf(mem, "%s, structures %s", machine,
                      st_prepare_on_gpu(c) ? st_device_level(kernels->name, mem) : kernels->name);
}

static const char level_advice[] =
    "the same molecule may get another structure (positions that differ by a tenth of an Angstrom were seen); run "
    "all shards on one kind of machine and one C library (docs/RELIABILITY.md)";

/* ---- the run ---- */

/* The key already holds the version; the run's row shows it to users. */
static pl_code note_library(const pl_env *env, pl_error *err)
{
    return pl_db_execf(env->store->db, err, "UPDATE run SET openbabel_version=json_extract(%Q,'$.\"library\"') WHERE run_id=%lld",
                       env->step->extra_json, (long long)env->run_id);
}

static void read_conf(prepare_state *s)
{
    const st_prepare_conf *c = s->env->step->conf;

    s->opts = st_prepare_opts(c, s->env->seed);
    s->device = st_prepare_on_gpu(c);
    s->budget = st_prepare_budget(c, s->env->stop);
}

static pl_code open_native(prepare_state *s, pl_error *err)
{
    const st_prepare_conf *c = s->env->step->conf;

    return st_native_find(&s->native, &s->opts, c->retry_cpu_limit, s->env->mem, err);
}

/* Built structures do not depend on alerts and descriptors, nor, for a given SMILES, on the pH; they do depend on the kind of machine. */
static pl_code open_structures(prepare_state *s, pl_error *err)
{
    json_t *extra = json_loads(s->env->step->extra_json, 0, NULL);
    const char *machine = level(s->env->step, s->env->mem);
    char *library;
    pl_code code;

    (void)json_object_set_new(extra, "machine", json_string(machine != NULL ? machine : ""));
    (void)json_object_del(extra, "alerts");
    (void)json_object_del(extra, "groups");
    (void)json_object_del(extra, "descriptors");
    (void)json_object_del(extra, "columns");
    library = json_dumps(extra, JSON_SORT_KEYS | JSON_COMPACT);
    json_decref(extra);
    code = library != NULL ? st_structures_open(&s->structures, s->env->store, library, &s->opts, &s->budget, err)
                           : pl_fail(err, PL_ENOMEM, "no memory for structures");
    free(library);
    return code;
}

/* The rules, which are read again, are those of the key. */
static pl_code open_alerts(prepare_state *s, pl_error *err)
{
    pl_problems problems = { .mem = s->env->mem };
    st_alerts alerts;
    char hash[65] = "";

    st_alerts_read(&alerts, s->env->step, &problems, s->env->mem);
    s->opts.rules = alerts.text;
    if (alerts.text != NULL)
        hash_rules(alerts.text, hash);
    if (problems.n == 0 && strstr(s->env->step->extra_json, hash) != NULL &&
        (alerts.text != NULL) == (strstr(s->env->step->extra_json, "\"alerts\"") != NULL))
        return PL_OK;
    if (pl_problems_code(&problems) == PL_ENOMEM)
        return pl_fail(err, PL_ENOMEM, "alerts");
    return pl_fail(err, PL_EINPUT,
                   "alerts: the rules were changed since the run began; run again when no program writes to their file");
}

static pl_code open_stage(void *state, pl_env *env, pl_error *err)
{
    prepare_state *s = state;
    pl_code code;

    s->env = env;
    read_conf(s);
    code = open_alerts(s, err);
    if (code == PL_OK)
        code = st_blocks_open(&s->records, env, "read", "record", err);
    if (code == PL_OK)
        code = note_library(env, err);
    if (code == PL_OK && s->opts.builder == CH_NATIVE)
        code = open_native(s, err);
    if (code == PL_OK)
        code = open_structures(s, err);
    return code == PL_OK ? st_molecules_open(&s->molecules, env, err) : code;
}

static void close_stage(void *state)
{
    prepare_state *s = state;
    st_molecules_close(s->molecules);
}

static pl_code next(void *state, pl_unit *unit, bool *more, pl_error *err)
{
    prepare_state *s = state;
    st_prepared_unit *u = PL_NEW(unit->mem, st_prepared_unit, 1);
    pl_code code = st_blocks_has(&s->records, unit->index, more, err);

    if (code != PL_OK || !*more)
        return code;
    if (u == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a unit of records");
    code = st_blocks_get(&s->records, unit->index, &u->block, unit->mem, err);
    unit->data = u;
    return code;
}

static pl_code worker_open(void *worker, void *state, pl_error *err)
{
    prepare_worker *w = worker;
    const st_prepare_conf *c = ((const prepare_state *)state)->env->step->conf;
    pl_code code;

    w->state = state;
    code = c->keep != NULL ? st_prefilter_open(&w->keep, c->keep, NULL, err) : PL_OK;
    if (code == PL_OK && w->state->device)
        code = ch_device_open(&w->device, st_device_number(w->state->env->wf), err);
    w->scratch = pl_arena_new(1 << 16);
    if (w->scratch == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory for structures");
    return code == PL_OK ? ch_worker_open(&w->chem, &w->state->budget, err) : code;
}

static void worker_close(void *worker)
{
    prepare_worker *w = worker;
    st_prefilter_close(w->keep);
    ch_device_close(w->device);
    pl_arena_free(w->scratch);
    ch_worker_close(w->chem);
}

static pl_code find_structure(void *ctx, const char *built_from, bool *found, ch_prepared *out, pl_arena *mem, pl_error *err)
{
    const prepare_worker *w = ctx;
    return st_structure_find(&w->state->structures, built_from, found, out, mem, err);
}

/* Other errors of a condition, such as an overflow, end the run: they are in the condition. */
static bool is_pattern(const pl_error *err) { return err != NULL && strncmp(err->text, "keep: smarts: ", 14) == 0; }

static pl_code fail_judged(ch_prepared *p, pl_error *err, pl_arena *mem)
{
    p->code = strstr(err->text, "timeout") != NULL ? CH_TIMEOUT : CH_CRASH;
    p->message = pl_strdup(mem, err->text);
    return p->message != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a reason");
}

static pl_code judge(void *ctx, ch_prepared *p, pl_arena *mem, pl_error *err)
{
    const prepare_worker *w = ctx;
    const st_prepare_conf *c = w->state->env->step->conf;

    bool keep = true;
    pl_code code = w->keep != NULL ? st_prefilter_ask(w->keep, p, &keep, err) : PL_OK;

    if (code == PL_EINPUT && is_pattern(err)) /* it takes too long for this molecule, or kills the worker */
        return fail_judged(p, err, mem);
    if (code != PL_OK || (keep && (c->alert_action != ST_ALERT_FILTER || p->alerts[0] == '\0')))
        return code;
    p->set_aside = keep ? pl_sprintf(mem, ST_ALERTS_REASON "%s", p->alerts) : pl_sprintf(mem, "not (%s)", c->keep);
    return p->set_aside != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a reason");
}

static pl_code build(void *ctx, const ch_to_build *all, int32_t n, pl_arena *mem, pl_error *err)
{
    const prepare_worker *w = ctx;
    return st_native_build(&w->state->native, w->device, all, n, mem, w->scratch, err);
}

/* Records without a number in a column that a model reads fail before the worker sees them. */
static pl_code prepare_all(prepare_worker *w, st_prepared_unit *u, pl_arena *mem, pl_error *err)
{
    const st_prepare_conf *c = w->state->env->step->conf;
    const ch_known known = { w, find_structure, judge, build };
    ch_input *in = PL_NEW(mem, ch_input, u->n + 1);
    ch_prepared *result = PL_NEW(mem, ch_prepared, u->n + 1);
    int32_t *at = PL_NEW(mem, int32_t, u->n + 1), n = 0;
    pl_code code;

    if (in == NULL || result == NULL || at == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d molecules", (int)u->n);
    for (int32_t i = 0; i < u->n; i++) {
        const st_record *r = &u->record[i];
        const char *missing = st_columns_missing(r, &c->columns);
        if (missing == NULL) {
            at[n] = i;
            in[n++] = (ch_input){ .text = r->text, .format = r->format, .len = r->len };
            continue;
        }
        u->result[i] = (ch_prepared){ .code = CH_RECORD, .message = pl_sprintf(mem, ST_COLUMN_MISSING, missing), .attempts = 1 };
        if (u->result[i].message == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for a reason");
    }
    code = ch_worker_prepare_all(w->chem, in, n, &w->state->opts, &known, result, mem, err);
    if (code != PL_OK)
        return code;
    for (int32_t k = 0; k < n; k++)
        u->result[at[k]] = result[k];
    return PL_OK;
}

static pl_code work(void *worker, pl_unit *unit, pl_error *err)
{
    prepare_worker *w = worker;
    st_prepared_unit *u = unit->data;
    st_record *record;
    pl_code code = pl_block_check(&u->block, err);

    if (code == PL_OK)
        code = st_records_unpack(&record, &u->n, u->block.data, unit->mem, err);
    if (code != PL_OK)
        return code;
    u->record = record;
    u->result = PL_NEW(unit->mem, ch_prepared, u->n + 1);
    code = u->result != NULL ? prepare_all(w, u, unit->mem, err) : pl_fail(err, PL_ENOMEM, "no memory for %d molecules", (int)u->n);
    return code == PL_OK ? st_prints_make(&u->print, u->result, u->n, unit->mem, w->scratch, err) : code;
}

static pl_code commit(void *state, pl_unit *unit, pl_error *err)
{
    prepare_state *s = state;
    const st_prepared_unit *u = unit->data;
    pl_code code = st_molecules_put(s->molecules, unit, err);

    for (int32_t i = 0; i < u->n && code == PL_OK; i++)
        code = st_structure_keep(&s->structures, &u->result[i], err);
    return code;
}

/* Hydrogens that records with positions lack: ligands without hydrogens, or wrong bond orders. */
static void say_hydrogens(prepare_state *s)
{
    const st_structures *t = &s->structures;
    const char *built = s->opts.conformer == CH_3D_KEEP ? "" : "; structures were built in place of these positions";
    char some[160] = "";

    if (t->n_lacking == 0 || (s->opts.conformer != CH_3D_KEEP && s->opts.conformer != CH_3D_AUTO))
        return;
    if (t->n_partly > 0)
        (void)snprintf(some, sizeof some,
                       "; records of these with other hydrogens: %lld (if a record has all, its bond orders or charges are wrong)",
                       (long long)t->n_partly);
    pl_event_add(s->env, t->n_partly > 0 ? PL_WARN : PL_INFO,
                 "records with 3D positions that lack hydrogens: %lld%s; hydrogens added: %lld%s", (long long)t->n_lacking, built,
                 (long long)t->n_added, some);
}

/* Counts of this run; structures built before a stop are counted in the earlier run. */
static void say_structures(prepare_state *s)
{
    const st_structures *t = &s->structures;

    if (t->n_lost > 0)
        pl_event_add(s->env, PL_WARN,
                     "%lld %s stereo that is not kept, such as that of an allene: built structures have "
                     "either form, and undefined_stereo counts it",
                     (long long)t->n_lost, pl_plural(t->n_lost, "record defines", "records define"));
    if (st_molecules_twists(s->molecules) > 0)
        pl_event_add(s->env, PL_WARN,
                     "%lld records are duplicates with a biaryl that cannot turn: neither InChIKey nor SMILES tells its two "
                     "forms (atropisomers) apart, and the molecule has that of its first record",
                     (long long)st_molecules_twists(s->molecules));
    say_hydrogens(s);
    if (t->n_built + t->n_known > 0)
        pl_event_add(s->env, PL_INFO, "%lld structures built, %lld from the cache", (long long)t->n_built, (long long)t->n_known);
}

static pl_code finish(void *state, pl_error *err)
{
    prepare_state *s = state;
    int64_t waiting = 0, any = 0;
    pl_code code = pl_db_int(s->env->store->db, &waiting, err, "SELECT count(*) FROM record WHERE status='read'");

    if (waiting != 0)
        return pl_fail(err, PL_EBUG, "%lld records were not accounted for", (long long)waiting);
    if (code == PL_OK)
        code = pl_db_int(s->env->store->db, &any, err, "SELECT EXISTS(SELECT 1 FROM molecule)");
    if (code == PL_OK && s->env->n_shards == 0)
        code = st_prepare_library_end(s->env, any != 0, err);
    if (code == PL_OK)
        say_structures(s);
    return code;
}

/* Written out for ensembles only, so that keys of single structures in vacuum stay as they were. */
static void settle_dielectric(st_prepare_conf *c, double dflt)
{
    if (!st_prepare_builds(c) || c->builder != CH_NATIVE || (c->structures == 1 && st_prepare_dielectric(c) == 1))
        c->dielectric = dflt;
    else
        c->dielectric = st_prepare_dielectric(c);
}

/* Sets settings without effect to their defaults: the alert action without rules, the number of structures if none is built. */
static void settle(const pl_workflow *wf, void *conf)
{
    st_prepare_conf *c = conf, dflt;

    pl_fields_default(st_prepare_fields, &dflt);
    st_names_of(&c->columns, wf, ST_COLUMNS);
    st_names_of(&c->times, wf, ST_TIMES);
    c->skips = st_structures_skipped(wf);
    if (c->skips)
        c->conformer = CH_3D_NONE;
    if (!st_prepare_builds(c)) {
        c->structures = dflt.structures;
        c->builder = dflt.builder;
    }
    if (c->force_field == CH_FF_UFF)
        c->builder = CH_OPENBABEL;

    if (c->structures == 1)
        c->window = dflt.window;
    settle_dielectric(c, dflt.dielectric);
    if (!st_alerts_wanted(c))
        c->alert_action = ST_ALERT_FLAG;
}

static const char *const needs[] = { "read", NULL };

static const char *const reset_sql[] = {
    "DELETE FROM hit",
    "DELETE FROM score",
    "DELETE FROM prediction",
    "DELETE FROM evaluated",
    "DELETE FROM split",
    "DELETE FROM label",
    ("UPDATE record SET mol_id=NULL, reason=NULL, status='read' WHERE status<>'failed' OR record_id IN "
     "(SELECT record_id FROM failure WHERE stage='prepare' AND record_id IS NOT NULL)"),
    "DELETE FROM fingerprint",
    "DELETE FROM molecule",
    "DELETE FROM property WHERE property_id NOT IN (SELECT property_id FROM evaluation)",
    "DELETE FROM failure WHERE stage='prepare'",
    NULL,
};

const pl_stage st_prepare = {
    .name = "prepare",
    .help = "turn records into molecules: structure, identity, descriptors",
    .scope = PL_PER_UNIT,
    .version = 18,
    .fields = st_prepare_fields,
    .conf_size = sizeof(st_prepare_conf),
    .state_size = sizeof(prepare_state),
    .worker_size = sizeof(prepare_worker),
    .needs = needs,
    .item = "records",
    .settle = settle,
    .check = check,
    .key = key,
    .estimate = estimate,
    .open = open_stage,
    .next = next,
    .worker_open = worker_open,
    .work = work,
    .worker_close = worker_close,
    .commit = commit,
    .finish = finish,
    .close = close_stage,
    .reset_sql = reset_sql,
    .level = level,
    .level_advice = level_advice,
};
