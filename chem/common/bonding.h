/* chem/common/bonding.h - bonds, bond orders and formal charges of atoms of which only the positions are known.
 * SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only (the worker and its test use it)
 *
 * Three steps: find which atoms are connected; assign orders and charges; check that the positions agree with them.
 *
 * Of all assignments in which every atom has a closed shell and the charges add up to the given one, the second step finds
 * the one with, in this order: the minimum sum of |charge|, the fewest extended shells (S, P, Cl with more than eight electrons),
 * then charges on suitable elements (negative on O before N before C) together with orders that fit the bond lengths.
 * The search is exact dynamic programming: it adds one atom after the other, and of all partial assignments that leave the same
 * choices to the remaining atoms it keeps only the best. The result depends on the order of atoms and bonds only where
 * assignments are equally good. */
#ifndef CH_BONDING_H
#define CH_BONDING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CH_BONDING_PARTIAL_MAX = 1000000, /* partial assignments kept in one search; 24 bytes each */
    CH_BONDING_PER_ATOM = 4           /* at most 4 n bonds for n atoms                         */
};

typedef struct ch_skeleton {
    int32_t n_atoms, n_bonds;
    const uint8_t *z;         /* [n_atoms]    atomic numbers                                     */
    const double (*xyz)[3];   /* [n_atoms][3] Angstrom; NULL: bond lengths are not used          */
    const int32_t (*bond)[2]; /* [n_bonds][2] atoms from 0; each pair once                       */
    int32_t charge;           /* net charge of all atoms                                         */
    int32_t unpaired;         /* unpaired electrons: 0 or 1                                      */
} ch_skeleton;

typedef enum ch_bonding {
    CH_BONDING_OK = 0,
    CH_BONDING_ELEMENT, /* an element without rules here: metals        */
    CH_BONDING_PARITY,  /* odd number of electrons with this charge     */
    CH_BONDING_SHELL,   /* no assignment with closed shells             */
    CH_BONDING_SEARCH,  /* more partial assignments than allowed        */
    CH_BONDING_LONG,    /* a multiple bond longer than a single one     */
    CH_BONDING_BENT,    /* an angle at a carbon that has to be straight */
    CH_BONDING_LOOSE,   /* two atoms slightly farther apart than a bond */
    CH_BONDING_MEMORY
} ch_bonding;

/* Connects atoms closer than the sum of their radii plus a tolerance, the closest pair first, as long as both may have one more
 * neighbour. bond has room for CH_BONDING_PER_ATOM * n_atoms; *n_bonds is the number of bonds found. */
ch_bonding ch_bonding_connect(int32_t n_atoms, const uint8_t *z, const double (*xyz)[3], int32_t (*bond)[2], int32_t *n_bonds);

/* Fills order[n_bonds] with 1 to 3 and formal[n_atoms] with charges; both are written only if the result is OK. */
ch_bonding ch_bonding_solve(const ch_skeleton *s, uint8_t *order, int8_t *formal);

/* LONG or BENT: hydrogens are missing or positions are wrong. LOOSE: a bond is stretched so much that it was not found. where[2]: the two
 * atoms of the bond, or for BENT the carbon twice. */
ch_bonding ch_bonding_check(const ch_skeleton *s, const uint8_t *order, const int8_t *formal, int32_t where[2]);

/* The maximum sum of bond orders of an element; -1: no rules for it. */
int ch_bonding_valence(int z);

/* How much longer a bond is than the sum of the radii for this order, Angstrom. */
double ch_bonding_stretch(const ch_skeleton *s, int32_t bond, int order);

/* How much longer than a single bond of its elements a bond of this length is, Angstrom; -1: no rules for one of them. */
double ch_bonding_excess(int z, int other, double length);

#ifdef __cplusplus
}
#endif

#endif
