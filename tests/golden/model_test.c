/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/golden.h"
#include "golden/model_file.h"
#include "models/adam.h"
#include "models/ref/ref.h"
#include "pipeline/base/rng.h"

/* Largest difference relative to the largest entry. */
static double distance(const double *a, const double *b, size_t n)
{
    double off = 0.0, scale = 0.0;

    for (size_t k = 0; k < n; k++) {
        off = fmax(off, fabs(a[k] - b[k]));
        scale = fmax(scale, fabs(b[k]));
    }
    return scale > 0 ? off / scale : 0.0;
}

#define nn_ref_adamw nn_adamw_step_double
#define nn_reff_adamw nn_adamw_step

#define real double
#define REF(x) nn_ref_##x
#include "golden/model_case.inc"
#undef real
#undef REF

#define real float
#define REF(x) nn_reff_##x
#include "golden/model_case.inc"
#undef real
#undef REF

enum { BLOCK = 1 << 22 };

static void forward_and_gradients_in_double(const char *name, double rel, double rel_rounded)
{
    pl_arena *mem = pl_arena_new(BLOCK);
    model_file f;
    nn_ref_model_case c;

    model_file_open(&f, name, mem);
    nn_ref_open_case(&c, &f, mem);
    nn_ref_check_forward(&c, rel, rel_rounded);
    nn_ref_check_gradients(&c, rel, rel_rounded);
    pl_arena_free(mem);
}

static void forward_and_gradients_in_float(const char *name)
{
    pl_arena *mem = pl_arena_new(BLOCK);
    model_file f;
    nn_reff_model_case c;

    model_file_open(&f, name, mem);
    nn_reff_open_case(&c, &f, mem);
    nn_reff_check_forward(&c, 5e-6, 5e-5); /* layers: normed nearly-zero vectors are noisy */
    nn_reff_check_gradients(&c, 2e-4, 2e-4);
    pl_arena_free(mem);
}

static void small_model_on_complete_graphs_agrees_in_double(void **state)
{
    (void)state;
    forward_and_gradients_in_double("b4_tiny_full", 1e-9, 1e-9);
}

static void small_model_on_bonds_agrees_in_double(void **state)
{
    (void)state;
    forward_and_gradients_in_double("b4_tiny_full_bonds", 1e-9, 1e-9);
}

static void small_model_on_complete_graphs_agrees_in_float(void **state)
{
    (void)state;
    forward_and_gradients_in_float("b4_tiny_full");
}

static void small_model_on_bonds_agrees_in_float(void **state)
{
    (void)state;
    forward_and_gradients_in_float("b4_tiny_full_bonds");
}

static void small_model_trains_like_the_reference(void **state)
{
    static const char *const names[] = { "b4_tiny_full", "b4_tiny_full_bonds" };
    (void)state;

    for (int k = 0; k < 2; k++) {
        pl_arena *mem = pl_arena_new(BLOCK);
        model_file f;
        model_file_open(&f, names[k], mem);
        nn_ref_check_training(&f, "adamw_losses", 0.1, 0.002, 1e-9);
        nn_ref_check_training(&f, "adam_losses", 0.0, 0.001, 1e-9);
        nn_ref_check_training(&f, "adamslow_losses", 0.0, 0.00002, 1e-9);
        nn_reff_check_training(&f, "adamw_losses", 0.1, 0.002, 5e-5);
        nn_reff_check_training(&f, "adam_losses", 0.0, 0.001, 5e-5);
        nn_reff_check_training(&f, "adamslow_losses", 0.0, 0.00002, 1e-5);
        pl_arena_free(mem);
    }
}

/* The double form of the check in one pass, where it is cheap. */
static void stored_gradient_is_one_pass(void **state)
{
    pl_arena *mem = pl_arena_new(BLOCK);
    model_file f;
    nn_ref_model_case c;
    (void)state;

    model_file_open(&f, "b4_tiny_full_bonds", mem);
    nn_ref_open_case(&c, &f, mem);
    nn_ref_check_forward(&c, 1e-9, 1e-9);
    nn_ref_check_stored_gradient(&c, 1e-9);
    pl_arena_free(mem);
}

static void default_model_agrees_in_double(void **state)
{
    (void)state;
    forward_and_gradients_in_double("b4_default_full", 1e-9, 1e-6);
}

static void default_model_agrees_in_float(void **state)
{
    pl_arena *mem = pl_arena_new(BLOCK);
    model_file f;
    nn_reff_model_case c;
    (void)state;

    model_file_open(&f, "b4_default_full", mem);
    nn_reff_open_case(&c, &f, mem);
    nn_reff_check_forward(&c, 5e-6, 5e-5);
    nn_reff_check_stored_gradient(&c, 2e-4);
    pl_arena_free(mem);
}

static void default_model_trains_like_the_reference(void **state)
{
    pl_arena *mem = pl_arena_new(BLOCK);
    model_file f;
    (void)state;

    model_file_open(&f, "b4_default_full", mem);
    nn_reff_check_training(&f, "adamslow_losses", 0.0, 0.00002, 2e-5);
    pl_arena_free(mem);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest small[] = {
        cmocka_unit_test(small_model_on_complete_graphs_agrees_in_double),
        cmocka_unit_test(small_model_on_bonds_agrees_in_double),
        cmocka_unit_test(small_model_on_complete_graphs_agrees_in_float),
        cmocka_unit_test(small_model_on_bonds_agrees_in_float),
        cmocka_unit_test(stored_gradient_is_one_pass),
        cmocka_unit_test(small_model_trains_like_the_reference),
    };
    const struct CMUnitTest large[] = {
        cmocka_unit_test(default_model_agrees_in_double),
        cmocka_unit_test(default_model_agrees_in_float),
        cmocka_unit_test(default_model_trains_like_the_reference),
    };

    golden_folder();
    return argc > 1 && !strcmp(argv[1], "large") ? cmocka_run_group_tests(large, NULL, NULL)
                                                 : cmocka_run_group_tests(small, NULL, NULL);
}
