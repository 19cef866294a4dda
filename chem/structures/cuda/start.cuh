/* chem/structures/cuda/start.cuh - the random start of distance geometry and its error; part of structures.cu.
 *
 * As embed.c: torsions are drawn and the bounds smoothed, random distances become positions in four dimensions through the four
 * largest eigenvectors of the metric matrix. Draw k of a start is draw k of the processor's stream. */
#ifndef CH_GPU_START_CUH
#define CH_GPU_START_CUH

#include "chem/structures/cuda/energy.cuh"

enum { POWER_STEPS = 25 };
static __device__ const float torsion_margin = 0.06f, volume_weight = 0.02f;

static __device__ __forceinline__ uint64_t mixed(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Draw `at` of the stream: pl_rng_real. */
static __device__ __forceinline__ double drawn(uint64_t key, uint64_t at)
{
    return (double)(mixed(key ^ mixed(at)) >> 11) * (1.0 / 9007199254740992.0);
}

/* Draws of one start: of torsions, distances, eigenvectors and noise. */
static __device__ __forceinline__ uint64_t draws(const site *s)
{
    const uint64_t n = (uint64_t)s->n;
    return (uint64_t)s->m->n_rotors + n * (n - 1) / 2 + 8 * n;
}

static __device__ void draw_torsion(site *s, int k, double at)
{
    const int n = s->n, rotors = s->m->n_rotors, a = ints(s, CH_GPU_ROTOR_ATOMS)[k], b = ints(s, CH_GPU_ROTOR_ATOMS)[rotors + k];
    const float *weight = floats(s, CH_GPU_ROTOR_WEIGHTS) + k, *distance = floats(s, CH_GPU_ROTOR_DISTANCES) + k;
    const float upper = s->upper[a * n + b], lower = s->lower[a * n + b];
    int angle = 0;

    while (angle < CH_GPU_ROTOR_ANGLES - 1 && at >= (double)weight[angle * rotors])
        angle++;
    const float d = distance[angle * rotors];
    s->upper[a * n + b] = s->upper[b * n + a] = fmaxf(fminf(upper, d + torsion_margin), lower + torsion_margin);
    s->lower[a * n + b] = s->lower[b * n + a] = fminf(fmaxf(lower, d - torsion_margin), upper - torsion_margin);
}

/* Floyd's order. In step k nobody writes row or column k. */
static __device__ void smooth(site *s)
{
    const int n = s->n;

    for (int k = 0; k < n; k++) {
        __syncthreads();
        for (int item = thread_now(); item < n * n; item += CH_GPU_THREADS) {
            const int i = item / n, j = item - i * n;
            if (i == k || j == k || i == j)
                continue;
            const float ui = s->upper[i * n + k], uj = s->upper[k * n + j], li = s->lower[i * n + k], lj = s->lower[k * n + j];
            s->upper[item] = fminf(s->upper[item], ui + uj);
            s->lower[item] = fmaxf(s->lower[item], fmaxf(li - uj, lj - ui));
        }
    }
}

/* The bounds of this start, and squares of random distances between them in `metric`. */
static __device__ void draw_distances(site *s, uint64_t key, uint64_t at)
{
    const int n = s->n, rotors = s->m->n_rotors;
    const int32_t *number = ints(s, CH_GPU_NUMBERS);

    __syncthreads();
    for (int item = thread_now(); item < n * n; item += CH_GPU_THREADS) {
        s->upper[item] = floats(s, CH_GPU_UPPER)[item];
        s->lower[item] = floats(s, CH_GPU_LOWER)[item];
    }
    __syncthreads();
    for (int k = thread_now(); k < rotors; k += CH_GPU_THREADS)
        draw_torsion(s, k, drawn(key, at + (uint64_t)k));
    if (rotors > 0)
        smooth(s);
    __syncthreads();
    for (int item = thread_now(); item < n * n; item += CH_GPU_THREADS) {
        const int i = item / n, j = item - i * n;
        const int64_t a = number[i], b = number[j], high = a > b ? a : b, low = a > b ? b : a;
        const float upper = s->upper[item], lower = s->lower[item], middle = 0.5f * (lower + upper);
        const float u = lower > upper ? middle : upper, l = lower > upper ? middle : lower;
        const float d = l + (float)drawn(key, at + (uint64_t)(rotors + high * (high - 1) / 2 + low)) * (u - l);
        s->metric[item] = i == j ? 0 : d * d;
        s->upper[item] = i == j ? 0 : 1 / (u * u);
        s->lower[item] = i == j ? 0 : l * l;
    }
}

/* Squares of distances become products of positions seen from the centre of mass. */
static __device__ void centre_metric(site *s)
{
    const int n = s->n;
    double all = 0;

    __syncthreads();
    for (int i = thread_now(); i < n; i += CH_GPU_THREADS) {
        double sum = 0;
        for (int j = 0; j < n; j++)
            sum += (double)s->metric[j * n + i];
        s->mean[i] = (float)(sum / n);
        all += sum / n / n;
    }
    all = block_sum(s, all);
    for (int item = thread_now(); item < n * n; item += CH_GPU_THREADS) {
        const int i = item / n, j = item - i * n;
        s->metric[item] = 0.5f * (s->mean[i] + s->mean[j] - (float)all - s->metric[item]);
    }
}

/* next = metric * basis */
static __device__ void times_metric(site *s)
{
    const int n = s->n;

    __syncthreads();
    for (int item = thread_now(); item < 4 * n; item += CH_GPU_THREADS) {
        const int c = item / n, i = item - c * n;
        float sum = 0;
        for (int j = 0; j < n; j++)
            sum += s->metric[j * n + i] * s->basis[c * n + j];
        s->next[item] = sum;
    }
    __syncthreads();
}

/* The products of the four vectors a with b, a triangle row after row, to s->dots. */
static __device__ void products(site *s, const float *a, const float *b)
{
    int k = 0;

    for (int i = 0; i < 4; i++)
        for (int j = 0; j <= i; j++, k++)
            if (k % CH_GPU_WARPS == thread_now() / 32) {
                const double sum = warp_dot(a + i * s->n, b + j * s->n, s->n);
                if (thread_now() % 32 == 0)
                    s->dots[k] = sum;
            }
    __syncthreads();
}

/* The products in dots become their Cholesky factor. One thread. */
static __device__ void factor_products(double *l)
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j <= i; j++) {
            double *at = &l[i * (i + 1) / 2 + j], sum = *at;
            for (int k = 0; k < j; k++)
                sum -= l[i * (i + 1) / 2 + k] * l[j * (j + 1) / 2 + k];
            *at = i == j ? sqrt(fmax(sum, 1e-10 * *at + 1e-20)) : sum / l[j * (j + 1) / 2 + j];
        }
}

/* basis = next, made orthonormal: next = basis * L^T, where L L^T are the products of next. */
static __device__ void make_orthonormal(site *s)
{
    const int n = s->n;
    const double *l = s->dots;

    products(s, s->next, s->next);
    if (thread_now() == 0)
        factor_products(s->dots);
    __syncthreads();
    for (int a = thread_now(); a < n; a += CH_GPU_THREADS)
        for (int i = 0; i < 4; i++) {
            double q = (double)s->next[i * n + a];
            for (int k = 0; k < i; k++)
                q -= l[i * (i + 1) / 2 + k] * (double)s->basis[k * n + a];
            s->basis[i * n + a] = (float)(q / l[i * (i + 1) / 2 + i]);
        }
}

/* Random positions in four dimensions, in x. */
static __device__ void start(site *s, uint64_t key, uint64_t at)
{
    const int n = s->n;
    const uint64_t vectors = at + draws(s) - 8 * (uint64_t)n;
    const int32_t *number = ints(s, CH_GPU_NUMBERS);

    draw_distances(s, key, at);
    centre_metric(s);
    for (int item = thread_now(); item < 4 * n; item += CH_GPU_THREADS)
        s->next[item] = (float)drawn(key, vectors + (uint64_t)(item / n * n + number[item % n])) - 0.5f;
    __syncthreads();
    for (int step = 0; step < POWER_STEPS; step++) {
        make_orthonormal(s);
        times_metric(s);
    }
    products(s, s->basis, s->next); /* diagonal: the eigenvalues */
    for (int item = thread_now(); item < 4 * n; item += CH_GPU_THREADS) {
        const int c = item / n;
        const float root = (float)sqrt(fmax(s->dots[c * (c + 3) / 2], 0.1));
        const float noise = (float)drawn(key, vectors + (uint64_t)((4 + c) * n + number[item - c * n])) - 0.5f;
        s->x[item] = s->basis[item] * root + 0.02f * noise;
    }
    __syncthreads();
}

/* ---- the error ---- */

/* Signed volume of four atoms; c: its gradient by the first three. */
static __device__ __forceinline__ float signed_volume(const site *s, const float *x, int v, point c[3])
{
    const int n = s->m->n_volumes;
    const int32_t *at = ints(s, CH_GPU_VOLUME_ATOMS) + v;
    const point q = atom_at(x, s->n, at[3 * n]), a = minus(atom_at(x, s->n, at[0]), q), b = minus(atom_at(x, s->n, at[n]), q);
    const point d = minus(atom_at(x, s->n, at[2 * n]), q);

    c[0] = cross(b, d);
    c[1] = cross(d, a);
    c[2] = cross(a, b);
    return inner(a, c[0]);
}

static __device__ double volumes(site *s, const float *x)
{
    const int n = s->m->n_volumes;
    double e = 0;

    for (int v = thread_now(); v < n; v += CH_GPU_THREADS) {
        const float *of = floats(s, CH_GPU_VOLUME_PARAMS) + v;
        point c[3], last = { 0, 0, 0 };
        const float value = signed_volume(s, x, v, c), h = fminf(value - of[0], 0) + fmaxf(value - of[n], 0);
        const float weight = volume_weight * of[2 * n];
        for (int a = 0; a < 4; a++) {
            const point f = a < 3 ? scaled(c[a], 2 * weight * h) : last;
            last = minus(last, f);
            s->volume_slots[a * n + v] = f.x;
            s->volume_slots[4 * n + a * n + v] = f.y;
            s->volume_slots[8 * n + a * n + v] = f.z;
        }
        e += (double)(weight * h * h);
    }
    return e;
}

/* Havel's error of one pair, as kernels_pairs.h. */
static __device__ __forceinline__ float violation(float d2, float upper, float lower, float *force)
{
    const float q = 1.0f / (lower + d2 + 1e-6f), far = fmaxf(d2 * upper - 1.0f, 0), ratio = 2.0f * lower * q;
    const float near = fmaxf(ratio - 1.0f, 0);

    *force = 4.0f * (far * upper - near * ratio * q);
    return far * far + near * near;
}

static __device__ double bounds(site *s, const float *x)
{
    const int n = s->n, parts = s->m->parts;
    double sum = 0;

    for (int item = thread_now(); item < parts * n; item += CH_GPU_THREADS) {
        const int part = item / n, i = item - part * n;
        const float w = x[3 * n + i];
        const point at = atom_at(x, n, i);
        point f = { 0, 0, 0 };
        float e = 0, fw = 0;
        for (int j = part; j < n; j += parts) {
            const point d = minus(at, atom_at(x, n, j));
            const float dw = w - x[3 * n + j];
            float force;
            e += violation(inner(d, d) + dw * dw, s->upper[j * n + i], s->lower[j * n + i], &force);
            f = plus(f, scaled(d, force));
            fw += dw * force;
        }
        s->partial[(4 * part) * n + i] = f.x;
        s->partial[(4 * part + 1) * n + i] = f.y;
        s->partial[(4 * part + 2) * n + i] = f.z;
        s->partial[(4 * part + 3) * n + i] = fw;
        sum += (double)e;
    }
    return 0.5 * sum;
}

/* The error at x[4][n]; overwrites g[4][n]. */
static __device__ A_CALL double distance_error(site *s, const float *x, float *g)
{
    const int n = s->n;
    double e = 0;

    __syncthreads();
    e = bounds(s, x) + volumes(s, x);
    __syncthreads();
    gather(s, g, s->volume_slots, 4 * s->m->n_volumes, ints(s, CH_GPU_VOLUME_FIRST), ints(s, CH_GPU_VOLUME_SLOTS));
    for (int item = thread_now(); item < 4 * n; item += CH_GPU_THREADS) /* the thread that gathered it */
        if (item >= 3 * n) {
            const float w = x[item];
            g[item] += 2.0f * s->fourth * w;
            e += (double)(s->fourth * w * w);
        }
    return block_sum(s, e);
}

#endif
