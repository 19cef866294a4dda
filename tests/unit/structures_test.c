/* SPDX-License-Identifier: Apache-2.0 */
/* Which built structures are kept, and which runs may use them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "stages/steps/ingest/native.h"
#include "stages/steps/ingest/structures.h"
#include "toy.h"

static toy t;
static pl_store *store;
static pl_arena *mem;
static char dir[256];

static int make(void **state)
{
    (void)state;
    mem = pl_arena_new(0);
    toy_directory(dir);
    toy_make(&t, dir, 3);
    return pl_store_open(&store, &t.wf, &toy_schema, NULL) != PL_OK;
}

static int drop(void **state)
{
    (void)state;
    pl_store_close(store);
    toy_free(&t);
    toy_remove(dir);
    pl_arena_free(mem);
    return 0;
}

static void open_with(st_structures *s, const char *library, int steps, double first, double retry)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    const ch_worker_opts budget = { .cpu_first_s = first, .cpu_retry_s = retry };

    opts.steps = steps;
    assert_int_equal(st_structures_open(s, store, library, &opts, &budget, NULL), PL_OK);
}

static uint8_t z[2] = { 6, 8 };
static int8_t charge[2];
static float xyz[2][3] = { { 0, 0, 0 }, { 1.25f, 0, -0.5f } };
static int32_t bond[1][2] = { { 0, 1 } };
static uint8_t order[1] = { 2 };

static void keep(st_structures *s, const char *smiles, ch_status code, int by_signal, double cpu_s)
{
    ch_prepared p = { .code = code,
                      .message = "why",
                      .signal = by_signal,
                      .attempts = 2,
                      .cpu_s = cpu_s,
                      .smiles = smiles,
                      .built_from = smiles,
                      .geometry = "mmff94",
                      .energy = -7.5,
                      .built = true };

    if (code == CH_OK)
        p.mol = (ch_mol){ .n_atoms = 2, .n_bonds = 1, .z = z, .charge = charge, .xyz = xyz, .bond = bond, .order = order };
    assert_int_equal(st_structure_keep(s, &p, NULL), PL_OK);
}

static bool has(st_structures *s, const char *smiles, ch_prepared *out)
{
    bool found = true;

    *out = (ch_prepared){ .code = CH_INTERNAL, .smiles = smiles, .built_from = smiles };
    assert_int_equal(st_structure_find(s, smiles, &found, out, mem, NULL), PL_OK);
    return found;
}

static void stored_structures_read_back_as_written(void **state)
{
    st_structures s;
    ch_prepared p;

    (void)state;
    open_with(&s, "{}", 200, 2, 30);
    keep(&s, "C=O", CH_OK, 0, 1.5);
    assert_true(has(&s, "C=O", &p));
    assert_int_equal(p.code, CH_OK);
    assert_string_equal(p.geometry, "mmff94");
    assert_true(p.energy == -7.5 && p.cpu_s == 1.5 && p.attempts == 2);
    assert_int_equal(p.mol.n_atoms, 2);
    assert_memory_equal(p.mol.xyz, xyz, sizeof xyz);
    assert_memory_equal(p.mol.z, z, sizeof z);
    assert_memory_equal(p.mol.bond, bond, sizeof bond);
    assert_int_equal(p.mol.order[0], 2);
    assert_false(has(&s, "C-O", &p));
    assert_int_equal(p.code, CH_INTERNAL); /* untouched */
    assert_int_equal(s.n_built, 1);
}

static void other_settings_are_other_structures(void **state)
{
    st_structures s, other;
    ch_prepared p;

    (void)state;
    open_with(&s, "{\"seed\":1}", 200, 2, 30);
    keep(&s, "C=O", CH_OK, 0, 1);
    open_with(&other, "{\"seed\":2}", 200, 2, 30);
    assert_false(has(&other, "C=O", &p));
    open_with(&other, "{\"seed\":1}", 100, 2, 30);
    assert_false(has(&other, "C=O", &p));
    open_with(&other, "{\"seed\":1}", 200, 1, 20);
    assert_true(has(&other, "C=O", &p));
}

static ch_prepare_opts with(ch_builder builder, ch_force_field force_field, int structures, double window, double dielectric)
{
    ch_prepare_opts o = ch_prepare_defaults();

    o.builder = builder;
    o.force_field = force_field;
    o.n_structures = structures;
    o.window = window;
    o.dielectric = dielectric;
    return o;
}

/* Every setting that changes a structure, and none that does not: a window without an ensemble, and for the native builder,
 * which has its own limit of work, the number of steps. */
static void each_setting_of_a_structure_is_told_apart(void **state)
{
    const struct {
        ch_prepare_opts opts;
        double retry;
    } made[] = {
        { with(CH_OPENBABEL, CH_FF_MMFF94, 1, 10, 1), 20 },   { with(CH_OPENBABEL, CH_FF_MMFF94S, 1, 10, 1), 20 },
        { with(CH_OPENBABEL, CH_FF_MMFF94, 2, 10, 1), 20 },   { with(CH_OPENBABEL, CH_FF_MMFF94, 3, 10, 1), 20 },
        { with(CH_OPENBABEL, CH_FF_MMFF94, 2, 10.5, 1), 20 }, { with(CH_OPENBABEL, CH_FF_MMFF94, 1, 10, 1.5), 20 },
        { with(CH_OPENBABEL, CH_FF_MMFF94, 1, 10, 4), 20 },   { with(CH_NATIVE, CH_FF_MMFF94, 1, 10, 1), 20 },
        { with(CH_NATIVE, CH_FF_MMFF94, 1, 10, 1), 20.5 },    { with(CH_NATIVE, CH_FF_MMFF94, 2, 10, 1), 20 },
    };
    enum { N_MADE = sizeof made / sizeof *made };
    st_structures s[N_MADE], other;

    (void)state;
    for (int i = 0; i < N_MADE; i++) {
        const ch_worker_opts budget = { .cpu_first_s = 1, .cpu_retry_s = made[i].retry };
        ch_prepare_opts same = made[i].opts;
        assert_int_equal(st_structures_open(&s[i], store, "{}", &made[i].opts, &budget, NULL), PL_OK);
        assert_true(s[i].first_s == 1 && s[i].retry_s == made[i].retry);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(s[j].settings, s[i].settings);
        if (same.n_structures == 1)
            same.window = 3;
        if (same.builder == CH_NATIVE)
            same.steps = 100;
        assert_int_equal(st_structures_open(&other, store, "{}", &same, &budget, NULL), PL_OK);
        assert_string_equal(other.settings, s[i].settings);
    }
}

static void failures_hold_for_the_budget_they_were_given(void **state)
{
    st_structures s, more, less;
    ch_prepared p;

    (void)state;
    open_with(&s, "{}", 200, 1, 5);
    open_with(&more, "{}", 200, 1, 10);
    open_with(&less, "{}", 200, 1, 2);
    keep(&s, "no", CH_CONFORMER, 0, 0.1);
    keep(&s, "flat", CH_GEOMETRY, 0, 0.1);
    keep(&s, "slow", CH_TIMEOUT, SIGPROF, 6);
    keep(&s, "long", CH_OK, 0, 5.5); /* at the second attempt */
    keep(&s, "waited", CH_TIMEOUT, 0, 0.1);
    keep(&s, "crash", CH_CRASH, SIGSEGV, 0.1);
    keep(&s, "memory", CH_MEMORY, 0, 0.1);
    assert_true(has(&s, "no", &p) && p.code == CH_CONFORMER && strcmp(p.message, "why") == 0 && p.mol.n_atoms == 0);
    assert_true(has(&more, "flat", &p) && p.code == CH_GEOMETRY);
    assert_true(has(&s, "slow", &p) && p.code == CH_TIMEOUT && p.signal == SIGPROF);
    assert_true(has(&less, "slow", &p));
    assert_false(has(&more, "slow", &p));
    assert_true(has(&more, "long", &p));
    assert_false(has(&less, "long", &p));
    for (const char *const *one = (const char *const[]){ "waited", "crash", "memory", NULL }; *one != NULL; one++)
        assert_false(has(&s, *one, &p));
}

/* ---- read by several threads while the main thread writes ---- */

enum { N = 400 };

static void *find_all(void *structures)
{
    char smiles[32];
    ch_prepared p = { 0 };
    pl_arena *own = pl_arena_new(0);
    bool found;
    intptr_t wrong = 0;

    for (int i = 0; i < 2 * N; i++) {
        (void)snprintf(smiles, sizeof smiles, "C%d", i % N);
        if (st_structure_find(structures, smiles, &found, &p, own, NULL) != PL_OK ||
            (found && (p.mol.n_atoms != 2 || p.cpu_s != i % N)))
            wrong++;
        pl_arena_reset(own);
    }
    pl_arena_free(own);
    return (void *)wrong; // NOLINT: a number
}

static void any_thread_may_look_while_units_are_committed(void **state)
{
    st_structures s;
    pthread_t thread[3];
    char smiles[32];
    ch_prepared p;

    (void)state;
    open_with(&s, "{}", 200, 1, N);
    for (int k = 0; k < 3; k++)
        assert_int_equal(pthread_create(&thread[k], NULL, find_all, &s), 0);
    for (int i = 0; i < N; i++) {
        if (i % 10 == 0)
            assert_int_equal(pl_db_begin(store->features, NULL), PL_OK);
        (void)snprintf(smiles, sizeof smiles, "C%d", i);
        keep(&s, smiles, CH_OK, 0, i);
        if (i % 10 == 9)
            assert_int_equal(pl_db_commit(store->features, NULL), PL_OK);
    }
    for (int k = 0; k < 3; k++) {
        void *wrong;
        assert_int_equal(pthread_join(thread[k], &wrong), 0);
        assert_null(wrong);
    }
    for (int i = 0; i < N; i++) {
        (void)snprintf(smiles, sizeof smiles, "C%d", i);
        assert_true(has(&s, smiles, &p));
    }
}

static void tables_that_are_nowhere_are_told(void **state)
{
    ch_mmff tables;
    const ch_kernels *kernels = NULL;
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(st_native_tables(&tables, &kernels, "", mem, &err), PL_ECONFIG);
    assert_string_equal(err.text,
                        "the tables of MMFF94 (mmffbond.par), which come with Open Babel, were not found; set BABEL_DATADIR "
                        "to their folder, or prepare.conformers.builder to openbabel");
    assert_int_equal(st_native_tables(&tables, &kernels, dir, mem, &err), PL_ECONFIG); /* what the reader of the tables tells */
    assert_non_null(strstr(err.text, dir));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stored_structures_read_back_as_written, make, drop),
        cmocka_unit_test_setup_teardown(other_settings_are_other_structures, make, drop),
        cmocka_unit_test_setup_teardown(each_setting_of_a_structure_is_told_apart, make, drop),
        cmocka_unit_test_setup_teardown(failures_hold_for_the_budget_they_were_given, make, drop),
        cmocka_unit_test_setup_teardown(any_thread_may_look_while_units_are_committed, make, drop),
        cmocka_unit_test_setup_teardown(tables_that_are_nowhere_are_told, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
