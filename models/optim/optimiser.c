/* SPDX-License-Identifier: Apache-2.0 */
#include "models/optim/optimiser.h"

#include "models/optim/lamb.h"
#include "models/optim/soap.h"

enum { PIECE = 1 << 16 }; /* parameters per piece; one thread takes one piece at a time */

typedef struct piece {
    size_t first, n;
    int32_t tensor;
    nn_lamb_squares squares;
} piece;

struct nn_optimiser {
    nn_optimiser_kind kind;
    int32_t n_pieces, n_tensors;
    piece *piece;
    float *ratio; /* [n_tensors] */
    /* arguments of the present step */
    const nn_adamw_arrays *arrays;
    nn_adamw_rule adamw;
    nn_lamb_rule lamb;
    nn_soap *soap;
    float *bases;
    int64_t step;
};

/* ---- pieces -------------------------------------------------------------- */

/* Counts the pieces of a tensor, and writes them unless `to` is NULL. */
static int32_t tensor_cut(piece *to, size_t first, size_t size, int32_t tensor)
{
    int32_t n = 0;

    for (size_t at = 0; at < size; at += PIECE, n++)
        if (to != NULL)
            to[n] = (piece){ .first = first + at, .n = size - at < PIECE ? size - at : PIECE, .tensor = tensor };
    return n;
}

/* AdamW treats all tensors as one. */
static int32_t cut(piece *to, const nn_param *tensor, int32_t n_tensors)
{
    int32_t n = 0;

    for (int32_t t = 0; t < n_tensors; t++)
        n += tensor_cut(to != NULL ? to + n : NULL, tensor[t].at, tensor[t].size, t);
    return n;
}

size_t nn_optimiser_bases(nn_optimiser_kind kind, const nn_param *tensor, int32_t n_tensors)
{
    return kind == NN_SOAP ? nn_soap_bases(tensor, n_tensors) : 0;
}

nn_optimiser *nn_optimiser_new(const nn_optimiser_conf *conf, size_t n, const nn_param *tensor, int32_t n_tensors, pl_arena *mem)
{
    const nn_cpu_kernels *kernels = conf->kernels != NULL ? conf->kernels : &nn_cpu_portable;
    const nn_param whole = { .n_dims = 1, .dims = { 1 }, .size = n };
    nn_optimiser *o = PL_NEW(mem, nn_optimiser, 1);
    bool one = conf->kind == NN_ADAMW || n_tensors == 0;

    if (o == NULL)
        return NULL;
    tensor = one ? &whole : tensor;
    o->kind = conf->kind;
    o->n_tensors = one ? 1 : n_tensors;
    o->n_pieces = cut(NULL, tensor, o->n_tensors);
    o->piece = PL_NEW(mem, piece, o->n_pieces);
    o->ratio = PL_NEW(mem, float, o->n_tensors);
    if (conf->kind == NN_SOAP)
        o->soap = nn_soap_new(tensor, o->n_tensors, conf->threads, kernels, mem);
    if (o->piece == NULL || o->ratio == NULL || (conf->kind == NN_SOAP && o->soap == NULL))
        return NULL;
    (void)cut(o->piece, tensor, o->n_tensors);
    return o;
}

/* ---- steps --------------------------------------------------------------- */

static void adamw_piece(void *ctx, int worker, int i)
{
    const nn_optimiser *o = ctx;

    (void)worker;
    nn_adamw_update(o->arrays, o->piece[i].first, o->piece[i].n, &o->adamw);
}

static void moments_piece(void *ctx, int worker, int i)
{
    nn_optimiser *o = ctx;
    piece *p = &o->piece[i];

    (void)worker;
    p->squares = nn_lamb_moments(o->arrays, p->first, p->n, &o->lamb);
}

static void lamb_piece(void *ctx, int worker, int i)
{
    const nn_optimiser *o = ctx;
    const piece *p = &o->piece[i];

    (void)worker;
    nn_lamb_update(o->arrays, p->first, p->n, &o->lamb, o->ratio[p->tensor]);
}

static void soap_tensor(void *ctx, int worker, int i)
{
    const nn_optimiser *o = ctx;

    nn_soap_step(o->soap, worker, i, o->arrays, o->bases, o->step, &o->adamw);
}

static void ratios_make(nn_optimiser *o)
{
    for (int32_t i = 0; i < o->n_pieces;) {
        nn_lamb_squares whole = { 0, 0 };
        int32_t tensor = o->piece[i].tensor;
        for (; i < o->n_pieces && o->piece[i].tensor == tensor; i++) {
            whole.p += o->piece[i].squares.p;
            whole.u += o->piece[i].squares.u;
        }
        o->ratio[tensor] = nn_lamb_ratio(whole);
    }
}

static nn_adamw_rule rule_of(const nn_optimiser_step *step, int64_t number)
{
    nn_adamw_rule r = nn_adamw_rule_make(&step->conf, number, (float)step->lr);

    r.clip = (float)step->clip;
    r.average = (float)step->average;
    return r;
}

static void lamb_run(nn_optimiser *o, nn_pool *pool, const nn_optimiser_step *step)
{
    o->lamb = nn_lamb_rule_make(&step->conf, step->step, (float)step->lr);
    o->lamb.clip = (float)step->clip;
    o->lamb.average = (float)step->average;
    nn_pool_run(pool, o->n_pieces, moments_piece, o);
    ratios_make(o);
    nn_pool_run(pool, o->n_pieces, lamb_piece, o);
}

/* The first step of SOAP has no rule: it only finds the bases. */
void nn_optimiser_run(nn_optimiser *o, nn_pool *pool, const nn_adamw_arrays *arrays, const nn_optimiser_step *step)
{
    o->arrays = arrays;
    o->step = step->step;
    o->bases = step->bases;
    switch (o->kind) {
    case NN_ADAMW:
        o->adamw = rule_of(step, step->step);
        nn_pool_run(pool, o->n_pieces, adamw_piece, o);
        return;
    case NN_LAMB: lamb_run(o, pool, step); return;
    case NN_SOAP:
        o->adamw = rule_of(step, step->step > 1 ? step->step - 1 : 1);
        nn_pool_run(pool, o->n_tensors, soap_tensor, o);
        return;
    }
}
