/* tests/mmff_suite.h - Halgren's validation suite of MMFF94 (tests/data/mmff94), and the tables of the force field. */
#ifndef MMFF_SUITE_H
#define MMFF_SUITE_H

#include "chem/structures/energy.h"
#include "chem/structures/mmff.h"

typedef struct suite_molecule {
    const char *name;
    ch_mol mol;
    double (*xyz)[3];                 /* [n_atoms], all four decimals of the file */
    double energy[CH_N_TERM_CLASSES]; /* of Halgren's program: van der Waals and electrostatic to 5 decimals, the others to 4 */
} suite_molecule;

typedef struct suite {
    int n;
    suite_molecule *molecules; /* [n], in the order of the file */
} suite;

/* Open Babel's data folder: $BABEL_DATADIR, else that of the installed version. */
const char *suite_tables(void);

/* folder: tests/data/mmff94. EDATA: a file is not what it must be. Everything lives in mem. */
pl_code suite_read(suite *out, const char *folder, pl_arena *mem, pl_error *err);

/* The same terms, with those of the other classes left out or, for pairs, with their constants 0. CH_N_TERM_CLASSES: all. */
ch_terms suite_only(const ch_terms *terms, int class, pl_arena *mem);

#endif
