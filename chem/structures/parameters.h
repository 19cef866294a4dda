/* chem/structures/parameters.h - the parameter tables of MMFF94 and MMFF94s, read from the files of an installed Open Babel.
 *
 * The tables (mmff*.par) carry the copyright of Merck and are not part of this program: they are read at run time, once, into
 * sorted arrays. Everything lives in the arena that ch_mmff_read was given and does not change afterwards, so threads may share it.
 * Units: md/A, A, md A/rad^2, degrees, md/rad, kcal/mol, elementary charge. Types are 1..99; in keys 0 stands for any type.
 * T. A. Halgren, J. Comput. Chem. 17, 490, 520, 553, 587, 616 (1996); MMFF94s: 20, 720 (1999). */
#ifndef CH_PARAMETERS_H
#define CH_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

enum { CH_MMFF_TYPES = 100, CH_MMFF_LEVELS = 5 };

/* What MMFFPROP says about a type. known: whether the tables have it. */
typedef struct ch_mmff_type {
    bool known;
    uint8_t z, neighbours, valence;
    bool lone_pair;                        /* on a pi system */
    uint8_t multiple;                      /* 1: partly double, 2: double, 3: triple */
    bool aromatic, linear, single_between; /* single_between: may have a single bond between multiple ones */
    uint8_t equivalent[CH_MMFF_LEVELS];    /* MMFFDEF: from the type itself to 0, any */
    double increment, share; /* MMFFPBCI: partial bond charge increment, share of the formal charge that goes to each neighbour */
    double alpha, electrons, a, g; /* MMFFVDW: alpha, N, A, G */
    char hydrogen_bond;            /* 'D', 'A' or '-' */
} ch_mmff_type;

typedef struct ch_mmff_row {
    uint64_t key;
    double value[3];
} ch_mmff_row;

/* Rows sorted by key; each key once. */
typedef struct ch_mmff_table {
    int32_t n;
    ch_mmff_row *rows; /* [n] */
} ch_mmff_table;

typedef struct ch_mmff {
    ch_mmff_type type[CH_MMFF_TYPES];
    ch_mmff_table bond;               /* class, i <= j: kb, r0 */
    ch_mmff_table bond_rule;          /* 0, atomic numbers i <= j: r0, kb of a single bond */
    ch_mmff_table angle;              /* class, i, j, k with i <= k: ka (0: by rule), theta0 */
    ch_mmff_table stretch_bend;       /* class, i, j, k with i <= k: k_ij, k_kj */
    ch_mmff_table stretch_bend_rule;  /* 0, rows of the periodic table i, j, k with i <= k: k_ij, k_kj */
    ch_mmff_table torsion[2];         /* class, i, j, k, l with j < k or j == k and i <= l: V1, V2, V3; [1]: MMFF94s */
    ch_mmff_table out_of_plane[2];    /* centre, the others ascending: koop; [1]: MMFF94s */
    ch_mmff_table charge;             /* class, i <= j: what the bond adds to the charge of j and takes from i */
    double (*r_star)[CH_MMFF_TYPES];  /* [i][j] A, donor-acceptor scaling included */
    double (*epsilon)[CH_MMFF_TYPES]; /* [i][j] kcal/mol */
} ch_mmff;

/* Reads the tables in `folder` (Open Babel's data folder, e.g. /usr/share/openbabel/3.1.1). PL_ECONFIG when a table is not
 * there, PL_EDATA when one is damaged, with the file and the line in err. */
pl_code ch_mmff_read(ch_mmff *out, const char *folder, pl_arena *mem, pl_error *err);

/* Keys of the tables. The functions put the types into the table's order. */
uint64_t ch_mmff_key(int class, int a, int b, int c, int d);

/* The values of a key; NULL: not in the table. */
const double *ch_mmff_find(const ch_mmff_table *table, uint64_t key);

#endif
