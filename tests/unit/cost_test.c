/* SPDX-License-Identifier: Apache-2.0 */
/* What a structure costs here: measured, kept, read again; a damaged or foreign file is not believed; the formula by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chem/common/protocol.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/ingest/cost.h"
#include "toy.h"

static const st_cost known = { { 20, 80 }, { 0.001, 0.002 }, { 0.001, 0.016 }, 0.5, true };

static int calls, refused = -1; /* the call that fails, from 0; -1: none */

pl_code __real_ch_worker_prepare_all(ch_worker *w, const ch_input *in, int32_t n, const ch_prepare_opts *opts,
                                     const ch_known *others, ch_prepared *out, pl_arena *mem, pl_error *err);
pl_code __wrap_ch_worker_prepare_all(ch_worker *w, const ch_input *in, int32_t n, const ch_prepare_opts *opts,
                                     const ch_known *others, ch_prepared *out, pl_arena *mem, pl_error *err);

pl_code __wrap_ch_worker_prepare_all(ch_worker *w, const ch_input *in, int32_t n, const ch_prepare_opts *opts,
                                     const ch_known *others, ch_prepared *out, pl_arena *mem, pl_error *err)
{
    if (calls++ == refused)
        return pl_fail(err, PL_ENOMEM, "a worker");
    return __real_ch_worker_prepare_all(w, in, n, opts, others, out, mem, err);
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * fabs(b)))
        fail_msg("%.17g, not %.17g", a, b);
}

static bool is_same(const st_cost *a, const st_cost *b)
{
    return memcmp(a->atoms, b->atoms, sizeof a->atoms) == 0 && memcmp(a->read, b->read, sizeof a->read) == 0 &&
           memcmp(a->build, b->build, sizeof a->build) == 0 && memcmp(&a->more, &b->more, sizeof a->more) == 0 &&
           a->measured == b->measured;
}

/* Reading grows as the root of the atoms, building as their square: 40 atoms are 0.001 sqrt 2 and 0.004. */
static void the_cost_grows_with_atoms_and_structures(void **state)
{
    (void)state;
    near(st_cost_seconds(&known, 20, 0), 0.001);
    near(st_cost_seconds(&known, 80, 0), 0.002);
    near(st_cost_seconds(&known, 40, 1), 0.001 * sqrt(2) + 0.004);
    near(st_cost_seconds(&known, 40, 5), 0.001 * sqrt(2) + 0.004 * (1 + 0.5 * 4));
    assert_true(isfinite(st_cost_seconds(&known, 0, 1)));
}

static void a_cost_is_read_as_it_was_written(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    const char *text = st_cost_text(&known, "a \"machine\"", mem);
    st_cost c = { 0 };

    (void)state;
    assert_non_null(text);
    assert_true(st_cost_read(&c, text, "a \"machine\""));
    assert_true(is_same(&c, &known));
    pl_arena_free(mem);
}

static void a_damaged_or_foreign_cost_is_not_believed(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[1]",
        "{\"machine\":\"m\",\"atoms\":[20,80],\"read\":[1,2],\"build\":[1,2]}",
        "{\"machine\":\"m\",\"atoms\":[20,80],\"read\":[1,-2],\"build\":[1,2],\"more\":1}",
        "{\"machine\":\"m\",\"atoms\":[20,20],\"read\":[1,2],\"build\":[1,2],\"more\":1}",
        "{\"machine\":\"m\",\"atoms\":[20,80],\"read\":[1,2],\"build\":[0,2],\"more\":1}",
        "{\"machine\":\"m\",\"atoms\":[20,80],\"read\":[1,2],\"build\":[1,2],\"more\":\"1\"}",
        "{\"machine\":\"other\",\"atoms\":[20,80],\"read\":[1,2],\"build\":[1,2],\"more\":1}",
    };
    st_cost c = known;

    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        if (st_cost_read(&c, bad[k], "m"))
            fail_msg("%s", bad[k]);
    assert_true(is_same(&c, &known));
    assert_true(st_cost_read(&c, "{\"machine\":\"m\",\"atoms\":[20,80],\"read\":[1,2],\"build\":[1,2],\"more\":1}", "m"));
}

/* With both variables, whose folders are below the current one, which has a cost that was kept. */
static st_cost with(const char *cache, const char *home, const st_prepare_conf *conf, pl_arena *mem)
{
    assert_int_equal(cache != NULL ? setenv("XDG_CACHE_HOME", cache, 1) : unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(home != NULL ? setenv("HOME", home, 1) : unsetenv("HOME"), 0);
    return st_cost_get(conf, mem);
}

/* A folder of the cache begins with /: what is kept is read again from HOME, and not from folders that lie elsewhere in another
 * current folder. */
static void a_cost_is_kept_in_a_whole_path(const char *folder, const st_cost *first, const st_prepare_conf *conf, pl_arena *mem)
{
    static const char *const homes[] = { NULL, "", "." };

    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir(".cache", 0755), 0);
    assert_int_equal(rename("molsieve", ".cache/molsieve"), 0);
    for (int k = 0; k < 3; k++) {
        const st_cost at_home = with(homes[k], folder, conf, mem), nowhere = with(homes[k], homes[k], conf, mem);
        assert_true(is_same(first, &at_home));
        assert_true(nowhere.measured && !is_same(first, &nowhere));
    }
    assert_int_not_equal(access("molsieve", F_OK), 0);
    assert_int_equal(chdir("/"), 0);
}

/* The second call reads the file of the first: the same to the last digit, where two measurements never are. */
static void a_cost_is_measured_once(void **state)
{
    char folder[256];
    pl_arena *mem = pl_arena_new(1 << 16);
    st_prepare_conf conf;

    (void)state;
    toy_directory(folder);
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    pl_fields_default(st_prepare_fields, &conf);
    const st_cost first = st_cost_get(&conf, mem), again = st_cost_get(&conf, mem);
    assert_true(first.measured && again.measured);
    assert_true(is_same(&first, &again));
    assert_true(first.atoms[0] > 20 && first.atoms[1] > 50);
    assert_true(first.build[1] > first.build[0] && first.build[1] < 10 && first.more > 0.1 && first.more < 10);
    a_cost_is_kept_in_a_whole_path(folder, &first, &conf, mem);
    conf.builder = CH_OPENBABEL;
    const st_cost other = st_cost_get(&conf, mem);
    assert_true(other.measured && other.build[1] > 2 * first.build[1]);
    toy_remove(folder);
    pl_arena_free(mem);
}

/* Whichever set of molecules cannot be prepared: nothing of the others is believed, nor kept for the next call. */
static void what_cannot_be_measured_has_the_usual_cost(void **state)
{
    enum { SETS = 6 }; /* of both sizes: read and built; one before them, and one with several structures */
    char folder[256];
    pl_arena *mem = pl_arena_new(1 << 16);
    st_prepare_conf conf;
    st_cost first = { 0 };

    (void)state;
    toy_directory(folder);
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    pl_fields_default(st_prepare_fields, &conf);
    for (refused = 0; refused < SETS; refused++) {
        calls = 0;
        const st_cost c = st_cost_get(&conf, mem);
        first = refused == 0 ? c : first;
        assert_int_equal(calls, refused + 1);
        assert_true(!c.measured && is_same(&c, &first));
        assert_true(c.atoms[0] > 20 && c.build[1] > c.build[0] && c.build[0] > 0);
    }
    calls = 0;
    assert_true(st_cost_get(&conf, mem).measured);
    assert_int_equal(calls, SETS);
    refused = -1;
    toy_remove(folder);
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cost_grows_with_atoms_and_structures),   cmocka_unit_test(a_cost_is_read_as_it_was_written),
        cmocka_unit_test(a_damaged_or_foreign_cost_is_not_believed),  cmocka_unit_test(a_cost_is_measured_once),
        cmocka_unit_test(what_cannot_be_measured_has_the_usual_cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
