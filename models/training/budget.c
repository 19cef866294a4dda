/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/budget.h"

#include <math.h>

double nn_budget_epoch(const nn_budget *b) { return b->step * b->steps + b->evaluation; }

int64_t nn_budget_epochs(const nn_budget *b)
{
    const double left = fmax(b->seconds - b->used, 0), epoch = nn_budget_epoch(b);
    const int64_t least = b->over > 1 ? b->over : 1, room = b->most - b->over;
    double more;

    if (b->most <= least)
        return least;
    if (!(epoch > 0))
        return b->most;
    more = floor(left / epoch);
    if (more >= (double)room)
        return b->most;
    return b->over + (int64_t)more > least ? b->over + (int64_t)more : least;
}
