/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/placeholder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_nines_alone(double value)
{
    char text[32];
    const int n = snprintf(text, sizeof text, "%.10g", fabs(value));
    const size_t nines = strspn(text, "9"), more = text[nines] == '.' ? 1 + strspn(text + nines + 1, "9") : 0;

    return nines >= 2 && nines + more == (size_t)n;
}

static bool nine_add(st_placeholders *p, double value, int64_t line)
{
    for (int i = 0; i < ST_NINES; i++) {
        if (p->nines[i].n > 0 && p->nines[i].value != value)
            continue;
        if (p->nines[i].n++ == 0) {
            p->nines[i].value = value;
            p->nines[i].line = line;
        }
        return true;
    }
    return false;
}

void st_placeholders_add(st_placeholders *p, double value, int64_t line)
{
    if (has_nines_alone(value) && nine_add(p, value, line))
        return;
    p->low = p->n_others == 0 || value < p->low ? value : p->low;
    p->high = p->n_others == 0 || value > p->high ? value : p->high;
    p->n_others++;
}

/* Farther from all others than these are from each other. */
static bool is_far(const st_placeholders *p, double value)
{
    const double range = p->high - p->low;

    return range > 0 && (value < p->low - range || value > p->high + range);
}

int st_placeholders_find(const st_placeholders *p)
{
    for (int i = 0; i < ST_NINES; i++)
        if (p->nines[i].n >= 2 && is_far(p, p->nines[i].value))
            return i;
    return -1;
}

int64_t st_placeholders_say(char out[ST_PLACEHOLDER_BYTES], const st_placeholders *p, const char *name)
{
    const int i = st_placeholders_find(p);

    if (i < 0)
        return 0;
    (void)snprintf(out, ST_PLACEHOLDER_BYTES,
                   "%.60s is %.10g in %lld rows, and between %.4g and %.4g in others: if that means \"not measured\", leave "
                   "these cells empty",
                   name, p->nines[i].value, (long long)p->nines[i].n, p->low, p->high);
    return p->nines[i].line;
}
