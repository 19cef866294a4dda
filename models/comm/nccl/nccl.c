/* SPDX-License-Identifier: Apache-2.0 */
/* models/comm/nccl/nccl.c - the sum of gradients over NCCL; libmolsieve_nccl.so, opened at run time.
 *
 * One GPU a rank. Each rank gets one slice of every shard's gradient by grouped sends and
 * receives, adds them on its GPU in the order of the shards, and an all-gather spreads the
 * sums: the order of additions that NCCL's own all-reduce does not promise. Bytes (broadcast,
 * gather, who is alive) go over the control ranks. Nothing here waits without looking at
 * NCCL's errors, at the other ranks and at the clock. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "models/comm/collective.h"
#include "models/comm/nccl/add.h"

typedef struct state {
    nn_ranks *control;
    int device;
    ncclComm_t comm;
    cudaStream_t stream;
    float *mine;             /* [own shards][size * slice]: what this rank has, where that is
                                  on the host                                    */
    float *slices;           /* [shards][slice]: of all shards but the own     */
    size_t n_mine, n_slices; /* room, in floats                                */
    double looked;           /* seconds into the present wait at which the other ranks were last asked */
} state;

/* ---- errors and waiting -------------------------------------------------- */

static pl_code cuda_said(cudaError_t e, const char *what, pl_error *err)
{
    return e == cudaSuccess ? PL_OK : pl_fail(err, PL_EDEVICE, "NCCL, %s: %s", what, cudaGetErrorString(e));
}

static bool is_taken(ncclResult_t e) { return e == ncclSuccess || e == ncclInProgress; }

static pl_code nccl_said(const state *s, ncclResult_t e, const char *what, pl_error *err)
{
    const char *more = s->comm != NULL ? ncclGetLastError(s->comm) : NULL;

    if (is_taken(e))
        return PL_OK;
    return pl_fail(err, PL_EDEVICE, "NCCL, %s: %s%s%.150s", what, ncclGetErrorString(e), more != NULL && more[0] ? "; " : "",
                   more != NULL ? more : "");
}

static double seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Short waits spin: a sum takes less than a millisecond. */
static void rest(double waited)
{
    struct timespec t = { 0, waited < 0.1 ? 50000 : 2000000 };

    if (waited > 0.002)
        (void)nanosleep(&t, NULL);
}

/* Looks for an error, a lost rank or an expired time limit; the other ranks are asked ten times a second. */
static pl_code others_look(nn_ranks *r, double waited, const char *what, pl_error *err)
{
    state *s = r->ctx;
    ncclResult_t now = ncclSuccess;
    pl_code code = nccl_said(s, ncclCommGetAsyncError(s->comm, &now), what, err);

    if (code == PL_OK)
        code = nccl_said(s, now, what, err);
    if (waited < s->looked)
        s->looked = 0;
    if (code == PL_OK && waited - s->looked > 0.1) {
        s->looked = waited;
        code = s->control->kind->watch != NULL ? s->control->kind->watch(s->control, err) : PL_OK;
    }
    if (code == PL_OK && r->patience > 0 && waited > r->patience)
        code = pl_fail(err, PL_EDEVICE, "rank %d waited %.0f s for the other ranks (NCCL, %s): one is lost or stuck", r->rank,
                       waited, what);
    return code;
}

/* PL_OK with *done says whether the operation is complete; another code says what failed. */
static pl_code look(const state *s, bool stream, const char *what, bool *done, pl_error *err)
{
    ncclResult_t now = ncclSuccess;
    cudaError_t e;
    pl_code code = nccl_said(s, ncclCommGetAsyncError(s->comm, &now), what, err);

    *done = code == PL_OK && now == ncclSuccess;
    if (!*done || !stream)
        return code;
    e = cudaStreamQuery(s->stream);
    *done = e == cudaSuccess;
    if (e == cudaErrorNotReady)
        (void)cudaGetLastError(); /* some runtimes report it again as an error of the next launch */
    return e == cudaErrorNotReady ? PL_OK : cuda_said(e, what, err);
}

/* Waits until NCCL has accepted the operation: only then is it in the stream, before what follows. stream: also waits until
 * the GPU has completed it. */
static pl_code settle(nn_ranks *r, bool stream, const char *what, pl_error *err)
{
    double began = seconds(), waited = 0;
    bool done = false;
    pl_code code = PL_OK;

    while (code == PL_OK && !done) {
        code = look(r->ctx, stream, what, &done, err);
        if (code == PL_OK && !done)
            code = others_look(r, waited, what, err);
        if (code == PL_OK && !done)
            rest(waited);
        waited = seconds() - began;
    }
    return code;
}

/* ---- open ---------------------------------------------------------------- */

static void version_word(char word[32], int version)
{
    snprintf(word, 32, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static const char *nccl_library(void)
{
    static char line[64];
    char word[32];
    int version = 0;

    if (ncclGetVersion(&version) != ncclSuccess)
        return "NCCL, of unknown version";
    version_word(word, version);
    snprintf(line, sizeof line, "NCCL %s", word);
    return line;
}

/* An older library does not know the settings of a newer header. */
static pl_code version_check(nn_ranks *control, pl_error *err)
{
    char here[32], built[32];
    int version = 0;

    if (ncclGetVersion(&version) != ncclSuccess)
        return pl_fail(err, PL_ECONFIG, "NCCL does not report its version");
    version_word(here, version);
    version_word(built, NCCL_VERSION_CODE);
    if (version < NCCL_VERSION_CODE || version / 10000 != NCCL_MAJOR)
        return pl_fail(err, PL_ECONFIG, "NCCL %s is installed here; this program was built for %s and needs it or a newer %d", here,
                       built, NCCL_MAJOR);
    return nn_ranks_agree(control, &version, sizeof version, "NCCL", err);
}

static pl_code device_take(state *s, char pci[32], pl_error *err)
{
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);

    if (e == cudaErrorInsufficientDriver)
        return pl_fail(err, PL_ECONFIG, "ranks over NCCL: no NVIDIA driver, or one older than the CUDA this was built with");
    if (count == 1)
        s->device = 0; /* the launcher shows each rank its own */
    if (e != cudaSuccess || s->device < 0 || s->device >= count)
        return pl_fail(err, PL_ECONFIG, "ranks over NCCL: there is no GPU %d; this machine shows %d", s->device, count);
    if (cudaDeviceGetPCIBusId(pci, 32, s->device) != cudaSuccess)
        pci[0] = '\0';
    e = cudaSetDevice(s->device);
    e = e == cudaSuccess ? cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking) : e;
    return cuda_said(e == cudaSuccess ? nn_nccl_add(&(nn_nccl_rows){ .n = 0 }, s->stream) : e, "taking a GPU", err);
}

/* The machine and the PCI address of the GPU as one number. */
static uint64_t place_of(const char *pci)
{
    char boot[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t n = f != NULL ? fread(boot, 1, sizeof boot, f) : 0;

    if (f != NULL)
        (void)fclose(f);
    return (uint64_t)crc32_z(0, (const unsigned char *)boot, n) << 32 | crc32_z(0, (const unsigned char *)pci, strlen(pci));
}

/* Gathers the places of all ranks: place [size]. */
static pl_code places_gather(nn_ranks *control, uint64_t *place, pl_error *err)
{
    int64_t *first = calloc((size_t)control->size + 1, sizeof *first);
    pl_code code;

    if (first == NULL)
        return pl_fail(err, PL_ENOMEM, "ranks");
    for (int i = 0; i <= control->size; i++)
        first[i] = i;
    code = control->kind->gather(control, place, first, sizeof *place, err);
    free(first);
    return code;
}

static pl_code alone_check(nn_ranks *control, const char *pci, pl_error *err)
{
    uint64_t *place = calloc((size_t)control->size, sizeof *place);
    int own = control->rank;
    pl_code code;

    if (place == NULL)
        return pl_fail(err, PL_ENOMEM, "ranks");
    place[own] = place_of(pci);
    code = places_gather(control, place, err);
    for (int i = 0; code == PL_OK && pci[0] && i < control->size; i++)
        if (i != own && place[i] == place[own])
            code = pl_fail(err, PL_ECONFIG,
                           "ranks %d and %d have the same GPU (%s): there are fewer GPUs than ranks on this machine; "
                           "start one rank a GPU, or share it with stages.train.ranks=%s",
                           i < own ? i : own, i < own ? own : i, pci, control->kind->name);
    free(place);
    return code;
}

static pl_code comm_open(nn_ranks *r, pl_error *err)
{
    state *s = r->ctx;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    pl_code code = PL_OK;

    memset(&id, 0, sizeof id);
    if (r->rank == 0)
        code = nccl_said(s, ncclGetUniqueId(&id), "start", err);
    if (code == PL_OK)
        code = s->control->kind->broadcast(s->control, &id, sizeof id, err);
    config.blocking = 0;
    if (code == PL_OK)
        code = nccl_said(s, ncclCommInitRankConfig(&s->comm, r->size, id, r->rank, &config), "start", err);
    return code != PL_OK ? code : settle(r, false, "start", err);
}

static void memory_free(state *s)
{
    if (s->mine != NULL)
        (void)cudaFree(s->mine);
    if (s->slices != NULL)
        (void)cudaFree(s->slices);
    if (s->stream != NULL)
        (void)cudaStreamDestroy(s->stream);
    free(s);
}

static pl_code nccl_open(nn_ranks *r, const nn_join *join, pl_error *err)
{
    state *s = calloc(1, sizeof *s);
    char pci[32] = "";
    pl_code code;

    if (s == NULL)
        return pl_fail(err, PL_ENOMEM, "ranks");
    s->control = join->control;
    s->device = join->device;
    r->rank = s->control->rank;
    r->size = s->control->size;
    r->patience = s->control->patience = join->patience;
    r->ctx = s;
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0); /* as models/cuda/plugin.c does, which may be loaded later */
    code = version_check(s->control, err);
    if (code == PL_OK)
        code = device_take(s, pci, err);
    if (code == PL_OK)
        code = alone_check(s->control, pci, err);
    if (code == PL_OK)
        code = comm_open(r, err);
    if (code != PL_OK) {
        if (s->comm != NULL)
            (void)ncclCommAbort(s->comm);
        memory_free(s);
        r->ctx = NULL;
    }
    return code;
}

/* ---- close --------------------------------------------------------------- */

static void nccl_close(nn_ranks *r)
{
    state *s = r->ctx;
    nn_ranks *control = s->control;

    r->patience = 10;
    if (!is_taken(ncclCommFinalize(s->comm)) || settle(r, false, "end", NULL) != PL_OK)
        (void)ncclCommAbort(s->comm);
    else
        (void)ncclCommDestroy(s->comm);
    memory_free(s);
    r->ctx = NULL;
    control->kind->close(control);
}

static volatile sig_atomic_t last_status;

static void end_now(int signal)
{
    (void)signal;
    _exit((int)last_status);
}

/* Kernels that wait for a lost rank end only when the communicator is aborted; an abort that hangs is cut short. */
static void nccl_give_up(nn_ranks *r, int status)
{
    state *s = r->ctx;
    struct sigaction act = { .sa_handler = end_now };

    last_status = status;
    (void)sigaction(SIGALRM, &act, NULL);
    (void)alarm(10);
    if (s != NULL) {
        nn_ranks *control = s->control;
        (void)ncclCommAbort(s->comm);
        r->ctx = NULL;
        control->kind->give_up(control, status);
    }
    (void)alarm(0);
}

/* ---- sum ----------------------------------------------------------------- */

/* The array is zeroed, so that later work in the stream reads no uninitialised number. */
static pl_code room_make(float **p, size_t *have, size_t n, cudaStream_t stream, pl_error *err)
{
    size_t left = 0, all = 0;
    int device = 0;

    if (n <= *have)
        return PL_OK;
    if (*p)
        (void)cudaFree(*p);
    *p = NULL;
    *have = 0;
    if (cudaMalloc((void **)p, n * sizeof **p) != cudaSuccess) {
        *p = NULL;
        (void)cudaGetLastError();
        (void)cudaGetDevice(&device);
        (void)cudaMemGetInfo(&left, &all);
        return pl_fail(err, PL_EDEVICE, "no memory on GPU %d for gradients: %zu MB are needed, %zu of its %zu MB are free", device,
                       (n * sizeof **p >> 20) + 1, left >> 20, all >> 20);
    }
    *have = n;
    return cuda_said(cudaMemsetAsync(*p, 0, n * sizeof **p, stream), "memory", err);
}

/* ---- sum in the memory of the GPU ---- */

/* The numbers of a row that rank i adds. */
static nn_span slice_of(const nn_ranks *r, const nn_device_rows *d, int i)
{
    nn_span items = nn_share(d->n, r->size, i);

    return (nn_span){ items.first * d->item, items.n * d->item };
}

/* Sends every rank its slice of every shard. */
static pl_code slices_exchange(nn_ranks *r, const nn_device_rows *d, pl_error *err)
{
    state *s = r->ctx;
    nn_span own = nn_share(d->shards, r->size, r->rank), mine = slice_of(r, d, r->rank);
    ncclResult_t e = ncclGroupStart(), end;

    for (int i = 0; i < r->size; i++) {
        nn_span theirs = nn_share(d->shards, r->size, i), to = slice_of(r, d, i);
        for (int64_t k = 0; k < own.n && to.n && i != r->rank && is_taken(e); k++)
            e = ncclSend(d->part + k * d->stride + to.first, (size_t)to.n, ncclFloat32, i, s->comm, d->stream);
        for (int64_t k = 0; k < theirs.n && mine.n && i != r->rank && is_taken(e); k++)
            e = ncclRecv(s->slices + (theirs.first + k) * mine.n, (size_t)mine.n, ncclFloat32, i, s->comm, d->stream);
    }
    end = ncclGroupEnd();
    return nccl_said(s, is_taken(e) ? end : e, "sum", err);
}

/* Adds this rank's slice of all shards, in shard order, and stores the sum in row 0. */
static pl_code slices_add(nn_ranks *r, const nn_device_rows *d, pl_error *err)
{
    const state *s = r->ctx;
    nn_span own = nn_share(d->shards, r->size, r->rank), mine = slice_of(r, d, r->rank);
    float *to = d->part + mine.first;

    return cuda_said(nn_nccl_add(&(nn_nccl_rows){ .to = to,
                                                  .own = to,
                                                  .others = s->slices,
                                                  .n = mine.n,
                                                  .stride = d->stride,
                                                  .n_rows = d->shards,
                                                  .first = (int)own.first,
                                                  .n_own = (int)own.n },
                                 d->stream),
                     "sum", err);
}

/* The memory for slices is that of the largest sum so far. Every rank allocates as much as rank 0, whose slice is the largest,
 * so all grow in the same sum: freeing memory must not meet operations in flight on another rank. */
static pl_code device_reduce(nn_ranks *r, const nn_device_rows *d, pl_error *err)
{
    state *s = r->ctx;
    size_t slice = (size_t)slice_of(r, d, 0).n;
    pl_code code = cuda_said(cudaSetDevice(s->device), "sum", err);

    if (code == PL_OK)
        code = room_make(&s->slices, &s->n_slices, slice * (size_t)d->shards, d->stream, err);
    if (code == PL_OK)
        code = slices_exchange(r, d, err);
    if (code == PL_OK)
        code = settle(r, false, "sum", err);
    return code != PL_OK ? code : slices_add(r, d, err);
}

/* Equal slices are gathered by NCCL itself, which chooses the fastest way; unequal ones are sent from each rank to each. */
static ncclResult_t items_spread(const nn_ranks *r, void *stream, const nn_device_items *what)
{
    const state *s = r->ctx;
    nn_span own = nn_share(what->n, r->size, r->rank);
    char *all = what->all, *mine = all + (size_t)own.first * what->item;
    ncclResult_t e = ncclSuccess;

    if (what->n % r->size == 0)
        return ncclAllGather(mine, all, (size_t)own.n * what->item, ncclInt8, s->comm, stream);
    for (int i = 0; i < r->size; i++) {
        nn_span theirs = nn_share(what->n, r->size, i);
        if (own.n && i != r->rank && is_taken(e))
            e = ncclSend(mine, (size_t)own.n * what->item, ncclInt8, i, s->comm, stream);
        if (theirs.n && i != r->rank && is_taken(e))
            e = ncclRecv(all + (size_t)theirs.first * what->item, (size_t)theirs.n * what->item, ncclInt8, i, s->comm, stream);
    }
    return e;
}

static pl_code device_spread(nn_ranks *r, void *stream, const nn_device_items *what, int n_what, pl_error *err)
{
    ncclResult_t e = ncclGroupStart(), end;

    for (int i = 0; i < n_what && is_taken(e); i++)
        e = items_spread(r, stream, &what[i]);
    end = ncclGroupEnd();
    e = is_taken(e) ? end : e;
    return is_taken(e) ? settle(r, false, "spread", err) : nccl_said(r->ctx, e, "spread", err);
}

static pl_code device_look(nn_ranks *r, double waited, pl_error *err) { return others_look(r, waited, "step", err); }

static const nn_collective_device on_device = { .reduce = device_reduce, .spread = device_spread, .look = device_look };

/* ---- sum in host memory: up, as above, down ---- */

static pl_code nccl_sum(nn_ranks *r, float *part, int64_t n, int shards, pl_error *err)
{
    state *s = r->ctx;
    int64_t own = nn_share(shards, r->size, r->rank).n;
    int64_t whole = (n + r->size - 1) / r->size * r->size;
    nn_device_rows d = { .stream = s->stream, .stride = whole, .item = 1, .n = whole, .shards = shards };
    cudaError_t e = cudaSuccess;
    pl_code code = cuda_said(cudaSetDevice(s->device), "sum", err);

    if (code == PL_OK)
        code = room_make(&s->mine, &s->n_mine, (size_t)(own * d.stride), s->stream, err);
    if (code != PL_OK)
        return code;
    d.part = s->mine;
    for (int64_t k = 0; k < own && e == cudaSuccess; k++)
        e = cudaMemcpyAsync(d.part + k * d.stride, part + k * n, (size_t)n * sizeof *part, cudaMemcpyHostToDevice, s->stream);
    code = cuda_said(e, "sum", err);
    if (code == PL_OK)
        code = device_reduce(r, &d, err);
    if (code == PL_OK)
        code = device_spread(r, s->stream, &(nn_device_items){ d.part, sizeof *d.part, whole }, 1, err);
    if (code == PL_OK)
        code = settle(r, true, "sum", err);
    if (code == PL_OK)
        code = cuda_said(cudaMemcpyAsync(part, d.part, (size_t)n * sizeof *part, cudaMemcpyDeviceToHost, s->stream), "sum", err);
    return code != PL_OK ? code : settle(r, true, "sum", err);
}

/* ---- bytes --------------------------------------------------------------- */

static nn_ranks *control(const nn_ranks *r)
{
    nn_ranks *c = ((const state *)r->ctx)->control;

    c->patience = r->patience;
    return c;
}

static pl_code nccl_gather(nn_ranks *r, void *all, const int64_t *first, size_t item, pl_error *err)
{
    nn_ranks *c = control(r);

    return c->kind->gather(c, all, first, item, err);
}

static pl_code nccl_broadcast(nn_ranks *r, void *bytes, size_t n, pl_error *err)
{
    nn_ranks *c = control(r);

    return c->kind->broadcast(c, bytes, n, err);
}

static pl_code nccl_watch(nn_ranks *r, pl_error *err)
{
    nn_ranks *c = control(r);

    return c->kind->watch != NULL ? c->kind->watch(c, err) : PL_OK;
}

extern const nn_collective nn_collective_plugin;
__attribute__((visibility("default"))) const nn_collective nn_collective_plugin = {
    .abi = NN_COLLECTIVE_ABI,
    .name = "nccl",
    .about = nccl_library,
    .open = nccl_open,
    .close = nccl_close,
    .give_up = nccl_give_up,
    .sum = nccl_sum,
    .gather = nccl_gather,
    .broadcast = nccl_broadcast,
    .watch = nccl_watch,
    .device = &on_device,
};
