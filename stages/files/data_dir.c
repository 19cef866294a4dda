/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/files/data_dir.h"

#include <stdlib.h>
#include <unistd.h>

#include "pipeline/base/place.h"
#include "pipeline/base/text.h"
#include "stages/files/version.h"

const char *st_program_dir(char *buf, size_t size)
{
    (void)pl_own_dir(buf, size);
    return buf;
}

const char *st_env(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

pl_code st_data_dir_find(const char **out, pl_arena *mem, pl_error *err)
{
    char dir[4096];
    const char *place[4], *workflows = "";
    const bool is_guest = pl_is_guest();

    place[0] = st_env("MOLSIEVE_SHARE");
    place[1] = pl_sprintf(mem, "%s/../share/molsieve", st_program_dir(dir, sizeof dir));
    place[2] = is_guest ? pl_sprintf(mem, "%s/../../share/molsieve", dir) : NULL; /* lib/x86_64-linux-gnu */
    place[3] = st_source_dir;
    if (place[1] == NULL || (is_guest && place[2] == NULL))
        return pl_fail(err, PL_ENOMEM, "a folder");
    for (int i = 0; i < 4 && workflows != NULL; i++) {
        if (place[i] == NULL)
            continue;
        workflows = pl_sprintf(mem, "%s/workflows", place[i]);
        if (workflows != NULL && access(workflows, R_OK | X_OK) == 0) {
            *out = place[i];
            return PL_OK;
        }
    }
    if (workflows == NULL)
        return pl_fail(err, PL_ENOMEM, "a folder");
    return pl_fail(err, PL_EIO, "the demonstration's files are not in %s nor in %s; MOLSIEVE_SHARE can name their folder", place[1],
                   st_source_dir);
}
