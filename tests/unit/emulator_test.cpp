/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator itself: what it computes, and that it notices what it is there for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "emulator/emulator.h"

__global__ void block_sum(const float *x, float *y, bool barrier)
{
    __shared__ float part[256];

    part[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    for (unsigned half = 128; half; half /= 2) {
        if (barrier)
            __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = part[0];
}

static float sum_with(const char *seed, bool barrier)
{
    float x[512], y[2];

    for (int i = 0; i < 512; i++)
        x[i] = (float)i;
    setenv("MOLSIEVE_EMULATOR_SEED", seed, 1);
    LAUNCH(block_sum, 2, 256, 0, 0, x, y, barrier);
    unsetenv("MOLSIEVE_EMULATOR_SEED");
    return y[1];
}

static void barriers_hold_in_any_order_of_threads(void **)
{
    static const char *const seeds[] = { "0", "1", "2", "99" };
    float want = 256 * (256 + 511) / 2;

    for (const char *seed : seeds)
        assert_true(sum_with(seed, true) == want);
}

static void without_its_barriers_a_sum_depends_on_the_order(void **)
{
    float want = 256 * (256 + 511) / 2;

    assert_true(sum_with("0", false) != want || sum_with("1", false) != want || sum_with("2", false) != want);
}

__global__ void shuffles(int *out)
{
    int lane = (int)threadIdx.x % 32, sum = lane;

    for (int mask = 16; mask; mask /= 2)
        sum += warp_xor(sum, mask);
    out[threadIdx.x] = sum * 100 + warp_get(lane, (lane + 1) % 32);
}

static void every_warp_exchanges_among_its_own_lanes(void **)
{
    int out[96];

    LAUNCH(shuffles, 1, 96, 0, 0, out);
    for (int t = 0; t < 96; t++)
        assert_int_equal(out[t], 496 * 100 + (t + 1) % 32);
}

/* a [16][16], b [16][8] (k first), c [16][8], small whole numbers: exact in bf16. */
__global__ void one_mma(const float *a, const float *b, float *c)
{
    int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4 * 2;
    uint32_t fa[4], fb[2];
    float acc[4] = { 0 };

    for (int i = 0; i < 4; i++) {
        int row = g + 8 * (i % 2), k = t + 8 * (i / 2);
        fa[i] = bf16_pair(a[row * 16 + k], a[row * 16 + k + 1]);
    }
    for (int i = 0; i < 2; i++)
        fb[i] = bf16_pair(b[(t + 8 * i) * 8 + g], b[(t + 8 * i + 1) * 8 + g]);
    mma_bf16(acc, fa, fb);
    for (int i = 0; i < 4; i++)
        c[(g + 8 * (i / 2)) * 8 + t + i % 2] = acc[i];
}

static void a_matrix_product_has_the_layout_of_the_ptx_manual(void **)
{
    float a[256], b[128], c[128];

    for (int i = 0; i < 256; i++)
        a[i] = (float)((i * 7) % 13 - 6);
    for (int i = 0; i < 128; i++)
        b[i] = (float)((i * 5) % 11 - 5);
    LAUNCH(one_mma, 1, 32, 0, 0, a, b, c);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float want = 0;
            for (int k = 0; k < 16; k++)
                want += a[i * 16 + k] * b[k * 8 + j];
            assert_true(c[i * 8 + j] == want);
        }
}

static void bf16_rounds_to_nearest_even(void **)
{
    assert_int_equal(bf16_round(1.0f), 0x3f80);
    assert_int_equal(bf16_round(1.00390625f), 0x3f80); /* half way: even below */
    assert_int_equal(bf16_round(1.01171875f), 0x3f82); /* half way: even above */
    assert_int_equal(bf16_round(-2.5f), 0xc020);
    assert_int_equal(bf16_round(INFINITY), 0x7f80);
    assert_int_equal(bf16_round(NAN), 0x7fc0);
}

__global__ void split_barrier()
{
    if (threadIdx.x < 16)
        __syncthreads();
}

__global__ void lost_lane(int *out)
{
    if (threadIdx.x == 5)
        return;
    out[threadIdx.x] = warp_get((int)threadIdx.x, 0);
}

/* Runs it in a child; true if that was ended by abort. */
template <class F> static bool aborts(F f)
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); /* cmocka catches it */
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        f();
        _exit(0);
    }
    assert_true(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void a_barrier_that_some_threads_miss_ends_the_program(void **)
{
    int out[32];

    assert_true(aborts([] { LAUNCH(split_barrier, 1, 32, 0, 0); }));
    assert_true(aborts([&] { LAUNCH(lost_lane, 1, 32, 0, 0, out); }));
    assert_true(aborts([] { LAUNCH(split_barrier, 1, 2048, 0, 0); }));
    assert_false(aborts([] { LAUNCH(split_barrier, 1, 16, 0, 0); }));
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barriers_hold_in_any_order_of_threads),
        cmocka_unit_test(without_its_barriers_a_sum_depends_on_the_order),
        cmocka_unit_test(every_warp_exchanges_among_its_own_lanes),
        cmocka_unit_test(a_matrix_product_has_the_layout_of_the_ptx_manual),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(a_barrier_that_some_threads_miss_ends_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
