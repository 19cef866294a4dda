/* SPDX-License-Identifier: Apache-2.0
 * What a GPU cannot go below: empty kernels in graphs that are captured anew for each step, as a training does, copies, and
 * multiply-adds in registers. The last two are what `molsieve bench --roofline --gpu-roof` takes; they have not run on hardware yet.
 *
 *   nvcc -O3 -arch=native -o gpu_floor tests/bench/gpu_floor.cu && ./gpu_floor */
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define WORKS(call) works(call, #call)

static void works(cudaError_t e, const char *call)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(e));
    exit(1);
}

static double now(void)
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct args {
    const float *from;
    float *to;
    int n[12];
};

__global__ void nothing(args a)
{
    if (a.n[0])
        a.to[threadIdx.x] = a.from[threadIdx.x];
}

__global__ void copy_run(const float4 *from, float4 *to, long n)
{
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
        to[i] = from[i];
}

static cudaStream_t stream;
static cudaEvent_t begun, ended;

/* Microseconds between the two events, `by` times. */
static double between(int by)
{
    float ms;

    WORKS(cudaEventSynchronize(ended));
    WORKS(cudaEventElapsedTime(&ms, begun, ended));
    return ms * 1e3 / by;
}

static void graph_time(int kernels, int blocks, float *memory)
{
    enum { STEPS = 200, WARM = 10 };
    double captured = 0, updated = 0, launched = 0, done = 0;
    args a = { memory, memory, { 0 } };
    cudaGraphExec_t ready = NULL;

    for (int step = 0; step < STEPS; step++) {
        double t[5] = { now() };
        cudaGraph_t graph;
        WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        for (int i = 0; i < kernels; i++) {
            a.n[1] = step + i;
            nothing<<<blocks, 128, 0, stream>>>(a);
        }
        WORKS(cudaStreamEndCapture(stream, &graph));
        t[1] = now();
        cudaGraphExecUpdateResultInfo info;
        WORKS(ready ? cudaGraphExecUpdate(ready, graph, &info) : cudaGraphInstantiate(&ready, graph, 0));
        t[2] = now();
        WORKS(cudaGraphLaunch(ready, stream));
        t[3] = now();
        WORKS(cudaStreamSynchronize(stream));
        t[4] = now();
        WORKS(cudaGraphDestroy(graph));
        captured += step < WARM ? 0 : t[1] - t[0];
        updated += step < WARM ? 0 : t[2] - t[1];
        launched += step < WARM ? 0 : t[3] - t[2];
        done += step < WARM ? 0 : t[4] - t[2];
    }
    WORKS(cudaEventRecord(begun, stream));
    for (int i = 0; i < 100; i++)
        WORKS(cudaGraphLaunch(ready, stream));
    WORKS(cudaEventRecord(ended, stream));
    printf("%3d kernels of %4d blocks: capture %.0f us, update %.0f, launch %.0f, launch to done %.0f; replayed %.2f us a kernel\n",
           kernels, blocks, captured / (STEPS - WARM), updated / (STEPS - WARM), launched / (STEPS - WARM),
           done / (STEPS - WARM), between(100) / kernels);
    WORKS(cudaGraphExecDestroy(ready));
}

static void copy_time(long mib)
{
    enum { TIMES = 50 };
    long n = mib * 65536;
    float4 *from, *to;
    double us;

    WORKS(cudaMalloc(&from, (size_t)n * sizeof *from));
    WORKS(cudaMalloc(&to, (size_t)n * sizeof *to));
    WORKS(cudaMemset(from, 1, (size_t)n * sizeof *from));
    for (int i = 0; i < 3 + TIMES; i++) {
        if (i == 3)
            WORKS(cudaEventRecord(begun, stream));
        copy_run<<<1056, 256, 0, stream>>>(from, to, n);
    }
    WORKS(cudaEventRecord(ended, stream));
    us = between(TIMES);
    printf("copy of %ld MiB: %.1f us, %.0f GB/s read and written\n", mib, us, 2e-3 * (double)n * sizeof *from / us);
    WORKS(cudaFree(from));
    WORKS(cudaFree(to));
}

/* ---- arithmetic in registers ---- */

enum { SUMS = 8, ROUNDS = 4096, THREADS = 256 };

__global__ void fma_run(float *to)
{
    float sum[SUMS], x = to[0], y = to[1];

    for (int k = 0; k < SUMS; k++)
        sum[k] = x + (float)k;
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < SUMS; k++)
            sum[k] = sum[k] * x + y;
    for (int k = 1; k < SUMS; k++)
        sum[0] += sum[k];
    if (sum[0] == 1234)
        to[2] = sum[0];
}

/* c += a b of a warp, by the instruction that the kernels use. */
#define PRODUCT(NAME, SHAPE, TYPES)                                                                                            \
    __global__ void NAME(float *to)                                                                                            \
    {                                                                                                                          \
        float c[SUMS][4] = { { 0 } };                                                                                          \
        unsigned a = __float_as_uint(to[0]), b = __float_as_uint(to[1]);                                                       \
        for (int i = 0; i < ROUNDS; i++)                                                                                       \
            for (int k = 0; k < SUMS; k++)                                                                                     \
                asm volatile("mma.sync.aligned." SHAPE ".row.col." TYPES " {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};" \
                             : "+f"(c[k][0]), "+f"(c[k][1]), "+f"(c[k][2]), "+f"(c[k][3])                                      \
                             : "r"(a), "r"(b));                                                                                \
        for (int k = 1; k < SUMS; k++)                                                                                         \
            c[0][0] += c[k][0] + c[k][1] + c[k][2] + c[k][3];                                                                  \
        if (c[0][0] == 1234)                                                                                                   \
            to[2] = c[0][0];                                                                                                   \
    }
PRODUCT(bf16_run, "m16n8k16", "f32.bf16.bf16.f32")
PRODUCT(fp16_run, "m16n8k16", "f32.f16.f16.f32")
PRODUCT(tf32_run, "m16n8k8", "f32.tf32.tf32.f32")

/* operations: of a warp, in one of its instructions. */
static void peak_time(const char *name, void (*run)(float *to), double operations, float *memory)
{
    enum { TIMES = 20, BLOCKS = 132 * 8 };
    double us;

    for (int i = 0; i < 3 + TIMES; i++) {
        if (i == 3)
            WORKS(cudaEventRecord(begun, stream));
        run<<<BLOCKS, THREADS, 0, stream>>>(memory);
    }
    WORKS(cudaEventRecord(ended, stream));
    us = between(TIMES);
    printf("peak %s: %.0f GFLOP/s\n", name, 1e-3 * operations * SUMS * ROUNDS * BLOCKS * (THREADS / 32) / us);
}

int main(void)
{
    const int kernels[] = { 70, 205, 420 }, blocks[] = { 1, 132, 1000 };
    float *memory;

    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaEventCreate(&begun));
    WORKS(cudaEventCreate(&ended));
    WORKS(cudaMalloc(&memory, 1 << 20));
    for (int i = 0; i < 9; i++)
        graph_time(kernels[i % 3], blocks[i / 3], memory);
    for (long mib : { 8L, 32L, 1024L })
        copy_time(mib);
    WORKS(cudaMemset(memory, 0, 1 << 20));
    peak_time("float32, multiply-adds", fma_run, 64, memory);
    peak_time("tf32 tensor cores, mma.sync", tf32_run, 2 * 16 * 8 * 8, memory);
    peak_time("bf16 tensor cores, mma.sync", bf16_run, 2 * 16 * 8 * 16, memory);
    peak_time("fp16 tensor cores, mma.sync", fp16_run, 2 * 16 * 8 * 16, memory);
    return 0;
}
