/* stages/steps/rank/score_columns.h - what people want to see of a hit: `molsieve top` and the report's table. Files have other columns
 * (stages/steps/rank/table_columns.h). */
#ifndef ST_SCORE_COLUMNS_H
#define ST_SCORE_COLUMNS_H

#include <sqlite3.h>
#include <stdbool.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

/* shown: the molecules that are shown, as SQL: a table or (SELECT ..) with the columns of `hit`, NULL where a molecule is none.
 * Adds to a SELECT in which `h` is the hit and `m` its molecule, for each scored property, ", (...) AS "logS (log10(mol/L))"" and the
 * half-width of its interval; then what one of the shown has: the objective, unless it is a score; similarity; domain, if one is
 * outside (on a page with the reasons); front, cluster; alerts; undefined stereo. */
pl_code st_score_columns(sqlite3 *db, const char *shown, bool page, pl_text *sql, pl_error *err);

/* The same of the first n hits. */
pl_code st_score_columns_of_hits(sqlite3 *db, int64_t n, bool page, pl_text *sql, pl_error *err);

#endif
