/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/training/shards.h"
#include "models/training/train_state.h"
#include "tests/unit/held.h"

/* ---- memory: linked with -Wl,--wrap=calloc ---- */

static int until_refused; /* calls of calloc; 0: none is refused */
void *__wrap_calloc(size_t n, size_t size);

/* Behind the words of ranks there are no zeros. */
void *__wrap_calloc(size_t n, size_t size)
{
    const size_t behind = size == sizeof(uint32_t) ? 64 : 0;
    char *all = until_refused > 0 && --until_refused == 0 ? NULL : malloc(n * size + behind);

    if (all != NULL) {
        memset(all, 0, n * size);
        memset(all + n * size, 0x55, behind);
    }
    return all;
}

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

/* ---- three ranks, of which this process is one ---- */

enum { RANKS = 3, ME = 1 };

static uint32_t words[RANKS]; /* of the others */
static int calls, failing;    /* calls so far; the one that fails, 0: none */
static size_t sent[8];        /* bytes of each broadcast */
static void *at[8];

static pl_code others_gather(nn_ranks *r, void *all, const int64_t *first, size_t item, pl_error *err)
{
    uint32_t *to = all;

    assert_int_equal(item, sizeof *to);
    for (int i = 0; i <= RANKS; i++)
        assert_int_equal(first[i], i);
    words[ME] = to[ME];
    for (int i = 0; i < RANKS; i++)
        to[i] = r->rank == i ? to[i] : words[i];
    return ++calls == failing ? pl_fail(err, PL_EDEVICE, "rank 2 is gone") : PL_OK;
}

static pl_code others_broadcast(nn_ranks *r, void *bytes, size_t n, pl_error *err)
{
    (void)r;
    sent[calls] = n;
    at[calls++] = bytes;
    if (calls == 1) { /* what rank 0 says; its addresses mean nothing here */
        float *other = (float *)(uintptr_t)&sent[7];
        *(nn_train_state *)bytes = (nn_train_state){ .n = 2,
                                                     .outputs = 3,
                                                     .step = 8,
                                                     .params = other,
                                                     .m = other,
                                                     .v = other,
                                                     .best = other,
                                                     .ema = other,
                                                     .tensor = (const nn_param *)other };
    }
    return calls == failing ? pl_fail(err, PL_EDEVICE, "rank 0 is gone") : PL_OK;
}

static const nn_collective others = { .name = "others", .gather = others_gather, .broadcast = others_broadcast };

/* Without calls that fail. */
static nn_ranks three(void)
{
    calls = failing = 0;
    memset(words, 0, sizeof words);
    return (nn_ranks){ .kind = &others, .rank = ME, .size = RANKS };
}

static void flags_of_any_rank_are_those_of_all(void **state)
{
    nn_ranks r = three();
    uint32_t flags = 4;
    pl_error err = { 0 };

    (void)state;
    words[0] = 1;
    words[2] = 16;
    assert_int_equal(nn_ranks_any(&r, &flags, &err), PL_OK);
    assert_int_equal(flags, 21);
    assert_int_equal(words[ME], 4);
    for (int n = 1; n <= 2; n++) {
        until_refused = n;
        flags = 4;
        assert_int_equal(nn_ranks_any(&r, &flags, &err), PL_ENOMEM);
        assert_true(flags == 4 && calls == 1);
    }
    until_refused = 0;
    r.size = 1; /* alone: nobody is asked */
    assert_int_equal(nn_ranks_any(&r, &flags, &err), PL_OK);
    assert_true(flags == 4 && calls == 1);
    r.size = RANKS;
    failing = 2;
    flags = 4;
    assert_int_equal(nn_ranks_any(&r, &flags, &err), PL_EDEVICE);
    assert_int_equal(flags, 4);
    assert_string_equal(err.text, "rank 2 is gone");
}

static void the_rank_that_differs_is_named(void **state)
{
    nn_ranks r = three();
    pl_error err = { 0 };
    uint32_t sum;

    (void)state;
    assert_int_equal(nn_ranks_agree(&r, "abc", 3, "weights", &err), PL_EDATA); /* the others have 0 */
    assert_string_equal(err.text,
                        "rank 1 has other weights than rank 0; all ranks must use the same program, files and kind of processor");
    sum = words[ME];
    assert_int_equal(sum, 0x352441c2); /* CRC-32 of "abc" */
    words[0] = words[2] = sum;
    assert_int_equal(nn_ranks_agree(&r, "abc", 3, "weights", &err), PL_OK);
    assert_int_equal(nn_ranks_agree(&r, "abd", 3, "weights", &err), PL_EDATA);
    words[2]--;
    assert_int_equal(nn_ranks_agree(&r, "abc", 3, "first batch", &err), PL_EDATA);
    assert_non_null(strstr(err.text, "rank 2 has other first batch than rank 0"));
    words[2] = sum;
    failing = calls + 1;
    assert_int_equal(nn_ranks_agree(&r, "abc", 3, "weights", &err), PL_EDEVICE);
    r.size = 1; /* alone */
    failing = calls = 0;
    assert_int_equal(nn_ranks_agree(&r, "abd", 3, "weights", &err), PL_OK);
    assert_int_equal(calls, 0);
}

static void ask_twice(void *ctx)
{
    nn_ranks r = three();
    uint32_t flags = 1;

    failing = *(int *)ctx;
    (void)nn_ranks_any(&r, &flags, NULL);
    (void)nn_ranks_agree(&r, "abc", 3, "weights", NULL);
}

static void what_the_ranks_said_is_not_kept(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++)
        assert_holds_nothing(ask_twice, &k);
}

static bool says_stop(void *ctx) { return *(const bool *)ctx; }

static void epochs_and_the_wish_to_stop(void **state)
{
    const nn_train_conf conf = { .epochs = 5 };
    bool stop = false;
    nn_train_host host = { .ctx = &stop };

    (void)state;
    for (int64_t planned = 0; planned < 4; planned++)
        assert_int_equal(nn_train_epochs(&conf, &(nn_train_state){ .planned = planned }), planned > 0 ? planned : 5);
    assert_false(nn_train_must_stop(NULL) || nn_train_must_stop(&host));
    host.stop = says_stop;
    assert_false(nn_train_must_stop(&host));
    stop = true;
    assert_true(nn_train_must_stop(&host));
}

/* Each array keeps its place, and an error ends it at once. */
static void a_state_is_sent_array_by_array(void **state)
{
    float array[5][2] = { { 1, 2 } }, bases[3];
    const nn_train_state before = { .n = 2,
                                    .outputs = 3,
                                    .step = 7,
                                    .params = array[0],
                                    .m = array[1],
                                    .v = array[2],
                                    .best = array[3],
                                    .ema = array[4],
                                    .tensor = &(nn_param){ .name = "w" } };
    nn_ranks r = three();
    pl_error err = { 0 };

    (void)state;
    for (int more = 0; more < 3; more++) /* than four arrays: a moving average, then bases, too */
        for (failing = 5 + more; failing >= 0; failing--) {
            nn_train_state s = before;
            const int n = failing > 0 ? failing : 5 + more;
            s.ema = more > 0 ? array[4] : NULL;
            s.bases = more > 1 ? bases : NULL;
            s.n_bases = more > 1 ? 3 : 0;
            calls = 0;
            assert_int_equal(nn_train_state_broadcast(&r, &s, &err), failing > 0 ? PL_EDEVICE : PL_OK);
            assert_int_equal(calls, n);
            assert_int_equal(sent[0], sizeof s);
            for (int k = 1; k < n && k < 6; k++)
                assert_true(at[k] == array[k - 1] && sent[k] == sizeof array[0]);
            assert_true(n < 7 || (at[6] == bases && sent[6] == sizeof bases));
            assert_true(s.params == array[0] && s.m == array[1] && s.v == array[2] && s.best == array[3]);
            assert_true(s.ema == (more > 0 ? array[4] : NULL) && s.tensor == before.tensor);
            assert_true(s.bases == (more > 1 ? bases : NULL));
            assert_int_equal(s.step, failing > 0 ? 7 : 8);
        }
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
    const nn_collective *kind = NULL;
    char text[200];

    (void)state;
    check_refused("/nowhere/libmolsieve_mpi.so", "plugin: /nowhere/libmolsieve_mpi.so: cannot open");
    check_refused("libm.so.6", "libm.so.6 is not a plugin of this program");
    (void)snprintf(text, sizeof text, " was made for another version of this program: its interface is %d, ours %d",
                   (int)NN_COLLECTIVE_ABI + 1, (int)NN_COLLECTIVE_ABI);
    check_refused(OLD_PLUGIN, text);
    assert_int_equal(nn_collective_load(&kind, FIT_PLUGIN, NULL), PL_OK);
    assert_string_equal(kind->name, "fits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_follow_each_other_and_differ_by_one),
        cmocka_unit_test(a_batch_is_dealt_completely_and_evenly),
        cmocka_unit_test(one_shard_keeps_the_batch_as_it_is),
        cmocka_unit_test(one_rank_sums_its_shards_in_their_order),
        cmocka_unit_test(flags_of_any_rank_are_those_of_all),
        cmocka_unit_test(the_rank_that_differs_is_named),
        cmocka_unit_test(what_the_ranks_said_is_not_kept),
        cmocka_unit_test(epochs_and_the_wish_to_stop),
        cmocka_unit_test(a_state_is_sent_array_by_array),
        cmocka_unit_test(plugins_that_do_not_fit_are_refused_in_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
