/* SPDX-License-Identifier: Apache-2.0 */
#include <nccl.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "emulator/queue.h"
#include "models/comm/nccl/add.h"

typedef std::function<bool()> work;

struct emu_comm {
    std::string folder;
    int rank, size;
    bool ready, over;
    std::vector<uint64_t> sent, received; /* messages requested, to and from each rank */
    std::vector<char> heard;              /* at the beginning and at the end      */
};

struct emu_range { /* memory that an operation of a group reads or writes */
    const char *from, *to;
    bool written;
};

enum { LAST = 1 << 30 }; /* the number of a rank's last message; its first is 0 */

static int emu_device, emu_group;
static cudaError_t emu_last; /* what cudaGetLastError says */
static std::vector<work> emu_grouped;
static std::vector<emu_range> emu_touched; /* by those */
static cudaStream_t emu_group_stream;
static std::vector<std::pair<cudaStream_t, work>> emu_issued; /* groups that have not been run yet */

/* ---- cuda ---- */

static work once(std::function<void()> task)
{
    return [=] { return task(), true; };
}

/* A stream of the emulated CUDA, or one of this file, which has no push. */
static void put(cudaStream_t s, work task)
{
    if (s->push)
        s->push(s, { "NCCL", std::move(task) });
    else
        s->queue.push_back({ "NCCL", std::move(task) });
}

const char *cudaGetErrorString(cudaError_t e) { return e == cudaErrorNotReady ? "device not ready" : "out of memory"; }

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = emu_last;

    return emu_last = cudaSuccess, e;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    const char *devices = getenv("MOLSIEVE_EMULATOR_DEVICES");

    *n = devices ? (int)strtol(devices, nullptr, 10) : 1;
    return getenv("MOLSIEVE_EMULATOR_NO_DRIVER") ? cudaErrorInsufficientDriver : cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int n, int device)
{
    snprintf(id, (size_t)n, "0000:%02X:00.0", device);
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) { return emu_device = device, cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { return *device = emu_device, cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t *left, size_t *all) { return *left = *all = (size_t)1 << 30, cudaSuccess; }

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    *p = malloc(bytes);
    if (*p)
        memset(*p, 0xff, bytes);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *p) { return free(p), cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) { return *s = new emu_stream(), cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t s) { return delete s, cudaSuccess; }

cudaError_t cudaStreamQuery(cudaStream_t s)
{
    while (!s->queue.empty() && s->queue.front().run())
        s->queue.pop_front();
    return s->queue.empty() ? cudaSuccess : (emu_last = cudaErrorNotReady);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s)
{
    if (kind == cudaMemcpyHostToDevice) { /* memory that is not pinned is read at once */
        std::vector<char> kept((const char *)from, (const char *)from + bytes);
        put(s, once([=] { memcpy(to, kept.data(), bytes); }));
    } else {
        put(s, once([=] { memcpy(to, from, bytes); }));
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    put(s, once([=] { memset(p, value, bytes); }));
    return cudaSuccess;
}

cudaError_t nn_nccl_add(const nn_nccl_rows *rows, cudaStream_t s)
{
    static bool loaded;
    nn_nccl_rows a = *rows;

    loaded = loaded || !a.n;
    if (!loaded)
        abort();
    put(s, once([=] {
            for (int64_t i = 0; i < a.n; i++)
                a.to[i] = nn_nccl_row_sum(&a, i);
        }));
    return cudaGetLastError(); /* as models/comm/nccl/add.cu */
}

/* ---- messages ---- */

static std::string message(const emu_comm *c, int from, int to, uint64_t number)
{
    return c->folder + "/" + std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number);
}

/* A rank that lives but sends no more messages. */
static bool is_mute(const emu_comm *c, uint64_t number)
{
    const char *mute = getenv("MOLSIEVE_EMULATOR_NCCL_MUTE");

    return mute && atoi(mute) == c->rank && number != LAST && number > strtoull(strchr(mute, ':') + 1, nullptr, 10);
}

/* Stops the process once, in the middle of its work, until a test continues it. */
static void pause_at(uint64_t number)
{
    static std::atomic<bool> paused;
    const char *at = getenv("MOLSIEVE_EMULATOR_NCCL_PAUSE");

    if (at && number != LAST && number >= strtoull(at, nullptr, 10) && !paused.exchange(true))
        raise(SIGSTOP);
}

static bool message_put(emu_comm *c, int to, uint64_t number, const void *p, size_t bytes)
{
    pause_at(number);
    if (is_mute(c, number))
        return true;
    std::string name = message(c, c->rank, to, number), half = name + ".half";
    FILE *f = fopen(half.c_str(), "wb");

    return f && fwrite(p, 1, bytes, f) == bytes && fclose(f) == 0 && rename(half.c_str(), name.c_str()) == 0;
}

static bool message_get(emu_comm *c, int from, uint64_t number, void *p, size_t bytes)
{
    std::string name = message(c, from, c->rank, number);
    FILE *f = fopen(name.c_str(), "rb");

    if (!f)
        return false;
    if (fread(p, 1, bytes, f) != bytes || fgetc(f) != EOF)
        abort(); /* sizes of a send and its receive differ */
    fclose(f);
    return unlink(name.c_str()) == 0;
}

/* ---- communicators ---- */

ncclResult_t ncclGetVersion(int *version)
{
    const char *says = getenv("MOLSIEVE_EMULATOR_NCCL");

    *version = says ? (int)strtol(says, nullptr, 10) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    strcpy(id->internal, "/tmp/molsieve-nccl-XXXXXX");
    return mkdtemp(id->internal) ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    if (config->blocking)
        return ncclInvalidUsage;
    size_t n = (size_t)size;
    *comm = new emu_comm{
        id.internal, rank, size, false, false, std::vector<uint64_t>(n, 1), std::vector<uint64_t>(n, 1), std::vector<char>(n, 0)
    };
    for (int i = 0; i < size; i++)
        if (!message_put(*comm, i, 0, "", 0))
            return ncclSystemError;
    return ncclInProgress;
}

/* Ready when all ranks have joined; ended when all have said so. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *now)
{
    bool all = true;

    for (auto &one : emu_issued)
        put(one.first, std::move(one.second));
    emu_issued.clear();
    for (size_t i = 0; i < c->heard.size(); i++) {
        c->heard[i] = c->heard[i] || message_get(c, (int)i, c->over ? LAST : 0, nullptr, 0);
        all = all && c->heard[i];
    }
    c->ready = c->ready || all;
    *now = all ? ncclSuccess : ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    c->heard.assign(c->heard.size(), 0);
    c->over = true;
    for (int i = 0; i < c->size; i++)
        if (!message_put(c, i, LAST, "", 0))
            return ncclSystemError;
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    (void)rmdir(c->folder.c_str()); /* the last one's works */
    delete c;
    return ncclSuccess;
}

/* Work on the device may still read it. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    (void)rmdir(c->folder.c_str());
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t e) { return e == ncclSystemError ? "unhandled system error" : "invalid usage"; }
const char *ncclGetLastError(ncclComm_t) { return ""; }

/* ---- operations ---- */

ncclResult_t ncclGroupStart(void) { return emu_group++, ncclSuccess; }

/* All operations of a group run together: no send waits for an earlier receive. Work given to
 * the stream before the communicator is queried runs before the group. */
ncclResult_t ncclGroupEnd(void)
{
    if (--emu_group || emu_grouped.empty())
        return ncclSuccess;
    emu_touched.clear();
    std::vector<work> left;
    left.swap(emu_grouped);
    emu_issued.emplace_back(emu_group_stream, [left]() mutable {
        for (size_t i = 0; i < left.size();)
            if (left[i]())
                left.erase(left.begin() + (long)i);
            else
                i++;
        return left.empty();
    });
    return ncclInProgress;
}

/* On a device all operations of a group run at once, in any order. */
static void touch(const void *p, size_t bytes, bool written)
{
    emu_range now = { (const char *)p, (const char *)p + bytes, written };

    for (const emu_range &r : emu_touched)
        if ((r.written || written) && r.from < now.to && now.from < r.to)
            abort();
    emu_touched.push_back(now);
}

/* Like NCCL, refuses a group before it has accepted the last one (ncclCommGetAsyncError tells when). */
static ncclResult_t grouped(cudaStream_t s, work t)
{
    if (!emu_group || !emu_issued.empty())
        return ncclInvalidUsage;
    emu_group_stream = s;
    emu_grouped.push_back(std::move(t));
    return ncclSuccess;
}

static size_t bytes_of(size_t n, ncclDataType_t type) { return n * (type == ncclInt8 ? 1 : sizeof(float)); }

ncclResult_t ncclSend(const void *p, size_t n, ncclDataType_t type, int to, ncclComm_t c, cudaStream_t s)
{
    uint64_t number = c->sent[(size_t)to]++;

    touch(p, bytes_of(n, type), false);
    return !c->ready ? ncclInvalidUsage : grouped(s, [=] { return message_put(c, to, number, p, bytes_of(n, type)); });
}

ncclResult_t ncclRecv(void *p, size_t n, ncclDataType_t type, int from, ncclComm_t c, cudaStream_t s)
{
    uint64_t number = c->received[(size_t)from]++;

    touch(p, bytes_of(n, type), true);
    return !c->ready ? ncclInvalidUsage : grouped(s, [=] { return message_get(c, from, number, p, bytes_of(n, type)); });
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t n, ncclDataType_t type, ncclComm_t c, cudaStream_t s)
{
    size_t bytes = bytes_of(n, type);

    ncclGroupStart();
    if ((char *)to + (size_t)c->rank * bytes != from) /* else in place */
        touch((char *)to + (size_t)c->rank * bytes, bytes, true);
    for (int i = 0; i < c->size; i++) {
        if (i == c->rank)
            (void)grouped(s, once([=] { memmove((char *)to + (size_t)i * bytes, from, bytes); })); /* in place: the same */
        else if (ncclSend(from, n, type, i, c, s) || ncclRecv((char *)to + (size_t)i * bytes, n, type, i, c, s))
            return ncclInvalidUsage;
    }
    return ncclGroupEnd();
}
