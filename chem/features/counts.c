/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/features/parts.h"

static int place_of_element(int z)
{
    switch (z) {
    case 5: return CH_F_n_b;
    case 6: return CH_F_n_c;
    case 7: return CH_F_n_n;
    case 8: return CH_F_n_o;
    case 9: return CH_F_n_f;
    case 14: return CH_F_n_si;
    case 15: return CH_F_n_p;
    case 16: return CH_F_n_s;
    case 17: return CH_F_n_cl;
    case 34: return CH_F_n_se;
    case 35: return CH_F_n_br;
    case 53: return CH_F_n_i;
    default: return CH_F_n_other;
    }
}

static void count_atoms(double *out, const ch_shape *s)
{
    out[CH_F_n_h] = s->n_hydrogens;
    out[CH_F_charge] = s->charge_loose;
    for (int32_t i = 0; i < s->n; i++) {
        const int32_t degree = ch_shape_degree(s, i);
        out[place_of_element(s->z[i])]++;
        out[CH_F_aromatic_atoms] += s->aromatic[i];
        out[CH_F_aromatic_carbons] += s->aromatic[i] && s->z[i] == 6;
        out[CH_F_aromatic_hetero] += s->aromatic[i] && s->z[i] != 6;
        out[CH_F_positive] += s->charge[i] > 0;
        out[CH_F_negative] += s->charge[i] < 0;
        out[CH_F_charge] += s->charge[i];
        if (degree > 0)
            out[CH_F_degree_1 + (degree < 4 ? degree : 4) - 1]++;
    }
}

static bool is_carbonyl(const ch_shape *s, int32_t b)
{
    const int z0 = s->z[s->bond[b][0]], z1 = s->z[s->bond[b][1]];

    return s->type[b] == CH_PAIR_DOUBLE && ((z0 == 6 && z1 == 8) || (z0 == 8 && z1 == 6));
}

/* Hydrogens without a heavy neighbour come in pairs or alone. */
void ch_features_counts(double *out, const ch_shape *s, const ch_rings *rings)
{
    const int32_t n_pairs = s->n_loose_bonded / 2;

    count_atoms(out, s);
    out[CH_F_parts] = rings->n_parts + n_pairs + s->n_loose - s->n_loose_bonded;
    for (int32_t b = 0; b < s->n_bonds; b++) {
        out[CH_F_bonds_single + s->type[b]]++;
        out[CH_F_carbonyls] += is_carbonyl(s, b);
    }
}
