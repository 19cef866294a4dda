/* stages/commands/explain_score.h - `molsieve explain ID`: why a molecule has its scores. */
#ifndef ST_EXPLAIN_SCORE_H
#define ST_EXPLAIN_SCORE_H

#include "pipeline/cli/cmd.h"

/* Prints, of molecule mol_id (-1: the one that the first argument names, as `show` reads it) in the results that args name after it: its scores and domain, what each model is the mean of, the
 * nearest training molecules with their values, and what moved the prediction of each member. Returns the exit status. */
int st_explain_score(const pl_app *app, const pl_args *args, int64_t mol_id);

#endif
