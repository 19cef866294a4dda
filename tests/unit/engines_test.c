/* SPDX-License-Identifier: Apache-2.0 */
/* What the engines ref and cpu refuse, with their messages; how much memory they take; how a set of kernels is chosen. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/cpu/cpu_batch.h"
#include "models/cpu/kernels/kernels.h"
#include "models/cpu/table_cache.h"
#include "models/engine/engine.h"
#include "twin/made_batch.h"

static const nn_se3_conf conf = { 2, 3, 16, 4, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 2, NN_PARITY_BOTH, { 0 }, false };
static const nn_se3_conf small = { 2, 2, 4, 2, 1, true, true, NN_POOL_SUM, NN_FUSE_PARTIAL, 6, 4, 2, NN_PARITY_BOTH, { 0 }, false };
static const made_opts graphs = { 4, 8, 6, 4, 2.0, false, 3 };

typedef struct fixture {
    pl_arena *mem;
    nn_se3 *model;
    made_batch m;
    float *params, *grad, y[8];
} fixture;

static fixture fixture_open(const nn_se3_conf *of)
{
    fixture f = { .mem = pl_arena_new(1 << 20) };

    assert_int_equal(nn_se3_plan(&f.model, of, f.mem, NULL), PL_OK);
    f.m = made_batch_new(&graphs, f.mem);
    f.params = PL_NEW(f.mem, float, f.model->n_floats);
    f.grad = PL_NEW(f.mem, float, f.model->n_floats);
    nn_se3_init(f.model, f.params, 11);
    return f;
}

/* ---- settings that are refused --------------------------------------------------------- */

typedef struct refusal {
    const nn_engine_kind *kind;
    nn_engine_conf conf;
    const char *said; /* NULL: it works */
} refusal;

static const char ref_only[] = "engine ref computes in double with exact radial networks, nothing else";
static const char gpu_only[] = "engine cpu has no precision tf32 or fp16; it has fp32, bf16x3 and bf16";

#define CONF(...)                                        \
    {                                                    \
        .threads = 1, .kernels = "portable", __VA_ARGS__ \
    }

static const refusal refusals[] = {
    { &nn_engine_ref, CONF(.radial = NN_RADIAL_EXACT), NULL },
    { &nn_engine_ref, CONF(.radial = NN_RADIAL_NODES, .width = 0.01), ref_only },
    { &nn_engine_ref, CONF(.radial = NN_RADIAL_EXACT, .of_radial = NN_PREC_BF16X3), ref_only },
    { &nn_engine_ref, CONF(.radial = NN_RADIAL_EXACT, .of_contract = NN_PREC_BF16), ref_only },
    { &nn_engine_ref, CONF(.radial = NN_RADIAL_EXACT, .of_linear = NN_PREC_TF32), ref_only },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_EXACT), NULL },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_NODES, .width = 0.01), NULL },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_EXACT, .of_radial = NN_PREC_BF16X3), NULL },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_EXACT, .of_radial = NN_PREC_BF16), NULL },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_EXACT, .of_radial = NN_PREC_TF32), gpu_only },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_EXACT, .of_radial = NN_PREC_FP16), gpu_only },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_EXACT, .of_contract = NN_PREC_TF32), gpu_only },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_EXACT, .of_contract = NN_PREC_FP16), gpu_only },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_EXACT, .of_linear = NN_PREC_TF32), gpu_only },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_EXACT, .of_linear = NN_PREC_FP16), gpu_only },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_NODES), "engine cpu: radial.width is 0, not above 0" },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_NODES, .width = -1), "engine cpu: radial.width is -1, not above 0" },
    { &nn_engine_cpu, CONF(.radial = NN_RADIAL_NODES, .width = NAN), "engine cpu: radial.width is nan, not above 0" },
};

static void settings_that_an_engine_lacks_are_refused_with_words(void **state)
{
    fixture f = fixture_open(&conf);
    (void)state;

    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        pl_code want = r->said != NULL ? PL_ECONFIG : PL_OK;
        pl_error err[2] = { 0 };
        nn_engine *e = (nn_engine *)(void *)&f;
        assert_int_equal(r->kind->check(&r->conf, &err[0]), want);
        assert_int_equal(r->kind->open(&e, f.model, &r->conf, &err[1]), want);
        for (int k = 0; k < 2; k++)
            assert_string_equal(err[k].text, r->said != NULL ? r->said : "");
        assert_int_equal(e == NULL, want != PL_OK);
        r->kind->close(e);
    }
    nn_engine_ref.close(NULL);
    nn_engine_cpu.close(NULL);
    pl_arena_free(f.mem);
}

/* ---- batches and orders of calls that are refused --------------------------------------- */

static nn_engine *engine_open(const fixture *f, const nn_engine_kind *kind, const nn_engine_conf *c)
{
    nn_engine *e;

    DONE(kind->open(&e, f->model, c, &why));
    DONE(kind->set_params(e, f->params, &why));
    return e;
}

#define SAYS(call, code, said)               \
    do {                                     \
        pl_error err = { 0 };                \
        assert_int_equal(call, code);        \
        assert_string_equal(err.text, said); \
    } while (0)

static void calls_that_do_not_fit_are_refused_with_words(void **state)
{
    static const nn_engine_kind *const kinds[] = { &nn_engine_ref, &nn_engine_cpu };
    static const char *const no_forward[] = { "backward without a forward", "backward without a forward that keeps" };
    static const char *const unfit[] = { "a batch of %d node and %d edge features for a model of 6 and 4",
                                         "a batch has %d node and %d edge features, the model 6 and 4" };
    static const nn_engine_conf exact = CONF(.radial = NN_RADIAL_EXACT);
    fixture f = fixture_open(&conf);
    float dy[8] = { 1, -1, 2, 0.5f };
    (void)state;

    for (int k = 0; k < 2; k++) {
        nn_engine *e = engine_open(&f, kinds[k], &exact);
        SAYS(kinds[k]->backward(e, &f.m.b, dy, f.grad, &err), PL_EBUG, no_forward[k]);
        for (int wrong = 0; wrong < 2; wrong++) {
            nn_batch b = f.m.b;
            char said[100];
            b.n_node_features += wrong == 0;
            b.n_edge_features -= wrong == 1;
            (void)snprintf(said, sizeof said, unfit[k], wrong == 0 ? 7 : 6, wrong == 1 ? 3 : 4);
            assert_int_equal(kinds[k]->forward(e, &f.m.b, true, f.y, NULL), PL_OK);
            SAYS(kinds[k]->forward(e, &b, true, f.y, &err), PL_EBUG, said);
            SAYS(kinds[k]->backward(e, &f.m.b, dy, f.grad, &err), PL_EBUG, no_forward[k]);
        }
        kinds[k]->close(e);
    }
    pl_arena_free(f.mem);
}

static void a_single_layer_is_no_model_for_the_cpu_engine(void **state)
{
    static const nn_engine_conf exact = CONF(.radial = NN_RADIAL_EXACT);
    pl_arena *mem = pl_arena_new(1 << 16);
    const nn_layer_opts o = { .max_degree = 1 };
    nn_se3 *layer;
    nn_engine *e;
    (void)state;

    DONE(nn_se3_plan_conv(&layer, (nn_fiber){ { 4 } }, (nn_fiber){ { 4, 4 } }, &o, mem, &why));
    SAYS(nn_engine_cpu.open(&e, layer, &exact, &err), PL_ECONFIG, "the cpu engine computes whole models, not single layers");
    assert_null(e);
    pl_arena_free(mem);
}

static void a_backward_needs_a_forward_that_keeps(void **state)
{
    static const nn_engine_conf exact = CONF(.radial = NN_RADIAL_EXACT);
    fixture f = fixture_open(&conf);
    nn_engine *e = engine_open(&f, &nn_engine_cpu, &exact);
    float dy[8] = { 1, -1, 2, 0.5f };
    (void)state;

    assert_int_equal(nn_engine_cpu.forward(e, &f.m.b, true, f.y, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.backward(e, &f.m.b, dy, f.grad, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.forward(e, &f.m.b, false, f.y, NULL), PL_OK);
    SAYS(nn_engine_cpu.backward(e, &f.m.b, dy, f.grad, &err), PL_EBUG, "backward without a forward that keeps");
    assert_int_equal(nn_engine_cpu.forward(e, &f.m.b, true, f.y, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.set_params(e, f.params, NULL), PL_OK);
    SAYS(nn_engine_cpu.backward(e, &f.m.b, dy, f.grad, &err), PL_EBUG, "backward without a forward that keeps");
    nn_engine_cpu.close(e);
    pl_arena_free(f.mem);
}

static void pairs_that_leave_an_edge_out_are_refused(void **state)
{
    static const nn_engine_conf exact = CONF(.radial = NN_RADIAL_EXACT);
    fixture f = fixture_open(&conf);
    nn_engine *e = engine_open(&f, &nn_engine_cpu, &exact);
    nn_batch b = f.m.b;
    char said[100];
    (void)state;

    b.n_pairs--;
    (void)snprintf(said, sizeof said, "pairs do not cover the %d edges of a batch once each", (int)b.n_edges);
    SAYS(nn_engine_cpu.forward(e, &b, true, f.y, &err), PL_EBUG, said);
    nn_engine_cpu.close(e);
    pl_arena_free(f.mem);
}

/* Arrays of pairs are used only if all are given; without them each edge is a pair of its own. */
static void arrays_of_pairs_count_only_together(void **state)
{
    static const nn_engine_conf exact = CONF(.radial = NN_RADIAL_EXACT);
    fixture f = fixture_open(&conf);
    nn_engine *e = engine_open(&f, &nn_engine_cpu, &exact);
    float want[8];
    (void)state;

    DONE(nn_engine_cpu.forward(e, &f.m.b, false, want, &why));
    for (int without = 1; without < 8; without++) {
        nn_batch b = f.m.b;
        pl_code code;
        b.pair = (without & 1) != 0 ? NULL : b.pair;
        b.pair_edge = (without & 2) != 0 ? NULL : b.pair_edge;
        b.rev = (without & 4) != 0 ? NULL : b.rev;
        code = nn_engine_cpu.forward(e, &b, false, f.y, NULL);
        assert_int_equal(code, without == 4 ? PL_EBUG : PL_OK); /* 4: pairs of two edges, of which one is not known */
        for (int i = 0; i < 8 && code == PL_OK; i++)
            if (!(fabs((double)f.y[i] - want[i]) <= 1e-4 * (1 + fabs((double)want[i]))))
                fail_msg("without %d, number %d is %.9g, should be %.9g", without, i, (double)f.y[i], (double)want[i]);
    }
    nn_engine_cpu.close(e);
    pl_arena_free(f.mem);
}

/* ---- memory ------------------------------------------------------------------------------ */

/* Bytes after set_params, a forward that does not keep, one that keeps, and a backward. */
typedef struct footprint {
    const nn_se3_conf *model;
    nn_engine_conf conf;
    size_t bytes[4];
} footprint;

static const footprint footprints[] = {
    { &small, CONF(.radial = NN_RADIAL_EXACT), { 872256, 1833792, 1875200, 6069504 } },
    { &small, CONF(.radial = NN_RADIAL_EXACT, .recompute = true), { 628032, 1589568, 1623040, 5817344 } },
    { &small, CONF(.radial = NN_RADIAL_EXACT, .of_radial = NN_PREC_BF16), { 4194304, 5404672, 5446080, 9640384 } },
    { &small, CONF(.radial = NN_RADIAL_EXACT, .of_linear = NN_PREC_BF16X3), { 1012800, 1974336, 2015744, 6210048 } },
    { &small, CONF(.radial = NN_RADIAL_NODES, .width = 0.01), { 1328448, 2916352, 3751808, 4042112 } },
    { &small, CONF(.radial = NN_RADIAL_NODES, .width = 0.01, .recompute = true), { 959808, 2164608, 2992256, 3282560 } },
    { &small, CONF(.radial = NN_RADIAL_NODES, .width = 0.01, .of_contract = NN_PREC_BF16), { 1328448, 2910720, 3746176, 4036480 } },
    { &conf, CONF(.radial = NN_RADIAL_EXACT), { 4194304, 5768960, 5860992, 18443904 } },
    { &conf, CONF(.radial = NN_RADIAL_NODES, .width = 0.01), { 4194304, 7658944, 10911360, 11396352 } },
};

static void footprint_of(const footprint *p, size_t got[4])
{
    fixture f = fixture_open(p->model);
    nn_engine *e = engine_open(&f, &nn_engine_cpu, &p->conf);
    float dy[8] = { 1, -1, 2, 0.5f };

    got[0] = nn_engine_cpu.workspace_bytes(e);
    for (int keep = 0; keep < 2; keep++) {
        DONE(nn_engine_cpu.forward(e, &f.m.b, keep, f.y, &why));
        got[1 + keep] = nn_engine_cpu.workspace_bytes(e);
    }
    DONE(nn_engine_cpu.backward(e, &f.m.b, dy, f.grad, &why));
    got[3] = nn_engine_cpu.workspace_bytes(e);
    nn_engine_cpu.close(e);
    pl_arena_free(f.mem);
}

/* A buffer is rounded up to 64 bytes, and from 2 MiB on to 2 MiB. An intended change of the layout changes these numbers. */
static void the_workspace_of_each_setting_has_the_known_size(void **state)
{
    bool as_known = true;
    (void)state;

    for (size_t i = 0; i < sizeof footprints / sizeof *footprints; i++) {
        const size_t *known = footprints[i].bytes;
        size_t got[4];
        footprint_of(&footprints[i], got);
        if (memcmp(got, known, sizeof got) != 0)
            print_message("%zu: { %zu, %zu, %zu, %zu }\n", i, got[0], got[1], got[2], got[3]);
        as_known = as_known && memcmp(got, known, sizeof got) == 0;
    }
    assert_true(as_known);
}

/* Two doubles for each parameter; features and scratch of the largest batch. */
static void the_oracle_has_the_known_size_too(void **state)
{
    static const nn_engine_conf exact = CONF(.radial = NN_RADIAL_EXACT);
    fixture f = fixture_open(&small);
    nn_engine *e = engine_open(&f, &nn_engine_ref, &exact);
    const size_t params = 16 * f.model->n_floats;
    float dy[8] = { 1, -1, 2, 0.5f };
    nn_batch less = f.m.b;
    size_t got[3];
    (void)state;

    assert_int_equal(nn_engine_ref.workspace_bytes(e), params);
    for (int k = 0; k < 3; k++) {
        less.n_graphs = k == 2 ? 1 : f.m.b.n_graphs;
        DONE(nn_engine_ref.forward(e, &less, true, f.y, &why));
        got[k] = nn_engine_ref.workspace_bytes(e) - params;
        if (k == 1) {
            DONE(nn_engine_ref.backward(e, &less, dy, f.grad, &why));
            got[k] = nn_engine_ref.workspace_bytes(e) - params;
        }
    }
    assert_true(got[0] == 65088 && got[1] == 139936 && got[2] == got[1]); /* the maximum stays */
    nn_engine_ref.close(e);
    pl_arena_free(f.mem);
}

/* A second thread adds only its own scratch memory. */
static void the_workspace_grows_with_threads_by_their_scratch_alone(void **state)
{
    fixture f = fixture_open(&conf);
    size_t bytes[4];
    (void)state;

    for (int threads = 1; threads <= 3; threads++) {
        nn_engine_conf c = CONF(.radial = NN_RADIAL_EXACT);
        nn_engine *e;
        c.threads = threads;
        e = engine_open(&f, &nn_engine_cpu, &c);
        DONE(nn_engine_cpu.forward(e, &f.m.b, true, f.y, &why));
        bytes[threads] = nn_engine_cpu.workspace_bytes(e);
        nn_engine_cpu.close(e);
    }
    assert_true(bytes[2] > bytes[1]);
    assert_int_equal(bytes[3] - bytes[2], bytes[2] - bytes[1]);
    pl_arena_free(f.mem);
}

static void a_buffer_grows_and_refuses_what_overflows(void **state)
{
    nn_buf b = { 0 };
    (void)state;

    assert_true(nn_buf_grow(&b, 0, 4));
    assert_int_equal(b.bytes, 0);
    assert_true(nn_buf_grow(&b, 100, 4)); /* an eighth more, in units of 64 bytes */
    assert_int_equal(b.bytes, 448 + 64);
    memset(b.p, 1, b.bytes);
    assert_true(nn_buf_grow(&b, 128, 4));
    assert_int_equal(((unsigned char *)b.p)[0], 1); /* it fits: the same place */
    assert_false(nn_buf_grow(&b, SIZE_MAX / 4, 4));
    assert_false(nn_buf_grow(&b, SIZE_MAX, 1));
    assert_int_equal(b.bytes, 512);
    assert_true(nn_buf_grow(&b, 129, 4)); /* zeroed */
    assert_int_equal(b.bytes, 640);
    for (int i = 0; i < 640; i++)
        assert_int_equal(((unsigned char *)b.p)[i], 0);
    assert_true(nn_buf_grow(&b, 2 << 20, 1)); /* whole large pages */
    assert_int_equal(b.bytes, 4 << 20);
    assert_int_equal((uintptr_t)b.p % (2 << 20), 0);
    nn_buf_free(&b);
    assert_null(b.p);
    assert_int_equal(b.bytes, 0);
}

/* ---- the cache of tables ------------------------------------------------------------------ */

static void the_cache_of_tables_finds_and_forgets(void **state)
{
    nn_cpu_table_cache k = { .n_scalars = 2, .n_convs = 3, .size = 10 };
    float at[2][2] = { { 1, 2 }, { 1, 3 } };
    (void)state;

    assert_int_equal(nn_cpu_table_cache_bytes(&k), 0);
    assert_int_equal(nn_cpu_table_cache_find(&k, at[0]), 0);
    assert_int_equal(nn_cpu_table_cache_find(&k, at[1]), 1);
    assert_int_equal(nn_cpu_table_cache_find(&k, at[0]), 0);
    assert_int_equal(nn_cpu_table_cache_bytes(&k), 2 * 40);
    memset(k.filled, 1, 6);
    for (int i = 0; i < 10; i++)
        k.table[1][i] = 7;
    nn_cpu_table_cache_forget(&k);
    assert_int_equal(nn_cpu_table_cache_find(&k, at[1]), 0);
    for (int i = 0; i < 3; i++)
        assert_false(k.filled[i]);
    assert_int_equal(nn_cpu_table_cache_find(&k, at[0]), 1);
    for (int i = 0; i < 3; i++)
        assert_false(k.filled[3 + i]);
    nn_cpu_table_cache_free(&k);
    assert_null(k.table);
    assert_int_equal(k.n, 0);
}

static void the_cache_of_tables_is_full_at_its_limit(void **state)
{
    nn_cpu_table_cache many = { .n_scalars = 1, .n_convs = 1, .size = 1 };
    nn_cpu_table_cache large = { .n_scalars = 1, .n_convs = 1, .size = NN_KEEP_BYTES / 4 / 10 };
    (void)state;

    for (int i = 0; i < NN_KEEP_MAX; i++)
        assert_int_equal(nn_cpu_table_cache_find(&many, &(float){ (float)i }), i);
    assert_int_equal(nn_cpu_table_cache_find(&many, &(float){ -1 }), -1);
    assert_int_equal(nn_cpu_table_cache_find(&many, &(float){ 5 }), 5);
    for (int i = 0; i < 10; i++)
        assert_int_equal(nn_cpu_table_cache_find(&large, &(float){ (float)i }), i < 9 || large.max == 10 ? i : -1);
    assert_int_equal(large.max, NN_KEEP_BYTES / (large.size * 4 + 1));
    nn_cpu_table_cache_free(&many);
    nn_cpu_table_cache_free(&large);
}

/* ---- sets of kernels ---------------------------------------------------------------------- */

#if defined(__x86_64__)
static const char *const needs[][2] = { { "amx", "what avx512 needs, amx_tile, amx_bf16 and the system's permission" },
                                        { "avx512", "avx512f, avx512dq, avx512bw, avx512vl" },
                                        { "avx2", "avx2, fma" },
                                        { "portable", "nothing" } };
#else
static const char *const needs[][2] = { { "portable", "nothing" } };
#endif
enum { SETS = sizeof needs / sizeof *needs };

static void the_sets_of_kernels_are_listed_best_first(void **state)
{
    nn_cpu_choice c;
    const char *best = NULL;
    (void)state;

    assert_false(nn_cpu_kernels_list(-1, &c));
    assert_false(nn_cpu_kernels_list(SETS, &c));
    for (int i = 0; i < SETS; i++) {
        assert_true(nn_cpu_kernels_list(i, &c));
        assert_string_equal(c.kernels->name, needs[i][0]);
        assert_string_equal(c.needs, needs[i][1]);
        assert_ptr_equal(nn_cpu_kernels_find(needs[i][0]), c.here ? c.kernels : NULL);
        best = best == NULL && c.here ? needs[i][0] : best;
    }
    assert_true(c.here);
    assert_null(nn_cpu_kernels_find("abacus"));
    assert_string_equal(nn_cpu_kernels_name(), best);
    assert_ptr_equal(nn_cpu_kernels_find(NULL), nn_cpu_kernels_find(best));
    setenv("MOLSIEVE_CPU", "portable", 1);
    assert_string_equal(nn_cpu_kernels_name(), "portable");
    setenv("MOLSIEVE_CPU", "", 1);
    assert_string_equal(nn_cpu_kernels_name(), best);
    setenv("MOLSIEVE_CPU", "abacus", 1);
    assert_string_equal(nn_cpu_kernels_name(), "none");
    unsetenv("MOLSIEVE_CPU");
}

static void a_set_of_kernels_that_cannot_be_had_is_told(void **state)
{
    static const char *const picks[][3] = {
        { "portable", NULL, "" },
        { "portable", "", "" },
        { "portable", "portable", "" },
        { NULL, "portable", "" },
        { NULL, NULL, "" },
        { NULL, "abacus",
          "MOLSIEVE_CPU=abacus is not a set of kernels that this processor supports; `molsieve doctor` lists them" },
        { "portable", "abacus", "kernels: portable, but MOLSIEVE_CPU=abacus forces another set; unset MOLSIEVE_CPU" },
        { "mmx", NULL,
          "kernels: mmx needs another kind of processor, which this processor lacks; `molsieve doctor` lists the sets that run "
          "here" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof picks / sizeof *picks; i++) {
        const nn_cpu_kernels *k;
        if (picks[i][1] != NULL)
            setenv("MOLSIEVE_CPU", picks[i][1], 1);
        SAYS(nn_cpu_kernels_pick(&k, picks[i][0], &err), picks[i][2][0] != '\0' ? PL_ECONFIG : PL_OK, picks[i][2]);
        if (picks[i][2][0] == '\0' && picks[i][0] != NULL)
            assert_string_equal(k->name, "portable");
        unsetenv("MOLSIEVE_CPU");
    }
}

/* For each set that this processor cannot run, the features that it needs. */
static void a_set_that_the_processor_lacks_says_what_it_needs(void **state)
{
    nn_cpu_choice c;
    (void)state;

    for (int i = 0; nn_cpu_kernels_list(i, &c); i++) {
        const nn_cpu_kernels *k;
        char said[250];
        (void)snprintf(said, sizeof said,
                       "kernels: %s needs %s, which this processor lacks; `molsieve doctor` lists the sets that run here",
                       c.kernels->name, c.needs);
        if (!c.here)
            SAYS(nn_cpu_kernels_pick(&k, c.kernels->name, &err), PL_ECONFIG, said);
        else
            SAYS(nn_cpu_kernels_pick(&k, c.kernels->name, &err), PL_OK, "");
    }
}

/* Twelve chains a -> a x + x^2 from x + k, added to x. */
static void the_peak_runs_the_rounds_that_it_counts(void **state)
{
    const double x = 0.5;
    nn_cpu_choice c;
    (void)state;

    for (int i = 0; nn_cpu_kernels_list(i, &c); i++) {
        float sink[NN_LANE];
        double want = x, per_round;
        for (int k = 0; k < 12; k++) {
            double a = x + k;
            for (int n = 0; n < 5; n++)
                a = a * x + x * x;
            want += a;
        }
        for (int k = 0; k < NN_LANE; k++)
            sink[k] = (float)x;
        if (!c.here)
            continue;
        per_round = c.kernels->peak(5, sink) / 5;
        assert_true(per_round == 24 * 4 || per_round == 24 * 8 || per_round == 24 * 16);
        for (int k = 0; k < (int)(per_round / 24); k++)
            if (!(fabs(sink[k] - want) < 1e-5))
                fail_msg("%s: sink %d is %.9g, should be %.9g", c.kernels->name, k, sink[k], want);
    }
}

static void the_machine_is_named_with_its_library(void **state)
{
    char buf[64];
    (void)state;

    assert_ptr_equal(nn_cpu_machine(buf), buf);
#if defined(__x86_64__)
    assert_memory_equal(buf, "x86_64", 6);
    assert_int_equal(strstr(buf, " with fma") != NULL, __builtin_cpu_supports("fma") != 0);
#endif
#if defined(__GLIBC__)
    assert_non_null(strstr(buf, ", glibc 2."));
#endif
}

int main(void)
{
    (void)unsetenv("MOLSIEVE_CPU");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_an_engine_lacks_are_refused_with_words),
        cmocka_unit_test(calls_that_do_not_fit_are_refused_with_words),
        cmocka_unit_test(a_single_layer_is_no_model_for_the_cpu_engine),
        cmocka_unit_test(a_backward_needs_a_forward_that_keeps),
        cmocka_unit_test(pairs_that_leave_an_edge_out_are_refused),
        cmocka_unit_test(arrays_of_pairs_count_only_together),
        cmocka_unit_test(the_workspace_of_each_setting_has_the_known_size),
        cmocka_unit_test(the_oracle_has_the_known_size_too),
        cmocka_unit_test(the_workspace_grows_with_threads_by_their_scratch_alone),
        cmocka_unit_test(a_buffer_grows_and_refuses_what_overflows),
        cmocka_unit_test(the_cache_of_tables_finds_and_forgets),
        cmocka_unit_test(the_cache_of_tables_is_full_at_its_limit),
        cmocka_unit_test(the_sets_of_kernels_are_listed_best_first),
        cmocka_unit_test(a_set_of_kernels_that_cannot_be_had_is_told),
        cmocka_unit_test(a_set_that_the_processor_lacks_says_what_it_needs),
        cmocka_unit_test(the_peak_runs_the_rounds_that_it_counts),
        cmocka_unit_test(the_machine_is_named_with_its_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
