/* stages/expression/chemistry.h - SQL functions that know molecules, for one connection of SQLite.
 *
 *   smarts(smiles, 'PATTERN')        1 if the molecule matches, 0 if it does not; the pattern must be valid
 *   similarity(x, y)                 Tanimoto similarity of ECFP4 fingerprints, 0 to 1; x and y are SMILES, or stored fingerprints
 *   scaffold(smiles)                 the Bemis-Murcko scaffold as SMILES; '' for a molecule without rings
 *   fingerprint(smiles)              2,048 bits in 256 bytes, as fingerprint.bits
 *
 * NULL gives NULL, and so does a SMILES in a row that cannot be read; a constant that cannot be read is an error. SMILES are read by the
 * chemistry worker, which is started at the first call that needs it; 1 ms a molecule. Calls of one connection come one at a time.
 *
 * This file and chemistry.c are also compiled into the loadable extension (stages/sqlite/extension.c). */
#ifndef ST_CHEMISTRY_H
#define ST_CHEMISTRY_H

#ifdef MOLSIEVE_SQLITE_EXTENSION
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3
#else
#include <sqlite3.h>
#endif

#include "chem/worker/worker_client.h"

/* Adds the functions to the connection, which owns them from now on. opts (NULL: defaults): limits of the worker, and its program. */
pl_code st_chemistry_add(sqlite3 *db, const ch_worker_opts *opts, pl_error *err);

/* The worker's options for these functions: a molecule that takes longer than 5 CPU seconds with a pattern is an error. */
ch_worker_opts st_chemistry_limits(void);

#endif
