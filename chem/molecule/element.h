/* chem/molecule/element.h - symbols of the elements. Unknown numbers (0, above 118) give "X". */
#ifndef CH_ELEMENT_H
#define CH_ELEMENT_H

enum { CH_ELEMENTS = 118 };

const char *ch_element_symbol(int z);      /* "C"; never NULL */
int ch_element_number(const char *symbol); /* any letter case; 0 when unknown; D and T are 1 */

#endif
