/* SPDX-License-Identifier: Apache-2.0 */
/* tests/crash/shim.c - a bad disk, for LD_PRELOAD (faults.py, power.py).
 *
 *   SHIM_ROOT  files below this folder are watched; without it none
 *   SHIM_LOG   a file to which every call that changes something is appended, in order
 *   SHIM_FAIL  N:ERRNO, N:ERRNO:on, N:short: the N-th such call fails, from then on all do,
 *              or a write takes half of its bytes
 *
 * An entry of the log is `struct entry`, the path, the bytes written. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN_NEW = 1, WRITE, TRUNCATE, SYNC, RENAME, UNLINK, MKDIR, LINK, FAILED, ALLOCATE };

struct entry {
    uint32_t what, path_len;
    uint64_t inode, at,
        n; /* n bytes of data follow the path; TRUNCATE, ALLOCATE: n is a length, RENAME, LINK: of the second path */
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_len;
static int log_fd = -1, fail_errno;
static long fail_at, calls;
static bool fail_short, fail_on;

static const struct {
    const char *name;
    int number;
} errors[] = { { "ENOSPC", ENOSPC }, { "EIO", EIO }, { "EDQUOT", EDQUOT } };

#define REAL(name) real_##name = (real_##name ? real_##name : (__typeof__(real_##name))dlsym(RTLD_NEXT, #name))
static int (*real_open)(const char *, int, ...);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_rename)(const char *, const char *);
static int (*real_link)(const char *, const char *);
static int (*real_unlink)(const char *);
static int (*real_mkdir)(const char *, mode_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_posix_fallocate)(int, off_t, off_t);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);

__attribute__((constructor)) static void begin(void)
{
    const char *under = getenv("SHIM_ROOT"), *fail = getenv("SHIM_FAIL"), *log = getenv("SHIM_LOG");
    char word[16] = "", on[8] = "";

    REAL(open), REAL(fsync), REAL(fdatasync), REAL(rename), REAL(link), REAL(unlink), REAL(mkdir);
    REAL(ftruncate), REAL(posix_fallocate), REAL(write), REAL(pwrite);
    if (under == NULL || realpath(under, root) == NULL)
        return;
    root_len = strlen(root);
    if (log != NULL)
        log_fd = real_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fail != NULL && sscanf(fail, "%ld:%15[^:]:%7s", &fail_at, word, on) < 2)
        fail_at = 0;
    fail_short = strcmp(word, "short") == 0;
    fail_on = strcmp(on, "on") == 0;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        fail_errno = strcmp(word, errors[i].name) == 0 ? errors[i].number : fail_errno;
}

static bool is_below(const char *path) { return root_len > 0 && strncmp(path, root, root_len) == 0 && path[root_len] == '/'; }

/* The path of a descriptor; false: it is not watched. */
static bool path_of(int fd, char path[PATH_MAX])
{
    char link[64];
    ssize_t n;

    if (root_len == 0)
        return false;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
    return is_below(path);
}

/* The same path from the root; its folder must be there. */
static bool whole_path(const char *path, char whole[PATH_MAX])
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');

    if (root_len == 0)
        return false;
    (void)snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (realpath(folder, whole) == NULL || strlen(whole) + strlen(path) + 2 > PATH_MAX)
        return false;
    strcat(strcat(whole, "/"), slash ? slash + 1 : path);
    return is_below(whole);
}

static uint64_t inode_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Called with the lock held. */
static void note(uint32_t what, const char *path, uint64_t inode, uint64_t at, const void *data, uint64_t n)
{
    const bool bytes = what == WRITE || what == RENAME || what == LINK || what == FAILED;
    struct entry e = { what, (uint32_t)strlen(path), inode, at, n };
    struct iovec part[3] = { { &e, sizeof e }, { (void *)path, e.path_len }, { (void *)data, bytes ? n : 0 } };

    if (log_fd >= 0)
        (void)writev(log_fd, part, 3);
}

/* Takes the lock. True: this call must fail; errno is set and the lock is released. */
static bool fails(const char *call, const char *path, bool can_be_short)
{
    bool now;

    (void)pthread_mutex_lock(&one_at_a_time);
    if (fail_short && !can_be_short)
        return false;
    calls++;
    now = fail_at > 0 && (calls == fail_at || (fail_on && calls > fail_at));
    if (now)
        note(FAILED, path, 0, (uint64_t)calls, call, strlen(call));
    if (!now || fail_short)
        return false;
    (void)pthread_mutex_unlock(&one_at_a_time);
    errno = fail_errno;
    return true;
}

static void done(void)
{
    int saved = errno;
    (void)pthread_mutex_unlock(&one_at_a_time);
    errno = saved;
}

static size_t take(size_t n) { return fail_short && calls == fail_at && n > 1 ? n / 2 : n; }

static int open_watched(const char *path, int flags, mode_t mode)
{
    char whole[PATH_MAX];
    bool is_new;
    int fd;

    if (!(flags & (O_CREAT | O_TRUNC)) || !whole_path(path, whole))
        return real_open(path, flags, mode);
    is_new = (flags & O_CREAT) && access(whole, F_OK) != 0;
    if (is_new && fails("open", whole, false))
        return -1;
    if (!is_new)
        (void)pthread_mutex_lock(&one_at_a_time);
    fd = real_open(path, flags, mode);
    if (fd >= 0 && is_new)
        note(OPEN_NEW, whole, inode_of(fd), 0, NULL, 0);
    else if (fd >= 0 && (flags & O_TRUNC))
        note(TRUNCATE, whole, inode_of(fd), 0, NULL, 0);
    done();
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    mode_t mode;

    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
    return open_watched(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list more;
    mode_t mode;

    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
    return open_watched(path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t n)
{
    char path[PATH_MAX];
    ssize_t put;
    off_t at;

    if (!path_of(fd, path))
        return real_write(fd, data, n);
    if (fails("write", path, true))
        return -1;
    at = lseek(fd, 0, SEEK_CUR);
    put = real_write(fd, data, take(n));
    if (put > 0)
        note(WRITE, path, inode_of(fd), (uint64_t)at, data, (uint64_t)put);
    done();
    return put;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    char path[PATH_MAX];
    ssize_t put;

    if (!path_of(fd, path))
        return real_pwrite(fd, data, n, at);
    if (fails("pwrite", path, true))
        return -1;
    put = real_pwrite(fd, data, take(n), at);
    if (put > 0)
        note(WRITE, path, inode_of(fd), (uint64_t)at, data, (uint64_t)put);
    done();
    return put;
}

ssize_t pwrite64(int fd, const void *data, size_t n, off_t at) { return pwrite(fd, data, n, at); }

static int sync_watched(int fd, const char *call, int (*real)(int))
{
    char path[PATH_MAX];
    int rc;

    if (root_len > 0 && path_of(fd, path) == false && strcmp(path, root) != 0)
        return real(fd);
    if (root_len == 0)
        return real(fd);
    if (fails(call, path, false))
        return -1;
    rc = real(fd);
    if (rc == 0)
        note(SYNC, path, inode_of(fd), 0, NULL, 0);
    done();
    return rc;
}

int fsync(int fd) { return sync_watched(fd, "fsync", real_fsync); }
int fdatasync(int fd) { return sync_watched(fd, "fdatasync", real_fdatasync); }

int ftruncate(int fd, off_t n)
{
    char path[PATH_MAX];
    int rc;

    if (!path_of(fd, path))
        return real_ftruncate(fd, n);
    if (fails("ftruncate", path, false))
        return -1;
    rc = real_ftruncate(fd, n);
    if (rc == 0)
        note(TRUNCATE, path, inode_of(fd), 0, NULL, (uint64_t)n);
    done();
    return rc;
}

int ftruncate64(int fd, off_t n) { return ftruncate(fd, n); }

int posix_fallocate(int fd, off_t at, off_t n)
{
    char path[PATH_MAX];
    int rc;

    if (!path_of(fd, path))
        return real_posix_fallocate(fd, at, n);
    if (fails("posix_fallocate", path, false))
        return errno;
    rc = real_posix_fallocate(fd, at, n);
    if (rc == 0)
        note(ALLOCATE, path, inode_of(fd), 0, NULL, (uint64_t)(at + n));
    done();
    return rc;
}

int posix_fallocate64(int fd, off_t at, off_t n) { return posix_fallocate(fd, at, n); }

static int two_names(const char *from, const char *to, uint32_t what, const char *call, int (*real)(const char *, const char *))
{
    char a[PATH_MAX], b[PATH_MAX];
    int rc;

    if (!whole_path(from, a) || !whole_path(to, b))
        return real(from, to);
    if (fails(call, a, false))
        return -1;
    rc = real(from, to);
    if (rc == 0)
        note(what, a, 0, 0, b, strlen(b));
    done();
    return rc;
}

int rename(const char *from, const char *to) { return two_names(from, to, RENAME, "rename", real_rename); }
int link(const char *from, const char *to) { return two_names(from, to, LINK, "link", real_link); }

int unlink(const char *path)
{
    char whole[PATH_MAX];
    int rc;

    if (!whole_path(path, whole))
        return real_unlink(path);
    (void)pthread_mutex_lock(&one_at_a_time); /* on a full disk it works */
    rc = real_unlink(path);
    if (rc == 0)
        note(UNLINK, whole, 0, 0, NULL, 0);
    done();
    return rc;
}

int mkdir(const char *path, mode_t mode)
{
    char whole[PATH_MAX];
    int rc;

    if (!whole_path(path, whole) || access(whole, F_OK) == 0)
        return real_mkdir(path, mode);
    if (fails("mkdir", whole, false))
        return -1;
    rc = real_mkdir(path, mode);
    if (rc == 0)
        note(MKDIR, whole, 0, 0, NULL, 0);
    done();
    return rc;
}
