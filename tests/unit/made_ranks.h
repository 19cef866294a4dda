/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/made_ranks.h - ranks that a test starts: real processes, on loopback and in a folder. Include it once, after cmocka.h;
 * linked with -Wl,--wrap=calloc. */
#ifndef TESTS_MADE_RANKS_H
#define TESTS_MADE_RANKS_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "models/comm/collective.h"
#include "models/comm/tcp/tcp_wire.h"

enum { MAX = 4 };

/* The task of one process, and (in memory shared with the test) how it ended. */
typedef struct rank {
    nn_launcher launch;
    const char *folder;
    double patience, late; /* seconds; late: it starts after these */
    pl_code (*work)(nn_ranks *r, pl_error *err);
    pid_t pid;
    pl_error *end;
} rank;

typedef struct bench {
    char folder[64];
    rank rank[MAX];
    pl_error *end;
} bench;

static inline void nap(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };

    (void)nanosleep(&t, NULL);
}

/* Behind what is asked for are no zeros: there, a connection that a rank lacks. */
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    const size_t behind = 64;
    char *all = malloc(n * size + behind);

    if (all != NULL) {
        memset(all, 0, n * size);
        memset(all + n * size, 0xff, behind);
    }
    return all;
}

static inline int bench_open(void **state)
{
    bench *b = calloc(1, sizeof *b);

    if (b == NULL)
        return 1;
    b->end = mmap(NULL, MAX * sizeof *b->end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(b->folder, "/tmp/molsieve-meet-XXXXXX");
    if (b->end == MAP_FAILED || mkdtemp(b->folder) == NULL)
        return 1;
    for (int i = 0; i < MAX; i++) {
        b->rank[i] = (rank){ .folder = b->folder, .patience = 20, .end = &b->end[i] };
        b->rank[i].launch = (nn_launcher){ .by = "a test", .rank = i, .size = MAX, .local_rank = i };
    }
    *state = b;
    return 0;
}

static inline int bench_close(void **state)
{
    bench *b = *state;
    int rc = rmdir(b->folder); /* no file is left there */

    (void)munmap(b->end, MAX * sizeof *b->end);
    free(b);
    return rc;
}

/* Sends at once, and notices within half a minute that the other machine is gone. */
static inline bool is_tuned(int fd)
{
    static const int options[][3] = { { IPPROTO_TCP, TCP_NODELAY, 1 },   { SOL_SOCKET, SO_KEEPALIVE, 1 },
                                      { IPPROTO_TCP, TCP_KEEPIDLE, 10 }, { IPPROTO_TCP, TCP_KEEPINTVL, 5 },
                                      { IPPROTO_TCP, TCP_KEEPCNT, 4 },   { IPPROTO_TCP, TCP_USER_TIMEOUT, 30000 } };
    bool is = true;

    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        int value = 0;
        socklen_t n = sizeof value;
        is = is && getsockopt(fd, options[k][0], options[k][1], &value, &n) == 0 && value == options[k][2];
    }
    return is;
}

/* All ranks sum 1 + 2 + ... and must get the same result. */
static inline pl_code work_sum(nn_ranks *r, pl_error *err)
{
    const nn_wires *w = r->ctx;
    float x = (float)(r->rank + 1);

    for (int i = 0; w != NULL && i < r->size; i++)
        if (w->fd[i] >= 0 && !is_tuned(w->fd[i]))
            return pl_fail(err, PL_EBUG, "the connection to rank %d has other options", i);
    if (r->kind->sum(r, &x, 1, r->size, err) != PL_OK)
        return err->code;
    return x == (float)(r->size * (r->size + 1) / 2) ? PL_OK : pl_fail(err, PL_EBUG, "the sum is %g", (double)x);
}

static inline void rank_live(const rank *k)
{
    nn_join join = { .launch = k->launch, .folder = k->folder, .patience = k->patience };
    nn_ranks r = { .kind = &nn_collective_tcp, .patience = k->patience };
    pl_code code;

    nap(k->late);
    code = r.kind->open(&r, &join, k->end);
    if (code == PL_OK && k->work != NULL)
        code = k->work(&r, k->end);
    if (code != PL_OK)
        r.kind->give_up(&r, pl_code_exit(code));
    for (int i = 0; code == PL_OK && i < 2; i++) /* the second time there is nothing to close, as after a meeting that failed */
        r.kind->close(&r);
    _exit(pl_code_exit(code));
}

static inline void rank_start(rank *k)
{
    *k->end = (pl_error){ 0 };
    k->pid = fork();
    assert_true(k->pid >= 0);
    if (k->pid == 0)
        rank_live(k);
}

/* The exit status, or minus the signal. */
static inline int rank_end(const rank *k)
{
    int status = 0;

    assert_int_equal(waitpid(k->pid, &status, 0), k->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void check_end(const rank *k, int status, const char *text)
{
    int got = rank_end(k);

    if (got != status || strstr(k->end->text, text) == NULL)
        fail_msg("rank %d ended with %d, \"%s\"; %d, \"%s\" expected", k->launch.rank, got, k->end->text, status, text);
}

static inline void all_start(bench *b, int size, pl_code (*work)(nn_ranks *r, pl_error *err))
{
    for (int i = 0; i < size; i++) {
        b->rank[i].launch.size = size;
        b->rank[i].work = work;
        rank_start(&b->rank[i]);
    }
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

#endif
