/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged tensor files: bytes changed, cut off, doubled. Whatever the reader
 * accepts must lie inside the file; run under a sanitizer it must not stray. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/tensors/safetensors.h"
#include "pipeline/base/rng.h"

enum { ROUNDS = 20000, DATA = 48 };

static const char header[] = "{\"__metadata__\":{\"format\":\"x\",\"n\":\"12\"},\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                             "\"data_offsets\":[16,40]},\"b\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]},"
                             "\"c\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[40,48]}}";

/* Reads every number of every tensor, so that a bad pointer is touched. */
static void look_at_everything(const nn_tensors *all, const char *file, size_t len)
{
    static double wide[DATA];
    static int64_t whole[DATA];

    for (int k = 0; k < all->n; k++) {
        const nn_tensor *t = &all->t[k];
        const char *at = t->data;
        assert_true(at >= file && at + t->count * nn_dtype_bytes(t->dtype) <= file + len);
        assert_true(t->count <= DATA);
        pl_code code = t->dtype == NN_I64 || t->dtype == NN_I32 || t->dtype == NN_U8 ? nn_tensor_ints(whole, t->count, t, NULL)
                                                                                     : nn_tensor_doubles(wide, t->count, t, NULL);
        assert_int_equal(code, PL_OK);
    }
}

static void damaged_files_are_refused_or_stay_inside(void **state)
{
    size_t n = sizeof header - 1, len = 8 + n + DATA;
    int accepted = 0;
    (void)state;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        pl_rng r = pl_rng_at(3, round, 1);
        size_t keep = pl_rng_below(&r, 4) ? len : (size_t)pl_rng_below(&r, len + 1);
        char *file = calloc(1, len);
        pl_arena *mem = pl_arena_new(0);
        nn_tensors *got;
        assert_true(file && mem);
        file[0] = (char)n, file[1] = (char)(n >> 8);
        memcpy(file + 8, header, n);
        for (uint64_t k = pl_rng_below(&r, 5); k; k--) {
            size_t at = (size_t)pl_rng_below(&r, 8 + n);
            file[at] = pl_rng_below(&r, 2) ? (char)pl_rng_u64(&r) : header[pl_rng_below(&r, n)];
        }
        char *exact = malloc(keep ? keep : 1); /* its end is the end of the block */
        assert_non_null(exact);
        memcpy(exact, file, keep);
        if (nn_tensors_parse(&got, (pl_bytes){ exact, keep }, mem, NULL) == PL_OK) {
            look_at_everything(got, exact, keep);
            accepted++;
        }
        free(exact);
        free(file);
        pl_arena_free(mem);
    }
    assert_true(accepted > ROUNDS / 20 && accepted < ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(damaged_files_are_refused_or_stay_inside) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
