/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of the cuda engine by cuBLASLt (docs/decisions/0087-cublaslt.md): the emulated one of tests/emulator/cublaslt or,
 * where MOLSIEVE_PLUGINS has the real plugin, that of CUDA, if there is one. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/cuda/plugin.h"
#include "models/engine/engine.h"
#include "twin/made_batch.h"
#include "twin/shapes.h"

static const nn_engine_conf own = { .threads = 1, .radial = NN_RADIAL_EXACT, .products = NN_PRODUCTS_OWN };
static const nn_engine_conf library = { .threads = 1, .radial = NN_RADIAL_EXACT, .products = NN_PRODUCTS_CUBLASLT };

typedef struct fixture {
    pl_arena *mem;
    made_batch made;
    nn_se3 *model;
    float *params, *y, *dy, *grad;
    size_t n;
} fixture;

static fixture fixture_open(int i)
{
    fixture f = { .mem = pl_arena_new(1 << 20) };

    f.made = made_batch_new(&shapes[i].batch, f.mem);
    assert_int_equal(nn_se3_plan(&f.model, &shapes[i].conf, f.mem, NULL), PL_OK);
    f.n = (size_t)(f.made.b.n_graphs * f.model->conf.outputs);
    f.params = PL_NEW(f.mem, float, f.model->n_floats);
    f.grad = PL_NEW(f.mem, float, f.model->n_floats);
    f.y = PL_NEW(f.mem, float, f.n);
    f.dy = PL_NEW(f.mem, float, f.n);
    nn_se3_init(f.model, f.params, 5);
    for (size_t k = 0; k < f.model->n_floats; k++) /* off the values that norms begin with */
        f.params[k] += 0.02f * (float)sin((double)k);
    for (size_t k = 0; k < f.n; k++)
        f.dy[k] = (float)cos(3.0 * (double)k);
    return f;
}

static nn_engine *engine_open(const fixture *f, const nn_engine_conf *conf)
{
    nn_engine *e;

    DONE(nn_engine_cuda.open(&e, f->model, conf, &why));
    DONE(nn_engine_cuda.set_params(e, f->params, &why));
    return e;
}

/* A forward pass with all that follows, into y and grad. */
static void both_run(fixture *f, const nn_engine_conf *conf)
{
    nn_engine *e = engine_open(f, conf);

    memset(f->grad, 0, f->model->n_floats * sizeof *f->grad);
    DONE(nn_engine_cuda.forward(e, &f->made.b, true, f->y, &why));
    DONE(nn_engine_cuda.backward(e, &f->made.b, f->dy, f->grad, &why));
    nn_engine_cuda.close(e);
}

static void near(const char *what, const float *got, const float *want, size_t n, double tol)
{
    double scale = 0;

    for (size_t i = 0; i < n; i++)
        scale += (double)want[i] * want[i];
    scale = sqrt(scale / (double)n) + 1e-6;
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= tol * (scale + fabs((double)want[i]))))
            fail_msg("%s: number %zu is %.9g, should be %.9g", what, i, (double)got[i], (double)want[i]);
}

/* Products that the emulated library was asked for so far; -1: it is not the emulated one. */
static long counted(const char *name)
{
    const char *path = getenv("MOLSIEVE_CUBLASLT");
    void *found = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL, *symbol = found != NULL ? dlsym(found, name) : NULL;
    long (*count)(void);

    if (symbol == NULL)
        return -1;
    memcpy(&count, &symbol, sizeof symbol);
    return count();
}

static long products(void) { return counted("emu_cublaslt_products"); }

/* Whether there is a library; the test is skipped without. */
static void library_wanted(void)
{
    const nn_gpu_ops *ops;
    char text[256];

    DONE(nn_cuda_plugin(&ops, &why));
    if (ops->cublaslt(NULL, text, sizeof text))
        return;
    print_message("%s\n", text);
    skip();
}

/* ---- what it computes ---- */

/* Tables of one and of several networks, linear layers of all degrees, sums of two products, the head; and their gradients. */
static void its_products_are_near_those_of_our_kernels(void **state)
{
    static const int shape_of[] = { 0, 2, 5 };
    (void)state;

    library_wanted();
    for (int i = 0; i < 3; i++) {
        fixture f = fixture_open(shape_of[i]), of_own = fixture_open(shape_of[i]);
        long before = products();
        both_run(&of_own, &own);
        assert_int_equal(products(), before);
        both_run(&f, &library);
        assert_true(before < 0 || products() > before);
        near("y", f.y, of_own.y, f.n, 2e-5);
        for (int k = 0; k < f.model->n_params; k++) {
            const nn_param *p = &f.model->param[k];
            near(p->name, f.grad + p->at, of_own.grad + p->at, p->size, 5e-4);
        }
        pl_arena_free(f.mem);
        pl_arena_free(of_own.mem);
    }
}

/* The emulated library sums each number of rows in its own order, so an engine that asks it again would see other bytes. */
static void a_score_is_the_same_alone_and_in_a_batch(void **state)
{
    fixture f = fixture_open(0);
    nn_batch first = made_batch_first(&f.made.b);
    float alone[4], before[4], after[4], again[4];
    nn_engine *one, *all;
    (void)state;

    library_wanted();
    one = engine_open(&f, &library);
    all = engine_open(&f, &library);
    DONE(nn_engine_cuda.forward(one, &first, false, alone, &why));
    DONE(nn_engine_cuda.forward(all, &f.made.b, false, f.y, &why));
    DONE(nn_engine_cuda.forward(all, &first, false, after, &why)); /* captured as a graph */
    DONE(nn_engine_cuda.forward(all, &first, false, again, &why)); /* which runs once more */
    memcpy(before, f.y, sizeof *before);
    assert_memory_equal(alone, before, sizeof *alone);
    assert_memory_equal(alone, after, sizeof *alone);
    assert_memory_equal(alone, again, sizeof *alone);
    nn_engine_cuda.close(one);
    nn_engine_cuda.close(all);
    pl_arena_free(f.mem);
}

/* ---- what it cannot do ---- */

static void without_an_algorithm_our_kernels_compute(void **state)
{
    fixture f = fixture_open(0), of_own = fixture_open(0);
    long before = products();
    (void)state;

    library_wanted();
    if (before < 0)
        skip();
    both_run(&of_own, &own);
    setenv("MOLSIEVE_EMULATOR_CUBLASLT", "none", 1);
    both_run(&f, &library);
    unsetenv("MOLSIEVE_EMULATOR_CUBLASLT");
    assert_int_equal(products(), before);
    assert_memory_equal(f.y, of_own.y, f.n * sizeof *f.y);
    assert_memory_equal(f.grad, of_own.grad, f.model->n_floats * sizeof *f.grad);
    pl_arena_free(f.mem);
    pl_arena_free(of_own.mem);
}

/* Its `call`th call of the function fails; the forward pass says so. */
static void told(fixture *f, const char *function, long call)
{
    nn_engine *e = engine_open(f, &library);
    char fault[80];
    pl_error err = { 0 };
    pl_code code;

    (void)snprintf(fault, sizeof fault, "%s:%ld", function, call);
    setenv("MOLSIEVE_EMULATOR_CUBLASLT", fault, 1);
    code = nn_engine_cuda.forward(e, &f->made.b, false, f->y, &err);
    unsetenv("MOLSIEVE_EMULATOR_CUBLASLT");
    print_message("%s\n", err.text);
    assert_int_equal(code, PL_EDEVICE);
    assert_non_null(strstr(err.text, function));
    assert_non_null(strstr(err.text, "CUBLAS_STATUS_INTERNAL_ERROR; products: own"));
    nn_engine_cuda.close(e);
}

static void its_errors_are_told_and_give_no_score(void **state)
{
    fixture f = fixture_open(0);
    nn_engine *e;
    pl_error err = { 0 };
    (void)state;

    library_wanted();
    if (products() < 0)
        skip();
    told(&f, "cublasLtMatmul", products() + 3);
    told(&f, "cublasLtMatmulAlgoGetHeuristic", counted("emu_cublaslt_asked") + 2);
    setenv("MOLSIEVE_EMULATOR_CUBLASLT", "cublasLtCreate:always", 1);
    assert_int_equal(nn_engine_cuda.open(&e, f.model, &library, &err), PL_EDEVICE);
    unsetenv("MOLSIEVE_EMULATOR_CUBLASLT");
    assert_non_null(strstr(err.text, "cublasLtCreate: CUBLAS_STATUS_INTERNAL_ERROR"));
    pl_arena_free(f.mem);
}

/* In a process that has not opened the library yet: what `check` says, and that our kernels need no library. */
static int refused(const char *path, const char *words)
{
    pl_error err = { 0 };

    setenv("MOLSIEVE_CUBLASLT", path, 1);
    if (nn_engine_cuda.check(&library, &err) != PL_ECONFIG || strstr(err.text, words) == NULL ||
        strstr(err.text, "products: own") == NULL) {
        print_message("%s: %s\n", path, err.text);
        return 1;
    }
    print_message("%s\n", err.text);
    return nn_engine_cuda.check(&own, &err) != PL_OK;
}

static void a_library_that_is_not_there_is_refused(void **state)
{
    const char *here = getenv("MOLSIEVE_CUBLASLT"), *slash = here != NULL ? strrchr(here, '/') : NULL;
    char old[4096];
    (void)state;

    if (slash == NULL || products() < 0)
        skip();
    (void)snprintf(old, sizeof old, "%.*s/libcublasLt_old.so", (int)(slash - here), here);
    for (int i = 0; i < 3; i++) {
        const char *path[] = { "/nonexistent/libcublasLt.so.13", old, "libm.so.6" };
        const char *words[] = { "MOLSIEVE_CUBLASLT", "no cublasLtMatmulAlgoCheck", "no cublasLtGetVersion" };
        pid_t child = fork();
        int status = 1;
        if (child == 0)
            _exit(refused(path[i], words[i]));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static void products_without_float32_are_refused(void **state)
{
    nn_engine_conf conf = library;
    pl_error err = { 0 };
    (void)state;

    conf.of_radial = conf.of_contract = conf.of_linear = NN_PREC_FP16;
    assert_int_equal(nn_engine_cuda.check(&conf, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, "fp32 alone"));
}

int main(int argc, char **argv)
{
    /* The one about a missing library first: it must be in processes that have not opened any. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_that_is_not_there_is_refused),     cmocka_unit_test(products_without_float32_are_refused),
        cmocka_unit_test(its_products_are_near_those_of_our_kernels), cmocka_unit_test(a_score_is_the_same_alone_and_in_a_batch),
        cmocka_unit_test(without_an_algorithm_our_kernels_compute),   cmocka_unit_test(its_errors_are_told_and_give_no_score),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
