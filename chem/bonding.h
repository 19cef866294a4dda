/* chem/bonding.h - bonds, bond orders and formal charges of atoms of which only the positions are known.
 * SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only (the worker and its test use it)
 *
 * Three steps: which atoms are connected; orders and charges; whether the positions agree with them.
 *
 * Of all assignments in which every atom has a closed shell and the charges add up to the given one, the second step finds
 * the one with, in this order: the least sum of |charge|, the fewest extended shells (S, P, Cl with more than eight electrons),
 * then charges where they belong (negative on O before N before C) together with orders that fit the bond lengths.
 * It is exact: the atoms are taken one after the other, and of all partial assignments that look the same to the rest only
 * the best is kept. The result depends on the order of atoms and bonds only where assignments are equally good. */
#ifndef CH_BONDING_H
#define CH_BONDING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CH_BONDING_PARTIAL_MAX = 1000000, /* partial assignments kept in one search; 24 bytes each */
    CH_BONDING_PER_ATOM = 4           /* bonds of n atoms are at most 4 n                      */
};

typedef struct ch_skeleton {
    int32_t n_atoms, n_bonds;
    const uint8_t *z;         /* [n_atoms]    atomic numbers                                     */
    const double (*xyz)[3];   /* [n_atoms][3] Angstrom; NULL: bond lengths decide nothing        */
    const int32_t (*bond)[2]; /* [n_bonds][2] atoms from 0; each pair once                       */
    int32_t charge;           /* of all atoms together                                           */
    int32_t unpaired;         /* electrons without a partner: 0 or 1                             */
} ch_skeleton;

typedef enum ch_bonding {
    CH_BONDING_OK = 0,
    CH_BONDING_ELEMENT, /* an element without rules here: metals        */
    CH_BONDING_PARITY,  /* electrons do not pair with this charge       */
    CH_BONDING_SHELL,   /* no assignment with closed shells             */
    CH_BONDING_SEARCH,  /* more partial assignments than allowed        */
    CH_BONDING_LONG,    /* a multiple bond longer than a single one     */
    CH_BONDING_BENT,    /* an angle at a carbon that has to be straight */
    CH_BONDING_LOOSE,   /* two atoms a little farther apart than a bond */
    CH_BONDING_MEMORY
} ch_bonding;

/* Atoms nearer than their radii and a tolerance, the nearest first, as long as both may have one more neighbour.
 * bond[CH_BONDING_PER_ATOM * n_atoms]; *n_bonds is what they are. */
ch_bonding ch_bonding_connect(int32_t n_atoms, const uint8_t *z, const double (*xyz)[3], int32_t (*bond)[2], int32_t *n_bonds);

/* order[n_bonds] becomes 1 to 3, formal[n_atoms] the charges; both are written only when the answer is OK. */
ch_bonding ch_bonding_solve(const ch_skeleton *s, uint8_t *order, int8_t *formal);

/* LONG or BENT where hydrogens are missing or positions are wrong, LOOSE where a bond is so stretched that it is not found: where[2] are the
 * atoms of the bond, or twice the carbon. */
ch_bonding ch_bonding_check(const ch_skeleton *s, const uint8_t *order, const int8_t *formal, int32_t where[2]);

/* The most bonds of an element, orders counted; -1: no rules. */
int ch_bonding_valence(int z);

/* By how much a bond is longer than the radii of this order say, Angstrom. */
double ch_bonding_stretch(const ch_skeleton *s, int32_t bond, int order);

#ifdef __cplusplus
}
#endif

#endif
