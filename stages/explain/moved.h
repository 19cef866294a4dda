/* SPDX-License-Identifier: Apache-2.0 */
/* stages/explain/moved.h - the lines that say what moved a prediction, and their order. */
#ifndef ST_MOVED_H
#define ST_MOVED_H

#include <stdint.h>

typedef struct st_moved {
    double by;
    const char *what;
    int32_t place; /* of its column, descriptor or atom among all */
} st_moved;

/* How many digits are shown. */
#define ST_MOVED_FORMAT "%+.3g"

/* The largest first. Parts that are shown with the same digits may differ by rounding, which depends on the processor: they are in the
 * order of their places. */
void st_moved_sort(st_moved *part, int32_t n);

#endif
