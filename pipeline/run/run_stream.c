/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "pipeline/base/par.h"
#include "pipeline/base/stop.h"
#include "pipeline/run/runner.h"

/* Consecutive per-unit stages run in one pass. They share the workers and a fixed
 * number of units in flight. The stage nearest to the end of the workflow has
 * precedence in commits, reads and work, so a stage runs ahead of the next one
 * only as far as that one cannot keep the workers busy. */

typedef struct slot {
    pl_unit unit;
    int stage;
    double wall; /* seconds of work                  */
    bool used;
    bool dropped; /* not computed, because of a stop  */
} slot;

typedef struct stream {
    pl_runner *r;
    pl_active *stage; /* [n] in the order of the workflow */
    int n;
    int at; /* the stage that was served last; if one has failed, it is this one */
    slot *slot;
    int n_slots, n_used;
    pl_pool *pool;
} stream;

static pl_code work(void *ctx, int worker, int i, pl_error *err)
{
    stream *s = ctx;
    slot *here = &s->slot[i];

    return pl_unit_work(&s->stage[here->stage], worker, &here->unit, &here->wall, &here->dropped, err);
}

/* ---- commit: the oldest unit of a stage, once it has been computed ---- */

static int oldest_slot(const stream *s, int k)
{
    for (int i = 0; i < s->n_slots; i++)
        if (s->slot[i].used && s->slot[i].stage == k && s->slot[i].unit.index == s->stage[k].oldest)
            return i;
    return -1;
}

static pl_code commit_oldest(stream *s, int k, bool *moved, pl_error *err)
{
    pl_active *a = &s->stage[k];
    int i = oldest_slot(s, k);
    pl_code code = PL_OK;

    if (i < 0 || !pl_pool_take(s->pool, i, &code, err))
        return PL_OK;
    *moved = true;
    s->slot[i].used = false;
    s->n_used--;
    a->oldest++;
    a->gap = a->gap || s->slot[i].dropped;
    return code != PL_OK || a->gap ? code : pl_unit_commit(s->r, a, &s->slot[i].unit, s->slot[i].wall, err);
}

/* ---- read: the next unit of a stage ---- */

/* Whether every stage that a needs has committed its unit u or is done. */
static bool input_is_there(const stream *s, const pl_active *a, int64_t u)
{
    for (int i = 0; i < a->env.step->n_needs; i++)
        for (int k = 0; k < s->n; k++) {
            const pl_active *need = &s->stage[k];
            if (need->env.step == &s->r->wf->step[a->env.step->needs[i]] && !need->done && need->committed <= u)
                return false;
        }
    return true;
}

static int free_slot(const stream *s)
{
    for (int i = 0; i < s->n_slots; i++)
        if (!s->slot[i].used)
            return i;
    return -1;
}

static pl_code read_next(stream *s, int k, bool *moved, pl_error *err)
{
    pl_active *a = &s->stage[k];
    int i = free_slot(s);
    bool more = true;
    double began = pl_clock();
    pl_arena *mem;
    pl_code code;

    if (i < 0 || *a->env.stop || a->ended || !input_is_there(s, a, a->next))
        return PL_OK;
    mem = s->slot[i].unit.mem;
    pl_arena_reset(mem);
    s->slot[i] = (slot){ .stage = k, .unit = { .index = a->next, .mem = mem } };
    code = a->stage->next(a->state, &s->slot[i].unit, &more, err);
    a->main_s += pl_clock() - began;
    *moved = true;
    a->ended = !more;
    if (code != PL_OK || !more)
        return code;
    a->next++;
    s->slot[i].used = true;
    s->n_used++;
    pl_pool_put(s->pool, i, ((int64_t)(s->n - k) << 48) + s->slot[i].unit.index);
    return PL_OK;
}

/* ---- the expected number of items, and the end of a stage ---- */

/* Until the stages it needs are done, a stage expects as many items as the stage before it. */
static pl_code expect(stream *s, int k, pl_error *err)
{
    pl_active *a = &s->stage[k];

    if (input_is_there(s, a, INT64_MAX))
        return pl_units_expect(s->r, a, err);
    a->total = s->stage[k - 1].total;
    a->about = true;
    return PL_OK;
}

static pl_code finish_ended(stream *s, int k, bool *moved, pl_error *err)
{
    pl_active *a = &s->stage[k];
    pl_code code;

    if (a->done || a->gap || !a->ended || a->oldest < a->next)
        return PL_OK;
    *moved = true;
    code = pl_references_look_up(s->r, true, err);
    if (code == PL_OK)
        code = pl_active_done(s->r, a, err);
    for (int i = k + 1; code == PL_OK && i < s->n; i++)
        code = expect(s, i, err);
    return code;
}

/* ---- the loop of the main thread ---- */

typedef pl_code action(stream *s, int k, bool *moved, pl_error *err);

/* Does one thing: a commit, else the end of a stage, else a read, each for the last stage that can. Then it chooses again, so
 * that no commit waits for several reads. What fails has moved, too. */
static pl_code serve(stream *s, bool *moved, pl_error *err)
{
    static action *const actions[] = { commit_oldest, finish_ended, read_next };
    pl_code code = PL_OK;

    *moved = false;
    for (int d = 0; d < 3; d++)
        for (int k = s->n - 1; k >= 0 && !*moved; k--) {
            s->at = k;
            code = actions[d](s, k, moved, err);
        }
    return code;
}

static pl_code loop(stream *s, pl_error *err)
{
    bool moved = true;
    pl_code code = PL_OK;

    while (code == PL_OK && (moved || s->n_used > 0)) {
        if (!moved)
            pl_pool_wait(s->pool);
        code = serve(s, &moved, err);
    }
    if (code != PL_OK)
        return code;
    for (s->at = 0; s->at < s->n; s->at++)
        if (!s->stage[s->at].done)
            return pl_fail(err, PL_ESTOP, "stopped");
    return code;
}

/* ---- the whole pass ---- */

static pl_code make_slots(stream *s, pl_error *err)
{
    s->slot = calloc((size_t)s->n_slots, sizeof *s->slot);
    for (int i = 0; s->slot != NULL && i < s->n_slots; i++)
        if ((s->slot[i].unit.mem = pl_arena_new(1 << 18)) == NULL)
            return pl_fail(err, PL_ENOMEM, "units in flight");
    return s->slot != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "units in flight");
}

static pl_code open_stages(stream *s, pl_error *err)
{
    pl_code code = PL_OK;

    for (int k = 0; k < s->n && code == PL_OK; k++) {
        s->at = k;
        code = expect(s, k, err);
        if (code == PL_OK)
            code = pl_units_open(s->r, &s->stage[k], err);
    }
    return code;
}

pl_code pl_stream_run(pl_runner *r, pl_active *stage, int n, int *bad, pl_error *err)
{
    stream s = { .r = r, .stage = stage, .n = n, .n_slots = 2 * r->workers + 2 };
    pl_code code = make_slots(&s, err);

    if (code == PL_OK)
        code = open_stages(&s, err);
    if (code == PL_OK)
        code = pl_pool_open(&s.pool, r->workers, s.n_slots, work, &s, err);
    if (code == PL_OK)
        code = loop(&s, err);
    if (code != PL_OK)
        pl_stop_cancel(true); /* the workers end as after a signal */
    pl_pool_close(s.pool);
    pl_stop_cancel(false);
    (void)pl_references_look_up(r, true, NULL); /* of an error the first counts; it ends the run */
    for (int k = 0; k < n; k++)
        pl_units_close(&stage[k]);
    for (int i = 0; s.slot != NULL && i < s.n_slots; i++)
        pl_arena_free(s.slot[i].unit.mem);
    free(s.slot);
    *bad = s.at < n ? s.at : 0;
    return code;
}
