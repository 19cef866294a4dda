/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "models/network/se3.h"
#include "pipeline/base/rng.h"

enum { PURPOSE_INIT = 0x696e6974 }; /* "init" */

/* Every tensor has its own random stream, so that adding a layer does not change the others. */
typedef struct initialiser {
    const nn_se3 *model;
    float *params;
    uint64_t seed;
} initialiser;

static void fill(const initialiser *in, int32_t k, float value)
{
    if (k < 0)
        return;
    const nn_param *p = &in->model->param[k];
    for (size_t e = 0; e < p->size; e++)
        in->params[p->at + e] = value;
}

static void fill_uniform(const initialiser *in, int32_t k, int32_t fan_in)
{
    if (k < 0)
        return;
    const nn_param *p = &in->model->param[k];
    pl_rng r = pl_rng_at(in->seed, (uint64_t)k, PURPOSE_INIT);
    double bound = 1.0 / sqrt((double)fan_in);

    for (size_t e = 0; e < p->size; e++)
        in->params[p->at + e] = (float)(bound * (2.0 * pl_rng_real(&r) - 1.0));
}

static void fill_normal(const initialiser *in, int32_t k)
{
    if (k < 0)
        return;
    const nn_param *p = &in->model->param[k];
    pl_rng r = pl_rng_at(in->seed, (uint64_t)k, PURPOSE_INIT);
    double scale = 1.0 / sqrt((double)p->dims[1]);

    for (size_t e = 0; e < p->size; e++)
        in->params[p->at + e] = (float)(scale * pl_rng_normal(&r));
}

/* torch.nn.Linear: weight and bias share the bound 1/sqrt(fan_in). */
static void init_linear(const initialiser *in, int32_t weight, int32_t bias)
{
    int32_t fan_in = in->model->param[weight].dims[1];

    fill_uniform(in, weight, fan_in);
    fill_uniform(in, bias, fan_in);
}

static void init_group(const initialiser *in, const nn_group *g)
{
    init_linear(in, g->w0, g->b0);
    init_linear(in, g->w1, g->b1);
    init_linear(in, g->w2, -1);
    fill(in, g->ln0_w, 1.0f);
    fill(in, g->ln0_b, 0.0f);
    fill(in, g->ln1_w, 1.0f);
    fill(in, g->ln1_b, 0.0f);
}

static void init_conv(const initialiser *in, const nn_conv *c)
{
    for (int32_t g = 0; g < c->n_groups; g++)
        init_group(in, &c->group[g]);
    for (int d = 0; d < NN_DEGREES; d++)
        fill_normal(in, c->self[d]);
}

static void init_module(const initialiser *in, const nn_module *m)
{
    switch (m->kind) {
    case NN_CONV: init_conv(in, &m->u.conv); break;
    case NN_NORM:
        for (int d = 0; d < NN_DEGREES; d++) {
            fill(in, m->u.norm.w[d], 1.0f);
            fill(in, m->u.norm.b[d], 0.0f);
        }
        break;
    case NN_ATTENTION:
        init_conv(in, &m->u.attention.conv);
        for (int d = 0; d < NN_DEGREES; d++) {
            fill_normal(in, m->u.attention.query[d]);
            fill_normal(in, m->u.attention.project[d]);
        }
        break;
    }
}

void nn_se3_init(const nn_se3 *model, float *params, uint64_t seed)
{
    initialiser in = { model, params, seed };

    for (int32_t k = 0; k < model->n_modules; k++)
        init_module(&in, &model->module[k]);
    for (int k = 0; k < 4; k += 2)
        if (model->head[k] >= 0)
            init_linear(&in, model->head[k], model->head[k + 1]);
    if (model->conf.denoise)
        fill_normal(&in, model->denoise);
}

int32_t nn_se3_find(const nn_se3 *model, const char *name)
{
    for (int32_t k = 0; k < model->n_params; k++)
        if (!strcmp(model->param[k].name, name))
            return k;
    return -1;
}
