/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/disk.h"

pl_code pl_fail_errno(pl_error *err, const char *path)
{
    const int why = errno;
    const bool inodes = why == ENOSPC && !pl_disk_has_inodes(path);

    return pl_fail(err, PL_EIO, "%s: %s%s", path, strerror(why), inodes ? " (no free inodes: remove some files)" : "");
}

int pl_open_regular(const char *path, pl_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* without it, opening a pipe would wait */

    if (fd < 0 || fstat(fd, &st) != 0)
        (void)pl_fail_errno(err, path);
    else if (!S_ISREG(st.st_mode))
        (void)pl_fail(err, PL_EIO, "%s: not a regular file", path);
    else
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static pl_code read_all(int fd, char *to, size_t n, const char *path, pl_error *err)
{
    for (size_t have = 0; have < n;) {
        ssize_t got = read(fd, to + have, n - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return pl_fail_errno(err, path);
        if (got == 0)
            return pl_fail(err, PL_EIO, "%s: the file became shorter while it was read", path);
        have += (size_t)got;
    }
    return PL_OK;
}

pl_code pl_file_read(pl_bytes *out, const char *path, pl_arena *mem, pl_error *err)
{
    struct stat st;
    char *data = NULL;
    pl_code code;
    int fd = pl_open_regular(path, err);

    if (fd < 0)
        return PL_EIO;
    if (fstat(fd, &st) != 0)
        code = pl_fail_errno(err, path);
    else if ((data = PL_NEW(mem, char, st.st_size + 1)) == NULL)
        code = pl_fail(err, PL_ENOMEM, "%s: %lld bytes", path, (long long)st.st_size);
    else
        code = read_all(fd, data, (size_t)st.st_size, path, err);
    (void)close(fd);
    if (code == PL_OK)
        *out = (pl_bytes){ data, (size_t)st.st_size };
    return code;
}

static int write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, data, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        data += put;
        n -= (size_t)put;
    }
    return fsync(fd);
}

pl_code pl_file_sync_name(const char *path, pl_error *err)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    pl_code code = PL_OK;
    int fd;

    (void)snprintf(dir, sizeof dir, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1, slash != NULL ? path : ".");
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return PL_OK; /* a directory that cannot be read cannot be synced */
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        code = pl_fail_errno(err, dir);
    (void)close(fd);
    return code;
}

static pl_code file_write(const char *path, pl_bytes what, bool secret, pl_error *err)
{
    char tmp[PATH_MAX];
    int fd, bad;

    /* The temporary name is fixed, so the next write replaces a file that a killed process left. */
    if (snprintf(tmp, sizeof tmp, "%s.tmp", path) >= (int)sizeof tmp)
        return pl_fail(err, PL_EIO, "%s: path too long", path);
    fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return pl_fail_errno(err, tmp);
    bad = (secret && fchmod(fd, 0600) != 0) || write_all(fd, what.data, what.len) != 0;
    if (close(fd) != 0 || bad || rename(tmp, path) != 0) {
        pl_code code = pl_fail_errno(err, path);
        (void)unlink(tmp);
        return code;
    }
    return pl_file_sync_name(path, err);
}

pl_code pl_file_write(const char *path, pl_bytes what, pl_error *err) { return file_write(path, what, false, err); }
pl_code pl_file_write_secret(const char *path, pl_bytes what, pl_error *err) { return file_write(path, what, true, err); }

bool pl_path_leaves(const char *path)
{
    for (const char *at = path; path[0] != '/' && *at != '\0'; at += strcspn(at, "/"), at += *at == '/')
        if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == '\0'))
            return true;
    return false;
}

bool pl_path_is_gone(const char *path)
{
    struct stat st;

    return stat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool pl_stat_is_same(const struct stat *a, const struct stat *b) { return a->st_dev == b->st_dev && a->st_ino == b->st_ino; }

bool pl_path_is_same(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && pl_stat_is_same(&x, &y);
}

bool pl_path_is_in(const char *path, const char *dir)
{
    const size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

pl_code pl_mkdirs(const char *path, pl_error *err)
{
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (n >= sizeof part)
        return pl_fail(err, PL_EIO, "%s: path too long", path);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return pl_fail_errno(err, part);
    }
    return PL_OK;
}
