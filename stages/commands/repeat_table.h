/* stages/commands/repeat_table.h - the errors of several splits as one table (`molsieve repeat`).
 *
 * Main thread. */
#ifndef ST_REPEAT_TABLE_H
#define ST_REPEAT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"

typedef struct st_repeated {
    const json_t *known;    /* key of `evaluate` -> its rows: property, part, metric, value, unit, n */
    const char *const *key; /* [n] of the splits */
    int64_t n;
    bool folds; /* the splits are folds of one partition */
    pl_arena *mem;
} st_repeated;

/* An array with one row for each error that some split has: mean, stdev and splits; of what is not the model difference, difference95 and
 * difference_splits, of folds pooled. Those of the first split first. The caller frees it. */
json_t *st_repeat_table(const st_repeated *r);

/* Prints it for people: the errors on the part test, if there is one, else on all. */
void st_repeat_print(const st_repeated *r, const json_t *table);

#endif
