/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/folder.h"
#include "pipeline/base/program.h"

enum { ROOM = 64 };

static char out[ROOM];
static pl_program_result got;
static const char *folder = "/tmp";
static double folder_bytes; /* the limit of the next runs */

static pl_code run(const char *script, double timeout_s, size_t memory, size_t file, const atomic_int *stop)
{
    char sh[] = "sh", c[] = "-c", text[512], path[] = "PATH=/usr/bin:/bin", *env[] = { path, NULL };
    char *argv[] = { sh, c, text, NULL };
    pl_program p = { "/bin/sh", argv, env, folder, timeout_s, 0, memory, file, folder_bytes };

    (void)snprintf(text, sizeof text, "%s", script);
    got = (pl_program_result){ .out = out, .size = sizeof out };
    return pl_program_run(&p, stop, &got, NULL);
}

static void output_and_status_come_back(void **state)
{
    (void)state;
    assert_int_equal(run("pwd; echo wrong >&2; exit 3", 30, 0, 0, NULL), PL_OK);
    assert_int_equal(got.end, PL_PROGRAM_EXITED);
    assert_int_equal(got.status, 3);
    assert_int_equal(got.n_out, 5);
    assert_memory_equal(out, "/tmp\n", 5);
    assert_non_null(strstr(got.last, "wrong\n"));
    assert_false(got.cut);
    assert_int_equal(run("kill -SEGV $$", 30, 0, 0, NULL), PL_OK);
    assert_int_equal(got.end, PL_PROGRAM_SIGNALLED);
    assert_int_equal(got.status, SIGSEGV);
}

static void only_the_begin_and_the_end_of_much_output_are_kept(void **state)
{
    (void)state;
    assert_int_equal(run("head -c 30000000 /dev/zero | tr '\\0' a; echo; echo the end", 60, 0, 0, NULL), PL_OK);
    assert_int_equal(got.end, PL_PROGRAM_EXITED);
    assert_true(got.cut);
    assert_int_equal(got.n_out, ROOM);
    assert_int_equal(got.n_last, PL_PROGRAM_LAST);
    assert_string_equal(got.last + PL_PROGRAM_LAST - 9, "\nthe end\n");
}

/* Whether the process is gone within ten seconds; a zombie is. */
static int is_gone(long pid)
{
    for (int i = 0; i < 1000; i++) {
        char path[64], state = 'Z';
        FILE *f;
        (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        f = fopen(path, "re");
        if (f == NULL)
            return 1;
        if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
            state = 'Z';
        (void)fclose(f);
        if (state == 'Z')
            return 1;
        (void)nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    return 0;
}

static long printed(void)
{
    char text[ROOM + 1];
    memcpy(text, out, got.n_out);
    text[got.n_out] = '\0';
    return strtol(text, NULL, 10);
}

static void what_a_program_leaves_behind_is_killed(void **state)
{
    (void)state;
    assert_int_equal(run("sleep 60 & echo $!", 30, 0, 0, NULL), PL_OK);
    assert_int_equal(got.end, PL_PROGRAM_EXITED);
    assert_true(printed() > 1);
    assert_true(is_gone(printed()));
}

static void a_program_that_hangs_is_killed_with_its_children(void **state)
{
    (void)state;
    assert_int_equal(run("trap '' TERM; sleep 60 & echo $!; wait", 2, 0, 0, NULL), PL_OK);
    assert_int_equal(got.end, PL_PROGRAM_TIMEOUT);
    assert_true(printed() > 1);
    assert_true(is_gone(printed()));
    assert_int_equal(run("yes", 1, 0, 0, NULL), PL_OK); /* prints without end */
    assert_int_equal(got.end, PL_PROGRAM_TIMEOUT);
}

static void a_stop_kills_it(void **state)
{
    atomic_int stop = 1;
    (void)state;
    assert_int_equal(run("sleep 60", 300, 0, 0, &stop), PL_ESTOP);
}

static void it_and_its_children_die_with_the_process_that_runs_it(void **state)
{
    char name[64], script[400];
    long pid = 0, child = 0;
    pid_t runner;

    (void)state;
    (void)snprintf(name, sizeof name, "/tmp/program_test.%ld.pid", (long)getpid());
    (void)snprintf(script, sizeof script, "sleep 60 & echo $$ $! > %s.new; mv %s.new %s; wait", name, name, name);
    runner = fork();
    if (runner == 0)
        _exit(run(script, 300, 0, 0, NULL) != PL_OK);
    assert_true(runner > 0);
    for (int i = 0; i < 1000 && pid == 0; i++) {
        FILE *f = fopen(name, "re");
        (void)nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
        if (f != NULL && fscanf(f, "%ld %ld", &pid, &child) != 2)
            pid = 0;
        if (f != NULL)
            (void)fclose(f);
    }
    (void)unlink(name);
    assert_int_equal(kill(runner, SIGKILL), 0);
    assert_int_equal(waitpid(runner, NULL, 0), runner);
    assert_true(pid > 1 && child > 1);
    assert_true(is_gone(pid));
    assert_true(is_gone(child));
}

static void memory_and_files_have_limits(void **state)
{
    char name[64], script[160];
    struct stat s;

    (void)state;
    (void)snprintf(name, sizeof name, "/tmp/program_test.%ld", (long)getpid());
    (void)snprintf(script, sizeof script, "exec head -c 5000000 /dev/zero > %s", name);
    assert_int_equal(run(script, 30, 0, 1000000, NULL), PL_OK);
    assert_int_equal(got.end, PL_PROGRAM_SIGNALLED);
    assert_int_equal(got.status, SIGXFSZ);
    assert_int_equal(stat(name, &s), 0);
    (void)unlink(name);
    assert_true(s.st_size <= 1000000);
    assert_int_equal(run("exec dd if=/dev/zero of=/dev/null bs=400M count=1", 30, (size_t)200 << 20, 0, NULL), PL_OK);
    assert_false(got.end == PL_PROGRAM_EXITED && got.status == 0);
}

static void a_folder_has_a_limit_and_is_removed_with_links_and_locks(void **state)
{
    char dir[64], kept[80], script[256];
    struct stat s;

    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/program_test.%ld.d", (long)getpid());
    (void)snprintf(kept, sizeof kept, "%s.kept", dir);
    assert_int_equal(mkdir(dir, 0755), 0);
    assert_int_equal(mkdir(kept, 0755), 0);
    folder = dir;
    folder_bytes = 2e6;
    (void)snprintf(script, sizeof script,
                   "mkdir -p a/b; ln -s %s a/link; i=0; while :; do head -c 300000 /dev/zero > a/b/$i; i=$((i+1)); done", kept);
    assert_int_equal(run(script, 60, 0, 0, NULL), PL_OK);
    assert_int_equal(got.end, PL_PROGRAM_FULL);
    assert_true(pl_folder_bytes(dir) > 2e6);
    assert_int_equal(run("chmod 0 a/b; chmod 0 a", 60, 0, 0, NULL), PL_OK);
    folder = "/tmp";
    folder_bytes = 0;
    assert_int_equal(pl_folder_remove(dir, NULL), PL_OK);
    assert_int_equal(pl_folder_remove(dir, NULL), PL_OK);
    assert_int_not_equal(stat(dir, &s), 0);
    assert_int_equal(stat(kept, &s), 0);
    assert_int_equal(rmdir(kept), 0);
}

static void no_descriptor_of_ours_reaches_it(void **state)
{
    int fd = dup(1); /* without close-on-exec */
    char script[64];

    (void)state;
    assert_true(fd > 2);
    (void)snprintf(script, sizeof script, "test -e /proc/self/fd/%d && echo open", fd);
    assert_int_equal(run(script, 30, 0, 0, NULL), PL_OK);
    (void)close(fd);
    assert_int_equal(got.n_out, 0);
}

static void a_missing_program_or_folder_is_told(void **state)
{
    char *none[] = { NULL };
    char name[] = "x", *argv[] = { name, NULL };
    pl_program p = { "/no/such/program", argv, none, "/tmp", 10, 0, 0, 0, 0 };
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(pl_program_run(&p, NULL, &got, &err), PL_EIO);
    assert_non_null(strstr(err.text, "/no/such/program"));
    assert_non_null(strstr(err.text, strerror(ENOENT)));
    p.path = "/bin/sh";
    p.dir = "/no/such/folder";
    assert_int_equal(pl_program_run(&p, NULL, &got, &err), PL_EIO);
    assert_non_null(strstr(err.text, "/no/such/folder"));
}

/* Whatever this process blocks, ignores or may dump. Not by a shell, which sets its signals itself. */
static void it_begins_with_the_usual_signals_and_without_dumps(void **state)
{
    char sed[] = "sed", n[] = "-n", signals[] = "s/^Sig[BI][lg][kn]:.//p", core[] = "s/^Max core file size *\\([0-9]*\\) .*/\\1/p",
         status[] = "/proc/self/status", limits[] = "/proc/self/limits", *none[] = { NULL };
    char *argv[] = { sed, n, signals, status, NULL }, *again[] = { sed, n, core, limits, NULL };
    pl_program p = { "/bin/sed", argv, none, "/tmp", 30, 0, 0, 0, 0 };
    unsigned long long blocked = 1, ignored = 1;
    struct rlimit was, all;
    sigset_t some, old;

    (void)state;
    (void)sigemptyset(&some);
    (void)sigaddset(&some, SIGUSR1);
    (void)sigaddset(&some, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &some, &old), 0);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    got = (pl_program_result){ .out = out, .size = sizeof out };
    assert_int_equal(pl_program_run(&p, NULL, &got, NULL), PL_OK);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    assert_int_equal(sscanf(got.last, "%llx %llx", &blocked, &ignored), 2);
    assert_int_equal(blocked, 0);
    assert_int_equal(ignored & (1ull << (SIGPIPE - 1) | 1ull << (SIGHUP - 1)), 0);
    assert_int_equal(getrlimit(RLIMIT_CORE, &was), 0);
    all = (struct rlimit){ was.rlim_max, was.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_CORE, &all), 0);
    p.argv = again;
    assert_int_equal(pl_program_run(&p, NULL, &got, NULL), PL_OK);
    assert_int_equal(setrlimit(RLIMIT_CORE, &was), 0);
    assert_string_equal(got.last, "0\n");
}

/* Exactly as much as there is room for is not cut. */
static void output_is_cut_only_where_it_does_not_fit(void **state)
{
    char script[64];

    (void)state;
    for (int n = ROOM - 1; n <= ROOM + 1; n++) {
        (void)snprintf(script, sizeof script, "head -c %d /dev/zero | tr '\\0' b; exit 0", n);
        assert_int_equal(run(script, 30, 0, 0, NULL), PL_OK);
        assert_int_equal(got.n_out, n < ROOM ? n : ROOM);
        assert_int_equal(got.cut, n > ROOM);
        assert_int_equal(got.n_last, n);
        assert_int_equal(strspn(got.last, "b"), n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_and_status_come_back),
        cmocka_unit_test(only_the_begin_and_the_end_of_much_output_are_kept),
        cmocka_unit_test(what_a_program_leaves_behind_is_killed),
        cmocka_unit_test(a_program_that_hangs_is_killed_with_its_children),
        cmocka_unit_test(a_stop_kills_it),
        cmocka_unit_test(it_and_its_children_die_with_the_process_that_runs_it),
        cmocka_unit_test(memory_and_files_have_limits),
        cmocka_unit_test(a_folder_has_a_limit_and_is_removed_with_links_and_locks),
        cmocka_unit_test(no_descriptor_of_ours_reaches_it),
        cmocka_unit_test(a_missing_program_or_folder_is_told),
        cmocka_unit_test(it_begins_with_the_usual_signals_and_without_dumps),
        cmocka_unit_test(output_is_cut_only_where_it_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
