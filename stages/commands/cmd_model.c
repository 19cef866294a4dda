/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/molecule/element.h"
#include "models/files/model_file.h"
#include "models/network/sparse.h"
#include "stages/commands/commands.h"
#include "stages/commands/output/cmd_json.h"
#include "stages/commands/model_diff.h"
#include "stages/commands/model_import.h"
#include "stages/commands/model_join.h"
#include "stages/steps/errors/trust.h"
#include "stages/steps/errors/verdict.h"
#include "stages/steps/ingest/prepare_conf.h"

enum { FILES_SHOWN = 20 }; /* files that it was trained on */

static const pl_opt opts[] = {
    { "--all", 0, NULL, "diff: every tensor that differs, not the ten that differ most" },
    { "--json", 0, NULL, "info: all metadata as JSON" },
    { "--sha256", 0, "HEX", "verify: the file must have this hash" },
    { "--from", 0, "PROGRAM", "import: nvidia" },
    { "--output", 'o', "FILE", "import, join: the model file to write" },
    { "--target", 't', "NAME", "import: what the network predicts" },
    { "--unit", 0, "UNIT", "import: of the predictions, such as eV" },
    { "--mean", 0, "X", "import: mean of the target in the training; added to the output (0)" },
    { "--std", 0, "X", "import: its standard deviation, a factor of the output (1)" },
    { "--graph", 0, "KIND", "import: edges: all (pairs within 20 Angstrom), bonds, or a cutoff (all)" },
    { "--network", 0, "LIST",
      "import: settings unlike those of NVIDIA's training: layers=7, degrees=4, channels=32, heads=8, channels_div=2, norm=true, layer_norm=true, pooling=max, w3j=e3nn-0.3.3; commas between, no blanks" },
    { 0 }
};

/* ---- info ---------------------------------------------------------------- */

static void add_real(pl_text *row, const char *label, const json_t *o, const char *key, const char *unit)
{
    const json_t *value = json_object_get(o, key);

    if (json_is_number(value))
        pl_text_addf(row, "%s%s %.4g%s%s", row->len > 0 ? "; " : "", label, json_number_value(value), unit[0] ? " " : "", unit);
}

static void add_classes(pl_text *row, const json_t *e)
{
    add_real(row, "ROC-AUC", e, "roc_auc", "");
    add_real(row, "PR-AUC", e, "pr_auc", "");
    add_real(row, "EF 1 %", e, "ef1", "");
    add_real(row, "EF 5 %", e, "ef5", "");
    add_real(row, "BEDROC", e, "bedroc20", "");
    add_real(row, "log loss", e, "log_loss", "");
    add_real(row, "Brier", e, "brier", "");
}

/* The number of values, and for a class the largest possible enrichment. */
static void add_size(pl_text *row, const json_t *e)
{
    pl_text_addf(row, " (%lld molecules", (long long)json_integer_value(json_object_get(e, "n")));
    if (json_object_get(e, "actives") != NULL)
        pl_text_addf(row, ", %.0f of class 1; EF at most %.4g and %.4g", json_number_value(json_object_get(e, "actives")),
                     json_number_value(json_object_get(e, "ef1_max")), json_number_value(json_object_get(e, "ef5_max")));
    pl_text_add(row, ")");
}

static double measure_of(const json_t *fit, bool classes)
{
    const json_t *value = json_object_get(fit, classes ? "roc_auc" : "mae");

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Errors on the test part, or on the validation part if there is no test part. */
static void print_verdict(const json_t *errors, const char *unit, bool classes)
{
    const char *part = json_object_get(errors, "test") != NULL ? "test" : "valid", *who;
    const json_t *e = json_object_get(errors, part);
    st_verdict v = st_verdict_of(classes, measure_of(e, classes));
    pl_text text = { 0 };
    json_t *base;

    json_object_foreach(json_object_get(e, "baselines"), who, base)
        st_verdict_compare(&v, who, measure_of(base, classes));
    st_verdict_add(&text, &v, part, unit);
    if (text.len > 0)
        pl_cmd_print("  %s\n", pl_text_str(&text));
    pl_text_free(&text);
}

/* A line for each of `fits`: what the model is the mean of, or simple predictions. */
static void print_others(json_t *fits, const char *unit, pl_text *row, pl_arena *mem)
{
    const char *name;
    json_t *fit;

    json_object_foreach(fits, name, fit) {
        pl_text_reset(row);
        add_real(row, "MAE", fit, "mae", unit);
        add_real(row, "RMSE", fit, "rmse", unit);
        add_classes(row, fit);
        pl_cmd_print("    %-13s  %s\n", st_model_plain(name, mem), pl_text_str(row));
    }
}

/* Errors of the components by domain, and which of them to trust. */
static void print_trust(const json_t *e, const char *part, const char *unit)
{
    st_trust t = st_trust_new(json_object_get(e, "roc_auc") != NULL || json_object_get(e, "brier") != NULL);
    pl_text text = { 0 };

    st_trust_take(&t, json_object_get(e, "domain"));
    st_trust_lines(&text, &t, "    ", unit);
    if (st_trust_known(&t))
        pl_text_add(&text, "    ");
    st_trust_sentence(&text, &t, part, unit);
    if (st_trust_known(&t))
        pl_cmd_print("%s\n", pl_text_str(&text));
    pl_text_free(&text);
}

/* On the parts that it was not trained on. */
static void print_errors(const json_t *errors, const char *unit, pl_arena *mem)
{
    pl_text row = { 0 };
    const char *part;
    json_t *e;

    json_object_foreach((json_t *)errors, part, e) {
        pl_text_reset(&row);
        add_real(&row, "MAE", e, "mae", unit);
        add_real(&row, "RMSE", e, "rmse", unit);
        add_real(&row, "90 % within", e, "interval90", unit);
        add_real(&row, "R2", e, "r2", "");
        add_real(&row, "Spearman", e, "spearman", "");
        add_classes(&row, e);
        add_size(&row, e);
        pl_cmd_print("  %-11s %s\n", st_model_plain(part, mem), pl_text_str(&row));
        print_others(json_object_get(e, "components"), unit, &row, mem);
        print_others(json_object_get(e, "baselines"), unit, &row, mem);
        if (strcmp(part, json_object_get(errors, "test") != NULL ? "test" : "valid") == 0)
            print_trust(e, part, unit);
    }
    pl_text_free(&row);
}

/* The molecules that intervals and range come from, if these are not those of the training. */
static void print_calibration(const json_t *p, pl_arena *mem)
{
    json_t *c = json_object_get(p, "calibration"), *n;
    const char *name;

    if (c == NULL)
        return;
    pl_cmd_print("  calibrated  %s, by workflow %s:", st_model_plain(json_string_value(json_object_get(c, "date")), mem),
                 st_model_plain(json_string_value(json_object_get(c, "workflow")), mem));
    json_object_foreach(json_object_get(c, "molecules"), name, n)
        pl_cmd_print(" %lld molecules with %s", (long long)json_integer_value(n), st_model_plain(name, mem));
    pl_cmd_print("; range and intervals come from these\n");
}

/* A column of the user's table. */
static void print_column(const nn_input_column *c, bool first)
{
    pl_cmd_print("  %-11s %s%s%s%s, %.6g to %.6g, mean %.4g, standard deviation %.4g\n", first ? "columns" : "", c->name,
                 c->unit[0] ? " (" : "", c->unit, c->unit[0] ? ")" : "", c->low, c->high, c->over.mean, c->over.stdev);
}

/* What is read of an atom and a bond. */
static void print_atoms(const nn_model_file *m)
{
    const char *number = m->inputs.z ? ", atomic number" : "";
    const char *charge = m->inputs.charge ? ", formal charge" : "";
    const char *bond = m->inputs.bonds ? ", bond kind" : "";

    if (m->inputs.any_element) {
        pl_cmd_print("  elements    any; one that is rare in the training is outside of the domain\n");
        return;
    }
    pl_cmd_print("  elements   ");
    for (int32_t k = 0; k < m->inputs.n_elements; k++)
        pl_cmd_print(" %s", ch_element_symbol(m->inputs.element[k]));
    pl_cmd_print("\n  inputs      one-hot element%s%s%s\n", number, charge, bond);
}

static void print_graph(const nn_model_file *m)
{
    pl_cmd_print("  graph       %s", nn_edges_name(m->graph.edges));
    if (ch_edges_within(m->graph.edges))
        pl_cmd_print(", cutoff %g Angstrom", (double)m->graph.cutoff);
    if (m->graph.edges == CH_EDGES_KNN)
        pl_cmd_print(", k %d", (int)m->graph.k);
    pl_cmd_print("\n");
    print_atoms(m);
    if (m->inputs.descriptors)
        pl_cmd_print("              the network also reads the %d descriptors of a molecule\n", (int)CH_N_FEATURES);
    for (int32_t k = 0; k < m->inputs.n_columns; k++)
        print_column(&m->inputs.column[k], k == 0);
}

/* What the network learned, if there is one. */
static const char *epochs_words(const json_t *t, pl_arena *mem)
{
    if (json_object_get(t, "epochs") == NULL || json_object_get(t, "best_epoch") == NULL)
        return "";
    return pl_sprintf(mem, ", best of %lld epochs is %lld", (long long)json_integer_value(json_object_get(t, "epochs")),
                      (long long)json_integer_value(json_object_get(t, "best_epoch")));
}

/* The models whose networks it has, with their own errors; that of the mean is not in the file. */
static void print_joined(const json_t *p, const char *unit, pl_arena *mem)
{
    const json_t *one;
    size_t k;

    json_array_foreach(json_object_get(p, "joined"), k, one) {
        const json_t *errors = json_object_get(json_object_get(one, "provenance"), "errors");
        const char *part = json_object_get(errors, "test") != NULL ? "test" : "valid";
        pl_text row = { 0 };

        add_real(&row, "MAE", json_object_get(errors, part), "mae", unit);
        add_real(&row, "RMSE", json_object_get(errors, part), "rmse", unit);
        add_classes(&row, json_object_get(errors, part));
        pl_cmd_print("  %-11s %s, sha256 %.12s", k == 0 ? "joined" : "",
                     st_model_plain(json_string_value(json_object_get(one, "name")), mem),
                     st_model_plain(json_string_value(json_object_get(one, "sha256")), mem));
        if (row.len > 0)
            pl_cmd_print("; alone on %s: %s", part, pl_text_str(&row));
        pl_cmd_print("\n");
        pl_text_free(&row);
    }
}

static void print_training(const json_t *p, pl_arena *mem)
{
    const json_t *t = json_object_get(p, "training"), *told = json_object_get(p, "prepare");
    const json_t *file, *start = json_object_get(p, "start");
    size_t k;

    if (t == NULL)
        return;
    pl_cmd_print("  trained     %s, %lld molecules%s\n", st_model_plain(json_string_value(json_object_get(p, "date")), mem),
                 (long long)json_integer_value(json_object_get(t, "molecules")), epochs_words(t, mem));
    if (json_object_get(p, "molecules") != NULL)
        pl_cmd_print("  molecules   acids and bases %s%s%s\n",
                     st_model_plain(json_string_value(json_object_get(p, "molecules")), mem), told != NULL ? "; " : "",
                     st_prepare_told_words(told));
    if (start != NULL)
        pl_cmd_print("  start       the weights of %s, sha256 %.12s\n",
                     st_model_plain(json_string_value(json_object_get(start, "model")), mem),
                     st_model_plain(json_string_value(json_object_get(start, "sha256")), mem));
    json_array_foreach(json_object_get(p, "data"), k, file)
        if (k < FILES_SHOWN)
            pl_cmd_print("  data        %s\n", st_model_plain(json_string_value(json_object_get(file, "file")), mem));
    if (k > FILES_SHOWN)
        pl_cmd_print("              and %zu more\n", k - FILES_SHOWN);
}

/* With only some of the training molecules in the file, a similarity is a lower bound. */
static void print_domain(const nn_model_file *m)
{
    if (m->domain.n == 0)
        return;
    pl_cmd_print("  domain      %d training molecules; each score gets the similarity to the nearest one", (int)m->domain.n);
    if (m->range.molecules > m->domain.n)
        pl_cmd_print("; a lower bound, as the file has only %d of %lld", (int)m->domain.n, (long long)m->range.molecules);
    pl_cmd_print("\n");
    if (nn_model_shares_similarity(m))
        pl_cmd_print("              with any of the targets, although some molecules lack some of them: train it again\n");
}

/* Of how many a score of the target is the similarity to the nearest. */
static void print_measured(const nn_model_file *m, int32_t target)
{
    const ch_among a = nn_domain_of(&m->domain, target);
    int32_t n = 0;

    for (int32_t i = 0; i < m->domain.n && a.only != NULL; i++)
        n += ch_among_has(&a, i);
    if (a.only != NULL)
        pl_cmd_print("  domain      %d of the %d training molecules\n", (int)n, (int)m->domain.n);
}

static void print_seen(const nn_seen *s)
{
    if (!s->known)
        pl_cmd_print("  also met    molecules not listed: trained by an earlier version\n");
    else if (s->n > 0 || !s->all)
        pl_cmd_print("  also met    %d molecules%s (validation, limits); known to evaluate and calibrate\n", (int)s->n,
                     s->all ? "" : ", not all");
}

static void print_range(const nn_range *r)
{
    const bool all = r->sources == (1u << NN_SOURCES) - 1; /* of a model that reads no positions */
    static const char *const made[NN_SOURCES] = { "from file", "built (MMFF94)", "built (UFF)", "built (MMFF94s)", "none" };

    if (r->molecules == 0) {
        pl_cmd_print(
            "  range       not known: an earlier version trained the model, so its scores have no domain; train it again\n");
        return;
    }
    pl_cmd_print("  range      ");
    for (int k = 0; k < NN_NUMBERS; k++)
        pl_cmd_print("%s %s %d to %d", k ? "," : "", nn_range_words[k], (int)r->low[k], (int)r->high[k]);
    for (int k = 0, n = 0; k < NN_EXPANDED; k++)
        for (int bonds = 0; bonds <= NN_EXPANDED_MAX; bonds++)
            if (r->expanded[k] >> bonds & 1)
                pl_cmd_print("%s %s with %d bonds", n++ ? "," : "; high valences", ch_element_symbol(nn_expanded_z[k]), bonds);
    pl_cmd_print("; acids and bases %s%s", r->form[0] ? r->form : "as they come", all ? "" : "; structures");
    for (int k = 0; k < NN_SOURCES && !all; k++)
        if (r->sources >> k & 1)
            pl_cmd_print(" %s", made[k]);
    pl_cmd_print("\n");
}

static void print_target(const nn_model_file *m, const nn_target *t)
{
    const char *better = strcmp(t->better, "low") == 0 ? ", low is better" : ", high is better";

    pl_cmd_print("%s%s%s%s%s\n", m->classifies ? "the probability of " : "", t->name, t->unit[0] ? ", " : "", t->unit,
                 strcmp(t->better, "none") == 0 ? "" : better);
}

static void print_targets(const nn_model_file *m)
{
    if (m->denoises) {
        pl_cmd_print("  predicts    nothing: it learned noise on positions alone, for a training to start\n"
                     "              from it (stages.train.start)\n");
        return;
    }
    for (int32_t k = 0; k < m->conf.outputs; k++) {
        pl_cmd_print("%s", k ? "              " : "  predicts    ");
        print_target(m, &m->target[k]);
    }
}

/* Targets that nothing could be learned of. */
static void print_left_out(const json_t *provenance)
{
    const char *name, *heading = "  left out    ";
    json_t *why;

    json_object_foreach(json_object_get(provenance, "left_out"), name, why) {
        pl_cmd_print("%s%s: %s\n", heading, name, json_string_value(why) != NULL ? json_string_value(why) : "");
        heading = "              ";
    }
}

/* "  interval    90 % within 1.31 eV; 0.93 eV where the similarity is 0.3 or more". */
static void print_interval(const nn_target *t)
{
    const char *space = t->unit[0] ? " " : "";

    for (int32_t k = 0; k < t->interval.n; k++) {
        const nn_band *b = &t->interval.band[k];
        if (k == 0)
            pl_cmd_print("  interval    90 %% within %.4g%s%s", b->within, space, t->unit);
        else
            pl_cmd_print("; %.4g%s%s where the similarity is %g or more", b->within, space, t->unit, b->from);
    }
    if (t->interval.n > 0 && t->lowest > 0)
        pl_cmd_print("; none below a similarity of %.2f, rounded up", nn_similarity_limit(t->lowest));
    if (t->interval.n > 0)
        pl_cmd_print(" (%s)\n", t->interval.part);
}

/* What the molecules of a target with gaps have, which are not all of the model. */
static void print_own_domain(const nn_model_file *m, const nn_target *t)
{
    if (t->range != NULL)
        print_range(t->range);
    for (int32_t k = 0; k < m->inputs.n_columns && t->columns != NULL; k++)
        pl_cmd_print("  %-11s %s, %.6g to %.6g\n", k == 0 ? "columns" : "", m->inputs.column[k].name, t->columns[k].low,
                     t->columns[k].high);
}

/* The errors of each target; if there are several, under their names. */
static void print_all_errors(const nn_model_file *m, const json_t *provenance, pl_arena *mem)
{
    const json_t *errors = json_object_get(provenance, "errors");

    for (int32_t k = 0; k < m->conf.outputs; k++) {
        const nn_target *t = &m->target[k];
        if (m->conf.outputs > 1)
            pl_cmd_print("%s\n", st_model_plain(t->name, mem));
        print_measured(m, k);
        print_own_domain(m, t);
        print_interval(t);
        print_errors(m->conf.outputs > 1 ? json_object_get(errors, t->name) : errors, t->unit, mem);
        print_verdict(m->conf.outputs > 1 ? json_object_get(errors, t->name) : errors, t->unit, m->classifies);
    }
}

/* Bytes of the weights in the file. */
static size_t weight_bytes(const nn_model_file *m, const nn_sparse_count *packed)
{
    const size_t kept = packed->weights / 2, index = (packed->weights / NN_SPARSE_GROUP + 1) / 2;
    const size_t each = m->bf16 ? 2 : 4;

    return (m->model->n_floats - packed->weights + kept) * each + index;
}

/* Of one of several networks. */
static void print_sparsity(const nn_model_file *m)
{
    const nn_sparse_count c = nn_sparse_count_of(m->model->param, m->model->n_params, m->params), none = { 0 };

    if (!m->sparse)
        return;
    pl_cmd_print("  sparsity    2:4: %zu of %zu weights of %d matrices are 0; %d others are dense\n", c.zeros, c.weights,
                 (int)c.matrices, (int)c.dense);
    pl_cmd_print("              weights take %zu bytes in the file, dense ones %zu\n", weight_bytes(m, &c), weight_bytes(m, &none));
}

static void print_network(const nn_model_file *m)
{
    const nn_se3_conf *c = &m->conf;

    pl_cmd_print("  network     SE(3)-Transformer, %d layers, %d degrees, %d channels, %d heads; %zu parameters as %s\n",
                 (int)c->layers, (int)c->degrees, (int)c->channels, (int)c->heads, m->model->n_floats, m->bf16 ? "bf16" : "f32");
    if (nn_model_networks(m) > 1)
        pl_cmd_print("              the mean of %d such networks\n", (int)nn_model_networks(m));
    print_sparsity(m);
    pl_cmd_print("  parity      %s\n", c->parity == NN_PARITY_NATURAL
                                           ? "natural: mirror images have the same score"
                                           : "both: tells mirror images apart; `score` averages over them (score.mirror)");
    if (c->radial.basis != NN_BASIS_DISTANCE)
        pl_cmd_print("  radial      %d %s functions of distances up to %g Angstrom\n", (int)c->radial.number,
                     c->radial.basis == NN_BASIS_BESSEL ? "Bessel" : "Gaussian", c->radial.cutoff);
    if (c->norm == NN_NORMS_GATE)
        pl_cmd_print("  norm        gate: normalised scalars open and close the features of higher degrees\n");
    if (c->radial.envelope != NN_ENVELOPE_NONE)
        pl_cmd_print("  envelope    polynomial: messages fade to 0 at %g Angstrom\n", c->radial.cutoff);
}

/* What it is the mean of. */
static void print_components(const nn_model_file *m, pl_arena *mem)
{
    if (nn_model_components(m) > 1)
        pl_cmd_print("  mean of     %d components with equal weights:\n", (int)nn_model_components(m));
    for (int32_t k = 0; k < m->members.n; k++) {
        const char *text = m->members.at[k].kind->describe(m->members.at[k].one[0], mem);
        pl_cmd_print("  %-11s %s\n", m->members.at[k].kind->name, text != NULL ? text : "");
    }
    if (m->model != NULL)
        print_network(m);
}

/* Of what it predicts: for which molecules, and how well. */
static void print_scores(const nn_model_file *m, const json_t *provenance, pl_arena *mem)
{
    print_domain(m);
    print_seen(&m->seen);
    print_calibration(provenance, mem);
    print_range(&m->range);
    if (nn_model_shares_range(m))
        pl_cmd_print("              of all targets together, although some molecules lack some of them: train it again\n");
    print_all_errors(m, provenance, mem);
}

static void print_info(const nn_model_file *m, const char *path, pl_arena *mem)
{
    json_t *p = json_loads(m->provenance, 0, NULL);

    pl_cmd_print("%s\n  name        %s\n", path, m->name);
    print_targets(m);
    print_left_out(p);
    print_components(m, mem);
    print_graph(m);
    pl_cmd_print("  sha256      %s\n", m->sha256);
    print_training(p, mem);
    print_joined(p, m->target->unit, mem);
    if (!m->denoises)
        print_scores(m, p, mem);
    json_decref(p);
}

static int print_json(const nn_model_file *m, pl_arena *mem)
{
    json_t *all = json_loads(nn_model_metadata(m, mem), 0, NULL);
    pl_error err = { 0 };
    pl_code code;

    if (all != NULL) {
        json_object_set_new(all, "sha256", json_string(m->sha256));
        json_object_set_new(all, "parameters",
                            json_integer(m->model != NULL ? (json_int_t)(m->model->n_floats * (size_t)nn_model_networks(m)) : 0));
        json_object_set_new(all, "domain", json_integer(m->domain.n));
        json_object_set_new(all, "validation", m->seen.known ? json_integer(m->seen.n) : json_null());
    }
    code = st_json_print(all, 0, &err);
    json_decref(all);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

/* ---- verify -------------------------------------------------------------- */

static int verify(const nn_model_file *m, const char *path, const char *wanted)
{
    pl_error err = { 0 };

    if (wanted != NULL && strcasecmp(wanted, m->sha256) != 0) {
        (void)pl_fail(&err, PL_EDATA, "%s: its sha256 is %s, not %s", path, m->sha256, wanted);
        return pl_cmd_fail(&err);
    }
    pl_cmd_print("%s: good\n", path);
    if (m->model != NULL)
        pl_cmd_print("  %d tensors, %zu finite numbers\n", (int)(m->model->n_params * nn_model_networks(m)),
                     m->model->n_floats * (size_t)nn_model_networks(m));
    for (int32_t k = 0; k < m->members.n; k++)
        pl_cmd_print("  %s\n", m->members.at[k].kind->name);
    print_domain(m);
    pl_cmd_print("  sha256 %s\n", m->sha256);
    pl_cmd_print(m->verified ? "  the checksum in the file is right\n"
                             : "  the file has no checksum: an earlier version or another program wrote it; compare the sha256\n");
    return 0;
}

/* ---- the command --------------------------------------------------------- */

static int run_with(const pl_args *args, pl_arena *mem)
{
    const char *what = args->arg[0];
    bool two = !strcmp(what, "diff"), import = !strcmp(what, "import"), join = !strcmp(what, "join");
    nn_model_file *m, *other;
    pl_error err = { 0 };

    if (!two && !import && !join && strcmp(what, "info") != 0 && strcmp(what, "verify") != 0) {
        const char *near = pl_nearest(what, (const char *const[]){ "info", "verify", "diff", "import", "join" }, 5);
        return pl_cmd_usage(args, "%s: no such action; allowed: info, verify, diff, import, join%s%s%s", what,
                            near != NULL ? "; did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
    }
    if (join && args->n < 3)
        return pl_cmd_usage(args, "model join needs two model files or more");
    if (join)
        return st_model_join(args, mem);
    if (args->n != (two ? 3 : 2))
        return pl_cmd_usage(args, "model %s needs %s", what, two ? "two model files" : "one model file");
    if (import)
        return st_model_import(args, mem);
    if (nn_model_read_any(&m, args->arg[1], mem, &err) != PL_OK)
        return pl_cmd_fail(&err);
    if (two)
        return nn_model_read_any(&other, args->arg[2], mem, &err) != PL_OK
                   ? pl_cmd_fail(&err)
                   : st_model_diff(m, other, pl_arg(args, "--all") != NULL, mem);
    if (!strcmp(what, "verify"))
        return verify(m, args->arg[1], pl_arg(args, "--sha256"));
    if (pl_arg(args, "--json") != NULL)
        return print_json(m, mem);
    print_info(m, args->arg[1], mem);
    return 0;
}

static int run(const pl_app *app, const pl_args *args)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_error err = { 0 };
    int status;

    (void)app;
    if (mem == NULL) {
        (void)pl_fail(&err, PL_ENOMEM, "no memory");
        return pl_cmd_fail(&err);
    }
    status = run_with(args, mem);
    pl_arena_free(mem);
    return status;
}

const pl_cmd st_cmd_model = {
    .name = "model",
    .args = "info|verify|diff|import|join FILE ..",
    .help = "show, verify, compare, import or join model files",
    .about = "info    what it predicts, from which inputs, how it was trained, its errors\n"
             "verify  the file's own checksum, every tensor's name, shape and numbers;\n"
             "        --sha256 HEX also the file's hash\n"
             "diff    settings, provenance and the weights that differ most, relative to the\n"
             "        largest weight of their tensor; exit 1 if they differ\n"
             "import  weights of the published implementation, NVIDIA's SE3Transformer, as\n"
             "        a model file: safetensors with the names of its state_dict; convert a\n"
             "        checkpoint of PyTorch with `python3 -m molsieve.nvidia IN OUT`\n"
             "join    networks of one recipe, trained on the same molecules from other first\n"
             "        weights, as one model that predicts their mean\n"
             "\n"
             "  molsieve model info workflows/models/esol.safetensors\n"
             "  molsieve model diff old.safetensors new.safetensors\n"
             "  molsieve model import homo-weights.safetensors --from nvidia \\\n"
             "      --target homo --unit eV --mean -6.54 --std 0.6 -o homo.safetensors\n"
             "  molsieve model join a.safetensors b.safetensors -o mean.safetensors\n",
    .opts = opts,
    .min_args = 2,
    .run = run,
};
