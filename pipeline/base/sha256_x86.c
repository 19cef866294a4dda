/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/sha256_blocks.h"

#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>

#define SHA __attribute__((target("sha,sse4.1,ssse3")))

/* The state in the order that sha256rnds2 expects: words a b e f and c d g h. */
typedef struct state {
    __m128i abef, cdgh;
} state;

SHA static state state_load(const uint32_t h[8])
{
    __m128i dcba = _mm_loadu_si128((const __m128i *)h), hgfe = _mm_loadu_si128((const __m128i *)(h + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1), efgh = _mm_shuffle_epi32(hgfe, 0x1B);

    return (state){ _mm_alignr_epi8(cdab, efgh, 8), _mm_blend_epi16(efgh, cdab, 0xF0) };
}

SHA static void state_store(uint32_t h[8], state s)
{
    __m128i feba = _mm_shuffle_epi32(s.abef, 0x1B), dchg = _mm_shuffle_epi32(s.cdgh, 0xB1);

    _mm_storeu_si128((__m128i *)h, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* The next four words of the message schedule (words 16 to 63) from the sixteen before them. */
SHA static __m128i schedule(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));

    return _mm_sha256msg2_epu32(sum, w3);
}

SHA static state block_add(state s, const unsigned char *p)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i w[4];

    for (int i = 0; i < 4; i++)
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
    for (int i = 0; i < 16; i++) {
        __m128i wk = _mm_add_epi32(w[i % 4], _mm_loadu_si128((const __m128i *)(pl_sha256_k + 4 * i)));

        s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, wk);
        s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(wk, 0x0E));
        w[i % 4] = schedule(w[i % 4], w[(i + 1) % 4], w[(i + 2) % 4], w[(i + 3) % 4]);
    }
    return s;
}

SHA static void blocks(uint32_t h[8], const unsigned char *p, size_t n)
{
    state s = state_load(h);

    for (; n > 0; n--, p += 64) {
        state after = block_add(s, p);
        s = (state){ _mm_add_epi32(s.abef, after.abef), _mm_add_epi32(s.cdgh, after.cdgh) };
    }
    state_store(h, s);
}

/* CPUID is slow in a virtual machine (it traps to the host), so its answer is kept. */
pl_sha256_blocks *pl_sha256_blocks_x86(void)
{
    static atomic_int known; /* 0: not asked yet; 1: no SHA instructions; 2: there are */
    int is = atomic_load_explicit(&known, memory_order_relaxed);
    unsigned a, b = 0, c = 0, d;

    if (is == 0) {
        bool sse = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3);
        is = sse && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA) ? 2 : 1;
        atomic_store_explicit(&known, is, memory_order_relaxed);
    }
    return is == 2 ? blocks : NULL;
}
#else
pl_sha256_blocks *pl_sha256_blocks_x86(void) { return NULL; }
#endif
