/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "models/family/gp_parts.h"
#include "pipeline/base/text.h"

/* Tensors of a Gaussian process, in the order in which they are stored. BYTES: an unsigned number in 3 bytes. */
enum { ALPHA, IDS, SIZES, COLUMNS, SUBSET, NUMBERS, FACTOR, WHICH, COUNTS, TENSORS, BYTES = 3 };
static const char *const names[TENSORS] = { "alpha",  "environment", "environments", "column", "subset",
                                            "number", "factor",      "which",        "count" };
static const nn_dtype types[TENSORS] = { NN_F64, NN_I32, NN_I32, NN_I32, NN_I32, NN_F32, NN_F32, NN_U8, NN_U8 };

/* ---- writing ---------------------------------------------------------------------------------- */

static size_t factor_size(int64_t m) { return (size_t)(m * (m + 1) / 2); }

static void put(nn_tensor *t, int which, const void *data, int64_t rows, int64_t columns)
{
    t[which] = (nn_tensor){ .dtype = types[which],
                            .n_dims = columns >= 0 ? 2 : 1,
                            .dims = { rows, columns >= 0 ? columns : 0 },
                            .count = (size_t)(columns >= 0 ? rows * columns : rows),
                            .data = data };
}

/* Places of environments in 3 bytes each; how many a molecule has. */
static bool pack(const nn_gp_stored *s, uint8_t **which, int32_t **sizes, pl_arena *mem)
{
    const int32_t n = s->first[s->n];

    *which = PL_NEW(mem, uint8_t, BYTES * (size_t)n);
    *sizes = PL_NEW(mem, int32_t, s->n);
    if (*which == NULL || *sizes == NULL)
        return false;
    for (int32_t k = 0; k < n; k++)
        for (int b = 0; b < BYTES; b++)
            (*which)[BYTES * (size_t)k + (size_t)b] = (uint8_t)(s->which[k] >> (8 * b));
    for (int32_t i = 0; i < s->n; i++)
        (*sizes)[i] = s->first[i + 1] - s->first[i];
    return true;
}

static const char *settings_of(const nn_member *m, pl_arena *mem)
{
    char w[32], length[32], noise[32], signal[32], mean[32], scale[32];

    return pl_sprintf(mem,
                      "{\"classifies\":%s,\"w\":%s,\"length\":%s,\"noise\":%s,\"signal\":%s,\"mean\":%s,\"scale\":%s,"
                      "\"descriptors\":%d}",
                      m->classifies ? "true" : "false", pl_real_str(m->k.w, w), pl_real_str(m->k.length, length),
                      pl_real_str(m->k.noise, noise), pl_real_str(m->k.signal, signal), pl_real_str(m->mean, mean),
                      pl_real_str(m->scale, scale), (int)m->g.s.numbers.n_features);
}

pl_code nn_gp_save(const nn_member *m, const char *prefix, nn_tensor **out, int *n, const char **json, pl_arena *mem, pl_error *err)
{
    const nn_gp_stored *s = &m->g.s;
    nn_tensor *t = PL_NEW(mem, nn_tensor, TENSORS);
    uint8_t *which;
    int32_t *sizes;
    bool ok = t != NULL && pack(s, &which, &sizes, mem);

    *out = t;
    *n = TENSORS;
    *json = settings_of(m, mem);
    if (ok) {
        put(t, ALPHA, m->alpha, s->n, -1);
        put(t, IDS, s->id, s->n_ids, -1);
        put(t, SIZES, sizes, s->n, -1);
        put(t, COLUMNS, s->numbers.id, m->g.d, -1);
        put(t, SUBSET, m->subset, m->m, -1);
        put(t, NUMBERS, s->number, s->n, m->g.d);
        put(t, FACTOR, m->factor, (int64_t)factor_size(m->m), -1);
        put(t, WHICH, which, s->first[s->n], BYTES);
        put(t, COUNTS, s->count, s->first[s->n], -1);
    }
    for (int k = 0; ok && k < TENSORS; k++) {
        t[k].name = pl_sprintf(mem, "%s.%s", prefix, names[k]);
        ok = t[k].name != NULL;
    }
    return ok && *json != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory to store a Gaussian process");
}

/* ---- reading ------------------------------------------------------------------------------------ */

typedef struct file {
    const nn_tensor *t[TENSORS];
    const char *prefix;
} file;

static pl_code find_all(file *f, const nn_tensors *all, pl_error *err)
{
    char name[128];

    for (int k = 0; k < TENSORS; k++) {
        const int n = snprintf(name, sizeof name, "%s.%s", f->prefix, names[k]);
        f->t[k] = n < (int)sizeof name ? nn_tensors_find(all, name) : NULL;
        if (f->t[k] == NULL || f->t[k]->dtype != types[k])
            return pl_fail(err, PL_EDATA, "tensor %s is missing or of another type", name);
    }
    return PL_OK;
}

/* A copy of tensor k, aligned. */
static void *copy(const file *f, int k, pl_arena *mem)
{
    const size_t bytes = f->t[k]->count * nn_dtype_bytes(types[k]);
    void *out = PL_NEW(mem, char, bytes);

    if (out != NULL)
        memcpy(out, f->t[k]->data, bytes);
    return out;
}

static pl_code damaged(const file *f, int k, pl_error *err)
{
    return pl_fail(err, PL_EDATA, "tensor %s.%s does not fit the others", f->prefix, names[k]);
}

static pl_code take_environments(nn_gp_stored *s, const file *f, pl_arena *mem, pl_error *err)
{
    const size_t n = f->t[COUNTS]->count;
    const uint8_t *packed = f->t[WHICH]->data;
    const int32_t *sizes = copy(f, SIZES, mem);
    int32_t *first = PL_NEW(mem, int32_t, s->n + 1), *which = PL_NEW(mem, int32_t, n);
    int64_t sum = 0;

    s->id = copy(f, IDS, mem);
    s->count = copy(f, COUNTS, mem);
    if (sizes == NULL || first == NULL || which == NULL || s->id == NULL || s->count == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");
    if (n > INT32_MAX || f->t[WHICH]->count != BYTES * n)
        return damaged(f, WHICH, err);
    for (int32_t i = 0; i < s->n; i++) {
        sum += sizes[i];
        if (sizes[i] < 0 || sum > (int64_t)n)
            return damaged(f, SIZES, err);
        first[i + 1] = (int32_t)sum;
    }
    if (sum != (int64_t)n)
        return damaged(f, SIZES, err);
    for (size_t k = 0; k < n; k++, packed += BYTES) {
        which[k] = packed[0] | packed[1] << 8 | packed[2] << 16;
        if (which[k] >= s->n_ids)
            return damaged(f, WHICH, err);
        if (s->count[k] == 0)
            return damaged(f, COUNTS, err);
    }
    s->first = first;
    s->which = which;
    return nn_columns_check(&(nn_columns){ .n_environments = s->n_ids, .id = s->id }, err);
}

/* Each environment of a molecule once, in ascending order. */
static pl_code check_ascending(const nn_gp_stored *s, const file *f, pl_error *err)
{
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t k = s->first[i] + 1; k < s->first[i + 1]; k++)
            if (s->which[k - 1] >= s->which[k])
                return damaged(f, WHICH, err);
    return PL_OK;
}

static pl_code take_numbers(nn_gp_stored *s, const file *f, int64_t n_features, pl_arena *mem, pl_error *err)
{
    const int64_t d = (int64_t)f->t[COLUMNS]->count;
    pl_code code;

    if (n_features < 0 || n_features > d || d > INT32_MAX)
        return damaged(f, COLUMNS, err);
    if (f->t[NUMBERS]->count != (size_t)s->n * (size_t)d)
        return damaged(f, NUMBERS, err);
    s->numbers = (nn_columns){ 0, (int32_t)n_features, (int32_t)(d - n_features), copy(f, COLUMNS, mem) };
    s->number = copy(f, NUMBERS, mem);
    if (s->numbers.id == NULL || s->number == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");
    code = nn_columns_check(&s->numbers, err);
    for (size_t k = 0; k < f->t[NUMBERS]->count; k++)
        if (isinf(s->number[k]))
            code = damaged(f, NUMBERS, err);
    return code;
}

static pl_code take_factor(nn_member *m, const file *f, pl_arena *mem, pl_error *err)
{
    const size_t n = f->t[FACTOR]->count;
    size_t at = 0;

    m->m = (int32_t)f->t[SUBSET]->count;
    m->subset = copy(f, SUBSET, mem);
    m->factor = copy(f, FACTOR, mem);
    if (m->subset == NULL || m->factor == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");
    if (n != factor_size(m->m))
        return damaged(f, FACTOR, err);
    for (int32_t i = 0; i < m->m; i++)
        if (m->subset[i] <= (i > 0 ? m->subset[i - 1] : -1) || m->subset[i] >= m->g.s.n)
            return damaged(f, SUBSET, err);
    for (int32_t i = 0; i < m->m; i++)
        for (int32_t j = 0; j <= i; j++, at++)
            if (!isfinite(m->factor[at]) || (i == j && !(m->factor[at] > 0)))
                return damaged(f, FACTOR, err);
    return PL_OK;
}

static pl_code take_alpha(nn_member *m, const file *f, pl_arena *mem, pl_error *err)
{
    m->alpha = copy(f, ALPHA, mem);
    if (m->alpha == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");
    for (int32_t i = 0; i < m->g.s.n; i++)
        if (!isfinite(m->alpha[i]))
            return damaged(f, ALPHA, err);
    return PL_OK;
}

static pl_code take_tensors(nn_member *m, const file *f, int64_t n_features, pl_arena *mem, pl_error *err)
{
    nn_gp_stored *s = &m->g.s;
    pl_code code;

    if (f->t[ALPHA]->count > NN_GP_MAX || f->t[ALPHA]->count != f->t[SIZES]->count || f->t[ALPHA]->count == 0)
        return damaged(f, ALPHA, err);
    if (f->t[SUBSET]->count > NN_GP_SUBSET)
        return damaged(f, SUBSET, err);
    if (f->t[IDS]->count > 1 << 24)
        return damaged(f, IDS, err);
    s->n = (int32_t)f->t[ALPHA]->count;
    s->n_ids = (int32_t)f->t[IDS]->count;
    code = take_environments(s, f, mem, err);
    if (code == PL_OK)
        code = check_ascending(s, f, err);
    if (code == PL_OK)
        code = take_numbers(s, f, n_features, mem, err);
    if (code == PL_OK)
        code = take_alpha(m, f, mem, err);
    if (code == PL_OK)
        code = take_factor(m, f, mem, err);
    return code;
}

static pl_code take_settings(nn_member *m, const json_t *j, int64_t *n_features, pl_error *err)
{
    const struct {
        const char *key;
        double *to, low, high;
    } settings[] = {
        { "w", &m->k.w, 0, 1 },
        { "length", &m->k.length, 1e-6, 1e6 },
        { "noise", &m->k.noise, 1e-9, 1e9 },
        { "signal", &m->k.signal, 0, 1e30 },
        { "mean", &m->mean, -INFINITY, INFINITY },
        { "scale", &m->scale, 0, INFINITY },
    };

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const json_t *number = json_object_get(j, settings[i].key);
        const double x = json_number_value(number);
        if (!json_is_number(number) || !isfinite(x) || x < settings[i].low || x > settings[i].high)
            return pl_fail(err, PL_EDATA, "setting %s is not a number that it can be", settings[i].key);
        *settings[i].to = x;
    }
    if (!json_is_boolean(json_object_get(j, "classifies")) || !json_is_integer(json_object_get(j, "descriptors")))
        return pl_fail(err, PL_EDATA, "settings classifies and descriptors are not those of a Gaussian process");
    m->classifies = json_is_true(json_object_get(j, "classifies"));
    *n_features = json_integer_value(json_object_get(j, "descriptors"));
    return PL_OK;
}

pl_code nn_gp_open(nn_member **out, const char *prefix, const nn_tensors *all, const char *json, pl_arena *mem, pl_error *err)
{
    nn_member *m = PL_NEW(mem, nn_member, 1);
    file f = { .prefix = prefix };
    int64_t n_features = 0;
    json_error_t why;
    json_t *j = json_loads(json, JSON_REJECT_DUPLICATES, &why);
    pl_code code = m != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");

    *out = m;
    if (code == PL_OK && !json_is_object(j))
        code = pl_fail(err, PL_EDATA, "the settings of %s are no JSON object", prefix);
    if (code == PL_OK)
        code = take_settings(m, j, &n_features, err);
    if (code == PL_OK)
        code = find_all(&f, all, err);
    if (code == PL_OK)
        code = take_tensors(m, &f, n_features, mem, err);
    if (code == PL_OK)
        code = nn_gp_derive(&m->g, &m->g.s, mem, err);
    json_decref(j);
    return code;
}
