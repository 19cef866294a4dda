/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/held.h - memory that a function keeps. Include it after cmocka.h. */
#ifndef TESTS_HELD_H
#define TESTS_HELD_H

#include <malloc.h>

/* Fails if each call of f leaves memory behind: the first calls fill what is kept for good and the heap's own lists. With
 * AddressSanitizer, which has a heap of its own, the sanitizer looks for that. */
static void assert_holds_nothing(void (*f)(void *ctx), void *ctx)
{
    enum { FIRST = 3, CALLS = 40, SMALLEST = 16 }; /* bytes of the smallest piece */
    size_t before;

    (void)mallopt(M_ARENA_MAX, 1);
    for (int i = 0; i < FIRST; i++)
        f(ctx);
    before = mallinfo2().uordblks;
    for (int i = 0; i < CALLS; i++)
        f(ctx);
    assert_in_range(mallinfo2().uordblks, 0, before + (CALLS - 1) * SMALLEST);
}

#endif
