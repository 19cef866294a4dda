/* stages/steps/ingest/shells.h - tells radicals and carbenes from molecules with closed shells in SQL.
 *
 * An InChIKey knows atoms, bonds and hydrogens, not unpaired electrons: the biradical [O][O] has the key of O=O. Records with the same
 * key are one molecule only if free_valences(smiles) is the same for both. */
#ifndef ST_SHELLS_H
#define ST_SHELLS_H

#include <sqlite3.h>

#include "pipeline/base/error.h"

/* Makes the function free_valences(smiles) known to this connection: ch_smiles_free_valences (chem/molecule/valence.h). ENOMEM. */
pl_code st_shells_open(sqlite3 *db, pl_error *err);

#endif
