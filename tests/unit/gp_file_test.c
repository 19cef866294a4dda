/* SPDX-License-Identifier: Apache-2.0 */
/* Files of Gaussian processes, made by hand: what they hold, and which of their tensors and settings do not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/family/family.h"
#include "models/family/gp_parts.h"
#include "pipeline/base/text.h"

enum { T_ALPHA, T_IDS, T_SIZES, T_COLUMNS, T_SUBSET, T_NUMBERS, T_FACTOR, T_WHICH, T_COUNTS, FILE_TENSORS };

/* Three molecules: one of two environments, one of none, one of one; a descriptor and a column of the table. */
typedef struct gp_file {
    double alpha[3];
    int32_t ids[2], sizes[3], columns[2], subset[2];
    float number[3][2], factor[3];
    uint8_t which[3][3], count[3];
    const char *json;
    nn_tensor t[FILE_TENSORS];
} gp_file;

#define SETTINGS(descriptors)                                                                                                          \
    "{\"classifies\":false,\"w\":0.5,\"length\":1.5,\"noise\":0.125,\"signal\":3,\"mean\":10,\"scale\":2,\"descriptors\":" descriptors \
    "}"

static const gp_file good = { .alpha = { 1, -2, 3 },
                              .ids = { 7, 9 },
                              .sizes = { 2, 0, 1 },
                              .columns = { 3, 1 },
                              .subset = { 0, 2 },
                              .number = { { 0.5F, NAN }, { 1, 2 }, { 3, 4 } },
                              .factor = { 0.5F, -0.25F, 2 },
                              .which = { { 0 }, { 1 }, { 1 } },
                              .count = { 1, 255, 2 },
                              .json = SETTINGS("1") };
static const char *const tensor_names[] = { "p.alpha",  "p.environment", "p.environments", "p.column", "p.subset",
                                            "p.number", "p.factor",      "p.which",        "p.count" };
static const nn_dtype tensor_types[] = { NN_F64, NN_I32, NN_I32, NN_I32, NN_I32, NN_F32, NN_F32, NN_U8, NN_U8 };
static const int64_t tensor_dims[][2] = { { 3 }, { 2 }, { 3 }, { 2 }, { 2 }, { 3, 2 }, { 3 }, { 3, 3 }, { 3 } };

static void file_make(gp_file *f)
{
    *f = good;
    void *const data[] = { f->alpha, f->ids, f->sizes, f->columns, f->subset, f->number, f->factor, f->which, f->count };
    for (int k = 0; k < FILE_TENSORS; k++)
        f->t[k] = (nn_tensor){ .name = tensor_names[k],
                               .dtype = tensor_types[k],
                               .n_dims = tensor_dims[k][1] > 0 ? 2 : 1,
                               .dims = { tensor_dims[k][0], tensor_dims[k][1] },
                               .count = (size_t)(tensor_dims[k][0] * (tensor_dims[k][1] > 0 ? tensor_dims[k][1] : 1)),
                               .data = data[k] };
}

static pl_code opened(nn_member **m, const gp_file *f, pl_arena *mem, pl_error *err)
{
    return nn_gp.open(m, "p", &(nn_tensors){ .n = FILE_TENSORS, .t = f->t }, f->json, mem, err);
}

static void files_hold_what_was_learned(void **unused)
{
    static const int32_t first[] = { 0, 2, 2, 3 }, which[] = { 0, 1, 1 };
    pl_arena *mem = pl_arena_new(0);
    gp_file f;
    nn_member *m;
    nn_tensor *t;
    const char *json;
    int n;

    (void)unused;
    file_make(&f);
    assert_int_equal(opened(&m, &f, mem, NULL), PL_OK);
    assert_true(m->g.s.n == 3 && m->g.s.n_ids == 2 && m->m == 2 && m->g.d == 2);
    assert_true(m->g.s.numbers.n_environments == 0 && m->g.s.numbers.n_features == 1 && m->g.s.numbers.n_others == 1);
    assert_memory_equal(m->g.s.first, first, sizeof first);
    assert_memory_equal(m->g.s.which, which, sizeof which);
    assert_true(m->k.w == 0.5 && m->k.length == 1.5 && m->k.noise == 0.125 && m->k.signal == 3 && m->mean == 10 && m->scale == 2);
    assert_false(m->classifies);
    assert_int_equal(nn_gp.save(m, "p", &t, &n, &json, mem, NULL), PL_OK);
    assert_int_equal(n, FILE_TENSORS);
    assert_string_equal(json, f.json);
    for (int k = 0; k < n; k++) {
        assert_string_equal(t[k].name, tensor_names[k]);
        assert_true(t[k].dtype == tensor_types[k] && t[k].n_dims == f.t[k].n_dims && t[k].count == f.t[k].count);
        assert_true(t[k].dims[0] == tensor_dims[k][0] && t[k].dims[1] == tensor_dims[k][1]);
        assert_memory_equal(t[k].data, f.t[k].data, f.t[k].count * nn_dtype_bytes(f.t[k].dtype));
    }
    pl_arena_free(mem);
}

/* Whole again afterwards. */
static void refused(gp_file *f, const char *want, pl_arena *mem)
{
    nn_member *m;
    pl_error err = { 0 };

    if (opened(&m, f, mem, &err) != PL_EDATA || strcmp(err.text, want) != 0)
        fail_msg("\"%s\", not \"%s\"", err.text, want);
    file_make(f);
}

static void misfit(gp_file *f, int k, pl_arena *mem)
{
    refused(f, pl_sprintf(mem, "tensor %s does not fit the others", tensor_names[k]), mem);
}

static void taken(gp_file *f, pl_arena *mem)
{
    nn_member *m;
    pl_error err = { 0 };

    if (opened(&m, f, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    file_make(f);
}

static void tensors_of_another_size_are_named(void **unused)
{
    /* A tensor that is shorter by one, and the one that does not fit then. */
    static const int named[FILE_TENSORS] = {
        T_ALPHA, T_WHICH, T_ALPHA, T_NUMBERS, T_FACTOR, T_NUMBERS, T_FACTOR, T_WHICH, T_WHICH
    };
    pl_arena *mem = pl_arena_new(0);
    gp_file f;

    (void)unused;
    file_make(&f);
    for (int k = 0; k < FILE_TENSORS; k++) {
        const char *want = pl_sprintf(mem, "tensor %s is missing or of another type", tensor_names[k]);
        f.t[k].name = "q";
        refused(&f, want, mem);
        f.t[k].dtype = NN_BF16;
        refused(&f, want, mem);
        f.t[k].count--;
        misfit(&f, named[k], mem);
    }
    f.t[T_ALPHA].count = f.t[T_SIZES].count = 0;
    misfit(&f, T_ALPHA, mem);
    f.t[T_IDS].count = (1 << 24) + 1;
    misfit(&f, T_IDS, mem);
    pl_arena_free(mem);
}

static void environments_that_do_not_fit_are_named(void **unused)
{
    static const int32_t sizes[][3] = { { -1, 3, 1 }, { 4, -1, 0 }, { 2, 0, 2 }, { 2, 0, 0 }, { 0, 0, 0 } };
    static const uint8_t which[][2] = { { 1, 0 }, { 1, 1 }, { 0, 2 }, { 2, 1 } };
    pl_arena *mem = pl_arena_new(0);
    gp_file f;

    (void)unused;
    file_make(&f);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memcpy(f.sizes, sizes[i], sizeof f.sizes);
        misfit(&f, T_SIZES, mem);
    }
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        f.which[0][0] = which[i][0];
        f.which[1][0] = which[i][1];
        misfit(&f, T_WHICH, mem);
    }
    for (int k = 0; k < 9; k++)
        if (k % 3 > 0) { /* of the two higher bytes */
            f.which[k / 3][k % 3] = 1;
            misfit(&f, T_WHICH, mem);
        }
    for (int k = 0; k < 3; k++) {
        f.count[k] = 0;
        misfit(&f, T_COUNTS, mem);
    }
    f.ids[1] = 7;
    refused(&f, "its columns are not in ascending order", mem);
    pl_arena_free(mem);
}

static void numbers_that_do_not_fit_are_named(void **unused)
{
    static const float odd[] = { INFINITY, -INFINITY, NAN };
    pl_arena *mem = pl_arena_new(0);
    gp_file f;

    (void)unused;
    file_make(&f);
    f.json = SETTINGS("-1");
    misfit(&f, T_COLUMNS, mem);
    f.json = SETTINGS("3");
    misfit(&f, T_COLUMNS, mem);
    f.json = SETTINGS("2");
    refused(&f, "its columns are not in ascending order", mem);
    for (int k = 0; k <= 2; k += 2) { /* none or all are descriptors */
        f.json = k == 0 ? SETTINGS("0") : SETTINGS("2");
        f.columns[0] = 0;
        taken(&f, mem);
    }
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < 3; i++) {
            f.number[k / 2][k % 2] = odd[i];
            if (i < 2)
                misfit(&f, T_NUMBERS, mem);
            else
                taken(&f, mem);
        }
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++) {
            f.alpha[k] = (double)odd[i];
            misfit(&f, T_ALPHA, mem);
        }
    pl_arena_free(mem);
}

static void subsets_and_factors_that_do_not_fit_are_named(void **unused)
{
    static const int32_t subsets[][2] = { { -1, 2 }, { 2, 2 }, { 2, 1 }, { 0, 3 }, { 3, 4 } };
    static const float odd[] = { INFINITY, -INFINITY, NAN, 0, -1 };
    pl_arena *mem = pl_arena_new(0);
    gp_file f;

    (void)unused;
    file_make(&f);
    for (size_t i = 0; i < sizeof subsets / sizeof *subsets; i++) {
        memcpy(f.subset, subsets[i], sizeof f.subset);
        misfit(&f, T_SUBSET, mem);
    }
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 5; i++) { /* beside the diagonal any number will do */
            f.factor[k] = odd[i];
            if (k != 1 || i < 3)
                misfit(&f, T_FACTOR, mem);
            else
                taken(&f, mem);
        }
    pl_arena_free(mem);
}

static void settings_are_within_their_limits(void **unused)
{
    static const struct {
        const char *key, *value;
        bool good;
    } cases[] = {
        { "w", "0", true },         { "w", "1", true },         { "w", "-1e-9", false },      { "w", "1.000001", false },
        { "length", "1e-6", true }, { "length", "1e6", true },  { "length", "9e-7", false },  { "length", "1.1e6", false },
        { "noise", "1e-9", true },  { "noise", "1e9", true },   { "noise", "9e-10", false },  { "noise", "1.1e9", false },
        { "signal", "0", true },    { "signal", "1e30", true }, { "signal", "-1e-9", false }, { "signal", "1.1e30", false },
        { "scale", "0", true },     { "scale", "1e300", true }, { "scale", "-1e-9", false },  { "mean", "-1e300", true },
        { "mean", "1e300", true },  { "mean", "\"1\"", false }, { "w", "null", false },
    };
    static const char *const none[] = { "", "[]", "{", SETTINGS("1,\"w\":0.5") /* twice */ };
    pl_arena *mem = pl_arena_new(0);
    gp_file f;

    (void)unused;
    file_make(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *key = pl_sprintf(mem, "\"%s\":", cases[i].key), *at = strstr(good.json, key);
        assert_non_null(at);
        f.json = pl_sprintf(mem, "%.*s%s%s%s", (int)(at - good.json), good.json, key, cases[i].value, strchr(at, ','));
        if (cases[i].good)
            taken(&f, mem);
        else
            refused(&f, pl_sprintf(mem, "setting %s is not a number that it can be", cases[i].key), mem);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        f.json = none[i];
        refused(&f, "the settings of p are no JSON object", mem);
    }
    pl_arena_free(mem);
}

/* As many molecules as there may be, and as many of them in the subset; environments whose places take three bytes. */
static void the_largest_process_is_taken(void **unused)
{
    enum { IDS_MANY = 70000, M = NN_GP_SUBSET };
    pl_arena *mem = pl_arena_new(0);
    uint32_t *ids = PL_NEW(mem, uint32_t, IDS_MANY);
    int32_t *sizes = PL_NEW(mem, int32_t, NN_GP_MAX + 1), *subset = PL_NEW(mem, int32_t, M + 1);
    double *alpha = PL_NEW(mem, double, NN_GP_MAX + 1);
    float *factor = PL_NEW(mem, float, (M + 1) * (M + 2) / 2), *to = factor;
    static const uint8_t which[] = { 3, 2, 1 }, count = 4;
    nn_member *m;
    pl_error err = { 0 };
    gp_file f;

    (void)unused;
    file_make(&f);
    for (uint32_t k = 0; k < IDS_MANY; k++)
        ids[k] = k;
    sizes[1] = 1;
    for (int i = 0; i <= M; i++, to += i) {
        subset[i] = i;
        to[i] = 1;
    }
    const void *data[] = { alpha, ids, sizes, NULL, subset, "", factor, which, &count };
    const size_t counts[] = { NN_GP_MAX, IDS_MANY, NN_GP_MAX, 0, M, 0, M * (M + 1) / 2, 3, 1 };
    for (int k = 0; k < FILE_TENSORS; k++) {
        f.t[k].data = data[k] != NULL ? data[k] : "";
        f.t[k].count = counts[k];
    }
    f.json = SETTINGS("0");
    assert_int_equal(opened(&m, &f, mem, NULL), PL_OK);
    assert_true(m->g.s.n == NN_GP_MAX && m->m == M && m->g.s.which[0] == 0x010203 && m->g.s.first[1] == 0 && m->g.s.first[2] == 1);
    f.t[T_SUBSET].count++;
    f.t[T_FACTOR].count += M + 1;
    assert_int_equal(opened(&m, &f, mem, &err), PL_EDATA);
    assert_string_equal(err.text, "tensor p.subset does not fit the others");
    f.t[T_SUBSET].count--;
    f.t[T_FACTOR].count -= M + 1;
    f.t[T_ALPHA].count++;
    f.t[T_SIZES].count++;
    misfit(&f, T_ALPHA, mem);
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_hold_what_was_learned),
        cmocka_unit_test(tensors_of_another_size_are_named),
        cmocka_unit_test(environments_that_do_not_fit_are_named),
        cmocka_unit_test(numbers_that_do_not_fit_are_named),
        cmocka_unit_test(subsets_and_factors_that_do_not_fit_are_named),
        cmocka_unit_test(settings_are_within_their_limits),
        cmocka_unit_test(the_largest_process_is_taken),
    };

    return cmocka_run_group_tests_name("gp_file", tests, NULL, NULL);
}
