/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/output/cmd_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "pipeline/base/text.h"

void st_json_print(const json_t *json, size_t flags)
{
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(1) | flags) : NULL;
    pl_text safe = { 0 };

    pl_text_add_json_text(&safe, text != NULL ? text : "null");
    (void)puts(pl_text_ok(&safe) ? pl_text_str(&safe) : "null");
    pl_text_free(&safe);
    free(text);
}
