/* SPDX-License-Identifier: Apache-2.0 */
/* The work of each operation of a training step, by the plan of the model: docs/decisions/0077-roofline.md, 0082-roofline-of-a-step.md. */
#include "stages/bench/bench.h"

enum { H = NN_RADIAL_HIDDEN, F = sizeof(float) };

/* One batch and what it is computed with. rows: of the radial networks; first: the convolution whose input needs no gradient;
 * packed: floats that a factor of products takes in memory, table: that a number of a table takes; copies: 1 if there is a float
 * beside it, else 0. */
typedef struct counter {
    st_bench_roof_op *op; /* [NN_OPS] */
    const nn_se3 *model;
    const nn_batch *batch;
    bool tables, first, rounds;               /* tables: the matrices of a row are in memory */
    double rows, ends, packed, table, copies; /* ends: rows that an edge reads, 1 or 2 */
    bool hidden16;                            /* the gradient of a hidden vector is of rounded products, too */
    bool again;                               /* queries, softmax and hidden vectors are computed again */
} counter;

/* Products whose factors stay in float32, those whose factors `precision` rounds, floats. */
static void put(const counter *c, nn_op op, double flops, double rounded, double floats)
{
    c->op[op].flops += flops + rounded;
    c->op[op].rounded += c->rounds ? rounded : 0;
    c->op[op].bytes += F * floats;
}

static double floats_of(const nn_fiber *f)
{
    double n = 0;

    for (int d = 0; d < NN_DEGREES; d++)
        n += (2 * d + 1) * f->ch[d];
    return n;
}

/* Turns an edge's vectors into its frame, or back. */
static double rotation(const nn_fiber *f)
{
    double n = 0;

    for (int d = 0; d < NN_DEGREES; d++)
        n += 2.0 * (2 * d + 1) * (2 * d + 1) * f->ch[d];
    return n;
}

static double frame_floats(const nn_conv *c)
{
    double n = 0;

    for (int d = 0; d < NN_DEGREES; d++)
        n += c->in.ch[d] || c->out.ch[d] ? (2 * d + 1) * (2 * d + 1) : 0;
    return n;
}

/* Of the radial networks of a convolution: operations of one row in the hidden layers, forward and backward (which computes
 * the hidden vector again), floats of the matrices of one row, of all last layers, operations of folding these. */
typedef struct radial_work {
    double hidden, hidden_back, columns, last, fold;
} radial_work;

static radial_work radial_of(const nn_conv *c)
{
    radial_work w = { 0 };

    for (int32_t g = 0; g < c->n_groups; g++) {
        const nn_group *v = &c->group[g];
        double columns = (double)v->c_in * v->c_out * v->n_freq;
        w.hidden += 2.0 * H * (c->edge_scalars + H);
        w.hidden_back += 2.0 * H * (2 * c->edge_scalars + 3 * H);
        w.columns += columns;
        w.last += H * columns;
        for (int32_t k = 0; k < v->n_paths; k++)
            w.fold += 2.0 * H * v->c_in * v->c_out * v->path[k].n_freq * v->path[k].n_freq;
    }
    return w;
}

/* An edge's products in its frame: order 0, then +m and -m, which mix unless parity is natural. */
static double contraction(const nn_conv *c)
{
    double n = 0;

    for (int32_t g = 0; g < c->n_groups; g++)
        for (int32_t k = 0; k < c->group[g].n_paths; k++) {
            const nn_path *p = &c->group[g].path[k];
            int m = p->d_in < p->d_out ? p->d_in : p->d_out;
            n += 2.0 * c->group[g].c_in * c->group[g].c_out * (1 + (c->natural ? 2 : 4) * m);
        }
    return n;
}

/* Products with tables are rounded, with matrices that a tile makes at once they are not. */
static void edges_put(const counter *c, nn_op op, double products, double turns, double floats)
{
    const double all = c->batch->n_edges * products, rest = c->batch->n_edges * turns;

    if (c->tables)
        put(c, op, rest, c->ends * all, floats);
    else
        put(c, op, rest + all, 0, floats);
}

static void conv_forward(const counter *c, const nn_conv *v)
{
    radial_work w = radial_of(v);
    double edges = c->batch->n_edges, matrices = c->tables ? c->rows * w.columns : 0;

    put(c, c->tables ? NN_OP_RADIAL : NN_OP_EDGES, c->rows * w.hidden, c->rows * 2 * w.last,
        c->packed * w.last + c->rows * (c->batch->n_edge_features + 1) + matrices * (c->copies + c->table));
    edges_put(c, NN_OP_EDGES, contraction(v), rotation(&v->in) + rotation(&v->out),
              edges * (floats_of(&v->in) + floats_of(&v->out) + frame_floats(v)) + c->table * matrices);
}

/* Gradients of the tables, from there those of the last layers and, in float32, of the hidden vectors; unless it is the first,
 * tables are made again, transposed, for the gradient of the input. */
static void nodes_back(const counter *c, const nn_conv *v, const radial_work *w)
{
    double input = c->first ? 0 : 1, edges = c->batch->n_edges, in = floats_of(&v->in), tables = c->rows * w->columns;
    double dh = c->rows * 2 * w->last, hidden = c->rows * ((c->again ? w->hidden : 0) + w->hidden_back);
    double dh16 = c->hidden16 ? dh : 0;

    put(c, NN_OP_RADIAL_BACK, hidden + dh - dh16, c->rows * 2 * (1 + input) * w->last + dh16,
        (2 + input * c->packed) * w->last + c->rows * (c->batch->n_edge_features + 1) +
            (1 + input * (c->copies + c->table)) * tables);
    edges_put(c, NN_OP_EDGES_BACK, (1 + input) * contraction(v), (1 + input) * rotation(&v->in) + rotation(&v->out),
              edges * ((1 + input) * in + floats_of(&v->out) + frame_floats(v)) + (1 + input * c->table) * tables);
    put(c, NN_OP_WEIGHTS, 2 * w->fold, 0, (5 + c->copies * (2 + 2 * c->packed)) * w->last);
}

/* The same with the matrices of each pair. Rounded last layers are kept in both orders. */
static void exact_back(const counter *c, const nn_conv *v, const radial_work *w)
{
    double input = c->first ? 0 : 1, edges = c->batch->n_edges, in = floats_of(&v->in);

    put(c, NN_OP_EDGES_BACK, c->rows * (w->hidden + w->hidden_back), c->rows * 2 * (2 + input) * w->last,
        (1 + (1 + c->copies * input) * c->packed) * w->last + c->rows * (c->batch->n_edge_features + 1));
    edges_put(c, NN_OP_EDGES_BACK, (1 + input) * contraction(v), (1 + input) * rotation(&v->in) + rotation(&v->out),
              edges * ((1 + input) * in + floats_of(&v->out) + frame_floats(v)));
    put(c, NN_OP_WEIGHTS, 3 * w->fold, 0, (6 + c->copies * (2 + 3 * c->packed)) * w->last);
}

static void conv_back(const counter *c, const nn_conv *v)
{
    radial_work w = radial_of(v);

    (c->tables ? nodes_back : exact_back)(c, v, &w);
}

/* Of linear layers of nodes, one matrix for each degree: floats, and products with all nodes. `at`: index in param, or -1. */
typedef struct linear_work {
    double floats, flops;
} linear_work;

static linear_work linear_of(const counter *c, const int32_t at[NN_DEGREES])
{
    linear_work w = { 0 };

    for (int d = 0; d < NN_DEGREES; d++) {
        double size = at[d] >= 0 ? (double)c->model->param[at[d]].size : 0;
        w.floats += size;
        w.flops += 2.0 * c->batch->n_nodes * (2 * d + 1) * size;
    }
    return w;
}

/* Products with the part of the projection that reads what attention makes; the rest reads the input. */
static double project_values(const counter *c, const nn_attention *a)
{
    double n = 0;

    for (int d = 0; d < NN_DEGREES; d++)
        n += 2.0 * c->batch->n_nodes * (2 * d + 1) * a->value.ch[d] * a->out.ch[d];
    return n;
}

/* Backward: queries and attention again. Of an edge, what it adds to is two operations, what it writes is one. At the end
 * the gradients of the edges are added to the nodes. */
static void attention_count(const counter *c, const nn_attention *a)
{
    linear_work q = linear_of(c, a->query), p = linear_of(c, a->project);
    double nodes = c->batch->n_nodes, edges = c->batch->n_edges, in = floats_of(&a->in), out = floats_of(&a->out);
    double both = edges * (floats_of(&a->key) + floats_of(&a->value)), sent = edges * floats_of(&a->conv.out);
    double again = c->again ? 1 : 0;

    put(c, NN_OP_ATTENTION, 2 * both, q.flops + p.flops, c->packed * (q.floats + p.floats) + sent + nodes * (in + out));
    put(c, NN_OP_ATTENTION_BACK, (3 + 2 * again) * both, (1 + again) * q.flops + p.flops + project_values(c, a),
        (1 + c->packed) * (q.floats + p.floats) + 2 * sent + nodes * (in + out));
    if (!c->first)
        put(c, NN_OP_ATTENTION_BACK, 0, q.flops + p.flops - project_values(c, a), (edges + nodes) * in);
}

static void sum_count(const counter *c, const nn_conv *v)
{
    linear_work self = linear_of(c, v->self);
    double nodes = c->batch->n_nodes, edges = c->batch->n_edges, in = floats_of(&v->in), out = floats_of(&v->out);

    put(c, NN_OP_SUM, 0, self.flops, c->packed * self.floats + edges * out + nodes * (in + out));
    put(c, NN_OP_SUM_BACK, 0, 2 * self.flops, (1 + c->packed) * self.floats + edges * (out + in) + nodes * (2 * in + out));
}

/* Forward a norm reads what is in the cache. */
static void module_count(const counter *c, const nn_module *m)
{
    const nn_conv *conv = m->kind == NN_CONV ? &m->u.conv : &m->u.attention.conv;

    if (m->kind == NN_NORM) {
        put(c, NN_OP_ATTENTION, 0, 0, c->batch->n_nodes * floats_of(&m->u.norm.fiber));
        put(c, NN_OP_ATTENTION_BACK, 0, 0, 3 * c->batch->n_nodes * floats_of(&m->u.norm.fiber));
        return;
    }
    conv_forward(c, conv);
    conv_back(c, conv);
    if (m->kind == NN_CONV)
        sum_count(c, conv);
    else
        attention_count(c, &m->u.attention);
}

static void head_count(const counter *c)
{
    const nn_se3 *m = c->model;
    double pooled = (double)c->batch->n_nodes * m->param[m->head[0]].dims[1];

    for (int k = 0; k < 4; k += 2) {
        double size = (double)m->param[m->head[k]].size;
        put(c, NN_OP_HEAD, 2 * c->batch->n_graphs * size, 0, size);
        put(c, NN_OP_HEAD_BACK, 4 * c->batch->n_graphs * size, 0, 2 * size);
    }
    put(c, NN_OP_HEAD, 0, 0, pooled);
    put(c, NN_OP_HEAD_BACK, 0, 0, pooled);
}

/* A CPU keeps factors rounded, two bytes for a number in bf16, four for both parts of bf16x3; a GPU rounds in its kernels, and
 * writes tables in 16 bits where the precision has 16. */
static void precision_set(counter *c, const nn_engine_conf *conf, bool gpu)
{
    bool half = conf->of_contract == NN_PREC_BF16 || conf->of_contract == NN_PREC_FP16;

    c->rounds = conf->of_contract != NN_PREC_FP32;
    c->table = half ? 0.5 : 1;
    c->packed = gpu ? 1 : c->table;
    c->copies = c->rounds && !gpu ? 1 : 0;
    c->hidden16 = gpu;
    c->again = !gpu;
    c->tables = gpu || conf->radial == NN_RADIAL_NODES;
    c->ends = conf->radial == NN_RADIAL_NODES ? 2 : 1;
}

void st_bench_roof_count(st_bench_roof_op out[NN_OPS], const st_bench_case *c, const st_bench_variant *v, double rows)
{
    st_bench_roof_op op[NN_OPS] = { { 0 } };
    counter count = { .op = op, .model = c->model, .batch = &c->batch, .rows = rows };

    precision_set(&count, &v->conf, v->kind == &nn_engine_cuda);
    for (int32_t i = 0; i < c->model->n_modules; i++) {
        count.first = i == 0;
        module_count(&count, &c->model->module[i]);
    }
    head_count(&count);
    for (int i = 0; i < NN_OPS; i++) {
        op[i].seconds = out[i].seconds;
        out[i] = op[i];
    }
}
