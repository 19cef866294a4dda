/* SPDX-License-Identifier: Apache-2.0 */
/* What a run writes: rows, log and heartbeat. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/file.h"
#include "pipeline/base/log.h"
#include "pipeline/base/stop.h"
#include "pipeline/run/heartbeat.h"
#include "pipeline/run/level.h"
#include "pipeline/run/runner.h"
#include "tests/unit/locks.h"
#include "tests/unit/stored_runs.h"

static void listen(void *ctx, pl_level level, const char *line)
{
    (void)ctx;
    pl_text_addf(&heard, "%d %s\n", (int)level, line);
}

static void hear(const char *text)
{
    if (strstr(pl_text_str(&heard), text) == NULL)
        fail_msg("not said: %s\nsaid: %s", text, pl_text_str(&heard));
}

/* With a number of seconds between: how many is a matter of the machine. */
static void hear_timed(const char *before, const char *after)
{
    const char *at = strstr(pl_text_str(&heard), before);
    char *end = NULL;

    if (at == NULL || !(strtod(at += strlen(before), &end) >= 0) || end == at || strncmp(end, after, strlen(after)) != 0)
        fail_msg("not said: %sN%s\nsaid: %s", before, after, pl_text_str(&heard));
}

#define UTC "'20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z'"

/* ---- rows ---- */

static bool usage_known; /* of the processor */
int __real_getrusage(int who, struct rusage *use);
int __wrap_getrusage(int who, struct rusage *use);

int __wrap_getrusage(int who, struct rusage *use)
{
    if (!usage_known)
        return __real_getrusage(who, use);
    use->ru_utime = (struct timeval){ who == RUSAGE_SELF ? 3 : 70, 250000 };
    use->ru_stime = (struct timeval){ who == RUSAGE_SELF ? 1 : 20, 500000 };
    return 0;
}

/* A child that uses 30 ms of processor time. */
static void child_burns(void)
{
    const pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        while (clock() < CLOCKS_PER_SEC / 33)
            ;
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void the_row_of_a_run_has_all_that_is_known_of_it(void **state)
{
    static char *const argv[] = { (char *)"run", (char *)"a \"b\".yaml" };
    pl_run_opts opts = { .workers = 2,
                         .quiet = true,
                         .argc = 2,
                         .argv = argv,
                         .command = "go",
                         .program_version = "1.2",
                         .git_commit = "abc",
                         .openbabel_version = "3.1",
                         .ranks = 4 };
    char hex[65];
    pl_sha256 sha;
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    child_burns();
    (void)setenv("SLURM_JOB_ID", "4711", 1);
    (void)setenv("SLURM_ARRAY_TASK_ID", "3", 1);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, NULL), PL_OK);
    (void)unsetenv("SLURM_JOB_ID");
    (void)unsetenv("SLURM_ARRAY_TASK_ID");
    pl_sha256_start(&sha);
    pl_sha256_add(&sha, "format: 1\n", 10);
    pl_sha256_hex(&sha, hex);
    assert_string_equal(rows("SELECT run_id,command,argv_json,resumed_from,state,exit_code,stop_reason,scheduler,scheduler_job_id,"
                             "array_task,ranks,workers,seed,program_version,git_commit,openbabel_version,kernels FROM run"),
                        "1|go|[\"run\",\"a \\\"b\\\".yaml\"]|NULL|done|0|NULL|slurm|4711|3|4|2|7|1.2|abc|3.1|{}\n");
    assert_string_equal(rows("SELECT config_yaml||'|'||(config_sha256 GLOB replace(hex(zeroblob(32)),'0','[0-9a-f]')) FROM run"),
                        "format: 1\n|1\n");
    (void)rows("SELECT config_sha256 FROM run");
    assert_memory_equal(pl_text_str(&answer), hex, 64);
    assert_string_equal(rows("SELECT started_utc GLOB " UTC ", ended_utc GLOB " UTC ", started_utc<=ended_utc, length(host)>0,"
                             " host<>'?', sqlite_version=sqlite_version() FROM run"),
                        "1|1|1|1|1|1\n");
    assert_string_equal(rows("SELECT cpu_s>0, worker_cpu_s>=0.02 FROM run"), "1|1\n");
    usage_known = true;
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, NULL), PL_OK);
    usage_known = false;
    assert_string_equal(rows("SELECT round(cpu_s,6), round(worker_cpu_s,6) FROM run WHERE run_id=2"), "4.75|90.75\n");
    toy_free(&t);
}

static void a_run_says_which_one_it_continues_and_why_that_ended(void **state)
{
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 6);
    t.conf[1].fail_at = 3;
    assert_int_equal(toy_run(&t, 1, &err), PL_EINPUT);
    t.conf[1].fail_at = 0;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_string_equal(rows("SELECT run_id,command,argv_json,resumed_from,state,exit_code,stop_reason,scheduler,scheduler_job_id,"
                             "array_task,ranks,workers,program_version,git_commit FROM run ORDER BY 1"),
                        "1|run|[]|NULL|failed|1|unit 3 is meant to fail|NULL|NULL|NULL|1|1|unknown|NULL\n"
                        "2|run|[]|1|done|0|NULL|NULL|NULL|NULL|1|1|unknown|NULL\n"
                        "3|run|[]|NULL|done|0|NULL|NULL|NULL|NULL|1|1|unknown|NULL\n");
    toy_free(&t);
}

static void a_run_that_died_is_lost_and_the_next_continues_it(void **state)
{
    pl_error err = { 0 };
    toy t;

    (void)state;
    assert_int_equal(toy_ended(toy_start(dir, 4, 0, "count.unit.after_commit:2")), 137);
    toy_make(&t, dir, 4);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_string_equal(rows("SELECT run_id,resumed_from,state,exit_code,stop_reason,ended_utc IS NULL FROM run ORDER BY 1"),
                        "1|NULL|lost|NULL|the process ended without a message|1\n2|1|done|0|NULL|0\n");
    toy_free(&t);
}

static void rows_of_units_and_stages_say_what_was_done(void **state)
{
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 3);
    t.conf[0].fail_every = 5;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_string_equal(rows("SELECT stage_id,unit,first,last,n_ok,n_failed,run_id,wall_s>=0 AND wall_s<60 FROM unit ORDER BY 1,2"),
                        "1|0|1|8|7|1|1|1\n1|1|9|16|6|2|1|1\n1|2|17|24|7|1|1|1\n"
                        "2|0|1|7|7|0|1|1\n2|1|9|14|6|0|1|1\n2|2|17|23|7|0|1|1\n");
    assert_string_equal(rows("SELECT stage_id,name,state,n_units,n_blocks,run_id,code_version,extra_json,created_utc GLOB " UTC ","
                             "done_utc GLOB " UTC ", wall_s>=0 AND wall_s<60 FROM stage ORDER BY 1"),
                        "1|count|done|3|3|1|1|{}|1|1|1\n2|square|done|3|3|1|1|{}|1|1|1\n3|walk|done|0|0|1|1|{\"seed\":7}|1|1|1\n");
    assert_string_equal(rows("SELECT needs_json='{\"square\":\"'||(SELECT key FROM stage WHERE name='square')||'\"}',"
                             "params_json LIKE '%\"units\":3%', json_extract(params_json,'$.fail_at') IS NULL FROM stage WHERE "
                             "name='walk'"),
                        "1|1|1\n");
    assert_string_equal(rows("SELECT run_id,level,stage,message,at_utc GLOB " UTC " FROM event ORDER BY event_id"),
                        "1|info|count|never run|1\n1|info|square|never run|1\n1|further|count|done|1\n1|further|square|done|1\n"
                        "1|info|walk|never run|1\n1|further|walk|done|1\n");
    assert_string_equal(rows("SELECT record_id,code,message,run_id,stage,attempt FROM failure ORDER BY 1"),
                        "5|toy|meant to fail|1|count|1\n10|toy|meant to fail|1|count|1\n15|toy|meant to fail|1|count|1\n"
                        "20|toy|meant to fail|1|count|1\n");
    toy_free(&t);
}

static void events_and_metrics_have_all_their_columns(void **state)
{
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    {
        pl_env env = { .step = &t.step[2], .run_id = 1 };
        assert_int_equal(pl_store_open(&env.store, &t.wf, &toy_schema, &err), PL_OK);
        pl_log_to(listen, NULL, PL_DEBUG);
        for (int level = PL_ERROR; level <= PL_DEBUG; level++)
            pl_event_add(&env, level, "level \x1b %d", level);
        pl_stop_stuck(true);
        pl_further_add(&env, "step %d", 5);
        assert_false(pl_stop_is_stuck());
        assert_int_equal(pl_metric_add(&env, 10, 0.5, "valid", "mae", 1.5, &err), PL_OK);
        assert_int_equal(pl_metric_add(&env, 11, 0.75, "train", "loss", 2, &err), PL_OK);
        assert_int_equal(pl_metric_add(&env, 11, 0.75, "train", "loss", NAN, &err), PL_EBUG);
        assert_string_equal(err.text, "metric loss of train is not a number");
        pl_store_close(env.store);
    }
    assert_string_equal(pl_text_str(&heard), "0 walk: level   0\n1 walk: level   1\n2 walk: level   2\n3 walk: level   3\n");
    assert_string_equal(rows("SELECT run_id,level,stage,message FROM event WHERE event_id>6 ORDER BY event_id"),
                        "1|error|walk|level   0\n1|warn|walk|level   1\n1|info|walk|level   2\n1|debug|walk|level   3\n"
                        "1|further|walk|step 5\n");
    assert_string_equal(rows("SELECT stage,step,epoch,split,name,value,run_id,at_utc GLOB " UTC " FROM metric ORDER BY step"),
                        "walk|10|0.5|valid|mae|1.5|1|1\nwalk|11|0.75|train|loss|2.0|1|1\n");
    toy_free(&t);
}

static void a_stage_that_runs_again_leaves_nothing_of_before(void **state)
{
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    t.conf[0].fail_every = 5;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    t.conf[0].fail_every = 7;
    pl_log_to(listen, NULL, PL_INFO);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    hear("2 stage count: runs again: fail_every: 5 -> 7\n");
    hear("results.previous.db until the new ones are complete\n");
    assert_null(strstr(pl_text_str(&heard), "stage square: runs again"));
    assert_string_equal(rows("SELECT record_id FROM failure ORDER BY 1"), "7\n14\n");
    assert_string_equal(rows("SELECT name,run_id,n_units FROM stage ORDER BY stage_id"), "count|2|2\nsquare|2|2\nwalk|2|0\n");
    assert_string_equal(rows("SELECT count(*),min(run_id) FROM unit"), "4|2\n");
    assert_string_equal(rows("SELECT message FROM event WHERE run_id=2 AND level='info' ORDER BY event_id"),
                        "fail_every: 5 -> 7\nneeds count, which runs again\nneeds square, which runs again\n");
    toy_free(&t);
}

/* ---- how it was computed ---- */

static const char *level_now;

static const char *level_of(const pl_step *step, pl_arena *mem)
{
    (void)mem, (void)step;
    return level_now;
}

static const char advice[] =
    "results may differ from the seventh digit on; to avoid this, set `kernels` of the stage to one set of "
    "kernels (`molsieve help score`)";

static void other_kernels_are_told_where_a_stage_goes_on(void **state)
{
    pl_stage square = toy_square;
    char want[600];
    const char *levels;
    pl_error err = { 0 };
    pl_store *s = NULL;
    toy t;

    (void)state;
    toy_make(&t, dir, 6);
    square.level = level_of;
    t.wf.step[1].stage = &square;
    t.conf[1].fail_at = 2;
    level_now = "avx512";
    assert_int_equal(toy_run(&t, 1, &err), PL_EINPUT);
    t.conf[1].fail_at = 4;
    assert_int_equal(toy_run(&t, 1, &err), PL_EINPUT);
    pl_log_to(listen, NULL, PL_WARN);
    pl_text_reset(&heard);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, &err), PL_OK);
    assert_int_equal(pl_levels_compare(&t.wf, s, 2, &err), PL_OK); /* shards of one kind of machine */
    pl_store_close(s);
    assert_string_equal(pl_text_str(&heard), "");
    assert_string_equal(rows("SELECT count(*) FROM event WHERE level='warn'"), "0\n");
    t.conf[1].fail_at = 0;
    level_now = "avx2";
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    (void)snprintf(want, sizeof want, "3|warn|square|computed on avx512 before, now on avx2: %s\n", advice);
    assert_string_equal(rows("SELECT run_id,level,stage,message FROM event WHERE level='warn'"), want);
    assert_string_equal(rows("SELECT run_id,kernels FROM run ORDER BY 1"),
                        "1|{\"square\":\"avx512\"}\n2|{\"square\":\"avx512\"}\n3|{\"square\":\"avx2\"}\n");
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, &err), PL_OK);
    assert_int_equal(pl_levels_of(s, 2, &levels, t.mem, &err), PL_OK);
    assert_string_equal(levels, "avx2; avx512");
    assert_int_equal(pl_levels_of(s, 1, &levels, t.mem, &err), PL_OK);
    assert_string_equal(levels, "");
    pl_text_reset(&heard);
    assert_int_equal(pl_levels_compare(&t.wf, s, 3, &err), PL_OK);
    pl_store_close(s);
    (void)snprintf(want, sizeof want, "1 square    shards were computed on avx2 and avx512: %s\n", advice);
    assert_string_equal(pl_text_str(&heard), want);
    (void)snprintf(want, sizeof want, "3|warn|square|shards were computed on avx2 and avx512: %s\n", advice);
    assert_string_equal(rows("SELECT run_id,level,stage,message FROM event ORDER BY event_id DESC LIMIT 1"), want);
    toy_free(&t);
}

static void levels_of_stages_are_one_object(void **state)
{
    pl_stage count = toy_count, walk = toy_walk;
    toy t;

    (void)state;
    toy_make(&t, dir, 1);
    assert_string_equal(pl_levels_json(&t.wf, t.mem), "{}");
    level_now = "a\"b";
    count.level = walk.level = level_of;
    t.wf.step[0].stage = &count;
    t.wf.step[2].stage = &walk;
    assert_string_equal(pl_levels_json(&t.wf, t.mem), "{\"count\":\"a\\\"b\",\"walk\":\"a\\\"b\"}");
    toy_free(&t);
}

/* ---- what is said ---- */

static void the_log_of_a_run_names_its_stages_and_their_items(void **state)
{
    pl_run_opts opts = { .workers = 1 };
    pl_error err = { 0 };
    char was[300], now[300];
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    t.conf[0].fail_every = 5;
    pl_log_to(listen, NULL, PL_DEBUG);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_OK);
    hear("3 stage count: never run\n");
    hear_timed("2 count     done in ", "s: 16 numbers, 3 failed\n");
    hear_timed("2 square    done in ", "s: 13 numbers\n");
    hear_timed("2 walk      done in ", "s");
    assert_null(strstr(pl_text_str(&heard), "0 failed"));
    assert_null(strstr(pl_text_str(&heard), "database"));
    pl_text_reset(&heard);
    t.wf.step[1].stage = &(pl_stage){ .name = "square",
                                      .help = "",
                                      .scope = PL_PER_UNIT,
                                      .version = 2,
                                      .fields = toy_square.fields,
                                      .conf_size = toy_square.conf_size,
                                      .state_size = toy_square.state_size,
                                      .worker_size = toy_square.worker_size,
                                      .needs = toy_square.needs,
                                      .open = toy_square.open,
                                      .next = toy_square.next,
                                      .worker_open = toy_square.worker_open,
                                      .work = toy_square.work,
                                      .commit = toy_square.commit,
                                      .own_references = toy_square.own_references,
                                      .close = toy_square.close,
                                      .reset_sql = toy_square.reset_sql };
    t.conf[1].fail_at = 1;
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_EINPUT);
    assert_string_equal(err.where, "stage square");
    hear_timed("2 square    failed after ", "s: 7 items\n"); /* a stage that does not name them */
    (void)snprintf(was, sizeof was, "%s", t.wf.storage.results);
    (void)snprintf(now, sizeof now, "2 old results are kept in %.*s.previous.db until the new ones are complete\n",
                   (int)strlen(was) - 3, was);
    hear(now);
    toy_free(&t);
}

/* ---- linked with -Wl,--wrap=pthread_cond_timedwait ---- */

enum { BEATS = 4 };

static struct timespec until[BEATS + 1]; /* what the thread of the heartbeat waits for: at once, BEATS times */
static atomic_int n_until;
static bool hurry;

int __real_pthread_cond_timedwait(pthread_cond_t *wake, pthread_mutex_t *lock, const struct timespec *end);
int __wrap_pthread_cond_timedwait(pthread_cond_t *wake, pthread_mutex_t *lock, const struct timespec *end);

int __wrap_pthread_cond_timedwait(pthread_cond_t *wake, pthread_mutex_t *lock, const struct timespec *end)
{
    const int n = atomic_load(&n_until);

    (void)locks_find(lock);
    if (!hurry || n > BEATS)
        return __real_pthread_cond_timedwait(wake, lock, end);
    until[n] = *end;
    atomic_store(&n_until, n + 1);
    return n < BEATS ? ETIMEDOUT : __real_pthread_cond_timedwait(wake, lock, end);
}

/* Runs the toy with a pause before each step of walk; what it draws is in *drawn, of t->mem. */
static void run_on_a_terminal(toy *t, pl_bytes *drawn)
{
    pl_run_opts opts = { .workers = 1, .progress_tty = true };
    const int fd = open(in_dir("drawn"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), was = dup(STDERR_FILENO);
    pl_code code;

    toy_make(t, dir, 2);
    t->conf[2].pause = 0.02;
    assert_true(fd >= 0 && was >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    code = pl_run(&t->wf, &toy_schema, &opts, t->mem, NULL);
    assert_int_equal(dup2(was, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(close(was) | close(fd), 0);
    assert_int_equal(code, PL_OK);
    assert_int_equal(pl_file_read(drawn, in_dir("drawn"), t->mem, NULL), PL_OK);
}

static void a_stage_of_its_own_steps_says_how_many_there_are(void **state)
{
    pl_bytes drawn;
    char *text;
    toy t;

    (void)state;
    run_on_a_terminal(&t, &drawn);
    text = pl_strndup(t.mem, drawn.data, drawn.len);
    assert_non_null(strstr(text, "walk      0 steps")); /* not known before the first */
    assert_non_null(strstr(text, " of 16 steps  "));
    assert_null(strstr(text, "about 16 steps"));
    toy_free(&t);
}

static void the_heart_beats_every_five_seconds(void **state)
{
    struct timespec begin, end;
    pl_heartbeat *h;

    (void)state;
    hurry = true;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    h = pl_heartbeat_start(dir, 1, NULL);
    assert_non_null(h);
    while (atomic_load(&n_until) <= BEATS)
        toy_sleep_ms(1);
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    pl_heartbeat_end(h, PL_OK, NULL);
    hurry = false;
    for (int i = 1; i <= BEATS; i++) {
        assert_int_equal(until[i].tv_sec - until[i - 1].tv_sec, PL_HEARTBEAT_S);
        assert_int_equal(until[i].tv_nsec, until[0].tv_nsec);
    }
    assert_true(until[0].tv_sec - PL_HEARTBEAT_S >= begin.tv_sec && until[0].tv_sec - PL_HEARTBEAT_S <= end.tv_sec);
}

static void the_heartbeat_tells_what_is_done_and_how_it_ended(void **state)
{
    pl_run_opts opts = { .workers = 1, .quiet = true, .command = "go" };
    static const char *const says[] = {
        "{\"host\":\"",
        "\",\"pid\":",
        ",\"job\":\"pbs 12.server task 4\",\"run_id\":1,\"command\":\"go\",\"state\":\"failed\",\"reason\":\"unit 1 is meant to fail\",\"started_utc\":\"20",
        "Z\",\"at_utc\":\"20",
        ",\"stages\":[{\"stage\":\"count\",\"state\":\"",
        "\",\"item\":\"numbers\",\"note\":\"\",\"done\":16,\"total\":16},{\"stage\":\"square\",\"state\":\"running\",\"item\":\"numbers\",\"note\":\"\",\"done\":8,\"total\":",
        "],\"crc32\":\""
    };
    pl_error err = { 0 };
    pl_bytes file;
    char *text;
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &(pl_run_opts){ .workers = 1, .quiet = true, .until = "count" }, t.mem, &err),
                     PL_OK);
    assert_int_equal(unlink(t.wf.storage.results), 0); /* starts over: both stages in one pass */
    (void)unlink(t.wf.storage.features);
    t.conf[1].fail_at = 1;
    (void)setenv("PBS_JOBID", "12.server", 1);
    (void)setenv("PBS_ARRAY_INDEX", "4", 1);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_EINPUT);
    (void)unsetenv("PBS_JOBID");
    (void)unsetenv("PBS_ARRAY_INDEX");
    assert_int_equal(pl_file_read(&file, in_dir("heartbeat.json"), t.mem, &err), PL_OK);
    assert_true(pl_heartbeat_holds(file));
    text = pl_strndup(t.mem, file.data, file.len);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (strstr(text, says[i]) == NULL)
            fail_msg("%s\nnot in: %s", says[i], text);
    /* All numbers are counted; whether the stage is ended by then is a question of threads. */
    assert_true(strstr(text, "\"count\",\"state\":\"done\"") != NULL || strstr(text, "\"count\",\"state\":\"running\"") != NULL);
    for (size_t i = 0; i + 30 < file.len; i += 7) { /* a flipped bit is seen */
        text[i] ^= 4;
        assert_false(pl_heartbeat_holds((pl_bytes){ text, file.len }));
        text[i] ^= 4;
    }
    assert_false(pl_heartbeat_holds((pl_bytes){ text, file.len - 1 }));
    assert_false(pl_heartbeat_holds((pl_bytes){ text, 5 }));
    assert_false(pl_heartbeat_holds((pl_bytes){ "", 0 }));
    assert_true(pl_heartbeat_holds((pl_bytes){ "{\"a\":[]}", 8 })); /* of an older version, without a sum */
    assert_true(pl_heartbeat_holds((pl_bytes){ "{\"a\":[]}\n", 9 }));
    toy_free(&t);
}

static bool by_sample;

static pl_code ninety(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem, pl_error *err)
{
    (void)wf, (void)step, (void)store, (void)mem, (void)err;
    *out = (pl_estimate){ .n_items = 90, .guessed = by_sample };
    return PL_OK;
}

static pl_code no_work(void *worker, pl_unit *unit, pl_error *err)
{
    (void)worker, (void)unit;
    return pl_fail(err, PL_EINPUT, "no work");
}

/* Whether the heartbeat of one of so many shards, which fails, expects so many numbers of the first stage. */
static bool a_shard_expects(int n, const char *total)
{
    pl_run_opts opts = { .workers = 1, .quiet = true, .shard = { 1, n } };
    pl_stage count = toy_count;
    pl_bytes file = { 0 };
    pl_error err = { 0 };
    bool does;
    toy t;

    toy_make(&t, dir, 2);
    t.wf.step[0].stage = &count;
    count.estimate = ninety;
    count.work = no_work;
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_EINPUT);
    assert_int_equal(pl_file_read(&file, in_dir("heartbeat.json"), t.mem, &err), PL_OK);
    does = strstr(pl_strndup(t.mem, file.data, file.len), pl_sprintf(t.mem, "\"total\":%s}", total)) != NULL;
    toy_free(&t);
    return does;
}

static void a_shard_expects_its_share_of_what_is_guessed(void **state)
{
    (void)state;
    by_sample = true;
    assert_true(a_shard_expects(3, "30"));
    assert_true(a_shard_expects(1, "90"));
    by_sample = false; /* what is known is of the shard itself */
    assert_true(a_shard_expects(3, "90"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_shard_expects_its_share_of_what_is_guessed),
        CASE(the_row_of_a_run_has_all_that_is_known_of_it),
        CASE(a_run_says_which_one_it_continues_and_why_that_ended),
        CASE(a_run_that_died_is_lost_and_the_next_continues_it),
        CASE(rows_of_units_and_stages_say_what_was_done),
        CASE(events_and_metrics_have_all_their_columns),
        CASE(a_stage_that_runs_again_leaves_nothing_of_before),
        CASE(other_kernels_are_told_where_a_stage_goes_on),
        CASE(levels_of_stages_are_one_object),
        CASE(the_log_of_a_run_names_its_stages_and_their_items),
        CASE(a_stage_of_its_own_steps_says_how_many_there_are),
        CASE(the_heart_beats_every_five_seconds),
        CASE(the_heartbeat_tells_what_is_done_and_how_it_ended),
        locks_test,
    };
    return cmocka_run_group_tests_name("written", tests, NULL, NULL);
}
