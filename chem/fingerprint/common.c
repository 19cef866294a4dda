/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fingerprint/common.h"

#include <stddef.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { WORDS = CH_FINGERPRINT_BITS / 64 };

/* Inlined into each caller, so that each counts bits with the instructions of its processor. */
#define INLINE static inline __attribute__((always_inline))

INLINE void count(int32_t *both, const ch_fingerprint *query, const ch_fingerprint *all, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t sum = 0;
        for (int k = 0; k < WORDS; k++)
            sum += __builtin_popcountll(query->word[k] & all[i].word[k]);
        both[i] = sum;
    }
}

static void count_plain(int32_t *both, const ch_fingerprint *query, const ch_fingerprint *all, int32_t n)
{
    count(both, query, all, n);
}

#ifdef __x86_64__
#define AVX512 __attribute__((target("avx512f,avx512vpopcntdq,popcnt")))
#define AVX2 __attribute__((target("avx2,popcnt")))
#define POPCNT __attribute__((target("popcnt")))

/* The query stays in four registers. */
AVX512 static void count_avx512(int32_t *both, const ch_fingerprint *query, const ch_fingerprint *all, int32_t n)
{
    const __m512i q0 = _mm512_loadu_si512(query->word), q1 = _mm512_loadu_si512(query->word + 8),
                  q2 = _mm512_loadu_si512(query->word + 16), q3 = _mm512_loadu_si512(query->word + 24);

    for (int32_t i = 0; i < n; i++) {
        const uint64_t *w = all[i].word;
        const __m512i a = _mm512_add_epi64(_mm512_popcnt_epi64(_mm512_and_si512(q0, _mm512_loadu_si512(w))),
                                           _mm512_popcnt_epi64(_mm512_and_si512(q1, _mm512_loadu_si512(w + 8)))),
                      b = _mm512_add_epi64(_mm512_popcnt_epi64(_mm512_and_si512(q2, _mm512_loadu_si512(w + 16))),
                                           _mm512_popcnt_epi64(_mm512_and_si512(q3, _mm512_loadu_si512(w + 24))));
        both[i] = (int32_t)_mm512_reduce_add_epi64(_mm512_add_epi64(a, b));
    }
}

/* Number of bits in each byte, by a table for half bytes (Mula, Kurz, Lemire, Comput. J. 2018, 61, 111). */
AVX2 INLINE __m256i bits_of_bytes(__m256i v)
{
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3,
                                           3, 4),
                  low = _mm256_set1_epi8(15);

    return _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(v, low)),
                           _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(v, 4), low)));
}

/* The sum in a byte over the eight parts of a fingerprint is at most 64. */
AVX2 static void count_avx2(int32_t *both, const ch_fingerprint *query, const ch_fingerprint *all, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        __m256i bits = _mm256_setzero_si256(), sums;
        for (int k = 0; k < WORDS; k += 4)
            bits = _mm256_add_epi8(bits, bits_of_bytes(_mm256_and_si256(_mm256_loadu_si256((const void *)(query->word + k)),
                                                                        _mm256_loadu_si256((const void *)(all[i].word + k)))));
        sums = _mm256_sad_epu8(bits, _mm256_setzero_si256());
        both[i] = (int32_t)(_mm256_extract_epi64(sums, 0) + _mm256_extract_epi64(sums, 1) + _mm256_extract_epi64(sums, 2) +
                            _mm256_extract_epi64(sums, 3));
    }
}

POPCNT static void count_popcnt(int32_t *both, const ch_fingerprint *query, const ch_fingerprint *all, int32_t n)
{
    count(both, query, all, n);
}
#endif

ch_common_kernel *ch_common_at(int k)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vpopcntdq") && k-- == 0)
        return count_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") && k-- == 0)
        return count_avx2;
    if (__builtin_cpu_supports("popcnt") && k-- == 0)
        return count_popcnt;
#endif
    return k == 0 ? count_plain : NULL;
}

void ch_common(int32_t *both, const ch_fingerprint *query, const ch_fingerprint *all, int32_t n)
{
    ch_common_at(0)(both, query, all, n);
}

void ch_common_ones(int32_t *ones, const ch_fingerprint *all, int32_t n)
{
    ch_fingerprint full;

    memset(&full, 0xff, sizeof full);
    ch_common(ones, &full, all, n);
}
