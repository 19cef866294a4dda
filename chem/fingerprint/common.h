/* chem/fingerprint/common.h - common bits of one fingerprint with each of many, as fast as the processor allows. */
#ifndef CH_COMMON_H
#define CH_COMMON_H

#include "chem/fingerprint/fingerprint.h"

/* both[i]: number of bits that query and all[i] have in common, i = 0..n-1. Then the Tanimoto similarity is
 * both[i] / (ones of query + ones of all[i] - both[i]). Any thread. */
void ch_common(int32_t *both, const ch_fingerprint *query, const ch_fingerprint *all, int32_t n);

/* Number of bits that each has. */
void ch_common_ones(int32_t *ones, const ch_fingerprint *all, int32_t n);

/* Implementation k of ch_common for this processor, the fastest (the one it uses) first; NULL after the last. */
typedef void ch_common_kernel(int32_t *both, const ch_fingerprint *query, const ch_fingerprint *all, int32_t n);
ch_common_kernel *ch_common_at(int k);

#endif
