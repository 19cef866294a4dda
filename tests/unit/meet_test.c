/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that find each other over TCP: real processes, on loopback and in a folder. Linked with -Wl,--wrap=calloc. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/comm/collective.h"
#include "models/comm/tcp/meet.h"
#include "models/comm/tcp/tcp_wire.h"
#include "pipeline/base/file.h"
#include "tests/unit/entries.h"

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

static void nap(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };

    (void)nanosleep(&t, NULL);
}

static int bench_open(void **state)
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

static int bench_close(void **state)
{
    bench *b = *state;
    int rc = rmdir(b->folder); /* no file is left there */

    (void)munmap(b->end, MAX * sizeof *b->end);
    free(b);
    return rc;
}

/* Sends at once, and notices within half a minute that the other machine is gone. */
static bool is_tuned(int fd)
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
static pl_code work_sum(nn_ranks *r, pl_error *err)
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

static void rank_live(const rank *k)
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

static void rank_start(rank *k)
{
    *k->end = (pl_error){ 0 };
    k->pid = fork();
    assert_true(k->pid >= 0);
    if (k->pid == 0)
        rank_live(k);
}

/* The exit status, or minus the signal. */
static int rank_end(const rank *k)
{
    int status = 0;

    assert_int_equal(waitpid(k->pid, &status, 0), k->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void check_end(const rank *k, int status, const char *text)
{
    int got = rank_end(k);

    if (got != status || strstr(k->end->text, text) == NULL)
        fail_msg("rank %d ended with %d, \"%s\"; %d, \"%s\" expected", k->launch.rank, got, k->end->text, status, text);
}

static void all_start(bench *b, int size, pl_code (*work)(nn_ranks *r, pl_error *err))
{
    for (int i = 0; i < size; i++) {
        b->rank[i].launch.size = size;
        b->rank[i].work = work;
        rank_start(&b->rank[i]);
    }
}

/* ---- they meet ---- */

static void ranks_meet_by_a_file_in_any_order(void **state)
{
    bench *b = *state;

    for (int size = 1; size <= MAX; size++)
        for (int late = 0; late < size; late++) {
            for (int i = 0; i < size; i++)
                b->rank[i].late = i == late ? 0.2 : 0;
            all_start(b, size, work_sum);
            for (int i = 0; i < size; i++)
                check_end(&b->rank[i], 0, "");
        }
}

/* A port that was free a moment ago, and none that the system gives to a connection meanwhile: those begin at 32768. */
static void port_make(char port[16])
{
    static int tried;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    do
        at.sin_port = htons((uint16_t)(20000 + (getpid() + 97 * ++tried) % 12000));
    while (tried < 12000 && bind(fd, (struct sockaddr *)&at, sizeof at) != 0);
    assert_true(tried < 12000);
    (void)close(fd);
    snprintf(port, 16, "%d", (int)ntohs(at.sin_port));
}

static void masters_set(bench *b)
{
    char port[16];

    port_make(port);
    for (int i = 0; i < MAX; i++) {
        strcpy(b->rank[i].launch.host, "127.0.0.1");
        strcpy(b->rank[i].launch.port, port);
        b->rank[i].folder = NULL;
    }
}

static void ranks_meet_at_a_host_and_port(void **state)
{
    bench *b = *state;

    masters_set(b);
    b->rank[0].late = 0.3;
    all_start(b, 3, work_sum);
    for (int i = 0; i < 3; i++)
        check_end(&b->rank[i], 0, "");
}

/* ---- they do not ---- */

static void a_rank_that_never_comes_is_named_by_all(void **state)
{
    bench *b = *state;

    for (int by_file = 0; by_file < 2; by_file++) {
        if (!by_file)
            masters_set(b);
        for (int i = 0; i < MAX; i++) {
            b->rank[i].folder = b->folder;
            if (by_file)
                b->rank[i].launch.host[0] = b->rank[i].launch.port[0] = '\0';
            b->rank[i].launch.size = 4;
        }
        b->rank[0].patience = 2;
        for (int i = MAX - 1; i >= 0; i--) /* rank 0, whose patience counts, begins when the others are looking for it */
            if (i != 2)
                rank_start(&b->rank[i]);
        check_end(&b->rank[0], 7, "1 of 4 ranks did not connect within 2 s: rank 2");
        check_end(&b->rank[1], 7, "1 of 4 ranks did not connect within 2 s: rank 2");
        check_end(&b->rank[3], 7, "did not connect within 2 s: rank 2");
    }
}

static void without_rank_0_the_others_say_where_they_looked(void **state)
{
    bench *b = *state;

    b->rank[1].patience = b->rank[2].patience = 0.5;
    rank_start(&b->rank[1]);
    check_end(&b->rank[1], 7, "it is not there");
    assert_non_null(strstr(b->end[1].text, b->folder));
    assert_non_null(strstr(b->end[1].text, "without a shared directory set MOLSIEVE_MASTER=host:port"));
    masters_set(b);
    rank_start(&b->rank[2]);
    check_end(&b->rank[2], 7, "no process answers there");
    strcpy(b->rank[2].launch.host, "no.such.host.invalid");
    rank_start(&b->rank[2]);
    check_end(&b->rank[2], 7, "no.such.host.invalid");
}

static void notice_put(const bench *b, const rank *of, const char *text)
{
    const nn_meeting m = { .job = of->launch.job, .folder = b->folder };
    char path[256];

    assert_true(nn_meet_path(path, sizeof path, &m));
    assert_int_equal(pl_file_write(path, (pl_bytes){ text, strlen(text) }, NULL), PL_OK);
}

/* Left by a start that was killed: a port without a process, garbage, or the port of another program. */
static void a_file_of_an_earlier_start_is_passed_over(void **state)
{
    static const char *const left[] = { "", "garbage\n", "molsieve ranks 1\njob \nkey 00\nport 1\nat 127.0.0.1\n",
                                        "molsieve ranks 1\njob another\nkey 00\nport 1\nat 127.0.0.1\n",
                                        "molsieve ranks 1\njob \nkey 00\nport x\nat nowhere.invalid\n" };
    bench *b = *state;

    for (size_t k = 0; k < sizeof left / sizeof *left; k++) {
        notice_put(b, &b->rank[0], left[k]);
        b->rank[0].late = 0.3;
        all_start(b, 2, work_sum);
        check_end(&b->rank[0], 0, "");
        check_end(&b->rank[1], 0, "");
    }
}

/* The file of another start that still runs: its rank 0 does not accept ranks of this start. */
static void a_rank_with_another_key_or_job_is_not_taken(void **state)
{
    bench *b = *state;

    masters_set(b);
    for (int i = 0; i < 3; i++)
        b->rank[i].patience = 3;
    b->rank[0].launch.size = b->rank[1].launch.size = b->rank[2].launch.size = 2;
    strcpy(b->rank[0].launch.job, "17");
    strcpy(b->rank[2].launch.job, "18");
    b->rank[2].launch.rank = 1;
    rank_start(&b->rank[0]);
    rank_start(&b->rank[2]);
    check_end(&b->rank[2], 7, "belongs to another run");
    check_end(&b->rank[0], 7, "rank 1");
}

/* A process that can read the key can join as a rank. */
static void the_key_is_for_the_user_alone(void **state)
{
    bench *b = *state;
    const nn_meeting m = { .job = b->rank[0].launch.job, .folder = b->folder };
    char path[256];
    struct stat st;

    assert_true(nn_meet_path(path, sizeof path, &m));
    b->rank[0].launch.size = b->rank[1].launch.size = 2;
    rank_start(&b->rank[0]);
    for (int i = 0; i < 6000 && stat(path, &st) != 0; i++)
        nap(0.01);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    rank_start(&b->rank[1]);
    check_end(&b->rank[0], 0, "");
    check_end(&b->rank[1], 0, "");
}

/* The first address of another machine's kind that this machine has; "" if it has none. */
static void own_address(char name[INET_ADDRSTRLEN])
{
    struct ifaddrs *all = NULL;

    name[0] = '\0';
    assert_int_equal(getifaddrs(&all), 0);
    for (const struct ifaddrs *a = all; a != NULL && name[0] == '\0'; a = a->ifa_next) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a->ifa_addr;
        if (in != NULL && in->sin_family == AF_INET && a->ifa_flags & IFF_UP && !(a->ifa_flags & IFF_LOOPBACK))
            (void)inet_ntop(AF_INET, &in->sin_addr, name, INET_ADDRSTRLEN);
    }
    freeifaddrs(all);
}

static void ranks_elsewhere_are_told_an_address_of_this_machine(void **state)
{
    bench *b = *state;
    const nn_meeting m = { .job = b->rank[0].launch.job, .folder = b->folder };
    char path[256], text[4096] = "", name[INET_ADDRSTRLEN], want[INET_ADDRSTRLEN + 8];
    FILE *f = NULL;

    assert_true(nn_meet_path(path, sizeof path, &m));
    b->rank[0].launch.size = b->rank[1].launch.size = 2;
    rank_start(&b->rank[0]);
    for (int i = 0; i < 6000 && (f = fopen(path, "r")) == NULL; i++)
        nap(0.01);
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    own_address(name);
    (void)snprintf(want, sizeof want, "at %s\n", name[0] != '\0' ? name : "127.0.0.1");
    assert_non_null(strstr(text, want));
    assert_non_null(strstr(text, "\nat 127.0.0.1\n"));
    rank_start(&b->rank[1]);
    check_end(&b->rank[0], 0, "");
    check_end(&b->rank[1], 0, "");
}

static void two_jobs_share_a_folder(void **state)
{
    bench *b = *state;

    for (int i = 0; i < MAX; i++) {
        b->rank[i].launch.rank = i / 2;
        b->rank[i].launch.size = 2;
        b->rank[i].work = work_sum;
        snprintf(b->rank[i].launch.job, sizeof b->rank[i].launch.job, "job %d", i % 2);
    }
    for (int i = MAX - 1; i >= 0; i--)
        rank_start(&b->rank[i]);
    for (int i = 0; i < MAX; i++)
        check_end(&b->rank[i], 0, "");
}

/* Two starts that look the same: surplus ranks are refused, with a message that says what to do. */
static void a_second_rank_of_the_same_number_is_refused(void **state)
{
    bench *b = *state;
    int first, second;

    for (int i = 0; i < 3; i++)
        b->rank[i].launch.size = 3;
    b->rank[0].patience = 8;
    b->rank[2].launch.rank = 1;
    for (int i = 0; i < 3; i++)
        rank_start(&b->rank[i]);
    second = waitpid(-1, &first, 0) == b->rank[1].pid ? 1 : 2;
    assert_int_equal(WEXITSTATUS(first), 2);
    assert_non_null(strstr(b->rank[second].end->text, "MOLSIEVE_RUN=NAME"));
    check_end(&b->rank[0], 7, "rank 2");
    check_end(&b->rank[3 - second], 7, "rank 2");
}

static void a_rank_of_another_size_is_refused(void **state)
{
    bench *b = *state;

    b->rank[0].launch.size = 3;
    b->rank[0].patience = 5;
    b->rank[1].launch.size = 2;
    rank_start(&b->rank[1]); /* it waits for rank 0 */
    rank_start(&b->rank[0]);
    check_end(&b->rank[1], 2, "rank 1 of 2 connected to rank 0 of 3");
    check_end(&b->rank[0], 7, "2 of 3 ranks");
}

static int connect_silently(const char *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)atoi(port)) };
    int fd = -1, tries = 0;

    do { /* rank 0 may not listen yet */
        if (fd >= 0) {
            (void)close(fd);
            nap(0.01);
        }
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
    } while (connect(fd, (struct sockaddr *)&at, sizeof at) != 0 && ++tries < 6000);
    assert_true(tries < 6000);
    return fd;
}

/* Rank 1 of 2 says hello and then nothing: its end has not reached rank 0's machine. */
static int say_hello_and_hang_up(const char *port)
{
    struct {
        uint32_t kind, zero;
        uint64_t n;
        char key[33], job[160];
        int32_t rank, size;
    } hello = { .kind = NN_WIRE_HELLO, .rank = 1, .size = 2 };
    int fd = connect_silently(port);

    hello.n = offsetof(__typeof__(hello), size) + sizeof hello.size - offsetof(__typeof__(hello), key);
    assert_int_equal(send(fd, &hello, offsetof(__typeof__(hello), key) + hello.n, 0), offsetof(__typeof__(hello), key) + hello.n);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    return fd;
}

/* A foreign process begins like a rank and then sends a byte now and then. */
static void *dribble(void *port)
{
    const struct {
        uint32_t kind, zero;
        uint64_t n;
    } head = { NN_WIRE_HELLO, 0, 204 };
    int fd = connect_silently(port);
    bool heard = send(fd, &head, sizeof head, MSG_NOSIGNAL) == sizeof head;

    for (int i = 0; heard && i < 200; i++) {
        nap(0.2);
        heard = send(fd, "x", 1, MSG_NOSIGNAL) == 1;
    }
    (void)close(fd);
    return heard ? port : NULL;
}

/* A rank said hello and left while rank 0 listened to a foreign process; then it connects again. */
static void a_rank_that_left_while_it_waited_may_come_again(void **state)
{
    bench *b = *state;
    pthread_t stranger;
    void *heard_out;
    int left;

    masters_set(b);
    b->rank[0].launch.size = b->rank[1].launch.size = 2;
    b->rank[0].work = b->rank[1].work = work_sum;
    rank_start(&b->rank[0]);
    assert_int_equal(pthread_create(&stranger, NULL, dribble, (void *)(uintptr_t)b->rank[0].launch.port), 0);
    nap(0.5);
    (void)kill(b->rank[0].pid, SIGSTOP); /* it sees the hello and the end of it at once */
    left = say_hello_and_hang_up(b->rank[0].launch.port);
    (void)kill(b->rank[0].pid, SIGCONT);
    rank_start(&b->rank[1]);
    check_end(&b->rank[1], 0, "");
    check_end(&b->rank[0], 0, "");
    assert_int_equal(pthread_join(stranger, &heard_out), 0);
    assert_null(heard_out);
    (void)close(left);
}

/* Foreign processes connect and say nothing, or send an incomplete hello, before and while the ranks connect. */
static void idle_connections_do_not_keep_ranks_from_meeting(void **state)
{
    enum { BEFORE = 14, ALL = 150 };
    const struct {
        uint32_t kind, zero;
        uint64_t n;
    } head = { NN_WIRE_HELLO, 0, 204 };
    bench *b = *state;
    int fd[ALL];
    struct timespec began, ended;

    masters_set(b);
    for (int i = 0; i < 3; i++)
        b->rank[i].launch.size = 3, b->rank[i].work = work_sum;
    rank_start(&b->rank[0]);
    for (int i = 0; i < ALL; i++) {
        if (i == BEFORE)
            rank_start(&b->rank[1]);
        fd[i] = connect_silently(b->rank[0].launch.port);
        if (i % 2)
            assert_int_equal(send(fd[i], &head, sizeof head, MSG_NOSIGNAL), sizeof head);
    }
    rank_start(&b->rank[2]);
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &began), 0);
    for (int i = 0; i < 3; i++)
        check_end(&b->rank[i], 0, "");
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &ended), 0);
    assert_true(ended.tv_sec - began.tv_sec < 10);
    for (int i = 0; i < ALL; i++)
        (void)close(fd[i]);
}

/* ---- what is left of a meeting that failed ---- */

/* Rank 1 has connected, rank 2 has not: with the meeting the connection ends. */
static void a_meeting_that_failed_keeps_no_connection(void **state)
{
    bench *b = *state;
    const nn_meeting m = { .job = b->rank[0].launch.job, .folder = b->folder, .host = "", .port = "", .size = 3, .patience = 3 };
    nn_wires *w = (nn_wires *)(void *)b;
    pl_error err = { 0 };
    int before = count_in("/proc/self/fd");

    b->rank[1].launch.size = 3;
    rank_start(&b->rank[1]);
    assert_int_equal(nn_meet(&w, &m, &err), PL_EDEVICE);
    assert_null(w);
    assert_non_null(strstr(err.text, "1 of 3 ranks did not connect within 3 s: rank 2"));
    assert_int_equal(count_in("/proc/self/fd"), before);
    check_end(&b->rank[1], 7, "rank 2");
}

/* The folder is there, but the name of a file in it is longer than the system allows. */
static void a_folder_with_too_long_a_name_is_named(void **state)
{
    bench *b = *state;
    char folder[4081] = "";
    nn_meeting m = { .job = "", .folder = folder, .host = "", .port = "", .size = 2, .patience = 0.2 };
    nn_wires *w = NULL;
    pl_error err = { 0 };
    int before = count_in("/proc/self/fd");
    size_t n = (size_t)snprintf(folder, sizeof folder, "%s", b->folder);

    for (; n + 2 < sizeof folder; n += 2)
        memcpy(folder + n, "/.", 3);
    for (m.rank = 0; m.rank < 2; m.rank++) {
        err = (pl_error){ 0 };
        assert_int_equal(nn_meet(&w, &m, &err), PL_EIO);
        assert_null(w);
        assert_non_null(strstr(err.text, "cannot write the file by which the ranks find rank 0"));
        assert_non_null(strstr(err.text, b->folder));
        assert_int_equal(count_in("/proc/self/fd"), before);
    }
}

/* Of many that are missing the first twenty are named, each once. */
static void many_missing_ranks_are_counted_and_some_named(void **state)
{
    bench *b = *state;
    const nn_meeting m = { .job = "", .folder = b->folder, .host = "", .port = "", .size = 40, .patience = 0.2 };
    nn_wires *w = NULL;
    pl_error err = { 0 };

    assert_int_equal(nn_meet(&w, &m, &err), PL_EDEVICE);
    assert_string_equal(err.text,
                        "39 of 40 ranks did not connect within 0 s: rank 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, "
                        "17, 18, 19, 20");
}

/* A machine with many addresses; only so many of them are kept, and nothing is written behind them. */
static void more_addresses_than_there_is_room_for_do_no_harm(void **state)
{
    bench *b = *state;
    const nn_meeting m = { .job = b->rank[0].launch.job, .folder = b->folder };
    char path[256], text[8192] = "";
    FILE *f = NULL;
    size_t n;

    assert_true(nn_meet_path(path, sizeof path, &m));
    b->rank[0].launch.size = b->rank[1].launch.size = 2;
    b->rank[0].work = b->rank[1].work = work_sum;
    rank_start(&b->rank[0]);
    for (int i = 0; i < 6000 && (f = fopen(path, "r")) == NULL; i++)
        nap(0.01);
    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "at 127.0.0.1\n");
    assert_int_equal(pl_file_write(path, (pl_bytes){ text, n }, NULL), PL_OK);
    rank_start(&b->rank[1]);
    check_end(&b->rank[1], 0, "");
    check_end(&b->rank[0], 0, "");
}

/* ---- a closed standard input ---- */

static int at_start; /* descriptors before the ranks met */

static pl_code work_count(nn_ranks *r, pl_error *err)
{
    struct stat at = { 0 };
    int more = count_in("/proc/self/fd") - at_start;

    if (fstat(0, &at) != 0 || !S_ISSOCK(at.st_mode) || more != 1)
        return pl_fail(err, PL_EBUG, "%d more descriptors, and 0 is %s", more, S_ISSOCK(at.st_mode) ? "a socket" : "none");
    return work_sum(r, err);
}

/* Then the connection may have the descriptor 0, and it is the only one. */
static void a_rank_without_standard_input_connects_once(void **state)
{
    bench *b = *state;
    int input = dup(0);

    masters_set(b);
    b->rank[0].launch.size = b->rank[1].launch.size = 2;
    b->rank[0].work = work_sum;
    b->rank[1].work = work_count;
    rank_start(&b->rank[0]);
    (void)close(0);
    at_start = count_in("/proc/self/fd");
    rank_start(&b->rank[1]);
    if (input >= 0)
        assert_int_equal(dup2(input, 0), 0);
    (void)close(input);
    check_end(&b->rank[1], 0, "");
    check_end(&b->rank[0], 0, "");
}

/* ---- lost ranks ---- */

/* The last rank dies or stops while the others sum. */
static pl_code work_die(nn_ranks *r, pl_error *err)
{
    if (r->rank == r->size - 1)
        (void)raise(SIGKILL);
    return work_sum(r, err);
}

static pl_code work_stop(nn_ranks *r, pl_error *err)
{
    r->patience = 1;
    if (r->rank == r->size - 1)
        nap(6);
    return work_sum(r, err);
}

static pl_code work_fail(nn_ranks *r, pl_error *err)
{
    r->patience = 0; /* as long as it takes */
    return r->rank == r->size - 1 ? pl_fail(err, PL_EDEVICE, "I cannot") : work_sum(r, err);
}

static void check_lost(bench *b, pl_code (*work)(nn_ranks *r, pl_error *err), int last, const char *text)
{
    double began = nn_wires_clock();

    all_start(b, 3, work);
    check_end(&b->rank[0], 7, text);
    check_end(&b->rank[1], 7, "rank 0");
    assert_true(nn_wires_clock() - began < 5);
    assert_int_equal(rank_end(&b->rank[2]), last);
}

static void a_dead_rank_ends_all_at_once(void **state) { check_lost(*state, work_die, -SIGKILL, "rank 2 is gone"); }

static void a_silent_rank_ends_all_when_patience_is_spent(void **state)
{
    check_lost(*state, work_stop, 7, "rank 2 has been silent for ");
}

static void a_rank_that_gives_up_ends_all(void **state) { check_lost(*state, work_fail, 7, "rank 2"); }

static pl_code work_differ(nn_ranks *r, pl_error *err)
{
    char build[32];

    snprintf(build, sizeof build, "0.1.0 %s", r->rank == 1 ? "0ld" : "new");
    return nn_ranks_agree(r, build, sizeof build, "version and commit", err);
}

static void ranks_of_different_builds_are_refused_by_all(void **state)
{
    bench *b = *state;

    all_start(b, 3, work_differ);
    for (int i = 0; i < 3; i++)
        check_end(&b->rank[i], 5, "rank 1 has other version and commit than rank 0");
}

/* The others have ended long ago: they wait, so that no rank takes another for lost. */
static pl_code work_late(nn_ranks *r, pl_error *err)
{
    if (r->rank > 0)
        nap(0.4 * r->rank);
    return r->kind->watch(r, err);
}

static void the_first_rank_to_end_waits_for_the_last(void **state)
{
    bench *b = *state;

    all_start(b, 3, work_late);
    for (int i = 0; i < 3; i++)
        check_end(&b->rank[i], 0, "");
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(ranks_meet_by_a_file_in_any_order),
        WITH_BENCH(ranks_meet_at_a_host_and_port),
        WITH_BENCH(a_rank_that_never_comes_is_named_by_all),
        WITH_BENCH(without_rank_0_the_others_say_where_they_looked),
        WITH_BENCH(a_file_of_an_earlier_start_is_passed_over),
        WITH_BENCH(a_rank_with_another_key_or_job_is_not_taken),
        WITH_BENCH(the_key_is_for_the_user_alone),
        WITH_BENCH(ranks_elsewhere_are_told_an_address_of_this_machine),
        WITH_BENCH(two_jobs_share_a_folder),
        WITH_BENCH(a_second_rank_of_the_same_number_is_refused),
        WITH_BENCH(a_rank_of_another_size_is_refused),
        WITH_BENCH(a_rank_that_left_while_it_waited_may_come_again),
        WITH_BENCH(idle_connections_do_not_keep_ranks_from_meeting),
        WITH_BENCH(a_meeting_that_failed_keeps_no_connection),
        WITH_BENCH(a_folder_with_too_long_a_name_is_named),
        WITH_BENCH(many_missing_ranks_are_counted_and_some_named),
        WITH_BENCH(more_addresses_than_there_is_room_for_do_no_harm),
        WITH_BENCH(a_rank_without_standard_input_connects_once),
        WITH_BENCH(a_dead_rank_ends_all_at_once),
        WITH_BENCH(a_silent_rank_ends_all_when_patience_is_spent),
        WITH_BENCH(a_rank_that_gives_up_ends_all),
        WITH_BENCH(the_first_rank_to_end_waits_for_the_last),
        WITH_BENCH(ranks_of_different_builds_are_refused_by_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
