/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/limits.h"
#include "stages/steps/ingest/prepare.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/codec.h"
#include "chem/molecule/valence.h"
#include "pipeline/base/log.h"
#include "pipeline/store/sums.h"
#include "pipeline/workflow/workflow.h"
#include "stages/database/descriptor_columns.h"
#include "stages/steps/ingest/alerts.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/qm9_units.h"
#include "stages/steps/ingest/shells.h"

typedef struct property {
    const char *name;
    int64_t id; /* 0: not wanted */
} property;

struct st_molecules {
    pl_env *env;
    const st_prepare_conf *conf;
    sqlite3_stmt *find, *put, *put_print, *set_record, *get_label, *put_label, *put_property;
    sqlite3_stmt *put_measurement; /* of a shard */
    bool alerts;                   /* have been looked for */
    int64_t n_twists;              /* duplicates with a form that no key has */
    property *known;               /* data fields seen in this run */
    size_t n_known, cap_known;
};

enum { FIRST_DESCRIPTOR = 20, FIRST_COLUMN = 3 }; /* of the parameters of `put` and `find` */

static const struct {
    size_t at;
    const char *sql;
} statements[] = {
    { offsetof(st_molecules, put),
      "INSERT INTO molecule(mol_id, inchikey, smiles, formula, n_atoms, n_heavy, charge, removed, "
      "geometry, energy, unit, neutralised, alerts, structures, undefined_stereo, built_by, steps, converged, "
      "fallback" ST_DESCRIPTOR_NAMES ") "
      "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?" ST_DESCRIPTOR_MARKS ")" },
    { offsetof(st_molecules, put_print), "INSERT INTO fingerprint(mol_id, scaffold, bits) VALUES(?,?,?)" },
    { offsetof(st_molecules, set_record), "UPDATE record SET status=?, mol_id=?, reason=? WHERE record_id=?" },
    { offsetof(st_molecules, get_label), "SELECT value, n_measurements, spread FROM label WHERE mol_id=? AND property_id=?" },
    { offsetof(st_molecules, put_label), "INSERT OR REPLACE INTO label(mol_id, property_id, value, n_measurements, spread) "
                                         "VALUES(?,?,?,?,?)" },
    { offsetof(st_molecules, put_property),
      "INSERT INTO property(name, unit, task, better, description) VALUES(?,?,?,?,?) "
      /* what a model predicts as a class (stages/steps/train/model_row.h) stays one: of stages in one pass either may come first */
      "ON CONFLICT(name) DO UPDATE SET task=iif(task='classification',task,excluded.task), description=excluded.description" },
};

/* A shard keeps every single value: duplicates in other shards make other means (stages/merge/merge.h). */
static const char measurement_sql[] = "CREATE TABLE IF NOT EXISTS measurement(record_id INTEGER NOT NULL, property_id INTEGER "
                                      "NOT NULL, value REAL NOT NULL, PRIMARY KEY(record_id, property_id)) WITHOUT ROWID";

/* All ways use the index on inchikey; molecules without one are told apart by SMILES. They find one row at most: two that are the same
 * would have been one. What a key does not know: shells.h. A part of a key: those that begin with it come before it with a letter behind
 * that no key has. */
static const char *find_sql(const st_prepare_conf *conf, pl_arena *mem)
{
    const int n = st_dedupe_letters(conf->dedupe);
    const char *columns = st_columns_where(&conf->columns, FIRST_COLUMN, mem), *same;

    if (columns == NULL)
        return NULL;
    if (conf->dedupe == ST_DEDUPE_EXACT)
        return pl_sprintf(mem, "SELECT mol_id, smiles FROM molecule WHERE inchikey=?1 AND smiles=?2%s", columns);
    same = pl_sprintf(mem, "CASE ?1 WHEN '' THEN smiles=?2 ELSE free_valences(smiles)=free_valences(?2)%s END%s",
                      conf->dedupe == ST_DEDUPE_SKELETON ? "" : " AND axes(smiles)=axes(?2)", columns);
    if (same == NULL)
        return NULL;
    if (n == 27)
        return pl_sprintf(mem, "SELECT mol_id, smiles FROM molecule WHERE inchikey=?1 AND %s", same);
    return pl_sprintf(
        mem,
        "SELECT mol_id, smiles FROM molecule WHERE inchikey>=substr(?1,1,%d) AND inchikey<=CASE ?1 WHEN '' THEN '' ELSE "
        "substr(?1,1,%d)||'~' END AND %s",
        n, n, same);
}

/* Of a shard: `merge` takes the labels from them. */
static pl_code measurements_open(st_molecules *m, pl_store *store, pl_error *err)
{
    pl_code code = pl_db_exec(store->db, measurement_sql, err);

    if (code == PL_OK)
        code = pl_sums_add(store->sums, "measurement", err);
    return code == PL_OK ? pl_db_prepare(store->db, &m->put_measurement, "INSERT OR REPLACE INTO measurement VALUES(?,?,?)", err)
                         : code;
}

pl_code st_molecules_open(st_molecules **out, pl_env *env, pl_error *err)
{
    st_molecules *m = calloc(1, sizeof *m);
    const char *find;
    pl_code code;

    if (m == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to store molecules");
    *out = m;
    m->env = env;
    m->conf = env->step->conf;
    m->alerts = st_alerts_wanted(m->conf);
    find = find_sql(m->conf, env->mem);
    code = find != NULL ? st_shells_open(env->store->db, err) : pl_fail(err, PL_ENOMEM, "no memory to store molecules");
    if (code == PL_OK)
        code = pl_db_prepare(env->store->db, &m->find, find, err);
    for (size_t i = 0; i < sizeof statements / sizeof statements[0] && code == PL_OK; i++)
        code = pl_db_prepare(env->store->db, (sqlite3_stmt **)(void *)((char *)m + statements[i].at), statements[i].sql, err);
    return code == PL_OK && env->n_shards > 0 ? measurements_open(m, env->store, err) : code;
}

void st_molecules_close(st_molecules *m)
{
    if (m == NULL)
        return;
    (void)sqlite3_finalize(m->find);
    (void)sqlite3_finalize(m->put_measurement);
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        (void)sqlite3_finalize(*(sqlite3_stmt **)(void *)((char *)m + statements[i].at));
    free(m->known);
    free(m);
}

static void bind_text(sqlite3_stmt *st, int i, const char *text)
{
    (void)sqlite3_bind_text(st, i, text != NULL ? text : "", -1, SQLITE_STATIC);
}

static void bind_real(sqlite3_stmt *st, int i, double x)
{
    if (isfinite(x))
        (void)sqlite3_bind_double(st, i, x);
}

/* ---- properties and labels ---- */

bool st_label_wanted(const st_prepare_conf *c, const char *name)
{
    const char *const *label = c->labels.items;

    if (c->labels.n == 0 || (c->labels.n == 1 && strcmp(label[0], "all") == 0) || pl_names_find(&c->columns, name) >= 0)
        return true;
    for (int32_t i = 0; i < c->labels.n; i++)
        if (strcmp(label[i], name) == 0)
            return true;
    return false;
}

void st_label_check(const pl_workflow *wf, const pl_step *step, const char *label, pl_problems *problems)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");

    if (prepare != NULL && !st_label_wanted(prepare->conf, label) && !st_label_comes_later(wf, label))
        pl_problem_add(problems, step->node, "stages.%s: the label %s is not among stages.prepare.labels; add it there",
                       step->stage->name, label);
}

const char *st_labels_stored(pl_store *s, pl_arena *mem)
{
    static const char sql[] = "SELECT group_concat(name,', ') FROM (SELECT name FROM property WHERE property_id IN "
                              "(SELECT property_id FROM label) ORDER BY name LIMIT 40)";
    sqlite3_stmt *st = NULL;
    const char *names = NULL;
    bool row = false;

    if (pl_db_prepare(s->db, &st, sql, NULL) == PL_OK && pl_db_step(st, &row, NULL) == PL_OK && row)
        names = pl_strdup(mem, sqlite3_column_text(st, 0) != NULL ? (const char *)sqlite3_column_text(st, 0) : "none");
    (void)sqlite3_finalize(st);
    return names != NULL ? names : "";
}

/* Records of QM9's files, SDF and XYZ. A table of the same names may have other units. */
static bool is_qm9(const st_record *r)
{
    const char *comment = strchr(r->text, '\n');

    if (strcmp(r->format, "xyz") == 0)
        return comment != NULL && strncmp(comment, "\ngdb", 4) == 0;
    for (int32_t i = 0; i < r->n_fields && strcmp(r->format, "sdf") == 0; i++)
        if (strcmp(r->field[i].name, "gdb_index") == 0)
            return true;
    return false;
}

static const st_property *said(const st_prepare_conf *c, const char *name)
{
    const st_property *p = c->properties.items;

    for (int32_t i = 0; i < c->properties.n; i++)
        if (strcmp(p[i].name, name) == 0)
            return &p[i];
    return NULL;
}

/* A score stage of the same run may have named its property before the first label
 * came: *id is what it has taken, or 0. The outcome is that of labels that came first:
 * a model of the same unit shares the property, one of another unit has its own name. */
static pl_code make_room(st_molecules *m, const char *name, const char *unit, int64_t *id, pl_error *err)
{
    sqlite3 *db = m->env->store->db;
    int64_t other = 0;
    pl_code code = pl_db_int(db, &other, err,
                             "SELECT property_id FROM property p WHERE name=%Q AND unit<>%Q AND NOT "
                             "EXISTS(SELECT 1 FROM label WHERE property_id=p.property_id)",
                             name, unit);

    if (other != 0 && unit[0] != '\0')
        code = pl_db_execf(db, err,
                           "UPDATE property SET name=name||' ('||coalesce(nullif(unit,''),'model')||')' WHERE property_id=%lld;"
                           "UPDATE property SET name=%Q WHERE name='%q (%q)'",
                           (long long)other, name, name, unit);
    return code == PL_OK ? pl_db_int(db, id, err, "SELECT property_id FROM property WHERE name=%Q", name) : code;
}

/* The label whose settings hold for a data field: of "pIC50 at least" pIC50, where limits are read. */
static pl_code label_of(const char **out, const st_molecules *m, const char *name, pl_error *err)
{
    const size_t n = st_limits_wanted(m->env->wf) ? st_limit_label(name) : 0;

    *out = n > 0 ? pl_strndup(m->env->mem, name, n) : name;
    return *out != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a data field");
}

static pl_code store_property(st_molecules *m, const char *name, const char *label, const st_record *r, int64_t *id, pl_error *err)
{
    static const char *const tasks[] = { "regression", "classification" };
    static const char *const ends[] = { "none", "low", "high" };
    const st_property *p = said(m->conf, label);
    const char *unit = is_qm9(r) ? st_qm9_unit(name) : NULL;
    pl_code code;

    if (p != NULL && p->unit != NULL && p->unit[0] != '\0')
        unit = p->unit;
    if (unit == NULL)
        unit = "";
    code = make_room(m, name, unit, id, err);
    if (code != PL_OK)
        return code;
    bind_text(m->put_property, 1, name);
    bind_text(m->put_property, 2, unit);
    bind_text(m->put_property, 3, tasks[p != NULL ? p->task : 0]);
    bind_text(m->put_property, 4, ends[p != NULL ? p->better : 0]);
    if (p != NULL && p->description != NULL)
        bind_text(m->put_property, 5, p->description);
    code = pl_db_run(m->put_property, err);
    if (*id == 0)
        *id = sqlite3_last_insert_rowid(m->env->store->db);
    return code;
}

/* The id of a data field's property; 0: the field is no label. */
static pl_code property_id(st_molecules *m, const char *name, const st_record *r, int64_t *id, pl_error *err)
{
    property *grown;
    const char *label;
    pl_code code;

    for (size_t i = 0; i < m->n_known; i++)
        if (strcmp(m->known[i].name, name) == 0) {
            *id = m->known[i].id;
            return PL_OK;
        }
    *id = 0;
    code = label_of(&label, m, name, err);
    if (code == PL_OK && st_label_wanted(m->conf, label))
        code = store_property(m, name, label, r, id, err);
    if (code != PL_OK)
        return code;
    if (m->n_known == m->cap_known) {
        m->cap_known = m->cap_known ? 2 * m->cap_known : 64;
        grown = realloc(m->known, m->cap_known * sizeof *grown);
        if (grown == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for %zu data fields", m->cap_known);
        m->known = grown;
    }
    name = pl_strdup(m->env->mem, name);
    if (name == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a data field");
    m->known[m->n_known++] = (property){ name, *id };
    return PL_OK;
}

int st_label_conflict(const st_prepare_conf *c, const char *name)
{
    return pl_names_find(&c->times, name) >= 0 ? ST_CONFLICT_LAST : c->on_conflict;
}

/* Welford 1962; in the order of the records, so always the same bits. Values too far apart for their difference
 * (1.8e308 means "none" to some programs) have a mean, and the largest spread there is. */
void st_label_add(st_label *l, double x, int conflict)
{
    double m2 = l->spread * l->spread * (double)(l->n - 1), d = x - l->value, n = (double)(l->n + 1);

    if (l->n++ == 0) {
        *l = (st_label){ x, 0, 1 };
        return;
    }
    if (conflict == ST_CONFLICT_MEAN)
        l->value = isfinite(d) ? l->value + d / n : l->value / n * (n - 1) + x / n;
    m2 += d * (conflict == ST_CONFLICT_MEAN ? x - l->value : d);
    if (conflict == ST_CONFLICT_LAST)
        l->value = fmax(l->value, x);
    l->spread = fmin(sqrt(m2 / (n - 1)), DBL_MAX);
}

static pl_code store_label(st_molecules *m, int64_t mol_id, int64_t prop, double x, int conflict, pl_error *err)
{
    st_label l = { 0 };
    bool row = false;
    pl_code code;

    (void)sqlite3_bind_int64(m->get_label, 1, mol_id);
    (void)sqlite3_bind_int64(m->get_label, 2, prop);
    code = pl_db_step(m->get_label, &row, err);
    if (row) {
        l.value = sqlite3_column_double(m->get_label, 0);
        l.n = sqlite3_column_int64(m->get_label, 1);
        l.spread = sqlite3_column_double(m->get_label, 2);
    }
    st_label_add(&l, x, conflict);
    (void)sqlite3_reset(m->get_label);
    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_int64(m->put_label, 1, mol_id);
    (void)sqlite3_bind_int64(m->put_label, 2, prop);
    bind_real(m->put_label, 3, l.value);
    (void)sqlite3_bind_int64(m->put_label, 4, l.n);
    bind_real(m->put_label, 5, l.spread);
    return pl_db_run(m->put_label, err);
}

static pl_code store_measurement(st_molecules *m, int64_t record_id, int64_t prop, double x, pl_error *err)
{
    if (m->put_measurement == NULL)
        return PL_OK;
    (void)sqlite3_bind_int64(m->put_measurement, 1, record_id);
    (void)sqlite3_bind_int64(m->put_measurement, 2, prop);
    bind_real(m->put_measurement, 3, x);
    return pl_db_run(m->put_measurement, err);
}

/* Of one record, as the label of its molecule. */
static pl_code store_value(st_molecules *m, int64_t mol_id, int64_t record_id, int64_t prop, const st_field *field, pl_error *err)
{
    pl_code code = store_label(m, mol_id, prop, field->value, st_label_conflict(m->conf, field->name), err);

    return code == PL_OK ? store_measurement(m, record_id, prop, field->value, err) : code;
}

static pl_code store_labels(st_molecules *m, int64_t mol_id, const st_record *r, pl_error *err)
{
    const st_prepare_conf *c = m->conf;
    pl_code code = PL_OK;

    if (c->labels.n == 1 && strcmp(*(const char *const *)c->labels.items, "none") == 0 && c->columns.n == 0)
        return PL_OK;
    for (int32_t i = 0; i < r->n_fields && code == PL_OK; i++) {
        int64_t id;
        code = property_id(m, r->field[i].name, r, &id, err);
        if (code == PL_OK && id != 0)
            code = store_value(m, mol_id, r->id, id, &r->field[i], err);
    }
    return code;
}

/* ---- molecules and records ---- */

/* *drawn: if the molecule is there with another SMILES, how the record draws it (ST_DRAWN_REASON); else NULL. */
static pl_code find_molecule(st_molecules *m, const st_record *r, const ch_prepared *p, int64_t *mol_id, const char **drawn,
                             pl_arena *mem, pl_error *err)
{
    bool row = false, differs = false;
    pl_code code;

    *mol_id = 0;
    *drawn = NULL;
    if (m->conf->dedupe == ST_DEDUPE_NONE)
        return PL_OK;
    bind_text(m->find, 1, p->inchikey);
    bind_text(m->find, 2, p->smiles);
    for (int k = 0; k < m->conf->columns.n; k++)
        bind_real(m->find, FIRST_COLUMN + k, *st_columns_value(r, m->conf->columns.name[k]));
    code = pl_db_step(m->find, &row, err);
    if (row) {
        *mol_id = sqlite3_column_int64(m->find, 0);
        differs = strcmp((const char *)sqlite3_column_text(m->find, 1), p->smiles) != 0;
    }
    (void)sqlite3_reset(m->find);
    if (differs)
        *drawn = pl_sprintf(mem, ST_DRAWN_REASON "%s", p->smiles);
    return differs && *drawn == NULL ? pl_fail(err, PL_ENOMEM, "no memory for a reason") : code;
}

static pl_code store_molecule(st_molecules *m, int64_t id, const ch_prepared *p, int64_t unit, pl_error *err)
{
    sqlite3_stmt *st = m->put;

    (void)sqlite3_bind_int64(st, 1, id);
    bind_text(st, 2, p->inchikey);
    bind_text(st, 3, p->smiles);
    bind_text(st, 4, p->formula);
    (void)sqlite3_bind_int(st, 5, p->mol.n_atoms);
    (void)sqlite3_bind_int(st, 6, p->n_heavy);
    (void)sqlite3_bind_int(st, 7, p->charge);
    if (p->removed != NULL && p->removed[0] != '\0')
        bind_text(st, 8, p->removed);
    bind_text(st, 9, p->geometry);
    bind_real(st, 10, p->energy);
    (void)sqlite3_bind_int64(st, 11, unit);
    if (p->n_neutralised > 0)
        (void)sqlite3_bind_int(st, 12, p->charge_read);
    if (m->alerts)
        bind_text(st, 13, p->alerts);
    if (p->mol.xyz != NULL)
        (void)sqlite3_bind_int(st, 14, 1 + p->n_other);
    (void)sqlite3_bind_int(st, 15, p->undefined_stereo);
    if (p->built_by != NULL)
        bind_text(st, 16, p->built_by);
    if (p->built_by != NULL && p->steps >= 0) {
        (void)sqlite3_bind_int(st, 17, p->steps);
        (void)sqlite3_bind_int(st, 18, p->converged);
    }
    if (p->fallback != NULL)
        bind_text(st, 19, p->fallback);
    st_descriptors_bind(st, FIRST_DESCRIPTOR, p->descriptor);
    return pl_db_run(st, err);
}

static pl_code store_print(st_molecules *m, int64_t id, const st_print *print, pl_error *err)
{
    (void)sqlite3_bind_int64(m->put_print, 1, id);
    bind_text(m->put_print, 2, print->scaffold);
    (void)sqlite3_bind_blob(m->put_print, 3, print->bits, sizeof print->bits, SQLITE_STATIC);
    return pl_db_run(m->put_print, err);
}

static pl_code store_fresh(st_molecules *m, int64_t id, const ch_prepared *p, const st_print *print, int64_t unit, pl_error *err)
{
    pl_code code = store_molecule(m, id, p, unit, err);

    return code == PL_OK ? store_print(m, id, print, err) : code;
}

static pl_code set_record(st_molecules *m, int64_t id, const char *status, int64_t mol_id, const char *reason, pl_error *err)
{
    bind_text(m->set_record, 1, status);
    if (mol_id != 0)
        (void)sqlite3_bind_int64(m->set_record, 2, mol_id);
    if (reason != NULL)
        bind_text(m->set_record, 3, reason);
    (void)sqlite3_bind_int64(m->set_record, 4, id);
    return pl_db_run(m->set_record, err);
}

static pl_code store_failed(st_molecules *m, int64_t id, const ch_prepared *p, pl_error *err)
{
    pl_failure f = { .record_id = id,
                     .code = ch_status_name(p->code),
                     .message = p->message,
                     .signal = p->signal,
                     .attempt = p->attempts,
                     .cpu_s = p->cpu_s };
    pl_code code = set_record(m, id, "failed", 0, NULL, err);
    return code == PL_OK ? pl_failure_add(m->env, &f, err) : code;
}

/* Whether the record gives the form of a biaryl that cannot turn, which neither InChIKey nor SMILES has. (Those of cumulenes have marks.) */
static pl_code has_twist(bool *out, const ch_prepared *p, pl_error *err)
{
    bool cumulene = false;
    pl_code code = PL_OK;

    *out = p->built_from != NULL && strstr(p->built_from, " x") != NULL;
    if (*out)
        code = ch_smiles_marks_axis(&cumulene, p->smiles, err);
    *out = *out && !cumulene;
    return code;
}

int64_t st_molecules_twists(const st_molecules *m) { return m->n_twists; }

/* Record i of the unit. *fresh: it made a new molecule. */
static pl_code store_good(st_molecules *m, int32_t i, pl_unit *unit, bool *fresh, pl_error *err)
{
    const st_prepared_unit *u = unit->data;
    const st_record *r = &u->record[i];
    const ch_prepared *p = &u->result[i];
    int64_t mol_id;
    const char *drawn;
    bool twist = false;
    pl_code code = find_molecule(m, r, p, &mol_id, &drawn, unit->mem, err);

    *fresh = mol_id == 0;
    if (code != PL_OK)
        return code;
    if (*fresh) {
        mol_id = r->id;
        code = store_fresh(m, mol_id, p, &u->print[i], unit->index, err);
    } else {
        code = has_twist(&twist, p, err);
    }
    m->n_twists += twist;
    if (code == PL_OK)
        code = set_record(m, r->id, *fresh ? "ok" : "duplicate", mol_id, drawn, err);
    return code == PL_OK ? store_labels(m, mol_id, r, err) : code;
}

/* Room for all structures of a unit. */
static ch_block_item *items_new(const st_prepared_unit *u, pl_arena *mem)
{
    int64_t n = u->n;

    for (int32_t i = 0; i < u->n; i++)
        n += u->result[i].n_other;
    return PL_NEW(mem, ch_block_item, n + 1);
}

pl_code st_molecules_put(st_molecules *m, pl_unit *unit, pl_error *err)
{
    const st_prepared_unit *u = unit->data;
    ch_block_item *item = items_new(u, unit->mem);
    pl_bytes block;
    int32_t n = 0;
    pl_code code = item != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a block of conformers");

    for (int32_t i = 0; i < u->n && code == PL_OK; i++) {
        const ch_prepared *p = &u->result[i];
        bool fresh = false;
        if (p->code != CH_OK)
            code = store_failed(m, u->record[i].id, p, err);
        else if (p->set_aside != NULL)
            code = set_record(m, u->record[i].id, "filtered", 0, p->set_aside, err);
        else
            code = store_good(m, i, unit, &fresh, err);
        if (fresh)
            item[n++] = (ch_block_item){ u->record[i].id, p->mol };
        for (int32_t k = 0; fresh && k < p->n_other; k++)
            item[n++] = (ch_block_item){ u->record[i].id, p->other[k] };
        unit->n_ok += p->code == CH_OK;
        unit->n_failed += p->code != CH_OK;
    }
    unit->first = u->n ? u->record[0].id : 0;
    unit->last = u->n ? u->record[u->n - 1].id : 0;
    if (code == PL_OK)
        code = ch_block_pack(&block, item, n, unit->mem, err);
    if (code == PL_OK)
        code = pl_block_put(m->env->store, "conformer", m->env->step->key, unit->index, n ? item[0].id : 0, n, block, err);
    return code;
}

pl_code st_drawings_text(pl_store *s, char text[256], pl_error *err)
{
    int64_t n = 0;
    pl_code code =
        pl_db_int(s->db, &n, err, "SELECT count(DISTINCT mol_id) FROM record WHERE status='duplicate' AND reason IS NOT NULL");

    text[0] = '\0';
    if (n > 0)
        (void)snprintf(
            text, 256,
            "molecules given in more than one drawing (such as tautomers): %lld; each is scored as in its first record; see "
            "SELECT title, mol_id, reason FROM record WHERE reason LIKE '" ST_DRAWN_REASON "%%'",
            (long long)n);
    return code;
}

pl_code st_drawings_warn(pl_env *env, pl_error *err)
{
    char text[256], axes[256] = "";
    pl_code code = st_drawings_text(env->store, text, err);

    if (text[0] != '\0')
        pl_event_add(env, PL_WARN, "%s", text);
    if (code == PL_OK)
        code = st_axes_text(env->store, axes, err);
    if (axes[0] != '\0')
        pl_event_add(env, PL_WARN, "%s", axes);
    return code;
}
