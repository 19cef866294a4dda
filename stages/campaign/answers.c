/* SPDX-License-Identifier: Apache-2.0 */
/* The values of the molecules of a round: from a table, or from the results of another workflow. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/records/record.h"
#include "chem/records/relation.h"
#include "pipeline/base/file.h"
#include "pipeline/base/stop.h"
#include "pipeline/base/text.h"
#include "pipeline/run/run.h"
#include "stages/campaign/campaign.h"
#include "stages/database/measured.h"
#include "stages/database/schema.h"
#include "stages/labels/stated.h"
#include "stages/labels/whose.h"
#include "stages/steps/ingest/label_scan.h"
#include "stages/steps/ingest/placeholder.h"

enum { SHOWN = 60 };

/* ---- what was chosen ---- */

pl_code st_campaign_chosen(st_outcome_row **out, int64_t *n, pl_store *s, int64_t round, int64_t most, pl_arena *mem, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(
        s->db, &st,
        "SELECT a.inchikey, coalesce(nullif(r.raw_smiles,''),m.smiles), a.place, min(m.mol_id) FROM acquired a JOIN molecule m ON "
        "m.inchikey=a.inchikey OR (m.inchikey='' AND m.smiles=a.inchikey) LEFT JOIN record r ON r.record_id=m.mol_id "
        "WHERE a.round=? AND a.outcome IS NULL GROUP BY a.place ORDER BY a.place LIMIT ?",
        err);

    *n = 0;
    *out = PL_NEW(mem, st_outcome_row, most + 1);
    if (*out == NULL)
        code = pl_fail(err, PL_ENOMEM, "a round");
    (void)sqlite3_bind_int64(st, 1, round);
    (void)sqlite3_bind_int64(st, 2, most);
    while (pl_db_next(st, &code, err)) {
        st_outcome_row *o = &(*out)[(*n)++];
        *o = (st_outcome_row){ .inchikey = pl_strdup(mem, (const char *)sqlite3_column_text(st, 0)),
                               .smiles = pl_strdup(mem, (const char *)sqlite3_column_text(st, 1)),
                               .place = sqlite3_column_int64(st, 2) };
        if (o->inchikey == NULL || o->smiles == NULL)
            code = pl_fail(err, PL_ENOMEM, "a round");
    }
    (void)sqlite3_finalize(st);
    return code;
}

/* A row has the source of its values, or why it has none. */
static pl_code row_check(const st_outcome_row *o, pl_error *err)
{
    const char *said = o->n > 0 ? o->source : o->why;

    return said != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "an answer");
}

/* ---- names of the chosen molecules ---- */

/* The title of one molecule may be the SMILES of another. */
typedef enum name_kind { INCHIKEY, SMILES, TITLE } name_kind;

typedef struct name {
    name_kind kind;
    const char *text;
    int64_t at;
} name;

/* Sorted by kind and text when all are there. */
typedef struct names {
    name *all; /* [n] */
    int64_t n, cap;
} names;

static int compare(const void *a, const void *b)
{
    const name *p = a, *q = b;

    return p->kind != q->kind ? (int)p->kind - (int)q->kind : strcmp(p->text, q->text);
}

static int64_t find(const names *x, name_kind kind, const char *text)
{
    const name key = { kind, text, 0 }, *found = text[0] != '\0' ? bsearch(&key, x->all, (size_t)x->n, sizeof key, compare) : NULL;

    return found != NULL ? found->at : -1;
}

static pl_code name_add(names *x, name_kind kind, const char *text, int64_t at, pl_arena *mem, pl_error *err)
{
    const char *own = pl_strdup(mem, text);

    if (x->n == x->cap) {
        const int64_t cap = x->cap > 0 ? 2 * x->cap : 256;
        name *grown = realloc(x->all, (size_t)cap * sizeof *grown);
        if (grown == NULL)
            return pl_fail(err, PL_ENOMEM, "names of molecules");
        x->all = grown;
        x->cap = cap;
    }
    if (own == NULL)
        return pl_fail(err, PL_ENOMEM, "names of molecules");
    x->all[x->n++] = (name){ kind, own, at };
    return PL_OK;
}

/* Those of all records of the molecule, and of them together. st: a row for each record, its two SMILES and its title. */
static pl_code names_add(names *x, sqlite3_stmt *st, const char *inchikey, int64_t at, pl_arena *mem, pl_error *err)
{
    pl_code code = name_add(x, INCHIKEY, inchikey, at, mem, err);

    (void)sqlite3_bind_text(st, 1, inchikey, -1, SQLITE_STATIC);
    while (pl_db_next(st, &code, err))
        for (int k = 0; k < 3 && code == PL_OK; k++)
            if (sqlite3_column_type(st, k) != SQLITE_NULL)
                code = name_add(x, k < 2 ? SMILES : TITLE, (const char *)sqlite3_column_text(st, k), at, mem, err);
    (void)sqlite3_reset(st);
    return code;
}

/* Titles that several molecules of the library have name none of them. */
static pl_code names_of(names *out, const st_campaign *x, pl_store *s, const st_outcome_row *row, int64_t n, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_exec(s->db,
                              "CREATE TEMP TABLE IF NOT EXISTS shared_titles AS SELECT title FROM record WHERE mol_id IS NOT NULL "
                              "AND title<>'' GROUP BY title HAVING count(DISTINCT mol_id)>1",
                              err);

    if (code == PL_OK)
        code = pl_db_prepare(s->db, &st,
                             "SELECT nullif(r.raw_smiles,''), m.smiles, CASE WHEN r.title NOT IN (SELECT title FROM "
                             "temp.shared_titles) THEN nullif(r.title,'') END FROM molecule m JOIN record r ON r.mol_id=m.mol_id "
                             "WHERE m.inchikey=?1 OR (m.inchikey='' AND m.smiles=?1) "
                             "UNION ALL SELECT NULL, NULL, " ST_TITLES " FROM molecule m WHERE m.inchikey=?1 AND "
                             "(SELECT count(nullif(title,'')) FROM record r WHERE r.mol_id=m.mol_id)>1",
                             err);
    for (int64_t i = 0; i < n && code == PL_OK; i++)
        code = names_add(out, st, row[i].inchikey, i, x->mem, err);
    (void)sqlite3_finalize(st);
    if (out->n > 0)
        qsort(out->all, (size_t)out->n, sizeof *out->all, compare);
    return code;
}

/* ---- a table ---- */

typedef struct table {
    const st_campaign *x;
    ch_reader *reader;
    const char *column;
    st_outcome_row *row; /* of the chosen molecules */
    names names;         /* of these                */
    st_whose *whose;
    bool has_smiles;
    ch_units units; /* of the values */
    st_placeholders numbers;
} table;

static pl_code take(const table *t, st_outcome_row *o, const ch_field *f, int64_t line, pl_error *err)
{
    if (f != NULL && f->is_number && isfinite(f->value)) {
        o->sum += f->value;
        if (o->n++ == 0)
            o->source = pl_sprintf(t->x->mem, "%s:%lld", t->x->c->answers.table, (long long)line);
    } else if (o->why == NULL && f != NULL && f->text[0] != '\0')
        o->why = pl_sprintf(t->x->mem, "no number: '%.*s'", SHOWN, f->text);
    else if (o->why == NULL)
        o->why = "no value";
    return row_check(o, err);
}

/* Values that are there may be in another unit, or of another kind. */
static pl_code units_check(const table *t, pl_error *err)
{
    const st_stated *was = t->x->stated;
    char what[CH_RELATION_BYTES];
    int64_t line = was != NULL ? st_stated_unit_say(what, was, &t->units, t->x->label) : 0;

    if (line == 0 && was != NULL)
        line = st_stated_type_say(what, was, &t->units, t->x->label);
    return line == 0 ? PL_OK : pl_fail(err, PL_EINPUT, "%s:%lld: %s", t->x->c->answers.table, (long long)line, what);
}

/* No relation beside the value may be meant for it, and its unit is that of the others and of the target. */
static pl_code take_measured(table *t, st_outcome_row *o, const ch_field *field, int n, int64_t line, pl_error *err)
{
    const ch_field *f = ch_field_find(field, n, t->column);
    const ch_field *relation = f != NULL && f->is_number ? ch_relation_unclear(field, n, f) : NULL;
    char what[CH_RELATION_BYTES];

    if (relation != NULL) {
        ch_relation_say(what, relation, f->name);
        return pl_fail(err, PL_EINPUT, "%s:%lld: %s", t->x->c->answers.table, (long long)line, what);
    }
    if (f != NULL && f->text[0] != '\0' && !t->x->is_class)
        (void)ch_units_add(&t->units, field, n, f, line);
    if (units_check(t, err) != PL_OK)
        return PL_EINPUT;
    if (ch_units_say(what, &t->units, t->column, t->x->unit) != NULL)
        return pl_fail(err, PL_EINPUT, "%s:%s", t->x->c->answers.table, what);
    return take(t, o, f, line, err);
}

/* The chosen molecule that a name of the row has, -1: none. */
static int64_t named(const ch_record *r, const ch_field *field, int n_fields, const names *all)
{
    const ch_field *key = ch_field_find(field, n_fields, "inchikey");
    int64_t at = key != NULL ? find(all, INCHIKEY, key->text) : -1;
    char smiles[1024];
    const size_t len = strcspn(r->text, "\t\n");

    if (at < 0)
        at = find(all, TITLE, r->title);
    if (at < 0)
        at = find(all, INCHIKEY, r->title);
    if (at < 0 && len < sizeof smiles) {
        memcpy(smiles, r->text, len);
        smiles[len] = '\0';
        at = find(all, SMILES, smiles);
    }
    return at;
}

/* A table with numbers of its own for its molecules may have those of the library: all names of the row must mean one molecule. */
static pl_code row_take(table *t, const ch_record *r, const ch_field *field, int n, st_outcome_row *o, pl_error *err)
{
    const bool misread = r->problem != NULL && !r->no_smiles;
    const char *problem = NULL;
    st_found found;
    pl_code code;

    if (misread && o->why == NULL)
        o->why = pl_sprintf(t->x->mem, "line %lld of the table: %s", (long long)r->line, r->problem);
    if (misread)
        return row_check(o, err);
    code = st_whose_find(&found, &problem, t->whose, r, field, n, t->has_smiles, err);
    if (code == PL_OK && found.two)
        return pl_fail(err, PL_EINPUT, "%s:%lld: %s; if the table numbers its rows, call that column something else than %s",
                       t->x->c->answers.table, (long long)r->line, problem, "id or name");
    return code == PL_OK ? take_measured(t, o, field, n, r->line, err) : code;
}

/* Of all rows, also those of molecules that were not chosen. */
static void number_add(table *t, const ch_field *f, int64_t line)
{
    if (f != NULL && f->is_number && !t->x->is_class)
        st_placeholders_add(&t->numbers, f->value, line);
}

/* What only the whole table shows: that it ends too early, and numbers that stand for none. */
static pl_code look_at_whole(const table *t, pl_error *err)
{
    const char *damage = ch_reader_damage(t->reader);
    char what[ST_PLACEHOLDER_BYTES];
    const int64_t line = st_placeholders_say(what, &t->numbers, t->column);

    if (damage != NULL)
        return pl_fail(err, PL_EINPUT, "%s: %s", t->x->c->answers.table, damage);
    return line == 0 ? PL_OK : pl_fail(err, PL_EINPUT, "%s:%lld: %s", t->x->c->answers.table, (long long)line, what);
}

static pl_code records_read(table *t, pl_error *err)
{
    pl_arena *scratch = pl_arena_new(1 << 14);
    bool more = true;
    pl_code code = scratch != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a table");

    while (code == PL_OK && !*pl_stop_flag()) {
        ch_record record;
        ch_field *field = NULL;
        int n = 0;
        int64_t at;
        code = ch_reader_next(t->reader, &record, &more, err);
        if (code != PL_OK || !more)
            break;
        pl_arena_reset(scratch);
        code = ch_record_measured(&field, &n, t->reader, &record, scratch, err);
        if (code == PL_OK)
            number_add(t, ch_field_find(field, n, t->column), record.line);
        at = code == PL_OK ? named(&record, field, n, &t->names) : -1;
        if (at >= 0)
            code = row_take(t, &record, field, n, &t->row[at], err);
    }
    pl_arena_free(scratch);
    return code == PL_OK && *pl_stop_flag() ? pl_fail(err, PL_ESTOP, "stopped by %s", pl_stop_reason()) : code;
}

static pl_code table_open(table *t, pl_store *s, int64_t n, pl_error *err)
{
    const ch_reader_opts opts = { .stop = pl_stop_flag(), .smiles_later = true };
    int n_columns = 0;
    pl_code code = names_of(&t->names, t->x, s, t->row, n, err);

    if (code == PL_OK)
        code = st_whose_open(&t->whose, s, t->x->mem, err);
    if (code == PL_OK)
        code = ch_reader_open(&t->reader, t->x->c->answers.table, NULL, &opts, err);
    if (code != PL_OK)
        return code;
    (void)ch_reader_columns(t->reader, &n_columns);
    t->has_smiles = n_columns == 0 || (ch_reader_smiles(t->reader) >= 0 && ch_reader_guessed(t->reader) == NULL);
    return PL_OK;
}

/* The rows of the chosen molecules, and behind them those of the molecules whose values are stored. */
static pl_code table_read(ch_units *said, const st_campaign *x, pl_store *s, st_outcome_row *row, int64_t n, pl_error *err)
{
    table t = { .x = x, .row = row, .column = x->c->answers.column != NULL ? x->c->answers.column : x->label };
    pl_code code = table_open(&t, s, n, err);

    if (code == PL_OK)
        code = records_read(&t, err);
    if (code == PL_OK)
        code = look_at_whole(&t, err);
    *said = t.units;
    ch_reader_close(t.reader);
    st_whose_close(t.whose);
    free(t.names.all);
    return code;
}

pl_code st_answers_of_table(ch_units *said, const st_campaign *x, pl_store *s, st_outcome_row *row, int64_t n, pl_error *err)
{
    st_outcome_row *before = NULL, *all = NULL;
    int64_t n_before = 0;
    pl_code code = st_before_read(&before, &n_before, x, s, NULL, err);

    if (code == PL_OK && (all = PL_NEW(x->mem, st_outcome_row, n + n_before + 1)) == NULL)
        code = pl_fail(err, PL_ENOMEM, "answers");
    if (code != PL_OK)
        return code;
    for (int64_t i = 0; i < n + n_before; i++)
        all[i] = i < n ? row[i] : before[i - n];
    code = table_read(said, x, s, all, n + n_before, err);
    if (code == PL_OK)
        code = st_before_compare(x, all + n, n_before, err);
    for (int64_t i = 0; i < n && code == PL_OK; i++) {
        row[i] = all[i];
        if (row[i].n == 0 && row[i].why == NULL)
            row[i].why = "not in the table of answers";
    }
    return code;
}

/* ---- the results of another workflow ---- */

/* The rest of a round has a folder of its own: its beginning keeps its results. */
static const char *folder_of(const st_campaign *x, int64_t round, int64_t place)
{
    const char *whole = pl_sprintf(x->mem, "%s/rounds/%04lld", x->wf->workdir, (long long)round);

    return whole != NULL && place > 1 ? pl_sprintf(x->mem, "%s-%lld", whole, (long long)place) : whole;
}

static pl_code batch_write(const char *folder, const st_outcome_row *row, int64_t n, pl_arena *mem, pl_error *err)
{
    const char *path = pl_sprintf(mem, "%s/batch.smi", folder);
    pl_text text = { 0 };
    pl_code code = path != NULL ? pl_mkdirs(folder, err) : pl_fail(err, PL_ENOMEM, "a path");

    for (int64_t i = 0; i < n && code == PL_OK; i++)
        pl_text_addf(&text, "%s\t%s\n", row[i].smiles, row[i].inchikey);
    if (code == PL_OK)
        code = pl_text_ok(&text) ? pl_file_write(path, (pl_bytes){ text.s, text.len }, err) : pl_fail(err, PL_ENOMEM, "a batch");
    pl_text_free(&text);
    return code;
}

pl_code st_campaign_batch(const char **folder, const st_campaign *x, int64_t round, int64_t n, pl_error *err)
{
    pl_store *s = NULL;
    st_outcome_row *row = NULL;
    pl_code code = pl_store_open_read(&s, x->wf->storage.results, x->schema, err);

    *folder = NULL;
    if (code == PL_OK)
        code = st_campaign_chosen(&row, &n, s, round, n, x->mem, err);
    pl_store_close(s);
    if (code != PL_OK)
        return code;
    *folder = folder_of(x, round, n > 0 ? row[0].place : 1);
    return *folder != NULL ? batch_write(*folder, row, n, x->mem, err) : pl_fail(err, PL_ENOMEM, "a path");
}

/* Whether the property that was scored can be what is learned. */
static pl_code property_check(const st_campaign *x, const char *scored, const char *unit, const char *better, pl_error *err)
{
    const char *wanted = x->better != NULL ? x->better : "none";

    if (unit[0] != '\0' && x->unit[0] != '\0' && strcmp(unit, x->unit) != 0)
        return pl_fail(err, PL_ECONFIG, "%s scores %s in %s, and %s is learned in %s; set answers.unit, or the unit of the target",
                       x->c->answers.workflow, scored, unit, x->label, x->unit);
    if (x->c->goal == ST_GOAL_AUTO && strcmp(better, "none") != 0 && strcmp(wanted, "none") != 0 && strcmp(better, wanted) != 0)
        return pl_fail(err, PL_ECONFIG,
                       "%s says that %s values of %s are better, and the target %s that %s ones are; set better of the target, or "
                       "acquire.goal",
                       x->c->answers.workflow, better, scored, x->label, wanted);
    return PL_OK;
}

/* Which property it scores: the one that is named, else the only one. */
static pl_code property_of(int64_t *id, const st_campaign *x, pl_store *from, pl_error *err)
{
    const char *asked = x->c->answers.property;
    sqlite3_stmt *st = NULL;
    bool row;
    pl_code code = pl_db_prepare(from->db, &st,
                                 "SELECT property_id, unit, name, count(*) OVER (), better FROM property p WHERE (?1 IS NULL OR "
                                 "name=?1) AND EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id)",
                                 err);

    *id = 0;
    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, asked, -1, SQLITE_STATIC);
    row = pl_db_next(st, &code, err);
    if (row && sqlite3_column_int(st, 3) > 1)
        code = pl_fail(err, PL_ECONFIG, "%s scores several properties; name one with answers.property", x->c->answers.workflow);
    else if (row) {
        *id = sqlite3_column_int64(st, 0);
        code = property_check(x, (const char *)sqlite3_column_text(st, 2), (const char *)sqlite3_column_text(st, 1),
                              (const char *)sqlite3_column_text(st, 4), err);
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code result_read(const st_campaign *x, pl_store *from, int64_t property, sqlite3_stmt *get, st_outcome_row *o,
                           pl_error *err)
{
    bool found = false;
    pl_code code;

    (void)sqlite3_bind_text(get, 1, o->inchikey, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(get, 2, property);
    code = pl_db_step(get, &found, err);
    if (found && sqlite3_column_type(get, 0) != SQLITE_NULL) {
        o->n = 1;
        o->sum = sqlite3_column_double(get, 0);
        o->source = pl_strdup(x->mem, from->results_path);
    } else if (found && sqlite3_column_type(get, 1) != SQLITE_NULL)
        o->why = pl_sprintf(x->mem, "failed: %.200s", (const char *)sqlite3_column_text(get, 1));
    else
        o->why = "no value";
    (void)sqlite3_reset(get);
    return code == PL_OK ? row_check(o, err) : code;
}

pl_code st_answers_of_results(const st_campaign *x, const char *folder, st_outcome_row *row, int64_t n, pl_error *err)
{
    static const char sql[] =
        "SELECT (SELECT s.mean FROM score s WHERE s.mol_id=r.mol_id AND s.property_id=?2), (SELECT f.code||': '||f.message FROM failure f "
        "WHERE f.record_id=r.record_id OR f.mol_id=r.mol_id ORDER BY failure_id LIMIT 1) FROM record r WHERE r.title=?1 ORDER BY record_id LIMIT 1";
    const char *path = pl_sprintf(x->mem, "%s/results.db", folder);
    pl_store *from = NULL;
    sqlite3_stmt *get = NULL;
    int64_t property = 0;
    pl_code code = path != NULL ? pl_store_open_read(&from, path, x->schema, err) : pl_fail(err, PL_ENOMEM, "a path");

    if (code == PL_OK)
        code = property_of(&property, x, from, err);
    if (code == PL_OK)
        code = pl_db_prepare(from->db, &get, sql, err);
    for (int64_t i = 0; i < n && code == PL_OK; i++)
        code = result_read(x, from, property, get, &row[i], err);
    (void)sqlite3_finalize(get);
    pl_store_close(from);
    return code;
}

/* A number that a program prints where it has none: among those of the round and of the rounds before it. */
static pl_code results_check(const st_campaign *x, pl_store *s, const char *folder, const st_outcome_row *row, int64_t n,
                             pl_error *err)
{
    st_outcome_row *before = NULL;
    int64_t n_before = 0;
    st_placeholders numbers = { 0 };
    char what[ST_PLACEHOLDER_BYTES];
    pl_code code = st_before_read(&before, &n_before, x, s, NULL, err);

    if (code != PL_OK || x->is_class)
        return code;
    for (int64_t i = 0; i < n; i++)
        if (row[i].n > 0)
            st_placeholders_add(&numbers, row[i].sum / (double)row[i].n, 1);
    for (int64_t i = 0; i < n_before; i++)
        st_placeholders_add(&numbers, before[i].stored, 1);
    if (st_placeholders_say(what, &numbers, x->label) == 0)
        return PL_OK;
    return pl_fail(err, PL_EINPUT, "%s/results.db: %s: the program prints no number for such a molecule", folder, what);
}

/* ---- the end of a round ---- */

typedef struct answering {
    int64_t round, n;
    const char *folder;
    ch_units said; /* by the table of answers */
} answering;

static pl_code row_store(const st_campaign *x, pl_store *s, int64_t round, st_outcome_row *o, pl_error *err)
{
    const double value = o->n > 0 ? o->sum / (double)o->n : 0;
    pl_code code = PL_OK;

    if (o->n > 0 && x->is_class && value != 0 && value != 1) {
        o->why = "its values disagree, or are not 0 and 1";
        o->n = 0;
    }
    if (o->n > 0)
        code = st_measured_put(s, &(st_measured){ x->label, x->unit, o->inchikey, o->source, value, x->is_class, round }, err);
    return code != PL_OK ? code
                         : pl_db_execf(s->db, err, "UPDATE acquired SET outcome=%Q WHERE round=%lld AND inchikey=%Q",
                                       o->n > 0 ? "measured" : o->why, (long long)round, o->inchikey);
}

static pl_code rows_store(const st_campaign *x, pl_store *s, const answering *a, st_outcome_row *row, int64_t n, pl_error *err)
{
    pl_code code = pl_db_begin(s->db, err);

    for (int64_t i = 0; i < n && code == PL_OK; i++)
        code = row_store(x, s, a->round, &row[i], err);
    if (code == PL_OK)
        code = st_stated_store(s, x->label, a->folder == NULL ? x->c->answers.table : "", &a->said, err);
    if (code == PL_OK)
        code = st_measured_apply(s, err);
    if (code == PL_OK) /* until a training says so, too: the report names the best */
        code = pl_db_execf(s->db, err, "UPDATE property SET better=%Q WHERE name=%Q AND better='none'", x->low ? "low" : "high",
                           x->label);
    pl_fault("campaign", "answers.before_commit");
    if (code == PL_OK)
        code = pl_db_commit(s->db, err);
    pl_db_rollback(s->db);
    pl_fault("campaign", "answers.after_commit");
    return code;
}

/* The values that are there say the unit where neither the target nor `answers` does; otherwise they must not contradict it. */
static pl_code stated_look(st_campaign *x, st_stated *was, pl_store *s, pl_error *err)
{
    const char *unit = was->units.unit.first;
    pl_code code = x->is_class ? PL_OK : st_stated_read(was, s, x->label, x->mem, err);

    x->stated = was;
    if (code == PL_OK && ch_unit_differs(unit, x->unit, was->units.unit.name, x->label))
        code = pl_fail(err, PL_EINPUT,
                       "%s is in %s by %s, and its answers are said to be in %s; set answers.unit, or the unit of the target",
                       x->label, unit, was->unit_at, x->unit);
    if (code == PL_OK && x->unit[0] == '\0' && !ch_is_logarithm(x->label))
        x->unit = unit;
    return code;
}

static pl_code answer_work(const st_campaign *given, pl_store *s, void *ctx, pl_error *err)
{
    st_campaign knowing = *given, *x = &knowing;
    answering *a = ctx;
    st_stated was = { 0 };
    st_outcome_row *row = NULL;
    int64_t n = 0, values = 0;
    pl_code code = st_campaign_chosen(&row, &n, s, a->round, a->n, x->mem, err);

    if (code == PL_OK)
        code = stated_look(x, &was, s, err);
    if (code == PL_OK && a->folder != NULL)
        code = st_answers_of_results(x, a->folder, row, n, err);
    else if (code == PL_OK)
        code = st_answers_of_table(&a->said, x, s, row, n, err);
    if (code == PL_OK && a->folder != NULL)
        code = results_check(x, s, a->folder, row, n, err);
    if (code != PL_OK)
        return code;
    for (int64_t i = 0; i < n; i++)
        values += row[i].n > 0;
    if (values == 0)
        return pl_fail(err, PL_EINPUT, "round %lld: none of its %lld molecules has an answer; the first: %s", (long long)a->round,
                       (long long)n, n > 0 && row[0].why != NULL ? row[0].why : "nothing was chosen");
    return rows_store(given, s, a, row, n, err);
}

pl_code st_campaign_answer(const st_campaign *x, int64_t round, int64_t n, const char *folder, pl_error *err)
{
    answering a = { .round = round, .n = n, .folder = folder };

    return st_campaign_locked(x, answer_work, &a, err);
}
