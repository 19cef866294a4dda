/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/worker/worker_opts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_program(const char *path) { return path[0] != '\0' && access(path, X_OK) == 0; }

static bool beside_us(char *out, size_t n)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (len <= 0)
        return false;
    self[len] = '\0';
    slash = strrchr(self, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return snprintf(out, n, "%s/molsieve-chem", self) < (int)n && is_program(out);
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
