/* tests/emulator/matrix.h - tensor cores: rounding of factors, fragments, and truncated sums; a part of
 * emulator.h. */
#ifndef EMU_MATRIX_H
#define EMU_MATRIX_H

/* One number of a fragment's word: half `high` of 16-bit ones, all of it for tf32. */
static float emu_bf16(uint32_t pair, unsigned high)
{
    uint32_t bits = high ? pair & 0xffff0000u : pair << 16;
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static float emu_fp16(uint32_t pair, unsigned high)
{
    uint32_t half = high ? pair >> 16 : pair & 0xffff, bits = (half & 0x7fff) << 13;
    float x;

    memcpy(&x, &bits, sizeof x);
    if (bits < 0x7c00u << 13)
        x *= 5.192296858534828e33f; /* 2^112 */
    else
        x = bits == 0x7c00u << 13 ? INFINITY : NAN;
    return half & 0x8000 ? -x : x;
}

static float emu_tf32(uint32_t word, unsigned)
{
    float x;

    if (word & 0x1fff)
        emu_fail("a factor that was not rounded to tf32");
    memcpy(&x, &word, sizeof x);
    return x;
}

static uint32_t bf16_round(float x) /* to nearest even; NaN stays one */
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return x != x ? 0x7fc0u : (u + 0x7fffu + (u >> 16 & 1)) >> 16;
}

static uint32_t bf16_pair(float low, float high) { return bf16_round(low) | bf16_round(high) << 16; }

static uint32_t fp16_round(float x) /* to nearest even; clang 14 and gcc 11 lack the type on x86 */
{
    float size = fabsf(x);
    uint32_t u, sign = signbit(x) ? 0x8000u : 0;

    memcpy(&u, &size, sizeof u);
    if (x != x)
        return 0x7e00u;
    if (size >= 65520)
        return sign | 0x7c00u;
    if (size < 6.103515625e-5f) /* 2^-14: below it the steps are 2^-24 */
        return sign | (uint32_t)nearbyintf(ldexpf(size, 24));
    return sign | ((u + 0xfffu + (u >> 13 & 1) - (112u << 23)) >> 13);
}

static uint32_t fp16_pair(float low, float high) { return fp16_round(low) | fp16_round(high) << 16; }

/* The products are exact in float32, so they are rounded once. */
[[maybe_unused]] static uint32_t fp16_times(uint32_t a, uint32_t b)
{
    return fp16_pair(emu_fp16(a, 0) * emu_fp16(b, 0), emu_fp16(a, 1) * emu_fp16(b, 1));
}

[[maybe_unused]] static uint32_t bf16_times(uint32_t a, uint32_t b)
{
    return bf16_pair(emu_bf16(a, 0) * emu_bf16(b, 0), emu_bf16(a, 1) * emu_bf16(b, 1));
}

static uint32_t tf32_round(float x) /* to nearest, halves away from zero */
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    if (x != x)
        return 0x7fffe000u;
    return (u & 0x7f800000u) == 0x7f800000u ? u : (u + 0x1000u) & ~0x1fffu;
}

/* The exponent of a double, as it is stored. */
static int emu_exponent(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return (int)(u >> 52 & 0x7ff);
}

static double emu_power(int exponent)
{
    uint64_t u = (uint64_t)exponent << 52;
    double x;

    memcpy(&x, &u, sizeof x);
    return x;
}

/* c + p[0] + .. as tensor cores add: all are cut off one bit below the last of the largest, and the sum at
 * the last of a float. So it was found on an A100 (Fasi, Higham, Mikaitis, Pranesh 2021); later ones keep more. */
template <unsigned N> static float emu_add(float c, const double *p)
{
    double sum = c, all = c, scale;
    int max = emu_exponent(sum);
    uint64_t u;

    for (unsigned i = 0; i < N; i++) {
        max = emu_exponent(p[i]) > max ? emu_exponent(p[i]) : max;
        all += p[i];
    }
    if (all == 0 || !isfinite(all))
        return (float)all;
    scale = emu_power(2070 - max);
    sum = trunc(sum * scale);
    for (unsigned i = 0; i < N; i++)
        sum += trunc(p[i] * scale);
    sum *= emu_power(max - 24);
    memcpy(&u, &sum, sizeof u);
    u &= ~(uint64_t)0x1fffffff;
    memcpy(&sum, &u, sizeof sum);
    return (float)sum;
}

/* Fragments as in the PTX manual: lane = 4 g + t has a: (g, t), (g+8, t), (g, t+4), (g+8, t+4);
 * b: (t, g), (t+4, g) in words of PER numbers along k; c: (g, 2t..), (g+8, 2t..). Each lane shows its
 * words as numbers, and adds each half of k at once. */
template <unsigned PER, float (*get)(uint32_t, unsigned)>
EMU_OWN static void emu_mma(float c[4], const uint32_t a[4], const uint32_t b[2], int line)
{
    const unsigned lane = emu.now % 32, row = emu.now - lane + lane / 4 * 4, col = emu.now - lane + lane % 4 * 8;
    emu_fiber *from = emu.fiber, *f = &from[emu.now];
    const int parity = f->parity ^= 1;
    float left[2][4 * PER], right[2][4 * PER];

    for (unsigned i = 0; i < 6 * PER; i++)
        f->slot[parity].number[i] = get(i < 4 * PER ? a[i / PER] : b[i / PER - 4], i % PER);
    __syncwarp(line);
    for (unsigned half = 0; half < 2; half++) {
        for (unsigned i = 0; i < 2; i++)
            for (unsigned k = 0; k < 4; k++) {
                memcpy(&left[i][k * PER], &from[row + k].slot[parity].number[(i + 2 * half) * PER], PER * sizeof **left);
                memcpy(&right[i][k * PER], &from[col + 4 * i + k].slot[parity].number[(4 + half) * PER], PER * sizeof **right);
            }
        for (unsigned i = 0; i < 4; i++) {
            double p[4 * PER];
            for (unsigned q = 0; q < 4 * PER; q++)
                p[q] = (double)left[i / 2][q] * right[i % 2][q];
            c[i] = emu_add<4 * PER>(c[i], p);
        }
    }
}

static void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2], int line = __builtin_LINE())
{
    emu_mma<2, emu_bf16>(c, a, b, line);
}

static void mma_fp16(float c[4], const uint32_t a[4], const uint32_t b[2], int line = __builtin_LINE())
{
    emu_mma<2, emu_fp16>(c, a, b, line);
}

static void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2], int line = __builtin_LINE())
{
    emu_mma<1, emu_tf32>(c, a, b, line);
}

#endif
