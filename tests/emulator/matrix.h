/* tests/emulator/matrix.h - tensor cores: rounding of factors, fragments, and sums that cut off; a part of
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
    uint32_t half = high ? pair >> 16 : pair & 0xffff, exponent = half >> 10 & 31;
    float size = exponent == 0    ? ldexpf((float)(half & 0x3ff), -24)
                 : exponent == 31 ? (half & 0x3ff ? NAN : INFINITY)
                                  : ldexpf((float)((half & 0x3ff) | 0x400), (int)exponent - 25);

    return half & 0x8000 ? -size : size;
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

static uint32_t fp16_round(float x) /* to nearest even; neither clang 14 nor gcc 11 have the type on x86 */
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

static uint32_t tf32_round(float x) /* to nearest, halves away from zero */
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return x != x ? 0x7fffe000u : (u & 0x7f800000u) == 0x7f800000u ? u : (u + 0x1000u) & ~0x1fffu;
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
static float emu_add(float c, const double *p, int n)
{
    double sum = c, all = c;
    int most = emu_exponent(sum);
    uint64_t u;

    for (int i = 0; i < n; i++) {
        most = emu_exponent(p[i]) > most ? emu_exponent(p[i]) : most;
        all += p[i];
    }
    if (all == 0 || !isfinite(all))
        return (float)all;
    sum = trunc(sum * emu_power(2070 - most));
    for (int i = 0; i < n; i++)
        sum += trunc(p[i] * emu_power(2070 - most));
    sum *= emu_power(most - 24);
    memcpy(&u, &sum, sizeof u);
    u &= ~(uint64_t)0x1fffffff;
    memcpy(&sum, &u, sizeof sum);
    return (float)sum;
}

/* Fragments as in the PTX manual: lane = 4 g + t has a: (g, t), (g+8, t), (g, t+4), (g+8, t+4);
 * b: (t, g), (t+4, g) in words along k; c: (g, 2t..), (g+8, 2t..). */
EMU_OWN static void emu_mma(float c[4], const uint32_t a[4], const uint32_t b[2], unsigned per, float (*get)(uint32_t, unsigned),
                              int line)
{
    emu_fiber *f = &emu.fiber[emu.now];
    unsigned lane = emu.now % 32, first = emu.now - lane, g = lane / 4, t = lane % 4;

    f->parity ^= 1;
    memcpy(f->slot[f->parity].frag, a, 4 * sizeof *a);
    memcpy(f->slot[f->parity].frag + 4, b, 2 * sizeof *b);
    __syncwarp(line);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned half = 0; half < 2; half++) {
            double p[8];
            for (unsigned q = 0; q < 4 * per; q++) {
                unsigned k = 4 * per * half + q, row = g + 8 * (i / 2), col = 2 * t + i % 2, word = k / per;
                const uint32_t *fa = emu.fiber[first + row % 8 * 4 + word % 4].slot[f->parity].frag;
                const uint32_t *fb = emu.fiber[first + col * 4 + word % 4].slot[f->parity].frag;
                p[q] = (double)get(fa[row / 8 + 2 * (word / 4)], k % per) * get(fb[4 + word / 4], k % per);
            }
            c[i] = emu_add(c[i], p, 4 * (int)per);
        }
}

static void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2], int line = __builtin_LINE())
{
    emu_mma(c, a, b, 2, emu_bf16, line);
}

static void mma_fp16(float c[4], const uint32_t a[4], const uint32_t b[2], int line = __builtin_LINE())
{
    emu_mma(c, a, b, 2, emu_fp16, line);
}

static void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2], int line = __builtin_LINE())
{
    emu_mma(c, a, b, 1, emu_tf32, line);
}

#endif
