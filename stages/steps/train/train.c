/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/train/train.h"

#include <string.h>
#include <time.h>

#include "models/family/labels.h"
#include "models/network/sparse.h"
#include "models/training/train.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/base/stop.h"
#include "pipeline/base/text.h"
#include "pipeline/run/progress.h"
#include "pipeline/run/run.h"
#include "stages/steps/dataset/classes.h"
#include "stages/steps/dataset/unseen.h"
#include "stages/steps/errors/calibrate.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/ingest/limits.h"
#include "stages/steps/train/distributed.h"
#include "stages/steps/train/learning.h"
#include "stages/steps/train/train_save.h"

typedef struct train_state {
    pl_env *env; /* store: rank 0 only                              */
    st_team *team, alone;
    const st_train_conf *conf;
    st_train_conf less; /* where targets are left out: conf          */
    st_left *left;
    int32_t n_left, n_rare;
    nn_train_conf loop;
    st_dataset d;
    st_samples train, valid, test;
    nn_inputs inputs;
    nn_model_file m;
    st_family family;
    st_class_weight *weight; /* [targets] */
    nn_se3 *model;
    nn_se3 *keeps; /* the same without its noise head, as in the file */
    const nn_engine_kind *kind;
    nn_engine *engine;
    nn_engine_conf beside;   /* of another, for held-out molecules                */
    nn_train_state s;        /* of the member that learns                       */
    nn_train_state *learned; /* [members] final states; of the arrays only `best` is a separate copy */
    int64_t member;
    nn_model_file *start; /* rank 0, or NULL                                 */
    size_t n_started;     /* numbers that are the start's                    */
    nn_train_host host;
    st_saves saves;      /* rank 0                                          */
    double radial_error; /* the largest that was already warned about       */
    nn_binding near;     /* to the GPU                                      */
    st_learning learning;
} train_state;

enum { RADIAL_STEPS = 200 }; /* between two looks at the grid of radial nodes   */

/* ---- what the loop asks for ---------------------------------------------- */

static bool host_stop(void *ctx)
{
    const train_state *t = ctx;

    return *t->env->stop != 0;
}

static bool host_due(void *ctx, bool epoch_over)
{
    train_state *t = ctx;

    return st_saves_due(&t->saves, t->conf->checkpoint_every, epoch_over, t->s.n);
}

static pl_code host_save(void *ctx, const nn_train_state *s, pl_error *err)
{
    train_state *t = ctx;

    return st_saves_write(&t->saves, s, err);
}

static pl_code host_saved(void *ctx, pl_error *err)
{
    train_state *t = ctx;

    return st_saves_wait(&t->saves, err);
}

static nn_engine *host_beside(void *ctx, pl_error *err)
{
    const train_state *t = ctx;
    nn_engine *second = NULL;

    return t->kind->open(&second, t->model, &t->beside, err) != PL_OK ? NULL : second;
}

static double host_clock(void *ctx)
{
    (void)ctx;
    return pl_clock();
}

static pl_code host_planned(void *ctx, const nn_budget *b, int64_t epochs, pl_error *err)
{
    return st_budget_tell(((const train_state *)ctx)->env, b, epochs, err);
}

static void host_step(void *ctx, const nn_train_state *s, int64_t n_train)
{
    train_state *t = ctx;

    if (s->step % RADIAL_STEPS == 1 && t->kind->radial_error != NULL)
        st_compute_radial(t->env, &t->conf->compute, t->kind->radial_error(t->engine), &t->radial_error);
    st_learning_step(&t->learning, s, n_train);
}

static pl_code host_epoch(void *ctx, const nn_epoch_report *r, pl_error *err)
{
    train_state *t = ctx;

    return st_learning_epoch(&t->learning, r, err);
}

/* ---- setting up ---------------------------------------------------------- */

static void data_close(train_state *t)
{
    st_samples_close(&t->train);
    st_samples_close(&t->valid);
    st_samples_close(&t->test);
    st_dataset_close(&t->d);
}

/* The molecules that have a target. */
static pl_code data_read(train_state *t, pl_error *err)
{
    const st_train_conf *c = t->conf;
    const st_wanted_label *label = st_train_labels(c, st_limits_wanted(t->env->wf), t->env->mem);
    pl_code code;

    if (label == NULL)
        return pl_fail(err, PL_ENOMEM, "targets");
    code = st_dataset_open(&t->d, t->env, label, c->targets.n, &t->team->ranks, err);
    if (code != PL_OK)
        return code;
    if (st_train_classifies(c))
        st_dataset_decided(&t->d);
    t->inputs = st_train_inputs(c);
    t->n_rare = st_train_elements(&t->inputs, &t->d, t->env->wf, c);
    code = st_samples_open(&t->train, &t->d, ST_TRAIN, &t->inputs, err);
    t->family = st_family_of(t->env->wf, c, t->train.n);
    return code;
}

/* Again without the targets that nothing can be learned of, and the molecules that have no other. */
static pl_code data_read_less(train_state *t, pl_error *err)
{
    st_left *left;
    int32_t n;
    pl_code code = st_targets_check(t->env, t->conf, err);

    if (code == PL_OK)
        code = data_read(t, err);
    if (code == PL_OK)
        code = st_targets_leave(&t->less, &left, &n, t->conf, &t->train, st_family_fewest(t->family), t->env->mem, err);
    if (code != PL_OK || n == 0)
        return code;
    t->conf = &t->less;
    t->left = left;
    t->n_left = n;
    data_close(t);
    if (t->env->store != NULL)
        st_targets_left_tell(t->env, left, n);
    return data_read(t, err);
}

static pl_code model_describe(train_state *t, pl_error *err)
{
    static const char *const better[] = { "low", "high", "none" };
    const st_target *target = st_train_target(t->conf);
    const pl_step *graph = pl_workflow_step(t->env->wf, "graph");

    t->m.target = PL_NEW(t->env->mem, nn_target, t->conf->targets.n);
    if (t->m.target == NULL)
        return pl_fail(err, PL_ENOMEM, "targets");
    for (int32_t k = 0; k < t->conf->targets.n; k++)
        t->m.target[k] = (nn_target){ .name = target[k].name, .unit = target[k].unit, .better = better[target[k].better] };
    t->m.classifies = st_train_classifies(t->conf);
    t->m.denoises = st_train_denoises(t->conf);
    t->m.graph = st_graph_opts(graph);
    t->m.bf16 = t->conf->dtype == 1;
    t->m.sparse = t->conf->loop.sparsity != NN_DENSE;
    t->m.conf.outputs = t->conf->targets.n;
    t->learned = PL_NEW(t->env->mem, nn_train_state, t->conf->members);
    return t->learned != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "training");
}

static pl_code data_open(train_state *t, pl_error *err)
{
    pl_code code = data_read_less(t, err);
    const st_train_conf *c = t->conf;

    if (code == PL_OK)
        code = model_describe(t, err);
    t->inputs.descriptors = t->inputs.descriptors && t->family.network;
    if (code == PL_OK)
        code = st_train_inputs_fit(&t->inputs, &t->d, &t->train, t->env->wf, err);
    t->m.inputs = t->inputs;
    if (code == PL_OK)
        code = st_samples_open(&t->valid, &t->d, ST_VALID, &t->inputs, err);
    if (code == PL_OK)
        code = st_samples_open(&t->test, &t->d, ST_TEST, &t->inputs, err);
    if (code == PL_OK)
        code = st_targets_scale(&t->m, c, &t->train, err);
    if (code == PL_OK)
        code = st_targets_weigh(&t->weight, c, &t->train, t->env->mem, err);
    if (code != PL_OK)
        return code;
    st_targets_fill(&t->train, &t->m, t->weight);
    st_targets_fill(&t->valid, &t->m, t->weight);
    st_targets_fill(&t->test, &t->m, t->weight);
    t->host.test = &t->test.samples;
    if (t->env->store != NULL && t->d.n_no_graph)
        pl_event_add(t->env, PL_WARN, "left out: %lld %s without a graph", (long long)t->d.n_no_graph,
                     pl_plural(t->d.n_no_graph, "molecule", "molecules"));
    if (t->env->store != NULL && t->n_rare > 0)
        st_train_elements_tell(t->env, t->train.n_unknown, t->n_rare);
    if (t->env->store != NULL)
        st_targets_tell(t->env, c, &t->train, &t->valid, &t->test);
    return PL_OK;
}

/* Of the network that learns and of the one that is kept, without its noise head, whose parameters come last. */
static pl_code plans_make(train_state *t, pl_arena *mem, pl_error *err)
{
    nn_se3_conf learns = t->m.conf;
    pl_code code = nn_se3_plan(&t->keeps, &t->m.conf, mem, err);

    learns.denoise = t->loop.noise.weight > 0;
    return code != PL_OK ? code : nn_se3_plan(&t->model, &learns, mem, err);
}

static pl_code model_open(train_state *t, pl_error *err)
{
    pl_arena *mem = t->env->mem;
    int threads = t->conf->threads > 0 ? (int)t->conf->threads : t->env->workers;
    nn_engine_conf conf = st_compute_conf(&t->conf->compute, threads);
    nn_launcher launch = nn_launcher_read();
    pl_code code = st_compute_device(&t->conf->compute, &launch, &conf.device, err);

    if (code != PL_OK)
        return code;
    t->near = st_compute_bind(&t->conf->compute, conf.device);
    conf.recompute = t->conf->recompute;
    t->loop.threads = threads;
    t->loop.scale_after = nn_engine_scale_after(&conf);
    t->m.conf = st_train_network(t->conf, &t->inputs);
    code = plans_make(t, mem, err);
    if (code == PL_OK && t->team->ranks.rank == 0)
        code = st_start_open(&t->start, t->env, &t->m.conf, err);
    if (code != PL_OK)
        return code;
    t->m.model = t->keeps;
    st_compute_say(&t->conf->compute, "train");
    t->kind = st_compute_engine(&t->conf->compute);
    t->loop.kernels = st_compute_kernels(&t->conf->compute);
    t->beside = conf;
    t->beside.yields = true;
    if (t->conf->beside && t->valid.samples.n + t->test.samples.n > 0)
        t->host.beside = host_beside;
    return t->kind->open(&t->engine, t->model, &conf, err);
}

/* ---- the stage ----------------------------------------------------------- */

static void state_open(train_state *t, pl_env *env)
{
    t->env = env;
    t->alone.ranks = (nn_ranks){ .kind = &nn_collective_none, .size = 1 };
    t->team = env->team != NULL ? env->team : &t->alone;
    t->conf = env->step->conf;
    t->loop = t->conf->loop;
    t->loop.budget /= (double)t->conf->members; /* the first member decides for all */
    t->loop.prune_first = t->conf->start != NULL;
    t->host = (nn_train_host){ .ctx = t, .stop = host_stop, .ranks = &t->team->ranks };
}

static pl_code train_open(void *state, pl_env *env, pl_error *err)
{
    train_state *t = state;

    (void)err;
    state_open(t, env);
    t->host.due = host_due;
    t->host.save = host_save;
    t->host.saved = host_saved;
    t->host.epoch = host_epoch;
    t->host.step = host_step;
    t->host.clock = host_clock;
    t->host.planned = host_planned;
    return PL_OK;
}

/* Writes the file of member k: its own weights, and what all members share. */
static pl_code member_write(st_trained *out, train_state *t, int64_t k, pl_error *err)
{
    pl_arena *mem = t->env->mem;
    nn_model_file m = t->m;

    m.params = t->learned[k].best;
    m.name = st_train_name(t->env->wf, t->conf, k, mem);
    m.target = PL_NEW(mem, nn_target, t->conf->targets.n);
    if (m.name == NULL || m.target == NULL)
        return pl_fail(err, PL_ENOMEM, "the model file");
    memcpy(m.target, t->m.target, (size_t)t->conf->targets.n * sizeof *m.target);
    if (m.model != NULL)
        st_targets_unweigh(m.params, &m, t->weight);
    nn_model_round(&m);
    *out = (st_trained){ .env = t->env,
                         .m = m,
                         .member = k,
                         .kind = t->kind,
                         .engine = t->engine,
                         .d = &t->d,
                         .train = &t->train,
                         .state = &t->learned[k],
                         .host = &t->host,
                         .start = t->start,
                         .family = &t->family,
                         .conf = t->conf,
                         .left = t->left,
                         .n_left = t->n_left,
                         .weight = t->weight };
    return st_train_write(out, err);
}

static pl_code train_end(train_state *t, pl_error *err)
{
    const int64_t n = t->conf->members;
    st_trained *one = PL_NEW(t->env->mem, st_trained, n);
    st_samples measured; /* near limits alone nothing says how large errors are */
    pl_code code = one != NULL ? st_samples_measured(&measured, &t->train, err) : pl_fail(err, PL_ENOMEM, "training");

    if (code == PL_OK && !t->m.denoises) /* what predicts nothing has no domain */
        code = st_limits_make(&t->m, t->env, &t->d, &measured, t->start, t->conf->domain, err);
    for (int64_t k = 0; k < n && code == PL_OK; k++)
        code = member_write(&one[k], t, k, err);
    if (code == PL_OK)
        code = pl_db_begin(t->env->store->db, err);
    for (int64_t k = 0; k < n && code == PL_OK; k++)
        code = st_train_rows(&one[k], err);
    return code != PL_OK
               ? code
               : st_unseen_put(t->env, &t->d, (1u << ST_PARTS) - 1, &t->inputs, t->m.name != NULL ? t->m.name : one->m.name, err);
}

/* Before a checkpoint is loaded, which replaces it. */
static void start_take(train_state *t)
{
    nn_train_state *s = &t->s;

    if (t->start == NULL)
        return;
    t->n_started = st_start_fill(s->params, &t->m, t->start);
    if (s->ema != NULL)
        memcpy(s->ema, s->params, s->n * sizeof *s->ema);
}

static pl_code start_tell(const train_state *t, pl_error *err)
{
    if (t->start == NULL || t->member || t->s.step || t->s.epoch)
        return PL_OK;
    pl_event_add(t->env, PL_INFO,
                 "training starts from %s: %zu of %zu weights are taken from it; the others are "
                 "new",
                 t->start->name, t->n_started, t->s.n);
    return t->m.denoises ? PL_OK : st_start_met_tell(t->env, &t->d, t->start, err);
}

static void sparsity_tell(const train_state *t)
{
    const nn_sparse_count c = nn_sparse_count_of(t->model->param, t->model->n_params, NULL);

    if (t->loop.sparsity == NN_DENSE || t->member || t->s.step || t->s.epoch)
        return;
    pl_event_add(t->env, PL_INFO,
                 "sparsity 2:4: %d matrices with %zu of %zu weights are pruned %s; %d matrices stay dense (below 8 rows, or k "
                 "below 16 or not a multiple of 4); pruned weights are computed as zeros, at the time of dense ones%s",
                 (int)c.matrices, c.weights, t->keeps->n_floats,
                 t->loop.prune_first ? "before the first epoch" : "after half of the epochs", (int)c.dense,
                 t->kind->training != NULL ? "; the optimiser's steps run on the processor" : "");
}

static pl_code member_begin(train_state *t, int64_t k, pl_error *err)
{
    pl_code code;

    t->member = k;
    t->loop.seed = st_train_seed(t->env, k);
    t->learning = (st_learning){
        .env = t->env, .conf = t->conf, .loop = &t->loop, .m = &t->m, .limits = t->d.limits, .member = k, .valid_error = NAN
    };
    code = k ? nn_train_state_again(&t->s, t->model, t->loop.seed, t->env->mem, err)
             : nn_train_state_alloc(&t->s, t->model, t->loop.ema > 0, t->loop.seed, t->env->mem, err);
    if (code == PL_OK && k == 0)
        code = nn_train_state_bases(&t->s, (nn_optimiser_kind)t->loop.optimiser, t->env->mem, err);
    if (code == PL_OK)
        start_take(t);
    if (k)
        t->s.planned = t->learned[0].planned;
    return code;
}

/* Loads the member's checkpoint, if there is one; for a trained member that is its final state. */
static pl_code member_load(train_state *t, int64_t k, pl_error *err)
{
    pl_code code = st_saves_begin_member(&t->saves, t->env, k, err);

    if (code == PL_OK)
        code = st_saves_load(&t->saves, &t->s, err);
    if (code == PL_OK)
        code = start_tell(t, err);
    if (code == PL_OK)
        sparsity_tell(t);
    return code;
}

static pl_code member_learn(train_state *t, int64_t k, pl_error *err)
{
    pl_code code = member_begin(t, k, err);

    if (code == PL_OK && t->team->ranks.rank == 0)
        code = member_load(t, k, err);
    if (code == PL_OK)
        code = nn_train_state_broadcast(&t->team->ranks, &t->s, err);
    t->team->ranks.patience = t->conf->rank_timeout;
    pl_progress_from(t->env->progress, st_learning_done(&t->learning, &t->s, t->train.samples.n));
    if (code == PL_OK)
        code = nn_train(&t->s, &t->loop, t->kind, t->engine, &t->train.samples, &t->valid.samples, &t->host, err);
    t->learned[k] = t->s;
    return code;
}

/* The work of every rank. */
static pl_code learn(train_state *t, pl_error *err)
{
    pl_code code;

    if (t->team->ranks.rank == 0 && t->team->ranks.size > 1)
        pl_event_add(t->env, PL_INFO, "training with %d ranks", t->team->ranks.size);
    code = data_open(t, err);
    if (code != PL_OK || !t->family.network)
        return code;
    code = model_open(t, err);
    for (int64_t k = 0; k < t->conf->members && code == PL_OK; k++)
        code = member_learn(t, k, err);
    return code;
}

/* Adds the settings to lower to the error. */
static pl_code say_less(const train_state *t, pl_error *err)
{
    const st_train_conf *c = t->conf;
    pl_error what = *err;

    return pl_fail(err, PL_ENOMEM, "%.200s; lower stages.train.batch.molecules (now %lld) or batch.max_edges (now %lld)%s",
                   what.text, (long long)c->loop.molecules, (long long)c->loop.max_edges,
                   c->recompute ? "" : ", or set recompute: true");
}

static pl_code train_finish(void *state, pl_error *err)
{
    train_state *t = state;
    pl_code code = st_team_call(t->team, t->env->wf, t->env->step, err);

    if (code == PL_OK)
        code = learn(t, err);
    if (code == PL_ENOMEM)
        code = say_less(t, err);
    if (code == PL_EDEVICE)
        code = st_saves_tell(&t->saves, err);
    if (code == PL_OK || code == PL_ESTOP || code == PL_ELIMIT) /* all ranks came to the same end */
        t->team->state = ST_TEAM_READY;
    return code != PL_OK ? code : train_end(t, err);
}

static void train_close(void *state)
{
    train_state *t = state;

    st_saves_close(&t->saves);
    if (t->kind != NULL) {
        t->kind->close(t->engine);
        nn_numa_restore(&t->near);
    }
    data_close(t);
}

/* One training on a rank other than 0. */
static pl_code train_along(const pl_workflow *wf, const pl_step *step, st_team *team, int workers, pl_error *err)
{
    pl_env env = { .wf = wf,
                   .step = step,
                   .mem = pl_arena_new(1 << 16),
                   .seed = (uint64_t)wf->seed,
                   .workers = workers,
                   .stop = pl_stop_flag(),
                   .team = team };
    train_state t = { 0 };
    pl_code code;

    if (env.mem == NULL)
        return pl_fail(err, PL_ENOMEM, "a rank");
    state_open(&t, &env);
    code = learn(&t, err);
    train_close(&t);
    pl_arena_free(env.mem);
    return code;
}

pl_code st_train_follow(st_team *team, const pl_workflow *wf, int workers, pl_error *err)
{
    const pl_step *step = pl_workflow_step(wf, "train");
    bool train = true;
    pl_code code = PL_OK;

    while (code == PL_OK && train) {
        code = st_team_wait(team, wf, step, &train, err);
        if (code == PL_OK && train)
            code = train_along(wf, step, team, workers, err);
        if (code == PL_ESTOP || code == PL_ELIMIT) /* so on all ranks; rank 0 reports it */
            code = PL_OK;
    }
    pl_at(err, "rank %d", team->ranks.rank);
    return code;
}

static const char *const needs[] = { "graph", "split", "(basis)", NULL };
static const char *const reset_sql[] = {
    "DELETE FROM model WHERE model_id NOT IN (SELECT model_id FROM prediction) "
    "AND model_id NOT IN (SELECT model_id FROM evaluation)",
    "DELETE FROM property WHERE NOT EXISTS(SELECT 1 FROM label l WHERE l.property_id=property.property_id) AND property_id NOT "
    "IN (SELECT property_id FROM score) AND property_id NOT IN (SELECT property_id FROM evaluation)",
    NULL
};

static pl_code train_missing(const pl_workflow *wf, const pl_step *step, const char **out, pl_arena *mem, pl_error *err)
{
    *out = NULL;
    for (int64_t k = 0; k < ((const st_train_conf *)step->conf)->members && *out == NULL; k++) {
        const char *path = st_train_model_path(wf, step, k, mem);
        if (path == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for a path");
        if (pl_path_is_gone(path))
            *out = path + strlen(wf->workdir) + 1;
    }
    return PL_OK;
}

/* The level of the stage: what the last digits depend on (stages/steps/train/compute.h). */
static const char *train_level(const pl_step *step, pl_arena *mem)
{
    return st_compute_level(&((const st_train_conf *)step->conf)->compute, mem);
}

static const char *const first[] = {
    "targets",      "what to learn, its unit, and which end is better",
    "family",       "auto: the best mean of network, trees and Gaussian process",
    "epochs",       "how long a network learns: plan says what it takes",
    "members",      "3 to 5 networks: smaller errors, and scores with stdev",
    "model.layers", "with model.channels the size of a network: less for few molecules",
    NULL,
};

const pl_stage st_train = {
    .name = "train",
    .help = "fit a model (network, trees, Gaussian process) to labels",
    .scope = PL_WHOLE,
    .version = 1,
    .first = first,
    .fields = st_train_fields,
    .conf_size = sizeof(st_train_conf),
    .state_size = sizeof(train_state),
    .needs = needs,
    .item = "molecules",
    .settle = st_train_settle,
    .wants = st_family_wants,
    .names = st_train_names,
    .check = st_train_check,
    .advise = st_train_advise,
    .key = st_train_key,
    .estimate = st_train_estimate,
    .open = train_open,
    .finish = train_finish,
    .close = train_close,
    .level = train_level,
    .missing = train_missing,
    .reset_sql = reset_sql,
    .uses_seed = true,
    .stays = true,
};
