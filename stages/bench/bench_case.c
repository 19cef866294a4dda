/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "chem/records/record.h"
#include "chem/worker/worker_client.h"
#include "stages/bench/bench.h"

enum { H = NN_RADIAL_HIDDEN };

/* ---- molecules ----------------------------------------------------------- */

/* why: the last reason of a record that is not usable. */
static pl_code mol_take(st_bench_mols *m, ch_worker *w, const ch_record *r, pl_error *why, pl_error *err)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared got = { 0 };
    pl_error here = { 0 };
    pl_code code;

    if (r->problem != NULL)
        return PL_OK;
    code = ch_worker_prepare(w, r->text, r->len, r->format, &opts, &got, m->mem, &here);
    if (code == PL_EINPUT)
        *why = here;
    else if (code != PL_OK)
        return pl_fail(err, code, "%s", here.text);
    else if (got.mol.xyz != NULL)
        m->mol[m->n++] = got.mol;
    return PL_OK;
}

/* Unusable records are skipped; if all are unusable, the last reason is reported. */
static pl_code mols_read(st_bench_mols *m, ch_worker *w, ch_reader *r, int32_t max, pl_error *err)
{
    pl_error why = { 0 };
    ch_record record;
    bool more = true;
    pl_code code = PL_OK;

    while (code == PL_OK && more && m->n < max) {
        code = ch_reader_next(r, &record, &more, err);
        if (code == PL_OK && more)
            code = mol_take(m, w, &record, &why, err);
    }
    if (code == PL_OK && m->n == 0)
        code = pl_fail(err, PL_ECONFIG, "no molecule with a 3D structure%s%s", why.text[0] ? ": " : "", why.text);
    return code;
}

pl_code st_bench_mols_open(st_bench_mols *m, const char *path, int32_t max, pl_error *err)
{
    ch_worker *w = NULL;
    ch_reader *r = NULL;
    pl_code code;

    *m = (st_bench_mols){ .mem = pl_arena_new(1 << 20) };
    m->mol = m->mem != NULL ? PL_NEW(m->mem, ch_mol, max) : NULL;
    if (m->mol == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d molecules", (int)max);
    code = ch_worker_open(&w, NULL, err);
    if (code == PL_OK)
        code = ch_reader_open(&r, path, NULL, &(ch_reader_opts){ .lister = w }, err);
    if (code == PL_OK)
        code = mols_read(m, w, r, max, err);
    ch_reader_close(r);
    ch_worker_close(w);
    return code;
}

void st_bench_mols_close(st_bench_mols *m)
{
    pl_arena_free(m->mem);
    *m = (st_bench_mols){ 0 };
}

/* ---- batches ------------------------------------------------------------- */

/* The molecules' graphs, without molecules that have an element unknown to the model. */
static pl_code items_make(nn_item **out, int32_t *n, const nn_inputs *inputs, const st_bench_mols *mols, const ch_graph_opts *opts,
                          pl_arena *mem, pl_error *err)
{
    nn_item *item = PL_NEW(mem, nn_item, mols->n);
    static const float zeros[NN_COLUMNS_MAX + CH_N_FEATURES]; /* time does not depend on numbers */
    ch_graph *graph = PL_NEW(mem, ch_graph, mols->n);

    *n = 0;
    if (item == NULL || graph == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d graphs", (int)mols->n);
    for (int32_t i = 0; i < mols->n; i++) {
        pl_code code = ch_graph_build(&graph[i], &mols->mol[i], opts, mem, err);
        if (code != PL_OK && code != PL_EINPUT)
            return code;
        if (code == PL_OK && !nn_inputs_unknown(inputs, &graph[i]))
            item[(*n)++] = (nn_item){ .graph = &graph[i], .column = zeros, .feature = zeros };
    }
    *out = item;
    return *n ? PL_OK : pl_fail(err, PL_ECONFIG, "none of the %d molecules is one that the model can read", (int)mols->n);
}

static pl_code batch_make(st_bench_case *c, const nn_item *item, int32_t n, const nn_inputs *inputs, const int32_t limits[2],
                          pl_arena *mem, pl_error *err)
{
    nn_item *all = PL_NEW(mem, nn_item, limits[0]);
    nn_collated made;
    pl_code code;

    if (all == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of %d molecules", (int)limits[0]);
    for (int32_t i = 0; i < limits[0]; i++)
        all[i] = item[i % n];
    code = nn_collate_run(c->collate, &made, all, nn_collate_take(all, 0, limits[0], limits[0], limits[1]), inputs, err);
    c->batch = made.batch;
    return code;
}

pl_code st_bench_case_open(st_bench_case *c, const nn_se3 *model, const float *params, const nn_inputs *inputs,
                           const st_bench_mols *mols, const ch_graph_opts *graph, const int32_t limits[2], pl_error *err)
{
    size_t n = (size_t)limits[0] * (size_t)model->conf.outputs;
    pl_arena *mem = pl_arena_new(1 << 18);
    nn_item *item = NULL;
    int32_t n_items = 0;
    pl_code code;

    *c = (st_bench_case){ .model = model,
                          .params = params,
                          .collate = nn_collate_new(),
                          .y = calloc(n, sizeof(float)),
                          .dy = calloc(n, sizeof(float)),
                          .grad = calloc(model->n_floats, sizeof(float)) };
    if (mem == NULL || c->collate == NULL || c->y == NULL || c->dy == NULL || c->grad == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory for a batch of %d molecules", (int)limits[0]);
    else
        code = items_make(&item, &n_items, inputs, mols, graph, mem, err);
    if (code == PL_OK)
        code = batch_make(c, item, n_items, inputs, limits, mem, err);
    for (size_t i = 0; code == PL_OK && i < n; i++)
        c->dy[i] = 1.0f / (float)n;
    pl_arena_free(mem);
    return code;
}

void st_bench_case_close(st_bench_case *c)
{
    nn_collate_free(c->collate);
    free(c->y);
    free(c->dy);
    free(c->grad);
    *c = (st_bench_case){ 0 };
}

/* ---- work ---------------------------------------------------------------- */

static const nn_conv *conv_of(const nn_module *m)
{
    if (m->kind == NN_ATTENTION)
        return &m->u.attention.conv;
    return m->kind == NN_CONV ? &m->u.conv : NULL;
}

/* Components of the degrees that a group reads and makes. */
static st_bench_conv conv_shape(const nn_group *g)
{
    st_bench_conv c = { g->c_in, g->c_out, g->n_freq, 0, 0 };
    bool in[NN_DEGREES] = { false }, out[NN_DEGREES] = { false };

    for (int32_t k = 0; k < g->n_paths; k++)
        in[g->path[k].d_in] = out[g->path[k].d_out] = true;
    for (int d = 0; d < NN_DEGREES; d++) {
        c.d_in += in[d] ? 2 * d + 1 : 0;
        c.d_out += out[d] ? 2 * d + 1 : 0;
    }
    return c;
}

int st_bench_convs(st_bench_conv *out, const nn_se3 *model)
{
    int n = 0;

    for (int32_t i = 0; i < model->n_modules; i++) {
        const nn_conv *c = conv_of(&model->module[i]);
        for (int32_t g = 0; c != NULL && g < c->n_groups && n < ST_BENCH_CONVS; g++)
            out[n++] = conv_shape(&c->group[g]);
    }
    return n;
}

st_bench_work st_bench_work_reference(const st_bench_case *c)
{
    st_bench_conv conv[ST_BENCH_CONVS];
    st_bench_work w = { 0 };

    for (int i = st_bench_convs(conv, c->model) - 1; i >= 0; i--) {
        const st_bench_conv *v = &conv[i];
        double r = 2.0 * H * v->c_out * v->c_in * v->f, t = 2.0 * v->c_in * v->d_in * v->f * v->d_out;
        double y = 2.0 * v->c_out * v->c_in * v->f * v->d_out;
        w.forward += c->batch.n_edges * (r + t + y);
        w.train += c->batch.n_edges * (3 * r + 2 * t + 3 * y); /* back: dh and dW; dx; dR and dT */
    }
    return w;
}

/* Radial products of a pair and contractions of an edge, of one convolution. */
static void frame_work(double *radial, double *contract, const nn_conv *c)
{
    *radial = *contract = 0;
    for (int32_t g = 0; g < c->n_groups; g++)
        for (int32_t k = 0; k < c->group[g].n_paths; k++) {
            const nn_path *p = &c->group[g].path[k];
            double both = 2.0 * c->group[g].c_in * c->group[g].c_out;
            *radial += both * H * p->n_freq;
            *contract += both * (1 + (c->natural ? 2 : 4) * (p->d_in < p->d_out ? p->d_in : p->d_out));
        }
}

/* Exact: R is made again for the backward pass, and has two gradients; the first
 * convolution needs none of its input. Nodes: two of them an edge. */
st_bench_work st_bench_work_engine(const st_bench_case *c, nn_radial radial)
{
    double pairs = c->batch.n_pairs, edges = c->batch.n_edges, r, y;
    st_bench_work w = { 0 };
    bool first = true;

    for (int32_t i = 0; i < c->model->n_modules; i++) {
        const nn_conv *v = conv_of(&c->model->module[i]);
        if (v == NULL)
            continue;
        frame_work(&r, &y, v);
        w.forward += radial == NN_RADIAL_NODES ? 2 * y * edges : r * pairs + y * edges;
        w.train +=
            radial == NN_RADIAL_NODES ? (first ? 4 : 6) * y * edges : (first ? 3 : 4) * r * pairs + (first ? 2 : 3) * y * edges;
        first = false;
    }
    return w;
}
