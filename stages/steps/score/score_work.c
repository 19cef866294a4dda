/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/graph/graph_block.h"
#include "stages/steps/score/score_parts.h"

pl_code st_score_worker_open(void *worker, void *state, pl_error *err)
{
    return st_scorer_worker_open(worker, &((score_state *)state)->scorer, err);
}

void st_score_worker_close(void *worker) { st_scorer_worker_close(worker); }

/* Here, because the thread that writes is the busiest. */
static pl_code unit_read(score_unit *u, const pl_unit *unit, pl_error *err)
{
    const score_state *s = u->state;
    pl_code code = st_blocks_get(&s->graphs, unit->index, &u->graphs, unit->mem, err);

    return code == PL_OK && u->has_basis ? st_blocks_get(&s->bases, unit->index, &u->bases, unit->mem, err) : code;
}

static pl_code unit_unpack(st_scorer_worker *w, score_unit *u, nn_item **item, pl_arena *mem, pl_error *err)
{
    ch_graph_block graphs;
    nn_basis_block basis;
    pl_code code = pl_block_check(&u->graphs, err);

    if (code == PL_OK)
        code = pl_block_check(&u->bases, err);
    if (code == PL_OK)
        code = ch_graph_block_unpack(&graphs, u->graphs.data, w->scratch, err);
    if (code == PL_OK && u->bases.found)
        code = nn_basis_unpack(&basis, u->bases.data, &graphs, w->scratch, err);
    if (code == PL_OK)
        code = st_scored_make(&u->scored, w->scorer, graphs.id, graphs.n, mem, err);
    if (code != PL_OK)
        return code;
    *item = PL_NEW(w->scratch, nn_item, graphs.n + 1);
    if (*item == NULL)
        return pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)graphs.n);
    for (int32_t i = 0; i < graphs.n && code == PL_OK; i++) {
        (*item)[i] = nn_item_of(&graphs, u->bases.found ? &basis : NULL, i);
        if (u->columns.n_columns > 0)
            code = st_columns_row(&(*item)[i].column, &u->columns, graphs.id[i], err);
    }
    return code;
}

pl_code st_score_work(void *worker, pl_unit *unit, pl_error *err)
{
    st_scorer_worker *w = worker;
    score_unit *u = unit->data;
    nn_item *item;
    pl_code code;

    if (u->taken)
        return PL_OK;
    pl_arena_reset(w->scratch);
    code = unit_read(u, unit, err);
    if (code == PL_OK)
        code = unit_unpack(w, u, &item, unit->mem, err);
    return code == PL_OK ? st_scorer_run(w, &u->scored, item, unit->mem, err) : code;
}
