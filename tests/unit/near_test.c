/* SPDX-License-Identifier: Apache-2.0 */
/* Small parts of chem/ alone: neighbours against all pairs, the tail of QM9's xyz files, the worker's environment. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "chem/graph/neighbour.h"
#include "chem/records/record.h"
#include "chem/worker/worker_client.h"
#include "chem/worker/worker_process.h"
#include "pipeline/base/rng.h"

static pl_arena *mem;
static char dir[64];

static int make(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/molsieve-near-XXXXXX");
    mem = pl_arena_new(1 << 16);
    return mem == NULL || mkdtemp(dir) == NULL;
}

static int drop(void **state)
{
    char command[100];

    (void)state;
    pl_arena_free(mem);
    (void)snprintf(command, sizeof command, "rm -r '%s'", dir);
    return system(command);
}

/* ---- neighbours ---- */

enum { ATOMS = 120 };

/* side[a] 0: all atoms have the same coordinate. One atom lies far from the others, below (sign -1) or above them. */
static void scatter(float xyz[ATOMS][3], const float side[3], int far, int sign)
{
    pl_rng r = pl_rng_at(3, (uint64_t)(side[0] + 7 * side[1] + 49 * side[2]), 1);

    for (int i = 0; i < ATOMS; i++)
        for (int a = 0; a < 3; a++)
            xyz[i][a] = side[a] * (float)(pl_rng_real(&r) - 0.5);
    for (int a = 0; a < 3; a++)
        if (side[a] > 0)
            xyz[far][a] = (side[a] * 0.5f + 30) * (float)sign;
}

static void expect_all_pairs(const float (*xyz)[3], float cutoff)
{
    ch_neighbours nb;
    pl_error err = { 0 };
    int32_t at = 0;

    if (ch_near_radius(&nb, xyz, ATOMS, cutoff, 1e-6f, 1 << 20, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(nb.n, ATOMS);
    for (int32_t i = 0; i < ATOMS; i++) {
        assert_int_equal(nb.row[i], at);
        for (int32_t j = 0; j < ATOMS; j++)
            if (j != i && ch_distance(xyz, i, j) <= cutoff)
                assert_int_equal(nb.src[at++], j);
    }
    assert_int_equal(nb.row[ATOMS], at);
}

static void neighbours_are_all_pairs_within_the_cutoff(void **state)
{
    static const float sides[][3] = { { 60, 0, 0 },   { 0, 60, 0 }, { 0, 0, 60 }, { 25, 25, 0 },
                                      { 12, 12, 12 }, { 2, 30, 5 }, { 4, 4, 4 } };
    static const float cutoffs[] = { 1.5f, 5, 11 };
    float xyz[ATOMS][3];

    (void)state;
    for (size_t s = 0; s < sizeof sides / sizeof *sides; s++)
        for (int k = 0; k < 6; k++) {
            scatter(xyz, sides[s], (const int[]){ 0, 1, ATOMS - 1 }[k / 2], k % 2 ? 1 : -1);
            for (size_t c = 0; c < sizeof cutoffs / sizeof *cutoffs; c++)
                expect_all_pairs((const float(*)[3])xyz, cutoffs[c]);
        }
}

/* ---- xyz ---- */

static ch_reader *reader_of(const char *text)
{
    static char path[100];
    pl_error err = { 0 };
    ch_reader *r = NULL;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/in.xyz", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    assert_int_equal(fclose(f), 0);
    if (ch_reader_open(&r, path, NULL, NULL, &err) != PL_OK)
        fail_msg("%s", err.text);
    return r;
}

static void expect_raw(ch_reader *r, const char *title, const char *raw, const char *problem)
{
    pl_error err = { 0 };
    ch_record rec;
    bool more = false;

    assert_int_equal(ch_reader_next(r, &rec, &more, &err), PL_OK);
    assert_true(more);
    assert_string_equal(rec.title, title);
    assert_int_equal(rec.raw_len, strlen(raw));
    assert_memory_equal(rec.raw, raw, rec.raw_len);
    if (problem == NULL)
        assert_null(rec.problem);
    else
        assert_string_equal(rec.problem, problem);
}

static void expect_end(ch_reader *r)
{
    pl_error err = { 0 };
    ch_record rec;
    bool more = true;

    assert_int_equal(ch_reader_next(r, &rec, &more, &err), PL_OK);
    assert_false(more);
    ch_reader_close(r);
}

#define FRAME_1 "1\ngdb 1\t3.5\nO 0 0 0 0.1\n100.5\t200.25\nO\tO\nInChI=1S/H2O/h1H2\n"
#define FRAME_2 "1\ngdb 2\t4.5\nN 0 0 0 0.1\n300.5\nN\tN\nInChI=1S/H3N/h1H3\n"

static void what_follows_the_atoms_belongs_to_a_frame_of_qm9(void **state)
{
    ch_reader *r = reader_of(FRAME_1 FRAME_2);

    (void)state;
    expect_raw(r, "gdb 1", FRAME_1, NULL);
    expect_raw(r, "gdb 2", FRAME_2, NULL);
    expect_end(r);
}

static void blank_lines_between_frames_are_no_records(void **state)
{
    ch_reader *r = reader_of("1\none\nC 0 0 0\n\n \n\n1\ntwo\nN 0 0 0\n\n");

    (void)state;
    expect_raw(r, "one", "1\none\nC 0 0 0\n", NULL);
    expect_raw(r, "two", "1\ntwo\nN 0 0 0\n", NULL);
    expect_end(r);
}

static void a_count_without_a_comment_is_a_problem(void **state)
{
    ch_reader *r = reader_of("1\none\nC 0 0 0\n3\n");

    (void)state;
    expect_raw(r, "one", "1\none\nC 0 0 0\n", NULL);
    expect_raw(r, "", "3\n", "xyz: nothing after the count of atoms");
    expect_end(r);
}

/* ---- the worker's environment ---- */

static void read_all(int fd, char *out, size_t size)
{
    size_t n = 0;

    for (int tries = 0; tries < 6000 && n + 1 < size; tries++) {
        ssize_t got = read(fd, out + n, size - 1 - n);
        if (got == 0)
            break;
        if (got < 0)
            (void)usleep(10000); /* it does not block */
        else
            n += (size_t)got;
    }
    out[n] = '\0';
}

static void put_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    (void)fputs(text, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

static void the_worker_gets_its_own_few_variables_and_no_other(void **state)
{
    static const char *const wanted[] = { "BABEL_NEAR=1", "UBSAN_NEAR=2", "OMP_NUM_THREADS=1", "OMP_WAIT_POLICY=passive" };
    static const char *const unwanted[] = { "NEAR_SECRET", "OMP_NUM_THREADS=7", "HOME=" };
    char path[100], told[1 << 14];
    ch_worker_process c = { 0 };
    pl_error err = { 0 };

    (void)state;
    (void)snprintf(path, sizeof path, "%s/tells", dir);
    put_text(path, "#!/bin/sh\necho \"limit $1\"\nexec env\n");
    (void)setenv("BABEL_NEAR", "1", 1);
    (void)setenv("UBSAN_NEAR", "2", 1);
    (void)setenv("NEAR_SECRET", "3", 1);
    (void)setenv("OMP_NUM_THREADS", "7", 1);
    (void)setenv("HOME", "/", 1);
    assert_int_equal(ch_worker_process_start(&c, path, 12345, &err), PL_OK);
    read_all(c.fd, told, sizeof told);
    (void)ch_worker_process_end(&c, true);
    assert_non_null(strstr(told, "limit 12345\n"));
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (strstr(told, wanted[i]) == NULL)
            fail_msg("%s is not passed on: %s", wanted[i], told);
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
        if (strstr(told, unwanted[i]) != NULL)
            fail_msg("%s is passed on: %s", unwanted[i], told);
}

/* Ctrl-C reaches all of the group: the program decides when its worker ends. */
static void a_signal_that_stops_the_program_leaves_the_worker(void **state)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP };
    char path[100], told[100];
    ch_worker_process c = { 0 };
    pl_error err = { 0 };

    (void)state;
    (void)snprintf(path, sizeof path, "%s/echoes", dir);
    put_text(path, "#!/bin/sh\nread line\necho \"$line\"\n");
    assert_int_equal(ch_worker_process_start(&c, path, 1, &err), PL_OK);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        assert_int_equal(kill(c.pid, stops[i]), 0);
    assert_int_equal(write(c.fd, "still here\n", 11), 11);
    read_all(c.fd, told, sizeof told);
    (void)ch_worker_process_end(&c, true);
    assert_string_equal(told, "still here\n");
}

/* Some programs start others with SIGCHLD ignored: then a process cannot wait for its children, and the wait must still end. */
static void a_child_that_cannot_be_waited_for_is_ended(void **state)
{
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    ch_worker_process c = { 0 };
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(ch_worker_process_start(&c, "/bin/cat", 1, &err), PL_OK);
    (void)alarm(60); /* a wait without end ends the test */
    (void)ch_worker_process_end(&c, false);
    (void)alarm(0);
    assert_int_equal(c.pid, 0);
    (void)signal(SIGCHLD, before);
}

static void a_worker_that_is_gone_or_no_worker_is_named(void **state)
{
    ch_worker_opts opts = { .program = "/nowhere/molsieve-chem" };
    ch_worker *w = NULL;
    ch_worker_info info;
    char path[100], want[300];
    pl_error err = { 0 };
    FILE *f;

    (void)state;
    assert_int_equal(ch_worker_open(&w, &opts, &err), PL_ECONFIG);
    assert_null(w);
    (void)snprintf(path, sizeof path, "%s/no-worker", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("#!/bin/sh\nexit 3\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0700), 0);
    opts.program = path;
    assert_int_equal(ch_worker_open(&w, &opts, &err), PL_OK);
    assert_int_not_equal(ch_worker_hello(w, &info, &err), PL_OK);
    (void)snprintf(want, sizeof want, "%s does not work: ", path);
    if (strncmp(err.text, want, strlen(want)) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(unlink(path), 0);
    assert_int_not_equal(ch_worker_hello(w, &info, &err), PL_OK);
    assert_null(strstr(err.text, "is of another version"));
    ch_worker_close(w);
}

/* Starts this program as another process in its own folder: the failure shows which worker it finds, or why none. */
static int find_and_say(void)
{
    ch_worker *w = NULL;
    ch_worker_info info;
    pl_error err = { 0 };

    if (ch_worker_open(&w, NULL, &err) == PL_OK)
        (void)ch_worker_hello(w, &info, &err);
    ch_worker_close(w);
    (void)printf("%s", err.text);
    return 0;
}

/* Makes dir/NAME, a program that is no worker. */
static void put_program(const char *folder, const char *name, int mode)
{
    char path[200];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, folder);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/%s/%s", dir, folder, name);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("#!/bin/sh\nexit 3\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
}

/* want: how the text begins; %s: dir. */
static void finds(const char *environment, const char *want)
{
    char command[1200], env[700], said[600] = "", expected[600];
    FILE *f;

    (void)snprintf(env, sizeof env, environment, dir, dir, dir, dir);
    (void)snprintf(expected, sizeof expected, want, dir);
    (void)snprintf(command, sizeof command, "/usr/bin/env -i %s %s/alone/near find", env, dir);
    f = popen(command, "r");
    assert_non_null(f);
    (void)fread(said, 1, sizeof said - 1, f);
    assert_int_equal(pclose(f), 0);
    if (strncmp(said, expected, strlen(expected)) != 0)
        fail_msg("%s\nfinds: %s\nshould be: %s", env, said, expected);
}

static void the_worker_is_found_beside_by_its_variable_and_on_the_path(void **state)
{
    static const char none[] = "molsieve-chem is neither beside this program nor in PATH; set MOLSIEVE_CHEM to its path";
    char command[400];

    (void)state;
    put_program("alone", "near", 0700);
    put_program("a", "molsieve-chem", 0600);
    put_program("b", "molsieve-chem", 0700);
    put_program("c", "other", 0700);
    (void)snprintf(command, sizeof command, "cp /proc/%d/exe %s/alone/near", (int)getpid(), dir);
    assert_int_equal(system(command), 0);
    finds("", none);
    finds("PATH=", none);
    finds("PATH=%s/c:/nowhere:", none);
    finds("PATH=%s/a:%s/c", none);
    finds("PATH=%s/b", "%s/b/molsieve-chem does not work: ");
    finds("PATH=%s/a:/nowhere:%s/c:%s/b", "%s/b/molsieve-chem does not work: ");
    finds("PATH=%s/b:%s/c MOLSIEVE_CHEM=", "%s/b/molsieve-chem does not work: ");
    finds("PATH=%s/b MOLSIEVE_CHEM=%s/c/other", "%s/c/other does not work: ");
    finds("PATH=%s/b MOLSIEVE_CHEM=%s/c/none", "the chemistry worker %s/c/none is not an executable file");
    put_program("alone", "molsieve-chem", 0700);
    finds("PATH=%s/b MOLSIEVE_CHEM=%s/c/other", "%s/alone/molsieve-chem does not work: ");
    (void)snprintf(command, sizeof command, "rm -r %s/alone %s/a %s/b %s/c", dir, dir, dir, dir);
    assert_int_equal(system(command), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(the_worker_is_found_beside_by_its_variable_and_on_the_path),
        CASE(neighbours_are_all_pairs_within_the_cutoff),
        CASE(what_follows_the_atoms_belongs_to_a_frame_of_qm9),
        CASE(blank_lines_between_frames_are_no_records),
        CASE(a_count_without_a_comment_is_a_problem),
        CASE(a_child_that_cannot_be_waited_for_is_ended),
        CASE(a_worker_that_is_gone_or_no_worker_is_named),
        CASE(the_worker_gets_its_own_few_variables_and_no_other),
        CASE(a_signal_that_stops_the_program_leaves_the_worker),
    };
    if (argc == 2 && strcmp(argv[1], "find") == 0)
        return find_and_say();
    return cmocka_run_group_tests_name("near", tests, NULL, NULL);
}
