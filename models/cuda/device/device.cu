/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations (ops.h): memory, launches and errors of one device. With
 * NN_GPU_EMULATED the runtime calls come from tests/emulator instead of CUDA. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/cuda/device/ops.h"
#include "models/cuda/device/lt.h"
#include "models/cuda/device/gpu.cuh"
#include "models/cuda/device/capture.cuh"
#include "models/cuda/device/products.cuh"
#include "models/cuda/device/gemm_plain.cuh"
#include "models/cuda/device/radial.cuh"
#include "models/cuda/device/edges.cuh"
#include "models/cuda/device/attend.cuh"
#include "models/cuda/device/edge_products_plain.cuh"
#include "models/cuda/device/norms.cuh"
#include "models/cuda/device/train_ops.cuh"

#include "models/cuda/device/streams.cuh"
#include "models/cuda/device/lt.cuh"

static cudaError_t tiles_allow(const nn_gpu *g); /* launch.cuh */

/* ---- device and memory ---- */

static bool device_describe(int32_t device, char *text, size_t n)
{
    cudaDeviceProp p;
    int driver = 0, runtime = 0;

    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (cudaGetDeviceProperties(&p, device) != cudaSuccess) {
        snprintf(text, n, "the properties of GPU %d cannot be read", (int)device);
        return false;
    }
    snprintf(text, n, "%s, compute capability %d.%d, %.0f GB, driver for CUDA %d.%d, built with %d.%d", p.name, p.major,
             p.minor, (double)p.totalGlobalMem / 1e9, driver / 1000, driver % 1000 / 10, runtime / 1000,
             runtime % 1000 / 10);
    if (p.major >= 8)
        return true;
    snprintf(text, n, "%s has compute capability %d.%d; 8.0 is needed", p.name, p.major, p.minor);
    return false;
}

static int32_t device_count(void)
{
    int count = 0;

    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

static void device_pci(int32_t device, char *text, size_t n)
{
    text[0] = '\0';
    if (cudaDeviceGetPCIBusId(text, (int)n, device) == cudaSuccess)
        return;
    cudaGetLastError();
    text[0] = '\0';
}

static void driver_missing(char *text, size_t n)
{
    int driver = 0, runtime = 0;

    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver > 0)
        snprintf(text, n, "the NVIDIA driver is for CUDA %d.%d, older than the %d.%d this was built with", driver / 1000,
                 driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    else
        snprintf(text, n, "no NVIDIA driver");
}

/* One sentence for each way of not having a GPU. */
static bool device_find(int32_t device, char *text, size_t n)
{
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);

    if (e == cudaErrorInsufficientDriver)
        driver_missing(text, n);
    else if (e != cudaSuccess)
        snprintf(text, n, "no GPU: %s", cudaGetErrorString(e));
    else if (device < 0 || device >= count)
        snprintf(text, n, "there is no GPU %d; this machine shows %d", (int)device, count);
    else
        return device_describe(device, text, n);
    return false;
}

static void gpu_close(nn_gpu *g)
{
    if (!g || g->lost)
        return;
    cudaSetDevice(g->device);
    lt_close(g);
    streams_close(g);
    for (int i = 0; i < NN_GPU_SEGMENTS; i++)
        graph_free(&g->graphs[i]);
    free(g);
}

static nn_gpu *gpu_open(int32_t device, bool yields, char *text, size_t n)
{
    int shared = 0;
    nn_gpu *g;
    cudaError_t e = cudaErrorMemoryAllocation;

    if (!device_find(device, text, n))
        return NULL;
    g = (nn_gpu *)calloc(1, sizeof *g);
    if (g) {
        g->device = device;
        e = cudaSetDevice(device);
        e = e == cudaSuccess ? streams_open(g, yields) : e;
        e = e == cudaSuccess ? cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) : e;
        g->shared = (size_t)shared;
        e = e == cudaSuccess ? tiles_allow(g) : e;
    }
    if (e == cudaSuccess)
        return g;
    cudaGetLastError();
    snprintf(text, n, "GPU %d cannot be used: %s%s", (int)device, cudaGetErrorString(e),
             e == cudaErrorMemoryAllocation ? "; if nvidia-smi shows free memory, too many programs use it at once" : "");
    gpu_close(g);
    return NULL;
}

static void gpu_memory(nn_gpu *g, size_t *left, size_t *all)
{
    *left = *all = 0;
    cudaSetDevice(g->device);
    note(g, cudaMemGetInfo(left, all), "asking for memory");
}

/* Being refused memory is no fault; any other answer is one, perhaps of a kernel of long before. */
static void refused(nn_gpu *g, cudaError_t e, const char *where)
{
    cudaGetLastError();
    if (e != cudaErrorMemoryAllocation)
        note(g, e, where);
}

static void *gpu_alloc(nn_gpu *g, size_t bytes)
{
    void *p = NULL;
    cudaError_t e;

    cudaSetDevice(g->device);
    e = cudaMalloc(&p, bytes);
    if (e == cudaSuccess)
        return p;
    refused(g, e, "taking memory");
    return NULL;
}

static void gpu_free(nn_gpu *g, void *p)
{
    streams_wait(g);
    if (!g->lost)
        cudaFree(p);
}

static void *gpu_host_alloc(nn_gpu *g, size_t bytes)
{
    void *p = NULL;
    cudaError_t e;

    cudaSetDevice(g->device);
    e = cudaMallocHost(&p, bytes);
    if (e == cudaSuccess)
        return p;
    refused(g, e, "taking memory of the host");
    return NULL;
}

static void gpu_host_free(nn_gpu *g, void *p)
{
    streams_wait(g);
    if (!g->lost)
        cudaFreeHost(p);
}

static void gpu_upload(nn_gpu *g, void *to, const void *host, size_t bytes)
{
    cudaSetDevice(g->device);
    note(g, cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, g->stream), "upload");
}

static void gpu_download(nn_gpu *g, void *host, const void *from, size_t bytes)
{
    note(g, cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, g->stream), "download");
    stream_wait(g, g->stream);
}

static void gpu_upload_beside(nn_gpu *g, void *to, const void *host, size_t bytes)
{
    cudaSetDevice(g->device);
    note(g, cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, g->copies), "upload");
    note(g, cudaEventRecord(g->copied, g->copies), "upload");
    note(g, cudaStreamWaitEvent(g->stream, g->copied, 0), "upload");
}

static void gpu_download_later(nn_gpu *g, void *host, const void *from, size_t bytes)
{
    note(g, cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, g->stream), "download");
}

enum { FENCE_BYTE = 0xa5 };

static void gpu_fence(nn_gpu *g, void *p, bool on)
{
    fence_poison(p, false);
    cudaSetDevice(g->device);
    if (on)
        note(g, cudaMemsetAsync(p, FENCE_BYTE, NN_GPU_FENCE, g->stream), "fence");
    fence_poison(p, on);
}

static bool gpu_intact(nn_gpu *g, void *p)
{
    unsigned char host[NN_GPU_FENCE] = { 0 };
    bool whole = true;

    fence_poison(p, false);
    gpu_download(g, host, p, sizeof host);
    fence_poison(p, true);
    for (int i = 0; i < NN_GPU_FENCE; i++)
        whole = whole && host[i] == FENCE_BYTE;
    return whole;
}

/* ---- launches ---- */

static unsigned channels_of(const nn_gpu_edges *e)
{
    int32_t max = 1;

    for (int l = 0; l < NN_GPU_DEGREES; l++)
        max = e->ch[l] > max ? e->ch[l] : max;
    return (unsigned)max;
}

static void gpu_zero(nn_gpu *g, void *p, size_t bytes)
{
    cudaSetDevice(g->device);
    if (bytes)
        LAUNCH(words_zero, blocks((int64_t)bytes / 4, ADAMW_SPAN), TRAIN_THREADS, 0, g->stream, (uint32_t *)p, (int64_t)bytes / 4);
    launched(g, "zero");
}

static void groups_launch(nn_gpu *g, const gemm_group s[GEMM_KINDS], nn_gpu_precision precision)
{
    if (precision != NN_GPU_FP32)
        gpu_products[precision]->group(g, s);
    else if (s->n)
        LAUNCH(gemm_fp32, (unsigned)s->block[s->n], GEMM_THREADS, 0, g->stream, *s);
    launched(g, "gemm");
}

static void group_close(gemm_group *s)
{
    for (int32_t i = s->n; i < NN_GPU_GROUP; i++)
        s->block[i + 1] = s->block[s->n];
}

/* Adds the splits of products with splits > 1. */
static void parts_launch(nn_gpu *g, const nn_gpu_gemm *a, int32_t n)
{
    gemm_group s = {};

    for (int32_t i = 0; i < n; i++)
        if (a[i].splits > 1 && a[i].m && a[i].n) {
            s.product[s.n] = product_of(&a[i], NULL);
            s.block[s.n + 1] = s.block[s.n] + (int32_t)blocks((int64_t)a[i].m * a[i].n, PARTS_WIDE);
            s.n++;
        }
    group_close(&s);
    if (s.n)
        LAUNCH(gemm_parts, (unsigned)s.block[s.n], 8 * PARTS_WIDE, 0, g->stream, s);
    launched(g, "gemm_parts");
}

static bool goes_on(const gemm_group *s, int32_t i)
{
    return i > 0 && s->product[i - 1].more;
}

static int64_t tiles_of(const gemm_product *p, int32_t rows)
{
    return (int64_t)blocks(p->n, GEMM_TILE) * blocks(p->m, rows) * p->splits;
}

/* The rows of a block: as many tiles, one below the other, as are needed for all blocks to run at once, three on a
 * multiprocessor. */
static int32_t group_rows(const gemm_group *s)
{
    int64_t tiles = 0;

    for (int32_t i = 0; i < s->n; i++)
        tiles += goes_on(s, i) ? 0 : tiles_of(&s->product[i], GEMM_TILE);
    tiles = (tiles + GEMM_BLOCKS - 1) / GEMM_BLOCKS;
    if (tiles < 1)
        return GEMM_TILE;
    return GEMM_TILE * (tiles > GEMM_DOWN ? GEMM_DOWN : (int32_t)tiles);
}

static int64_t blocks_of(const gemm_product *p, int kind)
{
    switch (kind) {
    case GEMM_THIN: return thin_blocks(p);
    case GEMM_ROWS: return rows_blocks(p);
    case GEMM_TABLES: return tables_blocks(p);
    default: return tiles_of(p, p->rows);
    }
}

static void group_place(gemm_group *s, int kind, int32_t rows)
{
    for (int32_t i = 0; i < s->n; i++) {
        s->product[i].rows = rows;
        s->block[i + 1] = s->block[i] + (goes_on(s, i) ? 0 : (int32_t)blocks_of(&s->product[i], kind));
    }
    group_close(s);
    s->plain = kind == GEMM_ROWS ? rows_plain(s) : kind == GEMM_THIN && thin_plain(s);
    s->few = kind == GEMM_ROWS && rows_few(s);
}

static gemm_product product_of_kind(const gemm_product *p, int kind)
{
    if (kind == GEMM_THIN)
        return product_as_thin(*p);
    return kind == GEMM_ROWS ? product_as_rows(*p) : *p;
}

static int kind_of(const nn_gpu_gemm *a, const gemm_product *p)
{
    if (product_thin(p))
        return GEMM_THIN;
    if (products_rows(a))
        return GEMM_ROWS;
    return product_tables(p) ? GEMM_TABLES : GEMM_ANY;
}

/* All n products have the same precision. A product that is added to the one before uses the same kernel. */
static void own_gemm(nn_gpu *g, const nn_gpu_gemm *a, int32_t n)
{
    bool mma = a->precision != NN_GPU_FP32;
    gemm_group s[GEMM_KINDS] = {};
    int kind = GEMM_ANY;

    for (int32_t i = 0; i < n; i++) {
        bool on = goes_on(&s[kind], s[kind].n);
        gemm_product p;
        if (!a[i].m || !a[i].n)
            continue;
        p = product_of(&a[i], on ? &s[kind].product[s[kind].n - 1] : NULL);
        if (p.splits > 1)
            p = product_parts(p);
        if (!on)
            kind = mma ? kind_of(&a[i], &p) : GEMM_ANY;
        s[kind].product[s[kind].n++] = product_of_kind(&p, kind);
    }
    for (int k = 0; k < GEMM_KINDS; k++)
        group_place(&s[k], k, mma && k == GEMM_ANY ? group_rows(&s[k]) : GEMM_TILE);
    groups_launch(g, s, a->precision);
    parts_launch(g, a, n);
}

/* Those that cuBLASLt takes are computed one by one, in the order of the calls; the others in as few launches as possible. */
static void op_gemm(nn_gpu *g, const nn_gpu_gemm *a, int32_t n)
{
    nn_gpu_gemm own[NN_GPU_GROUP];
    int32_t n_own = 0, end;

    if (!g->lt || n > NN_GPU_GROUP)
        return own_gemm(g, a, n);
    for (int32_t i = 0; i < n; i = end) {
        for (end = i + 1; a[end - 1].more;)
            end++;
        if (!a[i].m || !a[i].n || lt_chain(g, &a[i], end - i))
            continue;
        for (int32_t k = i; k < end; k++)
            own[n_own++] = a[k];
    }
    if (n_own)
        own_gemm(g, own, n_own);
}

static void op_column_sum(nn_gpu *g, const nn_gpu_column_sum *a)
{
    LAUNCH(column_sums, blocks(a->cols, 32), 256, 0, g->stream, *a);
    launched(g, "column_sum");
}

static void op_frames(nn_gpu *g, const nn_gpu_frames *a)
{
    if (a->n_pairs && a->l_max > 0)
        LAUNCH(frames_make, blocks(a->n_pairs, FRAME_PAIRS), FRAME_WARPS * 32, 0, g->stream, *a);
    launched(g, "frames");
}

static void op_hidden(nn_gpu *g, const nn_gpu_hidden *a)
{
    if (a->n_nodes)
        LAUNCH(hidden_run, dim3(blocks(a->n_nodes, WARPS), (unsigned)a->n_nets), WARPS * 32, 0, g->stream, *a);
    launched(g, "hidden");
}

static void op_hidden_back(nn_gpu *g, const nn_gpu_hidden *a)
{
    if (!a->n_nodes)
        return;
    LAUNCH(hidden_parts, dim3(blocks(a->n_nodes, WARPS), (unsigned)a->n_nets), WARPS * 32, 0, g->stream, *a);
    LAUNCH(hidden_grad, dim3(NN_GPU_H, (unsigned)a->n_nets), HIDDEN_COLS * HIDDEN_SLICES, 0, g->stream, *a);
    launched(g, "hidden_back");
}

static void op_fold(nn_gpu *g, const nn_gpu_fold *a)
{
    LAUNCH(fold_run, (unsigned)(a->n_tiles * (H / FOLD_SIDE)), FOLD_THREADS, 0, g->stream, *a);
    launched(g, "fold");
}

static void op_unfold(nn_gpu *g, const nn_gpu_fold *a)
{
    LAUNCH(fold_back, (unsigned)(a->n_tiles * (H / FOLD_SIDE)), FOLD_THREADS, 0, g->stream, *a);
    launched(g, "unfold");
}

static void op_dot(nn_gpu *g, const nn_gpu_dot *a)
{
    unsigned channels = channels_of(&a->t.edges);

    if (a->t.n_rows)
        LAUNCH(dot_run, blocks(a->t.n_rows, WARPS), WARPS * 32, WARPS * channels * sizeof(float), g->stream, *a,
               (int)channels);
    launched(g, "dot");
}

static void op_scale(nn_gpu *g, const nn_gpu_scale *a)
{
    if (a->n_nodes)
        LAUNCH(scale_rows, blocks((int64_t)a->n_nodes * a->size, 256), 256, 0, g->stream, *a);
    launched(g, "scale");
}

#include "models/cuda/device/launch.cuh"

static void op_norm(nn_gpu *g, const nn_gpu_norm *a)
{
    if (a->n_nodes && a->gate)
        LAUNCH(gate_run, dim3(blocks(a->n_nodes, WARPS), (unsigned)a->nodes.n_degrees), WARPS * 32, 0, g->stream, *a);
    else if (a->n_nodes)
        LAUNCH(norm_run, dim3(blocks(a->n_nodes, WARPS), (unsigned)a->nodes.n_degrees), WARPS * 32, 0, g->stream, *a);
    launched(g, "norm");
}

static void op_norm_back(nn_gpu *g, const nn_gpu_norm *a)
{
    const dim3 grid(NN_GPU_PARTS, (unsigned)a->nodes.n_degrees);
    int32_t max = 0;

    for (int l = 0; l < a->nodes.n_degrees; l++)
        max = a->nodes.ch[l] > max ? a->nodes.ch[l] : max;
    if (a->gate)
        LAUNCH(gate_grad, grid, WARPS * 32, WARPS * 2 * (size_t)max * sizeof(float), g->stream, *a);
    else
        LAUNCH(norm_grad, grid, WARPS * 32, WARPS * 2 * (size_t)max * sizeof(float), g->stream, *a);
    launched(g, "norm_back");
}

static void op_norm_sums(nn_gpu *g, const nn_gpu_norm *a)
{
    LAUNCH(norm_sums, dim3(blocks(a->channels, 32), 2), 256, 0, g->stream, *a);
    launched(g, "norm_sums");
}

static void op_pool(nn_gpu *g, const nn_gpu_pool *a)
{
    if (a->n_graphs)
        LAUNCH(pool_run, blocks((int64_t)a->n_graphs * a->channels, 128), 128, 0, g->stream, *a);
    launched(g, "pool");
}

static void op_pool_back(nn_gpu *g, const nn_gpu_pool *a)
{
    if (a->n_graphs)
        LAUNCH(pool_grad, blocks((int64_t)a->n_graphs * a->channels, 128), 128, 0, g->stream, *a);
    launched(g, "pool_back");
}

static void op_bias(nn_gpu *g, const nn_gpu_bias *a)
{
    if (a->rows)
        LAUNCH(bias_run, blocks((int64_t)a->rows * a->cols, 128), 128, 0, g->stream, *a);
    launched(g, "bias");
}

static void op_bias_back(nn_gpu *g, const nn_gpu_bias *a)
{
    if (a->rows)
        LAUNCH(bias_grad, blocks((int64_t)a->rows * a->cols, 128), 128, 0, g->stream, *a);
    launched(g, "bias_back");
}

static void op_loss(nn_gpu *g, const nn_gpu_loss *a)
{
    LAUNCH(loss_run, 1, TRAIN_THREADS, 0, g->stream, *a);
    launched(g, "loss");
}

static void op_add(nn_gpu *g, const nn_gpu_add *a)
{
    if (a->n)
        LAUNCH(rows_add, blocks(a->n, ADAMW_SPAN), TRAIN_THREADS, 0, g->stream, *a);
    launched(g, "add");
}

static void op_squares(nn_gpu *g, const nn_gpu_optimise *a)
{
    if (a->n)
        LAUNCH(square_parts, blocks(a->n, NN_GPU_SQUARES), TRAIN_THREADS, 0, g->stream, *a);
    launched(g, "squares");
}

static void op_decide(nn_gpu *g, const nn_gpu_optimise *a)
{
    LAUNCH(rule_make, 1, TRAIN_THREADS, 0, g->stream, *a);
    launched(g, "decide");
}

static void op_update(nn_gpu *g, const nn_gpu_optimise *a)
{
    if (a->lamb.n_pieces) {
        LAUNCH(lamb_moments, (unsigned)a->lamb.n_pieces, TRAIN_THREADS, 0, g->stream, *a);
        LAUNCH(lamb_update, (unsigned)a->lamb.n_pieces, TRAIN_THREADS, 0, g->stream, *a);
    } else if (a->n) {
        LAUNCH(adamw_run, blocks(a->n, ADAMW_SPAN), TRAIN_THREADS, 0, g->stream, *a);
    }
    launched(g, "update");
}

extern "C" __attribute__((visibility("default"))) const nn_gpu_ops *molsieve_gpu_ops(void)
{
    static const nn_gpu_ops ops = {
        NN_GPU_ABI, (int32_t)sizeof(nn_gpu_ops), NN_GPU_NAME,
        device_count, device_pci, device_find, gpu_open, gpu_close, gpu_cublaslt, gpu_status, gpu_memory,
        gpu_alloc, gpu_free, gpu_host_alloc, gpu_host_free, gpu_upload, gpu_download, gpu_zero, gpu_fence, gpu_intact,
        gpu_upload_beside, gpu_download_later, gpu_record, gpu_wait_event, gpu_use_stream, gpu_synchronize, gpu_graph_begin, gpu_graph_run,
        gpu_graph_keep, gpu_graph_again,
        gpu_alone, gpu_mark, gpu_between,
        gpu_fork, gpu_join, gpu_watch,
        op_gemm, op_column_sum, op_frames, op_hidden, op_hidden_back, op_fold, op_unfold, op_turn, op_dot, op_sum,
        op_scale, op_so2, op_so2_outer, op_conv, op_attend, op_attend_back, op_norm, op_norm_back, op_norm_sums, op_pool, op_pool_back,
        op_bias, op_bias_back, op_loss, op_add, op_squares, op_decide,
        op_update,
    };

    return &ops;
}
