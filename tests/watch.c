/* SPDX-License-Identifier: Apache-2.0 */
/* watch COMMAND [ARGUMENT...] - runs a test, and ends it when it hangs.
 *
 * A test hangs when, for IDLE_S seconds, none of its processes wants a processor. A test on a slow machine does not:
 * its processes are running or have used some time. Exit status: that of the command, or HANGS after a hang, with a
 * line for each process that was left. A test that computes for ever is left to the limit of ctest.
 * A cmocka program that ends with status 0 before all its tests were run fails with CUT, and so does one of whose tests a
 * forked child ran the rest (ended.h).
 * Its last line says what the test cost: on a busy machine the time on the wall does not. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/ended.h"

enum { IDLE_S = 60, LOOK_S = 5, CUT = 123, HANGS = 124, MAX = 4096 };

/* 1 % of a processor over the whole time: heartbeats and polling loops stay below it. */
static const double IDLE_SHARE = 0.01;

typedef struct process {
    int pid, parent;
    char name[64], state;
    double seconds; /* of its own and of its children that ended */
    bool ours;
} process;

typedef struct family {
    int n;
    process all[MAX];
} family;

static bool process_read(process *p, const char *pid)
{
    unsigned long user, system;
    long children_user, children_system;
    char path[320], line[1024], *end;
    bool good;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    f = fopen(path, "r");
    if (f == NULL)
        return false;
    good = fgets(line, sizeof line, f) != NULL && (end = strrchr(line, ')')) != NULL;
    (void)fclose(f);
    if (!good || sscanf(line, "%d (%63[^)]", &p->pid, p->name) != 2 ||
        sscanf(end + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &p->state, &p->parent, &user, &system,
               &children_user, &children_system) != 6)
        return false;
    p->seconds = (double)(user + system + (unsigned long)(children_user + children_system)) / (double)sysconf(_SC_CLK_TCK);
    p->ours = false;
    return true;
}

/* Marks the descendants of this process; their parents may come after them in the list. */
static void family_mark(family *f)
{
    bool more = true;

    while (more) {
        more = false;
        for (int i = 0; i < f->n; i++)
            for (int k = 0; k < f->n && !f->all[i].ours; k++)
                if (f->all[i].parent == getpid() || (f->all[k].ours && f->all[k].pid == f->all[i].parent))
                    f->all[i].ours = more = true;
    }
}

static void family_read(family *f)
{
    DIR *d = opendir("/proc");
    const struct dirent *e;

    f->n = 0;
    while (d != NULL && f->n < MAX && (e = readdir(d)) != NULL)
        if (isdigit((unsigned char)e->d_name[0]) && process_read(&f->all[f->n], e->d_name))
            f->n++;
    if (d != NULL)
        (void)closedir(d);
    family_mark(f);
}

/* Processor time of the processes that ended. */
static double ended_seconds(void)
{
    struct rusage ended;

    (void)getrusage(RUSAGE_CHILDREN, &ended);
    return (double)(ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) +
           1e-6 * (double)(ended.ru_utime.tv_usec + ended.ru_stime.tv_usec);
}

/* Seconds that the processes of the test have used so far; `running`: one of them wants a processor now. */
static double family_seconds(const family *f, bool *running)
{
    double sum = ended_seconds();

    *running = false;
    for (int i = 0; i < f->n; i++) {
        sum += f->all[i].ours ? f->all[i].seconds : 0;
        *running = *running || (f->all[i].ours && f->all[i].state == 'R');
    }
    return sum;
}

static void family_end(const family *f)
{
    fprintf(stderr, "hangs: for %d s no process of this test wanted a processor:\n", IDLE_S);
    for (int i = 0; i < f->n; i++)
        if (f->all[i].ours)
            fprintf(stderr, "  %d %s, state %c, %.1f s of processor time\n", f->all[i].pid, f->all[i].name, f->all[i].state,
                    f->all[i].seconds);
    for (int i = 0; i < f->n; i++)
        if (f->all[i].ours)
            (void)kill(f->all[i].pid, SIGKILL);
}

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The exit status once `child` has ended; -1 while it lives. Orphans of the test come to this process, too. */
static int reap(pid_t child)
{
    int status, found = -1;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == child)
            found = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return found;
}

/* What the command told of its tests. */
typedef struct told {
    bool open, copied; /* tests were begun and not ended; a forked child ended them, too */
} told;

/* The signal that came within `seconds`; -1: none. */
static int next_signal(told *t, pid_t child, const sigset_t *awaited, int seconds)
{
    const struct timespec time = { .tv_sec = seconds };
    siginfo_t info;
    const int got = sigtimedwait(awaited, &info, &time);

    if (got == SIGRTMIN && info.si_value.sival_int == TEST_COPY_ENDS)
        t->copied = true;
    else if (got == SIGRTMIN && info.si_pid == child)
        t->open = info.si_value.sival_int == TEST_BEGINS;
    return got;
}

static int judge(told *t, int status, pid_t child, const sigset_t *awaited)
{
    while (next_signal(t, child, awaited, 0) > 0)
        ;
    if (t->copied)
        fprintf(stderr, "cut: a forked child of a test came back and ran the tests behind it once more\n");
    else if (t->open && status == 0)
        fprintf(stderr, "cut: the program ended with status 0 before all its tests were run\n");
    else
        return status;
    return CUT;
}

static int watch(pid_t child, const sigset_t *awaited)
{
    static family f;
    told t = { false, false };
    double used = 0, since = now();
    int status;

    while ((status = reap(child)) < 0) {
        bool running;
        double seconds;
        if (next_signal(&t, child, awaited, LOOK_S) > 0)
            continue;
        family_read(&f);
        seconds = family_seconds(&f, &running);
        if (running || seconds > used + IDLE_SHARE * IDLE_S) {
            used = seconds;
            since = now();
        } else if (now() > since + IDLE_S) {
            family_end(&f);
            return HANGS;
        }
    }
    return judge(&t, status, child, awaited);
}

int main(int argc, char **argv)
{
    sigset_t awaited, before;
    char own[16];
    pid_t child;
    int status;

    (void)snprintf(own, sizeof own, "%ld", (long)getpid());
    if (argc < 2 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || setenv(TEST_WATCHER, own, 1) != 0)
        return 2;
    (void)sigemptyset(&awaited);
    (void)sigaddset(&awaited, SIGCHLD);
    (void)sigaddset(&awaited, SIGRTMIN);
    (void)sigprocmask(SIG_BLOCK, &awaited, &before);
    child = fork();
    if (child == 0) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* ctest kills this process only */
        execv(argv[1], argv + 1);
        fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
        _exit(127);
    }
    status = child < 0 ? 2 : watch(child, &awaited);
    printf("%.1f s of processor time\n", ended_seconds());
    return status;
}
