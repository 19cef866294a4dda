/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks over TCP that are lost, of which one gives up, or that never all came: what the others say, and what is left open. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/comm/tcp/meet.h"
#include "pipeline/base/file.h"
#include "tests/unit/entries.h"
#include "tests/unit/made_ranks.h"

/* ---- what is left of a meeting that failed ---- */

/* Rank 1 has connected, rank 2 has not: with the meeting the connection ends. */
static void a_meeting_that_failed_keeps_no_connection(void **state)
{
    bench *b = *state;
    const nn_meeting m = { .job = b->rank[0].launch.job, .folder = b->folder, .host = "", .port = "", .size = 3, .patience = 3 };
    nn_wires *w = (nn_wires *)(void *)b;
    pl_error err = { 0 };
    int before = count_in("/proc/self/fd");

    b->rank[1].launch.size = 3;
    rank_start(&b->rank[1]);
    assert_int_equal(nn_meet(&w, &m, &err), PL_EDEVICE);
    assert_null(w);
    assert_non_null(strstr(err.text, "1 of 3 ranks did not connect within 3 s: rank 2"));
    assert_int_equal(count_in("/proc/self/fd"), before);
    check_end(&b->rank[1], 7, "rank 2");
}

/* The folder is there, but the name of a file in it is longer than the system allows. */
static void a_folder_with_too_long_a_name_is_named(void **state)
{
    bench *b = *state;
    char folder[4081] = "";
    nn_meeting m = { .job = "", .folder = folder, .host = "", .port = "", .size = 2, .patience = 0.2 };
    nn_wires *w = NULL;
    pl_error err = { 0 };
    int before = count_in("/proc/self/fd");
    size_t n = (size_t)snprintf(folder, sizeof folder, "%s", b->folder);

    for (; n + 2 < sizeof folder; n += 2)
        memcpy(folder + n, "/.", 3);
    for (m.rank = 0; m.rank < 2; m.rank++) {
        err = (pl_error){ 0 };
        assert_int_equal(nn_meet(&w, &m, &err), PL_EIO);
        assert_null(w);
        assert_non_null(strstr(err.text, "cannot write the file by which the ranks find rank 0"));
        assert_non_null(strstr(err.text, b->folder));
        assert_int_equal(count_in("/proc/self/fd"), before);
    }
}

/* Of many that are missing the first twenty are named, each once. */
static void many_missing_ranks_are_counted_and_some_named(void **state)
{
    bench *b = *state;
    const nn_meeting m = { .job = "", .folder = b->folder, .host = "", .port = "", .size = 40, .patience = 0.2 };
    nn_wires *w = NULL;
    pl_error err = { 0 };

    assert_int_equal(nn_meet(&w, &m, &err), PL_EDEVICE);
    assert_string_equal(err.text,
                        "39 of 40 ranks did not connect within 0 s: rank 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, "
                        "17, 18, 19, 20");
}

/* A machine with many addresses; only so many of them are kept, and nothing is written behind them. */
static void more_addresses_than_there_is_room_for_do_no_harm(void **state)
{
    bench *b = *state;
    const nn_meeting m = { .job = b->rank[0].launch.job, .folder = b->folder };
    char path[256], text[8192] = "";
    FILE *f = NULL;
    size_t n;

    assert_true(nn_meet_path(path, sizeof path, &m));
    b->rank[0].launch.size = b->rank[1].launch.size = 2;
    b->rank[0].work = b->rank[1].work = work_sum;
    rank_start(&b->rank[0]);
    for (int i = 0; i < 6000 && (f = fopen(path, "r")) == NULL; i++)
        nap(0.01);
    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "at 127.0.0.1\n");
    assert_int_equal(pl_file_write(path, (pl_bytes){ text, n }, NULL), PL_OK);
    rank_start(&b->rank[1]);
    check_end(&b->rank[1], 0, "");
    check_end(&b->rank[0], 0, "");
}

/* ---- lost ranks ---- */

/* The last rank dies or stops while the others sum. */
static pl_code work_die(nn_ranks *r, pl_error *err)
{
    if (r->rank == r->size - 1)
        (void)raise(SIGKILL);
    return work_sum(r, err);
}

static pl_code work_stop(nn_ranks *r, pl_error *err)
{
    r->patience = 1;
    if (r->rank == r->size - 1)
        nap(6);
    return work_sum(r, err);
}

static pl_code work_fail(nn_ranks *r, pl_error *err)
{
    r->patience = 0; /* as long as it takes */
    return r->rank == r->size - 1 ? pl_fail(err, PL_EDEVICE, "I cannot") : work_sum(r, err);
}

static void check_lost(bench *b, pl_code (*work)(nn_ranks *r, pl_error *err), int last, const char *text)
{
    double began = nn_wires_clock();

    all_start(b, 3, work);
    check_end(&b->rank[0], 7, text);
    check_end(&b->rank[1], 7, "rank 0");
    assert_true(nn_wires_clock() - began < 5);
    assert_int_equal(rank_end(&b->rank[2]), last);
}

static void a_dead_rank_ends_all_at_once(void **state) { check_lost(*state, work_die, -SIGKILL, "rank 2 is gone"); }

static void a_silent_rank_ends_all_when_patience_is_spent(void **state)
{
    check_lost(*state, work_stop, 7, "rank 2 has been silent for ");
}

static void a_rank_that_gives_up_ends_all(void **state) { check_lost(*state, work_fail, 7, "rank 2"); }

static pl_code work_differ(nn_ranks *r, pl_error *err)
{
    char build[32];

    snprintf(build, sizeof build, "0.1.0 %s", r->rank == 1 ? "0ld" : "new");
    return nn_ranks_agree(r, build, sizeof build, "version and commit", err);
}

static void ranks_of_different_builds_are_refused_by_all(void **state)
{
    bench *b = *state;

    all_start(b, 3, work_differ);
    for (int i = 0; i < 3; i++)
        check_end(&b->rank[i], 5, "rank 1 has other version and commit than rank 0");
}

/* The others have ended long ago: they wait, so that no rank takes another for lost. */
static pl_code work_late(nn_ranks *r, pl_error *err)
{
    if (r->rank > 0)
        nap(0.4 * r->rank);
    return r->kind->watch(r, err);
}

static void the_first_rank_to_end_waits_for_the_last(void **state)
{
    bench *b = *state;

    all_start(b, 3, work_late);
    for (int i = 0; i < 3; i++)
        check_end(&b->rank[i], 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(a_meeting_that_failed_keeps_no_connection),
        WITH_BENCH(a_folder_with_too_long_a_name_is_named),
        WITH_BENCH(many_missing_ranks_are_counted_and_some_named),
        WITH_BENCH(more_addresses_than_there_is_room_for_do_no_harm),
        WITH_BENCH(a_dead_rank_ends_all_at_once),
        WITH_BENCH(a_silent_rank_ends_all_when_patience_is_spent),
        WITH_BENCH(a_rank_that_gives_up_ends_all),
        WITH_BENCH(the_first_rank_to_end_waits_for_the_last),
        WITH_BENCH(ranks_of_different_builds_are_refused_by_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
