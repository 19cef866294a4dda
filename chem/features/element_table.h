/* chem/features/element_table.h - numbers of the elements that descriptors need.
 *
 * Mass: standard atomic weight, abridged (IUPAC 2021), else the mass number of a long-lived isotope. Radius: half the length of a single
 * bond. Electrons: outer shell, with d electrons up to group 11. Valence: the lowest usual one of a neutral atom; 0: none. */
#ifndef CH_ELEMENT_TABLE_H
#define CH_ELEMENT_TABLE_H

#include <stdint.h>

#include "chem/molecule/element.h"

typedef struct ch_element_row {
    int32_t mass;    /* 1e-4 u          */
    int16_t radius;  /* 0.001 Angstrom  */
    uint8_t outer;   /* electrons       */
    uint8_t valence; /* bonds           */
} ch_element_row;

extern const ch_element_row ch_element_rows[CH_ELEMENTS + 1]; /* by atomic number; 0: zeros */

#endif
