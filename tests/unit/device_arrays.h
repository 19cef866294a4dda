/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/device_arrays.h - arrays on the device that a test opens. Include it once, after cmocka.h. */
#ifndef TESTS_DEVICE_ARRAYS_H
#define TESTS_DEVICE_ARRAYS_H

#include <stdint.h>
#include <stdlib.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/rng.h"
#include "tests/twin/device.h"

static pl_rng rng;
static pl_arena *mem;
static void *kept_there[120];
static int n_kept;

static inline float *random_floats(size_t n)
{
    float *x = PL_NEW(mem, float, n + 1);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)pl_rng_normal(&rng);
    return x;
}

/* Stays on the device until the end of the test. */
static inline void *bytes_kept(const void *x, size_t bytes)
{
    void *p = room(bytes);

    assert_true(n_kept < (int)(sizeof kept_there / sizeof *kept_there));
    ops->upload(gpu, p, x, bytes);
    return kept_there[n_kept++] = p;
}

static inline float *kept(const float *x, size_t n) { return bytes_kept(x, n * sizeof *x); }

static inline float *from_device(const float *p, size_t n)
{
    float *x = PL_NEW(mem, float, n + 1);

    ops->download(gpu, x, p, n * sizeof *x);
    works(ops->status(gpu));
    return x;
}

static inline int64_t at(const nn_gpu_axis *x, int i) { return i / x->inner * x->outer_step + i % x->inner * x->inner_step; }

static inline int open_device(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 20);
    rng = pl_rng_at(11, 0, 1);
    return mem != NULL ? gpu_open() : -1;
}

static inline int close_device(void **state)
{
    (void)state;
    while (n_kept)
        ops->free(gpu, kept_there[--n_kept]);
    ops->close(gpu);
    pl_arena_free(mem);
    return 0;
}

#endif
