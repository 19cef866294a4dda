/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/files/data_dir.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/text.h"
#include "stages/files/version.h"

const char *st_program_dir(char *buf, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", buf, size - 1);
    char *slash;

    buf[n > 0 ? n : 0] = '\0';
    slash = strrchr(buf, '/');
    if (slash != NULL)
        *slash = '\0';
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
    const char *place[3];

    place[0] = getenv("MOLSIEVE_SHARE");
    place[1] = pl_sprintf(mem, "%s/../share/molsieve", st_program_dir(dir, sizeof dir));
    place[2] = st_source_dir;
    for (int i = 0; i < 3; i++)
        if (place[i] != NULL && place[i][0] != '\0' && has_workflows(place[i], mem)) {
            *out = place[i];
            return PL_OK;
        }
    return pl_fail(err, PL_EIO, "the demonstration's files are not in %s nor in %s; MOLSIEVE_SHARE can name their folder",
                   place[1] != NULL ? place[1] : "../share/molsieve", st_source_dir);
}
