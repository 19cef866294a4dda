/* models/cuda/device/products.cuh - launches of the kernels that exist for each precision of tensor cores. They take most of the
 * time of compiling, so each precision is a file of its own (products_*.cu); device.cu calls them through a table. */
#ifndef NN_CUDA_PRODUCTS_CUH
#define NN_CUDA_PRODUCTS_CUH

#include "models/cuda/device/gpu.cuh"
#include "models/cuda/device/mma.cuh"
#include "models/cuda/device/gemm.cuh"
#include "models/cuda/device/thin.cuh"
#include "models/cuda/device/row_products.cuh"
#include "models/cuda/device/tables.cuh"
#include "models/cuda/device/group.cuh"
#include "models/cuda/device/edge_products.cuh"
#include "models/cuda/device/tiles.cuh"
#include "models/cuda/device/conv.cuh"

/* Products of a launch; each kind has a kernel of its own. */
enum { GEMM_ANY, GEMM_THIN, GEMM_ROWS, GEMM_TABLES, GEMM_KINDS };

template <int P, int C> static void rows_launch(nn_gpu *g, const gemm_group *s)
{
    if (s->plain)
        LAUNCH((gemm_rows<P, C, true>), (unsigned)s->block[s->n], GEMM_THREADS, 0, g->stream, *s);
    else
        LAUNCH((gemm_rows<P, C, false>), (unsigned)s->block[s->n], GEMM_THREADS, 0, g->stream, *s);
}

template <int P> static void group_launch(nn_gpu *g, const gemm_group s[GEMM_KINDS])
{
    const gemm_group *any = &s[GEMM_ANY], *thin = &s[GEMM_THIN], *rows = &s[GEMM_ROWS], *tables = &s[GEMM_TABLES];

    if (any->n)
        LAUNCH(gemm_mma<P>, (unsigned)any->block[any->n], GEMM_THREADS, 0, g->stream, *any);
    if (thin->n && thin->plain)
        LAUNCH((gemm_thin<P, true>), (unsigned)thin->block[thin->n], GEMM_THREADS, 0, g->stream, *thin);
    else if (thin->n)
        LAUNCH((gemm_thin<P, false>), (unsigned)thin->block[thin->n], GEMM_THREADS, 0, g->stream, *thin);
    if (rows->n && rows->few)
        rows_launch<P, ROWS_FEW>(g, rows);
    else if (rows->n)
        rows_launch<P, ROWS_CHUNKS>(g, rows);
    if (tables->n && tables_same(tables, (nn_gpu_precision)tables_kept<P>::as))
        LAUNCH((gemm_tables<P, true>), (unsigned)tables->block[tables->n], TABLES_THREADS, 0, g->stream, *tables);
    else if (tables->n)
        LAUNCH((gemm_tables<P, false>), (unsigned)tables->block[tables->n], TABLES_THREADS, 0, g->stream, *tables);
}

/* Shared memory of a tile's block, the most of all orders. */
template <int P, bool U> static size_t tile_bytes(const nn_gpu_so2 *s, size_t more)
{
    int max = 0;

    for (int m = 0; m < s->n_orders; m++) {
        int side = tile_memory_of<P, U>(NULL, s->k[m], m).side;
        max = side > max ? side : max;
    }
    return (size_t)(TILE_STAGES * tile_stage() + tile_weights<U>() + tile_sides<U>() * max) * sizeof(uint32_t) + more;
}

static bool by_fours(const float *p, int size, const int *at, const int *n)
{
    bool yes = (uintptr_t)p % 16 == 0 && size % 4 == 0;

    for (int i = 0; i < NN_GPU_DEGREES; i++)
        yes = yes && (at[i] | n[i]) % 4 == 0;
    return yes;
}

/* Nodes' features, and where their channels go in an edge's. */
static bool gather_fours(const nn_gpu_turn *t)
{
    bool yes = by_fours(t->x, t->nodes.size, t->nodes.at, t->nodes.ch)
        && by_fours(NULL, 0, t->edges.order, t->edges.ch);

    for (int i = 0; i < NN_GPU_DEGREES * NN_GPU_FREQS; i++)
        yes = yes && t->edges.at[i / NN_GPU_FREQS][i % NN_GPU_FREQS] % 4 == 0;
    return yes;
}

static int so2_fours(const nn_gpu_so2 *s)
{
    return (by_fours(s->x, s->x_size, s->x_at, s->k) ? TILE_X4 : 0)
        | (by_fours(s->y, s->y_size, s->y_at, s->n) ? TILE_Y4 : 0);
}

static int conv_fours(const nn_gpu_conv *c)
{
    return (gather_fours(&c->x) && by_fours(NULL, 0, c->s.x_at, c->s.k) ? TILE_X4 : 0)
        | (so2_fours(&c->s) & (!c->logit || gather_fours(&c->q) ? TILE_Y4 : 0));
}

template <int P> static cudaError_t tile_allow(const nn_gpu *g)
{
    cudaError_t e = SHARED_ALLOW((so2_mma<P, false>), (int)g->shared);

    if (e == cudaSuccess)
        e = SHARED_ALLOW((so2_mma<P, true>), (int)g->shared);
    if (e == cudaSuccess)
        e = SHARED_ALLOW((tile_conv<P, false>), (int)g->shared);
    if (e == cudaSuccess)
        e = SHARED_ALLOW((tile_conv<P, true>), (int)g->shared);
    return e;
}

/* On tensor cores, where the tile fits in shared memory. */
template <int P, bool U> static bool tile_launch_of(nn_gpu *g, const nn_gpu_so2 *s)
{
    size_t bytes = tile_bytes<P, U>(s, 0);

    if (bytes > g->shared)
        return false;
    if (s->n_tiles)
        LAUNCH((so2_mma<P, U>), dim3((unsigned)s->n_tiles, (unsigned)s->n_orders), TILE_THREADS, bytes, g->stream, *s,
               so2_fours(s));
    launched(g, "so2");
    return true;
}

template <int P> static bool tile_launch(nn_gpu *g, const nn_gpu_so2 *s)
{
    return s->unit ? tile_launch_of<P, true>(g, s) : tile_launch_of<P, false>(g, s);
}

template <int P, bool U> static bool conv_launch_of(nn_gpu *g, const nn_gpu_conv *c)
{
    size_t bytes = tile_bytes<P, U>(&c->s, sizeof(tile_heads));

    if (bytes > g->shared || (int64_t)c->key_channels * NN_GPU_TILE * 2 > TILE_STAGES * tile_stage())
        return false;
    if (c->s.n_tiles)
        LAUNCH((tile_conv<P, U>), dim3((unsigned)c->s.n_tiles, (unsigned)c->s.n_orders), TILE_THREADS, bytes, g->stream, *c,
               conv_fours(c));
    launched(g, "conv");
    return true;
}

template <int P> static bool conv_launch(nn_gpu *g, const nn_gpu_conv *c)
{
    return c->s.unit ? conv_launch_of<P, true>(g, c) : conv_launch_of<P, false>(g, c);
}

template <int P> static void outer_launch(nn_gpu *g, const nn_gpu_so2 *a)
{
    unsigned tiles = 0, rows = (unsigned)(a->n_nodes + 2 * a->slots);

    for (int m = 0; m < a->n_orders; m++)
        tiles += blocks(a->k[m], GEMM_TILE) * blocks(a->n[m], GEMM_TILE);
    if (tiles)
        LAUNCH(so2_outer<P>, dim3(rows, tiles), GEMM_THREADS, 0, g->stream, *a,
               so2_fours(a) == (TILE_X4 | TILE_Y4));
    launched(g, "so2_outer");
}

/* ---- the table ---- */

typedef struct gpu_launches {
    void (*group)(nn_gpu *g, const gemm_group s[GEMM_KINDS]);
    cudaError_t (*allow)(const nn_gpu *g);         /* shared memory of the tiles   */
    bool (*tile)(nn_gpu *g, const nn_gpu_so2 *s);  /* false: it does not fit       */
    bool (*conv)(nn_gpu *g, const nn_gpu_conv *c);
    void (*outer)(nn_gpu *g, const nn_gpu_so2 *a);
} gpu_launches;

#define GPU_LAUNCHES(P) { group_launch<P>, tile_allow<P>, tile_launch<P>, conv_launch<P>, outer_launch<P> }

extern const gpu_launches gpu_bf16x3, gpu_bf16, gpu_tf32, gpu_fp16;

enum { GPU_PRECISIONS = NN_GPU_FP16 + 1 };
static const gpu_launches *const gpu_products[GPU_PRECISIONS] = { NULL, &gpu_bf16x3, &gpu_bf16, &gpu_tf32, &gpu_fp16 }; /* nn_gpu_precision */

#endif
