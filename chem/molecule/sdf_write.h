/* chem/molecule/sdf_write.h - writes a molecule as an SDF record.
 *
 * V2000, or V3000 when there are more than 999 atoms or bonds. Positions in
 * Angstrom; a molecule without positions is written with all coordinates zero and without
 * stereo (chem/worker/sdf_drawn.h draws it). Charges are in `M  CHG` lines, isotopes in `M  ISO`; atoms whose valence is not
 * the one that readers expect (radicals, metals) get an explicit valence, so
 * that no reader adds hydrogens (CTfile formats, BIOVIA 2020). Aromatic rings
 * are written as Kekule structures: bond type 4 is for queries, and readers cannot always
 * place the double bonds of a charged ring.
 * Titles and values are on one line: line ends in them become blanks. Fields
 * whose value is NULL are left out. The record ends with $$$$. */
#ifndef CH_SDF_WRITE_H
#define CH_SDF_WRITE_H

#include "chem/molecule/mol.h"
#include "pipeline/base/text.h"

typedef struct ch_sdf_field {
    const char *name, *value;
} ch_sdf_field;

/* Appends the record to out; title may be NULL. Afterwards check pl_text_ok(out). */
void ch_sdf_write(pl_text *out, const ch_mol *mol, const char *title, const ch_sdf_field *fields, int n_fields);

/* The same with the text of a molfile, such as a drawing, in place of a molecule. Its first line becomes the title. If its third is
 * CH_NO_STEREO, the last field is `drawing`, which says so. */
void ch_sdf_write_molfile(pl_text *out, const char *molfile, const char *title, const ch_sdf_field *fields, int n_fields);

/* Whether text is printable ASCII, ends as a molfile does and is at most 200,000 bytes: it becomes part of a file. */
bool ch_is_molfile(const char *text);

/* Appends ">  <name>" and the value on one line, and the blank line behind it. */
void ch_sdf_write_field(pl_text *out, const char *name, const char *value);

#endif
