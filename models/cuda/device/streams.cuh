/* models/cuda/device/streams.cuh - streams, events and waiting; part of device.cu.
 *
 * Streams: NN_GPU_STREAMS for operations, number 0 with the highest priority; one for concurrent
 * copies; and one that `fork` lends to another library (sums over ranks). An NCCL kernel whose peer is
 * gone never ends, and neither does any call that waits for the stream or the device
 * (cudaStreamSynchronize, cudaFree, cudaMallocHost). So if a watch is set, nothing here waits in
 * the driver: streams are polled, and the watch decides whether to go on. After giving up nothing is
 * freed: such a kernel may still write to the memory, which the end of the process frees. */
#ifndef NN_CUDA_STREAMS_CUH
#define NN_CUDA_STREAMS_CUH

static cudaStream_t stream_of(const nn_gpu *g)
{
    return g->streams[0];
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sleeps between two polls, but not during the first 2 ms: a step takes about a millisecond. */
static void rest(double waited)
{
    struct timespec t = { 0, waited < 0.1 ? 50000 : 2000000 };

    if (waited > 0.002)
        nanosleep(&t, NULL);
}

/* Waits until the stream, or the work before the event, is done or the watch gives up. */
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

/* Sets the device first: otherwise a thread that has not chosen one would create a context on device 0. */
static void streams_wait(nn_gpu *g)
{
    cudaSetDevice(g->device);
    stream_wait(g, g->copies);
    stream_wait(g, g->lent);
    for (int i = NN_GPU_STREAMS - 1; i >= 0; i--)
        stream_wait(g, g->streams[i]);
}

/* Faults of kernels are noticed by a later call. */
static bool is_of_kernel(cudaError_t e)
{
    return e >= cudaErrorIllegalAddress && e <= cudaErrorLaunchFailure;
}

static const char *first_fault(nn_gpu *g)
{
    static const char late[] = " of an earlier kernel; MOLSIEVE_CUDA_GRAPHS=0 and CUDA_LAUNCH_BLOCKING=1 name its operation";

    if (g->lost)
        return "waiting for other ranks was given up";
    if (g->first == cudaSuccess)
        return NULL;
    if (g->where)
        snprintf(g->text, sizeof g->text, "%s: %s (CUDA error %d%s)", g->where, cudaGetErrorString(g->first), (int)g->first,
                 is_of_kernel(g->first) ? late : "");
    return g->text;
}

static const char *gpu_status(nn_gpu *g)
{
    streams_wait(g);
    return first_fault(g);
}

static void gpu_record(nn_gpu *g, int32_t i)
{
    note(g, cudaEventRecord(g->event[i], g->stream), "event");
}

static void gpu_wait_event(nn_gpu *g, nn_gpu *other, int32_t i)
{
    cudaSetDevice(g->device);
    note(g, cudaStreamWaitEvent(g->stream, other->event[i], 0), "wait");
}

static void gpu_use_stream(nn_gpu *g, int32_t i)
{
    g->stream = g->streams[g->parallel && !g->alone ? i : 0];
}

static const char *gpu_synchronize(nn_gpu *g, int32_t i)
{
    if (g->go_on || g->lost)
        watched_wait(g, NULL, g->event[i]);
    else
        note(g, cudaEventSynchronize(g->event[i]), "waiting");
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

/* The priority of a stream of operations; `first`, the highest priority, is the lowest number. */
static int stream_priority(int i, bool yields, int first, int last)
{
    static const int behind[NN_GPU_STREAMS] = { 0, 1, 1, 2, 2 };

    return yields || first + behind[i] > last ? last : first + behind[i];
}

static cudaError_t streams_open(nn_gpu *g, bool yields)
{
    cudaStream_t *stream[] = { &g->copies, &g->lent };
    cudaEvent_t *event[] = { &g->copied, &g->forked, &g->joined };
    const char *parallel = getenv("MOLSIEVE_CUDA_STREAMS");
    int last = 0, first = 0;
    cudaError_t e = cudaDeviceGetStreamPriorityRange(&last, &first);

    for (int i = 0; i < 2 && e == cudaSuccess; i++)
        e = cudaStreamCreateWithFlags(stream[i], cudaStreamNonBlocking);
    for (int i = 0; i < NN_GPU_STREAMS && e == cudaSuccess; i++)
        e = cudaStreamCreateWithPriority(&g->streams[i], cudaStreamNonBlocking, stream_priority(i, yields, first, last));
    for (int i = 0; i < 3 && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(event[i], cudaEventDisableTiming);
    for (int i = 0; i < NN_GPU_EVENTS && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&g->event[i], cudaEventDisableTiming | cudaEventBlockingSync);
    g->parallel = !parallel || strcmp(parallel, "0") != 0;
    gpu_use_stream(g, 0);
    return e;
}

static void stream_close(cudaStream_t s)
{
    if (s)
        cudaStreamDestroy(s);
}

static void event_close(cudaEvent_t e)
{
    if (e)
        cudaEventDestroy(e);
}

static void streams_close(nn_gpu *g)
{
    stream_close(g->copies);
    stream_close(g->lent);
    for (int i = NN_GPU_STREAMS - 1; i >= 0; i--)
        stream_close(g->streams[i]);
    event_close(g->copied);
    event_close(g->forked);
    event_close(g->joined);
    for (int i = 0; i < NN_GPU_EVENTS; i++)
        event_close(g->event[i]);
    for (int i = 0; i < NN_GPU_MARKS; i++)
        event_close(g->mark[i]);
}

/* ---- times ---- */

static void gpu_alone(nn_gpu *g, bool on)
{
    cudaSetDevice(g->device);
    for (int i = 0; i < NN_GPU_MARKS && on && !g->mark[i]; i++)
        note(g, cudaEventCreate(&g->mark[i]), "mark");
    g->alone = on;
    gpu_use_stream(g, 0);
}

static void gpu_mark(nn_gpu *g, int32_t i)
{
    note(g, cudaEventRecord(g->mark[i], g->streams[0]), "mark");
}

static double gpu_between(nn_gpu *g, int32_t i, int32_t j)
{
    float ms = 0;
    cudaError_t e = cudaEventElapsedTime(&ms, g->mark[i], g->mark[j]);

    note(g, e, "mark");
    return e == cudaSuccess ? 1e-3 * ms : 0;
}

/* ---- graphs ---- */

static void gpu_graph_begin(nn_gpu *g)
{
    cudaSetDevice(g->device);
    /* Relaxed: drivers before 12.3 load a kernel's code at its first call, and stricter modes forbid that during a capture. */
    note(g, cudaStreamBeginCapture(g->stream, cudaStreamCaptureModeRelaxed), "graph");
}

static void gpu_graph_run(nn_gpu *g, int32_t segment)
{
    note(g, graph_run(&g->graphs[segment], g, 0), "graph");
}

static void gpu_graph_keep(nn_gpu *g, int32_t segment, uint64_t key)
{
    note(g, graph_run(&g->graphs[segment], g, key), "graph");
}

static bool gpu_graph_again(nn_gpu *g, int32_t segment, uint64_t key)
{
    const graph_set *s = &g->graphs[segment];

    cudaSetDevice(g->device);
    for (int i = 0; i < GRAPHS; i++)
        if (s->ready[i].exec && s->ready[i].key == key) {
            note(g, cudaGraphLaunch(s->ready[i].exec, g->stream), "graph");
            return true;
        }
    return false;
}

#endif
