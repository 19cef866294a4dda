/* models/cuda/device/edge_products_plain.cuh - kernels of products along edges that exist once, not for each precision; a part of device.cu.
 * Operations have the numbers of docs/model.md 8. */
#ifndef NN_CUDA_EDGE_PRODUCTS_PLAIN_CUH
#define NN_CUDA_EDGE_PRODUCTS_PLAIN_CUH

#include "models/cuda/device/edge_products.cuh"

/* Op 7 in float32: y+ = A x+ - sign B x-, y- = A x- + sign B x+, A, B = sum over the cell's nodes of phi * table.
 * Grid: x = 16 rows of a tile (NN_GPU_TILE / SO2_ROWS blocks a tile), y = order and 128 output channels; block:
 * SO2_THREADS; thread = one output channel of 16 rows. Shared: xs [sign][k SO2_K][row SO2_ROWS], features times phi.
 * A table is read once per 16 rows. Equals: the products of conv_forward (models/ref/conv.inc), in the edge's frame. */
__global__ void __launch_bounds__(SO2_THREADS) so2_rows(nn_gpu_so2 s)
{
    __shared__ __align__(16) float xs[2][SO2_K][SO2_ROWS];
    int groups = NN_GPU_TILE / SO2_ROWS, skip = (int)blockIdx.x % groups * SO2_ROWS;
    float acc[2][SO2_ROWS] = { { 0 } };
    so2_part p;

    p.tile = s.tile + blockIdx.x / groups;
    p.first = p.tile->first + skip;
    p.rows = p.tile->n - skip < SO2_ROWS ? p.tile->n - skip : SO2_ROWS;
    part_order(s, &p, (int)blockIdx.y % s.n_orders, false);
    p.col = (int)blockIdx.y / s.n_orders * SO2_THREADS + (int)threadIdx.x;
    if (p.rows <= 0 || p.col - (int)threadIdx.x >= p.n_n)
        return;
    for (int j = 0; j < 2 && p.tile->node[j] >= 0; j++)
        for (int k0 = 0; k0 < p.n_k; k0 += SO2_K) {
            const float *a = (const float *)s.table + table_of(s, p, j) + k0 * p.ld + p.col;
            int count = p.n_k - k0 < SO2_K ? p.n_k - k0 : SO2_K;
            rows_load(s, p, j, k0, xs);
            __syncthreads();
            if (p.col < p.n_n && p.m)
                rows_pair(a, s.sign, p, count, xs, acc);
            else if (p.col < p.n_n)
                rows_zero(a, p, count, xs, acc);
            __syncthreads();
        }
    if (p.col < p.n_n)
        rows_store(s, p, acc);
}

/* Adds the sums that so2_outer left in work to the tables of nodes with longer cells, in the order of the rows.
 * Grid: ADD_NUMBERS numbers of a table a block, node after node; thread = 4 numbers. No shared memory. */
__global__ void __launch_bounds__(ADD_THREADS, 4) outer_add(const __grid_constant__ nn_gpu_so2 s)
{
    int across = (int)((s.table_size + ADD_NUMBERS - 1) / ADD_NUMBERS), node = (int)blockIdx.x / across, part[2], n[2];
    int64_t i = (int64_t)((int)blockIdx.x % across) * ADD_NUMBERS + 4 * (int)threadIdx.x;
    float *to = (float *)s.table + node * s.table_size + i, sum[4] = { 0 }, v[4];

UNROLL
    for (int j = 0; j < 2; j++) {
        int first, end;
        outer_range(s, node, j, &first, &end);
        part[j] = j * s.slots + (first - s.first_row) / NN_GPU_OUTER + 1;
        n[j] = end > first ? (end - first - 1) / NN_GPU_OUTER : 0;
    }
    if (!(n[0] + n[1]) || i >= s.table_size)
        return;
UNROLL
    for (int j = 0; j < 2; j++)
        add_parts(s, part[j], n[j], i, sum);
    load4(v, to);
UNROLL
    for (int q = 0; q < 4; q++)
        v[q] += sum[q];
    store4(to, v);
}

#endif
