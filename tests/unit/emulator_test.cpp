/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator itself: its results, and the faults that it must notice. */
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

#include "emulator/streams.h"

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

/* The place of element i of a lane's fragment, by the formulas of the PTX manual (9.0, "Matrix Fragments for mma.m16n8k16 with
 * floating point type" and "for mma.m16n8k8", .tf32): independent of the emulator and of models/cuda/device/mma.cuh. */
struct place {
    int row, col;
};

static place place_a(bool tf32, int lane, int i)
{
    int group = lane >> 2, in_group = lane % 4;

    if (tf32)
        return { i == 0 || i == 2 ? group : group + 8, i == 0 || i == 1 ? in_group : in_group + 4 };
    return { i < 2 || (4 <= i && i < 6) ? group : group + 8, in_group * 2 + (i & 1) + (i < 4 ? 0 : 8) };
}

static place place_b(bool tf32, int lane, int i)
{
    int group = lane >> 2, in_group = lane % 4;

    if (tf32)
        return { i == 0 ? in_group : in_group + 4, group };
    return { in_group * 2 + (i & 1) + (i < 2 ? 0 : 8), group };
}

static place place_c(int lane, int i) { return { i < 2 ? lane >> 2 : (lane >> 2) + 8, lane % 4 * 2 + (i & 1) }; }

/* A register from the elements i ..: the first of two 16-bit ones is the low half. */
template <int P> static uint32_t word_at(const float *m, int ld, place (*at)(bool, int, int), int i)
{
    place p = at(P == 3, (int)threadIdx.x, i), q = at(P == 3, (int)threadIdx.x, i + (P != 3));
    float x = m[p.row * ld + p.col], y = m[q.row * ld + q.col];

    if (P == 3)
        return tf32_round(x);
    return P == 4 ? fp16_pair(x, y) : bf16_pair(x, y);
}

/* a [16][k], b [k][8], c [16][8], small whole numbers: exact in all precisions. */
template <int P> __global__ void one_mma(const float *a, const float *b, float *c)
{
    int per = P == 3 ? 1 : 2;
    uint32_t fa[4], fb[2];
    float acc[4] = { 0 };

    for (int i = 0; i < 4; i++)
        fa[i] = word_at<P>(a, 8 * per, place_a, i * per);
    for (int i = 0; i < 2; i++)
        fb[i] = word_at<P>(b, 8, place_b, i * per);
    if (P == 3)
        mma_tf32(acc, fa, fb);
    else if (P == 4)
        mma_fp16(acc, fa, fb);
    else
        mma_bf16(acc, fa, fb);
    for (int i = 0; i < 4; i++) {
        place p = place_c((int)threadIdx.x, i);
        c[p.row * 8 + p.col] = acc[i];
    }
}

static void matrix_products_have_the_layout_of_the_ptx_manual(void **)
{
    float a[256], b[128], c[128];

    for (int i = 0; i < 256; i++)
        a[i] = (float)((i * 7) % 13 - 6);
    for (int i = 0; i < 128; i++)
        b[i] = (float)((i * 5) % 11 - 5);
    for (int p = 2; p < 5; p++) {
        int n = p == 3 ? 8 : 16;
        if (p == 2)
            LAUNCH(one_mma<2>, 1, 32, 0, 0, a, b, c);
        else
            LAUNCH(p == 3 ? one_mma<3> : one_mma<4>, 1, 32, 0, 0, a, b, c);
        for (int i = 0; i < 128; i++) {
            float want = 0;
            for (int k = 0; k < n; k++)
                want += a[i / 8 * n + k] * b[k * 8 + i % 8];
            assert_true(c[i] == want);
        }
    }
}

static void what_tensor_cores_cut_off_is_cut_off(void **)
{
    const double small[4] = { -0x1p-26, -0x1p-26, -0x1p-26, -0x1p-26 }, half[4] = { 0x1.8p-23, 0, 0, 0 };
    const double many[4] = { 0x1p-3, 0x1p-4, -0x1p-5, 0x1p-40 }, max[4] = { 0x1p127, 0x1p127, 0, 0 };

    assert_true(emu_add<4>(1, small) == 1.0f);           /* to nearest: 1 - 2^-24 */
    assert_true(emu_add<4>(1, half) == 1.0f + 0x1p-23f); /* to nearest: 2^-22 more than 1 */
    assert_true(emu_add<4>(-0.5f, many) == -0.34375f);
    assert_true(emu_add<1>(0, small) == -0x1p-26f && emu_add<0>(0.25f, small) == 0.25f);
    assert_true(isinf(emu_add<4>(0x1p127f, max)) && isnan(emu_add<4>(NAN, small)));
}

/* Two groups under way, the second partly filled with zeros; out: before and after each wait. */
__global__ void copies(const int *from, int *out)
{
    __shared__ __align__(16) int to[8];

    memset(to, 0x77, sizeof to);
    copy_async(to, from, 16);
    copy_close();
    copy_async(to + 4, from + 4, 8);
    copy_close();
    out[0] = to[0];
    copy_wait<1>();
    out[1] = to[3];
    out[2] = to[4];
    copy_wait<0>();
    for (int i = 0; i < 4; i++)
        out[3 + i] = to[4 + i];
}

static void a_copy_arrives_when_it_is_waited_for_or_at_once(void **)
{
    alignas(16) static const int from[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    static const int waited[7] = { 0x77777777, 4, 0x77777777, 5, 6, 0, 0 }, at_once[7] = { 1, 4, 5, 5, 6, 0, 0 };
    int out[7];

    LAUNCH(copies, 1, 1, 0, 0, from, out);
    assert_memory_equal(out, waited, sizeof out);
    setenv("MOLSIEVE_EMULATOR_SEED", "2", 1);
    LAUNCH(copies, 1, 1, 0, 0, from, out);
    unsetenv("MOLSIEVE_EMULATOR_SEED");
    assert_memory_equal(out, at_once, sizeof out);
}

static void numbers_are_rounded_to_nearest(void **)
{
    assert_int_equal(bf16_round(1.0f), 0x3f80);
    assert_int_equal(bf16_round(1.00390625f), 0x3f80); /* half way: even below */
    assert_int_equal(bf16_round(1.01171875f), 0x3f82); /* half way: even above */
    assert_int_equal(bf16_round(-2.5f), 0xc020);
    assert_int_equal(bf16_round(INFINITY), 0x7f80);
    assert_int_equal(bf16_round(NAN), 0x7fc0);
    assert_int_equal(fp16_pair(1.0f, -65536.0f), 0xfc003c00);
    assert_int_equal(fp16_pair(0x1.002p0f, 0x1.006p0f), 0x3c023c00); /* half way: even */
    assert_int_equal(tf32_round(0x1.002p0f), 0x3f802000);            /* half way: away from zero */
    assert_int_equal(tf32_round(INFINITY), 0x7f800000);
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

__global__ void two_shuffles(int *out)
{
    if (threadIdx.x < 16)
        out[threadIdx.x] = warp_get((int)threadIdx.x, 0);
    else
        out[threadIdx.x] = warp_get((int)threadIdx.x, 1);
}

/* Runs it in a child process; returns what waitpid says of its end: 0 if nothing was noticed. */
template <class F> static int end_of(F f)
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
    return status;
}

template <class F> static bool aborts(F f)
{
    int status = end_of(f);

    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void a_barrier_that_some_threads_miss_ends_the_program(void **)
{
    int out[32];

    assert_true(aborts([] { LAUNCH(split_barrier, 1, 32, 0, 0); }));
    assert_true(aborts([&] { LAUNCH(lost_lane, 1, 32, 0, 0, out); }));
    assert_true(aborts([&] { LAUNCH(two_shuffles, 1, 32, 0, 0, out); }));
    assert_false(aborts([&] { LAUNCH(two_shuffles, 1, 16, 0, 0, out); }));
    assert_true(aborts([] { LAUNCH(split_barrier, 1, 2048, 0, 0); }));
    assert_false(aborts([] { LAUNCH(split_barrier, 1, 16, 0, 0); }));
}

__global__ void one_byte(char *out)
{
    SHARED_BYTES(bytes);

    bytes[0] = 7;
    out[0] = bytes[0];
}

/* Launches of other threads, and graphs made before, rely on the shared memory that a kernel was allowed. */
static void shared_memory_is_allowed_for_good(void **)
{
    char out = 0;

    LAUNCH(one_byte, 1, 1, 48 << 10, 0, &out);
    assert_int_equal(out, 7);
    assert_true(aborts([&] { LAUNCH(one_byte, 1, 1, (48 << 10) + 16, 0, &out); }));
    assert_int_equal(SHARED_ALLOW(one_byte, 100 << 10), cudaSuccess);
    assert_int_equal(SHARED_ALLOW(one_byte, 100 << 10), cudaSuccess);
    assert_false(aborts([&] { LAUNCH(one_byte, 1, 1, 100 << 10, 0, &out); }));
    assert_true(aborts([] { (void)SHARED_ALLOW(one_byte, 60 << 10); }));
}

__global__ void static_put(int at, float value)
{
    __shared__ float part[8];
    float *volatile hidden = part; /* so that UBSan does not see the array */

    hidden[at] = value;
}

template <int N> __global__ void static_put_of(int at, float value)
{
    __shared__ float part[N];
    float *volatile hidden = part;

    hidden[at] = value;
}

/* Only ASan knows. */
static void static_shared_memory_has_guarded_ends(void **)
{
    if (!EMU_ASAN)
        skip();
    assert_int_equal(end_of([] { LAUNCH(static_put, 1, 1, 0, 0, 7, 1.0f); }), 0);
    assert_int_not_equal(end_of([] { LAUNCH(static_put, 1, 1, 0, 0, 8, 1.0f); }), 0);
    assert_int_not_equal(end_of([] { LAUNCH(static_put, 1, 1, 0, 0, -1, 1.0f); }), 0);
    assert_int_equal(end_of([] { LAUNCH(static_put_of<8>, 1, 1, 0, 0, 7, 1.0f); }), 0);
    assert_int_not_equal(end_of([] { LAUNCH(static_put_of<8>, 1, 1, 0, 0, 8, 1.0f); }), 0);
}

__global__ void dynamic_put(int at)
{
    SHARED_BYTES(bytes);

    bytes[at] = 1;
}

static void dynamic_shared_memory_has_a_guarded_end(void **)
{
    if (!EMU_ASAN)
        skip();
    assert_int_equal(end_of([] { LAUNCH(dynamic_put, 1, 1, 20, 0, 19); }), 0);
    assert_int_not_equal(end_of([] { LAUNCH(dynamic_put, 1, 1, 20, 0, 20); }), 0);
}

/* What a launch left there. */
__global__ void static_keep(float *out, bool put)
{
    __shared__ float kept;

    if (put)
        kept = 3;
    *out = kept;
}

static void static_shared_memory_does_not_outlive_a_launch(void **)
{
    float out = 0;

    if (EMU_ASAN)
        skip(); /* which guards its ends instead */
    LAUNCH(static_keep, 1, 1, 0, 0, &out, true);
    assert_true(out == 3);
    LAUNCH(static_keep, 1, 1, 0, 0, &out, false);
    assert_true(isnan(out));
}

/* A thread without a device would make a context on the first one, which a capture need not permit. */
static void what_the_runtime_may_refuse_ends_the_program(void **)
{
    void *p = nullptr;

    assert_true(aborts([&] { (void)cudaMalloc(&p, 4); }));
    assert_false(aborts([&] { emu_device = 0, (void)cudaMalloc(&p, 4); }));
    assert_true(aborts([] { emu_capturing = 1, (void)SHARED_ALLOW(one_byte, 200 << 10); }));
}

__global__ void number_put(int *to, int v) { *to = v; }
__global__ void number_copy(int *to, const int *from) { *to = *from; }

typedef struct two_streams {
    cudaStream_t a, b;
    cudaEvent_t begun, there, done;
} two_streams;

static two_streams streams_open()
{
    two_streams s;

    emu_device = 0;
    cudaStreamCreateWithFlags(&s.a, cudaStreamNonBlocking);
    cudaStreamCreateWithPriority(&s.b, cudaStreamNonBlocking, 0);
    for (cudaEvent_t *e : { &s.begun, &s.there, &s.done })
        cudaEventCreateWithFlags(e, cudaEventDisableTiming);
    return s;
}

static void streams_close(two_streams s)
{
    cudaStreamDestroy(s.b);
    cudaStreamDestroy(s.a);
    for (cudaEvent_t e : { s.begun, s.there, s.done })
        cudaEventDestroy(e);
}

static void graph_run(cudaStream_t s)
{
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    size_t nodes;

    cudaStreamEndCapture(s, &graph);
    cudaGraphGetNodes(graph, NULL, &nodes);
    assert_int_equal(nodes, 2);
    cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphDestroy(graph);
    cudaGraphLaunch(ready, s);
    cudaStreamSynchronize(s);
    cudaGraphExecDestroy(ready);
}

/* The value that stream b reads of a number that stream a, called before, sets to 5. */
static int read_beside(bool follows, bool captured, bool ahead)
{
    two_streams s = streams_open();
    int x = 0, y = -1;

    if (ahead)
        setenv("MOLSIEVE_EMULATOR_AHEAD", "1", 1);
    if (captured)
        cudaStreamBeginCapture(s.a, cudaStreamCaptureModeRelaxed);
    cudaEventRecord(s.begun, s.a);
    cudaStreamWaitEvent(s.b, s.begun, 0);
    LAUNCH(number_put, 1, 1, 0, s.a, &x, 5);
    cudaEventRecord(s.there, s.a);
    if (follows)
        cudaStreamWaitEvent(s.b, s.there, 0);
    LAUNCH(number_copy, 1, 1, 0, s.b, &y, (const int *)&x);
    cudaEventRecord(s.done, s.b);
    cudaStreamWaitEvent(s.a, s.done, 0);
    if (captured)
        graph_run(s.a);
    cudaStreamSynchronize(s.a);
    unsetenv("MOLSIEVE_EMULATOR_AHEAD");
    streams_close(s);
    return y;
}

static void streams_run_as_early_or_late_as_events_allow(void **)
{
    for (int captured = 0; captured < 2; captured++) {
        assert_int_equal(read_beside(true, captured, false), 5);
        assert_int_equal(read_beside(true, captured, true), 5);
        assert_int_equal(read_beside(false, captured, false), 5);
        assert_int_equal(read_beside(false, captured, true), 0);
    }
}

static void captures_that_cuda_refuses_end_the_program(void **)
{
    int x = 0;
    auto forked = [&x](bool work, bool joined) {
        two_streams s = streams_open();
        cudaGraph_t graph;
        cudaStreamBeginCapture(s.a, cudaStreamCaptureModeRelaxed);
        cudaEventRecord(s.begun, s.a);
        cudaStreamWaitEvent(s.b, s.begun, 0);
        if (work)
            LAUNCH(number_put, 1, 1, 0, s.b, &x, 5);
        cudaEventRecord(s.done, s.b);
        if (joined)
            cudaStreamWaitEvent(s.a, s.done, 0);
        cudaStreamEndCapture(s.a, &graph);
        return s;
    };

    assert_false(aborts([&] { forked(true, true); }));
    assert_false(aborts([&] { forked(false, false); }));
    assert_true(aborts([&] { forked(true, false); }));
    assert_true(aborts([&] {
        two_streams s = forked(true, true);
        cudaStreamWaitEvent(s.a, s.done, 0); /* of a capture that has ended */
    }));
    assert_true(aborts([&] { cudaEventSynchronize(forked(true, true).done); }));
    assert_true(aborts([] {
        two_streams s = streams_open();
        cudaEventRecord(s.begun, s.b);
        cudaStreamBeginCapture(s.a, cudaStreamCaptureModeRelaxed);
        cudaStreamWaitEvent(s.a, s.begun, 0); /* of before */
    }));
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barriers_hold_in_any_order_of_threads),
        cmocka_unit_test(without_its_barriers_a_sum_depends_on_the_order),
        cmocka_unit_test(every_warp_exchanges_among_its_own_lanes),
        cmocka_unit_test(matrix_products_have_the_layout_of_the_ptx_manual),
        cmocka_unit_test(what_tensor_cores_cut_off_is_cut_off),
        cmocka_unit_test(a_copy_arrives_when_it_is_waited_for_or_at_once),
        cmocka_unit_test(numbers_are_rounded_to_nearest),
        cmocka_unit_test(a_barrier_that_some_threads_miss_ends_the_program),
        cmocka_unit_test(shared_memory_is_allowed_for_good),
        cmocka_unit_test(static_shared_memory_has_guarded_ends),
        cmocka_unit_test(dynamic_shared_memory_has_a_guarded_end),
        cmocka_unit_test(static_shared_memory_does_not_outlive_a_launch),
        cmocka_unit_test(what_the_runtime_may_refuse_ends_the_program),
        cmocka_unit_test(streams_run_as_early_or_late_as_events_allow),
        cmocka_unit_test(captures_that_cuda_refuses_end_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
