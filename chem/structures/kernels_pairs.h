/* chem/structures/kernels_pairs.h - all pairs of atoms: van der Waals with charges, and the bounds of distance geometry.
 *
 * Row i goes over the vectors of atoms from i's own on. Pairs without an interaction have parameters 0 and cost what others do;
 * of 45 atoms' lanes two thirds are useful, which is faster than gathering. */

/* Buffered 14-7 and buffered Coulomb with one division. *force: (dE/dR) / R. */
static inline vf pair(vf r2, const float *of, vf *force)
{
    const vf r = root(min(max(r2, all(1e-2f)), all(1e6f))), scale = load(of), eps = load(of + SK_W), qq = load(of + 2 * SK_W);
    const vf u = r * scale, u2 = u * u, u6 = u2 * u2 * u2;
    const vf a = u + 0.07f, d = u6 * u + 0.12f, b = r + 0.05f, ad = a * d, rb = r * b, one = 1.0f / (ad * rb);
    const vf iad = one * rb, irb = one * ad, ia = iad * d, id = iad * a, ib = irb * r;
    const vf t = 1.07f * ia, t2 = t * t, t7 = t2 * t2 * t2 * t * eps, g = 1.12f * id;
    const vf van = t7 * (g - 2.0f), charge = qq * ib;

    *force = (-7.0f * (van * ia + t7 * g * id * u6) * scale - charge * ib) * (irb * b);
    return van + charge;
}

/* A row's position and the force on it. */
typedef struct row {
    vec3 at, force;
} row;

static inline row row_of(const float *x, int32_t s, int32_t i)
{
    return (row){ { all(x[i]), all(x[s + i]), all(x[2 * s + i]) }, { { 0 }, { 0 }, { 0 } } };
}

/* Row r with the W atoms at q; their gradient changes by the opposite of what the row's does. */
static inline vf row_pair(row *r, vec3 q, const float *of, vec3 *back)
{
    vec3 d = minus(r->at, q);
    vf force;
    const vf e = pair(inner(d, d), of, &force);

    d = scaled(d, force);
    r->force = plus(r->force, d);
    *back = minus(*back, d);
    return e;
}

/* Two rows at once, which begin in the same vector: the other atoms' gradient is loaded and stored half as often. The last
 * atom of an odd number has no pair of its own. */
static double pairs(const ch_energy_plan *m, const float *x, float *g, float *f)
{
    const int32_t n = m->n_atoms, s = m->stride;
    const float *of = m->pairs;
    sums sum = { 0 };

    for (int32_t i = 0; i + 1 < n; i += 2) {
        const int32_t vectors = (n + SK_W - 1) / SK_W - i / SK_W;
        row a = row_of(x, s, i), b = row_of(x, s, i + 1);
        vf e = { 0 };
        for (int32_t v = 0, j = i / SK_W * SK_W; v < vectors; v++, j += SK_W) {
            const vec3 q = { load(x + j), load(x + s + j), load(x + 2 * s + j) };
            vec3 back = { load(g + j), load(g + s + j), load(g + 2 * s + j) };
            e += row_pair(&a, q, of + (size_t)v * 3 * SK_W, &back);
            e += row_pair(&b, q, of + (size_t)(vectors + v) * 3 * SK_W, &back);
            store(g + j, back.x);
            store(g + s + j, back.y);
            store(g + 2 * s + j, back.z);
        }
        of += (size_t)vectors * 6 * SK_W;
        add_sums(f + 4 * (size_t)i, a.force.x, a.force.y, a.force.z, all(0));
        add_sums(f + 4 * (size_t)(i + 1), b.force.x, b.force.y, b.force.z, all(0));
        add_to(&sum, e);
    }
    return total(&sum);
}

static double energy(const ch_energy_plan *m, const float *x, float *g, float *scratch)
{
    const int32_t n = m->n_atoms, s = m->stride;
    float *p = scratch, *f = scratch + 4 * (size_t)s;
    double e = 0;

    memset(f, 0, 4 * (size_t)s * sizeof *f);
    memset(g, 0, 3 * (size_t)s * sizeof *g);
    for (int32_t i = 0; i < n; i++) {
        p[4 * i] = x[i];
        p[4 * i + 1] = x[s + i];
        p[4 * i + 2] = x[2 * s + i];
        p[4 * i + 3] = 0;
    }
    e = bonded(m, p, f) + pairs(m, x, g, f);
    for (int32_t i = 0; i < n; i++) {
        g[i] += f[4 * i];
        g[s + i] += f[4 * i + 1];
        g[2 * s + i] += f[4 * i + 2];
    }
    return e;
}

/* Havel's error of one pair: too far (d^2/u^2 - 1)^2, too near (2 l^2/(l^2 + d^2) - 1)^2. */
static inline vf violation(vf d2, const float *of, vf *force)
{
    const vf upper = load(of), lower = load(of + SK_W), q = 1.0f / (lower + d2 + 1e-6f);
    const vf far = max(d2 * upper - 1.0f, all(0)), ratio = 2.0f * lower * q, near = max(ratio - 1.0f, all(0));

    *force = 4.0f * (far * upper - near * ratio * q);
    return far * far + near * near;
}

static double bounds(const ch_distance_plan *m, const float *x, float *g)
{
    const int32_t n = m->n_atoms, s = m->stride;
    const float *of = m->bounds;
    sums sum = { 0 };

    for (int32_t i = 0; i < n; i++) {
        const vf xi = all(x[i]), yi = all(x[s + i]), zi = all(x[2 * s + i]), wi = all(x[3 * s + i]);
        vf fx = { 0 }, fy = { 0 }, fz = { 0 }, fw = { 0 }, e = { 0 };
        float own[4] __attribute__((aligned(16))) = { 0 };
        for (int32_t j = i / SK_W * SK_W; j < n; j += SK_W, of += 2 * SK_W) {
            vf dx = xi - load(x + j), dy = yi - load(x + s + j), dz = zi - load(x + 2 * s + j), dw = wi - load(x + 3 * s + j),
               force;
            e += violation(dx * dx + dy * dy + dz * dz + dw * dw, of, &force);
            dx *= force, dy *= force, dz *= force, dw *= force;
            fx += dx, fy += dy, fz += dz, fw += dw;
            store(g + j, load(g + j) - dx);
            store(g + s + j, load(g + s + j) - dy);
            store(g + 2 * s + j, load(g + 2 * s + j) - dz);
            store(g + 3 * s + j, load(g + 3 * s + j) - dw);
        }
        add_sums(own, fx, fy, fz, fw);
        for (int c = 0; c < 4; c++)
            g[c * s + i] += own[c];
        add_to(&sum, e);
    }
    return total(&sum);
}

static double fourth(float weight, const float *w, float *g, int32_t n)
{
    sums sum = { 0 };

    for (int32_t i = 0; i < n; i += SK_W) {
        const vf v = load(w + i);
        add_to(&sum, weight * v * v);
        store(g + i, load(g + i) + 2.0f * weight * v);
    }
    return total(&sum);
}

/* The first three components only: the fourth is on its way to 0. */
static double volume(const ch_volume *v, float weight, const float *x, float *g, int32_t s)
{
    float d[3][3], c[3][3], value = 0, h = 0;

    for (int t = 0; t < 3; t++)
        for (int k = 0; k < 3; k++)
            d[t][k] = x[k * s + v->atom[t]] - x[k * s + v->atom[3]];
    for (int t = 0; t < 3; t++)
        for (int k = 0; k < 3; k++)
            c[t][k] = d[(t + 1) % 3][(k + 1) % 3] * d[(t + 2) % 3][(k + 2) % 3] -
                      d[(t + 1) % 3][(k + 2) % 3] * d[(t + 2) % 3][(k + 1) % 3];
    for (int k = 0; k < 3; k++)
        value += d[0][k] * c[0][k];
    h = fminf(value - v->low, 0) + fmaxf(value - v->high, 0);
    for (int t = 0; t < 3; t++)
        for (int k = 0; k < 3; k++) {
            g[k * s + v->atom[t]] += 2 * weight * v->weight * h * c[t][k];
            g[k * s + v->atom[3]] -= 2 * weight * v->weight * h * c[t][k];
        }
    return (double)(weight * v->weight * h * h);
}

static double distance(const ch_distance_plan *m, const float *x, float *g)
{
    const int32_t s = m->stride;
    double e = 0;

    memset(g, 0, 4 * (size_t)s * sizeof *g);
    e = bounds(m, x, g) + fourth(m->fourth_weight, x + 3 * (size_t)s, g + 3 * (size_t)s, s);
    for (int32_t k = 0; k < m->n_volumes; k++)
        e += volume(&m->volumes[k], m->volume_weight, x, g, s);
    return e;
}
