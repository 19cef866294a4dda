/* SPDX-License-Identifier: Apache-2.0 */
#include "models/family/gp_data.h"

#include <math.h>
#include <stdlib.h>

/* ---- what is stored ----------------------------------------------------------------------- */

static int32_t place_of(const uint32_t *id, int32_t n, uint32_t wanted)
{
    int32_t low = 0, high = n;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (id[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && id[low] == wanted ? low : -1;
}

static int32_t capped(uint32_t count) { return count < NN_GP_COUNT ? (int32_t)count : NN_GP_COUNT; }

static int64_t count_environments(const nn_table *x)
{
    int64_t n = 0;

    for (int32_t i = 0; i < x->n; i++)
        n += x->environments[i].n;
    return n;
}

static pl_code store_environments(nn_gp_stored *out, const nn_table *x, const nn_columns *all, pl_arena *mem, pl_error *err)
{
    const int64_t n = count_environments(x);
    int32_t *first = PL_NEW(mem, int32_t, (size_t)x->n + 1), *which = PL_NEW(mem, int32_t, n), at = 0;
    uint8_t *count = PL_NEW(mem, uint8_t, n);

    if (first == NULL || which == NULL || count == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the environments of %d molecules", (int)x->n);
    for (int32_t i = 0; i < x->n; i++) {
        for (int32_t k = 0; k < x->environments[i].n; k++) {
            which[at] = place_of(all->id, all->n_environments, x->environments[i].at[k].id);
            count[at++] = (uint8_t)capped(x->environments[i].at[k].count);
        }
        first[i + 1] = at;
    }
    out->first = first;
    out->which = which;
    out->count = count;
    return PL_OK;
}

static float number_at(const nn_columns *all, const nn_table *x, int32_t i, int32_t column)
{
    const uint32_t id = all->id[all->n_environments + column];
    const float value = column < all->n_features ? x->features[i][id] : x->column[(size_t)i * (size_t)x->n_columns + (size_t)id];

    return isfinite(value) ? value : NAN;
}

/* Whether a column of numbers differs between molecules. */
static bool differs(const nn_columns *all, const nn_table *x, int32_t column)
{
    float seen = NAN;

    for (int32_t i = 0; i < x->n; i++) {
        const float value = number_at(all, x, i, column);
        if (!isnan(value) && !isnan(seen) && value != seen)
            return true;
        seen = isnan(value) ? seen : value;
    }
    return false;
}

static pl_code store_numbers(nn_gp_stored *out, const nn_table *x, const nn_columns *all, pl_arena *mem, pl_error *err)
{
    const int32_t n_columns = nn_columns_count(all), environments = all->n_environments;
    bool *used = PL_NEW(mem, bool, n_columns);
    int32_t *place = PL_NEW(mem, int32_t, n_columns), d;
    float *number;
    pl_code code;

    if (used == NULL || place == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d columns", (int)n_columns);
    for (int32_t k = 0; k < n_columns - environments; k++)
        used[environments + k] = differs(all, x, k);
    code = nn_columns_used(&out->numbers, all, used, place, mem, err);
    if (code != PL_OK)
        return code;
    d = nn_columns_count(&out->numbers);
    number = PL_NEW(mem, float, (size_t)x->n *(size_t)d);
    if (number == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the descriptors of %d molecules", (int)x->n);
    for (int32_t i = 0; i < x->n; i++)
        nn_columns_row(number + (size_t)i * (size_t)d, &out->numbers, x, i);
    out->number = number;
    return PL_OK;
}

pl_code nn_gp_store(nn_gp_stored *out, const nn_table *x, pl_arena *mem, pl_error *err)
{
    nn_columns all;
    pl_code code;

    if (count_environments(x) > INT32_MAX)
        return pl_fail(err, PL_ECONFIG, "%d molecules have more environments than a Gaussian process holds", (int)x->n);
    code = nn_columns_of(&all, x, 1, mem, err);
    if (code != PL_OK)
        return code;
    *out = (nn_gp_stored){ .n = x->n, .n_ids = all.n_environments, .id = all.id };
    code = store_environments(out, x, &all, mem, err);
    return code == PL_OK ? store_numbers(out, x, &all, mem, err) : code;
}

/* ---- what follows from it ------------------------------------------------------------------- */

/* The molecules of each environment. */
static bool derive_posts(nn_gp_data *out, const nn_gp_stored *s, pl_arena *mem)
{
    int32_t *first = PL_NEW(mem, int32_t, (size_t)s->n_ids + 2), *total = PL_NEW(mem, int32_t, s->n);
    nn_gp_post *post = PL_NEW(mem, nn_gp_post, s->first[s->n]);

    if (first == NULL || total == NULL || post == NULL)
        return false;
    for (int32_t k = 0; k < s->first[s->n]; k++)
        first[s->which[k] + 2]++;
    for (int32_t e = 0; e < s->n_ids; e++)
        first[e + 2] += first[e + 1]; /* first[e + 1]: where environment e is put next */
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t k = s->first[i]; k < s->first[i + 1]; k++) {
            post[first[s->which[k] + 1]++] = (nn_gp_post){ i, s->count[k] };
            total[i] += s->count[k];
        }
    out->post_first = first;
    out->post = post;
    out->total = total;
    return true;
}

/* Mean and standard deviation of column k over the molecules that have it. */
static void spread(double *mean, double *stdev, const nn_gp_stored *s, int32_t d, int32_t k)
{
    double sum = 0, squares = 0;
    int32_t n = 0;

    for (int32_t i = 0; i < s->n; i++) {
        const float x = s->number[(size_t)i * (size_t)d + (size_t)k];
        n += !isnan(x);
        sum += isnan(x) ? 0 : (double)x;
    }
    *mean = n > 0 ? sum / n : 0;
    for (int32_t i = 0; i < s->n; i++) {
        const float x = s->number[(size_t)i * (size_t)d + (size_t)k];
        squares += isnan(x) ? 0 : ((double)x - *mean) * ((double)x - *mean);
    }
    *stdev = n > 0 ? sqrt(squares / n) : 0;
}

static double scaled(float x, double mean, double inverse) { return isnan(x) ? 0 : ((double)x - mean) * inverse; }

static bool derive_numbers(nn_gp_data *out, const nn_gp_stored *s, pl_arena *mem)
{
    const int32_t d = nn_columns_count(&s->numbers), n_tiles = (s->n + NN_TILE - 1) / NN_TILE;
    double *mean = PL_NEW(mem, double, d), *inverse = PL_NEW(mem, double, d);
    double *z = PL_NEW(mem, double, (size_t)n_tiles *(size_t)d *NN_TILE);

    if (mean == NULL || inverse == NULL || z == NULL)
        return false;
    for (int32_t k = 0; k < d; k++) {
        double stdev;
        spread(&mean[k], &stdev, s, d, k);
        inverse[k] = stdev > 0 ? 1 / (stdev * sqrt(d)) : 0;
        for (int32_t i = 0; i < s->n; i++)
            z[((size_t)(i / NN_TILE) * (size_t)d + (size_t)k) * NN_TILE + (size_t)(i % NN_TILE)] =
                scaled(s->number[(size_t)i * (size_t)d + (size_t)k], mean[k], inverse[k]);
    }
    out->d = d;
    out->mean = mean;
    out->inverse = inverse;
    out->z = z;
    return true;
}

pl_code nn_gp_derive(nn_gp_data *out, const nn_gp_stored *s, pl_arena *mem, pl_error *err)
{
    *out = (nn_gp_data){ .s = *s };
    if (!derive_posts(out, s, mem) || !derive_numbers(out, s, mem))
        return pl_fail(err, PL_ENOMEM, "no memory for the comparison of %d molecules", (int)s->n);
    return PL_OK;
}

/* ---- comparing ---------------------------------------------------------------------------------- */

pl_code nn_gp_query_make(nn_gp_query *out, const nn_gp_data *g, int32_t most_environments, pl_arena *mem, pl_error *err)
{
    *out = (nn_gp_query){ .which = PL_NEW(mem, int32_t, most_environments),
                          .count = PL_NEW(mem, int32_t, most_environments),
                          .number = PL_NEW(mem, float, g->d),
                          .z = PL_NEW(mem, double, g->d),
                          .common = PL_NEW(mem, int32_t, g->s.n) };
    if (out->which == NULL || out->count == NULL || out->number == NULL || out->z == NULL || out->common == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to compare with %d molecules", (int)g->s.n);
    return PL_OK;
}

static void scale_all(nn_gp_query *q, const nn_gp_data *g)
{
    for (int32_t k = 0; k < g->d; k++)
        q->z[k] = scaled(q->number[k], g->mean[k], g->inverse[k]);
}

void nn_gp_query_set(nn_gp_query *q, const nn_gp_data *g, const nn_table *x, int32_t row)
{
    const ch_environments *e = &x->environments[row];

    q->n = q->total = 0;
    for (int32_t k = 0; k < e->n; k++) {
        const int32_t place = place_of(g->s.id, g->s.n_ids, e->at[k].id), count = capped(e->at[k].count);
        q->total += count;
        if (place < 0)
            continue;
        q->which[q->n] = place;
        q->count[q->n++] = count;
    }
    nn_columns_row(q->number, &g->s.numbers, x, row);
    scale_all(q, g);
}

void nn_gp_query_own(nn_gp_query *q, const nn_gp_data *g, int32_t i)
{
    q->n = 0;
    q->total = g->total[i];
    for (int32_t k = g->s.first[i]; k < g->s.first[i + 1]; k++) {
        q->which[q->n] = g->s.which[k];
        q->count[q->n++] = g->s.count[k];
    }
    for (int32_t k = 0; k < g->d; k++)
        q->number[k] = g->s.number[(size_t)i * (size_t)g->d + (size_t)k];
    scale_all(q, g);
}

void nn_gp_tanimoto(double *t, const nn_gp_data *g, const nn_gp_query *q, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        q->common[i] = 0;
    for (int32_t k = 0; k < q->n; k++) {
        const nn_gp_post *p = g->post + g->post_first[q->which[k]], *end = g->post + g->post_first[q->which[k] + 1];
        for (; p < end && p->molecule < n; p++)
            q->common[p->molecule] += p->count < q->count[k] ? p->count : q->count[k];
    }
    for (int32_t i = 0; i < n; i++) {
        const int32_t larger = q->total + g->total[i] - q->common[i];
        t[i] = larger > 0 ? (double)q->common[i] / larger : 1; /* two without environments are alike */
    }
}

void nn_gp_distance(double *d, const nn_gp_data *g, const nn_gp_query *q, int32_t n)
{
    for (int32_t i = 0; i < n; i += NN_TILE) {
        double tile[NN_TILE];
        nn_tile_distances(tile, q->z, g->z + (size_t)i * (size_t)g->d, g->d);
        for (int32_t k = 0; k < NN_TILE && i + k < n; k++)
            d[i + k] = tile[k];
    }
}
