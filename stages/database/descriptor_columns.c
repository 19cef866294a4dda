/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/database/descriptor_columns.h"

#include <math.h>
#include <string.h>

static void add_unit(pl_text *out, const char *unit)
{
    if (unit[0] != '\0')
        pl_text_addf(out, " (%s)", unit);
}

bool st_descriptor_is(const char *name)
{
    bool found = false;

    for (int i = 0; i < CH_N_DESCRIPTORS && !found; i++)
        found = strcmp(name, ch_descriptors[i].name) == 0;
    return found;
}

const char *st_descriptor_unit(const ch_descriptor *d)
{
    if (d->unit == NULL)
        return "";
    return strcmp(d->unit, "Angstrom^2") == 0 ? "\xc3\x85\xc2\xb2" : d->unit;
}

void st_descriptors_in_top(pl_text *sql)
{
    for (const ch_descriptor *d = ch_descriptors; d < ch_descriptors + CH_N_DESCRIPTORS; d++)
        if (d->shown == CH_SHOWN_TOP) {
            pl_text_addf(sql, ", m.%s AS \"%s", d->name, d->name);
            add_unit(sql, st_descriptor_unit(d));
            pl_text_add(sql, "\"");
        }
}

void st_descriptors_in_report(pl_text *sql)
{
    for (const ch_descriptor *d = ch_descriptors; d < ch_descriptors + CH_N_DESCRIPTORS; d++)
        if (d->shown >= CH_SHOWN_HITS) {
            pl_text_addf(sql, ", m.%s AS \"%s", d->name, d->heading);
            add_unit(sql, st_descriptor_unit(d));
            pl_text_add(sql, "\"");
        }
}

void st_descriptors_bind(sqlite3_stmt *st, int first, const double descriptor[CH_N_DESCRIPTORS])
{
    for (int i = 0; i < CH_N_DESCRIPTORS; i++) {
        const double x = descriptor[i];
        if (isfinite(x) && ch_descriptors[i].whole)
            (void)sqlite3_bind_int64(st, first + i, (int64_t)x);
        else if (isfinite(x))
            (void)sqlite3_bind_double(st, first + i, x);
    }
}
