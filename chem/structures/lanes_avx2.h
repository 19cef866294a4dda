/* chem/structures/lanes_avx2.h - operations on vectors of 8 floats; lanes_any.h says what each does. */
#include <immintrin.h>

static inline vf root(vf a) { return _mm256_sqrt_ps(a); }

static inline sums widen(vf a)
{
    return (sums){ _mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)) };
}

static inline vf choose(vi mask, vf a, vf b) { return _mm256_blendv_ps(b, a, (__m256)mask); }

static inline vf min(vf a, vf b) { return _mm256_min_ps(a, b); }

static inline vf max(vf a, vf b) { return _mm256_max_ps(a, b); }

static inline vf magnitude(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }

static inline vf with_sign(vf a, vf sign) { return _mm256_or_ps(a, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign)); }

/* Two atoms, four terms apart. */
static inline __m256 two(const float *p, const int32_t *at)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(p + at[0])), _mm_load_ps(p + at[4]), 1);
}

static inline vec3 gather(const float *p, const int32_t *at)
{
    const __m256 a = two(p, at), b = two(p, at + 1), c = two(p, at + 2), d = two(p, at + 3);
    const __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);

    return (vec3){ _mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee),
                   _mm256_shuffle_ps(_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d), 0x44) };
}

static inline void add_four(float *p, __m128 v) { _mm_store_ps(p, _mm_add_ps(_mm_load_ps(p), v)); }

static inline void scatter(float *p, const int32_t *at, vec3 v)
{
    const __m256 none = _mm256_setzero_ps();
    const __m256 xy = _mm256_unpacklo_ps(v.x, v.y), zw = _mm256_unpacklo_ps(v.z, none);
    const __m256 xy2 = _mm256_unpackhi_ps(v.x, v.y), zw2 = _mm256_unpackhi_ps(v.z, none);
    const __m256 r[4] = { _mm256_shuffle_ps(xy, zw, 0x44), _mm256_shuffle_ps(xy, zw, 0xee), _mm256_shuffle_ps(xy2, zw2, 0x44),
                          _mm256_shuffle_ps(xy2, zw2, 0xee) };

#pragma GCC unroll 4
    for (int k = 0; k < 4; k++)
        add_four(p + at[k], _mm256_castps256_ps128(r[k]));
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++)
        add_four(p + at[k + 4], _mm256_extractf128_ps(r[k], 1));
}

static inline float lane_sum(vf a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

static inline void add_sums(float *p, vf x, vf y, vf z, vf w)
{
    const __m256 h = _mm256_hadd_ps(_mm256_hadd_ps(x, y), _mm256_hadd_ps(z, w));

    add_four(p, _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)));
}
