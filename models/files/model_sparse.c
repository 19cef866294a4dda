/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of 2:4 sparsity in a model file. */
#include <stdio.h>
#include <string.h>

#include "models/files/model_file_parts.h"
#include "models/network/sparse.h"
#include "pipeline/base/text.h"

static const char *const ending[2] = { ".values", ".index" };

pl_code nn_model_pack(nn_tensor to[2], const nn_param *p, const float *w, pl_arena *mem, pl_error *err)
{
    const size_t bytes = nn_sparse_index_bytes(p->size), kept = p->size / 2;
    float *value = PL_NEW(mem, float, kept);
    uint8_t *index = PL_NEW(mem, uint8_t, bytes);

    to[0] = (nn_tensor){ .dtype = NN_F32, .n_dims = 2, .dims = { p->dims[0], p->dims[1] / 2 }, .count = kept, .data = value };
    to[1] = (nn_tensor){ .dtype = NN_U8, .n_dims = 1, .dims = { (int64_t)bytes }, .count = bytes, .data = index };
    for (int k = 0; k < 2; k++)
        if ((to[k].name = pl_sprintf(mem, "%s%s", p->name, ending[k])) == NULL || to[k].data == NULL)
            return pl_fail(err, PL_ENOMEM, "a model file");
    if (!nn_sparse_pack(value, index, w, p->size))
        return pl_fail(err, PL_EBUG, "tensor %s is not 2:4", p->name);
    return PL_OK;
}

/* One of the two, of n numbers. */
static pl_code part_find(const nn_tensor **out, const nn_tensors *all, const nn_param *p, int k, size_t n, pl_error *err)
{
    char name[160];

    (void)snprintf(name, sizeof name, "%.130s%s", p->name, ending[k]);
    *out = nn_tensors_find(all, name);
    if (*out == NULL)
        return pl_fail(err, PL_EDATA, "tensor %s is missing", name);
    if (k == 0 ? (*out)->dtype != NN_F32 && (*out)->dtype != NN_BF16 : (*out)->dtype != NN_U8)
        return pl_fail(err, PL_EDATA, "tensor %s has type %s, %s is needed", name, nn_dtype_name((*out)->dtype),
                       k ? "U8" : "F32 or BF16");
    if ((*out)->count != n)
        return pl_fail(err, PL_EDATA, "tensor %s has %zu numbers, the model needs %zu", name, (*out)->count, n);
    return PL_OK;
}

pl_code nn_model_unpack(float *w, const nn_tensors *all, const nn_param *p, pl_arena *mem, pl_error *err)
{
    const size_t kept = p->size / 2, groups = p->size / NN_SPARSE_GROUP;
    const nn_tensor *values, *index;
    float *value = PL_NEW(mem, float, kept);
    size_t good;
    pl_code code = value != NULL ? part_find(&values, all, p, 0, kept, err) : pl_fail(err, PL_ENOMEM, "a model");

    if (code == PL_OK)
        code = part_find(&index, all, p, 1, nn_sparse_index_bytes(p->size), err);
    if (code == PL_OK)
        code = nn_tensor_floats(value, kept, values, err);
    if (code != PL_OK)
        return code;
    good = nn_sparse_unpack(w, value, index->data, p->size);
    if (good == groups)
        return PL_OK;
    return pl_fail(err, PL_EDATA, "tensor %s%s is damaged: the indices of group %zu of %zu are not two that ascend", p->name,
                   ending[1], good + 1, groups);
}

bool nn_model_is_packed(const nn_se3 *model, const nn_tensors *all, const char *name, const char *prefix)
{
    char of[160];

    for (int k = 0; k < 2; k++) {
        const size_t n = strlen(name), tail = strlen(ending[k]);
        if (n <= tail || n - tail >= sizeof of || strcmp(name + n - tail, ending[k]) != 0)
            continue;
        (void)snprintf(of, sizeof of, "%.*s", (int)(n - tail), name);
        const int32_t at = nn_se3_find(model, of + strlen(prefix));
        return at >= 0 && nn_sparse_fits(&model->param[at]) && nn_tensors_find(all, of) == NULL;
    }
    return false;
}
