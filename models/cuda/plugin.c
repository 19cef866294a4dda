/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cuda/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char library[] = "libmolsieve_cuda.so";

/* path = the program's folder, then `tail`; false where that does not fit. */
static bool beside_program(char path[PATH_MAX], const char *tail)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (n <= 0)
        return false;
    self[n] = '\0';
    slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return snprintf(path, PATH_MAX, "%s/%s%s", self, tail, library) < PATH_MAX;
}

static bool library_find(char path[PATH_MAX])
{
    static const char *const places[] = { "", "../lib/" };
    const char *named = getenv("MOLSIEVE_CUDA_PLUGIN");

    if (named)
        return snprintf(path, PATH_MAX, "%s", named) < PATH_MAX;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (beside_program(path, places[i]) && !access(path, R_OK))
            return true;
    return false;
}

pl_code nn_cuda_plugin(const nn_gpu_ops **out, pl_error *err)
{
    char path[PATH_MAX];
    const nn_gpu_ops *(*get)(void);
    void *handle;

    if (!library_find(path))
        return pl_fail(err, PL_ECONFIG, "engine cuda: %s is not beside the program; this build has no GPU part", library);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return pl_fail(err, PL_ECONFIG, "engine cuda: %s", dlerror());
    *(void **)(void *)&get = dlsym(handle, "molsieve_gpu_ops");
    if (!get)
        return pl_fail(err, PL_ECONFIG, "engine cuda: %s is not the GPU part of this program", path);
    *out = get();
    if ((*out)->abi != NN_GPU_ABI || (*out)->bytes != (int32_t)sizeof(nn_gpu_ops))
        return pl_fail(err, PL_ECONFIG, "engine cuda: %s belongs to another version of this program", path);
    return PL_OK;
}
