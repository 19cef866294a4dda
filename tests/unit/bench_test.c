/* SPDX-License-Identifier: Apache-2.0
 * The work that `molsieve bench` divides by: docs/performance.md 1.2, 2.4, of one hidden layer and edge. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "stages/bench/bench.h"

static st_bench_case network(int32_t layers, pl_arena *mem)
{
    const nn_se3_conf conf = { layers, 4, 32, 8, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 } };
    nn_se3 *model;

    assert_int_equal(nn_se3_plan(&model, &conf, mem, NULL), PL_OK);
    return (st_bench_case){ .model = model, .batch = { .n_edges = 2, .n_pairs = 1 } };
}

static void is_near(double got, double want)
{
    if (!(fabs(got - want) <= 0.01 * want))
        fail_msg("%g, not %g", got, want);
}

static void work_is_what_the_page_counts(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    st_bench_case many = network(7, mem), few = network(6, mem);
    st_bench_work a = st_bench_work_reference(&many), b = st_bench_work_reference(&few);

    (void)state;
    is_near((a.forward - b.forward) / 2, 5.05e6);
    is_near((a.train - b.train) / 2, 14.43e6);
    is_near(a.forward / 2 * 37.3, 1.19e9 * 0.99); /* of one molecule, all layers */
    a = st_bench_work_engine(&many, NN_RADIAL_EXACT);
    b = st_bench_work_engine(&few, NN_RADIAL_EXACT);
    is_near((a.forward - b.forward) / 2, 1.59e6);
    is_near((a.train - b.train) / 2, 6.21e6);
    a = st_bench_work_engine(&many, NN_RADIAL_NODES);
    b = st_bench_work_engine(&few, NN_RADIAL_NODES);
    is_near((a.forward - b.forward) / 2, 0.295e6);
    is_near((a.train - b.train) / 2, 0.885e6);
    pl_arena_free(mem);
}

static void the_machine_has_a_peak(void **state)
{
    st_bench_peak one = st_bench_peak_find(1);

    (void)state;
    assert_true(one.fp32 > 1e8 && one.fp32 < 1e13);
    assert_true(one.bf16 == 0 || one.bf16 > one.fp32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_what_the_page_counts),
        cmocka_unit_test(the_machine_has_a_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
