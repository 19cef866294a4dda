/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/program_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST = 8192,   /* groups at once: more than a run may have workers */
    HIGHEST = 1024 /* descriptors to close where close_range is missing */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int told_by = -1; /* our end of a pair of sockets */
static pid_t guard, owner;

/* ---- in the guard: only what may be called between fork and exec ---- */

static void close_all_but_input(int from)
{
    (void)dup2(from, 0);
    if (syscall(SYS_close_range, 1U, ~0U, 0U) == 0)
        return;
    for (int fd = 1; fd < HIGHEST; fd++)
        (void)close(fd);
}

static void ignore_signals(void)
{
    static const int some[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM, SIGPIPE };

    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        (void)signal(some[i], SIG_IGN);
}

static void note(pid_t *group, int *n, pid_t said)
{
    if (said > 0 && *n < MOST)
        group[(*n)++] = said;
    for (int i = 0; said < 0 && i < *n; i++)
        if (group[i] == -said) {
            group[i] = group[--*n];
            return;
        }
}

static _Noreturn void watch(int from)
{
    static pid_t group[MOST];
    int n = 0;
    pid_t said;

    ignore_signals();
    (void)prctl(PR_SET_NAME, "molsieve-guard");
    (void)!chdir("/"); /* keeps no file system busy */
    close_all_but_input(from);
    while (recv(0, &said, sizeof said, 0) == (ssize_t)sizeof said)
        note(group, &n, said);
    for (int i = 0; i < n; i++)
        (void)kill(-group[i], SIGKILL);
    _exit(0);
}

/* ---- in this process ---- */

static void start(void)
{
    int fd[2];

    if (told_by >= 0)
        (void)close(told_by);
    told_by = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
        return;
    guard = fork();
    if (guard == 0)
        watch(fd[1]);
    (void)close(fd[1]);
    if (guard < 0)
        (void)close(fd[0]);
    told_by = guard > 0 ? fd[0] : -1;
    owner = getpid();
}

/* A guard that somebody killed is replaced. */
static bool is_there(void) { return told_by >= 0 && owner == getpid() && waitpid(guard, NULL, WNOHANG) == 0; }

int pl_guard_begin(void)
{
    int fd;

    (void)pthread_mutex_lock(&lock);
    if (!is_there())
        start();
    fd = told_by;
    (void)pthread_mutex_unlock(&lock);
    return fd;
}

static void tell(int fd, pid_t what)
{
    if (fd >= 0)
        (void)!send(fd, &what, sizeof what, MSG_NOSIGNAL);
}

void pl_guard_add(int fd) { tell(fd, getpid()); }

void pl_guard_remove(pid_t group)
{
    (void)pthread_mutex_lock(&lock);
    tell(told_by, -group);
    (void)pthread_mutex_unlock(&lock);
}
