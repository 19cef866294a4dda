/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/dataset/python_random.h"

enum { N = 624, M = 397 };

static void seed_by_number(st_python_random *r, uint32_t seed)
{
    r->state[0] = seed;
    for (uint32_t i = 1; i < N; i++)
        r->state[i] = 1812433253u * (r->state[i - 1] ^ r->state[i - 1] >> 30) + i;
    r->at = N;
}

/* init_by_array of the reference implementation. */
static void seed_by_words(st_python_random *r, const uint32_t *word, int n)
{
    uint32_t *s = r->state;
    int i = 1, j = 0;

    seed_by_number(r, 19650218u);
    for (int k = N > n ? N : n; k > 0; k--) {
        s[i] = (s[i] ^ (s[i - 1] ^ s[i - 1] >> 30) * 1664525u) + word[j] + (uint32_t)j;
        j = (j + 1) % n;
        if (++i >= N) {
            s[0] = s[N - 1];
            i = 1;
        }
    }
    for (int k = N - 1; k > 0; k--) {
        s[i] = (s[i] ^ (s[i - 1] ^ s[i - 1] >> 30) * 1566083941u) - (uint32_t)i;
        if (++i >= N) {
            s[0] = s[N - 1];
            i = 1;
        }
    }
    s[0] = 0x80000000u;
}

void st_python_seed(st_python_random *r, uint64_t seed)
{
    const uint32_t word[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };

    seed_by_words(r, word, word[1] ? 2 : 1);
}

static void state_next(st_python_random *r)
{
    uint32_t *s = r->state;

    for (int i = 0; i < N; i++) {
        const uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % N] & 0x7fffffffu);
        s[i] = s[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    r->at = 0;
}

uint32_t st_python_bits(st_python_random *r, int k)
{
    uint32_t y;

    if (r->at >= N)
        state_next(r);
    y = r->state[r->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    y ^= y >> 18;
    return y >> (32 - k);
}

/* A number below n, n >= 1: Random._randbelow_with_getrandbits. */
static uint32_t below(st_python_random *r, uint32_t n)
{
    int k = 0;
    uint32_t x;

    while (k < 32 && n >> k)
        k++;
    do
        x = st_python_bits(r, k);
    while (x >= n);
    return x;
}

void st_python_shuffle(st_python_random *r, int32_t *x, int32_t n)
{
    for (int32_t i = n - 1; i > 0; i--) {
        const int32_t j = (int32_t)below(r, (uint32_t)i + 1), kept = x[i];
        x[i] = x[j];
        x[j] = kept;
    }
}
