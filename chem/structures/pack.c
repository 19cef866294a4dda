/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/pack.h"

#include <math.h>
#include <string.h>

#include "chem/structures/energy_plan.h"
#include "chem/structures/precondition.h"

static const double torsion_heat = 1; /* kcal/mol, as structure.c */

/* A list of terms: its atoms in the arrays, and its first slot. */
typedef struct list {
    int32_t n, n_atoms, slot;
    const int32_t *atoms; /* [n_atoms][n] */
} list;

typedef struct packer {
    ch_packed *out;
    ch_gpu_molecule *m;
    const ch_terms *terms;
    const ch_bounds *bounds;
    ch_energy_plan plan; /* of width 1 */
    ch_preconditioner matrix;
    list lists[4];
    int32_t n_products;
} packer;

static int32_t *ints(const packer *p, enum ch_gpu_array a) { return p->out->words + p->m->at[a]; }

static float *floats(const packer *p, enum ch_gpu_array a) { return (float *)(void *)(p->out->words + p->m->at[a]); }

static int32_t place(const packer *p, int32_t atom) { return p->out->place[atom]; }

/* How many threads share an atom's row of pairs: those that make the longest thread's work least. */
static int32_t parts_of(int32_t n)
{
    int32_t best = 1, least = INT32_MAX;

    for (int32_t p = 1; p <= CH_GPU_MOST_PARTS; p++) {
        const int32_t work = (p * n + CH_GPU_THREADS - 1) / CH_GPU_THREADS * ((n + p - 1) / p);
        if (work < least) {
            least = work;
            best = p;
        }
    }
    return best;
}

static void count(packer *p)
{
    const ch_energy_plan *e = &p->plan;
    const ch_bounds *b = p->bounds;

    *p->m = (ch_gpu_molecule){ .n_atoms = e->n_atoms,
                               .n_bonds = e->n_bonds,
                               .n_angles = e->n_angles,
                               .n_planes = e->n_planes,
                               .n_torsions = e->n_torsions,
                               .n_volumes = b != NULL ? b->n_volumes : 0,
                               .n_chiral = b != NULL ? b->n_chiral : 0,
                               .n_rotors = b != NULL ? b->rotors.n : 0,
                               .n_slots = 2 * e->n_bonds + 3 * e->n_angles + 4 * e->n_planes + 4 * e->n_torsions,
                               .parts = parts_of(e->n_atoms) };
    for (int32_t i = 0; i < e->n_atoms; i++)
        p->m->n_blocks += p->matrix.matrix.last[i] - i + 1;
    p->n_products = 3 * e->n_bonds + 6 * e->n_angles + 10 * e->n_planes + 10 * e->n_torsions;
    p->m->floats = ch_gpu_floats(p->m);
}

/* Where each array begins. */
static bool lay_out(packer *p, pl_arena *mem)
{
    const ch_gpu_molecule *m = p->m;
    const int64_t n = m->n_atoms, square = p->bounds != NULL ? n * n : 0;
    const int64_t size[CH_GPU_N_ARRAYS] = {
        [CH_GPU_BOND_ATOMS] = 2 * m->n_bonds,
        [CH_GPU_BOND_PARAMS] = 2 * m->n_bonds,
        [CH_GPU_ANGLE_ATOMS] = 3 * m->n_angles,
        [CH_GPU_ANGLE_PARAMS] = 7 * m->n_angles,
        [CH_GPU_PLANE_ATOMS] = 4 * m->n_planes,
        [CH_GPU_PLANE_PARAMS] = 3 * m->n_planes,
        [CH_GPU_TORSION_ATOMS] = 4 * m->n_torsions,
        [CH_GPU_TORSION_PARAMS] = 3 * m->n_torsions,
        [CH_GPU_PAIRS] = 3 * n * n,
        [CH_GPU_SLOT_FIRST] = n + 1,
        [CH_GPU_SLOTS] = m->n_slots,
        [CH_GPU_NUMBERS] = n,
        [CH_GPU_LAST] = n,
        [CH_GPU_BEGIN] = n,
        [CH_GPU_ROW] = n + 1,
        [CH_GPU_BLOCK_FIRST] = m->n_blocks + 1,
        [CH_GPU_BLOCK_SLOTS] = p->n_products,
        [CH_GPU_UPPER] = square,
        [CH_GPU_LOWER] = square,
        [CH_GPU_VOLUME_ATOMS] = 4 * m->n_volumes,
        [CH_GPU_VOLUME_PARAMS] = 3 * m->n_volumes,
        [CH_GPU_VOLUME_FIRST] = n + 1,
        [CH_GPU_VOLUME_SLOTS] = 4 * m->n_volumes,
        [CH_GPU_ROTOR_ATOMS] = 2 * m->n_rotors,
        [CH_GPU_ROTOR_WEIGHTS] = CH_GPU_ROTOR_ANGLES * m->n_rotors,
        [CH_GPU_ROTOR_DISTANCES] = CH_GPU_ROTOR_ANGLES * m->n_rotors,
    };

    for (int a = 0; a < CH_GPU_N_ARRAYS; a++) {
        p->m->at[a] = p->out->n_words;
        p->out->n_words += size[a];
    }
    p->out->words = PL_NEW(mem, int32_t, p->out->n_words + 1);
    return p->out->words != NULL;
}

/* One class of terms, from the plan of width 1: there a term's atoms follow each other, times 4. */
static void put_class(packer *p, list *l, const int32_t *atoms, const float *params, int32_t n_params, int32_t stride,
                      enum ch_gpu_array a)
{
    int32_t *to = ints(p, a);
    float *of = floats(p, a + 1);

    for (int32_t t = 0; t < l->n; t++) {
        for (int32_t k = 0; k < l->n_atoms; k++)
            to[k * l->n + t] = place(p, atoms[t * l->n_atoms + k] / 4);
        for (int32_t k = 0; k < n_params; k++)
            of[k * l->n + t] = params[t * stride + k];
    }
    l->atoms = to;
}

static void put_terms(packer *p)
{
    const ch_energy_plan *e = &p->plan;
    int32_t slot = 0;

    p->lists[0] = (list){ .n = e->n_bonds, .n_atoms = 2 };
    p->lists[1] = (list){ .n = e->n_angles, .n_atoms = 3 };
    p->lists[2] = (list){ .n = e->n_planes, .n_atoms = 4 };
    p->lists[3] = (list){ .n = e->n_torsions, .n_atoms = 4 };
    for (int k = 0; k < 4; k++) {
        p->lists[k].slot = slot;
        slot += p->lists[k].n * p->lists[k].n_atoms;
    }
    put_class(p, &p->lists[0], e->bond_atoms, e->bond_params, 2, 2, CH_GPU_BOND_ATOMS);
    put_class(p, &p->lists[1], e->angle_atoms, e->angle_params, 7, CH_ANGLE_PARAMS, CH_GPU_ANGLE_ATOMS);
    put_class(p, &p->lists[2], e->plane_atoms, e->plane_params, 3, 3, CH_GPU_PLANE_ATOMS);
    put_class(p, &p->lists[3], e->torsion_atoms, e->torsion_params, 3, 3, CH_GPU_TORSION_ATOMS);
}

static void put_pairs(packer *p)
{
    const size_t n = (size_t)p->m->n_atoms, all = n * n;
    float *to = floats(p, CH_GPU_PAIRS);

    for (size_t k = 0; k < all; k++)
        to[k] = 1;
    for (int32_t k = 0; k < p->terms->n_pairs; k++) {
        const ch_pair_term *t = &p->terms->pairs[k];
        const size_t i = (size_t)place(p, t->i), j = (size_t)place(p, t->j), at[2] = { i * n + j, j * n + i };
        for (int side = 0; side < 2; side++) {
            to[at[side]] = (float)(1 / t->r_star);
            to[all + at[side]] = (float)t->epsilon;
            to[2 * all + at[side]] = (float)t->charges;
        }
    }
}

/* Which slots are an atom's, in their order. */
static void put_slots(const packer *p, const list *lists, int n_lists, enum ch_gpu_array a)
{
    const int32_t n = p->m->n_atoms;
    int32_t *first = ints(p, a), *to = ints(p, a + 1);

    for (int k = 0; k < n_lists; k++)
        for (int32_t s = 0; s < lists[k].n * lists[k].n_atoms; s++)
            first[lists[k].atoms[s] + 1]++;
    for (int32_t i = 0; i < n; i++)
        first[i + 1] += first[i];
    for (int k = 0; k < n_lists; k++)
        for (int32_t s = 0; s < lists[k].n * lists[k].n_atoms; s++)
            to[first[lists[k].atoms[s]]++] = lists[k].slot + s;
    memmove(first + 1, first, (size_t)n * sizeof *first); /* the end of a list is where the next one begins */
    first[0] = 0;
}

static void put_matrix(packer *p)
{
    const int32_t n = p->m->n_atoms;
    int32_t *last = ints(p, CH_GPU_LAST), *begin = ints(p, CH_GPU_BEGIN), *row = ints(p, CH_GPU_ROW);

    for (int32_t i = 0; i < n; i++)
        ints(p, CH_GPU_NUMBERS)[place(p, i)] = i;
    for (int32_t i = 0; i < n; i++) {
        last[i] = p->matrix.matrix.last[i];
        row[i + 1] = row[i] + last[i] - i + 1;
        begin[i] = i > 0 ? begin[i - 1] : 0;
        while (last[begin[i]] < i)
            begin[i]++;
    }
}

/* The pairs of a term's atoms whose block is stored: counted (to is NULL), or put into the list of the block. */
static void put_products_of(const packer *p, const list *l, int32_t *first, int32_t *to)
{
    const int32_t *last = ints(p, CH_GPU_LAST), *row = ints(p, CH_GPU_ROW);

    for (int32_t t = 0; t < l->n; t++)
        for (int32_t a = 0; a < l->n_atoms; a++)
            for (int32_t b = 0; b < l->n_atoms; b++) {
                const int32_t sa = a * l->n + t, sb = b * l->n + t, i = l->atoms[sa], j = l->atoms[sb];
                if (i > j || j > last[i])
                    continue;
                if (to == NULL)
                    first[row[i] + j - i + 1]++;
                else
                    to[first[row[i] + j - i]++] = (int32_t)((uint32_t)(l->slot + sa) | (uint32_t)(l->slot + sb) << 16);
            }
}

static void put_products(packer *p)
{
    int32_t *first = ints(p, CH_GPU_BLOCK_FIRST), *to = ints(p, CH_GPU_BLOCK_SLOTS);

    for (int k = 0; k < 4; k++)
        put_products_of(p, &p->lists[k], first, NULL);
    for (int32_t b = 0; b < p->m->n_blocks; b++)
        first[b + 1] += first[b];
    for (int k = 0; k < 4; k++)
        put_products_of(p, &p->lists[k], first, to);
    memmove(first + 1, first, (size_t)p->m->n_blocks * sizeof *first);
    first[0] = 0;
}

static void put_volumes(packer *p)
{
    const ch_bounds *b = p->bounds;
    const int32_t n = b->n_volumes;
    int32_t *atoms = ints(p, CH_GPU_VOLUME_ATOMS);
    float *of = floats(p, CH_GPU_VOLUME_PARAMS);
    const list all = { .n = n, .n_atoms = 4, .atoms = atoms };

    for (int32_t v = 0; v < n; v++) {
        for (int a = 0; a < 4; a++)
            atoms[a * n + v] = place(p, b->volumes[v].atom[a]);
        of[v] = b->volumes[v].low;
        of[n + v] = b->volumes[v].high;
        of[2 * n + v] = b->volumes[v].weight;
    }
    put_slots(p, &all, 1, CH_GPU_VOLUME_FIRST);
}

static void put_rotors(packer *p)
{
    const ch_rotors *r = &p->bounds->rotors;
    float *weights = floats(p, CH_GPU_ROTOR_WEIGHTS), *distances = floats(p, CH_GPU_ROTOR_DISTANCES);

    for (int32_t k = 0; k < r->n; k++) {
        double weight[CH_ROTOR_ANGLES], sum = 0, at = 0;
        for (int a = 0; a < CH_ROTOR_ANGLES; a++)
            sum += weight[a] = exp(-r->rotor[k].energy[a] / torsion_heat) * (a == 0 || a == CH_ROTOR_ANGLES - 1 ? 0.5 : 1);
        for (int a = 0; a < CH_ROTOR_ANGLES; a++) {
            at += weight[a];
            weights[a * r->n + k] = (float)(at / sum);
            distances[a * r->n + k] = r->rotor[k].distance[a];
        }
        ints(p, CH_GPU_ROTOR_ATOMS)[k] = place(p, r->rotor[k].atom[0]);
        ints(p, CH_GPU_ROTOR_ATOMS)[r->n + k] = place(p, r->rotor[k].atom[3]);
    }
}

static void put_bounds(packer *p)
{
    const ch_bounds *b = p->bounds;
    float *upper = floats(p, CH_GPU_UPPER), *lower = floats(p, CH_GPU_LOWER);

    for (int32_t i = 0; i < b->n; i++)
        for (int32_t j = 0; j < b->n; j++) {
            const size_t to = (size_t)place(p, i) * (size_t)b->n + (size_t)place(p, j);
            upper[to] = b->upper[(size_t)i * (size_t)b->stride + (size_t)j];
            lower[to] = b->lower[(size_t)i * (size_t)b->stride + (size_t)j];
        }
}

pl_code ch_pack(ch_packed *out, const ch_terms *terms, const ch_bounds *bounds, const ch_kernels *kernels, pl_arena *mem,
                pl_error *err)
{
    const ch_kernels one = { .name = "one", .width = 1 };
    packer p = { .out = out, .m = &out->molecule, .terms = terms, .bounds = bounds };
    pl_code code = PL_OK;

    *out = (ch_packed){ 0 };
    if (terms->n_atoms < 1 || terms->n_atoms > CH_GPU_MOST_ATOMS)
        return pl_fail(err, PL_EINPUT, "%d atoms; the GPU builds molecules of 1 to %d", (int)terms->n_atoms, CH_GPU_MOST_ATOMS);
    code = ch_energy_plan_make(&p.plan, terms, &one, mem, err);
    if (code == PL_OK)
        code = ch_preconditioner_make(&p.matrix, terms, kernels, mem, err);
    if (code != PL_OK)
        return code;
    out->place = p.matrix.place;
    count(&p);
    if (p.m->n_slots > UINT16_MAX)
        return pl_fail(err, PL_EINPUT, "too many terms for the GPU: %d slots", (int)p.m->n_slots);
    if (!lay_out(&p, mem))
        return pl_fail(err, PL_ENOMEM, "no memory for the arrays of %d atoms", (int)terms->n_atoms);
    put_terms(&p);
    put_pairs(&p);
    put_slots(&p, p.lists, 4, CH_GPU_SLOT_FIRST);
    put_matrix(&p);
    put_products(&p);
    if (bounds == NULL)
        return PL_OK;
    put_bounds(&p);
    put_volumes(&p);
    put_rotors(&p);
    return PL_OK;
}

void ch_pack_positions(float *to, const ch_packed *p, const float (*xyz)[3])
{
    const int32_t n = p->molecule.n_atoms;

    for (int32_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            to[c * n + p->place[i]] = xyz[i][c];
}

void ch_unpack_positions(float (*xyz)[3], const ch_packed *p, const float *from)
{
    const int32_t n = p->molecule.n_atoms;

    for (int32_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            xyz[i][c] = from[c * n + p->place[i]];
}
