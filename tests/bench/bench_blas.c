/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_blas.h"

#include <cblas.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "models/basis.h"
#include "models/sh.h"
#include "pipeline/base/rng.h"

enum { H = NN_RADIAL_HIDDEN, CHUNK_MOST = 306, HIDDEN_LAYERS = 6 };

/* One radial group: R [c_out][c_in * f] of an edge, basis [d_in][f * d_out]. */
typedef struct conv {
    int c_in, c_out, f, d_in, d_out;
    const float *basis;       /* [edges][d_in][f * d_out] */
    float *w, *dw;            /* [c_out * c_in * f][H]    */
} conv;

typedef struct bench {
    int n_edges, n_convs;
    conv conv[16];
    float *h, *dh;            /* [edges][H]               */
    float *x, *dx;            /* [edges][32][16]          */
    float *g, *y;             /* [edges][32][16]          */
    float *r, *t, *dt;        /* [CHUNK_MOST][..], [CHUNK_MOST][..], [..] */
    float *kept[16][2];       /* R and T of every convolution and edge    */
} bench;

/* Where a chunk's R and T are. */
typedef struct place {
    float *r, *t;
} place;

static int rows_of(const conv *c)
{
    return c->c_out * c->c_in * c->f;
}

static int t_of(const conv *c)
{
    return c->c_in * c->f * c->d_out;
}

/* row-major c (=, +=) op(a) op(b) */
static void gemm(int m, int n, int k, const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
}

static void chunk_forward(const bench *b, const conv *c, int first, int n, place at, bool keep)
{
    int rows = rows_of(c), size = c->c_in * c->d_in, nb = c->d_in * c->f * c->d_out;

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, rows, H, 1, b->h + (size_t)first * H, H, c->w, H, 0,
                at.r, rows);
    for (int e = 0; e < n; e++) {
        float *t = at.t + (keep ? (size_t)e * (size_t)t_of(c) : 0);
        gemm(c->c_in, c->f * c->d_out, c->d_in, b->x + (size_t)(first + e) * (size_t)size,
             c->basis + (size_t)(first + e) * (size_t)nb, t);
        gemm(c->c_out, c->d_out, c->c_in * c->f, at.r + (size_t)e * (size_t)rows, t,
             b->y + (size_t)(first + e) * (size_t)(c->c_out * c->d_out));
    }
}

static void chunk_backward(const bench *b, const conv *c, int first, int n, place at)
{
    int rows = rows_of(c), size = c->c_in * c->d_in, nb = c->d_in * c->f * c->d_out, cf = c->c_in * c->f;

    for (int e = 0; e < n; e++) {
        float *r = at.r + (size_t)e * (size_t)rows;
        const float *g = b->g + (size_t)(first + e) * (size_t)(c->c_out * c->d_out);
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, cf, c->d_out, c->c_out, 1, r, cf, g, c->d_out, 0, b->dt,
                    c->d_out);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, c->c_out, cf, c->d_out, 1, g, c->d_out,
                    at.t + (size_t)e * (size_t)t_of(c), c->d_out, 0, r, cf);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, c->c_in, c->d_in, c->f * c->d_out, 1, b->dt,
                    c->f * c->d_out, c->basis + (size_t)(first + e) * (size_t)nb, c->f * c->d_out, 0,
                    b->dx + (size_t)(first + e) * (size_t)size, c->d_in);
    }
    gemm(n, H, rows, at.r, c->w, b->dh + (size_t)first * H);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, H, n, 1, at.r, rows, b->h + (size_t)first * H, H, 1,
                c->dw, H);
}

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
        int layer = k < b->n_convs ? k : 2 * b->n_convs - 1 - k;
        const conv *c = &b->conv[layer];
        for (int first = 0; first < n_edges; first += chunk) {
            int n = n_edges - first < chunk ? n_edges - first : chunk;
            place at = { b->kept[layer][0] + (size_t)first * (size_t)rows_of(c),
                         b->kept[layer][1] + (size_t)first * (size_t)t_of(c) };
            if (k < b->n_convs)
                chunk_forward(b, c, first, n, at, true);
            else
                chunk_backward(b, c, first, n, at);
        }
    }
}

static double pass_seconds(const bench *b, int chunk, int n_edges, mode m, int repeats)
{
    double best = 1e30;

    for (int i = 0; i < repeats; i++) {
        struct timespec s, e;
        double t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &s);
        if (m == TRAIN_KEPT)
            pass_kept(b, chunk, n_edges);
        else
            pass_chunks(b, chunk, n_edges, m == TRAIN_CHUNKS);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &e);
        t = (double)(e.tv_sec - s.tv_sec) + 1e-9 * (double)(e.tv_nsec - s.tv_nsec);
        best = t < best ? t : best;
    }
    return best;
}

/* ---- data ---------------------------------------------------------------------------- */

static float *noise(pl_arena *mem, size_t n, double scale, uint64_t stream)
{
    float *x = PL_NEW(mem, float, n);
    pl_rng rng = pl_rng_at(7, stream, 0);

    for (size_t i = 0; x && i < n; i++)
        x[i] = (float)(scale * (2 * pl_rng_real(&rng) - 1));
    return x;
}

/* The fused basis of every edge, in single precision. */
static float *bases(const bench_case *c, const nn_couplings *q, nn_basis_layout layout, pl_arena *mem)
{
    int n = nn_basis_size(q, layout, 0, false);
    float *out = PL_NEW(mem, float, (size_t)n * (size_t)c->batch.n_edges);
    double sh[64], *one = PL_NEW(mem, double, n);

    for (int32_t e = 0; out && one && e < c->batch.n_edges; e++) {
        double v[3] = { c->batch.vec[e][0], c->batch.vec[e][1], c->batch.vec[e][2] };
        nn_sh(sh, 6, v);
        nn_basis_fused(one, q, layout, 0, false, sh);
        for (int i = 0; i < n; i++)
            out[(size_t)e * (size_t)n + (size_t)i] = (float)one[i];
    }
    return one ? out : NULL;
}

static void conv_add(bench *b, conv c, pl_arena *mem)
{
    size_t n = (size_t)rows_of(&c) * H;

    c.w = noise(mem, n, 0.2, (uint64_t)b->n_convs);
    c.dw = PL_NEW(mem, float, n);
    b->conv[b->n_convs++] = c;
}

static pl_code bench_open(bench *b, const bench_case *c, pl_arena *mem, pl_error *err)
{
    size_t e = (size_t)c->batch.n_edges;
    nn_couplings *q;
    pl_code rc = nn_couplings_new(&q, 3, NN_W3J_E3NN_033, mem, err);
    float *full, *last;

    if (rc)
        return rc;
    full = bases(c, q, NN_BASIS_FULL, mem);
    last = bases(c, q, NN_BASIS_OUT, mem);
    *b = (bench){ .n_edges = (int)e, .h = noise(mem, e * H, 1, 50), .dh = PL_NEW(mem, float, e * H),
                  .x = noise(mem, e * 512, 1, 51), .dx = PL_NEW(mem, float, e * 512),
                  .g = noise(mem, e * 512, 1, 52), .y = PL_NEW(mem, float, e * 512),
                  .r = PL_NEW(mem, float, CHUNK_MOST * 45056), .t = PL_NEW(mem, float, CHUNK_MOST * 22528),
                  .dt = PL_NEW(mem, float, 22528) };
    if (!full || !last || !b->h || !b->dh || !b->x || !b->dx || !b->g || !b->y || !b->r || !b->t || !b->dt)
        return pl_fail(err, PL_ENOMEM, "no memory for the reference formulation");
    for (size_t i = 0; i < e * H; i++)
        b->h[i] = b->h[i] > 0 ? b->h[i] : 0;
    for (int o = 0; o < 4; o++) /* the first layer: scalars in, one group for each output degree */
        conv_add(b, (conv){ 6, o ? 16 : 32, 1, 1, 2 * o + 1, full, NULL, NULL }, mem);
    for (int k = 0; k < HIDDEN_LAYERS; k++)
        conv_add(b, (conv){ 32, 32, 44, 16, 16, full, NULL, NULL }, mem);
    conv_add(b, (conv){ 32, 128, 4, 16, 1, last, NULL, NULL }, mem);
    return PL_OK;
}

/* A hidden layer of the first edges by plain loops in double. */
static double difference(const bench *b)
{
    const conv *c = &b->conv[4];
    double off = 0, scale = 0;

    chunk_forward(b, c, 0, 2, (place){ b->r, b->t }, false);
    for (int e = 0; e < 2; e++)
        for (int o = 0; o < 32; o++)
            for (int k = 0; k < 16; k++) {
                double sum = 0;
                for (int i = 0; i < 32 * 44; i++) {
                    double r = 0, t = 0;
                    for (int j = 0; j < H; j++)
                        r += (double)c->w[((size_t)o * 1408 + (size_t)i) * H + (size_t)j] * b->h[e * H + j];
                    for (int l = 0; l < 16; l++)
                        t += (double)b->x[e * 512 + i / 44 * 16 + l] * c->basis[((e * 16 + l) * 44 + i % 44) * 16 + k];
                    sum += r * t;
                }
                off = fmax(off, fabs(sum - b->y[e * 512 + o * 16 + k]));
                scale = fmax(scale, fabs(sum));
            }
    return off / scale;
}

static int chunk_best(const bench *b, mode m)
{
    static const int sizes[] = { 8, 16, 32, 64, 128, CHUNK_MOST };
    int probe = b->n_edges < CHUNK_MOST ? b->n_edges : CHUNK_MOST, best = sizes[0];
    double least = 1e30;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double t = pass_seconds(b, sizes[i], probe, m, 3);
        if (t < least) {
            least = t;
            best = sizes[i];
        }
    }
    return best;
}

pl_code bench_blas_run(bench_blas *out, const bench_case *c, int repeats, pl_arena *mem, pl_error *err)
{
    bench b;
    pl_code rc = bench_open(&b, c, mem, err);

    if (rc)
        return rc;
    openblas_set_num_threads(1);
    out->off = difference(&b);
    for (int k = 0; k < b.n_convs; k++) {
        b.kept[k][0] = PL_NEW(mem, float, (size_t)b.n_edges * (size_t)rows_of(&b.conv[k]));
        b.kept[k][1] = PL_NEW(mem, float, (size_t)b.n_edges * (size_t)t_of(&b.conv[k]));
        if (!b.kept[k][0] || !b.kept[k][1])
            return pl_fail(err, PL_ENOMEM, "no memory to keep R and T");
    }
    out->chunk_forward = chunk_best(&b, FORWARD);
    out->chunk_train = chunk_best(&b, TRAIN_CHUNKS);
    out->forward = pass_seconds(&b, out->chunk_forward, b.n_edges, FORWARD, repeats);
    out->train = pass_seconds(&b, chunk_best(&b, TRAIN_KEPT), b.n_edges, TRAIN_KEPT, repeats);
    out->train_cached = pass_seconds(&b, out->chunk_train, b.n_edges, TRAIN_CHUNKS, repeats);
    return PL_OK;
}
