/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/labels/label_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/records/relation.h"
#include "pipeline/base/stop.h"
#include "stages/database/measured.h"
#include "stages/labels/stated.h"
#include "stages/labels/whose.h"
#include "stages/steps/ingest/label_scan.h"
#include "stages/steps/ingest/limits.h"
#include "stages/steps/ingest/placeholder.h"

enum { PROBLEMS_MAX = 100, SHOWN = 60, NAMES_MAX = 1024 };

typedef struct reading {
    st_label_file *out;
    const st_label_ask *ask;
    pl_store *store;
    pl_arena *mem;
    st_whose *whose;
    bool has_smiles, bounds; /* bounds: limits are labels, read: {censored: bound} */
    const char *names[NAMES_MAX];
    int n_names;              /* columns */
    st_stated was;            /* of the values that are there */
    const char *has, *has_by; /* the unit of the property, and " by lib.csv:2"; "": not known */
    const char *want;         /* the unit of the values; "": any */
    st_placeholders numbers;
    sqlite3_stmt *get_measured, *get_label;
} reading;

static void __attribute__((format(printf, 3, 4))) problem(reading *x, int64_t line, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (x->out->n_problems++ < PROBLEMS_MAX)
        pl_text_addf(&x->out->problems, "%s:%lld: %s\n", x->out->path, (long long)line, text);
}

/* ---- which property, which column ---- */

/* IC50 before ic50, if a table has both. */
static const char *column_named(const reading *x, const char *name)
{
    for (int k = 0; k < x->n_names; k++)
        if (strcmp(x->names[k], name) == 0)
            return x->names[k];
    for (int k = 0; k < x->n_names; k++)
        if (strcasecmp(x->names[k], name) == 0)
            return x->names[k];
    return NULL;
}

/* Of IC50 and ic50 the one that is written so; if none is, both. */
static int columns_named(const reading *x, const char *name)
{
    int exact = 0, any = 0;

    for (int k = 0; k < x->n_names; k++) {
        exact += strcmp(x->names[k], name) == 0;
        any += strcasecmp(x->names[k], name) == 0;
    }
    return exact > 0 ? exact : any;
}

static const char *joined(const char *const *names, int n, pl_arena *mem)
{
    const char *all = "";

    for (int k = 0; k < n && all != NULL; k++)
        all = pl_sprintf(mem, "%s%s%s", all, k > 0 ? ", " : "", names[k]);
    return all != NULL ? all : "";
}

/* Properties of the database, of which limits and the predictions of another unit are none. */
static pl_code properties_read(const char **name, int *n, reading *x, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(x->store->db, &st, "SELECT name FROM property ORDER BY property_id", err);

    *n = 0;
    while (*n < NAMES_MAX && pl_db_next(st, &code, err)) {
        const char *one = pl_strdup(x->mem, (const char *)sqlite3_column_text(st, 0));
        if (one == NULL)
            code = pl_fail(err, PL_ENOMEM, "properties");
        else if (st_limit_label(one) == 0)
            name[(*n)++] = one;
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code property_guess(reading *x, const char *const *name, int n, pl_error *err)
{
    const char *found = NULL;
    int n_found = 0;

    for (int k = 0; k < n; k++)
        if (x->ask->column != NULL || column_named(x, name[k]) != NULL) {
            found = name[k];
            n_found++;
        }
    if (n_found == 1) {
        x->out->property = found;
        return PL_OK;
    }
    return pl_fail(err, PL_ECONFIG,
                   "which property do the values of %s belong to? give --property; the database has: %s; the columns are: %.300s",
                   x->out->path, n > 0 ? joined(name, n, x->mem) : "none", joined(x->names, x->n_names, x->mem));
}

static pl_code property_find(reading *x, pl_error *err)
{
    const char *name[NAMES_MAX], *near;
    int n = 0;
    pl_code code = properties_read(name, &n, x, err);

    x->out->property = x->ask->property;
    if (code == PL_OK && x->ask->property == NULL)
        code = property_guess(x, name, n, err);
    if (code != PL_OK)
        return code;
    for (int k = 0; k < n; k++)
        x->out->exists = x->out->exists || strcmp(name[k], x->out->property) == 0;
    if (x->out->exists || x->ask->make)
        return PL_OK;
    near = pl_nearest(x->out->property, name, n);
    return pl_fail(err, PL_ECONFIG, "--property %s: the database has no such property%s%s; there are: %s; --new makes one",
                   x->out->property, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                   n > 0 ? joined(name, n, x->mem) : "none");
}

static pl_code property_read(reading *x, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(x->store->db, &st, "SELECT unit, task='classification' FROM property WHERE name=?", err);

    x->out->unit = x->out->stated = "";
    x->out->is_class = x->ask->is_class;
    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, x->out->property, -1, SQLITE_STATIC);
    if (pl_db_next(st, &code, err)) {
        x->out->unit = pl_strdup(x->mem, (const char *)sqlite3_column_text(st, 0));
        x->out->is_class = sqlite3_column_int(st, 1) != 0;
    }
    (void)sqlite3_finalize(st);
    return x->out->unit == NULL ? pl_fail(err, PL_ENOMEM, "a unit") : code;
}

/* In which unit the property is: as the database says, else as the tables do that its values came from. */
static pl_code stated_read(reading *x, pl_error *err)
{
    const char *stated;
    pl_code code = x->out->is_class ? PL_OK : st_stated_read(&x->was, x->store, x->out->property, x->mem, err);

    stated = pl_strdup(x->mem, x->was.units.unit.first);
    if (stated == NULL)
        return pl_fail(err, PL_ENOMEM, "a unit");
    x->has = x->out->unit[0] == '\0' && !ch_is_logarithm(x->out->property) ? stated : x->out->unit;
    x->want = x->has[0] != '\0' ? x->has : stated;
    x->has_by = "";
    if (x->was.unit_at != NULL && !ch_units_contradict(stated, x->want))
        x->has_by = pl_sprintf(x->mem, " by %.200s", x->was.unit_at);
    if (x->ask->unit != NULL)
        x->want = x->ask->unit;
    return x->has_by == NULL ? pl_fail(err, PL_ENOMEM, "a place") : code;
}

static pl_code unit_check(const reading *x, pl_error *err)
{
    const char *given = x->ask->unit, *has = x->has, *name = x->out->property;

    if (x->out->is_class && (given != NULL || x->ask->factor != 0))
        return pl_fail(err, PL_ECONFIG, "%s is a class, which has no unit and no factor", name);
    if (!x->out->exists && given != NULL && x->ask->factor != 0)
        return pl_fail(err, PL_ECONFIG, "--factor: %s is new, so it is in the unit of its values, %s; leave --factor out", name,
                       given);
    if (!x->out->exists || given == NULL || x->ask->factor != 0 || strcmp(given, has) == 0 ||
        (has[0] != '\0' && x->out->unit[0] == '\0' && !ch_units_contradict(given, has)))
        return PL_OK;
    if (has[0] == '\0')
        return pl_fail(
            err, PL_ECONFIG,
            "--unit %s: the database does not say in which unit %s is; if it is this one leave --unit out, else give --factor",
            given, name);
    return pl_fail(err, PL_ECONFIG, "--unit %s: %s is in %s%s; give --factor X, by which a value becomes one in %s", given, name,
                   has, x->has_by, has);
}

/* Tables of `next`, `top` and `export` have the prediction under the name of the property. */
static pl_code column_find(reading *x, pl_error *err)
{
    const char *name = x->ask->column != NULL ? x->ask->column : x->out->property, *near;

    x->out->column = column_named(x, name);
    for (int k = 0; k < x->n_names && x->ask->column == NULL && x->out->column != NULL; k++)
        if (ch_is_of_prediction(x->names[k], name))
            return pl_fail(
                err, PL_ECONFIG,
                "%s: the column %s has predictions, as the column %s beside it says; write measured values into a column of "
                "their own and name it with --column",
                x->out->path, name, x->names[k]);
    if (columns_named(x, name) > 1)
        return pl_fail(err, PL_ECONFIG, "%s has %d columns called %s: which one? give them different names", x->out->path,
                       columns_named(x, name), name);
    if (x->out->column != NULL)
        return PL_OK;
    near = pl_nearest(name, x->names, x->n_names);
    return pl_fail(err, PL_ECONFIG, "%s has no column %s%s%s; there are: %.300s; --column names one", x->out->path, name,
                   near != NULL ? "; did you mean " : "", near != NULL ? near : "", joined(x->names, x->n_names, x->mem));
}

static pl_code settle(reading *x, pl_error *err)
{
    pl_code code = property_find(x, err);

    if (code == PL_OK)
        code = property_read(x, err);
    if (code == PL_OK)
        code = stated_read(x, err);
    if (code == PL_OK)
        code = unit_check(x, err);
    return code == PL_OK ? column_find(x, err) : code;
}

/* ---- rows ---- */

static int by_molecule(const void *a, const void *b)
{
    const st_label_row *x = a, *y = b;
    int c = strcmp(x->inchikey, y->inchikey);

    if (c == 0)
        c = strcmp(x->property, y->property);
    return c != 0 ? c : (x->line > y->line) - (x->line < y->line);
}

static pl_code row_add(reading *x, const st_label_row *row, pl_error *err)
{
    st_label_file *out = x->out;
    st_label_row *grown;

    if (out->n == out->cap) {
        out->cap = out->cap > 0 ? 2 * out->cap : 256;
        grown = realloc(out->row, (size_t)out->cap * sizeof *grown);
        if (grown == NULL)
            return pl_fail(err, PL_ENOMEM, "%s", out->path);
        out->row = grown;
    }
    out->row[out->n++] = *row;
    return PL_OK;
}

/* A number, or with `bounds` a limit, whose property is that of the limit. false: it gives no label, which has been counted or told. */
static bool value_read(st_label_row *row, reading *x, const ch_field *f, int64_t line)
{
    const double factor = x->ask->factor != 0 ? x->ask->factor : 1;
    st_side side = ST_AT_LEAST;

    row->property = x->out->property;
    row->value = factor * f->value;
    if (f->is_number && !isfinite(row->value))
        problem(x, line, "%s: '%.*s' is too large", x->out->column, SHOWN, f->text);
    else if (f->is_number && x->out->is_class && f->value != 0 && f->value != 1)
        problem(x, line, "%s: '%.*s': a class is 0 or 1", x->out->column, SHOWN, f->text);
    else if (f->is_number) {
        st_placeholders_add(&x->numbers, f->value, line);
        return true;
    } else if (!x->out->is_class && st_limit_read(&row->value, &side, f->text)) {
        row->value *= factor;
        side = factor < 0 ? (st_side)(ST_SIDES - 1 - side) : side;
        row->property = st_limit_name(x->out->property, side, x->mem);
        x->out->n_limits += !x->bounds;
        return x->bounds && row->property != NULL;
    } else
        problem(x, line, "%s: '%.*s' is no number%s", x->out->column, SHOWN, f->text,
                st_label_text_of(f->text) == ST_TEXT_COMMA ? "; write 1.5 for 1,5" : "");
    return false;
}

/* text: the unit as the table has it. */
static void unit_tell(reading *x, const char *text, const char *unit, int64_t line)
{
    const char *name = x->out->property;

    if (x->ask->factor == 0)
        problem(x, line, "the unit is '%.*s', and %s is in %s%s; convert it, or give --unit and --factor for a file of one unit",
                SHOWN, text, name, x->want, x->has_by);
    else if (x->ask->unit != NULL)
        problem(x, line, "the unit is '%.*s', and %s is in %s by --unit", SHOWN, text, x->out->column, x->want);
    else
        problem(x, line, "the unit is '%.*s', and %s is in %s%s; if --factor converts it, say so with --unit %s", SHOWN, text, name,
                x->want, x->has_by, unit);
}

/* Columns of units and of types beside the values. */
static bool unit_is_right(reading *x, const ch_field *field, int n, int64_t line)
{
    const ch_field *value = ch_field_find(field, n, x->out->column);
    char unit[CH_UNIT_BYTES], what[CH_RELATION_BYTES];
    const ch_field *f = ch_unit_of(unit, field, n, value);
    const bool differs = !x->out->is_class && ch_units_add(&x->out->units, field, n, value, line);

    if (!x->out->is_class && f != NULL && ch_unit_differs(unit, x->want, f->name, x->out->column))
        unit_tell(x, f == value ? unit : f->text, unit, line);
    else if (differs && ch_units_say(what, &x->out->units, x->out->column, "") != NULL)
        problem(x, line, "%s", strchr(what, ' ') + 1);
    else
        return true;
    return false;
}

/* No relation beside the value that may be meant for it. */
static bool is_measured(reading *x, const ch_field *field, int n, const ch_field *f, int64_t line)
{
    const ch_field *relation = f->is_number ? ch_relation_unclear(field, n, f) : NULL;
    char what[CH_RELATION_BYTES];

    if (relation == NULL)
        return true;
    ch_relation_say(what, relation, f->name);
    problem(x, line, "%s", what);
    return false;
}

static pl_code row_read(reading *x, const ch_record *r, const ch_field *field, int n, pl_error *err)
{
    const ch_field *f = ch_field_find(field, n, x->out->column);
    st_label_row row = { .line = r->line };
    const char *why = NULL;
    st_found found;
    pl_code code;

    x->out->n_rows++;
    if (r->problem != NULL && !r->no_smiles) {
        problem(x, r->line, "%s", r->problem);
        return PL_OK;
    }
    if (f == NULL || f->text[0] == '\0') {
        x->out->n_empty++;
        return PL_OK;
    }
    if (!is_measured(x, field, n, f, r->line) || !value_read(&row, x, f, r->line) || !unit_is_right(x, field, n, r->line))
        return PL_OK;
    code = st_whose_find(&found, &why, x->whose, r, field, n, x->has_smiles, err);
    if (code != PL_OK)
        return code;
    if (why != NULL) {
        problem(x, r->line, "%s", why);
        return PL_OK;
    }
    row.inchikey = found.inchikey;
    row.mol_id = found.mol_id;
    return row_add(x, &row, err);
}

/* ---- against each other, and against what is stored ---- */

static void look_for_placeholders(reading *x)
{
    char what[ST_PLACEHOLDER_BYTES];
    const int64_t line = st_placeholders_say(what, &x->numbers, x->out->column);

    if (!x->out->is_class && line > 0)
        problem(x, line, "%s", what);
}

/* The values that are there may be of another kind. A unit that only tables state is kept by st_stated_store, and the property has none, as
 * if the library had stated it: else a model of no unit would score under a name of its own. */
static void judge_units(reading *x)
{
    char what[CH_RELATION_BYTES];
    st_label_file *out = x->out;
    const bool none_known = x->has[0] == '\0' && x->ask->factor == 0;
    const int64_t line = st_stated_type_say(what, &x->was, &out->units, out->property);

    if (line > 0)
        problem(x, line, "%s", what);
    if (out->is_class)
        return;
    if (x->was.unread != NULL &&
        ((out->units.unit.first[0] != '\0' && x->want[0] == '\0') || (out->units.type.first[0] != '\0' && x->was.type_at == NULL)))
        out->unread = x->was.unread;
    if (!out->exists && x->ask->unit != NULL)
        out->unit = x->ask->unit;
    else if (none_known && !ch_is_logarithm(out->property))
        out->stated = out->units.unit.first;
    else if (out->unit[0] == '\0')
        out->stated = x->has;
    if (x->ask->factor != 0) /* the table's unit is not that of the labels */
        out->units.unit = (ch_said){ 0 };
}

/* Rows of one molecule: of equal values the first stays. */
static void unite(reading *x)
{
    st_label_file *out = x->out;
    int64_t n = 0;

    if (out->n > 0)
        qsort(out->row, (size_t)out->n, sizeof *out->row, by_molecule);
    for (int64_t i = 0; i < out->n; i++) {
        const st_label_row *last = n > 0 ? &out->row[n - 1] : NULL, *row = &out->row[i];
        if (last == NULL || strcmp(last->inchikey, row->inchikey) != 0 || strcmp(last->property, row->property) != 0) {
            out->row[n++] = *row;
            continue;
        }
        out->n_twice++;
        if (last->value != row->value)
            problem(x, row->line, "%s is %.10g, and %.10g in line %lld, for the same molecule, %s; keep one, or write their mean",
                    row->property, row->value, last->value, (long long)last->line, row->inchikey);
    }
    out->n = n;
}

static pl_code stored_value(double *value, const char **from, bool *there, reading *x, const st_label_row *row, pl_error *err)
{
    bool found = false;
    pl_code code;

    (void)sqlite3_bind_text(x->get_measured, 1, row->property, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(x->get_measured, 2, row->inchikey, -1, SQLITE_STATIC);
    code = pl_db_step(x->get_measured, &found, err);
    *there = found;
    if (found) {
        *value = sqlite3_column_double(x->get_measured, 0);
        *from = pl_strdup(x->mem, (const char *)sqlite3_column_text(x->get_measured, 1));
    }
    (void)sqlite3_reset(x->get_measured);
    if (code != PL_OK || found)
        return code;
    (void)sqlite3_bind_text(x->get_label, 1, row->property, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(x->get_label, 2, row->mol_id);
    code = pl_db_step(x->get_label, there, err);
    *value = *there ? sqlite3_column_double(x->get_label, 0) : 0;
    *from = "the library's file";
    (void)sqlite3_reset(x->get_label);
    return code;
}

static pl_code compare(reading *x, pl_error *err)
{
    pl_code code = PL_OK;

    for (int64_t i = 0; i < x->out->n && code == PL_OK; i++) {
        st_label_row *row = &x->out->row[i];
        const char *from = "";
        double value = 0;
        bool there = false;
        code = stored_value(&value, &from, &there, x, row, err);
        if (code != PL_OK || !there)
            continue;
        row->known = value == row->value;
        x->out->n_known += row->known;
        x->out->n_replaced += !row->known;
        if (!row->known && !x->ask->replace)
            problem(x, row->line,
                    "%s is %.10g, and %.10g by %s, for the same molecule, %s; remove the row, or take the new value with "
                    "--replace",
                    row->property, row->value, value, from != NULL ? from : "an earlier file", row->inchikey);
    }
    return code;
}

/* ---- the file ---- */

static pl_code columns_read(reading *x, ch_reader *r, pl_error *err)
{
    int n;
    const char *const *column = ch_reader_columns(r, &n);

    for (int k = 0; k < n && k < NAMES_MAX; k++)
        if ((x->names[x->n_names++] = pl_strdup(x->mem, column[k])) == NULL)
            return pl_fail(err, PL_ENOMEM, "columns");
    x->has_smiles = n == 0 || (ch_reader_smiles(r) >= 0 && ch_reader_guessed(r) == NULL);
    return PL_OK;
}

/* Formats without columns: the names of the first record's data fields. */
static pl_code fields_read(reading *x, const ch_field *field, int n, pl_error *err)
{
    for (int k = 0; k < n && x->n_names < NAMES_MAX; k++)
        if ((x->names[x->n_names++] = pl_strdup(x->mem, field[k].name)) == NULL)
            return pl_fail(err, PL_ENOMEM, "data fields");
    return PL_OK;
}

static pl_code records_read(reading *x, ch_reader *r, pl_error *err)
{
    pl_arena *scratch = pl_arena_new(1 << 14);
    bool more = true, settled = false;
    pl_code code = scratch != NULL ? columns_read(x, r, err) : pl_fail(err, PL_ENOMEM, "a table");

    while (code == PL_OK && !*pl_stop_flag()) {
        ch_record record;
        ch_field *field = NULL;
        int n = 0;
        code = ch_reader_next(r, &record, &more, err);
        if (code != PL_OK || !more)
            break;
        pl_arena_reset(scratch);
        code = ch_record_measured(&field, &n, r, &record, scratch, err);
        if (code == PL_OK && x->n_names == 0)
            code = fields_read(x, field, n, err);
        if (code == PL_OK && !settled)
            code = settle(x, err);
        settled = true;
        if (code == PL_OK)
            code = row_read(x, &record, field, n, err);
    }
    pl_arena_free(scratch);
    if (code != PL_OK)
        return code;
    if (*pl_stop_flag())
        return pl_fail(err, PL_ESTOP, "stopped by %s; nothing was stored", pl_stop_reason());
    return settled ? PL_OK : pl_fail(err, PL_ECONFIG, "%s has no rows", x->out->path);
}

/* The round whose choice they answer, else one of their own. */
static pl_code round_find(reading *x, pl_error *err)
{
    int64_t bound = 0;
    pl_code code = pl_db_int(x->store->db, &x->out->round, err,
                             "SELECT coalesce((SELECT max(round) FROM acquired WHERE outcome IS NULL), " ST_LAST_ROUND "+1)");

    if (code == PL_OK)
        code = pl_db_int(x->store->db, &bound, err,
                         "SELECT count(*) FROM stage WHERE name='read' AND json_extract(params_json,'$.censored')='bound'");
    x->bounds = bound > 0;
    return code;
}

static pl_code open_all(reading *x, pl_error *err)
{
    pl_code code = st_whose_open(&x->whose, x->store, x->mem, err);

    if (code == PL_OK)
        code = round_find(x, err);
    if (code == PL_OK)
        code = pl_db_prepare(x->store->db, &x->get_measured, "SELECT value, source FROM measured WHERE property=? AND inchikey=?",
                             err);
    return code != PL_OK
               ? code
               : pl_db_prepare(x->store->db, &x->get_label,
                               "SELECT value FROM label WHERE property_id=(SELECT property_id FROM property WHERE name=?) AND "
                               "mol_id=?",
                               err);
}

pl_code st_label_file_read(st_label_file *out, const st_label_ask *ask, pl_store *s, pl_arena *mem, pl_error *err)
{
    const ch_reader_opts opts = { .stop = pl_stop_flag(), .smiles_later = true };
    reading x = { .out = out, .ask = ask, .store = s, .mem = mem };
    ch_reader *r = NULL;
    pl_code code;

    *out = (st_label_file){ .path = ask->path };
    code = open_all(&x, err);
    if (code == PL_OK)
        code = ch_reader_open(&r, ask->path, ask->format, &opts, err);
    if (code == PL_OK)
        code = records_read(&x, r, err);
    ch_reader_close(r);
    if (code == PL_OK) {
        look_for_placeholders(&x);
        judge_units(&x);
        unite(&x);
        code = compare(&x, err);
    }
    (void)sqlite3_finalize(x.get_measured);
    (void)sqlite3_finalize(x.get_label);
    st_whose_close(x.whose);
    return pl_text_ok(&out->problems) ? code : pl_fail(err, PL_ENOMEM, "problems");
}

void st_label_file_free(st_label_file *f)
{
    free(f->row);
    pl_text_free(&f->problems);
}
