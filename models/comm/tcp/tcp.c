/* SPDX-License-Identifier: Apache-2.0 */
/* models/comm/tcp/tcp.c - ranks over TCP, without any library: built in.
 *
 * All goes through rank 0. That is right for what has to be told and gathered, and
 * will do for the gradients of a few ranks; MPI and NCCL sum faster. */
#include <stdlib.h>
#include <string.h>

#include "models/comm/collective.h"
#include "models/comm/tcp/meet.h"

static const char *tcp_library(void) { return "TCP"; }

static pl_code tcp_open(nn_ranks *r, const nn_join *join, pl_error *err)
{
    const nn_launcher *l = &join->launch;
    const nn_meeting m = { .rank = l->rank,
                           .size = l->size,
                           .job = l->job,
                           .host = l->host,
                           .port = l->port,
                           .folder = join->folder,
                           .patience = join->patience };
    nn_wires *w;
    pl_code code = nn_meet(&w, &m, err);

    r->rank = l->rank;
    r->size = l->size;
    r->ctx = w;
    return code;
}

/* Waits until all ranks have said good-bye: an earlier close would look like a lost rank. */
static void tcp_close(nn_ranks *r)
{
    nn_wires *w = r->ctx;
    char end[1];
    uint32_t kind;

    if (w == NULL)
        return;
    w->patience = 10;
    for (int i = 1; r->rank == 0 && i < r->size; i++)
        (void)nn_wires_recv(w, i, NN_WIRE_BYE, NULL, 0, NULL);
    if (r->rank > 0 && nn_wires_send(w, 0, NN_WIRE_BYE, NULL, 0, NULL) == PL_OK)
        (void)nn_wires_any(w, 0, &kind, end, sizeof end, NULL);
    nn_wires_free(w);
    r->ctx = NULL;
}

static void tcp_give_up(nn_ranks *r, int status)
{
    nn_wires *w = r->ctx;
    int32_t word = status;

    if (w == NULL)
        return;
    w->patience = 1;
    for (int i = 0; i < r->size; i++)
        if (w->fd[i] >= 0)
            (void)nn_wires_send(w, i, NN_WIRE_GIVE_UP, &word, sizeof word, NULL);
    nn_wires_free(w);
    r->ctx = NULL;
}

/* The other ranks wait a little longer than rank 0, which knows best which rank is lost. */
static nn_wires *wires(const nn_ranks *r)
{
    nn_wires *w = r->ctx;

    w->patience = r->patience > 0 && r->rank > 0 ? r->patience + 2 : r->patience;
    return w;
}

/* ---- sum ----------------------------------------------------------------- */

/* Adds the rows of rank i after those of rank i-1, as they arrive. */
static pl_code rows_add(nn_ranks *r, float *sum, float *row, int64_t n, int shards, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 1; i < r->size; i++)
        for (int64_t k = 0; k < nn_share(shards, r->size, i).n && code == PL_OK; k++) {
            code = nn_wires_recv(wires(r), i, NN_WIRE_DATA, row, (size_t)n * sizeof *row, err);
            for (int64_t j = 0; j < n && code == PL_OK; j++)
                sum[j] += row[j];
        }
    return code;
}

static pl_code tcp_sum(nn_ranks *r, float *part, int64_t n, int shards, pl_error *err)
{
    int64_t own = nn_share(shards, r->size, r->rank).n;
    size_t bytes = (size_t)n * sizeof *part;
    float *row = malloc(bytes + 1);
    pl_code code = PL_OK;

    if (row == NULL)
        return pl_fail(err, PL_ENOMEM, "gradients of other ranks");
    for (int64_t k = 1; k < own && r->rank == 0; k++)
        for (int64_t j = 0; j < n; j++)
            part[j] += part[k * n + j];
    for (int64_t k = 0; k < own && r->rank > 0 && code == PL_OK; k++)
        code = nn_wires_send(wires(r), 0, NN_WIRE_DATA, part + k * n, bytes, err);
    if (code == PL_OK && r->rank == 0)
        code = rows_add(r, part, row, n, shards, err);
    free(row);
    return code != PL_OK ? code : r->kind->broadcast(r, part, bytes, err);
}

/* ---- bytes --------------------------------------------------------------- */

static pl_code tcp_broadcast(nn_ranks *r, void *bytes, size_t n, pl_error *err)
{
    pl_code code = PL_OK;

    if (r->rank > 0)
        return nn_wires_recv(wires(r), 0, NN_WIRE_DATA, bytes, n, err);
    for (int i = 1; i < r->size && code == PL_OK; i++)
        code = nn_wires_send(wires(r), i, NN_WIRE_DATA, bytes, n, err);
    return code;
}

static pl_code tcp_gather(nn_ranks *r, void *all, const int64_t *first, size_t item, pl_error *err)
{
    char *p = all;
    pl_code code = PL_OK;

    if (r->rank > 0)
        code = nn_wires_send(wires(r), 0, NN_WIRE_DATA, p + (size_t)first[r->rank] * item,
                             (size_t)(first[r->rank + 1] - first[r->rank]) * item, err);
    for (int i = 1; r->rank == 0 && i < r->size && code == PL_OK; i++)
        code = nn_wires_recv(wires(r), i, NN_WIRE_DATA, p + (size_t)first[i] * item, (size_t)(first[i + 1] - first[i]) * item, err);
    return code != PL_OK ? code : tcp_broadcast(r, all, (size_t)first[r->size] * item, err);
}

static pl_code tcp_watch(nn_ranks *r, pl_error *err) { return nn_wires_watch(r->ctx, err); }

const nn_collective nn_collective_tcp = {
    .abi = NN_COLLECTIVE_ABI,
    .name = "tcp",
    .about = tcp_library,
    .open = tcp_open,
    .close = tcp_close,
    .give_up = tcp_give_up,
    .sum = tcp_sum,
    .gather = tcp_gather,
    .broadcast = tcp_broadcast,
    .watch = tcp_watch,
};
