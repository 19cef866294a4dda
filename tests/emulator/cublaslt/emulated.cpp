/* SPDX-License-Identifier: Apache-2.0 */
/* The part of cuBLASLt that models/cuda/device/lt.cuh opens, in plain loops: a shared library with the names, the numbers and the
 * sizes of the real one. Products are kernels of the emulated stream, in graphs, too.
 *
 * As of the real one, what is best depends on the number of rows, here each number has its own order of sums, and the first
 * algorithm that it offers refuses a single row. So an engine that asks for each batch gives other bytes, which tests see. What
 * the real one forbids or leaves undefined ends the program.
 *
 * MOLSIEVE_EMULATOR_CUBLASLT=FUNCTION:N: its Nth call fails, or with `always` each. =none: no algorithm for any product. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "emulator/queue.h"
#include "models/cuda/device/lt.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

enum { MAGIC = 0x6c74, STATUS_INVALID = 7, STATUS_INTERNAL = 14, LAST = 1 << 30 };

struct emu_desc {
    int32_t op[2] = { LT_OP_N, LT_OP_N };
};

struct emu_layout {
    uint64_t rows, cols;
    int64_t ld, stride = 0;
    int32_t batch = 1;
};

struct emu_pref {
    uint64_t workspace = LAST;
    uint32_t mask = 7, align[4] = { 256, 256, 256, 256 };
};

static long emu_products, emu_asked;

EXPORT long emu_cublaslt_products(void) { return emu_products; }
EXPORT long emu_cublaslt_asked(void) { return emu_asked; }

[[noreturn]] static void refuse(const char *what)
{
    fprintf(stderr, "emulated cuBLASLt: %s\n", what);
    abort();
}

/* Whether this call of the function is the one that fails. */
static bool fails(const char *function, long call)
{
    const char *wanted = getenv("MOLSIEVE_EMULATOR_CUBLASLT"), *number = wanted ? strchr(wanted, ':') : nullptr;

    return number && std::string(wanted, number) == function &&
           (!strcmp(number, ":always") || call == strtol(number + 1, nullptr, 10));
}

template <class T> static void read(T *to, const void *value, size_t bytes)
{
    if (bytes != sizeof *to)
        refuse("an attribute of another size");
    memcpy(to, value, bytes);
}

EXPORT size_t cublasLtGetVersion(void) { return 130100; }
EXPORT const char *cublasLtGetStatusString(int status)
{
    if (status == LT_NOT_SUPPORTED)
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    return status == STATUS_INVALID ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_INTERNAL_ERROR";
}

EXPORT int cublasLtCreate(void **handle)
{
    static long calls;

    *handle = fails("cublasLtCreate", ++calls) ? nullptr : new int(MAGIC);
    if (!*handle)
        return STATUS_INTERNAL;
    return LT_OK;
}

EXPORT int cublasLtDestroy(void *handle) { return delete (int *)handle, LT_OK; }

/* ---- descriptors ---- */

EXPORT int cublasLtMatmulDescCreate(void **desc, int compute, int scale)
{
    if (compute != LT_COMPUTE_32F || scale != LT_R_32F)
        return LT_NOT_SUPPORTED;
    *desc = new emu_desc();
    return LT_OK;
}

EXPORT int cublasLtMatmulDescSetAttribute(void *desc, int what, const void *value, size_t bytes)
{
    if (what != LT_DESC_OP_A && what != LT_DESC_OP_B)
        return STATUS_INVALID;
    read(&((emu_desc *)desc)->op[what - LT_DESC_OP_A], value, bytes);
    return LT_OK;
}

EXPORT int cublasLtMatmulDescDestroy(void *desc) { return delete (emu_desc *)desc, LT_OK; }

EXPORT int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    if (type != LT_R_32F || ld < (int64_t)rows)
        return STATUS_INVALID;
    *layout = new emu_layout{ rows, cols, ld };
    return LT_OK;
}

EXPORT int cublasLtMatrixLayoutSetAttribute(void *layout, int what, const void *value, size_t bytes)
{
    emu_layout *l = (emu_layout *)layout;

    switch (what) {
    case LT_LAYOUT_ROWS: read(&l->rows, value, bytes); break;
    case LT_LAYOUT_COLS: read(&l->cols, value, bytes); break;
    case LT_LAYOUT_BATCH: read(&l->batch, value, bytes); break;
    case LT_LAYOUT_STRIDE: read(&l->stride, value, bytes); break;
    default: return STATUS_INVALID;
    }
    return LT_OK;
}

EXPORT int cublasLtMatrixLayoutDestroy(void *layout) { return delete (emu_layout *)layout, LT_OK; }

EXPORT int cublasLtMatmulPreferenceCreate(void **pref) { return *pref = new emu_pref(), LT_OK; }

EXPORT int cublasLtMatmulPreferenceSetAttribute(void *pref, int what, const void *value, size_t bytes)
{
    emu_pref *p = (emu_pref *)pref;

    if (what == LT_PREF_WORKSPACE)
        read(&p->workspace, value, bytes);
    else if (what == LT_PREF_REDUCTION)
        read(&p->mask, value, bytes);
    else if (what >= LT_PREF_ALIGN_A && what < LT_PREF_ALIGN_A + 4)
        read(&p->align[what - LT_PREF_ALIGN_A], value, bytes);
    else
        return STATUS_INVALID;
    return LT_OK;
}

EXPORT int cublasLtMatmulPreferenceDestroy(void *pref) { return delete (emu_pref *)pref, LT_OK; }

/* ---- algorithms ---- */

/* data: MAGIC, partial sums of k, least number of columns, splits of k, alignments of a, b and c. */
enum { OF_MAGIC, OF_SUMS, OF_LEAST, OF_SPLITS, OF_ALIGN };

struct emu_problem {
    const emu_desc *desc;
    const emu_layout *a, *b, *c;
    uint64_t m, n, k;
};

static emu_problem problem_of(void *desc, void *a, void *b, void *c, void *d)
{
    emu_problem p = { (emu_desc *)desc, (emu_layout *)a, (emu_layout *)b, (emu_layout *)c, 0, 0, 0 };
    bool turn_a = p.desc->op[0] == LT_OP_T, turn_b = p.desc->op[1] == LT_OP_T;

    if (c != d)
        refuse("c and d have two layouts, which this program never wants");
    p.m = p.c->rows;
    p.n = p.c->cols;
    p.k = turn_a ? p.a->rows : p.a->cols;
    if ((turn_a ? p.a->cols : p.a->rows) != p.m || (turn_b ? p.b->rows : p.b->cols) != p.n ||
        (turn_b ? p.b->cols : p.b->rows) != p.k)
        refuse("sizes of a, b and c do not fit together");
    for (const emu_layout *l : { p.a, p.b, p.c })
        if (l->ld < (int64_t)l->rows || l->batch != p.c->batch)
            refuse("columns overlap, or the numbers of matrices differ");
    return p;
}

static void offer(lt_found *f, const emu_pref *p, uint64_t sums, uint64_t least, uint64_t splits, int state)
{
    memset(f, 0, sizeof *f);
    f->algo.data[OF_MAGIC] = MAGIC;
    f->algo.data[OF_SUMS] = sums;
    f->algo.data[OF_LEAST] = least;
    f->algo.data[OF_SPLITS] = splits;
    for (int i = 0; i < 3; i++)
        f->algo.data[OF_ALIGN + i] = p->align[i];
    f->state = state;
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d, void *pref, int max,
                                          lt_found *found, int *n)
{
    const emu_pref *p = (emu_pref *)pref;
    emu_problem x = problem_of(desc, a, b, c, d);
    const char *none = getenv("MOLSIEVE_EMULATOR_CUBLASLT");

    if (!handle || fails("cublasLtMatmulAlgoGetHeuristic", ++emu_asked))
        return STATUS_INTERNAL;
    *n = 0;
    if (max < 4 || (none && !strcmp(none, "none")))
        return LT_NOT_SUPPORTED;
    uint64_t rows = x.n * x.k;                        /* one of them follows the batch */
    if (p->mask != LT_REDUCTION_NONE || p->workspace) /* faster: k in four parts */
        offer(&found[(*n)++], p, 1, 1, 4, LT_OK);
    offer(&found[(*n)++], p, 2, 1, 1, LT_NOT_SUPPORTED);
    offer(&found[(*n)++], p, 4, 2, 1, LT_OK); /* not a single column */
    offer(&found[(*n)++], p, 2 + rows % 7, 1, 1, LT_OK);
    return LT_OK;
}

static int algo_state(const emu_problem &x, const lt_algo *algo)
{
    if (algo->data[OF_MAGIC] != MAGIC)
        refuse("an algorithm that it did not offer");
    return x.n >= algo->data[OF_LEAST] ? LT_OK : LT_NOT_SUPPORTED;
}

EXPORT int cublasLtMatmulAlgoConfigGetAttribute(const lt_algo *algo, int what, void *value, size_t bytes, size_t *written)
{
    if (what != LT_ALGO_SPLIT_K || bytes != sizeof(int32_t))
        return STATUS_INVALID;
    int32_t splits = (int32_t)algo->data[OF_SPLITS];
    memcpy(value, &splits, bytes);
    *written = bytes;
    return LT_OK;
}

#ifndef WITHOUT_CHECK
EXPORT int cublasLtMatmulAlgoCheck(void *, void *desc, void *a, void *b, void *c, void *d, const lt_algo *algo, lt_found *result)
{
    memset(result, 0, sizeof *result);
    return result->state = algo_state(problem_of(desc, a, b, c, d), algo);
}
#endif

/* ---- products ---- */

struct emu_product {
    emu_layout a, b, c;
    bool turn_a, turn_b;
    uint64_t k, sums;
    float alpha, beta;
    const float *pa, *pb;
    float *pc;
};

/* k in so many partial sums, which are added in order. */
static float number_of(const emu_product &p, const float *a, const float *b, uint64_t i, uint64_t j)
{
    float part[8] = { 0 }, sum = 0;

    for (uint64_t k = 0; k < p.k; k++)
        part[k % p.sums] += a[p.turn_a ? k + i * (uint64_t)p.a.ld : i + k * (uint64_t)p.a.ld] *
                            b[p.turn_b ? j + k * (uint64_t)p.b.ld : k + j * (uint64_t)p.b.ld];
    for (uint64_t q = 0; q < p.sums; q++)
        sum += part[q];
    return sum;
}

static bool product_run(const emu_product &p)
{
    for (int32_t q = 0; q < p.c.batch; q++)
        for (uint64_t j = 0; j < p.c.cols; j++)
            for (uint64_t i = 0; i < p.c.rows; i++) {
                float *c = p.pc + q * p.c.stride + (int64_t)(i + j * (uint64_t)p.c.ld);
                float sum = number_of(p, p.pa + q * p.a.stride, p.pb + q * p.b.stride, i, j);
                *c = p.alpha * sum + (p.beta != 0 ? p.beta * *c : 0); /* c may be uninitialised without beta */
            }
    return true;
}

EXPORT int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *la, const void *b, void *lb,
                          const void *beta, const void *c, void *lc, void *d, void *ld, const lt_algo *algo, void *workspace,
                          size_t bytes, void *stream)
{
    emu_problem x = problem_of(desc, la, lb, lc, ld);
    const void *p[] = { a, b, d };

    if (!handle || !algo || c != d || workspace || bytes)
        refuse("a product without handle or algorithm, not in place, or with a workspace");
    for (int i = 0; i < 3; i++)
        if ((uintptr_t)p[i] % algo->data[OF_ALIGN + i])
            refuse("an address that is not aligned as was promised");
    if (fails("cublasLtMatmul", ++emu_products))
        return STATUS_INTERNAL;
    if (algo_state(x, algo) != LT_OK)
        return algo_state(x, algo);
    emu_product product = { *x.a,
                            *x.b,
                            *x.c,
                            x.desc->op[0] == LT_OP_T,
                            x.desc->op[1] == LT_OP_T,
                            x.k,
                            algo->data[OF_SUMS],
                            *(const float *)alpha,
                            *(const float *)beta,
                            (const float *)a,
                            (const float *)b,
                            (float *)d };
    emu_stream *s = (emu_stream *)stream;
    s->kernel(s, { "cublasLt", [product] { return product_run(product); } });
    return LT_OK;
}
