/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline/base/two.h - whether a column of numbers has only two different ones, as classes have. Zeroed before the first. */
#ifndef PL_TWO_H
#define PL_TWO_H

typedef struct pl_two {
    double value[2];
    int n; /* how many were met; 3: more than two */
} pl_two;

static inline void pl_two_add(pl_two *t, double x)
{
    for (int i = 0; i < t->n && i < 2; i++)
        if (t->value[i] == x)
            return;
    if (t->n < 2)
        t->value[t->n] = x;
    t->n = t->n < 3 ? t->n + 1 : 3;
}

#endif
