/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipeline/base/clock.h"
#include "pipeline/base/folder.h"
#include "pipeline/base/program_guard.h"

enum {
    LOOK_MS = 20,     /* between two looks whether the program has ended */
    HIGHEST = 1024,   /* descriptors to close where close_range is missing */
    MARK_CLOEXEC = 4, /* CLOSE_RANGE_CLOEXEC */
    CHUNK = 16384,
    MOST_CHUNKS = 64, /* read between two looks at the clock */
    CANNOT_START = 127,
};

static const double FOLDER_S = 0.5; /* between two looks at the size of its folder */

typedef struct running {
    pid_t pid;
    int out, err; /* ends to read from; not blocking */
} running;

/* --- in the child, between fork and exec: only what may be called there --- */

static int limit(__rlimit_resource_t what, size_t most)
{
    struct rlimit l = { most, most };
    return most == 0 ? 0 : setrlimit(what, &l);
}

static int set_limits(const pl_program *p)
{
    if (limit(RLIMIT_CPU, p->cpu_s) != 0 || limit(RLIMIT_AS, p->memory_bytes) != 0)
        return -1;
    if (limit(RLIMIT_FSIZE, p->file_bytes) != 0)
        return -1;
    return setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
}

static void close_others(void)
{
    if (syscall(SYS_close_range, 3U, ~0U, MARK_CLOEXEC) == 0)
        return;
    for (int fd = 3; fd < HIGHEST; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void usual_signals(void)
{
    sigset_t none;
    (void)signal(SIGPIPE, SIG_DFL); /* what is ignored stays so after exec */
    (void)signal(SIGHUP, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int redirect(int out, int err)
{
    int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return empty < 0 || dup2(empty, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 ? -1 : 0;
}

static _Noreturn void become(const pl_program *p, pid_t parent, int guard, int out, int err, int told)
{
    int bad;

    (void)setpgid(0, 0);
    pl_guard_add(guard);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CANNOT_START);
    if (redirect(out, err) == 0 && chdir(p->dir) == 0 && set_limits(p) == 0) {
        close_others();
        usual_signals();
        (void)execve(p->path, p->argv, p->env);
    }
    bad = errno;
    (void)!write(told, &bad, sizeof bad);
    _exit(CANNOT_START);
}

/* --- in the parent --- */

static void close_all(int *fd, int n)
{
    for (int i = 0; i < n; i++)
        if (fd[i] >= 0)
            (void)close(fd[i]);
}

/* Three pipes: stdout, stderr, and why it did not start. All above the standard descriptors. */
static int pipes_open(int fd[6])
{
    for (int i = 0; i < 6; i++)
        fd[i] = -1;
    for (int i = 0; i < 6; i += 2)
        if (pipe2(fd + i, O_CLOEXEC) != 0)
            return -1;
    for (int i = 0; i < 6; i++) {
        int up = fd[i] > 2 ? fd[i] : fcntl(fd[i], F_DUPFD_CLOEXEC, 3);
        if (up < 0)
            return -1;
        if (up != fd[i])
            (void)close(fd[i]);
        fd[i] = up;
    }
    return fcntl(fd[0], F_SETFL, O_NONBLOCK) == 0 ? fcntl(fd[2], F_SETFL, O_NONBLOCK) : -1;
}

static pl_code start(const pl_program *p, running *c, pl_error *err)
{
    int fd[6], bad = 0;
    const int guard = pl_guard_begin();
    pid_t parent = getpid();
    ssize_t n;

    if (pipes_open(fd) != 0 || (c->pid = fork()) < 0) {
        bad = errno;
        close_all(fd, 6);
        return pl_fail(err, PL_EIO, "%s: cannot be started: %s", p->path, strerror(bad));
    }
    if (c->pid == 0)
        become(p, parent, guard, fd[1], fd[3], fd[5]);
    (void)setpgid(c->pid, c->pid); /* in both, because either may be first */
    close_all((int[]){ fd[1], fd[3], fd[5] }, 3);
    do
        n = read(fd[4], &bad, sizeof bad);
    while (n < 0 && errno == EINTR);
    (void)close(fd[4]);
    c->out = fd[0];
    c->err = fd[2];
    if (n != (ssize_t)sizeof bad)
        return PL_OK;
    pl_guard_remove(c->pid);
    (void)waitpid(c->pid, NULL, 0);
    close_all((int[]){ c->out, c->err }, 2);
    return pl_fail(err, PL_EIO, "%s: cannot be started in %s: %s", p->path, p->dir, strerror(bad));
}

static void keep_last(pl_program_result *r, const char *text, size_t n)
{
    size_t old;

    if (n > PL_PROGRAM_LAST) {
        text += n - PL_PROGRAM_LAST;
        n = PL_PROGRAM_LAST;
    }
    old = r->n_last + n > PL_PROGRAM_LAST ? PL_PROGRAM_LAST - n : r->n_last;
    memmove(r->last, r->last + r->n_last - old, old);
    memcpy(r->last + old, text, n);
    r->n_last = old + n;
    r->last[r->n_last] = '\0';
}

static void keep_first(pl_program_result *r, const char *text, size_t n)
{
    size_t room = r->size - r->n_out, m = n < room ? n : room;

    if (m > 0)
        memcpy(r->out + r->n_out, text, m);
    r->n_out += m;
    r->cut = r->cut || m < n;
}

/* Takes what there is, but not for ever from a program that prints without end. Closes *fd at its end. */
static void take(int *fd, bool is_out, pl_program_result *r)
{
    char text[CHUNK];

    for (int i = 0; i < MOST_CHUNKS && *fd >= 0; i++) {
        ssize_t n = read(*fd, text, sizeof text);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            (void)close(*fd);
            *fd = -1;
            return;
        }
        keep_last(r, text, (size_t)n);
        if (is_out)
            keep_first(r, text, (size_t)n);
    }
}

static void take_both(running *c, pl_program_result *r)
{
    take(&c->out, true, r);
    take(&c->err, false, r);
}

/* Not reaped yet: its number, which is that of its group, stays its own. */
static bool has_ended(const running *c)
{
    siginfo_t info = { 0 };
    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == c->pid;
}

static bool is_set(const atomic_int *stop) { return stop != NULL && atomic_load(stop) != 0; }

/* Whether its folder has grown too large; looks only if it is time to. */
static bool is_full(const pl_program *p, double *next)
{
    if (p->dir_bytes <= 0 || pl_clock() < *next)
        return false;
    *next = pl_clock() + FOLDER_S;
    return pl_folder_bytes(p->dir) > p->dir_bytes;
}

/* True: it has ended. False: it is late, or its folder is full, or we are to stop. */
static bool await(running *c, const pl_program *p, const atomic_int *stop, pl_program_result *r)
{
    double end = pl_clock() + p->timeout_s, look = pl_clock() + FOLDER_S;

    r->end = PL_PROGRAM_TIMEOUT;
    while (!has_ended(c)) {
        struct pollfd f[2] = { { .fd = c->out, .events = POLLIN }, { .fd = c->err, .events = POLLIN } };
        if (is_set(stop) || pl_clock() >= end)
            return false;
        if (is_full(p, &look)) {
            r->end = PL_PROGRAM_FULL;
            return false;
        }
        (void)poll(f, 2, LOOK_MS);
        take_both(c, r);
    }
    return true;
}

pl_code pl_program_run(const pl_program *p, const atomic_int *stop, pl_program_result *r, pl_error *err)
{
    running c;
    int status = 0;
    bool ended;

    r->n_out = r->n_last = 0;
    r->cut = false;
    r->last[0] = '\0';
    if (start(p, &c, err) != PL_OK)
        return PL_EIO;
    ended = await(&c, p, stop, r);
    (void)kill(-c.pid, SIGKILL); /* also what it left behind */
    pl_guard_remove(c.pid);
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
        ;
    take_both(&c, r);
    close_all((int[]){ c.out, c.err }, 2);
    if (!ended && is_set(stop))
        return pl_fail(err, PL_ESTOP, "%s was stopped", p->path);
    if (ended)
        r->end = WIFSIGNALED(status) ? PL_PROGRAM_SIGNALLED : PL_PROGRAM_EXITED;
    r->status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    return PL_OK;
}
