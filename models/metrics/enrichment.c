/* SPDX-License-Identifier: Apache-2.0 */
#include "models/metrics/enrichment.h"

#include <math.h>

static const double ALPHA = 20;

const char *nn_enrichment_name(int k)
{
    static const char *const name[NN_ENRICHMENTS] = {
        "roc_auc", "pr_auc", "ef1", "ef1_max", "ef5", "ef5_max", "bedroc20", "actives"
    };

    return name[k];
}

double nn_enrichment_value(const nn_enrichment *e, int k)
{
    const double value[NN_ENRICHMENTS] = { e->roc_auc, e->pr_auc,  e->ef1,      e->ef1_max,
                                           e->ef5,     e->ef5_max, e->bedroc20, isnan(e->roc_auc) ? NAN : (double)e->actives };

    return value[k];
}

/* Of the first `first` molecules, whatever the order of those tied. */
static double actives_in(const nn_tie *tie, int64_t n_ties, int64_t first)
{
    double found = 0;

    for (int64_t i = 0; i < n_ties && tie[i].above < first; i++) {
        int64_t in = first - tie[i].above < tie[i].n ? first - tie[i].above : tie[i].n;
        found += (double)tie[i].actives * (double)in / (double)tie[i].n;
    }
    return found;
}

static double factor(double found, int64_t first, const nn_enrichment *e)
{
    return found * (double)e->n / ((double)first * (double)e->actives);
}

static void factors(nn_enrichment *e, const nn_tie *tie, int64_t n_ties)
{
    const int64_t one = (e->n + 99) / 100, five = (e->n + 19) / 20;

    e->ef1 = factor(actives_in(tie, n_ties, one), one, e);
    e->ef5 = factor(actives_in(tie, n_ties, five), five, e);
    e->ef1_max = factor((double)(e->actives < one ? e->actives : one), one, e);
    e->ef5_max = factor((double)(e->actives < five ? e->actives : five), five, e);
}

/* The mean of exp(-ALPHA rank / n) over the ranks of a tie: a geometric sum. */
static double weight(const nn_tie *t, double n)
{
    double first = exp(-ALPHA * (double)(t->above + 1) / n);

    return t->n == 1 ? first : first * expm1(-ALPHA * (double)t->n / n) / expm1(-ALPHA / n) / (double)t->n;
}

/* RIE: the mean of exp(-ALPHA rank / n) over the actives, divided by its mean by chance. With A = actives / n,
 * BEDROC = RIE A sinh(ALPHA/2) / (cosh(ALPHA/2) - cosh(ALPHA/2 - ALPHA A)) + 1 / (1 - exp(ALPHA (1 - A))). */
static double bedroc(const nn_enrichment *e, const nn_tie *tie, int64_t n_ties)
{
    double n = (double)e->n, share = (double)e->actives / n, sum = 0, rie, cosh_less_cosh;

    for (int64_t i = 0; i < n_ties; i++)
        sum += (double)tie[i].actives * weight(&tie[i], n);
    rie = sum / (double)e->actives / (expm1(-ALPHA) / expm1(ALPHA / n) / -n);
    /* cosh(ALPHA / 2) - cosh(ALPHA / 2 - ALPHA share), as a product */
    cosh_less_cosh = 2 * sinh(ALPHA / 2 * (1 - share)) * sinh(ALPHA / 2 * share);
    return rie * share * sinh(ALPHA / 2) / cosh_less_cosh - 1 / expm1(ALPHA * (1 - share));
}

nn_enrichment nn_enrichment_of(const nn_tie *tie, int64_t n_ties, int64_t n)
{
    nn_enrichment e = { n, 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
    int64_t seen = 0;
    double lost = 0, precision = 0;

    for (int64_t i = 0; i < n_ties; i++)
        e.actives += tie[i].actives;
    if (e.actives == 0 || e.actives == n)
        return e;
    for (int64_t i = 0; i < n_ties; i++) {
        const nn_tie *t = &tie[i];
        lost += (double)t->actives * ((double)(t->above - seen) + 0.5 * (double)(t->n - t->actives));
        seen += t->actives;
        precision += (double)t->actives * (double)seen / (double)(t->above + t->n);
    }
    e.roc_auc = 1 - lost / ((double)e.actives * (double)(n - e.actives));
    e.pr_auc = precision / (double)e.actives;
    e.bedroc20 = bedroc(&e, tie, n_ties);
    factors(&e, tie, n_ties);
    return e;
}
