/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/cpu_layout.h"

static int32_t channels_of(const nn_cpu_layout *f, int m)
{
    int32_t n = 0;

    for (int l = m; l < f->n_degrees; l++)
        n += f->pad[l];
    return n;
}

/* Components of order 0..m_max of f, order after order. */
static nn_cpu_edge_layout edge_layout_of(const nn_cpu_layout *f, int m_max)
{
    nn_cpu_edge_layout e = { .n_degrees = f->n_degrees, .m_max = m_max };

    for (int l = 0; l < NN_DEGREES; l++) {
        e.pad[l] = f->pad[l];
        e.at[l] = f->at[l];
    }
    for (int m = 0; m <= m_max; m++)
        for (int part = 0; part < (m ? 2 : 1); part++)
            for (int l = m; l < f->n_degrees; l++) {
                e.to[l][part ? l - m : l + m] = e.size;
                e.size += f->pad[l];
            }
    e.ld = e.size / NN_LANE % 2 ? e.size : e.size + NN_LANE; /* an odd number of cache lines */
    return e;
}

static void order_places(int32_t at[2], const nn_cpu_edge_layout *e, int m)
{
    at[0] = e->to[m][2 * m];
    at[1] = e->to[m][0];
}

static void orders_fill(nn_cpu_table *t, const nn_cpu_layout *in, const nn_cpu_edge_layout *x, const nn_cpu_layout *out,
                        const nn_cpu_edge_layout *y, bool natural)
{
    t->n_orders = x->m_max + 1;
    for (int m = 0; m < t->n_orders; m++) {
        nn_cpu_order *o = &t->order[m];
        *o = (nn_cpu_order){
            .m = m, .k = channels_of(in, m), .n = channels_of(out, m), .at = t->size, .n_matrices = m && !natural ? 2 : 1
        };
        order_places(o->x, x, m);
        order_places(o->y, y, m);
        t->size += (size_t)o->n_matrices * (size_t)o->k * (size_t)o->n;
    }
}

/* Adds n columns of group g to the last run if they fit, else to a new one. */
static void run_extend(nn_cpu_table *t, int32_t group, int32_t n, size_t *at)
{
    nn_cpu_run *last = t->run != NULL && t->n_runs ? &t->run[t->n_runs - 1] : NULL;

    if (last != NULL && last->group == group && last->n + n <= NN_TABLE_RUN)
        last->n += n;
    else if (t->run != NULL)
        t->run[t->n_runs++] = (nn_cpu_run){ .at = *at, .n = n, .group = group };
    else
        t->n_runs++;
    *at += (size_t)n;
}

/* The degree to which channel k of order m belongs. */
static int degree_of(const nn_cpu_layout *f, int m, int32_t k)
{
    int l = m;

    while (k >= f->pad[l])
        k -= f->pad[l++];
    return l;
}

/* Adds runs in the order of the columns; group[l_k][l_n] is the network of a block of columns. */
static void runs_fill(nn_cpu_table *t, const nn_cpu_layout *in, const nn_cpu_layout *out, int32_t group[NN_DEGREES][NN_DEGREES])
{
    size_t at = 0;

    t->n_runs = 0;
    for (int m = 0; m < t->n_orders; m++)
        for (int32_t j = 0; j < t->order[m].n; j += NN_LANE)
            for (int part = 0; part < t->order[m].n_matrices; part++)
                for (int l = m; l < in->n_degrees; l++)
                    if (in->pad[l])
                        run_extend(t, group[l][degree_of(out, m, j)], in->pad[l] * NN_LANE, &at);
}

static bool runs_plan(nn_cpu_table *t, const nn_cpu_layout *in, const nn_cpu_layout *out, int32_t group[NN_DEGREES][NN_DEGREES],
                      pl_arena *mem)
{
    runs_fill(t, in, out, group); /* the first call only counts */
    t->run = PL_NEW(mem, nn_cpu_run, t->n_runs);
    if (t->run != NULL)
        runs_fill(t, in, out, group);
    return t->run != NULL;
}

bool nn_cpu_table_plan(nn_cpu_conv *c, pl_arena *mem)
{
    int low = c->in.n_degrees < c->out.n_degrees ? c->in.n_degrees : c->out.n_degrees;
    int32_t group[NN_DEGREES][NN_DEGREES] = { { 0 } }, turned[NN_DEGREES][NN_DEGREES] = { { 0 } };

    for (int g = 0; g < c->def->n_groups; g++)
        for (int p = 0; p < c->def->group[g].n_paths; p++) {
            const nn_path *path = &c->def->group[g].path[p];
            group[path->d_in][path->d_out] = turned[path->d_out][path->d_in] = g;
        }
    c->x = edge_layout_of(&c->in, low - 1);
    c->y = edge_layout_of(&c->out, low - 1);
    orders_fill(&c->table, &c->in, &c->x, &c->out, &c->y, c->def->natural);
    orders_fill(&c->turned, &c->out, &c->y, &c->in, &c->x, c->def->natural);
    return runs_plan(&c->table, &c->in, &c->out, group, mem) && runs_plan(&c->turned, &c->out, &c->in, turned, mem);
}
