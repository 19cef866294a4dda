/* chem/structures/cuda/host.cuh - memory, launches and errors of one device; part of structures.cu. */
#ifndef CH_GPU_HOST_CUH
#define CH_GPU_HOST_CUH

/* Memory of the device that grows and is kept. */
struct held {
    void *at;
    size_t bytes;
};

struct ch_gpu {
    int device, shared_most; /* bytes of dynamic shared memory that a block may have */
    cudaStream_t stream;
    held molecules, words, jobs, order, results, xyz, work;
    ch_gpu_molecule *known; /* [n_known] copy of the batch's molecules */
    int32_t n_known;
    int32_t *sorted; /* jobs by the launch that does them; `order` reads it until the stream is done */
    cudaError_t first; /* what went wrong first */
    const char *where;
    char text[192];
};

/* A launch takes jobs that need at most so much shared memory; the last one puts the rest into global memory. Small
 * molecules do not ask for what large ones need, so more of their blocks run at once. */
enum { SHARED_STEP = 16 << 10, MOST_LAUNCHES = 16 };

static bool note(ch_gpu *g, cudaError_t e, const char *where)
{
    if (e != cudaSuccess && g->first == cudaSuccess) {
        g->first = e;
        g->where = where;
    }
    return g->first == cudaSuccess;
}

static const char *fault(ch_gpu *g)
{
    if (g->first == cudaSuccess)
        return NULL;
    (void)cudaGetLastError();
    (void)snprintf(g->text, sizeof g->text, "%s: %s", g->where, cudaGetErrorString(g->first));
    return g->text;
}

static int32_t device_count(void)
{
    int count = 0;

    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

static bool device_find(int32_t device, char *text, size_t n)
{
    cudaDeviceProp p;
    int count = 0;
    const cudaError_t e = cudaGetDeviceCount(&count);

    if (e == cudaErrorInsufficientDriver)
        (void)snprintf(text, n, "no NVIDIA driver, or one that is older than the CUDA this was built with");
    else if (e != cudaSuccess)
        (void)snprintf(text, n, "no GPU: %s", cudaGetErrorString(e));
    else if (device < 0 || device >= count)
        (void)snprintf(text, n, "there is no GPU %d; this machine shows %d", (int)device, count);
    else if (cudaGetDeviceProperties(&p, device) != cudaSuccess)
        (void)snprintf(text, n, "the properties of GPU %d cannot be read", (int)device);
    else if (p.major < 8)
        (void)snprintf(text, n, "%s has compute capability %d.%d; 8.0 is needed", p.name, p.major, p.minor);
    else
        return snprintf(text, n, "%s, compute capability %d.%d", p.name, p.major, p.minor) > 0;
    (void)cudaGetLastError();
    return false;
}

static void gpu_close(ch_gpu *g)
{
    if (g == NULL)
        return;
    (void)cudaSetDevice(g->device);
    if (g->stream)
        (void)cudaStreamSynchronize(g->stream);
    held *const all[] = { &g->molecules, &g->words, &g->jobs, &g->order, &g->results, &g->xyz, &g->work };
    for (held *h : all)
        if (h->at)
            (void)cudaFree(h->at);
    if (g->stream)
        (void)cudaStreamDestroy(g->stream);
    free(g->known);
    free(g->sorted);
    free(g);
}

static ch_gpu *gpu_open(int32_t device, char *text, size_t n)
{
    ch_gpu *g = NULL;
    bool good = false;

    if (!device_find(device, text, n))
        return NULL;
    g = (ch_gpu *)calloc(1, sizeof *g);
    if (g == NULL) {
        (void)snprintf(text, n, "no memory");
        return NULL;
    }
    g->device = device;
    good = note(g, cudaSetDevice(device), "choosing the device") &&
           note(g, cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "a stream") &&
           note(g, cudaDeviceGetAttribute(&g->shared_most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory");
    g->shared_most -= (int)sizeof(site) + 1024; /* static, and what the driver reserves */
    g->shared_most = g->shared_most / SHARED_STEP * SHARED_STEP;
    good = good && note(g, SHARED_ALLOW(structure_run, g->shared_most), "shared memory");
    if (good)
        return g;
    (void)snprintf(text, n, "GPU %d cannot be used: %s", (int)device, fault(g));
    gpu_close(g);
    return NULL;
}

static void *room_for(ch_gpu *g, held *h, size_t bytes)
{
    const size_t more = bytes + bytes / 4 + 256;

    if (g->first != cudaSuccess || bytes <= h->bytes)
        return h->at;
    if (h->at)
        note(g, cudaFree(h->at), "freeing memory");
    *h = { NULL, 0 };
    if (note(g, cudaMalloc(&h->at, more), "taking memory"))
        h->bytes = more;
    return h->at;
}

static bool upload(ch_gpu *g, held *to, const void *host, size_t bytes)
{
    return room_for(g, to, bytes) != NULL &&
           note(g, cudaMemcpyAsync(to->at, host, bytes, cudaMemcpyHostToDevice, g->stream), "upload");
}

static const char *gpu_load(ch_gpu *g, const ch_gpu_molecule *molecules, int32_t n, const void *words, int64_t n_words)
{
    (void)cudaSetDevice(g->device);
    free(g->known);
    g->known = (ch_gpu_molecule *)malloc(((size_t)n + 1) * sizeof *g->known);
    g->n_known = n;
    if (g->known == NULL)
        return "no memory";
    memcpy(g->known, molecules, (size_t)n * sizeof *molecules);
    if (upload(g, &g->molecules, molecules, (size_t)n * sizeof *molecules))
        (void)upload(g, &g->words, words, (size_t)n_words * 4);
    note(g, cudaStreamSynchronize(g->stream), "upload"); /* the host's memory may go */
    return fault(g);
}

/* Which launch does a job: by its need of shared memory. */
static int launch_of(const ch_gpu *g, const ch_gpu_job *job)
{
    const int64_t bytes = (int64_t)ch_gpu_floats(&g->known[job->molecule]) * 4;
    const int64_t step = bytes <= g->shared_most ? (bytes - 1) / SHARED_STEP : g->shared_most / SHARED_STEP;

    return (int)(step < MOST_LAUNCHES ? step : MOST_LAUNCHES - 1);
}

/* count[k]: jobs of launch k; floats[k]: the most that one of them needs. sorted: the jobs, launch after launch. */
static void sort_jobs(ch_gpu *g, const ch_gpu_job *jobs, int32_t n, int32_t *count, int64_t *floats)
{
    int32_t at = 0;

    for (int k = 0; k < MOST_LAUNCHES; k++)
        for (int32_t i = 0; i < n; i++)
            if (launch_of(g, &jobs[i]) == k) {
                const int64_t need = ch_gpu_floats(&g->known[jobs[i].molecule]);
                floats[k] = need > floats[k] ? need : floats[k];
                count[k]++;
                g->sorted[at++] = i;
            }
}

static void launch(ch_gpu *g, ch_gpu_launch l, int32_t n, int64_t floats)
{
    const int64_t most = g->shared_most / 4;

    l.shared_floats = (int32_t)(floats < most ? floats : most);
    l.work_floats = floats > most ? floats : 0;
    l.work = (float *)g->work.at;
    LAUNCH(structure_run, dim3((unsigned)n), dim3(CH_GPU_THREADS), (size_t)l.shared_floats * 4, g->stream, l);
    note(g, cudaGetLastError(), "building structures");
}

static void launch_all(ch_gpu *g, const int32_t *count, const int64_t *floats)
{
    ch_gpu_launch l = { (const ch_gpu_molecule *)g->molecules.at, (const int32_t *)g->words.at, (const ch_gpu_job *)g->jobs.at,
                        (const int32_t *)g->order.at, (ch_gpu_result *)g->results.at, (float *)g->xyz.at, NULL, 0, 0, 0 };

    for (int k = 0; k < MOST_LAUNCHES && g->first == cudaSuccess; k++) {
        if (count[k] > 0)
            launch(g, l, count[k], floats[k]);
        l.order += count[k];
    }
}

static const char *gpu_run(ch_gpu *g, const ch_gpu_job *jobs, int32_t n, ch_gpu_result *result, float *xyz, int64_t n_floats)
{
    int32_t count[MOST_LAUNCHES] = { 0 };
    int64_t floats[MOST_LAUNCHES] = { 0 }, work = 0;

    if (n == 0)
        return fault(g);
    (void)cudaSetDevice(g->device);
    free(g->sorted);
    g->sorted = (int32_t *)malloc((size_t)n * sizeof *g->sorted);
    if (g->sorted == NULL)
        return "no memory";
    sort_jobs(g, jobs, n, count, floats);
    for (int k = 0; k < MOST_LAUNCHES; k++)
        if (floats[k] * 4 > g->shared_most && count[k] * floats[k] > work)
            work = count[k] * floats[k];
    (void)(room_for(g, &g->work, (size_t)work * 4 + 4) && upload(g, &g->jobs, jobs, (size_t)n * sizeof *jobs) &&
           upload(g, &g->order, g->sorted, (size_t)n * 4) && upload(g, &g->xyz, xyz, (size_t)n_floats * 4) &&
           room_for(g, &g->results, (size_t)n * sizeof *result));
    launch_all(g, count, floats);
    if (g->first == cudaSuccess &&
        note(g, cudaMemcpyAsync(result, g->results.at, (size_t)n * sizeof *result, cudaMemcpyDeviceToHost, g->stream), "download"))
        note(g, cudaMemcpyAsync(xyz, g->xyz.at, (size_t)n_floats * 4, cudaMemcpyDeviceToHost, g->stream), "download");
    note(g, cudaStreamSynchronize(g->stream), "building structures");
    return fault(g);
}

extern "C" __attribute__((visibility("default"))) const ch_gpu_ops *molsieve_structure_ops(void)
{
    static const ch_gpu_ops ops = { CH_GPU_ABI,  (int32_t)sizeof(ch_gpu_ops), device_count, device_find, gpu_open,
                                    gpu_close,   gpu_load,                    gpu_run };

    return &ops;
}

#endif
