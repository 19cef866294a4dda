/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/output/cmd_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "pipeline/base/text.h"

pl_code st_json_print(const json_t *json, size_t flags, pl_error *err)
{
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(1) | flags) : NULL;
    pl_text safe = { 0 };
    bool good;

    pl_text_add_json_text(&safe, text != NULL ? text : "");
    good = text != NULL && pl_text_ok(&safe);
    if (good)
        (void)puts(pl_text_str(&safe));
    pl_text_free(&safe);
    free(text);
    return good ? PL_OK : pl_fail(err, PL_ENOMEM, "JSON");
}
