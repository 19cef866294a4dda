/* stages/steps/rank/rank.h - the stage `rank`: scored molecules into an ordered list of hits.
 *
 * One objective: by its value, in the direction of its goal. Several: by the sum
 * of weight x value, values to minimise counted negative; higher is better. A
 * value is the mean over models, or mean + k*stdev, or mean + k*interval90. Molecules
 * that violate a constraint, or lack a value, are no candidates. Ties are broken
 * by InChIKey, then mol_id: the ranking never depends on the order of the work.
 * Memory: the best `top` molecules only, and with `actives` (stages/steps/rank/retrieval.h) a few numbers for each active.
 *
 * method: pareto sorts several objectives without weights (non-dominated sorting and
 * crowding distance: Deb et al., IEEE Trans. Evol. Comput. 2002, 6, 182): by front,
 * then by crowding distance, the largest first, then by InChIKey. Exact; memory for the fronts
 * that the ranking needs, the last one whole.
 *
 * With `diversity` the candidates are taken from the best on, and one that is too
 * similar to earlier hits is left out: more than `at_most` of a Bemis-Murcko scaffold
 * (chem/fingerprint/scaffold.h), or above `threshold` of similarity to any of them (sphere exclusion:
 * Tanimoto of ECFP4, chem/fingerprint/fingerprint.h). Exact; see docs/decisions/0036. */
#ifndef ST_RANK_H
#define ST_RANK_H

#include "pipeline/workflow/stage.h"
#include "stages/registry/registry.h"

/* Defaults of diversity.at_most and diversity.threshold. */
enum { ST_RANK_AT_MOST = 3 };
#define ST_RANK_THRESHOLD 0.6

/* "mean", "mean - 1.5*stdev", "mean + interval90": factor times a column of score. */
typedef struct st_use {
    double factor;      /* 0: the mean alone        */
    const char *column; /* "stdev" or "interval90"  */
} st_use;

/* use: NULL is "mean". ECONFIG. */
pl_code st_rank_use(st_use *out, const char *use, pl_error *err);

#endif
