/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/qm9_units.h"

#include <stddef.h>
#include <string.h>

static const char *const units[][2] = {
    { "A", "GHz" },   { "B", "GHz" },   { "C", "GHz" },  { "mu", "Debye" },  { "alpha", "bohr^3" },
    { "homo", "Ha" }, { "lumo", "Ha" }, { "gap", "Ha" }, { "r2", "bohr^2" }, { "zpve", "Ha" },
    { "U0", "Ha" },   { "U", "Ha" },    { "H", "Ha" },   { "G", "Ha" },      { "Cv", "cal/(mol K)" },
};

const char *st_qm9_unit(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i][0], name) == 0)
            return units[i][1];
    return NULL;
}
