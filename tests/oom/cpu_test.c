/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation of the cpu engine refused in turn: an error that says so each time, and the engine
 * works again afterwards with the same bits. Linked with -Wl,--wrap=calloc,--wrap=aligned_alloc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/engine/engine.h"
#include "twin/made_batch.h"

static long refuse_at, asked; /* refuse_at: which of the next requests is refused; 0: none */
static long needed;           /* requests of the last run of refused_once */

void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t to, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t to, size_t size);

static bool refused(void) { return ++asked == refuse_at; }

void *__wrap_calloc(size_t n, size_t size) { return refused() ? NULL : __real_calloc(n, size); }

void *__wrap_aligned_alloc(size_t to, size_t size) { return refused() ? NULL : __real_aligned_alloc(to, size); }

static void refuse(long nth, bool in_arena)
{
    asked = 0;
    refuse_at = in_arena ? 0 : nth;
    pl_arena_refuse(in_arena ? nth : 0);
}

static const nn_se3_conf conf = { 2, 2, 4, 2, 1, true, true, NN_POOL_SUM, NN_FUSE_PARTIAL, 6, 4, 2, NN_PARITY_BOTH, { 0 }, false };
static const made_opts graphs = { 4, 8, 6, 4, 2.0, false, 3 };

typedef struct fixture {
    pl_arena *mem;
    nn_se3 *model;
    made_batch m;
    float *params, *grad, y[8];
    nn_engine *e;
    const nn_engine_kind *kind;
    nn_engine_conf conf;
} fixture;

static pl_code step(fixture *f, pl_error *err)
{
    static const float dy[8] = { 1, -1, 2, 0.5f };
    pl_code code = f->kind->forward(f->e, &f->m.b, true, f->y, err);

    memset(f->grad, 0, f->model->n_floats * sizeof *f->grad);
    return code != PL_OK ? code : f->kind->backward(f->e, &f->m.b, dy, f->grad, err);
}

/* One request after opening is refused; returns the outcome. An engine that opened works afterwards with the same bits. */
static pl_code refused_once(fixture *f, long nth, bool in_arena, const float *y, const float *grad)
{
    pl_error err = { 0 };
    pl_code code;

    refuse(nth, in_arena);
    code = f->kind->open(&f->e, f->model, &f->conf, &err);
    assert_int_equal(f->e == NULL, code != PL_OK);
    if (code == PL_OK) {
        DONE(f->kind->set_params(f->e, f->params, &why));
        code = step(f, &err);
    }
    needed = asked;
    refuse(0, false);
    assert_true(code == PL_OK || code == PL_ENOMEM);
    if (code != PL_OK && strncmp(err.text, "no memory for ", 14) != 0)
        fail_msg("request %ld: %s", nth, err.text);
    if (f->e != NULL) {
        DONE(step(f, &why));
        assert_memory_equal(f->y, y, sizeof f->y);
        assert_memory_equal(f->grad, grad, f->model->n_floats * sizeof *grad);
    }
    f->kind->close(f->e);
    return code;
}

static fixture fixture_open(const nn_engine_kind *kind, const nn_engine_conf *c)
{
    fixture f = { .mem = pl_arena_new(1 << 20), .kind = kind, .conf = *c };

    assert_int_equal(nn_se3_plan(&f.model, &conf, f.mem, NULL), PL_OK);
    f.m = made_batch_new(&graphs, f.mem);
    f.params = PL_NEW(f.mem, float, f.model->n_floats);
    f.grad = PL_NEW(f.mem, float, f.model->n_floats);
    nn_se3_init(f.model, f.params, 11);
    return f;
}

/* least: minimum number of requests, to the system and in arenas. The cpu engine can work without some. */
static void each_refused(const nn_engine_kind *kind, const nn_engine_conf *c, const long min[2])
{
    fixture f = fixture_open(kind, c);
    float *grad = PL_NEW(f.mem, float, f.model->n_floats), y[8];
    long max;

    DONE(kind->open(&f.e, f.model, c, &why));
    DONE(kind->set_params(f.e, f.params, &why));
    DONE(step(&f, &why));
    kind->close(f.e);
    memcpy(y, f.y, sizeof y);
    memcpy(grad, f.grad, f.model->n_floats * sizeof *grad);
    assert_int_equal(refused_once(&f, 0, false, y, grad), PL_OK);
    max = needed;
    assert_true(max >= min[0]);
    for (long n = 1; n <= max; n++)
        assert_int_equal(refused_once(&f, n, false, y, grad), PL_ENOMEM);
    for (max = 1; refused_once(&f, max, true, y, grad) != PL_OK; max++)
        assert_true(max < 500);
    assert_true(max > min[1]);
    pl_arena_free(f.mem);
}

static void refused_memory_is_an_error_and_no_more(void **state)
{
    static const nn_engine_conf confs[] = {
        { .threads = 1, .radial = NN_RADIAL_EXACT },
        { .threads = 1, .radial = NN_RADIAL_EXACT, .recompute = true, .of_radial = NN_PREC_BF16 },
        { .threads = 2, .radial = NN_RADIAL_NODES, .width = 0.01 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++)
        each_refused(&nn_engine_cpu, &confs[i], (const long[]){ 20, 5 });
    each_refused(&nn_engine_ref, &confs[0], (const long[]){ 3, 50 });
}

/* The cache of tables is only for speed: without memory for it a prediction has the same bits. */
static void a_prediction_without_memory_for_its_cache_is_the_same(void **state)
{
    static const nn_engine_conf c = { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.01 };
    fixture f = fixture_open(&nn_engine_cpu, &c);
    float want[8];
    long n;
    (void)state;

    DONE(f.kind->open(&f.e, f.model, &c, &why));
    DONE(f.kind->set_params(f.e, f.params, &why));
    refuse(0, false);
    DONE(f.kind->forward(f.e, &f.m.b, false, want, &why));
    n = asked;
    f.kind->close(f.e);
    for (long nth = 1; nth <= n; nth++) {
        pl_code code;
        DONE(f.kind->open(&f.e, f.model, &c, &why));
        DONE(f.kind->set_params(f.e, f.params, &why));
        refuse(nth, false);
        code = f.kind->forward(f.e, &f.m.b, false, f.y, NULL);
        refuse(0, false);
        assert_true(code == PL_OK || code == PL_ENOMEM);
        if (code == PL_OK)
            assert_memory_equal(f.y, want, 8 * sizeof *want);
        f.kind->close(f.e);
    }
    pl_arena_free(f.mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_memory_is_an_error_and_no_more),
        cmocka_unit_test(a_prediction_without_memory_for_its_cache_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
