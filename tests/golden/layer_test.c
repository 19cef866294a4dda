/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/golden.h"
#include "models/ref/ref.h"

static const double EXACT = 1e-11, SINGLE_OUT = 5e-6, SINGLE_GRAD = 2e-5;

/* ---- the metadata of a case ---------------------------------------------- */

/* "{0: 6, 1: 4}" */
static nn_fiber fiber_of(const nn_tensors *f, const char *key)
{
    const char *s = nn_tensors_meta(f, key);
    nn_fiber out = { { 0 } };

    for (s = s ? strchr(s, '{') : NULL; s; s = strchr(s + 1, ',')) {
        char *end;
        long d = strtol(s + 1, &end, 10);
        if (end > s + 1 && d >= 0 && d < NN_DEGREES && *end == ':')
            out.ch[d] = (int32_t)strtol(end + 1, NULL, 10);
    }
    return out;
}

static nn_fiber degree_fiber(int d, int channels)
{
    nn_fiber f = { { 0 } };

    f.ch[d] = channels;
    return f;
}

static bool meta_is(const nn_tensors *f, const char *key, const char *part)
{
    const char *s = nn_tensors_meta(f, key);

    return s && strstr(s, part);
}

static int32_t meta_int(const nn_tensors *f, const char *key)
{
    const char *s = nn_tensors_meta(f, key);

    return s ? (int32_t)strtol(s, NULL, 10) : 0;
}

static int32_t rows_of(const nn_tensors *f, const char *prefix, nn_fiber fiber)
{
    char name[64];

    for (int d = 0; d < NN_DEGREES; d++) {
        snprintf(name, sizeof name, "%s.%d", prefix, d);
        const nn_tensor *t = fiber.ch[d] ? nn_tensors_find(f, name) : NULL;
        if (t)
            return (int32_t)t->dims[0];
    }
    fail_msg("no tensor %s", prefix);
    return 0;
}

static int32_t node_count(const nn_tensors *f, nn_fiber in) { return rows_of(f, "in.node", in); }
static int32_t item_count(const nn_tensors *f, nn_fiber out) { return rows_of(f, "in.proj", out); }

static nn_se3 *layer_plan(const nn_tensors *f, const char *kind, pl_arena *mem)
{
    nn_fiber in = fiber_of(f, "fiber_in"), out = fiber_of(f, "fiber_out");
    nn_layer_opts o = {
        .wanted = meta_is(f, "fuse_level", "FULL") ? NN_FUSE_FULL
                : meta_is(f, "fuse_level", "PARTIAL") ? NN_FUSE_PARTIAL : NN_FUSE_NONE,
        .layer_norm = meta_is(f, "options", "\"use_layer_norm\": true") || meta_is(f, "use_layer_norm", "True"),
        .pool = meta_is(f, "options", "\"pool\": true"),
        .self_interaction = meta_is(f, "options", "\"self_interaction\": true"),
        .max_degree = meta_int(f, "max_degree"),
        .edge = fiber_of(f, "fiber_edge"),
        .heads = meta_int(f, "num_heads"),
        .channels_div = meta_int(f, "channels_div"),
    };
    nn_se3 *m = NULL;
    pl_error err = { 0 };
    pl_code rc = !strcmp(kind, "conv") ? nn_se3_plan_conv(&m, in, out, &o, mem, &err)
               : !strcmp(kind, "attention") ? nn_se3_plan_attention(&m, in, out, &o, mem, &err)
               : nn_se3_plan_norm(&m, in, mem, &err);

    if (rc)
        fail_msg("%s", err.text);
    return m;
}

/* Difference of positions in double, or the stored float32 one. */
static double (*layer_vec(const nn_tensors *f, const nn_ref_edges *e, bool wide, pl_arena *mem))[3]
{
    const double *pos = golden_get(f, NULL, mem, "in.pos"), *rel = golden_get(f, NULL, mem, "in.rel_pos32");
    double (*vec)[3] = (double (*)[3])PL_NEW(mem, double, 3 * e->n_edges + 1);

    for (int32_t k = 0; k < 3 * e->n_edges; k++) {
        int32_t s = e->src[k / 3], d = e->dst[k / 3];
        vec[k / 3][k % 3] = wide ? pos[3 * d + k % 3] - pos[3 * s + k % 3] : rel[k];
    }
    return vec;
}

static nn_ref_edges layer_edges(const nn_tensors *f, bool wide, pl_arena *mem)
{
    nn_ref_edges in = { .fiber = fiber_of(f, "fiber_edge") };
    size_t n;

    in.n_scalars = in.fiber.ch[0];
    in.n_nodes = node_count(f, fiber_of(f, "fiber_in"));
    if (!golden_has(f, "in.src"))
        return in;
    in.src = golden_ints(f, &n, mem, "in.src");
    in.dst = golden_ints(f, &n, mem, "in.dst");
    in.n_edges = (int32_t)n;
    in.scalar = golden_get(f, NULL, mem, "in.edge.0");
    for (int d = 1; d < NN_DEGREES; d++)
        if (in.fiber.ch[d])
            in.feature[d] = golden_get(f, NULL, mem, "in.edge.%d", d);
    in.vec = (const double (*)[3])layer_vec(f, &in, wide, mem);
    return in;
}

/* ---- the same cases in double and in float ------------------------------- */

#define real double
#define REF(x) nn_ref_##x
#include "golden/layer_case.inc"
#undef real
#undef REF

#define real float
#define REF(x) nn_reff_##x
#include "golden/layer_case.inc"
#undef real
#undef REF

static void both(const char *name, const char *kind)
{
    nn_ref_layer_case(name, kind, EXACT, EXACT);
    nn_reff_layer_case(name, kind, SINGLE_OUT, SINGLE_GRAD);
}

static void pairwise_convolution_agrees(void **s) { (void)s, both("b2_conv_none", "conv"); }
static void convolution_by_output_degree_agrees(void **s) { (void)s, both("b2_conv_out", "conv"); }
static void convolution_by_input_degree_agrees(void **s) { (void)s, both("b2_conv_in", "conv"); }
static void fully_fused_convolution_agrees(void **s) { (void)s, both("b2_conv_full", "conv"); }
static void attention_agrees(void **s) { (void)s, both("b3_attn_full", "attention"); }
static void attention_on_scalars_alone_agrees(void **s) { (void)s, both("b3_attn_first", "attention"); }
static void grouped_norm_agrees(void **s) { (void)s, both("b3_norm_group", "norm"); }

static void linear_layer_agrees(void **s)
{
    (void)s;
    nn_ref_linear_case(EXACT);
    nn_reff_linear_case(SINGLE_OUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_layer_agrees),
        cmocka_unit_test(grouped_norm_agrees),
        cmocka_unit_test(pairwise_convolution_agrees),
        cmocka_unit_test(convolution_by_output_degree_agrees),
        cmocka_unit_test(convolution_by_input_degree_agrees),
        cmocka_unit_test(fully_fused_convolution_agrees),
        cmocka_unit_test(attention_agrees),
        cmocka_unit_test(attention_on_scalars_alone_agrees),
    };

    golden_folder();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
