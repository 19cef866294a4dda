/* SPDX-License-Identifier: Apache-2.0 */
#include "models/family/columns.h"

#include <math.h>
#include <stdlib.h>

int32_t nn_columns_count(const nn_columns *c) { return c->n_environments + c->n_features + c->n_others; }

/* ---- which columns ------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* ids [n], in any order, become those that occur at least `least` times, ascending, once each; returns how many. */
static int32_t keep_frequent(uint32_t *id, size_t n, int min)
{
    int32_t kept = 0;

    qsort(id, n, sizeof *id, by_id);
    for (size_t i = 0, next; i < n; i = next) {
        const uint32_t this = id[i];
        for (next = i + 1; next < n && id[next] == this; next++)
            ;
        if (next - i >= (size_t)min)
            id[kept++] = this;
    }
    return kept;
}

pl_code nn_columns_of(nn_columns *out, const nn_table *x, int min, pl_arena *mem, pl_error *err)
{
    size_t n = 0, at = 0;
    uint32_t *id;

    for (int32_t i = 0; i < x->n; i++)
        n += (size_t)x->environments[i].n;
    id = PL_NEW(mem, uint32_t, n + CH_N_FEATURES + (size_t)x->n_columns);
    if (id == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the columns of %d molecules", (int)x->n);
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t k = 0; k < x->environments[i].n; k++)
            id[at++] = x->environments[i].at[k].id;
    *out = (nn_columns){ keep_frequent(id, n, min), CH_N_FEATURES, x->n_columns, id };
    for (int32_t k = 0; k < out->n_features; k++)
        id[out->n_environments + k] = (uint32_t)k;
    for (int32_t k = 0; k < out->n_others; k++)
        id[out->n_environments + out->n_features + k] = (uint32_t)k;
    return PL_OK;
}

pl_code nn_columns_used(nn_columns *out, const nn_columns *c, const bool *used, int32_t *place, pl_arena *mem, pl_error *err)
{
    const int32_t n = nn_columns_count(c), environments = c->n_environments, features = environments + c->n_features;
    uint32_t *id = PL_NEW(mem, uint32_t, n);
    int32_t kept = 0;

    *out = (nn_columns){ .id = id };
    if (id == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d columns", (int)n);
    for (int32_t i = 0; i < n; i++) {
        place[i] = kept;
        if (!used[i])
            continue;
        id[kept++] = c->id[i];
        out->n_environments += i < environments;
        out->n_features += i >= environments && i < features;
        out->n_others += i >= features;
    }
    return PL_OK;
}

static bool ascend(const uint32_t *id, int32_t n)
{
    for (int32_t i = 1; i < n; i++)
        if (id[i - 1] >= id[i])
            return false;
    return true;
}

pl_code nn_columns_check(const nn_columns *c, pl_error *err)
{
    const uint32_t *feature = c->id + c->n_environments, *other = feature + c->n_features;

    if (!ascend(c->id, c->n_environments) || !ascend(feature, c->n_features) || !ascend(other, c->n_others))
        return pl_fail(err, PL_EDATA, "its columns are not in ascending order");
    if (c->n_features > 0 && feature[c->n_features - 1] >= CH_N_FEATURES)
        return pl_fail(err, PL_EDATA, "descriptor %u does not exist", (unsigned)feature[c->n_features - 1]);
    if (c->n_others > 0 && other[c->n_others - 1] >= INT32_MAX)
        return pl_fail(err, PL_EDATA, "column %u does not exist", (unsigned)other[c->n_others - 1]);
    return PL_OK;
}

pl_code nn_columns_fit(const nn_columns *c, const nn_table *x, pl_error *err)
{
    const int32_t n = nn_columns_count(c);

    if (c->n_others > 0 && c->id[n - 1] >= (uint32_t)x->n_columns)
        return pl_fail(err, PL_ECONFIG, "the model reads column %u of the table, which has %d", (unsigned)c->id[n - 1] + 1,
                       (int)x->n_columns);
    return PL_OK;
}

/* ---- rows ------------------------------------------------------------------------------ */

static int32_t find(const uint32_t *id, int32_t n, uint32_t wanted)
{
    const uint32_t *at = bsearch(&wanted, id, (size_t)n, sizeof *id, by_id);

    return at != NULL ? (int32_t)(at - id) : -1;
}

void nn_columns_row(float *out, const nn_columns *c, const nn_table *x, int32_t row)
{
    const int32_t n = nn_columns_count(c), features = c->n_environments, others = features + c->n_features;
    const ch_environments *e = &x->environments[row];
    const float *column = x->n_columns > 0 ? x->column + (size_t)row * (size_t)x->n_columns : NULL;

    for (int32_t i = 0; i < features; i++)
        out[i] = NAN;
    for (int32_t k = 0; k < e->n; k++) {
        const int32_t i = find(c->id, c->n_environments, e->at[k].id);
        if (i >= 0)
            out[i] = (float)e->at[k].count;
    }
    for (int32_t i = features; i < n; i++) {
        out[i] = i < others ? x->features[row][c->id[i]] : column[c->id[i]];
        if (!isfinite(out[i]))
            out[i] = NAN;
    }
}

static size_t max_values(const nn_columns *c, const nn_table *x)
{
    size_t n = 0;

    for (int32_t i = 0; i < x->n; i++)
        n += (size_t)x->environments[i].n + (size_t)(c->n_features + c->n_others);
    return n;
}

pl_code nn_columns_rows(nn_sparse *out, const nn_columns *c, const nn_table *x, pl_arena *mem, pl_error *err)
{
    const int32_t n_columns = nn_columns_count(c);
    const size_t max = max_values(c, x);
    size_t *first = PL_NEW(mem, size_t, (size_t)x->n + 1), n = 0;
    unsigned *column = PL_NEW(mem, unsigned, max);
    float *value = PL_NEW(mem, float, max), *row = PL_NEW(mem, float, n_columns);

    if (first == NULL || column == NULL || value == NULL || row == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the table of %d molecules", (int)x->n);
    for (int32_t i = 0; i < x->n; i++) {
        nn_columns_row(row, c, x, i);
        for (int32_t k = 0; k < n_columns; k++)
            if (!isnan(row[k])) {
                column[n] = (unsigned)k;
                value[n++] = row[k];
            }
        first[i + 1] = n;
    }
    *out = (nn_sparse){ x->n, n_columns, first, column, value };
    return PL_OK;
}
