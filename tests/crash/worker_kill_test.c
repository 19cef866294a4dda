/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a record does not depend on what came before it, nor on
 * workers being killed under it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chem/worker/worker_client.h"
#include "pipeline/base/rng.h"
#include "pipeline/base/sha256.h"

enum { KILLS = 5 };

static const char *const molecules[] = {
    "C[C@H]1CC([NH2+][C@@H](C)c2c[nH]c3cc(F)ccc23)C[C@H](C)O1",
    "COCCOC[C@H]1CC[NH+](C2C[C@@H](C)O[C@H](C)C2)C1",
    "C[C@H](NC(=O)N1CCCC[C@@H]1C1OCCO1)c1cccc(-n2ccnc2)c1",
    "CC(=O)Oc1ccccc1C(=O)O",
    "CC#N",
    "C[Hg]C",
    "C[Mg]C",
    "[Na+].[O-]C(=O)CC",
    "C1CC",
    "c1cccc1",
    "C(C)(C)(C)(C)C",
    "OB(O)c1ccccc1",
    "CCO",
    "N[Pt](N)(Cl)Cl",
    "CN1C=NC2=C1C(=O)N(C)C(=O)N2C",
};
enum { N = sizeof molecules / sizeof *molecules };

static void add_real(pl_sha256 *s, double x) { pl_sha256_add(s, &x, sizeof x); }

/* Everything of a result but the seconds and the attempts. */
static void digest_of(const ch_prepared *p, char out[65])
{
    pl_sha256 s;

    pl_sha256_start(&s);
    pl_sha256_add_str(&s, ch_status_name(p->code));
    pl_sha256_add_str(&s, p->message);
    pl_sha256_add_str(&s, p->smiles);
    pl_sha256_add_str(&s, p->inchikey);
    pl_sha256_add_str(&s, p->removed);
    pl_sha256_add_str(&s, p->geometry);
    for (int i = 0; i < CH_N_DESCRIPTORS; i++)
        add_real(&s, p->descriptor[i]);
    add_real(&s, p->energy);
    pl_sha256_add(&s, p->mol.z, (size_t)p->mol.n_atoms);
    if (p->mol.n_atoms > 0)
        pl_sha256_add(&s, p->mol.xyz, (size_t)p->mol.n_atoms * sizeof *p->mol.xyz);
    pl_sha256_hex(&s, out);
}

static ch_worker *open_worker(void)
{
    pl_error err = { 0 };
    ch_worker *w;

    if (ch_worker_open(&w, NULL, &err) != PL_OK)
        fail_msg("%s", err.text);
    return w;
}

static void prepare_all(ch_worker *w, const int *order, int n, char (*digest)[65])
{
    pl_arena *mem = pl_arena_new(1 << 16);

    for (int i = 0; i < n; i++) {
        const char *smiles = molecules[order[i]];
        ch_prepared p;
        pl_error err = { 0 };
        pl_code code = ch_worker_prepare(w, smiles, strlen(smiles), "smi", NULL, &p, mem, &err);

        if (code != PL_OK && code != PL_EINPUT)
            fail_msg("%s: %s", smiles, err.text);
        digest_of(&p, digest[order[i]]);
        pl_arena_reset(mem);
    }
    pl_arena_free(mem);
}

static void shuffle(int *order, uint64_t seed)
{
    pl_rng rng = pl_rng_at(seed, 0, 0);

    for (int i = 0; i < N; i++)
        order[i] = i;
    for (int i = N - 1; i > 0; i--) {
        int j = (int)pl_rng_below(&rng, (uint64_t)i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static void assert_same(char (*a)[65], char (*b)[65])
{
    for (int i = 0; i < N; i++)
        if (strcmp(a[i], b[i]) != 0)
            fail_msg("%s: another result", molecules[i]);
}

static void the_order_of_records_does_not_matter(void **state)
{
    char first[N][65], again[N][65];
    int order[N], twice[2 * N];
    ch_worker *w = open_worker();
    (void)state;

    for (int i = 0; i < N; i++)
        order[i] = i;
    prepare_all(w, order, N, first);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        shuffle(order, seed);
        prepare_all(w, order, N, again);
        assert_same(first, again);
    }
    for (int i = 0; i < 2 * N; i++)
        twice[i] = order[i / 2];
    prepare_all(w, twice, 2 * N, again);
    assert_same(first, again);
    ch_worker_close(w);
}

/* ---- killing ------------------------------------------------------------ */

static atomic_int killer_works;

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A child of ours that is the worker, or 0. */
static pid_t find_child(void)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    pid_t found = 0;

    while (proc != NULL && found == 0 && (e = readdir(proc)) != NULL) {
        char path[64], line[256] = "", comm[64];
        int pid = atoi(e->d_name), parent;
        FILE *f;

        (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
        if (pid <= 0 || (f = fopen(path, "r")) == NULL)
            continue;
        if (fgets(line, sizeof line, f) != NULL && sscanf(line, "%*d (%63[^)]) %*c %d", comm, &parent) == 2 &&
            parent == (int)getpid() && strcmp(comm, "molsieve-chem") == 0)
            found = pid;
        (void)fclose(f);
    }
    if (proc != NULL)
        (void)closedir(proc);
    return found;
}

static double calm_s; /* for all molecules in a worker that is not killed: on a busy machine nothing starts quickly */

static void *kill_at_random(void *kills)
{
    pl_rng rng = pl_rng_at((uint64_t)getpid(), 1, 2);

    while (atomic_load(&killer_works)) {
        const long ms = (long)((0.2 + 1.2 * pl_rng_real(&rng)) * 1000 * calm_s);
        const struct timespec t = { ms / 1000, ms % 1000 * 1000000L };
        pid_t pid;
        (void)nanosleep(&t, NULL);
        pid = find_child();
        if (pid > 0 && kill(pid, SIGKILL) == 0)
            ++*(int *)kills;
    }
    return NULL;
}

static void killed_workers_leave_no_trace_in_the_results(void **state)
{
    char first[N][65], again[N][65];
    int order[N], kills = 0;
    int64_t lost = 0;
    ch_worker *calm = open_worker(), *w = open_worker();
    pthread_t killer;
    (void)state;

    shuffle(order, 9);
    calm_s = now_s();
    prepare_all(calm, order, N, first);
    calm_s = now_s() - calm_s;
    ch_worker_close(calm);
    atomic_store(&killer_works, 1);
    assert_int_equal(pthread_create(&killer, NULL, kill_at_random, &kills), 0);
    for (int i = 0; i < 40 && lost < KILLS; i++) {
        prepare_all(w, order, N, again);
        assert_same(first, again);
        ch_worker_counts(w, NULL, NULL, &lost);
    }
    atomic_store(&killer_works, 0);
    (void)pthread_join(killer, NULL);
    print_message("%d kills, %d workers lost under a record\n", kills, (int)lost);
    assert_true(lost > 0);
    ch_worker_close(w);
}

/* A name of 80 MiB in a worker of 256 MiB: the answer says so, and the next record gets a new worker. */
static void without_memory_a_record_fails_and_the_worker_is_replaced(void **state)
{
    enum { LONG = 80 << 20 };
    const ch_worker_opts opts = { .memory_bytes = 256 << 20 };
    pl_arena *mem = pl_arena_new(0);
    char *text = pl_arena_get(mem, 1, LONG);
    int64_t started, lost;
    pl_error err = { 0 };
    ch_prepared p;
    ch_worker *w;
    (void)state;

    assert_non_null(text);
    memset(text, 'n', LONG);
    memcpy(text, "CCO ", 4);
    assert_int_equal(ch_worker_open(&w, &opts, NULL), PL_OK);
    assert_int_equal(ch_worker_prepare(w, text, LONG, "smi", NULL, &p, mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "memory: more memory than allowed");
    ch_worker_counts(w, &started, NULL, &lost);
    assert_true(started == 2 && lost == 2); /* it was tried twice */
    assert_int_equal(ch_worker_prepare(w, "CCO", 3, "smi", NULL, &p, mem, NULL), PL_OK);
    ch_worker_counts(w, &started, NULL, &lost);
    assert_true(started == 3 && lost == 2);
    ch_worker_close(w);
    pl_arena_free(mem);
}

static void a_stop_flag_ends_a_request(void **state)
{
    static const char slow[] = "CC(C)(C)c1cc(cc(c1)C(C)(C)C)C(c1ccccc1)(c1ccccc1)c1ccccc1";
    atomic_int stop = 1;
    const ch_worker_opts opts = { .stop = &stop };
    pl_arena *mem = pl_arena_new(0);
    ch_prepared p;
    ch_worker *w;
    (void)state;

    assert_int_equal(ch_worker_open(&w, &opts, NULL), PL_OK);
    assert_int_equal(ch_worker_prepare(w, slow, strlen(slow), "smi", NULL, &p, mem, NULL), PL_ESTOP);
    stop = 0;
    assert_int_equal(ch_worker_prepare(w, "CCO", 3, "smi", NULL, &p, mem, NULL), PL_OK);
    ch_worker_close(w);
    pl_arena_free(mem);
}

static void a_molecule_beyond_its_budget_is_a_timeout_after_two_tries(void **state)
{
    static const char slow[] = "CC(C)(C)c1cc(cc(c1)C(C)(C)C)C(c1ccccc1)(c1ccccc1)c1ccccc1";
    const ch_worker_opts opts = { .cpu_first_s = 0.01, .cpu_retry_s = 0.02 };
    ch_prepare_opts o = ch_prepare_defaults();
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    ch_prepared p;
    ch_worker *w;
    (void)state;

    o.steps = 100000;
    assert_int_equal(ch_worker_open(&w, &opts, NULL), PL_OK);
    pl_code code = ch_worker_prepare(w, slow, strlen(slow), "smi", &o, &p, mem, &err);
    assert_int_equal(code, PL_EINPUT);
    assert_int_equal(p.code, CH_TIMEOUT);
    assert_int_equal(p.attempts, 2);
    assert_int_equal(p.signal, SIGPROF);
    ch_worker_close(w);
    pl_arena_free(mem);
}

static void a_program_that_is_not_the_worker_is_a_wrong_setting(void **state)
{
    const ch_worker_opts missing = { .program = "/nonexistent/molsieve-chem" }, wrong = { .program = "/bin/true" };
    ch_worker_info info;
    pl_error err = { 0 };
    ch_worker *w;
    (void)state;

    assert_int_equal(ch_worker_open(&w, &missing, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, "/nonexistent/molsieve-chem"));
    err = (pl_error){ 0 };
    assert_int_equal(ch_worker_open(&w, &wrong, NULL), PL_OK);
    assert_int_equal(ch_worker_hello(w, &info, &err), PL_ECONFIG);
    assert_string_equal(err.text, "/bin/true does not work: the chemistry worker ended by itself, with exit status 0");
    ch_worker_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_records_does_not_matter),
        cmocka_unit_test(killed_workers_leave_no_trace_in_the_results),
        cmocka_unit_test(without_memory_a_record_fails_and_the_worker_is_replaced),
        cmocka_unit_test(a_stop_flag_ends_a_request),
        cmocka_unit_test(a_molecule_beyond_its_budget_is_a_timeout_after_two_tries),
        cmocka_unit_test(a_program_that_is_not_the_worker_is_a_wrong_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
