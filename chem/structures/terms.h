/* chem/structures/terms.h - a molecule's MMFF94 energy as arrays of terms.
 *
 * The contract between typing (which writes the terms), the kernels that compute energies on a processor or a GPU, distance
 * geometry and the preconditioner of the minimiser. Units: Angstrom, degrees, kcal/mol, elementary charge. Atoms are
 * 32-bit indices into the molecule. Parameters are double here; a kernel converts them to what it computes in. The arrays live in
 * the arena that ch_terms_make was given. Formulas: T. A. Halgren, J. Comput. Chem. 17, 490 (1996), equations 2 to 9. */
#ifndef CH_TERMS_H
#define CH_TERMS_H

#include <stdbool.h>
#include <stdint.h>

/* The seven classes, in the order of Halgren's output. */
enum ch_term_class { CH_BOND, CH_ANGLE, CH_STRETCH_BEND, CH_OUT_OF_PLANE, CH_TORSION, CH_VDW, CH_ELECTROSTATIC, CH_N_TERM_CLASSES };

typedef struct {
    int32_t i, j;
    double k, r0; /* md/A, A */
} ch_bond_term;

typedef struct {
    int32_t i, j, k;   /* j is the centre */
    double ka, theta0; /* md A/rad^2, degrees */
    bool linear;       /* E = 143.9325 ka (1 + cos theta) */
} ch_angle_term;

typedef struct {
    int32_t i, j, k;   /* j is the centre */
    double k_ij, k_kj; /* md/rad: with the stretch of i-j, of k-j */
    double r0_ij, r0_kj, theta0;
} ch_stretch_bend_term;

typedef struct {
    int32_t i, j, k, l; /* j is the centre, l leaves the plane of i, j, k */
    double koop;        /* md A/rad^2 */
} ch_out_of_plane_term;

typedef struct {
    int32_t i, j, k, l; /* about the bond j-k */
    double v1, v2, v3;  /* kcal/mol */
} ch_torsion_term;

/* A pair of atoms that are at least three bonds apart. */
typedef struct {
    int32_t i, j;           /* i < j; sorted */
    double r_star, epsilon; /* of the buffered 14-7 potential, donor-acceptor scaling included */
    double charges;         /* 332.0716 q_i q_j by the dielectric constant, times 0.75 where the atoms are three bonds apart */
} ch_pair_term;

typedef struct ch_terms {
    int32_t n_atoms;
    int32_t n_bonds, n_angles, n_stretch_bends, n_out_of_planes, n_torsions, n_pairs;
    ch_bond_term *bonds;
    ch_angle_term *angles;
    ch_stretch_bend_term *stretch_bends;
    ch_out_of_plane_term *out_of_planes;
    ch_torsion_term *torsions;
    ch_pair_term *pairs;
    uint8_t *type;  /* [n_atoms] numeric MMFF94 type, 1..99 */
    double *charge; /* [n_atoms] partial charge */
    double offset;  /* kcal/mol, of the torsions of cumulenes, which kernels give as 0 or less; 0 without them */
} ch_terms;

#endif
