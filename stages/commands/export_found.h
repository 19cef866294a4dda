/* stages/commands/export_found.h - writes molecules that a search found, with the columns of `molsieve export`. */
#ifndef ST_EXPORT_FOUND_H
#define ST_EXPORT_FOUND_H

#include "stages/database/results.h"

/* "csv", "sdf", "smi", "json", "jsonl". */
bool st_export_knows(const char *format);

/* The molecules of the table temp.found(place, mol_id, similarity), in the order of place, to a file, complete or not at all, or (NULL, "-")
 * to standard output. number: the name of a last column with what `similarity` holds, or NULL. *n_skipped: molecules without a structure, which an SDF leaves out. */
pl_code st_export_found(const st_ask *ask, const char *format, const char *file, const char *number, int64_t *n_skipped,
                        pl_error *err);

#endif
