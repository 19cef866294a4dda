/* stages/steps/rank/table_columns.h - the columns of every table of molecules that is a file: hits.csv, hits.sdf, `export`,
 * `top --csv`, the tables of the report to download. One list, one order, so that a script reads them all.
 *
 *   rank, title, smiles, inchikey, formula, objective
 *   of each property P, in the order of their names, what there is of: P, P_unit, P_stdev, P_interval90, P_similarity, P_domain,
 *     P_reasons, P_measured
 *   of the ranking, what there is of: front, cluster, n_similar; undefined_stereo; alerts
 *   the descriptors (chem/common/descriptors.h), n_heavy, charge, removed, geometry, energy
 *
 * Units of the columns without a `_unit` are in docs/FORMATS.md. */
#ifndef ST_TABLE_COLUMNS_H
#define ST_TABLE_COLUMNS_H

#include <sqlite3.h>
#include <stdbool.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

#define ST_COLUMN_ENERGY "energy" /* kcal/mol, of the first conformer of a molecule */

enum { ST_TABLE_TITLE = 1, ST_TABLE_SMILES = 2 }; /* their places */

/* Adds the list, "h.rank AS \"rank\", ...", to a SELECT in which `h` is the hit (all NULL if a molecule is none) and `m` its molecule. */
pl_code st_table_columns(sqlite3 *db, pl_text *sql, pl_error *err);

/* Whether one of these columns, whatever is scored, has that name. */
bool st_table_column_is_ours(const char *name);

#endif
