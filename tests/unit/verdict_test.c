/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "stages/steps/errors/verdict.h"

/* The sentence, or "". */
static const char *says(bool classes, double model, double mean, double near)
{
    static char out[400];
    st_verdict v = st_verdict_of(classes, model);
    pl_text text = { 0 };

    st_verdict_compare(&v, "mean", mean);
    st_verdict_compare(&v, "neighbours", near);
    st_verdict_add(&text, &v, "test", "eV");
    (void)snprintf(out, sizeof out, "%s", text.len > 0 ? pl_text_str(&text) : "");
    pl_text_free(&text);
    return out;
}

static void a_model_worse_than_a_baseline_is_reported(void **state)
{
    (void)state;
    assert_string_equal(says(false, 0.5, 1.2, 0.4),
                        "On the test part the model is no better than a simple prediction (nearest neighbours "
                        "MAE 0.4 eV, the model 0.5 eV): do not screen with it.");
    assert_string_equal(says(true, 0.6, 0.5, 0.8),
                        "On the test part the model is no better than a simple prediction (nearest neighbours "
                        "ROC-AUC 0.8, the model 0.6): do not screen with it.");
    assert_true(strstr(says(false, 0.4, 0.4, NAN), "the mean MAE 0.4 eV") != NULL); /* equal is not better */
    assert_true(strstr(says(false, NAN, 1.2, 0.4), "do not screen") != NULL);       /* a missing number is never better */
    assert_true(strstr(says(true, NAN, 0.5, NAN), "do not screen") != NULL);
}

static void a_model_that_beats_the_baselines_needs_no_warning(void **state)
{
    (void)state;
    assert_string_equal(says(false, 0.3, 1.2, 0.4), "");
    assert_string_equal(says(true, 0.9, 0.5, 0.8), "");
    assert_string_equal(says(false, 0.3, NAN, NAN), "");
    assert_string_equal(says(true, NAN, NAN, NAN), "");
}

static void the_doubt_of_a_difference_falls_with_the_molecules(void **state)
{
    const double mae[2] = { 3, 4 }, rmse[2] = { 5, 5 }; /* deviations 4 and 3 */

    (void)state;
    assert_true(fabs(st_verdict_doubt(mae, rmse, 1) - 5) < 1e-12);
    assert_true(fabs(st_verdict_doubt(mae, rmse, 100) - 0.5) < 1e-12);
    assert_true(st_verdict_doubt(mae, mae, 100) == 0);
    assert_true(isnan(st_verdict_doubt(mae, rmse, 0)));
    assert_true(isnan(st_verdict_doubt(mae, (double[2]){ NAN, 5 }, 9)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_worse_than_a_baseline_is_reported),
        cmocka_unit_test(a_model_that_beats_the_baselines_needs_no_warning),
        cmocka_unit_test(the_doubt_of_a_difference_falls_with_the_molecules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
