/* pipeline/base/place.h - where this code lies on the disk: what belongs to it is found from there. */
#ifndef PL_BASE_PLACE_H
#define PL_BASE_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* The folder of the running program, or, if this code is part of a shared library, of that library; links are followed. False: it
 * is unknown, or does not fit; then dir is "". */
bool pl_own_dir(char *dir, size_t size);

/* Whether this code is part of a shared library in a program of others. */
bool pl_is_guest(void);

#endif
