/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the cuda engine: the amount computed without a device is the amount allocated; with
 * `recompute` or a sharded optimiser it is less for the same bits; and memory shared by streams. On the emulator or, where MOLSIEVE_PLUGINS
 * has the real plugin, on a GPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/cuda/memory.h"
#include "models/engine/engine.h"
#include "twin/made_batch.h"

enum { STEPS = 3 };

typedef struct fixture {
    pl_arena *mem;
    nn_se3 *model;
    made_batch made;
    float *target;
} fixture;

/* Steps in flight together, and what they left. */
typedef struct trained {
    nn_training_result result[STEPS];
    float *params, *m, *v, *ema;
    size_t bytes;
} trained;

static fixture fixture_open(const nn_se3_conf *conf, int32_t n_graphs)
{
    const made_opts opts = { n_graphs, 6, 6, 4, 1.6, false, 3 };
    fixture f = { .mem = pl_arena_new(1 << 20) };

    f.made = made_batch_new(&opts, f.mem);
    assert_int_equal(nn_se3_plan(&f.model, conf, f.mem, NULL), PL_OK);
    f.target = PL_NEW(f.mem, float, n_graphs);
    for (int32_t i = 0; i < n_graphs; i++)
        f.target[i] = (float)sin(i);
    return f;
}

static nn_training training_of(nn_ranks *ranks)
{
    return (nn_training){ .adam = { 0.9, 0.999, 1e-8, 0.1 },
                          .loss = NN_LOSS_L2,
                          .grad_clip = 1,
                          .ema = 0.9,
                          .ranks = ranks,
                          .shards = ranks != NULL ? ranks->size : 1,
                          .sharded = ranks != NULL };
}

/* ranks: that have the optimiser sharded, or NULL. */
static trained train(const fixture *f, const nn_engine_conf *conf, nn_ranks *ranks)
{
    const nn_training rule = training_of(ranks);
    const nn_training_step step = {
        .target = f->target, .measured = f->made.b.n_graphs, .n_graphs = f->made.b.n_graphs, .lr = 1e-3f
    };
    const nn_engine_training *t = nn_engine_cuda.training;
    size_t n = f->model->n_floats;
    float *at[8];
    trained r = { .params = NULL };
    nn_engine *e;

    for (int i = 0; i < 8; i++)
        at[i] = PL_NEW(f->mem, float, n);
    nn_se3_init(f->model, at[0], 5);
    memcpy(at[3], at[0], n * sizeof *at[0]);
    DONE(nn_engine_cuda.open(&e, f->model, conf, &why));
    DONE(t->begin(e, &rule, &(nn_adamw_arrays){ .p = at[0], .m = at[1], .v = at[2], .ema = at[3] }, 0, &why));
    for (int i = 0; i < STEPS; i++)
        DONE(t->step(e, &f->made.b, &step, &why));
    for (int i = 0; i < STEPS; i++)
        DONE(t->result(e, &r.result[i], &why));
    DONE(t->fetch(e, &(nn_adamw_arrays){ .p = r.params = at[4], .m = r.m = at[5], .v = r.v = at[6], .ema = r.ema = at[7] }, &why));
    assert_memory_not_equal(at[0], at[4], n * sizeof *at[0]);
    r.bytes = nn_engine_cuda.workspace_bytes(e);
    nn_engine_cuda.close(e);
    return r;
}

static size_t need_of(const fixture *f, const nn_engine_conf *conf, int training)
{
    nn_cuda_need need;

    assert_int_equal(nn_cuda_memory(&need, f->model, conf, &f->made.b, training, NULL), PL_OK);
    return need.model + need.batch + need.work;
}

/* New memory of the emulator is NaN, and shared memory has been overwritten: a module that is not
 * computed again is noticed. */
static void recompute_gives_the_same_bits_in_less_memory(void **state)
{
    static const nn_se3_conf net[] = {
        { 3, 2, 6, 2, 1, true, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
        { 3, 3, 8, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
        { 2, 2, 6, 3, 2, false, false, NN_POOL_SUM, NN_FUSE_NONE, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false }
    };
    static const nn_precision precisions[] = { NN_PREC_FP32, NN_PREC_BF16, NN_PREC_FP16 };
    (void)state;

    for (int i = 0; i < 3; i++) {
        fixture f = fixture_open(&net[i], 4);
        nn_precision p = precisions[i];
        nn_engine_conf conf = { .threads = 1,
                                .radial = i ? NN_RADIAL_NODES : NN_RADIAL_EXACT,
                                .width = 0.05,
                                .of_radial = p,
                                .of_contract = p,
                                .of_linear = p };
        trained all = train(&f, &conf, NULL), less;
        assert_int_equal(all.bytes, need_of(&f, &conf, 1));
        conf.recompute = true;
        less = train(&f, &conf, NULL);
        assert_int_equal(less.bytes, need_of(&f, &conf, 1));
        print_message("%zu kB, with recompute %zu kB\n", all.bytes >> 10, less.bytes >> 10);
        assert_true(less.bytes < all.bytes);
        assert_memory_equal(all.params, less.params, f.model->n_floats * sizeof *all.params);
        for (int k = 0; k < STEPS; k++) {
            assert_true(isfinite(all.result[k].loss.loss) && all.result[k].taken);
            assert_memory_equal(&all.result[k].loss, &less.result[k].loss, sizeof all.result[k].loss);
        }
        pl_arena_free(f.mem);
    }
}

/* ---- a sharded optimiser ---- */

/* Ranks that do nothing: correct for a single rank, and enough to see how much memory is allocated. */
static pl_code nothing_reduced(nn_ranks *r, const nn_device_rows *rows, pl_error *err)
{
    (void)r, (void)err;
    assert_true(rows->n * rows->item <= rows->stride);
    return PL_OK;
}

static pl_code nothing_spread(nn_ranks *r, void *stream, const nn_device_items *what, int n_what, pl_error *err)
{
    (void)r, (void)stream, (void)what, (void)err;
    assert_true(n_what > 0);
    return PL_OK;
}

static pl_code nobody_lost(nn_ranks *r, double waited, pl_error *err)
{
    (void)r, (void)waited, (void)err;
    return PL_OK;
}

static const nn_collective_device still = { nothing_reduced, nothing_spread, nobody_lost };
static const nn_collective pretended = { .device = &still };

/* Bytes of a training that has begun. */
static size_t begun_bytes(const fixture *f, const nn_engine_conf *conf, nn_ranks *ranks)
{
    const nn_training rule = training_of(ranks);
    float *zeros = PL_NEW(f->mem, float, f->model->n_floats);
    size_t bytes;
    nn_engine *e;

    DONE(nn_engine_cuda.open(&e, f->model, conf, &why));
    DONE(nn_engine_cuda.training->begin(e, &rule, &(nn_adamw_arrays){ zeros, zeros, zeros, zeros, NULL }, 0, &why));
    bytes = nn_engine_cuda.workspace_bytes(e);
    nn_engine_cuda.close(e);
    return bytes;
}

static void a_sharded_optimiser_takes_a_part_of_the_memory(void **state)
{
    static const nn_se3_conf net = { 2, 3, 16, 2, 1, true, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false };
    const nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_EXACT };
    fixture f = fixture_open(&net, 4);
    size_t n = f.model->n_floats, bytes = n * sizeof(float), whole = begun_bytes(&f, &conf, NULL), piece = 4096;
    nn_ranks one = { .kind = &pretended, .size = 1 };
    trained want = train(&f, &conf, NULL), got = train(&f, &conf, &one);
    (void)state;

    assert_memory_equal(want.params, got.params, bytes);
    assert_memory_equal(want.m, got.m, bytes);
    assert_memory_equal(want.v, got.v, bytes);
    assert_memory_equal(want.ema, got.ema, bytes);
    for (int size = 2; size <= 5; size++) {
        nn_ranks first = { .kind = &pretended, .size = size }, last = { .kind = &pretended, .size = size, .rank = size - 1 };
        size_t part = begun_bytes(&f, &conf, &first);
        nn_cuda_need need;
        assert_int_equal(nn_cuda_memory(&need, f.model, &conf, &f.made.b, size, NULL), PL_OK);
        assert_int_equal(part, need.model);
        assert_true(begun_bytes(&f, &conf, &last) <= part);
        /* m, v and the average: a part of each, and less than a piece more a bucket */
        assert_true(whole - part + 3 * 7 * piece * sizeof(float) >= 3 * bytes - 3 * bytes / (size_t)size);
        assert_true(part < whole);
    }
    pl_arena_free(f.mem);
}

/* ---- streams ---- */

typedef struct streams_case {
    nn_se3_conf net;
    nn_precision p;
    bool exact, recompute, ranks;
    const char *table_kb; /* of one table, which then comes in pieces */
} streams_case;

static trained streams_train(const fixture *f, const streams_case *c, const char *streams, const char *ahead)
{
    nn_engine_conf conf = { .threads = 1,
                            .radial = c->exact ? NN_RADIAL_EXACT : NN_RADIAL_NODES,
                            .width = 0.05,
                            .of_radial = c->p,
                            .of_contract = c->p,
                            .of_linear = c->p,
                            .recompute = c->recompute };
    nn_ranks one = { .kind = &pretended, .size = 1 };
    trained t;

    setenv("MOLSIEVE_CUDA_STREAMS", streams, 1);
    if (ahead != NULL)
        setenv("MOLSIEVE_EMULATOR_AHEAD", ahead, 1);
    if (c->table_kb != NULL)
        setenv("MOLSIEVE_CUDA_TABLE_KB", c->table_kb, 1);
    t = train(f, &conf, c->ranks ? &one : NULL);
    unsetenv("MOLSIEVE_CUDA_STREAMS");
    unsetenv("MOLSIEVE_EMULATOR_AHEAD");
    unsetenv("MOLSIEVE_CUDA_TABLE_KB");
    return t;
}

/* On the emulator, work that waits for another stream is done as late as its events allow, and then as early as they allow. */
static void streams_do_not_change_a_bit(void **state)
{
    static const streams_case all[] = {
        { { 3, 3, 8, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
          NN_PREC_FP16,
          false,
          false,
          false,
          NULL },
        { { 4, 2, 6, 2, 1, true, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
          NN_PREC_TF32,
          false,
          true,
          false,
          "8" },
        { { 4, 3, 4, 2, 1, false, false, NN_POOL_SUM, NN_FUSE_NONE, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
          NN_PREC_FP32,
          false,
          false,
          false,
          "8" },
        { { 3, 2, 6, 2, 1, true, true, NN_POOL_MEAN, NN_FUSE_PARTIAL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
          NN_PREC_BF16,
          true,
          false,
          true,
          NULL },
        { { 3, 2, 6, 2, 1, false, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
          NN_PREC_FP32,
          true,
          true,
          true,
          NULL },
    };
    (void)state;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fixture f = fixture_open(&all[i].net, 4);
        size_t bytes = f.model->n_floats * sizeof(float);
        trained want = streams_train(&f, &all[i], "0", NULL);
        for (int ahead = 0; ahead < 2; ahead++) {
            trained got = streams_train(&f, &all[i], "1", ahead ? "1" : NULL);
            assert_memory_equal(want.params, got.params, bytes);
            assert_memory_equal(want.m, got.m, bytes);
            assert_memory_equal(want.v, got.v, bytes);
        }
        assert_true(isfinite(want.result[STEPS - 1].loss.loss));
        pl_arena_free(f.mem);
    }
}

static void forward_takes_what_it_needs(void **state)
{
    static const nn_se3_conf net = { 3, 3, 8, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false };
    const nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.05 };
    fixture f = fixture_open(&net, 6);
    float *params = PL_NEW(f.mem, float, f.model->n_floats), y[6];
    nn_engine *e;
    (void)state;

    nn_se3_init(f.model, params, 5);
    DONE(nn_engine_cuda.open(&e, f.model, &conf, &why));
    DONE(nn_engine_cuda.set_params(e, params, &why));
    DONE(nn_engine_cuda.forward(e, &f.made.b, false, y, &why));
    assert_int_equal(nn_engine_cuda.workspace_bytes(e), need_of(&f, &conf, 0));
    assert_true(need_of(&f, &conf, 0) < need_of(&f, &conf, 1));
    nn_engine_cuda.close(e);
    pl_arena_free(f.mem);
}

/* After a fault every request is refused: a request for more memory then reports the fault. */
static void a_fault_is_not_taken_for_a_want_of_memory(void **state)
{
    static const nn_se3_conf net = { 1, 2, 4, 2, 1, true, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false };
    const nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_EXACT };
    fixture small = fixture_open(&net, 3), large = fixture_open(&net, 30);
    float *params = PL_NEW(small.mem, float, small.model->n_floats), y[30];
    const nn_training rule = { .adam = { 0.9, 0.999, 1e-8, 0.1 } };
    pl_error err[2] = { { 0 } };
    nn_engine *e;
    (void)state;

    nn_se3_init(small.model, params, 5);
    DONE(nn_engine_cuda.open(&e, small.model, &conf, &why));
    DONE(nn_engine_cuda.set_params(e, params, &why));
    DONE(nn_engine_cuda.forward(e, &small.made.b, false, y, &why));
    setenv("MOLSIEVE_EMULATOR_FAULT", "1", 1);
    if (nn_engine_cuda.set_params(e, params, NULL) != PL_OK) { /* a GPU has no such fault */
        (void)nn_engine_cuda.forward(e, &large.made.b, false, y, &err[0]);
        (void)nn_engine_cuda.training->begin(e, &rule, &(nn_adamw_arrays){ .p = params, .m = params, .v = params }, 0, &err[1]);
    }
    for (int i = 0; i < 2 && err[0].code != PL_OK; i++) {
        assert_int_equal(err[i].code, PL_EDEVICE);
        assert_non_null(strstr(err[i].text, "an illegal memory access"));
    }
    unsetenv("MOLSIEVE_EMULATOR_FAULT");
    nn_engine_cuda.close(e);
    pl_arena_free(small.mem);
    pl_arena_free(large.mem);
}

/* An argument names the tests to run. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recompute_gives_the_same_bits_in_less_memory),
        cmocka_unit_test(a_sharded_optimiser_takes_a_part_of_the_memory),
        cmocka_unit_test(streams_do_not_change_a_bit),
        cmocka_unit_test(forward_takes_what_it_needs),
        cmocka_unit_test(a_fault_is_not_taken_for_a_want_of_memory),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
