/* stages/steps/ingest/shells.h - tells molecules apart, in SQL, that have one InChIKey.
 *
 * An InChIKey knows atoms, bonds and hydrogens, not unpaired electrons: the biradical [O][O] has the key of O=O. Without positions it does
 * not know the forms of allenes and longer cumulenes either. Records with the same key are one molecule only if free_valences(smiles) and
 * axes(smiles) are the same for both; dedupe.by: skeleton ignores the latter, as all stereo. */
#ifndef ST_SHELLS_H
#define ST_SHELLS_H

#include <sqlite3.h>

#include "pipeline/base/error.h"

/* Makes the functions free_valences(smiles) and axes(smiles) known to this connection: ch_smiles_free_valences, and the SMILES itself if
 * ch_smiles_marks_axis (chem/molecule/valence.h), else ''. ENOMEM. */
pl_code st_shells_open(sqlite3 *db, pl_error *err);

#endif
