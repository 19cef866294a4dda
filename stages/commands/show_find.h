/* stages/commands/show_find.h - the molecules and records that a word means: a title, a number, an InChIKey, or a SMILES. */
#ifndef ST_SHOW_FIND_H
#define ST_SHOW_FIND_H

#include "stages/database/results.h"

enum { ST_SHOWN_MAX = 10 };

typedef struct st_shown {
    int64_t mol_id[ST_SHOWN_MAX]; /* [n] in the order of mol_id                                      */
    int64_t record[ST_SHOWN_MAX]; /* [n_records] records of that title that gave no molecule         */
    int n, n_records;
    int64_t n_more; /* that are not listed                                              */
    const char *as; /* "title", "number", "InChIKey" or "SMILES": how the word was read */
} st_shown;

/* Tried in the order of `as`. ECONFIG: there is none; the text suggests titles that are close. */
pl_code st_show_find(st_shown *out, pl_store *s, const char *word, pl_arena *mem, pl_error *err);

#endif
