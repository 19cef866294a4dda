/* chem/fingerprint/nearest.h - the CH_NEAREST most similar of many fingerprints, for nearest-neighbour predictions. */
#ifndef CH_NEAREST_H
#define CH_NEAREST_H

#include "chem/fingerprint/fingerprint.h"

enum { CH_NEAREST = 5 };

typedef struct ch_near {
    int64_t both, either; /* bits in both; bits in either   */
    int32_t at;           /* index of the fingerprint       */
} ch_near;

/* The query and the most similar fingerprints so far, in descending order. Fingerprints without a common bit are ignored. */
typedef struct ch_nearest {
    ch_sought sought;
    int32_t n, skip; /* skip: index of a fingerprint to ignore, -1: none */
    ch_near near[CH_NEAREST];
} ch_nearest;

void ch_nearest_open(ch_nearest *s, const ch_fingerprint *print, int32_t skip); /* borrows print */

/* Searches all[from .. end-1]; call it for increasing ranges; from is a multiple of CH_FOLD. Of equally similar ones the first are kept. */
void ch_nearest_in(ch_nearest *s, const ch_among *a, int32_t from, int32_t end);

/* Tanimoto similarity of near[k], equal to that of ch_fingerprint_alike. */
double ch_nearest_alike(const ch_nearest *s, int32_t k);

#endif
