/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/predict/given.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/records/relation.h"
#include "pipeline/base/field.h"
#include "pipeline/base/text.h"

/* ---- one value for all ---- */

static pl_code fail_unread(const st_given *g, const char *word, pl_error *err)
{
    pl_text names = { 0 };
    pl_code code;

    for (int k = 0; k < g->columns->n; k++)
        pl_text_addf(&names, "%s%s", k ? ", " : "; it reads ", g->columns->name[k]);
    code = pl_fail(err, PL_ECONFIG, "--set %.100s: the model reads no such column%s", word, pl_text_str(&names));
    pl_text_free(&names);
    return code;
}

static pl_code set_one(st_given *g, char *word, pl_error *err)
{
    char *equals = strrchr(word, '=');
    double value;
    int k;

    if (equals == NULL)
        return pl_fail(err, PL_ECONFIG, "--set %.100s: write NAME=NUMBER, with commas between several", word);
    *equals = '\0';
    k = pl_names_find(g->columns, word);
    if (k < 0)
        return fail_unread(g, word, err);
    if (!pl_parse_real(equals + 1, &value) || !isfinite((float)value))
        return pl_fail(err, PL_ECONFIG, "--set %.100s=%.40s: '%.40s' is no number", word, equals + 1, equals + 1);
    if (!isnan(g->fixed[k]))
        return pl_fail(err, PL_ECONFIG, "--set: %s is there twice", word);
    g->fixed[k] = (float)value;
    return PL_OK;
}

static void units_take(st_given *g, const st_scorer *s)
{
    for (int k = 0; k < s->n_models; k++)
        for (int32_t i = 0; i < s->model[k].m->inputs.n_columns; i++) {
            const nn_input_column *in = &s->model[k].m->inputs.column[i];
            const int at = pl_names_find(g->columns, in->name);
            if (at >= 0 && in->unit[0] != '\0')
                g->unit[at] = in->unit;
        }
}

pl_code st_given_open(st_given *g, const pl_names *columns, const st_scorer *s, const char *set, pl_error *err)
{
    char *words = strdup(set != NULL ? set : ""), *next = words;
    pl_code code = words != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for columns");

    g->columns = columns;
    for (int k = 0; k < PL_NAMES_MAX; k++)
        g->fixed[k] = NAN;
    units_take(g, s);
    while (code == PL_OK && set != NULL && next != NULL)
        code = set_one(g, strsep(&next, ","), err);
    free(words);
    return code;
}

/* The column of --set with this name, in any letter case; -1: none. */
static int fixed_find(const st_given *g, const char *name)
{
    for (int k = 0; k < g->columns->n; k++)
        if (!isnan(g->fixed[k]) && strcasecmp(g->columns->name[k], name) == 0)
            return k;
    return -1;
}

pl_code st_given_check_shown(const st_given *g, const st_answers *a, pl_error *err)
{
    for (int k = 0; k < a->n; k++) {
        const char *name = a->column[k].name;
        const int at = fixed_find(g, name);
        if (at >= 0)
            return pl_fail(
                err, PL_ECONFIG,
                "--columns: by --set the model reads %s=%g for all records; leave %s out, or ask input_%s for what the input has",
                g->columns->name[at], (double)g->fixed[at], name, name);
    }
    return PL_OK;
}

/* ---- of the records ---- */

bool st_given_reads(const st_given *g)
{
    for (int k = 0; k < g->columns->n; k++)
        if (isnan(g->fixed[k]))
            return true;
    return false;
}

static bool is_among(const char *name, const char *const *list, int n)
{
    for (int k = 0; k < n; k++)
        if (strcmp(list[k], name) == 0)
            return true;
    return false;
}

/* What is not there: "pH, temperature", and how to give it: "pH=NUMBER,temperature=NUMBER"; returns how many. near: of the first. */
static int missing_find(pl_text *what, pl_text *set, const char **near, const st_given *g, const char *const *name, int n)
{
    int missing = 0;

    for (int k = 0; k < g->columns->n; k++) {
        const char *want = g->columns->name[k];
        if (!isnan(g->fixed[k]) || is_among(want, name, n))
            continue;
        *near = missing == 0 ? pl_nearest(want, name, n) : *near;
        pl_text_addf(what, "%s%s", missing > 0 ? ", " : "", want);
        pl_text_addf(set, "%s%s=NUMBER", missing > 0 ? "," : "", want);
        missing++;
    }
    return missing;
}

/* The column of a model that several columns of a table are called; NULL: none. */
static const char *twice_named(const st_given *g, const char *const *name, int n)
{
    for (int k = 0; k < g->columns->n; k++) {
        int times = 0;
        for (int i = 0; i < n && isnan(g->fixed[k]); i++)
            times += strcmp(name[i], g->columns->name[k]) == 0;
        if (times > 1)
            return g->columns->name[k];
    }
    return NULL;
}

pl_code st_given_check(const st_given *g, const char *path, const char *const *name, int n, pl_error *err)
{
    const char *twice = twice_named(g, name, n);
    pl_text what = { 0 }, set = { 0 };
    const char *near = NULL;
    const int missing = missing_find(&what, &set, &near, g, name, n);
    const char *s = missing > 1 ? "s" : "", *list = pl_text_str(&what), *how = pl_text_str(&set);
    pl_code code = PL_OK;

    if (!pl_text_ok(&what) || !pl_text_ok(&set))
        code = pl_fail(err, PL_ENOMEM, "no memory for columns");
    else if (twice != NULL)
        code = pl_fail(err, PL_ECONFIG, "%s has several columns called %s, which the model reads: which one? rename the others",
                       path, twice);
    else if (missing > 0 && n == 0)
        code =
            pl_fail(err, PL_ECONFIG,
                    "the model reads the column%s %.200s, which SMILES do not have: give CSV or SDF with it, or one value for all "
                    "records, --set %.300s",
                    s, list, how);
    else if (missing > 0)
        code = pl_fail(err, PL_ECONFIG,
                       "%s has no column%s %.200s, which the model reads%s%s; rename one of its columns, or give one value for all "
                       "records, --set %.300s",
                       path, s, list, near != NULL ? "; it has " : "", near != NULL ? near : "", how);
    pl_text_free(&what);
    pl_text_free(&set);
    return code;
}

/* As prepare takes it: of the first field of that name. */
static const ch_field *field_of(const ch_field *field, int n, const char *name)
{
    const ch_field *f = ch_field_named(field, n, name);

    return f != NULL && f->is_number && isfinite(f->value) ? f : NULL;
}

/* A record of SDF may have a field twice. In mem; NULL: it has not. */
static const char *twice_there(const ch_field *f, const ch_field *field, int n, pl_arena *mem)
{
    const ch_field *other = ch_field_again(field, n, f);
    const char *why;

    if (other == NULL)
        return NULL;
    why = pl_sprintf(mem, "%s is there twice: '%.40s' and '%.40s'", f->name, f->text, other->text);
    return why != NULL ? why : "a column that the model reads is there twice";
}

/* Why the value of column k of a record is in another unit than the models read, or, where these know none, than the first record has;
 * NULL: it is not. In mem. */
static const char *unit_differs(st_given *g, int k, const ch_field *f, const ch_field *field, int n, pl_arena *mem)
{
    char unit[CH_UNIT_BYTES];
    const ch_field *by = ch_unit_own(unit, field, n, f);
    const char *want = g->unit[k] != NULL ? g->unit[k] : g->first_unit[k], *why;

    if (by == NULL || unit[0] == '\0')
        return NULL;
    if (want[0] == '\0')
        (void)snprintf(g->first_unit[k], CH_UNIT_BYTES, "%s", unit);
    if (!ch_unit_differs(unit, want, by->name, f->name))
        return NULL;
    why = pl_sprintf(mem, "column %s: %.60s is '%s', and %s %.60s", f->name, by->name, unit,
                     g->unit[k] != NULL ? "the model reads it in" : "the first record has", want);
    return why != NULL ? why : "a column is in another unit than the model reads";
}

pl_code st_given_fill(st_given *g, st_asked *asked, const ch_field *field, int n, pl_error *err)
{
    float *to = PL_NEW(asked->mem, float, g->columns->n + 1);

    asked->column = to;
    for (int k = 0; k < g->columns->n && to != NULL; k++) {
        const ch_field *f = isnan(g->fixed[k]) ? field_of(field, n, g->columns->name[k]) : NULL;
        to[k] = f != NULL ? (float)f->value : g->fixed[k];
        if (f != NULL && (asked->problem = twice_there(f, field, n, asked->mem)) == NULL)
            asked->problem = unit_differs(g, k, f, field, n, asked->mem);
        if (isfinite(to[k]) && asked->problem == NULL)
            continue;
        if (asked->problem == NULL)
            asked->problem = pl_sprintf(asked->mem, ST_COLUMN_MISSING, g->columns->name[k]);
        return asked->problem != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a record");
    }
    return to != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a record");
}
