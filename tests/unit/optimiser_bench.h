/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/optimiser_bench.h - opens and closes the arrays of a test of an optimiser. Include it after `bench`, a structure with
 * `pl_arena *mem`, and after bench_reset, which fills one. */
#ifndef TESTS_OPTIMISER_BENCH_H
#define TESTS_OPTIMISER_BENCH_H

static int bench_open(void **state)
{
    bench *b = calloc(1, sizeof *b);

    if (b == NULL || (b->mem = pl_arena_new(0)) == NULL)
        return 1;
    bench_reset(b);
    *state = b;
    return 0;
}

static int bench_close(void **state)
{
    bench *b = *state;

    pl_arena_free(b->mem);
    free(b);
    return 0;
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

#endif
