/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/precondition.h"

#include <math.h>
#include <string.h>

static const float stiffness = 5;           /* kcal/mol/A^2: what stands for non-bonded terms; 2 to 10 differ little */
static const float energy_unit = 143.9325f; /* kcal/mol of 1 md A */

/* Breadth first along the bonds, from a far end of each part. Returns the last atom reached. */
static int32_t number_from(int32_t start, int32_t *place, int32_t *queue, int32_t done, const int32_t *first, const int32_t *bonded)
{
    int32_t head = done, tail = done;

    place[start] = tail;
    queue[tail++] = start;
    for (; head < tail; head++)
        for (int32_t k = first[queue[head]]; k < first[queue[head] + 1]; k++)
            if (place[bonded[k]] < 0) {
                place[bonded[k]] = tail;
                queue[tail++] = bonded[k];
            }
    return queue[tail - 1];
}

static void number_atoms(int32_t *place, int32_t *queue, int32_t n, const int32_t *first, const int32_t *bonded)
{
    int32_t done = 0;

    for (int32_t i = 0; i < n; i++)
        place[i] = -1;
    for (int32_t i = 0; i < n; i++) {
        if (place[i] >= 0)
            continue;
        const int32_t far = number_from(i, place, queue, done, first, bonded);
        for (int32_t k = done; k < n && place[queue[k]] == k; k++)
            place[queue[k]] = -1;
        (void)number_from(far, place, queue, done, first, bonded);
        while (done < n && place[queue[done]] == done)
            done++;
    }
}

/* Lists of bonded atoms: those of i are bonded[first[i]] to bonded[first[i + 1] - 1]. */
static void list_bonds(const ch_terms *t, int32_t *first, int32_t *bonded)
{
    for (int32_t k = 0; k < t->n_bonds; k++) {
        first[t->bonds[k].i]++;
        first[t->bonds[k].j]++;
    }
    for (int32_t i = 0; i < t->n_atoms; i++)
        first[i + 1] += first[i];
    for (int32_t k = t->n_bonds - 1; k >= 0; k--) {
        bonded[--first[t->bonds[k].i]] = t->bonds[k].j;
        bonded[--first[t->bonds[k].j]] = t->bonds[k].i;
    }
}

static void reach(int32_t *last, const int32_t *place, const int32_t *atoms, int n)
{
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            if (last[place[atoms[a]]] < place[atoms[b]])
                last[place[atoms[a]]] = place[atoms[b]];
}

static void rows_reach(int32_t *last, const int32_t *place, const ch_terms *t)
{
    for (int32_t i = 0; i < t->n_atoms; i++)
        last[i] = i;
    for (int32_t k = 0; k < t->n_bonds; k++)
        reach(last, place, &t->bonds[k].i, 2);
    for (int32_t k = 0; k < t->n_angles; k++)
        reach(last, place, &t->angles[k].i, 3);
    for (int32_t k = 0; k < t->n_out_of_planes; k++)
        reach(last, place, &t->out_of_planes[k].i, 4);
    for (int32_t k = 0; k < t->n_torsions; k++)
        reach(last, place, &t->torsions[k].i, 4);
    for (int32_t i = 1; i < t->n_atoms; i++)
        last[i] = last[i] < last[i - 1] ? last[i - 1] : last[i];
}

static bool make_rows(ch_preconditioner *p, int32_t *last, pl_arena *mem)
{
    const int32_t n = p->terms->n_atoms;
    int64_t *row = PL_NEW(mem, int64_t, 3 * (size_t)n + 1), at = 0;

    if (row == NULL)
        return false;
    for (int32_t i = 0; i < 3 * n; i++) {
        const int32_t begin = i / 3 * 3 / CH_LANES * CH_LANES, end = 3 * (last[i / 3] + 1);
        row[i] = at - begin;
        at += ch_stride(end) - begin;
    }
    p->matrix = (ch_block_matrix){ n, last, row, ch_floats(mem, at + 1), ch_floats(mem, 6 * (int64_t)n + 1) };
    p->n_floats = at;
    p->b = ch_floats(mem, ch_stride(3 * n) + CH_LANES);
    return p->matrix.data != NULL && p->matrix.diagonal != NULL && p->b != NULL;
}

pl_code ch_preconditioner_make(ch_preconditioner *out, const ch_terms *terms, const ch_kernels *kernels, pl_arena *mem,
                               pl_error *err)
{
    const size_t n = (size_t)terms->n_atoms;
    int32_t *first = PL_NEW(mem, int32_t, n + 2), *bonded = PL_NEW(mem, int32_t, 2 * (size_t)terms->n_bonds + 1);
    int32_t *queue = PL_NEW(mem, int32_t, n + 1), *last = PL_NEW(mem, int32_t, n + 1);

    *out = (ch_preconditioner){ .terms = terms, .kernels = kernels, .place = PL_NEW(mem, int32_t, n + 1) };
    if (first == NULL || bonded == NULL || queue == NULL || last == NULL || out->place == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the preconditioner of %d atoms", (int)n);
    list_bonds(terms, first, bonded);
    number_atoms(out->place, queue, terms->n_atoms, first, bonded);
    rows_reach(last, out->place, terms);
    if (!make_rows(out, last, mem))
        return pl_fail(err, PL_ENOMEM, "no memory for the preconditioner of %d atoms", (int)n);
    return PL_OK;
}

typedef struct point {
    float x, y, z;
} point;

static point at(const float *x, int32_t stride, int32_t i) { return (point){ x[i], x[stride + i], x[2 * stride + i] }; }

static point minus(point a, point b) { return (point){ a.x - b.x, a.y - b.y, a.z - b.z }; }

static point sum(float p, point a, float q, point b) { return (point){ p * a.x + q * b.x, p * a.y + q * b.y, p * a.z + q * b.z }; }

static float inner(point a, point b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static point cross(point a, point b) { return (point){ a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x }; }

/* Adds w g g^T, where g is the gradient of one internal coordinate of n atoms. */
static void add_term(const ch_preconditioner *p, const int32_t *atoms, const point *g, int n, float w)
{
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            const int32_t i = p->place[atoms[a]], j = p->place[atoms[b]];
            const float s[3] = { w * g[a].x, w * g[a].y, w * g[a].z };
            for (int c = 0; i <= j && c < 3; c++) {
                float *to = p->matrix.data + p->matrix.row[3 * i + c] + 3 * (int64_t)j;
                to[0] += s[c] * g[b].x;
                to[1] += s[c] * g[b].y;
                to[2] += s[c] * g[b].z;
            }
        }
}

static void add_bond(const ch_preconditioner *p, const ch_bond_term *t, const float *x, int32_t stride)
{
    const point d = minus(at(x, stride, t->i), at(x, stride, t->j));
    const float r = 1 / sqrtf(fmaxf(inner(d, d), 1e-4f));

    add_term(p, &t->i, (point[]){ sum(r, d, 0, d), sum(-r, d, 0, d) }, 2, energy_unit * (float)t->k);
}

static void add_angle(const ch_preconditioner *p, const ch_angle_term *t, const float *x, int32_t stride)
{
    const point q = at(x, stride, t->j), a = minus(at(x, stride, t->i), q), b = minus(at(x, stride, t->k), q);
    const float la = sqrtf(fmaxf(inner(a, a), 1e-4f)), lb = sqrtf(fmaxf(inner(b, b), 1e-4f)), c = inner(a, b) / (la * lb);
    const float s = sqrtf(fmaxf(1 - c * c, 0.03f));
    const point ga = sum(c / (la * la * s), a, -1 / (la * lb * s), b), gb = sum(c / (lb * lb * s), b, -1 / (la * lb * s), a);

    add_term(p, &t->i, (point[]){ ga, sum(-1, ga, -1, gb), gb }, 3, energy_unit * (float)t->ka);
}

static void add_torsion(const ch_preconditioner *p, const ch_torsion_term *t, const float *x, int32_t stride)
{
    const point j = at(x, stride, t->j), k = at(x, stride, t->k);
    const point a = minus(at(x, stride, t->i), j), b = minus(k, j), c = minus(at(x, stride, t->l), k), m = cross(a, b),
                n = cross(c, b);
    const float m2 = inner(m, m), n2 = inner(n, n), b2 = fmaxf(inner(b, b), 1e-4f), al = inner(a, b) / b2, be = inner(c, b) / b2;
    const float w = 0.5f * (fabsf((float)t->v1) + 4 * fabsf((float)t->v2) + 9 * fabsf((float)t->v3));

    if (!(m2 > 0.05f) || !(n2 > 0.05f))
        return;
    const point g0 = sum(sqrtf(b2) / m2, m, 0, m), g3 = sum(-sqrtf(b2) / n2, n, 0, n);
    add_term(p, &t->i, (point[]){ g0, sum(al - 1, g0, be, g3), sum(-1 - be, g3, -al, g0), g3 }, 4, w);
}

/* Three terms of a centre have nearly the same gradient: the height above the plane. */
static void add_plane(const ch_preconditioner *p, const ch_out_of_plane_term *t, const float *x, int32_t stride)
{
    const point j = at(x, stride, t->j), l = minus(at(x, stride, t->l), j);
    const point n = cross(minus(at(x, stride, t->i), j), minus(at(x, stride, t->k), j));
    const float s = 1 / sqrtf(fmaxf(inner(n, n) * inner(l, l), 1e-4f));
    const int32_t atoms[4] = { t->i, t->j, t->k, t->l };

    const point end = sum(s, n, 0, n);

    add_term(p, atoms, (point[]){ end, sum(-3, end, 0, end), end, end }, 4, energy_unit * (float)t->koop);
}

void ch_preconditioner_assemble(ch_preconditioner *p, const float *x, int32_t stride)
{
    const ch_terms *t = p->terms;

    memset(p->matrix.data, 0, (size_t)p->n_floats * sizeof(float));
    for (int32_t i = 0; i < 3 * t->n_atoms; i++)
        p->matrix.data[p->matrix.row[i] + i] = stiffness;
    for (int32_t k = 0; k < t->n_bonds; k++)
        add_bond(p, &t->bonds[k], x, stride);
    for (int32_t k = 0; k < t->n_angles; k++)
        add_angle(p, &t->angles[k], x, stride);
    for (int32_t k = 0; k < t->n_torsions; k++)
        add_torsion(p, &t->torsions[k], x, stride);
    for (int32_t k = 0; k < t->n_out_of_planes; k++)
        add_plane(p, &t->out_of_planes[k], x, stride);
}

void ch_preconditioner_refresh(ch_preconditioner *p, const float *x, int32_t stride)
{
    ch_preconditioner_assemble(p, x, stride);
    p->kernels->factor(&p->matrix);
}

void ch_preconditioner_solve(ch_preconditioner *p, float *d, int32_t stride)
{
    const int32_t n = p->terms->n_atoms;

    for (int32_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            p->b[3 * p->place[i] + c] = d[c * stride + i];
    p->kernels->solve(&p->matrix, p->b);
    for (int32_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            d[c * stride + i] = p->b[3 * p->place[i] + c];
}
