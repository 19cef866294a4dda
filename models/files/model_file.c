/* SPDX-License-Identifier: Apache-2.0 */
#include "models/files/model_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/files/model_file_parts.h"
#include "models/network/sparse.h"
#include "models/network/w3j.h"
#include "models/optim/loss.h"
#include "models/tensors/safetensors.h"
#include "pipeline/base/file.h"
#include "pipeline/base/sha256.h"

enum { NAME_SIZE = 160 };

bool nn_target_opposed(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, "none") != 0 && strcmp(b, "none") != 0 && strcmp(a, b) != 0;
}

/* ---- reading ------------------------------------------------------------- */

static bool same_shape(const nn_tensor *t, const nn_param *p)
{
    int dims = p->n_dims;

    if (t->n_dims != dims)
        return false;
    for (int k = 0; k < dims; k++)
        if (t->dims[k] != p->dims[k])
            return false;
    return true;
}

static const char *shape_text(char *to, size_t size, const int64_t *dims, int n)
{
    size_t at = 0;

    to[0] = '\0';
    for (int k = 0; k < n && at < size; k++)
        at += (size_t)snprintf(to + at, size - at, "%s%lld", k ? " x " : "", (long long)dims[k]);
    return n ? to : "a single number";
}

static pl_code finite_check(const char *name, const float *x, size_t n, pl_error *err)
{
    for (size_t k = 0; k < n; k++)
        if (!isfinite(x[k]))
            return pl_fail(err, PL_EDATA, "tensor %s: number %zu is not finite", name, k);
    return PL_OK;
}

static pl_code tensor_take(float *params, const nn_tensors *all, const nn_param *p, pl_error *err)
{
    const nn_tensor *t = nn_tensors_find(all, p->name);
    const int64_t want[2] = { p->dims[0], p->dims[1] };
    char a[64], b[64];
    pl_code code;

    if (t == NULL)
        return pl_fail(err, PL_EDATA, "tensor %s is missing", p->name);
    if (!same_shape(t, p))
        return pl_fail(err, PL_EDATA, "tensor %s is %s, the model needs %s", p->name, shape_text(a, sizeof a, t->dims, t->n_dims),
                       shape_text(b, sizeof b, want, p->n_dims));
    if (t->dtype != NN_F32 && t->dtype != NN_BF16)
        return pl_fail(err, PL_EDATA, "tensor %s has type %s, F32 or BF16 is needed", p->name, nn_dtype_name(t->dtype));
    code = nn_tensor_floats(params + p->at, p->size, t, err);
    return code == PL_OK ? finite_check(p->name, params + p->at, p->size, err) : code;
}

/* Parameter k of a network as it is called in the file; name is its memory. */
static nn_param named(char name[NAME_SIZE], const nn_model_file *m, int32_t network, int32_t k)
{
    nn_param p = m->model->param[k];

    if (network > 0) {
        (void)snprintf(name, NAME_SIZE, "networks.%d.%s", (int)network, p.name);
        p.name = name;
    }
    return p;
}

/* Whether a parameter of some network is called so. */
static bool is_parameter(const nn_model_file *m, const nn_tensors *all, const char *name)
{
    for (int32_t network = 0; network < nn_model_networks(m); network++) {
        char prefix[NAME_SIZE] = "";
        if (network > 0)
            (void)snprintf(prefix, sizeof prefix, "networks.%d.", (int)network);
        if (strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        if (nn_se3_find(m->model, name + strlen(prefix)) >= 0 || (m->sparse && nn_model_is_packed(m->model, all, name, prefix)))
            return true;
    }
    return false;
}

static bool is_known(const nn_model_file *m, const nn_tensors *all, const char *name)
{
    if (is_parameter(m, all, name))
        return true;
    return nn_domain_has(name) || nn_seen_is(name) || nn_members_has(&m->members, name);
}

static pl_code no_extra_tensor(const nn_tensors *all, const nn_model_file *m, pl_error *err)
{
    for (int k = 0; k < all->n; k++)
        if (!is_known(m, all, all->t[k].name))
            return pl_fail(err, PL_EDATA, "tensor %.100s does not belong to this model", all->t[k].name);
    return PL_OK;
}

/* Row (o*c_in + c)*F + f of the last radial layer belongs to frequency f (docs/model.md 3.1). */
static void group_flip(float *w, const nn_group *g, int32_t row_size)
{
    for (int32_t p = 0; p < g->n_paths; p++)
        for (int32_t k = 0; k < g->path[p].n_freq; k++) {
            const nn_path *path = &g->path[p];
            int j = (path->d_in > path->d_out ? path->d_in - path->d_out : path->d_out - path->d_in) + k * path->j_step;
            if (!nn_w3j_sign_differs(j, path->d_in, path->d_out))
                continue;
            for (int32_t oc = 0; oc < g->c_out * g->c_in; oc++)
                for (int32_t h = 0; h < row_size; h++)
                    w[((size_t)oc * (size_t)g->n_freq + (size_t)(path->f0 + k)) * (size_t)row_size + (size_t)h] *= -1.0f;
        }
}

static void signs_move(const nn_se3 *model, float *params)
{
    for (int32_t m = 0; m < model->n_modules; m++) {
        const nn_module *mod = &model->module[m];
        const nn_conv *c = mod->kind == NN_ATTENTION ? &mod->u.attention.conv : &mod->u.conv;
        if (mod->kind == NN_NORM)
            continue;
        for (int32_t g = 0; g < c->n_groups; g++) {
            const nn_param *w2 = &model->param[c->group[g].w2];
            group_flip(params + w2->at, &c->group[g], w2->dims[1]);
        }
    }
}

static pl_code network_params_take(nn_model_file *m, int32_t network, const nn_tensors *all, pl_arena *mem, pl_error *err)
{
    float *params = nn_model_params(m, network);
    char name[NAME_SIZE];
    pl_code code = PL_OK;

    for (int32_t k = 0; k < m->model->n_params && code == PL_OK; k++) {
        const nn_param p = named(name, m, network, k);
        const bool packed = m->sparse && nn_sparse_fits(&p) && nn_tensors_find(all, p.name) == NULL;
        code = packed ? nn_model_unpack(params + p.at, all, &p, mem, err) : tensor_take(params, all, &p, err);
        if (code == PL_OK && packed)
            code = finite_check(p.name, params + p.at, p.size, err);
    }
    return code;
}

static pl_code params_take(nn_model_file *m, const nn_tensors *all, bool other_signs, pl_arena *mem, pl_error *err)
{
    const nn_se3 *model = m->model;
    const int32_t n = nn_model_networks(m);
    pl_code code = PL_OK;

    m->params = PL_NEW(mem, float, (size_t)n * model->n_floats);
    if (m->params == NULL)
        return pl_fail(err, PL_ENOMEM, "a model of %zu parameters", (size_t)n * model->n_floats);
    for (int32_t k = 0; k < n && code == PL_OK; k++) {
        code = network_params_take(m, k, all, mem, err);
        if (code == PL_OK && other_signs)
            signs_move(model, nn_model_params(m, k));
    }
    return code;
}

static pl_code plan_take(nn_model_file *m, const nn_tensors *all, bool other_signs, pl_arena *mem, pl_error *err)
{
    nn_se3 *model = NULL;
    pl_code code = nn_se3_plan(&model, &m->conf, mem, err);

    if (code != PL_OK)
        return code == PL_ENOMEM ? PL_ENOMEM : PL_ECONFIG;
    m->model = model;
    m->bf16 = false;
    for (int k = 0; k < all->n; k++)
        m->bf16 = m->bf16 || all->t[k].dtype == NN_BF16;
    return params_take(m, all, other_signs, mem, err);
}

pl_code nn_model_weights_take(nn_model_file *m, const nn_tensors *all, bool other_signs, pl_arena *mem, pl_error *err)
{
    pl_code code = plan_take(m, all, other_signs, mem, err);

    return code == PL_OK ? no_extra_tensor(all, m, err) : code;
}

/* The network, if there is one. */
static pl_code network_take(nn_model_file *m, const nn_tensors *all, bool other_signs, pl_arena *mem, pl_error *err)
{
    pl_code code;

    if (nn_tensors_meta(all, "model") == NULL)
        return PL_OK;
    if (m->graph.edges == CH_EDGES_TOPOLOGY)
        return pl_fail(err, PL_EDATA, "metadata graph.edges: topology has no positions, which a network needs");
    code = plan_take(m, all, other_signs, mem, err);
    return code == PL_ECONFIG ? PL_EDATA : code;
}

static pl_code read_all(nn_model_file *m, const char *path, pl_arena *mem, pl_error *err)
{
    nn_tensors *all;
    bool other_signs = false;
    pl_bytes file;
    pl_sha256 sha;
    pl_code code = pl_file_read(&file, path, mem, err);

    if (code == PL_OK && (code = nn_tensors_parse(&all, file, mem, err)) != PL_OK)
        pl_at(err, "%s", path);
    if (code == PL_OK)
        code = nn_model_meta_take(m, &other_signs, all, mem, err);
    if (code == PL_OK)
        code = network_take(m, all, other_signs, mem, err);
    if (code == PL_OK)
        code = no_extra_tensor(all, m, err);
    if (code != PL_OK)
        return code;
    m->verified = all->verified;
    if (code == PL_OK)
        code = nn_domain_take(&m->domain, all, m->conf.outputs, mem, err);
    if (code == PL_OK)
        code = nn_seen_take(&m->seen, all, mem, err);
    pl_sha256_start(&sha); /* hash of the bytes that were read, whatever the file holds by now */
    pl_sha256_add(&sha, file.data, file.len);
    pl_sha256_hex(&sha, m->sha256);
    return code;
}

pl_code nn_model_read_any(nn_model_file **out, const char *path, pl_arena *mem, pl_error *err)
{
    nn_model_file *m = PL_NEW(mem, nn_model_file, 1);
    pl_error inner = { 0 };
    pl_code code = m != NULL ? read_all(m, path, mem, &inner) : pl_fail(&inner, PL_ENOMEM, "model");

    if (code == PL_OK)
        *out = m;
    else if (strstr(inner.text, path) != NULL)
        code = pl_fail(err, code, "%s", inner.text);
    else
        code = pl_fail(err, code, "%s: %.250s", path, inner.text);
    return code;
}

pl_code nn_model_read(nn_model_file **out, const char *path, pl_arena *mem, pl_error *err)
{
    pl_code code = nn_model_read_any(out, path, mem, err);

    if (code == PL_OK && (*out)->denoises)
        code = pl_fail(err, PL_ECONFIG,
                       "%s: this model learned noise alone (task: denoise) and predicts nothing; start a training from it "
                       "(stages.train.start)",
                       path);
    return code;
}

/* ---- writing ------------------------------------------------------------- */

/* Rounds to nearest, ties to even; x is finite. */
static uint16_t bf16_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

void nn_model_round(nn_model_file *m)
{
    const size_t n = m->bf16 && m->model != NULL ? (size_t)nn_model_networks(m) * m->model->n_floats : 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)bf16_of(m->params[i]) << 16;
        memcpy(&m->params[i], &bits, sizeof bits);
    }
}

/* The numbers of a tensor as the file has them. */
static pl_code tensor_round(nn_tensor *t, const nn_model_file *m, pl_arena *mem, pl_error *err)
{
    const float *x = t->data;
    uint16_t *half;
    pl_code code = finite_check(t->name, x, t->count, err);

    if (code != PL_OK || !m->bf16)
        return code;
    half = PL_NEW(mem, uint16_t, t->count);
    if (half == NULL)
        return pl_fail(err, PL_ENOMEM, "a model file");
    for (size_t i = 0; i < t->count; i++)
        half[i] = bf16_of(x[i]);
    t->dtype = NN_BF16;
    t->data = half;
    return PL_OK;
}

/* Two tensors for a matrix that is packed. Names are copied into mem. */
static pl_code tensors_fill(nn_tensor *t, int *n, const nn_model_file *m, int32_t network, pl_arena *mem, pl_error *err)
{
    const float *params = nn_model_params(m, network);
    char name[NAME_SIZE];
    pl_code code = PL_OK;

    for (int32_t k = 0; k < m->model->n_params && code == PL_OK; k++) {
        nn_param p = named(name, m, network, k);
        nn_tensor *now = t + *n;
        const bool packed = m->sparse && nn_sparse_fits(&p);
        p.name = pl_strdup(mem, p.name);
        if (p.name == NULL)
            return pl_fail(err, PL_ENOMEM, "a model file");
        if (packed)
            code = nn_model_pack(now, &p, params + p.at, mem, err);
        else
            *now = (nn_tensor){ .name = p.name,
                                .dtype = NN_F32,
                                .n_dims = p.n_dims,
                                .dims = { p.dims[0], p.dims[1] },
                                .count = p.size,
                                .data = params + p.at };
        *n += packed ? 2 : 1;
        if (code == PL_OK)
            code = tensor_round(now, m, mem, err);
    }
    return code;
}

static pl_code write_in(const nn_model_file *m, const char *path, pl_arena *mem, pl_error *err)
{
    const int32_t networks = nn_model_networks(m);
    const int n_params = m->model != NULL ? networks * m->model->n_params : 0;
    const char **json = NULL;
    nn_tensor *t, *more = NULL;
    nn_tensors all = { 0 };
    int n_more = 0, n_domain = 0;
    pl_code code = nn_members_tensors(&more, &n_more, &json, &m->members, mem, err);

    t = PL_NEW(mem, nn_tensor, 2 * n_params + n_more + NN_DOMAIN_TENSORS + NN_SEEN_TENSORS);
    all.t = t;
    if (t == NULL)
        code = pl_fail(err, PL_ENOMEM, "a model file");
    for (int32_t k = 0; k < networks && code == PL_OK; k++)
        code = tensors_fill(t, &all.n, m, k, mem, err);
    if (code != PL_OK)
        return code;
    memcpy(t + all.n, more, (size_t)n_more * sizeof *t);
    all.n += n_more;
    if (code == PL_OK && m->domain.n > 0) {
        code = nn_domain_tensors(t + all.n, &n_domain, &m->domain, mem, err);
        all.n += n_domain;
    }
    if (code == PL_OK && m->seen.known)
        code = nn_seen_tensor(t + all.n++, &m->seen, mem, err);
    if (code == PL_OK)
        code = nn_model_meta_list(&all.meta, &all.n_meta, m, json, mem, err);
    return code != PL_OK ? code : nn_tensors_write(path, &all, err);
}

pl_code nn_model_write(const nn_model_file *m, const char *path, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_code code = mem != NULL ? write_in(m, path, mem, err) : pl_fail(err, PL_ENOMEM, "a model file");

    pl_arena_free(mem);
    return code;
}

/* ---- using --------------------------------------------------------------- */

double nn_model_offset(const nn_scale *scale, const nn_inputs *inputs, const uint8_t *z, int32_t n)
{
    int64_t count[256] = { 0 };
    double sum = scale->constant;

    for (int32_t i = 0; i < n; i++)
        count[z[i]]++;
    for (int32_t k = 0; k < inputs->n_elements; k++)
        sum += scale->offset[k] * (double)count[inputs->element[k]];
    return sum;
}

double nn_model_value(const nn_model_file *m, int32_t target, const uint8_t *z, int32_t n, double y)
{
    const nn_scale *s = &m->target[target].scale;
    const double x = y * s->stdev + s->mean + nn_model_offset(s, &m->inputs, z, n);

    return m->classifies ? nn_logistic(x) : x;
}

int32_t nn_model_networks(const nn_model_file *m)
{
    if (m->model == NULL)
        return 0;
    return m->networks > 1 ? m->networks : 1;
}

float *nn_model_params(const nn_model_file *m, int32_t k) { return m->params + (size_t)k * m->model->n_floats; }

int32_t nn_model_components(const nn_model_file *m) { return m->members.n + (m->model != NULL); }

double nn_model_member_value(const nn_model_file *m, int32_t target, const uint8_t *z, int32_t n, double y)
{
    return m->classifies ? y : nn_model_value(m, target, z, n, y);
}

double nn_model_mean(const nn_model_file *m, int32_t target, const uint8_t *z, int32_t n, double network,
                     const nn_member_outputs *members, int32_t i)
{
    double sum = m->model != NULL ? network : 0;

    if (m->members.n == 0)
        return sum;
    for (int32_t k = 0; k < m->members.n; k++)
        sum += nn_model_member_value(m, target, z, n, members->y[k][(size_t)i * (size_t)members->outputs + (size_t)target]);
    return sum / nn_model_components(m);
}

pl_code nn_model_graph_check(const nn_model_file *m, const ch_graph_opts *opts, pl_error *err)
{
    const ch_graph_opts *t = &m->graph;

    if (m->model == NULL && opts->edges != CH_EDGES_KNN) /* members read bonds, which all others have */
        return PL_OK;
    if (opts->edges == CH_EDGES_TOPOLOGY)
        return pl_fail(err, PL_ECONFIG,
                       "edges: topology has no positions, but model %s is a network that was trained with edges: %s", m->name,
                       nn_edges_name(t->edges));
    if (t->edges != opts->edges)
        return pl_fail(err, PL_ECONFIG, "edges: %s, but model %s was trained with edges: %s", nn_edges_name(opts->edges), m->name,
                       nn_edges_name(t->edges));
    if (ch_edges_within(t->edges) && t->cutoff != opts->cutoff)
        return pl_fail(err, PL_ECONFIG, "cutoff: %g Angstrom, but model %s was trained with %g", (double)opts->cutoff, m->name,
                       (double)t->cutoff);
    if (ch_edges_within(t->edges) && t->max_neighbours != opts->max_neighbours)
        return pl_fail(err, PL_ECONFIG, "max_neighbours: %d, but model %s was trained with %d", (int)opts->max_neighbours, m->name,
                       (int)t->max_neighbours);
    if (t->edges == CH_EDGES_KNN && t->k != opts->k)
        return pl_fail(err, PL_ECONFIG, "k: %d, but model %s was trained with %d", (int)opts->k, m->name, (int)t->k);
    return PL_OK;
}
