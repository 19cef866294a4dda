/* stages/commands/search_find.h - finds molecules of a run by pattern, similarity and scaffold. */
#ifndef ST_SEARCH_FIND_H
#define ST_SEARCH_FIND_H

#include "stages/database/results.h"

typedef struct st_search {
    const char *smarts, *similar, *scaffold, *where; /* conditions that must all hold; NULL: not asked                 */
    double at_least;                                 /* similarity, 0 to 1                                             */
    int64_t limit;                                   /* 0: all */
    int jobs;                                        /* chemistry workers that compare with the pattern */
} st_search;

typedef struct st_search_said {
    int64_t n_found, n_computed,
        n_failed;    /* n_computed: had no stored fingerprint; n_failed: could not be compared with the pattern */
    bool more;       /* the limit was reached before all were looked at                  */
    char first[300]; /* why the first failed                                             */
} st_search_said;

/* All that is wrong with the conditions. The worker is asked about SMARTS and SMILES. */
pl_code st_search_check(const st_search *q, pl_problems *problems, pl_arena *mem, pl_error *err);

/* Fills the table temp.found(place, mol_id, similarity): by decreasing similarity, else hits by rank and then the others by mol_id.
 * Molecules without a stored fingerprint get it from their SMILES. EIO, ENOMEM. */
pl_code st_search_find(st_search_said *said, const st_search *q, pl_store *s, pl_arena *mem, pl_error *err);

#endif
