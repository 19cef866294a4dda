/* tests/emulator/streams.h - streams, events, pinned memory and graphs of the emulated device.
 *
 * Work stays in its stream until the host waits for it, which shows host memory that is reused or freed
 * too early. MOLSIEVE_EMULATOR_EAGER=1: work of a stream that has
 * nothing before it is done at once, so that the stream of copies runs ahead of the
 * stream of kernels and device memory that is used again too early shows. MOLSIEVE_EMULATOR_AHEAD=1: before each
 * piece of work all other streams go as far as they can: with that and without, what waits for another
 * stream's work is done as early or as late as its events allow. Host memory
 * that is not pinned is read late, too, as on machines whose GPU reads all memory. What CUDA forbids
 * while a stream is captured ends the program, and so does a kernel on a stream of another device than
 * the thread's, and a call of a thread that never chose a device: CUDA would take the first. Threads
 * take turns. Once another library (the emulated NCCL) has given work to a stream a thread goes on with
 * all work, as a device would.
 *
 * MOLSIEVE_EMULATOR_DEVICES=3: so many devices; MOLSIEVE_EMULATOR_MB=64,0,8: what memory
 * each has, the last for all that follow. MOLSIEVE_EMULATOR_FAULT=3: the third piece of work reads
 * where it must not; nothing is done from then on, and every call that can says so. */
#ifndef STREAMS_H
#define STREAMS_H

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <time.h>
#include <unistd.h>

#include "emulator/emulator.h"
#include "emulator/queue.h"

enum cudaError_t {
    cudaSuccess,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
    cudaErrorUnknown = 999,
    cudaErrorGraphExecUpdateFailure = 910
};
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaStreamNonBlocking };
enum { cudaEventDisableTiming, cudaEventBlockingSync, cudaStreamCaptureModeRelaxed };
enum { cudaDevAttrMaxSharedMemoryPerBlockOptin };

/* A call made while a stream was captured; launching the graph repeats it. */
struct emu_call {
    enum { WORK, RECORD, WAIT } kind;
    emu_stream *on;
    emu_task work;
    size_t record; /* WAIT: number of the call that it waits for */
};

struct emu_graph {
    uint64_t number;
    emu_stream *origin;
    std::vector<emu_call> call;
};

struct emu_event {
    emu_stream *on;
    uint64_t at;      /* so many tasks of that stream are before it */
    uint64_t capture; /* number of a graph whose call `at` it is, or 0 */
    bool timed;
    std::shared_ptr<double> when; /* timed: milliseconds; below 0: not reached */
};

typedef emu_stream *cudaStream_t;
typedef emu_event *cudaEvent_t;
typedef emu_graph *cudaGraph_t, *cudaGraphExec_t;
struct cudaGraphExecUpdateResultInfo {};

static std::map<const char *, size_t> emu_pinned;
static std::set<emu_stream *> emu_streams;
static std::map<uint64_t, emu_graph *> emu_captures; /* that have not ended */
static thread_local bool emu_only_looks;             /* waiting for another stream does not run that stream */
static thread_local int emu_device = -1;             /* none was chosen */
static thread_local cudaError_t emu_last;            /* what cudaGetLastError says */
static std::recursive_mutex emu_mutex;
static std::map<void *, std::pair<int, size_t>> emu_memory; /* whose, and how much */
#define EMU_TURN std::lock_guard<std::recursive_mutex> turn(emu_mutex)

[[noreturn]] static void emu_refuse(const char *call, const char *why)
{
    fprintf(stderr, "emulator: %s: %s\n", call, why);
    abort();
}

static cudaError_t emu_error(cudaError_t e) { return emu_last = e; }

static cudaError_t cudaGetLastError()
{
    cudaError_t e = emu_last;

    return emu_last = cudaSuccess, e;
}

/* Kernels and memsets (not copies) need the stream's device to be the current one. */
static void emu_device_check(emu_stream *s, const char *call)
{
    if (s->device != emu_device)
        emu_refuse(call, "on a stream of another device than the current one");
}

static void emu_chosen(const char *call)
{
    if (emu_device < 0)
        emu_refuse(call, "in a thread that never chose a device");
}

static void emu_not_captured(const char *call)
{
    emu_chosen(call);
    if (emu_capturing)
        emu_refuse(call, "while a stream is captured");
}

/* Whether the requested fault happens now, as another piece of work begins. */
static bool emu_faulted(bool another)
{
    EMU_TURN;
    static long begun;
    const char *at = getenv("MOLSIEVE_EMULATOR_FAULT");

    begun = at ? begun + another : 0;
    return at && begun >= strtol(at, nullptr, 10);
}

/* The status of a call that has no error of its own. */
static cudaError_t emu_state() { return emu_faulted(false) ? emu_error(cudaErrorIllegalAddress) : cudaSuccess; }

/* Runs all streams that are not running yet, as far as they get without waiting for another. */
static void emu_others_ahead()
{
    bool before = emu_only_looks;

    emu_only_looks = true;
    for (emu_stream *s : emu_streams)
        for (; !s->busy && !s->queue.empty() && s->queue.front().run(); s->done++)
            s->queue.pop_front();
    emu_only_looks = before;
}

/* Runs the stream as far as it gets; returns whether that is far enough. */
static bool emu_run(emu_stream *s, uint64_t until)
{
    bool ahead = getenv("MOLSIEVE_EMULATOR_AHEAD"), over = true, before = s->busy;

    if (emu_only_looks)
        return s->done >= until;
    s->busy = true;
    while (over && s->done < until) {
        if (ahead)
            emu_others_ahead();
        over = emu_faulted(true) || s->queue.front().run();
        if (!over)
            break;
        s->queue.pop_front();
        s->done++;
    }
    s->busy = before;
    return over;
}

static void emu_wait(emu_stream *s, uint64_t until)
{
    while (!emu_run(s, until))
        usleep(100);
}

static void emu_add(emu_stream *s, emu_task t)
{
    EMU_TURN;
    if (s->graph)
        return s->graph->call.push_back({ emu_call::WORK, s, std::move(t), 0 });
    s->queue.push_back(std::move(t));
    if (s->queue.size() == 1 && getenv("MOLSIEVE_EMULATOR_EAGER"))
        emu_run(s, s->done + 1);
}

static void emu_enqueue(emu_stream *s, const char *name, std::function<void()> run)
{
    emu_add(s, { name, [run = std::move(run)] { return run(), true; } });
}

/* ---- a device that other libraries use, too, works without being queried ---- */

static struct emu_device_thread {
    std::atomic<bool> over{ false };
    std::thread thread;

    void start()
    {
        if (thread.joinable())
            return;
        thread = std::thread([this] {
            while (!over) {
                usleep(500);
                EMU_TURN;
                for (emu_stream *s : emu_streams)
                    emu_run(s, s->done + s->queue.size());
            }
        });
    }
    ~emu_device_thread()
    {
        over = true;
        if (thread.joinable())
            thread.join();
    }
} emu_device_goes_on;

static void emu_push(emu_stream *s, emu_task t)
{
    EMU_TURN;
    if (s->graph)
        emu_refuse("NCCL", "while its stream is captured");
    s->queue.push_back(std::move(t));
    emu_device_goes_on.start();
}

/* Of a library that launches kernels as this program does (the emulated cuBLASLt). */
static void emu_kernel(emu_stream *s, emu_task t)
{
    emu_device_check(s, t.name);
    emu_add(s, std::move(t));
}

static bool emu_is_pinned(const void *p)
{
    EMU_TURN;
    auto after = emu_pinned.upper_bound((const char *)p);

    return after != emu_pinned.begin() && (const char *)p < (--after)->first + after->second;
}

/* A kernel is loaded at its first call, which may wait for all work of the device: for ever, if another rank has died. */
static void emu_load(emu_stream *, const char *name, const void *kernel)
{
    EMU_TURN;
    static std::set<const void *> loaded;

    if (!loaded.insert(kernel).second)
        return;
    for (emu_stream *s : emu_streams)
        for (const emu_task &t : s->queue)
            if (!strcmp(t.name, "NCCL"))
                emu_refuse(name, "called for the first time while work of NCCL is on its way");
}

/* ---- streams and events ---- */

static cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, int)
{
    EMU_TURN;
    *s = new emu_stream();
    (*s)->push = emu_push;
    (*s)->kernel = emu_kernel;
    (*s)->device = emu_device;
    return emu_streams.insert(*s), cudaSuccess;
}

static cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, int flags, int) { return cudaStreamCreateWithFlags(s, flags); }

static cudaError_t cudaDeviceGetStreamPriorityRange(int *min, int *greatest) { return *min = 0, *greatest = -5, cudaSuccess; }

static cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    EMU_TURN;
    emu_not_captured("cudaStreamSynchronize");
    emu_wait(s, s->done + s->queue.size());
    return emu_state();
}

static cudaError_t cudaStreamQuery(cudaStream_t s)
{
    EMU_TURN;
    emu_not_captured("cudaStreamQuery");
    return emu_run(s, s->done + s->queue.size()) ? emu_state() : emu_error(cudaErrorNotReady);
}

static void emu_settle()
{
    EMU_TURN;
    for (emu_stream *s : emu_streams)
        emu_wait(s, s->done + s->queue.size());
}

static cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    EMU_TURN;
    if (s)
        cudaStreamSynchronize(s);
    emu_streams.erase(s);
    delete s;
    return cudaSuccess;
}

static cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, int) { return *e = new emu_event(), cudaSuccess; }

static cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    *e = new emu_event();
    (*e)->timed = true;
    return cudaSuccess;
}

static cudaError_t cudaEventDestroy(cudaEvent_t e) { return delete e, cudaSuccess; }

/* The time at which the stream gets there. */
static void emu_stamp(cudaEvent_t e, cudaStream_t s)
{
    std::shared_ptr<double> when = e->when = std::make_shared<double>(-1);

    if (s->graph)
        emu_refuse("cudaEventRecord", "of an event with a time, while its stream is captured");
    emu_enqueue(s, "mark", [when] {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        *when = 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
    });
}

static cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    EMU_TURN;
    emu_chosen("cudaEventRecord");
    if (e->timed)
        emu_stamp(e, s);
    if (!s->graph)
        return *e = { s, s->done + s->queue.size(), 0, e->timed, e->when }, cudaSuccess;
    *e = { s, s->graph->call.size(), s->graph->number, false, nullptr };
    s->graph->call.push_back({ emu_call::RECORD, s, {}, 0 });
    return cudaSuccess;
}

static void emu_not_of_capture(const emu_event *e, const char *call)
{
    if (e->capture)
        emu_refuse(call, "for an event that was captured");
}

static cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    EMU_TURN;
    emu_not_captured("cudaEventSynchronize");
    emu_not_of_capture(e, "cudaEventSynchronize");
    if (e->on)
        emu_wait(e->on, e->at);
    return emu_state();
}

static cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    EMU_TURN;
    if (!from->timed || !to->timed)
        emu_refuse("cudaEventElapsedTime", "between events without times");
    if (!from->when || !to->when || *from->when < 0 || *to->when < 0)
        return emu_error(emu_faulted(false) ? cudaErrorIllegalAddress : cudaErrorNotReady);
    *ms = (float)(*to->when - *from->when);
    return emu_state();
}

static cudaError_t cudaEventQuery(cudaEvent_t e)
{
    EMU_TURN;
    emu_not_captured("cudaEventQuery");
    emu_not_of_capture(e, "cudaEventQuery");
    return !e->on || emu_run(e->on, e->at) ? emu_state() : emu_error(cudaErrorNotReady);
}

static void emu_follow(emu_stream *s, emu_event e)
{
    if (e.on)
        emu_add(s, { "wait", [e] { return emu_run(e.on, e.at); } });
}

/* A stream that follows an event of a capture belongs to it from now on. */
static void emu_follow_captured(emu_stream *s, emu_event e)
{
    auto live = emu_captures.find(e.capture);

    if (live == emu_captures.end())
        emu_refuse("cudaStreamWaitEvent", "for an event of a capture that has ended");
    if (s->graph && s->graph != live->second)
        emu_refuse("cudaStreamWaitEvent", "for an event of another capture");
    s->graph = live->second;
    s->graph->call.push_back({ emu_call::WAIT, s, {}, (size_t)e.at });
}

static cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, int)
{
    EMU_TURN;
    emu_chosen("cudaStreamWaitEvent");
    if (!e->capture && s->graph)
        emu_refuse("cudaStreamWaitEvent", "for an event of before the capture");
    if (e->capture)
        emu_follow_captured(s, *e);
    else
        emu_follow(s, *e);
    return cudaSuccess;
}

/* ---- memory ---- */

static size_t emu_memory_of(int device)
{
    const char *list = getenv("MOLSIEVE_EMULATOR_MB"), *comma;

    for (; list && device > 0 && (comma = strchr(list, ',')); device--)
        list = comma + 1;
    return list ? strtoull(list, nullptr, 10) << 20 : (size_t)1 << 30;
}

static cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    EMU_TURN;
    size_t used = 0;

    emu_chosen("cudaMemGetInfo");
    for (const auto &m : emu_memory)
        used += m.second.first == emu_device ? m.second.second : 0;
    *all = emu_memory_of(emu_device);
    *left = used < *all ? *all - used : 0;
    return emu_state();
}

static cudaError_t emu_alloc(void **p, size_t bytes)
{
    if (emu_faulted(false))
        return emu_state();
    *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*p)
        return cudaErrorMemoryAllocation;
    memset(*p, getenv("MOLSIEVE_EMULATOR_ONLY") ? 0 : 0xff, bytes); /* NaN, unless the kernels that overwrite it are left out */
    return cudaSuccess;
}

static cudaError_t cudaMalloc(void **p, size_t bytes)
{
    EMU_TURN;
    size_t left, all;

    emu_not_captured("cudaMalloc");
    cudaMemGetInfo(&left, &all);
    if (getenv("MOLSIEVE_EMULATOR_MB") && bytes > left)
        return emu_error(cudaErrorMemoryAllocation);
    cudaError_t e = emu_alloc(p, bytes);
    if (e == cudaSuccess)
        emu_memory[*p] = { emu_device, bytes };
    return e;
}

static cudaError_t cudaFree(void *p)
{
    EMU_TURN;
    emu_not_captured("cudaFree");
    emu_memory.erase(p);
    return free(p), cudaSuccess;
}

static cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    EMU_TURN;
    emu_not_captured("cudaMallocHost");
    cudaError_t e = emu_alloc(p, bytes);

    if (e == cudaSuccess)
        emu_pinned[(const char *)*p] = bytes;
    return e;
}

static cudaError_t cudaFreeHost(void *p)
{
    EMU_TURN;
    emu_pinned.erase((const char *)p);
    return cudaFree(p);
}

static cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t s)
{
    bool pinned = emu_is_pinned(kind == cudaMemcpyHostToDevice ? from : to);

    emu_chosen("cudaMemcpyAsync");
    if (!pinned && s->graph)
        emu_refuse("cudaMemcpyAsync", "host memory that is not pinned, while the stream is captured");
    if (!bytes)
        return cudaSuccess;
    emu_enqueue(s, kind == cudaMemcpyHostToDevice ? "upload" : "download", [=] { memcpy(to, from, bytes); });
    return pinned || kind == cudaMemcpyHostToDevice ? emu_state() : cudaStreamSynchronize(s);
}

static cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    emu_device_check(s, "cudaMemsetAsync");
    emu_enqueue(s, "memset", [=] { memset(p, value, bytes); });
    return cudaSuccess;
}

/* ---- graphs ---- */

static cudaError_t cudaStreamBeginCapture(cudaStream_t s, int)
{
    EMU_TURN;
    static uint64_t number;

    emu_not_captured("cudaStreamBeginCapture");
    s->graph = new emu_graph{ ++number, s, {} };
    emu_captures[number] = s->graph;
    emu_capturing++;
    return cudaSuccess;
}

/* Backwards from the end: the origin is joined, and so is the work of a stream before a record that joined work waits for. */
static void emu_joined_check(const emu_graph *g)
{
    std::set<emu_stream *> joined = { g->origin };
    std::set<size_t> records;

    for (size_t i = g->call.size(); i-- > 0;) {
        const emu_call &c = g->call[i];
        if (c.kind == emu_call::WORK && !joined.count(c.on))
            emu_refuse(c.work.name, "on a stream that its capture's own does not follow in the end");
        if (c.kind == emu_call::WAIT && joined.count(c.on))
            records.insert(c.record);
        if (c.kind == emu_call::RECORD && records.count(i))
            joined.insert(c.on);
    }
}

static cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    EMU_TURN;
    *g = s->graph;
    if (s->graph->origin != s)
        emu_refuse("cudaStreamEndCapture", "of a stream whose capture another began");
    emu_joined_check(s->graph);
    emu_captures.erase(s->graph->number);
    for (emu_stream *each : emu_streams)
        if (each->graph == *g)
            each->graph = nullptr;
    emu_capturing--;
    return cudaSuccess;
}

static cudaError_t cudaGraphGetNodes(cudaGraph_t g, void *, size_t *n)
{
    *n = 0;
    for (const emu_call &c : g->call)
        *n += c.kind == emu_call::WORK;
    return cudaSuccess;
}

static cudaError_t cudaGraphDestroy(cudaGraph_t g) { return delete g, cudaSuccess; }
static cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) { return delete g, cudaSuccess; }

enum { cudaGraphInstantiateFlagUseNodePriority = 8 };

static cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, int) { return *out = new emu_graph(*g), cudaSuccess; }

static bool emu_alike(const emu_call &a, const emu_call &b)
{
    return a.kind == b.kind && a.on == b.on && a.record == b.record &&
           (a.kind != emu_call::WORK || !strcmp(a.work.name, b.work.name));
}

/* An update may change arguments of the same kernels, copies and memsets in the same order, nothing else. */
static cudaError_t cudaGraphExecUpdate(cudaGraphExec_t to, cudaGraph_t g, cudaGraphExecUpdateResultInfo *)
{
    bool same = to->call.size() == g->call.size();

    for (size_t i = 0; same && i < g->call.size(); i++)
        same = emu_alike(to->call[i], g->call[i]);
    if (!same)
        return emu_error(cudaErrorGraphExecUpdateFailure);
    to->call = g->call;
    return cudaSuccess;
}

static cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s)
{
    EMU_TURN;
    std::vector<emu_event> record(g->call.size());

    for (size_t i = 0; i < g->call.size(); i++) {
        const emu_call &c = g->call[i];
        emu_stream *on = c.on == g->origin ? s : c.on;
        if (c.kind == emu_call::WORK)
            emu_add(on, c.work);
        else if (c.kind == emu_call::RECORD)
            record[i] = { on, on->done + on->queue.size(), 0, false, nullptr };
        else
            emu_follow(on, record[c.record]);
    }
    return emu_state();
}

#endif
