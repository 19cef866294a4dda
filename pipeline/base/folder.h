/* pipeline/base/folder.h - a folder with all that is in it. Symbolic links are not followed. */
#ifndef PL_BASE_FOLDER_H
#define PL_BASE_FOLDER_H

#include "pipeline/base/error.h"

/* Removes it; one that does not exist is fine. Folders in it without permissions are opened up first. PL_EIO: something is left. */
pl_code pl_folder_remove(const char *path, pl_error *err);

/* The bytes on the disk of the files in it, as far as they can be seen: the owner may change it meanwhile. */
double pl_folder_bytes(const char *path);

#endif
