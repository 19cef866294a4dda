/* tests/twin/requests.h - counts every request for memory, or for a thread, of a program's own code, and refuses one of them. It
 * is included once, and the program linked with --wrap for the five functions (tests/train.cmake). */
#ifndef TESTS_REQUESTS_H
#define TESTS_REQUESTS_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_long n_requests;
static atomic_long refused; /* the number of the request that is refused; 0: none */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);

void *__wrap_malloc(size_t n) { return ++n_requests == refused ? NULL : __real_malloc(n); }

void *__wrap_calloc(size_t n, size_t size) { return ++n_requests == refused ? NULL : __real_calloc(n, size); }

void *__wrap_realloc(void *p, size_t n) { return ++n_requests == refused ? NULL : __real_realloc(p, n); }

void *__wrap_aligned_alloc(size_t align, size_t n) { return ++n_requests == refused ? NULL : __real_aligned_alloc(align, n); }

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
    return ++n_requests == refused ? EAGAIN : __real_pthread_create(t, a, f, arg);
}

#endif
