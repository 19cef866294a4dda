/* stages/acquire/acquire.h - how much a molecule is worth trying next: the acquisition functions of Bayesian optimization.
 *
 * A prediction is taken as a normal distribution of mean m and standard deviation s; values are turned so that higher is better.
 *   greedy                m
 *   ucb                   m + beta s
 *   expected_improvement  E max(0, x - best) = (m - best) Phi(z) + s phi(z), z = (m - best) / s   (Mockus 1975)
 *   thompson              a draw of the distribution
 *   uncertainty           s
 *   random                a uniform number
 * Draws are named by seed and InChIKey: they depend neither on the order of the molecules nor on which others are there. */
#ifndef ST_ACQUIRE_H
#define ST_ACQUIRE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum st_strategy {
    ST_GREEDY,
    ST_UCB,
    ST_EXPECTED_IMPROVEMENT,
    ST_THOMPSON,
    ST_UNCERTAINTY,
    ST_RANDOM,
    ST_STRATEGIES
} st_strategy;

extern const char *const st_strategy_names[ST_STRATEGIES + 1]; /* "greedy", ..., NULL */

/* Whether it uses s. */
bool st_strategy_is_uncertain(st_strategy by);

typedef struct st_acquisition {
    st_strategy by;
    bool low;          /* lower values are better                          */
    double beta, best; /* of ucb; of expected_improvement, as measured     */
    uint64_t seed;
} st_acquisition;

/* Larger: try it earlier. s: 0 or more; ignored where the strategy does not use it. */
double st_acquisition_of(const st_acquisition *a, double mean, double s, const char *inchikey);

#endif
