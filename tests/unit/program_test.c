/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/folder.h"
#include "pipeline/base/program.h"
#include "tests/unit/locks.h"

enum { ROOM = 64 };

/* ---- close_range, which older kernels lack: linked with -Wl,--wrap=syscall ---- */

static bool no_close_range;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* Of the calls made here none has more than three arguments. */
long __wrap_syscall(long number, ...)
{
    unsigned long a[3];
    va_list ap;

    if (no_close_range && number == SYS_close_range) {
        errno = ENOSYS;
        return -1;
    }
    va_start(ap, number);
    for (int i = 0; i < 3; i++)
        a[i] = va_arg(ap, unsigned long);
    va_end(ap);
    return __real_syscall(number, a[0], a[1], a[2]);
}

static char out[ROOM];
static size_t out_bytes = ROOM; /* for the output of the next runs; 0: out is NULL */
static pl_program_result got;
static const char *folder = "/tmp";
static double folder_bytes; /* the limit of the next runs */

static pl_code run(const char *script, double timeout_s, size_t memory, size_t file, const atomic_int *stop)
{
    char sh[] = "sh", c[] = "-c", text[512], path[] = "PATH=/usr/bin:/bin", *env[] = { path, NULL };
    char *argv[] = { sh, c, text, NULL };
    pl_program p = { "/bin/sh", argv, env, folder, timeout_s, 0, memory, file, folder_bytes };

    (void)snprintf(text, sizeof text, "%s", script);
    got = (pl_program_result){ .out = out_bytes > 0 ? out : NULL, .size = out_bytes };
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

/* A process that runs a program goes on afterwards: it is not the one that becomes the program, or its guard. */
static void the_process_that_runs_a_program_goes_on(void **state)
{
    const pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0)
        _exit(run("exit 3", 30, 0, 0, NULL) == PL_OK && got.status == 3 ? 9 : 8);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 9);
}

/* Whether the process is gone within a minute; a zombie is. */
static int is_gone(long pid)
{
    for (int i = 0; i < 6000; i++) {
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
    assert_int_equal(run("sleep 600 & echo $!", 30, 0, 0, NULL), PL_OK);
    assert_int_equal(got.end, PL_PROGRAM_EXITED);
    assert_true(printed() > 1);
    assert_true(is_gone(printed()));
}

static void a_program_that_hangs_is_killed_with_its_children(void **state)
{
    (void)state;
    assert_int_equal(run("trap '' TERM; sleep 600 & echo $!; wait", 2, 0, 0, NULL), PL_OK);
    assert_int_equal(got.end, PL_PROGRAM_TIMEOUT);
    assert_true(printed() > 1);
    assert_true(is_gone(printed()));
    assert_int_equal(run("yes", 1, 0, 0, NULL), PL_OK); /* prints without end */
    assert_int_equal(got.end, PL_PROGRAM_TIMEOUT);
}

static void a_stop_kills_it(void **state)
{
    char name[] = "sleep", much[] = "60", *argv[] = { name, much, NULL }, *none[] = { NULL };
    pl_program p = { "/bin/sleep", argv, none, "/tmp", 300, 0, 0, 0, 0 };
    atomic_int stop = 1;
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(pl_program_run(&p, &stop, &got, &err), PL_ESTOP);
    assert_string_equal(err.text, "/bin/sleep was stopped");
    stop = 0;
    assert_int_equal(run("exit 7", 30, 0, 0, &stop), PL_OK);
    assert_int_equal(got.status, 7);
}

static void it_and_its_children_die_with_the_process_that_runs_it(void **state)
{
    char name[64], script[400];
    long pid = 0, child = 0;
    pid_t runner;

    (void)state;
    (void)snprintf(name, sizeof name, "/tmp/program_test.%ld.pid", (long)getpid());
    (void)snprintf(script, sizeof script, "sleep 600 & echo $$ $! > %s.new; mv %s.new %s; wait", name, name, name);
    runner = fork();
    if (runner == 0)
        _exit(run(script, 300, 0, 0, NULL) != PL_OK);
    assert_true(runner > 0);
    for (int i = 0; i < 6000 && pid == 0; i++) {
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
    for (int without = 0; without < 2; without++) {
        no_close_range = without;
        assert_int_equal(run(script, 30, 0, 0, NULL), PL_OK);
        no_close_range = false;
        assert_int_equal(got.n_out, 0);
        no_close_range = without;
        assert_int_equal(run("echo wrong >&2", 30, 0, 0, NULL), PL_OK);
        no_close_range = false;
        assert_string_equal(got.last, "wrong\n");
    }
    (void)close(fd);
}

/* Entries of a folder of /proc. */
static int count_in(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;

    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d != NULL)
        (void)closedir(d);
    return n;
}

/* The child of this process that watches over its programs; 0: it has not begun yet. */
static long look_for_guard(long parent)
{
    DIR *d = opendir("/proc");
    long found = 0;

    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[64], name[32] = "";
        long above = 0;
        FILE *f;

        (void)snprintf(path, sizeof path, "/proc/%.20s/stat", e->d_name);
        f = strspn(e->d_name, "0123456789") > 0 ? fopen(path, "re") : NULL;
        if (f != NULL && fscanf(f, "%*d (%31[^)]) %*c %ld", name, &above) == 2 && above == parent &&
            strcmp(name, "molsieve-guard") == 0)
            found = strtol(e->d_name, NULL, 10);
        if (f != NULL)
            (void)fclose(f);
    }
    (void)closedir(d);
    return found;
}

static long guard_of_this(void)
{
    long found = 0;

    for (int i = 0; i < 3000 && found == 0; i++) {
        found = look_for_guard((long)getpid());
        if (found == 0)
            (void)usleep(10000);
    }
    return found;
}

/* It keeps nothing open but its socket, no folder in use, and is replaced when somebody kills it. */
static void the_guard_holds_nothing_and_is_replaced(void **state)
{
    char path[64], at[8] = "";
    int n = 1000;

    (void)state;
    assert_int_equal(run("exit 0", 30, 0, 0, NULL), PL_OK);
    for (int without = 0; without < 2; without++) {
        const long before = guard_of_this();

        assert_int_equal(kill((pid_t)before, SIGKILL), 0);
        assert_true(is_gone(before));
        no_close_range = without;
        assert_int_equal(run("exit 0", 30, 0, 0, NULL), PL_OK);
        no_close_range = false;
        const long guard = guard_of_this();
        assert_true(guard > 0 && guard != before);
        (void)snprintf(path, sizeof path, "/proc/%ld/fd", guard);
        for (int i = 0; i < 3000 && n != 1; i++) { /* it may not have begun yet */
            n = count_in(path);
            (void)usleep(10000);
        }
        assert_int_equal(n, 1);
        (void)snprintf(path, sizeof path, "/proc/%ld/cwd", guard);
        assert_int_equal(readlink(path, at, sizeof at), 1);
        assert_int_equal(kill((pid_t)guard, SIGTERM), 0); /* as to a whole group: it stays */
        assert_int_equal(run("exit 0", 30, 0, 0, NULL), PL_OK);
        assert_int_equal(guard_of_this(), guard);
    }
}

/* Of a program that left a session of its own, which keeps the pipes. */
static void no_descriptor_stays_open_after_a_program(void **state)
{
    const int before = count_in("/proc/self/fd");

    (void)state;
    assert_int_equal(run("setsid sleep 1 & sleep 0.2", 30, 0, 0, NULL), PL_OK);
    assert_int_equal(count_in("/proc/self/fd"), before);
}

static void standard_input_is_empty(void **state)
{
    const int was = dup(0), file = open("/proc/self/stat", O_RDONLY);

    (void)state;
    assert_true(was > 2 && dup2(file, 0) == 0);
    assert_int_equal(run("readlink /proc/self/fd/0", 30, 0, 0, NULL), PL_OK);
    assert_true(dup2(was, 0) == 0);
    (void)close(was);
    (void)close(file);
    assert_int_equal(got.n_out, 10);
    assert_memory_equal(out, "/dev/null\n", 10);
}

/* Without descriptors left it is said, and none is lost. */
static void a_program_without_pipes_is_told(void **state)
{
    struct rlimit was, few;
    char name[] = "sh", *argv[] = { name, NULL }, *none[] = { NULL };
    pl_program p = { "/bin/sh", argv, none, "/tmp", 10, 0, 0, 0, 0 };
    pl_error err = { 0 };
    const int before = count_in("/proc/self/fd"), next = dup(0);

    (void)state;
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (int room = 0; room < 6; room++) {
        few = (struct rlimit){ (rlim_t)(next + room), was.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        const pl_code code = pl_program_run(&p, NULL, &got, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        assert_int_equal(code, PL_EIO);
        assert_string_equal(err.text, "/bin/sh: cannot be started: Too many open files");
    }
    assert_int_equal(count_in("/proc/self/fd"), before);
}

/* What comes in parts is kept as it came. */
static void output_in_parts_is_kept_in_order(void **state)
{
    char want[3000] = "";
    size_t n = 0;

    (void)state;
    assert_int_equal(run("echo a; sleep 0.1; echo bcdefgh; sleep 0.1; echo ij", 30, 0, 0, NULL), PL_OK);
    assert_string_equal(got.last, "a\nbcdefgh\nij\n");
    assert_int_equal(got.n_last, 13);
    assert_int_equal(got.n_out, 13);
    assert_memory_equal(out, "a\nbcdefgh\nij\n", 13);
    assert_int_equal(run("seq 1000 1180; sleep 0.1; seq 1181 1300; sleep 0.1; seq 1301 1302", 30, 0, 0, NULL), PL_OK);
    for (int i = 1000; i <= 1302; i++)
        n += (size_t)snprintf(want + n, sizeof want - n, "%d\n", i);
    assert_int_equal(got.n_last, PL_PROGRAM_LAST);
    assert_string_equal(got.last, want + n - PL_PROGRAM_LAST);
    assert_memory_equal(out, want, ROOM);
    assert_true(got.cut);
}

static void a_missing_program_or_folder_is_told(void **state)
{
    char *none[] = { NULL };
    char name[] = "x", *argv[] = { name, NULL };
    pl_program p = { "/no/such/program", argv, none, "/tmp", 10, 0, 0, 0, 0 };
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(pl_program_run(&p, NULL, &got, &err), PL_EIO);
    assert_string_equal(err.text, "/no/such/program: cannot be started in /tmp: No such file or directory");
    p.path = "/bin/sh";
    p.dir = "/no/such/folder";
    assert_int_equal(pl_program_run(&p, NULL, &got, &err), PL_EIO);
    assert_string_equal(err.text, "/bin/sh: cannot be started in /no/such/folder: No such file or directory");
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
    out_bytes = 0;
    assert_int_equal(run("echo much", 30, 0, 0, NULL), PL_OK);
    out_bytes = ROOM;
    assert_true(got.n_out == 0 && got.cut);
    assert_string_equal(got.last, "much\n");
}

int main(void)
{
    /* Alone and first: a process that becomes the guard would end with status 0, as if all tests had passed. */
    const struct CMUnitTest first[] = { cmocka_unit_test(the_process_that_runs_a_program_goes_on) };
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
        cmocka_unit_test(the_guard_holds_nothing_and_is_replaced),
        cmocka_unit_test(no_descriptor_stays_open_after_a_program),
        cmocka_unit_test(standard_input_is_empty),
        cmocka_unit_test(a_program_without_pipes_is_told),
        cmocka_unit_test(output_in_parts_is_kept_in_order),
        cmocka_unit_test(a_missing_program_or_folder_is_told),
        cmocka_unit_test(it_begins_with_the_usual_signals_and_without_dumps),
        cmocka_unit_test(output_is_cut_only_where_it_does_not_fit),
        locks_test,
    };

    return cmocka_run_group_tests(first, NULL, NULL) != 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
