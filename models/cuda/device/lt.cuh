/* models/cuda/device/lt.cuh - matrix products of float32 by NVIDIA's cuBLASLt, which is opened at run time; a part of device.cu.
 *
 * One algorithm for each shape. What follows the molecules of a batch (rows: m, or k where `sums` is set) is not part of a shape:
 * the algorithm is chosen for LT_ROWS rows and then used for any number, k is not split and there is no workspace. So a number of
 * c is the same sum in the same order in every batch. An algorithm that refuses a number of rows is an error, never a reason to
 * take another. A shape that cuBLASLt cannot compute is computed by our kernels, for any number of rows.
 *
 * c[m][n] by rows is c^T [n][m] by columns = b^T a^T, so the library's A is our b, its B is our a, and its m is our n.
 * Reasons: docs/decisions/0087-cublaslt.md. */
#ifndef NN_CUDA_LT_CUH
#define NN_CUDA_LT_CUH

#include <dlfcn.h>

enum { LT_CANDIDATES = 16 };
static const int64_t LT_ROWS = 4096, LT_NUMBERS = 1 << 26; /* numbers of c in the largest product that an algorithm is checked for */

static const char *const lt_names[] = {
    "cublasLtGetVersion", "cublasLtGetStatusString", "cublasLtCreate", "cublasLtDestroy",
    "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatmulDescDestroy",
    "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutSetAttribute", "cublasLtMatrixLayoutDestroy",
    "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmulAlgoCheck", "cublasLtMatmulAlgoConfigGetAttribute", "cublasLtMatmul",
};
enum { LT_NAMES = sizeof lt_names / sizeof *lt_names };

static_assert(sizeof(lt_calls) == LT_NAMES * sizeof(void *), "a name for each function");

/* Filled with zeros before its members are set: compared byte by byte. n, k: as in nn_gpu_gemm, 0 where it follows the batch. */
typedef struct lt_shape {
    int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c;
    int32_t batch, align_a, align_b, align_c, turn_a, turn_b;
} lt_shape;

typedef struct lt_plan {
    lt_shape shape;
    void *desc, *a, *b, *c; /* the library's A and B: of our b and a */
    lt_algo algo;
    bool works; /* else our kernels compute it */
} lt_plan;

typedef struct lt_state {
    const lt_calls *call;
    void *handle;
    int32_t n, room;
    lt_plan *plan;
} lt_state;

/* ---- the library ---- */

static bool lt_bind(lt_calls *to, void *library, char *text, size_t n)
{
    void *function[LT_NAMES];

    for (int i = 0; i < LT_NAMES; i++) {
        function[i] = dlsym(library, lt_names[i]);
        if (!function[i]) {
            snprintf(text, n, "the library has no %s: it is not cuBLASLt of CUDA 12 or 13", lt_names[i]);
            return false;
        }
    }
    memcpy(to, function, sizeof function);
    return true;
}

static void *lt_library(char *text, size_t n)
{
    static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so.12" };
    const char *named = getenv("MOLSIEVE_CUBLASLT");
    void *found = NULL;

    if (named && *named) {
        found = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        snprintf(text, n, "MOLSIEVE_CUBLASLT: %s", found ? named : dlerror());
        return found;
    }
    for (int i = 0; i < 2 && !found; i++)
        found = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    snprintf(text, n, "neither libcublasLt.so.13 nor .12 is where the loader looks; MOLSIEVE_CUBLASLT can name it");
    return found;
}

/* Opens it at the first call. NULL: text says why not. Called under lt_lock. */
static const lt_calls *lt_open_once(char *text, size_t n)
{
    static lt_calls calls;
    static bool tried, opened;
    static char why[300];

    if (!tried) {
        void *library = lt_library(why, sizeof why);
        opened = library && lt_bind(&calls, library, why, sizeof why);
        if (opened)
            snprintf(why, sizeof why, "cuBLASLt %zu.%zu.%zu", calls.version() / 10000, calls.version() / 100 % 100,
                     calls.version() % 100);
    }
    tried = true;
    snprintf(text, n, "%s", why);
    return opened ? &calls : NULL;
}

static const lt_calls *lt_open(char *text, size_t n)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    const lt_calls *calls = lt_open_once(text, n);
    pthread_mutex_unlock(&lock);
    return calls;
}

static void lt_plan_free(const lt_calls *call, lt_plan *p)
{
    void *const layout[] = { p->a, p->b, p->c };

    if (p->desc)
        call->desc_free(p->desc);
    for (int i = 0; i < 3; i++)
        if (layout[i])
            call->layout_free(layout[i]);
}

static void lt_close(nn_gpu *g)
{
    lt_state *s = g->lt;

    if (!s)
        return;
    for (int32_t i = 0; i < s->n; i++)
        lt_plan_free(s->call, &s->plan[i]);
    if (s->handle)
        s->call->close(s->handle);
    free(s->plan);
    free(s);
    g->lt = NULL;
}

/* ops.h: cublaslt */
static bool gpu_cublaslt(nn_gpu *g, char *text, size_t n)
{
    const lt_calls *call = lt_open(text, n);
    int status;

    if (!g || g->lt || !call)
        return call != NULL;
    g->lt = (lt_state *)calloc(1, sizeof *g->lt);
    if (!g->lt) {
        snprintf(text, n, "no memory");
        return false;
    }
    g->lt->call = call;
    cudaSetDevice(g->device);
    status = call->open(&g->lt->handle);
    if (status == LT_OK)
        return true;
    snprintf(text, n, "cublasLtCreate: %s", call->status_text(status));
    lt_close(g);
    return false;
}

/* Keeps the first error of the library, as note does for those of CUDA. */
static bool lt_good(nn_gpu *g, int status, const char *what, const lt_shape *s)
{
    if (status == LT_OK)
        return true;
    if (g->first != cudaSuccess)
        return false;
    g->first = cudaErrorUnknown;
    snprintf(g->text, sizeof g->text, "%s, a product of %lld x %lld x %lld (0: any number): %s; products: own does without", what,
             (long long)s->m, (long long)s->n, (long long)s->k, g->lt->call->status_text(status));
    g->where = NULL; /* the text is complete */
    return false;
}

/* ---- shapes ---- */

/* n numbers, `step` apart, in each of `batch` matrices, `stride` apart. */
typedef struct lt_axis {
    int64_t n, step, stride;
    int32_t batch;
} lt_axis;

/* of_rows: it follows the batch, so how it is divided must not depend on n. Each component of an atom's features is then a matrix. */
static bool lt_axis_of(lt_axis *out, const nn_gpu_axis &x, int32_t n, bool of_rows)
{
    *out = lt_axis{ n, x.inner_step, 0, 1 };
    if (x.inner == INT32_MAX || (!of_rows && x.inner >= n))
        return true;
    if (n % x.inner)
        return false;
    if (of_rows && x.inner > 1)
        *out = lt_axis{ n / x.inner, x.outer_step, x.inner_step, x.inner };
    else if (x.inner > 1)
        *out = lt_axis{ x.inner, x.inner_step, x.outer_step, n / x.inner };
    else
        out->step = x.outer_step;
    return true;
}

typedef struct lt_axes {
    lt_axis a_m, a_k, b_k, b_n, c_m, c_n;
} lt_axes;

static bool lt_axes_of(lt_axes *x, const nn_gpu_gemm *p)
{
    bool rows = !p->sums;

    return lt_axis_of(&x->a_m, p->a_m, p->m, rows) && lt_axis_of(&x->c_m, p->c_m, p->m, rows)
        && lt_axis_of(&x->a_k, p->a_k, p->k, !rows) && lt_axis_of(&x->b_k, p->b_k, p->k, !rows)
        && lt_axis_of(&x->b_n, p->b_n, p->n, false) && lt_axis_of(&x->c_n, p->c_n, p->n, false)
        && x->a_m.batch == x->c_m.batch && x->b_n.batch == x->c_n.batch && x->a_k.batch == 1 && x->b_k.batch == 1
        && (x->a_m.batch == 1 || x->b_n.batch == 1) && x->c_n.step == 1;
}

/* The most that address and steps are multiples of, up to 16 bytes. */
static int32_t lt_align(const void *p, int64_t ld, int64_t stride)
{
    uint64_t all = (uint64_t)(uintptr_t)p | (uint64_t)(ld | stride) * sizeof(float) | 16;

    return (int32_t)(all & (~all + 1));
}

/* One operand: contiguous along `down`, ld from one to the next of `along`. false: it is neither this way nor the other. */
static bool lt_side(const lt_axis &down, const lt_axis &along, int64_t *ld)
{
    *ld = along.step;
    return down.step == 1 && along.step >= down.n;
}

static bool lt_shape_of(lt_shape *s, const lt_axes &x, const nn_gpu_gemm *p)
{
    memset(s, 0, sizeof *s);
    s->turn_a = !lt_side(x.a_k, x.a_m, &s->lda);
    s->turn_b = !lt_side(x.b_n, x.b_k, &s->ldb);
    if ((s->turn_a && !lt_side(x.a_m, x.a_k, &s->lda)) || (s->turn_b && !lt_side(x.b_k, x.b_n, &s->ldb)))
        return false;
    s->m = p->sums ? x.c_m.n : 0;
    s->n = x.c_n.n;
    s->k = p->sums ? 0 : p->k;
    s->ldc = x.c_m.step;
    s->batch = x.a_m.batch * x.b_n.batch;
    s->stride_a = x.a_m.stride;
    s->stride_b = x.b_n.stride;
    s->stride_c = x.c_m.stride + x.c_n.stride;
    s->align_a = lt_align(p->a, s->lda, s->stride_a);
    s->align_b = lt_align(p->b, s->ldb, s->stride_b);
    s->align_c = lt_align(p->c, s->ldc, s->stride_c);
    return s->ldc >= s->n;
}

/* ---- algorithms ---- */

/* turned: stored as [cols][rows]. */
static int lt_layout(const lt_calls *call, void **out, int64_t rows, int64_t cols, bool turned, int64_t ld, int32_t batch, int64_t stride)
{
    uint64_t high = (uint64_t)(turned ? cols : rows);
    uint64_t wide = (uint64_t)(turned ? rows : cols);
    int status = call->layout_new(out, LT_R_32F, high, wide, ld);

    if (status == LT_OK)
        status = call->layout_set(*out, LT_LAYOUT_BATCH, &batch, sizeof batch);
    return status == LT_OK ? call->layout_set(*out, LT_LAYOUT_STRIDE, &stride, sizeof stride) : status;
}

/* Sets the number of rows, in place of m or k. */
static int lt_rows(const lt_calls *call, const lt_plan *p, int64_t rows)
{
    const lt_shape *s = &p->shape;
    bool sums = s->k == 0;
    uint64_t n = (uint64_t)rows;
    /* Our a: [m][k] by rows, so [k][m] by columns, or turned; our b: [n][k] by columns, or turned. */
    int of_a = (s->turn_a != 0) != sums ? LT_LAYOUT_ROWS : LT_LAYOUT_COLS;
    int status = call->layout_set(p->b, of_a, &n, sizeof n);

    if (status != LT_OK)
        return status;
    if (sums)
        return call->layout_set(p->a, s->turn_b ? LT_LAYOUT_ROWS : LT_LAYOUT_COLS, &n, sizeof n);
    return call->layout_set(p->c, LT_LAYOUT_COLS, &n, sizeof n);
}

static int lt_describe(const lt_calls *call, lt_plan *p)
{
    const lt_shape *s = &p->shape;
    int64_t m = s->m ? s->m : LT_ROWS;
    int64_t k = s->k ? s->k : LT_ROWS;
    int32_t op_a = s->turn_b ? LT_OP_T : LT_OP_N;
    int32_t op_b = s->turn_a ? LT_OP_T : LT_OP_N;
    int status = call->desc_new(&p->desc, LT_COMPUTE_32F, LT_R_32F);

    if (status == LT_OK)
        status = call->desc_set(p->desc, LT_DESC_OP_A, &op_a, sizeof op_a);
    if (status == LT_OK)
        status = call->desc_set(p->desc, LT_DESC_OP_B, &op_b, sizeof op_b);
    if (status == LT_OK)
        status = lt_layout(call, &p->a, s->n, k, s->turn_b, s->ldb, s->batch, s->stride_b);
    if (status == LT_OK)
        status = lt_layout(call, &p->b, k, m, s->turn_a, s->lda, s->batch, s->stride_a);
    return status == LT_OK ? lt_layout(call, &p->c, s->n, m, false, s->ldc, s->batch, s->stride_c) : status;
}

/* Asks for algorithms without workspace that do not split k. */
static int lt_ask(const lt_state *l, const lt_plan *p, lt_found found[LT_CANDIDATES], int *n)
{
    const uint64_t none = 0;
    const uint32_t mask = LT_REDUCTION_NONE, align[] = { (uint32_t)p->shape.align_b, (uint32_t)p->shape.align_a,
                                                         (uint32_t)p->shape.align_c, (uint32_t)p->shape.align_c };
    void *pref = NULL;
    int status = l->call->pref_new(&pref);

    if (status == LT_OK)
        status = l->call->pref_set(pref, LT_PREF_WORKSPACE, &none, sizeof none);
    if (status == LT_OK)
        status = l->call->pref_set(pref, LT_PREF_REDUCTION, &mask, sizeof mask);
    for (int i = 0; i < 4 && status == LT_OK; i++)
        status = l->call->pref_set(pref, LT_PREF_ALIGN_A + i, &align[i], sizeof align[i]);
    if (status == LT_OK)
        status = l->call->find(l->handle, p->desc, p->a, p->b, p->c, p->c, pref, LT_CANDIDATES, found, n);
    if (pref)
        l->call->pref_free(pref);
    return status;
}

/* Whether it computes few rows and many, and does what it was asked for. */
static bool lt_suits(const lt_state *l, const lt_plan *p, const lt_found *f)
{
    const int64_t most = LT_NUMBERS / (p->shape.n * p->shape.batch), rows[] = { 1, 37, most > LT_ROWS ? most : LT_ROWS };
    int32_t splits = 0;
    size_t written = 0;
    lt_found result;
    bool good = f->state == LT_OK && f->workspace == 0
        && l->call->algo_get(&f->algo, LT_ALGO_SPLIT_K, &splits, sizeof splits, &written) == LT_OK && splits <= 1;

    for (int i = 0; i < 3 && good; i++)
        good = lt_rows(l->call, p, rows[i]) == LT_OK
            && l->call->check(l->handle, p->desc, p->a, p->b, p->c, p->c, &f->algo, &result) == LT_OK && result.workspace == 0;
    return good;
}

static bool lt_choose(nn_gpu *g, lt_plan *p)
{
    lt_found found[LT_CANDIDATES];
    int n = 0, status;

    memset(found, 0, sizeof found);
    if (!lt_good(g, lt_describe(g->lt->call, p), "cublasLtMatrixLayoutCreate", &p->shape))
        return false;
    status = lt_ask(g->lt, p, found, &n);
    if (status == LT_NOT_SUPPORTED)
        n = 0;
    else if (!lt_good(g, status, "cublasLtMatmulAlgoGetHeuristic", &p->shape))
        return false;
    for (int i = 0; i < n && !p->works; i++) {
        p->works = lt_suits(g->lt, p, &found[i]);
        p->algo = found[i].algo;
    }
    return p->works;
}

/* The plan of a shape, made at its first product. NULL: no memory, which ends the work: with our kernels the sums would be others. */
static lt_plan *lt_plan_of(nn_gpu *g, const lt_shape *s)
{
    lt_state *l = g->lt;

    for (int32_t i = 0; i < l->n; i++)
        if (!memcmp(&l->plan[i].shape, s, sizeof *s))
            return &l->plan[i];
    if (l->n == l->room) {
        int32_t room = 2 * l->room + 32;
        lt_plan *more = (lt_plan *)realloc(l->plan, (size_t)room * sizeof *more);
        if (!more) {
            note(g, cudaErrorMemoryAllocation, "plans of cuBLASLt");
            return NULL;
        }
        l->plan = more;
        l->room = room;
    }
    lt_plan *p = &l->plan[l->n++];
    memset(p, 0, sizeof *p);
    p->shape = *s;
    lt_choose(g, p);
    return p;
}

/* ---- products ---- */

/* The plan by which cuBLASLt computes it; NULL: our kernels compute it. */
static const lt_plan *lt_takes(nn_gpu *g, const nn_gpu_gemm *p)
{
    lt_shape s;
    lt_axes x;
    bool fits = p->by == NN_GPU_CUBLASLT && g->lt && p->precision == NN_GPU_FP32 && p->c_as == NN_GPU_FP32 && p->splits == 1
        && p->k > 0 && lt_axes_of(&x, p) && lt_shape_of(&s, x, p);
    const lt_plan *plan = fits ? lt_plan_of(g, &s) : NULL;

    return plan && plan->works ? plan : NULL;
}

/* What follows the batch: rows of a, or of each of the matrices into which its components are divided. */
static int64_t lt_rows_of(const nn_gpu_gemm *p)
{
    if (p->sums)
        return p->k;
    return p->a_m.inner == INT32_MAX ? p->m : p->m / p->a_m.inner;
}

static void lt_run(nn_gpu *g, const nn_gpu_gemm *p, bool add)
{
    const lt_plan *plan = lt_takes(g, p);
    const lt_calls *call = g->lt->call;
    const float one = 1, keep = add ? 1 : 0;

    if (!lt_good(g, lt_rows(call, plan, lt_rows_of(p)), "cublasLtMatrixLayoutSetAttribute", &plan->shape))
        return;
    lt_good(g, call->run(g->lt->handle, plan->desc, &one, p->b, plan->a, p->a, plan->b, &keep, p->c, plan->c, p->c, plan->c,
                         &plan->algo, NULL, 0, g->stream),
            "cublasLtMatmul", &plan->shape);
}

/* Products a[0 .. n-1], of which each but the last is added to the next (`more`): all by cuBLASLt, or none. */
static bool lt_chain(nn_gpu *g, const nn_gpu_gemm *a, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (!lt_takes(g, &a[i]))
            return false;
    cudaSetDevice(g->device);
    for (int32_t i = 0; i < n; i++)
        lt_run(g, &a[i], i ? true : a[i].add);
    return true;
}

#endif
