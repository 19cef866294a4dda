/* SPDX-License-Identifier: Apache-2.0 */
/* How rings meet, and how large they are. */
#include "chem/features/parts.h"

typedef struct marks {
    const ch_shape *s;
    const ch_rings *rings;
    int32_t *atom, *bond; /* [n], [n_bonds] the last first ring of a pair that has it, + 1 */
    int32_t *shared;      /* [n] shared bonds of the pair at hand                          */
    bool *spiro, *head, *fused;
} marks;

static bool marks_alloc(marks *m, pl_arena *mem)
{
    const size_t n = (size_t)m->s->n + 1, n_bonds = (size_t)m->s->n_bonds + 1;

    m->atom = PL_NEW(mem, int32_t, n);
    m->bond = PL_NEW(mem, int32_t, n_bonds);
    m->shared = PL_NEW(mem, int32_t, n);
    m->spiro = PL_NEW(mem, bool, n);
    m->head = PL_NEW(mem, bool, n);
    m->fused = PL_NEW(mem, bool, n_bonds);
    return m->atom != NULL && m->bond != NULL && m->shared != NULL && m->spiro != NULL && m->head != NULL && m->fused != NULL;
}

/* The atoms at the ends of what the pair shares have one shared bond. */
static void find_heads(marks *m, const ch_ring *b, int32_t stamp)
{
    for (int32_t k = 0; k < b->size; k++)
        for (int e = 0; e < 2 && m->bond[b->bond[k]] == stamp; e++)
            m->shared[m->s->bond[b->bond[k]][e]]++;
    for (int32_t k = 0; k < b->size; k++) {
        m->head[b->atom[k]] |= m->shared[b->atom[k]] == 1;
        m->shared[b->atom[k]] = 0;
    }
}

/* Ring b with the marked one. */
static void meet(marks *m, const ch_ring *b, int32_t stamp)
{
    int32_t n_atoms = 0, n_bonds = 0, atom = 0, bond = 0;

    for (int32_t k = 0; k < b->size; k++) {
        if (m->atom[b->atom[k]] == stamp) {
            n_atoms++;
            atom = b->atom[k];
        }
        if (m->bond[b->bond[k]] == stamp) {
            n_bonds++;
            bond = b->bond[k];
        }
    }
    if (n_atoms == 1)
        m->spiro[atom] = true;
    if (n_bonds == 1)
        m->fused[bond] = true;
    if (n_bonds > 1)
        find_heads(m, b, stamp);
}

static void meet_all(marks *m)
{
    for (int32_t r = 0; r < m->rings->n; r++) {
        const ch_ring *a = &m->rings->ring[r];
        for (int32_t k = 0; k < a->size; k++)
            m->atom[a->atom[k]] = m->bond[a->bond[k]] = r + 1;
        for (int32_t q = r + 1; q < m->rings->n; q++)
            meet(m, &m->rings->ring[q], r + 1);
    }
}

pl_code ch_features_meetings(double *out, const ch_shape *s, const ch_rings *rings, pl_arena *mem, pl_error *err)
{
    marks m = { .s = s, .rings = rings };

    if (!marks_alloc(&m, mem))
        return pl_fail(err, PL_ENOMEM, "rings");
    meet_all(&m);
    for (int32_t i = 0; i < s->n; i++) {
        out[CH_F_spiro_atoms] += m.spiro[i];
        out[CH_F_bridgeheads] += m.head[i];
    }
    for (int32_t b = 0; b < s->n_bonds; b++)
        out[CH_F_fused_bonds] += m.fused[b];
    for (int32_t r = 0; r < rings->n; r++)
        out[CH_F_rings_3 + (rings->ring[r].size < 8 ? rings->ring[r].size : 8) - 3]++;
    return PL_OK;
}
