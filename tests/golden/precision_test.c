/* SPDX-License-Identifier: Apache-2.0 */
/* The error of each precision of each operation: every stored network, against the
 * oracle in double. Prints, for the default network, the table of docs/decisions/0014-bf16.md. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden/golden.h"
#include "golden/model_file.h"

typedef struct result {
    float *y, *grad;
} result;

static result run(const model_file *f, const nn_engine_kind *kind, const nn_engine_conf *conf, pl_arena *mem)
{
    nn_batch b = model_batch(f, mem);
    result r = { PL_NEW(mem, float, f->n_graphs), PL_NEW(mem, float, f->model->n_floats) };
    float *w = model_floats(f->w, f->model->n_floats, mem), *dy = PL_NEW(mem, float, f->n_graphs);
    nn_engine *e;
    pl_error err = { 0 };

    for (int32_t i = 0; i < f->n_graphs; i++)
        dy[i] = i % 2 ? 0.75f : -1;
    if (kind->open(&e, f->model, conf, &err) != PL_OK || kind->set_params(e, w, &err) != PL_OK ||
        kind->forward(e, &b, true, r.y, &err) != PL_OK || kind->backward(e, &b, dy, r.grad, &err) != PL_OK)
        fail_msg("%s", err.text);
    kind->close(e);
    return r;
}

/* Root mean square of the difference, relative to that of the expected numbers. */
static double error_of(const float *got, const float *want, size_t n)
{
    double off = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        off += pow((double)got[i] - want[i], 2);
        all += pow(want[i], 2);
    }
    return sqrt(off / (all + 1e-30));
}

static const struct {
    const char *name;
    nn_precision radial, contract, linear;
    double y, grad; /* bounds */
} rows[] = {
    { "all fp32", 0, 0, 0, 5e-6, 1e-4 },
    { "radial bf16x3", NN_PREC_BF16X3, 0, 0, 1e-3, 1e-2 },
    { "radial bf16", NN_PREC_BF16, 0, 0, 0.5, 1.0 },
    { "linear bf16x3", 0, 0, NN_PREC_BF16X3, 1e-3, 1e-2 },
    { "linear bf16", 0, 0, NN_PREC_BF16, 0.5, 1.0 },
    { "all bf16x3", NN_PREC_BF16X3, NN_PREC_BF16X3, NN_PREC_BF16X3, 1e-3, 1e-2 },
    { "all bf16", NN_PREC_BF16, NN_PREC_BF16, NN_PREC_BF16, 0.5, 1.0 },
};

static void errors_check(const char *name, pl_arena *mem)
{
    model_file f;
    result want;

    model_file_open(&f, name, mem);
    want = run(&f, &nn_engine_ref, &(nn_engine_conf){ .threads = 1, .radial = NN_RADIAL_EXACT }, mem);
    print_message("%s\n", name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        nn_engine_conf conf = { .threads = 2,
                                .radial = NN_RADIAL_EXACT,
                                .width = 0.01,
                                .of_radial = rows[i].radial,
                                .of_contract = rows[i].contract,
                                .of_linear = rows[i].linear };
        result got = run(&f, &nn_engine_cpu, &conf, mem);
        double y = error_of(got.y, want.y, (size_t)f.n_graphs);
        double grad = error_of(got.grad, want.grad, f.model->n_floats);
        print_message("| %s | %.1e | %.1e |\n", rows[i].name, y, grad);
        if (!(y <= rows[i].y) || !(grad <= rows[i].grad))
            fail_msg("%s: errors %g of y, %g of the gradient", rows[i].name, y, grad);
    }
}

static void every_stored_network_has_the_error_of_each_format(void **state)
{
    pl_arena *list = pl_arena_new(1 << 16);
    (void)state;

    for (const char *const *name = golden_names("b4_", list); *name; name++) {
        pl_arena *mem = pl_arena_new(1 << 22);
        errors_check(*name, mem);
        pl_arena_free(mem);
    }
    pl_arena_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stored_network_has_the_error_of_each_format),
    };

    golden_folder();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
