/* chem/element.h - the periodic table, as far as screening needs it.
 *
 * Masses: IUPAC 2021 standard atomic weights, abridged (u); for elements
 * without one, the mass number of the longest-lived isotope.
 * Radii: Cordero et al., Dalton Trans. 2008, 2832 (Angstrom, single bond; C sp3,
 * Mn/Fe/Co high spin); 1.50 where the paper has none (97..118).
 * Unknown numbers (0, above 118) give "X", 0 and 0. */
#ifndef CH_ELEMENT_H
#define CH_ELEMENT_H

enum { CH_ELEMENTS = 118 };

const char *ch_element_symbol(int z); /* "C"; never NULL */
int ch_element_number(const char *symbol); /* any letter case; 0 when unknown; D and T are 1 */
double ch_element_mass(int z);   /* u        */
double ch_element_radius(int z); /* Angstrom */

#endif
