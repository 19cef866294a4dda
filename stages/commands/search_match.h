/* stages/commands/search_match.h - which of many molecules match a SMARTS: several chemistry workers at once, results in order. */
#ifndef ST_SEARCH_MATCH_H
#define ST_SEARCH_MATCH_H

#include <stdint.h>

#include "pipeline/base/error.h"

typedef struct st_matcher st_matcher;

/* One molecule, in the order in which they were added. yes: it matches; why: it could not be compared, and why not, else NULL. */
typedef pl_code st_match_give(void *ctx, int64_t mol_id, double similarity, int yes, const char *smiles, const char *why,
                              pl_error *err);

/* jobs: threads with a worker each. smarts is borrowed, and valid (ch_worker_match). */
pl_code st_matcher_open(st_matcher **out, const char *smarts, int jobs, st_match_give *give, void *ctx, pl_error *err);
void st_matcher_close(st_matcher *m); /* NULL is fine; drops what is not given yet */

/* Adds a molecule; gives results that are ready and in the way. The same calls give the same results for any number of jobs. */
pl_code st_matcher_add(st_matcher *m, int64_t mol_id, double similarity, const char *smiles, pl_error *err);
pl_code st_matcher_finish(st_matcher *m, pl_error *err); /* gives all that are left */

#endif
