/* chem/structures/rules.h - parameters of MMFF94 for the types at hand: from the tables, step by step down the equivalences of
 * MMFFDEF, or else by the empirical rules of paper V. Used by mmff.c only. All arguments are numeric types unless said otherwise. */
#ifndef CH_RULES_H
#define CH_RULES_H

#include "chem/structures/parameters.h"

/* A bond as the rules see it. */
typedef struct ch_bond_sight {
    int order;     /* 1 to 3 */
    bool aromatic; /* in an aromatic ring */
    int class;     /* 1: single between two multiple ones */
    double k, r0;  /* filled by ch_rule_bond */
} ch_bond_sight;

enum { CH_NO_RING = 0 };

/* Each returns false where the rules have no constants for an element. */
bool ch_rule_bond(ch_bond_sight *bond, const ch_mmff *p, int i, int j);

/* ring: 3 or 4 when the three atoms are in such a ring, else 0. class of an angle: by ch_rule_angle_class. */
int ch_rule_angle_class(int ring, int class_ij, int class_jk);
bool ch_rule_angle(double *ka, double *theta0, const ch_mmff *p, int ring, const ch_bond_sight *ij, const ch_bond_sight *jk,
                   const int type[3]);
void ch_rule_stretch_bend(double *k_ij, double *k_kj, const ch_mmff *p, int ring, const ch_bond_sight *ij, const ch_bond_sight *jk,
                          const int type[3]);
double ch_rule_out_of_plane(const ch_mmff *p, bool mmff94s, int centre, const int others[3]);

/* ring: 4 or 5 when the four atoms are in such a ring without a shortcut. bond[3]: i-j, j-k, k-l. */
bool ch_rule_torsion(double v[3], const ch_mmff *p, bool mmff94s, int ring, const ch_bond_sight *const bond[3], const int type[4]);

#endif
