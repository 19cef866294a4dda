/* SPDX-License-Identifier: Apache-2.0 */
#include "models/files/model_file_parts.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"
#include "pipeline/base/text.h"

const char *const nn_edges_names[] = { "radius", "bonds", "knn", "full", "topology", "bonds+radius", NULL };
const char *const nn_pooling_names[] = { "max", "mean", "sum", NULL };
const char *const nn_fusion_names[] = { "none", "partial", "full", NULL };
const char *const nn_parity_names[] = { "both", "natural", NULL };
const char *const nn_basis_names[] = { "distance", "bessel", "gaussian", NULL };
const char *const nn_envelope_names[] = { "none", "polynomial", NULL };

const char *nn_edges_name(ch_edges e) { return (int)e >= 0 && e <= CH_EDGES_BONDS_RADIUS ? nn_edges_names[e] : "unknown"; }

bool nn_model_name_fits(const char *s)
{
    size_t n = 0;

    while ((unsigned char)s[n] >= 0x20 && s[n] != 0x7f && n < 200)
        n++;
    return s[n] == '\0';
}

/* Reads one JSON object of the metadata. The first error is kept in err; every later call then does nothing. */
typedef struct reader {
    const nn_tensors *all;
    const char *section;
    json_t *root;
    int version; /* format_version of the file */
    pl_arena *mem;
    pl_code code;
    pl_error *err;
} reader;

static void section_open(reader *r, const char *section)
{
    const char *text = nn_tensors_meta(r->all, section);
    json_error_t why;

    json_decref(r->root);
    r->root = NULL;
    r->section = section;
    if (r->code != PL_OK)
        return;
    if (text == NULL)
        r->code = pl_fail(r->err, PL_EDATA, "metadata has no %s: not a model file of this program", section);
    else if ((r->root = json_loads(text, JSON_REJECT_DUPLICATES, &why)) == NULL)
        r->code = pl_fail(r->err, PL_EDATA, "metadata %s is not JSON: %.100s", section, why.text);
    else if (!json_is_object(r->root))
        r->code = pl_fail(r->err, PL_EDATA, "metadata %s is not a JSON object", section);
}

static json_t *member(reader *r, const char *key)
{
    json_t *value = r->code != PL_OK ? NULL : json_object_get(r->root, key);

    if (r->code == PL_OK && value == NULL)
        r->code = pl_fail(r->err, PL_EDATA, "metadata %s has no %s", r->section, key);
    return value;
}

static void wrong_type(reader *r, const char *key, const char *wanted)
{
    if (r->code == PL_OK)
        r->code = pl_fail(r->err, PL_EDATA, "metadata %s.%s is not %s", r->section, key, wanted);
}

static double get_real(reader *r, const char *key)
{
    json_t *value = member(r, key);

    if (!json_is_number(value) || !isfinite(json_number_value(value))) {
        wrong_type(r, key, "a number");
        return 0.0;
    }
    return json_number_value(value);
}

static int32_t get_int(reader *r, const char *key)
{
    json_t *value = member(r, key);
    json_int_t n = json_integer_value(value);

    if (!json_is_integer(value) || n < 0 || n > 1 << 30) {
        wrong_type(r, key, "a whole number from 0");
        return 0;
    }
    return (int32_t)n;
}

static bool get_bool(reader *r, const char *key)
{
    json_t *value = member(r, key);

    if (!json_is_boolean(value))
        wrong_type(r, key, "true or false");
    return json_is_true(value);
}

static const char *get_text(reader *r, const char *key)
{
    json_t *value = member(r, key);
    const char *text = json_is_string(value) ? pl_strdup(r->mem, json_string_value(value)) : NULL;

    if (!json_is_string(value))
        wrong_type(r, key, "a text");
    else if (text == NULL && r->code == PL_OK)
        r->code = pl_fail(r->err, PL_ENOMEM, "metadata of a model");
    return text != NULL ? text : "";
}

static int32_t get_choice(reader *r, const char *key, const char *const *names)
{
    const char *text = get_text(r, key);

    for (int32_t k = 0; names[k] != NULL; k++)
        if (!strcmp(text, names[k]))
            return k;
    if (r->code == PL_OK)
        r->code = pl_fail(r->err, PL_EDATA, "metadata %s.%s: %.50s is not known", r->section, key, text);
    return 0;
}

/* Models without a network say how many targets there are by their list. */
static void outputs_count(reader *r, nn_se3_conf *c)
{
    section_open(r, "target");
    c->outputs = (int32_t)json_array_size(json_object_get(r->root, "targets"));
}

/* Absent in models that read the distance itself and have no envelope. */
static void take_radial(reader *r, nn_radial_conf *c)
{
    json_t *section = r->root;

    r->root = section != NULL ? json_object_get(section, "radial") : NULL;
    if (r->root != NULL) {
        c->basis = get_choice(r, "basis", nn_basis_names);
        c->envelope = get_choice(r, "envelope", nn_envelope_names);
        c->number = c->basis != NN_BASIS_DISTANCE ? get_int(r, "number") : 0;
        c->cutoff = get_real(r, "cutoff");
    }
    r->root = section;
}

/* true, false, or from format 6 on "gate". */
static int32_t take_norm(reader *r)
{
    static const char *const gate[] = { "gate", NULL };

    if (r->version < 6 || !json_is_string(json_object_get(r->root, "norm")))
        return get_bool(r, "norm") ? NN_NORMS_SE3 : NN_NORMS_NONE;
    (void)get_choice(r, "norm", gate);
    return NN_NORMS_GATE;
}

static void take_conf(reader *r, nn_se3_conf *c)
{
    if (r->version >= 4 && nn_tensors_meta(r->all, "model") == NULL) {
        outputs_count(r, c);
        return;
    }
    section_open(r, "model");
    c->layers = get_int(r, "layers");
    c->degrees = get_int(r, "degrees");
    c->channels = get_int(r, "channels");
    c->heads = get_int(r, "heads");
    c->channels_div = get_int(r, "channels_div");
    c->norm = take_norm(r);
    c->layer_norm = get_bool(r, "layer_norm");
    c->pooling = get_choice(r, "pooling", nn_pooling_names);
    c->fusion = get_choice(r, "fusion", nn_fusion_names);
    c->outputs = get_int(r, "outputs");
    c->parity =
        r->root != NULL && json_object_get(r->root, "parity") != NULL ? get_choice(r, "parity", nn_parity_names) : NN_PARITY_BOTH;
    if (r->version >= 6)
        take_radial(r, &c->radial);
}

/* Absent where there is one. */
static int32_t take_networks(reader *r)
{
    int32_t n;

    if (r->version < 9)
        return 1;
    section_open(r, "model");
    n = get_int(r, "networks");
    if (r->code == PL_OK && (n < 2 || n > NN_NETWORKS_MAX))
        wrong_type(r, "networks", "a number from 2 to 16");
    return n;
}

/* In format 9 absent where nothing is packed. */
static bool take_sparsity(reader *r)
{
    static const char *const words[] = { "2:4", NULL };

    if (r->version < 8)
        return false;
    section_open(r, "model");
    if (r->version > 8 && json_object_get(r->root, "sparsity") == NULL)
        return false;
    (void)get_choice(r, "sparsity", words);
    return r->code == PL_OK;
}

static void take_elements(reader *r, nn_inputs *in)
{
    json_t *list = member(r, "elements");
    size_t n = json_array_size(list);

    if (!json_is_array(list) || n < 1 || n > NN_MAX_ELEMENTS) {
        wrong_type(r, "elements", "a list of 1 to 32 elements");
        return;
    }
    in->n_elements = (int32_t)n;
    for (size_t k = 0; k < n; k++) {
        const char *symbol = json_string_value(json_array_get(list, k));
        int z = symbol != NULL ? ch_element_number(symbol) : 0;
        if (z < 1)
            wrong_type(r, "elements", "a list of chemical symbols");
        in->element[k] = (uint8_t)z;
    }
}

static void take_inputs(reader *r, nn_inputs *in)
{
    section_open(r, "inputs");
    take_elements(r, in);
    in->z = get_bool(r, "z");
    in->charge = get_bool(r, "charge");
    in->bonds = get_bool(r, "bonds");
    in->any_element = json_object_get(r->root, "any_element") != NULL && get_bool(r, "any_element");
    if (r->code == PL_OK && r->version >= 5)
        r->code = nn_extras_take(in, r->root, r->mem, r->err);
    if (r->code == PL_OK && nn_inputs_check(in, r->err) != PL_OK)
        r->code = PL_EDATA;
}

static void take_graph(reader *r, ch_graph_opts *g)
{
    section_open(r, "graph");
    g->edges = (ch_edges)get_choice(r, "edges", nn_edges_names);
    if (ch_edges_within(g->edges)) {
        g->cutoff = (float)get_real(r, "cutoff");
        g->max_neighbours = get_int(r, "max_neighbours");
    }
    if (g->edges == CH_EDGES_KNN)
        g->k = get_int(r, "k");
}

static void take_scale(reader *r, nn_target *t, const nn_inputs *in)
{
    nn_scale *s = &t->scale;
    json_t *offsets;

    s->mean = get_real(r, "mean");
    s->stdev = get_real(r, "std");
    s->constant = get_real(r, "constant");
    offsets = member(r, "offsets");
    if (r->code == PL_OK && !(s->stdev > 0))
        wrong_type(r, "std", "above 0");
    if (!json_is_array(offsets) || json_array_size(offsets) != (size_t)in->n_elements) {
        wrong_type(r, "offsets", "a list with a number for each element");
        return;
    }
    for (int32_t k = 0; k < in->n_elements; k++) {
        json_t *one = json_array_get(offsets, (size_t)k);
        s->offset[k] = json_number_value(one);
        if (!json_is_number(one) || !isfinite(s->offset[k]))
            wrong_type(r, "offsets", "a list of numbers");
    }
}

const char nn_range_section[] = "range"; /* a section that may be missing */
const char nn_lowest_key[] = "similarity_at_least";

static void take_target(reader *r, nn_target *t, const nn_inputs *in)
{
    static const char *const better[] = { "low", "high", "none", NULL };

    t->name = get_text(r, "name");
    t->unit = get_text(r, "unit");
    t->better = better[get_choice(r, "better", better)];
    if (!nn_model_name_fits(t->name) || !t->name[0])
        wrong_type(r, "name", "a name");
    if (!nn_model_name_fits(t->unit))
        wrong_type(r, "unit", "a unit");
    t->lowest = json_object_get(r->root, nn_lowest_key) != NULL ? get_real(r, nn_lowest_key) : 0;
    if (!(t->lowest >= 0 && t->lowest <= 1))
        wrong_type(r, nn_lowest_key, "a similarity");
    if (r->code == PL_OK)
        r->code = nn_own_domain_take(t, r->root, in, r->mem, r->err);
}

static const double MAX = 1e15; /* upper limit of similarities and counts of molecules */

static double band_real(reader *r, const json_t *band, const char *key, double max)
{
    const json_t *value = json_object_get(band, key);

    const double x = json_number_value(value);

    if (json_is_number(value) && x >= 0 && x <= max)
        return x;
    wrong_type(r, key, "a number from 0");
    return 0;
}

static void take_interval(reader *r, nn_target *t, const nn_inputs *in)
{
    nn_conformal *i = &t->interval;
    json_t *bands = member(r, "bands");

    (void)in;
    i->part = get_text(r, "part");
    if (r->code == PL_OK && (!json_is_array(bands) || json_array_size(bands) > NN_BANDS_MAX || !nn_model_name_fits(i->part)))
        wrong_type(r, "bands", "a list of up to 3 bands");
    for (size_t k = 0; k < json_array_size(bands) && r->code == PL_OK; k++) {
        const json_t *band = json_array_get(bands, k);
        i->band[k] = (nn_band){ band_real(r, band, "similarity", MAX), band_real(r, band, "within", DBL_MAX),
                                (int64_t)band_real(r, band, "molecules", MAX) };
        if (r->code == PL_OK && (k ? !(i->band[k].from > i->band[k - 1].from) : i->band[k].from != 0))
            wrong_type(r, "bands", "from 0 on");
        i->n = (int32_t)k + 1;
    }
}

/* Calls `take` for each target, on the open section itself or on the objects of its list. */
static void take_each(reader *r, nn_model_file *m, void (*take)(reader *r, nn_target *t, const nn_inputs *in))
{
    json_t *section = r->root, *list = r->version < 3 ? NULL : member(r, "targets");

    if (r->version < 3) {
        take(r, m->target, &m->inputs);
        return;
    }
    if (r->code == PL_OK && (!json_is_array(list) || json_array_size(list) != (size_t)m->conf.outputs))
        wrong_type(r, "targets", "a list with an object for each output");
    for (int32_t k = 0; k < m->conf.outputs && r->code == PL_OK; k++) {
        r->root = json_array_get(list, (size_t)k);
        take(r, &m->target[k], &m->inputs);
    }
    r->root = section;
}

/* A program that does not know `task` would take the log odds for the target; format version 2 makes it refuse the file. */
static void take_task(reader *r, nn_model_file *m)
{
    static const char *const task[] = { "classification", "denoise", NULL }, *const logistic[] = { "logistic", NULL };
    const bool has_task = r->version == 2 || (r->version >= 3 && json_object_get(r->root, "task") != NULL);

    m->denoises = has_task && get_choice(r, "task", task) == 1;
    m->classifies = has_task && !m->denoises;
    if (m->classifies)
        (void)get_choice(r, "output", logistic);
    if (m->denoises && r->version < 7 && r->code == PL_OK)
        r->code = pl_fail(r->err, PL_EDATA, "metadata target.task: denoise in a model file of format %d", r->version);
}

static void take_targets(reader *r, nn_model_file *m)
{
    const int32_t n = m->conf.outputs;

    if (r->code == PL_OK && (n < 1 || n > NN_TARGETS_MAX || (n > 1 && r->version < 3) || (n == 1 && r->version == 3)))
        r->code = pl_fail(r->err, PL_EDATA, "%d outputs in a model file of format %d; this program reads up to %d", (int)n,
                          r->version, NN_TARGETS_MAX);
    m->target = r->code != PL_OK ? NULL : PL_NEW(r->mem, nn_target, n);
    if (r->code == PL_OK && m->target == NULL)
        r->code = pl_fail(r->err, PL_ENOMEM, "metadata of a model");
    if (r->code != PL_OK)
        return;
    section_open(r, "target");
    take_task(r, m);
    take_each(r, m, take_target);
    section_open(r, "scale");
    take_each(r, m, take_scale);
    if (nn_tensors_meta(r->all, "interval") != NULL) {
        section_open(r, "interval");
        take_each(r, m, take_interval);
    }
    for (int32_t k = 0; k < n * n && r->code == PL_OK; k++)
        if (k / n < k % n && !strcmp(m->target[k / n].name, m->target[k % n].name))
            r->code = pl_fail(r->err, PL_EDATA, "metadata target: two are called %s", m->target[k / n].name);
}

/* A network and offsets of elements would make a wrong number of an element that they do not have. */
static void any_element_check(reader *r, const nn_model_file *m)
{
    bool reads = nn_tensors_meta(r->all, "model") != NULL;

    for (int32_t k = 0; k < m->conf.outputs && r->code == PL_OK; k++)
        for (int32_t e = 0; e < m->inputs.n_elements; e++)
            reads = reads || m->target[k].scale.offset[e] != 0;
    if (r->code == PL_OK && m->inputs.any_element && reads)
        r->code = pl_fail(r->err, PL_EDATA, "metadata inputs.any_element is true, but the model reads elements");
}

/* Files of earlier versions have no range. */
static void take_range(reader *r, nn_range *range)
{
    const char *text = nn_tensors_meta(r->all, nn_range_section);

    *range = (nn_range){ 0 };
    if (r->code == PL_OK && text != NULL)
        r->code = nn_range_take(range, text, r->err);
}

static void take_names(reader *r, nn_model_file *m, bool *other_signs)
{
    const char *format = nn_tensors_meta(r->all, "format"), *version = nn_tensors_meta(r->all, "format_version");
    const char *signs = nn_tensors_meta(r->all, "w3j"), *name = nn_tensors_meta(r->all, "name");

    if (format == NULL || strcmp(format, "molsieve-model") != 0)
        r->code = pl_fail(r->err, PL_EDATA, "not a model file of this program (metadata format is %.40s)",
                          format != NULL ? format : "missing");
    else if (version == NULL || version[0] < '1' || version[0] > '9' || version[1])
        r->code = pl_fail(r->err, PL_EDATA, "model file format %.20s, this program reads 1 to 9", version != NULL ? version : "?");
    else if (name != NULL && !nn_model_name_fits(name))
        r->code = pl_fail(r->err, PL_EDATA, "metadata name is not a name");
    else if (signs == NULL || (strcmp(signs, "e3nn-0.3.3") != 0 && strcmp(signs, "e3nn-0.5") != 0))
        r->code = pl_fail(r->err, PL_EDATA, "metadata w3j is %.40s, not e3nn-0.3.3 or e3nn-0.5", signs != NULL ? signs : "missing");
    if (r->code != PL_OK)
        return;
    *other_signs = !strcmp(signs, "e3nn-0.5");
    m->name = pl_strdup(r->mem, name != NULL ? name : "");
    r->version = version[0] - '0';
    section_open(r, "provenance");
    m->provenance = r->code != PL_OK ? "{}" : pl_strdup(r->mem, nn_tensors_meta(r->all, "provenance"));
    if (r->code == PL_OK && (m->name == NULL || m->provenance == NULL))
        r->code = pl_fail(r->err, PL_ENOMEM, "metadata of a model");
}

static void take_members(reader *r, nn_model_file *m)
{
    const bool network = nn_tensors_meta(r->all, "model") != NULL;

    if (r->version < 4 || (r->version > 4 && network && nn_tensors_meta(r->all, "family") == NULL))
        return;
    section_open(r, "family");
    if (r->code == PL_OK)
        r->code = nn_members_take(&m->members, m->conf.outputs, nn_tensors_meta(r->all, "family"), r->all, r->mem, r->err);
}

pl_code nn_model_meta_take(nn_model_file *m, bool *other_signs, const nn_tensors *all, pl_arena *mem, pl_error *err)
{
    reader r = { .all = all, .mem = mem, .err = err };

    take_names(&r, m, other_signs);
    take_conf(&r, &m->conf);
    m->networks = take_networks(&r);
    m->sparse = take_sparsity(&r);
    take_inputs(&r, &m->inputs);
    take_graph(&r, &m->graph);
    take_targets(&r, m);
    any_element_check(&r, m);
    take_members(&r, m);
    take_range(&r, &m->range);
    if (nn_tensors_meta(all, "model") == NULL)
        nn_model_ignore_sources(m);
    json_decref(r.root);
    m->conf.node_features = nn_inputs_node_features(&m->inputs);
    m->conf.edge_features = nn_inputs_edge_features(&m->inputs);
    return r.code;
}
