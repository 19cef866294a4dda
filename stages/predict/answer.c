/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/predict/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "chem/worker/sdf_drawn.h"
#include "pipeline/base/text.h"
#include "stages/database/descriptor_columns.h"
#include "stages/database/rows.h"

/* ---- columns ------------------------------------------------------------- */

enum { TITLE, SMILES, RECORD, LINE, INCHIKEY, FORMULA, REMOVED, GEOMETRY, CHARGE, HEAVY, STEREO, PROBLEM, FIXED };
enum { DESCRIPTOR = FIXED, FIELD, PARTS };
enum { VALUE, UNIT, STDEV, INTERVAL90, SIMILARITY, DOMAIN, REASONS, N_PARTS }; /* behind PARTS */

static const char *const fixed[FIXED] = { "title",   "smiles",   "record", "line",    "inchikey",         "formula",
                                          "removed", "geometry", "charge", "n_heavy", "undefined_stereo", "problem" };
static const char *const suffix[N_PARTS] = { "", "_unit", "_stdev", "_interval90", "_similarity", "_domain", "_reasons" };

typedef struct list {
    st_answer_column *column;
    int n;
} list;

static bool fixed_has(const char *name)
{
    bool has = st_descriptor_is(name);

    for (int k = 0; k < FIXED && !has; k++)
        has = strcmp(fixed[k], name) == 0;
    return has;
}

static bool part_shown(const st_predict_property *p, int part)
{
    switch (part) {
    case UNIT: return p->unit[0] != '\0' && strcmp(p->unit, "1") != 0;
    case STDEV: return p->several;
    case INTERVAL90: return p->interval;
    case SIMILARITY: return p->similarity;
    case DOMAIN:
    case REASONS: return p->domain;
    default: return true;
    }
}

/* Whether a property with a unit has the name of this one, which has none: a workflow calls it "logS (model)" then. */
static bool needs_own(const st_predictor *p, const st_predict_property *one)
{
    bool other = false;

    for (int k = 0; k < p->n_properties && one->unit[0] == '\0'; k++)
        other = other || (p->property[k].unit[0] != '\0' && strcmp(p->property[k].name, one->name) == 0);
    return other;
}

/* Whether the columns of a property can begin with this. */
static bool is_free(const list *all, const st_predict_property *one, const char *base, pl_arena *mem)
{
    bool free = !fixed_has(base);

    for (int part = 0; part < N_PARTS && free; part++) {
        const char *name = pl_sprintf(mem, "%s%s", base, suffix[part]);
        for (int k = 0; k < all->n && free && name != NULL && part_shown(one, part); k++)
            free = strcmp(all->column[k].name, name) != 0;
    }
    return free;
}

/* The property's name; if another column has it, with "_predicted" or a number behind it, as in tables of a workflow. NULL: no memory. */
static const char *base_of(const list *all, const st_predictor *p, int i, pl_arena *mem)
{
    const st_predict_property *one = &p->property[i];
    const char *name = needs_own(p, one) ? pl_sprintf(mem, "%s (model)", one->name) : one->name, *base = name;

    for (int k = 1; base != NULL && name != NULL && k <= p->n_properties && !is_free(all, one, base, mem); k++)
        base = k == 1 ? pl_sprintf(mem, "%s_predicted", name) : pl_sprintf(mem, "%s_%d", name, k);
    return base;
}

/* All columns of the properties, in their order. */
static pl_code parts_list(list *out, const st_predictor *p, pl_arena *mem, pl_error *err)
{
    *out = (list){ .column = PL_NEW(mem, st_answer_column, p->n_properties * N_PARTS + 1) };
    if (out->column == NULL)
        return pl_fail(err, PL_ENOMEM, "columns");
    for (int i = 0; i < p->n_properties; i++) {
        const char *base = base_of(out, p, i, mem);
        for (int part = 0; part < N_PARTS; part++) {
            const char *name = base != NULL ? pl_sprintf(mem, "%s%s", base, suffix[part]) : NULL;
            if (name == NULL)
                return pl_fail(err, PL_ENOMEM, "columns");
            if (part_shown(&p->property[i], part))
                out->column[out->n++] = (st_answer_column){ PARTS + part, i, name };
        }
    }
    return PL_OK;
}

static st_answer_column column_named(const list *parts, const char *name, pl_arena *mem)
{
    for (int k = 0; k < FIXED; k++)
        if (strcmp(fixed[k], name) == 0)
            return (st_answer_column){ k, 0, fixed[k] };
    for (int k = 0; k < parts->n; k++)
        if (strcmp(parts->column[k].name, name) == 0)
            return parts->column[k];
    for (int k = 0; k < CH_N_DESCRIPTORS; k++)
        if (strcmp(ch_descriptors[k].name, name) == 0)
            return (st_answer_column){ DESCRIPTOR, k, ch_descriptors[k].name };
    return (st_answer_column){ FIELD, 0, pl_strdup(mem, name) };
}

static pl_code column_add(st_answers *a, st_answer_column c, pl_error *err)
{
    if (c.name == NULL)
        return pl_fail(err, PL_ENOMEM, "columns");
    for (int k = 0; k < a->n; k++)
        if (strcmp(a->column[k].name, c.name) == 0)
            return pl_fail(err, PL_ECONFIG, "--columns: %s is there twice", c.name);
    a->fields |= c.kind == FIELD;
    a->column[a->n++] = c;
    return PL_OK;
}

/* The next name of a list, without the blanks around it; one with commas stands in double quotes. Ends it; NULL: there is none. */
static char *name_next(char **names)
{
    char *word = *names, *end;

    if (word == NULL)
        return NULL;
    word += strspn(word, " ");
    end = word[0] == '"' ? strchr(word + 1, '"') : NULL;
    word += end != NULL;
    end = end != NULL ? end : word + strcspn(word, ",");
    *names = strchr(end, ',');
    *names += *names != NULL;
    while (end > word && end[-1] == ' ' && *end != '"')
        end--;
    *end = '\0';
    return word;
}

/* A prediction that has this name in other letter case: "LogS" asked of a model of logS may not be a measured LogS of the input. */
static const char *other_case(const list *parts, const char *name)
{
    for (int k = 0; k < parts->n; k++)
        if (strcasecmp(parts->column[k].name, name) == 0)
            return parts->column[k].name;
    return NULL;
}

static pl_code column_ask(st_answers *a, const list *parts, const char *name, pl_arena *mem, pl_error *err)
{
    const st_answer_column c = column_named(parts, name, mem);
    const char *other = c.kind == FIELD ? other_case(parts, name) : NULL;

    if (other != NULL)
        return pl_fail(err, PL_ECONFIG,
                       "--columns: %s: did you mean %s, which is predicted? For a column of the input ask input_%s", name, other,
                       name);
    return column_add(a, c, err);
}

static pl_code columns_asked(st_answers *a, const list *parts, const char *columns, pl_arena *mem, pl_error *err)
{
    char *next = pl_strdup(mem, columns), *word;
    pl_code code = next != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "columns");

    a->column = PL_NEW(mem, st_answer_column, strlen(columns) + 1);
    if (a->column == NULL)
        return pl_fail(err, PL_ENOMEM, "columns");
    while (code == PL_OK && (word = name_next(&next)) != NULL)
        code =
            word[0] != '\0'
                ? column_ask(a, parts, word, mem, err)
                : pl_fail(err, PL_ECONFIG,
                          "--columns %.200s: a name is empty; write names with commas between, such as title,smiles,logS", columns);
    return code;
}

static pl_code columns_usual(st_answers *a, const list *parts, pl_arena *mem, pl_error *err)
{
    a->column = PL_NEW(mem, st_answer_column, parts->n + 3);
    if (a->column == NULL)
        return pl_fail(err, PL_ENOMEM, "columns");
    a->column[a->n++] = (st_answer_column){ TITLE, 0, fixed[TITLE] };
    a->column[a->n++] = (st_answer_column){ SMILES, 0, fixed[SMILES] };
    for (int k = 0; k < parts->n; k++)
        a->column[a->n++] = parts->column[k];
    a->column[a->n++] = (st_answer_column){ PROBLEM, 0, fixed[PROBLEM] };
    return PL_OK;
}

pl_code st_answers_open(st_answers *a, const st_predictor *p, st_answer_format format, const char *columns, pl_arena *mem,
                        pl_error *err)
{
    list parts;
    pl_code code = parts_list(&parts, p, mem, err);

    *a = (st_answers){ .p = p, .format = format, .part = parts.column, .n_parts = parts.n };
    if (code == PL_OK)
        code = columns != NULL ? columns_asked(a, &parts, columns, mem, err) : columns_usual(a, &parts, mem, err);
    if (code != PL_OK)
        return code;
    a->seen = PL_NEW(mem, atomic_bool, a->n);
    return a->seen != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "columns");
}

/* The field of the input that a column shows. */
static const char *field_name(const st_answer_column *c) { return strncmp(c->name, "input_", 6) == 0 ? c->name + 6 : c->name; }

/* How many columns a word means: those that are written so; if none is, those in another letter case. */
static int n_meant(const char *word, const char *const *name, int n)
{
    int exact = 0, any = 0;

    for (int k = 0; k < n; k++) {
        exact += strcmp(name[k], word) == 0;
        any += strcasecmp(name[k], word) == 0;
    }
    return exact > 0 ? exact : any;
}

/* The column of the answer that was probably meant; NULL: none is near. */
static const char *column_near(const st_answers *a, const char *word, pl_arena *mem)
{
    const char **name = PL_NEW(mem, const char *, FIXED + CH_N_DESCRIPTORS + a->n_parts + 1);
    int n = 0;

    for (int k = 0; name != NULL && k < FIXED; k++)
        name[n++] = fixed[k];
    for (int k = 0; name != NULL && k < CH_N_DESCRIPTORS; k++)
        name[n++] = ch_descriptors[k].name;
    for (int k = 0; name != NULL && k < a->n_parts; k++)
        name[n++] = a->part[k].name;
    return pl_nearest(word, name, n);
}

static pl_code fail_unknown(const st_answers *a, const char *word, const char *path, const char *there, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    const char *near = mem != NULL ? column_near(a, word, mem) : NULL;
    const pl_code code =
        pl_fail(err, PL_ECONFIG, "--columns: %s is neither a column of the answer nor of %s%s%s%s%s", word, path,
                there[0] != '\0' ? ", which has: " : "", there, near != NULL ? "; did you mean " : "", near != NULL ? near : "");

    pl_arena_free(mem);
    return code;
}

pl_code st_answers_check(const st_answers *a, const char *path, const char *const *name, int n, pl_error *err)
{
    for (int k = 0; k < a->n; k++) {
        const st_answer_column *c = &a->column[k];
        const int whole = n_meant(c->name, name, n), meant = whole > 0 ? whole : n_meant(field_name(c), name, n);
        pl_text all = { 0 };
        pl_code code;
        a->seen[k] = c->kind != FIELD || meant > 0;
        if (c->kind == FIELD && meant > 1)
            return pl_fail(err, PL_ECONFIG, "--columns: %s has %d columns called %s: which one? give them different names", path,
                           meant, whole > 0 ? c->name : field_name(c));
        if (a->seen[k])
            continue;
        for (int j = 0; j < n && all.len < 200; j++)
            pl_text_addf(&all, "%s%s", j ? ", " : "", name[j]);
        code = fail_unknown(a, c->name, path, pl_text_str(&all), err);
        pl_text_free(&all);
        return code;
    }
    return PL_OK;
}

pl_code st_answers_check_seen(const st_answers *a, const char *path, pl_error *err)
{
    for (int k = 0; k < a->n; k++)
        if (a->column[k].kind == FIELD && !a->seen[k])
            return fail_unknown(a, a->column[k].name, path, "", err);
    return PL_OK;
}

/* ---- one cell ------------------------------------------------------------ */

typedef struct cell {
    const char *text; /* NULL: none, or a number */
    double number;    /* NaN: none */
} cell;

static cell text_cell(const char *text) { return (cell){ text != NULL && text[0] != '\0' ? text : NULL, NAN }; }
static cell number_cell(double x) { return (cell){ NULL, x }; }

/* As it was prepared; else as it was given. */
static const char *smiles_of(const st_asked *asked, const st_prediction *got, pl_text *scratch)
{
    if (got != NULL && got->molecule->smiles != NULL && got->molecule->smiles[0] != '\0')
        return got->molecule->smiles;
    if (strcmp(asked->in.format, "smi") != 0)
        return NULL;
    pl_text_reset(scratch);
    pl_text_add_clean(scratch, asked->in.text, strcspn(asked->in.text, " \t\r\n"), 1000);
    return pl_text_str(scratch);
}

/* Cells that are also there without a molecule. */
static cell fixed_cell(int kind, const st_asked *asked, const st_prediction *got, pl_text *scratch)
{
    const ch_prepared *m = got != NULL ? got->molecule : NULL;

    switch (kind) {
    case TITLE: return text_cell(asked->title);
    case SMILES: return text_cell(smiles_of(asked, got, scratch));
    case RECORD: return number_cell((double)asked->number);
    case LINE: return number_cell((double)asked->line);
    case PROBLEM: return text_cell(got != NULL ? got->problem : asked->problem);
    default: break;
    }
    if (m == NULL || m->smiles == NULL || m->smiles[0] == '\0')
        return number_cell(NAN);
    switch (kind) {
    case INCHIKEY: return text_cell(m->inchikey);
    case FORMULA: return text_cell(m->formula);
    case REMOVED: return text_cell(m->removed);
    case GEOMETRY: return text_cell(m->geometry);
    case CHARGE: return number_cell(m->charge);
    case HEAVY: return number_cell(m->n_heavy);
    default: return number_cell(m->undefined_stereo);
    }
}

static cell value_cell(int part, const st_predict_property *p, const st_value *v)
{
    if (v->n_models == 0)
        return number_cell(NAN);
    switch (part) {
    case VALUE: return number_cell(v->mean);
    case UNIT: return text_cell(p->unit);
    case STDEV: return number_cell(v->stdev);
    case INTERVAL90: return number_cell(v->interval90);
    case SIMILARITY: return number_cell(v->similarity);
    case DOMAIN: return text_cell(v->domain);
    default: return text_cell(v->reasons);
    }
}

static cell field_cell(const st_answers *a, const st_answer_column *c, const st_asked *asked)
{
    const ch_field *f = ch_field_find(asked->field, asked->n_fields, c->name);

    if (f == NULL)
        f = ch_field_find(asked->field, asked->n_fields, field_name(c));
    if (f != NULL)
        a->seen[c - a->column] = true;
    return text_cell(f != NULL ? f->text : NULL);
}

static cell cell_of(const st_answers *a, const st_answer_column *c, const st_asked *asked, const st_prediction *got,
                    pl_text *scratch)
{
    if (c->kind < FIXED)
        return fixed_cell(c->kind, asked, got, scratch);
    if (c->kind == FIELD)
        return field_cell(a, c, asked);
    if (got == NULL)
        return number_cell(NAN);
    if (c->kind == DESCRIPTOR)
        return number_cell(got->molecule->smiles[0] != '\0' ? got->molecule->descriptor[c->place] : NAN);
    return value_cell(c->kind - PARTS, &a->p->property[c->place], &got->value[c->place]);
}

/* As in a table: NULL for no value. buf holds 32. */
static const char *cell_text(const cell *c, char buf[32])
{
    if (c->text != NULL || !isfinite(c->number))
        return c->text;
    return pl_real_str(c->number, buf);
}

/* ---- one record ---------------------------------------------------------- */

static void csv_add(const st_answers *a, pl_text *out, const st_asked *asked, const st_prediction *got, pl_text *scratch)
{
    const size_t start = out->len;
    char buf[32];

    for (int k = 0; k < a->n; k++) {
        const cell c = cell_of(a, &a->column[k], asked, got, scratch);
        const char *text = cell_text(&c, buf);
        pl_text_add(out, k > 0 ? "," : "");
        st_csv_add(out, text != NULL ? text : "");
    }
    st_csv_end(out, start);
}

static void json_add(const st_answers *a, pl_text *out, const st_asked *asked, const st_prediction *got, pl_text *scratch)
{
    char buf[32];

    for (int k = 0; k < a->n; k++) {
        const cell c = cell_of(a, &a->column[k], asked, got, scratch);
        const char *text = cell_text(&c, buf);
        pl_text_add(out, k > 0 ? ", " : "{");
        pl_text_add_json(out, a->column[k].name);
        pl_text_add(out, ": ");
        if (c.text != NULL)
            pl_text_add_json(out, c.text);
        else
            pl_text_add(out, text != NULL ? text : "null");
    }
    pl_text_add(out, "}\n");
}

/* A record without a molecule becomes one without atoms. */
static pl_code sdf_add(const st_answers *a, pl_text *out, const st_asked *asked, const st_prediction *got, ch_worker **chem,
                       pl_text *scratch, pl_error *err)
{
    static const ch_mol nothing;
    ch_sdf_field *field = PL_NEW(asked->mem, ch_sdf_field, a->n + 1);
    char(*buf)[32] = pl_arena_get(asked->mem, (size_t)a->n + 1, sizeof *buf);
    int n = 0;

    out->refused = out->refused || field == NULL || buf == NULL;
    for (int k = 0; k < a->n && !out->refused; k++) {
        const cell c = cell_of(a, &a->column[k], asked, got, scratch);
        if (a->column[k].kind == TITLE)
            continue;
        field[n] = (ch_sdf_field){ a->column[k].name, cell_text(&c, buf[n]) };
        n++;
    }
    if (out->refused || got == NULL || got->molecule->code != CH_OK) {
        ch_sdf_write(out, &nothing, asked->title, field, n);
        return PL_OK;
    }
    return ch_sdf_write_drawn(out, chem, &got->molecule->mol, got->molecule->smiles, asked->title, field, n, err);
}

pl_code st_answer_add(const st_answers *a, pl_text *out, const st_asked *asked, const st_prediction *got, ch_worker **chem,
                      pl_error *err)
{
    pl_text scratch = { 0 };
    pl_code code = PL_OK;

    if (a->format == ST_ANSWER_SDF)
        code = sdf_add(a, out, asked, got, chem, &scratch, err);
    else if (a->format == ST_ANSWER_JSONL)
        json_add(a, out, asked, got, &scratch);
    else
        csv_add(a, out, asked, got, &scratch);
    pl_text_depend(out, &scratch);
    pl_text_free(&scratch);
    return code;
}

void st_answers_head(const st_answers *a, pl_text *out)
{
    for (int k = 0; k < a->n && a->format == ST_ANSWER_CSV; k++) {
        pl_text_add(out, k > 0 ? "," : "");
        st_csv_add(out, a->column[k].name);
    }
    pl_text_add(out, a->format == ST_ANSWER_CSV ? "\n" : "");
}

bool st_answer_is_outside(const st_answers *a, const st_prediction *got)
{
    for (int k = 0; k < a->p->n_properties && got != NULL; k++)
        if (got->value[k].reasons != NULL)
            return true;
    return false;
}

bool st_answer_lacks(const st_answers *a, const st_prediction *got)
{
    for (int k = 0; k < a->p->n_properties; k++)
        if (got == NULL || got->value[k].n_models == 0)
            return true;
    return false;
}

/* ---- formats ------------------------------------------------------------- */

static const char *const formats[ST_ANSWER_FORMATS] = { "csv", "jsonl", "sdf" };

pl_code st_answer_format_parse(st_answer_format *out, const char *word, pl_error *err)
{
    for (int k = 0; k < ST_ANSWER_FORMATS; k++)
        if (strcmp(formats[k], word) == 0) {
            *out = (st_answer_format)k;
            return PL_OK;
        }
    return pl_fail(err, PL_ECONFIG, "--format %s: allowed are csv, jsonl and sdf", word);
}

st_answer_format st_answer_format_of(const char *path)
{
    const size_t all = strlen(path), n = all > 3 && strcasecmp(path + all - 3, ".gz") == 0 ? all - 3 : all;

    for (int k = 0; k < ST_ANSWER_FORMATS; k++) {
        const size_t m = strlen(formats[k]);
        if (n > m && path[n - m - 1] == '.' && strncasecmp(path + n - m, formats[k], m) == 0)
            return (st_answer_format)k;
    }
    return ST_ANSWER_CSV;
}
