/* SPDX-License-Identifier: Apache-2.0 */
/* What a training takes on this machine, for `plan`: a step with a small batch of chains is timed. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/clock.h"
#include "pipeline/base/par.h"
#include "pipeline/base/text.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/ingest/size_estimate.h"
#include "stages/steps/train/train.h"

enum { CARBONS = 12, HYDROGENS = 2 * CARBONS + 2, CHAINS = 64, STEPS = 2 };
#define TRAIN_SHARE 0.8 /* of the molecules, where no split is stored yet                    */
#define HELD_OUT 1.1    /* time of an epoch, held-out molecules included, over that of its steps */

typedef struct cost {
    double seconds; /* of a training step, for each edge */
    int threads;
} cost;

/* ---- a molecule ---- */

static void put_atom(ch_mol *m, int i, int z, double x, double y, double zz)
{
    m->z[i] = (uint8_t)z;
    m->xyz[i][0] = (float)x;
    m->xyz[i][1] = (float)y;
    m->xyz[i][2] = (float)zz;
}

static void put_bond(ch_mol *m, int *n, int a, int b)
{
    m->bond[*n][0] = a;
    m->bond[*n][1] = b;
    m->order[(*n)++] = 1;
}

/* A zigzag of carbon atoms with their hydrogens: as many bonds an atom as organic molecules have. */
static pl_code chain_make(ch_mol *m, pl_arena *mem, pl_error *err)
{
    int n = 0, h = CARBONS;
    pl_code code = ch_mol_alloc(m, CARBONS + HYDROGENS, CARBONS + HYDROGENS - 1, mem, err);

    for (int k = 0; k < CARBONS && code == PL_OK; k++) {
        const double side = k % 2 ? 1 : -1;
        put_atom(m, k, 6, 1.27 * k, 0.42 * side, 0);
        if (k + 1 < CARBONS)
            put_bond(m, &n, k, k + 1);
        for (int j = 0; j < 2; j++, h++) {
            put_atom(m, h, 1, 1.27 * k, 1.05 * side, j ? 0.89 : -0.89);
            put_bond(m, &n, k, h);
        }
    }
    for (int j = 0; j < 2 && code == PL_OK; j++, h++) {
        put_atom(m, h, 1, j ? 1.27 * (CARBONS - 1) + 0.9 : -0.9, j ? -0.2 : 0.2, 0);
        put_bond(m, &n, j ? CARBONS - 1 : 0, h);
    }
    return code;
}

/* ---- a step ---- */

static pl_code step(const nn_engine_kind *kind, nn_engine *e, const nn_batch *b, const float *params, float *const y[3],
                    pl_error *err)
{
    pl_code code = kind->set_params(e, params, err);

    if (code == PL_OK)
        code = kind->forward(e, b, true, y[0], err);
    return code == PL_OK ? kind->backward(e, b, y[1], y[2], err) : code;
}

/* The first step is not counted. */
static pl_code time_steps(cost *out, const st_train_conf *c, const nn_se3 *model, const nn_batch *b, pl_arena *mem, pl_error *err)
{
    nn_engine_conf conf = st_compute_conf(&c->compute, out->threads);
    const nn_engine_kind *kind = st_compute_engine(&c->compute);
    const size_t n_y = (size_t)b->n_graphs * (size_t)model->conf.outputs;
    float *params = PL_NEW(mem, float, model->n_floats);
    float *const y[3] = { PL_NEW(mem, float, n_y), PL_NEW(mem, float, n_y), PL_NEW(mem, float, model->n_floats) };
    nn_engine *e = NULL;
    double from = 0;
    pl_code code;

    if (params == NULL || y[0] == NULL || y[1] == NULL || y[2] == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to time a training step");
    nn_se3_init(model, params, 1);
    conf.recompute = c->recompute;
    code = kind->open(&e, model, &conf, err);
    for (int k = 0; k <= STEPS && code == PL_OK; k++) {
        from = k == 1 ? pl_clock() : from;
        code = step(kind, e, b, params, y, err);
    }
    out->seconds = (pl_clock() - from) / STEPS / (double)b->n_edges;
    kind->close(e);
    return code;
}

static pl_code measure(cost *out, const pl_workflow *wf, const st_train_conf *c, const nn_se3 *model, const nn_inputs *in,
                       pl_arena *mem, pl_error *err)
{
    static const float zeros[NN_COLUMNS_MAX + CH_N_FEATURES];
    const ch_graph_opts opts = st_graph_opts(pl_workflow_step(wf, "graph"));
    nn_collate *collate = nn_collate_new();
    ch_graph *graph = PL_NEW(mem, ch_graph, 1);
    nn_item item[CHAINS];
    nn_collated made = { 0 };
    ch_mol chain;
    pl_code code = collate != NULL && graph != NULL ? chain_make(&chain, mem, err) : pl_fail(err, PL_ENOMEM, "a training step");

    if (code == PL_OK)
        code = ch_graph_build(graph, &chain, &opts, mem, err);
    for (int k = 0; k < CHAINS; k++)
        item[k] = (nn_item){ .graph = graph, .column = zeros, .feature = zeros };
    if (code == PL_OK)
        code = nn_collate_run(collate, &made, item, CHAINS, in, err);
    if (code == PL_OK)
        code = time_steps(out, c, model, &made.batch, mem, err);
    nn_collate_free(collate);
    return code;
}

/* ---- the estimate ---- */

/* "trees, gp", with a comma behind it if a network follows. NULL: no memory. */
static const char *members_note(const pl_workflow *wf, const st_train_conf *c, int64_t n, pl_arena *mem)
{
    const st_family f = st_family_of(wf, c, n);
    pl_text text = { 0 };
    const char *note;

    for (int32_t k = 0; k < f.n; k++)
        pl_text_addf(&text, "%s%s", k ? ", " : "", f.kind[k]->name);
    st_family_limit_say(&text, &f, n);
    if (f.n && f.network)
        pl_text_add(&text, ", ");
    note = pl_text_ok(&text) ? pl_strdup(mem, pl_text_str(&text)) : NULL;
    pl_text_free(&text);
    return note;
}

/* Structures in the training part, and the directed edges of one. */
static pl_code sizes_get(int64_t *n, double *edges, const pl_workflow *wf, pl_store *store, pl_error *err)
{
    st_graph_sizes sizes = { 0 };
    pl_code code = PL_OK;

    *n = 0;
    if (store != NULL)
        code = pl_db_int(store->db, n, err,
                         "SELECT coalesce(sum(coalesce(structures,1)),0) FROM split JOIN molecule USING(mol_id) WHERE "
                         "part='train'");
    if (code == PL_OK)
        code = st_graph_expect(&sizes, wf, pl_workflow_step(wf, "graph"), store, err);
    if (*n == 0)
        *n = (int64_t)(TRAIN_SHARE * sizes.structures);
    *edges = sizes.structures > 0 ? sizes.edges / sizes.structures : 0;
    return code;
}

/* Inputs as wide as those of the model, of molecules like those of QM9. */
static nn_inputs inputs_like(const st_train_conf *c)
{
    static const nn_moments none[CH_N_FEATURES];
    nn_inputs in = nn_inputs_qm9();

    in.n_columns = c->inputs.columns.n < NN_COLUMNS_MAX ? c->inputs.columns.n : NN_COLUMNS_MAX;
    in.descriptors = c->inputs.descriptors;
    in.descriptor = none;
    return in;
}

static pl_code network_estimate(const pl_workflow *wf, const st_train_conf *c, int64_t n, double edges, pl_estimate *out,
                                pl_arena *mem, pl_error *err)
{
    nn_inputs in = inputs_like(c);
    nn_se3_conf network = st_train_network(c, &in);
    cost found = { .threads = c->threads > 0 ? (int)c->threads : (int)wf->workers };
    nn_se3 *model;
    char each[32];
    const char *networks = "network of about ", *epochs = st_budget_plan(c, mem);
    pl_code code = nn_se3_plan(&model, &network, mem, err);

    found.threads = found.threads > 0 ? found.threads : pl_cpu_count();
    if (code == PL_OK && measure(&found, wf, c, model, &in, mem, NULL) == PL_OK)
        out->seconds = found.seconds * edges * HELD_OUT * (double)out->n_items;
    if (code != PL_OK)
        return code;
    if (c->members > 1)
        networks = pl_sprintf(mem, "%lld networks of about ", (long long)c->members);
    if (networks == NULL || epochs == NULL)
        return pl_fail(err, PL_ENOMEM, "the estimate");
    out->note = pl_sprintf(mem, "%s%s%s parameters, %s", out->note, networks, pl_count_str((int64_t)model->n_floats, each), epochs);
    if (c->loop.budget > 0)
        st_budget_cut(out, c->loop.budget);
    else if (out->note != NULL && out->seconds > 0)
        out->note = pl_sprintf(mem, "%s of %s with %d thread%s, by a step measured here; early_stop may end it before", out->note,
                               pl_duration_str(found.seconds * edges * HELD_OUT * (double)n, each), found.threads,
                               found.threads == 1 ? "" : "s");
    return out->note != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the estimate");
}

pl_code st_train_estimate(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem,
                          pl_error *err)
{
    const st_train_conf *c = step->conf;
    double edges = 0;
    int64_t n = 0;
    bool network;
    pl_code code = sizes_get(&n, &edges, wf, store, err);

    *out = (pl_estimate){ .n_items = -1, .n_units = -1, .guessed = true };
    if (code != PL_OK)
        return code;
    network = st_family_of(wf, c, n).network;
    out->note = members_note(wf, c, n, mem);
    if (n > 0)
        out->n_items = network ? n * c->loop.epochs * c->members : n;
    if (out->note == NULL)
        return pl_fail(err, PL_ENOMEM, "the estimate");
    return network && n > 0 ? network_estimate(wf, c, n, edges, out, mem, err) : PL_OK;
}
