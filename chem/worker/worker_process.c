/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/worker/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chem/common/protocol.h"
#include "pipeline/base/file.h"
#include "pipeline/base/place.h"

extern char **environ;

enum { POLL_MS = 200 }; /* maximum delay until a stop flag is noticed, if no signal interrupts poll */

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_for_worker(const char *variable)
{
    static const char *const kept[] = { "BABEL_", "LD_", "ASAN_", "UBSAN_", "LSAN_", "TSAN_", "LLVM_PROFILE_", "GLIBC_" };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strncmp(variable, kept[i], strlen(kept[i])) == 0)
            return true;
    return false;
}

/* A minimal environment, so that results do not depend on the user's, and one
 * OpenMP thread: the number of threads changes the last bits of energies, and spinning
 * threads slow a busy machine a hundredfold. */
static char **environment(void)
{
    static char one[] = "OMP_NUM_THREADS=1", passive[] = "OMP_WAIT_POLICY=passive";
    size_t n = 0, m = 0;
    char **env;

    while (environ[n] != NULL)
        n++;
    env = calloc(n + 3, sizeof *env);
    if (env == NULL)
        return NULL;
    env[m++] = one;
    env[m++] = passive;
    for (size_t i = 0; i < n; i++)
        if (is_for_worker(environ[i]))
            env[m++] = environ[i];
    return env;
}

/* Signals sent to the program must not end the worker during a molecule, so it
 * starts with them blocked. It exits when its stdin ends. */
static void set_signals(posix_spawnattr_t *attr)
{
    static const int meant_for_us[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP };
    sigset_t blocked, defaults;

    (void)sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof meant_for_us / sizeof *meant_for_us; i++)
        (void)sigaddset(&blocked, meant_for_us[i]);
    (void)sigfillset(&defaults);
    (void)sigdelset(&defaults, SIGKILL);
    (void)sigdelset(&defaults, SIGSTOP);
    (void)posix_spawnattr_setsigmask(attr, &blocked);
    (void)posix_spawnattr_setsigdefault(attr, &defaults);
    (void)posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(pid_t *pid, const char *program, int fd, size_t memory_bytes, char **env)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    char bytes[32], *argv[3];
    char name[] = "molsieve-chem";
    int bad;

    (void)snprintf(bytes, sizeof bytes, "%zu", memory_bytes);
    argv[0] = name;
    argv[1] = bytes;
    argv[2] = NULL;
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&attr) != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    set_signals(&attr);
    bad = posix_spawn_file_actions_adddup2(&files, fd, 0);
    if (bad == 0)
        bad = posix_spawn_file_actions_adddup2(&files, fd, 1);
    if (bad == 0)
        bad = posix_spawn(pid, program, &files, &attr, argv, env);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return bad;
}

/* A descriptor above the standard ones, which the child will overwrite. */
static int above_standard(int fd)
{
    int up;

    if (fd < 0 || fd > 2)
        return fd;
    up = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    (void)close(fd);
    return up;
}

pl_code ch_worker_process_start(ch_worker_process *c, const char *program, size_t memory_bytes, pl_error *err)
{
    char **env = environment();
    int pair[2], bad = 0;

    if (env == NULL)
        return pl_fail(err, PL_ENOMEM, "environment of %s", program);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        free(env);
        return pl_fail_errno(err, program);
    }
    pair[0] = above_standard(pair[0]);
    pair[1] = above_standard(pair[1]);
    if (pair[0] < 0 || pair[1] < 0 || fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0)
        bad = errno;
    if (!pl_is_guest()) /* if it fails, only the CPU time of the builders is missing in the accounting */
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (bad == 0)
        bad = spawn(&c->pid, program, pair[1], memory_bytes, env);
    free(env);
    if (pair[1] >= 0)
        (void)close(pair[1]);
    if (bad == 0) {
        c->fd = pair[0];
        return PL_OK;
    }
    if (pair[0] >= 0)
        (void)close(pair[0]);
    c->pid = 0;
    return pl_fail(err, PL_EIO, "cannot start %s: %s", program, strerror(bad));
}

/* ---- waiting ---- */

/* A wait ends at the stop flag, or after wall_s in which the child used no CPU. On an overloaded
 * machine a child may wait longer for a processor than it computes. */
typedef struct patience {
    pid_t pid;
    double wall_s, idle_s; /* waited since the child last worked */
    long ticks;            /* CPU time at that moment             */
    const atomic_int *stop;
} patience;

static patience patience_of(const ch_worker_process *c, double wall_s, const atomic_int *stop)
{
    return (patience){ .pid = c->pid, .wall_s = wall_s, .ticks = -1, .stop = stop };
}

/* 0 if it cannot be read. */
static long ticks_of(long pid)
{
    char path[64], line[1024], *after;
    unsigned long user = 0, system = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    f = fopen(path, "re");
    if (f == NULL)
        return 0;
    after = fgets(line, sizeof line, f) != NULL ? strrchr(line, ')') : NULL;
    if (after != NULL)
        (void)sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    (void)fclose(f);
    return (long)(user + system);
}

/* The first child of a process; 0: none, or it cannot be read. */
static long child_of(long pid)
{
    char path[64];
    long child = 0;
    FILE *f;

    if (pid <= 0)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", pid, pid);
    f = fopen(path, "re");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%ld", &child) != 1)
        child = 0;
    (void)fclose(f);
    return child;
}

/* The child, the process that forks for it, and the one that builds a structure at the moment. */
static long ticks_of_family(long pid)
{
    const long nursery = child_of(pid), builder = child_of(nursery);

    return ticks_of(pid) + (nursery > 0 ? ticks_of(nursery) : 0) + (builder > 0 ? ticks_of(builder) : 0);
}

/* If this process itself had no processor or was stopped for most of a wait, the wait does not count against the child. */
static void look(patience *p, double waited_s)
{
    const long ticks = ticks_of_family(p->pid);
    const double max = 2 * POLL_MS / 1000.0;

    p->idle_s = ticks != p->ticks ? 0 : p->idle_s + (waited_s < max ? waited_s : max);
    p->ticks = ticks;
}

/* Waits until the descriptor is ready for `events`, for POLLOUT at most a moment: poll calls a socket writable only while three quarters of
 * its buffer are free, and with less a write may succeed. A child that writes a large answer reads nothing, so that would never change. */
static ch_talk wait_ready(int fd, short events, patience *p)
{
    while (p->stop == NULL || !*p->stop) {
        struct pollfd ready = { fd, events, 0 };
        const double begun = now_s();
        const int n = poll(&ready, 1, POLL_MS);

        if (n > 0) {
            p->idle_s = 0;
            return CH_TALK_OK; /* also on hang-up: the next call reports it */
        }
        if (n < 0 && errno != EINTR)
            return CH_TALK_DIED;
        look(p, now_s() - begun);
        if (p->idle_s >= p->wall_s)
            return CH_TALK_LATE;
        if (events == POLLOUT)
            return CH_TALK_OK;
    }
    return CH_TALK_STOP;
}

static ch_talk send_all(int fd, const char *data, size_t n, patience *p)
{
    while (n > 0) {
        ssize_t put = send(fd, data, n, MSG_NOSIGNAL);
        if (put > 0) {
            data += put;
            n -= (size_t)put;
            p->idle_s = 0;
        } else if (put < 0 && errno != EINTR && errno != EAGAIN) {
            return CH_TALK_DIED;
        } else {
            ch_talk t = wait_ready(fd, POLLOUT, p);
            if (t != CH_TALK_OK)
                return t;
        }
    }
    return CH_TALK_OK;
}

static ch_talk receive_all(int fd, char *data, size_t n, patience *p)
{
    while (n > 0) {
        ssize_t got = recv(fd, data, n, 0);
        if (got > 0) {
            data += got;
            n -= (size_t)got;
        } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
            return CH_TALK_DIED;
        } else {
            ch_talk t = wait_ready(fd, POLLIN, p);
            if (t != CH_TALK_OK)
                return t;
        }
    }
    return CH_TALK_OK;
}

/* ---- messages ---- */

static uint32_t read_u32(const unsigned char b[4])
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Makes room for n bytes in the text, with arbitrary content. */
static bool text_reserve(pl_text *t, size_t n)
{
    char *s = t->cap > n ? t->s : realloc(t->s, n + 1);

    if (s == NULL)
        return false;
    t->s = s;
    t->cap = t->cap > n ? t->cap : n + 1;
    t->len = n;
    t->s[n] = '\0';
    return true;
}

ch_talk ch_worker_process_send(ch_worker_process *c, const pl_text *request, double wall_s, const atomic_int *stop)
{
    patience p = patience_of(c, wall_s, stop);
    const uint32_t n = (uint32_t)request->len;
    const unsigned char head[4] = { n & 255, n >> 8 & 255, n >> 16 & 255, n >> 24 & 255 };
    ch_talk t;

    if (stop != NULL && *stop)
        return CH_TALK_STOP;
    t = send_all(c->fd, (const char *)head, 4, &p);
    return t == CH_TALK_OK ? send_all(c->fd, pl_text_str(request), request->len, &p) : t;
}

ch_talk ch_worker_process_receive(ch_worker_process *c, pl_text *answer, double wall_s, const atomic_int *stop)
{
    patience p = patience_of(c, wall_s, stop);
    unsigned char back[4];
    ch_talk t = receive_all(c->fd, (char *)back, 4, &p);

    if (t != CH_TALK_OK)
        return t;
    if (read_u32(back) > CH_MESSAGE_MAX)
        return CH_TALK_GARBLED;
    if (!text_reserve(answer, read_u32(back)))
        return CH_TALK_NOMEM;
    t = receive_all(c->fd, answer->s, answer->len, &p);
    if (t == CH_TALK_OK && c->builder == 0)
        c->builder = (pid_t)child_of(c->pid);
    return t;
}

/* A dying child gets one second to end by itself, so that its own signal is reported. */
static void collect(pid_t pid, bool dying, int *status, struct rusage *use)
{
    const struct timespec pause = { 0, 5 * 1000 * 1000 };

    for (int i = 0; dying && i < 200; i++) {
        pid_t got = wait4(pid, status, WNOHANG, use);
        if (got != 0 && !(got < 0 && errno == EINTR))
            return;
        (void)nanosleep(&pause, NULL);
    }
    (void)kill(pid, SIGKILL);
    while (wait4(pid, status, 0, use) < 0 && errno == EINTR)
        continue;
}

static double seconds_of(const struct rusage *use)
{
    return (double)use->ru_utime.tv_sec + (double)use->ru_stime.tv_sec +
           1e-6 * ((double)use->ru_utime.tv_usec + (double)use->ru_stime.tv_usec);
}

/* CPU seconds of a builder that ended with its parent and was reparented to this process; 0 if another process reaps it. */
static double collect_orphan(pid_t pid)
{
    const struct timespec pause = { 0, 1000 * 1000 };

    for (int i = 0; pid > 0 && i < 500; i++) {
        struct rusage use = { 0 };
        int status;
        pid_t got = wait4(pid, &status, WNOHANG, &use);
        if (got == pid)
            return seconds_of(&use);
        if (got < 0 && errno == ECHILD && kill(pid, 0) != 0)
            break;
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

ch_worker_end ch_worker_process_end(ch_worker_process *c, bool dying)
{
    const pid_t building = (pid_t)child_of(c->builder);
    struct rusage use = { 0 };
    double orphans_s = 0;
    int status = 0;

    if (c->pid != 0) {
        (void)close(c->fd);
        collect(c->pid, dying, &status, &use);
        orphans_s = collect_orphan(c->builder) + collect_orphan(building);
    }
    *c = (ch_worker_process){ 0 };
    return (ch_worker_end){ WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                            seconds_of(&use) + orphans_s };
}
