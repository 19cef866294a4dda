/* SPDX-License-Identifier: Apache-2.0 */
/* The cuda engine against the oracle, over models of many shapes; on the emulator or, where MOLSIEVE_PLUGINS has the real plugin, on a
 * GPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/network/frame.h"
#include "twin/engine_results.h"

static void exact_mode_agrees_with_the_oracle_for_every_shape(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        fixture f = fixture_open(i);
        result want = engine_run(&nn_engine_ref, &exact, f.model, &f.made.b, f.mem);
        result got = engine_run(&nn_engine_cuda, &exact, f.model, &f.made.b, f.mem);
        results_near(f.model, &f.made.b, &got, &want, 1);
        pl_arena_free(f.mem);
    }
}

static void same_bytes(const fixture *f, const result *a, const result *b)
{
    assert_memory_equal(a->y, b->y, (size_t)(f->made.b.n_graphs * f->model->conf.outputs) * sizeof(float));
    assert_memory_equal(a->grad, b->grad, f->model->n_floats * sizeof(float));
}

/* On the emulator: a missing barrier shows as other numbers. On a GPU: twice the same. */
static void the_order_in_which_threads_run_changes_no_byte(void **state)
{
    static const int shape_of[] = { 0, 5 };
    static const nn_engine_conf conf[] = { { .threads = 1, .radial = NN_RADIAL_EXACT },
                                           { .threads = 1,
                                             .radial = NN_RADIAL_NODES,
                                             .width = 0.02,
                                             .of_radial = NN_PREC_BF16,
                                             .of_contract = NN_PREC_BF16X3,
                                             .of_linear = NN_PREC_BF16 } };
    (void)state;

    for (int i = 0; i < 4; i++) {
        fixture f = fixture_open(shape_of[i / 2]);
        result first = engine_run(&nn_engine_cuda, &conf[i % 2], f.model, &f.made.b, f.mem), other;
        for (int seed = 1; seed < 3; seed++) {
            setenv("MOLSIEVE_EMULATOR_SEED", seed == 1 ? "1" : "77", 1);
            other = engine_run(&nn_engine_cuda, &conf[i % 2], f.model, &f.made.b, f.mem);
            same_bytes(&f, &first, &other);
        }
        unsetenv("MOLSIEVE_EMULATOR_SEED");
        pl_arena_free(f.mem);
    }
}

/* Little memory for tables: many chunks, in exact mode and on the grid. */
static void tables_in_pieces_give_the_same_scores_and_gradients(void **state)
{
    static const nn_engine_conf conf[] = { { .threads = 1, .radial = NN_RADIAL_EXACT },
                                           { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.05 } };
    (void)state;

    for (int i = 0; i < 4; i++) {
        fixture f = fixture_open(i / 2 ? 5 : 0);
        result whole = engine_run(&nn_engine_cuda, &conf[i % 2], f.model, &f.made.b, f.mem), pieces;
        setenv("MOLSIEVE_CUDA_TABLE_KB", "30", 1);
        pieces = engine_run(&nn_engine_cuda, &conf[i % 2], f.model, &f.made.b, f.mem);
        unsetenv("MOLSIEVE_CUDA_TABLE_KB");
        assert_memory_equal(whole.y, pieces.y, (size_t)(f.made.b.n_graphs * f.model->conf.outputs) * sizeof(float));
        results_near(f.model, &f.made.b, &pieces, &whole, 0.1);
        pl_arena_free(f.mem);
    }
}

/* On a grid so coarse that interpolation changes every number. */
static void radial_nodes_agree_with_the_cpu_engine_on_one_grid(void **state)
{
    const nn_engine_conf nodes = { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.17 };
    (void)state;

    for (int i = 0; i < CASES; i++) {
        fixture f = fixture_open(i);
        result want = engine_run(&nn_engine_cpu, &nodes, f.model, &f.made.b, f.mem);
        result got = engine_run(&nn_engine_cuda, &nodes, f.model, &f.made.b, f.mem);
        results_near(f.model, &f.made.b, &got, &want, 1);
        pl_arena_free(f.mem);
    }
}

/* sum of dy y of the interpolated model. */
static double loss_at(const fixture *f, const nn_engine_conf *conf, const float *params)
{
    int n = f->made.b.n_graphs * f->model->conf.outputs;
    float *y = PL_NEW(f->mem, float, n);
    double sum = 0;
    nn_engine *e;
    pl_error err = { 0 };

    if (nn_engine_cuda.open(&e, f->model, conf, &err) != PL_OK || nn_engine_cuda.set_params(e, params, &err) != PL_OK ||
        nn_engine_cuda.forward(e, &f->made.b, false, y, &err) != PL_OK)
        fail_msg("%s", err.text);
    nn_engine_cuda.close(e);
    for (int i = 0; i < n; i++)
        sum += (double)y[i] * (float)cos(3.0 * i);
    return sum;
}

/* Along a line in the parameters: the slope of the interpolated model is its gradient. */
static void the_coarse_grid_gradient_is_that_of_interpolation(void **state)
{
    const nn_engine_conf nodes = { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.3 };
    const double h = 2e-4;
    fixture f = fixture_open(3);
    size_t n = f.model->n_floats;
    float *params = PL_NEW(f.mem, float, n), *moved = PL_NEW(f.mem, float, n);
    result r = engine_run(&nn_engine_cuda, &nodes, f.model, &f.made.b, f.mem);
    (void)state;

    nn_se3_init(f.model, params, 5);
    for (size_t i = 0; i < n; i++)
        params[i] += 0.02f * (float)sin((double)i);
    for (int line = 1; line < 4; line++) {
        double up, down, slope = 0;
        for (size_t i = 0; i < n; i++) {
            double along = sin(0.37 * (double)line * (double)i);
            moved[i] = params[i] + (float)(h * along);
            slope += ((double)moved[i] - params[i]) * r.grad[i];
        }
        up = loss_at(&f, &nodes, moved);
        for (size_t i = 0; i < n; i++)
            moved[i] = 2 * params[i] - moved[i];
        down = loss_at(&f, &nodes, moved);
        print_message("line %d: slope %.6g, gradient %.6g\n", line, (up - down) / 2, slope);
        if (!(fabs((up - down) / 2 - slope) <= 0.01 * fabs(slope)))
            fail_msg("line %d: slope %.6g, gradient %.6g", line, (up - down) / 2, slope);
    }
    pl_arena_free(f.mem);
}

/* Root mean square of the difference, relative. */
static double distance(const float *a, const float *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sqrt(sum / (double)n) / scale_of(b, n);
}

/* The worst of all tensors of parameters; NaN if one is. */
static double worst_tensor(const nn_se3 *model, const float *got, const float *want)
{
    double worst = 0;

    for (int i = 0; i < model->n_params; i++) {
        const nn_param *p = &model->param[i];
        double d = distance(got + p->at, want + p->at, p->size);
        worst = isnan(worst) || d <= worst ? worst : d;
    }
    return worst;
}

/* Twice what was measured on the emulator, of every tensor, where the gradient is smooth. Of the whole
 * gradient where it is not: norms and maximum pooling choose between numbers, and another
 * choice moves the gradient by a step. In float32 too: parameters off by 1e-4 move that of shape 5
 * by 0.025, as tf32, fp16 and bf16 do. */
static void lower_precision_stays_near(void **state)
{
    static const struct {
        nn_precision p;
        double y, tensor, y_steps, whole_steps;
    } cases[] = { { NN_PREC_BF16X3, 1.6e-5, 8e-5, 6e-5, 7e-5 },
                  { NN_PREC_BF16, 6e-3, 0.06, 0.07, 0.1 },
                  { NN_PREC_TF32, 1.2e-3, 4e-3, 0.015, 0.05 },
                  { NN_PREC_FP16, 1.2e-3, 4e-3, 0.015, 0.05 } };
    static const int shape_of[] = { 3, 4, 0, 5, 7, 9 };
    (void)state;

    for (int k = 0; k < (int)(sizeof shape_of / sizeof *shape_of); k++) {
        fixture f = fixture_open(shape_of[k]);
        nn_engine_conf plain = { .threads = 1, .radial = k % 2 ? NN_RADIAL_EXACT : NN_RADIAL_NODES, .width = 0.17 };
        size_t n = (size_t)(f.made.b.n_graphs * f.model->conf.outputs);
        result want = engine_run(&nn_engine_cuda, &plain, f.model, &f.made.b, f.mem), got;
        for (int i = 0; i < 4; i++) {
            nn_engine_conf conf = plain;
            double y, whole, tensor;
            conf.of_radial = conf.of_contract = conf.of_linear = cases[i].p;
            got = engine_run(&nn_engine_cuda, &conf, f.model, &f.made.b, f.mem);
            y = distance(got.y, want.y, n);
            whole = distance(got.grad, want.grad, f.model->n_floats);
            tensor = worst_tensor(f.model, got.grad, want.grad);
            print_message("precision %d: y off by %.2g, gradient by %.2g, worst tensor %.2g\n", (int)cases[i].p, y, whole, tensor);
            assert_true(y <= (k < 2 ? cases[i].y : cases[i].y_steps));
            assert_true(k < 2 ? tensor <= cases[i].tensor : whole <= cases[i].whole_steps);
            assert_memory_not_equal(got.y, want.y, sizeof(float));
        }
        pl_arena_free(f.mem);
    }
}

/* Without a scale, the gradient of a loss over 4096 molecules underflows in fp16 in some tensors. At every larger
 * scale it is as near as elsewhere, or something overflowed, which a number that is not finite shows. */
static void gradients_of_fp16_are_near_or_not_finite(void **state)
{
    const nn_engine_conf plain = { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.17 };
    static const int scales[] = { 0, 14, 15, 16, 17, 24 };
    const nn_se3_conf small = { 2, 2, 4, 2, 1, false, false, NN_POOL_MEAN, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false };
    nn_engine_conf conf = plain;
    fixture f = fixture_open(3);
    result want, got;
    int finite = 0, not_finite = 0;
    (void)state;

    assert_int_equal(nn_se3_plan(&f.model, &small, f.mem, NULL), PL_OK);
    want = engine_run(&nn_engine_cuda, &plain, f.model, &f.made.b, f.mem);
    conf.of_radial = conf.of_contract = conf.of_linear = NN_PREC_FP16;
    got = engine_run_scaled(&nn_engine_cuda, &conf, f.model, &f.made.b, 1.0f / 4096, f.mem);
    print_message("times 2^-12: worst tensor %.2g\n", worst_tensor(f.model, got.grad, want.grad));
    assert_true(worst_tensor(f.model, got.grad, want.grad) > 0.1);
    for (int i = 0; i < (int)(sizeof scales / sizeof *scales); i++) {
        double worst;
        got = engine_run_scaled(&nn_engine_cuda, &conf, f.model, &f.made.b, ldexpf(1, scales[i]), f.mem);
        worst = worst_tensor(f.model, got.grad, want.grad);
        print_message("times 2^%d: worst tensor %.2g\n", scales[i], worst);
        finite += isfinite(worst);
        not_finite += !isfinite(worst);
        assert_true(worst <= 4e-3 || !isfinite(worst));
    }
    assert_true(finite >= 2 && not_finite >= 2);
    pl_arena_free(f.mem);
}

/* The convolution in one kernel, and by its parts: values have the same factors, so the difference
 * is the order of sums in float32 and, after them, roundings in the other direction. */
static void a_convolution_in_one_kernel_gives_what_its_parts_give(void **state)
{
    static const nn_precision precisions[] = { NN_PREC_BF16X3, NN_PREC_BF16, NN_PREC_TF32, NN_PREC_FP16 };
    int differ = 0;
    (void)state;

    for (int k = 0; k < 8; k++) {
        fixture f = fixture_open(k < 4 ? 0 : 3);
        nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.17, .of_contract = precisions[k % 4] };
        size_t n = (size_t)(f.made.b.n_graphs * f.model->conf.outputs);
        result one = engine_run(&nn_engine_cuda, &conf, f.model, &f.made.b, f.mem), parts;
        setenv("MOLSIEVE_CUDA_PARTS", "1", 1);
        parts = engine_run(&nn_engine_cuda, &conf, f.model, &f.made.b, f.mem);
        unsetenv("MOLSIEVE_CUDA_PARTS");
        print_message("precision %d: y off by %.2g, gradient by %.2g\n", (int)conf.of_contract, distance(one.y, parts.y, n),
                      distance(one.grad, parts.grad, f.model->n_floats));
        assert_true(distance(one.y, parts.y, n) <= 1e-5);
        assert_true(distance(one.grad, parts.grad, f.model->n_floats) <= 1e-5);
        differ += memcmp(one.grad, parts.grad, f.model->n_floats * sizeof(float)) != 0;
        pl_arena_free(f.mem);
    }
    assert_true(differ > 0); /* they are different code */
}

/* ---- launches ---- */

/* Launches since the emulator's lines go to `trace`. */
static int launches(FILE *trace)
{
    char line[256];
    int n = 0;

    rewind(trace);
    while (fgets(line, sizeof line, trace) != NULL)
        n += !strncmp(line, "launch ", 7);
    assert_int_equal(ftruncate(fileno(trace), 0), 0);
    rewind(trace);
    return n;
}

/* Launches for the parameters, forward and backward, for this number of layers with 4 degrees. They do not depend on the channels, but
 * there must be enough nodes that sums over them are split. */
static void launches_count(int layers, nn_precision p, int n[3])
{
    const nn_engine_conf conf = {
        .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.5, .of_radial = p, .of_contract = p, .of_linear = p
    };
    nn_se3_conf network = { layers, 4, 8, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false };
    const made_opts opts = { 24, 7, 6, 4, 1.2, false, 1 };
    pl_arena *mem = pl_arena_new(1 << 20);
    made_batch made = made_batch_new(&opts, mem);
    FILE *trace = tmpfile();
    int before = dup(STDERR_FILENO);
    float y[32], dy[32] = { 1 }, *params, *grad;
    nn_se3 *model;
    nn_engine *e;

    assert_non_null(trace);
    assert_int_equal(nn_se3_plan(&model, &network, mem, NULL), PL_OK);
    params = PL_NEW(mem, float, model->n_floats);
    grad = PL_NEW(mem, float, model->n_floats);
    nn_se3_init(model, params, 5);
    DONE(nn_engine_cuda.open(&e, model, &conf, &why));
    assert_true(dup2(fileno(trace), STDERR_FILENO) >= 0);
    (void)nn_engine_cuda.set_params(e, params, NULL);
    n[0] = launches(trace);
    (void)nn_engine_cuda.forward(e, &made.b, true, y, NULL);
    n[1] = launches(trace);
    (void)nn_engine_cuda.backward(e, &made.b, dy, grad, NULL);
    n[2] = launches(trace);
    (void)dup2(before, STDERR_FILENO);
    close(before);
    fclose(trace);
    nn_engine_cuda.close(e);
    pl_arena_free(mem);
}

/* The number in docs/GPU.md: the difference between three layers and two. */
static void launches_of_a_block_are_as_documented(void **state)
{
    static const struct {
        nn_precision p;
        int n[3];
    } documented[] = { { NN_PREC_BF16, { 0, 6, 17 } }, { NN_PREC_FP32, { 0, 8, 17 } } };
    const nn_gpu_ops *ops;
    (void)state;

    assert_int_equal(nn_cuda_plugin(&ops, NULL), PL_OK);
    if (strcmp(ops->name, "emulated") != 0)
        skip(); /* only the emulator counts them */
    setenv("MOLSIEVE_EMULATOR_TRACE", "1", 1);
    for (int i = 0; i < 2; i++) {
        int two[3], three[3];
        launches_count(2, documented[i].p, two);
        launches_count(3, documented[i].p, three);
        print_message("three layers: %d, %d, %d launches\n", three[0], three[1], three[2]);
        for (int k = 0; k < 3; k++)
            assert_int_equal(three[k] - two[k], documented[i].n[k]);
    }
    unsetenv("MOLSIEVE_EMULATOR_TRACE");
}

/* Frames that come with the batch, as the basis stage stores them. */
static void stored_frames_give_what_computed_ones_give(void **state)
{
    static const int shape_of[] = { 0, 3, 6, 7 };
    static nn_frame_rule rule;
    (void)state;

    nn_frame_rule_make(&rule);
    for (int i = 0; i < 4; i++) {
        fixture f = fixture_open(shape_of[i]);
        float *frames = PL_NEW(f.mem, float, f.made.b.n_pairs *NN_FRAME_FLOATS + 1);
        result want = engine_run(&nn_engine_cuda, &exact, f.model, &f.made.b, f.mem), got;
        for (int32_t p = 0; p < f.made.b.n_pairs; p++)
            nn_frame_make(&rule, f.made.b.vec[f.made.b.pair_edge[p]], 3, frames + p * NN_FRAME_FLOATS);
        f.made.b.frame = frames;
        got = engine_run(&nn_engine_cuda, &exact, f.model, &f.made.b, f.mem);
        results_near(f.model, &f.made.b, &got, &want, 0.2);
        pl_arena_free(f.mem);
    }
}

/* A molecule has the same score alone or among others, before or after larger batches. */
static void a_score_does_not_depend_on_the_batch(void **state)
{
    fixture f = fixture_open(0);
    float *params = PL_NEW(f.mem, float, f.model->n_floats), y[3][16] = { { 0 } };
    const nn_batch first = made_batch_first(&f.made.b);
    nn_engine *e;
    (void)state;

    nn_se3_init(f.model, params, 3);
    DONE(nn_engine_cuda.open(&e, f.model, &exact, &why));
    DONE(nn_engine_cuda.set_params(e, params, &why));
    DONE(nn_engine_cuda.forward(e, &first, false, y[0], &why));
    DONE(nn_engine_cuda.forward(e, &f.made.b, true, y[1], &why));
    DONE(nn_engine_cuda.forward(e, &first, true, y[2], &why));
    assert_memory_equal(y[0], y[1], sizeof(float));
    assert_memory_equal(y[0], y[2], sizeof(float));
    nn_engine_cuda.close(e);
    pl_arena_free(f.mem);
}

static double wall(int threads)
{
    struct timespec t;

    (void)threads;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Little memory for tables: in exact mode more operations end than there are marks. */
static void times_of_operations_are_parts_of_the_step(void **state)
{
    static const nn_engine_conf conf[] = {
        { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.02 },
        { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.02, .of_radial = NN_PREC_BF16, .of_contract = NN_PREC_BF16 },
        { .threads = 1, .radial = NN_RADIAL_EXACT }
    };
    (void)state;

    setenv("MOLSIEVE_CUDA_TABLE_KB", "1", 1);
    for (int i = 0; i < 3; i++) {
        fixture f = fixture_open(0);
        nn_op_clock clock = { .now = wall };
        result plain, timed;
        double from, sum = 0, step;
        if (conf[i].radial == NN_RADIAL_EXACT) /* more pairs, each with tables of its own */
            f.made = made_batch_new(&(made_opts){ 10, 7, 6, 4, 2.0, false, 1 }, f.mem);
        plain = engine_run(&nn_engine_cuda, &conf[i], f.model, &f.made.b, f.mem);
        from = wall(1);
        watched = &clock;
        timed = engine_run(&nn_engine_cuda, &conf[i], f.model, &f.made.b, f.mem);
        watched = NULL;
        step = wall(1) - from;
        same_bytes(&f, &plain, &timed);
        for (int k = 0; k < NN_OPS; k++) {
            assert_true(clock.seconds[k] > 0);
            sum += clock.seconds[k];
        }
        assert_true(sum <= step * (1 + 1e-5)); /* the device's times have 24 bits */
        assert_true(clock.radial_rows > 0);
        pl_arena_free(f.mem);
    }
    unsetenv("MOLSIEVE_CUDA_TABLE_KB");
}

static void a_missing_driver_or_plugin_is_named_in_one_sentence(void **state)
{
    const char *plugins = getenv("MOLSIEVE_PLUGINS");
    char *keep = plugins != NULL ? strdup(plugins) : NULL, folder[] = "/tmp/molsieve-test-XXXXXX", path[64];
    FILE *broken;
    pl_code code;
    pl_error err = { 0 };
    (void)state;

    setenv("MOLSIEVE_EMULATOR_NO_DRIVER", "1", 1);
    if (nn_engine_cuda.check(&exact, &err) != PL_OK) /* the real plugin on a real GPU has a driver */
        assert_non_null(strstr(err.text, "driver"));
    unsetenv("MOLSIEVE_EMULATOR_NO_DRIVER");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libmolsieve_cuda.so", folder);
    broken = fopen(path, "w");
    assert_non_null(broken);
    fclose(broken);
    setenv("MOLSIEVE_PLUGINS", folder, 1);
    code = nn_engine_cuda.check(&exact, &err);
    remove(path);
    remove(folder);
    assert_int_equal(code, PL_ECONFIG);
    assert_non_null(strstr(err.text, path));
    if (keep != NULL)
        setenv("MOLSIEVE_PLUGINS", keep, 1);
    free(keep);
}

static void more_heads_than_a_kernel_counts_are_refused(void **state)
{
    const nn_se3_conf conf = { .layers = 1,
                               .degrees = 1,
                               .channels = 512,
                               .heads = 256,
                               .channels_div = 2,
                               .fusion = NN_FUSE_FULL,
                               .node_features = 6,
                               .edge_features = 4,
                               .outputs = 1 };
    pl_arena *mem = pl_arena_new(1 << 16);
    nn_engine *e = NULL;
    pl_error err = { 0 };
    nn_se3 *model;
    (void)state;

    assert_int_equal(nn_se3_plan(&model, &conf, mem, NULL), PL_OK);
    assert_int_equal(nn_engine_cuda.open(&e, model, &exact, &err), PL_ECONFIG);
    assert_string_equal(err.text, "engine cuda: 256 attention heads, at most 255");
    assert_null(e);
    pl_arena_free(mem);
}

static void molecules_without_edges(void **state)
{
    nn_engine_conf conf[] = { { .threads = 1, .radial = NN_RADIAL_EXACT },
                              { .threads = 1, .radial = NN_RADIAL_EXACT, .of_contract = NN_PREC_FP16 } };
    made_opts opts = shapes[0].batch;
    fixture f = fixture_open(0);
    result want;
    (void)state;

    opts.cutoff = 1e-3;
    f.made = made_batch_new(&opts, f.mem);
    assert_int_equal(f.made.b.n_edges, 0);
    want = engine_run(&nn_engine_ref, &exact, f.model, &f.made.b, f.mem);
    for (int i = 0; i < 2; i++) {
        result got = engine_run(&nn_engine_cuda, &conf[i], f.model, &f.made.b, f.mem);
        results_near(f.model, &f.made.b, &got, &want, 1);
    }
    pl_arena_free(f.mem);
}

static void what_only_a_gpu_has_is_refused_elsewhere(void **state)
{
    nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_EXACT, .of_linear = NN_PREC_TF32 };
    pl_error err = { 0 };
    (void)state;

    assert_int_equal(nn_engine_cpu.check(&conf, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, "tf32"));
    assert_int_equal(nn_engine_ref.check(&conf, &err), PL_ECONFIG);
    assert_int_equal(nn_engine_cuda.check(&conf, &err), PL_OK);
}

static void backward_needs_a_forward_that_keeps(void **state)
{
    fixture f = fixture_open(1);
    float *params = PL_NEW(f.mem, float, f.model->n_floats), y[64];
    nn_engine *e;
    (void)state;

    DONE(nn_engine_cuda.open(&e, f.model, &exact, &why));
    DONE(nn_engine_cuda.set_params(e, params, &why));
    DONE(nn_engine_cuda.forward(e, &f.made.b, false, y, &why));
    assert_int_equal(nn_engine_cuda.backward(e, &f.made.b, y, params, NULL), PL_EBUG);
    assert_true(nn_engine_cuda.workspace_bytes(e) > f.model->n_floats * sizeof(float));
    nn_engine_cuda.close(e);
    nn_engine_cuda.close(NULL);
    pl_arena_free(f.mem);
}

/* An argument names the tests to run. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_mode_agrees_with_the_oracle_for_every_shape),
        cmocka_unit_test(radial_nodes_agree_with_the_cpu_engine_on_one_grid),
        cmocka_unit_test(the_coarse_grid_gradient_is_that_of_interpolation),
        cmocka_unit_test(the_order_in_which_threads_run_changes_no_byte),
        cmocka_unit_test(tables_in_pieces_give_the_same_scores_and_gradients),
        cmocka_unit_test(lower_precision_stays_near),
        cmocka_unit_test(gradients_of_fp16_are_near_or_not_finite),
        cmocka_unit_test(a_convolution_in_one_kernel_gives_what_its_parts_give),
        cmocka_unit_test(launches_of_a_block_are_as_documented),
        cmocka_unit_test(stored_frames_give_what_computed_ones_give),
        cmocka_unit_test(a_score_does_not_depend_on_the_batch),
        cmocka_unit_test(times_of_operations_are_parts_of_the_step),
        cmocka_unit_test(a_missing_driver_or_plugin_is_named_in_one_sentence),
        cmocka_unit_test(more_heads_than_a_kernel_counts_are_refused),
        cmocka_unit_test(molecules_without_edges),
        cmocka_unit_test(what_only_a_gpu_has_is_refused_elsewhere),
        cmocka_unit_test(backward_needs_a_forward_that_keeps),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
