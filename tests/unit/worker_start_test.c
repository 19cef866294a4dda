/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that arrive in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chem/common/protocol.h"
#include "chem/worker/worker_opts.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_request_may_be_cut_anywhere) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
