/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "pipeline/base/log.h"
#include "pipeline/run/progress.h"

/* ---- linked with -Wl,--wrap=pl_clock ---- */

static double later; /* seconds that the clock is ahead */

double __real_pl_clock(void);
double __wrap_pl_clock(void);

double __wrap_pl_clock(void) { return __real_pl_clock() + later; }

typedef struct heard {
    int n;
    char last[256];
} heard;

static void listen(void *ctx, pl_level level, const char *line)
{
    heard *h = ctx;

    (void)level;
    h->n++;
    (void)snprintf(h->last, sizeof h->last, "%s", line);
}

static void work(pl_progress *p, int steps)
{
    struct timespec moment = { 0, 30000000 };

    pl_progress_start(p, "graph", "molecules", 100, 1000, false);
    for (int i = 1; i <= steps; i++) {
        (void)nanosleep(&moment, NULL);
        pl_progress_set(p, 100 + 10 * i, 1000, "loss 0.5");
    }
    pl_progress_end(p, "graph", "done in 1s");
}

static void a_terminal_gets_one_line_with_rate_and_time_left(void **state)
{
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    pl_progress *p = pl_progress_new(f, true, false, NULL);

    (void)state;
    work(p, 20);
    pl_progress_free(p);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "\r\033[Kgraph"));
    assert_non_null(strstr(text, "of 1,000 molecules"));
    assert_non_null(strstr(text, "/s  "));
    assert_non_null(strstr(text, "s left  loss 0.5")); /* the rate is above 2/s, so it is less than an hour */
    assert_non_null(strstr(text, "\r\033[Kgraph     done in 1s\n"));
    assert_ptr_equal(strchr(text, '\n'), strrchr(text, '\n'));
}

static void a_slow_stage_has_a_rate_and_time_left_too(void **state)
{
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    pl_progress *p = pl_progress_new(f, true, false, NULL);

    (void)state;
    pl_progress_start(p, "train", "epochs", 0, 100, false);
    later += 100;
    pl_progress_set(p, 50, 100, "");
    pl_progress_free(p);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "train     50 of 100 epochs  50 %  0.5/s  1m4")); /* 1m40s left, or a little more */
}

/* The line is visible while the stage works, whatever the buffer of the file. */
static void the_progress_line_is_flushed_at_once(void **state)
{
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    pl_progress *p = pl_progress_new(f, true, false, NULL);

    (void)state;
    pl_progress_start(p, "read", NULL, 7, 10, false);
    assert_string_equal(text, "\r\033[Kread      7 of 10 items  70 %");
    pl_progress_free(p);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, "\r\033[Kread      7 of 10 items  70 %\r\033[K");
}

static void what_an_earlier_run_did_is_not_in_the_rate(void **state)
{
    struct timespec moment = { 0, 300000000 };
    char text[8192] = "", *rate;
    FILE *f = fmemopen(text, sizeof text, "w");
    pl_progress *p = pl_progress_new(f, true, false, NULL);

    (void)state;
    pl_progress_start(p, "train", "molecules", 0, -1, false);
    pl_progress_from(p, 1000000);
    (void)nanosleep(&moment, NULL);
    pl_progress_set(p, 1000030, 2000000, "epoch 5/9");
    pl_progress_free(p);
    assert_int_equal(fclose(f), 0);
    rate = strstr(text, "50 %  ");
    assert_non_null(rate);
    assert_true(atof(rate + 6) > 1 && atof(rate + 6) <= 100);
    pl_progress_from(NULL, 1);
}

static void of_several_stages_the_slowest_is_shown_in_full(void **state)
{
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    pl_progress *p = pl_progress_new(f, true, false, NULL);

    (void)state;
    pl_progress_start(p, "read", "records", 0, 900, true);
    pl_progress_start(p, "prepare", "records", 0, 900, true);
    pl_progress_start(p, "score", "molecules", 0, 900, true);
    pl_progress_units(p, "read", 40, 900, true);
    pl_progress_units(p, "score", 20, 900, true);
    pl_progress_end(p, "read", "done in 1s");
    pl_progress_units(p, "prepare", 38, 1000, false);
    pl_progress_end(p, "prepare", "done in 1s");
    pl_progress_units(p, "score", 1001, 1000, true); /* the guess was wrong: no share, no time left */
    pl_progress_end(p, "score", "done in 2s");
    pl_progress_free(p);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "score     0 of about 900 molecules  0 %  (read 0, prepare 0)"));
    assert_non_null(strstr(text, "\033[Kread      done in 1s\n\r\033[Kprepare   0 of about 900 records  0 %  (score 20)"));
    assert_non_null(strstr(text, "\033[Kprepare   done in 1s\n\r\033[Kscore     20 of about 900 molecules"));
    assert_non_null(strstr(text, "\033[Kscore     done in 2s\n"));
    assert_null(strstr(text, "1,001 of"));
}

/* No share of nothing, and no time that is left. */
static void of_nothing_no_share_is_told(void **state)
{
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    pl_progress *p = pl_progress_new(f, true, false, NULL);

    (void)state;
    pl_progress_start(p, "rank", "rows", 0, 0, false);
    pl_progress_end(p, "rank", "done in 0s");
    pl_progress_free(p);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "rank      0 of 0 rows"));
    assert_null(strstr(text, "%"));
    assert_null(strstr(text, "left"));
}

static void a_line_fits_a_usual_terminal(void **state)
{
    static const char note[] = "epoch 43/60 loss 0.1131 valid MAE 0.4423 eV, and more that a model may tell";
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    pl_progress *p = pl_progress_new(f, true, false, NULL);
    int longest = 0;

    (void)state;
    pl_progress_start(p, "train", "molecules", 0, 14400, false);
    for (int i = 0; i < 2; i++) {
        struct timespec moment = { 0, 110000000 };
        (void)nanosleep(&moment, NULL);
        pl_progress_set(p, 10304, 14400, note);
    }
    pl_progress_free(p);
    assert_int_equal(fclose(f), 0);
    for (const char *at = text; *at != '\0';) {
        int n = (int)strcspn(at += strspn(at, "\r\033[K\n"), "\r\n");
        longest = n > longest ? n : longest;
        at += n;
    }
    assert_int_equal(longest, 79); /* a full line would wrap in 80 columns */
}

static void elsewhere_the_log_gets_few_lines(void **state)
{
    heard h = { 0 };
    pl_progress *p = pl_progress_new(NULL, false, false, NULL);

    (void)state;
    pl_log_to(listen, &h, PL_INFO);
    work(p, 20);
    pl_log_to(NULL, NULL, PL_ERROR);
    pl_progress_free(p);
    assert_int_equal(h.n, 1);
    assert_string_equal(h.last, "graph     done in 1s");
}

static void quiet_says_nothing(void **state)
{
    heard h = { 0 };
    char text[64] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    pl_progress *p = pl_progress_new(f, true, true, NULL);

    (void)state;
    pl_log_to(listen, &h, PL_DEBUG);
    work(p, 5);
    pl_log_to(NULL, NULL, PL_ERROR);
    pl_progress_free(p);
    pl_progress_set(NULL, 1, 2, NULL); /* a run without progress */
    assert_int_equal(fclose(f), 0);
    assert_int_equal(h.n, 0);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_gets_one_line_with_rate_and_time_left),
        cmocka_unit_test(a_slow_stage_has_a_rate_and_time_left_too),
        cmocka_unit_test(the_progress_line_is_flushed_at_once),
        cmocka_unit_test(what_an_earlier_run_did_is_not_in_the_rate),
        cmocka_unit_test(of_several_stages_the_slowest_is_shown_in_full),
        cmocka_unit_test(of_nothing_no_share_is_told),
        cmocka_unit_test(a_line_fits_a_usual_terminal),
        cmocka_unit_test(elsewhere_the_log_gets_few_lines),
        cmocka_unit_test(quiet_says_nothing),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
