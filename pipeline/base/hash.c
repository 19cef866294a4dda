/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/hash.h"

#include <string.h>

#include "pipeline/base/rng.h"

enum { LANES = 4 };

/* One-to-one in the state and in the word: a different word or a different state gives a different result. */
static uint64_t step(uint64_t state, const unsigned char *word)
{
    uint64_t w;

    memcpy(&w, word, sizeof w);
    w = (state ^ w) * 0x9FB21C651E98DF25u;
    return w << 29 | w >> 35;
}

uint64_t pl_hash64(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t lane[LANES] = { seed ^ n, seed + 0xA0761D6478BD642Fu, ~seed, seed ^ 0xE7037ED1A0B428DBu }, h = 0;
    unsigned char end[8] = { 0 };

    for (; n >= sizeof lane; n -= sizeof lane, p += sizeof lane)
        for (int k = 0; k < LANES; k++)
            lane[k] = step(lane[k], p + 8 * k);
    for (; n >= 8; n -= 8, p += 8)
        lane[0] = step(lane[0], p);
    if (n > 0)
        memcpy(end, p, n);
    lane[1] = step(lane[1], end);
    for (int k = 0; k < LANES; k++)
        h = pl_splitmix64(h + lane[k]);
    return h;
}
