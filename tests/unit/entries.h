/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/entries.h - counts what is in a folder; in /proc/self/fd: open files, and one of its own. Include it after cmocka.h. */
#ifndef TESTS_ENTRIES_H
#define TESTS_ENTRIES_H

#include <dirent.h>
#include <string.h>

/* Entries of a folder, but for . and .. */
static inline int count_in(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    (void)closedir(d);
    return n;
}

#endif
