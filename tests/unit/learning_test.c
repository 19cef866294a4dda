/* SPDX-License-Identifier: Apache-2.0 */
/* The line of progress of a training, word for word, and the rows of an epoch (st_learning_step, st_learning_epoch). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/run/progress.h"
#include "pipeline/store/store.h"
#include "stages/steps/train/learning.h"

enum { N_TRAIN = 40 };

static struct {
    int64_t done, total;
    char note[640];
} line;

/* What the linker puts in its place (tests/stages.cmake). */
#define WRAPPED(name) __wrap_##name

void WRAPPED(pl_progress_set)(pl_progress *p, int64_t done, int64_t total, const char *note);
void WRAPPED(pl_progress_set)(pl_progress *p, int64_t done, int64_t total, const char *note)
{
    (void)p;
    line.done = done;
    line.total = total;
    (void)snprintf(line.note, sizeof line.note, "%s", note);
}

/* Rows of `metric`, and how the transaction ended. */
static struct {
    int n, refused; /* the row that fails, from 1; 0: none */
    bool open, kept, undone, locked;
    char text[1200];
} rows;

pl_code WRAPPED(pl_db_begin)(sqlite3 *db, pl_error *err);
pl_code WRAPPED(pl_db_begin)(sqlite3 *db, pl_error *err)
{
    (void)db;
    rows.open = !rows.locked;
    return rows.open ? PL_OK : pl_fail(err, PL_EIO, "locked");
}

pl_code WRAPPED(pl_db_commit)(sqlite3 *db, pl_error *err);
pl_code WRAPPED(pl_db_commit)(sqlite3 *db, pl_error *err)
{
    (void)db, (void)err;
    rows.kept = rows.open;
    return PL_OK;
}

void WRAPPED(pl_db_rollback)(sqlite3 *db);
void WRAPPED(pl_db_rollback)(sqlite3 *db)
{
    (void)db;
    rows.undone = true;
}

pl_code WRAPPED(pl_metric_add)(pl_env *env, int64_t step, double epoch, const char *split, const char *name, double value,
                               pl_error *err);
pl_code WRAPPED(pl_metric_add)(pl_env *env, int64_t step, double epoch, const char *split, const char *name, double value,
                               pl_error *err)
{
    const size_t at = strlen(rows.text);

    (void)env;
    if (++rows.n == rows.refused)
        return pl_fail(err, PL_EIO, "row %d", rows.n);
    (void)snprintf(rows.text + at, sizeof rows.text - at, "%lld %g %s %s %g\n", (long long)step, epoch, split, name, value);
    return PL_OK;
}

/* The third of five epochs, at its 11th molecule, of one target in eV. */
typedef struct training {
    pl_env env;
    st_train_conf conf;
    nn_train_conf loop;
    nn_target target[2];
    nn_model_file m;
    nn_train_state s;
    st_learning l;
} training;

static training *usual(void)
{
    static training t;

    t = (training){ .conf = { .members = 1, .targets.n = 1 },
                    .loop = { .epochs = 5 },
                    .target = { { .name = "gap", .unit = "eV" }, { .name = "homo", .unit = "" } },
                    .s = { .epoch = 2, .cursor = 10, .seen = { .n = 4, .loss = 2 } } };
    t.m.target = t.target;
    t.l = (st_learning){ .env = &t.env, .conf = &t.conf, .loop = &t.loop, .m = &t.m, .valid_error = 0.25 };
    return &t;
}

static void says(const training *t, int64_t done, int64_t total, const char *note)
{
    memset(&line, 0, sizeof line);
    st_learning_step(&t->l, &t->s, N_TRAIN);
    assert_string_equal(line.note, note);
    assert_int_equal(line.done, done);
    assert_int_equal(line.total, total);
}

static void the_error_of_one_target_has_its_unit(void **state)
{
    training *t = usual();

    (void)state;
    says(t, 90, 200, "epoch 3/5 loss 0.5000 valid MAE 0.25 eV");
    t->target[0].unit = "";
    says(t, 90, 200, "epoch 3/5 loss 0.5000 valid MAE 0.25");
    t->l.valid_error = NAN;
    says(t, 90, 200, "epoch 3/5 loss 0.5000");
    t->s.seen.n = 0;
    says(t, 90, 200, "epoch 3/5 loss nan");
}

static void a_loss_of_several_targets_or_of_classes_has_no_unit(void **state)
{
    training *t = usual();

    (void)state;
    t->conf.targets.n = 2;
    says(t, 90, 200, "epoch 3/5 loss 0.5000 valid loss 0.25");
    t->conf.targets.n = 1;
    t->m.classifies = true;
    says(t, 90, 200, "epoch 3/5 loss 0.5000 valid log loss 0.25");
}

static void noise_is_said_beside_the_loss_or_alone(void **state)
{
    training *t = usual();

    (void)state;
    t->s.noise = (nn_noise_sum){ .n = 5, .square = 1 };
    says(t, 90, 200, "epoch 3/5 loss 0.5000 noise 0.2000 valid MAE 0.25 eV");
    t->m.denoises = true;
    t->l.valid_error = NAN;
    says(t, 90, 200, "epoch 3/5 noise 0.2000");
}

static void members_are_counted_in_the_line_and_in_what_is_left(void **state)
{
    training *t = usual();

    (void)state;
    t->conf.members = 3;
    t->l.member = 1;
    says(t, 290, 600, "member 2/3 epoch 3/5 loss 0.5000 valid MAE 0.25 eV");
}

static void a_budget_decides_the_epochs_in_the_first(void **state)
{
    training *t = usual();

    (void)state;
    t->loop.budget = 7200;
    t->s.epoch = 0;
    says(t, 10, -1, "epoch 1, then as many as fit into 2h00m, loss 0.5000 valid MAE 0.25 eV");
    t->s.epoch = 1;
    t->s.planned = 4;
    says(t, 50, 160, "epoch 2/4 loss 0.5000 valid MAE 0.25 eV");
}

static void later_members_have_their_number_in_a_metric(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 12);

    (void)state;
    assert_string_equal(st_learning_metric("loss", 0, mem), "loss");
    assert_string_equal(st_learning_metric("loss", 1, mem), "member2.loss");
    pl_arena_free(mem);
}

/* ---- the rows of an epoch ---- */

static const nn_epoch_report report = { .epoch = 3,
                                        .step = 70,
                                        .train = { .loss = 8, .abs = 4, .square = 16, .n = 4 },
                                        .valid = { .loss = 3, .abs = 1, .square = 18, .n = 2 },
                                        .test = { .loss = 5, .abs = 10, .square = 45, .n = 5 },
                                        .lr = 0.001 };
static const char usual_rows[] = "70 3 train loss 2\n70 3 train mae 0.5\n70 3 train rmse 1\n"
                                 "70 3 valid loss 1.5\n70 3 valid mae 0.25\n70 3 valid rmse 1.5\n"
                                 "70 3 test loss 1\n70 3 test mae 1\n70 3 test rmse 1.5\n70 3 train lr 0.001\n";

/* refused: the row that fails, or 0. */
static pl_code stores(training *t, const nn_epoch_report *r, int refused, pl_error *err)
{
    static pl_store store;

    memset(&rows, 0, sizeof rows);
    rows.refused = refused;
    t->env.store = &store;
    t->env.mem = pl_arena_new(1 << 12);
    t->target[0].scale.stdev = 0.5;
    const pl_code code = st_learning_epoch(&t->l, r, err);
    pl_arena_free(t->env.mem);
    return code;
}

static void stores_rows(training *t, const nn_epoch_report *r, const char *want)
{
    assert_int_equal(stores(t, r, 0, NULL), PL_OK);
    assert_string_equal(rows.text, want);
    assert_true(rows.kept && !rows.undone);
}

static void an_epoch_has_its_losses_and_errors_in_rows(void **state)
{
    training *t = usual();
    nn_epoch_report r = report;

    (void)state;
    stores_rows(t, &r, usual_rows);
    assert_true(t->l.valid_error == 0.25);
    t->l.limits = true; /* errors of the part that learns are not of measured values alone */
    r.valid = r.test = (nn_loss_sum){ 0 };
    r.noise = (nn_noise_sum){ .n = 4, .square = 2 };
    stores_rows(t, &r, "70 3 train loss 2\n70 3 train noise_loss 0.5\n70 3 train lr 0.001\n");
    assert_true(isnan(t->l.valid_error));
}

static void an_epoch_of_classes_or_of_several_targets_has_no_unit(void **state)
{
    training *t = usual();
    nn_epoch_report r = report;

    (void)state;
    t->conf.targets.n = 2;
    r.test = (nn_loss_sum){ 0 };
    stores_rows(t, &r, "70 3 train loss 2\n70 3 valid loss 1.5\n70 3 train lr 0.001\n");
    assert_true(t->l.valid_error == 1.5);
    t->conf.targets.n = 0;
    t->m.classifies = true;
    t->l.member = 1;
    stores_rows(t, &r,
                "70 3 train member2.loss 2\n70 3 train member2.brier 4\n70 3 valid member2.loss 1.5\n"
                "70 3 valid member2.brier 9\n70 3 train member2.lr 0.001\n");
    assert_true(t->l.valid_error == 1.5);
}

/* Whichever row is refused: the transaction is undone, and the error before this epoch is still the last. */
static void an_epoch_without_one_of_its_rows_has_none(void **state)
{
    enum { ROWS = 11 };
    nn_epoch_report r = report;

    (void)state;
    r.noise = (nn_noise_sum){ .n = 4, .square = 2 };
    for (int k = 1; k <= ROWS; k++) {
        training *t = usual();
        pl_error err = { 0 };
        t->l.valid_error = 7;
        assert_int_equal(stores(t, &r, k, &err), PL_EIO);
        assert_true(rows.undone && !rows.kept && rows.n == k);
        assert_non_null(strstr(err.text, "row "));
        assert_true(t->l.valid_error == 7);
    }
    assert_int_equal(stores(usual(), &r, ROWS + 1, NULL), PL_OK);
    assert_int_equal(rows.n, ROWS);
}

static void a_locked_database_gets_no_row(void **state)
{
    static pl_store store;
    training *t = usual();
    pl_error err = { 0 };

    (void)state;
    memset(&rows, 0, sizeof rows);
    rows.locked = true;
    t->env.store = &store;
    assert_int_equal(st_learning_epoch(&t->l, &report, &err), PL_EIO);
    assert_string_equal(err.text, "locked");
    assert_true(rows.n == 0 && !rows.kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_of_one_target_has_its_unit),
        cmocka_unit_test(a_loss_of_several_targets_or_of_classes_has_no_unit),
        cmocka_unit_test(noise_is_said_beside_the_loss_or_alone),
        cmocka_unit_test(members_are_counted_in_the_line_and_in_what_is_left),
        cmocka_unit_test(a_budget_decides_the_epochs_in_the_first),
        cmocka_unit_test(later_members_have_their_number_in_a_metric),
        cmocka_unit_test(an_epoch_has_its_losses_and_errors_in_rows),
        cmocka_unit_test(an_epoch_of_classes_or_of_several_targets_has_no_unit),
        cmocka_unit_test(an_epoch_without_one_of_its_rows_has_none),
        cmocka_unit_test(a_locked_database_gets_no_row),
    };
    return cmocka_run_group_tests_name("learning", tests, NULL, NULL);
}
