/* SPDX-License-Identifier: Apache-2.0 */
/* Whole trainings on a device (the emulator, or a GPU where MOLSIEVE_PLUGINS has the real plugin): held-out molecules are predicted
 * beside the steps, and the loss is scaled for fp16. */
#include "tests/twin/training.h"

/* ---- held-out molecules beside the steps ---- */

static struct {
    int64_t forwards, fails_at;  /* of held-out molecules; fails_at 0: never       */
    int64_t closed, closed_then; /* engines; when held-out molecules were predicted after a failure */
    useconds_t takes;            /* a pass, at least                                                         */
} other_engine;

/* The predicting thread has its own engine, so passes without keep are those of the held-out molecules. */
static pl_code second_forward(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err)
{
    if (!keep && ++other_engine.forwards == other_engine.fails_at)
        return pl_fail(err, PL_EDEVICE, "the second engine fails");
    other_engine.closed_then = other_engine.closed;
    if (!keep)
        (void)usleep(other_engine.takes);
    return nn_engine_cuda.forward(e, in, keep, y, err);
}

static void second_close(nn_engine *e)
{
    other_engine.closed += e != NULL;
    nn_engine_cuda.close(e);
}

static nn_engine_kind watched(int64_t fails_at, useconds_t takes)
{
    nn_engine_kind kind = nn_engine_cuda;

    other_engine.forwards = other_engine.closed = 0;
    other_engine.fails_at = fails_at;
    other_engine.takes = takes;
    kind.forward = second_forward;
    kind.close = second_close;
    return kind;
}

static run fresh_beside(bench *b, int64_t stop_at)
{
    run r = fresh(b, stop_at);

    r.beside = true;
    return r;
}

static void same_curves(const run *x, const run *y)
{
    assert_int_equal(x->curve.n, y->curve.n);
    assert_memory_equal(x->curve.train, y->curve.train, (size_t)x->curve.n * sizeof *x->curve.train);
    assert_memory_equal(x->curve.valid, y->curve.valid, (size_t)x->curve.n * sizeof *x->curve.valid);
}

/* Predicted at once, or long after the next epoch began, or after its end; stopped anywhere. */
static void held_out_molecules_beside_the_steps_change_no_bit(void **state)
{
    static const useconds_t takes[] = { 0, 100000 };
    bench *b = *state;
    run between = fresh(b, -1);

    b->conf.molecules = 5;
    b->conf.epochs = 3;
    assert_int_equal(run_train(&between, &nn_engine_cuda, 1), PL_OK);
    assert_int_equal(between.curve.n, 3);
    for (int i = 0; i < 2; i++) {
        const nn_engine_kind kind = watched(0, takes[i]);
        run beside = fresh_beside(b, -1), first = fresh_beside(b, 9 + 4 * i), second_half = fresh_beside(b, -1);
        nn_checkpoint_from from;
        pl_error why;
        assert_int_equal(run_train(&beside, &kind, 1), PL_OK);
        same_weights(&beside.s, &between.s);
        same_curves(&beside, &between);
        assert_int_equal(run_train(&first, &kind, 1), PL_ESTOP);
        assert_int_equal(nn_checkpoint_load(b->dir, "engine", &second_half.s, &from, &why, NULL), PL_OK);
        assert_int_equal(run_train(&second_half, &kind, 1), PL_OK);
        same_weights(&second_half.s, &between.s);
    }
}

/* Steps of the epoch after the last one were begun and are discarded. */
static void early_stopping_is_the_same_beside_the_next_epoch(void **state)
{
    bench *b = *state;
    const nn_engine_kind kind = watched(0, 100000);
    run between, beside;

    b->conf.molecules = 5;
    b->conf.patience = 2;
    b->conf.epochs = 40;
    b->conf.lr = b->conf.min_lr = 0.05; /* so large that it fails soon */
    between = fresh(b, -1);
    beside = fresh_beside(b, -1);
    assert_int_equal(run_train(&between, &nn_engine_cuda, 1), PL_OK);
    assert_true(between.s.done && between.s.epoch < 40);
    assert_int_equal(run_train(&beside, &kind, 1), PL_OK);
    assert_memory_equal(beside.s.best, between.s.best, between.s.n * sizeof(float));
    assert_true(beside.s.done && beside.s.epoch == between.s.epoch && beside.s.step == between.s.step && beside.s.cursor == 0);
    assert_true(beside.s.best_epoch == between.s.best_epoch && beside.s.best_error == between.s.best_error);
    assert_true(beside.polls > between.s.epoch * (TRAIN / 5) + 1); /* asked before each step */
    assert_true(beside.s.seen.n == 0 && beside.s.bad_total == between.s.bad_total);
}

/* Stopped every few steps: with a second engine, without, and with steps on the host. */
static void arrays_stay_as_they_are_until_a_checkpoint_is_written(void **state)
{
    bench *b = *state;

    b->conf.molecules = 10;
    b->conf.epochs = 2;
    for (int how = 0; how < 3; how++) {
        slow_save slow = { .aside = nn_background_new() };
        run r = how ? fresh(b, -1) : fresh_beside(b, -1);
        r.slow = &slow;
        assert_int_equal(run_train(&r, how < 2 ? &nn_engine_cuda : &nn_engine_cpu, 1), PL_OK);
        assert_true(slow.n >= 3);
        assert_int_equal(slow.changed, 0);
        nn_background_free(slow.aside);
    }
}

static void a_second_engine_that_fails_at_first_is_done_without(void **state)
{
    bench *b = *state;
    const nn_engine_kind kind = watched(1, 0);
    run between = fresh(b, -1), beside = fresh_beside(b, -1);

    assert_int_equal(run_train(&between, &nn_engine_cuda, 1), PL_OK);
    assert_int_equal(run_train(&beside, &kind, 1), PL_OK);
    same_weights(&beside.s, &between.s);
    same_curves(&beside, &between);
    assert_true(other_engine.forwards > EPOCHS);   /* the first engine's too */
    assert_int_equal(other_engine.closed_then, 1); /* its memory is available for the training */
    assert_int_equal(other_engine.closed, 2);
}

static void a_second_engine_that_fails_later_ends_the_training(void **state)
{
    bench *b = *state;
    const nn_engine_kind kind = watched(3, 0);
    run r = fresh_beside(b, -1);
    pl_error err = { 0 };

    assert_int_equal(run_train_err(&r, &kind, 1, &err), PL_EDEVICE);
    assert_string_equal(err.text, "the second engine fails");
    assert_int_equal(r.curve.n, 2);
}

/* ---- fp16: the loss is scaled ---- */

/* One epoch of 14 steps, with a scale that soon becomes too large again. */
static void in_fp16(bench *b)
{
    b->precision = NN_PREC_FP16;
    b->conf.epochs = 1;
    b->conf.molecules = 3;
    b->conf.scale_after = 3;
    b->conf.lr = 3e-4;
}

/* The change of the scale by each step; the steps that halved it were skipped. */
static void scales_check(const run *r, int steps)
{
    double last = NN_LOSS_SCALE_FIRST;
    int up = 0, down = 0;

    assert_int_equal(r->n_scales, steps);
    for (int i = 0; i < steps; last = r->scale[i++]) {
        print_message("step %d: scale %g\n", i + 1, r->scale[i]);
        up += r->scale[i] == 2 * last;
        down += 2 * r->scale[i] == last;
    }
    assert_true(up > 0 && down > 1);
    assert_int_equal(r->s.bad_total, down);
    assert_int_equal(r->s.step, steps - down);
}

/* Steps by the device; by the host with the device's gradients; by the device, stopped between two scales. */
static void all_skip_halve_and_double_at_the_same_steps(void **state)
{
    bench *b = *state;
    nn_engine_kind by_host = nn_engine_cuda;
    nn_checkpoint_from from;
    pl_error why;
    run device, host, first, second;

    in_fp16(b);
    by_host.training = NULL;
    device = fresh(b, -1);
    host = fresh(b, -1);
    first = fresh(b, 5);
    second = fresh(b, -1);
    assert_int_equal(run_train(&device, &nn_engine_cuda, 1), PL_OK);
    scales_check(&device, 14);
    assert_int_equal(run_train(&host, &by_host, 1), PL_OK);
    scales_check(&host, 14);
    assert_memory_equal(device.scale, host.scale, 14 * sizeof *host.scale);
    curves_near(&device.curve, &host.curve, 1e-3); /* fp16 sometimes rounds in the other direction */
    assert_int_equal(run_train(&first, &nn_engine_cuda, 1), PL_ESTOP);
    assert_true(first.s.bad_total > 0 && first.s.scale.good > 0);
    assert_int_equal(nn_checkpoint_load(b->dir, "engine", &second.s, &from, &why, NULL), PL_OK);
    assert_int_equal(run_train(&second, &nn_engine_cuda, 1), PL_OK);
    same_weights(&second.s, &device.s);
}

static void a_scale_changes_no_bit_of_fp32(void **state)
{
    bench *b = *state;
    run plain = fresh(b, -1), scaled = fresh(b, -1);

    b->conf.epochs = 1;
    b->conf.shards = 2;
    assert_int_equal(run_train(&plain, &nn_engine_cuda, 1), PL_OK);
    assert_true(plain.s.scale.by == 1);
    b->conf.scale_after = 2;
    assert_int_equal(run_train(&scaled, &nn_engine_cuda, 1), PL_OK);
    assert_true(scaled.s.scale.by == 2 * NN_LOSS_SCALE_FIRST && scaled.s.scale.good == 1);
    plain.s.scale = scaled.s.scale;
    same_weights(&scaled.s, &plain.s);
}

static void at_scale_1_ten_bad_steps_in_a_row_end_it(void **state)
{
    bench *b = *state;
    run none = fresh(b, -1);
    pl_error err = { 0 };

    in_fp16(b);
    none.s.scale.by = 4;
    none.s.params[0] = NAN;
    assert_int_equal(run_train_err(&none, engine_kind, 1, &err), PL_ELIMIT);
    assert_non_null(strstr(err.text, "not finite in 10 steps in a row (epoch 1, step 0)"));
    assert_int_equal(none.s.bad_total, 12);
    assert_true(none.s.scale.by == 1);
}

/* An argument names the tests to run. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(held_out_molecules_beside_the_steps_change_no_bit),
        WITH_BENCH(early_stopping_is_the_same_beside_the_next_epoch),
        WITH_BENCH(arrays_stay_as_they_are_until_a_checkpoint_is_written),
        WITH_BENCH(a_second_engine_that_fails_at_first_is_done_without),
        WITH_BENCH(a_second_engine_that_fails_later_ends_the_training),
        WITH_BENCH(all_skip_halve_and_double_at_the_same_steps),
        WITH_BENCH(a_scale_changes_no_bit_of_fp32),
        WITH_BENCH(at_scale_1_ten_bad_steps_in_a_row_end_it),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    engine_kind = &nn_engine_cuda;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
