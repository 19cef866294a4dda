/* SPDX-License-Identifier: Apache-2.0
 * The loop with the real engines, on small made-up molecules: it learns, stops
 * and goes on with the same bits, for one and two threads, and ref and cpu agree.
 * With the argument cuda: the same of steps that the engine does by itself, on the
 * emulator or, where MOLSIEVE_PLUGINS has the real plugin, on a GPU. */
#include "models/network/sparse.h"
#include "models/training/predict.h"
#include "tests/twin/training.h"
#include "tests/unit/guarded.h"

static bool guards; /* arrays of arenas have nothing behind them; linked with -Wl,--wrap=pl_arena_get */
void *__real_pl_arena_get(pl_arena *mem, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size);

void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size)
{
    return guards ? guarded(n, size) : __real_pl_arena_get(mem, n, size);
}

/* Stopped at a poll and continued, also with other threads: the weights of an undisturbed training. */
static void goes_on(bench *b, const run *whole, int64_t at, const nn_engine_kind *kind, int threads)
{
    run first = fresh(b, at), second = fresh(b, -1);
    nn_checkpoint_from from;
    pl_error why;

    assert_int_equal(run_train(&first, kind, 2), PL_ESTOP);
    assert_int_equal(nn_checkpoint_load(b->dir, "engine", &second.s, &from, &why, NULL), PL_OK);
    assert_int_equal(run_train(&second, kind, threads), PL_OK);
    same_weights(&second.s, &whole->s);
}

static void a_resumed_training_has_the_same_bits_for_any_threads(void **state)
{
    bench *b = *state;
    run whole = fresh(b, -1);

    assert_int_equal(run_train(&whole, engine_kind, 1), PL_OK);
    for (int64_t at = 1; at < 14; at += engine_kind == &nn_engine_cuda ? 5 : 3)
        goes_on(b, &whole, at, engine_kind, 1 + (int)(at % 2));
}

/* The number of epochs is decided after the first; the rest is a training of so many. */
static void a_budget_gives_a_training_of_so_many_epochs(void **state)
{
    bench *b = *state;
    run by_time, by_number;

    b->conf.budget = 8; /* the clock tells of 4 seconds after the first epoch, and 2 for an epoch */
    by_time = fresh(b, -1);
    assert_int_equal(run_train(&by_time, engine_kind, 1), PL_OK);
    assert_in_range(by_time.s.planned, 2, EPOCHS - 1);
    goes_on(b, &by_time, TRAIN / b->conf.molecules + 3, engine_kind, 1);
    b->conf.budget = 0;
    b->conf.epochs = by_time.s.planned;
    by_number = fresh(b, -1);
    assert_int_equal(run_train(&by_number, engine_kind, 1), PL_OK);
    assert_int_equal(by_number.s.epoch, by_time.s.epoch);
    same_weights(&by_time.s, &by_number.s);
}

static void a_step_asks_for_no_memory_once_it_has_seen_the_batches(void **state)
{
    bench *b = *state;
    run r = fresh(b, -1);

    if (engine_kind == &nn_engine_cuda) { /* one step an epoch, so that its result comes before the next */
        b->conf.molecules = TRAIN;
        b->conf.epochs = 12;
    }
    assert_int_equal(run_train(&r, engine_kind, 2), PL_OK);
    assert_true(r.first > 0); /* the counter counts */
    assert_true(r.steps_later >= 9);
    assert_int_equal(r.later, 0);
}

/* Each request for memory or a thread is refused in turn: the training says so, or does without and has the same bits. */
static void a_training_that_is_refused_memory_says_so(void **state)
{
    bench *b = *state;
    pl_code code = PL_OK;
    long n = 0, from, failed = 0;
    run whole;

    b->conf.epochs = 2;
    b->conf.molecules = TRAIN;
    b->conf.shards = 3;
    whole = fresh(b, -1);
    assert_int_equal(run_train(&whole, &nn_engine_cpu, 2), PL_OK);
    do {
        run r = fresh(b, -1);
        pl_error err = { 0 };
        from = n_requests;
        refused = from + ++n;
        code = run_train_err(&r, &nn_engine_cpu, 2, &err);
        from = n_requests - from;
        refused = 0;
        if (code == PL_OK)
            same_weights(&r.s, &whole.s);
        else if (code != PL_ENOMEM || err.text[0] == '\0')
            fail_msg("request %ld: code %d %s", n, (int)code, err.text);
        failed += code != PL_OK;
    } while (from >= n);
    assert_int_equal(code, PL_OK);
    assert_true(failed > 20);
}

/* nn_predict gives what the engine says of the molecules; only nn_predict_average asks for their mirror images, too. */
static void mirror_images_are_predicted_only_if_asked_for(void **state)
{
    static const int64_t which[VALID] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    bench *b = *state;
    run r = fresh(b, -1);
    part valid = { b, { nn_collate_new(), nn_collate_new() }, TRAIN };
    const nn_samples s = { &valid, VALID, b->edges + TRAIN, b->target + TRAIN, part_batch, 1, NULL, NULL };
    const nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_EXACT };
    float want[VALID], got[VALID], mean[VALID];
    nn_engine *e = NULL;
    nn_batch batch;

    assert_int_equal(nn_engine_cpu.open(&e, b->model, &conf, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.set_params(e, r.s.params, NULL), PL_OK);
    assert_int_equal(part_batch(&valid, 0, &batch, (nn_which){ .at = which, .n = VALID }, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.forward(e, &batch, false, want, NULL), PL_OK);
    assert_int_equal(nn_predict(got, &nn_engine_cpu, e, &s, VALID, 0, NULL, NULL), PL_OK);
    assert_int_equal(nn_predict_average(mean, &nn_engine_cpu, e, &s, VALID, 0, NULL, NULL), PL_OK);
    assert_memory_equal(got, want, sizeof want);
    assert_memory_not_equal(mean, want, sizeof want); /* this network is not blind to reflection */
    nn_engine_cpu.close(e);
    nn_collate_free(valid.collate[0]);
    nn_collate_free(valid.collate[1]);
}

static void the_distance_is_learned(void **state)
{
    bench *b = *state;
    run r;

    b->conf.epochs = 40;
    b->conf.ema = 0;
    r = fresh(b, -1);
    assert_int_equal(run_train(&r, &nn_engine_cpu, 1), PL_OK);
    if (!(r.s.best_error < 0.5 * r.first_valid))
        fail_msg("valid MAE %g at first, %g at best", r.first_valid, r.s.best_error);
}

/* Rounding errors grow with the steps: Adam's first steps depend only on signs. */
static void ref_and_cpu_learn_alike(void **state)
{
    bench *b = *state;
    run x, y;

    b->conf.epochs = 1;
    b->conf.lr = b->conf.min_lr = 1e-5;
    b->conf.ema = 0;
    x = fresh(b, -1);
    y = fresh(b, -1);
    assert_int_equal(run_train(&x, &nn_engine_cpu, 2), PL_OK);
    assert_int_equal(run_train(&y, &nn_engine_ref, 1), PL_OK);
    if (!(fabs(x.s.best_error - y.s.best_error) <= 1e-5 * y.s.best_error + 1e-7))
        fail_msg("valid MAE %.9g by cpu, %.9g by ref", x.s.best_error, y.s.best_error);
}

/* Two numbers per molecule, the distance and whether it is large; every third of one and every fourth of the other is unknown,
 * so every twelfth molecule has neither. */
static void two_targets_make(bench *b)
{
    nn_se3_conf conf = b->model->conf;

    for (int i = ALL - 1; i >= 0; i--) {
        const float distance = b->target[i];
        b->target[2 * i] = i % 3 ? distance : NAN;
        b->target[2 * i + 1] = i % 4 ? (float)(distance > 0) : NAN;
    }
    conf.outputs = 2;
    assert_int_equal(nn_se3_plan(&b->model, &conf, b->mem, NULL), PL_OK);
}

static void ref_and_cpu_learn_several_targets_alike_also_resumed(void **state)
{
    bench *b = *state;
    run whole;

    two_targets_make(b);
    b->conf.shards = 2;
    whole = fresh(b, -1);
    assert_int_equal(run_train(&whole, &nn_engine_cpu, 1), PL_OK);
    goes_on(b, &whole, 5, &nn_engine_cpu, 1);
    b->conf.shards = 1;
    ref_and_cpu_learn_alike(state);
}

/* ---- SOAP, whose steps are the processor's with every engine ---- */

static void soap_learns_also_resumed(void **state)
{
    bench *b = *state;
    run whole;

    b->conf.optimiser = NN_SOAP;
    b->conf.shards = 2 - (engine_kind == &nn_engine_cuda); /* less for the emulator */
    whole = fresh(b, -1);
    assert_true(whole.s.n_bases > 1000);
    assert_int_equal(run_train(&whole, engine_kind, 1), PL_OK);
    assert_true(whole.s.best_error < whole.first_valid && whole.s.bases[0] != 0);
    for (int64_t at = 1; at < 14; at += 12)
        goes_on(b, &whole, at, engine_kind, 1 + (int)(at % 2));
}

/* ---- 2:4 sparsity ---- */

/* Whether all matrices that fit have two numbers of four at most; the zeros of them all. */
static size_t zeros_of(const run *r, const float *w)
{
    size_t zeros = 0;

    for (int32_t k = 0; k < r->s.n_tensors; k++) {
        const nn_param *p = &r->s.tensor[k];
        for (size_t g = 0; nn_sparse_fits(p) && g < p->size; g += 4) {
            int n = 0;
            for (size_t i = 0; i < 4; i++)
                n += w[p->at + g + i] == 0;
            if (n < 2)
                fail_msg("%s: %d of four are 0 in group %zu", p->name, n, g / 4);
            zeros += (size_t)n;
        }
    }
    return zeros;
}

/* Pruned after half of the epochs: zeros stay, in all arrays; a stop before, at or after that changes no bit. */
static void pruned_weights_stay_zero_also_resumed(void **state)
{
    bench *b = *state;
    const int64_t steps = (TRAIN + b->conf.molecules - 1) / b->conf.molecules; /* of an epoch */
    const int64_t pruned = EPOCHS / 2 * steps, around = engine_kind == &nn_engine_cuda ? 0 : 1;
    run whole;

    b->conf.sparsity = NN_SPARSE_2_4;
    b->conf.shards = 2 - (engine_kind == &nn_engine_cuda); /* less for the emulator */
    whole = fresh(b, -1);
    assert_int_equal(run_train(&whole, engine_kind, 1), PL_OK);
    assert_true(whole.s.best_epoch >= EPOCHS / 2);
    assert_true(zeros_of(&whole, whole.s.params) > 500);
    assert_int_equal(zeros_of(&whole, whole.s.ema), zeros_of(&whole, whole.s.params));
    assert_int_equal(zeros_of(&whole, whole.s.best), zeros_of(&whole, whole.s.params));
    assert_true(zeros_of(&whole, whole.s.m) >= zeros_of(&whole, whole.s.params));
    for (int64_t at = pruned - around; at <= pruned + 3 * around; at++)
        goes_on(b, &whole, at, engine_kind, 1 + (int)(at % 2));
}

/* A trained start is pruned at once. Patience counts from the pruning on, and a budget has an epoch after it. */
static void pruning_is_a_new_begin(void **state)
{
    bench *b = *state;
    run first, patient;

    b->conf.sparsity = NN_SPARSE_2_4;
    b->conf.prune_first = true;
    first = fresh(b, 1);
    assert_int_equal(run_train(&first, engine_kind, 1), PL_ESTOP);
    assert_int_equal(first.s.step, 1);
    assert_true(zeros_of(&first, first.s.params) > 500);
    b->conf.prune_first = false;
    b->conf.lr = b->conf.min_lr = 0; /* no epoch is better than its first */
    b->conf.ema = 0;
    b->conf.patience = 1;
    patient = fresh(b, -1);
    assert_int_equal(run_train(&patient, engine_kind, 1), PL_OK);
    assert_int_equal(patient.s.epoch, EPOCHS / 2 + 2);
    assert_int_equal(patient.s.best_epoch, EPOCHS / 2);
    b->conf.patience = 0;
    b->conf.budget = 1; /* less than an epoch takes */
    patient = fresh(b, -1);
    assert_int_equal(run_train(&patient, engine_kind, 1), PL_OK);
    assert_int_equal(patient.s.epoch, 2);
    assert_true(zeros_of(&patient, patient.s.best) > 500);
}

/* ---- noise on the positions ---- */

/* Learned alike by both engines and in shards; the same bits for any number of threads and after a stop. Every epoch has its own
 * noise, validation none. */
static void noise_is_learned_alike_also_resumed(void **state)
{
    bench *b = *state;
    nn_se3_conf conf = b->model->conf;
    run clean = fresh(b, -1), whole, other;

    assert_int_equal(run_train(&clean, &nn_engine_cpu, 1), PL_OK);
    conf.denoise = true;
    assert_int_equal(nn_se3_plan(&b->model, &conf, b->mem, NULL), PL_OK);
    b->conf.noise.scale = 0.05;
    b->conf.noise.weight = 0.5;
    whole = fresh(b, -1);
    assert_int_equal(noise_seen.n_seeds, 0);
    assert_int_equal(run_train(&whole, &nn_engine_cpu, 1), PL_OK);
    assert_int_equal(noise_seen.n_seeds, EPOCHS);
    assert_int_equal(noise_seen.n_noisy_valid, 0);
    assert_true(whole.noise[0].n > 0 && whole.noise[1].n == whole.noise[0].n && clean.noise[0].n == 0);
    assert_true(whole.noise[0].square > 0 && whole.noise[1].square > 0 && whole.noise[1].square != whole.noise[0].square);
    b->conf.shards = 2;
    other = fresh(b, -1);
    guards = true;
    assert_int_equal(run_train(&other, &nn_engine_cpu, 1), PL_OK);
    guards = false;
    if (!(fabs(whole.s.best_error - other.s.best_error) <= 1e-4 * whole.s.best_error))
        fail_msg("valid MAE %.9g with one shard, %.9g with two", whole.s.best_error, other.s.best_error);
    b->conf.shards = 1;
    goes_on(b, &whole, 5, &nn_engine_cpu, 2);
    assert_memory_not_equal(whole.s.params, clean.s.params, clean.s.n * sizeof(float));
    b->conf.noise.scale = 0.1;
    other = fresh(b, -1);
    assert_int_equal(run_train(&other, &nn_engine_cpu, 1), PL_OK);
    assert_memory_not_equal(whole.s.params, other.s.params, clean.s.n * sizeof(float));
    ref_and_cpu_learn_alike(state);
}

/* ---- steps that the engine does by itself ---- */

static curve curve_of(bench *b, const nn_engine_kind *kind)
{
    run r = fresh(b, -1);

    assert_int_equal(run_train(&r, kind, 1), PL_OK);
    return r.curve;
}

/* The class: nearer than the middle one, or not; one molecule has none. */
static void classes_make(bench *b)
{
    for (int i = 0; i < ALL; i++)
        b->target[i] = b->target[i] < 0;
    b->target[7] = NAN;
}

static void classes_are_learned_and_the_same_bits_after_a_stop(void **state)
{
    bench *b = *state;
    run whole;

    classes_make(b);
    b->conf.loss = NN_LOSS_BCE;
    b->conf.epochs = 40;
    whole = fresh(b, -1);
    assert_int_equal(run_train(&whole, engine_kind, 1), PL_OK);
    goes_on(b, &whole, 5, engine_kind, 1);
    assert_true(whole.s.best_error == whole.min_loss);
    if (!(whole.s.best_error < 0.3)) /* of random guesses: ln 2 */
        fail_msg("log loss %g of the validation molecules", whole.s.best_error);
}

/* Two epochs only: with each further one, rounding makes the losses differ ten times as much. */
static void the_losses_are_those_of_the_cpu(void **state)
{
    bench *b = *state;

    b->conf.epochs = 2;
    for (int loss = 0; loss <= NN_LOSS_BCE; loss++) {
        curve got, want;
        b->conf.loss = loss;
        b->conf.optimiser = loss == NN_LOSS_L2 ? NN_LAMB : NN_ADAMW;
        b->conf.ema = loss == NN_LOSS_L2 ? 0 : 0.9;
        b->conf.grad_clip = loss == NN_LOSS_L2 ? 0 : 1;
        if (loss == NN_LOSS_BCE)
            classes_make(b);
        b->conf.molecules = 7;
        b->conf.lr = 3e-4;
        want = curve_of(b, &nn_engine_cpu);
        got = curve_of(b, &nn_engine_cuda);
        curves_near(&got, &want, 2e-5);
    }
}

/* With one shard and with two. */
static void losses_are_those_of_the_cpu(bench *b)
{
    curve got, want;

    b->conf.epochs = 2;
    b->conf.molecules = 7;
    b->conf.lr = 3e-4;
    for (b->conf.shards = 1; b->conf.shards <= 2; b->conf.shards++) {
        want = curve_of(b, &nn_engine_cpu);
        got = curve_of(b, &nn_engine_cuda);
        curves_near(&got, &want, 2e-5);
    }
}

static void losses_of_several_targets_are_those_of_the_cpu(void **state)
{
    two_targets_make(*state);
    losses_are_those_of_the_cpu(*state);
}

/* Of two targets: every third number is a lower limit, every fifth an upper one, every seventh both. */
static void limits_make(bench *b)
{
    two_targets_make(b);
    memcpy(b->high, b->target, sizeof b->high);
    b->limits = true;
    for (int i = 0; i < 2 * TRAIN; i++) {
        if (i % 3 == 0)
            b->high[i] = INFINITY;
        else if (i % 5 == 0 && !isnan(b->target[i]))
            b->target[i] = -INFINITY;
        else if (i % 7 == 0)
            b->high[i] = b->target[i] + 0.25f;
    }
}

static void limits_cost_less_than_values_and_resume_with_the_same_bits(void **state)
{
    bench *b = *state;
    run whole;
    curve with, without;

    limits_make(b);
    b->conf.shards = 2;
    whole = fresh(b, -1);
    assert_int_equal(run_train(&whole, &nn_engine_cpu, 1), PL_OK);
    goes_on(b, &whole, 5, &nn_engine_cpu, 1);
    b->conf.lr = b->conf.min_lr = 1e-9; /* the same weights */
    with = curve_of(b, &nn_engine_cpu);
    b->limits = false;
    for (int i = 0; i < 2 * TRAIN; i++)
        b->target[i] = isinf(b->target[i]) ? b->high[i] : b->target[i];
    without = curve_of(b, &nn_engine_cpu);
    print_message("%g with limits, %g if they were values\n", with.train[0], without.train[0]);
    assert_true(with.train[0] < 0.9 * without.train[0]);
}

static void limits_of_ref_and_cpu_are_alike(void **state)
{
    limits_make(*state);
    ref_and_cpu_learn_alike(state);
}

static void losses_of_limits_are_those_of_the_cpu(void **state)
{
    limits_make(*state);
    losses_are_those_of_the_cpu(*state);
}

/* 40 molecules in batches of 19, 19 and 2: in the last, one shard has no molecule. */
static void shards_are_summed_in_their_order_on_the_device(void **state)
{
    bench *b = *state;
    run whole = fresh(b, -1);
    curve want;

    b->conf.epochs = 2;
    b->conf.shards = 3;
    b->conf.molecules = 19;
    b->conf.lr = 3e-4;
    want = curve_of(b, &nn_engine_cpu);
    assert_int_equal(run_train(&whole, &nn_engine_cuda, 1), PL_OK);
    curves_near(&whole.curve, &want, 1e-4);
    goes_on(b, &whole, 4, &nn_engine_cuda, 1);
}

/* Results come later than steps; neither the delay nor a graph changes any bit. */
static void graphs_fences_and_early_copies_change_no_bit(void **state)
{
    static const char *const set[][2] = { { "MOLSIEVE_CUDA_FENCES", "1" },
                                          { "MOLSIEVE_CUDA_GRAPHS", "0" },
                                          { "MOLSIEVE_EMULATOR_EAGER", "1" } };
    bench *b = *state;
    const char *had = getenv(set[0][0]);
    char *keep = had != NULL ? strdup(had) : NULL;
    run whole = fresh(b, -1);

    b->conf.epochs = 2;
    b->conf.molecules = 3;
    b->conf.optimiser = NN_LAMB;
    b->conf.shards = 2;
    (void)unsetenv(set[0][0]);
    assert_int_equal(run_train(&whole, &nn_engine_cuda, 1), PL_OK);
    for (int i = 0; i < 3; i++) {
        run other = fresh(b, -1);
        (void)setenv(set[i][0], set[i][1], 1);
        assert_int_equal(run_train(&other, &nn_engine_cuda, 1), PL_OK);
        (void)unsetenv(set[i][0]);
        same_weights(&other.s, &whole.s);
    }
    if (keep != NULL)
        (void)setenv(set[0][0], keep, 1);
    free(keep);
}

static void non_finite_steps_are_skipped_and_many_end_training(void **state)
{
    bench *b = *state;
    float was = b->target[5];
    run all = fresh(b, -1), none = fresh(b, -1);
    pl_error err = { 0 };

    b->conf.epochs = 1;
    b->conf.molecules = 4;
    b->target[5] = INFINITY;
    assert_int_equal(run_train(&all, engine_kind, 1), PL_OK);
    assert_int_equal(all.s.bad_total, 1);
    assert_int_equal(all.s.step, TRAIN / 4 - 1);
    assert_true(isfinite(all.s.params[0]));
    b->target[5] = was;
    none.s.params[0] = NAN;
    assert_int_equal(run_train_err(&none, engine_kind, 1, &err), PL_ELIMIT);
    assert_non_null(strstr(err.text, "not finite in 10 steps in a row (epoch 1, step 0)"));
}

static const struct CMUnitTest host_tests[] = {
    WITH_BENCH(a_resumed_training_has_the_same_bits_for_any_threads),
    WITH_BENCH(a_budget_gives_a_training_of_so_many_epochs),
    WITH_BENCH(a_step_asks_for_no_memory_once_it_has_seen_the_batches),
    WITH_BENCH(a_training_that_is_refused_memory_says_so),
    WITH_BENCH(mirror_images_are_predicted_only_if_asked_for),
    WITH_BENCH(the_distance_is_learned),
    WITH_BENCH(ref_and_cpu_learn_alike),
    WITH_BENCH(ref_and_cpu_learn_several_targets_alike_also_resumed),
    WITH_BENCH(noise_is_learned_alike_also_resumed),
    WITH_BENCH(pruned_weights_stay_zero_also_resumed),
    WITH_BENCH(soap_learns_also_resumed),
    WITH_BENCH(pruning_is_a_new_begin),
    WITH_BENCH(limits_cost_less_than_values_and_resume_with_the_same_bits),
    WITH_BENCH(limits_of_ref_and_cpu_are_alike),
    WITH_BENCH(classes_are_learned_and_the_same_bits_after_a_stop),
    WITH_BENCH(non_finite_steps_are_skipped_and_many_end_training),
};

static const struct CMUnitTest device_tests[] = {
    WITH_BENCH(pruned_weights_stay_zero_also_resumed),
    WITH_BENCH(soap_learns_also_resumed),
    WITH_BENCH(the_losses_are_those_of_the_cpu),
    WITH_BENCH(losses_of_several_targets_are_those_of_the_cpu),
    WITH_BENCH(losses_of_limits_are_those_of_the_cpu),
    WITH_BENCH(a_resumed_training_has_the_same_bits_for_any_threads),
    WITH_BENCH(a_budget_gives_a_training_of_so_many_epochs),
    WITH_BENCH(a_step_asks_for_no_memory_once_it_has_seen_the_batches),
    WITH_BENCH(shards_are_summed_in_their_order_on_the_device),
    WITH_BENCH(graphs_fences_and_early_copies_change_no_bit),
    WITH_BENCH(non_finite_steps_are_skipped_and_many_end_training),
};

/* [cuda [which tests]] */
int main(int argc, char **argv)
{
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    if (argc == 1)
        return cmocka_run_group_tests(host_tests, NULL, NULL);
    engine_kind = &nn_engine_cuda;
    return cmocka_run_group_tests(device_tests, NULL, NULL);
}
