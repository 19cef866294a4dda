/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/workflow/names.h"

#include <string.h>

int pl_names_find(const pl_names *all, const char *name)
{
    for (int k = 0; k < all->n; k++)
        if (strcmp(all->name[k], name) == 0)
            return k;
    return -1;
}

void pl_names_add(pl_names *all, const char *name)
{
    int k = all->n;

    if (pl_names_find(all, name) >= 0)
        return;
    if (all->n == PL_NAMES_MAX || strlen(name) >= PL_NAME_BYTES) {
        all->too_many = true;
        return;
    }
    for (; k > 0 && strcmp(all->name[k - 1], name) > 0; k--)
        memcpy(all->name[k], all->name[k - 1], PL_NAME_BYTES);
    memcpy(all->name[k], name, strlen(name) + 1);
    all->n++;
}
