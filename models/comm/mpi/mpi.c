/* SPDX-License-Identifier: Apache-2.0 */
/* models/comm/mpi/mpi.c - ranks over MPI; libmolsieve_mpi.so, opened at run time.
 *
 * Every call is the non-blocking one of MPI and a wait of our own, so that a rank
 * that waits long leaves the processor to others and loses patience. The sum is an
 * all-to-all of slices, additions in the order of the shards, and a gathering of the
 * slices: what an all-reduce does inside, but MPI does not promise the order there. */
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/comm/collective.h"

enum { STEP_BYTES = 1 << 28 }; /* counts of MPI are ints */

typedef struct state {
    int *send_n, *send_at, *recv_n, *recv_at; /* [size] */
    float *slices;                            /* [cap]  */
    size_t cap;
} state;

/* ---- waiting ------------------------------------------------------------- */

static pl_code said(int code, const char *what, pl_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;

    if (code == MPI_SUCCESS)
        return PL_OK;
    (void)MPI_Error_string(code, text, &n);
    return pl_fail(err, PL_EDEVICE, "MPI, %s: %.200s", what, text);
}

/* Short waits spin; longer ones sleep for up to a hundredth of the time waited so far. */
static void rest(double waited)
{
    double nap = waited / 128;
    struct timespec t = { 0, (long)(1e9 * (nap < 0.01 ? nap : 0.01)) };

    if (waited < 0.002)
        (void)sched_yield();
    else
        (void)nanosleep(&t, NULL);
}

static pl_code finish(nn_ranks *r, int status, MPI_Request *request, const char *what, pl_error *err)
{
    double began = MPI_Wtime(), waited;
    int done = 0;
    pl_code code = said(status, what, err);

    while (code == PL_OK && !done) {
        code = said(MPI_Test(request, &done, MPI_STATUS_IGNORE), what, err);
        waited = MPI_Wtime() - began;
        if (code == PL_OK && !done && r->patience > 0 && waited > r->patience)
            code = pl_fail(err, PL_EDEVICE, "rank %d waited %.0f s for the other ranks (%s): one is lost or stuck", r->rank, waited,
                           what);
        if (code == PL_OK && !done)
            rest(waited);
    }
    return code;
}

/* ---- open, close --------------------------------------------------------- */

static const char *mpi_library(void)
{
    static char line[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;

    if (MPI_Get_library_version(line, &n) != MPI_SUCCESS)
        return "unknown";
    line[strcspn(line, ",\n")] = '\0';
    return line;
}

static void state_free(state *s)
{
    if (s == NULL)
        return;
    free(s->send_n);
    free(s->slices);
    free(s);
}

static state *state_new(int size)
{
    state *s = calloc(1, sizeof *s);
    int *all = calloc(4 * (size_t)size, sizeof *all);

    if (s == NULL || all == NULL) {
        free(s);
        free(all);
        return NULL;
    }
    s->send_n = all;
    s->send_at = all + size;
    s->recv_n = all + 2 * size;
    s->recv_at = all + 3 * size;
    return s;
}

static pl_code mpi_open(nn_ranks *r, const nn_join *join, pl_error *err)
{
    int got;
    pl_code code = said(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &got), "start", err);

    (void)join;
    if (code != PL_OK)
        return code;
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &r->size);
    r->ctx = state_new(r->size);
    return r->ctx != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "ranks");
}

static void mpi_close(nn_ranks *r)
{
    state_free(r->ctx);
    r->ctx = NULL;
    (void)MPI_Finalize();
}

static void mpi_give_up(nn_ranks *r, int status)
{
    (void)r;
    (void)MPI_Abort(MPI_COMM_WORLD, status);
}

/* ---- sum ----------------------------------------------------------------- */

static pl_code slices_grow(state *s, size_t n, pl_error *err)
{
    float *more = n > s->cap ? realloc(s->slices, n * sizeof *more) : s->slices;

    if (more == NULL && n)
        return pl_fail(err, PL_ENOMEM, "gradients of other ranks");
    s->slices = more;
    s->cap = n > s->cap ? n : s->cap;
    return PL_OK;
}

/* Round k sums the k-th shard of every rank. A rank with fewer shards sends nothing. */
static pl_code round_run(nn_ranks *r, float *part, int64_t n, int shards, int64_t k, pl_error *err)
{
    state *s = r->ctx;
    nn_span own = nn_share(n, r->size, r->rank);
    bool has = k < nn_share(shards, r->size, r->rank).n;
    MPI_Request request;

    for (int i = 0; i < r->size; i++) {
        nn_span slice = nn_share(n, r->size, i), theirs = nn_share(shards, r->size, i);
        s->send_n[i] = has ? (int)slice.n : 0;
        s->send_at[i] = (int)slice.first;
        s->recv_n[i] = k < theirs.n ? (int)own.n : 0;
        s->recv_at[i] = k < theirs.n ? (int)((theirs.first + k) * own.n) : 0;
    }
    return finish(r,
                  MPI_Ialltoallv(has ? part + k * n : part, s->send_n, s->send_at, MPI_FLOAT, s->slices, s->recv_n, s->recv_at,
                                 MPI_FLOAT, MPI_COMM_WORLD, &request),
                  &request, "sum", err);
}

static pl_code sum_spread(nn_ranks *r, float *sum, int64_t n, pl_error *err)
{
    state *s = r->ctx;
    MPI_Request request;

    for (int i = 0; i < r->size; i++) {
        s->recv_n[i] = (int)nn_share(n, r->size, i).n;
        s->recv_at[i] = (int)nn_share(n, r->size, i).first;
    }
    return finish(
        r, MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, sum, s->recv_n, s->recv_at, MPI_FLOAT, MPI_COMM_WORLD, &request),
        &request, "sum", err);
}

static pl_code mpi_sum(nn_ranks *r, float *part, int64_t n, int shards, pl_error *err)
{
    state *s = r->ctx;
    nn_span own = nn_share(n, r->size, r->rank);
    float *sum = part + own.first;
    pl_code code;

    if ((int64_t)shards * (own.n + 1) > INT32_MAX || n > INT32_MAX)
        return pl_fail(err, PL_ECONFIG, "%lld parameters in %d shards are too many for MPI", (long long)n, shards);
    code = slices_grow(s, (size_t)shards * (size_t)own.n, err);
    for (int64_t k = 0; code == PL_OK && k < nn_share(shards, r->size, 0).n; k++)
        code = round_run(r, part, n, shards, k, err);
    if (code != PL_OK)
        return code;
    memcpy(sum, s->slices, (size_t)own.n * sizeof *sum);
    for (int k = 1; k < shards; k++)
        for (int64_t i = 0; i < own.n; i++)
            sum[i] += s->slices[k * own.n + i];
    return sum_spread(r, part, n, err);
}

/* ---- bytes --------------------------------------------------------------- */

static pl_code mpi_gather(nn_ranks *r, void *all, const int64_t *first, size_t item, pl_error *err)
{
    state *s = r->ctx;
    MPI_Request request;

    if ((uint64_t)first[r->size] * item > INT32_MAX)
        return pl_fail(err, PL_ECONFIG, "%lld numbers are too many for MPI", (long long)first[r->size]);
    for (int i = 0; i < r->size; i++) {
        s->recv_n[i] = (int)((size_t)(first[i + 1] - first[i]) * item);
        s->recv_at[i] = (int)((size_t)first[i] * item);
    }
    return finish(
        r, MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, s->recv_n, s->recv_at, MPI_BYTE, MPI_COMM_WORLD, &request),
        &request, "gathering", err);
}

static pl_code mpi_broadcast(nn_ranks *r, void *bytes, size_t n, pl_error *err)
{
    pl_code code = PL_OK;

    for (size_t at = 0; at < n && code == PL_OK; at += STEP_BYTES) {
        MPI_Request request;
        int step = (int)(n - at < STEP_BYTES ? n - at : STEP_BYTES);
        code = finish(r, MPI_Ibcast((char *)bytes + at, step, MPI_BYTE, 0, MPI_COMM_WORLD, &request), &request,
                      "hearing from rank 0", err);
    }
    return code;
}

extern const nn_collective nn_collective_plugin;
__attribute__((visibility("default"))) const nn_collective nn_collective_plugin = {
    .abi = NN_COLLECTIVE_ABI,
    .name = "mpi",
    .about = mpi_library,
    .open = mpi_open,
    .close = mpi_close,
    .give_up = mpi_give_up,
    .sum = mpi_sum,
    .gather = mpi_gather,
    .broadcast = mpi_broadcast,
};
