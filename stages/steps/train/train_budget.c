/* SPDX-License-Identifier: Apache-2.0 */
/* What a person sees of a time in place of a number of epochs (models/training/budget.h decides). */
#include "pipeline/base/text.h"
#include "stages/steps/train/train.h"

pl_code st_budget_tell(pl_env *env, const nn_budget *b, int64_t epochs, pl_error *err)
{
    const bool more = epochs > b->over;
    char epoch[32], budget[32];

    pl_event_add(env, more ? PL_INFO : PL_WARN, "budget: an epoch takes %s, so %lld epoch%s%s for %s%s",
                 pl_duration_str(nn_budget_epoch(b), epoch), (long long)epochs, epochs == 1 ? "" : "s",
                 epochs == b->most ? " (as `epochs` says)" : "", pl_duration_str(b->seconds, budget),
                 more ? "" : "; no time is left, and the learning rate did not fall: give more");
    return pl_metric_add(env, 0, (double)b->over, "train", ST_PLANNED_EPOCHS, (double)epochs, err);
}

static bool has_limit(const st_train_conf *c) { return c->loop.epochs < ST_EPOCHS_MOST; }

const char *st_budget_plan(const st_train_conf *c, pl_arena *mem)
{
    char time[32];

    if (c->loop.budget <= 0)
        return pl_sprintf(mem, "%lld epochs", (long long)c->loop.epochs);
    (void)pl_duration_str(c->loop.budget, time);
    if (has_limit(c))
        return pl_sprintf(mem, "%lld epochs at most, as many as fit into budget: %s", (long long)c->loop.epochs, time);
    return pl_sprintf(mem, "as many epochs as fit into budget: %s", time);
}

void st_budget_cut(pl_estimate *e, double seconds)
{
    if (!(e->seconds > 0))
        e->n_items = -1;
    if (!(e->seconds > seconds))
        return;
    e->n_items = (int64_t)((double)e->n_items * (seconds / e->seconds));
    e->seconds = seconds;
}
