/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/features/basis.h"

#include <string.h>

#include "models/features/feature.h"
#include "pipeline/base/text.h"
#include "stages/database/blocks.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/ingest/positions.h"

/* Measured, one worker (tests/bench/results/features-2026-11-21.md): seconds a pair
 * (pairwise_f32: a directed edge). */
static const double ENTRY_S[NN_BASIS_KINDS] = { 1e-6, 1e-6, 4e-7, 7e-6, 0 };

typedef struct basis_conf {
    int32_t kind;
    int64_t max_degree;
} basis_conf;

#define AT(member) offsetof(basis_conf, member)
static const pl_field fields[] = {
    { PL_CHOICE, "kind", AT(kind), .dflt = NN_BASIS_FRAME_Q15, .choices = "frame_q15|frame_f32|sh_f32|pairwise_f32|none",
      .help = "what is stored; `molsieve plan` prints the size of each" },
    { PL_INT, "max_degree", AT(max_degree), .dflt = 3, .min = 1, .max = 4,
      .help = "sh_f32, pairwise_f32: degrees 0 to this; frames always have 1 to 3" },
    { 0 },
};

static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const basis_conf *c = step->conf;

    if (c->kind != NN_BASIS_NONE && st_graph_is_flat(wf))
        pl_problem_add(problems, step->node,
                       "graphs with edges: topology have no positions, so there are no bases; leave the stage out");
}

static bool wants(const pl_workflow *wf, const pl_step *step, const char *what)
{
    const basis_conf *c = step->conf;

    (void)wf;
    return strcmp(what, ST_POSITIONS) == 0 && c->kind != NN_BASIS_NONE;
}

typedef struct basis_state {
    pl_env *env;
    nn_basis_kind kind;
    st_blocks graphs;
} basis_state;

typedef struct basis_worker {
    const basis_state *state;
    pl_arena *scratch;
} basis_worker;

typedef struct basis_unit {
    pl_block in;
    pl_bytes out;
    int64_t first, last;
    int32_t n, n_graphs; /* n: molecules, which may have several structures */
} basis_unit;

pl_code st_basis_pack(pl_bytes *out, const pl_step *step, const ch_graph_block *graphs, pl_arena *mem, pl_error *err)
{
    const basis_conf *c = step->conf;

    return nn_basis_pack(out, (nn_basis_kind)c->kind, (int32_t)c->max_degree, graphs, mem, err);
}

static pl_code basis_open(void *state, pl_env *env, pl_error *err)
{
    basis_state *s = state;
    const basis_conf *c = env->step->conf;

    s->env = env;
    s->kind = (nn_basis_kind)c->kind;
    return st_blocks_open(&s->graphs, env, "graph", "graph", err);
}

static pl_code basis_next(void *state, pl_unit *unit, bool *more, pl_error *err)
{
    basis_state *s = state;
    basis_unit *u;
    pl_code code = PL_OK;

    *more = s->kind != NN_BASIS_NONE;
    if (*more)
        code = st_blocks_has(&s->graphs, unit->index, more, err);
    if (code != PL_OK || !*more)
        return code;
    u = PL_NEW(unit->mem, basis_unit, 1);
    if (u == NULL)
        return pl_fail(err, PL_ENOMEM, "a unit of graphs");
    unit->data = u;
    return st_blocks_get(&s->graphs, unit->index, &u->in, unit->mem, err);
}

static pl_code basis_worker_open(void *worker, void *state, pl_error *err)
{
    basis_worker *w = worker;

    w->state = state;
    w->scratch = pl_arena_new(1 << 20);
    return w->scratch == NULL ? pl_fail(err, PL_ENOMEM, "a worker") : PL_OK;
}

static void basis_worker_close(void *worker)
{
    basis_worker *w = worker;

    pl_arena_free(w->scratch);
}

static pl_code basis_work(void *worker, pl_unit *unit, pl_error *err)
{
    basis_worker *w = worker;
    basis_unit *u = unit->data;
    ch_graph_block graphs;
    pl_code code;

    pl_arena_reset(w->scratch);
    code = pl_block_check(&u->in, err);
    if (code == PL_OK)
        code = ch_graph_block_unpack(&graphs, u->in.data, w->scratch, err);
    if (code != PL_OK)
        return code;
    u->n_graphs = graphs.n;
    for (int32_t i = 0; i < graphs.n; i++) {
        u->n += i == 0 || graphs.id[i] != graphs.id[i - 1];
        u->first = graphs.id[0];
        u->last = graphs.id[i];
    }
    return st_basis_pack(&u->out, w->state->env->step, &graphs, unit->mem, err);
}

static pl_code basis_commit(void *state, pl_unit *unit, pl_error *err)
{
    basis_state *s = state;
    basis_unit *u = unit->data;

    unit->first = u->first;
    unit->last = u->last;
    unit->n_ok = u->n;
    return pl_block_put(s->env->store, "basis", s->env->step->key, unit->index, u->first, u->n_graphs, u->out, err);
}

/* "frame_q15 1.2 GB, frame_f32 2.4 GB, ...": the choice is made before anything is written. */
static const char *sizes_note(int32_t max_degree, const st_graph_sizes *s, pl_arena *mem)
{
    const char *note = "stored as ";

    for (int k = 0; k < NN_BASIS_NONE && note != NULL; k++) {
        char size[32];
        double bytes = nn_basis_bytes((nn_basis_kind)k, max_degree, s->pairs, s->edges);
        note = pl_sprintf(mem, "%s%s%s %s", note, k > 0 ? ", " : "", nn_basis_name((nn_basis_kind)k), pl_size_str(bytes, size));
    }
    return note;
}

static pl_code basis_estimate(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem,
                              pl_error *err)
{
    const basis_conf *c = step->conf;
    const pl_step *graph = pl_workflow_step(wf, "graph");
    nn_basis_kind kind = (nn_basis_kind)c->kind;
    st_graph_sizes s;
    pl_code code;

    *out = (pl_estimate){ .n_items = -1, .n_units = -1 };
    if (graph == NULL)
        return PL_OK;
    code = st_graph_expect(&s, wf, graph, store, err);
    if (code != PL_OK || s.n_units < 0)
        return code;
    out->n_items = kind == NN_BASIS_NONE ? 0 : (int64_t)s.n;
    out->n_units = kind == NN_BASIS_NONE ? 0 : s.n_units;
    out->bytes_features = nn_basis_bytes(kind, (int32_t)c->max_degree, s.pairs, s.edges);
    out->seconds = ENTRY_S[kind] * (kind == NN_BASIS_PAIRWISE_F32 ? s.edges : s.pairs);
    out->note = sizes_note((int32_t)c->max_degree, &s, mem);
    return out->note == NULL ? pl_fail(err, PL_ENOMEM, "the estimate") : PL_OK;
}

static const char *const needs[] = { "graph", NULL };

const pl_stage st_basis = {
    .name = "basis",
    .help = "store the equivariant bases of the edges for the models",
    .scope = PL_PER_UNIT,
    .version = 1,
    .fields = fields,
    .conf_size = sizeof(basis_conf),
    .state_size = sizeof(basis_state),
    .worker_size = sizeof(basis_worker),
    .needs = needs,
    .item = "molecules",
    .check = check,
    .wants = wants,
    .estimate = basis_estimate,
    .open = basis_open,
    .next = basis_next,
    .worker_open = basis_worker_open,
    .work = basis_work,
    .worker_close = basis_worker_close,
    .commit = basis_commit,
};
