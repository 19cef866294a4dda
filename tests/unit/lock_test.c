/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/lock/lock.h"
#include "toy.h"

static char dir[256];
static long slept; /* milliseconds that the program wanted to sleep */

int __wrap_nanosleep(const struct timespec *t, struct timespec *left);

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)left;
    slept += t->tv_sec * 1000 + t->tv_nsec / 1000000;
    return 0;
}

/* What flock fails with, or 0; and a file that it deletes before. */
static int flock_fails;
static const char *flock_deletes;
int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

int __wrap_flock(int fd, int how)
{
    if (flock_deletes != NULL)
        (void)unlink(flock_deletes);
    errno = flock_fails;
    return flock_fails != 0 ? -1 : __real_flock(fd, how);
}

static int make(void **state)
{
    (void)state;
    toy_directory(dir);
    return dir[0] == '\0';
}

static int drop(void **state)
{
    (void)state;
    toy_remove(dir);
    return 0;
}

static pid_t holder(int ready[2])
{
    pid_t pid = fork();

    if (pid == 0) {
        pl_lock lock;
        if (pl_lock_take(&lock, dir, NULL) != PL_OK || write(ready[1], "x", 1) != 1)
            _exit(1);
        (void)sleep(60);
        _exit(0);
    }
    return pid;
}

static void the_holder_is_named_and_a_killed_one_holds_nothing(void **state)
{
    pl_error err = { 0 };
    pl_lock lock;
    int ready[2];
    char byte, want[64];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    (void)setenv("SLURM_JOB_ID", "99", 1);
    pid = holder(ready);
    (void)unsetenv("SLURM_JOB_ID");
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(pl_lock_take(&lock, dir, &err), PL_ELOCK);
    assert_int_equal(lock.fd, -1);
    (void)snprintf(want, sizeof want, "pid %ld, slurm job 99, since 20", (long)pid);
    assert_non_null(strstr(err.text, want));
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    assert_int_equal(pl_lock_take(&lock, dir, &err), PL_OK);
    pl_lock_drop(&lock);
    pl_lock_drop(&lock); /* twice is fine */
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* A reused pid, a wrong clock, another host: the text of the file is for people only, the kernel holds the lock. */
static void the_text_of_a_lock_file_without_a_lock_is_ignored(void **state)
{
    static const char *const hosts[] = { NULL, "elsewhere" };
    char path[300], host[128] = "", line[200];
    pl_lock lock;

    (void)state;
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(path, sizeof path, "%s/.lock", dir);
    for (int i = 0; i < 8; i++) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        (void)fprintf(f, "host %s, pid %ld, since %s\n", hosts[i % 2] != NULL ? hosts[i % 2] : host,
                      (long)(i < 4 ? getppid() : getpid()), i / 2 % 2 ? "1970-01-01T00:00:00Z" : "2999-12-31T23:59:59Z");
        assert_int_equal(fclose(f), 0);
        assert_int_equal(pl_lock_take(&lock, dir, NULL), PL_OK);
        f = fopen(path, "r");
        assert_non_null(f);
        assert_non_null(fgets(line, sizeof line, f));
        (void)fclose(f);
        assert_null(strstr(line, "1970"));
        assert_null(strstr(line, "2999"));
        pl_lock_drop(&lock);
    }
}

static void a_dropped_lock_can_be_taken_and_the_directory_is_made(void **state)
{
    char deep[300];
    pl_lock a, b;

    (void)state;
    (void)snprintf(deep, sizeof deep, "%s/runs/one", dir);
    assert_int_equal(pl_lock_take(&a, deep, NULL), PL_OK);
    assert_int_equal(pl_lock_take(&b, deep, NULL), PL_ELOCK); /* another descriptor, even here */
    pl_lock_drop(&a);
    assert_int_equal(pl_lock_take(&b, deep, NULL), PL_OK);
    pl_lock_drop(&b);
}

/* As in a job that its scheduler starts without standard input. */
static void a_lock_with_descriptor_0_is_given_back(void **state)
{
    const int input = dup(0);
    pl_lock a, b;

    (void)state;
    (void)close(0);
    assert_int_equal(pl_lock_take(&a, dir, NULL), PL_OK);
    assert_int_equal(a.fd, 0);
    pl_lock_drop(&a);
    assert_int_equal(pl_lock_take(&b, dir, NULL), PL_OK);
    pl_lock_drop(&b);
    (void)dup2(input, 0);
    (void)close(input);
}

/* A child process that is being started may hold the lock of a parent that was killed: that takes a moment, not a minute. */
static void the_lock_of_a_dead_process_is_waited_for_a_second(void **state)
{
    char path[300], host[128] = "";
    pl_error err = { 0 };
    pid_t dead = fork();
    pl_lock lock;
    FILE *f;

    (void)state;
    if (dead == 0)
        _exit(0);
    (void)waitpid(dead, NULL, 0);
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(path, sizeof path, "%s/.lock", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f, "host %s, pid %ld, since then\n", host, (long)dead);
    assert_int_equal(fflush(f), 0);
    assert_int_equal(flock(fileno(f), LOCK_EX | LOCK_NB), 0);
    slept = 0;
    assert_int_equal(pl_lock_take(&lock, dir, &err), PL_ELOCK);
    assert_int_equal(slept, 1000);
    (void)fclose(f);
}

static void two_work_directories_do_not_share_a_database_elsewhere(void **state)
{
    char path[5][300];
    pl_workflow a = { 0 }, b = { 0 };
    pl_error err = { 0 };
    pl_locks first, second;

    (void)state;
    for (int i = 0; i < 5; i++)
        (void)snprintf(path[i], sizeof path[i], "%s/%s", dir,
                       (const char *const[]){ "a", "b", "x/both.db", "a/f.db", "b/f.db" }[i]);
    a.workdir = path[0], a.storage.results = path[2], a.storage.features = path[3];
    b.workdir = path[1], b.storage.results = path[2], b.storage.features = path[4];
    assert_int_equal(pl_locks_take(&first, &a, NULL), PL_OK);
    assert_int_equal(pl_locks_take(&second, &b, &err), PL_ELOCK);
    assert_non_null(strstr(err.text, "x/both.db is in use, held by host "));
    assert_string_equal(err.text + strlen(err.text) - strlen("Z; wait for it or stop it"), "Z; wait for it or stop it");
    b.storage.results = path[4];
    b.storage.features = path[2];
    assert_int_equal(pl_locks_take(&second, &b, &err), PL_ELOCK);
    pl_locks_drop(&first);
    assert_int_equal(pl_locks_take(&second, &b, &err), PL_OK);
    pl_locks_drop(&second);
}

static pl_workflow uses(const char *workdir, const char *results, const char *features)
{
    static char path[32][300];
    static int n;
    char *at[3];

    for (int i = 0; i < 3; i++) {
        at[i] = path[n++ % 32];
        (void)snprintf(at[i], sizeof path[0], "%s/%s", dir, (const char *const[]){ workdir, results, features }[i]);
    }
    return (pl_workflow){ .workdir = at[0], .storage.results = at[1], .storage.features = at[2] };
}

static void check_one_of(const pl_workflow *a, const pl_workflow *b, pl_code want)
{
    pl_error err = { 0 };
    pl_locks first, second;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(pl_locks_take(&first, i ? b : a, NULL), PL_OK);
        assert_int_equal(pl_locks_take(&second, i ? a : b, &err), want);
        if (want == PL_ELOCK)
            assert_non_null(strstr(err.text, "in use, held by host"));
        pl_locks_drop(&second);
        pl_locks_drop(&first);
    }
}

/* The folder of one run's database is the work directory of the other. */
static void a_database_in_anothers_work_directory_is_behind_its_lock(void **state)
{
    const pl_workflow own = uses("a", "a/r.db", "a/f.db"), guest = uses("b", "a/r.db", "b/f.db");
    const pl_workflow deep = uses("a", "a/sub/r.db", "a/f.db"), deep_guest = uses("b", "a/sub/r.db", "b/f.db");
    const pl_workflow one = uses("a", "x/1.db", "x/2.db"), two = uses("b", "x/3.db", "x/4.db");

    (void)state;
    check_one_of(&own, &guest, PL_ELOCK);
    check_one_of(&deep, &deep_guest, PL_ELOCK);
    check_one_of(&one, &two, PL_OK);
}

static void a_work_directory_may_be_named_in_two_ways(void **state)
{
    char path[4][300];
    pl_workflow a = { 0 };
    pl_locks locks;

    (void)state;
    for (int i = 0; i < 4; i++)
        (void)snprintf(path[i], sizeof path[i], "%s/%s", dir, (const char *const[]){ "a", "link", "link/r.db", "a/f.db" }[i]);
    assert_int_equal(symlink("a", path[1]), 0);
    a.workdir = path[0], a.storage.results = path[2], a.storage.features = path[3];
    assert_int_equal(mkdir(path[0], 0777), 0);
    assert_int_equal(pl_locks_take(&locks, &a, NULL), PL_OK);
    pl_locks_drop(&locks);
}

static void a_job_name_of_any_length_is_one_short_line(void **state)
{
    char job[4000], path[300], line[600] = "";
    pl_lock lock;
    FILE *f;

    (void)state;
    memset(job, 'j', sizeof job - 1);
    job[sizeof job - 1] = '\0';
    (void)setenv("SLURM_JOB_ID", job, 1);
    assert_int_equal(pl_lock_take(&lock, dir, NULL), PL_OK);
    (void)unsetenv("SLURM_JOB_ID");
    (void)snprintf(path, sizeof path, "%s/.lock", dir);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_true(line[strlen(line) - 1] == '\n' && fgetc(f) == EOF);
    (void)fclose(f);
    pl_lock_drop(&lock);
}

static void a_file_in_the_way_is_an_io_error(void **state)
{
    char path[300];
    pl_error err = { 0 };
    pl_lock lock;
    FILE *f;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/file", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fclose(f);
    (void)snprintf(path + strlen(path), sizeof path - strlen(path), "/below");
    assert_int_equal(pl_lock_take(&lock, path, &err), PL_EIO);
    assert_string_equal(err.where, "work directory (workdir=DIR chooses another)");
    assert_non_null(strstr(err.text, strerror(ENOTDIR)));
    path[strlen(path) - strlen("/below")] = '\0';
    assert_int_equal(pl_lock_take(&lock, path, &err), PL_EIO);
    assert_non_null(strstr(err.text, path));
}

static void refused(const char *workdir, pl_code want, const char *text)
{
    pl_error err = { 0 };
    pl_lock lock;

    assert_int_equal(pl_lock_take(&lock, workdir, &err), want);
    if (strstr(err.text, text) == NULL)
        fail_msg("%s", err.text);
    assert_int_equal(lock.fd, -1);
}

/* A device, such as /dev/null where a container hides a file, can be made by root alone. */
static void a_pipe_or_device_is_no_lock(void **state)
{
    char path[300];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/.lock", dir);
    for (int device = 0; device < 2; device++) {
        if (device && mknod(path, S_IFCHR | 0600, makedev(1, 3)) != 0)
            continue;
        if (!device)
            assert_int_equal(mkfifo(path, 0600), 0);
        refused(dir, PL_EIO, ": not a lock file of molsieve, left as it is; move it away or choose another workdir");
        assert_int_equal(unlink(path), 0);
    }
}

static void a_holder_may_have_no_name(void **state)
{
    char path[300];
    int fd;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/.lock", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    refused(dir, PL_ELOCK, "another process");
    assert_int_equal(pwrite(fd, "host x\n", 7, 0), 7);
    refused(dir, PL_ELOCK, "host x");
    (void)close(fd);
}

static void a_lock_that_cannot_be_had_says_what_to_do(void **state)
{
    char path[300], deep[PATH_MAX] = "";
    size_t n;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/.lock", dir);
    flock_fails = ENOLCK;
    refused(dir, PL_EIO, "; this file system cannot lock files: choose another workdir");
    flock_fails = 0;
    flock_deletes = path;
    refused(dir, PL_ELOCK, "/.lock: another program keeps deleting this lock file; stop it and try again");
    flock_deletes = NULL;
    assert_int_equal(mkdir(path, 0700), 0);
    refused(dir, PL_EIO, "; a run needs a workdir that it can write to");
    n = (size_t)snprintf(deep, sizeof deep, "%s", dir);
    while (n + 4 < sizeof deep) { /* folders with names of at most 200 bytes */
        const size_t more = sizeof deep - 4 - n > 201 ? 200 : sizeof deep - 5 - n;
        deep[n] = '/';
        memset(deep + n + 1, 'd', more);
        n += 1 + more;
    }
    refused(deep, PL_EIO, "path too long");
}

/* ---- a lock file that is deleted, and files that are no lock file ---- */

static void deleting_the_lock_file_takes_it_from_its_holder(void **state)
{
    pl_workflow a = uses("a", "x/r.db", "y/f.db");
    static const char *const files[] = { "a/.lock", "x/r.db.lock", "y/f.db.lock", "x/.lock", "y/.lock" };
    static const char deleted[] = " was deleted or replaced during this run, so another run may have started; this run stores "
                                  "nothing more. Lock files need not be deleted: a run that ends releases its locks";
    char path[300], other[320], said[600];
    pl_error err = { 0 };

    (void)state;
    for (int i = 0; i < 10; i++) {
        pl_locks locks;
        assert_int_equal(pl_locks_take(&locks, &a, NULL), PL_OK);
        assert_int_equal(pl_locks_held(&locks, &err), PL_OK);
        (void)snprintf(path, sizeof path, "%s/%s", dir, files[i / 2]);
        (void)snprintf(other, sizeof other, "%s.other", path);
        if (i % 2 == 0)
            assert_int_equal(unlink(path), 0);
        else { /* another file with the same text */
            FILE *f = fopen(other, "w");
            assert_non_null(f);
            (void)fputs("host here, pid 1, since today\n", f);
            (void)fclose(f);
            assert_int_equal(rename(other, path), 0);
        }
        assert_int_equal(pl_locks_held(&locks, &err), PL_ELOCK);
        (void)snprintf(said, sizeof said, "%s%s", path, deleted);
        assert_string_equal(err.text, said);
        pl_locks_drop(&locks);
    }
}

static pl_stage meddled;
static char meddled_path[300];

static pl_code commit_without_lock(void *state, pl_unit *unit, pl_error *err)
{
    if (unit->index == 3)
        (void)unlink(meddled_path);
    return toy_count.commit(state, unit, err);
}

static void a_run_without_its_lock_commits_nothing_more(void **state)
{
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 20);
    meddled = toy_count;
    meddled.commit = commit_without_lock;
    t.step[0].stage = &meddled;
    (void)snprintf(meddled_path, sizeof meddled_path, "%s/.lock", dir);
    assert_int_equal(toy_run(&t, 1, &err), PL_ELOCK);
    assert_non_null(strstr(err.text, "its lock file was deleted or replaced"));
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM unit JOIN stage USING(stage_id) WHERE name='count'"), 3);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM run WHERE state='running'"), 1); /* as after a kill */
    t.step[0].stage = &toy_count;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_true(toy_sound(&t));
    toy_free(&t);
}

static pl_code commit_after_a_move(void *state, pl_unit *unit, pl_error *err)
{
    if (unit->index == 3)
        assert_int_equal(rename(dir, meddled_path), 0);
    return toy_count.commit(state, unit, err);
}

static void a_directory_that_was_moved_is_named_and_goes_on_later(void **state)
{
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 20);
    meddled = toy_count;
    meddled.commit = commit_after_a_move;
    t.step[0].stage = &meddled;
    (void)snprintf(meddled_path, sizeof meddled_path, "%s.moved", dir);
    assert_int_equal(toy_run(&t, 1, &err), PL_EIO);
    assert_int_equal(rename(meddled_path, dir), 0);
    if (strstr(err.text, " was moved or deleted while this run wrote to it; put it back and run again, or the next run "
                         "starts from the beginning") == NULL)
        fail_msg("%s", err.text);
    t.step[0].stage = &toy_count;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_true(toy_sound(&t));
    toy_free(&t);
}

static void a_file_that_is_no_lock_is_left_unchanged(void **state)
{
    static const char *const names[] = { "w/.lock", "w/.reserve" };
    static const char *const says[] = { ": a symbolic link, but a lock must be a regular file; remove the link",
                                        ": not a lock file of molsieve, left as it is; move it away or choose another workdir" };
    char path[300], target[300], work[300], text[60] = "";
    FILE *f;

    (void)state;
    (void)snprintf(target, sizeof target, "%s/thesis.txt", dir);
    (void)snprintf(work, sizeof work, "%s/w", dir);
    assert_int_equal(mkdir(work, 0777), 0);
    for (int i = 0; i < 6; i++) { /* a link, a hard link, a file; twice */
        pl_error err = { 0 };
        toy t;
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i / 3]);
        f = fopen(target, "w");
        assert_non_null(f);
        (void)fputs("three years of work\n", f);
        (void)fclose(f);
        if (i % 3 == 0)
            assert_int_equal(symlink(target, path), 0);
        else
            assert_int_equal(i % 3 == 1 ? link(target, path) : rename(target, path), 0);
        toy_make(&t, work, 4);
        assert_int_equal(toy_run(&t, 1, &err), i < 3 ? PL_EIO : PL_OK);
        assert_true(i >= 3 || (strstr(err.text, path) != NULL && strstr(err.text, says[i > 0]) != NULL));
        toy_free(&t);
        f = fopen(i % 3 == 2 ? path : target, "r");
        assert_non_null(f);
        assert_int_equal(fread(text, 1, sizeof text, f), 20);
        (void)fclose(f);
        assert_int_equal(strncmp(text, "three years of work\n", 20), 0);
        assert_int_equal(unlink(path), 0);
        (void)unlink(target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_holder_is_named_and_a_killed_one_holds_nothing, make, drop),
        cmocka_unit_test_setup_teardown(the_text_of_a_lock_file_without_a_lock_is_ignored, make, drop),
        cmocka_unit_test_setup_teardown(a_dropped_lock_can_be_taken_and_the_directory_is_made, make, drop),
        cmocka_unit_test_setup_teardown(a_lock_with_descriptor_0_is_given_back, make, drop),
        cmocka_unit_test_setup_teardown(the_lock_of_a_dead_process_is_waited_for_a_second, make, drop),
        cmocka_unit_test_setup_teardown(two_work_directories_do_not_share_a_database_elsewhere, make, drop),
        cmocka_unit_test_setup_teardown(a_database_in_anothers_work_directory_is_behind_its_lock, make, drop),
        cmocka_unit_test_setup_teardown(a_work_directory_may_be_named_in_two_ways, make, drop),
        cmocka_unit_test_setup_teardown(a_job_name_of_any_length_is_one_short_line, make, drop),
        cmocka_unit_test_setup_teardown(a_file_in_the_way_is_an_io_error, make, drop),
        cmocka_unit_test_setup_teardown(a_lock_that_cannot_be_had_says_what_to_do, make, drop),
        cmocka_unit_test_setup_teardown(a_pipe_or_device_is_no_lock, make, drop),
        cmocka_unit_test_setup_teardown(a_holder_may_have_no_name, make, drop),
        cmocka_unit_test_setup_teardown(deleting_the_lock_file_takes_it_from_its_holder, make, drop),
        cmocka_unit_test_setup_teardown(a_run_without_its_lock_commits_nothing_more, make, drop),
        cmocka_unit_test_setup_teardown(a_directory_that_was_moved_is_named_and_goes_on_later, make, drop),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_lock_is_left_unchanged, make, drop),
    };
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
