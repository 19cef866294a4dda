/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <math.h>

#include "pipeline/base/rng.h"
#include "stages/bench/bench.h"

enum { H = NN_RADIAL_HIDDEN, CHUNK_MAX = 306, ROW_MAJOR = 101, AS_IS = 111, TURNED = 112 }; /* of cblas.h */

typedef void sgemm_fn(int order, int turn_a, int turn_b, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                      int ldb, float beta, float *c, int ldc);

typedef struct conv {
    st_bench_conv s;
    int x_size, y_size, rows, t_size, basis_size; /* floats of an edge         */
    const float *basis;                           /* [edges][basis_size]       */
    float *w, *dw;                                /* [rows][H]                 */
    float *kept[2];                               /* R and T of every edge     */
} conv;

typedef struct bench {
    sgemm_fn *sgemm;
    int n_edges, n_convs;
    conv *conv;
    float *h, *dh;         /* [edges][H]                                */
    float *x, *dx, *g, *y; /* [edges][most]                             */
    float *r, *t, *dt;     /* [CHUNK_MAX][..], [CHUNK_MAX][..], [..]  */
} bench;

/* Where a chunk's R and T are. */
typedef struct place {
    float *r, *t;
} place;

/* ---- the library --------------------------------------------------------- */

static sgemm_fn *blas_load(const char **name)
{
    static const char *const names[] = { "libopenblas.so.0", "libopenblas.so", "libmkl_rt.so.2", "libmkl_rt.so" };
    sgemm_fn *f = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && f == NULL; i++) {
        void *lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        void (*threads)(int) = NULL;
        if (lib == NULL)
            continue;
        *(void **)&f = dlsym(lib, "cblas_sgemm");
        *(void **)&threads = dlsym(lib, "openblas_set_num_threads");
        if (threads == NULL)
            *(void **)&threads = dlsym(lib, "MKL_Set_Num_Threads");
        if (threads != NULL)
            threads(1);
        *name = names[i];
    }
    return f;
}

/* ---- one chunk of edges -------------------------------------------------- */

static void chunk_forward(const bench *b, const conv *c, int first, int n, place at, bool keep)
{
    int ci = c->s.c_in, co = c->s.c_out, f = c->s.f, di = c->s.d_in, dn = c->s.d_out;

    b->sgemm(ROW_MAJOR, AS_IS, TURNED, n, c->rows, H, 1, b->h + (size_t)first * H, H, c->w, H, 0, at.r, c->rows);
    for (int e = 0; e < n; e++) {
        float *t = at.t + (keep ? (size_t)e * (size_t)c->t_size : 0);
        b->sgemm(ROW_MAJOR, AS_IS, AS_IS, ci, f * dn, di, 1, b->x + (size_t)(first + e) * (size_t)c->x_size, di,
                 c->basis + (size_t)(first + e) * (size_t)c->basis_size, f * dn, 0, t, f * dn);
        b->sgemm(ROW_MAJOR, AS_IS, AS_IS, co, dn, ci * f, 1, at.r + (size_t)e * (size_t)c->rows, ci * f, t, dn, 0,
                 b->y + (size_t)(first + e) * (size_t)c->y_size, dn);
    }
}

static void chunk_backward(const bench *b, const conv *c, int first, int n, place at)
{
    int ci = c->s.c_in, co = c->s.c_out, f = c->s.f, di = c->s.d_in, dn = c->s.d_out, cf = ci * f;

    for (int e = 0; e < n; e++) {
        float *r = at.r + (size_t)e * (size_t)c->rows;
        const float *g = b->g + (size_t)(first + e) * (size_t)c->y_size;
        b->sgemm(ROW_MAJOR, TURNED, AS_IS, cf, dn, co, 1, r, cf, g, dn, 0, b->dt, dn);
        b->sgemm(ROW_MAJOR, AS_IS, TURNED, co, cf, dn, 1, g, dn, at.t + (size_t)e * (size_t)c->t_size, dn, 0, r, cf);
        b->sgemm(ROW_MAJOR, AS_IS, TURNED, ci, di, f * dn, 1, b->dt, f * dn, c->basis + (size_t)(first + e) * (size_t)c->basis_size,
                 f * dn, 0, b->dx + (size_t)(first + e) * (size_t)c->x_size, di);
    }
    b->sgemm(ROW_MAJOR, AS_IS, AS_IS, n, H, c->rows, 1, at.r, c->rows, c->w, H, 0, b->dh + (size_t)first * H, H);
    b->sgemm(ROW_MAJOR, TURNED, AS_IS, c->rows, H, n, 1, at.r, c->rows, b->h + (size_t)first * H, H, 1, c->dw, H);
}

/* ---- passes over all convolutions ---------------------------------------- */

typedef enum mode { FORWARD, TRAIN_CHUNKS, TRAIN_KEPT } mode;

/* Backward of each chunk right after its forward pass. */
static void pass_chunks(const bench *b, int chunk, int n_edges, bool train)
{
    place at = { b->r, b->t };

    for (int k = 0; k < b->n_convs; k++)
        for (int first = 0; first < n_edges; first += chunk) {
            int n = n_edges - first < chunk ? n_edges - first : chunk;
            chunk_forward(b, &b->conv[k], first, n, at, train);
            if (train)
                chunk_backward(b, &b->conv[k], first, n, at);
        }
}

/* All convolutions forward, then all of them back, as a network must. */
static void pass_kept(const bench *b, int chunk, int n_edges)
{
    for (int k = 0; k < 2 * b->n_convs; k++) {
        const conv *c = &b->conv[k < b->n_convs ? k : 2 * b->n_convs - 1 - k];
        for (int first = 0; first < n_edges; first += chunk) {
            int n = n_edges - first < chunk ? n_edges - first : chunk;
            place at = { c->kept[0] + (size_t)first * (size_t)c->rows, c->kept[1] + (size_t)first * (size_t)c->t_size };
            if (k < b->n_convs)
                chunk_forward(b, c, first, n, at, true);
            else
                chunk_backward(b, c, first, n, at);
        }
    }
}

static double pass_seconds(const bench *b, int chunk, int n_edges, mode m, int repeats)
{
    double best = HUGE_VAL;

    for (int i = 0; i < repeats; i++) {
        double from = st_bench_now(1);
        if (m == TRAIN_KEPT)
            pass_kept(b, chunk, n_edges);
        else
            pass_chunks(b, chunk, n_edges, m == TRAIN_CHUNKS);
        best = fmin(best, st_bench_now(1) - from);
    }
    return best;
}

/* Arrays for as many edges as the largest chunk has. */
static int chunk_best(const bench *b, mode m)
{
    static const int sizes[] = { 16, 64, 128, CHUNK_MAX };
    int probe = b->n_edges < CHUNK_MAX ? b->n_edges : CHUNK_MAX, best = sizes[0];
    double min = HUGE_VAL;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double t = pass_seconds(b, sizes[i], probe, m, 2);
        if (t < min) {
            min = t;
            best = sizes[i];
        }
    }
    return best;
}

/* ---- data ---------------------------------------------------------------- */

static float *noise(pl_arena *mem, size_t n, double scale, uint64_t stream)
{
    float *x = PL_NEW(mem, float, n);
    pl_rng rng = pl_rng_at(7, stream, 0);

    for (size_t i = 0; x != NULL && i < n; i++)
        x[i] = (float)(scale * (2 * pl_rng_real(&rng) - 1));
    return x;
}

static int larger(int a, int b) { return a > b ? a : b; }

/* Convolutions with bases of the same shape share them, as the layers of a network do. */
static bool conv_fill(bench *b, int k, pl_arena *mem)
{
    conv *c = &b->conv[k];
    size_t e = (size_t)b->n_edges, n;

    c->x_size = c->s.c_in * c->s.d_in;
    c->y_size = c->s.c_out * c->s.d_out;
    c->rows = c->s.c_out * c->s.c_in * c->s.f;
    c->t_size = c->s.c_in * c->s.f * c->s.d_out;
    c->basis_size = c->s.d_in * c->s.f * c->s.d_out;
    n = (size_t)c->rows * H;
    for (int i = 0; i < k && c->basis == NULL; i++)
        c->basis = b->conv[i].basis_size == c->basis_size ? b->conv[i].basis : NULL;
    if (c->basis == NULL)
        c->basis = noise(mem, e * (size_t)c->basis_size, 0.5, 60 + (uint64_t)k);
    c->w = noise(mem, n, 0.2, 400 + (uint64_t)k);
    c->dw = PL_NEW(mem, float, n);
    c->kept[0] = PL_NEW(mem, float, e *(size_t)c->rows);
    c->kept[1] = PL_NEW(mem, float, e *(size_t)c->t_size);
    return c->basis != NULL && c->w != NULL && c->dw != NULL && c->kept[0] != NULL && c->kept[1] != NULL;
}

static pl_code bench_open(bench *b, const st_bench_case *c, pl_arena *mem, pl_error *err)
{
    st_bench_conv shape[ST_BENCH_CONVS];
    int n = st_bench_convs(shape, c->model), x = 1, y = 1, rows = 1, t = 1;
    size_t e = (size_t)c->batch.n_edges;
    bool good;

    b->n_edges = (int)e;
    b->conv = PL_NEW(mem, conv, n);
    good = b->conv != NULL;
    for (; good && b->n_convs < n; b->n_convs++) {
        conv *v = &b->conv[b->n_convs];
        v->s = shape[b->n_convs];
        good = conv_fill(b, b->n_convs, mem);
        x = larger(x, v->x_size);
        y = larger(y, v->y_size);
        rows = larger(rows, v->rows);
        t = larger(t, v->t_size);
    }
    b->h = noise(mem, e * H, 1, 50);
    b->x = noise(mem, e * (size_t)x, 1, 51);
    b->g = noise(mem, e * (size_t)y, 1, 52);
    b->dh = PL_NEW(mem, float, e *H);
    b->dx = PL_NEW(mem, float, e *(size_t)x);
    b->y = PL_NEW(mem, float, e *(size_t)y);
    b->r = PL_NEW(mem, float, CHUNK_MAX *(size_t)rows);
    b->t = PL_NEW(mem, float, CHUNK_MAX *(size_t)t);
    b->dt = PL_NEW(mem, float, t);
    if (!good || b->h == NULL || b->x == NULL || b->g == NULL || b->dh == NULL || b->dx == NULL || b->y == NULL || b->r == NULL ||
        b->t == NULL || b->dt == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the reference formulation of %d edges", b->n_edges);
    for (size_t i = 0; i < e * H; i++)
        b->h[i] = b->h[i] > 0 ? b->h[i] : 0;
    return PL_OK;
}

int32_t st_bench_blas_edges(const nn_se3 *model, double bytes)
{
    st_bench_conv shape[ST_BENCH_CONVS];
    double edge = 0, max = 0;

    for (int i = st_bench_convs(shape, model) - 1; i >= 0; i--) {
        double kept = 4.0 * shape[i].c_in * shape[i].f * (shape[i].c_out + shape[i].d_out);
        edge += kept + 4.0 * shape[i].d_in * shape[i].f * shape[i].d_out;
        max = fmax(max, kept);
    }
    edge = (bytes - CHUNK_MAX * max) / (edge + 1);
    if (edge < 1)
        return 1;
    return edge > 1200 ? 1200 : (int32_t)edge;
}

/* Element k of output o of the first edge, in double precision. */
static double plainly(const bench *b, const conv *c, int o, int k)
{
    int cf = c->s.c_in * c->s.f;
    double sum = 0;

    for (int i = 0; i < cf; i++) {
        double r = 0, t = 0;
        for (int j = 0; j < H; j++)
            r += (double)c->w[((size_t)o * (size_t)cf + (size_t)i) * H + (size_t)j] * b->h[j];
        for (int l = 0; l < c->s.d_in; l++)
            t += (double)b->x[i / c->s.f * c->s.d_in + l] * c->basis[(l * c->s.f + i % c->s.f) * c->s.d_out + k];
        sum += r * t;
    }
    return sum;
}

/* The largest error at the first edge of every convolution; NaN if a number is not finite. */
static double difference(const bench *b)
{
    double off = 0, scale = 0;

    for (int v = 0; v < b->n_convs; v++) {
        const conv *c = &b->conv[v];
        chunk_forward(b, c, 0, 1, (place){ b->r, b->t }, false);
        for (int o = 0; o < c->s.c_out; o++)
            for (int k = 0; k < c->s.d_out; k++) {
                double want = plainly(b, c, o, k), d = fabs(want - (double)b->y[o * c->s.d_out + k]);
                off = d > off || isnan(d) ? d : off;
                scale = fmax(scale, fabs(want));
            }
    }
    return off / scale;
}

pl_code st_bench_blas_run(st_bench_blas *out, const st_bench_case *c, int repeats, pl_arena *mem, pl_error *err)
{
    bench b = { .sgemm = blas_load(&out->library) };
    pl_code code = b.sgemm != NULL ? bench_open(&b, c, mem, err)
                                   : pl_fail(err, PL_EDEVICE, "not measured: OpenBLAS (libopenblas.so.0) is not installed");

    if (code != PL_OK)
        return code;
    out->off = difference(&b);
    if (!(out->off < 1e-4))
        return pl_fail(err, PL_EDEVICE, "%s is off by %g from plain loops", out->library, out->off);
    out->chunk_forward = chunk_best(&b, FORWARD);
    out->chunk_train = chunk_best(&b, TRAIN_CHUNKS);
    out->forward = pass_seconds(&b, out->chunk_forward, b.n_edges, FORWARD, repeats);
    out->train = pass_seconds(&b, chunk_best(&b, TRAIN_KEPT), b.n_edges, TRAIN_KEPT, repeats);
    out->train_cached = pass_seconds(&b, out->chunk_train, b.n_edges, TRAIN_CHUNKS, repeats);
    return PL_OK;
}
