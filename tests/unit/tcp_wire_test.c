/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between two ranks over a pair of sockets: whole, cut at every byte, of another kind or length, and farewells. Linked with
 * -Wl,--wrap=send,--wrap=recv,--wrap=malloc,--wrap=calloc. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/comm/collective.h"
#include "models/comm/tcp/meet.h"
#include "models/comm/tcp/tcp_wire.h"

static bool refuses;      /* malloc */
static int until_refused; /* calls of calloc; 0: none is refused */
static int broken;        /* the error of the next call of send or recv; 0: none */

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags);

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *__wrap_malloc(size_t n) { return refuses ? NULL : __real_malloc(n); }

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size) { return until_refused > 0 && --until_refused == 0 ? NULL : __real_calloc(n, size); }

static bool fails(void)
{
    errno = broken;
    broken = 0;
    return errno != 0;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags) { return fails() ? -1 : __real_send(fd, bytes, n, flags); }
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags) { return fails() ? -1 : __real_recv(fd, bytes, n, flags); }

typedef struct pair {
    nn_wires *zero, *one;
} pair;

static pair joined(void)
{
    pair p = { nn_wires_new(0, 2), nn_wires_new(1, 2) };
    int fd[2];

    assert_true(p.zero != NULL && p.one != NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    p.zero->fd[1] = fd[0];
    p.one->fd[0] = fd[1];
    p.zero->patience = p.one->patience = 5;
    return p;
}

static void part(pair *p)
{
    nn_wires_free(p->zero);
    nn_wires_free(p->one);
}

static void must_fail(nn_wires *w, uint32_t kind, size_t n, pl_code want, const char *text)
{
    char bytes[16];
    pl_error err = { 0 };

    assert_int_equal(nn_wires_recv(w, 1, kind, bytes, n, &err), want);
    if (strstr(err.text, text) == NULL)
        fail_msg("\"%s\" has no \"%s\"", err.text, text);
}

static void a_message_arrives_as_it_was_sent(void **state)
{
    pair p = joined();
    char got[4] = "";
    uint32_t kind = 0;

    (void)state;
    assert_int_equal(nn_wires_send(p.one, 0, NN_WIRE_DATA, "abc", 3, NULL), PL_OK);
    assert_int_equal(nn_wires_recv(p.zero, 1, NN_WIRE_DATA, got, 3, NULL), PL_OK);
    assert_string_equal(got, "abc");
    assert_int_equal(nn_wires_send(p.one, 0, NN_WIRE_HELLO, "xy", 2, NULL), PL_OK);
    assert_int_equal(nn_wires_any(p.zero, 1, &kind, got, sizeof got, NULL), PL_OK);
    assert_int_equal(kind, NN_WIRE_HELLO);
    assert_string_equal(got, "xy");
    part(&p);
}

/* A gradient is larger than what a socket takes at once. */
static void a_message_larger_than_the_socket_holds_arrives_whole(void **state)
{
    enum { MANY = 1 << 20 };
    pair p = joined();
    uint32_t *sent = malloc(MANY * sizeof *sent), *got = calloc(MANY, sizeof *got);
    pid_t pid;
    int status;

    (void)state;
    assert_true(sent != NULL && got != NULL);
    for (uint32_t i = 0; i < MANY; i++)
        sent[i] = i * 2654435761u;
    p.zero->patience = p.one->patience = 60;
    pid = fork();
    if (pid == 0)
        _exit(nn_wires_send(p.one, 0, NN_WIRE_DATA, sent, MANY * sizeof *sent, NULL) != PL_OK);
    assert_int_equal(nn_wires_recv(p.zero, 1, NN_WIRE_DATA, got, MANY * sizeof *got, NULL), PL_OK);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(memcmp(sent, got, MANY * sizeof *got) == 0);
    free(sent);
    free(got);
    part(&p);
}

/* Even if what came begins like a farewell. */
static void a_message_that_is_cut_tells_of_a_lost_rank(void **state)
{
    (void)state;
    for (size_t n = 0; n < 19; n++) {
        pair p = joined();
        char sent[19];
        assert_int_equal(nn_wires_send(p.one, 0, n < 16 ? NN_WIRE_GIVE_UP : NN_WIRE_DATA, "abc", 3, NULL), PL_OK);
        assert_int_equal(recv(p.zero->fd[1], sent, sizeof sent, MSG_WAITALL), 19);
        assert_int_equal(send(p.one->fd[0], sent, n, 0), (ssize_t)n);
        nn_wires_free(p.one);
        p.one = NULL;
        must_fail(p.zero, NN_WIRE_DATA, 3, PL_EDEVICE, "rank 1 is gone");
        part(&p);
    }
}

static void a_rank_that_gives_up_is_named(void **state)
{
    pair p = joined();

    (void)state;
    assert_int_equal(nn_wires_send(p.one, 0, NN_WIRE_GIVE_UP, NULL, 0, NULL), PL_OK);
    must_fail(p.zero, NN_WIRE_DATA, 3, PL_EDEVICE, "rank 1 has given up; its own message says why");
    part(&p);
}

static void another_message_is_a_fault_of_the_program(void **state)
{
    pair p = joined();

    (void)state;
    assert_int_equal(nn_wires_send(p.one, 0, NN_WIRE_DATA, "abc", 3, NULL), PL_OK);
    must_fail(p.zero, NN_WIRE_DATA, 4, PL_EBUG, "sent message 4 of 3 bytes, 4 of 4 was expected");
    part(&p);
    p = joined();
    assert_int_equal(nn_wires_send(p.one, 0, NN_WIRE_START, "abc", 3, NULL), PL_OK);
    must_fail(p.zero, NN_WIRE_DATA, 3, PL_EBUG, "sent message 3 of 3 bytes, 4 of 3 was expected");
    part(&p);
}

/* One that asks to wait is waited for; after any other nothing more is sent or read. */
static void an_error_of_the_system_is_a_lost_rank(void **state)
{
    pair p = joined();
    pl_error err = { 0 };
    char got[4] = "";

    (void)state;
    broken = EAGAIN;
    assert_int_equal(nn_wires_send(p.one, 0, NN_WIRE_DATA, "abc", 3, NULL), PL_OK);
    broken = EAGAIN;
    assert_int_equal(nn_wires_recv(p.zero, 1, NN_WIRE_DATA, got, 3, NULL), PL_OK);
    assert_string_equal(got, "abc");
    broken = EIO;
    assert_int_equal(nn_wires_send(p.one, 0, NN_WIRE_DATA, "abc", 3, &err), PL_EDEVICE);
    assert_string_equal(err.text, "rank 0 is gone: its connection is closed");
    assert_int_equal(__real_recv(p.zero->fd[1], got, 1, MSG_DONTWAIT), -1);
    assert_int_equal(nn_wires_send(p.one, 0, NN_WIRE_DATA, "abc", 3, NULL), PL_OK);
    broken = EIO;
    must_fail(p.zero, NN_WIRE_DATA, 3, PL_EDEVICE, "rank 1 is gone: its connection is closed");
    part(&p);
}

static void a_silent_rank_is_named(void **state)
{
    pair p = joined();

    (void)state;
    p.zero->patience = 0.05;
    must_fail(p.zero, NN_WIRE_DATA, 3, PL_EDEVICE, "rank 1 has been silent for "); /* 0 s, if this machine has time */
    must_fail(p.zero, NN_WIRE_DATA, 3, PL_EDEVICE, " s: it is lost or stuck");
    part(&p);
}

/* Up to its room; a shorter one is ended by a zero. Another program may send any number. */
static void a_message_of_any_kind_is_taken_up_to_its_room(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 5; n++) {
        pair p = joined();
        char got[6] = "######";
        uint32_t kind = 77;
        pl_error err = { 0 };
        pl_code code;
        assert_int_equal(nn_wires_send(p.one, 0, NN_WIRE_WELCOME, "abcde", n, NULL), PL_OK);
        code = nn_wires_any(p.zero, 1, &kind, got, 4, &err);
        assert_int_equal(code, n > 4 ? PL_EDEVICE : PL_OK);
        if (n > 4) {
            assert_string_equal(err.text, "the process that answered is not a rank of this program");
            assert_int_equal(kind, 0);
        } else {
            assert_int_equal(kind, NN_WIRE_WELCOME);
            assert_memory_equal(got, "abcd", n);
            assert_int_equal(got[n], n < 4 ? '\0' : '#');
        }
        assert_memory_equal(got + 4, "##", 2);
        part(&p);
    }
    pair p = joined();
    char got[4];
    uint32_t kind = 77;
    assert_int_equal(nn_wires_send(p.one, 0, NN_WIRE_GIVE_UP, NULL, 0, NULL), PL_OK);
    assert_int_equal(nn_wires_any(p.zero, 1, &kind, got, 4, NULL), PL_EDEVICE);
    assert_int_equal(kind, 0);
    part(&p);
}

/* Rank 0 of three: one and two get the other ends of its connections. */
static nn_wires *wires_of_three(int one[2], int two[2])
{
    nn_wires *w = nn_wires_new(0, 3);

    assert_non_null(w);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, one), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, two), 0);
    w->fd[1] = one[0];
    w->fd[2] = two[0];
    return w;
}

/* While one rank is waited for, another is lost. */
static void a_rank_that_is_lost_meanwhile_is_the_one_named(void **state)
{
    int one[2], two[2];
    nn_wires *w = wires_of_three(one, two);
    pl_error err = { 0 };

    (void)state;
    w->patience = 5;
    assert_int_equal(nn_wires_watch(w, &err), PL_OK);
    (void)close(two[1]);
    must_fail(w, NN_WIRE_DATA, 3, PL_EDEVICE, "rank 2 is gone");
    assert_int_equal(nn_wires_watch(w, &err), PL_EDEVICE);
    assert_string_equal(err.text, "rank 2 is gone: its connection is closed");
    w->patience = 1e-9; /* at its end, too */
    must_fail(w, NN_WIRE_DATA, 3, PL_EDEVICE, "rank 2 is gone");
    (void)close(one[1]);
    assert_int_equal(nn_wires_watch(w, &err), PL_EDEVICE);
    assert_string_equal(err.text, "rank 1 is gone: its connection is closed"); /* the first of several */
    nn_wires_free(w);
    nn_wires_free(NULL);
}

/* Rank 0 sends to the ranks one after another; that the next one is well does not make up for one that is lost. */
static void a_broadcast_to_a_lost_rank_fails_and_goes_no_further(void **state)
{
    int one[2], two[2];
    nn_wires *w = wires_of_three(one, two);
    nn_ranks r = { .kind = &nn_collective_tcp, .rank = 0, .size = 3, .patience = 5, .ctx = w };
    char byte;
    pl_error err = { 0 };

    (void)state;
    (void)close(one[1]);
    assert_int_equal(r.kind->broadcast(&r, "abc", 3, &err), PL_EDEVICE);
    assert_non_null(strstr(err.text, "rank 1 is gone"));
    assert_int_equal(recv(two[1], &byte, 1, MSG_DONTWAIT), -1);
    (void)close(two[1]);
    nn_wires_free(w);
}

/* Rank 1 sends a byte too many; what rank 2 sends is right. */
static void a_wrong_message_is_not_made_good_by_the_next(void **state)
{
    static const int64_t first[] = { 0, 1, 2, 3 };
    const float number[2] = { 1, 2 };
    nn_wires *ends[2] = { nn_wires_new(1, 3), nn_wires_new(2, 3) };
    int one[2], two[2];
    nn_wires *w = wires_of_three(one, two);
    nn_ranks r = { .kind = &nn_collective_tcp, .rank = 0, .size = 3, .patience = 5, .ctx = w };
    char all[4] = "abc";
    float sum[1] = { 4 };
    pl_error err = { 0 };

    (void)state;
    assert_true(ends[0] != NULL && ends[1] != NULL);
    ends[0]->fd[0] = one[1];
    ends[1]->fd[0] = two[1];
    assert_int_equal(nn_wires_send(ends[0], 0, NN_WIRE_DATA, "de", 2, NULL), PL_OK);
    assert_int_equal(nn_wires_send(ends[1], 0, NN_WIRE_DATA, "f", 1, NULL), PL_OK);
    assert_int_equal(r.kind->gather(&r, all, first, 1, &err), PL_EBUG);
    assert_string_equal(err.text, "rank 1 sent message 4 of 2 bytes, 4 of 1 was expected");
    assert_string_equal(all, "abc");
    assert_int_equal(nn_wires_recv(w, 2, NN_WIRE_DATA, all, 1, NULL), PL_OK);
    assert_int_equal(__real_recv(one[0], all, 2, 0), 2);
    assert_int_equal(nn_wires_send(ends[0], 0, NN_WIRE_DATA, number, sizeof number, NULL), PL_OK);
    assert_int_equal(nn_wires_send(ends[1], 0, NN_WIRE_DATA, number, sizeof *number, NULL), PL_OK);
    assert_int_equal(r.kind->sum(&r, sum, 1, 3, &err), PL_EBUG);
    assert_string_equal(err.text, "rank 1 sent message 4 of 8 bytes, 4 of 4 was expected");
    refuses = true;
    assert_int_equal(r.kind->sum(&r, sum, 1, 3, &err), PL_ENOMEM);
    refuses = false;
    assert_string_equal(err.text, "gradients of other ranks: out of memory");
    nn_wires_free(ends[0]);
    nn_wires_free(ends[1]);
    nn_wires_free(w);
    r.ctx = NULL; /* nobody was met: there is nobody to wait for */
    r.kind->give_up(&r, 1);
    r.kind->close(&r);
    assert_null(r.ctx);
}

static void refused_memory_is_no_connection(void **state)
{
    pl_error err = { 0 };
    nn_wires *w = NULL;

    (void)state;
    for (int nth = 1; nth <= 3; nth++) {
        until_refused = nth;
        w = nn_wires_new(0, 3);
        assert_int_equal(w != NULL, nth == 3);
    }
    until_refused = 1;
    assert_int_equal(nn_wires_watch(w, &err), PL_ENOMEM);
    assert_string_equal(err.text, "ranks: out of memory");
    nn_wires_free(w);
    err = (pl_error){ 0 };
    until_refused = 1;
    assert_int_equal(nn_meet(&w, &(nn_meeting){ .size = 2 }, &err), PL_ENOMEM);
    until_refused = 0;
    assert_null(w);
    assert_string_equal(err.text, "ranks: out of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_of_any_kind_is_taken_up_to_its_room),
        cmocka_unit_test(a_rank_that_is_lost_meanwhile_is_the_one_named),
        cmocka_unit_test(a_broadcast_to_a_lost_rank_fails_and_goes_no_further),
        cmocka_unit_test(a_message_larger_than_the_socket_holds_arrives_whole),
        cmocka_unit_test(a_message_arrives_as_it_was_sent),
        cmocka_unit_test(a_message_that_is_cut_tells_of_a_lost_rank),
        cmocka_unit_test(a_rank_that_gives_up_is_named),
        cmocka_unit_test(another_message_is_a_fault_of_the_program),
        cmocka_unit_test(a_silent_rank_is_named),
        cmocka_unit_test(an_error_of_the_system_is_a_lost_rank),
        cmocka_unit_test(a_wrong_message_is_not_made_good_by_the_next),
        cmocka_unit_test(refused_memory_is_no_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
