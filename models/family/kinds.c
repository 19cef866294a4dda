/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "models/family/family.h"

const nn_member_kind *const nn_member_kinds[] = { &nn_trees, &nn_gp, NULL };

const nn_member_kind *nn_member_kind_of(const char *name)
{
    for (const nn_member_kind *const *k = nn_member_kinds; *k != NULL; k++)
        if (strcmp((*k)->name, name) == 0)
            return *k;
    return NULL;
}
