/* SPDX-License-Identifier: Apache-2.0 */
/* The workflow that `molsieve fit` writes: which split it names, and which texts are its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/base/text.h"
#include "stages/fit/recipe.h"

static const st_fit_table table = { .path = "/t.csv", .format = "csv", .smiles = "smiles", .target = "y", .numbers = 120 };

static void written(pl_text *out, const char *split)
{
    const st_recipe_ask ask = { .model = "y", .family = "gp", .split = split, .seed = 1 };

    st_recipe_write(out, &table, &ask);
    assert_true(pl_text_ok(out));
}

static void a_split_names_its_method_and_its_variant(void **state)
{
    static const struct {
        const char *split, *method, *variant; /* variant: NULL is none */
    } rows[] = {
        { "random", "    method: random", NULL },
        { "scaffold", "    method: scaffold", NULL },
        { "balanced", "    method: scaffold", "    variant: balanced\n" },
        { "deterministic", "    method: scaffold", "    variant: deterministic\n" },
    };

    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        pl_text text = { 0 };
        written(&text, rows[k].split);
        assert_non_null(strstr(pl_text_str(&text), rows[k].method));
        if (rows[k].variant != NULL)
            assert_non_null(strstr(pl_text_str(&text), rows[k].variant));
        else
            assert_null(strstr(pl_text_str(&text), "variant:"));
        pl_text_free(&text);
    }
}

/* Of n numbers four in five are trained on. */
static void epochs_and_batches_are_those_of_the_size(void **state)
{
    static const struct {
        int64_t numbers;
        int batch, epochs;
    } rows[] = {
        { 1250, 32, 100 }, { 1252, 32, 60 },  { 3750, 32, 60 },  { 3752, 32, 40 },
        { 12500, 32, 40 }, { 12502, 64, 30 }, { 62500, 64, 30 }, { 62502, 128, 20 },
    };
    const st_recipe_ask ask = { .model = "y", .family = "se3", .split = "random", .seed = 1 };

    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        st_fit_table t = table;
        pl_text text = { 0 }, want = { 0 };
        t.numbers = rows[k].numbers;
        pl_text_addf(&want, "    batch: {molecules: %d}\n    epochs: %d\n", rows[k].batch, rows[k].epochs);
        st_recipe_write(&text, &t, &ask);
        assert_non_null(strstr(pl_text_str(&text), pl_text_str(&want)));
        assert_int_equal(st_recipe_epochs(&t), rows[k].epochs);
        pl_text_free(&text);
        pl_text_free(&want);
    }
}

/* A copy of n bytes, so that a sanitizer sees what is read beyond them. */
static bool is_own(const char *text, size_t n)
{
    char *copy = malloc(n + 1);
    bool yes;

    assert_non_null(copy);
    memcpy(copy, text, n);
    copy = realloc(copy, n > 0 ? n : 1);
    yes = st_recipe_is_own(copy, n);
    free(copy);
    return yes;
}

static void only_an_unchanged_text_is_its_own(void **state)
{
    pl_text text = { 0 };
    size_t end;

    (void)state;
    written(&text, "scaffold");
    assert_true(is_own(text.s, text.len));
    for (size_t n = 0; n < text.len; n++)
        assert_false(is_own(text.s, n));
    end = (size_t)(strchr(text.s, ')') - text.s); /* of the checksum; the end of its line says nothing */
    for (size_t at = 0; at < text.len; at += at < end + 40 ? 1 : 97) {
        if (at >= end && at < end + 3)
            continue;
        text.s[at] ^= 1;
        if (is_own(text.s, text.len))
            fail_msg("byte %zu was changed", at);
        text.s[at] ^= 1;
    }
    pl_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_names_its_method_and_its_variant),
        cmocka_unit_test(epochs_and_batches_are_those_of_the_size),
        cmocka_unit_test(only_an_unchanged_text_is_its_own),
    };

    return cmocka_run_group_tests_name("the workflow of fit", tests, NULL, NULL);
}
