/* SPDX-License-Identifier: Apache-2.0 */
/* Approximate surface of atoms (Labute, J. Mol. Graphics Modell. 2000, 18, 464), binned by contributions to log P and refractivity and by
 * charge. Radii are half the lengths of single bonds, and every heavy atom is covered by one hydrogen, as in RDKit. */
#include "chem/features/crippen.h"
#include "chem/features/element_table.h"
#include "chem/features/parts.h"

static const double PI = 3.14159265358979323846;

static const double shorter[] = { 0, 0.2, 0.3, 0.1 }; /* Angstrom: bonds by CH_PAIR_* */

/* What a sphere of radius rj, bonded by a length less than ri + rj by `less`, covers of one of radius ri, in units of pi ri. */
static double covered(double ri, double rj, double less)
{
    const double d = fmin(fmax(fabs(ri - rj), ri + rj - less), ri + rj);

    return d > 0 ? rj * rj - (ri - d) * (ri - d) / d : 0;
}

static double radius(const ch_shape *s, int32_t i) { return ch_element_rows[s->z[i]].radius * 1e-3; }

static double area_of(const ch_shape *s, int32_t i)
{
    const double ri = radius(s, i);
    int64_t sum = ch_fixed(covered(ri, ch_element_rows[1].radius * 1e-3, 0));

    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        sum += ch_fixed(covered(ri, radius(s, s->link[k].to), shorter[s->link[k].type]));
    return PI * ri * (4 * ri - ch_real(sum));
}

/* The hydrogens as one sphere that all heavy atoms cover. */
static double area_of_hydrogens(const ch_shape *s)
{
    const double r = ch_element_rows[1].radius * 1e-3;
    int64_t sum = 0;

    for (int32_t i = 0; i < s->n; i++)
        sum += ch_fixed(covered(r, radius(s, i), 0));
    return fabs(ch_real(sum)) > 1e-4 ? PI * r * (4 * r - ch_real(sum)) : 0;
}

/* ---- bins ---- */

/* Edges in the units of ch_crippen. */
static const int32_t logp_edges[] = { -40000, -20000, 0, 10000, 15000, 20000, 25000, 30000, 40000, 50000, 60000 };
static const int32_t mr_edges[] = { 12900, 18200, 22400, 24500, 27500, 30500, 36300, 38000, 40000 };
static const double charge_edges[] = { -.3, -.25, -.2, -.15, -.1, -.05, 0, .05, .1, .15, .2, .25, .3 };

enum {
    N_LOGP = sizeof logp_edges / sizeof *logp_edges + 1,
    N_MR = sizeof mr_edges / sizeof *mr_edges + 1,
    N_CHARGE = sizeof charge_edges / sizeof *charge_edges + 1
};

static int bin_of(int32_t x, const int32_t *edge, int n)
{
    int k = 0;

    while (k < n - 1 && x >= edge[k])
        k++;
    return k;
}

static int bin_of_charge(double q)
{
    int k = 0;

    while (k < N_CHARGE - 1 && q >= charge_edges[k])
        k++;
    return k;
}

static void put(double *out, const int64_t *sum, int n)
{
    for (int k = 0; k < n; k++)
        out[k] = ch_real(sum[k]);
}

/* ---- charges ---- */

static void extremes(double *out, const double *charge, int32_t n)
{
    double max = charge[0], min = charge[0];

    for (int32_t i = 1; i < n; i++) {
        max = fmax(max, charge[i]);
        min = fmin(min, charge[i]);
    }
    out[CH_F_charge_max] = max;
    out[CH_F_charge_min] = min;
    out[CH_F_charge_abs_max] = fmax(fabs(max), fabs(min));
    out[CH_F_charge_abs_min] = fmin(fabs(max), fabs(min));
}

pl_code ch_features_surface(double *out, const ch_shape *s, pl_arena *mem, pl_error *err)
{
    int64_t total = 0, logp[N_LOGP] = { 0 }, mr[N_MR] = { 0 }, by_charge[N_CHARGE] = { 0 };
    const double *charge = NULL;
    const pl_code code = ch_charges_of(&charge, s, mem, err);

    if (code != PL_OK || s->n == 0)
        return code;
    for (int32_t i = 0; i < s->n; i++) {
        const ch_crippen c = ch_crippen_of(s, i);
        const int64_t area = ch_fixed(area_of(s, i));
        total += area;
        logp[bin_of(c.logp, logp_edges, N_LOGP)] += area;
        mr[bin_of(c.mr, mr_edges, N_MR)] += area;
        by_charge[bin_of_charge(charge[i])] += area;
    }
    out[CH_F_labute_asa] = (ch_real(total) + area_of_hydrogens(s));
    put(out + CH_F_slogp_vsa1, logp, N_LOGP);
    put(out + CH_F_smr_vsa1, mr, N_MR);
    put(out + CH_F_peoe_vsa1, by_charge, N_CHARGE);
    extremes(out, charge, s->n);
    return PL_OK;
}
