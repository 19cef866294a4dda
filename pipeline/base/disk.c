/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/disk.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Local file systems, by the magic numbers of statfs(2) and linux/magic.h. Any
 * other is treated as a network file system: slower, but always safe. */
static const unsigned long local_fs[] = {
    0xef53,     /* ext2, ext3, ext4 */
    0x58465342, /* xfs              */
    0x9123683e, /* btrfs            */
    0x2fc12fc1, /* zfs              */
    0xf2f52010, /* f2fs             */
    0xca451a4e, /* bcachefs         */
    0x3153464a, /* jfs              */
    0x52654973, /* reiserfs         */
    0x01021994, /* tmpfs            */
    0x858458f6, /* ramfs            */
    0x794c7630, /* overlay          */
};

/* The path itself, or the nearest directory above it that exists. */
static void nearest_existing(const char *path, char out[PATH_MAX])
{
    (void)snprintf(out, PATH_MAX, "%s", path[0] ? path : ".");
    while (access(out, F_OK) != 0) {
        char *slash = strrchr(out, '/');
        if (slash == NULL)
            (void)snprintf(out, PATH_MAX, ".");
        else
            slash[slash == out ? 1 : 0] = '\0';
        if (slash == NULL || slash == out)
            break;
    }
}

bool pl_is_network_fs(const char *path)
{
    char at[PATH_MAX];
    struct statfs fs;

    nearest_existing(path, at);
    if (statfs(at, &fs) != 0)
        return true;
    for (size_t i = 0; i < sizeof local_fs / sizeof local_fs[0]; i++)
        if (((unsigned long)fs.f_type & 0xffffffffUL) == local_fs[i])
            return false;
    return true;
}

double pl_disk_free(const char *path)
{
    char at[PATH_MAX];
    struct statvfs fs;

    nearest_existing(path, at);
    return statvfs(at, &fs) == 0 ? (double)fs.f_bavail * (double)fs.f_frsize : -1;
}

bool pl_disk_has_inodes(const char *path)
{
    char at[PATH_MAX];
    struct statvfs fs;

    nearest_existing(path, at);
    return statvfs(at, &fs) != 0 || fs.f_files == 0 || fs.f_favail > 0;
}
