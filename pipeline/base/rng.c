/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/rng.h"

#include <math.h>

pl_rng pl_rng_at(uint64_t seed, uint64_t record, uint32_t purpose)
{
    pl_rng r = { pl_splitmix64(pl_splitmix64(pl_splitmix64(seed) ^ record) ^ purpose), 0 };
    return r;
}

uint64_t pl_rng_u64(pl_rng *r) { return pl_splitmix64(r->key ^ pl_splitmix64(r->counter++)); }

uint64_t pl_rng_below(pl_rng *r, uint64_t n)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % n, x;

    do
        x = pl_rng_u64(r);
    while (x >= limit);
    return x % n;
}

double pl_rng_real(pl_rng *r) { return (double)(pl_rng_u64(r) >> 11) * 0x1p-53; }

double pl_rng_normal(pl_rng *r)
{
    double u = 1.0 - pl_rng_real(r), v = pl_rng_real(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
