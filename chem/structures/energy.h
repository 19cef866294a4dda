/* chem/structures/energy.h - the MMFF94 energy of a structure: the plain reference in double that faster kernels are held against.
 *
 * kcal/mol, Angstrom. All pairs, no cutoff. The sums are taken term by term in the order of the arrays, so the same terms and positions
 * always give the same bits. T. A. Halgren, J. Comput. Chem. 17, 490 (1996), equations 2 to 9. */
#ifndef CH_ENERGY_H
#define CH_ENERGY_H

#include "chem/structures/terms.h"

/* "bond", "angle", "stretch_bend", ...: the name of a class of terms. */
const char *ch_term_class_name(enum ch_term_class class);

/* sums[CH_N_TERM_CLASSES]: the energy of each class. xyz[n_atoms][3]. gradient[n_atoms][3], or NULL: overwritten with the derivative
 * of the sum of all classes, kcal/mol/A. */
void ch_energy(double sums[CH_N_TERM_CLASSES], double (*gradient)[3], const ch_terms *terms, const double (*xyz)[3]);

/* The sum of all classes. */
double ch_energy_total(const double sums[CH_N_TERM_CLASSES]);

#endif
