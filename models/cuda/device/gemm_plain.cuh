/* models/cuda/device/gemm_plain.cuh - kernels of matrix products that exist once, not for each precision; a part of device.cu.
 * Operations have the numbers of docs/model.md 8. */
#ifndef NN_CUDA_GEMM_PLAIN_CUH
#define NN_CUDA_GEMM_PLAIN_CUH

#include "models/cuda/device/gemm.cuh"

/* Ops 5, 10, 13 in float32. Map and shared memory: the head of this file; thread (ty, tx) has rows 4 ty .. and columns
 * 4 tx .. of the tile. Equals: linear_forward and linear_backward (models/ref/layers.inc) for op 10, one per use. */
__global__ void __launch_bounds__(GEMM_THREADS, 2) gemm_fp32(const __grid_constant__ gemm_group s)
{
    __shared__ __align__(16) gemm_side a, b;
    int i = gemm_find(s), ty = (int)threadIdx.x / 16 * 4, tx = (int)threadIdx.x % 16 * 4;
    int row[4] = { ty, ty + 1, ty + 2, ty + 3 }, col[2] = { tx, tx + 2 };
    const gemm_product &g = s.product[i];
    gemm_part p = gemm_open(g, (int)blockIdx.x - s.block[i]);
    float acc[4][4] = { { 0 } };

    if (g.a_along && g.b_along)
        fp32_block<true, true>(s, i, p, a, b, acc);
    else if (g.a_along)
        fp32_block<true, false>(s, i, p, a, b, acc);
    else if (g.b_along)
        fp32_block<false, true>(s, i, p, a, b, acc);
    else
        fp32_block<false, false>(s, i, p, a, b, acc);
    gemm_put(g, p, row, col, acc);
}

/* Adds the splits of k: c[i] (=, +=) sum over splits of work[split][i].
 * Grid: PARTS_WIDE = 32 numbers of a product a block; block: 256 threads; lane = number, warp w = splits w, w + 8, ..; then
 * the eight sums are added in order. Shared: part [warp][lane]. */
__global__ void gemm_parts(const __grid_constant__ gemm_group s)
{
    __shared__ float part[8][PARTS_WIDE];
    int which = gemm_find(s), lane = (int)threadIdx.x % PARTS_WIDE, slice = (int)threadIdx.x / PARTS_WIDE;
    const gemm_product &g = s.product[which];
    int64_t i = (int64_t)((int)blockIdx.x - s.block[which]) * PARTS_WIDE + lane, size = (int64_t)g.m * g.n;
    float sum = 0, *c;

UNROLL_BY(1)
    for (int k = slice; k < g.splits; k += 64) {
        float v[8];
UNROLL
        for (int q = 0; q < 8; q++)
            v[q] = k + 8 * q < g.splits && i < size ? g.work[(k + 8 * q) * size + i] : 0;
UNROLL
        for (int q = 0; q < 8; q++)
            sum += v[q];
    }
    part[slice][lane] = sum;
    __syncthreads();
    if (slice || i >= size)
        return;
UNROLL
    for (int k = 1; k < 8; k++)
        sum += part[k][lane];
    c = (float *)g.c + axis_at(g.c_m, (int)i / g.n) + axis_at(g.c_n, (int)i % g.n);
    *c = g.add ? *c + sum : sum;
}

/* y[col] += sum over rows of x[row][col], the gradient of a bias (op 13).
 * Grid: 32 columns a block; block: 256 threads; lane = column, warp w = rows w, w + 8, ..; then the eight sums are added in
 * order. Shared: part [warp][lane]. Equals: dbias in dense_backward (models/ref/model.inc). */
__global__ void column_sums(nn_gpu_column_sum s)
{
    __shared__ float part[8][32];
    int col = (int)blockIdx.x * 32 + (int)threadIdx.x % 32, lane = (int)threadIdx.x / 32;
    float sum = 0;

UNROLL_BY(1)
    for (int row = lane; row < s.rows; row += 64) {
        float v[8];
UNROLL
        for (int q = 0; q < 8; q++)
            v[q] = row + 8 * q < s.rows && col < s.cols ? s.x[(int64_t)(row + 8 * q) * s.ld + col] : 0;
UNROLL
        for (int q = 0; q < 8; q++)
            sum += v[q];
    }
    part[lane][threadIdx.x % 32] = sum;
    __syncthreads();
    for (int i = 1; i < 8; i++)
        sum += part[i][threadIdx.x % 32];
    if (lane == 0 && col < s.cols)
        s.y[col] += sum;
}

#endif
