/* SPDX-License-Identifier: Apache-2.0 */
/* What a training is given besides its molecules: a second engine for held-out molecules, which lets the steps go first, and how long
 * it waits for other ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/training/train.h"
#include "pipeline/run/run.h"
#include "small_table.h"
#include "stages/database/schema.h"
#include "stages/registry/registry.h"
#include "stages/steps/train/compute.h"

/* What the linker puts in its place (tests/stages.cmake): the engine of the training, and the training itself. */
#define REAL(name) __real_##name
#define WRAPPED(name) __wrap_##name

static struct {
    int trainings, beside;
    double patience;
    nn_engine_conf conf[2]; /* of the engines, in the order in which they are opened */
    int engines;
} seen;

static pl_code open_and_see(nn_engine **out, const nn_se3 *model, const nn_engine_conf *conf, pl_error *err)
{
    assert_true(seen.engines < 2);
    seen.conf[seen.engines++] = *conf;
    return nn_engine_cpu.open(out, model, conf, err);
}

const nn_engine_kind *WRAPPED(st_compute_engine)(const st_compute *c);
const nn_engine_kind *WRAPPED(st_compute_engine)(const st_compute *c)
{
    static nn_engine_kind kind;

    (void)c;
    kind = nn_engine_cpu;
    kind.open = open_and_see;
    return &kind;
}

pl_code REAL(nn_train)(nn_train_state *s, const nn_train_conf *conf, const nn_engine_kind *kind, nn_engine *engine,
                       const nn_samples *train, const nn_samples *valid, const nn_train_host *host, pl_error *err);
pl_code WRAPPED(nn_train)(nn_train_state *s, const nn_train_conf *conf, const nn_engine_kind *kind, nn_engine *engine,
                          const nn_samples *train, const nn_samples *valid, const nn_train_host *host, pl_error *err);
pl_code WRAPPED(nn_train)(nn_train_state *s, const nn_train_conf *conf, const nn_engine_kind *kind, nn_engine *engine,
                          const nn_samples *train, const nn_samples *valid, const nn_train_host *host, pl_error *err)
{
    seen.trainings++;
    seen.patience = host->ranks->patience;
    if (host->beside != NULL) {
        seen.beside++;
        kind->close(host->beside(host->ctx, err));
    }
    return REAL(nn_train)(s, conf, kind, engine, train, valid, host, err);
}

/* ---- the runs ---- */

static const char flow[] =
    "format: 1\nworkdir: run\ninputs: [{path: in.csv}]\nlimits: {disk_free_min: 0B}\nstages:\n  read: {}\n"
    "  prepare: {labels: [y]}\n  graph: {edges: bonds}\n  split: {fractions: {%s}}\n"
    "  train: {targets: [{name: y}], family: [se3], model: {layers: 1, degrees: 1, channels: 4, heads: 2}, epochs: 1%s}\n";

/* Trains again, on the molecules of the run before. */
static void trained(const char *fractions, const char *more)
{
    const pl_run_opts opts = { .workers = 1, .quiet = true, .command = "run", .known = st_stages };
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_problems problems = { .mem = mem };
    pl_workflow *wf;
    pl_error err = { 0 };

    memset(&seen, 0, sizeof seen);
    write_text("flow.yaml", pl_sprintf(mem, flow, fractions, more));
    wf = pl_workflow_load("flow.yaml", NULL, 0, st_stages, &problems, mem);
    if (wf == NULL || problems.n > 0)
        fail_msg("%s", problems.n > 0 ? problems.list[0].text : "no workflow");
    if (pl_run(wf, &st_schema, &opts, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(seen.trainings, 1);
    pl_arena_free(mem);
}

static void held_out_molecules_have_an_engine_that_yields(void **state)
{
    static const char usual[] = "train: 0.6, valid: 0.2, test: 0.2";
    static const struct {
        const char *fractions, *more;
        int engines; /* besides that of the steps */
    } cases[] = { { usual, "", 1 },
                  { "train: 0.8, valid: 0.2, test: 0", "", 1 },
                  { "train: 0.8, valid: 0, test: 0.2", "", 1 },
                  { usual, ", evaluate_beside: false", 0 },
                  { "train: 1, valid: 0, test: 0", "", 0 } };
    toy_folder folder;

    (void)state;
    toy_enter(&folder);
    small_table_write("in.csv", "");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        trained(cases[k].fractions, cases[k].more);
        assert_int_equal(seen.beside, cases[k].engines);
        assert_int_equal(seen.engines, 1 + cases[k].engines);
        assert_false(seen.conf[0].yields);
        assert_int_equal(seen.conf[1].yields, cases[k].engines == 1);
        assert_int_equal(seen.conf[1].threads, cases[k].engines * seen.conf[0].threads);
    }
    toy_leave(&folder);
}

/* Ranks may join late, as reading takes its time; a step is as long on all of them. */
static void a_training_waits_as_long_as_it_is_told(void **state)
{
    toy_folder folder;

    (void)state;
    toy_enter(&folder);
    small_table_write("in.csv", "");
    trained("train: 0.6, valid: 0.2, test: 0.2", ", rank_timeout: 7s");
    assert_true(seen.patience == 7);
    toy_leave(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_out_molecules_have_an_engine_that_yields),
        cmocka_unit_test(a_training_waits_as_long_as_it_is_told),
    };

    return cmocka_run_group_tests_name("held out", tests, NULL, NULL);
}
