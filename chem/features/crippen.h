/* chem/features/crippen.h - contributions of atoms to log P and molar refractivity (Wildman and Crippen 1999). Internal to chem/features. */
#ifndef CH_CRIPPEN_H
#define CH_CRIPPEN_H

#include "chem/features/shape.h"

typedef struct ch_crippen {
    int32_t logp, mr; /* 1e-5; 1e-4 cm3/mol. Zeros for elements that the paper does not have */
} ch_crippen;

ch_crippen ch_crippen_of(const ch_shape *s, int32_t i);       /* heavy atom i                    */
ch_crippen ch_crippen_hydrogen(const ch_shape *s, int32_t i); /* each hydrogen of heavy atom i   */
ch_crippen ch_crippen_loose(bool bonded);                     /* a hydrogen of H2, or a lone one */

#endif
