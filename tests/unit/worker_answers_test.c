/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of the chemistry worker that is cut short is refused, and one with a wrong number in it is refused or read, never followed
 * out of its bytes. This program is the worker, too, when it is started under its name: it hands everything to the real one, and
 * damages answers as the file "plan" says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chem/common/protocol.h"
#include "chem/worker/worker_client.h"
#include "pipeline/base/text.h"

enum { HEAD = 4 + 4 + 8 + 4, NOWHERE = -1 }; /* bytes of an answer without a message before its body */

/* What is done to answers to requests of one kind, and how long the last of them was. */
typedef struct plan {
    int32_t op, cut, at; /* at: the place of a number, or NOWHERE */
    uint32_t number;
    int32_t len;
} plan;

static int plan_file = -1;

static void plan_write(plan p) { assert_int_equal(pwrite(plan_file, &p, sizeof p, 0), sizeof p); }

static int32_t answer_length(void)
{
    plan p;

    assert_int_equal(pread(plan_file, &p, sizeof p, 0), sizeof p);
    return p.len;
}

/* ---- the worker ----------------------------------------------------------- */

static void all_of(ssize_t (*move)(int, char *, size_t), int fd, char *data, size_t n)
{
    while (n > 0) {
        const ssize_t done = move(fd, data, n);
        if (done <= 0)
            _exit(0);
        data += done;
        n -= (size_t)done;
    }
}

static ssize_t take(int fd, char *data, size_t n) { return read(fd, data, n); }
static ssize_t give(int fd, char *data, size_t n) { return write(fd, data, n); }

static void relay(int from, int to, pl_text *message)
{
    uint32_t n;

    all_of(take, from, (char *)&n, sizeof n);
    pl_text_reset(message);
    pl_text_add_n(message, (const char *)&n, sizeof n);
    char *data = calloc(1, n + 1);
    if (data == NULL)
        _exit(1);
    all_of(take, from, data, n);
    pl_text_add_n(message, data, n);
    free(data);
    if (to >= 0)
        all_of(give, to, message->s, message->len);
}

static void damage(pl_text *answer, uint32_t op)
{
    const int fd = open("plan", O_RDWR | O_CLOEXEC);
    uint32_t n;
    plan p;

    if (fd < 0 || pread(fd, &p, sizeof p, 0) != sizeof p)
        _exit(1);
    if (op == (uint32_t)p.op) {
        p.len = (int32_t)(answer->len - sizeof n);
        n = (uint32_t)(p.len - p.cut);
        memcpy(answer->s, &n, sizeof n);
        answer->len -= (size_t)p.cut;
        if (p.at != NOWHERE)
            memcpy(answer->s + sizeof n + p.at, &p.number, sizeof p.number);
        if (pwrite(fd, &p, sizeof p, 0) != sizeof p)
            _exit(1);
    }
    (void)close(fd);
}

static int start_real(char *bytes)
{
    char path[4096], name[] = "molsieve-chem", *argv[] = { name, bytes, NULL };
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof name);
    int pair[2];

    if (n < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        _exit(1);
    path[n] = '\0';
    (void)strcpy(strrchr(path, '/') + 1, name);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(pair[1], 0);
        (void)dup2(pair[1], 1);
        (void)execv(path, argv);
        _exit(1);
    }
    (void)close(pair[1]);
    return pid > 0 ? pair[0] : -1;
}

static int be_the_worker(char *bytes)
{
    const int real = start_real(bytes);
    pl_text request = { 0 }, answer = { 0 };

    uint32_t op;

    while (real >= 0) { /* until an end of the line is closed */
        relay(0, real, &request);
        memcpy(&op, request.s + 4, sizeof op);
        relay(real, -1, &answer);
        damage(&answer, op);
        all_of(give, 1, answer.s, answer.len);
    }
    return 1;
}

/* ---- the requests --------------------------------------------------------- */

static pl_arena *mem;

static pl_code ask_version(ch_worker *w, pl_error *err)
{
    ch_worker_info info;
    return ch_worker_version(w, &info, err);
}

static pl_code ask_hello(ch_worker *w, pl_error *err)
{
    ch_worker_info info;
    return ch_worker_hello(w, &info, err);
}

static pl_code ask_reads(ch_worker *w, pl_error *err)
{
    bool yes;
    return ch_worker_reads(w, "cml", &yes, err);
}

static pl_code ask_prepared(ch_worker *w, pl_error *err)
{
    static const char smiles[] = "C[C@H](F)/C=C/Cl.[Na+].[Cl-]";
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p;

    o.conformer = CH_3D_NONE;
    o.rules = "F fluorine\nC=C alkene";
    return ch_worker_prepare(w, smiles, strlen(smiles), "smi", &o, &p, mem, err);
}

static pl_code ask_built(ch_worker *w, pl_error *err)
{
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p;

    o.n_structures = 3;
    o.window = 50;
    return ch_worker_prepare(w, "CCCO", 4, "smi", &o, &p, mem, err);
}

static pl_code ask_list(ch_worker *w, pl_error *err)
{
    static const char two[] =
        "<list><molecule id='a'><atomArray><atom id='a1' elementType='O' hydrogenCount='2'/></atomArray></molecule>"
        "<molecule id='b'><atomArray><atom id='a1' elementType='N' hydrogenCount='3'/></atomArray></molecule></list>";
    ch_listing found;
    return ch_worker_list(w, two, strlen(two), "cml", &found, mem, err);
}

static pl_code ask_written(ch_worker *w, pl_error *err)
{
    uint8_t z[2] = { 6, 8 }, order = CH_DOUBLE;
    int8_t charge[2] = { 0, 0 };
    int32_t bond[1][2] = { { 0, 1 } };
    const ch_mol mol = { .n_atoms = 2, .n_bonds = 1, .z = z, .charge = charge, .bond = bond, .order = &order };
    const char *text;
    return ch_worker_write(w, &mol, "a name", "smi", &text, mem, err);
}

static pl_code ask_drawn(ch_worker *w, pl_error *err)
{
    ch_drawn drawn;
    return ch_worker_draw(w, "CC=O", &drawn, mem, err);
}

static pl_code ask_rules(ch_worker *w, pl_error *err)
{
    ch_bad_rule *bad;
    int32_t n;
    return ch_worker_rules(w, "C( a\nN b\nO) c", &bad, &n, mem, err);
}

static pl_code ask_matches(ch_worker *w, pl_error *err)
{
    static const char *const smiles[] = { "CCO", "CCN", "C(" };
    int8_t yes[3];
    int32_t column;
    return ch_worker_match(w, "O", smiles, 3, yes, &column, err);
}

static const struct {
    const char *name;
    int32_t op;
    bool once; /* a worker is asked this once, before other requests */
    pl_code (*ask)(ch_worker *w, pl_error *err);
} kinds[] = {
    { "version", CH_OP_VERSION, true, ask_version },   { "hello", CH_OP_HELLO, true, ask_hello },
    { "ready", CH_OP_READY, true, ask_reads },         { "reads", CH_OP_READS, false, ask_reads },
    { "prepare", CH_OP_PREPARE, false, ask_prepared }, { "build", CH_OP_BUILD, false, ask_built },
    { "list", CH_OP_LIST, false, ask_list },           { "write", CH_OP_WRITE, false, ask_written },
    { "draw", CH_OP_SVG, false, ask_drawn },           { "rules", CH_OP_RULES, false, ask_rules },
    { "match", CH_OP_MATCH, false, ask_matches },
};
enum { KINDS = sizeof kinds / sizeof *kinds, TRIES = 16, TRIES_ONCE = 4 };

/* ---- the tests ------------------------------------------------------------ */

static char folder[] = "/tmp/molsieve-answers-XXXXXX";

static int setup(void **state)
{
    (void)state;
    mem = pl_arena_new(0);
    if (mem == NULL || mkdtemp(folder) == NULL || chdir(folder) != 0)
        return -1;
    plan_file = open("plan", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return plan_file >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    pl_arena_free(mem);
    (void)close(plan_file);
    (void)unlink("plan");
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static ch_worker *worker_open(void)
{
    const ch_worker_opts opts = { .program = "/proc/self/exe", .wall_slack_s = 60 };
    ch_worker *w;

    assert_int_equal(ch_worker_open(&w, &opts, NULL), PL_OK);
    return w;
}

/* Asks with that damage; without a worker, a new one. */
static pl_code ask(ch_worker **w, size_t k, plan p, pl_error *err)
{
    if (kinds[k].once || *w == NULL) {
        ch_worker_close(*w);
        *w = worker_open();
    }
    p.op = kinds[k].op;
    plan_write(p);
    pl_arena_reset(mem);
    *err = (pl_error){ 0 };
    return kinds[k].ask(*w, err);
}

static int32_t whole_length(ch_worker **w, size_t k)
{
    pl_error err;

    if (ask(w, k, (plan){ .at = NOWHERE }, &err) != PL_OK)
        fail_msg("%s: %s", kinds[k].name, err.text);
    assert_true(answer_length() >= HEAD);
    return answer_length();
}

static bool says_why(const char *text)
{
    return strstr(text, "answer is cut short") != NULL || strstr(text, "answer is malformed") != NULL ||
           strstr(text, "answer is not a valid molecule") != NULL ||
           strstr(text, " is of another version than this program") != NULL;
}

static void an_answer_that_is_cut_short_is_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        ch_worker *w = NULL;
        const int32_t len = whole_length(&w, k), tries = kinds[k].once ? TRIES_ONCE : TRIES;
        for (int32_t i = 0; i < tries && i < len; i++) {
            const int32_t cut = i < tries / 2 ? i + 1 : 1 + (int32_t)((int64_t)(len - 1) * i / tries);
            pl_error err;
            const pl_code code = ask(&w, k, (plan){ .cut = cut, .at = NOWHERE }, &err);
            if ((code != PL_EINPUT && code != PL_ECONFIG) || !says_why(err.text))
                fail_msg("%s without the last %d of %d bytes: %d %s", kinds[k].name, cut, len, (int)code, err.text);
        }
        assert_int_equal(whole_length(&w, k), len); /* it goes on */
        ch_worker_close(w);
    }
}

static void every_request_to_another_program_says_which(void **state)
{
    const ch_worker_opts opts = { .program = "/bin/true" };

    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        ch_worker *w;
        pl_error err = { 0 };
        assert_int_equal(ch_worker_open(&w, &opts, NULL), PL_OK);
        if (kinds[k].ask(w, &err) != PL_ECONFIG || strncmp(err.text, "/bin/true does not work: ", 25) != 0)
            fail_msg("%s: %s", kinds[k].name, err.text);
        ch_worker_close(w);
    }
}

/* The first answer of a worker lacks its last bytes, as that of another version would. */
static void no_request_goes_to_a_worker_of_another_version(void **state)
{
    static const int32_t first[] = { CH_OP_READY, CH_OP_HELLO };

    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        int refused = 0, wanted = 1;
        if (kinds[k].op == CH_OP_VERSION)
            wanted = 0;
        if (kinds[k].op == CH_OP_BUILD) /* before it is built, too */
            wanted = 2;
        for (int i = 0; i < 2; i++) {
            ch_worker *w = worker_open();
            pl_error err = { 0 };
            plan_write((plan){ .op = first[i], .cut = 4, .at = NOWHERE });
            pl_arena_reset(mem);
            const pl_code code = kinds[k].ask(w, &err);
            ch_worker_close(w);
            refused += code == PL_ECONFIG;
            if (code == PL_ECONFIG && strstr(err.text, " is of another version than this program; install both") == NULL)
                fail_msg("%s: %s", kinds[k].name, err.text);
        }
        if (refused != wanted)
            fail_msg("%s was sent to a worker of another version", kinds[k].name);
    }
}

static void a_stop_ends_every_request(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (int before = 0; before < 2; before++) {
            atomic_int stop = before;
            const ch_worker_opts opts = { .program = "/proc/self/exe", .wall_slack_s = 60, .stop = &stop };
            ch_worker *w;
            pl_error err = { 0 };

            plan_write((plan){ .op = NOWHERE });
            pl_arena_reset(mem);
            assert_int_equal(ch_worker_open(&w, &opts, NULL), PL_OK);
            if (before == 0 && kinds[k].ask(w, &err) != PL_OK)
                fail_msg("%s: %s", kinds[k].name, err.text);
            stop = 1;
            if ((before == 1 || !kinds[k].once || kinds[k].op == CH_OP_VERSION) && kinds[k].ask(w, &err) != PL_ESTOP)
                fail_msg("%s is not stopped: %s", kinds[k].name, err.text);
            ch_worker_close(w);
        }
}

static void a_wrong_number_in_an_answer_is_not_followed(void **state)
{
    static const uint32_t wrong[] = { UINT32_MAX, 1u << 20 };

    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        ch_worker *w = NULL;
        const int32_t len = whole_length(&w, k);
        const int32_t first = kinds[k].op == CH_OP_READS ? 0 : HEAD; /* the head is read alike for all */
        for (int32_t at = first; at + 4 <= len && !kinds[k].once; at += at < 200 ? 4 : 4 + len / 50)
            for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                pl_error err;
                const pl_code code = ask(&w, k, (plan){ .at = at, .number = wrong[i] }, &err);
                if (code != PL_OK && ((code != PL_EINPUT && code != PL_ECONFIG) || err.text[0] == '\0'))
                    fail_msg("%s with %x at %d: %d %s", kinds[k].name, wrong[i], at, (int)code, err.text);
            }
        assert_int_equal(whole_length(&w, k), len);
        ch_worker_close(w);
    }
}

static void a_status_that_is_none_is_a_fault_of_the_program(void **state)
{
    (void)state;
    assert_string_equal(ch_status_name(CH_OK), "ok");
    assert_string_equal(ch_status_name((ch_status)(CH_N_STATUS - 1)), "internal");
    assert_string_equal(ch_status_name(CH_N_STATUS), "internal");
    assert_string_equal(ch_status_name((ch_status)-1), "internal");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_that_is_cut_short_is_refused),
        cmocka_unit_test(every_request_to_another_program_says_which),
        cmocka_unit_test(no_request_goes_to_a_worker_of_another_version),
        cmocka_unit_test(a_stop_ends_every_request),
        cmocka_unit_test(a_status_that_is_none_is_a_fault_of_the_program),
        cmocka_unit_test(a_wrong_number_in_an_answer_is_not_followed),
    };

    if (argc > 1 && strcmp(argv[0], "molsieve-chem") == 0)
        return be_the_worker(argv[1]);
    return cmocka_run_group_tests(tests, setup, teardown);
}
