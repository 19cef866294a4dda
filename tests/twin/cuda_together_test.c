/* SPDX-License-Identifier: Apache-2.0 */
/* Several models at once on the cuda engine: the bytes of one after the other. On the
 * emulator or, where MOLSIEVE_PLUGINS has the real plugin, on a GPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/cuda/plugin.h"
#include "models/engine/engine.h"
#include "twin/made_batch.h"

enum { MODELS = 4, BATCHES = 2, MAX = 16 };

/* Three models of different shapes for one batch, and one that reads other features. */
static const nn_se3_conf shapes[MODELS] = {
    { 2, 2, 4, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
    { 1, 3, 6, 3, 1, false, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 2, NN_PARITY_BOTH, { 0 }, false },
    { 1, 2, 4, 1, 1, true, false, NN_POOL_MEAN, NN_FUSE_FULL, 5, 0, 1, NN_PARITY_BOTH, { 0 }, false },
    { 2, 2, 4, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false }
};

typedef struct fixture {
    pl_arena *mem;
    nn_engine_conf conf;
    nn_se3 *model[MODELS];
    float *params[MODELS];
    made_batch made[BATCHES][2]; /* the second one: for the third model */
} fixture;

static fixture fixture_open(void)
{
    fixture f = { .mem = pl_arena_new(1 << 20),
                  .conf = { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.1, .of_contract = NN_PREC_BF16 } };

    for (int k = 0; k < MODELS; k++) {
        assert_int_equal(nn_se3_plan(&f.model[k], &shapes[k], f.mem, NULL), PL_OK);
        f.params[k] = PL_NEW(f.mem, float, f.model[k]->n_floats);
        nn_se3_init(f.model[k], f.params[k], (uint64_t)k + 3);
    }
    for (int b = 0; b < BATCHES; b++) {
        made_opts opts = { 3 + 2 * b, 6, 6, 4, 2.0, false, (uint64_t)b + 1 };
        f.made[b][0] = made_batch_new(&opts, f.mem);
        opts.node_features = 5;
        opts.edge_features = 0;
        f.made[b][1] = made_batch_new(&opts, f.mem);
    }
    return f;
}

static const nn_batch *batch_of(const fixture *f, int k, int b) { return &f->made[b][shapes[k].node_features == 5].b; }

static void engines_open(const fixture *f, nn_engine **e)
{
    for (int k = 0; k < MODELS; k++) {
        nn_engine_conf conf = f->conf;
        DONE(nn_engine_cuda.open(&e[k], f->model[k], &conf, &why));
        DONE(nn_engine_cuda.set_params(e[k], f->params[k], &why));
    }
}

static void engines_close(nn_engine **e)
{
    for (int k = 0; k < MODELS; k++)
        nn_engine_cuda.close(e[k]);
}

/* One after the other, by engines of their own. */
static void alone(const fixture *f, int b, float y[MODELS][MAX])
{
    nn_engine *e[MODELS];

    engines_open(f, e);
    for (int k = 0; k < MODELS; k++)
        DONE(nn_engine_cuda.forward(e[k], batch_of(f, k, b), false, y[k], &why));
    engines_close(e);
}

static void together_check(const fixture *f, nn_engine **e, int b, float want[MODELS][MAX])
{
    const nn_batch *in[MODELS];
    float y[MODELS][MAX], *to[MODELS];
    pl_error err = { 0 };

    for (int k = 0; k < MODELS; k++) {
        in[k] = batch_of(f, k, b);
        to[k] = y[k];
    }
    if (nn_engine_cuda.forward_all(e, in, to, MODELS, &err) != PL_OK)
        fail_msg("%s", err.text);
    for (int k = 0; k < MODELS; k++) {
        assert_true(isfinite(y[k][0]));
        assert_memory_equal(y[k], want[k], (size_t)(in[k]->n_graphs * shapes[k].outputs) * sizeof y[k][0]);
    }
}

/* Larger and smaller batches, and single models between. Without fences: looking at them waits for
 * all work, and a stream that does not follow another would not show. */
static void models_at_once_give_the_bytes_of_one_after_the_other(void **state)
{
    static const int order[] = { 0, 1, 0 };
    fixture f = fixture_open();
    float want[BATCHES][MODELS][MAX], y[MAX];
    nn_engine *e[MODELS];
    (void)state;

    unsetenv("MOLSIEVE_CUDA_FENCES");
    for (int b = 0; b < BATCHES; b++)
        alone(&f, b, want[b]);
    assert_memory_not_equal(want[0][0], want[0][3], sizeof(float));
    engines_open(&f, e);
    for (int i = 0; i < 3; i++) {
        together_check(&f, e, order[i], want[order[i]]);
        DONE(nn_engine_cuda.forward(e[3], batch_of(&f, 3, 1), false, y, &why));
        assert_memory_equal(y, want[1][3], (size_t)batch_of(&f, 3, 1)->n_graphs * sizeof *y);
    }
    engines_close(e);
    pl_arena_free(f.mem);
}

/* With another grid of radial nodes the layout differs, and nothing is shared. */
static void engines_of_other_settings_lay_out_their_own(void **state)
{
    fixture f = fixture_open();
    const nn_batch *in[2] = { batch_of(&f, 0, 0), batch_of(&f, 0, 0) };
    float y[2][MAX], want[MAX], *to[2] = { y[0], y[1] };
    nn_engine *e[2];
    (void)state;

    for (int k = 0; k < 2; k++) {
        nn_engine_conf conf = f.conf;
        conf.width = k ? 0.3 : 0.1;
        DONE(nn_engine_cuda.open(&e[k], f.model[0], &conf, &why));
        DONE(nn_engine_cuda.set_params(e[k], f.params[0], &why));
    }
    DONE(nn_engine_cuda.forward(e[1], in[1], false, want, &why));
    DONE(nn_engine_cuda.forward_all(e, in, to, 2, &why));
    assert_memory_equal(y[1], want, (size_t)in[1]->n_graphs * sizeof *want);
    assert_memory_not_equal(y[0], y[1], sizeof y[0][0]);
    nn_engine_cuda.close(e[0]);
    nn_engine_cuda.close(e[1]);
    pl_arena_free(f.mem);
}

/* The third model has the batch of the first, whose device is not the current one after the second. */
static void models_on_several_devices_do_not_get_in_each_others_way(void **state)
{
    static const int device[] = { 0, 1, 0 };
    fixture f = fixture_open();
    float want[MODELS][MAX], y[3][MAX], *to[] = { y[0], y[1], y[2] };
    const nn_batch *in[] = { batch_of(&f, 0, 1), batch_of(&f, 0, 1), batch_of(&f, 0, 1) };
    const nn_gpu_ops *ops;
    nn_engine *e[3];
    (void)state;

    setenv("MOLSIEVE_EMULATOR_DEVICES", "2", 1);
    assert_int_equal(nn_cuda_plugin(&ops, NULL), PL_OK);
    if (ops->count() < 2) {
        pl_arena_free(f.mem);
        skip();
    }
    alone(&f, 1, want);
    for (int k = 0; k < 3; k++) {
        nn_engine_conf conf = f.conf;
        conf.device = device[k];
        DONE(nn_engine_cuda.open(&e[k], f.model[0], &conf, &why));
        DONE(nn_engine_cuda.set_params(e[k], f.params[0], &why));
    }
    for (int i = 0; i < 2; i++) {
        DONE(nn_engine_cuda.forward_all(e, in, to, 3, &why));
        for (int k = 0; k < 3; k++)
            assert_memory_equal(y[k], want[0], (size_t)in[k]->n_graphs * sizeof y[k][0]);
    }
    for (int k = 0; k < 3; k++)
        nn_engine_cuda.close(e[k]);
    unsetenv("MOLSIEVE_EMULATOR_DEVICES");
    pl_arena_free(f.mem);
}

/* If one model cannot begin, all fail, and those that began are waited for. */
static void an_error_of_one_is_an_error_of_all(void **state)
{
    fixture f = fixture_open();
    nn_engine *e[MODELS];
    const nn_batch *in[MODELS];
    float y[MODELS][MAX], *to[MODELS], want[MODELS][MAX];
    pl_error err = { 0 };
    (void)state;

    alone(&f, 0, want);
    engines_open(&f, e);
    for (int k = 0; k < MODELS; k++) {
        in[k] = batch_of(&f, 0, 0); /* the third model has not these features */
        to[k] = y[k];
    }
    assert_int_equal(nn_engine_cuda.forward_all(e, in, to, MODELS, &err), PL_EBUG);
    assert_non_null(strstr(err.text, "features"));
    together_check(&f, e, 0, want);
    engines_close(e);
    pl_arena_free(f.mem);
}

/* An argument names the tests to run. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_of_other_settings_lay_out_their_own),
        cmocka_unit_test(models_on_several_devices_do_not_get_in_each_others_way),
        cmocka_unit_test(an_error_of_one_is_an_error_of_all),
        cmocka_unit_test(models_at_once_give_the_bytes_of_one_after_the_other),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
