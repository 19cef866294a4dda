/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/spelling.h"

#include <stdio.h>
#include <string.h>

/* Parts of words: British, American. */
static const char *const parts[][2] = {
    { "neutralis", "neutraliz" }, { "optimis", "optimiz" },    { "maximis", "maximiz" },
    { "minimis", "minimiz" },     { "neighbour", "neighbor" },
};

static bool respell(const char *word, int from, char out[PL_SPELLED])
{
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        const char *at = strstr(word, parts[k][from]);
        int n;
        if (at == NULL)
            continue;
        n = snprintf(out, PL_SPELLED, "%.*s%s%s", (int)(at - word), word, parts[k][1 - from], at + strlen(parts[k][from]));
        return n < PL_SPELLED;
    }
    return false;
}

bool pl_british(const char *word, char out[PL_SPELLED]) { return respell(word, 1, out); }

bool pl_american(const char *word, char out[PL_SPELLED]) { return respell(word, 0, out); }
