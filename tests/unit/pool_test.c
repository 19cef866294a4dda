/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of workers and threads: order, a stop, threads that cannot be started, signals. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/par.h"
#include "tests/unit/locks.h"

enum { SLOTS = 8 };

typedef struct pool_test {
    int64_t in[SLOTS], out[SLOTS];
    int order[SLOTS], n_order; /* of slots, as one worker computed them */
    _Atomic bool closed, waits;
} pool_test;

static pl_code pool_compute(void *ctx, int worker, int slot, pl_error *err)
{
    pool_test *t = ctx;

    (void)worker;
    if (t->in[slot] % 3 == 0)
        (void)usleep(300);
    t->out[slot] = t->in[slot] * 2;
    return t->in[slot] == 50 ? pl_fail(err, PL_EINPUT, "compute %d", (int)t->in[slot]) : PL_OK;
}

/* Item i lies in slot i % SLOTS; taken in order. */
static void every_slot_gets_its_own_result_with_any_workers(void **unused)
{
    (void)unused;
    for (int workers = 1; workers <= 5; workers++) {
        pool_test t = { .n_order = 0 };
        pl_pool *p = NULL;
        int64_t put = 0, taken = 0;
        int failed = 0;

        assert_int_equal(pl_pool_open(&p, workers, SLOTS, pool_compute, &t, NULL), PL_OK);
        while (taken < 200) {
            pl_error err = { 0 };
            pl_code code = PL_OK;
            for (; put < 200 && put - taken < SLOTS; put++) {
                t.in[put % SLOTS] = put;
                pl_pool_put(p, (int)(put % SLOTS), put);
            }
            while (!pl_pool_take(p, (int)(taken % SLOTS), &code, &err))
                pl_pool_wait(p);
            assert_int_equal(t.out[taken % SLOTS], 2 * taken);
            assert_int_equal(code, taken == 50 ? PL_EINPUT : PL_OK);
            assert_string_equal(err.text, taken == 50 ? "compute 50" : "");
            failed += code != PL_OK;
            taken++;
        }
        assert_false(pl_pool_take(p, 0, NULL, NULL)); /* the result has already been taken */
        assert_int_equal(failed, 1);
        pl_pool_close(p);
    }
}

static pl_code pool_note(void *ctx, int worker, int slot, pl_error *err)
{
    pool_test *t = ctx;

    (void)worker, (void)err;
    t->order[t->n_order++] = slot;
    t->waits = slot == 0;
    while (slot == 0 && !t->closed)
        (void)usleep(100);
    return PL_OK;
}

static void the_smallest_rank_is_computed_first(void **unused)
{
    static const int64_t rank[SLOTS] = { 9, 5, 7, 1, (int64_t)1 << 50, 2, -3, 6 };
    static const int want[SLOTS] = { 0, 6, 3, 5, 1, 7, 2, 4 };
    pool_test t = { .n_order = 0 };
    pl_pool *p = NULL;
    pl_code code;

    (void)unused;
    assert_int_equal(pl_pool_open(&p, 1, SLOTS, pool_note, &t, NULL), PL_OK);
    for (int i = 0; i < SLOTS; i++) {
        pl_pool_put(p, i, rank[i]);
        while (!t.waits && i == 0) /* the only worker computes it while the others wait */
            (void)usleep(100);
    }
    t.closed = true;
    for (int i = 0; i < SLOTS; i++)
        while (!pl_pool_take(p, want[i], &code, NULL))
            pl_pool_wait(p);
    assert_memory_equal(t.order, want, sizeof want);
    pl_pool_close(p);
}

static void closing_drops_what_waits(void **unused)
{
    pool_test t = { .closed = true };
    pl_pool *p = NULL;

    (void)unused;
    pl_pool_close(NULL);
    for (int n = 0; n < 50; n++) {
        t.n_order = 0;
        assert_int_equal(pl_pool_open(&p, 1, SLOTS, pool_note, &t, NULL), PL_OK);
        for (int i = 0; i < SLOTS; i++)
            pl_pool_put(p, i, i);
        pl_pool_close(p);
        for (int i = 0; i < t.n_order; i++)
            assert_int_equal(t.order[i], i);
    }
}

/* ---- linked with -Wl,--wrap=pthread_create ---- */

static int threads_left = -1; /* that may be started; -1: any number */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*work)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*work)(void *), void *ctx);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*work)(void *), void *ctx)
{
    if (threads_left == 0)
        return EAGAIN;
    threads_left -= threads_left > 0;
    return __real_pthread_create(thread, attr, work, ctx);
}

static pl_code note_worker(void *ctx, int worker, int slot, pl_error *err)
{
    (void)err;
    ((int *)ctx)[slot] = worker;
    return PL_OK;
}

static void a_pool_does_with_fewer_threads_but_not_without_any(void **unused)
{
    enum { N_SLOTS = 5 };
    pl_pool *p = NULL;
    pl_error err = { 0 };
    int by[N_SLOTS], n_taken = 0;

    (void)unused;
    threads_left = 0;
    assert_int_equal(pl_pool_open(&p, 3, N_SLOTS, note_worker, by, &err), PL_ENOMEM);
    assert_string_equal(err.text, "no thread could be started: out of memory");
    assert_null(p);
    threads_left = 1;
    assert_int_equal(pl_pool_open(&p, 3, N_SLOTS, note_worker, by, &err), PL_OK);
    threads_left = -1;
    memset(by, -1, sizeof by);
    for (int i = 0; i < N_SLOTS; i++)
        pl_pool_put(p, i, i);
    while (n_taken < N_SLOTS) {
        pl_pool_wait(p);
        for (int i = 0; i < N_SLOTS; i++) {
            pl_code code = PL_EBUG;
            if (!pl_pool_take(p, i, &code, &err))
                continue;
            assert_int_equal(code, PL_OK);
            assert_int_equal(by[i], 0); /* the one that could be started */
            n_taken++;
        }
    }
    pl_pool_close(p);
}

static pl_code take_time(void *ctx, int worker, int slot, pl_error *err)
{
    const struct timespec moment = { 0, 20000000 };

    (void)worker, (void)err;
    if (slot > 0)
        (void)nanosleep(&moment, NULL);
    *(int *)ctx += 1;
    return PL_OK;
}

/* What is computed is told once. */
static void who_waits_for_a_pool_waits_for_what_is_new(void **unused)
{
    pl_pool *p = NULL;
    int n_computed = 0;

    (void)unused;
    assert_int_equal(pl_pool_open(&p, 1, 2, take_time, &n_computed, NULL), PL_OK);
    for (int slot = 0; slot < 2; slot++) {
        pl_code code = PL_EBUG;
        pl_pool_put(p, slot, slot);
        pl_pool_wait(p);
        assert_true(pl_pool_take(p, slot, &code, NULL));
        assert_int_equal(code, PL_OK);
    }
    pl_pool_close(p);
    assert_int_equal(n_computed, 2);
}

static void *look_at_signals(void *blocked) { return (void)pthread_sigmask(SIG_SETMASK, NULL, blocked), NULL; }

/* It takes no signals from the thread that handles them, and its condition has the steady clock: it never ends too early. */
static void a_thread_is_started_without_signals_and_with_a_clock(void **unused)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t wake;
    pthread_t thread;
    sigset_t blocked, mine;
    struct timespec end, now;
    int rc = 0;

    (void)unused;
    memset(&wake, 0, sizeof wake);
    threads_left = 0;
    assert_false(pl_thread_start(&thread, &wake, look_at_signals, &blocked));
    threads_left = -1;
    (void)sigemptyset(&blocked);
    assert_true(pl_thread_start(&thread, &wake, look_at_signals, &blocked));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGALRM) == 1);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mine);
    assert_int_equal(sigismember(&mine, SIGTERM), 0);
    (void)pthread_mutex_lock(&lock);
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += 20000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    while (rc == 0)
        rc = pthread_cond_timedwait(&wake, &lock, &end);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)pthread_mutex_unlock(&lock);
    assert_int_equal(rc, ETIMEDOUT);
    assert_true(now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec));
    (void)pthread_cond_destroy(&wake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_does_with_fewer_threads_but_not_without_any),
        cmocka_unit_test(who_waits_for_a_pool_waits_for_what_is_new),
        cmocka_unit_test(a_thread_is_started_without_signals_and_with_a_clock),
        cmocka_unit_test(every_slot_gets_its_own_result_with_any_workers),
        cmocka_unit_test(the_smallest_rank_is_computed_first),
        cmocka_unit_test(closing_drops_what_waits),
        locks_test,
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
