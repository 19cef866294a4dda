/* models/collective.h - several processes ("ranks") that train one model together.
 *
 * What they need of each other is in one record of functions; `none`, a single
 * rank, and `tcp` are built in, others are plugins opened at run time, so that the
 * program runs where their libraries are not. A call must be made by all ranks, in the
 * same order, on the thread that opened. It returns when the result is there, on
 * every rank the same; a rank that is lost or silent for `patience` is EDEVICE.
 *
 * The sum is over shards, not over ranks: a batch is cut in a number of shards that
 * belongs to the settings, each shard's gradient is computed by itself, and shard
 * 0 + 1 + 2 + ... is the order of every addition. So any number of ranks, up to one
 * a shard, gives the same bits. Rank r has the shards of nn_share(shards, size, r). */
#ifndef NN_COLLECTIVE_H
#define NN_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/launch.h"
#include "pipeline/base/error.h"

typedef struct nn_ranks nn_ranks;

/* Raised when anything in this header changes its meaning. */
enum { NN_COLLECTIVE_ABI = 4 };
#define NN_COLLECTIVE_SYMBOL "nn_collective_plugin" /* the one symbol of a plugin: a const nn_collective */

/* How to find the others. Only read, and only by open. */
typedef struct nn_join {
    nn_launch launch;
    const char *folder;            /* that all ranks see, for a small file; tcp             */
    double patience;               /* seconds for all to come                               */
    int device;                    /* the GPU of this rank; nccl                            */
    nn_ranks *control;             /* open ranks that carry bytes, for a kind that only sums;
                                      it closes them; nccl                                  */
} nn_join;

/* Part of the gradients, in the memory of the GPU that open was given: items of `item` numbers,
 * of which rank r has those of nn_share(n, size, r). */
typedef struct nn_device_rows {
    void *stream;                  /* cudaStream_t of the caller: work before must be done first,
                                      and must not be captured                              */
    float *part;                   /* [own shards][stride]                                  */
    int64_t stride, item, n;       /* n items of each row                                   */
    int shards;
} nn_device_rows;

/* An array on the device: n items of `item` bytes, shared likewise. */
typedef struct nn_device_items {
    void *all;
    size_t item;
    int64_t n;
} nn_device_items;

/* Sums that do not leave the GPUs. What is asked for comes later, in the order of the stream;
 * calls return when the library has taken it. By all ranks in the same order, of the same sizes. */
typedef struct nn_collective_device {
    /* In row 0 the items of this rank become the sum over all shards of all ranks, in the order of sum. */
    pl_code (*reduce)(nn_ranks *r, const nn_device_rows *rows, pl_error *err);
    /* Every rank has its items of these arrays, then all are there. */
    pl_code (*spread)(nn_ranks *r, void *stream, const nn_device_items *what, int n_what, pl_error *err);
    /* While the caller waits for the stream, for `waited` seconds so far: EDEVICE when that is
     * longer than patience, a rank is gone or the library says that something broke. */
    pl_code (*look)(nn_ranks *r, double waited, pl_error *err);
} nn_collective_device;

typedef struct nn_collective {
    int abi;                       /* NN_COLLECTIVE_ABI                                     */
    const char *name;              /* "mpi"                                                 */
    const char *(*about)(void);    /* one line about the library behind it; before open too */

    /* Fills rank, size, ctx. join: NULL for none and mpi, which need none. */
    pl_code (*open)(nn_ranks *r, const nn_join *join, pl_error *err);
    /* All ranks together; waits for them. */
    void (*close)(nn_ranks *r);
    /* Ends the other ranks, and this one, with that exit status. */
    void (*give_up)(nn_ranks *r, int status);

    /* part [own shards][n]; every rank has one at least. Row 0 becomes the sum over all
     * shards of all ranks, the other rows stay as they are. */
    pl_code (*sum)(nn_ranks *r, float *part, int64_t n, int shards, pl_error *err);
    /* all [first[size]] items; rank r has filled first[r]..first[r+1]-1, now all are there. */
    pl_code (*gather)(nn_ranks *r, void *all, const int64_t *first, size_t item, pl_error *err);
    /* What rank 0 has in bytes [n]. */
    pl_code (*tell)(nn_ranks *r, void *bytes, size_t n, pl_error *err);
    /* EDEVICE when another rank is known to be gone; waits for nothing. NULL: the launcher
     * ends all when one dies. */
    pl_code (*watch)(nn_ranks *r, pl_error *err);

    const nn_collective_device *device; /* NULL: has none                                   */
} nn_collective;

struct nn_ranks {
    const nn_collective *kind;
    int rank, size;                /* 0..size-1                                             */
    double patience;               /* seconds to wait for another rank; 0: for ever         */
    void *ctx;
};

extern const nn_collective nn_collective_none;
extern const nn_collective nn_collective_tcp;

/* Opens the plugin at path. ECONFIG in one line: not there, a library it needs is not,
 * made for another version. It stays open to the end of the process. */
pl_code nn_collective_load(const nn_collective **out, const char *path, pl_error *err);

/* A contiguous part of n things for one of `size`: the first n % size have one more. */
typedef struct nn_span {
    int64_t first, n;
} nn_span;
nn_span nn_share(int64_t n, int size, int rank);

/* *flags: the bits that were set on any rank. */
pl_code nn_ranks_any(nn_ranks *r, uint32_t *flags, pl_error *err);

/* EDATA when these bytes are not the same on all ranks. what: for the message. */
pl_code nn_ranks_agree(nn_ranks *r, const void *bytes, size_t n, const char *what, pl_error *err);

#endif
