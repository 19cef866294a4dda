/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/held.h - memory that a function keeps. Include it after cmocka.h. */
#ifndef TESTS_HELD_H
#define TESTS_HELD_H

#include <malloc.h>

/* Bytes of the heap that are in use; 0 where the C library does not tell. */
static inline size_t held_bytes(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

/* Fails if each call of f leaves memory behind: the first calls fill what is kept for good and the heap's own lists. With
 * AddressSanitizer, which has a heap of its own, the sanitizer looks for that. */
static inline void assert_holds_nothing(void (*f)(void *ctx), void *ctx)
{
    enum { FIRST = 8, CALLS = 40, SMALLEST = 16 }; /* bytes of the smallest piece */
    size_t before;

#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, 1); /* a thread that comes takes no new one */
#endif
    for (int i = 0; i < FIRST; i++)
        f(ctx);
    before = held_bytes();
    for (int i = 0; i < CALLS; i++)
        f(ctx);
    assert_in_range(held_bytes(), 0, before + (CALLS - 1) * SMALLEST);
}

#endif
