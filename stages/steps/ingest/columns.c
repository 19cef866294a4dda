/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/columns.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/workflow/settings.h"
#include "stages/database/measured.h"
#include "stages/steps/ingest/prepare_conf.h"
#include "stages/steps/ingest/read_input.h"

enum { LOOKED_AT = 1000 }; /* records of an input */

bool st_label_comes_later(const pl_workflow *wf, const char *label)
{
    pl_names later = { 0 };

    for (int i = 0; i < wf->n_steps; i++)
        if (wf->step[i].stage->names != NULL)
            wf->step[i].stage->names(wf, &wf->step[i], ST_LATER_LABELS, &later);
    return pl_names_find(&later, label) >= 0 || st_measured_has(wf, label);
}

void st_names_of(pl_names *out, const pl_workflow *wf, const char *what)
{
    *out = (pl_names){ 0 };
    for (int i = 0; i < wf->n_steps; i++)
        if (wf->step[i].stage->names != NULL)
            wf->step[i].stage->names(wf, &wf->step[i], what, out);
}

const pl_names *st_columns(const pl_workflow *wf)
{
    static const pl_names none;
    const pl_step *prepare = pl_workflow_step(wf, "prepare");

    return prepare != NULL ? &((const st_prepare_conf *)prepare->conf)->columns : &none;
}

/* ---- before the run ---- */

/* What the first records of an input have. */
typedef struct look {
    const pl_names *columns;
    bool seen[PL_NAMES_MAX];
    int named[PL_NAMES_MAX]; /* columns of a table */
    pl_names fields;
    int64_t records;
} look;

static pl_code look_at(look *l, ch_reader *reader, const ch_record *r, pl_arena *scratch, pl_error *err)
{
    ch_field *field = NULL;
    int n = 0;
    pl_code code = PL_OK;

    l->records++;
    pl_arena_reset(scratch);
    if (r->problem == NULL)
        code = ch_record_fields(&field, &n, reader, r, scratch, err);
    for (int i = 0; i < n && code == PL_OK; i++) {
        const int k = pl_names_find(l->columns, field[i].name);
        if (k >= 0)
            l->seen[k] = true;
        pl_names_add(&l->fields, field[i].name);
    }
    return code;
}

static bool sees_all(const look *l)
{
    for (int k = 0; k < l->columns->n; k++)
        if (!l->seen[k])
            return false;
    return true;
}

static void look_at_names(look *l, const ch_reader *reader)
{
    int n;
    const char *const *column = ch_reader_columns(reader, &n);

    for (int i = 0; i < n; i++) {
        const int k = pl_names_find(l->columns, column[i]);
        if (k >= 0)
            l->named[k]++;
    }
}

/* False: only the chemistry worker could list the records, or there are none. */
static bool look_through(look *l, const pl_workflow *wf, const pl_input *in)
{
    const pl_step *read = pl_workflow_step(wf, "read");
    pl_arena *scratch = pl_arena_new(1 << 14);
    ch_reader *reader = NULL;
    ch_record r;
    bool more = true;
    pl_code code = scratch != NULL ? st_input_open(&reader, in, read->conf, NULL, NULL) : PL_ENOMEM;
    const bool ours = code == PL_OK && ch_format_is_ours(ch_reader_format(reader));

    if (ours)
        look_at_names(l, reader);
    while (code == PL_OK && ours && more && l->records < LOOKED_AT && !sees_all(l)) {
        code = ch_reader_next(reader, &r, &more, NULL);
        if (code == PL_OK && more)
            code = look_at(l, reader, &r, scratch, NULL);
    }
    ch_reader_close(reader);
    pl_arena_free(scratch);
    return code == PL_OK && ours && l->records > 0;
}

static void judge(const look *l, const pl_input *in, const pl_node *at, pl_problems *problems)
{
    const char *name[PL_NAMES_MAX];

    for (int k = 0; k < l->fields.n; k++)
        name[k] = l->fields.name[k];
    for (int k = 0; k < l->columns->n; k++) {
        const char *what = l->seen[k] ? NULL
                                      : pl_sprintf(problems->mem, "%s: no column or data field %s, which a model reads", in->path,
                                                   l->columns->name[k]);
        if (l->named[k] > 1)
            pl_problem_add(problems, at, "%s has several columns called %s, which a model reads: which one? rename the others",
                           in->path, l->columns->name[k]);
        if (what != NULL && l->fields.n > 0)
            pl_unknown_name(problems, at, what, l->columns->name[k], name, l->fields.n);
        else if (what != NULL)
            pl_problem_add(problems, at, "%s; its records have none: give a CSV or SDF that has it", what);
    }
}

void st_columns_check(const pl_workflow *wf, const pl_step *prepare, pl_problems *problems)
{
    const pl_names *columns = st_columns(wf);

    if (columns->too_many)
        pl_problem_add(problems, prepare->node, "columns: models read at most %d columns, whose names have at most %d bytes",
                       PL_NAMES_MAX, PL_NAME_BYTES - 1);
    if (columns->no_memory)
        pl_problem_refused(problems, prepare->node, NULL);
    for (int32_t i = 0; i < wf->inputs.n && columns->n > 0 && pl_workflow_step(wf, "read") != NULL; i++) {
        look l = { .columns = columns };
        if (look_through(&l, wf, st_input_at(wf, i)))
            judge(&l, st_input_at(wf, i), prepare->node, problems);
    }
}

const char *st_names_json(const pl_names *names, const char *what, pl_arena *mem)
{
    json_t *list = json_array();
    char *text;
    const char *out;

    for (int k = 0; k < names->n; k++)
        json_array_append_new(list, json_string(names->name[k]));
    text = json_dumps(list, JSON_COMPACT);
    out = names->n > 0 && text != NULL ? pl_sprintf(mem, ",\"%s\":%s", what, text) : "";
    out = text != NULL ? out : NULL;
    free(text);
    json_decref(list);
    return out;
}

/* ---- a record ---- */

const double *st_columns_value(const st_record *r, const char *name)
{
    for (int32_t i = 0; i < r->n_fields; i++)
        if (strcmp(r->field[i].name, name) == 0)
            return isfinite((float)r->field[i].value) ? &r->field[i].value : NULL;
    return NULL;
}

const char *st_columns_missing(const st_record *r, const pl_names *columns)
{
    for (int k = 0; k < columns->n; k++)
        if (st_columns_value(r, columns->name[k]) == NULL)
            return columns->name[k];
    return NULL;
}

/* ---- queries ---- */

/* The text of `fmt`, which has one %Q, for a name. */
static bool add_quoted(pl_text *to, const char *fmt, const char *name, int number)
{
    char *text = sqlite3_mprintf(fmt, name, number);

    pl_text_add(to, text != NULL ? text : "");
    sqlite3_free(text);
    return text != NULL;
}

static const char *each_quoted(const pl_names *columns, const char *fmt, int first, pl_arena *mem)
{
    pl_text all = { 0 };
    bool good = true;
    const char *out;

    for (int k = 0; k < columns->n; k++)
        good = add_quoted(&all, fmt, columns->name[k], first + k) && good;
    out = good && pl_text_ok(&all) ? pl_strdup(mem, pl_text_str(&all)) : NULL;
    pl_text_free(&all);
    return out;
}

const char *st_columns_where(const pl_names *columns, int first, pl_arena *mem)
{
    return each_quoted(columns,
                       " AND EXISTS(SELECT 1 FROM label l JOIN property q USING(property_id) WHERE l.mol_id=molecule.mol_id AND "
                       "q.name=%Q AND l.value=?%d)",
                       first, mem);
}

const char *st_columns_text(const pl_names *columns, pl_arena *mem)
{
    return each_quoted(columns,
                       "||' '||coalesce((SELECT quote(l.value+0.0) FROM label l JOIN property q USING(property_id) WHERE "
                       "l.mol_id=molecule.mol_id AND q.name=%Q),'')",
                       0, mem);
}

/* ---- molecules ---- */

static pl_code rows_make(st_column_rows *out, sqlite3 *db, int64_t first, int64_t last, pl_arena *mem, pl_error *err)
{
    int64_t n = 0;
    pl_code code = pl_db_int(db, &n, err, "SELECT count(*) FROM molecule WHERE mol_id BETWEEN %lld AND %lld", (long long)first,
                             (long long)last);

    if (code != PL_OK)
        return code;
    out->mol_id = PL_NEW(mem, int64_t, n + 1);
    out->value = PL_NEW(mem, float, n * out->n_columns + 1);
    if (out->mol_id == NULL || out->value == NULL)
        return pl_fail(err, PL_ENOMEM, "columns of %lld molecules", (long long)n);
    for (int64_t i = 0; i < n * out->n_columns; i++)
        out->value[i] = NAN;
    return PL_OK;
}

static void row_take(st_column_rows *out, const pl_names *columns, sqlite3_stmt *st)
{
    const int64_t id = sqlite3_column_int64(st, 0);
    const int k = pl_names_find(columns, (const char *)sqlite3_column_text(st, 1));

    if (out->n == 0 || out->mol_id[out->n - 1] != id)
        out->mol_id[out->n++] = id;
    if (k >= 0)
        out->value[(out->n - 1) * out->n_columns + k] = (float)sqlite3_column_double(st, 2);
}

pl_code st_columns_read(st_column_rows *out, sqlite3 *db, const pl_names *columns, int64_t first, int64_t last, pl_arena *mem,
                        pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code;

    *out = (st_column_rows){ .n_columns = columns->n };
    code = rows_make(out, db, first, last, mem, err);
    if (code == PL_OK)
        code = pl_db_prepare(db, &st,
                             "SELECT l.mol_id, p.name, l.value FROM label l JOIN property p USING(property_id) JOIN molecule m "
                             "USING(mol_id) WHERE l.mol_id BETWEEN ? AND ? ORDER BY l.mol_id",
                             err);
    (void)sqlite3_bind_int64(st, 1, first);
    (void)sqlite3_bind_int64(st, 2, last);
    while (pl_db_next(st, &code, err))
        row_take(out, columns, st);
    (void)sqlite3_finalize(st);
    return code;
}

static int by_id(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

pl_code st_columns_row(const float **out, const st_column_rows *rows, int64_t mol_id, pl_error *err)
{
    const int64_t *at = bsearch(&mol_id, rows->mol_id, (size_t)rows->n, sizeof *at, by_id);

    *out = at != NULL ? rows->value + (at - rows->mol_id) * rows->n_columns : NULL;
    for (int k = 0; k < rows->n_columns; k++)
        if (at == NULL || isnan((*out)[k]))
            return pl_fail(err, PL_EDATA, "molecule %lld has no value of a column that a model reads; run prepare again",
                           (long long)mol_id);
    return PL_OK;
}
