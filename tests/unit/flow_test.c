/* SPDX-License-Identifier: Apache-2.0 */
/* stages/predict/flow.h: the order of answers, batches, failures, and that each record is dropped once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "stages/predict/flow.h"

typedef struct work_log {
    pl_text written;
    atomic_int dropped, largest, workers_used[8];
    int fails_at, writes_fail_at; /* number of a record, of a write; -1: never */
    int writes;
} work_log;

static atomic_int *dropped; /* of the log in use */

static pl_code work(void *ctx, int worker, void *const *item, int32_t n, pl_text *out, pl_error *err)
{
    work_log *log = ctx;

    log->workers_used[worker] = 1;
    log->largest = n > log->largest ? n : log->largest;
    for (int32_t k = 0; k < n; k++) {
        const int number = *(const int *)item[k];
        if (number == log->fails_at)
            return pl_fail(err, PL_EDATA, "record %d", number);
        (void)usleep((useconds_t)(number * 7919 % 300));
        pl_text_addf(out, "%d\n", number);
    }
    return PL_OK;
}

static pl_code write_down(void *ctx, const pl_text *out, pl_error *err)
{
    work_log *log = ctx;

    if (log->writes++ == log->writes_fail_at)
        return pl_fail(err, PL_EIO, "closed");
    pl_text_add(&log->written, pl_text_str(out));
    return PL_OK;
}

static void drop(void *item)
{
    free(item);
    (*dropped)++;
}

/* Puts 0 .. n-1; returns how many were put, and what the flow ended with. */
static int run(work_log *log, int workers, int n, pl_code *code, pl_error *err)
{
    const st_flow_calls calls = { log, work, write_down, drop };
    st_flow *flow;
    int put = 0;

    dropped = &log->dropped;
    assert_int_equal(st_flow_open(&flow, workers, &calls, err), PL_OK);
    for (bool going = true; going && put < n; put++) {
        int *item = malloc(sizeof *item);
        assert_non_null(item);
        *item = put;
        going = st_flow_put(flow, item);
    }
    *code = st_flow_close(flow, err);
    assert_int_equal(log->dropped, put);
    return put;
}

static void answers_come_in_order_from_any_number_of_workers(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 8; workers *= 2) {
        work_log log = { .fails_at = -1, .writes_fail_at = -1 };
        pl_text want = { 0 };
        pl_error err;
        pl_code code;
        assert_int_equal(run(&log, workers, 3000, &code, &err), 3000);
        assert_int_equal(code, PL_OK);
        for (int k = 0; k < 3000; k++)
            pl_text_addf(&want, "%d\n", k);
        assert_string_equal(pl_text_str(&log.written), pl_text_str(&want));
        assert_in_range(log.largest, 1, ST_FLOW_MOST);
        pl_text_free(&log.written);
        pl_text_free(&want);
    }
}

static void the_first_failure_ends_it_and_is_told(void **state)
{
    work_log log = { .fails_at = 700, .writes_fail_at = -1 }, closed = { .fails_at = -1, .writes_fail_at = 2 };
    pl_error err;
    pl_code code;

    (void)state;
    assert_true(run(&log, 4, 1000000, &code, &err) < 1000000);
    assert_int_equal(code, PL_EDATA);
    assert_string_equal(err.text, "record 700");
    assert_null(strstr(pl_text_str(&log.written), "\n700\n"));
    assert_true(run(&closed, 3, 1000000, &code, &err) < 1000000);
    assert_int_equal(code, PL_EIO);
    pl_text_free(&log.written);
    pl_text_free(&closed.written);
}

/* The client waits for each answer: one worker is enough, and it keeps the work. */
static void a_slow_stream_stays_with_one_worker(void **state)
{
    work_log log = { .fails_at = -1, .writes_fail_at = -1 };
    const st_flow_calls calls = { &log, work, write_down, drop };
    st_flow *flow;
    pl_error err;
    int used = 0;

    (void)state;
    dropped = &log.dropped;
    assert_int_equal(st_flow_open(&flow, 8, &calls, &err), PL_OK);
    for (int k = 0; k < 50; k++) {
        int *item = malloc(sizeof *item);
        assert_non_null(item);
        *item = k;
        assert_true(st_flow_put(flow, item));
        while (log.dropped < k + 1)
            (void)usleep(100);
        (void)usleep(2000);
    }
    assert_int_equal(st_flow_close(flow, &err), PL_OK);
    assert_int_equal(st_flow_close(NULL, &err), PL_OK); /* of one that could not be opened */
    for (int k = 0; k < 8; k++)
        used += log.workers_used[k];
    assert_int_equal(used, 1);
    pl_text_free(&log.written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_in_order_from_any_number_of_workers),
        cmocka_unit_test(the_first_failure_ends_it_and_is_told),
        cmocka_unit_test(a_slow_stream_stays_with_one_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
