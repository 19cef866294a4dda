/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/fit/fit_table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/records/record.h"
#include "chem/records/relation.h"
#include "chem/worker/worker_client.h"
#include "pipeline/base/file.h"
#include "pipeline/base/stop.h"
#include "stages/fit/smiles_column.h"

enum { NAMES_MAX = 64, FEWEST = 20, SHOWN = 60 };

typedef struct names {
    const char *name[NAMES_MAX];
    int n;
} names;

static bool is_table(const char *format) { return strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0; }

static pl_code reader_open(ch_reader **r, const st_fit_ask *ask, const char *smiles, ch_worker *lister, pl_error *err)
{
    const ch_reader_opts opts = { .smiles_column = smiles,
                                  .title_column = ask->title,
                                  .title_from = ask->title,
                                  .lister = lister,
                                  .stop = pl_stop_flag(),
                                  .smiles_later = true };

    return ch_reader_open(r, ask->path, ask->format, &opts, err);
}

/* ---- the column with SMILES ---------------------------------------------- */

/* No column has a name that says it. */
static pl_code smiles_guess(st_fit_table *t, ch_reader *r, ch_worker *w, pl_arena *mem, pl_error *err)
{
    int n;
    const char *name = NULL;
    pl_code code = st_smiles_column(&name, r, w, err);

    (void)ch_reader_columns(r, &n);
    if (code != PL_OK || n == 0) /* an empty file */
        return code;
    if (name == NULL)
        return pl_fail(err, PL_ECONFIG, ST_NO_SMILES, t->path, t->names);
    t->guessed = true;
    t->smiles = pl_strdup(mem, name);
    return t->smiles != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a table");
}

/* The column that the reader chose by its name; NULL: none has such a name. */
static const char *smiles_named(ch_reader *r)
{
    int n;
    const char *const *column = ch_reader_columns(r, &n);
    const int at = ch_reader_smiles(r);

    return at >= 0 && at < n && ch_reader_guessed(r) == NULL ? column[at] : NULL;
}

/* ---- names --------------------------------------------------------------- */

static void name_add(names *all, const char *name, pl_arena *mem)
{
    for (int k = 0; k < all->n; k++)
        if (strcmp(all->name[k], name) == 0)
            return;
    if (all->n < NAMES_MAX && (all->name[all->n] = pl_strdup(mem, name)) != NULL)
        all->n++;
}

static const char *names_text(const names *all, pl_arena *mem)
{
    const char *text = "";

    for (int k = 0; k < all->n && text != NULL; k++)
        text = pl_sprintf(mem, "%s%s%s", text, k > 0 ? ", " : "", all->name[k]);
    return text;
}

/* ---- the target ---------------------------------------------------------- */

static bool is_comma_number(const char *text)
{
    char copy[SHOWN];
    char *comma;
    double x;

    if (strlen(text) >= sizeof copy || strchr(text, '.') != NULL)
        return false;
    memcpy(copy, text, strlen(text) + 1);
    comma = strchr(copy, ',');
    if (comma == NULL)
        return false;
    *comma = '.';
    return pl_parse_real(copy, &x);
}

static void number_count(st_fit_table *t, double x)
{
    t->low = t->numbers == 0 || x < t->low ? x : t->low;
    t->high = t->numbers == 0 || x > t->high ? x : t->high;
    t->numbers++;
    t->zeros += x == 0;
    t->ones += x == 1;
    pl_two_add(&t->two, x);
}

static void value_count(st_fit_table *t, const ch_field *f, int64_t line, pl_arena *mem)
{
    if (f == NULL || f->text[0] == '\0') {
        t->empty++;
        return;
    }
    if (f->is_number) {
        number_count(t, f->value);
        return;
    }
    if (t->texts++ == 0) {
        t->text_line = line;
        t->text = pl_strndup(mem, f->text, strnlen(f->text, SHOWN));
        t->text = t->text != NULL ? t->text : "";
    }
    t->commas += is_comma_number(f->text);
    t->censored += f->text[0] == '<' || f->text[0] == '>';
}

/* The first number that may be a limit. */
static void relation_look(st_fit_table *t, const ch_field *relation, const ch_field *f, int64_t line, pl_arena *mem)
{
    char what[CH_RELATION_BYTES];

    if (relation == NULL || t->relation != NULL || !f->is_number)
        return;
    ch_relation_say(what, relation, f->name);
    t->relation = pl_sprintf(mem, "%lld: %s", (long long)line, what);
    t->relation = t->relation != NULL ? t->relation : "";
}

static void again_look(st_fit_table *t, const ch_field *again, const ch_field *f, int64_t line, pl_arena *mem)
{
    if (again == NULL || t->relation != NULL || !f->is_number)
        return;
    t->relation = pl_sprintf(mem, "%lld: a record has %.60s twice, '%.*s' and '%.*s': keep one", (long long)line, f->name, SHOWN,
                             f->text, SHOWN, again->text);
    t->relation = t->relation != NULL ? t->relation : "";
}

static void problem_count(st_fit_table *t, const ch_record *record, pl_arena *mem)
{
    t->readable += record->problem == NULL;
    if (record->problem == NULL || t->problem != NULL)
        return;
    t->problem = pl_strdup(mem, record->problem);
    t->problem_line = record->line;
}

static pl_code values_read(st_fit_table *t, const char *target, names *all, ch_reader *r, pl_arena *mem, pl_error *err)
{
    pl_arena *scratch = pl_arena_new(1 << 14);
    bool more = true;
    pl_code code = scratch != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a table");

    while (code == PL_OK) {
        ch_record record;
        ch_field *field = NULL;
        const ch_field *f;
        int n = 0;
        code = ch_reader_next(r, &record, &more, err);
        if (code != PL_OK || !more)
            break;
        pl_arena_reset(scratch);
        if (record.problem == NULL)
            code = ch_record_measured(&field, &n, r, &record, scratch, err);
        problem_count(t, &record, mem);
        for (int k = 0; k < n && t->records < 1000; k++)
            name_add(all, field[k].name, mem);
        f = t->target != NULL ? ch_field_named(field, n, t->target) : ch_field_find(field, n, target);
        if (f != NULL && t->target == NULL && (t->target = pl_strdup(mem, f->name)) == NULL)
            code = pl_fail(err, PL_ENOMEM, "a table");
        value_count(t, f, record.line, mem);
        relation_look(t, ch_relation_unclear(field, n, f), f, record.line, mem);
        again_look(t, ch_field_again(field, n, f), f, record.line, mem);
        if (f != NULL && f->text[0] != '\0')
            (void)ch_units_add(&t->units, field, n, f, record.line);
        st_fit_columns_add(&t->columns, field, n, record.line);
        t->records++;
    }
    pl_arena_free(scratch);
    return code;
}

/* ---- whether it can be learned ------------------------------------------- */

/* The name that was probably meant: the nearest, or the only one that holds the word. */
static const char *name_near(const names *all, const char *word)
{
    const char *near = pl_nearest(word, all->name, all->n), *with = NULL;
    int n = 0;

    for (int k = 0; k < all->n && word[0] != '\0'; k++)
        if (strcasestr(all->name[k], word) != NULL) {
            with = all->name[k];
            n++;
        }
    return near == NULL && n == 1 ? with : near;
}

static pl_code target_missing(const st_fit_table *t, const char *target, const names *all, pl_error *err)
{
    const char *near = name_near(all, target);

    if (all->n == 0)
        return pl_fail(
            err, PL_ECONFIG,
            "%s is read as %s, which has no columns; fit needs a table (CSV, TSV) with a head line, or SDF with data fields",
            t->path, t->format);
    return pl_fail(err, PL_ECONFIG, "%s has no %s %s; there are: %.300s%s%s", t->path,
                   is_table(t->format) ? "column" : "data field", target, t->names, near != NULL ? "; did you mean " : "",
                   near != NULL ? near : "");
}

static pl_code texts_tell(const st_fit_table *t, pl_error *err)
{
    const char *what = "write numbers, or 0 and 1 for two classes";

    if (2 * t->commas > t->texts)
        what = "write decimal points in place of commas";
    else if (2 * t->censored > t->texts)
        what = "limits such as >10 are not numbers; a model needs more measured ones";
    return pl_fail(err, PL_ECONFIG, "%s:%lld: %s is '%s', and %lld of %lld values are such texts; %s", t->path,
                   (long long)t->text_line, t->target, t->text, (long long)t->texts, (long long)t->texts + (long long)t->numbers,
                   what);
}

static const char *beside_find(const names *all, const char *target)
{
    for (int k = 0; k < all->n; k++)
        if (ch_is_of_prediction(all->name[k], target))
            return all->name[k];
    return NULL;
}

static void unit_take(st_fit_table *t)
{
    if (!st_fit_is_class(t) && t->units.unit.first[0] != '\0' && !ch_is_logarithm(t->target))
        t->unit = t->units.unit.first;
}

/* Of y and Y that which is written so; asked for without either, both are meant. */
static const char *target_other(const st_fit_table *t, const names *all, const char *target)
{
    for (int k = 0; k < all->n && strcmp(t->target, target) != 0; k++)
        if (strcasecmp(all->name[k], target) == 0 && strcmp(all->name[k], t->target) != 0)
            return all->name[k];
    return NULL;
}

static pl_code table_judge(const st_fit_table *t, const st_fit_ask *ask, const names *all, pl_error *err)
{
    char what[CH_RELATION_BYTES];

    if (t->records == 0)
        return pl_fail(err, PL_ECONFIG, "%s has no records", t->path);
    if (t->readable == 0 && t->problem != NULL)
        return pl_fail(err, PL_ECONFIG, "%s:%lld: none of %lld records can be read; the first: %s", t->path,
                       (long long)t->problem_line, (long long)t->records, t->problem);
    if (t->target == NULL)
        return target_missing(t, ask->target, all, err);
    if (target_other(t, all, ask->target) != NULL)
        return pl_fail(err, PL_ECONFIG, "%s has %s and %s: which one? write it as the table does", t->path, t->target,
                       target_other(t, all, ask->target));
    if (t->relation != NULL)
        return pl_fail(err, PL_ECONFIG, "%s:%s", t->path, t->relation);
    if (!st_fit_is_class(t) && ch_units_say(what, &t->units, t->target, ask->unit != NULL ? ask->unit : "") != NULL)
        return pl_fail(err, PL_ECONFIG, "%s:%s", t->path, what);
    if (st_fit_columns_judge(&t->columns, t->path, err) != PL_OK)
        return PL_ECONFIG;
    if (t->texts > t->numbers)
        return texts_tell(t, err);
    if (t->numbers < FEWEST)
        return pl_fail(err, PL_ECONFIG, "%s: only %lld of %lld records have a number in %s; a model and its errors need %d or more",
                       t->path, (long long)t->numbers, (long long)t->records, t->target, (int)FEWEST);
    if (t->low == t->high)
        return pl_fail(err, PL_ECONFIG, "%s: %s is %g in all records: there is nothing to learn", t->path, t->target, t->low);
    return PL_OK;
}

bool st_fit_is_class(const st_fit_table *t) { return t->zeros + t->ones == t->numbers; }

/* ---- the table ----------------------------------------------------------- */

static pl_code columns_find(st_fit_table *t, names *all, const st_fit_ask *ask, ch_reader *r, ch_worker *w, pl_arena *mem,
                            pl_error *err)
{
    int n;
    const char *const *column = ch_reader_columns(r, &n);

    for (int k = 0; k < n; k++)
        name_add(all, column[k], mem);
    t->names = names_text(all, mem);
    if (t->names == NULL)
        return pl_fail(err, PL_ENOMEM, "a table");
    if (!is_table(t->format) || ask->smiles != NULL || smiles_named(r) != NULL) {
        const char *name = ask->smiles != NULL ? ask->smiles : smiles_named(r);
        t->smiles = name != NULL && is_table(t->format) ? pl_strdup(mem, name) : NULL;
        return name != NULL && is_table(t->format) && t->smiles == NULL ? pl_fail(err, PL_ENOMEM, "a table") : PL_OK;
    }
    return smiles_guess(t, r, w, mem, err);
}

static pl_code table_read(st_fit_table *t, const st_fit_ask *ask, ch_worker *w, pl_arena *mem, pl_error *err)
{
    ch_reader *r = NULL;
    names all = { .n = 0 };
    pl_code code = reader_open(&r, ask, ask->smiles, w, err);

    if (code == PL_OK && (t->format = pl_strdup(mem, ch_reader_format(r))) == NULL)
        code = pl_fail(err, PL_ENOMEM, "a table");
    if (code == PL_OK)
        code = columns_find(t, &all, ask, r, w, mem, err);
    ch_reader_close(r);
    r = NULL;
    if (code == PL_OK)
        code = reader_open(&r, ask, t->smiles, w, err);
    if (code == PL_OK)
        code = values_read(t, ask->target, &all, r, mem, err);
    ch_reader_close(r);
    if (code != PL_OK)
        return code;
    t->names = names_text(&all, mem);
    t->beside = t->target != NULL ? beside_find(&all, t->target) : NULL;
    return t->names != NULL ? table_judge(t, ask, &all, err) : pl_fail(err, PL_ENOMEM, "a table");
}

pl_code st_fit_table_read(st_fit_table *out, const st_fit_ask *ask, pl_arena *mem, pl_error *err)
{
    ch_worker *w = NULL;
    char *path;
    pl_code code;

    *out = (st_fit_table){ .title = ask->title, .text = "", .names = "" };
    code = st_fit_columns_open(&out->columns, ask->inputs, mem, err);
    if (code != PL_OK)
        return code;
    path = realpath(ask->path, NULL);
    if (path == NULL)
        return pl_fail_errno(err, ask->path);
    out->path = pl_strdup(mem, path);
    free(path);
    code = out->path != NULL ? ch_worker_open(&w, NULL, err) : pl_fail(err, PL_ENOMEM, "a table");
    if (code == PL_OK)
        code = table_read(out, ask, w, mem, err);
    ch_worker_close(w);
    if (code == PL_OK)
        unit_take(out);
    return code;
}
