/* SPDX-License-Identifier: Apache-2.0
 * Every arena request of a call is refused in turn: the call says so, and a later
 * one with memory works. Leaks show under the san preset. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/files/model_file.h"
#include "models/metrics/metric.h"
#include "models/training/checkpoint.h"

typedef struct bench {
    pl_arena *mem;
    nn_model_file m;
    nn_target target;
    nn_train_state s;
    char dir[64], path[96];
} bench;

static int bench_open(void **state)
{
    bench *b = calloc(1, sizeof *b);
    nn_se3 *model;

    if (b == NULL || (b->mem = pl_arena_new(0)) == NULL)
        return 1;
    strcpy(b->dir, "/tmp/molsieve-oom-XXXXXX");
    if (mkdtemp(b->dir) == NULL)
        return 1;
    snprintf(b->path, sizeof b->path, "%s/m", b->dir);
    b->m = (nn_model_file){ .name = "m", .target = &b->target, .provenance = "{}", .bf16 = true };
    b->m.inputs = nn_inputs_qm9();
    b->m.graph.edges = CH_EDGES_BONDS;
    b->target = (nn_target){ .name = "t", .unit = "", .better = "none", .scale.stdev = 1 };
    b->m.conf =
        (nn_se3_conf){ .layers = 1, .degrees = 2, .channels = 4, .heads = 2, .channels_div = 2, .norm = true, .outputs = 1 };
    b->m.conf.node_features = nn_inputs_node_features(&b->m.inputs);
    b->m.conf.edge_features = nn_inputs_edge_features(&b->m.inputs);
    if (nn_se3_plan(&model, &b->m.conf, b->mem, NULL) != PL_OK ||
        nn_train_state_alloc(&b->s, model, true, 1, b->mem, NULL) != PL_OK)
        return 1;
    b->m.model = model;
    b->m.params = b->s.params;
    *state = b;
    return 0;
}

static int bench_close(void **state)
{
    static const char *const name[] = { "m", "latest.ckpt", "previous.ckpt" };
    bench *b = *state;

    for (int k = 0; k < 3; k++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", b->dir, name[k]);
        (void)unlink(path);
    }
    (void)rmdir(b->dir);
    pl_arena_free(b->mem);
    free(b);
    return 0;
}

typedef pl_code call(bench *b, pl_arena *mem, pl_error *err);

static pl_code model_write(bench *b, pl_arena *mem, pl_error *err)
{
    (void)mem;
    return nn_model_write(&b->m, b->path, err);
}

static pl_code model_read(bench *b, pl_arena *mem, pl_error *err)
{
    nn_model_file *m;

    return nn_model_read(&m, b->path, mem, err);
}

static pl_code checkpoint_save(bench *b, pl_arena *mem, pl_error *err)
{
    (void)mem;
    return nn_checkpoint_save(b->dir, "x", &b->s, true, err);
}

static pl_code checkpoint_load(bench *b, pl_arena *mem, pl_error *err)
{
    nn_checkpoint_from from;
    pl_error why;

    (void)mem;
    return nn_checkpoint_load(b->dir, "x", &b->s, &from, &why, err);
}

static pl_code state_alloc(bench *b, pl_arena *mem, pl_error *err)
{
    nn_train_state s;
    pl_code code = nn_train_state_alloc(&s, b->m.model, true, 1, mem, err);

    return code != PL_OK ? code : nn_train_state_bases(&s, NN_SOAP, mem, err);
}

static pl_code metrics(bench *b, pl_arena *mem, pl_error *err)
{
    const double y[] = { 1, 2, 4 }, x[] = { 1, 2, 3 }, classes[] = { 0, 1, 1 };
    double coef[2];
    nn_fit f;
    pl_code code = nn_metric_fit(&f, y, x, 3, mem, err);

    (void)b;
    if (code == PL_OK)
        code = nn_metric_class(&f, classes, x, 3, false, mem, err);
    return code != PL_OK ? code : nn_metric_linear(coef, x, y, 3, 1, mem, err);
}

static void refused_in_turn(bench *b, call *what, const char *name)
{
    pl_code code = PL_ENOMEM;
    long n = 0;

    while (code == PL_ENOMEM && n < 500) {
        pl_arena *mem = pl_arena_new(0);
        pl_error err = { 0 };
        pl_arena_refuse(++n);
        code = what(b, mem, &err);
        if (code == PL_OK)
            assert_null(pl_arena_get(mem, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        if (code != PL_OK && (code != PL_ENOMEM || !err.text[0]))
            fail_msg("%s, request %ld refused: code %d %s", name, n, (int)code, err.text);
        pl_arena_free(mem);
    }
    assert_int_equal(code, PL_OK);
    assert_true(n > 1);
}

static void every_refused_request_is_reported(void **state)
{
    bench *b = *state;

    refused_in_turn(b, model_write, "model_write");
    refused_in_turn(b, model_read, "model_read");
    refused_in_turn(b, checkpoint_save, "checkpoint_save");
    refused_in_turn(b, checkpoint_load, "checkpoint_load");
    refused_in_turn(b, state_alloc, "state_alloc");
    refused_in_turn(b, metrics, "metrics");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_refused_request_is_reported, bench_open, bench_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
