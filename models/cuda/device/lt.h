/* models/cuda/device/lt.h - the part of cuBLASLt's interface that lt.cuh calls.
 *
 * The library is opened at run time, so nothing here needs its header; numbers and sizes are those of CUDA 12 and 13, and
 * tests/unit/cublaslt_test.c compares them with cublasLt.h where that is installed. Matrices are stored by columns. Descriptors
 * are pointers to what the library allocates. */
#ifndef NN_CUDA_LT_H
#define NN_CUDA_LT_H

#include <stddef.h>
#include <stdint.h>

enum {
    LT_OK = 0,
    LT_NOT_SUPPORTED = 15,
    LT_R_32F = 0,        /* CUDA_R_32F                                        */
    LT_COMPUTE_32F = 68, /* CUBLAS_COMPUTE_32F: factors are not rounded       */
    LT_OP_N = 0,
    LT_OP_T = 1,
    LT_DESC_OP_A = 3, /* CUBLASLT_MATMUL_DESC_TRANSA, int32_t              */
    LT_DESC_OP_B = 4,
    LT_LAYOUT_ROWS = 2, /* CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t             */
    LT_LAYOUT_COLS = 3,
    LT_LAYOUT_BATCH = 5,   /* .._BATCH_COUNT, int32_t                           */
    LT_LAYOUT_STRIDE = 6,  /* .._STRIDED_BATCH_OFFSET, int64_t, in numbers      */
    LT_PREF_WORKSPACE = 1, /* CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t */
    LT_PREF_REDUCTION = 3, /* .._REDUCTION_SCHEME_MASK, uint32_t                */
    LT_PREF_ALIGN_A = 5,   /* .._MIN_ALIGNMENT_A_BYTES, uint32_t; then B, C, D  */
    LT_REDUCTION_NONE = 0, /* CUBLASLT_REDUCTION_SCHEME_NONE: k is not split    */
    LT_ALGO_SPLIT_K = 2    /* CUBLASLT_ALGO_CONFIG_SPLITK_NUM, int32_t          */
};

typedef struct lt_algo { /* cublasLtMatmulAlgo_t */
    uint64_t data[8];
} lt_algo;

typedef struct lt_found { /* cublasLtMatmulHeuristicResult_t */
    lt_algo algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} lt_found;

/* Functions of the library, in the order of lt_names (lt.cuh). Each but the first two returns a status, LT_OK or why not. */
typedef struct lt_calls {
    size_t (*version)(void); /* 130100 is 13.1.0, 120404 is 12.4.4 */
    const char *(*status_text)(int status);
    int (*open)(void **handle);
    int (*close)(void *handle);
    int (*desc_new)(void **desc, int compute, int scale);
    int (*desc_set)(void *desc, int what, const void *value, size_t bytes);
    int (*desc_free)(void *desc);
    int (*layout_new)(void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
    int (*layout_set)(void *layout, int what, const void *value, size_t bytes);
    int (*layout_free)(void *layout);
    int (*pref_new)(void **pref);
    int (*pref_set)(void *pref, int what, const void *value, size_t bytes);
    int (*pref_free)(void *pref);
    int (*find)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *pref, int max, lt_found *found, int *n);
    int (*check)(void *handle, void *desc, void *a, void *b, void *c, void *d, const lt_algo *algo, lt_found *result);
    int (*algo_get)(const lt_algo *algo, int what, void *value, size_t bytes, size_t *written);
    int (*run)(void *handle, void *desc, const void *alpha, const void *a, void *la, const void *b, void *lb, const void *beta,
               const void *c, void *lc, void *d, void *ld, const lt_algo *algo, void *workspace, size_t bytes, void *stream);
} lt_calls;

#endif
