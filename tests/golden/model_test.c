/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/appendix.h"
#include "golden/golden.h"
#include "models/optim/adam.h"
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

/* Numbers that were rounded to float when they were stored. */
static bool rounded(const model_file *f)
{
    const nn_tensor *t = nn_tensors_find(f->file, "64.layer.0.0");

    return t != NULL && t->dtype == NN_F32;
}

static void agrees_in_double(const model_file *f, pl_arena *mem)
{
    nn_ref_model_case c;
    double of_rounded = rounded(f) ? 1e-6 : 1e-9;

    nn_ref_open_case(&c, f, mem);
    nn_ref_check_forward(&c, 1e-9, of_rounded);
    nn_ref_check_gradients(&c, 1e-9, of_rounded);
}

static void agrees_in_float(const model_file *f, pl_arena *mem)
{
    nn_reff_model_case c;

    nn_reff_open_case(&c, f, mem);
    nn_reff_check_forward(&c, 5e-6, 5e-5); /* layers: normalising vectors near zero amplifies noise */
    if (f->model->n_floats < MODEL_LARGE)
        nn_reff_check_gradients(&c, 2e-4, 2e-4);
    else
        nn_reff_check_stored_gradient(&c, 2e-4);
}

/* A large network is trained in float only and with small steps: at larger learning rates its losses jump. */
static void trains_like_the_reference(const model_file *f, pl_arena *mem)
{
    (void)mem;
    if (f->model->n_floats < MODEL_LARGE) {
        nn_ref_check_training(f, "adamw_losses", 0.1, 0.002, 1e-9);
        nn_ref_check_training(f, "adam_losses", 0.0, 0.001, 1e-9);
        nn_ref_check_training(f, "adamslow_losses", 0.0, 0.00002, 1e-9);
        nn_reff_check_training(f, "adamw_losses", 0.1, 0.002, 5e-5);
        nn_reff_check_training(f, "adam_losses", 0.0, 0.001, 5e-5);
    }
    nn_reff_check_training(f, "adamslow_losses", 0.0, 0.00002, f->model->n_floats < MODEL_LARGE ? 1e-5 : 2e-5);
}

/* The check in double, in one pass, for small networks. */
static void stored_gradient_in_one_pass(const model_file *f, pl_arena *mem)
{
    nn_ref_model_case c;

    nn_ref_open_case(&c, f, mem);
    nn_ref_check_forward(&c, 1e-9, rounded(f) ? 1e-6 : 1e-9);
    nn_ref_check_stored_gradient(&c, rounded(f) ? 1e-6 : 1e-9);
}

/* `check` for every stored network; large: those above MODEL_LARGE, else the others. */
static void each(void (*check)(const model_file *f, pl_arena *mem), bool large)
{
    pl_arena *list = pl_arena_new(1 << 16);

    for (const char *const *name = golden_names("b4_", list); *name; name++) {
        pl_arena *mem = pl_arena_new(BLOCK);
        model_file f;
        model_file_open(&f, *name, mem);
        if ((f.model->n_floats >= MODEL_LARGE) == large) {
            print_message("%s\n", *name);
            check(&f, mem);
        }
        pl_arena_free(mem);
    }
    pl_arena_free(list);
}

static void every_small_network_agrees_in_double(void **s) { (void)s, each(agrees_in_double, false); }
static void every_small_network_agrees_in_float(void **s) { (void)s, each(agrees_in_float, false); }
static void every_small_network_trains_like_the_reference(void **s) { (void)s, each(trains_like_the_reference, false); }
static void stored_gradients_are_one_pass(void **s) { (void)s, each(stored_gradient_in_one_pass, false); }
static void every_large_network_agrees_in_double(void **s) { (void)s, each(agrees_in_double, true); }
static void every_large_network_agrees_in_float(void **s) { (void)s, each(agrees_in_float, true); }
static void every_large_network_trains_like_the_reference(void **s) { (void)s, each(trains_like_the_reference, true); }

static void the_network_of_the_specification_agrees_in_float(void **s)
{
    (void)s;

    for (int level = NN_FUSE_NONE; level <= NN_FUSE_FULL; level++) {
        pl_arena *mem = pl_arena_new(BLOCK);
        model_file f;
        nn_reff_model_case c;
        appendix_open(&f, (nn_fusion)level, mem);
        nn_reff_open_case(&c, &f, mem);
        (void)nn_reff_case_loss(&c);
        for (int g = 0; g < APPENDIX_GRAPHS; g++) {
            double y = (double)c.run->y[g];
            golden_check("y", &y, &appendix_outputs[level][g], 1, 5e-5); /* rounding its weights alone moves y by 7e-6 */
        }
        pl_arena_free(mem);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest small[] = {
        cmocka_unit_test(every_small_network_agrees_in_double),
        cmocka_unit_test(every_small_network_agrees_in_float),
        cmocka_unit_test(stored_gradients_are_one_pass),
        cmocka_unit_test(every_small_network_trains_like_the_reference),
    };
    const struct CMUnitTest large[] = {
        cmocka_unit_test(the_network_of_the_specification_agrees_in_float),
        cmocka_unit_test(every_large_network_agrees_in_double),
        cmocka_unit_test(every_large_network_agrees_in_float),
        cmocka_unit_test(every_large_network_trains_like_the_reference),
    };

    golden_folder();
    return argc > 1 && !strcmp(argv[1], "large") ? cmocka_run_group_tests(large, NULL, NULL)
                                                 : cmocka_run_group_tests(small, NULL, NULL);
}
