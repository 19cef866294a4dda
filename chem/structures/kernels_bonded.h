/* chem/structures/kernels_bonded.h - bonds, angles with their stretch-bends, out-of-plane angles, torsions.
 *
 * Each function takes one vector of terms, adds energies to `sum` and gradients to f[][4]. Squares of lengths are kept above a
 * tiny number, so that two atoms at one place, or three in a line, give a finite gradient. */

/* atan2(y, x) for y >= 0, within 2e-7. */
static inline vf polar(vf y, vf x)
{
    const vf ax = magnitude(x), low = min(ax, y), high = max(ax, y);
    const vi steep = high * 0.41421356f < low;
    const vf t = choose(steep, low - high, low) / max(choose(steep, low + high, high), all(1e-30f)), z = t * t;
    vf r = (((8.05374449538e-2f * z - 1.38776856032e-1f) * z + 1.99777106478e-1f) * z - 3.33329491539e-1f) * z * t + t;

    r = choose(steep, r + 0.78539816339f, r);
    r = choose(ax < y, 1.57079632679f - r, r);
    return choose(x < 0, 3.14159265359f - r, r);
}

static inline void bond(const float *p, float *f, const int32_t *at, const float *of, sums *sum)
{
    const vec3 d = minus(gather(p, at), gather(p, at + SK_W));
    const vf k = load(of), r = root(max(inner(d, d), all(1e-8f))), x = r - load(of + SK_W);
    const vec3 g = scaled(d, k * x * (1.0f - 3.0f * x + (14.0f / 3) * x * x) / r);

    add_to(sum, 0.5f * k * x * x * (1.0f - 2.0f * x + (7.0f / 3) * x * x));
    scatter(f, at, g);
    scatter(f, at + SK_W, opposite(g));
}

/* The slope dE/d theta, and dE/d cos of a linear centre, become forces on the two ends. */
static inline void bend(const float *p, float *f, const int32_t *at, const float *of, sums *sum)
{
    const vec3 q = gather(p, at + SK_W), a = minus(gather(p, at), q), b = minus(gather(p, at + 2 * SK_W), q), n = cross(a, b);
    const vf a2 = max(inner(a, a), all(1e-8f)), b2 = max(inner(b, b), all(1e-8f)), c = inner(a, b);
    const vf s = root(max(inner(n, n), 1e-8f * a2 * b2)), la = root(a2), lb = root(b2);
    const vf ab = 1.0f / (la * lb), ia = ab * lb, ib = ab * la, cosine = c * ab;
    const vf t = polar(s, c) - load(of + SK_W), linear = load(of + 2 * SK_W);
    const vf ka = load(of), k1 = load(of + 3 * SK_W), k2 = load(of + 4 * SK_W);
    const vf stretch = k1 * (la - load(of + 5 * SK_W)) + k2 * (lb - load(of + 6 * SK_W));
    const vf slope = (ka * t * (1.0f - 1.5f * 0.4f * t) + stretch) / s;
    const vf line = linear * ab; /* the gradient of cos theta is b / (|a| |b|) - a cos theta / a^2 */
    const vec3 across = cross(a, n), other = cross(n, b);
    const vec3 ga =
        plus(scaled(across, slope * ia * ia), plus(scaled(a, t * k1 * ia - linear * cosine * ia * ia), scaled(b, line)));
    const vec3 gb = plus(scaled(other, slope * ib * ib), plus(scaled(b, t * k2 * ib - linear * cosine * ib * ib), scaled(a, line)));

    add_to(sum, 0.5f * ka * t * t * (1.0f - 0.4f * t) + stretch * t + linear * (1.0f + cosine));
    scatter(f, at, ga);
    scatter(f, at + 2 * SK_W, gb);
    scatter(f, at + SK_W, opposite(plus(ga, gb)));
}

/* One of the three Wilson angles of a centre: of p[out] with the plane of the others, whose normal is n = p[i] x p[j].
 * Adds to g what belongs to one neighbour alone; returns the factor of the gradient of the determinant. */
static inline vf wilson(const vec3 *p, vec3 *g, int out, vec3 n, vf det, vf k, sums *sum)
{
    const int i = (out + 1) % 3, j = (out + 2) % 3;
    const vf n2 = max(inner(n, n), all(1e-8f)), c2 = max(inner(p[out], p[out]), all(1e-8f)), f = 1.0f / root(n2 * c2);
    const vf s = det * f, cosine = root(max(1.0f - s * s, all(1e-6f)));
    const vf chi = with_sign(polar(magnitude(s), cosine), s), h = k * chi / cosine, hs = h * s;

    g[out] = minus(g[out], scaled(p[out], hs / c2));
    g[i] = minus(g[i], scaled(cross(p[j], n), hs / n2));
    g[j] = minus(g[j], scaled(cross(n, p[i]), hs / n2));
    add_to(sum, 0.5f * k * chi * chi);
    return h * f;
}

static inline void out_of_plane(const float *p, float *f, const int32_t *at, const float *of, sums *sum)
{
    const vec3 q = gather(p, at);
    const vec3 a[3] = { minus(gather(p, at + SK_W), q), minus(gather(p, at + 2 * SK_W), q), minus(gather(p, at + 3 * SK_W), q) };
    const vec3 n[3] = { cross(a[1], a[2]), cross(a[2], a[0]), cross(a[0], a[1]) };
    const vf det = inner(n[0], a[0]);
    vec3 g[3] = { 0 };
    vf h = wilson(a, g, 0, n[0], det, load(of), sum);

    h += wilson(a, g, 1, n[1], det, load(of + SK_W), sum);
    h += wilson(a, g, 2, n[2], det, load(of + 2 * SK_W), sum);
    for (int k = 0; k < 3; k++) {
        g[k] = plus(g[k], scaled(n[k], h));
        scatter(f, at + (k + 1) * SK_W, g[k]);
    }
    scatter(f, at, opposite(plus(g[0], plus(g[1], g[2]))));
}

/* Polynomials of the cosine: nothing is undefined at 0 or 180 degrees. */
static inline void torsion(const float *p, float *f, const int32_t *at, const float *of, sums *sum)
{
    const vec3 j = gather(p, at + SK_W), k = gather(p, at + 2 * SK_W);
    const vec3 a = minus(gather(p, at), j), b = minus(k, j), c = minus(gather(p, at + 3 * SK_W), k);
    const vec3 m = cross(a, b), n = cross(c, b);
    const vf im = 1.0f / root(max(inner(m, m), all(1e-6f))), in = 1.0f / root(max(inner(n, n), all(1e-6f)));
    const vec3 um = scaled(m, im), un = scaled(n, in);
    const vf x = inner(um, un), x2 = x * x, v1 = load(of), v2 = load(of + SK_W), v3 = load(of + 2 * SK_W);
    const vf slope = 0.5f * (v1 - 4.0f * v2 * x + v3 * (12.0f * x2 - 3.0f));
    const vec3 gm = scaled(minus(un, scaled(um, x)), im * slope), gn = scaled(minus(um, scaled(un, x)), in * slope);
    const vec3 ga = cross(b, gm), gc = cross(b, gn), gb = plus(cross(gm, a), cross(gn, c));

    add_to(sum, 0.5f * (v1 * (1.0f + x) + v2 * (2.0f - 2.0f * x2) + v3 * (1.0f + x * (4.0f * x2 - 3.0f))));
    scatter(f, at, ga);
    scatter(f, at + SK_W, opposite(plus(ga, gb)));
    scatter(f, at + 2 * SK_W, minus(gb, gc));
    scatter(f, at + 3 * SK_W, gc);
}

static double bonded(const ch_energy_plan *m, const float *p, float *f)
{
    sums sum = { 0 };

    for (int32_t v = 0; v < m->n_bonds; v++)
        bond(p, f, m->bond_atoms + v * 2 * SK_W, m->bond_params + v * 2 * SK_W, &sum);
    for (int32_t v = 0; v < m->n_angles; v++)
        bend(p, f, m->angle_atoms + v * 3 * SK_W, m->angle_params + v * CH_ANGLE_PARAMS * SK_W, &sum);
    for (int32_t v = 0; v < m->n_planes; v++)
        out_of_plane(p, f, m->plane_atoms + v * 4 * SK_W, m->plane_params + v * 3 * SK_W, &sum);
    for (int32_t v = 0; v < m->n_torsions; v++)
        torsion(p, f, m->torsion_atoms + v * 4 * SK_W, m->torsion_params + v * 3 * SK_W, &sum);
    return total(&sum);
}
