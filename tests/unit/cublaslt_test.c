/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of models/cuda/device/lt.h are those of NVIDIA's header, where that is installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/cuda/device/lt.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

static void numbers_and_sizes_are_those_of_the_header(void **state)
{
    (void)state;
    assert_int_equal(LT_OK, CUBLAS_STATUS_SUCCESS);
    assert_int_equal(LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(LT_R_32F, CUDA_R_32F);
    assert_int_equal(LT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
    assert_int_equal(LT_OP_N, CUBLAS_OP_N);
    assert_int_equal(LT_OP_T, CUBLAS_OP_T);
    assert_int_equal(LT_DESC_OP_A, CUBLASLT_MATMUL_DESC_TRANSA);
    assert_int_equal(LT_DESC_OP_B, CUBLASLT_MATMUL_DESC_TRANSB);
    assert_int_equal(LT_LAYOUT_ROWS, CUBLASLT_MATRIX_LAYOUT_ROWS);
    assert_int_equal(LT_LAYOUT_COLS, CUBLASLT_MATRIX_LAYOUT_COLS);
    assert_int_equal(LT_LAYOUT_BATCH, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
    assert_int_equal(LT_LAYOUT_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
    assert_int_equal(LT_PREF_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
    assert_int_equal(LT_PREF_REDUCTION, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
    assert_int_equal(LT_PREF_ALIGN_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
    assert_int_equal(LT_PREF_ALIGN_A + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
    assert_int_equal(LT_PREF_ALIGN_A + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
    assert_int_equal(LT_PREF_ALIGN_A + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
    assert_int_equal(LT_REDUCTION_NONE, CUBLASLT_REDUCTION_SCHEME_NONE);
    assert_int_equal(LT_ALGO_SPLIT_K, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
    assert_int_equal(sizeof(lt_algo), sizeof(cublasLtMatmulAlgo_t));
    assert_int_equal(sizeof(lt_found), sizeof(cublasLtMatmulHeuristicResult_t));
    assert_int_equal(offsetof(lt_found, workspace), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
    assert_int_equal(offsetof(lt_found, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
}
#else
static void numbers_and_sizes_are_those_of_the_header(void **state)
{
    (void)state;
    print_message("cublasLt.h is not installed\n");
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(numbers_and_sizes_are_those_of_the_header) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
