/* SPDX-License-Identifier: Apache-2.0 */
#include "models/files/members.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"

/* ---- writing ------------------------------------------------------------- */

static json_t *json_member(const nn_members *all, int32_t k, const char *const *json)
{
    json_t *settings = json_array();

    for (int32_t i = 0; i < all->outputs; i++)
        json_array_append_new(settings, json_loads(json[k * all->outputs + i], 0, NULL));
    return json_pack("{s:s, s:o}", "kind", all->at[k].kind->name, "settings", settings);
}

const char *nn_members_text(const nn_members *all, const char *const *json, pl_arena *mem)
{
    json_t *list = json_array(), *root;
    const char *copy;
    char *text;

    for (int32_t k = 0; k < all->n; k++)
        json_array_append_new(list, json_member(all, k, json));
    root = json_pack("{s:i, s:o}", "features", (int)CH_FEATURES_VERSION, "members", list);
    text = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    copy = text != NULL ? pl_strdup(mem, text) : NULL;
    free(text);
    json_decref(root);
    return copy;
}

static const char *prefix_of(const nn_model_member *m, int32_t output, pl_arena *mem)
{
    return pl_sprintf(mem, "%s.%d", m->kind->name, (int)output);
}

pl_code nn_members_tensors(nn_tensor **out, int *n, const char ***json, const nn_members *all, pl_arena *mem, pl_error *err)
{
    const int32_t max = all->n * all->outputs;
    pl_code code = PL_OK;

    *n = 0;
    *out = PL_NEW(mem, nn_tensor, max * NN_MEMBER_TENSORS_MAX);
    *json = PL_NEW(mem, const char *, max);
    if (*out == NULL || *json == NULL)
        return pl_fail(err, PL_ENOMEM, "a model file");
    for (int32_t k = 0; k < max && code == PL_OK; k++) {
        const nn_model_member *m = &all->at[k / all->outputs];
        const char *prefix = prefix_of(m, k % all->outputs, mem);
        nn_tensor *some = NULL;
        int count = 0;
        code = prefix != NULL ? m->kind->save(m->one[k % all->outputs], prefix, &some, &count, &(*json)[k], mem, err)
                              : pl_fail(err, PL_ENOMEM, "a model file");
        if (code == PL_OK && count > NN_MEMBER_TENSORS_MAX)
            code = pl_fail(err, PL_EDATA, "%s has %d tensors, at most %d", prefix, count, NN_MEMBER_TENSORS_MAX);
        for (int i = 0; i < count && code == PL_OK; i++)
            (*out)[(*n)++] = some[i];
    }
    return code;
}

/* ---- reading ------------------------------------------------------------- */

bool nn_members_has(const nn_members *all, const char *tensor)
{
    for (int32_t k = 0; k < all->n; k++) {
        const char *name = all->at[k].kind->name, *end;
        const size_t len = strlen(name);
        if (strncmp(tensor, name, len) != 0 || tensor[len] != '.')
            continue;
        end = strchr(tensor + len + 1, '.');
        if (end != NULL && end > tensor + len + 1 && strspn(tensor + len + 1, "0123456789") == (size_t)(end - tensor) - len - 1)
            return true;
    }
    return false;
}

static pl_code one_take(nn_member **out, const nn_model_member *m, int32_t output, const json_t *settings, const nn_tensors *file,
                        pl_arena *mem, pl_error *err)
{
    const char *prefix = prefix_of(m, output, mem);
    char *text = json_is_object(settings) ? json_dumps(settings, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    pl_code code;

    if (!json_is_object(settings))
        code = pl_fail(err, PL_EDATA, "metadata family: settings of %s are not an object", m->kind->name);
    else if (prefix == NULL || text == NULL)
        code = pl_fail(err, PL_ENOMEM, "a model");
    else
        code = m->kind->open(out, prefix, file, text, mem, err);
    free(text);
    return code;
}

static pl_code member_take(nn_members *to, const json_t *o, const nn_tensors *file, pl_arena *mem, pl_error *err)
{
    const char *name = json_string_value(json_object_get(o, "kind"));
    const json_t *settings = json_object_get(o, "settings");
    nn_model_member m = { .kind = name != NULL ? nn_member_kind_of(name) : NULL };
    nn_member **one = PL_NEW(mem, nn_member *, to->outputs);
    pl_code code = PL_OK;

    if (m.kind == NULL || !m.kind->averaged)
        return pl_fail(err, PL_EDATA, "metadata family: this program has no member called %.40s", name != NULL ? name : "?");
    for (int32_t k = 0; k < to->n; k++)
        if (to->at[k].kind == m.kind)
            return pl_fail(err, PL_EDATA, "metadata family: %s is there twice", name);
    if (json_array_size(settings) != (size_t)to->outputs)
        return pl_fail(err, PL_EDATA, "metadata family: %s has no settings for each target", name);
    if (one == NULL)
        return pl_fail(err, PL_ENOMEM, "a model");
    for (int32_t i = 0; i < to->outputs && code == PL_OK; i++)
        code = one_take(&one[i], &m, i, json_array_get(settings, (size_t)i), file, mem, err);
    m.one = one;
    to->at[to->n++] = m;
    return code;
}

pl_code nn_members_take(nn_members *out, int32_t outputs, const char *text, const nn_tensors *file, pl_arena *mem, pl_error *err)
{
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *list = json_object_get(root, "members"), *version = json_object_get(root, "features");
    pl_code code = PL_OK;

    *out = (nn_members){ .outputs = outputs };
    if (!json_is_integer(version) || json_integer_value(version) != CH_FEATURES_VERSION)
        code =
            pl_fail(err, PL_EDATA, "the model was trained with features of version %lld, this program computes those of version %d",
                    (long long)json_integer_value(version), (int)CH_FEATURES_VERSION);
    else if (json_array_size(list) < 1 || json_array_size(list) > NN_MEMBERS_MAX)
        code = pl_fail(err, PL_EDATA, "metadata family has no list of 1 to %d members", (int)NN_MEMBERS_MAX);
    for (size_t k = 0; k < json_array_size(list) && code == PL_OK; k++)
        code = member_take(out, json_array_get(list, k), file, mem, err);
    json_decref(root);
    return code;
}

/* ---- predicting ---------------------------------------------------------- */

/* Of one member for one target, whose places in rows of `outputs` numbers are at k. */
static pl_code predict_one(nn_member_outputs *out, const nn_members *all, int32_t member, int32_t k, const nn_table *x,
                           double *scratch, pl_arena *mem, pl_error *err)
{
    double *value = scratch, *variance = scratch + x->n;
    const nn_model_member *m = &all->at[member];
    pl_code code = m->kind->predict(m->one[k], x, value, variance, mem, err);

    for (int32_t i = 0; i < x->n && code == PL_OK; i++) {
        const size_t at = (size_t)i * (size_t)all->outputs + (size_t)k;
        out->y[member][at] = value[i];
        if (isnan(out->variance[at]))
            out->variance[at] = variance[i];
    }
    return code;
}

pl_code nn_members_predict(nn_member_outputs *out, const nn_members *all, const nn_table *x, pl_arena *mem, pl_error *err)
{
    const size_t size = (size_t)x->n * (size_t)all->outputs;
    double *scratch = PL_NEW(mem, double, 2 * (size_t)x->n);
    pl_code code;

    *out = (nn_member_outputs){ .n = x->n, .outputs = all->outputs, .variance = PL_NEW(mem, double, size) };
    code = scratch != NULL && out->variance != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)x->n);
    for (size_t i = 0; i < size && code == PL_OK; i++)
        out->variance[i] = NAN;
    for (int32_t k = 0; k < all->n; k++) {
        out->y[k] = PL_NEW(mem, double, size);
        if (out->y[k] == NULL)
            return pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)x->n);
        for (int32_t i = 0; i < all->outputs && code == PL_OK; i++)
            code = predict_one(out, all, k, i, x, scratch, mem, err);
    }
    return code;
}

pl_code nn_members_columns(nn_table *x, const nn_inputs *in, const float *const *value, pl_arena *mem, pl_error *err)
{
    const size_t width = (size_t)in->n_columns;
    float *column = width > 0 ? PL_NEW(mem, float, (size_t)x->n *width) : NULL;

    if (width > 0 && column == NULL)
        return pl_fail(err, PL_ENOMEM, "columns of %d molecules", (int)x->n);
    for (int32_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < width; k++)
            column[(size_t)i * width + k] = value[i][in->column[k].at];
    x->n_columns = in->n_columns;
    x->column = column;
    return PL_OK;
}
