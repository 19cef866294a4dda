/* stages/steps/rank/score_columns.h - one column a property, for SELECTs over molecules. */
#ifndef ST_SCORE_COLUMNS_H
#define ST_SCORE_COLUMNS_H

#include <sqlite3.h>
#include <stdbool.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

/* Adds ", (...) AS "esol (log10(mol/L))"" for each scored property to a SELECT in
 * which `m` is the molecule; its standard deviation too where several models
 * scored it, its similarity, domain and the reasons for being outside where a model tells; with labels, also what was measured. Named as st_column_name does. */
pl_code st_score_columns(sqlite3 *db, bool labels, pl_text *sql, pl_error *err);

/* Adds ", h.front" of a ranking by fronts, ", h.cluster, h.n_similar" of a diverse one, ", m.undefined_stereo" if a hit has any, and
 * ", m.alerts" if alerts were looked for; `h` is the hit, `m` its molecule. *n: how many columns, if not NULL. */
pl_code st_hit_columns(sqlite3 *db, pl_text *sql, int *n, pl_error *err);

/* Adds "gap stdev (eV)" for the property "gap", or "gap (eV)", of that unit. A name that one of our own columns has gets
 * a word more. */
void st_column_name(pl_text *out, const char *name, const char *more, const char *unit);

/* Whether tables of molecules have a column with that heading whatever is scored. */
bool st_column_is_ours(const char *name);

#endif
