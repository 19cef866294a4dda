/* SPDX-License-Identifier: Apache-2.0 */
/* The molecules of one part of a dataset, as a training reads them: batches, edges, targets. */
#include <stdlib.h>

#include "stages/steps/dataset/dataset.h"

static pl_code samples_batch(void *ctx, int slot, nn_batch *out, nn_which which, pl_error *err)
{
    st_samples *s = ctx;
    const int32_t n = which.n;
    nn_item *item = s->slot[slot].gathered;
    nn_collated c;
    pl_code code;

    if (n > s->slot[slot].cap) {
        item = realloc(item, (size_t)n * sizeof *item);
        if (item == NULL)
            return pl_fail(err, PL_ENOMEM, "a batch of %d molecules", (int)n);
        s->slot[slot].gathered = item;
        s->slot[slot].cap = n;
    }
    for (int32_t i = 0; i < n; i++) {
        item[i] = *s->item[which.at[i]];
        item[i].noise = which.noise;
        item[i].random = nn_which_random(&which, i);
    }
    code = nn_collate_run(s->slot[slot].collate, &c, item, n, s->inputs, err);
    if (code == PL_OK && c.n_left)
        code = pl_fail(err, PL_EBUG, "a molecule with an unknown element came into a batch");
    *out = c.batch;
    return code;
}

static void sample_add(st_samples *s, int32_t *edges, int64_t at, const nn_item *item)
{
    s->at[s->samples.n] = at;
    s->item[s->samples.n] = item;
    s->atoms[s->samples.n] = item->graph->n_nodes;
    edges[s->samples.n++] = item->graph->n_edges;
}

/* First one structure per molecule, then the other structures of each. */
static void samples_take(st_samples *s, st_part part, int32_t *edges)
{
    const st_dataset *d = s->d;

    for (int64_t i = 0; i < d->n; i++) {
        if (part != ST_PARTS && d->part[i] != part)
            continue;
        if (nn_inputs_unknown(s->inputs, d->item[i].graph))
            s->n_unknown++;
        else
            sample_add(s, edges, i, &d->item[i]);
    }
    s->n = s->samples.n;
    for (int64_t j = 0; j < s->n; j++)
        for (int32_t k = 0; k < d->other[s->at[j]].n; k++)
            sample_add(s, edges, s->at[j], &d->other[s->at[j]].item[k]);
}

pl_code st_samples_open(st_samples *s, const st_dataset *d, st_part part, const nn_inputs *inputs, pl_error *err)
{
    int32_t *edges;
    int64_t max = d->n;

    for (int64_t i = 0; i < d->n; i++)
        max += d->other[i].n;
    edges = PL_NEW(d->mem, int32_t, max + 1);
    *s = (st_samples){ .d = d, .inputs = inputs };
    for (int i = 0; i < 2; i++)
        s->slot[i].collate = nn_collate_new();
    s->at = PL_NEW(d->mem, int64_t, max + 1);
    s->atoms = PL_NEW(d->mem, int32_t, max + 1);
    s->item = PL_NEW(d->mem, const nn_item *, max + 1);
    s->target = PL_NEW(d->mem, float, max * d->n_targets + 1);
    s->high = d->limits && part == ST_TRAIN ? PL_NEW(d->mem, float, max * d->n_targets + 1) : NULL;
    if (s->slot[0].collate == NULL || s->slot[1].collate == NULL || s->at == NULL || s->item == NULL || s->target == NULL ||
        edges == NULL || s->atoms == NULL || (d->limits && part == ST_TRAIN && s->high == NULL))
        return pl_fail(err, PL_ENOMEM, "samples of %lld molecules", (long long)d->n);
    s->samples = (nn_samples){ .ctx = s,
                               .edges = edges,
                               .target = s->target,
                               .high = s->high,
                               .batch = samples_batch,
                               .outputs = d->n_targets,
                               .atoms = s->atoms };
    samples_take(s, part, edges);
    return PL_OK;
}

pl_code st_samples_measured(st_samples *out, const st_samples *s, pl_error *err)
{
    int64_t *at = PL_NEW(s->d->mem, int64_t, s->n + 1);

    *out = (st_samples){ .d = s->d, .at = at };
    if (at == NULL)
        return pl_fail(err, PL_ENOMEM, "samples of %lld molecules", (long long)s->n);
    for (int64_t i = 0; i < s->n; i++)
        if (st_dataset_is_labelled(s->d, s->at[i]))
            at[out->n++] = s->at[i];
    return PL_OK;
}

void st_samples_close(st_samples *s)
{
    for (int i = 0; i < 2; i++) {
        nn_collate_free(s->slot[i].collate);
        free(s->slot[i].gathered);
    }
    *s = (st_samples){ 0 };
}
