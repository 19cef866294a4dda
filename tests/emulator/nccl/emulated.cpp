/* SPDX-License-Identifier: Apache-2.0 */
#include <nccl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "models/nccl/add.h"

/* A task says whether it is done; one that is not is asked again. */
typedef std::function<bool()> emu_task;

struct emu_stream {
    std::deque<emu_task> queue;
};

struct emu_comm {
    std::string folder;
    int rank, size;
    bool ready, over;
    std::vector<uint64_t> sent, received; /* messages asked for, to and from each */
    std::vector<char> heard;              /* at the beginning and at the end      */
};

enum { LAST = 1 << 30 }; /* the number of a rank's last message; its first is 0 */

static int emu_device, emu_group;
static std::vector<emu_task> emu_grouped;
static cudaStream_t emu_group_stream;

/* ---- cuda ---- */

static emu_task once(std::function<void()> work)
{
    return [=] { return work(), true; };
}

const char *cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : "out of memory"; }
cudaError_t cudaGetLastError(void) { return cudaSuccess; }

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
    while (!s->queue.empty() && s->queue.front()())
        s->queue.pop_front();
    return s->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s)
{
    if (kind == cudaMemcpyHostToDevice) { /* memory that is not pinned is read at once */
        std::vector<char> kept((const char *)from, (const char *)from + bytes);
        s->queue.push_back(once([=] { memcpy(to, kept.data(), bytes); }));
    } else {
        s->queue.push_back(once([=] { memcpy(to, from, bytes); }));
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    s->queue.push_back(once([=] { memset(p, value, bytes); }));
    return cudaSuccess;
}

cudaError_t nn_nccl_add(float *rows, int64_t n, int n_rows, cudaStream_t s)
{
    s->queue.push_back(once([=] {
        for (int k = 1; k < n_rows; k++)
            for (int64_t i = 0; i < n; i++)
                rows[i] += rows[k * n + i];
    }));
    return cudaSuccess;
}

/* ---- messages ---- */

static std::string message(const emu_comm *c, int from, int to, uint64_t number)
{
    return c->folder + "/" + std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number);
}

static bool message_put(emu_comm *c, int to, uint64_t number, const void *p, size_t bytes)
{
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
    *comm = new emu_comm{ id.internal, rank, size, false, false, std::vector<uint64_t>(n, 1), std::vector<uint64_t>(n, 1),
                          std::vector<char>(n, 0) };
    for (int i = 0; i < size; i++)
        if (!message_put(*comm, i, 0, "", 0))
            return ncclSystemError;
    return ncclInProgress;
}

/* Ready when all are there; over when all have said so. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *now)
{
    bool all = true;

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

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    return ncclCommDestroy(c);
}

const char *ncclGetErrorString(ncclResult_t e) { return e == ncclSystemError ? "unhandled system error" : "invalid usage"; }
const char *ncclGetLastError(ncclComm_t) { return ""; }

/* ---- operations ---- */

ncclResult_t ncclGroupStart(void) { return emu_group++, ncclSuccess; }

/* Everything of a group goes on together: no send waits for a receive before it. */
ncclResult_t ncclGroupEnd(void)
{
    if (--emu_group || emu_grouped.empty())
        return ncclSuccess;
    std::vector<emu_task> left;
    left.swap(emu_grouped);
    emu_group_stream->queue.push_back([left]() mutable {
        for (size_t i = 0; i < left.size();)
            if (left[i]())
                left.erase(left.begin() + (long)i);
            else
                i++;
        return left.empty();
    });
    return ncclInProgress;
}

static ncclResult_t grouped(cudaStream_t s, emu_task t)
{
    if (!emu_group)
        return ncclInvalidUsage;
    emu_group_stream = s;
    emu_grouped.push_back(std::move(t));
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *p, size_t n, ncclDataType_t, int to, ncclComm_t c, cudaStream_t s)
{
    uint64_t number = c->sent[(size_t)to]++;

    return !c->ready ? ncclInvalidUsage : grouped(s, [=] { return message_put(c, to, number, p, n * sizeof(float)); });
}

ncclResult_t ncclRecv(void *p, size_t n, ncclDataType_t, int from, ncclComm_t c, cudaStream_t s)
{
    uint64_t number = c->received[(size_t)from]++;

    return !c->ready ? ncclInvalidUsage : grouped(s, [=] { return message_get(c, from, number, p, n * sizeof(float)); });
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t n, ncclDataType_t type, ncclComm_t c, cudaStream_t s)
{
    size_t bytes = n * sizeof(float);

    ncclGroupStart();
    for (int i = 0; i < c->size; i++) {
        if (i == c->rank)
            (void)grouped(s, once([=] { memcpy((char *)to + (size_t)i * bytes, from, bytes); }));
        else if (ncclSend(from, n, type, i, c, s) || ncclRecv((char *)to + (size_t)i * bytes, n, type, i, c, s))
            return ncclInvalidUsage;
    }
    return ncclGroupEnd();
}
