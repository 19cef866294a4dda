/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the promises of models/comm/collective.h for a kind of ranks. collective_ranks PLUGIN N is started by
 * mpirun; collective_ranks tcp N and collective_ranks PLUGIN N nccl start their ranks themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/comm/collective.h"

static nn_ranks ranks;

/* Numbers of very different sizes, so that another order of summation gives other bits. */
static float value(int shard, int64_t i)
{
    uint64_t h = ((uint64_t)shard + 1) * 0x9e3779b97f4a7c15u ^ ((uint64_t)i + 1) * 0xc2b2ae3d27d4eb4fu;

    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 32;
    return (float)((double)(int64_t)h / 9e18) * (float)(1 << (h & 15));
}

static void check_sum(int shards, int64_t n)
{
    nn_span own = nn_share(shards, ranks.size, ranks.rank);
    float *part = malloc((size_t)(own.n * n) * sizeof *part), want;
    pl_error err;

    assert_non_null(part);
    for (int64_t s = 0; s < own.n; s++)
        for (int64_t i = 0; i < n; i++)
            part[s * n + i] = value((int)(own.first + s), i);
    if (ranks.kind->sum(&ranks, part, n, shards, &err) != PL_OK)
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < n; i++) {
        want = value(0, i);
        for (int s = 1; s < shards; s++)
            want += value(s, i);
        if (memcmp(&want, part + i, sizeof want) != 0)
            fail_msg("%d shards, number %lld of %lld: %.9g, not %.9g", shards, (long long)i, (long long)n, (double)part[i],
                     (double)want);
    }
    free(part);
}

static void a_sum_has_the_bits_of_its_shards_in_their_order(void **state)
{
    static const int64_t sizes[] = { 1, 2, 7, 1000, 70001 };

    (void)state;
    for (int shards = ranks.size; shards < 11; shards++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            check_sum(shards, sizes[k]);
}

static void every_rank_has_what_each_rank_gave(void **state)
{
    int64_t first[64], n;
    uint16_t all[64 * 65 / 2];
    pl_error err;

    (void)state;
    first[0] = 0;
    for (int r = 0; r < ranks.size; r++) /* rank r gives r numbers, so rank 0 none */
        first[r + 1] = first[r] + r;
    n = first[ranks.size];
    memset(all, 0xff, sizeof all);
    for (int64_t i = first[ranks.rank]; i < first[ranks.rank + 1]; i++)
        all[i] = (uint16_t)(1000 * ranks.rank + i);
    assert_int_equal(ranks.kind->gather(&ranks, all, first, sizeof *all, &err), PL_OK);
    for (int r = 0; r < ranks.size; r++)
        for (int64_t i = first[r]; i < first[r + 1]; i++)
            assert_int_equal(all[i], 1000 * r + i);
    assert_int_equal(all[n], 0xffff);
}

static void every_rank_receives_from_rank_0(void **state)
{
    static unsigned char bytes[100003];
    pl_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(ranks.rank == 0 ? 7 * i + i / 256 : 0);
    assert_int_equal(ranks.kind->broadcast(&ranks, bytes, sizeof bytes, &err), PL_OK);
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], (unsigned char)(7 * i + i / 256));
    assert_int_equal(ranks.kind->broadcast(&ranks, bytes, 0, &err), PL_OK);
}

static void a_flag_on_any_rank_is_a_flag_on_all(void **state)
{
    (void)state;
    for (int who = -1; who < ranks.size; who++) {
        uint32_t flags = ranks.rank == 0 ? 4 : 0;
        if (ranks.rank == who)
            flags = 2;
        assert_int_equal(nn_ranks_any(&ranks, &flags, NULL), PL_OK);
        assert_int_equal(flags, (who >= 0 ? 2 : 0) | (who != 0 ? 4 : 0));
    }
}

static void a_rank_that_differs_is_named(void **state)
{
    float x[3] = { 1, 2, 3 };
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(nn_ranks_agree(&ranks, x, sizeof x, "weights", &err), PL_OK);
    if (ranks.size == 1)
        return;
    x[1] += ranks.rank == ranks.size - 1 ? 1e-6f : 0;
    assert_int_equal(nn_ranks_agree(&ranks, x, sizeof x, "weights", &err), PL_EDATA);
    assert_non_null(strstr(err.text, "other weights"));
}

static int failed_to(const char *what, const pl_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    return 1;
}

static int ranks_test(int size)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_has_the_bits_of_its_shards_in_their_order),
        cmocka_unit_test(every_rank_has_what_each_rank_gave),
        cmocka_unit_test(every_rank_receives_from_rank_0),
        cmocka_unit_test(a_flag_on_any_rank_is_a_flag_on_all),
        cmocka_unit_test(a_rank_that_differs_is_named),
    };
    int failed;

    if (ranks.size != size) {
        fprintf(stderr, "%d ranks, %d expected\n", ranks.size, size);
        return 1;
    }
    ranks.patience = 60;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        ranks.kind->give_up(&ranks, 1);
    ranks.kind->close(&ranks);
    return failed;
}

/* One of the processes that this program started. plugin NULL: tcp alone. */
static int rank_run(const char *plugin, int rank, int size, const char *folder)
{
    nn_ranks control = { .kind = &nn_collective_tcp, .patience = 60 };
    nn_join join = { .launch = { .by = "a test", .rank = rank, .size = size, .local_rank = rank },
                     .folder = folder,
                     .patience = 60,
                     .device = rank,
                     .control = &control };
    pl_error err = { 0 };

    if (control.kind->open(&control, &join, &err) != PL_OK)
        return failed_to("tcp", &err);
    ranks = control;
    if (plugin != NULL) {
        ranks.patience = 60;
        if (nn_collective_load(&ranks.kind, plugin, &err) != PL_OK || ranks.kind->open(&ranks, &join, &err) != PL_OK)
            return failed_to(plugin, &err);
    }
    return ranks_test(size);
}

static int ranks_start(const char *plugin, int size)
{
    char folder[] = "/tmp/molsieve-ranks-XXXXXX";
    int failed = 0, status;

    if (mkdtemp(folder) == NULL)
        return 1;
    for (int rank = 0; rank < size; rank++)
        if (fork() == 0)
            _exit(rank_run(plugin, rank, size, folder));
    while (wait(&status) > 0)
        failed += status != 0;
    return failed + (rmdir(folder) != 0); /* no file is left there */
}

int main(int argc, char **argv)
{
    int size = argc > 2 ? atoi(argv[2]) : 1;
    pl_error err = { 0 };

    if (argc > 1 && strcmp(argv[1], "tcp") == 0)
        return ranks_start(NULL, size);
    if (argc > 3 && strcmp(argv[3], "nccl") == 0)
        return ranks_start(argv[1], size);
    if (nn_collective_load(&ranks.kind, argc > 1 ? argv[1] : "", &err) != PL_OK || ranks.kind->open(&ranks, NULL, &err) != PL_OK)
        return failed_to("open", &err);
    return ranks_test(size);
}
