/* SPDX-License-Identifier: Apache-2.0 */
/* Stored outputs and gradients of whole models, computed by the engine that the
 * argument names: cpu (the default), cuda or ref. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden/appendix.h"
#include "golden/golden.h"
#include "golden/model_file.h"
#include "models/engine/engine.h"
#include "pipeline/base/rng.h"

static const nn_engine_kind *kind = &nn_engine_cpu;

/* y, and the gradient of `loss` mean |y - target| + `sum` sum(y). */
static void engine_run(const model_file *f, float loss, float sum, double *y, double *grad, pl_arena *mem)
{
    nn_batch b = model_batch(f, mem);
    size_t n = f->model->n_floats;
    float *w = model_floats(f->w, n, mem), *g = PL_NEW(mem, float, n), *out = PL_NEW(mem, float, f->n_graphs);
    float *dy = PL_NEW(mem, float, f->n_graphs);
    nn_engine *e;
    pl_error err = { 0 };

    if (kind->open(&e, f->model, &(nn_engine_conf){ .threads = 2, .radial = NN_RADIAL_EXACT }, &err) != PL_OK ||
        kind->set_params(e, w, &err) != PL_OK || kind->forward(e, &b, true, out, &err) != PL_OK)
        fail_msg("%s", err.text);
    for (int32_t i = 0; i < f->n_graphs; i++) {
        y[i] = out[i];
        dy[i] = sum + (out[i] > f->target[i] ? loss : -loss) / (float)f->n_graphs;
    }
    if (kind->backward(e, &b, dy, g, &err) != PL_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++)
        grad[i] = g[i];
    kind->close(e);
}

/* Sums that replace tensors too large to store. */
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

/* Float may differ by `times` the error of the reference's own stored float run, plus rel. */
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

/* The stored gradient is that of 2 loss + sum(y); model_case.inc has the reason. */
static void model_check(const char *name, pl_arena *mem)
{
    model_file f;
    double *y, *grad;

    model_file_open(&f, name, mem);
    const double rel = f.model->n_floats < 100000 ? 1e-4 : 2e-4;
    y = PL_NEW(mem, double, f.n_graphs);
    grad = PL_NEW(mem, double, f.model->n_floats);
    engine_run(&f, 2, 1, y, grad, mem);
    float_check(&f, "y", y, 5e-6, 2);
    for (int i = 0; i < f.model->n_params; i++) {
        const nn_param *p = &f.model->param[i];
        char of_p[128];
        snprintf(of_p, sizeof of_p, "grad.w.%s", p->name);
        if (golden_has(f.file, "64.%s", of_p))
            float_check(&f, of_p, grad + p->at, rel, 4);
        if (golden_has(f.file, "64.gradsum.%s", p->name))
            sums_check(&f, p, grad + p->at, rel, mem);
    }
}

static void every_stored_network_gives_the_stored_numbers(void **state)
{
    pl_arena *list = pl_arena_new(1 << 16);
    (void)state;

    for (const char *const *name = golden_names("b4_", list); *name; name++) {
        pl_arena *mem = pl_arena_new(1 << 22);
        print_message("%s\n", *name);
        model_check(*name, mem);
        pl_arena_free(mem);
    }
    pl_arena_free(list);
}

static double norm_of(const double *g, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += g[i] * g[i];
    return sqrt(sum);
}

static void near(const char *what, double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want)))
        fail_msg("%s: got %.9g, want %.9g", what, got, want);
}

/* 9 million parameters, from a hash: docs/model.md 9. Rounding its weights to float alone moves y by 7e-6. */
static void the_network_of_the_specification_gives_the_listed_numbers(void **state)
{
    (void)state;

    for (int level = NN_FUSE_NONE; level <= NN_FUSE_FULL; level++) {
        pl_arena *mem = pl_arena_new(1 << 22);
        model_file f;
        appendix_open(&f, (nn_fusion)level, mem);
        double y[APPENDIX_GRAPHS], *grad = PL_NEW(mem, double, f.model->n_floats);
        engine_run(&f, 1, 0, y, grad, mem);
        for (int g = 0; g < APPENDIX_GRAPHS; g++)
            near("y", y[g], appendix_outputs[level][g], 5e-5);
        for (const appendix_gradient *want = appendix_gradients; level == NN_FUSE_FULL && want->name != NULL; want++) {
            const nn_param *p = &f.model->param[nn_se3_find(f.model, want->name)];
            near(want->name, norm_of(grad + p->at, p->size), want->norm, 1e-4);
        }
        pl_arena_free(mem);
    }
}

/* [cpu|cuda|ref [which tests]] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stored_network_gives_the_stored_numbers),
        cmocka_unit_test(the_network_of_the_specification_gives_the_listed_numbers),
    };

    for (int i = 0; argc > 1 && nn_engines[i] != NULL; i++)
        if (!strcmp(argv[1], nn_engines[i]->name))
            kind = nn_engines[i];
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    golden_folder();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
