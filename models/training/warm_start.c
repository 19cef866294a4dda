/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/warm_start.h"

#include <string.h>

pl_code nn_warm_start_check(const nn_se3_conf *now, const nn_se3_conf *then, pl_error *err)
{
    const struct {
        const char *name;
        int now, then;
    } same[] = { { "layers", now->layers, then->layers },
                 { "degrees", now->degrees, then->degrees },
                 { "channels", now->channels, then->channels },
                 { "heads", now->heads, then->heads },
                 { "channels_div", now->channels_div, then->channels_div },
                 { "layer_norm", now->layer_norm, then->layer_norm },
                 { "bonds", now->edge_features > 0, then->edge_features > 0 } };
    static const char *const fusion[] = { "none", "partial", "full" }, *const parity[] = { "both", "natural" };
    static const char *const basis[] = { "distance", "bessel", "gaussian" }, *const envelope[] = { "none", "polynomial" };
    static const char *const norm[] = { "false", "true", "gate" };

    for (size_t k = 0; k < sizeof same / sizeof *same; k++)
        if (same[k].now != same[k].then)
            return pl_fail(err, PL_ECONFIG, "model.%s is %d here and %d in the start model", same[k].name, same[k].now,
                           same[k].then);
    if (now->norm != then->norm)
        return pl_fail(err, PL_ECONFIG, "model.norm is %s here and %s in the start model", norm[now->norm], norm[then->norm]);
    if (now->fusion != then->fusion)
        return pl_fail(err, PL_ECONFIG, "model.fusion is %s here and %s in the start model", fusion[now->fusion],
                       fusion[then->fusion]);
    if (now->parity != then->parity)
        return pl_fail(err, PL_ECONFIG, "model.parity is %s here and %s in the start model", parity[now->parity],
                       parity[then->parity]);
    if (!nn_radial_same(&now->radial, &then->radial))
        return pl_fail(err, PL_ECONFIG, "model.radial is not that of the start model: %s, %d functions, envelope %s, cutoff %g",
                       basis[then->radial.basis], (int)nn_radial_inputs(&then->radial), envelope[then->radial.envelope],
                       then->radial.cutoff);
    return PL_OK;
}

/* ---- what is read of an atom --------------------------------------------- */

enum { FEATURES_MAX = NN_MAX_ELEMENTS + 2 + NN_COLUMNS_MAX + CH_N_FEATURES };

/* Index of each feature of `now` among the features of `then`; -1: it has none. Order: elements, z, charge, columns,
 * descriptors. */
typedef struct feature_map {
    int32_t n, n_then, from[FEATURES_MAX];
} feature_map;

static int32_t element_at(const nn_inputs *in, uint8_t z)
{
    for (int32_t k = 0; k < in->n_elements; k++)
        if (in->element[k] == z)
            return k;
    return -1;
}

static int32_t column_at(const nn_inputs *in, const char *name)
{
    for (int32_t k = 0; k < in->n_columns; k++)
        if (strcmp(in->column[k].name, name) == 0)
            return k;
    return -1;
}

/* now's columns and descriptors, which come behind `own` features of an atom in `then`. */
static void extras_map(feature_map *m, const nn_inputs *now, const nn_inputs *then, int32_t own)
{
    for (int32_t k = 0; k < now->n_columns; k++) {
        const int32_t at = column_at(then, now->column[k].name);
        m->from[m->n++] = at >= 0 ? own + at : -1;
    }
    for (int k = 0; k < CH_N_FEATURES && now->descriptors; k++)
        m->from[m->n++] = then->descriptors ? own + then->n_columns + k : -1;
}

static feature_map map_make(const nn_inputs *now, const nn_inputs *then)
{
    feature_map m = { .n_then = nn_inputs_node_features(then) };

    for (int32_t k = 0; k < now->n_elements; k++)
        m.from[m.n++] = element_at(then, now->element[k]);
    if (now->z)
        m.from[m.n++] = then->z ? then->n_elements : -1;
    if (now->charge)
        m.from[m.n++] = then->charge ? then->n_elements + then->z : -1;
    extras_map(&m, now, then, then->n_elements + then->z + then->charge);
    return m;
}

/* A tensor viewed as [outer][lead + features][inner]. */
typedef struct feature_tensor {
    int32_t param;
    size_t outer, lead, inner;
} feature_tensor;

enum { TENSORS_MAX = 2 * NN_DEGREES * NN_DEGREES + 2 };

/* The tensors of the first attention block, which reads the node features. */
static int tensors_list(feature_tensor out[TENSORS_MAX], const nn_se3 *model)
{
    const nn_attention *a = &model->module[0].u.attention;
    int n = 0;

    for (int32_t g = 0; g < a->conv.n_groups; g++) {
        const nn_group *q = &a->conv.group[g];
        out[n++] = (feature_tensor){ q->w2, (size_t)q->c_out, 0, (size_t)q->n_freq * NN_RADIAL_HIDDEN };
    }
    out[n++] = (feature_tensor){ a->query[0], (size_t)a->key.ch[0], 0, 1 };
    out[n++] = (feature_tensor){ a->project[0], (size_t)a->out.ch[0], (size_t)a->value.ch[0], 1 };
    return n;
}

static size_t features_copy(float *to, const float *from, const feature_tensor *t, const feature_map *m)
{
    size_t taken = 0;

    for (size_t o = 0; o < t->outer; o++) {
        float *row = to + o * (t->lead + (size_t)m->n) * t->inner;
        const float *old = from + o * (t->lead + (size_t)m->n_then) * t->inner;
        memcpy(row, old, t->lead * t->inner * sizeof *row);
        taken += t->lead * t->inner;
        for (int32_t k = 0; k < m->n; k++)
            if (m->from[k] >= 0) {
                memcpy(row + (t->lead + (size_t)k) * t->inner, old + (t->lead + (size_t)m->from[k]) * t->inner,
                       t->inner * sizeof *row);
                taken += t->inner;
            }
    }
    return taken;
}

/* ---- all tensors ---------------------------------------------------------- */

static const feature_tensor *find(const feature_tensor *list, int n, int32_t param)
{
    for (int k = 0; k < n; k++)
        if (list[k].param == param)
            return &list[k];
    return NULL;
}

static size_t tensor_copy(float *params, const nn_param *now, const feature_tensor *reads, const feature_map *map,
                          const nn_model_file *from)
{
    int32_t k = nn_se3_find(from->model, now->name);
    const nn_param *then = k < 0 ? NULL : &from->model->param[k];

    if (then == NULL)
        return 0;
    if (reads != NULL) {
        size_t want = reads->outer * (reads->lead + (size_t)map->n_then) * reads->inner;
        return then->size == want ? features_copy(params + now->at, from->params + then->at, reads, map) : 0;
    }
    if (then->size != now->size)
        return 0;
    memcpy(params + now->at, from->params + then->at, now->size * sizeof *params);
    return now->size;
}

size_t nn_warm_start_fill(float *params, const nn_se3 *model, const nn_inputs *inputs, const nn_model_file *from, bool same_targets)
{
    const feature_map map = map_make(inputs, &from->inputs);
    feature_tensor list[TENSORS_MAX];
    const int n = tensors_list(list, model);
    size_t taken = 0;

    for (int32_t k = 0; k < model->n_params; k++)
        if (same_targets || (k != model->head[2] && k != model->head[3]))
            taken += tensor_copy(params, &model->param[k], find(list, n, k), &map, from);
    return taken;
}
