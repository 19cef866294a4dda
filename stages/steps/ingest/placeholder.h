/* stages/steps/ingest/placeholder.h - numbers that stand for "not measured": -999, 9999, -99.9. They are learned as any other, and spoil all.
 *
 * A number that is written with nines alone, at least two, is taken for one where at least two rows have it, and where it is farther from
 * all other numbers than these are from each other. Not thread-safe. */
#ifndef ST_PLACEHOLDER_H
#define ST_PLACEHOLDER_H

#include <stdbool.h>
#include <stdint.h>

enum { ST_NINES = 4, ST_PLACEHOLDER_BYTES = 240 };

/* The numbers of a column. Zeroed before the first. */
typedef struct st_placeholders {
    struct {
        double value;
        int64_t n, line; /* rows that have it, and the first of them */
    } nines[ST_NINES];   /* more different ones count as other numbers */
    double low, high;    /* of the others */
    int64_t n_others;
} st_placeholders;

void st_placeholders_add(st_placeholders *p, double value, int64_t line);

/* Which of p->nines is one; -1: none. */
int st_placeholders_find(const st_placeholders *p);

/* The first line of a placeholder of the column `name`, and what to say of it; 0: there is none. */
int64_t st_placeholders_say(char out[ST_PLACEHOLDER_BYTES], const st_placeholders *p, const char *name);

#endif
