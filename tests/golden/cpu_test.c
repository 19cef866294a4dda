/* SPDX-License-Identifier: Apache-2.0 */
/* Stored outputs and gradients of whole models, computed by the engine that the
 * argument names: cpu (the default) or cuda. */
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
#include "models/engine.h"
#include "pipeline/base/rng.h"

static const nn_engine_kind *kind = &nn_engine_cpu;

/* y, and the stored gradient: of 2 mean |y - target| + sum(y) (model_case.inc says why). */
static void engine_run(const model_file *f, double *y, double *grad, pl_arena *mem)
{
    nn_batch b = model_batch(f, mem);
    size_t n = f->model->n_floats;
    float *w = model_floats(f->w, n, mem), *g = PL_NEW(mem, float, n), *out = PL_NEW(mem, float, f->n_graphs);
    float *dy = PL_NEW(mem, float, f->n_graphs);
    nn_engine *e;
    pl_error err = { 0 };

    if (kind->open(&e, f->model, &(nn_engine_conf){ .threads = 2, .radial = NN_RADIAL_EXACT }, &err) || kind->set_params(e, w, &err)
        || kind->forward(e, &b, true, out, &err))
        fail_msg("%s", err.text);
    for (int32_t i = 0; i < f->n_graphs; i++) {
        y[i] = out[i];
        dy[i] = 1 + (out[i] > f->target[i] ? 2.0f : -2.0f) / (float)f->n_graphs;
    }
    if (kind->backward(e, &b, dy, g, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++)
        grad[i] = g[i];
    kind->close(e);
}

/* The sums that stand for tensors too large to store whole. */
static void sums_check(const model_file *f, const nn_param *p, const double *g, double rel, pl_arena *mem)
{
    const double *want = golden_get(f->file, NULL, mem, "64.gradsum.%s", p->name);
    double norm = 0, top = 0, sum[4] = { 0 };

    for (size_t i = 0; i < p->size; i++) {
        norm += g[i] * g[i];
        top = fmax(top, fabs(g[i]));
        for (uint64_t k = 0; k < 4; k++)
            sum[k] += pl_splitmix64((k << 40) + i) & 1 ? -g[i] : g[i];
    }
    norm = sqrt(norm);
    golden_check(p->name, &norm, &want[1], 1, rel);
    golden_check(p->name, &top, &want[2], 1, rel);
    for (int k = 0; k < 4; k++)
        if (!(fabs(sum[k] - want[3 + k]) <= rel * norm * sqrt((double)p->size) + 1e-12))
            fail_msg("gradsum %s: projection %d is %g, should be %g", p->name, k, sum[k], want[3 + k]);
}

/* Float may be off by `times` what the stored float run of the reference is, and by rel. */
static void float_check(const model_file *f, const char *name, const double *got, double rel, double times)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    double off = 0, scale = 0;
    const double *want, *narrow_run;
    size_t n;

    want = golden_get(f->file, &n, mem, "64.%s", name);
    narrow_run = golden_has(f->file, "32.%s", name) ? golden_get(f->file, NULL, mem, "32.%s", name) : want;
    for (size_t i = 0; i < n; i++) {
        off = fmax(off, fabs(want[i] - narrow_run[i]));
        scale = fmax(scale, fabs(want[i]));
    }
    golden_check(name, got, want, n, fmax(rel, scale > 0 ? times * off / scale : 0));
    pl_arena_free(mem);
}

static void model_check(const char *name, double rel_y, double rel_grad)
{
    pl_arena *mem = pl_arena_new(1 << 22);
    model_file f;
    double *y, *grad;

    model_file_open(&f, name, mem);
    y = PL_NEW(mem, double, f.n_graphs);
    grad = PL_NEW(mem, double, f.model->n_floats);
    engine_run(&f, y, grad, mem);
    float_check(&f, "y", y, rel_y, 2);
    for (int i = 0; i < f.model->n_params; i++) {
        const nn_param *p = &f.model->param[i];
        char of_p[128];
        snprintf(of_p, sizeof of_p, "grad.w.%s", p->name);
        if (golden_has(f.file, "64.%s", of_p))
            float_check(&f, of_p, grad + p->at, rel_grad, 4);
        if (golden_has(f.file, "64.gradsum.%s", p->name))
            sums_check(&f, p, grad + p->at, rel_grad, mem);
    }
    pl_arena_free(mem);
}

static void tiny_model_on_complete_graphs_gives_the_stored_numbers(void **state)
{
    (void)state;
    model_check("b4_tiny_full", 5e-6, 1e-4);
}

static void tiny_model_on_bonds_gives_the_stored_numbers(void **state)
{
    (void)state;
    model_check("b4_tiny_full_bonds", 5e-6, 1e-4);
}

static void default_model_gives_the_stored_numbers(void **state)
{
    (void)state;
    model_check("b4_default_full", 5e-6, 2e-4);
}

/* [cuda [which tests]] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_model_on_complete_graphs_gives_the_stored_numbers),
        cmocka_unit_test(tiny_model_on_bonds_gives_the_stored_numbers),
        cmocka_unit_test(default_model_gives_the_stored_numbers),
    };

    if (argc > 1 && !strcmp(argv[1], "cuda"))
        kind = &nn_engine_cuda;
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    golden_folder();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
