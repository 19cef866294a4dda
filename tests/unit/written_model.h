/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/written_model.h - a network with three targets, as the tests of model files write it. Include it once, after cmocka.h. */
#ifndef TESTS_WRITTEN_MODEL_H
#define TESTS_WRITTEN_MODEL_H

#include <stdint.h>

#include "tests/unit/model_bench.h"

static inline int bench_open(void **state)
{
    bench *b = *state = calloc(1, sizeof *b);

    if (b == NULL || !bench_make(b))
        return 1;
    b->target[0] = (nn_target){ "gap",
                                "eV",
                                "low",
                                { 1.25, 0.5, -3.0, { 0.1, 0.2, 1.0 / 3 } },
                                { "test", 2, { { 0, 1.5, 40 }, { 0.3, 0.1 + 0.2, 30 } } },
                                0.1 + 0.2,
                                NULL,
                                NULL };
    b->target[1] = (nn_target){ "mu", "D", "none", { -2, 4, 0, { 0 } }, { .n = 0 }, 0, NULL, NULL };
    b->target[2] = (nn_target){ "alpha", "", "high", { 0, 1, 0.5, { 0, 0, 7 } }, { "valid", 1, { { 0, 0, 9 } } }, 1, NULL, NULL };
    bench_describe(b, 2, 3, 1);
    return !bench_network(b);
}

static inline void same_target(const nn_target *a, const nn_target *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->unit, b->unit);
    assert_string_equal(a->better, b->better);
    assert_memory_equal(&a->scale, &b->scale, sizeof b->scale);
    assert_true(a->lowest == b->lowest);
    assert_int_equal(a->interval.n, b->interval.n);
    assert_memory_equal(a->interval.band, b->interval.band, sizeof b->interval.band);
    assert_string_equal(a->interval.part ? a->interval.part : "", b->interval.part ? b->interval.part : "");
}

static inline nn_meta *meta_named(nn_meta *meta, const char *key)
{
    while (strcmp(meta->key, key) != 0)
        meta++;
    return meta;
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

#endif
