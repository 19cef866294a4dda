/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that `molsieve bench` measures: how many there are, and those that fail. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "stages/bench/bench.h"
#include "twin/made_batch.h"

static nn_se3 *small_network(pl_arena *mem)
{
    const nn_se3_conf conf = { 2, 3, 4, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false };
    nn_se3 *model;

    assert_int_equal(nn_se3_plan(&model, &conf, mem, NULL), PL_OK);
    return model;
}

/* ---- of a training ---- */

/* An engine that only counts; two steps may be in flight. */
static struct {
    int taken, in_flight, fail_at;
} counted_steps;

static pl_code count_begin(nn_engine *e, const nn_training *t, const nn_adamw_arrays *from, int64_t steps, pl_error *err)
{
    (void)e, (void)t, (void)from, (void)steps, (void)err;
    return PL_OK;
}

static pl_code count_step(nn_engine *e, const nn_batch *in, const nn_training_step *s, pl_error *err)
{
    (void)e, (void)in, (void)s;
    if (++counted_steps.taken == counted_steps.fail_at)
        return pl_fail(err, PL_EDEVICE, "step %d", counted_steps.taken);
    return ++counted_steps.in_flight <= 2 ? PL_OK : pl_fail(err, PL_EBUG, "three steps in flight");
}

static pl_code count_result(nn_engine *e, nn_training_result *out, pl_error *err)
{
    (void)e;
    *out = (nn_training_result){ .taken = true };
    return counted_steps.in_flight-- > 0 ? PL_OK : pl_fail(err, PL_EBUG, "no step in flight");
}

static void steps_go_on_until_the_time_is_over(void **state)
{
    static const nn_engine_training training = { .depth = 2, .begin = count_begin, .step = count_step, .result = count_result };
    static const nn_engine_kind kind = { .name = "counting", .training = &training };
    const st_bench_variant v = { .kind = &kind };
    pl_arena *mem = pl_arena_new(1 << 16);
    const nn_se3 *m = small_network(mem);
    const st_bench_case c = { .model = m, .params = PL_NEW(mem, float, m->n_floats), .batch = { .n_graphs = 1 } };
    double each = -1;

    (void)state;
    counted_steps.fail_at = 0; /* no time: two rounds, each of the two steps in flight and one more */
    assert_int_equal(st_bench_steps(&each, &c, &v, NULL, 0, NULL), PL_OK);
    assert_true(each >= 0);
    assert_int_equal(counted_steps.taken, 2 * (2 + 1));
    assert_int_equal(counted_steps.in_flight, 0);
    counted_steps.fail_at = 500; /* time without end: until a step fails */
    assert_int_equal(st_bench_steps(&each, &c, &v, NULL, 1e9, NULL), PL_EDEVICE);
    assert_int_equal(counted_steps.taken, 500);
    pl_arena_free(mem);
}

/* ---- of a roofline ---- */

static int forward_left; /* so many times the engine works, then once not */

static pl_code forward_failing(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err)
{
    return forward_left-- == 0 ? pl_fail(err, PL_EDEVICE, "it failed") : nn_engine_cpu.forward(e, in, keep, y, err);
}

/* The first is not counted, but it is told, too. */
static void a_step_that_fails_is_told_whichever_it_is(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    const nn_se3 *m = small_network(mem);
    made_batch b = made_batch_new(&(made_opts){ 3, 7, 6, 4, 2.5, false, 8 }, mem);
    float y[3], dy[3] = { 1, 1, 1 };
    const st_bench_case c = { .model = m,
                              .params = PL_NEW(mem, float, m->n_floats),
                              .batch = b.b,
                              .y = y,
                              .dy = dy,
                              .grad = PL_NEW(mem, float, m->n_floats) };
    nn_engine_kind kind = nn_engine_cpu;
    const st_bench_variant v = { .kind = &kind, .models = 1, .conf = { .radial = NN_RADIAL_EXACT } };

    (void)state;
    kind.forward = forward_failing;
    for (int before = 0; before < 3; before++) {
        st_bench_roof r = { .threads = 1 };
        pl_error err = { 0 };
        forward_left = before;
        assert_int_equal(st_bench_roof_run(&r, &c, &v, 0, &err), before < 2 ? PL_EDEVICE : PL_OK);
        assert_string_equal(err.text, before < 2 ? "it failed" : "");
    }
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_go_on_until_the_time_is_over),
        cmocka_unit_test(a_step_that_fails_is_told_whichever_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
