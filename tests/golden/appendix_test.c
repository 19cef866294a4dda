/* SPDX-License-Identifier: Apache-2.0
 *
 * The golden numbers of docs/model.md 9 (appendix.h), by the oracle in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/appendix.h"
#include "models/network/sh.h"
#include "models/ref/ref.h"

static void near(const char *what, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s: got %.14g, want %.14g", what, got, want);
}

/* ---- the model ----------------------------------------------------------- */

typedef struct fixture {
    pl_arena *mem;
    model_file in;
    nn_se3 *model;
    const double *w;
    nn_ref_ctx ctx;
    nn_ref_run *run;
} fixture;

static void fixture_open(fixture *f, nn_fusion level)
{
    *f = (fixture){ .mem = pl_arena_new(1 << 22) };
    appendix_open(&f->in, level, f->mem);
    f->model = f->in.model;
    f->w = f->in.w;
}

static void fixture_run(fixture *f)
{
    nn_ref_edges in = model_edges(&f->in, true, f->mem);
    nn_ref_graph *g;

    assert_int_equal(nn_ref_graph_new(&g, &in, 3, f->mem, NULL), PL_OK);
    f->ctx = (nn_ref_ctx){ .model = f->model, .w = f->w, .graph = g, .mem = f->mem };
    assert_int_equal(nn_ref_model_forward(&f->ctx, &f->run, f->in.node, f->in.first, f->in.n_graphs, NULL), PL_OK);
}

static void fixture_backward(fixture *f, const double dy[APPENDIX_GRAPHS])
{
    f->ctx.dw = PL_NEW(f->mem, double, f->model->n_floats);
    f->ctx.de.dist = PL_NEW(f->mem, double, f->in.n_edges);
    f->ctx.de.turn = (double(*)[3])PL_NEW(f->mem, double, 3 * f->in.n_edges);
    assert_int_equal(nn_ref_model_backward(&f->ctx, f->run, dy, NULL, NULL), PL_OK);
}

static void check_level(nn_fusion level)
{
    const double a = appendix_outputs[level][0], b = appendix_outputs[level][1];
    fixture f;

    fixture_open(&f, level);
    fixture_run(&f);
    near("y(A)", f.run->y[0], a, 1e-9 * fabs(a));
    near("y(B)", f.run->y[1], b, 1e-9 * fabs(b));
    pl_arena_free(f.mem);
}

static void outputs_of_the_full_layout(void **s)
{
    (void)s;
    check_level(NN_FUSE_FULL);
}

static void outputs_of_the_partial_layout(void **s)
{
    (void)s;
    check_level(NN_FUSE_PARTIAL);
}

static void outputs_of_the_pairwise_layout(void **s)
{
    (void)s;
    check_level(NN_FUSE_NONE);
}

static void hashed_weights_begin_as_listed(void **s)
{
    fixture f;
    (void)s;

    fixture_open(&f, NN_FUSE_FULL);
    assert_int_equal(f.model->n_params, 171);
    assert_int_equal(f.model->n_floats, 9279553);
    const double *b = f.w + f.model->param[nn_se3_find(f.model, "mlp.0.bias")].at;
    const double *g = f.w + f.model->param[nn_se3_find(f.model, "transformer.graph_modules.9.group_norm.weight")].at;
    near("tensor 0 [0]", b[0], 0.15332432, 1e-8);
    near("tensor 0 [2]", b[2], 0.03647589, 1e-8);
    near("tensor 170 [0]", g[0], 1.06554125, 1e-8);
    near("tensor 170 [2]", g[2], 0.92179169, 1e-8);
    pl_arena_free(f.mem);
}

/* ---- outputs of each module ------------------------------------------------ */

static const struct {
    int module;
    double sum[4];
} squares[] = {
    { 0, { 2012.905123, 132.5660966, 377.0499169, 306.7768275 } },  { 1, { 140.1133872, 148.644225, 186.1994304, 127.8761115 } },
    { 2, { 207.3645125, 375.1012553, 248.4712217, 423.1952983 } },  { 3, { 121.8160862, 148.4778044, 139.900508, 160.886442 } },
    { 4, { 267.3533764, 239.478667, 316.3826815, 382.8297186 } },   { 5, { 136.926754, 113.614895, 130.1678717, 131.3115521 } },
    { 6, { 269.6366684, 275.123792, 278.4140591, 286.9709591 } },   { 8, { 200.9621834, 245.1557897, 300.8325026, 331.6045597 } },
    { 10, { 197.7537716, 182.7096589, 222.84129, 241.0228682 } },   { 12, { 212.0690089, 261.1221121, 404.8130172, 288.8097326 } },
    { 13, { 142.6835355, 145.1757438, 137.3814049, 147.7395352 } }, { 14, { 4790.063285, 0, 0, 0 } },
};

static void modules_give_the_listed_sums_of_squares(void **s)
{
    fixture f;
    char what[64];
    (void)s;

    fixture_open(&f, NN_FUSE_FULL);
    fixture_run(&f);
    for (size_t k = 0; k < sizeof squares / sizeof *squares; k++)
        for (int d = 0; d < 4; d++) {
            const nn_ref_feat *x = &f.run->x[squares[k].module + 1];
            double sum = 0.0;
            for (int32_t j = 0; j < APPENDIX_NODES * x->fiber.ch[d] * (2 * d + 1); j++)
                sum += x->d[d][j] * x->d[d][j];
            snprintf(what, sizeof what, "module %d degree %d", squares[k].module, d);
            near(what, sum, squares[k].sum[d], 1e-9 * sum + 1e-12);
        }
    pl_arena_free(f.mem);
}

/* ---- gradients ----------------------------------------------------------- */

static void loss_and_gradient_norms_are_as_listed(void **s)
{
    fixture f;
    (void)s;

    fixture_open(&f, NN_FUSE_FULL);
    fixture_run(&f);
    near("loss", (fabs(f.run->y[0] - 0.5) + fabs(f.run->y[1] + 0.5)) / 2, 0.400840655108, 1e-11);
    fixture_backward(&f, (const double[]){ 0.5, -0.5 });
    for (const appendix_gradient *want = appendix_gradients; want->name != NULL; want++) {
        int32_t at = nn_se3_find(f.model, want->name);
        if (at < 0)
            fail_msg("no parameter %s", want->name);
        const nn_param *p = &f.model->param[at];
        double sum = 0.0;
        for (size_t e = 0; e < p->size; e++)
            sum += f.ctx.dw[p->at + e] * f.ctx.dw[p->at + e];
        near(want->name, sqrt(sum), want->norm, 1e-9 * want->norm);
        if (want->first != 0)
            near(want->name, f.ctx.dw[p->at], want->first, 6e-8 * fmax(1, fabs(want->first)));
    }
    pl_arena_free(f.mem);
}

static void position_gradient_is_as_listed(void **s)
{
    static const double want[4][3] = { { 9.29945, 11.786675, -5.042766 },
                                       { 0.41064, -1.453173, 0.840635 },
                                       { -5.425707, -5.027955, 1.462654 },
                                       { -4.284383, -5.305546, 2.739477 } };
    double pos[APPENDIX_NODES][3] = { { 0 } };
    fixture f;
    (void)s;

    fixture_open(&f, NN_FUSE_FULL);
    fixture_run(&f);
    fixture_backward(&f, (const double[]){ 1, 0 });
    for (int32_t e = 0; e < f.in.n_edges; e++) {
        const double *v = f.in.vec[e], r = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        for (int k = 0; k < 3; k++) {
            double g = f.ctx.de.dist[e] * v[k] / r + f.ctx.de.turn[e][k];
            pos[f.in.dst[e]][k] += g;
            pos[f.in.src[e]][k] -= g;
        }
    }
    for (int n = 0; n < APPENDIX_NODES; n++)
        for (int k = 0; k < 3; k++)
            near("d y(A) / d pos", pos[n][k], n < 4 ? want[n][k] : 0.0, 5e-6);
    pl_arena_free(f.mem);
}

/* ---- edge 0 -------------------------------------------------------------- */

static const double edge0[3] = { 0.75, 0.90, 0.25 };

static void harmonics_of_edge_0_are_as_listed(void **s)
{
    static const double want[] = {
        0.305908122,  0.367089747,  0.101969374,  0.142754586,  0.513916509,  0.218686138,  0.171305503,  -0.190339448,
        -0.096538106, 0.283762922,  0.521452588,  -0.049821745, 0.173817529,  -0.378350563, -0.139443932, -0.113969285,
        -0.217588826, 0.364856606,  0.299356680,  -0.294324214, 0.099785560,  -0.486475475, -0.314294972, 0.033241041,
        -0.003118231, -0.283988481, -0.326595447, 0.326282044,  -0.059984841, -0.390074072, -0.019994947, -0.435042725,
        -0.471748979, 0.082829974,  0.082113407,  0.052832109,  -0.008446883, -0.478634278, -0.363383648, 0.162978304,
        -0.389022242, -0.289312793, -0.129674081, -0.217304406, -0.524887492, 0.139601664,  0.222434582,  0.019868486,
    };
    double y[NN_SH_COUNT];
    (void)s;

    nn_sh(y, 6, edge0);
    for (size_t k = 0; k < sizeof want / sizeof *want; k++)
        near("Y of edge 0", y[k + 1], want[k], 6e-10);
}

static void bases_of_edge_0_are_as_listed(void **s)
{
    static const double b11[27] = { 0.16286750, 0,           0,          0,          0.04162882, -0.14986376, 0.02026417,
                                    0.16251467, 0.04514296,  0,          0.16286750, 0,          -0.04162882, 0,
                                    0.12488647, 0.16251467,  0.07985289, 0.05417156, 0,          0,           0.16286750,
                                    0.14986376, -0.12488647, 0,          0.04514296, 0.05417156, -0.10011706 };
    static const double b12[15] = { 0.03224555, 0.11608397,  -0.05585093, 0,          -0.09673664,
                                    0.09382789, -0.02606330, -0.05417156, 0.10390570, 0.03127596,
                                    0.02527341, 0.09098427,  0.12465101,  0.06192215, 0.01018275 };
    pl_arena *mem = pl_arena_new(1 << 16);
    nn_couplings *q;
    double y[NN_SH_COUNT], b[3 * 3 * 5];
    (void)s;

    assert_int_equal(nn_couplings_new(&q, 2, NN_W3J_E3NN_033, mem, NULL), PL_OK);
    nn_sh(y, 4, edge0);
    nn_basis_pair(b, q, 1, 1, y);
    for (int k = 0; k < 27; k++)
        near("B(1,1) of edge 0", b[k], b11[k], 6e-9);
    nn_basis_pair(b, q, 1, 2, y);
    for (int k = 0; k < 15; k++)
        near("B(1,2) of edge 0", b[k], b12[k], 6e-9);
    pl_arena_free(mem);
}

/* ---- the check table of the 3j tensors (docs/model.md 2.3) --------------- */

typedef struct entry {
    int i, o, j, count, at0[3], at1[3]; /* at: k, l, m of the first and last non-zero entry */
    double first, last;
} entry;

static const entry table[] = {
    { 1, 1, 0, 3, { 0, 0, 0 }, { 2, 2, 0 }, 0.577350269, 0.577350269 },
    { 1, 1, 1, 6, { 0, 1, 2 }, { 2, 1, 0 }, -0.408248290, 0.408248290 },
    { 1, 1, 2, 11, { 0, 0, 2 }, { 2, 2, 4 }, -0.182574186, 0.316227766 },
    { 1, 2, 1, 11, { 0, 0, 2 }, { 4, 2, 2 }, 0.316227766, 0.316227766 },
    { 1, 2, 2, 16, { 0, 0, 1 }, { 4, 2, 1 }, 0.182574186, 0.182574186 },
    { 1, 2, 3, 21, { 0, 0, 4 }, { 4, 2, 6 }, -0.069006556, 0.267261242 },
    { 1, 3, 2, 21, { 0, 0, 4 }, { 6, 2, 4 }, 0.267261242, 0.267261242 },
    { 1, 3, 3, 26, { 0, 0, 1 }, { 6, 2, 1 }, 0.133630621, 0.133630621 },
    { 1, 3, 4, 31, { 0, 0, 6 }, { 6, 2, 8 }, -0.044543540, 0.235702260 },
    { 2, 1, 1, 11, { 0, 0, 2 }, { 2, 4, 2 }, 0.316227766, 0.316227766 },
    { 2, 1, 2, 16, { 0, 0, 1 }, { 2, 4, 1 }, -0.182574186, -0.182574186 },
    { 2, 1, 3, 21, { 0, 0, 4 }, { 2, 4, 6 }, -0.069006556, 0.267261242 },
    { 2, 2, 0, 5, { 0, 0, 0 }, { 4, 4, 0 }, 0.447213595, 0.447213595 },
    { 2, 2, 1, 16, { 0, 1, 0 }, { 4, 3, 0 }, -0.182574186, -0.182574186 },
    { 2, 2, 2, 25, { 0, 0, 2 }, { 4, 4, 2 }, -0.239045722, -0.239045722 },
    { 2, 2, 3, 28, { 0, 1, 0 }, { 4, 3, 2 }, -0.188982237, -0.146385011 },
    { 2, 2, 4, 37, { 0, 0, 4 }, { 4, 4, 8 }, 0.039840954, 0.235702260 },
    { 2, 3, 1, 21, { 0, 0, 2 }, { 6, 4, 2 }, 0.267261242, 0.267261242 },
    { 2, 3, 2, 28, { 0, 0, 1 }, { 6, 4, 1 }, -0.188982237, -0.188982237 },
    { 2, 3, 3, 41, { 0, 0, 4 }, { 6, 4, 4 }, -0.109108945, -0.109108945 },
    { 2, 3, 4, 50, { 0, 0, 3 }, { 6, 4, 3 }, 0.048795004, 0.048795004 },
    { 2, 3, 5, 55, { 0, 0, 6 }, { 6, 4, 10 }, 0.014712247, 0.213200716 },
    { 3, 1, 2, 21, { 0, 0, 4 }, { 2, 6, 4 }, 0.267261242, 0.267261242 },
    { 3, 1, 3, 26, { 0, 0, 1 }, { 2, 6, 1 }, -0.133630621, -0.133630621 },
    { 3, 1, 4, 31, { 0, 0, 6 }, { 2, 6, 8 }, -0.044543540, 0.235702260 },
    { 3, 2, 1, 21, { 0, 0, 2 }, { 4, 6, 2 }, 0.267261242, 0.267261242 },
    { 3, 2, 2, 28, { 0, 0, 1 }, { 4, 6, 1 }, 0.188982237, 0.188982237 },
    { 3, 2, 3, 41, { 0, 0, 4 }, { 4, 6, 4 }, -0.109108945, -0.109108945 },
    { 3, 2, 4, 50, { 0, 0, 3 }, { 4, 6, 3 }, -0.048795004, -0.048795004 },
    { 3, 2, 5, 55, { 0, 0, 6 }, { 4, 6, 10 }, 0.014712247, 0.213200716 },
    { 3, 3, 0, 7, { 0, 0, 0 }, { 6, 6, 0 }, 0.377964473, 0.377964473 },
    { 3, 3, 1, 26, { 0, 1, 0 }, { 6, 5, 0 }, -0.133630621, -0.133630621 },
    { 3, 3, 2, 41, { 0, 0, 2 }, { 6, 6, 2 }, -0.243975018, -0.243975018 },
    { 3, 3, 3, 42, { 0, 1, 2 }, { 6, 5, 2 }, -0.154303350, -0.154303350 },
    { 3, 3, 4, 67, { 0, 0, 4 }, { 6, 6, 4 }, 0.080582296, 0.080582296 },
    { 3, 3, 5, 66, { 0, 1, 0 }, { 6, 5, 4 }, -0.150755672, 0.052015649 },
    { 3, 3, 6, 79, { 0, 0, 6 }, { 6, 6, 12 }, -0.009124148, 0.196116135 },
};

static void check_entry(const entry *t)
{
    double w[13 * 7 * 7], first_value = 0.0, last_value = 0.0;
    int count = 0, a[3] = { 0 }, b[3] = { 0 }, ni = 2 * t->i + 1, no = 2 * t->o + 1;

    nn_w3j(w, t->j, t->i, t->o, NN_W3J_E3NN_033);
    for (int k = 0; k < no; k++)
        for (int l = 0; l < ni; l++)
            for (int m = 0; m <= 2 * t->j; m++) {
                double v = w[(m * ni + l) * no + k];
                if (v == 0.0)
                    continue;
                last_value = v;
                b[0] = k, b[1] = l, b[2] = m;
                if (!count++)
                    first_value = v, a[0] = k, a[1] = l, a[2] = m;
            }
    assert_int_equal(count, t->count);
    assert_memory_equal(a, t->at0, sizeof a);
    assert_memory_equal(b, t->at1, sizeof b);
    near("first entry", first_value, t->first, 6e-10);
    near("last entry", last_value, t->last, 6e-10);
}

static void couplings_are_as_tabulated(void **s)
{
    (void)s;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        check_entry(&table[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(couplings_are_as_tabulated),
        cmocka_unit_test(harmonics_of_edge_0_are_as_listed),
        cmocka_unit_test(bases_of_edge_0_are_as_listed),
        cmocka_unit_test(hashed_weights_begin_as_listed),
        cmocka_unit_test(outputs_of_the_full_layout),
        cmocka_unit_test(outputs_of_the_partial_layout),
        cmocka_unit_test(outputs_of_the_pairwise_layout),
        cmocka_unit_test(modules_give_the_listed_sums_of_squares),
        cmocka_unit_test(loss_and_gradient_norms_are_as_listed),
        cmocka_unit_test(position_gradient_is_as_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
