/* tests/unit/calls.h - records the file operations of a program, in order: link it with
 * -Wl,--wrap=fsync,--wrap=rename,--wrap=nanosleep and include this once. SQLite's own calls are not seen. */
#ifndef CALLS_H
#define CALLS_H

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char calls[1000];       /* "sync a.tmp, rename a, sync folder, "; names without their folder */
static const char *calls_fail; /* fsync of this name fails with EIO; NULL: none */
static int calls_slept;        /* how often nanosleep was called */
static void (*calls_on_sleep)(void);

int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __real_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);

static void calls_add(const char *what, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = strlen(calls);

    (void)snprintf(calls + n, sizeof calls - n, "%s %s, ", what, slash != NULL ? slash + 1 : path);
}

int __wrap_fsync(int fd)
{
    char link[64], path[PATH_MAX];
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    calls_add("sync", path);
    if (calls_fail != NULL && strcmp(strrchr(path, '/') + 1, calls_fail) == 0) {
        errno = EIO;
        return -1;
    }
    return __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    calls_add("rename", to);
    return __real_rename(from, to);
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    calls_slept++;
    if (calls_on_sleep != NULL)
        calls_on_sleep();
    return __real_nanosleep(t, left);
}

/* Forgets the recorded calls. fail: the name whose fsync must fail, or NULL. */
static void calls_begin(const char *fail)
{
    calls[0] = '\0';
    calls_fail = fail;
    calls_slept = 0;
    calls_on_sleep = NULL;
}

/* "sync NAME.tmp, rename NAME, sync FOLDER, ", the order that keeps a file through a power cut. */
static const char *calls_durable(const char *folder, const char *name)
{
    static char want[300];
    const char *slash = strrchr(folder, '/');

    (void)snprintf(want, sizeof want, "sync %s.tmp, rename %s, sync %s, ", name, name, slash != NULL ? slash + 1 : folder);
    return want;
}

#endif
