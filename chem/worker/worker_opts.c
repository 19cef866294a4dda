/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/worker/worker_opts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/place.h"

static bool is_program(const char *path) { return path[0] != '\0' && access(path, X_OK) == 0; }

/* Beside a program; beside a library (in lib, lib/molsieve, lib/x86_64-linux-gnu) or in bin. */
static bool beside_us(char *out, size_t n)
{
    static const char *const places[] = { "", "/../bin", "/../../bin" };
    const size_t n_places = pl_is_guest() ? sizeof places / sizeof *places : 1;
    char self[PATH_MAX];

    if (!pl_own_dir(self, sizeof self))
        return false;
    for (size_t i = 0; i < n_places; i++)
        if (snprintf(out, n, "%s%s/molsieve-chem", self, places[i]) < (int)n && is_program(out))
            return true;
    return false;
}

static bool on_path(char *out, size_t n)
{
    const char *at = getenv("PATH");

    while (at != NULL && *at != '\0') {
        size_t len = strcspn(at, ":");
        if (snprintf(out, n, "%.*s/molsieve-chem", (int)len, at) < (int)n && is_program(out))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

pl_code ch_worker_find(char path[PATH_MAX], const char *program, pl_error *err)
{
    const char *named = program != NULL ? program : getenv("MOLSIEVE_CHEM");

    if (program == NULL && beside_us(path, PATH_MAX))
        return PL_OK;
    if (named != NULL && named[0] != '\0') {
        if (snprintf(path, PATH_MAX, "%s", named) < PATH_MAX && is_program(path))
            return PL_OK;
        return pl_fail(err, PL_ECONFIG, "the chemistry worker %s is not an executable file", named);
    }
    if (on_path(path, PATH_MAX))
        return PL_OK;
    return pl_fail(err, PL_ECONFIG,
                   "molsieve-chem is neither beside this program nor in PATH; "
                   "set MOLSIEVE_CHEM to its path");
}

ch_worker_opts ch_worker_opts_complete(const ch_worker_opts *opts)
{
    ch_worker_opts o = opts != NULL ? *opts : (ch_worker_opts){ 0 };

    o.cpu_first_s = o.cpu_first_s > 0 ? o.cpu_first_s : 2;
    o.cpu_retry_s = o.cpu_retry_s > 0 ? o.cpu_retry_s : 30;
    o.wall_slack_s = o.wall_slack_s > 0 ? o.wall_slack_s : 20;
    o.memory_bytes = o.memory_bytes > 0 ? o.memory_bytes : (size_t)2 << 30;
    return o;
}
