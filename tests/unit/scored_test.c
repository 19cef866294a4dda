/* SPDX-License-Identifier: Apache-2.0 */
/* What a part of the stage `score` keeps of a unit: the same after it was read; damaged bytes are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stages/steps/score/score_parts.h"

enum { MOLECULES = 3, TARGETS = 2 };

static pl_arena *mem;

static int make(void **unused)
{
    (void)unused;
    return (mem = pl_arena_new(1 << 16)) == NULL;
}

static int drop(void **unused)
{
    (void)unused;
    pl_arena_free(mem);
    return 0;
}

/* Five models: two share the domain of the first, one has none, one has its own. */
static st_scorer *scorer(void)
{
    st_scorer *s = PL_NEW(mem, st_scorer, 1);
    static const int domain[] = { 0, 0, -1, 3, 0 };

    assert_non_null(s);
    s->n_models = 5;
    s->n_targets = TARGETS;
    s->has_range = true;
    for (int k = 0; k < 5; k++)
        s->model[k].domain = domain[k];
    return s;
}

static st_scored unit(const st_scorer *s)
{
    static int64_t id[] = { 7, 9, 1LL << 40 };
    static st_outcome outcome[MOLECULES * TARGETS];
    static nn_near near[2][MOLECULES] = { { { 0.5, "ABC" }, { NAN, NULL }, { 1, "" } },
                                          { { 0.25, "D" }, { 0, "EF" }, { NAN, NULL } } };
    static nn_traits traits[MOLECULES];
    st_scored u = { .n = MOLECULES, .id = id, .outcome = outcome, .traits = traits, .radial_error = 1e-7 };

    for (int i = 0; i < MOLECULES * TARGETS; i++)
        outcome[i] = (st_outcome){ i + 0.5, i == 2 ? NAN : 0.1 * i, 0.01 * i, i == 4 ? 17 : 0 };
    for (int i = 0; i < MOLECULES; i++) {
        memset(&traits[i], 0, sizeof traits[i]);
        traits[i].number[0] = 3 + i;
        traits[i].ring_sizes = 1U << i;
        traits[i].n_kinds = i == 1 ? NN_KINDS_MAX + 1 : i;
        for (int k = 0; k < traits[i].n_kinds; k++)
            traits[i].kind[k] = (nn_kind){ (uint8_t)(6 + k), (int8_t)(i - 1), k == 1 };
    }
    for (int k = 0; k < s->n_models; k++)
        u.near[k] = k == 2 ? NULL : near[k == 3];
    return u;
}

static void same_near(const nn_near *a, const nn_near *b)
{
    for (int i = 0; i < MOLECULES; i++) {
        assert_memory_equal(&a[i].alike, &b[i].alike, sizeof a->alike);
        assert_int_equal(a[i].key == NULL, b[i].key == NULL);
        if (a[i].key != NULL)
            assert_string_equal(a[i].key, b[i].key);
    }
}

static void a_unit_is_the_same_after_it_was_kept(void **unused)
{
    const st_scorer *s = scorer();
    const st_scored u = unit(s);
    pl_text bytes = { 0 };
    st_scored got;

    (void)unused;
    st_score_bytes_put(&bytes, s, &u);
    assert_true(st_score_bytes_get(&got, s, (pl_bytes){ pl_text_str(&bytes), bytes.len }, mem));
    assert_int_equal(got.n, u.n);
    assert_true(got.radial_error == u.radial_error);
    assert_memory_equal(got.id, u.id, MOLECULES * sizeof *u.id);
    for (int i = 0; i < MOLECULES * TARGETS; i++) {
        assert_memory_equal(&got.outcome[i], &u.outcome[i], offsetof(st_outcome, unknown));
        assert_int_equal(got.outcome[i].unknown, u.outcome[i].unknown);
    }
    for (int k = 0; k < 5; k++) {
        if (k == 2)
            assert_null(got.near[k]);
        else
            same_near(got.near[k], u.near[k]);
    }
    assert_true(got.near[1] == got.near[0] && got.near[4] == got.near[0] && got.near[3] != got.near[0]);
    for (int i = 0; i < MOLECULES; i++)
        assert_memory_equal(&got.traits[i], &u.traits[i],
                            offsetof(nn_traits, kind) + (size_t)u.traits[i].n_kinds * sizeof(nn_kind));
    pl_text_free(&bytes);
}

static void bytes_that_are_cut_or_of_another_scorer_are_refused(void **unused)
{
    st_scorer *s = scorer();
    const st_scored u = unit(s);
    pl_text bytes = { 0 };
    st_scored got;
    char *copy;

    (void)unused;
    st_score_bytes_put(&bytes, s, &u);
    copy = pl_arena_get(mem, bytes.len + 1, 1);
    assert_non_null(copy);
    for (size_t n = 0; n < bytes.len; n++) { /* in memory of its own, so that a sanitizer sees what is read behind it */
        char *part = malloc(n > 0 ? n : 1);
        assert_non_null(part);
        memcpy(part, pl_text_str(&bytes), n);
        assert_false(st_score_bytes_get(&got, s, (pl_bytes){ part, n }, mem));
        free(part);
    }
    memcpy(copy, pl_text_str(&bytes), bytes.len);
    copy[bytes.len] = 0;
    assert_false(st_score_bytes_get(&got, s, (pl_bytes){ copy, bytes.len + 1 }, mem));
    for (int32_t n = -1; n <= 1; n += 2) { /* of the molecules, and of a model's kinds of atoms */
        const int32_t wrong = n < 0 ? -1 : INT32_MAX;
        memcpy(copy, &wrong, sizeof wrong);
        assert_false(st_score_bytes_get(&got, s, (pl_bytes){ copy, bytes.len }, mem));
        memcpy(copy, &u.n, sizeof u.n);
        memcpy(copy + bytes.len - offsetof(nn_traits, kind) - 2 * sizeof(nn_kind) - sizeof wrong, &wrong, sizeof wrong);
        assert_false(st_score_bytes_get(&got, s, (pl_bytes){ copy, bytes.len }, mem));
        memcpy(copy, pl_text_str(&bytes), bytes.len);
    }
    s->has_range = false;
    assert_false(st_score_bytes_get(&got, s, (pl_bytes){ copy, bytes.len }, mem));
    pl_text_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_unit_is_the_same_after_it_was_kept, make, drop),
        cmocka_unit_test_setup_teardown(bytes_that_are_cut_or_of_another_scorer_are_refused, make, drop),
    };

    return cmocka_run_group_tests_name("scored", tests, NULL, NULL);
}
