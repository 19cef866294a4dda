/* tests/sdf_mol.h - molecules with bonds and positions from a V2000 file, for tests of chem/structures.
 *
 * Bonds come as they are drawn (Kekule), hydrogens must be atoms. Everything lives in the arena. */
#ifndef SDF_MOL_H
#define SDF_MOL_H

#include "chem/molecule/mol.h"
#include "chem/structures/stereo.h"
#include "chem/structures/terms.h"

typedef struct sdf_mol {
    ch_mol mol;
    ch_terms terms; /* of MMFF94; sdf_read_terms */
    char name[200];
} sdf_mol;

/* The molecules of a gzipped file, at most `most`; the program ends if the file is not readable. */
int32_t sdf_read(sdf_mol *out, int32_t max, const char *path, pl_arena *mem);

/* Ligands of the PDB (ligands.sdf.gz) and then ring systems (shapes.sdf.gz) of the folder of test data, those in one part
 * that MMFF94 knows, with their terms. At most `ligands` of the first. */
int32_t sdf_read_terms(sdf_mol *out, int32_t max, int32_t ligands, const char *folder, pl_arena *mem);

/* The stereo of a molecule's positions: carbons with four neighbours of which at most one is a hydrogen, and double
 * bonds between carbons outside rings of up to seven atoms. */
ch_stereo sdf_stereo(const ch_mol *mol, pl_arena *mem);

#endif
