/* models/metrics/enrichment.h - early enrichment: how early a ranking places the actives (molecules of class 1).
 *
 * A ranking is a list of ties (groups of molecules with equal scores), best score first. Where the order
 * within a tie matters, a metric is its mean over all orders; average precision takes a tie as one
 * step, as scikit-learn does. Sums run from the best score on, so the same ranking gives the same bits.
 *
 * ROC-AUC: Hanley and McNeil, Radiology 1982, 143, 29. EF and BEDROC: Truchon and Bayly, J. Chem. Inf. Model.
 * 2007, 47, 488. */
#ifndef NN_ENRICHMENT_H
#define NN_ENRICHMENT_H

#include <stdint.h>

typedef struct nn_tie {
    int64_t above;      /* molecules with a better score                   */
    int64_t n, actives; /* molecules with this score; actives among them   */
} nn_tie;

typedef struct nn_enrichment {
    int64_t n, actives;
    double roc_auc;      /* probability that an active precedes an inactive; random ranking: 0.5 */
    double pr_auc;       /* average precision; random ranking: actives / n  */
    double ef1, ef1_max; /* enrichment factor: fraction of actives in the first ceil(n / 100) over that in all; its maximum */
    double ef5, ef5_max; /* the same for the first ceil(n / 20)             */
    double bedroc20;     /* 0..1, alpha = 20: the first 8 % have four fifths of the weight */
} nn_enrichment;

/* The metrics of a ranking of n molecules; ties without actives may be left out. NaN unless both classes occur. */
nn_enrichment nn_enrichment_of(const nn_tie *tie, int64_t n_ties, int64_t n);

enum { NN_ENRICHMENTS = 8 };
const char *nn_enrichment_name(int k); /* k = 0..NN_ENRICHMENTS-1: "roc_auc" .. "bedroc20", "actives" */
double nn_enrichment_value(const nn_enrichment *e, int k);

#endif
