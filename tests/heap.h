/* SPDX-License-Identifier: Apache-2.0 */
/* tests/heap.h - refuses requests of the heap. The test is linked with --wrap for malloc, calloc, realloc and strdup. */
#ifndef TESTS_HEAP_H
#define TESTS_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_long heap_countdown; /* requests of the heap until the one that is refused; 0: none */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *s);

static bool heap_refuses(void) { return atomic_load(&heap_countdown) > 0 && atomic_fetch_sub(&heap_countdown, 1) == 1; }

void *__wrap_malloc(size_t size) { return heap_refuses() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t n, size_t size) { return heap_refuses() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *old, size_t size) { return heap_refuses() ? NULL : __real_realloc(old, size); }
char *__wrap_strdup(const char *s) { return heap_refuses() ? NULL : __real_strdup(s); }

#endif
