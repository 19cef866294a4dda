/* SPDX-License-Identifier: Apache-2.0 */
/* Locks between runs, fsync before rename, errors that stop a run, and the content of failure rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "pipeline/base/file.h"
#include "pipeline/base/log.h"
#include "pipeline/lock/lock.h"
#include "pipeline/workflow/shard.h"
#include "toy.h"
#include "unit/calls.h"

static char dir[256];

static int make(void **state)
{
    (void)state;
    toy_directory(dir);
    calls_begin(NULL);
    return dir[0] == '\0';
}

static int drop(void **state)
{
    (void)state;
    toy_remove(dir);
    return 0;
}

static const char *in_dir(const char *name)
{
    static char path[4][300];
    static int n;

    (void)snprintf(path[n % 4], sizeof path[0], "%s/%s", dir, name);
    return path[n++ % 4];
}

/* ---- locks ---- */

static void a_live_holder_is_reported_without_waiting(void **state)
{
    pl_error err = { 0 };
    pl_lock held, second;

    (void)state;
    assert_int_equal(pl_lock_take(&held, dir, NULL), PL_OK);
    assert_int_equal(pl_lock_take(&second, dir, &err), PL_ELOCK);
    assert_int_equal(calls_slept, 0);
    pl_lock_drop(&held);
}

static pid_t heir; /* a child that inherited the lock of a holder that died */

static void end_heir(void)
{
    if (heir > 0)
        (void)kill(heir, SIGKILL);
    heir = 0;
}

static void start_holder_that_dies(int out)
{
    pl_lock lock;
    pid_t child;

    if (pl_lock_take(&lock, dir, NULL) != PL_OK || (child = fork()) < 0)
        _exit(1);
    if (child == 0) {
        (void)sleep(60);
        _exit(0);
    }
    _exit(write(out, &child, sizeof child) != sizeof child);
}

static void a_lock_inherited_from_a_dead_holder_is_waited_for(void **state)
{
    pl_error err = { 0 };
    pl_lock lock;
    int pipes[2], status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    if (pid == 0)
        start_holder_that_dies(pipes[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(pipes[0], &heir, sizeof heir), sizeof heir);
    calls_on_sleep = end_heir; /* the child lets go while the second waits */
    assert_int_equal(pl_lock_take(&lock, dir, &err), PL_OK);
    assert_true(calls_slept >= 1);
    pl_lock_drop(&lock);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

static bool network; /* the type that statfs returns for every file system */

int __real_statfs(const char *path, struct statfs *out);
int __wrap_statfs(const char *path, struct statfs *out);

int __wrap_statfs(const char *path, struct statfs *out)
{
    int rc = __real_statfs(path, out);

    if (network)
        out->f_type = 0x6969; /* NFS */
    return rc;
}

static void on_a_network_a_lock_is_a_claim_for_other_hosts_too(void **state)
{
    pl_error err = { 0 };
    pl_lock lock;

    (void)state;
    for (int i = 0; i < 2; i++) {
        network = i == 1;
        assert_int_equal(pl_lock_take(&lock, dir, &err), PL_OK);
        assert_int_equal(access(in_dir(".lock.host"), F_OK), network ? 0 : -1);
        pl_lock_drop(&lock);
        assert_int_not_equal(access(in_dir(".lock.host"), F_OK), 0);
    }
    network = false;
}

static char heard[4000];

static void listen(void *ctx, pl_level level, const char *line)
{
    const size_t n = strlen(heard);

    (void)ctx;
    (void)snprintf(heard + n, sizeof heard - n, "%d %s\n", (int)level, line);
}

/* All that a run says that people see. */
static pl_code heard_run(toy *t, pl_error *err)
{
    pl_code code;

    heard[0] = '\0';
    pl_log_to(listen, NULL, PL_INFO);
    code = toy_run(t, 1, err);
    pl_log_to(NULL, NULL, PL_ERROR);
    return code;
}

static void a_run_on_a_network_is_told_what_is_safe(void **state)
{
    char want[600];
    int64_t wal;
    pl_error err = { 0 };
    pl_store *s = NULL;
    toy t;

    (void)state;
    network = true;
    toy_make(&t, dir, 1);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, &err), PL_OK);
    assert_true(s->network);
    assert_int_equal(pl_db_int(s->db, &wal, &err, "SELECT journal_mode='wal' FROM pragma_journal_mode"), PL_OK);
    assert_int_equal(wal, 0);
    pl_store_close(s);
    for (int journal = 0; journal < 3; journal++) {
        t.wf.storage.journal = journal;
        assert_int_equal(heard_run(&t, &err), PL_OK);
        (void)snprintf(want, sizeof want,
                       "1 %s is on a network file system: %s; on other hosts only `molsieve status` is safe until the run ends\n",
                       t.wf.storage.results,
                       journal == 1 ? "storage.journal wal is not safe there, leave it auto" : "commits are slower there");
        assert_string_equal(heard, want);
        assert_true(toy_sound(&t));
    }
    network = false;
    t.wf.storage.journal = 0;
    assert_int_equal(heard_run(&t, &err), PL_OK);
    assert_string_equal(heard, "");
    toy_free(&t);
}

/* ---- linked with -Wl,--wrap=statvfs ---- */

static unsigned long blocks_free; /* of 1,000 bytes, on every disk; 0: what is true */

int __real_statvfs(const char *path, struct statvfs *out);
int __wrap_statvfs(const char *path, struct statvfs *out);

int __wrap_statvfs(const char *path, struct statvfs *out)
{
    int rc = __real_statvfs(path, out);

    if (blocks_free > 0) {
        out->f_bavail = blocks_free;
        out->f_frsize = 1000;
    }
    return rc;
}

/* The size of the file, in thousands of bytes and rounded up, and a tenth of it. */
static unsigned long needed(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return (unsigned long)(1.1 * (double)st.st_size / 1000) + 1;
}

static void earlier_results_are_kept_only_where_there_is_room(void **state)
{
    char want[700], size[32], left[32];
    pl_error err = { 0 };
    struct stat st;
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    t.conf[1].offset = 5;
    assert_int_equal(stat(t.wf.storage.results, &st), 0);
    blocks_free = needed(t.wf.storage.results) - 1;
    assert_int_equal(heard_run(&t, &err), PL_EIO);
    (void)snprintf(want, sizeof want,
                   "%s: %s free, %s needed to keep the old results until the new ones are complete; free some space",
                   in_dir("results.previous.db"), pl_size_str(1000.0 * (double)blocks_free, left),
                   pl_size_str(1.1 * (double)st.st_size, size));
    assert_string_equal(err.text, want);
    assert_int_equal(toy_int(&t, "SELECT max(value) FROM square"), 112 * 112);
    blocks_free = needed(t.wf.storage.results);
    assert_int_equal(heard_run(&t, &err), PL_OK);
    assert_int_equal(toy_int(&t, "SELECT max(value) FROM square"), 112 * 112 + 5);
    blocks_free = 0;
    (void)snprintf(want, sizeof want, "2 old results are kept in %s until the new ones are complete\n",
                   in_dir("results.previous.db"));
    assert_non_null(strstr(heard, want));
    toy_free(&t);
}

static void features_are_copied_only_where_there_is_room(void **state)
{
    char copy[400], want[500];
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    (void)snprintf(copy, sizeof copy, "%s.staged", t.wf.storage.results);
    t.wf.storage.stage_out = true;
    blocks_free = 1;
    assert_int_equal(toy_run(&t, 1, &err), PL_EIO);
    blocks_free = 0;
    (void)snprintf(want, sizeof want, "features are not copied back (storage.stage_out): %s: a copy of ", copy);
    assert_memory_equal(err.text, want, strlen(want));
    assert_non_null(strstr(err.text, ", but only 1.0 kB free; free some space and run again, nothing is lost"));
    assert_int_not_equal(access(copy, F_OK), 0);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_int_equal(access(copy, F_OK), 0);
    toy_free(&t);
}

/* ---- files that survive a power cut ---- */

static void a_file_is_synced_before_and_its_folder_after_the_rename(void **state)
{
    pl_error err = { 0 };
    char back[4] = "";
    FILE *f;

    (void)state;
    assert_int_equal(pl_file_write(in_dir("a"), (pl_bytes){ "one", 3 }, &err), PL_OK);
    assert_string_equal(calls, calls_durable(dir, "a"));
    calls_begin("a.tmp");
    assert_int_equal(pl_file_write(in_dir("a"), (pl_bytes){ "two", 3 }, &err), PL_EIO);
    assert_int_not_equal(access(in_dir("a.tmp"), F_OK), 0);
    f = fopen(in_dir("a"), "r");
    assert_non_null(f);
    assert_int_equal(fread(back, 1, 3, f), 3);
    (void)fclose(f);
    assert_string_equal(back, "one");
    calls_begin(strrchr(dir, '/') + 1);
    assert_int_equal(pl_file_write(in_dir("b"), (pl_bytes){ "two", 3 }, &err), PL_EIO);
}

static void a_results_copy_is_synced_before_and_after_its_rename(void **state)
{
    pl_error err = { 0 };
    pl_store *s = NULL;
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, &err), PL_OK);
    calls_begin(NULL);
    assert_int_equal(pl_store_copy(s, in_dir("copy.db"), &err), PL_OK);
    assert_string_equal(calls, calls_durable(dir, "copy.db"));
    calls_begin("second.db.tmp");
    assert_int_equal(pl_store_copy(s, in_dir("second.db"), &err), PL_EIO);
    assert_int_not_equal(access(in_dir("second.db"), F_OK), 0);
    assert_int_not_equal(access(in_dir("second.db.tmp"), F_OK), 0);
    pl_store_close(s);
    toy_free(&t);
}

/* ---- which errors stop a run ---- */

static pl_code fails_with;

static pl_code fail_work(void *worker, pl_unit *unit, pl_error *err)
{
    (void)worker, (void)unit;
    return pl_fail(err, fails_with, "made to fail");
}

/* Stages of a run with --keep-going that began after `square` failed with `code`. */
static int64_t began_after(pl_code code)
{
    pl_run_opts opts = { .workers = 1, .quiet = true, .keep_going = true };
    pl_stage broken = toy_square;
    pl_error err = { 0 };
    char name[16];
    int64_t n;
    toy t;

    fails_with = code;
    broken.work = fail_work;
    (void)snprintf(name, sizeof name, "code-%d", (int)code);
    toy_make(&t, in_dir(name), 4);
    t.wf.step[1].stage = &broken;
    t.wf.step[2].n_needs = 0; /* walk does not depend on square */
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), code);
    n = toy_int(&t, "SELECT count(*) FROM stage WHERE name='walk'");
    toy_free(&t);
    return n;
}

static void keep_going_ends_at_errors_of_disk_memory_and_program(void **state)
{
    static const pl_code goes_on[] = { PL_EINPUT, PL_ECONFIG, PL_EDATA, PL_EDEVICE };
    static const pl_code ends[] = { PL_EIO, PL_ENOMEM, PL_EBUG, PL_ELOCK };

    (void)state;
    for (size_t i = 0; i < sizeof goes_on / sizeof *goes_on; i++)
        assert_int_equal(began_after(goes_on[i]), 1);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        assert_int_equal(began_after(ends[i]), 0);
}

static void until_the_first_stage_runs_that_one(void **state)
{
    pl_run_opts opts = { .workers = 1, .quiet = true, .until = "count" };
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 3);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_OK);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM number"), 24);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage"), 1);
    toy_free(&t);
}

/* ---- what a failure records ---- */

static pl_code commit_failures(void *state, pl_unit *unit, pl_error *err)
{
    pl_env *env = *(pl_env **)state; /* the first member of the toy's state */
    const pl_failure whole = {
        .record_id = 3, .mol_id = 4, .code = "died", .message = "worker\x01", .signal = 11, .cpu_s = 2.5, .attempt = 2
    };
    const pl_failure min = { .record_id = 5, .code = "late" };
    pl_code code = unit->index == 0 ? pl_failure_add(env, &whole, err) : PL_OK;

    if (code == PL_OK && unit->index == 0)
        code = pl_failure_add(env, &min, err);
    return code != PL_OK ? code : toy_count.commit(state, unit, err);
}

static void a_failure_is_stored_with_all_that_is_known(void **state)
{
    pl_stage count = toy_count;
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    count.commit = commit_failures;
    t.wf.step[0].stage = &count;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM failure"), 2);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM failure WHERE run_id=1 AND stage='count' AND record_id=3 AND mol_id=4 AND "
                                 "code='died' AND message LIKE 'worker%' AND signal=11 AND cpu_s=2.5 AND attempt=2 AND "
                                 "at_utc LIKE '20__-__-__T__:__:__Z'"),
                     1);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM failure WHERE run_id=1 AND stage='count' AND record_id=5 AND mol_id IS NULL "
                                 "AND code='late' AND message='' AND signal IS NULL AND attempt=1"),
                     1);
    toy_free(&t);
}

/* ---- job arrays ---- */

static void array_of(const char *const names[5], const char *const values[5])
{
    for (int i = 0; i < 5; i++)
        if (names[i] != NULL && values[i] != NULL)
            (void)setenv(names[i], values[i], 1);
        else if (names[i] != NULL)
            (void)unsetenv(names[i]);
}

static void an_array_of_one_task_is_one_shard(void **state)
{
    static const char *const slurm[] = { "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX",
                                         "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT" };
    static const char *const sge[] = { "SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE", NULL };
    static const char *const one[] = { "5", "5", "5", "1", "1" }, *const uncounted[] = { "5", "5", "5", "1", NULL };
    static const char *const gone[] = { NULL, NULL, NULL, NULL, NULL };
    const char *const *const cases[][2] = { { slurm, one }, { slurm, uncounted }, { sge, one } };
    pl_error err = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_shard s = { 7, 7 };
        array_of(cases[i][0], cases[i][1]);
        if (pl_shard_parse(&s, "auto", &err) != PL_OK)
            fail_msg("%s", err.text);
        assert_int_equal(s.k, 0);
        assert_int_equal(s.n, 1);
        array_of(cases[i][0], gone);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_live_holder_is_reported_without_waiting),
        CASE(a_lock_inherited_from_a_dead_holder_is_waited_for),
        CASE(on_a_network_a_lock_is_a_claim_for_other_hosts_too),
        CASE(a_run_on_a_network_is_told_what_is_safe),
        CASE(earlier_results_are_kept_only_where_there_is_room),
        CASE(features_are_copied_only_where_there_is_room),
        CASE(a_file_is_synced_before_and_its_folder_after_the_rename),
        CASE(a_results_copy_is_synced_before_and_after_its_rename),
        CASE(keep_going_ends_at_errors_of_disk_memory_and_program),
        CASE(until_the_first_stage_runs_that_one),
        CASE(a_failure_is_stored_with_all_that_is_known),
        CASE(an_array_of_one_task_is_one_shard),
    };
    return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
