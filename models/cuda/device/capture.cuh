/* models/cuda/device/capture.cuh - captures passes as CUDA graphs and reuses instantiated graphs.
 *
 * Batches differ in size, so every pass is captured again, which is cheap. Instantiating a
 * graph is not, so GRAPHS instantiated graphs are kept; one that consists of the same operations
 * is updated with the new arguments (cudaGraphExecUpdate). There are several, because
 * a batch may need another number of operations (tables in pieces) than the one before. A step
 * with other ranks is cut where it passes a bucket to NCCL; each segment has its own set.
 *
 * Graphs with a key keep their arguments as long as they can: what is captured goes to an empty place, or updates the oldest. */
#ifndef NN_CUDA_CAPTURE_CUH
#define NN_CUDA_CAPTURE_CUH

static void stream_wait(nn_gpu *g, cudaStream_t stream); /* streams.cuh */
static cudaStream_t stream_of(const nn_gpu *g);

static void graph_free(graph_set *s)
{
    for (int i = 0; i < GRAPHS; i++)
        if (s->ready[i].exec)
            cudaGraphExecDestroy(s->ready[i].exec);
}

/* An instantiated graph with the same number of nodes that accepts these arguments; NULL: none. */
static cudaGraphExec_t graph_update(graph_set *s, cudaGraph_t captured, size_t nodes, uint64_t key)
{
    cudaGraphExecUpdateResultInfo why;

    if (key && !s->ready[s->oldest].exec)
        return NULL;
    for (int n = 0; n < GRAPHS; n++) {
        int i = key ? (s->oldest + n) % GRAPHS : n;
        if (!s->ready[i].exec || s->ready[i].nodes != nodes)
            continue;
        s->ready[i].key = 0;
        if (cudaGraphExecUpdate(s->ready[i].exec, captured, &why) == cudaSuccess) {
            s->ready[i].key = key;
            s->oldest = key ? (i + 1) % GRAPHS : s->oldest;
            return s->ready[i].exec;
        }
        cudaGetLastError(); /* the graph has other operations, which is not an error */
    }
    return NULL;
}

/* Instantiates a graph in place of the oldest one; waits first, because that one may still be running. */
static cudaError_t graph_new(graph_set *s, cudaGraph_t captured, size_t nodes, uint64_t key, nn_gpu *g, cudaGraphExec_t *out)
{
    ready_graph *to = &s->ready[s->oldest];

    s->oldest = (s->oldest + 1) % GRAPHS;
    if (to->exec) {
        stream_wait(g, stream_of(g));
        cudaGraphExecDestroy(to->exec);
        to->exec = NULL;
    }
    to->nodes = nodes;
    to->key = key;
    cudaError_t e = cudaGraphInstantiate(&to->exec, captured, cudaGraphInstantiateFlagUseNodePriority); /* that of their lanes */
    *out = to->exec;
    return e;
}

/* Ends the capture of the stream and runs what was captured, in the stream's order. */
static cudaError_t graph_run(graph_set *s, nn_gpu *g, uint64_t key)
{
    cudaStream_t stream = stream_of(g);
    cudaGraph_t captured = NULL;
    cudaGraphExec_t exec;
    size_t nodes = 0;
    cudaError_t e = cudaStreamEndCapture(stream, &captured);

    if (e != cudaSuccess || !captured)
        return e;
    e = cudaGraphGetNodes(captured, NULL, &nodes);
    exec = e == cudaSuccess && nodes ? graph_update(s, captured, nodes, key) : NULL;
    if (e == cudaSuccess && nodes && !exec)
        e = graph_new(s, captured, nodes, key, g, &exec);
    if (e == cudaSuccess && nodes) /* a rank without molecules has nothing between two buckets */
        e = cudaGraphLaunch(exec, stream);
    cudaGraphDestroy(captured);
    return e;
}

#endif
