/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that find each other over TCP, or do not. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/comm/tcp/meet.h"
#include "pipeline/base/file.h"
#include "tests/unit/entries.h"
#include "tests/unit/made_ranks.h"

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
        WITH_BENCH(a_rank_without_standard_input_connects_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
