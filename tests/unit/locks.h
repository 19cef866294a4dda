/* tests/unit/locks.h - counts threads that give back a mutex that they do not hold, wait for a condition without it or
 * end with one.
 *
 * For programs linked with -Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_unlock,--wrap=pthread_cond_wait. Include it once, and
 * put locks_test at the end of the list of tests. */
#ifndef TESTS_LOCKS_H
#define TESTS_LOCKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { LOCKS_HELD = 16 };

static _Thread_local const pthread_mutex_t *locks_held[LOCKS_HELD];
static _Thread_local int locks_n;
static atomic_int locks_taken, locks_wrong, locks_open;

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __real_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock);

static int locks_find(const pthread_mutex_t *lock)
{
    int at = locks_n - 1;

    while (at >= 0 && locks_held[at] != lock)
        at--;
    if (at < 0)
        (void)atomic_fetch_add(&locks_wrong, 1);
    return at;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    const int rc = __real_pthread_mutex_lock(lock);

    (void)atomic_fetch_add(&locks_taken, 1);
    (void)atomic_fetch_add(&locks_open, 1);
    if (locks_n < LOCKS_HELD)
        locks_held[locks_n++] = lock;
    return rc;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    const int at = locks_find(lock);

    if (at >= 0)
        locks_held[at] = locks_held[--locks_n];
    (void)atomic_fetch_sub(&locks_open, 1);
    return __real_pthread_mutex_unlock(lock);
}

int __wrap_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock)
{
    (void)locks_find(lock);
    return __real_pthread_cond_wait(wake, lock);
}

static void every_mutex_is_held_until_it_is_given_back(void **unused)
{
    (void)unused;
    assert_true(atomic_load(&locks_taken) > 0);
    assert_int_equal(atomic_load(&locks_wrong), 0);
    assert_int_equal(locks_n, 0);
    assert_int_equal(atomic_load(&locks_open), 0); /* no thread has ended with one */
}

#define locks_test cmocka_unit_test(every_mutex_is_held_until_it_is_given_back)

#endif
