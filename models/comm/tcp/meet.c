/* SPDX-License-Identifier: Apache-2.0 */
#include "models/comm/tcp/meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/base/sha256.h"
#include "pipeline/base/text.h"

enum { KEY = 33, ANSWER_S = 5, GRACE_S = 1, ADDRESSES = 16, GUESTS = 64 };

/* The first message of a rank: who it is. */
typedef struct hello {
    char key[KEY], job[160];
    int32_t rank, size;
} hello;

/* Why rank 0 refuses a connection. */
typedef struct refusal {
    int32_t final; /* 0: the sender may be looking for another run, so it should try again */
    char text[256];
} refusal;

static void nap(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };

    (void)nanosleep(&t, NULL);
}

/* ---- sockets ------------------------------------------------------------- */

/* Small messages are sent at once; a vanished machine is noticed within half a minute. */
static void socket_tune(int fd)
{
    static const struct {
        int level, name, value;
    } set[] = { { IPPROTO_TCP, TCP_NODELAY, 1 },   { SOL_SOCKET, SO_KEEPALIVE, 1 }, { IPPROTO_TCP, TCP_KEEPIDLE, 10 },
                { IPPROTO_TCP, TCP_KEEPINTVL, 5 }, { IPPROTO_TCP, TCP_KEEPCNT, 4 }, { IPPROTO_TCP, TCP_USER_TIMEOUT, 30000 } };

    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        (void)setsockopt(fd, set[i].level, set[i].name, &set[i].value, sizeof set[i].value);
}

static int socket_of(const struct addrinfo *a)
{
    return socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
}

static int addresses(struct addrinfo **out, const char *host, const char *port, int flags)
{
    const struct addrinfo want = { .ai_socktype = SOCK_STREAM,
                                   .ai_flags = flags,
                                   .ai_family = flags & AI_PASSIVE ? AF_INET : AF_UNSPEC };

    return getaddrinfo(host, port, &want, out);
}

static pl_code listen_open(int *out, const char *port, pl_error *err)
{
    struct addrinfo *a = NULL;
    int one = 1, bad = addresses(&a, NULL, port[0] ? port : "0", AI_PASSIVE), fd = bad ? -1 : socket_of(a);
    bool waits;

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    waits = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
    *out = waits ? fd : -1;
    if (!waits)
        (void)pl_fail(err, PL_ECONFIG, "rank 0 cannot listen on port %s: %s", port[0] ? port : "(any)",
                      bad ? gai_strerror(bad) : strerror(errno));
    if (!waits && fd >= 0)
        (void)close(fd);
    if (a != NULL)
        freeaddrinfo(a);
    return waits ? PL_OK : PL_ECONFIG;
}

static int connect_to(const struct addrinfo *a)
{
    int fd = socket_of(a), error = 0;
    socklen_t n = sizeof error;
    bool there = fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0;

    if (fd >= 0 && !there && errno == EINPROGRESS) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        there = poll(&p, 1, 2000) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == 0;
    }
    if (there)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* ---- the file ------------------------------------------------------------ */

typedef struct notice {
    char job[160], key[KEY], host[ADDRESSES][64], port[16];
    int n;
} notice;

bool nn_meet_path(char *path, size_t size, const nn_meeting *m)
{
    char hex[65];
    pl_sha256 sum;

    pl_sha256_start(&sum);
    pl_sha256_add_str(&sum, m->job);
    pl_sha256_hex(&sum, hex);
    return snprintf(path, size, "%s/ranks-%.12s.txt", m->folder, hex) < (int)size;
}

/* Other machines reach this one by the first addresses, ranks on the same machine by the last. */
static void notice_addresses(pl_text *to)
{
    struct ifaddrs *all = NULL;
    char name[INET_ADDRSTRLEN];
    int n = 0;

    if (getifaddrs(&all) != 0)
        all = NULL;
    for (const struct ifaddrs *a = all; a != NULL && n < ADDRESSES - 1; a = a->ifa_next) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a->ifa_addr;
        if (in == NULL || in->sin_family != AF_INET || !(a->ifa_flags & IFF_UP) || a->ifa_flags & IFF_LOOPBACK)
            continue;
        if (inet_ntop(AF_INET, &in->sin_addr, name, sizeof name) != NULL) {
            pl_text_addf(to, "at %s\n", name);
            n++;
        }
    }
    pl_text_add(to, "at 127.0.0.1\n");
    if (all != NULL)
        freeifaddrs(all);
}

static pl_code notice_write(const nn_meeting *m, int listening, const char *key, pl_error *err)
{
    struct sockaddr_in at = { 0 };
    socklen_t n = sizeof at;
    char path[4096];
    pl_text text = { 0 };
    pl_code code = pl_mkdirs(m->folder, err);

    if (code == PL_OK && (!nn_meet_path(path, sizeof path, m) || getsockname(listening, (struct sockaddr *)(void *)&at, &n) != 0))
        code = pl_fail(err, PL_EIO, "%s: cannot write the file by which the ranks find rank 0", m->folder);
    if (code == PL_OK) {
        pl_text_addf(&text, "molsieve ranks 1\njob %s\nkey %s\nport %d\n", m->job, key, (int)ntohs(at.sin_port));
        notice_addresses(&text);
        code = pl_text_ok(&text) ? pl_file_write_secret(path, (pl_bytes){ pl_text_str(&text), strlen(pl_text_str(&text)) }, err)
                                 : pl_fail(err, PL_ENOMEM, "ranks");
    }
    pl_text_free(&text);
    return code;
}

/* Reads one word after `label ` at the beginning of a line. to: zeros. */
static bool after(const char *line, const char *label, char *to, size_t size)
{
    size_t n = strlen(label), len;

    if (strncmp(line, label, n) != 0 || line[n] != ' ')
        return false;
    len = strcspn(line + n + 1, "\n");
    len = len < size ? len : size - 1;
    memcpy(to, line + n + 1, len);
    return true;
}

/* Returns why the notice cannot be used, or NULL. */
static const char *notice_read(notice *out, const nn_meeting *m, const char *path)
{
    char line[256] = "";
    FILE *f = fopen(path, "re");
    bool ours = f != NULL && fgets(line, sizeof line, f) != NULL && strcmp(line, "molsieve ranks 1\n") == 0;

    *out = (notice){ .n = 0 };
    while (ours && fgets(line, sizeof line, f) != NULL)
        if (!after(line, "job", out->job, sizeof out->job) && !after(line, "key", out->key, sizeof out->key) &&
            !after(line, "port", out->port, sizeof out->port) && out->n < ADDRESSES)
            out->n += after(line, "at", out->host[out->n], sizeof out->host[0]);
    if (f != NULL)
        (void)fclose(f);
    if (f == NULL)
        return "it is not there";
    if (!ours || !out->n)
        return "it is not what rank 0 writes";
    return strcmp(out->job, m->job) == 0 ? NULL : "it belongs to another run";
}

/* ---- rank 0 -------------------------------------------------------------- */

static pl_code key_make(char key[KEY], pl_error *err)
{
    unsigned char raw[16];

    if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
        return pl_fail(err, PL_EIO, "no random numbers from the system");
    for (int i = 0; i < 16; i++)
        snprintf(key + 2 * (ptrdiff_t)i, 3, "%02x", raw[i]);
    return PL_OK;
}

static bool is_wanted(const hello *h, const nn_wires *w, const nn_meeting *m, const char *key, refusal *why)
{
    memset(why, 0, sizeof *why);
    if (strncmp(h->key, key, KEY) != 0 || strncmp(h->job, m->job, sizeof h->job - 1) != 0) {
        snprintf(why->text, sizeof why->text, "the process that answers there belongs to another run");
        return false;
    }
    why->final = 1;
    if (h->size != m->size || h->rank < 1 || h->rank >= m->size)
        snprintf(why->text, sizeof why->text, "rank %d of %d connected to rank 0 of %d: the launcher's variables do not match",
                 (int)h->rank, (int)h->size, m->size);
    else if (w->fd[h->rank] >= 0)
        snprintf(why->text, sizeof why->text,
                 "a second rank %d connected to rank 0: if two runs share a directory or port, "
                 "set a different MOLSIEVE_RUN=NAME for each",
                 (int)h->rank);
    return why->text[0] == '\0';
}

/* ---- those who connected and have not said who they are ---- */

/* Connections that have not said hello yet. Each has a deadline; when all places are taken, a new one replaces the oldest. */
typedef struct guests {
    int n, fd[GUESTS];
    double until[GUESTS];
} guests;

/* Forgets connection i, whose descriptor was handed over or closed. */
static void guest_forget(guests *g, int i)
{
    g->n--;
    g->fd[i] = g->fd[g->n];
    g->until[i] = g->until[g->n];
}

static void guest_drop(guests *g, int i)
{
    (void)close(g->fd[i]);
    guest_forget(g, i);
}

static int oldest(const guests *g)
{
    int first = 0;

    for (int i = 1; i < g->n; i++)
        first = g->until[i] < g->until[first] ? i : first;
    return first;
}

static void guests_accept(guests *g, int listening)
{
    for (int k = 0; k < GUESTS; k++) {
        int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        if (g->n == GUESTS)
            guest_drop(g, oldest(g));
        socket_tune(fd);
        (void)nn_wires_whole(fd, sizeof(hello));
        g->fd[g->n] = fd;
        g->until[g->n++] = nn_wires_clock() + ANSWER_S;
    }
}

/* Reads the hello, or the end, of a connection. True: it is a missing rank of this run, and w has taken the connection. */
static bool guest_hear(nn_wires *w, const nn_meeting *m, const char *key, int fd)
{
    nn_wires *one = nn_wires_new(0, 1);
    bool wanted = false;
    hello h;
    refusal why;

    if (one == NULL)
        return false;
    one->fd[0] = fd;
    one->patience = 1;
    /* a rank that has already hung up is accepted when it connects again */
    if (nn_wires_whole(fd, 0) && nn_wires_recv(one, 0, NN_WIRE_HELLO, &h, sizeof h, NULL) == PL_OK &&
        nn_wires_watch(one, NULL) == PL_OK) {
        wanted = is_wanted(&h, w, m, key, &why);
        wanted = nn_wires_send(one, 0, wanted ? NN_WIRE_WELCOME : NN_WIRE_REFUSED, &why, sizeof why, NULL) == PL_OK && wanted;
    }
    if (wanted)
        w->fd[h.rank] = fd;
    one->fd[0] = -1;
    nn_wires_free(one);
    return wanted;
}

/* Waits briefly for messages and answers every connection that has said hello. False: none had. */
static bool guests_serve(guests *g, nn_wires *w, const nn_meeting *m, int listening, const char *key)
{
    struct pollfd p[GUESTS + 1];
    int n = g->n;

    for (int i = 0; i < n; i++)
        p[i] = (struct pollfd){ .fd = g->fd[i], .events = POLLIN };
    p[n] = (struct pollfd){ .fd = listening, .events = POLLIN };
    if (poll(p, (nfds_t)n + 1, 200) <= 0)
        return false;
    for (int i = n - 1; i >= 0; i--) { /* downwards: a removed entry is replaced by the last */
        if (p[i].revents != 0 && guest_hear(w, m, key, g->fd[i]))
            guest_forget(g, i);
        else if (p[i].revents != 0 || nn_wires_clock() > g->until[i])
            guest_drop(g, i);
    }
    if (p[n].revents != 0)
        guests_accept(g, listening);
    return true;
}

static int missing(const nn_wires *w, pl_text *names)
{
    int n = 0;

    for (int i = 1; i < w->size; i++)
        if (w->fd[i] < 0 && n++ < 20 && names != NULL)
            pl_text_addf(names, "%s%d", n > 1 ? ", " : "", i);
    return n;
}

/* Tells all connected ranks which one is missing, so that each reports it. */
static pl_code somebody_missing(nn_wires *w, const nn_meeting *m, pl_error *err)
{
    refusal why = { .final = 1 };
    pl_text names = { 0 };
    int n = missing(w, &names);

    snprintf(why.text, sizeof why.text, "%d of %d ranks did not connect within %.0f s: rank %s", n, m->size, m->patience,
             pl_text_str(&names));
    for (int i = 1; i < w->size; i++)
        if (w->fd[i] >= 0)
            (void)nn_wires_send(w, i, NN_WIRE_REFUSED, &why, sizeof why, NULL);
    pl_text_free(&names);
    return pl_fail(err, PL_EDEVICE, "%s", why.text);
}

static pl_code all_take(nn_wires *w, const nn_meeting *m, int listening, const char *key, pl_error *err)
{
    double end = nn_wires_clock() + m->patience;
    guests g = { .n = 0 };
    pl_code code = PL_OK;

    while (code == PL_OK && missing(w, NULL) > 0) {
        bool news = guests_serve(&g, w, m, listening, key);
        double late = nn_wires_clock() - end;
        code = nn_wires_watch(w, err);
        /* Connections made in time are answered even when this process was slow; connections of other programs do not extend
         * the wait. */
        if (code == PL_OK && late > (news ? GRACE_S : 0) && missing(w, NULL) > 0)
            code = somebody_missing(w, m, err);
    }
    while (g.n > 0)
        guest_drop(&g, g.n - 1);
    for (int i = 1; code == PL_OK && i < w->size; i++)
        code = nn_wires_send(w, i, NN_WIRE_START, NULL, 0, err);
    return code;
}

static pl_code host_all(nn_wires *w, const nn_meeting *m, pl_error *err)
{
    bool by_file = !m->host[0];
    char key[KEY] = "", path[4096];
    int listening;
    pl_code code = listen_open(&listening, m->port, err);

    if (code == PL_OK && by_file)
        code = key_make(key, err);
    if (code == PL_OK && by_file)
        code = notice_write(m, listening, key, err);
    if (code == PL_OK)
        code = all_take(w, m, listening, key, err);
    if (by_file && listening >= 0 && nn_meet_path(path, sizeof path, m))
        (void)unlink(path);
    if (listening >= 0)
        (void)close(listening);
    return code;
}

/* ---- the others ---------------------------------------------------------- */

/* The error "not yet". An earlier refusal by a rank 0 (ECONFIG) is kept: it says more than that no rank 0 answers now. */
static pl_code not_yet(pl_error *why, const char *text)
{
    return why->code == PL_ECONFIG ? PL_EDEVICE : pl_fail(why, PL_EDEVICE, "%s", text);
}

/* Tries one address of rank 0. PL_OK: accepted; EDEVICE: not yet, `why` says what was found; ECONFIG: refused for good. */
static pl_code address_try(nn_wires *w, const nn_meeting *m, const struct addrinfo *a, const char *key, pl_error *why)
{
    hello h = { .rank = m->rank, .size = m->size };
    refusal answer = { 0 };
    pl_error seen = { 0 };
    uint32_t kind;
    pl_code code;

    snprintf(h.key, sizeof h.key, "%s", key);
    snprintf(h.job, sizeof h.job, "%s", m->job);
    w->fd[0] = connect_to(a);
    if (w->fd[0] < 0)
        return not_yet(why, "no process answers there");
    socket_tune(w->fd[0]);
    w->patience = 2 * ANSWER_S;
    code = nn_wires_send(w, 0, NN_WIRE_HELLO, &h, sizeof h, &seen);
    if (code == PL_OK)
        code = nn_wires_any(w, 0, &kind, (char *)&answer, sizeof answer, &seen);
    if (code == PL_OK && kind == NN_WIRE_WELCOME)
        return PL_OK;
    if (code != PL_OK)
        (void)not_yet(why, seen.text);
    else
        (void)pl_fail(why, PL_ECONFIG, "%.255s", answer.text);
    (void)close(w->fd[0]);
    w->fd[0] = -1;
    return code == PL_OK && answer.final ? PL_ECONFIG : PL_EDEVICE;
}

static pl_code host_try(nn_wires *w, const nn_meeting *m, const char *host, const char *port, const char *key, pl_error *why)
{
    struct addrinfo *all = NULL;
    int bad = addresses(&all, host, port, 0);
    pl_code code = bad ? not_yet(why, gai_strerror(bad)) : PL_EDEVICE;

    for (const struct addrinfo *a = all; a != NULL && code == PL_EDEVICE; a = a->ai_next)
        code = address_try(w, m, a, key, why);
    if (all != NULL)
        freeaddrinfo(all);
    return code;
}

static pl_code notice_try(nn_wires *w, const nn_meeting *m, const char *path, pl_error *why)
{
    notice at;
    const char *bad = notice_read(&at, m, path);
    pl_code code = bad != NULL ? not_yet(why, bad) : PL_EDEVICE;

    for (int i = 0; i < at.n && bad == NULL && code == PL_EDEVICE; i++)
        code = host_try(w, m, at.host[i], at.port, at.key, why);
    return code;
}

static pl_code start_wait(nn_wires *w, double patience, pl_error *err)
{
    refusal answer = { 0 };
    uint32_t kind;
    pl_code code;

    w->patience = patience;
    code = nn_wires_any(w, 0, &kind, (char *)&answer, sizeof answer, err);
    return code != PL_OK || kind == NN_WIRE_START ? code : pl_fail(err, PL_EDEVICE, "%.255s", answer.text);
}

static pl_code guest(nn_wires *w, const nn_meeting *m, pl_error *err)
{
    double end = nn_wires_clock() + m->patience;
    bool by_file = !m->host[0];
    char path[4096] = "";
    pl_error why = { 0 };
    pl_code code = PL_EDEVICE;

    if (by_file && !nn_meet_path(path, sizeof path, m))
        return pl_fail(err, PL_EIO, "%s: cannot write the file by which the ranks find rank 0", m->folder);
    while (code == PL_EDEVICE) {
        code = by_file ? notice_try(w, m, path, &why) : host_try(w, m, m->host, m->port, "", &why);
        if (code != PL_EDEVICE || nn_wires_clock() > end)
            break;
        nap(0.05);
    }
    if (code == PL_EDEVICE && by_file)
        return pl_fail(err, code,
                       "rank 0 was not found within %.0f s by the file %s (%s); without a shared directory set "
                       "MOLSIEVE_MASTER=host:port",
                       m->patience, path, why.text);
    if (code != PL_OK)
        return pl_fail(err, code, "rank 0%s%s%s%s: %s", m->host[0] ? " at " : "", m->host, m->host[0] ? ":" : "", m->port,
                       why.text);
    return start_wait(w, m->patience + ANSWER_S, err);
}

pl_code nn_meet(nn_wires **out, const nn_meeting *m, pl_error *err)
{
    nn_wires *w = nn_wires_new(m->rank, m->size);
    pl_code code;

    *out = NULL;
    if (w == NULL)
        return pl_fail(err, PL_ENOMEM, "ranks");
    code = m->rank == 0 ? host_all(w, m, err) : guest(w, m, err);
    if (code != PL_OK)
        nn_wires_free(w);
    else
        w->patience = m->patience;
    *out = code != PL_OK ? NULL : w;
    return code;
}
