/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"
#include "models/files/model_file_parts.h"
#include "pipeline/base/text.h"

static json_t *json_radial(const nn_radial_conf *c)
{
    json_t *o = json_pack("{s:s, s:s, s:f}", "basis", nn_basis_names[c->basis], "envelope", nn_envelope_names[c->envelope],
                          "cutoff", c->cutoff);

    if (o != NULL && c->basis != NN_BASIS_DISTANCE)
        json_object_set_new(o, "number", json_integer(c->number));
    return o;
}

static json_t *json_conf(const nn_model_file *m)
{
    const nn_se3_conf *c = &m->conf;
    json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:s, s:s, s:i, s:s}", "layers", c->layers, "degrees", c->degrees,
                          "channels", c->channels, "heads", c->heads, "channels_div", c->channels_div, "norm",
                          c->norm != NN_NORMS_NONE, "layer_norm", c->layer_norm, "pooling", nn_pooling_names[c->pooling], "fusion",
                          nn_fusion_names[c->fusion], "outputs", c->outputs, "parity", nn_parity_names[c->parity]);

    if (o != NULL && c->norm == NN_NORMS_GATE)
        json_object_set_new(o, "norm", json_string("gate"));
    if (o != NULL && !nn_radial_is_plain(&c->radial))
        json_object_set_new(o, "radial", json_radial(&c->radial));
    if (o != NULL && m->sparse)
        json_object_set_new(o, "sparsity", json_string("2:4"));
    if (o != NULL && nn_model_networks(m) > 1)
        json_object_set_new(o, "networks", json_integer(nn_model_networks(m)));
    return o;
}

static json_t *json_inputs(const nn_inputs *in)
{
    json_t *list = json_array(), *all;

    for (int32_t k = 0; k < in->n_elements; k++)
        json_array_append_new(list, json_string(ch_element_symbol(in->element[k])));
    all = json_pack("{s:o, s:b, s:b, s:b}", "elements", list, "z", in->z, "charge", in->charge, "bonds", in->bonds);
    if (all != NULL && in->any_element)
        json_object_set_new(all, "any_element", json_true());
    if (all != NULL)
        nn_extras_put(all, in);
    return all;
}

static json_t *json_graph(const ch_graph_opts *g)
{
    if (ch_edges_within(g->edges))
        return json_pack("{s:s, s:f, s:i}", "edges", nn_edges_names[g->edges], "cutoff", (double)g->cutoff, "max_neighbours",
                         g->max_neighbours);
    if (g->edges == CH_EDGES_KNN)
        return json_pack("{s:s, s:i}", "edges", nn_edges_names[g->edges], "k", g->k);
    return json_pack("{s:s}", "edges", nn_edges_names[g->edges]);
}

static json_t *json_scale(const nn_target *t, const nn_inputs *in)
{
    json_t *offsets = json_array();

    for (int32_t k = 0; k < in->n_elements; k++)
        json_array_append_new(offsets, json_real(t->scale.offset[k]));
    return json_pack("{s:f, s:f, s:f, s:o}", "mean", t->scale.mean, "std", t->scale.stdev, "constant", t->scale.constant, "offsets",
                     offsets);
}

static json_t *json_target(const nn_target *t, const nn_inputs *in)
{
    json_t *o = json_pack("{s:s, s:s, s:s}", "name", t->name, "unit", t->unit, "better", t->better);

    (void)in;
    if (o != NULL && t->lowest > 0)
        json_object_set_new(o, nn_lowest_key, json_real(t->lowest));
    return o;
}

static json_t *json_interval(const nn_target *t, const nn_inputs *in)
{
    json_t *bands = json_array();

    (void)in;
    for (int32_t k = 0; k < t->interval.n; k++)
        json_array_append_new(bands, json_pack("{s:f, s:f, s:I}", "similarity", t->interval.band[k].from, "within",
                                               t->interval.band[k].within, "molecules", (json_int_t)t->interval.band[k].n));
    return json_pack("{s:s, s:o}", "part", t->interval.part != NULL ? t->interval.part : "", "bands", bands);
}

static bool has_extras(const nn_model_file *m) { return m->inputs.n_columns > 0 || m->inputs.descriptors; }

/* A network that programs which know formats up to 5 would compute in another way. */
static bool has_new_network(const nn_model_file *m)
{
    return m->model != NULL && (!nn_radial_is_plain(&m->conf.radial) || m->conf.norm == NN_NORMS_GATE);
}

static bool is_packed(const nn_model_file *m) { return m->model != NULL && m->sparse; }

static bool has_list(const nn_model_file *m)
{
    return m->conf.outputs > 1 || m->members.n > 0 || has_extras(m) || has_new_network(m) || m->denoises || is_packed(m) ||
           nn_model_networks(m) > 1;
}

/* The targets as take_each reads them: one object, or a list. */
static json_t *json_each(const nn_model_file *m, json_t *(*make)(const nn_target *t, const nn_inputs *in))
{
    json_t *list;

    if (!has_list(m))
        return make(m->target, &m->inputs);
    list = json_array();
    for (int32_t k = 0; k < m->conf.outputs; k++)
        json_array_append_new(list, make(&m->target[k], &m->inputs));
    return json_pack("{s:o}", "targets", list);
}

/* With what each target has of its own; NULL: memory was refused. */
static json_t *json_targets(const nn_model_file *m, pl_arena *mem)
{
    json_t *all = json_each(m, json_target);
    bool done = all != NULL;

    for (int32_t k = 0; k < m->conf.outputs && done; k++) {
        json_t *one = has_list(m) ? json_array_get(json_object_get(all, "targets"), (size_t)k) : all;
        done = nn_own_domain_put(one, &m->target[k], &m->inputs, mem);
    }
    if (done)
        return all;
    json_decref(all);
    return NULL;
}

/* The value as text in mem; frees the value. NULL: memory was refused. */
static const char *json_text(json_t *value, pl_arena *mem)
{
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    const char *copy = text != NULL ? pl_strdup(mem, text) : NULL;

    free(text);
    json_decref(value);
    return copy;
}

enum { META_KEYS = 13 };

static const char *version_of(const nn_model_file *m)
{
    if (nn_model_networks(m) > 1)
        return "9";
    if (is_packed(m))
        return "8";
    if (m->denoises)
        return "7";
    if (has_new_network(m))
        return "6";
    if (has_extras(m))
        return "5";
    if (m->members.n > 0)
        return "4";
    if (m->conf.outputs > 1)
        return "3";
    return m->classifies ? "2" : "1";
}

/* Returns the number of entries; json: the settings of the members. Sections that do not apply are left out. */
static int meta_fill(nn_meta list[META_KEYS], const nn_model_file *m, const char *const *json, pl_arena *mem)
{
    bool known = false;
    int n = 4;
    json_t *target = json_targets(m, mem);

    list[0] = (nn_meta){ "format", "molsieve-model" };
    if (m->classifies) {
        json_object_set_new(target, "task", json_string("classification"));
        json_object_set_new(target, "output", json_string("logistic"));
    }
    if (m->denoises)
        json_object_set_new(target, "task", json_string("denoise"));
    list[1] = (nn_meta){ "format_version", version_of(m) };
    list[2] = (nn_meta){ "name", m->name };
    list[3] = (nn_meta){ "w3j", "e3nn-0.3.3" };
    if (m->model != NULL)
        list[n++] = (nn_meta){ "model", json_text(json_conf(m), mem) };
    list[n++] = (nn_meta){ "inputs", json_text(json_inputs(&m->inputs), mem) };
    list[n++] = (nn_meta){ "graph", json_text(json_graph(&m->graph), mem) };
    list[n++] = (nn_meta){ "target", json_text(target, mem) };
    list[n++] = (nn_meta){ "scale", json_text(json_each(m, json_scale), mem) };
    list[n++] = (nn_meta){ "provenance", m->provenance };
    if (m->members.n > 0)
        list[n++] = (nn_meta){ "family", nn_members_text(&m->members, json, mem) };
    for (int32_t k = 0; k < m->conf.outputs; k++)
        known = known || m->target[k].interval.n > 0;
    if (known)
        list[n++] = (nn_meta){ "interval", json_text(json_each(m, json_interval), mem) };
    if (m->range.molecules > 0)
        list[n++] = (nn_meta){ nn_range_section, nn_range_text(&m->range, mem) };
    return n;
}

pl_code nn_model_meta_list(const nn_meta **out, int *n, const nn_model_file *m, const char *const *json, pl_arena *mem,
                           pl_error *err)
{
    nn_meta *list = PL_NEW(mem, nn_meta, META_KEYS);

    if (list == NULL)
        return pl_fail(err, PL_ENOMEM, "metadata of a model");
    *n = meta_fill(list, m, json, mem);
    for (int k = 0; k < *n; k++)
        if (list[k].value == NULL)
            return pl_fail(err, PL_ENOMEM, "metadata of a model");
    *out = list;
    return PL_OK;
}

const char *nn_model_metadata(const nn_model_file *m, pl_arena *mem)
{
    nn_meta list[META_KEYS];
    json_t *all = json_object();
    const char **json = NULL;
    nn_tensor *tensor;
    int n;

    if (nn_members_tensors(&tensor, &n, &json, &m->members, mem, NULL) != PL_OK) {
        json_decref(all);
        return NULL;
    }
    n = meta_fill(list, m, json, mem);

    for (int k = 0; k < n; k++) {
        json_t *value = k < 4 ? json_string(list[k].value != NULL ? list[k].value : "")
                              : json_loads(list[k].value != NULL ? list[k].value : "{}", 0, NULL);
        json_object_set_new(all, list[k].key, value != NULL ? value : json_null());
    }
    return json_text(all, mem);
}
