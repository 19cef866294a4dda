/* chem/sdf_write.h - a molecule as an SDF record (MDL CTfile, V2000; V3000
 * beyond 999 atoms or bonds). Positions in Angstrom, zeros where there is no 3D;
 * aromatic bonds as type 4. Names and values of data fields go on one line each:
 * line ends in them become blanks. */
#ifndef CH_SDF_WRITE_H
#define CH_SDF_WRITE_H

#include "chem/mol.h"
#include "pipeline/base/text.h"

typedef struct ch_sdf_field {
    const char *name, *value;
} ch_sdf_field;

/* Adds the record, "$$$$" included, to out. title may be NULL. Check pl_text_ok. */
void ch_sdf_write(pl_text *out, const ch_mol *mol, const char *title, const ch_sdf_field *fields, int n_fields);

#endif
