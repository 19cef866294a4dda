/* SPDX-License-Identifier: Apache-2.0 */
/* tests/told.h - what a message without memory must say. */
#ifndef TESTS_TOLD_H
#define TESTS_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether an error tells for what there was no memory: pl_fail adds ": out of memory" to a text without that word. */
static inline bool tells_for_what(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *end = strstr(text, ": out of memory"), *at = end;

    while (at != NULL && at > text && at[-1] != '\n' && !(at[-1] == ' ' && at - 2 >= text && at[-2] == ':'))
        at--;
    for (; at != NULL && at < end; at += strspn(at, letters) + 1)
        if (strspn(at, letters) >= 3)
            return true;
    return end == NULL;
}

#endif
