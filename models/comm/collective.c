/* SPDX-License-Identifier: Apache-2.0 */
#include "models/comm/collective.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <zlib.h>

/* ---- one rank ------------------------------------------------------------ */

static const char *none_library(void) { return "one process"; }

static pl_code none_open(nn_ranks *r, const nn_join *join, pl_error *err)
{
    (void)join;
    (void)err;
    r->rank = 0;
    r->size = 1;
    return PL_OK;
}

static void none_close(nn_ranks *r) { (void)r; }

static void none_give_up(nn_ranks *r, int status)
{
    (void)r;
    (void)status;
}

static pl_code none_sum(nn_ranks *r, float *part, int64_t n, int shards, pl_error *err)
{
    (void)r;
    (void)err;
    for (int s = 1; s < shards; s++)
        for (int64_t i = 0; i < n; i++)
            part[i] += part[s * n + i];
    return PL_OK;
}

static pl_code none_gather(nn_ranks *r, void *all, const int64_t *first, size_t item, pl_error *err)
{
    (void)r;
    (void)all;
    (void)first;
    (void)item;
    (void)err;
    return PL_OK;
}

static pl_code none_broadcast(nn_ranks *r, void *bytes, size_t n, pl_error *err)
{
    (void)r;
    (void)bytes;
    (void)n;
    (void)err;
    return PL_OK;
}

const nn_collective nn_collective_none = {
    .abi = NN_COLLECTIVE_ABI,
    .name = "none",
    .about = none_library,
    .open = none_open,
    .close = none_close,
    .give_up = none_give_up,
    .sum = none_sum,
    .gather = none_gather,
    .broadcast = none_broadcast,
};

/* ---- plugins ------------------------------------------------------------- */

pl_code nn_collective_load(const nn_collective **out, const char *path, pl_error *err)
{
    /* RTLD_GLOBAL: MPI libraries load parts of themselves later, and those look up its symbols. */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const nn_collective *kind = library != NULL ? dlsym(library, NN_COLLECTIVE_SYMBOL) : NULL;

    if (library == NULL)
        return pl_fail(err, PL_ECONFIG, "plugin: %s", dlerror());
    if (kind == NULL)
        return pl_fail(err, PL_ECONFIG, "%s is not a plugin of this program", path);
    if (kind->abi != NN_COLLECTIVE_ABI)
        return pl_fail(err, PL_ECONFIG, "%s was made for another version of this program: its interface is %d, ours %d", path,
                       kind->abi, (int)NN_COLLECTIVE_ABI);
    *out = kind;
    return PL_OK;
}

/* ---- on top of them ------------------------------------------------------ */

nn_span nn_share(int64_t n, int size, int rank)
{
    int64_t each = n / size, more = n % size;

    return (nn_span){ rank * each + (rank < more ? rank : more), each + (rank < more) };
}

/* Gathers one number of every rank. */
static pl_code gather_words(nn_ranks *r, uint32_t mine, uint32_t **out, pl_error *err)
{
    int64_t *first = calloc((size_t)r->size + 1, sizeof *first);
    uint32_t *all = calloc((size_t)r->size, sizeof *all);
    pl_code code = first != NULL && all != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "ranks");

    for (int i = 0; code == PL_OK && i <= r->size; i++)
        first[i] = i;
    if (code == PL_OK) {
        all[r->rank] = mine;
        code = r->kind->gather(r, all, first, sizeof *all, err);
    }
    free(first);
    *out = code != PL_OK ? NULL : all;
    if (code != PL_OK)
        free(all);
    return code;
}

pl_code nn_ranks_any(nn_ranks *r, uint32_t *flags, pl_error *err)
{
    uint32_t *all;
    pl_code code;

    if (r->size == 1)
        return PL_OK;
    code = gather_words(r, *flags, &all, err);
    for (int i = 0; code == PL_OK && i < r->size; i++)
        *flags |= all[i];
    free(all);
    return code;
}

pl_code nn_ranks_agree(nn_ranks *r, const void *bytes, size_t n, const char *what, pl_error *err)
{
    uint32_t *all;
    pl_code code;

    if (r->size == 1)
        return PL_OK;
    code = gather_words(r, (uint32_t)crc32_z(0, bytes, n), &all, err);
    for (int i = 1; code == PL_OK && i < r->size; i++)
        if (all[i] != all[0])
            code = pl_fail(err, PL_EDATA,
                           "rank %d has other %s than rank 0; all ranks must use the same program, "
                           "files and kind of processor",
                           i, what);
    free(all);
    return code;
}
