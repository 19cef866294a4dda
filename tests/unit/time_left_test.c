/* SPDX-License-Identifier: Apache-2.0 */
/* How long a job has, by what its scheduler answers: which job is asked for, and what is no answer (st_time_left). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "entries.h"
#include "held.h"
#include "stages/commands/output/run_words.h"
#include "toy.h"

/* The clock (tests/stages.cmake). */
enum { NOW = 1767225600 };
#define WRAPPED(name) __wrap_##name

time_t WRAPPED(time)(time_t *out);
time_t WRAPPED(time)(time_t *out)
{
    if (out != NULL)
        *out = NOW;
    return NOW;
}

/* ---- schedulers, which say what a file says and note what they were asked ---- */

static char dir[256], *path_before;

static const char *path_of(const char *name, const char *end)
{
    static char path[400];

    (void)snprintf(path, sizeof path, "%s/%s%s", dir, name, end);
    return path;
}

static void put(const char *name, const char *end, const char *text)
{
    FILE *f = fopen(path_of(name, end), "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static void forget(void)
{
    static const char *const names[] = { "SLURM_JOB_END_TIME", "SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
                                         "PBS_JOBID",          "LSB_JOBID",    "LSB_JOBINDEX" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]);
}

static int make(void **state)
{
    static const char *const names[] = { "scontrol", "qstat", "bjobs" };

    (void)state;
    toy_directory(dir);
    for (int i = 0; i < 3; i++) {
        put(names[i], "",
            "#!/bin/sh\necho \"$*\" > \"$0.asked\"\nwhile IFS= read -r line; do echo \"$line\"; done < \"$0.says\"\n");
        put(names[i], ".says", "");
        if (chmod(path_of(names[i], ""), 0700) != 0)
            return -1;
    }
    forget();
    path_before = strdup(getenv("PATH") != NULL ? getenv("PATH") : "");
    return path_before == NULL || setenv("PATH", dir, 1) != 0 || setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1) != 0;
}

static int drop(void **state)
{
    (void)state;
    (void)setenv("PATH", path_before, 1);
    free(path_before);
    toy_remove(dir);
    return 0;
}

/* Whether the scheduler was asked these words since the last call; NULL: nothing. */
static void was_asked(const char *name, const char *words)
{
    char got[400] = "";
    FILE *f = fopen(path_of(name, ".asked"), "r");

    if (words == NULL || f == NULL) {
        assert_true(words == NULL && f == NULL);
        return;
    }
    assert_non_null(fgets(got, sizeof got, f));
    (void)fclose(f);
    got[strcspn(got, "\n")] = '\0';
    assert_string_equal(got, words);
    assert_int_equal(unlink(path_of(name, ".asked")), 0);
}

/* variables: "A=1 B=2"; a scheduler says the text. */
static double left_of(const char *variables, const char *name, const char *says)
{
    char all[600];

    forget();
    (void)snprintf(all, sizeof all, "%s", variables);
    for (char *one = strtok(all, " "); one != NULL; one = strtok(NULL, " ")) {
        char *value = strchr(one, '=');
        *value = '\0';
        assert_int_equal(setenv(one, value + 1, 1), 0);
    }
    put(name, ".says", says);
    return st_time_left(-1, 100);
}

/* Noon of a day in summer, two hours before noon of Greenwich. */
#define SLURM "JobId=12 JobName=x\n   StartTime=2099-07-01T11:00:00 EndTime=2099-07-01T12:00:00 Deadline=N/A\n   Requeue=1\n"
#define STIME "    stime = Wed Jul  1 12:00:00 2099\n"
#define WALLTIME "    Resource_List.walltime = 01:02:03\n"
#define PBS "Job Id: 5.srv\n" WALLTIME STIME "    queue = work\n"
static const double noon = 4086583200.0 - NOW - 100;

static void answers_are_read_in_local_time(void **state)
{
    struct tm tm = { .tm_year = 199, .tm_mon = 6, .tm_mday = 1, .tm_hour = 10 };

    (void)state;
    assert_true((double)timegm(&tm) == noon + NOW + 100);
    assert_true(left_of("SLURM_JOB_ID=12", "scontrol", SLURM) == noon);
    was_asked("scontrol", "show job 12");
    assert_true(left_of("PBS_JOBID=5.srv", "qstat", PBS) == noon + 3723);
    was_asked("qstat", "-f 5.srv");
    assert_true(left_of("LSB_JOBID=7", "bjobs", "1:02 L\n") == 3720 - 100);
    was_asked("bjobs", "-noheader -o time_left 7");
}

static void a_task_of_an_array_is_asked_for_by_its_number(void **state)
{
    static const struct {
        const char *variables, *name, *asked;
    } jobs[] = {
        { "SLURM_JOB_ID=12 SLURM_ARRAY_JOB_ID=10 SLURM_ARRAY_TASK_ID=3", "scontrol", "show job 10_3" },
        { "SLURM_JOB_ID=12 SLURM_ARRAY_JOB_ID=10 SLURM_ARRAY_TASK_ID=0", "scontrol", "show job 10_0" },
        { "SLURM_JOB_ID=12 SLURM_ARRAY_JOB_ID=10", "scontrol", "show job 12" },
        { "SLURM_JOB_ID=12 SLURM_ARRAY_TASK_ID=3", "scontrol", "show job 12" },
        { "PBS_JOBID=12[3].my-srv_1", "qstat", "-f 12[3].my-srv_1" },
        { "LSB_JOBID=12 LSB_JOBINDEX=4", "bjobs", "-noheader -o time_left 12[4]" },
        { "LSB_JOBID=12 LSB_JOBINDEX=0", "bjobs", "-noheader -o time_left 12" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        assert_true(left_of(jobs[i].variables, jobs[i].name, "") == 0);
        was_asked(jobs[i].name, jobs[i].asked);
    }
}

/* What a shell would read otherwise, and what has no room. */
static void a_name_that_no_job_has_is_not_asked_for(void **state)
{
    static const char *const names[] = { "", "12;x", "12'", "a$b", "12/3" };
    char all[200] = "PBS_JOBID=", asked[200] = "-f ";

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(all, sizeof all, "PBS_JOBID=%s", names[i]);
        assert_true(left_of(all, "qstat", PBS) == 0);
        was_asked("qstat", NULL);
    }
    for (int n = 127; n <= 128; n++) {
        (void)snprintf(all, sizeof all, "PBS_JOBID=%0*d", n, 7);
        (void)snprintf(asked, sizeof asked, "-f %0*d", n, 7);
        assert_true(left_of(all, "qstat", PBS) == (n == 127 ? noon + 3723 : 0));
        was_asked("qstat", n == 127 ? asked : NULL);
    }
    assert_true(left_of("SLURM_ARRAY_JOB_ID=10 SLURM_ARRAY_TASK_ID=3 LSB_JOBINDEX=3", "scontrol", SLURM) == 0);
    was_asked("scontrol", NULL);
    was_asked("bjobs", NULL);
}

static void what_is_no_answer_is_no_limit(void **state)
{
    static const char *const slurm[] = { "", "EndTime=2099-07-01T12:00:00\n", "   EndTime=Unknown Deadline=N/A\n" };
    static const char *const pbs[] = { "", WALLTIME, STIME, "    Resource_List.walltime = 01:02\n" STIME,
                                       WALLTIME "    stime = soon\n" };
    static const char *const lsf[] = { "", "-\n", "5\n", "1:\n" };

    (void)state;
    for (size_t i = 0; i < sizeof slurm / sizeof *slurm; i++)
        assert_true(left_of("SLURM_JOB_ID=12", "scontrol", slurm[i]) == 0);
    for (size_t i = 0; i < sizeof pbs / sizeof *pbs; i++)
        assert_true(left_of("PBS_JOBID=5", "qstat", pbs[i]) == 0);
    for (size_t i = 0; i < sizeof lsf / sizeof *lsf; i++)
        assert_true(left_of("LSB_JOBID=7", "bjobs", lsf[i]) == 0);
    was_asked("scontrol", "show job 12");
    was_asked("qstat", "-f 5");
    was_asked("bjobs", "-noheader -o time_left 7");
}

static void the_first_that_answers_is_believed(void **state)
{
    static const char all[] = "SLURM_JOB_ID=12 PBS_JOBID=5 LSB_JOBID=7";

    (void)state;
    put("bjobs", ".says", "1:02 L\n");
    assert_true(left_of(all, "scontrol", SLURM) == noon);
    was_asked("scontrol", "show job 12");
    was_asked("qstat", NULL);
    assert_true(left_of(all, "scontrol", "") == 3720 - 100);
    was_asked("scontrol", "show job 12");
    was_asked("qstat", "-f 5");
    was_asked("bjobs", "-noheader -o time_left 7");
    assert_true(left_of("SLURM_JOB_END_TIME=soon SLURM_JOB_ID=12", "scontrol", SLURM) == noon);
    was_asked("scontrol", "show job 12");
    assert_true(left_of("SLURM_JOB_END_TIME=1767226600 SLURM_JOB_ID=12", "scontrol", SLURM) == 1000 - 100);
    was_asked("scontrol", NULL);
}

static void a_quarter_at_most_is_kept_and_a_second_is_left(void **state)
{
    static const struct {
        int left;
        double warn, want;
    } cases[] = { { 60, 17, 45 }, { 60, 13, 47 }, { 60, 15, 45 }, { 60, 300, 45 },
                  { 2, 1, 1.5 },  { 1, 5, 1 },    { 0, 5, 1 },    { -9, 5, 1 } };
    char end[32];

    (void)state;
    forget();
    assert_true(st_time_left(-1, 100) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)snprintf(end, sizeof end, "%d", NOW + cases[i].left);
        assert_int_equal(setenv("SLURM_JOB_END_TIME", end, 1), 0);
        assert_true(st_time_left(-1, cases[i].warn) == cases[i].want);
        assert_true(st_time_left(0, cases[i].warn) == 0);
        assert_true(st_time_left(0.5, cases[i].warn) == 0.5);
    }
    forget();
}

static void ask(void *unused)
{
    (void)unused;
    assert_true(st_time_left(-1, 100) == 3720 - 100);
}

static void nothing_is_left_of_a_question(void **state)
{
    const int open = count_in("/proc/self/fd");

    (void)state;
    assert_true(left_of("LSB_JOBID=7", "bjobs", "1:02 L\n") == 3720 - 100);
    assert_holds_nothing(ask, NULL);
    assert_int_equal(count_in("/proc/self/fd"), open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_are_read_in_local_time, make, drop),
        cmocka_unit_test_setup_teardown(a_task_of_an_array_is_asked_for_by_its_number, make, drop),
        cmocka_unit_test_setup_teardown(a_name_that_no_job_has_is_not_asked_for, make, drop),
        cmocka_unit_test_setup_teardown(what_is_no_answer_is_no_limit, make, drop),
        cmocka_unit_test_setup_teardown(the_first_that_answers_is_believed, make, drop),
        cmocka_unit_test_setup_teardown(a_quarter_at_most_is_kept_and_a_second_is_left, make, drop),
        cmocka_unit_test_setup_teardown(nothing_is_left_of_a_question, make, drop),
    };

    return cmocka_run_group_tests_name("time left", tests, NULL, NULL);
}
