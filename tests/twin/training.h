/* tests/twin/training.h - whole trainings of small networks on made-up molecules, with any engine. It is included once. */
#ifndef TESTS_TRAINING_H
#define TESTS_TRAINING_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "models/features/feature.h"
#include "models/threads/background_thread.h"
#include "models/training/checkpoint.h"
#include "models/training/train.h"
#include "pipeline/base/rng.h"
#include "tests/twin/requests.h"

enum { TRAIN = 40, VALID = 8, ALL = TRAIN + VALID, EPOCHS = 4 };

static const nn_engine_kind *engine_kind = &nn_engine_cpu;

/* ---- molecules ---- */

typedef struct bench {
    pl_arena *mem;
    ch_graph graph[ALL];
    int32_t edges[ALL], atoms[ALL];
    float target[2 * ALL]; /* [ALL][outputs] */
    float high[2 * ALL];   /* the same; used if limits */
    bool limits;
    nn_inputs inputs;
    nn_se3 *model;
    char dir[64];
    nn_train_conf conf;
    nn_precision precision; /* of linear layers */
} bench;

typedef struct part {
    const bench *b;
    nn_collate *collate[2];
    int64_t first;
} part;

/* Chains of 3 to 8 atoms; the target is their end-to-end distance. */
static inline void molecule_make(bench *b, int i)
{
    static const uint8_t elements[] = { 1, 6, 7, 8 };
    const ch_graph_opts opts = { .edges = CH_EDGES_BONDS };
    pl_rng r = pl_rng_at(11, (uint64_t)i, 0);
    int32_t n = 3 + (int32_t)pl_rng_below(&r, 6);
    pl_error err = { 0 };
    ch_mol m;

    assert_int_equal(ch_mol_alloc(&m, n, n - 1, b->mem, NULL), PL_OK);
    for (int32_t k = 0; k < n; k++) {
        m.z[k] = elements[pl_rng_below(&r, 4)];
        for (int c = 0; c < 3; c++)
            m.xyz[k][c] = (k ? m.xyz[k - 1][c] : 0.0f) + (c == 0 ? 1.0f : 0.6f * (float)pl_rng_normal(&r));
        if (k) {
            m.bond[k - 1][0] = k - 1;
            m.bond[k - 1][1] = k;
            m.order[k - 1] = (uint8_t)(1 + pl_rng_below(&r, 2));
        }
    }
    if (ch_graph_build(&b->graph[i], &m, &opts, b->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    b->edges[i] = b->graph[i].n_edges;
    b->atoms[i] = n;
    b->target[i] = (float)(0.3 * (hypot(hypot(m.xyz[n - 1][0], m.xyz[n - 1][1]), m.xyz[n - 1][2]) - 5.0));
}

static inline int bench_open(void **state)
{
    bench *b = calloc(1, sizeof *b);
    nn_se3_conf conf = { .layers = 2,
                         .degrees = 3,
                         .channels = 8,
                         .heads = 2,
                         .channels_div = 2,
                         .norm = true,
                         .layer_norm = true,
                         .pooling = NN_POOL_SUM,
                         .fusion = NN_FUSE_FULL,
                         .outputs = 1 };

    if (b == NULL || (b->mem = pl_arena_new(1 << 16)) == NULL)
        return 1;
    for (int i = 0; i < ALL; i++)
        molecule_make(b, i);
    b->inputs = (nn_inputs){ .n_elements = 4, .element = { 1, 6, 7, 8 }, .z = true, .bonds = true };
    conf.node_features = nn_inputs_node_features(&b->inputs);
    conf.edge_features = nn_inputs_edge_features(&b->inputs);
    b->conf = (nn_train_conf){ .epochs = EPOCHS,
                               .molecules = 16,
                               .max_edges = 0,
                               .lr = 0.003,
                               .min_lr = 0.001,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = 0.01,
                               .grad_clip = 5,
                               .ema = 0.9,
                               .schedule = NN_LR_COSINE_EPOCH,
                               .loss = NN_LOSS_L1,
                               .seed = 3 };
    if (engine_kind == &nn_engine_cuda) /* less for the emulator */
        conf.degrees = 2, conf.channels = 4;
    strcpy(b->dir, "/tmp/molsieve-engine-XXXXXX");
    if (nn_se3_plan(&b->model, &conf, b->mem, NULL) != PL_OK || mkdtemp(b->dir) == NULL)
        return 1;
    *state = b;
    return 0;
}

static inline int bench_close(void **state)
{
    static const char *const name[] = { "latest", "previous" };
    bench *b = *state;

    for (int k = 0; k < 2; k++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s.ckpt", b->dir, name[k]);
        (void)unlink(path);
    }
    (void)rmdir(b->dir);
    pl_arena_free(b->mem);
    free(b);
    return 0;
}

/* Of the noise of batches: how often the seed changed. */
static struct {
    uint64_t seed;
    int n_seeds, n_noisy_valid;
} noise_seen;

static inline void noise_see(const part *p, nn_which which)
{
    if (!(which.noise > 0))
        return;
    noise_seen.n_noisy_valid += p->first != 0;
    noise_seen.n_seeds += noise_seen.seed != which.seed;
    noise_seen.seed = which.seed;
}

static inline pl_code part_batch(void *ctx, int slot, nn_batch *out, nn_which which, pl_error *err)
{
    part *p = ctx;
    nn_item item[ALL];
    nn_collated c;
    pl_code code;

    if (p->collate[slot] == NULL)
        return pl_fail(err, PL_ENOMEM, "batches");
    noise_see(p, which);
    for (int32_t i = 0; i < which.n; i++)
        item[i] =
            (nn_item){ .graph = &p->b->graph[p->first + which.at[i]], .noise = which.noise, .random = nn_which_random(&which, i) };
    code = nn_collate_run(p->collate[slot], &c, item, which.n, &p->b->inputs, err);
    *out = c.batch;
    return code;
}

/* Losses of training and validation, epoch by epoch, of a whole training. */
typedef struct curve {
    double train[EPOCHS], valid[EPOCHS];
    int n;
} curve;

/* A checkpoint that is written while steps go on. */
typedef struct slow_save {
    nn_background *aside;
    nn_train_state s;
    uint32_t sum;
    int n, changed; /* how many; of which arrays changed before they had been written */
} slow_save;

typedef struct run {
    bench *b;
    curve curve;
    nn_train_state s;
    int64_t polls, stop_at;
    double scale[64]; /* of the loss, after every step */
    int n_scales;
    long before, first, later; /* requests for memory: before a step, in steps of the first epoch, in later steps */
    int64_t steps_later;
    int64_t seconds; /* of a clock for a budget */
    slow_save *slow; /* in place of a checkpoint; or NULL */
    bool beside;     /* with a second engine for the validation molecules */
    const nn_engine_kind *kind;
    nn_noise_sum noise[2];                    /* of the first epoch, of the last */
    double last_valid, first_valid, min_loss; /* of valid; min_loss: of all epochs */
} run;

static inline bool run_stop(void *ctx)
{
    run *r = ctx;

    r->before = n_requests;
    return r->polls++ == r->stop_at;
}

/* Called after a step: only the step is between this and the poll of stop. */
static inline void run_step(void *ctx, const nn_train_state *s, int64_t n_train)
{
    run *r = ctx;

    (void)n_train;
    *(s->epoch ? &r->later : &r->first) += n_requests - r->before;
    r->steps_later += s->epoch > 0;
    if (r->n_scales < 64)
        r->scale[r->n_scales++] = s->scale.by;
}

static inline uint32_t arrays_sum(const nn_train_state *s)
{
    const float *const array[] = { s->params, s->m, s->v, s->ema, s->best };
    uLong sum = crc32_z(0, NULL, 0);

    for (int k = 0; k < 5; k++)
        sum = crc32_z(sum, (const Bytef *)array[k], s->n * sizeof *array[k]);
    return (uint32_t)sum;
}

/* Reads the arrays late, like a writer in the background. */
static inline void slow_run(void *ctx)
{
    slow_save *w = ctx;

    (void)usleep(250000);
    w->changed += arrays_sum(&w->s) != w->sum;
}

static inline pl_code slow_begin(slow_save *w, const nn_train_state *s)
{
    w->changed += nn_background_busy(w->aside);
    w->s = *s;
    w->sum = arrays_sum(s);
    w->n++;
    nn_background_begin(w->aside, slow_run, w);
    return PL_OK;
}

/* Every fourth step, and at the ends of epochs. */
static inline bool slow_due(void *ctx, bool epoch_over)
{
    const run *r = ctx;

    return epoch_over || r->polls % 4 == 0;
}

static inline pl_code run_saved(void *ctx, pl_error *err)
{
    run *r = ctx;

    (void)err;
    nn_background_wait(r->slow->aside);
    return PL_OK;
}

static inline pl_code run_save(void *ctx, const nn_train_state *s, pl_error *err)
{
    run *r = ctx;

    if (r->slow != NULL)
        return slow_begin(r->slow, s);
    return nn_checkpoint_save(r->b->dir, "engine", s, true, err);
}

static inline pl_code run_epoch(void *ctx, const nn_epoch_report *report, pl_error *err)
{
    run *r = ctx;

    (void)err;
    r->last_valid = report->valid.abs / (double)report->valid.n;
    if (r->curve.n < EPOCHS) {
        r->curve.train[r->curve.n] = report->train.loss / (double)report->train.n;
        r->curve.valid[r->curve.n++] = r->last_valid;
    }
    if (report->epoch == 1)
        r->first_valid = r->last_valid;
    r->noise[report->epoch > 1] = report->noise;
    r->min_loss = fmin(report->epoch == 1 ? INFINITY : r->min_loss, report->valid.loss / (double)report->valid.n);
    return PL_OK;
}

static inline nn_engine *run_beside(void *ctx, pl_error *err)
{
    run *r = ctx;
    const nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_EXACT, .of_linear = r->b->precision, .yields = true };
    nn_engine *second = NULL;

    return r->kind->open(&second, r->b->model, &conf, err) != PL_OK ? NULL : second;
}

/* A second later whenever it is read. */
static inline double run_clock(void *ctx) { return (double)((run *)ctx)->seconds++; }

static inline pl_code run_train_err(run *r, const nn_engine_kind *kind, int threads, pl_error *err)
{
    bench *b = r->b;
    part train = { b, { nn_collate_new(), nn_collate_new() }, 0 };
    part valid = { b, { nn_collate_new(), nn_collate_new() }, TRAIN };
    const int32_t outputs = b->model->conf.outputs;
    nn_samples train_s = { &train, TRAIN, b->edges, b->target, part_batch, outputs, b->limits ? b->high : NULL, b->atoms };
    nn_samples valid_s = { &valid, VALID, b->edges + TRAIN, b->target + TRAIN * outputs, part_batch, outputs, NULL, NULL };
    nn_train_host host = {
        .ctx = r, .beside = r->beside ? run_beside : NULL, .stop = run_stop, .save = run_save, .epoch = run_epoch, .step = run_step
    };
    const nn_engine_conf conf = { .threads = threads, .radial = NN_RADIAL_EXACT, .of_linear = b->precision };
    nn_engine *engine = NULL;
    pl_code code = kind->open(&engine, b->model, &conf, err);

    host.saved = r->slow != NULL ? run_saved : NULL;
    host.due = r->slow != NULL ? slow_due : NULL;
    host.clock = run_clock;
    r->kind = kind;
    if (code == PL_OK)
        code = nn_train(&r->s, &b->conf, kind, engine, &train_s, &valid_s, &host, err);
    kind->close(engine);
    for (int i = 0; i < 2; i++) {
        nn_collate_free(train.collate[i]);
        nn_collate_free(valid.collate[i]);
    }
    return code;
}

static inline pl_code run_train(run *r, const nn_engine_kind *kind, int threads)
{
    pl_error err = { 0 };
    pl_code code = run_train_err(r, kind, threads, &err);

    if (code != PL_OK && code != PL_ESTOP)
        fail_msg("%s", err.text);
    return code;
}

static inline run fresh(bench *b, int64_t stop_at)
{
    run r = { .b = b, .stop_at = stop_at };

    assert_int_equal(nn_train_state_alloc(&r.s, b->model, b->conf.ema > 0, b->conf.seed, b->mem, NULL), PL_OK);
    assert_int_equal(nn_train_state_bases(&r.s, (nn_optimiser_kind)b->conf.optimiser, b->mem, NULL), PL_OK);
    return r;
}

static inline void same_weights(const nn_train_state *x, const nn_train_state *y)
{
    assert_memory_equal(x->params, y->params, x->n * sizeof(float));
    assert_memory_equal(x->m, y->m, x->n * sizeof(float));
    assert_memory_equal(x->v, y->v, x->n * sizeof(float));
    assert_memory_equal(x->ema, y->ema, x->n * sizeof(float));
    assert_memory_equal(x->best, y->best, x->n * sizeof(float));
    assert_int_equal(x->n_bases, y->n_bases);
    if (x->n_bases)
        assert_memory_equal(x->bases, y->bases, x->n_bases * sizeof(float));
    assert_int_equal(x->step, y->step);
    assert_int_equal(x->bad_total, y->bad_total);
    assert_true(x->scale.by == y->scale.by && x->scale.good == y->scale.good);
    assert_memory_equal(&x->best_error, &y->best_error, sizeof x->best_error);
}

static inline void curves_near(const curve *got, const curve *want, double tol)
{
    assert_int_equal(got->n, want->n);
    assert_true(want->n >= 1 && want->train[want->n - 1] > 0);
    for (int i = 0; i < want->n; i++) {
        print_message("epoch %d: train %.9g and %.9g, valid %.9g and %.9g\n", i + 1, got->train[i], want->train[i], got->valid[i],
                      want->valid[i]);
        if (!(fabs(got->train[i] - want->train[i]) <= tol * want->train[i]) ||
            !(fabs(got->valid[i] - want->valid[i]) <= tol * want->valid[i]))
            fail_msg("epoch %d: losses %.9g, %.9g, should be %.9g, %.9g", i + 1, got->train[i], got->valid[i], want->train[i],
                     want->valid[i]);
    }
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

#endif
