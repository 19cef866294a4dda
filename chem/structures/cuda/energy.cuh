/* chem/structures/cuda/energy.cuh - energies and gradients of MMFF94; part of structures.cu.
 *
 * Each term writes its forces to slots of its own, and each thread sums rows of pairs; then every atom gathers what is its own,
 * in the order of its list. Formulas and guards are those of kernels_bonded.h and kernels_pairs.h. */
#ifndef CH_GPU_ENERGY_CUH
#define CH_GPU_ENERGY_CUH

#include "chem/structures/cuda/block.cuh"

/* atan2(y, x) for y >= 0, within 2e-7. */
static __device__ __forceinline__ float polar(float y, float x)
{
    const float ax = fabsf(x), low = fminf(ax, y), high = fmaxf(ax, y);
    const bool steep = high * 0.41421356f < low;
    const float t = (steep ? low - high : low) / fmaxf(steep ? low + high : high, 1e-30f), z = t * t;
    float r = (((8.05374449538e-2f * z - 1.38776856032e-1f) * z + 1.99777106478e-1f) * z - 3.33329491539e-1f) * z * t + t;

    r = steep ? r + 0.78539816339f : r;
    r = ax < y ? 1.57079632679f - r : r;
    return x < 0 ? 3.14159265359f - r : r;
}

static __device__ __forceinline__ void put(site *s, int slot, point f)
{
    const int n = s->m->n_slots;

    s->slots[slot] = f.x;
    s->slots[n + slot] = f.y;
    s->slots[2 * n + slot] = f.z;
}

static __device__ float bond(site *s, const float *x, int t)
{
    const int n = s->m->n_bonds;
    const int32_t *a = ints(s, CH_GPU_BOND_ATOMS) + t;
    const float *of = floats(s, CH_GPU_BOND_PARAMS) + t;
    const point d = minus(atom_at(x, s->n, a[0]), atom_at(x, s->n, a[n]));
    const float k = of[0], r = sqrtf(fmaxf(inner(d, d), 1e-8f)), q = r - of[n];
    const point f = scaled(d, k * q * (1.0f - 3.0f * q + (14.0f / 3) * q * q) / r);

    put(s, t, f);
    put(s, n + t, scaled(f, -1));
    return 0.5f * k * q * q * (1.0f - 2.0f * q + (7.0f / 3) * q * q);
}

static __device__ float bend(site *s, const float *x, int t)
{
    const int n = s->m->n_angles, slot = 2 * s->m->n_bonds + t;
    const int32_t *at = ints(s, CH_GPU_ANGLE_ATOMS) + t;
    const float *of = floats(s, CH_GPU_ANGLE_PARAMS) + t;
    const point q = atom_at(x, s->n, at[n]), a = minus(atom_at(x, s->n, at[0]), q), b = minus(atom_at(x, s->n, at[2 * n]), q);
    const point c = cross(a, b);
    const float a2 = fmaxf(inner(a, a), 1e-8f), b2 = fmaxf(inner(b, b), 1e-8f), ab = inner(a, b);
    const float sine = sqrtf(fmaxf(inner(c, c), 1e-8f * a2 * b2)), la = sqrtf(a2), lb = sqrtf(b2);
    const float both = 1.0f / (la * lb), ia = both * lb, ib = both * la, cosine = ab * both;
    const float off = polar(sine, ab) - of[n], linear = of[2 * n], ka = of[0], k1 = of[3 * n], k2 = of[4 * n];
    const float stretch = k1 * (la - of[5 * n]) + k2 * (lb - of[6 * n]);
    const float slope = (ka * off * (1.0f - 1.5f * 0.4f * off) + stretch) / sine, line = linear * both;
    const point ga = plus(scaled(cross(a, c), slope * ia * ia),
                          plus(scaled(a, off * k1 * ia - linear * cosine * ia * ia), scaled(b, line)));
    const point gb = plus(scaled(cross(c, b), slope * ib * ib),
                          plus(scaled(b, off * k2 * ib - linear * cosine * ib * ib), scaled(a, line)));

    put(s, slot, ga);
    put(s, slot + n, scaled(plus(ga, gb), -1));
    put(s, slot + 2 * n, gb);
    return 0.5f * ka * off * off * (1.0f - 0.4f * off) + stretch * off + linear * (1.0f + cosine);
}

/* One of the three Wilson angles of a centre: of p with the plane of q and r, whose normal is c = q x r. Adds to the gradients
 * what belongs to one neighbour alone, to *e the energy; returns the factor of the gradient of the determinant. */
static __device__ __forceinline__ float wilson(const point *v, point *g, int out, point c, float det, float k, float *e)
{
    const int i = (out + 1) % 3, j = (out + 2) % 3;
    const float n2 = fmaxf(inner(c, c), 1e-8f), c2 = fmaxf(inner(v[out], v[out]), 1e-8f), f = 1.0f / sqrtf(n2 * c2);
    const float sine = det * f, cosine = sqrtf(fmaxf(1.0f - sine * sine, 1e-6f));
    const float chi = copysignf(polar(fabsf(sine), cosine), sine), h = k * chi / cosine, hs = h * sine;

    g[out] = minus(g[out], scaled(v[out], hs / c2));
    g[i] = minus(g[i], scaled(cross(v[j], c), hs / n2));
    g[j] = minus(g[j], scaled(cross(c, v[i]), hs / n2));
    *e += 0.5f * k * chi * chi;
    return h * f;
}

static __device__ float out_of_plane(site *s, const float *x, int t)
{
    const int n = s->m->n_planes, slot = 2 * s->m->n_bonds + 3 * s->m->n_angles + t;
    const int32_t *at = ints(s, CH_GPU_PLANE_ATOMS) + t;
    const float *of = floats(s, CH_GPU_PLANE_PARAMS) + t;
    const point q = atom_at(x, s->n, at[0]);
    const point a[3] = { minus(atom_at(x, s->n, at[n]), q), minus(atom_at(x, s->n, at[2 * n]), q),
                         minus(atom_at(x, s->n, at[3 * n]), q) };
    const point c[3] = { cross(a[1], a[2]), cross(a[2], a[0]), cross(a[0], a[1]) };
    const float det = inner(c[0], a[0]);
    point g[3] = { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } };
    float e = 0, h = wilson(a, g, 0, c[0], det, of[0], &e);

    h += wilson(a, g, 1, c[1], det, of[n], &e);
    h += wilson(a, g, 2, c[2], det, of[2 * n], &e);
    for (int k = 0; k < 3; k++) {
        g[k] = plus(g[k], scaled(c[k], h));
        put(s, slot + (k + 1) * n, g[k]);
    }
    put(s, slot, scaled(plus(g[0], plus(g[1], g[2])), -1));
    return e;
}

static __device__ float torsion(site *s, const float *x, int t)
{
    const int n = s->m->n_torsions, slot = s->m->n_slots - 4 * n + t;
    const int32_t *at = ints(s, CH_GPU_TORSION_ATOMS) + t;
    const float *of = floats(s, CH_GPU_TORSION_PARAMS) + t;
    const point j = atom_at(x, s->n, at[n]), k = atom_at(x, s->n, at[2 * n]);
    const point a = minus(atom_at(x, s->n, at[0]), j), b = minus(k, j), c = minus(atom_at(x, s->n, at[3 * n]), k);
    const point m = cross(a, b), o = cross(c, b);
    const float im = 1.0f / sqrtf(fmaxf(inner(m, m), 1e-6f)), io = 1.0f / sqrtf(fmaxf(inner(o, o), 1e-6f));
    const point um = scaled(m, im), uo = scaled(o, io);
    const float y = inner(um, uo), y2 = y * y, v1 = of[0], v2 = of[n], v3 = of[2 * n];
    const float slope = 0.5f * (v1 - 4.0f * v2 * y + v3 * (12.0f * y2 - 3.0f));
    const point gm = scaled(minus(uo, scaled(um, y)), im * slope), go = scaled(minus(um, scaled(uo, y)), io * slope);
    const point ga = cross(b, gm), gc = cross(b, go), gb = plus(cross(gm, a), cross(go, c));

    put(s, slot, ga);
    put(s, slot + n, scaled(plus(ga, gb), -1));
    put(s, slot + 2 * n, minus(gb, gc));
    put(s, slot + 3 * n, gc);
    return 0.5f * (v1 * (1.0f + y) + v2 * (2.0f - 2.0f * y2) + v3 * (1.0f + y * (4.0f * y2 - 3.0f)));
}

static __device__ __forceinline__ int warps_of(int n)
{
    return (n + 31) / 32;
}

/* Warps take 32 terms of one class at a time, the costly classes first. */
static __device__ double bonded(site *s, const float *x)
{
    const ch_gpu_molecule *m = s->m;
    const int torsions = warps_of(m->n_torsions), angles = torsions + warps_of(m->n_angles);
    const int planes = angles + warps_of(m->n_planes), all = planes + warps_of(m->n_bonds);
    double e = 0;

    for (int w = thread_now() / 32; w < all; w += CH_GPU_WARPS) {
        const int t = 32 * w + thread_now() % 32;
        if (w < torsions) {
            if (t < m->n_torsions)
                e += (double)torsion(s, x, t);
        } else if (w < angles) {
            if (t - 32 * torsions < m->n_angles)
                e += (double)bend(s, x, t - 32 * torsions);
        } else if (w < planes) {
            if (t - 32 * angles < m->n_planes)
                e += (double)out_of_plane(s, x, t - 32 * angles);
        } else if (t - 32 * planes < m->n_bonds) {
            e += (double)bond(s, x, t - 32 * planes);
        }
    }
    return e;
}

/* Buffered 14-7 and buffered Coulomb with one division. *force: (dE/dR) / R. */
static __device__ __forceinline__ float pair(float r2, float scale, float eps, float qq, float *force)
{
    const float r = sqrtf(fminf(fmaxf(r2, 1e-2f), 1e6f)), u = r * scale, u2 = u * u, u6 = u2 * u2 * u2;
    const float a = u + 0.07f, d = u6 * u + 0.12f, b = r + 0.05f, ad = a * d, rb = r * b, one = 1.0f / (ad * rb);
    const float iad = one * rb, irb = one * ad, ia = iad * d, id = iad * a, ib = irb * r;
    const float t = 1.07f * ia, t2 = t * t, t7 = t2 * t2 * t2 * t * eps, g = 1.12f * id;
    const float van = t7 * (g - 2.0f), charge = qq * ib;

    *force = (-7.0f * (van * ia + t7 * g * id * u6) * scale - charge * ib) * (irb * b);
    return van + charge;
}

/* Every pair twice, once for each of its atoms: nothing is scattered. */
static __device__ double pairs(site *s, const float *x)
{
    const int n = s->n, parts = s->m->parts;
    const float *all = floats(s, CH_GPU_PAIRS);
    double sum = 0;

    for (int item = thread_now(); item < parts * n; item += CH_GPU_THREADS) {
        const int part = item / n, i = item - part * n;
        const point at = atom_at(x, n, i);
        point f = { 0, 0, 0 };
        float e = 0;
        for (int j = part; j < n; j += parts) {
            const float *of = all + j * n + i;
            const point d = minus(at, atom_at(x, n, j));
            float force;
            e += pair(inner(d, d), of[0], of[n * n], of[2 * n * n], &force);
            f = plus(f, scaled(d, force));
        }
        s->partial[(3 * part) * n + i] = f.x;
        s->partial[(3 * part + 1) * n + i] = f.y;
        s->partial[(3 * part + 2) * n + i] = f.z;
        sum += (double)e;
    }
    return 0.5 * sum;
}

/* g[i] = what the pairs and the slots have for it. slots: [3][n_slots]. */
static __device__ void gather(const site *s, float *g, const float *slots, int n_slots, const int32_t *first, const int32_t *list)
{
    const int n = s->n, dims = s->dims, parts = s->m->parts;

    for (int item = thread_now(); item < dims * n; item += CH_GPU_THREADS) {
        const int c = item / n, i = item - c * n;
        float sum = 0;
        for (int p = 0; p < parts; p++)
            sum += s->partial[(dims * p + c) * n + i];
        for (int k = first[i]; c < 3 && k < first[i + 1]; k++)
            sum += slots[c * n_slots + list[k]];
        g[item] = sum;
    }
}

/* The energy at x[3][n]; overwrites g[3][n]. */
static __device__ A_CALL double energy(site *s, const float *x, float *g)
{
    double e = 0;

    __syncthreads(); /* x is complete, and slots have been read */
    e = bonded(s, x) + pairs(s, x);
    __syncthreads();
    gather(s, g, s->slots, s->m->n_slots, ints(s, CH_GPU_SLOT_FIRST), ints(s, CH_GPU_SLOTS));
    return block_sum(s, e); /* has a barrier: g is complete */
}

#endif
