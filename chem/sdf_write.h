/* chem/sdf_write.h - a molecule of ours as an SDF record.
 *
 * V2000, or V3000 when there are more than 999 atoms or bonds. Positions in
 * Angstrom; a molecule without positions is written flat, all zeros, and then
 * says nothing of stereo. Charges in `M  CHG` lines, isotopes in `M  ISO`; atoms
 * with other valences than readers expect (radicals, metals) say theirs, so
 * that nobody adds hydrogens (CTfile formats, BIOVIA 2020). Aromatic rings
 * are Kekule structures: type 4 is for queries, and readers cannot always tell
 * where the double bonds of a charged ring go.
 * Titles and values go on one line: line ends in them become blanks. Fields
 * whose value is NULL are left out. The record ends with $$$$. */
#ifndef CH_SDF_WRITE_H
#define CH_SDF_WRITE_H

#include "chem/mol.h"
#include "pipeline/base/text.h"

typedef struct ch_sdf_field {
    const char *name, *value;
} ch_sdf_field;

/* Adds the record to out; title may be NULL. Check pl_text_ok. */
void ch_sdf_write(pl_text *out, const ch_mol *mol, const char *title, const ch_sdf_field *fields, int n_fields);

#endif
