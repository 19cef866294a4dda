/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/features/graph.h"

#include <math.h>
#include <string.h>

#include "chem/graph/graph_block.h"
#include "chem/molecule/codec.h"
#include "pipeline/base/text.h"
#include "stages/database/blocks.h"
#include "stages/steps/ingest/positions.h"
#include "stages/steps/ingest/prepare_conf.h"
#include "stages/steps/ingest/size_estimate.h"

/* Measured, one worker (tests/bench/results/features-2026-11-21.md): seconds a molecule and an edge. */
static const double MOLECULE_S = 6e-6, EDGE_S = 3e-8;

enum { EDGES_AUTO = CH_EDGES_BONDS_RADIUS + 1 }; /* settled before any use */

typedef struct graph_conf {
    int32_t edges;
    double cutoff;
    int64_t k, max_neighbours, max_atoms, max_edges;
} graph_conf;

#define AT(member) offsetof(graph_conf, member)
static const pl_field fields[] = {
    { PL_CHOICE, "edges", AT(edges), .dflt = EDGES_AUTO, .choices = "radius|bonds|knn|full|topology|bonds+radius|auto",
      .help =
          "which atoms are connected: radius: all within the cutoff; bonds: bonded atoms; bonds+radius: both; knn: the k nearest; full: all; "
          "topology: bonded atoms, without positions: needs no 3D structures, but networks cannot read it; auto: radius, or "
          "topology where no stage needs positions and prepare makes none" },
    { PL_REAL, "cutoff", AT(cutoff), .dflt = 5, .min = 0.5, .max = 20, .unit = "Angstrom",
      .help = "radius, bonds+radius: longest edge without a bond" },
    { PL_INT, "k", AT(k), .dflt = 12, .min = 1, .max = 256, .help = "knn: neighbours per atom" },
    { PL_INT, "max_neighbours", AT(max_neighbours), .min = 0, .max = 1024,
      .help =
          "radius, bonds+radius: keep an edge without a bond only if it is among this many nearest of both its atoms; 0: no limit" },
    { PL_INT, "max_atoms", AT(max_atoms), .dflt = 1000, .min = 1, .max = CH_GRAPH_MAX_NODES, .unit = "atoms",
      .help = "larger molecules fail" },
    { PL_INT, "max_edges", AT(max_edges), .dflt = 200000, .min = 1, .max = 100000000, .unit = "edges",
      .help = "molecules with more directed edges fail" },
    { 0 },
};

static bool prepare_is_flat(const pl_workflow *wf)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");

    return prepare != NULL && st_prepare_is_flat(prepare->conf);
}

/* Edges with positions that somebody asked for. */
static bool wants(const pl_workflow *wf, const pl_step *step, const char *what)
{
    const graph_conf *c = step->conf;

    (void)wf;
    return strcmp(what, ST_POSITIONS) == 0 && c->edges != CH_EDGES_TOPOLOGY && c->edges != EDGES_AUTO;
}

static void settle(const pl_workflow *wf, void *conf)
{
    graph_conf *c = conf, dflt;

    pl_fields_default(fields, &dflt);
    if (c->edges == EDGES_AUTO)
        c->edges = prepare_is_flat(wf) && !st_positions_wanted(wf) ? CH_EDGES_TOPOLOGY : CH_EDGES_RADIUS;
    if (!ch_edges_within((ch_edges)c->edges)) {
        c->cutoff = dflt.cutoff;
        c->max_neighbours = dflt.max_neighbours;
    }
    if (c->edges != CH_EDGES_KNN)
        c->k = dflt.k;
}

static const char *const edges_names[] = { "radius", "bonds", "knn", "full", "topology", "bonds+radius" };

/* Without 3D structures every molecule would fail. */
static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const graph_conf *c = step->conf;
    const pl_step *prepare = pl_workflow_step(wf, "prepare");
    const st_prepare_conf *p = prepare != NULL ? prepare->conf : NULL;

    if (p != NULL && st_prepare_is_flat(p) && c->edges != CH_EDGES_TOPOLOGY)
        pl_problem_add(
            problems, step->node,
            "edges: %s needs 3D structures, but prepare has conformers.source: none; use edges: topology, or let prepare "
            "build structures",
            edges_names[c->edges]);
}

bool st_graph_is_flat(const pl_workflow *wf)
{
    const pl_step *graph = pl_workflow_step(wf, "graph");

    return graph != NULL && ((const graph_conf *)graph->conf)->edges == CH_EDGES_TOPOLOGY;
}

typedef struct graph_state {
    pl_env *env;
    ch_graph_opts opts;
    st_blocks conformers;
} graph_state;

/* Graphs are built in scratch and packed into the unit: only bytes wait for the commit. */
typedef struct graph_worker {
    const graph_state *state;
    pl_arena *scratch;
} graph_worker;

typedef struct refused {
    int64_t id;
    const char *code, *message;
} refused;

typedef struct graph_unit {
    pl_block in;
    pl_bytes out;
    int64_t first, last;               /* ids of the molecules that came in */
    int32_t n_graphs, n_ok, n_refused; /* ok and refused: molecules, which may have several structures */
    refused *refused;
} graph_unit;

ch_graph_opts st_graph_opts(const pl_step *step)
{
    const graph_conf *c = step->conf;

    return (ch_graph_opts){ .edges = (ch_edges)c->edges,
                            .cutoff = (float)c->cutoff,
                            .k = (int32_t)c->k,
                            .max_neighbours = (int32_t)c->max_neighbours,
                            .max_atoms = (int32_t)c->max_atoms,
                            .max_edges = c->max_edges };
}

double st_graph_reach(const pl_step *step)
{
    const graph_conf *c = step->conf;
    graph_conf dflt;

    pl_fields_default(fields, &dflt);
    return st_graph_ends(step) ? c->cutoff : dflt.cutoff;
}

bool st_graph_ends(const pl_step *step)
{
    const graph_conf *c = step->conf;

    return ch_edges_within((ch_edges)c->edges) || c->edges == EDGES_AUTO;
}

void st_graph_limits(ch_graph_opts *opts)
{
    graph_conf c;

    pl_fields_default(fields, &c);
    opts->max_atoms = (int32_t)c.max_atoms;
    opts->max_edges = c.max_edges;
}

static pl_code graph_open(void *state, pl_env *env, pl_error *err)
{
    graph_state *s = state;

    s->env = env;
    s->opts = st_graph_opts(env->step);
    return st_blocks_open(&s->conformers, env, "prepare", "conformer", err);
}

static pl_code graph_next(void *state, pl_unit *unit, bool *more, pl_error *err)
{
    graph_state *s = state;
    graph_unit *u;
    pl_code code = st_blocks_has(&s->conformers, unit->index, more, err);

    if (code != PL_OK || !*more)
        return code;
    u = PL_NEW(unit->mem, graph_unit, 1);
    if (u == NULL)
        return pl_fail(err, PL_ENOMEM, "a unit of molecules");
    unit->data = u;
    return st_blocks_get(&s->conformers, unit->index, &u->in, unit->mem, err);
}

static pl_code graph_worker_open(void *worker, void *state, pl_error *err)
{
    graph_worker *w = worker;

    w->state = state;
    w->scratch = pl_arena_new(1 << 20);
    return w->scratch == NULL ? pl_fail(err, PL_ENOMEM, "a worker") : PL_OK;
}

static void graph_worker_close(void *worker)
{
    graph_worker *w = worker;

    pl_arena_free(w->scratch);
}

/* "coincide: atoms 3 and 5 ..." is the failure `coincide` and its message. */
static pl_code note_refused(graph_unit *u, int64_t id, const char *text, pl_arena *mem, pl_error *err)
{
    const char *colon = strstr(text, ": ");
    refused *r = &u->refused[u->n_refused++];

    r->id = id;
    r->code = colon == NULL ? "graph" : pl_strndup(mem, text, (size_t)(colon - text));
    r->message = pl_strdup(mem, colon == NULL ? text : colon + 2);
    return r->code == NULL || r->message == NULL ? pl_fail(err, PL_ENOMEM, "a failure") : PL_OK;
}

/* Takes all structures of a molecule or none: its score must not depend on which of them are small enough. */
static pl_code build_structures(graph_worker *w, const ch_block_item *item, int32_t n, ch_graph *out, pl_error *why)
{
    pl_code code = PL_OK;

    for (int32_t i = 0; code == PL_OK && i < n; i++)
        code = ch_graph_build(&out[i], &item[i].mol, &w->state->opts, w->scratch, why);
    return code;
}

static pl_code build_all(graph_worker *w, graph_unit *u, const ch_block_item *item, int32_t n, pl_unit *unit, pl_error *err)
{
    ch_graph *graph = PL_NEW(w->scratch, ch_graph, n + 1);
    int64_t *id = PL_NEW(w->scratch, int64_t, n + 1);
    pl_code code = PL_OK;

    u->refused = PL_NEW(unit->mem, refused, n + 1);
    if (graph == NULL || id == NULL || u->refused == NULL)
        return pl_fail(err, PL_ENOMEM, "%d graphs", n);
    for (int32_t i = 0, end; code == PL_OK && i < n; i = end) {
        pl_error why = { 0 };
        for (end = i; end < n && item[end].id == item[i].id;)
            end++;
        code = build_structures(w, item + i, end - i, graph + u->n_graphs, &why);
        if (code == PL_EINPUT) {
            code = note_refused(u, item[i].id, why.text, unit->mem, err);
            continue;
        }
        if (code != PL_OK)
            return pl_fail(err, code, "%s", why.text);
        u->n_ok++;
        while (i < end)
            id[u->n_graphs++] = item[i++].id;
    }
    if (code == PL_OK)
        code = ch_graph_block_pack(&u->out, id, graph, u->n_graphs, unit->mem, err);
    return code;
}

static pl_code graph_work(void *worker, pl_unit *unit, pl_error *err)
{
    graph_worker *w = worker;
    graph_unit *u = unit->data;
    ch_block_item *item;
    int32_t n = 0;
    pl_code code;

    pl_arena_reset(w->scratch);
    code = pl_block_check(&u->in, err);
    if (code == PL_OK)
        code = ch_block_unpack(&item, &n, u->in.data, w->scratch, err);
    if (code != PL_OK)
        return code;
    u->first = n > 0 ? item[0].id : 0;
    u->last = n > 0 ? item[n - 1].id : 0;
    return build_all(w, u, item, n, unit, err);
}

static pl_code graph_commit(void *state, pl_unit *unit, pl_error *err)
{
    graph_state *s = state;
    graph_unit *u = unit->data;
    pl_code code = pl_block_put(s->env->store, "graph", s->env->step->key, unit->index, u->first, u->n_graphs, u->out, err);

    for (int32_t i = 0; code == PL_OK && i < u->n_refused; i++)
        code = pl_failure_add(
            s->env,
            &(pl_failure){ .mol_id = u->refused[i].id, .code = u->refused[i].code, .message = u->refused[i].message, .attempt = 1 },
            err);
    unit->first = u->first;
    unit->last = u->last;
    unit->n_ok = u->n_ok;
    unit->n_failed = u->n_refused;
    return code;
}

/* ---- estimate ---- */

/* Neighbours within r of an atom in a molecule of n atoms: what QM9 and Tox21 have
 * at 3 to 6 Angstrom, to 10 %. Few atoms: all of them; many: the surface grows as r^2.25. */
static double neighbours_within(double r, double n) { return n <= 1 ? 0 : (n - 1) * (1 - exp(-0.9 * pow(r, 2.25) / (n - 1))); }

static double edges_an_atom(const graph_conf *c, const st_sizes *s)
{
    double n = s->atoms / s->n, max = n - 1;

    switch (c->edges) {
    case CH_EDGES_BONDS:
    case CH_EDGES_TOPOLOGY: return 2 * s->bonds / s->atoms;
    case CH_EDGES_KNN: return fmin((double)c->k, max);
    case CH_EDGES_FULL: return max;
    default: break;
    }
    if (c->max_neighbours > 0)
        max = (double)c->max_neighbours;
    return fmin(neighbours_within(c->cutoff, n), max);
}

pl_code st_graph_expect(st_graph_sizes *out, const pl_workflow *wf, const pl_step *step, pl_store *store, pl_error *err)
{
    const graph_conf *c = step->conf;
    st_sizes s;
    pl_code code = st_sizes_get(&s, wf, store, err);

    *out = (st_graph_sizes){ .n = s.n, .structures = s.structures, .n_units = s.n_units };
    if (code != PL_OK || !(s.n > 0))
        return code;
    out->atoms = s.atoms * s.structures / s.n;
    out->edges = out->atoms * edges_an_atom(c, &s);
    /* Half of the nearest neighbours, about, are mutual. */
    out->pairs = out->edges * (c->edges == CH_EDGES_KNN ? 0.65 : 0.5);
    return PL_OK;
}

static pl_code graph_estimate(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem,
                              pl_error *err)
{
    st_graph_sizes s;
    pl_code code = st_graph_expect(&s, wf, step, store, err);

    *out = (pl_estimate){ .n_items = -1, .n_units = -1 };
    if (code != PL_OK || s.n_units < 0)
        return code;
    out->n_items = (int64_t)s.n;
    out->n_units = s.n_units;
    out->bytes_features = ch_graph_block_bytes(s.structures, s.atoms, s.edges, s.pairs);
    out->seconds = MOLECULE_S * s.structures + EDGE_S * s.edges;
    if (!(s.n > 0))
        return PL_OK;
    out->note = pl_sprintf(mem, "about %.1f atoms and %.0f edges a %s", s.atoms / s.structures, s.edges / s.structures,
                           s.structures > s.n ? "structure" : "molecule");
    return out->note != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the estimate");
}

static const char *const needs[] = { "prepare", NULL };

const pl_stage st_graph = {
    .name = "graph",
    .help = "neighbour graphs of the conformers, in the layout the model reads",
    .scope = PL_PER_UNIT,
    .version = 1,
    .fields = fields,
    .conf_size = sizeof(graph_conf),
    .state_size = sizeof(graph_state),
    .worker_size = sizeof(graph_worker),
    .needs = needs,
    .item = "molecules",
    .settle = settle,
    .wants = wants,
    .check = check,
    .estimate = graph_estimate,
    .open = graph_open,
    .next = graph_next,
    .worker_open = graph_worker_open,
    .work = graph_work,
    .worker_close = graph_worker_close,
    .commit = graph_commit,
};
