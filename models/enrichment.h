/* models/enrichment.h - how early the molecules of a class come in an order of all.
 *
 * An order is given by its ties: molecules of the same value, best value first. Where the order of tied
 * molecules would matter, a number is its mean over all their orders; average precision takes a tie as one
 * step, as scikit-learn does. Everything is summed best first, so the same order gives the same bits.
 *
 * ROC-AUC: Hanley and McNeil, Radiology 1982, 143, 29. EF and BEDROC: Truchon and Bayly, J. Chem. Inf. Model.
 * 2007, 47, 488. */
#ifndef NN_ENRICHMENT_H
#define NN_ENRICHMENT_H

#include <stdint.h>

typedef struct nn_tie {
    int64_t above;           /* molecules that are better                       */
    int64_t n, actives;      /* of the same value, and of the class among them  */
} nn_tie;

typedef struct nn_enrichment {
    int64_t n, actives;
    double roc_auc;          /* chance that one of the class comes before one of the other; 0.5: by chance */
    double pr_auc;           /* average precision; actives / n: by chance       */
    double ef1, ef1_max;     /* share of actives in the first ceil(n / 100) over their share in all, and the most it can be */
    double ef5, ef5_max;     /* in the first ceil(n / 20)                       */
    double bedroc20;         /* 0..1, alpha = 20: the first 8 % decide four fifths of it */
} nn_enrichment;

/* Of n molecules; ties without actives may be left out. All are NaN unless there are both classes. */
nn_enrichment nn_enrichment_of(const nn_tie *tie, int64_t n_ties, int64_t n);

enum { NN_ENRICHMENTS = 8 };
const char *nn_enrichment_name(int k); /* "roc_auc" .. "bedroc20", "actives": k from 0 */
double      nn_enrichment_value(const nn_enrichment *e, int k);

#endif
