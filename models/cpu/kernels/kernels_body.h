/* models/cpu/kernels/kernels_body.h - the text that every instruction set compiles.
 *
 * Before including it a source file defines NK_W (lanes of a vector), NK_R (rows
 * of a register block, divides NN_ROWS), NK_C (the same of complex numbers, whose sums and factors all must fit in
 * registers: AVX2 and SSE have 16), NK_Q (units of a block of radial_dh, at
 * most 6), NK_SET (the table's name), NK_LABEL and NK_BF16 (the file of bf16 products). The vectors are the compiler's
 * own, so one text serves all. No guard: it is included once in each of them. */
#include <math.h>
#include <string.h>

#include "models/cpu/kernels/kernels.h"

typedef float vf __attribute__((vector_size(NK_W * 4)));
typedef int32_t vi __attribute__((vector_size(NK_W * 4)));
typedef float vf_any __attribute__((vector_size(NK_W * 4), aligned(4), may_alias));

static inline vf load(const float *p) { return *(const vf_any *)p; }

static inline void store(float *p, vf v) { *(vf_any *)p = v; }

/* Twelve sums that do not wait for each other, in registers. */
static double peak(int64_t n, float *sink)
{
    vf a[12], x = load(sink), y = x * x;

    for (int k = 0; k < 12; k++)
        a[k] = x + (float)k; /* all different, or they would be one */
    for (int64_t i = 0; i < n; i++) {
#pragma GCC unroll 12
        for (int k = 0; k < 12; k++)
            a[k] = a[k] * x + y;
    }
    for (int k = 0; k < 12; k++)
        store(sink, load(sink) + a[k]);
    return (double)n * 12 * 2 * NK_W;
}

#if defined(__AVX512BF16__)
#include <immintrin.h>

/* The same with pairs of bf16, each product two multiply-adds: the factors are 1 and 0, so the sums stay as they are. */
static double peak16(int64_t n, float *sink)
{
    __m512bh one = (__m512bh)_mm512_set1_epi32(0x3f80), zero = (__m512bh)_mm512_setzero_si512();
    __m512 a[12];

    for (int k = 0; k < 12; k++)
        a[k] = _mm512_set1_ps((float)k);
    for (int64_t i = 0; i < n; i++) {
#pragma GCC unroll 12
        for (int k = 0; k < 12; k++)
            a[k] = _mm512_dpbf16_ps(a[k], one, zero);
        __asm__ volatile("" : "+v"(zero)); /* not known, or there would be nothing to do */
    }
    for (int k = 0; k < 12; k++)
        _mm512_storeu_ps(sink, _mm512_add_ps(_mm512_loadu_ps(sink), a[k]));
    return (double)n * 12 * 4 * 16;
}
#define NK_PEAK16 peak16
#else
#define NK_PEAK16 NULL
#endif

#include "models/cpu/kernels/kernels_conv.h"
#include "models/cpu/kernels/kernels_node.h"
#include "models/cpu/kernels/kernels_gate.h"
#include "models/cpu/kernels/kernels_product.h"
#include "models/cpu/kernels/kernels_bf16.h"
#include NK_BF16
#include "models/cpu/kernels/kernels_product16.h"

const nn_cpu_kernels NK_SET = {
    .name = NK_LABEL,
    .peak = peak,
    .peak16 = NK_PEAK16,
    .radial = radial,
    .radial_dh = radial_dh,
    .radial_dw = radial_dw,
    .contract = contract,
    .outer = outer,
    .rotate = rotate,
    .to_frame = to_frame,
    .from_frame = from_frame,
    .gemm = gemm,
    .gemm_tn = gemm_tn,
    .hidden = hidden,
    .hidden_back = hidden_back,
    .attend = attend,
    .attend_back = attend_back,
    .norm = norm,
    .norm_back = norm_back,
    .gate = gate,
    .gate_back = gate_back,
    .add = add,
    .products = { NK_LABEL, product_packed_size, NULL, product_run, product_run_turned, product_outer },
    .products16 = {
        { NK_LABEL " bf16x3", bf16x3_floats, bf16x3_panels, bf16x3_run, product_run_turned, bf16x3_outer },
        { NK_LABEL " bf16", bf16_floats, bf16_panels, bf16_run, product_run_turned, bf16_outer },
    },
    .bf16 = { bf16_rows, bf16_turn, bf16_pack, bf16_product },
};
