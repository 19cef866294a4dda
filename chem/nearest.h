/* chem/nearest.h - the few most alike of many fingerprints, for predictions by nearest neighbours. */
#ifndef CH_NEAREST_H
#define CH_NEAREST_H

#include "chem/fingerprint.h"

enum { CH_NEAREST = 5 };

typedef struct ch_near {
    int64_t both, either; /* bits in common, bits of either */
    int32_t at;           /* number of the fingerprint      */
} ch_near;

/* What is looked for and the most alike so far, the most alike first. Fingerprints without a common bit do not count. */
typedef struct ch_nearest {
    ch_sought sought;
    int32_t n, skip;      /* skip: a number that does not count, -1 for none */
    ch_near near[CH_NEAREST];
} ch_nearest;

void ch_nearest_open(ch_nearest *s, const ch_fingerprint *print, int32_t skip); /* print stays */

/* Among all[from .. end-1], after those before; from is a multiple of CH_FOLD. Of several as alike the first are kept. */
void ch_nearest_in(ch_nearest *s, const ch_fingerprint *all, const ch_folds *folds, int32_t from, int32_t end);

/* Tanimoto similarity of near[k], the number of ch_fingerprint_alike. */
double ch_nearest_alike(const ch_nearest *s, int32_t k);

#endif
