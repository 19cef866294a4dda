/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/fit/fit_columns.h"

#include <string.h>

#include "pipeline/base/text.h"

static bool has(const st_fit_columns *c, const char *name)
{
    bool found = false;

    for (int k = 0; k < c->n; k++)
        found = found || strcmp(c->name[k], name) == 0;
    return found;
}

static pl_code column_add(st_fit_columns *out, const char *word, size_t n, pl_arena *mem, pl_error *err)
{
    const char *name = pl_strndup(mem, word, n);

    if (name == NULL)
        return pl_fail(err, PL_ENOMEM, "columns");
    if (n == 0)
        return pl_fail(err, PL_ECONFIG, "--inputs: a name is empty; write names of columns with commas between");
    if (has(out, name))
        return pl_fail(err, PL_ECONFIG, "--inputs: %.200s is there twice", name);
    if (out->n == ST_FIT_COLUMNS_MAX)
        return pl_fail(err, PL_ECONFIG, "--inputs: a model reads at most %d columns", (int)ST_FIT_COLUMNS_MAX);
    out->name[out->n++] = name;
    return PL_OK;
}

pl_code st_fit_columns_open(st_fit_columns *out, const char *list, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    *out = (st_fit_columns){ 0 };
    for (const char *at = list; at != NULL && code == PL_OK; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL)
        code = column_add(out, at, strcspn(at, ","), mem, err);
    return code;
}

void st_fit_columns_add(st_fit_columns *c, const ch_field *field, int n, int64_t line)
{
    for (int k = 0; k < c->n; k++) {
        const ch_field *f = ch_field_named(field, n, c->name[k]);
        if (f != NULL && f->text[0] != '\0')
            ch_units_add_own(&c->units[k], field, n, f, line);
    }
}

pl_code st_fit_columns_judge(const st_fit_columns *c, const char *path, pl_error *err)
{
    char what[CH_RELATION_BYTES];

    for (int k = 0; k < c->n; k++)
        if (ch_units_say(what, &c->units[k], c->name[k], "") != NULL)
            return pl_fail(err, PL_ECONFIG, "%s:%s", path, what);
    return PL_OK;
}

const char *st_fit_columns_unit(const st_fit_columns *c, int k)
{
    return c->units[k].unit.first[0] != '\0' ? c->units[k].unit.first : NULL;
}
