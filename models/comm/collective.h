/* models/comm/collective.h - collective operations of several processes ("ranks") that train one model together.
 *
 * A record of functions holds the operations. The kinds `none` (a single rank) and `tcp`
 * are built in; `mpi` and `nccl` are plugins opened at run time, so the program also runs
 * on machines without their libraries. All ranks must make the same calls in the same
 * order, on the thread that called open. A call returns when the result is complete; it is
 * the same on every rank. EDEVICE: a rank is lost, or was silent for `patience` seconds.
 *
 * Sums run over shards, not over ranks: a setting gives the number of shards of a batch,
 * each shard's gradient is computed on its own, and gradients are always added in the
 * order shard 0 + 1 + 2 + ... So any number of ranks, at most one per shard, gives the
 * same bits. Rank r computes the shards nn_share(shards, size, r). */
#ifndef NN_COLLECTIVE_H
#define NN_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/comm/launcher_env.h"
#include "pipeline/base/error.h"

typedef struct nn_ranks nn_ranks;

/* Raised when anything in this header changes its meaning. */
enum { NN_COLLECTIVE_ABI = 4 };
#define NN_COLLECTIVE_SYMBOL "nn_collective_plugin" /* the one symbol of a plugin: a const nn_collective */

/* How a rank finds the other ranks. Read by open only, and not changed. */
typedef struct nn_join {
    nn_launcher launch;
    const char *folder; /* tcp: directory that all ranks see, for a small file   */
    double patience;    /* seconds until all ranks must have joined              */
    int device;         /* nccl: the GPU of this rank                            */
    nn_ranks *control;  /* nccl, which only sums: open ranks of another kind that
                                      exchange bytes; closed together with the nccl ranks    */
} nn_join;

/* A part of the gradients, in the memory of the GPU given to open: rows of n items, each of `item`
 * floats. Rank r owns the items nn_share(n, size, r). */
typedef struct nn_device_rows {
    void *stream;            /* cudaStream_t of the caller: the sum follows the work that is
                                      already in it; must not be in graph capture            */
    float *part;             /* [own shards][stride]                                  */
    int64_t stride, item, n; /* floats from row to row; floats of an item; items of a row */
    int shards;
} nn_device_rows;

/* An array on the device: n items of `item` bytes, owned by ranks in the same way. */
typedef struct nn_device_items {
    void *all;
    size_t item;
    int64_t n;
} nn_device_items;

/* Collectives on device memory. Calls are asynchronous: they return when the library has queued the
 * work, which runs in the order of the stream. All ranks make the same calls, with the same sizes. */
typedef struct nn_collective_device {
    /* Reduce-scatter: in row 0, the items of this rank become the sum over all shards of all ranks, added
     * in the order of the shards. */
    pl_code (*reduce)(nn_ranks *r, const nn_device_rows *rows, pl_error *err);
    /* All-gather: before, each rank has its own items of these arrays; afterwards it has all of them. */
    pl_code (*spread)(nn_ranks *r, void *stream, const nn_device_items *what, int n_what, pl_error *err);
    /* To be called repeatedly while the caller waits for the stream, `waited` seconds so far. EDEVICE:
     * waited > patience, a rank is gone, or the library reports an error. */
    pl_code (*look)(nn_ranks *r, double waited, pl_error *err);
} nn_collective_device;

typedef struct nn_collective {
    int abi;                    /* NN_COLLECTIVE_ABI                                     */
    const char *name;           /* "mpi"                                                 */
    const char *(*about)(void); /* one line about the library; may be called before open */

    /* Joins the other ranks; fills rank, size, ctx. join: NULL for `none` and `mpi`, which do not use it. */
    pl_code (*open)(nn_ranks *r, const nn_join *join, pl_error *err);
    /* Called by all ranks; waits for them. */
    void (*close)(nn_ranks *r);
    /* Ends all ranks, this one included, with this exit status. */
    void (*give_up)(nn_ranks *r, int status);

    /* All-reduce. part [own shards][n]; every rank has at least one shard. Row 0 becomes the sum
     * over all shards of all ranks, the other rows are not changed. */
    pl_code (*sum)(nn_ranks *r, float *part, int64_t n, int shards, pl_error *err);
    /* All-gather. all [first[size]] items of `item` bytes: rank r fills first[r]..first[r+1]-1 before the
     * call; afterwards every rank has all items. */
    pl_code (*gather)(nn_ranks *r, void *all, const int64_t *first, size_t item, pl_error *err);
    /* Broadcast: bytes [n] become those of rank 0. */
    pl_code (*broadcast)(nn_ranks *r, void *bytes, size_t n, pl_error *err);
    /* EDEVICE: another rank is known to be gone. Does not wait. NULL: the launcher ends all ranks
     * when one dies. */
    pl_code (*watch)(nn_ranks *r, pl_error *err);

    const nn_collective_device *device; /* NULL: no collectives on device memory            */
} nn_collective;

struct nn_ranks {
    const nn_collective *kind;
    int rank, size;  /* 0..size-1                                             */
    double patience; /* seconds to wait for another rank; 0: for ever         */
    void *ctx;
};

extern const nn_collective nn_collective_none;
extern const nn_collective nn_collective_tcp;

/* Opens the plugin at path; it stays open to the end of the process. ECONFIG: the file or a library that
 * it needs is missing, or it was built for another NN_COLLECTIVE_ABI. */
pl_code nn_collective_load(const nn_collective **out, const char *path, pl_error *err);

/* The contiguous part of n items that belongs to a rank of `size`: the first n % size ranks have one item more. */
typedef struct nn_span {
    int64_t first, n;
} nn_span;
nn_span nn_share(int64_t n, int size, int rank);

/* *flags becomes the bitwise OR of the flags of all ranks. */
pl_code nn_ranks_any(nn_ranks *r, uint32_t *flags, pl_error *err);

/* EDATA: these bytes are not the same on all ranks. what: what they are, for the message. */
pl_code nn_ranks_agree(nn_ranks *r, const void *bytes, size_t n, const char *what, pl_error *err);

#endif
