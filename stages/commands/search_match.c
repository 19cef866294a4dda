/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/search_match.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/par.h"
#include "pipeline/base/text.h"
#include "stages/expression/chemistry.h"

enum { BATCH = 128, JOBS_MAX = 64, AHEAD = 2 /* batches for each thread */ };

typedef struct batch {
    int n;
    bool away; /* in the pool */
    int64_t mol_id[BATCH];
    double similarity[BATCH];
    const char *smiles[BATCH], *why[BATCH];
    int8_t yes[BATCH];
    pl_arena *mem; /* of smiles and why */
} batch;

/* Batch k of all is slot k % n_slots: the oldest is given before its slot is filled again. */
struct st_matcher {
    const char *smarts;
    st_match_give *give;
    void *ctx;
    pl_pool *pool;
    int jobs, n_slots;
    ch_worker *chem[JOBS_MAX];
    batch slot[AHEAD * JOBS_MAX];
    int64_t first, next; /* batches that are not given yet: first..next, the last of which is being filled */
};

/* ---- a thread ---- */

/* One by one, so that a molecule on which the pattern takes too long, or kills the worker, costs only itself. */
static pl_code match_each(const st_matcher *m, ch_worker *chem, batch *b, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; i < b->n && code == PL_OK; i++) {
        int32_t column;
        code = ch_worker_match(chem, m->smarts, &b->smiles[i], 1, &b->yes[i], &column, err);
        if (code == PL_EINPUT) {
            b->yes[i] = 0;
            b->why[i] = pl_strdup(b->mem, err->text);
            code = b->why[i] != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a search");
        }
    }
    return code;
}

static pl_code match(void *ctx, int worker, int slot, pl_error *err)
{
    st_matcher *m = ctx;
    batch *b = &m->slot[slot];
    int32_t column;
    pl_code code = ch_worker_match(m->chem[worker], m->smarts, b->smiles, b->n, b->yes, &column, err);

    if (code == PL_EINPUT)
        code = match_each(m, m->chem[worker], b, err);
    for (int i = 0; i < b->n; i++)
        if (b->yes[i] < 0)
            b->why[i] = "the SMILES cannot be read";
    return code;
}

/* ---- the caller ---- */

pl_code st_matcher_open(st_matcher **out, const char *smarts, int jobs, st_match_give *give, void *ctx, pl_error *err)
{
    const ch_worker_opts limits = st_chemistry_limits();
    st_matcher *m = calloc(1, sizeof *m);
    pl_code code = PL_OK;

    *out = m;
    if (m == NULL)
        return pl_fail(err, PL_ENOMEM, "a search");
    m->smarts = smarts;
    m->give = give;
    m->ctx = ctx;
    m->jobs = jobs < JOBS_MAX ? jobs : JOBS_MAX;
    m->n_slots = AHEAD * m->jobs;
    for (int i = 0; i < m->jobs && code == PL_OK; i++)
        code = ch_worker_open(&m->chem[i], &limits, err);
    for (int i = 0; i < m->n_slots && code == PL_OK; i++) {
        m->slot[i].mem = pl_arena_new(1 << 14);
        code = m->slot[i].mem != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a search");
    }
    return code == PL_OK ? pl_pool_open(&m->pool, m->jobs, m->n_slots, match, m, err) : code;
}

void st_matcher_close(st_matcher *m)
{
    if (m == NULL)
        return;
    pl_pool_close(m->pool);
    for (int i = 0; i < m->jobs; i++)
        ch_worker_close(m->chem[i]);
    for (int i = 0; i < m->n_slots; i++)
        pl_arena_free(m->slot[i].mem);
    free(m);
}

/* Waits for the oldest batch, gives its results and empties it. */
static pl_code give_oldest(st_matcher *m, pl_error *err)
{
    const int slot = (int)(m->first % m->n_slots);
    batch *b = &m->slot[slot];
    pl_code code = PL_OK;

    while (b->away) {
        b->away = !pl_pool_take(m->pool, slot, &code, err);
        if (b->away)
            pl_pool_wait(m->pool);
    }
    for (int i = 0; i < b->n && code == PL_OK; i++)
        code = m->give(m->ctx, b->mol_id[i], b->similarity[i], b->yes[i] > 0, b->smiles[i], b->why[i], err);
    m->first++;
    b->n = 0;
    pl_arena_reset(b->mem);
    return code;
}

static void send(st_matcher *m)
{
    const int slot = (int)(m->next % m->n_slots);

    m->slot[slot].away = true;
    pl_pool_put(m->pool, slot, m->next++);
}

pl_code st_matcher_add(st_matcher *m, int64_t mol_id, double similarity, const char *smiles, pl_error *err)
{
    batch *b;
    pl_code code = m->next - m->first == m->n_slots ? give_oldest(m, err) : PL_OK;

    if (code != PL_OK)
        return code;
    b = &m->slot[m->next % m->n_slots];
    b->mol_id[b->n] = mol_id;
    b->similarity[b->n] = similarity;
    b->why[b->n] = NULL;
    b->smiles[b->n] = pl_strdup(b->mem, smiles);
    if (b->smiles[b->n] == NULL)
        return pl_fail(err, PL_ENOMEM, "a search");
    if (++b->n == BATCH)
        send(m);
    return PL_OK;
}

pl_code st_matcher_finish(st_matcher *m, pl_error *err)
{
    pl_code code = PL_OK;

    if (m->next - m->first < m->n_slots && m->slot[m->next % m->n_slots].n > 0)
        send(m);
    while (m->first < m->next && code == PL_OK)
        code = give_oldest(m, err);
    return code;
}
