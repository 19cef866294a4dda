/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "chem/molecule/element.h"
#include "chem/records/relation.h"
#include "stages/database/measured.h"
#include "stages/steps/dataset/classes.h"
#include "stages/steps/dataset/split.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/ingest/limits.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/train/train.h"

static void elements_check(const st_train_conf *c, const pl_step *step, pl_problems *problems)
{
    const char *const *word = c->model.elements.items;
    nn_inputs in = st_train_inputs(c);
    pl_error err;

    if (st_train_elements_auto(c))
        return;
    for (int32_t k = 0; k < c->model.elements.n; k++)
        if (!ch_element_number(word[k])) {
            pl_problem_add(problems, step->node, "model.elements: %s is not a chemical symbol", word[k]);
            return;
        }
    if (c->model.elements.n > NN_MAX_ELEMENTS)
        pl_problem_add(problems, step->node, "model.elements: %d, at most %d", (int)c->model.elements.n, NN_MAX_ELEMENTS);
    else if (nn_inputs_check(&in, &err) != PL_OK)
        pl_problem_add(problems, step->node, "model.%s", err.text);
}

/* Whether the name can be that of a file, with "-64" appended if there are several members. */
static bool is_file_name(const char *name, int64_t members)
{
    size_t ok = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return name[0] && name[0] != '.' && !name[ok] && nn_model_name_fits(name) && (members == 1 || ok <= 197);
}

static void sharded_check(const st_train_conf *c, const pl_step *step, pl_problems *problems)
{
    const pl_node *optimiser = pl_node_get(step->node, "optimiser");

    if (c->loop.sharded && c->loop.optimiser != NN_ADAMW)
        pl_problem_add(
            problems, pl_node_get(optimiser, "sharded"),
            "optimiser.sharded: %s of whole tensors, but each rank then has only parts of them; use adamw, or sharded: false",
            c->loop.optimiser == NN_LAMB ? "lamb needs norms" : "soap needs bases");
}

static void loss_check(const pl_workflow *wf, const pl_step *step, const st_target *t, pl_problems *problems)
{
    const st_train_conf *c = step->conf;
    const char *label = st_target_label(t);
    bool is_class = st_label_classifies(wf, label);

    if (is_class && !st_train_classifies(c))
        pl_problem_add(problems, step->node,
                       "loss: the label %s is a class (stages.prepare.properties); its loss is bce, or auto%s", label,
                       c->targets.n > 1 ? ", and a model learns classes or numbers, not both" : "");
    if (!is_class && st_train_classifies(c))
        pl_problem_add(problems, step->node,
                       "loss: bce is for a class; stages.prepare needs properties: {%s: {task: classification}}", label);
    if (is_class && (t->factor != 1 || t->transform || t->unit[0]))
        pl_problem_add(problems, step->node, "targets: %s is a class, which has no unit, factor or transform; remove them", label);
}

/* Weights are for classes, and for a model of which a part can use them. */
static void weights_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_train_conf *c = step->conf;
    const st_family f = st_family_of(wf, c, 0);
    bool some = f.network || st_family_may_have_network(c);

    for (int32_t k = 0; k < f.n; k++)
        some = some || f.kind[k]->weighs;
    for (int32_t k = 0; k < c->targets.n && !st_train_classifies(c); k++)
        if (st_train_target(c)[k].class_weight > 0)
            pl_problem_add(problems, step->node, "targets: class_weight is for a class, and %s is none",
                           st_target_label(&st_train_target(c)[k]));
    if (c->class_weights != ST_WEIGHTS_NONE && !st_train_classifies(c))
        pl_problem_add(problems, step->node,
                       "class_weights: the targets are numbers; weights are for classes (task: classification)");
    if (st_train_weighs(c) && !some)
        pl_problem_add(problems, step->node,
                       "class_weights: gp learns without weights; add trees, forest or se3 to family, or remove them");
}

/* Limits are of numbers, and for a model of which a part can use them. */
static void limits_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_family f = st_family_of(wf, step->conf, 0);
    bool some = st_family_may_have_network(step->conf);

    for (int32_t k = 0; k < f.n; k++)
        some = some || f.kind[k]->limits;
    if (!st_limits_wanted(wf))
        return;
    if (st_train_classifies(step->conf))
        pl_problem_add(problems, step->node, "stages.read.censored: bound is for numbers, and the targets are classes; remove it");
    else if (!some)
        pl_problem_add(
            problems, step->node,
            "stages.read.censored: gp and forest learn from measured values alone; add trees or se3 to family, or remove it");
}

/* The label is stated in one unit and the target in another, and nothing says what is between them. */
static void unit_check(const pl_workflow *wf, const pl_step *step, int32_t k, pl_problems *problems)
{
    const st_target *t = st_train_target(step->conf) + k;
    const char *stated = st_label_unit(wf, st_target_label(t)), *by = "stages.prepare.properties";
    const pl_node *list = pl_node_get(step->node, "targets"), *at = list != NULL && k < list->n ? list->item[k] : step->node;
    char added[ST_UNIT_MAX];
    bool by_table = false;
    pl_error err = { 0 };

    if (stated[0] == '\0') {
        if (st_measured_unit(added, &by_table, wf, st_target_label(t), &err) != PL_OK)
            pl_problem_add(problems, at, "%s", err.text);
        stated = added;
        by = "`molsieve label`";
    }
    if (stated[0] != '\0' && t->unit[0] != '\0' &&
        (by_table ? ch_units_contradict(stated, t->unit) : strcmp(stated, t->unit) != 0) && pl_node_get(at, "factor") == NULL)
        pl_problem_add(
            problems, at,
            "targets: the label %s is in %s (%s), and the target %s in %s: say how to convert, factor: .., which is 1 for "
            "two names of one unit",
            st_target_label(t), stated, by, t->name, t->unit);
}

static void target_check(const pl_workflow *wf, const pl_step *step, int32_t k, pl_problems *problems)
{
    const st_target *t = st_train_target(step->conf) + k;

    if (!nn_model_name_fits(t->name) || !nn_model_name_fits(t->unit) || !t->name[0])
        pl_problem_add(problems, step->node, "targets: name and unit are texts of one line, at most 200 bytes");
    for (int32_t i = 0; i < k; i++)
        if (!strcmp(st_train_target(step->conf)[i].name, t->name))
            pl_problem_add(problems, step->node, "targets: two have the name %s; rename one", t->name);
    if (!(t->factor != 0))
        pl_problem_add(problems, step->node, "targets: factor is 0");
    else {
        st_label_check(wf, step, st_target_label(t), problems);
        loss_check(wf, step, t, problems);
        unit_check(wf, step, k, problems);
    }
}

st_label_need st_train_need(const pl_workflow *wf, bool targets_only)
{
    const pl_step *train = wf != NULL ? pl_workflow_step(wf, "train") : NULL;
    st_label_need need = { .targets_only = targets_only, .share = 1 };

    if (train != NULL && !st_train_denoises(train->conf)) {
        need.fewest = st_family_fewest(st_family_of(wf, train->conf, 0));
        need.share = st_split_share(wf);
    }
    return need;
}

/* What a training would refuse after all molecules were prepared. A file that cannot be read is told by others. */
static void labels_check(const pl_workflow *wf, pl_problems *problems)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_text counts = { 0 };
    const st_label_need need = st_train_need(wf, true);

    if (mem == NULL || st_label_scan(wf, &need, problems, &counts, mem, NULL) == PL_ENOMEM)
        pl_problem_refused(problems, pl_workflow_step(wf, "train")->node, NULL);
    pl_text_free(&counts);
    pl_arena_free(mem);
}

/* Adds a problem if a number other than the default is given where it has no effect; settling has put the default back. */
static void radial_idle(const pl_node *radial, const char *key, double dflt, const char *what, pl_problems *problems)
{
    const pl_node *node = pl_node_get(radial, key);
    double x;

    if (node != NULL && node->text != NULL && pl_parse_real(node->text, &x) && x != dflt)
        pl_problem_add(problems, node, "model.radial.%s has no effect without %s; set basis: bessel, or remove it", key, what);
}

/* A basis or an envelope that the graph or the model cannot use. */
static void radial_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_train_conf *c = step->conf;
    const pl_node *radial = pl_node_get(pl_node_get(step->node, "model"), "radial");
    const pl_step *graph = pl_workflow_step(wf, "graph");
    const bool plain = c->model.radial == NN_BASIS_DISTANCE && c->model.radial_envelope == NN_ENVELOPE_NONE;

    if (c->model.radial == NN_BASIS_DISTANCE)
        radial_idle(radial, "number", (double)c->model.radial_number, "a basis", problems);
    if (plain)
        radial_idle(radial, "cutoff", c->model.radial_cutoff, "a basis or an envelope", problems);
    if (radial != NULL && !plain && !st_family_may_have_network(c))
        pl_problem_add(problems, radial, "model.radial is of a network, and family has none; add se3 to family, or remove it");
    if (graph != NULL && !plain && st_graph_ends(graph) && c->model.radial_cutoff > st_graph_reach(graph))
        pl_problem_add(problems, radial != NULL ? radial : step->node,
                       "model.radial.cutoff: %g Angstrom, but edges end at graph.cutoff, %g; use a cutoff of at most that, or a "
                       "larger graph.cutoff",
                       c->model.radial_cutoff, st_graph_reach(graph));
}

void st_train_advise(const pl_workflow *wf, const pl_step *step, pl_problems *advice)
{
    const st_train_conf *c = step->conf;
    const int64_t together = st_compute_channels(&c->compute);
    const int64_t as_long_as = (c->model.channels + together - 1) / together * together;

    (void)wf;
    if (!st_family_may_have_network(c) || as_long_as == c->model.channels)
        return;
    pl_problem_add(advice, pl_node_get(pl_node_get(step->node, "model"), "channels"),
                   "model.channels: %lld take about as long as %lld; this engine computes %lld at a time",
                   (long long)c->model.channels, (long long)as_long_as, (long long)together);
}

/* Noise that no part of the model learns from, or that there is nothing to put on. */
static void noise_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_train_conf *c = step->conf;
    const pl_node *given = pl_node_get(step->node, "noise"), *at = given != NULL ? given : step->node;
    const pl_node *scale = pl_node_get(given, "scale");
    const nn_engine_kind *engine = st_compute_engine(&c->compute);

    if (scale != NULL && pl_node_get(given, "weight") == NULL && !st_train_denoises(c))
        pl_problem_add(problems, scale, "noise.scale has no effect without noise.weight; set a weight, such as 0.1");
    if (c->loop.noise.weight == 0)
        return;
    if (c->loop.noise.scale == 0)
        pl_problem_add(problems, scale != NULL ? scale : at,
                       "noise.scale is 0, so there is no noise to predict; set a scale, such as 0.05, or noise.weight: 0");
    if (!st_family_may_have_network(c))
        pl_problem_add(problems, at, "noise is of a network, and family has none; add se3 to family, or remove it");
    if (st_graph_is_flat(wf))
        pl_problem_add(problems, at, "noise is put on positions, and graphs with edges: topology have none; use other edges%s",
                       st_train_denoises(c) ? "" : ", or noise.weight: 0");
    if (engine->vectors == NULL)
        pl_problem_add(problems, at, "noise: engine %s cannot predict it yet; use engine: cpu, or noise.weight: 0", engine->name);
}

/* A mask needs a trained network and steps after it. */
static void sparsity_check(const pl_step *step, pl_problems *problems)
{
    const st_train_conf *c = step->conf;
    const pl_node *at = pl_node_get(step->node, "sparsity");

    if (c->loop.sparsity == NN_DENSE)
        return;
    if (!st_family_may_have_network(c))
        pl_problem_add(problems, at, "sparsity is of a network, and family has none; add se3 to family, or remove it");
    if (c->start == NULL && c->loop.epochs < 2)
        pl_problem_add(problems, at,
                       "sparsity: weights are pruned after half of the epochs, and there is only one; use at least 2, or start");
    if (st_train_denoises(c))
        pl_problem_add(problems, at,
                       "sparsity: task: denoise makes weights for another training to start from, which prunes its own; remove it");
    if (c->loop.optimiser == NN_SOAP)
        pl_problem_add(problems, at,
                       "sparsity: soap moves all weights of a tensor together, so none would stay 0; use another optimiser.type");
    if (c->loop.eps == 0)
        pl_problem_add(problems, at, "sparsity: the step of a weight that stays 0 needs optimiser.eps above 0, such as 1e-8");
}

/* Settings of targets and of their errors, which a training on noise alone does not have. */
static void denoise_check(const pl_step *step, pl_problems *problems)
{
    static const char *const unused[] = { "targets", "loss", "class_weights", "early_stop", "domain" };
    const st_train_conf *c = step->conf;
    const char *const *family = c->family.items;

    for (size_t k = 0; k < sizeof unused / sizeof *unused; k++)
        if (pl_node_get(step->node, unused[k]) != NULL)
            pl_problem_add(problems, pl_node_get(step->node, unused[k]),
                           "%s: task: denoise learns noise alone, without targets and their errors; remove it", unused[k]);
    if (c->inputs.columns.n > 0)
        pl_problem_add(problems, pl_node_get(step->node, "inputs"),
                       "inputs.columns: task: denoise learns from positions alone; remove it");
    for (int32_t k = 0; k < c->family.n; k++)
        if (strcmp(family[k], "se3") != 0)
            pl_problem_add(problems, pl_node_get(step->node, "family"), "family: task: denoise is for a network alone; remove %s",
                           family[k]);
}

/* What a model that predicts learns. */
static void targets_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_train_conf *c = step->conf;
    const pl_node *given = pl_node_get(step->node, "targets");

    if (c->targets.n < 1)
        pl_problem_add(problems, given != NULL ? given : step->node,
                       "stages.train.targets: %s; what to learn, a list such as [{name: ...}]",
                       given != NULL ? "the list is empty" : "required but not given");
    if (c->targets.n > NN_TARGETS_MAX)
        pl_problem_add(problems, step->node, "targets: %d given, a model learns 1 to %d", (int)c->targets.n, NN_TARGETS_MAX);
    for (int32_t k = 0; k < c->targets.n; k++)
        target_check(wf, step, k, problems);
    weights_check(wf, step, problems);
    limits_check(wf, step, problems);
}

void st_train_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_train_conf *c = step->conf;
    nn_inputs one = { .n_elements = 1, .element = { 6 } };
    nn_se3_conf network = st_train_network(c, &one);
    pl_error err;

    network.denoise = c->loop.noise.weight > 0;
    if (st_train_denoises(c))
        denoise_check(step, problems);
    else
        targets_check(wf, step, problems);
    st_family_check(wf, step, problems);
    st_train_inputs_check(step, problems);
    st_compute_check(&c->compute, step, problems);
    if (c->targets.n > 0 && nn_se3_check(&network, &err) != PL_OK)
        pl_problem_add(problems, step->node, "model: %s", err.text);
    if (!is_file_name(st_train_base_name(wf, c), c->members))
        pl_problem_add(problems, step->node, "name: %s cannot be a file name; use at most 200 letters, digits, . _ -",
                       st_train_base_name(wf, c));
    if (c->members * c->targets.n > ST_SCORES_MAX)
        pl_problem_add(problems, step->node, "members: %lld of %d targets each predict more than %d numbers", (long long)c->members,
                       (int)c->targets.n, ST_SCORES_MAX);
    if (c->loop.min_lr > c->loop.lr)
        pl_problem_add(problems, step->node, "optimiser: min_lr %g is above lr %g", c->loop.min_lr, c->loop.lr);
    if (c->loop.budget > 0 && !st_family_may_have_network(c))
        pl_problem_add(problems, pl_node_get(step->node, "budget"),
                       "budget: is of a network, and family has none; add se3 to family, or remove it");
    sharded_check(c, step, problems);
    elements_check(c, step, problems);
    radial_check(wf, step, problems);
    noise_check(wf, step, problems);
    sparsity_check(step, problems);
    st_start_check(wf, step, problems);
    if (problems->n == 0 && !st_train_denoises(c))
        labels_check(wf, problems);
}
