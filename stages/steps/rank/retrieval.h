/* stages/steps/rank/retrieval.h - early enrichment of known actives in a ranking (stages.rank.actives).
 *
 * Over all candidates, not only the ranked ones. Those with the label 1 are the actives, all others are not, labelled
 * or not; those whose measurements disagree (stages/steps/dataset/classes.h) do not count. Candidates of the same objective
 * share their ranks (models/metrics/enrichment.h). Memory: a few numbers for each active.
 *
 * Rows in `metric`, stage rank, split "ranking": with step 0 the numbers of models/metrics/enrichment.h, "candidates"
 * and "unlabelled"; "found" is the share of the actives among the first `step` candidates. */
#ifndef ST_RETRIEVAL_H
#define ST_RETRIEVAL_H

#include "pipeline/store/store.h"
#include "pipeline/workflow/stage.h"

typedef struct st_retrieval st_retrieval;

pl_code st_retrieval_new(st_retrieval **out, bool lower_is_better, pl_error *err);
void st_retrieval_free(st_retrieval *r); /* NULL is fine */

/* Call it first, for every candidate with a label: 0, 1 or between. */
pl_code st_retrieval_label(st_retrieval *r, double objective, double label, pl_error *err);
/* Then for every candidate, those with a label included. */
void st_retrieval_count(st_retrieval *r, double objective);
/* Then stores the rows, in the caller's transaction; a warning if no candidate is active, or all are. */
pl_code st_retrieval_put(const st_retrieval *r, pl_env *env, const char *label, pl_error *err);

#endif
