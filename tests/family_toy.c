/* SPDX-License-Identifier: Apache-2.0 */
#include "family_toy.h"

#include <math.h>

#include "pipeline/base/rng.h"
#include "tests/unit/guarded.h"

enum { KINDS = 300, MAX = 40, VARIED = 2, FACTOR = 40503 /* id of kind k: FACTOR * (k + 1) */ };

/* Environments of one molecule: low numbers are common, as carbons are; ascending ids. */
static void environments(ch_environments *out, ch_environment *room, pl_rng *rng)
{
    *out = (ch_environments){ 0, room };
    for (uint32_t id = 0; id < KINDS && out->n < MAX; id++)
        if (pl_rng_real(rng) < 4.0 / (4 + id))
            out->at[out->n++] = (ch_environment){ FACTOR * (id + 1), 1 + (uint32_t)pl_rng_below(rng, 4) };
}

/* What the environments add: each kind has its own effect, the common ones the larger. */
static double effect(const ch_environments *e)
{
    double sum = 0;

    for (int32_t k = 0; k < e->n; k++)
        sum += (double)e->at[k].count * sin((double)e->at[k].id) * 10 / (10 + e->at[k].id / FACTOR);
    return sum;
}

bool family_toy_make(family_toy *out, int32_t n, uint64_t seed, pl_arena *mem)
{
    ch_environments *e = guarded((size_t)n, sizeof *e);
    ch_environment *room = PL_NEW(mem, ch_environment, (size_t)MAX * (size_t)n + 1);
    float(*features)[CH_N_FEATURES] = guarded((size_t)n, sizeof *features);
    float *column = guarded((size_t)n, FAMILY_COLUMNS * sizeof *column);

    out->y = guarded((size_t)n, sizeof *out->y);
    out->classes = guarded((size_t)n, sizeof *out->classes);
    if (e == NULL || room == NULL || features == NULL || column == NULL || out->y == NULL || out->classes == NULL)
        return false;
    for (int32_t i = 0; i < n; i++) {
        pl_rng rng = pl_rng_at(seed, (uint64_t)i, 0);
        float *c = column + FAMILY_COLUMNS * (size_t)i;
        environments(&e[i], room + MAX * (size_t)i, &rng);
        for (int k = 0; k < CH_N_FEATURES; k++) /* the first VARIED differ between molecules, however many the table has */
            features[i][k] = (k < VARIED ? (float)pl_rng_normal(&rng) * (float)(k % 7 + 1) : 0) + (float)(k % 5);
        for (int k = 0; k < FAMILY_COLUMNS; k++)
            c[k] = pl_rng_real(&rng) < 0.125 ? NAN : (float)pl_rng_normal(&rng);
        out->y[i] = effect(&e[i]) + features[i][0] + features[i][1] * 0.5 + 0.1 * pl_rng_normal(&rng);
        if (!isnan(c[0]))
            out->y[i] += 2 * c[0];
        out->classes[i] = out->y[i] > 1;
    }
    out->x = (nn_table){ n, e, (const float(*)[CH_N_FEATURES])features, FAMILY_COLUMNS, column };
    return true;
}

bool family_toy_again(nn_member **out, const nn_member_kind *kind, const nn_member *m, pl_arena *mem)
{
    const char *json;
    nn_tensor *t;
    int n;

    if (kind->save(m, "member.0", &t, &n, &json, mem, NULL) != PL_OK)
        return false;
    return kind->open(out, "member.0", &(nn_tensors){ .n = n, .t = t }, json, mem, NULL) == PL_OK;
}
