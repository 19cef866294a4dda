/* chem/structures/cuda/factor.cuh - the preconditioner of relaxing; part of structures.cu.
 *
 * The matrix of precondition.h: Gauss-Newton of the bonded terms plus a stiffness, in blocks of 3 x 3, the upper half of a
 * narrow band. Each term writes the gradient of its coordinate, times the root of its weight, to its slots; a block sums its
 * products. The Cholesky factor U (A = U^T U) takes the place of the matrix; diagonal[6] of a row: 1 / U00, U01, U02, 1 / U11,
 * U12, 1 / U22. */
#ifndef CH_GPU_FACTOR_CUH
#define CH_GPU_FACTOR_CUH

#include "chem/structures/cuda/energy.cuh"

static __device__ const float stiffness = 5; /* kcal/mol/A^2 */

static __device__ void bond_row(site *s, const float *x, int t)
{
    const int n = s->m->n_bonds;
    const int32_t *a = ints(s, CH_GPU_BOND_ATOMS) + t;
    const point d = minus(atom_at(x, s->n, a[0]), atom_at(x, s->n, a[n]));
    const float w = sqrtf(fmaxf(floats(s, CH_GPU_BOND_PARAMS)[t], 0)) / sqrtf(fmaxf(inner(d, d), 1e-4f));

    put(s, t, scaled(d, w));
    put(s, n + t, scaled(d, -w));
}

static __device__ void angle_row(site *s, const float *x, int t)
{
    const int n = s->m->n_angles, slot = 2 * s->m->n_bonds + t;
    const int32_t *at = ints(s, CH_GPU_ANGLE_ATOMS) + t;
    const float *of = floats(s, CH_GPU_ANGLE_PARAMS) + t;
    const point q = atom_at(x, s->n, at[n]), a = minus(atom_at(x, s->n, at[0]), q), b = minus(atom_at(x, s->n, at[2 * n]), q);
    const float la = sqrtf(fmaxf(inner(a, a), 1e-4f)), lb = sqrtf(fmaxf(inner(b, b), 1e-4f)), c = inner(a, b) / (la * lb);
    const float w = sqrtf(fmaxf(of[0] + of[2 * n], 0)) / sqrtf(fmaxf(1 - c * c, 0.03f)), both = w / (la * lb);
    const point ga = minus(scaled(a, w * c / (la * la)), scaled(b, both)), gb = minus(scaled(b, w * c / (lb * lb)), scaled(a, both));

    put(s, slot, ga);
    put(s, slot + n, scaled(plus(ga, gb), -1));
    put(s, slot + 2 * n, gb);
}

/* The three angles of a centre have nearly the same gradient: the height above the plane of the ends. */
static __device__ void plane_row(site *s, const float *x, int t)
{
    const int n = s->m->n_planes, slot = 2 * s->m->n_bonds + 3 * s->m->n_angles + t;
    const int32_t *at = ints(s, CH_GPU_PLANE_ATOMS) + t;
    const float *of = floats(s, CH_GPU_PLANE_PARAMS) + t;
    const point q = atom_at(x, s->n, at[0]), l = minus(atom_at(x, s->n, at[3 * n]), q);
    const point c = cross(minus(atom_at(x, s->n, at[n]), q), minus(atom_at(x, s->n, at[2 * n]), q));
    const float w = sqrtf(fmaxf(of[0] + of[n] + of[2 * n], 0)) / sqrtf(fmaxf(inner(c, c) * inner(l, l), 1e-4f));
    const point end = scaled(c, w);

    put(s, slot, scaled(end, -3));
    for (int k = 1; k < 4; k++)
        put(s, slot + k * n, end);
}

static __device__ void torsion_row(site *s, const float *x, int t)
{
    const int n = s->m->n_torsions, slot = s->m->n_slots - 4 * n + t;
    const int32_t *at = ints(s, CH_GPU_TORSION_ATOMS) + t;
    const float *of = floats(s, CH_GPU_TORSION_PARAMS) + t;
    const point j = atom_at(x, s->n, at[n]), k = atom_at(x, s->n, at[2 * n]);
    const point a = minus(atom_at(x, s->n, at[0]), j), b = minus(k, j), c = minus(atom_at(x, s->n, at[3 * n]), k);
    const point m = cross(a, b), o = cross(c, b);
    const float m2 = inner(m, m), o2 = inner(o, o), b2 = fmaxf(inner(b, b), 1e-4f), al = inner(a, b) / b2, be = inner(c, b) / b2;
    const bool good = m2 > 0.05f && o2 > 0.05f;
    const float w = good ? sqrtf(0.5f * (fabsf(of[0]) + 4 * fabsf(of[n]) + 9 * fabsf(of[2 * n])) * b2) : 0;
    const point g0 = scaled(m, good ? w / m2 : 0), g3 = scaled(o, good ? -w / o2 : 0);

    put(s, slot, g0);
    put(s, slot + n, plus(scaled(g0, al - 1), scaled(g3, be)));
    put(s, slot + 2 * n, minus(scaled(g3, -1 - be), scaled(g0, al)));
    put(s, slot + 3 * n, g3);
}

static __device__ void rows(site *s, const float *x)
{
    const ch_gpu_molecule *m = s->m;

    for (int t = thread_now(); t < m->n_torsions; t += CH_GPU_THREADS)
        torsion_row(s, x, t);
    for (int t = thread_now(); t < m->n_angles; t += CH_GPU_THREADS)
        angle_row(s, x, t);
    for (int t = thread_now(); t < m->n_planes; t += CH_GPU_THREADS)
        plane_row(s, x, t);
    for (int t = thread_now(); t < m->n_bonds; t += CH_GPU_THREADS)
        bond_row(s, x, t);
}

static __device__ A_CALL void assemble(site *s, const float *x)
{
    const int32_t *first = ints(s, CH_GPU_BLOCK_FIRST), *list = ints(s, CH_GPU_BLOCK_SLOTS), *row = ints(s, CH_GPU_ROW);
    const int slots = s->m->n_slots;

    __syncthreads();
    rows(s, x);
    __syncthreads();
    for (int b = thread_now(); b < s->m->n_blocks; b += CH_GPU_THREADS) {
        float sum[9] = { 0, 0, 0, 0, 0, 0, 0, 0, 0 };
        for (int k = first[b]; k < first[b + 1]; k++) {
            const uint32_t both = (uint32_t)list[k];
            const point p = atom_at(s->slots, slots, (int)(both & 65535)), q = atom_at(s->slots, slots, (int)(both >> 16));
            const float u[3] = { p.x, p.y, p.z }, v[3] = { q.x, q.y, q.z };
            for (int e = 0; e < 9; e++)
                sum[e] += u[e / 3] * v[e % 3];
        }
        for (int e = 0; e < 9; e++)
            s->matrix[9 * b + e] = sum[e];
    }
    __syncthreads();
    for (int item = thread_now(); item < 3 * s->n; item += CH_GPU_THREADS)
        s->matrix[9 * row[item / 3] + 4 * (item % 3)] += stiffness;
    __syncthreads();
}

/* The factor of a block on the diagonal; every thread computes it. */
static __device__ __forceinline__ void factor_diagonal(float d[6], const float *a)
{
    d[0] = 1 / sqrtf(fmaxf(a[0], 1e-3f));
    d[1] = a[1] * d[0];
    d[2] = a[2] * d[0];
    d[3] = 1 / sqrtf(fmaxf(a[4] - d[1] * d[1], 1e-3f));
    d[4] = (a[5] - d[1] * d[2]) * d[3];
    d[5] = 1 / sqrtf(fmaxf(a[8] - d[2] * d[2] - d[4] * d[4], 1e-3f));
}

/* Blocks k+1 to last of row k. */
static __device__ void factor_row(site *s, int k, float *row, int columns)
{
    float d[6];

    factor_diagonal(d, row);
    for (int e = thread_now(); e < 6; e += CH_GPU_THREADS)
        s->diagonal[6 * k + e] = d[e];
    for (int item = thread_now(); item < columns; item += CH_GPU_THREADS) {
        float *at = row + 9 + 9 * (item / 3) + item % 3;
        const float a = at[0] * d[0], b = (at[3] - d[1] * a) * d[3];
        at[0] = a;
        at[3] = b;
        at[6] = (at[6] - d[2] * a - d[4] * b) * d[5];
    }
}

static __device__ A_CALL void factor(site *s)
{
    const int32_t *last = ints(s, CH_GPU_LAST), *row = ints(s, CH_GPU_ROW);
    const int warp = thread_now() / 32, lane = thread_now() % 32;

    for (int k = 0; k < s->n; k++) {
        float *mine = s->matrix + 9 * row[k];
        const int blocks = last[k] - k;
        factor_row(s, k, mine, 3 * blocks);
        __syncthreads();
        for (int i = 1 + warp; i <= blocks; i += CH_GPU_WARPS) {
            const float *u = mine + 9 * i;
            float *other = s->matrix + 9 * row[k + i];
            for (int item = lane; item < 3 * (blocks - i + 1); item += 32) {
                const float *v = mine + 9 * (i + item / 3) + item % 3;
                float *to = other + 9 * (item / 3) + item % 3;
                for (int r = 0; r < 3; r++)
                    to[3 * r] -= u[r] * v[0] + u[3 + r] * v[3] + u[6 + r] * v[6];
            }
        }
        __syncthreads();
    }
}

/* right = solution of U^T U right = right, by one warp. */
static __device__ void solve(site *s)
{
    const int32_t *last = ints(s, CH_GPU_LAST), *begin = ints(s, CH_GPU_BEGIN), *row = ints(s, CH_GPU_ROW);
    const int n = s->n, lane = thread_now() % 32;
    float *b = s->right, *y = s->middle;

    for (int k = 0; k < n; k++) {
        const float *u = s->matrix + 9 * row[k] + 9, *d = s->diagonal + 6 * k;
        const float p = b[3 * k] * d[0], q = (b[3 * k + 1] - d[1] * p) * d[3], r = (b[3 * k + 2] - d[2] * p - d[4] * q) * d[5];
        for (int item = lane; item < 3 * (last[k] - k); item += 32) {
            const float *v = u + 9 * (item / 3) + item % 3;
            b[3 * (k + 1) + item] -= p * v[0] + q * v[3] + r * v[6];
        }
        if (lane == 0) {
            y[3 * k] = p;
            y[3 * k + 1] = q;
            y[3 * k + 2] = r;
        }
        __syncwarp();
    }
    for (int k = n - 1; k >= 0; k--) {
        const float *d = s->diagonal + 6 * k;
        const float r = y[3 * k + 2] * d[5], q = (y[3 * k + 1] - d[4] * r) * d[3], p = (y[3 * k] - d[1] * q - d[2] * r) * d[0];
        for (int item = lane; item < 3 * (k - begin[k]); item += 32) {
            const int i = begin[k] + item / 3;
            const float *v = s->matrix + 9 * (row[i] + k - i) + 3 * (item % 3);
            y[3 * i + item % 3] -= v[0] * p + v[1] * q + v[2] * r;
        }
        if (lane == 0) {
            b[3 * k] = p;
            b[3 * k + 1] = q;
            b[3 * k + 2] = r;
        }
        __syncwarp();
    }
}

/* d[3][n] becomes the solution of matrix * solution = d. */
static __device__ A_CALL void precondition(site *s, float *d)
{
    const int n = s->n;

    __syncthreads();
    for (int item = thread_now(); item < 3 * n; item += CH_GPU_THREADS)
        s->right[3 * (item % n) + item / n] = d[item];
    __syncthreads();
    if (thread_now() < 32)
        solve(s);
    __syncthreads();
    for (int item = thread_now(); item < 3 * n; item += CH_GPU_THREADS)
        d[item] = s->right[3 * (item % n) + item / n];
    __syncthreads();
}

#endif
