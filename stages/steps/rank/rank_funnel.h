/* stages/steps/rank/rank_funnel.h - how many molecules each rule of the ranking leaves.
 *
 * Rows of the table `metric` with stage 'rank' and split 'funnel': step is the place from 1, name says what the molecules that are left
 * have in common, value is their number. The first is all molecules, the last the ranking; each is at most the one before. */
#ifndef ST_RANK_FUNNEL_H
#define ST_RANK_FUNNEL_H

#include <sqlite3.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

/* Adds a line for each, "       395  have all values that are asked for\n"; nothing without a ranking, or if it is of an earlier version. */
pl_code st_rank_funnel_words(pl_text *out, sqlite3 *db, pl_error *err);

#endif
