/* SPDX-License-Identifier: Apache-2.0
 * Batches made ahead: the right ones, left alone while they are used, errors in their place. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "models/training/prefetch.h"

enum { MAX = 8, BAD = 99 };

typedef struct source {
    float node[2][MAX];
    atomic_int n_made;
    atomic_bool elsewhere; /* a batch was made by another thread than the test's */
    pthread_t here;
} source;

static pl_code source_batch(void *ctx, int slot, nn_batch *out, nn_which which, pl_error *err)
{
    source *s = ctx;
    pl_code code = PL_OK;

    for (int32_t i = 0; i < which.n; i++) {
        s->node[slot][i] = (float)which.at[i];
        if (which.at[i] == BAD)
            code = pl_fail(err, PL_EINPUT, "bad molecule");
    }
    *out = (nn_batch){ .n_graphs = which.n, .node = s->node[slot] };
    if (!pthread_equal(pthread_self(), s->here))
        s->elsewhere = true;
    s->n_made++;
    return code;
}

static void made_wait(const source *s, int n)
{
    for (int i = 0; i < 60000 && s->n_made < n; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_int_equal(s->n_made, n);
}

static void holds(const nn_batch *b, nn_which which)
{
    assert_int_equal(b->n_graphs, which.n);
    for (int32_t i = 0; i < which.n; i++)
        assert_true(b->node[i] == (float)which.at[i]);
}

static void the_next_batch_is_made_while_this_one_is_used(void **state)
{
    static const int64_t number[] = { 5, 6, 7, 8, 9, 1 };
    const nn_which a = { .at = number, .n = 3 }, b = { .at = number + 3, .n = 2 }, c = { .at = number + 5, .n = 1 },
                   none = { .at = number, .n = 0 };
    source s = { .here = pthread_self() };
    const nn_samples samples = { .ctx = &s, .n = 10, .batch = source_batch };
    nn_prefetch *ahead = nn_prefetch_new();
    nn_batch out;

    (void)state;
    assert_int_equal(nn_prefetch_take(ahead, &out, &samples, a, b, NULL), PL_OK);
    made_wait(&s, 2);
    holds(&out, a);
    assert_int_equal(nn_prefetch_take(ahead, &out, &samples, b, c, NULL), PL_OK);
    made_wait(&s, 3);
    holds(&out, b);
    assert_true(s.elsewhere);
    assert_int_equal(nn_prefetch_take(ahead, &out, &samples, a, none, NULL), PL_OK); /* not the batch that was begun */
    made_wait(&s, 4);
    holds(&out, a);
    assert_int_equal(nn_prefetch_take(ahead, &out, &samples, a, b, NULL), PL_OK);
    made_wait(&s, 6);
    nn_which noisy = b;
    noisy.noise = 0.1f;
    assert_int_equal(nn_prefetch_take(ahead, &out, &samples, noisy, none, NULL), PL_OK); /* the one begun has no noise */
    made_wait(&s, 7);
    nn_prefetch_free(ahead);
}

static void an_error_comes_with_its_own_batch(void **state)
{
    static const int64_t number[] = { 5, BAD, 7 };
    const nn_which a = { .at = number, .n = 1 }, bad = { .at = number + 1, .n = 1 }, c = { .at = number + 2, .n = 1 },
                   none = { .at = number, .n = 0 };
    source s = { .here = pthread_self() };
    const nn_samples samples = { .ctx = &s, .n = 3, .batch = source_batch };
    nn_prefetch *ahead = nn_prefetch_new();
    pl_error err = { 0 };
    nn_batch out;

    (void)state;
    assert_int_equal(nn_prefetch_take(ahead, &out, &samples, a, bad, &err), PL_OK);
    assert_int_equal(nn_prefetch_take(ahead, &out, &samples, bad, c, &err), PL_EINPUT);
    assert_string_equal(err.text, "bad molecule");
    assert_int_equal(nn_prefetch_take(ahead, &out, &samples, c, none, &err), PL_OK);
    holds(&out, c);
    assert_int_equal(nn_prefetch_take(ahead, &out, &samples, a, c, &err), PL_OK); /* freed while a batch is being made */
    nn_prefetch_free(ahead);
    nn_prefetch_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_batch_is_made_while_this_one_is_used),
        cmocka_unit_test(an_error_comes_with_its_own_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
