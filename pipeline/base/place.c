/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/place.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int here; /* an address of this code */

/* The name under which the loader knows the library; "" for the program itself. */
static const char *library(void)
{
    Dl_info info = { 0 };
    struct link_map *map = NULL;
    const bool found = dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 && map != NULL;

    return found && map->l_name != NULL ? map->l_name : "";
}

bool pl_is_guest(void) { return library()[0] != '\0'; }

bool pl_own_dir(char *dir, size_t size)
{
    const char *name = library();
    char real[PATH_MAX];
    char *slash = realpath(name[0] != '\0' ? name : "/proc/self/exe", real) != NULL ? strrchr(real, '/') : NULL;

    dir[0] = '\0';
    if (slash == NULL)
        return false;
    *slash = '\0';
    if (snprintf(dir, size, "%s", real) < (int)size)
        return true;
    dir[0] = '\0';
    return false;
}
