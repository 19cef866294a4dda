/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/training/shards.h"
#include "models/training/train_state.h"

static void shares_follow_each_other_and_differ_by_one(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 40; n++)
        for (int size = 1; size < 12; size++) {
            int64_t at = 0;
            for (int r = 0; r < size; r++) {
                nn_span s = nn_share(n, size, r);
                assert_int_equal(s.first, at);
                assert_true(s.n == n / size || s.n == n / size + 1);
                at += s.n;
            }
            assert_int_equal(at, n);
        }
}

enum { N = 97 };

/* Every molecule once, each shard where nn_shards_part says, with equal counts and about equal edges. */
static void check_deal(int32_t n, int shards, const int32_t *edges)
{
    int64_t which[N], out[N], at = 0, min = INT64_MAX, max = 0;
    nn_card scratch[N];
    bool seen[N] = { false };
    int32_t largest = 0;

    for (int32_t i = 0; i < n; i++) {
        which[i] = n - 1 - i;
        largest = edges[i] > largest ? edges[i] : largest;
    }
    nn_shards_deal(out, which, n, edges, shards, scratch);
    for (int s = 0; s < shards; s++) {
        nn_span part = nn_shards_part(n, shards, s);
        int64_t sum = 0;
        assert_int_equal(part.first, at);
        assert_true(part.n == n / shards || part.n == n / shards + 1);
        for (int64_t i = part.first; i < part.first + part.n; i++) {
            assert_false(seen[out[i]]);
            seen[out[i]] = true;
            sum += edges[out[i]];
        }
        at += part.n;
        min = sum < min ? sum : min;
        max = sum > max ? sum : max;
    }
    assert_int_equal(at, n);
    assert_true(max - min <= 2 * (int64_t)largest);
}

static void a_batch_is_dealt_completely_and_evenly(void **state)
{
    int32_t edges[N];

    (void)state;
    for (int32_t i = 0; i < N; i++)
        edges[i] = 10 + (i * 7919) % 61;
    for (int32_t n = 0; n <= N; n++)
        for (int shards = 1; shards < 10; shards++)
            check_deal(n, shards, edges);
}

static void one_shard_keeps_the_batch_as_it_is(void **state)
{
    const int64_t which[] = { 3, 1, 4, 0 };
    const int32_t edges[] = { 5, 9, 2, 6, 5 };
    int64_t out[4];
    nn_card scratch[4];

    (void)state;
    nn_shards_deal(out, which, 4, edges, 1, scratch);
    assert_memory_equal(out, which, sizeof which);
    nn_shards_deal(out, which, 4, edges, 2, scratch); /* by edges: 1 (9), 3 (6), 4 (5), 0 (5): 1 | 3 4 | 0 */
    assert_memory_equal(out, ((int64_t[]){ 1, 0, 3, 4 }), sizeof out);
}

static void one_rank_sums_its_shards_in_their_order(void **state)
{
    float part[3][2] = { { 1e8f, 1 }, { 1, 2 }, { -1e8f, 3 } };
    nn_ranks r = { .kind = &nn_collective_none };
    uint32_t flags = 5;
    pl_error err;

    (void)state;
    assert_int_equal(r.kind->open(&r, NULL, &err), PL_OK);
    assert_int_equal(r.size, 1);
    assert_int_equal(r.kind->sum(&r, part[0], 2, 3, &err), PL_OK);
    assert_true(part[0][0] == (1e8f + 1.0f) - 1e8f && part[0][1] == 6);
    assert_int_equal(nn_ranks_any(&r, &flags, &err), PL_OK);
    assert_int_equal(flags, 5);
    r.kind->close(&r);
}

static void check_refused(const char *path, const char *text)
{
    const nn_collective *kind = NULL;
    pl_error err = { 0 };

    assert_int_equal(nn_collective_load(&kind, path, &err), PL_ECONFIG);
    assert_null(kind);
    if (strstr(err.text, text) == NULL || strchr(err.text, '\n') != NULL)
        fail_msg("%s", err.text);
}

static void plugins_that_do_not_fit_are_refused_in_one_line(void **state)
{
    (void)state;
    check_refused("/nowhere/libmolsieve_mpi.so", "/nowhere/libmolsieve_mpi.so");
    check_refused("libm.so.6", "is not a plugin");
    check_refused(OLD_PLUGIN, "another version");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_follow_each_other_and_differ_by_one),
        cmocka_unit_test(a_batch_is_dealt_completely_and_evenly),
        cmocka_unit_test(one_shard_keeps_the_batch_as_it_is),
        cmocka_unit_test(one_rank_sums_its_shards_in_their_order),
        cmocka_unit_test(plugins_that_do_not_fit_are_refused_in_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
