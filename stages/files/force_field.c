/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/files/force_field.h"

#include <stdlib.h>
#include <unistd.h>

#include "pipeline/base/text.h"

static bool has_tables(const char *folder, pl_arena *mem)
{
    const char *path = pl_sprintf(mem, "%s/mmffbond.par", folder);
    return path != NULL && access(path, F_OK) == 0;
}

const char *st_force_field_folder(pl_arena *mem)
{
    const char *named = getenv("BABEL_DATADIR"), *folders[3] = { 0 };
    int n = 0;

    if (named != NULL && named[0] != '\0') {
        folders[n++] = named;
        folders[n++] = pl_sprintf(mem, "%s/%s", named, MOLSIEVE_OPENBABEL_VERSION);
    }
    folders[n++] = MOLSIEVE_FORCE_FIELD_TABLES;
    for (int k = 0; k < n; k++)
        if (folders[k] != NULL && has_tables(folders[k], mem))
            return folders[k];
    return folders[0] != NULL ? folders[0] : "";
}
