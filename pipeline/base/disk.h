/* pipeline/base/disk.h - the file system that a path lies on. */
#ifndef PL_DISK_H
#define PL_DISK_H

#include <stdbool.h>

bool pl_is_network_fs(const char *path);   /* of the nearest directory that exists; unknown types count as network */
double pl_disk_free(const char *path);     /* bytes, -1 if unknown */
bool pl_disk_has_inodes(const char *path); /* false: no file can be made there, whatever is free */

#endif
