/* SPDX-License-Identifier: Apache-2.0 */
/* Where stereo is possible, from bonds alone: graphs hold no stereo. Atoms are told apart by colour refinement (Weisfeiler and Leman
 * 1968), so a centre that is one only by the stereo of others (1,4-dimethylcyclohexane) is none here. */
#include <string.h>

#include "chem/features/parts.h"
#include "pipeline/base/rng.h"

enum { ROUNDS_MAX = 64, LIGANDS_MAX = 4, SMALL_RING = 8 };

typedef struct colours {
    const ch_shape *s;
    uint64_t *now, *next; /* [n] */
} colours;

static uint64_t mix(uint64_t sum, uint64_t value) { return pl_splitmix64(3 * sum + value); }

static void colour_first(colours *c)
{
    const ch_shape *s = c->s;

    for (int32_t i = 0; i < s->n; i++) {
        const int32_t what[] = { s->z[i], s->charge[i], s->hydrogens[i], ch_shape_degree(s, i), s->aromatic[i] };
        for (size_t k = 0; k < sizeof what / sizeof *what; k++)
            c->now[i] = mix(c->now[i], (uint64_t)(uint32_t)what[k]);
    }
}

/* One round; the sum over neighbours does not depend on their order. */
static void colour_on(colours *c)
{
    const ch_shape *s = c->s;

    for (int32_t i = 0; i < s->n; i++) {
        uint64_t sum = 0;
        for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
            sum += mix(s->link[k].type, c->now[s->link[k].to]);
        c->next[i] = mix(c->now[i], sum);
    }
    memcpy(c->now, c->next, (size_t)s->n * sizeof *c->now);
}

/* ---- centres ---- */

/* Elements and valences whose four places keep their order; a lone pair can be one of them at S, Se, P and As. */
static bool keeps_order(const ch_shape *s, int32_t i)
{
    const int32_t x = ch_shape_connections(s, i);

    switch (s->z[i]) {
    case 5:
    case 6:
    case 14:
    case 32: return x == 4;
    case 7: return x == 4 && s->charge[i] > 0;
    case 15:
    case 33: return x == 3 || x == 4;
    case 16:
    case 34: return x == 4 || (x == 3 && (s->valence[i] == 4 || s->charge[i] == 1));
    default: return false;
    }
}

static bool is_centre(const colours *c, int32_t i)
{
    const ch_shape *s = c->s;

    if (!keeps_order(s, i) || s->hydrogens[i] > 1 || s->aromatic[i])
        return false;
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        for (int32_t m = s->row[i]; m < k; m++)
            if (c->now[s->link[k].to] == c->now[s->link[m].to])
                return false;
    return true;
}

/* ---- double bonds ---- */

/* The end of a double bond to `other` has two different places: three connections, or two with a lone pair. */
static bool has_sides(const colours *c, int32_t i, int32_t other)
{
    const ch_shape *s = c->s;
    const int32_t x = ch_shape_connections(s, i);
    uint64_t seen = 0;
    int n = 0;

    if (s->z[i] != 6 && s->z[i] != 7)
        return false;
    if (s->hydrogens[i] > 1 || (x != 3 && !(x == 2 && s->z[i] == 7)))
        return false;
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        if (s->link[k].to != other) {
            if (s->link[k].type == CH_PAIR_DOUBLE || (n > 0 && c->now[s->link[k].to] == seen))
                return false;
            seen = c->now[s->link[k].to];
            n++;
        }
    return true;
}

static bool is_in_small_ring(const ch_rings *rings, int32_t b)
{
    for (int32_t r = 0; r < rings->n && rings->ring[r].size < SMALL_RING; r++)
        for (int32_t k = 0; k < rings->ring[r].size; k++)
            if (rings->ring[r].bond[k] == b)
                return true;
    return false;
}

pl_code ch_features_stereo(double *out, const ch_shape *s, const ch_rings *rings, pl_arena *mem, pl_error *err)
{
    colours c = { .s = s, .now = PL_NEW(mem, uint64_t, s->n + 1), .next = PL_NEW(mem, uint64_t, s->n + 1) };

    if (c.now == NULL || c.next == NULL)
        return pl_fail(err, PL_ENOMEM, "stereo");
    colour_first(&c);
    for (int32_t k = 0; k < s->n && k < ROUNDS_MAX; k++)
        colour_on(&c);
    for (int32_t i = 0; i < s->n; i++)
        out[CH_F_stereo_atoms] += is_centre(&c, i);
    for (int32_t b = 0; b < s->n_bonds; b++)
        out[CH_F_stereo_bonds] += s->type[b] == CH_PAIR_DOUBLE && has_sides(&c, s->bond[b][0], s->bond[b][1]) &&
                                  has_sides(&c, s->bond[b][1], s->bond[b][0]) && !is_in_small_ring(rings, b);
    return PL_OK;
}
