/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/explain/moved.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double shown(double x)
{
    char text[40];

    (void)snprintf(text, sizeof text, ST_MOVED_FORMAT, x);
    return fabs(strtod(text, NULL));
}

static int by_size(const void *a, const void *b)
{
    const st_moved *x = a, *y = b;
    const double p = shown(x->by), q = shown(y->by);

    if (p != q)
        return p > q ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

void st_moved_sort(st_moved *part, int32_t n) { qsort(part, (size_t)n, sizeof *part, by_size); }
