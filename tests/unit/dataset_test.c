/* SPDX-License-Identifier: Apache-2.0 */
/* Which fields of a record are labels, and which molecules with them are kept to learn from. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stages/steps/dataset/classes.h"
#include "stages/steps/dataset/dataset.h"
#include "stages/steps/ingest/limits.h"

enum { MOLECULES_READ = 5, TARGETS = 2 };

static bool is_even(const st_dataset *d, int64_t i) { return d->mol_id[i] % 2 == 0; }

/* Numbers that tell of which molecule they are: id 1 to 5. */
static st_dataset dataset_made(pl_arena *mem, bool limits)
{
    enum { N = MOLECULES_READ };
    st_dataset d = { .n = N, .n_targets = TARGETS, .limits = limits, .mol_id = PL_NEW(mem, int64_t, N), .mem = mem };

    d.value = PL_NEW(mem, double, N *TARGETS);
    d.low = limits ? PL_NEW(mem, double, N *TARGETS) : NULL;
    d.high = limits ? PL_NEW(mem, double, N *TARGETS) : NULL;
    d.descriptor = pl_arena_get(mem, N, sizeof *d.descriptor);
    d.part = PL_NEW(mem, uint8_t, N);
    d.item = PL_NEW(mem, nn_item, N);
    d.other = pl_arena_get(mem, N, sizeof *d.other);
    for (int i = 0; i < N; i++) {
        d.mol_id[i] = i + 1;
        for (int k = 0; k < TARGETS; k++) {
            d.value[i * TARGETS + k] = 10 * (i + 1) + k;
            if (limits) {
                d.low[i * TARGETS + k] = d.value[i * TARGETS + k] - 0.5;
                d.high[i * TARGETS + k] = d.value[i * TARGETS + k] + 0.5;
            }
        }
        for (int k = 0; k < ST_DESCRIPTORS; k++)
            d.descriptor[i][k] = (i + 1) * 100 + k;
        d.part[i] = (uint8_t)(i + 1);
        d.item[i].noise = (float)(i + 1);
        d.other[i].n = i + 1;
    }
    return d;
}

static void molecules_that_are_kept_keep_what_is_theirs(void **state)
{
    (void)state;
    for (int limits = 0; limits < 2; limits++) {
        pl_arena *mem = pl_arena_new(0);
        st_dataset d = dataset_made(mem, limits == 1);
        st_dataset_keep(&d, is_even);
        assert_int_equal(d.n, 2);
        for (int i = 0; i < 2; i++) {
            const int id = 2 * (i + 1);
            assert_int_equal(d.mol_id[i], id);
            for (int k = 0; k < TARGETS; k++) {
                assert_true(d.value[i * TARGETS + k] == 10 * id + k);
                if (limits == 1)
                    assert_true(d.low[i * TARGETS + k] == 10 * id + k - 0.5 && d.high[i * TARGETS + k] == 10 * id + k + 0.5);
            }
            for (int k = 0; k < ST_DESCRIPTORS; k++)
                assert_true(d.descriptor[i][k] == id * 100 + k);
            assert_true(d.part[i] == id && d.item[i].noise == (float)id && d.other[i].n == id);
        }
        pl_arena_free(mem);
    }
}

static bool same_number(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* A class is 0 or 1; what is between them, as the mean of copies that contradict each other, is not learned. */
static void a_class_that_is_not_decided_is_not_measured(void **state)
{
    enum { KEPT = 3 };
    double value[] = { 1, 0.5, 0.25, 0.75, 0, 1, NAN, 1, NAN, NAN, 0.5 };
    static const double left[] = { 1, NAN, 0, 1, NAN, 1 };
    static const int64_t id[KEPT] = { 1, 3, 4 };
    pl_arena *mem = pl_arena_new(0);
    st_dataset d = dataset_made(mem, false);

    (void)state;
    d.value = value;
    st_dataset_decided(&d);
    assert_int_equal(d.n, KEPT);
    assert_memory_equal(d.mol_id, id, sizeof id);
    for (int i = 0; i < KEPT * TARGETS; i++)
        assert_true(same_number(value[i], left[i]));
    assert_true(value[MOLECULES_READ * TARGETS] == 0.5); /* it is of no molecule */
    pl_arena_free(mem);
}

/* ---- fields of a record ---- */

static void of_columns_of_one_name_the_first_is_the_label(void **state)
{
    static const ch_field row[] = { { "y", "1", 1, true }, { "y", "2", 2, true },   { "z", "", 0, false }, { "z", "3", 3, true },
                                    { "w", "4", 4, true }, { "y", ">5", 0, false }, { "z", "6", 6, true }, { "w", "7", 7, true } };
    static const st_field want[] = { { "y", 1 }, { "w", 4 } };
    pl_arena *mem = pl_arena_new(0);

    (void)state;
    for (int limits = 0; limits < 2; limits++) {
        st_record r = { 0 };
        assert_int_equal(st_label_fields(&r, row, sizeof row / sizeof *row, true, limits == 1, mem, NULL), PL_OK);
        assert_int_equal(r.n_fields, 2);
        for (int k = 0; k < 2; k++) {
            assert_string_equal(r.field[k].name, want[k].name);
            assert_true(r.field[k].value == want[k].value);
        }
    }
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(molecules_that_are_kept_keep_what_is_theirs),
        cmocka_unit_test(a_class_that_is_not_decided_is_not_measured),
        cmocka_unit_test(of_columns_of_one_name_the_first_is_the_label),
    };

    return cmocka_run_group_tests_name("dataset", tests, NULL, NULL);
}
