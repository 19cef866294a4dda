/* SPDX-License-Identifier: Apache-2.0 */
/* A program and a GPU part that were not built together are told, by what builds structures and by the engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/structures/device.h"
#include "models/cuda/plugin.h"

static const char other[] = ": libmolsieve_cuda.so belongs to another version of this program";

static void structures_are_built_by_the_gpu_part_of_this_version(void **state)
{
    char text[100] = "";
    pl_error err;

    (void)state;
    for (int k = 0; k < 2; k++) {
        err = (pl_error){ 0 };
        assert_int_equal(ch_device_find(3, text, sizeof text, &err), PL_ECONFIG);
        assert_memory_equal(err.text, "building structures on a GPU", 28);
        assert_string_equal(err.text + 28, other);
    }
    assert_int_equal(ch_device_find(3, text, sizeof text, &err), PL_OK);
    assert_string_equal(text, "GPU 3");
}

static void the_engine_runs_by_the_gpu_part_of_this_version(void **state)
{
    const nn_gpu_ops *ops = NULL;
    pl_error err;

    (void)state;
    for (int k = 0; k < 2; k++) {
        err = (pl_error){ 0 };
        assert_int_equal(nn_cuda_plugin(&ops, &err), PL_ECONFIG);
        assert_memory_equal(err.text, "engine cuda", 11);
        assert_string_equal(err.text + 11, other);
    }
    assert_int_equal(nn_cuda_plugin(&ops, &err), PL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structures_are_built_by_the_gpu_part_of_this_version),
        cmocka_unit_test(the_engine_runs_by_the_gpu_part_of_this_version),
    };

    if (setenv("MOLSIEVE_PLUGINS", OTHER, 1) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
