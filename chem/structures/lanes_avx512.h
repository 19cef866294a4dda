/* chem/structures/lanes_avx512.h - operations on vectors of 16 floats; lanes_any.h says what each does. */
#include <immintrin.h>

static inline vf root(vf a) { return _mm512_sqrt_ps(a); }

static inline sums widen(vf a)
{
    return (sums){ _mm512_cvtps_pd(_mm512_castps512_ps256(a)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)) };
}

static inline vf choose(vi mask, vf a, vf b) { return _mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)mask), b, a); }

static inline vf min(vf a, vf b) { return _mm512_min_ps(a, b); }

static inline vf max(vf a, vf b) { return _mm512_max_ps(a, b); }

static inline vf magnitude(vf a) { return _mm512_abs_ps(a); }

static inline vf with_sign(vf a, vf sign) { return _mm512_or_ps(a, _mm512_and_ps(_mm512_set1_ps(-0.0f), sign)); }

/* Four atoms, each four terms after the one before. */
static inline __m512 four(const float *p, const int32_t *at)
{
    const __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(p + at[0])), _mm_load_ps(p + at[4]), 1);
    const __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(p + at[8])), _mm_load_ps(p + at[12]), 1);

    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

static inline vec3 gather(const float *p, const int32_t *at)
{
    const __m512 a = four(p, at), b = four(p, at + 1), c = four(p, at + 2), d = four(p, at + 3);
    const __m512 ab = _mm512_unpacklo_ps(a, b), cd = _mm512_unpacklo_ps(c, d);

    return (vec3){ _mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee),
                   _mm512_shuffle_ps(_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d), 0x44) };
}

static inline void add_four(float *p, __m128 v) { _mm_store_ps(p, _mm_add_ps(_mm_load_ps(p), v)); }

static inline void scatter(float *p, const int32_t *at, vec3 v)
{
    const __m512 none = _mm512_setzero_ps();
    const __m512 xy = _mm512_unpacklo_ps(v.x, v.y), zw = _mm512_unpacklo_ps(v.z, none);
    const __m512 xy2 = _mm512_unpackhi_ps(v.x, v.y), zw2 = _mm512_unpackhi_ps(v.z, none);
    const __m512 r[4] = { _mm512_shuffle_ps(xy, zw, 0x44), _mm512_shuffle_ps(xy, zw, 0xee), _mm512_shuffle_ps(xy2, zw2, 0x44),
                          _mm512_shuffle_ps(xy2, zw2, 0xee) };

#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        add_four(p + at[k], _mm512_castps512_ps128(r[k]));
        add_four(p + at[k + 4], _mm512_extractf32x4_ps(r[k], 1));
        add_four(p + at[k + 8], _mm512_extractf32x4_ps(r[k], 2));
        add_four(p + at[k + 12], _mm512_extractf32x4_ps(r[k], 3));
    }
}

static inline __m256 halves(vf a) { return _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)); }

static inline float lane_sum(vf a)
{
    const __m256 b = halves(a);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

static inline void add_sums(float *p, vf x, vf y, vf z, vf w)
{
    const __m256 h = _mm256_hadd_ps(_mm256_hadd_ps(halves(x), halves(y)), _mm256_hadd_ps(halves(z), halves(w)));

    add_four(p, _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)));
}
