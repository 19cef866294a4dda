/* tests/unit/long_name.h - paths of any length that need no deep folders. */
#ifndef LONG_NAME_H
#define LONG_NAME_H

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* "DIR/./././NAME" of n bytes; it lasts until the next call. */
static const char *long_name(const char *dir, const char *name, size_t n)
{
    static char text[PATH_MAX + 300];
    size_t at = (size_t)snprintf(text, sizeof text, "%s/", dir);

    for (; at + 2 + strlen(name) <= n; at += 2)
        memcpy(text + at, "./", 2);
    if (at + strlen(name) < n)
        text[at++] = '/';
    (void)snprintf(text + at, sizeof text - at, "%s", name);
    assert_int_equal(strlen(text), n);
    return text;
}

#endif
