/* SPDX-License-Identifier: Apache-2.0 */
/* Several models at once: each on its own stream with its own memory; a batch that several models read is laid out and
 * uploaded once. */
#include <string.h>

#include "models/cuda/cuda_engine.h"

enum { LAID = 0, DONE = 1 }; /* events: the batch is on the device; the results are on the host */

/* The first engine with the same batch in the same layout: k itself, or an earlier one. */
static int laid_by(nn_engine *const *e, const nn_batch *const *in, int k)
{
    int j = 0;

    while (j < k && (in[j] != in[k] || e[j]->prep.radial != e[k]->prep.radial || e[j]->prep.width != e[k]->prep.width ||
                     !nn_radial_same(e[j]->prep.inputs, e[k]->prep.inputs) || e[j]->conf.device != e[k]->conf.device))
        j++;
    return j;
}

static pl_code lay_out(nn_engine *e, const nn_batch *in, pl_error *err)
{
    pl_code code = nn_cuda_batch(e, in, false, 0, 0, err);

    if (code != PL_OK)
        return code;
    e->ops->upload(e->gpu, e->batch, e->prep.host, e->prep.bytes);
    e->ops->record(e->gpu, LAID);
    return PL_OK;
}

static void results_ask(nn_engine *e, const nn_batch *in)
{
    nn_cuda_results_ask(e, in);
    e->ops->record(e->gpu, DONE);
}

/* Calls the operations of an engine with the batch of `from` in place of its own. */
static pl_code follower_begin(nn_engine *e, nn_engine *from, const nn_batch *in, pl_error *err)
{
    nn_cuda_prep own = e->prep;
    pl_code code = nn_cuda_shape_check(e, in, err);

    e->kept = false;
    e->prep = from->prep;
    e->batch = from->batch;
    if (code == PL_OK)
        code = nn_cuda_batch_memory(e, in, false, NULL, err);
    if (code == PL_OK) {
        e->ops->wait_event(e->gpu, from->gpu, LAID);
        results_ask(e, in);
    }
    e->prep = own;
    return code;
}

static pl_code one_begin(nn_engine *const *e, const nn_batch *const *in, int k, pl_error *err)
{
    int by = laid_by(e, in, k);
    pl_code code;

    if (by < k)
        return follower_begin(e[k], e[by], in[k], err);
    code = lay_out(e[k], in[k], err);
    if (code == PL_OK)
        results_ask(e[k], in[k]);
    return code;
}

static pl_code one_end(nn_engine *e, const nn_batch *in, float *y, pl_error *err)
{
    pl_code code = nn_cuda_said(e->ops->synchronize(e->gpu, DONE), err);

    if (code != PL_OK)
        return code;
    memcpy(y, e->host, (size_t)in->n_graphs * (size_t)e->plan->head[1].n_out * sizeof *y);
    return e->fences ? nn_cuda_check(e, err) : PL_OK;
}

/* The last engine is waited for first. On the emulator work runs only when it is waited for, so an engine that forgets to wait
 * for the engine with its batch gives wrong results in tests. */
pl_code nn_cuda_forward_all(nn_engine *const *e, const nn_batch *const *in, float *const *y, int n, pl_error *err)
{
    pl_code code = PL_OK, end;
    int begun = 0;

    for (; begun < n && code == PL_OK; begun++)
        code = one_begin(e, in, begun, err);
    for (int k = begun - (code != PL_OK ? 2 : 1); k >= 0; k--) {
        end = one_end(e[k], in[k], y[k], code != PL_OK ? NULL : err);
        code = code != PL_OK ? code : end;
    }
    return code;
}
