/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/device.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/plugin.h"

struct ch_device {
    const ch_gpu_ops *ops;
    ch_gpu *gpu;
};

static const char who[] = "building structures on a GPU";

static pl_code ops_get(const ch_gpu_ops **out, pl_error *err)
{
    const ch_gpu_ops *(*get)(void) = NULL;
    const pl_code code = pl_plugin_cuda((void **)(void *)&get, "molsieve_structure_ops", who, err);

    if (code != PL_OK)
        return code;
    *out = get();
    if ((*out)->abi != CH_GPU_ABI || (*out)->bytes != (int32_t)sizeof(ch_gpu_ops))
        return pl_fail(err, PL_ECONFIG, "%s: libmolsieve_cuda.so belongs to another version of this program", who);
    return PL_OK;
}

pl_code ch_device_find(int32_t device, char *text, size_t n, pl_error *err)
{
    const ch_gpu_ops *ops = NULL;
    const pl_code code = ops_get(&ops, err);

    if (code != PL_OK)
        return code;
    return ops->find(device, text, n) ? PL_OK : pl_fail(err, PL_ECONFIG, "%s: %s", who, text);
}

pl_code ch_device_open(ch_device **out, int32_t device, pl_error *err)
{
    char text[256];
    ch_device *d = NULL;
    pl_code code = ch_device_find(device, text, sizeof text, err);

    *out = NULL;
    if (code != PL_OK)
        return code;
    d = calloc(1, sizeof *d);
    if (d == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a device");
    code = ops_get(&d->ops, err);
    if (code == PL_OK)
        d->gpu = d->ops->open(device, text, sizeof text);
    if (code == PL_OK && d->gpu == NULL)
        code = pl_fail(err, PL_EDEVICE, "%s: %s", who, text);
    if (code == PL_OK)
        *out = d;
    else
        free(d);
    return code;
}

void ch_device_close(ch_device *d)
{
    if (d == NULL)
        return;
    d->ops->close(d->gpu);
    free(d);
}

static pl_code failed(const char *why, pl_error *err) { return why == NULL ? PL_OK : pl_fail(err, PL_EDEVICE, "%s: %s", who, why); }

pl_code ch_device_load(ch_device *d, const ch_packed *const *molecules, int32_t n, pl_error *err)
{
    ch_gpu_molecule *all = calloc((size_t)n + 1, sizeof *all);
    int32_t *words = NULL;
    int64_t n_words = 0;
    pl_code code = PL_OK;

    for (int32_t k = 0; k < n; k++)
        n_words += molecules[k]->n_words;
    words = malloc(((size_t)n_words + 1) * sizeof *words);
    if (all == NULL || words == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory for a batch of %d molecules", (int)n);
    n_words = 0;
    for (int32_t k = 0; k < n && code == PL_OK; k++) {
        all[k] = molecules[k]->molecule;
        for (int a = 0; a < CH_GPU_N_ARRAYS; a++)
            all[k].at[a] += n_words;
        memcpy(words + n_words, molecules[k]->words, (size_t)molecules[k]->n_words * sizeof *words);
        n_words += molecules[k]->n_words;
    }
    if (code == PL_OK)
        code = failed(d->ops->load(d->gpu, all, n, words, n_words), err);
    free(all);
    free(words);
    return code;
}

pl_code ch_device_run(ch_device *d, const ch_gpu_job *jobs, int32_t n, ch_gpu_result *results, float *xyz, int64_t n_floats,
                      pl_error *err)
{
    return failed(d->ops->run(d->gpu, jobs, n, results, xyz, n_floats), err);
}
