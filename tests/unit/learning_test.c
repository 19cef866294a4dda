/* SPDX-License-Identifier: Apache-2.0 */
/* The line of progress of a training, word for word (st_learning_step). */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_of_one_target_has_its_unit),
        cmocka_unit_test(a_loss_of_several_targets_or_of_classes_has_no_unit),
        cmocka_unit_test(noise_is_said_beside_the_loss_or_alone),
        cmocka_unit_test(members_are_counted_in_the_line_and_in_what_is_left),
        cmocka_unit_test(a_budget_decides_the_epochs_in_the_first),
        cmocka_unit_test(later_members_have_their_number_in_a_metric),
    };
    return cmocka_run_group_tests_name("learning", tests, NULL, NULL);
}
