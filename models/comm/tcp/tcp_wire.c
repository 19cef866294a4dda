/* SPDX-License-Identifier: Apache-2.0 */
#include "models/comm/tcp/tcp_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct head {
    uint32_t kind, zero;
    uint64_t n;
} head;

double nn_wires_clock(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

nn_wires *nn_wires_new(int rank, int size)
{
    nn_wires *w = calloc(1, sizeof *w);
    int *fd = calloc((size_t)size, sizeof *fd);

    if (w == NULL || fd == NULL) {
        free(w);
        free(fd);
        return NULL;
    }
    for (int i = 0; i < size; i++)
        fd[i] = -1;
    *w = (nn_wires){ .rank = rank, .size = size, .fd = fd };
    return w;
}

void nn_wires_free(nn_wires *w)
{
    if (w == NULL)
        return;
    for (int i = 0; i < w->size; i++)
        if (w->fd[i] >= 0)
            (void)close(w->fd[i]);
    free(w->fd);
    free(w);
}

/* ---- waiting ------------------------------------------------------------- */

static pl_code gone(int rank, pl_error *err) { return pl_fail(err, PL_EDEVICE, "rank %d is gone: its connection is closed", rank); }

/* Polls all connections for up to `ms`; *ready: `who` can continue. who -1: no rank in particular. */
static pl_code look(nn_wires *w, int who, short events, int ms, bool *ready, pl_error *err)
{
    struct pollfd *p = calloc((size_t)w->size, sizeof *p);
    pl_code code = PL_OK;
    int n;

    *ready = false;
    if (p == NULL)
        return pl_fail(err, PL_ENOMEM, "ranks");
    for (int i = 0; i < w->size; i++)
        p[i] = (struct pollfd){ .fd = w->fd[i], .events = (short)(i == who ? events | POLLRDHUP : POLLRDHUP) };
    n = poll(p, (nfds_t)w->size, ms);
    *ready = n > 0 && who >= 0 && p[who].revents & events;
    for (int i = 0; n > 0 && code == PL_OK && i < w->size; i++) /* a closed connection may still have a last message to read */
        if (p[i].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL) && !(i == who && *ready && events & POLLIN))
            code = gone(i, err);
    free(p);
    return code;
}

static pl_code wait_for(nn_wires *w, int who, short events, pl_error *err)
{
    double began = nn_wires_clock(), waited = 0;
    bool ready = false;
    pl_code code = PL_OK;

    while (code == PL_OK && !ready) {
        double left = w->patience > 0 ? w->patience - waited : 1;
        code = look(w, who, events, left < 1 ? (int)(1000 * left) + 1 : 1000, &ready, err);
        waited = nn_wires_clock() - began;
        if (code == PL_OK && !ready && w->patience > 0 && waited >= w->patience)
            code = pl_fail(err, PL_EDEVICE, "rank %d has been silent for %.0f s: it is lost or stuck", who, waited);
    }
    return code;
}

pl_code nn_wires_watch(nn_wires *w, pl_error *err)
{
    bool ready;

    return look(w, -1, 0, 0, &ready, err);
}

bool nn_wires_whole(int fd, size_t n)
{
    int bytes = n > 0 ? (int)(sizeof(head) + n) : 1;

    return setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0;
}

/* ---- bytes --------------------------------------------------------------- */

/* A call with MSG_DONTWAIT does not sleep, so no signal interrupts it. */
static bool try_again(void) { return errno == EAGAIN; }

static pl_code put(nn_wires *w, int to, const void *bytes, size_t n, pl_error *err)
{
    const char *p = bytes;
    pl_code code = w->fd[to] < 0 ? gone(to, err) : PL_OK;

    while (code == PL_OK && n > 0) {
        ssize_t k = send(w->fd[to], p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        } else {
            code = k < 0 && try_again() ? wait_for(w, to, POLLOUT, err) : gone(to, err);
        }
    }
    return code;
}

static pl_code get(nn_wires *w, int from, void *bytes, size_t n, pl_error *err)
{
    char *p = bytes;
    pl_code code = w->fd[from] < 0 ? gone(from, err) : PL_OK;

    while (code == PL_OK && n > 0) {
        ssize_t k = recv(w->fd[from], p, n, MSG_DONTWAIT);
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        } else {
            code = k < 0 && try_again() ? wait_for(w, from, POLLIN, err) : gone(from, err);
        }
    }
    return code;
}

pl_code nn_wires_send(nn_wires *w, int to, uint32_t kind, const void *bytes, size_t n, pl_error *err)
{
    head h = { kind, 0, n };
    pl_code code = put(w, to, &h, sizeof h, err);

    return code != PL_OK ? code : put(w, to, bytes, n, err);
}

static pl_code head_get(nn_wires *w, int from, head *h, pl_error *err)
{
    pl_code code = get(w, from, h, sizeof *h, err);

    if (code == PL_OK && h->kind == NN_WIRE_GIVE_UP)
        return pl_fail(err, PL_EDEVICE, "rank %d has given up; its own message says why", from);
    return code;
}

pl_code nn_wires_recv(nn_wires *w, int from, uint32_t kind, void *bytes, size_t n, pl_error *err)
{
    head h;
    pl_code code = head_get(w, from, &h, err);

    if (code == PL_OK && (h.kind != kind || h.n != n))
        return pl_fail(err, PL_EBUG, "rank %d sent message %u of %llu bytes, %u of %zu was expected", from, h.kind - NN_WIRE_HELLO,
                       (unsigned long long)h.n, kind - NN_WIRE_HELLO, n);
    return code != PL_OK ? code : get(w, from, bytes, n, err);
}

pl_code nn_wires_any(nn_wires *w, int from, uint32_t *kind, char *bytes, size_t max, pl_error *err)
{
    head h;
    pl_code code = head_get(w, from, &h, err);

    *kind = 0;
    if (code == PL_OK && h.n > max)
        code = pl_fail(err, PL_EDEVICE, "the process that answered is not a rank of this program");
    if (code != PL_OK)
        return code;
    *kind = h.kind;
    if (h.n < max)
        bytes[h.n] = '\0';
    return get(w, from, bytes, (size_t)h.n, err);
}
