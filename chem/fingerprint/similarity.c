/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fingerprint/fingerprint.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { WORDS = CH_FINGERPRINT_BITS / 64 };

int32_t ch_fingerprint_ones(const ch_fingerprint *f)
{
    int32_t n = 0;

    for (int k = 0; k < WORDS; k++)
        n += __builtin_popcountll(f->word[k]);
    return n;
}

/* Inlined into each caller, so that each counts bits with the instructions of its processor. */
#define INLINE static inline __attribute__((always_inline))

INLINE int32_t common(const ch_fingerprint *a, const ch_fingerprint *b)
{
    int32_t n = 0;

    for (int k = 0; k < WORDS; k++)
        n += __builtin_popcountll(a->word[k] & b->word[k]);
    return n;
}

static double ratio(int64_t both, int64_t either) { return either > 0 ? (double)both / (double)either : 0; }

double ch_fingerprint_alike(const ch_fingerprint *a, const ch_fingerprint *b)
{
    const int32_t both = common(a, b);

    return ratio(both, ch_fingerprint_ones(a) + ch_fingerprint_ones(b) - both);
}

/* ---- folds ---------------------------------------------------------------- */

/* Returns the number of bits after folding. */
static int64_t fold(uint64_t out[CH_FOLD], const ch_fingerprint *f)
{
    int64_t n = 0;

    for (int w = 0; w < CH_FOLD; w++) {
        out[w] = 0;
        for (int k = w; k < WORDS; k += CH_FOLD)
            out[w] |= f->word[k];
        n += __builtin_popcountll(out[w]);
    }
    return n;
}

void ch_folds_put(ch_folds *all, int32_t i, const ch_fingerprint *f)
{
    ch_folds *to = all + i / CH_FOLD;
    uint64_t word[CH_FOLD];
    const int at = i % CH_FOLD;

    if (at == 0)
        *to = (ch_folds){ 0 };
    to->ones[at] = ch_fingerprint_ones(f);
    to->lost[at] = to->ones[at] - fold(word, f);
    for (int w = 0; w < CH_FOLD; w++)
        to->word[w][at] = word[w];
}

/* ---- search ----------------------------------------------------------------- */

void ch_sought_open(ch_sought *s, const ch_fingerprint *print)
{
    *s = (ch_sought){ .print = print, .ones = ch_fingerprint_ones(print), .both = 0, .either = 1, .at = -1 };
    s->lost = s->ones - fold(s->word, print);
}

double ch_sought_alike(const ch_sought *s) { return ratio(s->both, s->either); }

/* Bit mask of those of eight that may be more similar than the best: both / (ones + own - both) > best, without division. */
INLINE unsigned may_be(const ch_sought *s, const ch_folds *f)
{
    unsigned yes = 0;

    for (int i = 0; i < CH_FOLD; i++) {
        int64_t both = f->lost[i] < s->lost ? f->lost[i] : s->lost;
        for (int w = 0; w < CH_FOLD; w++)
            both += __builtin_popcountll(f->word[w][i] & s->word[w]);
        yes |= (unsigned)(both * (s->both + s->either) > s->both * (f->ones[i] + s->ones)) << i;
    }
    return yes;
}

INLINE void look_at(ch_sought *s, const ch_among *a, int32_t i)
{
    const int64_t both = common(s->print, &a->all[i]), either = a->folds[i / CH_FOLD].ones[i % CH_FOLD] + s->ones - both;

    if (both * s->either <= s->both * either)
        return;
    s->both = both;
    s->either = either;
    s->at = i;
}

typedef unsigned may_be_more(const ch_sought *s, const ch_folds *f);

INLINE void look(ch_sought *s, const ch_among *a, int32_t from, int32_t end, may_be_more *ask)
{
    for (int32_t i = from; i < end; i += CH_FOLD) {
        const int32_t n = end - i < CH_FOLD ? end - i : CH_FOLD;
        const unsigned only = a->only != NULL ? a->only[i / CH_FOLD] : ~0u;
        for (unsigned which = ask(s, &a->folds[i / CH_FOLD]) & ((1u << n) - 1) & only; which; which &= which - 1)
            look_at(s, a, i + __builtin_ctz(which));
    }
}

static void look_plain(ch_sought *s, const ch_among *a, int32_t from, int32_t end) { look(s, a, from, end, may_be); }

#ifdef __x86_64__
#define AVX512 __attribute__((target("avx512f,avx512vpopcntdq,popcnt")))
#define AVX2 __attribute__((target("avx2,popcnt")))
#define POPCNT __attribute__((target("popcnt")))

AVX512 INLINE unsigned may_be_avx512(const ch_sought *s, const ch_folds *f)
{
    __m512i both = _mm512_min_epi64(_mm512_loadu_si512(f->lost), _mm512_set1_epi64(s->lost)), enough;

    for (int w = 0; w < CH_FOLD; w++)
        both = _mm512_add_epi64(
            both, _mm512_popcnt_epi64(_mm512_and_si512(_mm512_loadu_si512(f->word[w]), _mm512_set1_epi64((int64_t)s->word[w]))));
    enough =
        _mm512_mul_epu32(_mm512_set1_epi64(s->both), _mm512_add_epi64(_mm512_loadu_si512(f->ones), _mm512_set1_epi64(s->ones)));
    return _mm512_cmpgt_epu64_mask(_mm512_mul_epu32(both, _mm512_set1_epi64(s->both + s->either)), enough);
}

AVX512 static void look_avx512(ch_sought *s, const ch_among *a, int32_t from, int32_t end) { look(s, a, from, end, may_be_avx512); }

AVX2 INLINE __m256i four(const void *from) { return _mm256_loadu_si256(from); }

/* Number of bits in each byte, by a table for half bytes (Mula, Kurz, Lemire, Comput. J. 2018, 61, 111). */
AVX2 INLINE __m256i bits_of_bytes(__m256i v)
{
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3,
                                           3, 4),
                  low = _mm256_set1_epi8(15);

    return _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(v, low)),
                           _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(v, 4), low)));
}

/* The same for four, from `at` on; the sum in a byte over eight words is at most 64, and bit counts fit in 32 bits. */
AVX2 INLINE unsigned may_be_four(const ch_sought *s, const ch_folds *f, int at)
{
    __m256i bits = _mm256_setzero_si256(), both, enough;

    for (int w = 0; w < CH_FOLD; w++)
        bits =
            _mm256_add_epi8(bits, bits_of_bytes(_mm256_and_si256(four(&f->word[w][at]), _mm256_set1_epi64x((int64_t)s->word[w]))));
    both = _mm256_add_epi64(_mm256_sad_epu8(bits, _mm256_setzero_si256()),
                            _mm256_min_epu32(four(&f->lost[at]), _mm256_set1_epi64x(s->lost)));
    enough = _mm256_mul_epu32(_mm256_set1_epi64x(s->both), _mm256_add_epi64(four(&f->ones[at]), _mm256_set1_epi64x(s->ones)));
    both = _mm256_mul_epu32(both, _mm256_set1_epi64x(s->both + s->either));
    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(both, enough)));
}

AVX2 INLINE unsigned may_be_avx2(const ch_sought *s, const ch_folds *f) { return may_be_four(s, f, 0) | may_be_four(s, f, 4) << 4; }

AVX2 static void look_avx2(ch_sought *s, const ch_among *a, int32_t from, int32_t end) { look(s, a, from, end, may_be_avx2); }

POPCNT static void look_popcnt(ch_sought *s, const ch_among *a, int32_t from, int32_t end) { look(s, a, from, end, may_be); }
#endif

ch_look *ch_look_at(int k)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vpopcntdq") && k-- == 0)
        return look_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") && k-- == 0)
        return look_avx2;
    if (__builtin_cpu_supports("popcnt") && k-- == 0)
        return look_popcnt;
#endif
    return k == 0 ? look_plain : NULL;
}

void ch_sought_in(ch_sought *s, const ch_among *a, int32_t from, int32_t end) { ch_look_at(0)(s, a, from, end); }
