/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read and written whole: what the system gives in parts, interrupts or refuses. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/file.h"
#include "pipeline/base/folder.h"
#include "pipeline/base/sha256.h"
#include "tests/unit/long_name.h"

/* ---- calls of the system that answer as they may ---- */

enum { ALL = INT_MAX };

/* The next answers of read and write: bytes that are taken at most, or minus an errno. Behind the last: as usual. */
static int answers[16], n_answers, next_answer, dir_sync, file_sync; /* the last two: errno of fsync, 0: none */

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __real_write(int fd, const void *from, size_t n);
int __real_fsync(int fd);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n);
int __wrap_fsync(int fd);

static bool refused(size_t *n)
{
    int answer = next_answer < n_answers ? answers[next_answer++] : ALL;

    if (answer < 0)
        errno = -answer;
    else if (*n > (size_t)answer)
        *n = (size_t)answer;
    return answer < 0;
}

ssize_t __wrap_read(int fd, void *to, size_t n) { return refused(&n) ? -1 : __real_read(fd, to, n); }
ssize_t __wrap_write(int fd, const void *from, size_t n) { return refused(&n) ? -1 : __real_write(fd, from, n); }

int __wrap_fsync(int fd)
{
    struct stat st;
    int why = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? dir_sync : file_sync;

    errno = why;
    return why != 0 ? -1 : __real_fsync(fd);
}

static void answer(const int *list, int n)
{
    memcpy(answers, list, (size_t)n * sizeof *list);
    n_answers = n;
    next_answer = 0;
}

#define ANSWER(...) answer((const int[]){ __VA_ARGS__ }, (int)(sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int)))

/* ---- a folder for each test ---- */

static char dir[64], path[128], tmp[160];
static pl_arena *mem;
static pl_error err;

static int make(void **unused)
{
    (void)unused;
    n_answers = next_answer = dir_sync = file_sync = 0;
    err = (pl_error){ 0 };
    strcpy(dir, "/tmp/molsieve-file-XXXXXX");
    if (mkdtemp(dir) == NULL || (mem = pl_arena_new(1 << 12)) == NULL)
        return 1;
    (void)snprintf(path, sizeof path, "%s/f", dir);
    (void)snprintf(tmp, sizeof tmp, "%s.tmp", path);
    return pl_file_write(path, (pl_bytes){ "before", 6 }, NULL) != PL_OK;
}

static int drop(void **unused)
{
    (void)unused;
    pl_arena_free(mem);
    return pl_folder_remove(dir, NULL) != PL_OK;
}

static void holds(const char *name, const char *text)
{
    pl_bytes got = { 0 };

    n_answers = 0;
    assert_int_equal(pl_file_read(&got, name, mem, NULL), PL_OK);
    assert_int_equal(got.len, strlen(text));
    assert_string_equal(got.data, text);
}

static void said(const char *a, const char *b)
{
    if (strstr(err.text, a) == NULL || strstr(err.text, b) == NULL)
        fail_msg("said: %s", err.text);
}

/* ---- reading ---- */

static void a_read_goes_on_after_parts_and_signals(void **unused)
{
    pl_bytes got = { 0 };

    (void)unused;
    ANSWER(1, -EINTR, 2, -EINTR, -EINTR, 1);
    assert_int_equal(pl_file_read(&got, path, mem, &err), PL_OK);
    assert_int_equal(next_answer, 6);
    assert_int_equal(got.len, 6);
    assert_string_equal(got.data, "before");
}

static void a_file_that_becomes_shorter_is_an_error(void **unused)
{
    pl_bytes got = { 0 };

    (void)unused;
    ANSWER(4, 0);
    assert_int_equal(pl_file_read(&got, path, mem, &err), PL_EIO);
    said(path, "the file became shorter while it was read");
    assert_null(got.data);
}

static void a_read_that_fails_is_said_with_its_reason(void **unused)
{
    pl_bytes got = { 0 };

    (void)unused;
    ANSWER(4, -EIO);
    assert_int_equal(pl_file_read(&got, path, mem, &err), PL_EIO);
    said(path, strerror(EIO));
    assert_null(got.data);
}

/* ---- writing ---- */

static void a_write_goes_on_after_parts_and_signals(void **unused)
{
    (void)unused;
    ANSWER(2, -EINTR, 3, -EINTR, 1);
    assert_int_equal(pl_file_write(path, (pl_bytes){ "afterwards", 10 }, &err), PL_OK);
    assert_int_equal(next_answer, 5);
    holds(path, "afterwards");
}

static void left_as_it_was(int why)
{
    said(path, strerror(why));
    assert_true(pl_path_is_gone(tmp));
    holds(path, "before");
}

static void a_write_that_fails_leaves_the_file_and_nothing_else(void **unused)
{
    (void)unused;
    ANSWER(4, -ENOSPC);
    assert_int_equal(pl_file_write(path, (pl_bytes){ "afterwards", 10 }, &err), PL_EIO);
    left_as_it_was(ENOSPC);
    file_sync = EIO;
    assert_int_equal(pl_file_write(path, (pl_bytes){ "afterwards", 10 }, &err), PL_EIO);
    left_as_it_was(EIO);
}

static void a_name_that_cannot_be_replaced_leaves_nothing(void **unused)
{
    char folder[80], left[100];

    (void)unused;
    (void)snprintf(folder, sizeof folder, "%s/folder", dir);
    (void)snprintf(left, sizeof left, "%s.tmp", folder);
    assert_int_equal(pl_mkdirs(folder, NULL), PL_OK);
    assert_int_equal(pl_file_write(folder, (pl_bytes){ "x", 1 }, &err), PL_EIO);
    said(folder, strerror(EISDIR));
    assert_true(pl_path_is_gone(left));
}

/* File systems without sync of folders say EINVAL or ENOTSUP. */
static void only_a_real_error_of_the_folders_sync_counts(void **unused)
{
    static const int fine[] = { EINVAL, ENOTSUP };

    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        dir_sync = fine[i];
        assert_int_equal(pl_file_write(path, (pl_bytes){ "x", 1 }, &err), PL_OK);
    }
    dir_sync = EIO;
    assert_int_equal(pl_file_write(path, (pl_bytes){ "y", 1 }, &err), PL_EIO);
    said(dir, strerror(EIO));
}

static void what_a_killed_write_left_is_replaced(void **unused)
{
    (void)unused;
    assert_int_equal(pl_file_write(tmp, (pl_bytes){ "left by a killed process", 24 }, NULL), PL_OK);
    assert_int_equal(pl_file_write(path, (pl_bytes){ "x", 1 }, &err), PL_OK);
    holds(path, "x");
    assert_true(pl_path_is_gone(tmp));
}

static void a_link_at_the_temporary_name_is_not_followed(void **unused)
{
    char other[80];

    (void)unused;
    (void)snprintf(other, sizeof other, "%s/other", dir);
    assert_int_equal(pl_file_write(other, (pl_bytes){ "not ours", 8 }, NULL), PL_OK);
    assert_int_equal(symlink(other, tmp), 0);
    assert_int_equal(pl_file_write(path, (pl_bytes){ "x", 1 }, &err), PL_EIO);
    holds(other, "not ours");
    holds(path, "before");
}

static void a_secret_is_for_its_owner_alone(void **unused)
{
    const mode_t before = umask(022);
    struct stat st;

    (void)unused;
    assert_int_equal(pl_file_write_secret(path, (pl_bytes){ "x", 1 }, &err), PL_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(pl_file_write(path, (pl_bytes){ "x", 1 }, &err), PL_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    (void)umask(before);
}

/* ---- names ---- */

static void a_hash_is_of_all_bytes_or_fails(void **unused)
{
    static const int cut[] = { -EINTR, 3, -EINTR, 1, ALL }, fails[] = { 3, -EIO };
    char whole[65], is[65] = "";

    (void)unused;
    assert_int_equal(pl_file_write(path, (pl_bytes){ "0123456789", 10 }, &err), PL_OK);
    assert_int_equal(pl_sha256_file(path, whole, &err), PL_OK);
    answer(cut, 5);
    assert_int_equal(pl_sha256_file(path, is, &err), PL_OK);
    assert_string_equal(is, whole);
    answer(fails, 2);
    assert_int_equal(pl_sha256_file(path, is, &err), PL_EIO);
    said(path, ": Input/output error");
    n_answers = 0;
}

/* Where standard input is closed, a file has this descriptor. */
static void descriptor_0_is_one_like_the_others(void **unused)
{
    int status;
    pid_t pid;

    (void)unused;
    assert_int_equal(pl_file_write(path, (pl_bytes){ "abc", 3 }, &err), PL_OK);
    pid = fork();
    if (pid == 0) {
        pl_bytes back;
        char hex[65];
        (void)close(0);
        if (pl_file_read(&back, path, mem, NULL) != PL_OK || back.len != 3 || pl_sha256_file(path, hex, NULL) != PL_OK ||
            pl_file_write(path, (pl_bytes){ "abcd", 4 }, NULL) != PL_OK)
            _exit(1);
        file_sync = EIO;
        if (pl_file_write(path, (pl_bytes){ "abcde", 5 }, NULL) != PL_EIO)
            _exit(2);
        file_sync = 0;
        dir_sync = EIO;
        if (pl_file_sync_name(path, NULL) != PL_EIO || fcntl(0, F_GETFD) != -1)
            _exit(3);
        dir_sync = 0;
        _exit(pl_file_read(&back, path, mem, NULL) == PL_OK && back.len == 4 ? 0 : 4);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void names_are_refused_only_where_they_do_not_fit(void **unused)
{
    (void)unused;
    assert_int_equal(pl_file_write(long_name(dir, "g", PATH_MAX - 1 - strlen(".tmp")), (pl_bytes){ "x", 1 }, &err), PL_OK);
    assert_int_equal(pl_file_write(long_name(dir, "g", PATH_MAX - strlen(".tmp")), (pl_bytes){ "y", 1 }, &err), PL_EIO);
    said(dir, "/g: path too long");
    assert_int_equal(pl_mkdirs(long_name(dir, "h", PATH_MAX - 1), &err), PL_OK);
    assert_int_equal(pl_mkdirs(long_name(dir, "i", PATH_MAX), &err), PL_EIO);
    said(dir, "/i: path too long");
}

/* The reason is at the end, the file at the beginning. */
static void a_message_that_is_too_long_keeps_both_ends(void **unused)
{
    const size_t room = sizeof err.text - 1;
    char whole[sizeof err.text + 100];

    (void)unused;
    for (size_t n = room - 1; n <= room + 2; n++) {
        memset(whole, 'm', sizeof whole);
        memcpy(whole, "begin", 5);
        memcpy(whole + n - 3, "end", 4);
        (void)pl_fail(&err, PL_EIO, "%s", whole);
        assert_int_equal(strlen(err.text), n < room ? n : room);
        assert_memory_equal(err.text, "beginmm", 7);
        assert_string_equal(err.text + strlen(err.text) - 5, "mmend");
        assert_int_equal(strstr(err.text, "m ... m") != NULL, n > room);
    }
    memset(whole, 'm', sizeof whole);
    whole[room + 50] = '\0';
    (void)pl_fail(&err, PL_ENOMEM, "%s", whole);
    assert_non_null(strstr(err.text, ": out of memory"));
}

static void a_path_leaves_by_two_dots_alone(void **unused)
{
    static const char *const out[] = { "..", "../a", "a/..", "a/../b", "a/b/..", "./.." };
    static const char *const in[] = { "", "a", "/..", "/a/../b", "..a", "a..", "a/..b", "a/b../c", ".", "./a", "a/.", "..." };

    (void)unused;
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        assert_true(pl_path_leaves(out[i]));
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        assert_false(pl_path_leaves(in[i]));
}

static void gone_is_what_is_not_there(void **unused)
{
    char below[160], loop[80];

    (void)unused;
    assert_false(pl_path_is_gone(path));
    assert_true(pl_path_is_gone(tmp));
    (void)snprintf(below, sizeof below, "%s/below", path); /* of a file */
    assert_true(pl_path_is_gone(below));
    (void)snprintf(loop, sizeof loop, "%s/loop", dir);
    assert_int_equal(symlink(loop, loop), 0);
    assert_false(pl_path_is_gone(loop)); /* it cannot be told */
}

static void a_file_is_the_same_under_all_its_names(void **unused)
{
    char hard[80], soft[80];
    struct stat a = { .st_dev = 1, .st_ino = 2 }, b = a;

    (void)unused;
    (void)snprintf(hard, sizeof hard, "%s/hard", dir);
    (void)snprintf(soft, sizeof soft, "%s/soft", dir);
    assert_int_equal(link(path, hard), 0);
    assert_int_equal(symlink(hard, soft), 0);
    assert_true(pl_path_is_same(path, path) && pl_path_is_same(path, hard) && pl_path_is_same(soft, path));
    assert_false(pl_path_is_same(path, dir));
    assert_false(pl_path_is_same(path, tmp) || pl_path_is_same(tmp, path) || pl_path_is_same(tmp, tmp)); /* it is not there */
    assert_true(pl_stat_is_same(&a, &b));
    b.st_ino = 3;
    assert_false(pl_stat_is_same(&a, &b));
    b = (struct stat){ .st_dev = 2, .st_ino = 2 };
    assert_false(pl_stat_is_same(&a, &b));
}

static void a_path_is_in_a_folder_below_its_slash(void **unused)
{
    (void)unused;
    assert_true(pl_path_is_in("/a/b/c", "/a/b"));
    assert_false(pl_path_is_in("/a/b", "/a/b"));
    assert_false(pl_path_is_in("/a/bc", "/a/b"));
    assert_false(pl_path_is_in("/a/x/c", "/a/b"));
    assert_false(pl_path_is_in("/a", "/a/b"));
}

static void a_folder_in_the_place_of_a_file_is_named(void **unused)
{
    char below[160];

    (void)unused;
    (void)snprintf(below, sizeof below, "%s/x/y", path);
    assert_int_equal(pl_mkdirs(below, &err), PL_EIO);
    said(path, strerror(ENOTDIR));
}

/* Of files at any depth, as the disk counts them. */
static void the_bytes_of_a_folder_are_those_of_its_files(void **unused)
{
    char below[100], file[120];
    struct stat a, b;

    (void)unused;
    (void)snprintf(below, sizeof below, "%s/x/y", dir);
    (void)snprintf(file, sizeof file, "%s/g", below);
    assert_int_equal(pl_mkdirs(below, NULL), PL_OK);
    assert_int_equal(pl_file_write(file, (pl_bytes){ dir, sizeof dir }, NULL), PL_OK);
    assert_true(stat(path, &a) == 0 && stat(file, &b) == 0);
    assert_true(pl_folder_bytes(dir) == 512.0 * (double)(a.st_blocks + b.st_blocks));
}

#define OF_FOLDER(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_FOLDER(a_read_goes_on_after_parts_and_signals),
        OF_FOLDER(a_file_that_becomes_shorter_is_an_error),
        OF_FOLDER(a_read_that_fails_is_said_with_its_reason),
        OF_FOLDER(a_write_goes_on_after_parts_and_signals),
        OF_FOLDER(a_write_that_fails_leaves_the_file_and_nothing_else),
        OF_FOLDER(a_name_that_cannot_be_replaced_leaves_nothing),
        OF_FOLDER(only_a_real_error_of_the_folders_sync_counts),
        OF_FOLDER(what_a_killed_write_left_is_replaced),
        OF_FOLDER(a_link_at_the_temporary_name_is_not_followed),
        OF_FOLDER(a_secret_is_for_its_owner_alone),
        OF_FOLDER(a_hash_is_of_all_bytes_or_fails),
        OF_FOLDER(descriptor_0_is_one_like_the_others),
        OF_FOLDER(names_are_refused_only_where_they_do_not_fit),
        OF_FOLDER(a_message_that_is_too_long_keeps_both_ends),
        OF_FOLDER(the_bytes_of_a_folder_are_those_of_its_files),
        OF_FOLDER(a_path_leaves_by_two_dots_alone),
        OF_FOLDER(gone_is_what_is_not_there),
        OF_FOLDER(a_file_is_the_same_under_all_its_names),
        OF_FOLDER(a_path_is_in_a_folder_below_its_slash),
        OF_FOLDER(a_folder_in_the_place_of_a_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
