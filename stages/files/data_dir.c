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

static bool has_workflows(const char *dir, pl_arena *mem)
{
    const char *path = pl_sprintf(mem, "%s/workflows", dir);
    return path != NULL && access(path, R_OK | X_OK) == 0;
}

pl_code st_data_dir_find(const char **out, pl_arena *mem, pl_error *err)
{
    char dir[4096];
    const char *place[4];

    place[0] = getenv("MOLSIEVE_SHARE");
    place[1] = pl_sprintf(mem, "%s/../share/molsieve", st_program_dir(dir, sizeof dir));
    place[2] = pl_is_guest() ? pl_sprintf(mem, "%s/../../share/molsieve", dir) : NULL; /* lib/x86_64-linux-gnu */
    place[3] = st_source_dir;
    for (int i = 0; i < 4; i++)
        if (place[i] != NULL && place[i][0] != '\0' && has_workflows(place[i], mem)) {
            *out = place[i];
            return PL_OK;
        }
    return pl_fail(err, PL_EIO, "the demonstration's files are not in %s nor in %s; MOLSIEVE_SHARE can name their folder",
                   place[1] != NULL ? place[1] : "../share/molsieve", st_source_dir);
}
