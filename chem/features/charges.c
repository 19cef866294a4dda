/* SPDX-License-Identifier: Apache-2.0 */
/* Partial equalisation of orbital electronegativity: Gasteiger and Marsili, Tetrahedron 1980, 36, 3219. Parameters of elements that the
 * paper does not have: Gasteiger's later ones, as in PETRA. Formal charges of conjugated atoms are shared first. */
#include "chem/features/parts.h"

enum { ROUNDS = 12 };
static const double ION_H = 20.02; /* eV, of H+ */
static const double MAX = 8;       /* e: charges are kept within, because atoms with many neighbours would diverge */

/* Electronegativity a + b q + c q^2, eV. */
typedef struct peoe {
    double a, b, c;
} peoe;

static const peoe HYDROGEN = { 7.17, 6.24, -0.56 };

/* clang-format off */
static const struct {
    int z;
    ch_hybrid hybrid;
    peoe of;
} table[] = {
    { 6, CH_HYBRID_SP3, { 7.98, 9.18, 1.88 } },     { 6, CH_HYBRID_SP2, { 8.79, 9.32, 1.51 } },    { 6, CH_HYBRID_SP, { 10.39, 9.45, 0.73 } },
    { 7, CH_HYBRID_SP3, { 11.54, 10.82, 1.36 } },   { 7, CH_HYBRID_SP2, { 12.87, 11.15, 0.85 } },  { 7, CH_HYBRID_SP, { 15.68, 11.7, -0.27 } },
    { 8, CH_HYBRID_SP3, { 14.18, 12.92, 1.39 } },   { 8, CH_HYBRID_SP2, { 17.07, 13.79, 0.47 } },
    { 9, CH_HYBRID_SP3, { 14.66, 13.85, 2.31 } },   { 17, CH_HYBRID_SP3, { 11.00, 9.69, 1.35 } },
    { 35, CH_HYBRID_SP3, { 10.08, 8.47, 1.16 } },   { 53, CH_HYBRID_SP3, { 9.9, 7.96, 0.96 } },
    { 16, CH_HYBRID_SP3, { 10.14, 9.13, 1.38 } },   { 16, CH_HYBRID_SP2, { 10.88, 9.49, 1.33 } },
    { 15, CH_HYBRID_SP3, { 8.90, 8.24, 0.96 } },    { 15, CH_HYBRID_SP2, { 9.665, 8.53, 0.735 } },
    { 14, CH_HYBRID_SP3, { 7.3, 6.567, 0.657 } },   { 14, CH_HYBRID_SP2, { 7.905, 6.748, 0.443 } }, { 14, CH_HYBRID_SP, { 9.065, 7.027, -0.002 } },
    { 5, CH_HYBRID_SP3, { 5.98, 6.82, 1.605 } },    { 5, CH_HYBRID_SP2, { 6.42, 6.807, 1.322 } },
    { 4, CH_HYBRID_SP3, { 3.845, 6.755, 3.165 } },  { 4, CH_HYBRID_SP2, { 4.005, 6.725, 3.035 } },
    { 12, CH_HYBRID_SP2, { 3.565, 5.572, 2.197 } }, { 12, CH_HYBRID_SP3, { 3.3, 5.587, 2.447 } },  { 12, CH_HYBRID_SP, { 4.04, 5.472, 1.823 } },
    { 13, CH_HYBRID_SP3, { 5.375, 4.953, 0.867 } }, { 13, CH_HYBRID_SP2, { 5.795, 5.02, 0.695 } },
};
/* clang-format on */

/* Atoms of charge before the first round and during the rounds. */
typedef struct peoe_state {
    const ch_shape *s;
    peoe *of;                /* [n] zeros: no parameters, takes no part */
    double *charge, *energy; /* [n] */
    double *hydrogen;        /* [n] charge of each hydrogen of an atom */
    int64_t *share;          /* [n] sum of shares of formal charge     */
    int32_t *n_shares;       /* [n] */
} peoe_state;

static peoe parameters(const ch_shape *s, int32_t i)
{
    ch_hybrid hybrid = s->hybrid[i];

    if (s->z[i] == 16 && hybrid != CH_HYBRID_SP2)
        hybrid = CH_HYBRID_SP3;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (table[k].z == s->z[i] && table[k].hybrid == hybrid)
            return table[k].of;
    return (peoe){ 0, 0, 0 };
}

/* ---- formal charges ---- */

/* Calls for atom i itself and every atom of its element two conjugated bonds away. Returns how many there are, and the sum of their charges. */
static int32_t group_of(const peoe_state *p, int32_t i, int32_t *sum, int64_t each, bool give)
{
    const ch_shape *s = p->s;
    int32_t n = 1;

    *sum = s->charge[i];
    p->share[i] += give ? each : 0;
    p->n_shares[i] += give;
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        for (int32_t j = s->link[k].to, m = s->row[j]; s->conjugated[s->link[k].bond] && m < s->row[j + 1]; m++) {
            const int32_t other = s->link[m].to;
            if (other == i || !s->conjugated[s->link[m].bond] || s->z[other] != s->z[i])
                continue;
            *sum += s->charge[other];
            n++;
            p->share[other] += give ? each : 0;
            p->n_shares[other] += give;
        }
    return n;
}

/* A charged atom of a conjugated system shares its charge with atoms like it: the oxygens of a carboxylate have -1/2. */
static void share_charges(peoe_state *p)
{
    for (int32_t i = 0; i < p->s->n; i++) {
        int32_t sum, n;
        if (p->s->charge[i] == 0)
            continue;
        n = group_of(p, i, &sum, 0, false);
        group_of(p, i, &sum, ch_fixed((double)sum / n), true);
    }
    for (int32_t i = 0; i < p->s->n; i++)
        p->charge[i] = p->n_shares[i] > 0 ? ch_real(p->share[i]) / p->n_shares[i] : 0;
}

/* ---- rounds ---- */

static double electronegativity(peoe of, double q) { return of.a + q * (of.b + q * of.c); }

static double ion_of(peoe of) { return of.a + of.b + of.c; }

/* Charge that flows to an atom of energy `own` from one of energy `other`; the divisor is the ion of the one that gives. */
static double flow(double own, double ion, double other, double other_ion)
{
    const double divisor = other >= own ? ion : other_ion;

    return divisor > 0 ? (other - own) / divisor : 0;
}

static double bounded(double q) { return fmin(fmax(q, -MAX), MAX); }

static double change_of(peoe_state *p, int32_t i, double damp)
{
    const ch_shape *s = p->s;
    const double ion = ion_of(p->of[i]);
    int64_t sum = 0;

    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++) {
        const int32_t j = s->link[k].to;
        sum += ch_fixed(flow(p->energy[i], ion, p->energy[j], ion_of(p->of[j])));
    }
    if (s->hydrogens[i] > 0) {
        const double from = flow(p->energy[i], ion, electronegativity(HYDROGEN, p->hydrogen[i]), ION_H);
        sum += (int64_t)s->hydrogens[i] * ch_fixed(from);
        p->hydrogen[i] = bounded(p->hydrogen[i] - damp * from);
    }
    return damp * ch_real(sum);
}

static void round_of(peoe_state *p, double damp)
{
    for (int32_t i = 0; i < p->s->n; i++)
        p->energy[i] = electronegativity(p->of[i], p->charge[i]);
    for (int32_t i = 0; i < p->s->n; i++)
        p->charge[i] = bounded(p->charge[i] + change_of(p, i, damp));
}

pl_code ch_charges_of(const double **out, const ch_shape *s, pl_arena *mem, pl_error *err)
{
    const size_t n = (size_t)s->n + 1;
    peoe_state p = { .s = s,
                     .of = PL_NEW(mem, peoe, n),
                     .charge = PL_NEW(mem, double, n),
                     .energy = PL_NEW(mem, double, n),
                     .hydrogen = PL_NEW(mem, double, n),
                     .share = PL_NEW(mem, int64_t, n),
                     .n_shares = PL_NEW(mem, int32_t, n) };
    double damp = 0.5;

    if (p.of == NULL || p.charge == NULL || p.energy == NULL || p.hydrogen == NULL || p.share == NULL || p.n_shares == NULL)
        return pl_fail(err, PL_ENOMEM, "charges");
    for (int32_t i = 0; i < s->n; i++)
        p.of[i] = parameters(s, i);
    share_charges(&p);
    for (int k = 0; k < ROUNDS; k++, damp /= 2)
        round_of(&p, damp);
    *out = p.charge;
    return PL_OK;
}
