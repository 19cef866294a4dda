/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pipeline/base/place.h"

static const char library[] = "libmolsieve_cuda.so";

static bool library_find(char path[2 * PATH_MAX])
{
    const char *named = getenv("MOLSIEVE_PLUGINS");
    char dir[PATH_MAX];

    (void)pl_own_dir(dir, sizeof dir);
    for (int i = named != NULL && named[0] ? 0 : 1; i < 3; i++) {
        (void)snprintf(path, 2 * PATH_MAX, "%s%s/%s", i ? dir : named, i == 2 ? "/../lib/molsieve" : "", library);
        if (!access(path, R_OK))
            return true;
    }
    return false;
}

pl_code pl_plugin_cuda(void **function, const char *symbol, const char *who, pl_error *err)
{
    char path[2 * PATH_MAX];
    void *handle;

    if (!library_find(path))
        return pl_fail(err, PL_ECONFIG,
                       "%s: %s is not beside the program, in ../lib/molsieve or in $MOLSIEVE_PLUGINS: "
                       "build it where nvcc is installed",
                       who, library);
    /* A kernel that is loaded at its first call may wait for all work of the device (CUDA Programming Guide, Lazy Loading),
     * including sums that wait for other ranks. */
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    /* Streams that share a hardware queue wait for each other; the default is 8 queues, and the engines of a few workers have
     * more streams. */
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return pl_fail(err, PL_ECONFIG, "%s: %s", who, dlerror());
    *function = dlsym(handle, symbol);
    if (*function == NULL)
        return pl_fail(err, PL_ECONFIG, "%s: %s is not the GPU part of this program; install both from one build", who, path);
    return PL_OK;
}
