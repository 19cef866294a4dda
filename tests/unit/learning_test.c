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
#include "stages/steps/train/train.h"

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

static struct {
    pl_level level;
    char text[300];
} event;

void WRAPPED(pl_event_add)(pl_env *env, pl_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void WRAPPED(pl_event_add)(pl_env *env, pl_level level, const char *fmt, ...)
{
    va_list args;

    (void)env;
    event.level = level;
    va_start(args, fmt);
    (void)vsnprintf(event.text, sizeof event.text, fmt, args);
    va_end(args);
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

/* ---- a time in place of a number of epochs (train_budget.c) ---- */

static void tells(const nn_budget *b, int64_t epochs, pl_level level, const char *text, const char *metric)
{
    pl_env env = { 0 };

    memset(&rows, 0, sizeof rows);
    assert_int_equal(st_budget_tell(&env, b, epochs, NULL), PL_OK);
    assert_int_equal(event.level, level);
    assert_string_equal(event.text, text);
    assert_string_equal(rows.text, metric);
}

/* An epoch of 30 steps of 2 s and 15 s of evaluation; two epochs are over. */
static void a_budget_says_how_many_epochs_fit(void **state)
{
    nn_budget b = { .seconds = 600, .step = 2, .steps = 30, .evaluation = 15, .over = 2, .most = 7 };

    (void)state;
    tells(&b, 6, PL_INFO, "budget: an epoch takes 1m15s, so 6 epochs for 10m00s", "0 2 train planned_epochs 6\n");
    tells(&b, 7, PL_INFO, "budget: an epoch takes 1m15s, so 7 epochs (as `epochs` says) for 10m00s",
          "0 2 train planned_epochs 7\n");
    tells(&b, 3, PL_INFO, "budget: an epoch takes 1m15s, so 3 epochs for 10m00s", "0 2 train planned_epochs 3\n");
    tells(&b, 2, PL_WARN,
          "budget: an epoch takes 1m15s, so 2 epochs for 10m00s; no time is left, and the learning rate did not fall: give more",
          "0 2 train planned_epochs 2\n");
    b.over = 1;
    tells(&b, 1, PL_WARN,
          "budget: an epoch takes 1m15s, so 1 epoch for 10m00s; no time is left, and the learning rate did not fall: give more",
          "0 1 train planned_epochs 1\n");
}

static void a_plan_says_the_epochs_or_the_time(void **state)
{
    pl_arena *mem = pl_arena_new(0);
    st_train_conf c = { .loop = { .epochs = 40 } };

    (void)state;
    assert_string_equal(st_budget_plan(&c, mem), "40 epochs");
    c.loop.budget = 90;
    assert_string_equal(st_budget_plan(&c, mem), "40 epochs at most, as many as fit into budget: 1m30s");
    c.loop.epochs = ST_EPOCHS_MOST - 1;
    assert_non_null(strstr(st_budget_plan(&c, mem), "99 epochs at most"));
    c.loop.epochs = ST_EPOCHS_MOST;
    assert_string_equal(st_budget_plan(&c, mem), "as many epochs as fit into budget: 1m30s");
    pl_arena_free(mem);
}

/* An estimate that takes longer is cut in proportion; of one without a time the number is not known. */
static void an_estimate_is_cut_to_the_budget(void **state)
{
    static const struct {
        double seconds, cut;
        int64_t n;
    } cases[] = { { 400, 100, 250 }, { 100, 100, 1000 }, { 99, 99, 1000 }, { 0, 0, -1 } };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        pl_estimate e = { .n_items = 1000, .seconds = cases[k].seconds };
        st_budget_cut(&e, 100);
        assert_int_equal(e.n_items, cases[k].n);
        assert_true(e.seconds == cases[k].cut);
    }
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
        cmocka_unit_test(a_budget_says_how_many_epochs_fit),
        cmocka_unit_test(a_plan_says_the_epochs_or_the_time),
        cmocka_unit_test(an_estimate_is_cut_to_the_budget),
    };
    return cmocka_run_group_tests_name("learning", tests, NULL, NULL);
}
