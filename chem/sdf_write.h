/* chem/sdf_write.h - a molecule of ours as an SDF record.
 *
 * V2000, or V3000 when there are more than 999 atoms or bonds. Positions in
 * Angstrom; a molecule without positions is written flat, all zeros. Charges in
 * `M  CHG` lines. Aromatic bonds keep type 4, which readers of molecules know
 * although MDL meant it for queries.
 * fields: [n_fields] of {name, value}; a value with a line break keeps its
 * first line, NULL values are left out. Ends with $$$$. */
#ifndef CH_SDF_WRITE_H
#define CH_SDF_WRITE_H

#include "chem/mol.h"
#include "pipeline/base/text.h"

void ch_sdf_write(pl_text *out, const ch_mol *mol, const char *title, const char *const (*fields)[2], int n_fields);

#endif
