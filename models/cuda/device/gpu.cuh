/* models/cuda/device/gpu.cuh - one device and its streams, and what every launch needs. */
#ifndef NN_CUDA_GPU_CUH
#define NN_CUDA_GPU_CUH

#include "models/cuda/device/ops.h"
#include "models/cuda/device/prim.cuh"

/* Graphs of one segment of a step that are ready to run: capture.cuh. */
enum { GRAPHS = 4 };

typedef struct ready_graph {
    cudaGraphExec_t exec;
    size_t nodes;
    uint64_t key; /* of its arguments, or 0 */
} ready_graph;

typedef struct graph_set {
    ready_graph ready[GRAPHS];
    int oldest;
} graph_set;

struct nn_gpu {
    int device;
    size_t shared;         /* a block may have                           */
    cudaStream_t stream, streams[NN_GPU_STREAMS], copies, lent; /* stream: the selected one */
    bool parallel, alone;  /* not parallel, or alone: all work is in stream 0 */
    cudaEvent_t copied, forked, joined, event[NN_GPU_EVENTS], mark[NN_GPU_MARKS]; /* mark: made by the first gpu_alone */
    graph_set graphs[NN_GPU_SEGMENTS];
    struct lt_state *lt;   /* lt.cuh; NULL: all products by our kernels  */
    bool (*go_on)(void *watcher, double waited); /* or NULL              */
    void *watcher;
    bool lost;             /* it said no: nothing is waited for any more */
    cudaError_t first;     /* what went wrong first                      */
    const char *where;     /* and in which operation; NULL: text says it */
    char text[256];
};

static inline void note(nn_gpu *g, cudaError_t e, const char *where)
{
    if (e == cudaSuccess || g->first != cudaSuccess)
        return;
    g->first = e;
    g->where = where;
}

static inline void launched(nn_gpu *g, const char *op)
{
    note(g, cudaGetLastError(), op);
}

/* Place of D_l in a frame: nn_frame_at. */
static __device__ __forceinline__ int frame_at(int l)
{
    return (4 * l * l * l - l) / 3 - 1;
}

/* Rows or columns of a table with the filling. */
static __device__ __forceinline__ int padded(int n)
{
    return (n + NN_GPU_PAD - 1) / NN_GPU_PAD * NN_GPU_PAD;
}

static inline unsigned blocks(int64_t n, int per)
{
    return (unsigned)((n + per - 1) / per);
}

#endif
