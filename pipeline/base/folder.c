/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/file.h"

enum { DEPTH_MAX = 256 };

/* A folder that may have lost its permissions, opened without following a link. */
static DIR *open_folder(int parent, const char *name, bool open_up)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;
    int fd;
    DIR *dir;

    if (open_up && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0700) != 0700)
        (void)fchmodat(parent, name, 0700, 0);
    fd = openat(parent, name, how);
    dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && fd >= 0)
        (void)close(fd);
    return dir;
}

static bool is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

static bool remove_at(int parent, const char *name, int depth)
{
    DIR *dir;
    struct dirent *e;

    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return true;
    dir = depth < DEPTH_MAX ? open_folder(parent, name, true) : NULL;
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (!is_dots(e->d_name))
            (void)remove_at(dirfd(dir), e->d_name, depth + 1);
    if (dir != NULL)
        (void)closedir(dir);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

pl_code pl_folder_remove(const char *path, pl_error *err)
{
    return remove_at(AT_FDCWD, path, 0) ? PL_OK : pl_fail_errno(err, path);
}

static double bytes_at(int parent, const char *name, int depth)
{
    DIR *dir = depth < DEPTH_MAX ? open_folder(parent, name, false) : NULL;
    struct dirent *e;
    struct stat st;
    double sum = 0;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (is_dots(e->d_name) || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        sum += S_ISDIR(st.st_mode) ? bytes_at(dirfd(dir), e->d_name, depth + 1) : (double)st.st_blocks * 512;
    }
    if (dir != NULL)
        (void)closedir(dir);
    return sum;
}

double pl_folder_bytes(const char *path) { return bytes_at(AT_FDCWD, path, 0); }
