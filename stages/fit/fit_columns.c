/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/fit/fit_columns.h"

#include <stdio.h>
#include <string.h>

static pl_code column_add(st_fit_columns *out, const char *word, size_t n, const char *list, pl_error *err)
{
    char name[PL_NAME_BYTES];

    if (n == 0 || n >= sizeof name)
        return pl_fail(err, PL_ECONFIG, "--inputs %.100s: write names of columns with commas between, of at most %d bytes", list,
                       PL_NAME_BYTES - 1);
    (void)snprintf(name, sizeof name, "%.*s", (int)n, word);
    if (pl_names_find(&out->names, name) >= 0)
        return pl_fail(err, PL_ECONFIG, "--inputs: %s is there twice", name);
    pl_names_add(&out->names, name); /* the workflow is refused if they are too many */
    return PL_OK;
}

pl_code st_fit_columns_open(st_fit_columns *out, const char *list, pl_error *err)
{
    pl_code code = PL_OK;

    *out = (st_fit_columns){ 0 };
    for (const char *at = list; at != NULL && code == PL_OK; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL)
        code = column_add(out, at, strcspn(at, ","), list, err);
    return code;
}

void st_fit_columns_add(st_fit_columns *c, const ch_field *field, int n, int64_t line)
{
    for (int k = 0; k < c->names.n; k++) {
        const ch_field *f = ch_field_named(field, n, c->names.name[k]);
        if (f != NULL && f->text[0] != '\0')
            ch_units_add_own(&c->units[k], field, n, f, line);
    }
}

pl_code st_fit_columns_judge(const st_fit_columns *c, const char *path, pl_error *err)
{
    char what[CH_RELATION_BYTES];

    for (int k = 0; k < c->names.n; k++)
        if (ch_units_say(what, &c->units[k], c->names.name[k], "") != NULL)
            return pl_fail(err, PL_ECONFIG, "%s:%s", path, what);
    return PL_OK;
}

const char *st_fit_columns_unit(const st_fit_columns *c, int k)
{
    return c->units[k].unit.first[0] != '\0' ? c->units[k].unit.first : NULL;
}
