/* stages/fit/smiles_column.h - which column of a table has SMILES, by what it holds. */
#ifndef ST_SMILES_COLUMN_H
#define ST_SMILES_COLUMN_H

#include "chem/records/record.h"
#include "chem/worker/worker_client.h"

/* What to say where there is none: of the table's path, its columns. */
#define ST_NO_SMILES "%s: no column has SMILES; there are: %.300s; --smiles-column names one"

/* Of the first rows of a table: the column of which most values are molecules, the largest ones; borrowed from r. NULL: there is none.
 * ECONFIG: it has a molecule for a name (ch_reader_headed). r is read: open it again. */
pl_code st_smiles_column(const char **out, ch_reader *r, ch_worker *w, pl_error *err);

#endif
