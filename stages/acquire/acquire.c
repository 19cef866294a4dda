/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/acquire/acquire.h"

#include <math.h>
#include <string.h>

#include "pipeline/base/hash.h"
#include "pipeline/base/rng.h"

enum { PURPOSE = 0x6e657874 }; /* "next": of the random streams */

const char *const st_strategy_names[ST_STRATEGIES + 1] = { "greedy", "ucb", "expected_improvement", "thompson", "uncertainty",
                                                           "random", NULL };

bool st_strategy_is_uncertain(st_strategy by) { return by != ST_GREEDY && by != ST_RANDOM; }

static double expected_improvement(double gain, double s)
{
    const double z = gain / s;

    if (!(s > 0))
        return gain > 0 ? gain : 0;
    return gain * 0.5 * erfc(-z / sqrt(2.0)) + s * exp(-0.5 * z * z) / sqrt(2.0 * M_PI);
}

double st_acquisition_of(const st_acquisition *a, double mean, double s, const char *inchikey)
{
    const double sign = a->low ? -1 : 1;
    pl_rng stream = pl_rng_at(a->seed, pl_hash64(inchikey, strlen(inchikey), 0), PURPOSE);

    switch (a->by) {
    case ST_UCB: return sign * mean + a->beta * s;
    case ST_EXPECTED_IMPROVEMENT: return expected_improvement(sign * (mean - a->best), s);
    case ST_THOMPSON: return sign * mean + s * pl_rng_normal(&stream);
    case ST_UNCERTAINTY: return s;
    case ST_RANDOM: return pl_rng_real(&stream);
    default: return sign * mean;
    }
}
