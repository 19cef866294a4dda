/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/files/shipped.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/text.h"
#include "stages/files/data_dir.h"

static const char ending[] = ".safetensors";
enum { SHIPPED_MAX = 64 };

typedef struct names {
    const char *name[SHIPPED_MAX];
    int n;
} names;

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* In the order of the alphabet. */
static pl_code names_find(names *out, pl_arena *mem)
{
    glob_t found = { 0 };
    const char *dir, *pattern;
    pl_code code;

    *out = (names){ .n = 0 };
    code = st_data_dir_find(&dir, mem, NULL);
    if (code != PL_OK)
        return code == PL_ENOMEM ? code : PL_OK;
    pattern = pl_sprintf(mem, "%s/workflows/models/*%s", dir, ending);
    if (pattern == NULL)
        return PL_ENOMEM;
    for (size_t k = glob(pattern, GLOB_NOSORT, NULL, &found) == 0 ? 0 : SHIPPED_MAX; k < found.gl_pathc && out->n < SHIPPED_MAX;
         k++) {
        const char *base = strrchr(found.gl_pathv[k], '/') + 1, *name = pl_strndup(mem, base, strlen(base) - strlen(ending));
        if (name != NULL)
            out->name[out->n++] = name;
        else
            code = PL_ENOMEM;
    }
    globfree(&found);
    qsort(out->name, (size_t)out->n, sizeof *out->name, by_name);
    return code;
}

const char *st_shipped_names(pl_arena *mem)
{
    names all;
    const char *list = "";

    if (names_find(&all, mem) != PL_OK)
        return NULL;
    for (int k = 0; k < all.n && list != NULL; k++)
        list = pl_sprintf(mem, "%s%s%s", list, k > 0 ? ", " : "", all.name[k]);
    return list;
}

static pl_code fail_unknown(const char *name, const names *all, pl_arena *mem, pl_error *err)
{
    const char *near = pl_nearest(name, all->name, all->n), *list = st_shipped_names(mem),
               *file = pl_sprintf(mem, "%s%s", name, ending);

    if (list == NULL || file == NULL)
        return pl_fail(err, PL_ENOMEM, "a model");
    if (access(file, R_OK) == 0)
        near = file;
    return pl_fail(err, PL_ECONFIG, "%s is neither a model file nor a shipped model (%s)%s%s", name,
                   list[0] != '\0' ? list : "none was found; MOLSIEVE_SHARE names their folder",
                   near != NULL ? "; did you mean " : "; `molsieve fit` makes a model of your own measurements",
                   near != NULL ? near : "");
}

pl_code st_model_find(const char **path, const char *name, pl_arena *mem, pl_error *err)
{
    names all;
    const char *dir;

    *path = pl_strdup(mem, name);
    if (*path == NULL || names_find(&all, mem) != PL_OK)
        return pl_fail(err, PL_ENOMEM, "a model");
    for (int k = 0; k < all.n; k++)
        if (strcmp(all.name[k], name) == 0) {
            pl_code code = st_data_dir_find(&dir, mem, err);
            if (code == PL_OK)
                *path = pl_sprintf(mem, "%s/workflows/models/%s%s", dir, name, ending);
            return code == PL_OK && *path == NULL ? pl_fail(err, PL_ENOMEM, "a model") : code;
        }
    return access(name, F_OK) == 0 ? PL_OK : fail_unknown(name, &all, mem, err);
}
