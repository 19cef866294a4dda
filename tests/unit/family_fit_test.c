/* SPDX-License-Identifier: Apache-2.0 */
/* What a member of a family is given to learn from, and what is told of it (st_family_fit), with a kind of member that is made here. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "made_mol.h"
#include "pipeline/base/log.h"
#include "stages/steps/train/train.h"

enum { N = 10, MISSING = 3 };

static pl_arena *mem;
static char given[400], told[600];

static void keep_line(void *ctx, pl_level level, const char *line)
{
    const size_t at = strlen(told);

    (void)ctx;
    (void)snprintf(told + at, sizeof told - at, "%d %s\n", (int)level, line);
}

/* Each molecule as value:column, and its upper limit if there are limits. */
static pl_code listed(nn_member **out, const nn_table *x, const double *y, const nn_fit_conf *conf, pl_arena *to, pl_error *err)
{
    (void)to, (void)err;
    given[0] = '\0';
    for (int32_t i = 0; i < x->n; i++) {
        const size_t at = strlen(given);
        (void)snprintf(given + at, sizeof given - at, conf->high != NULL ? "%g:%g<%g " : "%g:%g ", y[i], (double)x->column[i],
                       conf->high != NULL ? conf->high[i] : 0);
    }
    *out = NULL;
    return PL_OK;
}

static const char *described(const nn_member *m, pl_arena *to)
{
    (void)m, (void)to;
    return "has learned";
}

/* Molecules 0 to N - 1 with the value 0.5 * i, but for one; 10 * i is in their column. */
static st_samples samples(st_dataset *d, bool limits)
{
    static nn_inputs inputs;
    st_samples s = { .d = d, .n = N, .inputs = &inputs };

    inputs = (nn_inputs){ .n_columns = 1 };
    *d = (st_dataset){ .n = N, .n_targets = 1, .value = PL_NEW(mem, double, N), .low = limits ? PL_NEW(mem, double, N) : NULL };
    s.at = PL_NEW(mem, int64_t, N);
    s.item = PL_NEW(mem, const nn_item *, N);
    s.target = PL_NEW(mem, float, N);
    s.high = limits ? PL_NEW(mem, float, N) : NULL;
    for (int i = 0; i < N; i++) {
        const ch_graph_opts opts = { .edges = CH_EDGES_TOPOLOGY };
        const ch_mol mol = made_mol(4 + i, 12, (uint64_t)i, mem);
        ch_graph *graph = PL_NEW(mem, ch_graph, 1);
        nn_item *item = PL_NEW(mem, nn_item, 1);
        float *column = PL_NEW(mem, float, 1);
        assert_int_equal(ch_graph_build(graph, &mol, &opts, mem, NULL), PL_OK);
        *column = (float)(10 * i);
        *item = (nn_item){ .graph = graph, .column = column };
        s.item[i] = item;
        s.at[i] = i;
        d->value[i] = i == MISSING ? NAN : 1;
        s.target[i] = 0.5F * (float)i;
        if (limits) {
            d->low[i] = i == MISSING ? 0 : NAN;
            s.high[i] = s.target[i] + (i == MISSING ? 1 : 0);
        }
    }
    return s;
}

static void fitted(int32_t most, bool weighs, bool limits, bool has_limits)
{
    const nn_member_kind kind = {
        .name = "list", .averaged = true, .weighs = weighs, .limits = limits, .most = most, .fit = listed, .describe = described
    };
    const st_family family = { .n = 1, .kind = { &kind } };
    const st_train_conf conf = { .compute = st_compute_defaults() };
    const st_class_weight weight = { { 1, 2 } };
    nn_target target = { .name = "y" };
    nn_model_file m = { .name = "m", .target = &target };
    pl_step step = { .conf = (void *)(uintptr_t)&conf };
    const pl_env env = { .step = &step, .mem = mem };
    st_dataset d;
    const st_samples s = samples(&d, has_limits);
    pl_error err = { 0 };

    told[0] = '\0';
    pl_log_to(keep_line, NULL, PL_WARN);
    if (st_family_fit(&m, &family, &env, &s, &weight, 0, &err) != PL_OK)
        fail_msg("%s", err.text);
    pl_log_to(NULL, NULL, PL_ERROR);
    assert_int_equal(m.members.n, 1);
}

#define TOLD(text) "1 train     list learns y " text "\n"

static void of_too_many_molecules_an_even_selection_is_learned(void **state)
{
    (void)state;
    fitted(4, true, false, false);
    assert_string_equal(given, "0:0 1:20 2.5:50 3.5:70 ");
    assert_string_equal(told, TOLD("from 4 of 9 molecules, an even selection: it takes no more"));
    for (int most = 0; most < N; most += N - 1) { /* any number, or as many as there are */
        fitted(most, true, false, false);
        assert_string_equal(given, "0:0 0.5:10 1:20 2:40 2.5:50 3:60 3.5:70 4:80 4.5:90 ");
        assert_string_equal(told, "");
    }
}

static void limits_and_weights_reach_who_can_use_them(void **state)
{
    (void)state;
    fitted(0, true, true, true);
    assert_string_equal(given, "0:0<0 0.5:10<0.5 1:20<1 1.5:30<2.5 2:40<2 2.5:50<2.5 3:60<3 3.5:70<3.5 4:80<4 4.5:90<4.5 ");
    assert_string_equal(told, "");
    fitted(0, false, false, true);
    assert_string_equal(given, "0:0 0.5:10 1:20 2:40 2.5:50 3:60 3.5:70 4:80 4.5:90 ");
    assert_string_equal(told, TOLD("without class weights: it has no use for them")
                                  TOLD("from measured values alone: it has no use for limits"));
}

static int make(void **state)
{
    (void)state;
    return (mem = pl_arena_new(1 << 16)) == NULL;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_too_many_molecules_an_even_selection_is_learned, make, drop),
        cmocka_unit_test_setup_teardown(limits_and_weights_reach_who_can_use_them, make, drop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
