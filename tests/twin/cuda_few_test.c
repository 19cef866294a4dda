/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes of few molecules as graphs (models/cuda/few.c): the same bytes as launch after launch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/cuda/cuda_engine.h"
#include "twin/made_batch.h"
#include "twin/shapes.h"

enum { MOST = 16 };

typedef struct fixture {
    pl_arena *mem;
    made_batch made;
    nn_batch first; /* its first molecule */
    nn_se3 *model;
    float *params;
} fixture;

static fixture fixture_open(uint64_t seed)
{
    made_opts opts = shapes[0].batch;
    fixture f = { .mem = pl_arena_new(1 << 20) };

    opts.seed = seed;
    f.made = made_batch_new(&opts, f.mem);
    assert_int_equal(nn_se3_plan(&f.model, &shapes[0].conf, f.mem, NULL), PL_OK);
    f.params = PL_NEW(f.mem, float, f.model->n_floats);
    nn_se3_init(f.model, f.params, 3);
    f.first = made_batch_first(&f.made.b);
    return f;
}

static nn_engine *engine_open(const fixture *f, const nn_engine_conf *conf, const char *graphs)
{
    nn_engine *e;

    setenv("MOLSIEVE_CUDA_GRAPHS", graphs, 1);
    DONE(nn_engine_cuda.open(&e, f->model, conf, &why));
    unsetenv("MOLSIEVE_CUDA_GRAPHS");
    DONE(nn_engine_cuda.set_params(e, f->params, &why));
    return e;
}

/* The batch in both engines: equal bytes. */
static void both(nn_engine *e, nn_engine *plain, const nn_batch *in, bool keep)
{
    float got[MOST], want[MOST];

    DONE(nn_engine_cuda.forward(e, in, keep, got, &why));
    DONE(nn_engine_cuda.forward(plain, in, keep, want, &why));
    assert_memory_equal(got, want, (size_t)in->n_graphs * sizeof *got);
}

static void passes_follow(const nn_engine_conf *conf)
{
    fixture f = fixture_open(1), other = fixture_open(4);
    nn_engine *e = engine_open(&f, conf, "1"), *plain = engine_open(&f, conf, "0");
    int64_t passes;

    both(e, plain, &f.first, false);
    both(e, plain, &f.first, false); /* captured */
    both(e, plain, &f.made.b, false);
    both(e, plain, &f.made.b, true);
    both(e, plain, &other.made.b, false);
    both(e, plain, &f.first, false);
    passes = e->passes;
    both(e, plain, &f.first, false); /* nothing is called */
    assert_int_equal(e->passes, passes);
    f.made.xyz[0][0] += 0.04f; /* other distances, perhaps in other cells */
    made_batch_move(&f.made);
    both(e, plain, &f.first, false);
    for (size_t i = 0; i < f.model->n_floats; i++)
        f.params[i] *= 1.25f;
    DONE(nn_engine_cuda.set_params(e, f.params, &why));
    DONE(nn_engine_cuda.set_params(plain, f.params, &why));
    both(e, plain, &f.first, false);
    assert_int_equal(plain->passes, 9);
    assert_true(e->passes < plain->passes);
    nn_engine_cuda.close(e);
    nn_engine_cuda.close(plain);
    pl_arena_free(f.mem);
    pl_arena_free(other.mem);
}

static void passes_as_graphs_give_the_same_bytes(void **state)
{
    static const nn_engine_conf conf[] = {
        { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.02 },
        { .threads = 1, .radial = NN_RADIAL_EXACT },
        { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.02, .of_radial = NN_PREC_BF16, .of_contract = NN_PREC_BF16 },
    };
    (void)state;

    for (int i = 0; i < 3; i++)
        passes_follow(&conf[i]);
}

/* More molecules of different sizes than graphs are kept, and the first again. */
static void graphs_of_many_shapes_give_the_same_bytes(void **state)
{
    const nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.02 };
    fixture f = fixture_open(1);
    nn_engine *e = engine_open(&f, &conf, "1"), *plain = engine_open(&f, &conf, "0");
    (void)state;

    for (uint64_t seed = 1; seed < 8; seed++) {
        fixture other = fixture_open(seed % 6 + 1);
        both(e, plain, &other.first, false);
        pl_arena_free(other.mem);
    }
    nn_engine_cuda.close(e);
    nn_engine_cuda.close(plain);
    pl_arena_free(f.mem);
}

/* A training captures its steps in another thread. */
static void an_engine_beside_a_training_makes_no_graphs(void **state)
{
    const nn_engine_conf first = { .threads = 1, .radial = NN_RADIAL_EXACT };
    nn_engine_conf conf = first;
    fixture f = fixture_open(1);
    nn_engine *e = engine_open(&f, &first, "1"), *beside;
    (void)state;

    conf.yields = true;
    beside = engine_open(&f, &conf, "1");
    for (int i = 0; i < 3; i++)
        both(beside, e, &f.first, false);
    assert_int_equal(beside->passes, 3);
    assert_int_equal(e->passes, 2); /* and one again */
    nn_engine_cuda.close(e);
    nn_engine_cuda.close(beside);
    pl_arena_free(f.mem);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_as_graphs_give_the_same_bytes),
        cmocka_unit_test(graphs_of_many_shapes_give_the_same_bytes),
        cmocka_unit_test(an_engine_beside_a_training_makes_no_graphs),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
