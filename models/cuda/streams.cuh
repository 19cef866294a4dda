/* models/cuda/streams.cuh - the order of work and waiting for it; part of device.cu.
 *
 * Three streams: of operations, of copies beside them, and one that `fork` lends to
 * others (sums over ranks). A kernel of NCCL whose other side is gone ends never, and with
 * it every call that waits for the stream or the device (cudaStreamSynchronize, cudaFree,
 * cudaMallocHost): so where a watch is set nothing here waits in the driver. Streams are
 * asked, the watch says whether to go on, and what is given up is left as it is: memory that
 * such a kernel may still write is freed by the end of the process. */
#ifndef NN_CUDA_STREAMS_CUH
#define NN_CUDA_STREAMS_CUH

static cudaStream_t stream_of(const nn_gpu *g)
{
    return g->stream;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Short waits do not sleep: a step takes a millisecond. */
static void rest(double waited)
{
    struct timespec t = { 0, waited < 0.1 ? 50000 : 2000000 };

    if (waited > 0.002)
        nanosleep(&t, NULL);
}

/* Until all of the stream, or what is before the event, is done or given up. */
static void watched_wait(nn_gpu *g, cudaStream_t stream, cudaEvent_t event)
{
    double began = seconds(), waited = 0;

    while (!g->lost) {
        cudaError_t e = event ? cudaEventQuery(event) : cudaStreamQuery(stream);
        if (e != cudaErrorNotReady)
            return note(g, e, "waiting");
        cudaGetLastError(); /* some runtimes keep "not ready" as an error of the next launch */
        g->lost = !g->go_on(g->watcher, waited);
        rest(waited);
        waited = seconds() - began;
    }
}

static void stream_wait(nn_gpu *g, cudaStream_t stream)
{
    if (g->go_on || g->lost)
        watched_wait(g, stream, NULL);
    else
        note(g, cudaStreamSynchronize(stream), "waiting");
}

/* A thread that never chose a device would make a context on the first one. */
static void streams_wait(nn_gpu *g)
{
    cudaSetDevice(g->device);
    stream_wait(g, g->copies);
    stream_wait(g, g->lent);
    stream_wait(g, g->stream);
}

static const char *first_fault(nn_gpu *g)
{
    if (g->lost)
        return "waiting for other ranks was given up";
    if (g->first == cudaSuccess)
        return NULL;
    snprintf(g->text, sizeof g->text, "%s: %s", g->where, cudaGetErrorString(g->first));
    return g->text;
}

static const char *gpu_status(nn_gpu *g)
{
    streams_wait(g);
    return first_fault(g);
}

static void gpu_mark(nn_gpu *g, int32_t i)
{
    note(g, cudaEventRecord(g->mark[i], g->stream), "mark");
}

static void gpu_follow(nn_gpu *g, nn_gpu *other, int32_t i)
{
    cudaSetDevice(g->device);
    note(g, cudaStreamWaitEvent(g->stream, other->mark[i], 0), "follow");
}

static const char *gpu_wait(nn_gpu *g, int32_t i)
{
    if (g->go_on || g->lost)
        watched_wait(g, NULL, g->mark[i]);
    else
        note(g, cudaEventSynchronize(g->mark[i]), "waiting");
    return first_fault(g);
}

static void gpu_watch(nn_gpu *g, bool (*go_on)(void *ctx, double waited), void *ctx)
{
    g->go_on = go_on;
    g->watcher = ctx;
}

static void *gpu_fork(nn_gpu *g)
{
    note(g, cudaEventRecord(g->forked, g->stream), "fork");
    note(g, cudaStreamWaitEvent(g->lent, g->forked, 0), "fork");
    return g->lent;
}

static void gpu_join(nn_gpu *g)
{
    note(g, cudaEventRecord(g->joined, g->lent), "join");
    note(g, cudaStreamWaitEvent(g->stream, g->joined, 0), "join");
}

static cudaError_t streams_open(nn_gpu *g)
{
    cudaStream_t *stream[] = { &g->stream, &g->copies, &g->lent };
    cudaEvent_t *event[] = { &g->copied, &g->forked, &g->joined };
    cudaError_t e = cudaSuccess;

    for (int i = 0; i < 3 && e == cudaSuccess; i++) {
        e = cudaStreamCreateWithFlags(stream[i], cudaStreamNonBlocking);
        if (e == cudaSuccess)
            e = cudaEventCreateWithFlags(event[i], cudaEventDisableTiming);
    }
    for (int i = 0; i < NN_GPU_MARKS && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&g->mark[i], cudaEventDisableTiming | cudaEventBlockingSync);
    return e;
}

static void streams_close(nn_gpu *g)
{
    cudaStream_t stream[] = { g->copies, g->lent, g->stream };
    cudaEvent_t event[] = { g->copied, g->forked, g->joined };

    for (int i = 0; i < 3; i++) {
        if (stream[i])
            cudaStreamDestroy(stream[i]);
        if (event[i])
            cudaEventDestroy(event[i]);
    }
    for (int i = 0; i < NN_GPU_MARKS; i++)
        if (g->mark[i])
            cudaEventDestroy(g->mark[i]);
}

/* ---- graphs ---- */

static void gpu_graph_begin(nn_gpu *g)
{
    cudaSetDevice(g->device);
    /* Relaxed: drivers before 12.3 load a kernel's code when it is first called, and that is no call of ours. */
    note(g, cudaStreamBeginCapture(g->stream, cudaStreamCaptureModeRelaxed), "graph");
}

static void gpu_graph_run(nn_gpu *g, int32_t segment)
{
    note(g, graph_run(&g->graphs[segment], g), "graph");
}

#endif
