/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chem/common/confine.h"
#include "chem/worker/worker_client.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool worker_is_sanitized = true;
#else
static const bool worker_is_sanitized = false;
#endif

static pid_t us; /* not confined, and not the parent of every child */
static char folder[] = "/tmp/molsieve-confine-XXXXXX", inside[64], outside[64];

static void put(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fputs("text", f) >= 0 ? fclose(f) : -1, 0);
}

static int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(inside, sizeof inside, "%s/data", folder);
    (void)snprintf(outside, sizeof outside, "%s/secret", folder);
    assert_int_equal(mkdir(inside, 0700), 0);
    put(outside);
    strcat(inside, "/table");
    put(inside);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(inside);
    *strrchr(inside, '/') = '\0';
    (void)rmdir(inside);
    (void)unlink(outside);
    return rmdir(folder);
}

/* Exit status of a child that does this; a signal counts as 1000 + signal. */
static int in_child(int (*what)(void))
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(what());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int confine(void)
{
    char data[64];
    const char *const folders[] = { data, "/this/is/not/there", NULL };

    (void)snprintf(data, sizeof data, "%s/data", folder);
    return ch_confine(folders);
}

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags, 0600);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static bool reads(const char *path)
{
    char text[8] = "";
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;

    if (fd >= 0)
        (void)close(fd);
    return n == 4 && memcmp(text, "text", 4) == 0;
}

static bool runs_a_program(void)
{
    char name[] = "true", *const argv[] = { name, NULL };
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execv("/bin/true", argv);
        (void)execv("/usr/bin/true", argv);
        _exit(1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Returns a bit for each action that must fail but works. Files that it needs are made before. */
enum { WRITES = 1, MAKES = 2, TALKS = 4, EXECS = 8, REMOVES = 16, SIGNALS = 32, TRACES = 64, SEES = 128 };

static int tries(void)
{
    char made[80];
    int can = 0, v4 = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_DGRAM, 0);

    (void)snprintf(made, sizeof made, "%s/made", folder);
    can |= opens("/etc/passwd", O_WRONLY) || opens(inside, O_RDWR) || truncate(outside, 0) == 0 ? WRITES : 0;
    can |= opens(made, O_WRONLY | O_CREAT) || mkdir(made, 0700) == 0 || symlink("/", made) == 0 ? MAKES : 0;
    can |= v4 >= 0 || local >= 0 || syscall(SYS_io_uring_setup, 1, NULL) >= 0 ? TALKS : 0;
    can |= runs_a_program() ? EXECS : 0;
    can |= rename(outside, made) == 0 || unlink(outside) == 0 || chmod(outside, 0) == 0 ? REMOVES : 0;
    can |= kill(us, 0) == 0 || syscall(SYS_tgkill, us, us, 0) == 0 || fcntl(v4, F_SETOWN, us) == 0 || fcntl(1, F_SETOWN, us) == 0
               ? SIGNALS
               : 0;
    can |= ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? TRACES : 0;
    can |= opens("/etc/passwd", O_RDONLY) || opens(outside, O_RDONLY) || opens("/", O_RDONLY | O_DIRECTORY) ? SEES : 0;
    return can;
}

static int tries_confined(void)
{
    int in_force = confine(), can = tries();

    if (!(in_force & CH_CONFINED_CALLS) || !(in_force & CH_CONFINED_FILES))
        return 255;
    return reads(inside) ? can : 255;
}

static int tries_in_a_grandchild(void)
{
    int status = 0;
    pid_t pid;

    (void)confine();
    pid = fork();
    if (pid == 0)
        _exit(tries());
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int says_what_is_in_force(void) { return confine(); }

/* Like a container that forbids a system call: the call fails with `why`. */
static void forbid(int call, uint32_t first_argument, int why)
{
    struct sock_filter line[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first_argument, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)why),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof line / sizeof *line, line };

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
        _exit(254);
}

static int has_seccomp(void)
{
    forbid(444, 0, ENOSYS);
    return 0;
}

/* Whether this machine supports all of it, found without the code under test. */
static void need_all(void)
{
    if (syscall(444, NULL, 0, 1) < 1 || in_child(has_seccomp) != 0)
        skip();
}

static void a_confined_process_can_only_read_its_data(void **state)
{
    (void)state;
    need_all();
    assert_int_equal(in_child(says_what_is_in_force), CH_CONFINED_ALL);
    assert_int_equal(in_child(tries_confined), 0);
    assert_int_equal(in_child(tries_in_a_grandchild), 0);
}

/* A process without confinement may do all this; otherwise the test above proves nothing. */
static int tries_freely(void)
{
    int can = tries();
    put(outside);
    return can & (SIGNALS | MAKES | TALKS | EXECS | REMOVES | TRACES | SEES);
}

static void an_unconfined_process_may_do_all_of_that(void **state)
{
    char made[80];

    (void)state;
    assert_int_equal(in_child(tries_freely), SIGNALS | MAKES | TALKS | EXECS | REMOVES | TRACES | SEES);
    (void)snprintf(made, sizeof made, "%s/made", folder);
    assert_true(unlink(made) == 0 || rmdir(made) == 0);
}

static int without_landlock(void)
{
    int in_force;

    forbid(444, 0, ENOSYS);
    in_force = confine();
    return in_force == (CH_CONFINED_CALLS | CH_CONFINED_GROWTH) ? tries() : 255;
}

static int without_seccomp(void)
{
    int in_force;

    forbid(__NR_prctl, PR_SET_SECCOMP, EPERM);
    in_force = confine();
    return in_force == (CH_CONFINED_FILES | CH_CONFINED_GROWTH) ? tries() : 255;
}

static void missing_kernel_features_are_named_and_the_rest_applies(void **state)
{
    (void)state;
    need_all();
    assert_int_equal(in_child(without_landlock), SEES);
    assert_int_equal(in_child(without_seccomp) & (WRITES | MAKES | EXECS | SEES), 0);
}

static int aborts(void)
{
    (void)confine();
    abort();
}

static void a_confined_process_may_still_abort(void **state)
{
    (void)state;
    assert_int_equal(in_child(aborts), 1000 + SIGABRT);
}

static int grows_a_file(void)
{
    int fd = open(outside, O_WRONLY | O_APPEND);

    (void)confine();
    return (int)write(fd, "more", 4);
}

static void an_open_file_does_not_grow(void **state)
{
    (void)state;
    assert_int_equal(in_child(grows_a_file), 1000 + SIGXFSZ);
    assert_true(reads(outside));
}

/* "Seccomp:	2" of /proc/PID/status; masks of signals are hexadecimal. */
static long status_of(pid_t pid, const char *name)
{
    char path[64], line[128];
    long value = -1;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            value = strtol(line + strlen(name) + 1, NULL, 16);
    if (f != NULL)
        (void)fclose(f);
    return value;
}

/* The processes whose parent is `of`. */
static int children(pid_t of, pid_t *out, int max)
{
    char path[64];
    long pid;
    int n = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)of, (long)of);
    f = fopen(path, "r");
    while (f != NULL && n < max && fscanf(f, "%ld", &pid) == 1)
        out[n++] = (pid_t)pid;
    if (f != NULL)
        (void)fclose(f);
    return n;
}

/* Descriptors of a process that are neither /dev/null nor a pipe or socket; -1: they cannot be listed. */
static int files_open(pid_t pid)
{
    char path[64], name[400], to[256];
    const struct dirent *e;
    int n = 0;
    DIR *d;

    (void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    d = opendir(path);
    while (d != NULL && (e = readdir(d)) != NULL) {
        ssize_t len;
        (void)snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        len = readlink(name, to, sizeof to - 1);
        if (len < 0)
            continue;
        to[len] = '\0';
        n += strcmp(to, "/dev/null") != 0 && strncmp(to, "pipe:", 5) != 0 && strncmp(to, "socket:", 7) != 0;
    }
    if (d != NULL)
        (void)closedir(d);
    return d != NULL ? n : -1;
}

/* With files at descriptor 207, above the later limit, and at 70: descriptors that the worker and its builder would inherit. */
static int files_of_a_worker(void)
{
    struct rlimit few;
    const int file = open(outside, O_RDONLY), low = dup2(file, 70), high = dup2(file, 207);
    ch_worker *w = NULL;
    ch_worker_info info;
    pid_t worker = 0, builder = 0;
    int n = 250;

    if (file <= 2 || low != 70 || high != 207 || getrlimit(RLIMIT_NOFILE, &few) != 0)
        return 251;
    few.rlim_cur = 64;
    if (setrlimit(RLIMIT_NOFILE, &few) == 0 && ch_worker_open(&w, NULL, NULL) == PL_OK &&
        ch_worker_hello(w, &info, NULL) == PL_OK && children(getpid(), &worker, 1) == 1 && children(worker, &builder, 1) == 1 &&
        files_open(getpid()) >= 3)
        n = files_open(worker) + files_open(builder);
    ch_worker_close(w);
    return n;
}

static int files_without_close_range(void)
{
    forbid(436, 3, ENOSYS); /* the filter is inherited by the worker */
    if (syscall(436, 3u, 3u, 0u) != -1 || errno != ENOSYS)
        return 252;
    return files_of_a_worker();
}

static void the_worker_closes_inherited_descriptors(void **state)
{
    (void)state;
    assert_int_equal(in_child(files_of_a_worker), 0);
}

/* Like kernels before 5.9, which lack close_range. */
static void the_worker_closes_descriptors_without_close_range(void **state)
{
    (void)state;
    if (in_child(has_seccomp) != 0)
        skip();
    assert_int_equal(in_child(files_without_close_range), 0);
}

static void the_worker_and_its_builder_are_confined(void **state)
{
    ch_worker *w = NULL;
    ch_worker_info info;
    pl_error err = { 0 };
    pid_t worker = 0, builder = 0;

    (void)state;
    assert_int_equal(ch_worker_open(&w, NULL, &err), PL_OK);
    assert_int_equal(ch_worker_hello(w, &info, &err), PL_OK);
    assert_int_equal(info.confined, worker_is_sanitized ? 0 : in_child(says_what_is_in_force));
    if (info.confined != CH_CONFINED_ALL || children(getpid(), &worker, 1) != 1) { /* or /proc without children */
        ch_worker_close(w);
        skip();
    }
    assert_int_equal(children(worker, &builder, 1), 1);
    assert_int_equal(status_of(worker, "Seccomp"), 2);
    assert_int_equal(status_of(worker, "NoNewPrivs"), 1);
    assert_int_equal(status_of(builder, "Seccomp"), 2);
    assert_int_equal(status_of(builder, "NoNewPrivs"), 1);
    ch_worker_close(w);
}

/* What is sent to all processes of a terminal or a job must not end it during a molecule; it ends with the program. */
static void signals_for_the_program_are_blocked_in_the_worker(void **state)
{
    static const int meant_for_us[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP };
    ch_worker *w = NULL;
    ch_worker_info info;
    pid_t worker = 0;

    (void)state;
    assert_int_equal(ch_worker_open(&w, NULL, NULL), PL_OK);
    assert_int_equal(ch_worker_hello(w, &info, NULL), PL_OK);
    if (children(getpid(), &worker, 1) != 1) {
        ch_worker_close(w);
        skip();
    }
    for (size_t i = 0; i < sizeof meant_for_us / sizeof *meant_for_us; i++)
        assert_int_equal(status_of(worker, "SigBlk") >> (meant_for_us[i] - 1) & 1, 1);
    assert_int_equal(status_of(worker, "SigBlk") >> (SIGCHLD - 1) & 1, 0);
    ch_worker_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_confined_process_can_only_read_its_data),
        cmocka_unit_test(an_unconfined_process_may_do_all_of_that),
        cmocka_unit_test(missing_kernel_features_are_named_and_the_rest_applies),
        cmocka_unit_test(an_open_file_does_not_grow),
        cmocka_unit_test(a_confined_process_may_still_abort),
        cmocka_unit_test(the_worker_closes_inherited_descriptors),
        cmocka_unit_test(the_worker_closes_descriptors_without_close_range),
        cmocka_unit_test(the_worker_and_its_builder_are_confined),
        cmocka_unit_test(signals_for_the_program_are_blocked_in_the_worker),
    };
    us = getpid();
    return cmocka_run_group_tests(tests, setup, teardown);
}
