/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/remarks.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Whether the letters of a name, in lower case, are those. */
static bool has_letters(const char *name, const char *letters)
{
    for (; *name != '\0'; name++)
        if (isalnum((unsigned char)*name) && tolower((unsigned char)*name) != *letters++)
            return false;
    return *letters == '\0';
}

void st_remarks_add(st_remarks *r, const ch_field *fields, int n, const char *path, int64_t line)
{
    for (int i = 0; i < n; i++) {
        if (fields[i].text[strspn(fields[i].text, " \t")] == '\0' || !has_letters(fields[i].name, "datavaliditycomment"))
            continue;
        if (r->n++ == 0) {
            (void)snprintf(r->first, sizeof r->first, "%.200s:%lld: '%.60s' in %.60s", path, (long long)line, fields[i].text,
                           fields[i].name);
            pl_clean_line(r->first);
        }
        return;
    }
}

void st_remarks_say(const st_remarks *r, pl_text *out)
{
    char number[32];

    if (r->n == 0)
        return;
    pl_text_addf(out, "%s %s a remark that a value may be wrong, the first in %s; remove those that you do not trust\n",
                 pl_count_str(r->n, number), pl_plural(r->n, "record with a label has", "records with a label have"), r->first);
}
