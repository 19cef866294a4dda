/* SPDX-License-Identifier: Apache-2.0 */
/* Several requests to a worker that dies, stalls or answers nonsense on demand.
 * This program is that worker too, when it is started under the worker's name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chem/worker/wire.h"
#include "chem/worker/worker_client.h"
#include "pipeline/base/text.h"

/* ---- the worker ---------------------------------------------------------- */

enum { WAITING = 150000 }; /* bytes */

static bool read_all(void *to, size_t n)
{
    for (char *p = to; n > 0;) {
        ssize_t got = read(0, p, n);
        if (got <= 0)
            return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

static void write_all(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t put = write(1, p, n);
        if (put <= 0)
            _exit(0);
        p += put;
        n -= (size_t)put;
    }
}

static void put_head(pl_text *t, ch_status status, int by_signal)
{
    ch_wire_put_u32(t, (uint32_t)status);
    ch_wire_put_u32(t, (uint32_t)by_signal);
    ch_wire_put_f64(t, 0);
    ch_wire_put_str(t, "", 0);
}

/* The SMILES of the answer is the text of the request, so large answers fill the socket when large requests do. */
static void put_prepared(pl_text *t, const char *text, size_t n)
{
    uint8_t z = 6;
    int8_t charge = 0;
    float xyz[1][3] = { { 0, 0, 0 } };
    const ch_mol mol = { .n_atoms = 1, .z = &z, .charge = &charge, .xyz = xyz };
    bool build = n > 6 && memcmp(text, "build ", 6) == 0;

    ch_wire_put_str(t, text, n);
    for (int i = 0; i < 4; i++)
        ch_wire_put_str(t, "", 0);
    ch_wire_put_str(t, build ? "build" : "input", 5);
    ch_wire_put_str(t, text, n);
    for (int i = 0; i < 8; i++) /* n_heavy to present */
        ch_wire_put_u32(t, 0);
    for (int i = 0; i < CH_N_DESCRIPTORS + 1; i++) /* and the energy */
        ch_wire_put_f64(t, 0);
    if (build)
        ch_wire_put_mol(t, &(ch_mol){ 0 });
    else
        ch_wire_put_mol(t, &mol);
    for (int i = 0; i < 3; i++) /* no stereo: centres, double bonds, axes */
        ch_wire_put_u32(t, 0);
}

static void put_built(pl_text *t, size_t n)
{
    uint8_t z = 6;
    int8_t charge = 0;
    float xyz[1][3] = { { (float)n, 0, 0 } };
    const ch_mol mol = { .n_atoms = 1, .z = &z, .charge = &charge, .xyz = xyz };

    ch_wire_put_str(t, "mmff94", 6);
    ch_wire_put_f64(t, (double)n);
    ch_wire_put_mol(t, &mol);
    ch_wire_put_mols(t, &mol, n % 2);
}

/* Like a busy machine: works a little, for longer than a worker may be idle. */
static void compute_slowly(void)
{
    for (int i = 0; i < 12; i++) {
        const clock_t end = clock() + CLOCKS_PER_SEC / 50;
        while (clock() < end)
            continue;
        (void)usleep(250000);
    }
}

static bool hello; /* this process was asked to test its builder */

static ch_status status_of(const char *text, size_t n, double cpu)
{
    if ((n >= 6 && memcmp(text, "tested", 6) == 0 && !hello) || (n >= 8 && memcmp(text, "untested", 8) == 0 && hello))
        return CH_INTERNAL;
    if ((n >= 4 && memcmp(text, "full", 4) == 0) || (n >= 5 && memcmp(text, "worse", 5) == 0))
        return CH_MEMORY;
    if (n >= 6 && memcmp(text, "unread", 6) == 0)
        return CH_PARSE;
    if (n >= 8 && memcmp(text, "too much", 8) == 0)
        return CH_TOO_LARGE;
    return n >= 6 && memcmp(text, "budget", 6) == 0 && cpu < 1 ? CH_TIMEOUT : CH_OK;
}

static void obey(const char *text, size_t n, double cpu, pl_text *t)
{
    if (n >= 3 && memcmp(text, "die", 3) == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would make it an exit code */
        (void)raise(SIGSEGV);
    }
    if (n >= 5 && memcmp(text, "worse", 5) == 0 && cpu >= 1)
        (void)raise(SIGKILL);
    if (n >= 4 && memcmp(text, "kill", 4) == 0)
        (void)raise(SIGKILL);
    if (n >= 5 && memcmp(text, "stall", 5) == 0)
        (void)pause();
    if (n >= 4 && memcmp(text, "slow", 4) == 0)
        compute_slowly();
    for (int i = 0; n >= 4 && memcmp(text, "idle", 4) == 0 && i < 3; i++)
        (void)usleep(400000);
    if (n >= 7 && memcmp(text, "garbage", 7) == 0)
        ch_wire_put_u32(t, 12345);
    else
        put_head(t, status_of(text, n, cpu), 0);
}

static void answer(const char *request, size_t len, pl_text *t)
{
    ch_wire in = ch_wire_of(request, len);
    uint32_t op = ch_wire_u32(&in);
    double cpu = ch_wire_f64(&in);
    const char *text;
    size_t n;

    hello = hello || op == CH_OP_HELLO;
    if (op == CH_OP_HELLO || op == CH_OP_READY) {
        put_head(t, CH_OK, 0);
        ch_wire_put_str(t, "9.9", 3);
        ch_wire_put_u32(t, 1);
        ch_wire_put_u32(t, 0);
        return;
    }
    for (int i = 0; i < 18; i++) /* the options */
        (void)ch_wire_u32(&in);
    for (int i = 0; op == CH_OP_PREPARE && i < 2; i++) /* rules and format */
        (void)ch_wire_str(&in, &n);
    text = ch_wire_str(&in, &n);
    obey(op == CH_OP_BUILD ? text + 6 : text, op == CH_OP_BUILD ? n - 6 : n, cpu, t);
    if (op == CH_OP_BUILD)
        put_built(t, n);
    else
        put_prepared(t, text, n);
}

/* Of a large request the end is left in the socket for a while, so that what follows it meets a full one. */
static bool read_request(char *to, size_t n)
{
    const size_t first = n > WAITING ? n - WAITING : 0;

    if (first > 0 && !read_all(to, first))
        return false;
    if (first > 0)
        (void)usleep(100000);
    return read_all(to + first, n - first);
}

static int be_the_worker(void)
{
    pl_text t = { 0 };
    uint32_t n;

    while (read_all(&n, sizeof n)) {
        char *request = malloc(n + 1);
        if (request == NULL || !read_request(request, n))
            return 0;
        pl_text_reset(&t);
        answer(request, n, &t);
        free(request);
        n = (uint32_t)t.len;
        write_all((const char *)&n, sizeof n);
        write_all(t.s, t.len);
    }
    return 0;
}

/* ---- the tests ------------------------------------------------------------ */

enum { MAX = 64, HUGE_TEXT = 700000 };

typedef struct bench {
    ch_worker *w;
    pl_arena *mem;
    ch_input in[MAX];
    ch_prepared out[MAX];
    int32_t n;
    int n_open; /* descriptors before the worker */
} bench;

static int descriptors_open(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        (void)closedir(d);
    return n;
}

static atomic_int asked_to_stop;

static int setup_within(void **state, double slack_s)
{
    const ch_worker_opts opts = {
        .program = "/proc/self/exe", .cpu_first_s = 0.5, .cpu_retry_s = 1, .wall_slack_s = slack_s, .stop = &asked_to_stop
    };
    bench *b = calloc(1, sizeof *b);

    b->mem = pl_arena_new(0);
    b->n_open = descriptors_open();
    *state = b;
    return ch_worker_open(&b->w, &opts, NULL) == PL_OK ? 0 : -1;
}

static int setup(void **state) { return setup_within(state, 0.1); }

/* For records that do not stall, however busy the machine is. */
static int setup_patient(void **state) { return setup_within(state, 60); }

static int teardown(void **state)
{
    bench *b = *state;
    ch_worker_close(b->w);
    const bool closed = descriptors_open() == b->n_open;
    pl_arena_free(b->mem);
    free(b);
    return closed ? 0 : -1;
}

static void add(bench *b, const char *text) { b->in[b->n++] = (ch_input){ .text = text, .format = "smi", .len = strlen(text) }; }

static void run(bench *b, const ch_known *known)
{
    pl_error err = { 0 };

    if (ch_worker_prepare_all(b->w, b->in, b->n, NULL, known, b->out, b->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
}

static void assert_code(const bench *b, int32_t i, ch_status code, int attempts)
{
    if (b->out[i].code != code || b->out[i].attempts != attempts)
        fail_msg("%.20s: %s after %d attempts: %s", b->in[i].text, ch_status_name(b->out[i].code), b->out[i].attempts,
                 b->out[i].message);
    if (code == CH_OK && strcmp(b->out[i].smiles, b->in[i].text) != 0)
        fail_msg("record %d has the answer to another", (int)i);
}

static int64_t lost(const bench *b)
{
    int64_t n;
    ch_worker_counts(b->w, NULL, NULL, &n);
    return n;
}

/* A record that kills the worker: first, last, twice in a row, and with good ones in flight behind it. */
static void a_crashing_record_fails_alone(void **state)
{
    static const char *const text[] = {
        "die first", "a", "b", "c", "d", "die 1", "die 2", "e", "f", "g", "h", "i", "j", "die last"
    };
    bench *b = *state;

    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        add(b, text[i]);
    run(b, NULL);
    for (int32_t i = 0; i < b->n; i++) {
        bool poison = strncmp(text[i], "die", 3) == 0;
        assert_code(b, i, poison ? CH_CRASH : CH_OK, poison ? 2 : 1);
        if (poison)
            assert_int_equal(b->out[i].signal, SIGSEGV);
    }
    assert_int_equal(lost(b), 2 * 4);
}

static void a_second_try_has_more_time_and_answers_stay_matched(void **state)
{
    static const char *const text[] = { "a", "budget 1", "b", "budget 2", "c", "d", "e", "garbage", "f", "stall", "g" };
    bench *b = *state;

    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        add(b, text[i]);
    run(b, NULL);
    for (int32_t i = 0; i < b->n; i++)
        if (strncmp(text[i], "budget", 6) == 0)
            assert_code(b, i, CH_OK, 2);
        else if (strcmp(text[i], "garbage") == 0)
            assert_code(b, i, CH_INTERNAL, 2);
        else if (strcmp(text[i], "stall") == 0)
            assert_code(b, i, CH_TIMEOUT, 2);
        else
            assert_code(b, i, CH_OK, 1);
    assert_int_equal(lost(b), 4); /* garbage and stall, twice each */
}

/* Its state may be corrupt: the next record meets a new one. Other failures of a record leave it. */
static void a_worker_that_ran_out_of_memory_or_was_wrong_is_replaced(void **state)
{
    static const struct {
        const char *text;
        ch_status code;
        int attempts, lost;
    } cases[] = { { "full", CH_MEMORY, 2, 2 },
                  { "tested", CH_INTERNAL, 2, 2 },
                  { "unread", CH_PARSE, 1, 0 },
                  { "too much", CH_TOO_LARGE, 1, 0 } };
    bench *b = *state;
    int64_t before = 0;

    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        b->n = 0;
        add(b, "a");
        add(b, cases[k].text);
        add(b, "b");
        run(b, NULL);
        assert_code(b, 0, CH_OK, 1);
        assert_code(b, 1, cases[k].code, cases[k].attempts);
        assert_code(b, 2, CH_OK, 1);
        assert_int_equal(lost(b) - before, cases[k].lost);
        before = lost(b);
    }
}

/* What its first answer said is gone. */
static void a_record_without_a_second_answer_has_none(void **state)
{
    bench *b = *state;

    add(b, "worse");
    run(b, NULL);
    assert_code(b, 0, CH_CRASH, 2);
    assert_string_equal(b->out[0].smiles, "");
}

/* Only its CPU time counts, not the time that other processes had the processors. */
static void a_record_that_waits_for_a_processor_does_not_time_out(void **state)
{
    bench *b = *state;

    add(b, "a");
    add(b, "slow");
    add(b, "b");
    run(b, NULL);
    for (int32_t i = 0; i < b->n; i++)
        assert_code(b, i, CH_OK, 1);
    assert_int_equal(lost(b), 0);
}

/* Sends a signal to a process and those that it started, except this one. */
static void signal_all(pid_t us, int signal)
{
    char path[64];
    long pid;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)us, (long)us);
    f = fopen(path, "re");
    while (f != NULL && fscanf(f, "%ld", &pid) == 1)
        if (pid != getpid())
            (void)kill((pid_t)pid, signal);
    (void)kill(us, signal);
}

/* Suspends the program like a scheduler suspends a job. */
static void time_while_all_processes_are_stopped_does_not_count(void **state)
{
    bench *b = *state;
    const pid_t us = getpid(), other = fork();
    int status;

    if (other == 0) {
        (void)usleep(600000);
        signal_all(us, SIGSTOP);
        (void)usleep(2800000);
        signal_all(us, SIGCONT);
        _exit(0);
    }
    add(b, "idle");
    run(b, NULL);
    assert_true(waitpid(other, &status, 0) == other);
    assert_code(b, 0, CH_OK, 1);
    assert_int_equal(lost(b), 0);
}

static void ask_to_stop(int signal)
{
    (void)signal;
    atomic_store(&asked_to_stop, 1);
}

static void a_stop_ends_the_wait_for_an_answer(void **state)
{
    bench *b = *state;
    pl_error err = { 0 };

    add(b, "stall");
    (void)signal(SIGALRM, ask_to_stop);
    (void)alarm(1);
    assert_int_equal(ch_worker_prepare_all(b->w, b->in, b->n, NULL, NULL, b->out, b->mem, &err), PL_ESTOP);
    assert_string_equal(err.text, "asked to stop");
    atomic_store(&asked_to_stop, 0);
}

static void killers_from_outside_are_not_counted_against_a_record(void **state)
{
    bench *b = *state;

    add(b, "a");
    add(b, "kill");
    add(b, "b");
    run(b, NULL);
    assert_code(b, 0, CH_OK, 1);
    assert_code(b, 1, CH_CRASH, 2);
    assert_code(b, 2, CH_OK, 1);
    assert_true(lost(b) >= 30);
}

/* Requests and answers that are both larger than a socket holds must not wait for each other. */
static void large_records_do_not_block_the_line(void **state)
{
    bench *b = *state;

    for (int i = 0; i < 24; i++) {
        static const size_t sizes[] = { HUGE_TEXT, 60000, 3 };
        size_t n = sizes[i % 3];
        char *text = PL_NEW(b->mem, char, n + 1);
        assert_non_null(text);
        memset(text, 'a' + i, n);
        text[n] = '\0';
        add(b, text);
    }
    run(b, NULL);
    for (int32_t i = 0; i < b->n; i++)
        assert_code(b, i, CH_OK, 1);
    assert_int_equal(lost(b), 0);
}

static pl_code find(void *ctx, const char *smiles, bool *found, ch_prepared *out, pl_arena *mem, pl_error *err)
{
    (void)mem;
    (void)err;
    ++*(int *)ctx;
    *found = strcmp(smiles, "build known") == 0;
    if (*found)
        out->energy = -1;
    return PL_OK;
}

static pl_code judge(void *ctx, ch_prepared *p, pl_arena *mem, pl_error *err)
{
    (void)ctx;
    (void)mem;
    (void)err;
    if (strstr(p->smiles, "unwanted") != NULL)
        p->set_aside = "unwanted";
    return PL_OK;
}

static pl_code find_fails(void *ctx, const char *smiles, bool *found, ch_prepared *out, pl_arena *kept, pl_error *err)
{
    (void)ctx;
    (void)smiles;
    (void)out;
    (void)kept;
    *found = true;
    return pl_fail(err, PL_EIO, "no structure can be read");
}

static void structures_that_cannot_be_looked_up_end_the_work(void **state)
{
    const ch_known known = { .find = find_fails };
    bench *b = *state;
    pl_error err = { 0 };

    add(b, "build x");
    assert_int_equal(ch_worker_prepare_all(b->w, b->in, b->n, NULL, &known, b->out, b->mem, &err), PL_EIO);
    assert_string_equal(err.text, "no structure can be read");
}

static void only_unknown_structures_are_built(void **state)
{
    static const char *const text[] = { "build x",  "given",        "build known",    "build die",
                                        "build yy", "build budget", "build unwanted", "unwanted" };
    bench *b = *state;
    int asked = 0;
    const ch_known known = { .ctx = &asked, .find = find, .judge = judge };

    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        add(b, text[i]);
    run(b, &known);
    assert_int_equal(asked, 5);
    assert_code(b, 0, CH_OK, 1);
    assert_true(b->out[0].built && !b->out[0].known && b->out[0].energy == 7 && b->out[0].mol.xyz[0][0] == 7);
    assert_string_equal(b->out[0].geometry, "mmff94");
    assert_false(b->out[1].built || b->out[1].known);
    assert_true(b->out[2].known && !b->out[2].built && b->out[2].energy == -1);
    assert_code(b, 3, CH_CRASH, 2);
    assert_true(b->out[3].built && b->out[3].mol.n_atoms == 0);
    assert_string_equal(b->out[3].smiles, "build die"); /* what is known of a failure is kept */
    assert_true(b->out[4].energy == 8);
    assert_code(b, 5, CH_OK, 2);
    for (int i = 6; i < 8; i++) {
        assert_code(b, i, CH_OK, 1);
        assert_string_equal(b->out[i].set_aside, "unwanted");
        assert_false(b->out[i].built || b->out[i].known);
    }
    assert_null(b->out[0].set_aside);
}

static void put_program(const char *path)
{
    static char bytes[64 << 20];
    FILE *from = fopen("/proc/self/exe", "rb"), *to = fopen(path, "wb");
    size_t n = from != NULL ? fread(bytes, 1, sizeof bytes, from) : 0;

    assert_true(to != NULL && n > 0 && fwrite(bytes, 1, n, to) == n);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(fclose(from), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

/* Another version of the worker is installed during a run. */
static void a_program_that_is_replaced_is_not_started_again(void **state)
{
    char path[] = "/tmp/molsieve-exchange-XXXXXX", other[64];
    const ch_worker_opts opts = { .program = path, .cpu_first_s = 0.5, .cpu_retry_s = 1, .wall_slack_s = 0.1 };
    const ch_input good = { .text = "a", .format = "smi", .len = 1 }, bad = { .text = "die", .format = "smi", .len = 3 };
    pl_error err = { 0 };
    ch_worker *w;
    bench *b = *state;

    assert_int_equal(close(mkstemp(path)), 0);
    (void)snprintf(other, sizeof other, "%s.new", path);
    put_program(path);
    put_program(other);
    assert_int_equal(ch_worker_open(&w, &opts, NULL), PL_OK);
    assert_int_equal(ch_worker_prepare_all(w, &good, 1, NULL, NULL, b->out, b->mem, &err), PL_OK);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(ch_worker_prepare_all(w, &good, 1, NULL, NULL, b->out, b->mem, &err), PL_OK); /* the old worker still runs */
    assert_int_equal(ch_worker_prepare_all(w, &bad, 1, NULL, NULL, b->out, b->mem, &err), PL_EIO);
    assert_non_null(strstr(err.text, "was replaced while this run used it"));
    ch_worker_close(w);
    assert_int_equal(unlink(path), 0);
}

/* The test of the worker that comes before every first request does not build: that takes most of the time of a start. */
static void a_builder_is_tested_before_its_first_structure(void **state)
{
    static const char *const text[] = { "untested", "build tested" };
    ch_prepare_opts opts = ch_prepare_defaults();
    bench *b = *state;

    opts.builder = CH_NATIVE;
    for (int i = 0; i < 2; i++) {
        b->n = 0;
        add(b, text[i]);
        assert_int_equal(ch_worker_prepare_all(b->w, b->in, 1, &opts, NULL, b->out, b->mem, NULL), PL_OK);
        assert_code(b, 0, CH_OK, 1);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_crashing_record_fails_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_second_try_has_more_time_and_answers_stay_matched, setup, teardown),
        cmocka_unit_test_setup_teardown(a_worker_that_ran_out_of_memory_or_was_wrong_is_replaced, setup_patient, teardown),
        cmocka_unit_test_setup_teardown(a_record_without_a_second_answer_has_none, setup_patient, teardown),
        cmocka_unit_test_setup_teardown(a_record_that_waits_for_a_processor_does_not_time_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stop_ends_the_wait_for_an_answer, setup_patient, teardown),
        cmocka_unit_test_setup_teardown(time_while_all_processes_are_stopped_does_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(killers_from_outside_are_not_counted_against_a_record, setup, teardown),
        cmocka_unit_test_setup_teardown(large_records_do_not_block_the_line, setup_patient, teardown),
        cmocka_unit_test_setup_teardown(only_unknown_structures_are_built, setup, teardown),
        cmocka_unit_test_setup_teardown(structures_that_cannot_be_looked_up_end_the_work, setup, teardown),
        cmocka_unit_test_setup_teardown(a_builder_is_tested_before_its_first_structure, setup, teardown),
        cmocka_unit_test_setup_teardown(a_program_that_is_replaced_is_not_started_again, setup, teardown),
    };

    if (argc > 0 && strcmp(argv[0], "molsieve-chem") == 0)
        return be_the_worker();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
