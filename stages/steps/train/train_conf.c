/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/train/train_conf.h"

#include <string.h>

#include "chem/molecule/element.h"
#include "models/domain/domain.h"
#include "pipeline/base/text.h"
#include "stages/steps/dataset/classes.h"
#include "stages/steps/features/graph.h"

#define TARGET(member) offsetof(st_target, member)
static const pl_field target_fields[] = {
    { PL_TEXT, "name", TARGET(name), .flags = PL_REQUIRED, .help = "name of the prediction" },
    { PL_TEXT, "column", TARGET(column), .help = "label to learn, if its name differs" },
    { PL_TEXT, "unit", TARGET(unit), .text = "", .help = "unit of the prediction" },
    { PL_REAL, "factor", TARGET(factor), .dflt = 1,
      .help = "the label is multiplied by this, to change units (27.211386 for hartree to eV)" },
    { PL_CHOICE, "better", TARGET(better), .dflt = 2, .choices = "low|high|none", .help = "which end is better" },
    { PL_CHOICE, "transform", TARGET(transform), .choices = "none|composition",
      .help = "composition: learn the residual of a least-squares fit to the element counts" },
    { PL_REAL, "class_weight", TARGET(class_weight), .min = 0, .max = 1e6, .flags = PL_LATER,
      .help = "of a class: how much a molecule of class 1 counts in training beside one of class 0; 0: as class_weights says" },
    { 0 },
};

#define AT(member) offsetof(st_train_conf, member)

enum { LOSS_AUTO = NN_LOSS_BCE + 1 }; /* settled before any use */
enum { RADIAL_CUTOFF = 5 };           /* Angstrom, where there is no graph */
enum { EPOCHS_USUAL = 100 };

const pl_field st_train_fields[] = {
    { PL_LIST, "targets", AT(targets), .sub = target_fields, .sub_size = sizeof(st_target),
      .help = "what to learn: one target, or several with one network; a molecule needs a value of at least one" },
    { PL_CHOICE, "task", AT(task), .choices = "predict|denoise", .flags = PL_LATER,
      .help =
          "predict: learn targets; denoise: learn noise on positions alone, without labels, from all molecules of the training part; such "
          "a model predicts nothing, and another training starts from it (start)" },
    { PL_TEXT, "name", AT(name), .help = "name of the model and its file; the workflow's if not given" },
    { PL_TEXTS, "family", AT(family), .flags = PL_LATER,
      .help =
          "what the model is the mean of: se3 (the network), trees, gp, forest, or auto: trees and gp for numbers, and forest for "
          "classes, and se3 from 500 molecules if it makes held-out errors smaller; if none: se3" },
    { PL_TEXTS, "inputs.columns", AT(inputs.columns), .flags = PL_LATER,
      .help =
          "numeric columns (data fields) that the model reads besides the molecule, such as temperature: records of one molecule with "
          "other values are observations of their own, kept together by split, and what is predicted needs the same columns" },
    { PL_BOOL, "inputs.descriptors", AT(inputs.descriptors), .flags = PL_LATER,
      .help = "the network also reads the descriptors of the molecule, which other families always read" },
    { PL_INT, "model.layers", AT(model.layers), .dflt = 7, .min = 1, .max = 64, .help = "attention blocks" },
    { PL_INT, "model.degrees", AT(model.degrees), .dflt = 4, .min = 1, .max = NN_DEGREES,
      .help = "number of degrees: 0 to this less 1" },
    { PL_INT, "model.channels", AT(model.channels), .dflt = 32, .min = 1, .max = 512, .help = "channels of each degree" },
    { PL_INT, "model.heads", AT(model.heads), .dflt = 8, .min = 1, .max = 64,
      .help = "attention heads; divides channels / channels_div" },
    { PL_INT, "model.channels_div", AT(model.channels_div), .dflt = 2, .min = 1, .max = 16,
      .help = "values and keys have channels / this" },
    { PL_CHOICE, "model.norm", AT(model.norm), .dflt = NN_NORMS_SE3, .choices = "false|true|gate",
      .help =
          "after each attention block; true: NormSE3, as published; gate: normalised scalars open and close the features of higher "
          "degrees, without NormSE3's kinks" },
    { PL_BOOL, "model.layer_norm", AT(model.layer_norm), .dflt = 1, .help = "layer norm inside the radial networks" },
    { PL_CHOICE, "model.pooling", AT(model.pooling), .dflt = NN_POOL_MAX, .choices = "max|mean|sum",
      .help = "how atoms become a molecule" },
    { PL_CHOICE, "model.fusion", AT(model.fusion), .dflt = NN_FUSE_FULL, .choices = "none|partial|full",
      .help = "how radial networks are shared" },
    { PL_CHOICE, "model.parity", AT(model.parity), .dflt = NN_PARITY_NATURAL, .choices = "both|natural", .flags = PL_LATER,
      .help =
          "natural: mirror images get the same score, by construction; both: the published network, which tells them apart and has "
          "about twice the couplings" },
    { PL_CHOICE, "model.radial.basis", AT(model.radial), .choices = NN_RADIAL_BASIS_WORDS, .flags = PL_LATER,
      .help = "what radial networks read of an edge: distance: the distance itself, as published; bessel, gaussian: "
              "model.radial.number functions of it, up to model.radial.cutoff" },
    { PL_INT, "model.radial.number", AT(model.radial_number), .dflt = 8, .min = NN_RADIAL_MIN, .max = NN_RADIAL_MAX,
      .unit = "functions", .flags = PL_LATER, .help = "of the radial basis" },
    { PL_REAL, "model.radial.cutoff", AT(model.radial_cutoff), .min = 0, .max = 20, .unit = "Angstrom", .flags = PL_LATER,
      .help = "length of the radial basis and end of the envelope; 0: graph.cutoff, which it may not exceed, and 5 where the graph "
              "has none" },
    { PL_CHOICE, "model.radial.envelope", AT(model.radial_envelope), .choices = NN_ENVELOPE_WORDS, .flags = PL_LATER,
      .help = "polynomial: messages fade to 0 at the cutoff, with slope 0, so that the prediction does not jump when an edge "
              "appears; none: as published" },
    { PL_TEXTS, "model.elements", AT(model.elements),
      .help =
          "chemical symbols the model can read; empty or auto: those of the training molecules, at most the 32 that most of them have; a "
          "model without a network and without transform: composition reads any" },
    { PL_BOOL, "model.z", AT(model.z), .dflt = 1, .help = "use the atomic number as an input, beside the one-hot element" },
    { PL_BOOL, "model.charge", AT(model.charge), .help = "use the formal charge as an input" },
    { PL_BOOL, "model.bonds", AT(model.bonds), .dflt = 1, .help = "use the bond type as an input of edges, one-hot" },
    { PL_INT, "batch.molecules", AT(loop.molecules), .dflt = 240, .min = 1, .max = 100000, .unit = "molecules",
      .help = "in a batch" },
    { PL_INT, "batch.max_edges", AT(loop.max_edges), .dflt = 70000, .min = 0, .max = 1e9, .unit = "edges",
      .help = "maximum directed edges in a batch; 0: no limit" },
    { PL_INT, "batch.shards", AT(loop.shards), .dflt = 1, .min = 1, .max = 1024, .unit = "shards",
      .help =
          "parts of a batch whose gradients are summed; also the maximum number of ranks; bit-identical for any number of ranks" },
    { PL_INT, "members", AT(members), .dflt = 1, .min = 1, .max = ST_MEMBERS_MAX, .unit = "networks", .flags = PL_LATER,
      .help =
          "of an ensemble, each with its own initial weights and order of molecules: NAME-1, NAME-2, .. with seed, seed + 1, ..; their "
          "mean is the score" },
    { PL_TEXT, "start", AT(start), .flags = PL_LATER,
      .help =
          "name of a model in the workflow's `models` whose weights this training starts from (fine-tuning); the network must be the "
          "same, elements, features and targets may differ" },
    { PL_INT, "epochs", AT(loop.epochs), .dflt = -1, .min = 1, .max = ST_EPOCHS_MOST, .choices = "auto", .unit = "epochs",
      .help = "passes over the training molecules; auto: 100, or with a budget as many as fit" },
    { PL_DURATION, "budget", AT(loop.budget), .min = 0, .max = 366 * 86400.0, .flags = PL_LATER,
      .help =
          "time for the epochs of all members: after the first epoch their number is set, at most that of `epochs`, so that the "
          "schedule ends in time; 0: no limit" },
    { PL_CHOICE, "optimiser.type", AT(loop.optimiser), .dflt = NN_ADAMW, .choices = "adamw|lamb|soap",
      .help =
          "Adam with decoupled weight decay; LAMB scales the step of each tensor by its norm; SOAP is AdamW in the eigenbases of each "
          "tensor's second moments: fewer epochs, each a little longer; on a GPU its steps run on the processor" },
    { PL_REAL, "optimiser.lr", AT(loop.lr), .dflt = 0.002, .min = 0, .max = 10, .help = "learning rate" },
    { PL_REAL, "optimiser.min_lr", AT(loop.min_lr), .dflt = 0.0002, .min = 0, .max = 10,
      .help = "learning rate at the end of the cosine schedule" },
    { PL_REAL, "optimiser.weight_decay", AT(loop.weight_decay), .dflt = 0.1, .min = 0, .max = 100, .help = "of every parameter" },
    { PL_REAL, "optimiser.beta1", AT(loop.beta1), .dflt = 0.9, .min = 0, .max = 0.999999, .help = "decay of the mean gradient" },
    { PL_REAL, "optimiser.beta2", AT(loop.beta2), .dflt = 0.999, .min = 0, .max = 0.9999999,
      .help = "decay of the mean squared gradient" },
    { PL_REAL, "optimiser.eps", AT(loop.eps), .dflt = 1e-8, .min = 0, .max = 1,
      .help = "added to the root of the mean squared gradient" },
    { PL_REAL, "optimiser.grad_clip", AT(loop.grad_clip), .dflt = 10, .min = 0, .max = 1e9,
      .help = "maximum global norm of the gradient; 0: no maximum" },
    { PL_BOOL, "optimiser.sharded", AT(loop.sharded), .flags = PL_HOW,
      .help =
          "with ranks over NCCL and engine cuda each GPU keeps the moments and the weight average of its own part of the parameters "
          "only: less memory, bit-identical; elsewhere without effect; for adamw only" },
    { PL_CHOICE, "schedule.type", AT(loop.schedule), .dflt = NN_LR_COSINE_EPOCH, .choices = "constant|cosine_epoch|cosine_step",
      .help = "cosine from lr to min_lr, changed every epoch (as in the published code) or every step" },
    { PL_REAL, "schedule.warmup", AT(loop.warmup), .min = 0, .max = 1e6, .unit = "epochs",
      .help = "the learning rate rises from 0 over this many" },
    { PL_CHOICE, "loss", AT(loop.loss), .dflt = LOSS_AUTO, .choices = "l1|l2|bce|auto",
      .help =
          "mean absolute error or mean squared error of the normalised target; binary cross-entropy of a class; auto: bce for a label "
          "with task: classification, else l1" },
    { PL_CHOICE, "class_weights", AT(class_weights), .choices = "none|balanced", .flags = PL_LATER,
      .help =
          "balanced: in training both classes count alike, however few molecules the rare one has; se3, trees and forest use it, gp does "
          "not; probabilities are corrected for it, errors are not weighted" },
    { PL_REAL, "ema", AT(loop.ema), .min = 0, .max = 0.9999999,
      .help = "decay of an exponential moving average of the weights, which becomes the model; 0: no average" },
    { PL_REAL, "noise.scale", AT(loop.noise.scale), .dflt = 0.05, .min = 0, .max = 1, .unit = "Angstrom", .flags = PL_LATER,
      .help = "standard deviation of the noise on each coordinate of the training molecules; used if noise.weight is above 0" },
    { PL_REAL, "noise.weight", AT(loop.noise.weight), .min = 0, .max = 1000, .flags = PL_LATER,
      .help =
          "Noisy Nodes: training molecules get noise on their positions, and the network also learns to predict it; of the mean "
          "squared error of that, in units of noise.scale, beside the loss of the targets; 0: no noise" },
    { PL_INT, "early_stop.patience", AT(loop.patience), .min = 0, .max = 1000000, .unit = "epochs",
      .help = "stop after this many without a better validation error; 0: never" },
    { PL_DURATION, "checkpoint.every", AT(checkpoint_every), .dflt = 600, .min = 1, .max = 86400, .flags = PL_HOW,
      .help = "time between checkpoints; also at the end of an epoch, unless saving takes more than a twentieth of the time" },
    { PL_INT, "domain", AT(domain), .dflt = NN_DOMAIN_MAX, .min = 0, .max = NN_DOMAIN_MAX, .unit = "molecules", .flags = PL_LATER,
      .help = "maximum number of training molecules whose fingerprints the model file keeps, about 40 bytes each; of more, an even "
              "selection is kept, and every similarity is a lower bound; 0: none" },
    { PL_CHOICE, "sparsity", AT(loop.sparsity), .choices = NN_SPARSITY_WORDS, .flags = PL_LATER,
      .help =
          "2:4: after half of the epochs, or with `start` before the first, the weights of every group of four that a product sums over "
          "are pruned to the two largest, and training goes on with these; the model file is about 45 % smaller, and no faster" },
    { PL_CHOICE, "dtype", AT(dtype), .choices = "f32|bf16", .help = "number format in the model file; bf16 halves its size" },
    { PL_INT, "threads", AT(threads), .dflt = -1, .min = 1, .max = 256, .choices = "auto", .flags = PL_HOW,
      .help = "auto: as many as the run has workers; bit-identical for any number" },
    ST_COMPUTE_FIELDS(st_train_conf),
    { PL_BOOL, "recompute", AT(recompute), .flags = PL_HOW,
      .help = "compute messages, norms and folded weights again in the backward pass: half the memory, more time, bit-identical" },
    { PL_BOOL, "evaluate_beside", AT(beside), .dflt = 1, .flags = PL_HOW,
      .help =
          "on a GPU, evaluate validation and test molecules during the steps of the next epoch: less time, more memory (that of "
          "scoring), bit-identical" },
    { PL_CHOICE, "ranks", AT(ranks), .dflt = ST_RANKS_AUTO, .choices = ST_RANKS_WORDS, .flags = PL_HOW,
      .help =
          "processes that train together; auto: if a launcher started several, over NCCL on GPUs, else over its MPI, else TCP" },
    { PL_DURATION, "rank_timeout", AT(rank_timeout), .dflt = 60, .min = 1, .max = 86400, .flags = PL_HOW,
      .help = "how long a rank waits for the others before all end with status 7" },
    { 0 },
};

const st_target *st_train_target(const st_train_conf *c) { return c->targets.items; }

const st_target *st_train_target_named(const st_train_conf *c, const char *name)
{
    for (int32_t k = 0; k < c->targets.n; k++)
        if (strcmp(st_train_target(c)[k].name, name) == 0)
            return &st_train_target(c)[k];
    return NULL;
}

pl_code st_train_learned(st_train_conf *out, const st_train_conf *c, const nn_model_file *m, const char *path, pl_arena *mem,
                         pl_error *err)
{
    st_target *target = PL_NEW(mem, st_target, m->conf.outputs + 1);

    *out = *c;
    if (target == NULL)
        return pl_fail(err, PL_ENOMEM, "targets");
    for (int32_t k = 0; k < m->conf.outputs; k++) {
        const st_target *one = st_train_target_named(c, m->target[k].name);
        if (one == NULL)
            return pl_fail(err, PL_EDATA, "%s predicts %s, which is no target of the workflow", path, m->target[k].name);
        target[k] = *one;
    }
    out->targets = (pl_list){ .items = target, .n = m->conf.outputs };
    return PL_OK;
}

const char *st_target_label(const st_target *t) { return t->column != NULL ? t->column : t->name; }

bool st_target_converts(const st_target *t) { return t->factor != 1 && !strcmp(st_target_label(t), t->name); }

const st_wanted_label *st_train_labels(const st_train_conf *c, bool limits, pl_arena *mem)
{
    const st_target *t = st_train_target(c);
    st_wanted_label *label = PL_NEW(mem, st_wanted_label, c->targets.n);

    for (int32_t k = 0; label != NULL && k < c->targets.n; k++)
        label[k] = st_train_denoises(c)
                       ? (st_wanted_label){ .none = true }
                       : (st_wanted_label){ .name = st_target_label(&t[k]), .factor = t[k].factor, .limits = limits };
    return label;
}

bool st_train_denoises(const st_train_conf *c) { return c->task == ST_TASK_DENOISE; }

bool st_train_classifies(const st_train_conf *c) { return c->loop.loss == NN_LOSS_BCE; }

/* Of a radial basis, what has an effect; its cutoff is that of the graph if none is given. */
static void radial_settle(const pl_workflow *wf, st_train_conf *c)
{
    const pl_step *graph = pl_workflow_step(wf, "graph");
    st_train_conf dflt;

    pl_fields_default(st_train_fields, &dflt);
    if (c->model.radial == NN_BASIS_DISTANCE)
        c->model.radial_number = dflt.model.radial_number;
    if (c->model.radial == NN_BASIS_DISTANCE && c->model.radial_envelope == NN_ENVELOPE_NONE)
        c->model.radial_cutoff = dflt.model.radial_cutoff;
    else if (c->model.radial_cutoff == 0)
        c->model.radial_cutoff = graph != NULL ? st_graph_reach(graph) : RADIAL_CUTOFF;
}

/* Without a weight the scale has no effect. */
static void noise_settle(st_train_conf *c)
{
    st_train_conf dflt;

    pl_fields_default(st_train_fields, &dflt);
    if (c->loop.noise.weight == 0)
        c->loop.noise.scale = dflt.loop.noise.scale;
}

/* The network keeps its outputs, which learn nothing, so that its plan is that of the training that starts from it. */
static void denoise_settle(st_train_conf *c)
{
    static st_target none = { .name = "noise", .unit = "", .factor = 1, .better = 2 };

    if (!st_train_denoises(c))
        return;
    if (c->targets.n == 0)
        c->targets = (pl_list){ .items = &none, .n = 1 };
    if (c->loop.noise.weight == 0)
        c->loop.noise.weight = 1;
    c->loop.loss = NN_LOSS_L1;
}

void st_train_settle(const pl_workflow *wf, void *conf)
{
    st_train_conf *c = conf;

    radial_settle(wf, c);
    st_compute_settle(&c->compute, false);
    if (c->loop.epochs < 0)
        c->loop.epochs = c->loop.budget > 0 ? ST_EPOCHS_MOST : EPOCHS_USUAL;
    denoise_settle(c);
    noise_settle(c);
    if (c->loop.loss == LOSS_AUTO)
        c->loop.loss = c->targets.n > 0 && st_label_classifies(wf, st_target_label(st_train_target(c))) ? NN_LOSS_BCE : NN_LOSS_L1;
}

bool st_train_weighs(const st_train_conf *c)
{
    bool any = c->class_weights != ST_WEIGHTS_NONE;

    for (int32_t k = 0; k < c->targets.n && !any; k++)
        any = st_train_target(c)[k].class_weight > 0;
    return any && st_train_classifies(c);
}

const char *st_train_base_name(const pl_workflow *wf, const st_train_conf *c)
{
    if (c->name != NULL)
        return c->name;
    return wf->name != NULL ? wf->name : "model";
}

const char *st_train_name(const pl_workflow *wf, const st_train_conf *c, int64_t member, pl_arena *mem)
{
    return c->members > 1 ? pl_sprintf(mem, "%s-%lld", st_train_base_name(wf, c), (long long)member + 1)
                          : st_train_base_name(wf, c);
}

const char *st_train_model_path(const pl_workflow *wf, const pl_step *train, int64_t member, pl_arena *mem)
{
    const char *name = st_train_name(wf, train->conf, member, mem);

    return name != NULL ? pl_sprintf(mem, "%s/models/%s.safetensors", wf->workdir, name) : NULL;
}

/* As in a model file: what is not read is 0. */
static nn_radial_conf radial_of(const st_train_conf *c)
{
    nn_radial_conf r = { .basis = c->model.radial, .envelope = c->model.radial_envelope };

    if (r.basis != NN_BASIS_DISTANCE)
        r.number = (int32_t)c->model.radial_number;
    if (!nn_radial_is_plain(&r))
        r.cutoff = c->model.radial_cutoff;
    return r;
}

nn_se3_conf st_train_network(const st_train_conf *c, const nn_inputs *in)
{
    return (nn_se3_conf){ .layers = (int32_t)c->model.layers,
                          .degrees = (int32_t)c->model.degrees,
                          .channels = (int32_t)c->model.channels,
                          .heads = (int32_t)c->model.heads,
                          .channels_div = (int32_t)c->model.channels_div,
                          .norm = c->model.norm,
                          .layer_norm = c->model.layer_norm,
                          .pooling = c->model.pooling,
                          .fusion = c->model.fusion,
                          .node_features = nn_inputs_node_features(in),
                          .edge_features = nn_inputs_edge_features(in),
                          .outputs = c->targets.n,
                          .parity = c->model.parity,
                          .radial = radial_of(c) };
}

bool st_train_elements_auto(const st_train_conf *c)
{
    const pl_list *list = &c->model.elements;
    const char *const *word = list->items;

    return list->n == 0 || (list->n == 1 && !strcmp(word[0], "auto"));
}

nn_inputs st_train_inputs(const st_train_conf *c)
{
    nn_inputs in = { .z = c->model.z, .charge = c->model.charge, .bonds = c->model.bonds, .descriptors = c->inputs.descriptors };
    const char *const *word = c->model.elements.items, *const *column = c->inputs.columns.items;

    for (int32_t k = 0; !st_train_elements_auto(c) && k < c->model.elements.n && k < NN_MAX_ELEMENTS; k++)
        in.element[in.n_elements++] = (uint8_t)ch_element_number(word[k]);
    for (int32_t k = 0; k < c->inputs.columns.n && k < NN_COLUMNS_MAX; k++)
        in.column[in.n_columns++] = (nn_input_column){ .name = column[k], .unit = "", .at = k };
    return in;
}
