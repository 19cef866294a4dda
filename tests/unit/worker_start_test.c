/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that arrive in pieces, and what a worker starts with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chem/common/protocol.h"
#include "chem/worker/worker_opts.h"
#include "chem/worker/worker_process.h"

enum { REQUEST = 4 + 4 + 8, HEAD = 4 + 4 + 8 }; /* length, operation, CPU limit; status, signal, CPU seconds */

typedef struct child {
    int fd;
    pid_t pid;
} child;

static child worker_of_its_own(void)
{
    char program[4096];
    int pair[2];
    child c;

    assert_int_equal(ch_worker_find(program, NULL, NULL), PL_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    c = (child){ .fd = pair[0], .pid = fork() };
    assert_true(c.pid >= 0);
    if (c.pid == 0) {
        (void)dup2(pair[1], 0);
        (void)dup2(pair[1], 1);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    return c;
}

/* The first `cut` bytes, a pause in which the worker takes them, and the rest. */
static void ask(const child *c, uint32_t op, size_t cut)
{
    unsigned char bytes[REQUEST] = { REQUEST - 4 };

    memcpy(bytes + 4, &op, sizeof op);
    assert_int_equal(send(c->fd, bytes, cut, MSG_NOSIGNAL), cut);
    usleep(20000);
    assert_int_equal(send(c->fd, bytes + cut, REQUEST - cut, MSG_NOSIGNAL), REQUEST - cut);
}

static uint32_t status_of_answer(const child *c)
{
    uint32_t n = 0, status = ~0u;
    unsigned char body[4096];

    assert_int_equal(recv(c->fd, &n, sizeof n, MSG_WAITALL), sizeof n);
    assert_in_range(n, HEAD, sizeof body);
    assert_int_equal(recv(c->fd, body, n, MSG_WAITALL), n);
    memcpy(&status, body, sizeof status);
    return status;
}

static void a_request_may_be_cut_anywhere(void **state)
{
    (void)state;
    for (size_t cut = 1; cut < REQUEST; cut++) {
        const child c = worker_of_its_own();
        int status = -1;
        ask(&c, CH_OP_VERSION, cut);
        assert_int_equal(status_of_answer(&c), 0);
        ask(&c, CH_OP_VERSION, REQUEST - cut);
        assert_int_equal(status_of_answer(&c), 0);
        ask(&c, CH_OP_HELLO, cut);
        assert_int_equal(status_of_answer(&c), 0);
        ask(&c, CH_OP_HELLO, cut);
        assert_int_equal(status_of_answer(&c), 0);
        close(c.fd);
        assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
        assert_int_equal(status, 0);
    }
}

/* It looks each second. */
static void a_worker_stays_while_its_parent_lives(void **state)
{
    const child c = worker_of_its_own();
    int status = -1;

    (void)state;
    for (int i = 0; i < 2; i++) {
        ask(&c, CH_OP_READY, REQUEST - 1);
        assert_int_equal(status_of_answer(&c), 0);
        usleep(i == 0 ? 1300000 : 0);
    }
    close(c.fd);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    assert_int_equal(status, 0);
}

/* A file of the process in /proc, with newlines for the ends of its strings. */
static void read_of(pid_t pid, const char *name, char *text, size_t room)
{
    char path[64];
    size_t n;

    (void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    n = fread(text, 1, room - 1, f);
    (void)fclose(f);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(text[i] != '\0' ? text[i] : '\n');
    text[n] = '\0';
}

static unsigned long long mask_of(const char *status, const char *name)
{
    const char *at = strstr(status, name);

    assert_non_null(at);
    return strtoull(at + strlen(name), NULL, 16);
}

/* Signals of a terminal or a queue are for this program; what it ignores itself, the worker does not. */
static void a_worker_has_its_own_signals_and_environment(void **state)
{
    static const int blocked[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP };
    char program[4096], text[1 << 14];
    unsigned long long mask = 0;
    ch_worker_process c = { 0 };
    pl_error err = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++)
        mask |= 1ull << (blocked[i] - 1);
    assert_int_equal(setenv("BABEL_OF_A_TEST", "1", 1) | setenv("OF_A_TEST", "1", 1) | setenv("OMP_NUM_THREADS", "7", 1), 0);
    assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR && signal(SIGUSR2, SIG_IGN) != SIG_ERR);
    assert_int_equal(ch_worker_find(program, NULL, NULL), PL_OK);
    if (ch_worker_process_start(&c, program, (size_t)1 << 32, &err) != PL_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < 1000 && (read_of(c.pid, "environ", text, sizeof text), text[0] == '\0'); i++)
        usleep(10000); /* the system is still loading it */
    read_of(c.pid, "status", text, sizeof text);
    assert_true(mask_of(text, "SigBlk:") == mask);
    assert_true((mask_of(text, "SigIgn:") & 0x7fffffff) == 0); /* behind 31: signals of the C library and of real time */
    read_of(c.pid, "environ", text, sizeof text);
    assert_ptr_equal(strstr(text, "OMP_NUM_THREADS=1\nOMP_WAIT_POLICY=passive\n"), text);
    assert_non_null(strstr(text, "\nBABEL_OF_A_TEST=1\n"));
    assert_null(strstr(text, "\nOF_A_TEST="));
    assert_null(strstr(text, "OMP_NUM_THREADS=7"));
    read_of(c.pid, "cmdline", text, sizeof text);
    assert_string_equal(text, "molsieve-chem\n4294967296\n");
    assert_true(ch_worker_process_end(&c, false).cpu_s >= 0 && c.pid == 0);
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR && signal(SIGUSR2, SIG_DFL) != SIG_ERR);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_request_may_be_cut_anywhere),
                                        cmocka_unit_test(a_worker_stays_while_its_parent_lives),
                                        cmocka_unit_test(a_worker_has_its_own_signals_and_environment) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
