/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/features/crippen.h"
#include "chem/features/element_table.h"
#include "chem/features/parts.h"

/* Sums of contributions are whole numbers, so that they do not depend on the order. */
void ch_crippen_sums(double *log_p, double *refractivity, const ch_shape *s)
{
    const ch_crippen bonded = ch_crippen_loose(true), lone = ch_crippen_loose(false);
    const int64_t n_bonded = s->n_loose_bonded, n_lone = s->n_loose - s->n_loose_bonded;
    int64_t logp = n_bonded * bonded.logp + n_lone * lone.logp, mr = n_bonded * bonded.mr + n_lone * lone.mr;

    for (int32_t i = 0; i < s->n; i++) {
        const ch_crippen c = ch_crippen_of(s, i), h = ch_crippen_hydrogen(s, i);
        logp += c.logp + (int64_t)s->hydrogens[i] * h.logp;
        mr += c.mr + (int64_t)s->hydrogens[i] * h.mr;
    }
    *log_p = (double)logp * 1e-5;
    *refractivity = (double)mr * 1e-4;
}

static void masses(double *out, const ch_shape *s)
{
    int64_t mass = (int64_t)s->n_hydrogens * ch_element_rows[1].mass, electrons = s->n_hydrogens - s->charge_loose;

    for (int32_t i = 0; i < s->n; i++) {
        mass += ch_element_rows[s->z[i]].mass;
        electrons += ch_element_rows[s->z[i]].outer - s->charge[i];
    }
    out[CH_F_mw] = ((double)mass * 1e-4);
    out[CH_F_valence_electrons] = (double)electrons;
}

static void atoms(double *out, const ch_shape *s)
{
    int32_t n_carbon = 0, n_sp3 = 0;

    out[CH_F_n_heavy] = s->n;
    for (int32_t i = 0; i < s->n; i++) {
        const bool polar = s->z[i] == 7 || s->z[i] == 8;
        out[CH_F_n_hetero] += s->z[i] != 6;
        out[CH_F_nitrogen_oxygen] += polar;
        out[CH_F_nh_oh] += polar ? s->hydrogens[i] : 0;
        n_carbon += s->z[i] == 6;
        n_sp3 += s->z[i] == 6 && ch_shape_connections(s, i) == 4;
    }
    out[CH_F_sp3_carbons] = n_sp3;
    out[CH_F_fsp3] = n_carbon > 0 ? (double)n_sp3 / n_carbon : 0;
}

static bool is_of_carbon(const ch_shape *s, const ch_ring *r)
{
    for (int32_t k = 0; k < r->size; k++)
        if (s->z[r->atom[k]] != 6)
            return false;
    return true;
}

static bool all_bonds(const ch_shape *s, const ch_ring *r, int type)
{
    for (int32_t k = 0; k < r->size; k++)
        if (s->type[r->bond[k]] != type)
            return false;
    return true;
}

void ch_features_basic(double *out, const ch_shape *s, const ch_rings *rings)
{
    masses(out, s);
    ch_crippen_sums(&out[CH_F_logp], &out[CH_F_mr], s);
    atoms(out, s);
    out[CH_F_rings] = rings->n;
    for (int32_t r = 0; r < rings->n; r++) {
        const ch_ring *ring = &rings->ring[r];
        const bool carbo = is_of_carbon(s, ring), aromatic = all_bonds(s, ring, CH_PAIR_AROMATIC);
        if (aromatic)
            out[carbo ? CH_F_rings_aromatic_carbo : CH_F_rings_aromatic_hetero]++;
        else
            out[carbo ? CH_F_rings_aliphatic_carbo : CH_F_rings_aliphatic_hetero]++;
        if (all_bonds(s, ring, CH_PAIR_SINGLE))
            out[carbo ? CH_F_rings_saturated_carbo : CH_F_rings_saturated_hetero]++;
    }
}
