/* pipeline/base/rng.h - random numbers that do not depend on scheduling.
 *
 * A stream is named by (seed, record, purpose); it is the same on every
 * machine, for any number of workers, and after a resume. The generator is
 * counter-based: draw n of a stream is splitmix64(key XOR splitmix64(n)), n from 0
 * (Steele, Lea, Flood 2014). */
#ifndef PL_BASE_RNG_H
#define PL_BASE_RNG_H

#include <stdint.h>

typedef struct pl_rng {
    uint64_t key, counter;
} pl_rng; /* a value; copy freely */

pl_rng pl_rng_at(uint64_t seed, uint64_t record, uint32_t purpose); /* the start of a stream */
uint64_t pl_rng_u64(pl_rng *r);                                     /* uniform over all 64-bit numbers */
uint64_t pl_rng_below(pl_rng *r, uint64_t n);                       /* 0..n-1, unbiased; n >= 1 */
double pl_rng_real(pl_rng *r);                                      /* uniform in [0, 1), a multiple of 2^-53 */
double pl_rng_normal(pl_rng *r);                                    /* mean 0, variance 1; Box-Muller, two draws of the stream */

/* Mixes the bits of x; one-to-one. In the header, because fingerprints and scaffolds spend much of their time in it. */
static inline uint64_t pl_splitmix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

#endif
