/* SPDX-License-Identifier: Apache-2.0 */
/* What computes each kind of product of float32 (docs/decisions/0087-cublaslt.md). */
#include "models/cuda/cuda_engine.h"

enum { TEXT = 240 };

/* With products: auto. cuBLASLt is faster for tables alone, and last digits may not depend on what is installed. */
static const nn_gpu_provider by_kind[NN_CUDA_KINDS] = {
    [NN_CUDA_OF_TABLES] = NN_GPU_OWN,
    [NN_CUDA_OF_TABLES_BACK] = NN_GPU_OWN,
    [NN_CUDA_OF_LINEAR] = NN_GPU_OWN,
    [NN_CUDA_OF_LINEAR_BACK] = NN_GPU_OWN,
};

static nn_gpu_provider wanted(nn_products products, int kind)
{
    if (products == NN_PRODUCTS_AUTO)
        return by_kind[kind];
    return products == NN_PRODUCTS_CUBLASLT ? NN_GPU_CUBLASLT : NN_GPU_OWN;
}

static bool any_wanted(nn_products products)
{
    for (int i = 0; i < NN_CUDA_KINDS; i++)
        if (wanted(products, i) == NN_GPU_CUBLASLT)
            return true;
    return false;
}

static bool is_float32(const nn_engine_conf *c)
{
    bool tables = c->of_contract == NN_PREC_FP32 || c->of_contract == NN_PREC_BF16X3; /* which are stored in float32 */

    return c->of_linear == NN_PREC_FP32 || (c->of_radial == NN_PREC_FP32 && tables);
}

pl_code nn_cuda_products_check(const nn_engine_conf *c, const nn_gpu_ops *ops, pl_error *err)
{
    char text[TEXT];

    if (c->products != NN_PRODUCTS_CUBLASLT)
        return PL_OK;
    if (!is_float32(c))
        return pl_fail(
            err, PL_ECONFIG,
            "engine cuda: products: cublaslt computes products of fp32 alone, and the precision has none; set products: own");
    if (!ops->cublaslt(NULL, text, sizeof text))
        return pl_fail(err, PL_ECONFIG, "engine cuda: products: cublaslt: %s; install it, or set products: own", text);
    return PL_OK;
}

pl_code nn_cuda_products_open(nn_engine *e, pl_error *err)
{
    nn_products products = e->conf.products;
    char text[TEXT];

    if (any_wanted(products) && !e->ops->cublaslt(e->gpu, text, sizeof text)) {
        if (products == NN_PRODUCTS_CUBLASLT)
            return pl_fail(err, PL_EDEVICE, "engine cuda: products: cublaslt: %s; set products: own", text);
        products = NN_PRODUCTS_OWN;
    }
    for (int i = 0; i < NN_CUDA_KINDS; i++)
        e->by[i] = wanted(products, i);
    return PL_OK;
}
