/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fingerprint.h"

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

/* Inlined in each that calls, so that every one counts bits as its processor can. */
#define INLINE static inline __attribute__((always_inline))

INLINE int32_t common(const ch_fingerprint *a, const ch_fingerprint *b)
{
    int32_t n = 0;

    for (int k = 0; k < WORDS; k++)
        n += __builtin_popcountll(a->word[k] & b->word[k]);
    return n;
}

static double ratio(int64_t both, int64_t either)
{
    return either > 0 ? (double)both / (double)either : 0;
}

double ch_fingerprint_alike(const ch_fingerprint *a, const ch_fingerprint *b)
{
    const int32_t both = common(a, b);

    return ratio(both, ch_fingerprint_ones(a) + ch_fingerprint_ones(b) - both);
}

/* ---- folds ---------------------------------------------------------------- */

/* Returns how many bits there are then. */
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

/* ---- looking ----------------------------------------------------------------- */

void ch_sought_open(ch_sought *s, const ch_fingerprint *print)
{
    *s = (ch_sought){ .print = print, .ones = ch_fingerprint_ones(print), .both = 0, .either = 1, .at = -1 };
    s->lost = s->ones - fold(s->word, print);
}

double ch_sought_alike(const ch_sought *s) { return ratio(s->both, s->either); }

/* Which of eight may be more alike than the best: both / (ones + own - both) > best, as products. */
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

INLINE void look_at(ch_sought *s, const ch_fingerprint *all, const ch_folds *folds, int32_t i)
{
    const int64_t both = common(s->print, &all[i]), either = folds[i / CH_FOLD].ones[i % CH_FOLD] + s->ones - both;

    if (both * s->either <= s->both * either)
        return;
    s->both = both;
    s->either = either;
    s->at = i;
}

typedef unsigned may_be_more(const ch_sought *s, const ch_folds *f);

INLINE void look(ch_sought *s, const ch_fingerprint *all, const ch_folds *folds, int32_t from, int32_t end, may_be_more *ask)
{
    for (int32_t i = from; i < end; i += CH_FOLD) {
        const int32_t n = end - i < CH_FOLD ? end - i : CH_FOLD;
        for (unsigned which = ask(s, &folds[i / CH_FOLD]) & ((1u << n) - 1); which; which &= which - 1)
            look_at(s, all, folds, i + __builtin_ctz(which));
    }
}

#ifdef __x86_64__
#define AVX512 __attribute__((target("avx512f,avx512vpopcntdq,popcnt")))
#define POPCNT __attribute__((target("popcnt")))

AVX512 INLINE unsigned may_be_avx512(const ch_sought *s, const ch_folds *f)
{
    __m512i both = _mm512_min_epi64(_mm512_loadu_si512(f->lost), _mm512_set1_epi64(s->lost)), enough;

    for (int w = 0; w < CH_FOLD; w++)
        both = _mm512_add_epi64(both, _mm512_popcnt_epi64(_mm512_and_si512(_mm512_loadu_si512(f->word[w]),
                                                                           _mm512_set1_epi64((int64_t)s->word[w]))));
    enough = _mm512_mul_epu32(_mm512_set1_epi64(s->both),
                              _mm512_add_epi64(_mm512_loadu_si512(f->ones), _mm512_set1_epi64(s->ones)));
    return _mm512_cmpgt_epu64_mask(_mm512_mul_epu32(both, _mm512_set1_epi64(s->both + s->either)), enough);
}

AVX512 static void look_avx512(ch_sought *s, const ch_fingerprint *all, const ch_folds *folds, int32_t from, int32_t end)
{
    look(s, all, folds, from, end, may_be_avx512);
}

POPCNT static void look_popcnt(ch_sought *s, const ch_fingerprint *all, const ch_folds *folds, int32_t from, int32_t end)
{
    look(s, all, folds, from, end, may_be);
}
#endif

void ch_sought_in(ch_sought *s, const ch_fingerprint *all, const ch_folds *folds, int32_t from, int32_t end)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vpopcntdq")) {
        look_avx512(s, all, folds, from, end);
        return;
    }
    if (__builtin_cpu_supports("popcnt")) {
        look_popcnt(s, all, folds, from, end);
        return;
    }
#endif
    look(s, all, folds, from, end, may_be);
}
