/* chem/bonding.h - bond orders and formal charges of atoms of which only the connections are known.
 * SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only (the worker and its test use it)
 *
 * Of all assignments in which every atom has a closed shell and the charges add up to the given one, the one with, in
 * this order: the fewest unusual atoms (carbenes), the least sum of |charge|, the fewest extended shells (S, P, Cl with more than
 * eight electrons), charges where they belong (negative on O before N before C), and orders that fit the bond lengths.
 * It is exact: the atoms are taken one after the other, and of all partial assignments that look the same to the rest only
 * the best is kept. The result depends on the order of atoms and bonds only where assignments are equally good. */
#ifndef CH_BONDING_H
#define CH_BONDING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CH_BONDING_PARTIAL_MAX = 1000000 }; /* partial assignments kept in one search; about 24 bytes each */

typedef struct ch_skeleton {
    int32_t n_atoms, n_bonds;
    const uint8_t *z;         /* [n_atoms]    atomic numbers              */
    const int32_t (*bond)[2]; /* [n_bonds][2] atoms from 0; a pair once   */
    const double *length;     /* [n_bonds]    Angstrom                    */
    int32_t charge;           /* of all atoms together                    */
    int32_t unpaired;         /* electrons without a partner: 0 or 1      */
} ch_skeleton;

typedef enum ch_bonding {
    CH_BONDING_OK = 0,
    CH_BONDING_ELEMENT, /* an element without rules here: metals        */
    CH_BONDING_PARITY,  /* electrons do not pair with this charge       */
    CH_BONDING_SHELL,   /* no assignment with closed shells             */
    CH_BONDING_SEARCH,  /* more partial assignments than allowed        */
    CH_BONDING_MEMORY
} ch_bonding;

/* order[n_bonds] becomes 1 to 3, formal[n_atoms] the charges; both are written only when the answer is OK. */
ch_bonding ch_bonding_solve(const ch_skeleton *s, uint8_t *order, int8_t *formal);

#ifdef __cplusplus
}
#endif

#endif
