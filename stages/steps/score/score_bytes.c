/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker of the stage `score` returns, as bytes that a part of the stage keeps. */
#include <string.h>

#include "stages/steps/score/score_parts.h"

/* ---- to bytes ---- */

static void put(pl_text *out, const void *data, size_t n) { pl_text_add_n(out, data, n); }

static void outcome_put(pl_text *out, const st_outcome *o)
{
    put(out, &o->value, sizeof o->value);
    put(out, &o->spread, sizeof o->spread);
    put(out, &o->uncertainty, sizeof o->uncertainty);
    put(out, &o->unknown, sizeof o->unknown);
}

static void near_put(pl_text *out, const nn_near *near)
{
    const char *key = near->key != NULL ? near->key : "";
    const uint32_t n = (uint32_t)strlen(key) + (near->key != NULL);

    put(out, &near->alike, sizeof near->alike);
    put(out, &n, sizeof n);
    put(out, key, n);
}

/* Only the kinds that there are. */
static size_t traits_size(int32_t n_kinds) { return offsetof(nn_traits, kind) + (size_t)n_kinds * sizeof(nn_kind); }

void st_score_bytes_put(pl_text *out, const st_scorer *s, const st_scored *u)
{
    const int32_t has_traits = u->traits != NULL;

    put(out, &u->n, sizeof u->n);
    put(out, &has_traits, sizeof has_traits);
    put(out, &u->radial_error, sizeof u->radial_error);
    put(out, u->id, (size_t)u->n * sizeof *u->id);
    for (int64_t i = 0; i < (int64_t)u->n * s->n_targets; i++)
        outcome_put(out, &u->outcome[i]);
    for (int k = 0; k < s->n_targets; k++)
        for (int32_t i = 0; s->target[k].searched == k && i < u->n; i++)
            near_put(out, &u->near[k][i]);
    for (int32_t i = 0; has_traits && i < u->n; i++) {
        put(out, &u->traits[i].n_kinds, sizeof u->traits[i].n_kinds);
        put(out, &u->traits[i], traits_size(u->traits[i].n_kinds));
    }
}

/* ---- from bytes ---- */

typedef struct reading {
    const char *at;
    size_t left;
    bool good;
} reading;

static void get(reading *r, void *to, size_t n)
{
    r->good = r->good && n <= r->left;
    if (!r->good)
        return;
    if (n > 0)
        memcpy(to, r->at, n);
    r->at += n;
    r->left -= n;
}

static void outcome_get(reading *r, st_outcome *o)
{
    get(r, &o->value, sizeof o->value);
    get(r, &o->spread, sizeof o->spread);
    get(r, &o->uncertainty, sizeof o->uncertainty);
    get(r, &o->unknown, sizeof o->unknown);
}

static void near_get(reading *r, nn_near *near, pl_arena *mem)
{
    uint32_t n = 0;

    get(r, &near->alike, sizeof near->alike);
    get(r, &n, sizeof n);
    r->good = r->good && n <= r->left;
    near->key = r->good && n > 0 ? pl_strndup(mem, r->at, n - 1) : NULL;
    r->good = r->good && (n == 0 || near->key != NULL);
    if (r->good) {
        r->at += n;
        r->left -= n;
    }
}

static void nears_get(reading *r, st_scored *u, const st_scorer *s, pl_arena *mem)
{
    for (int k = 0; k < s->n_targets && r->good; k++) {
        const int j = s->target[k].searched;
        nn_near *near = j == k ? PL_NEW(mem, nn_near, u->n + 1) : NULL;
        r->good = j != k || near != NULL;
        for (int32_t i = 0; near != NULL && i < u->n && r->good; i++)
            near_get(r, &near[i], mem);
        u->near[k] = j >= 0 && j != k ? u->near[j] : near;
    }
}

static void traits_get(reading *r, st_scored *u, pl_arena *mem)
{
    u->traits = PL_NEW(mem, nn_traits, u->n + 1);
    r->good = r->good && u->traits != NULL;
    for (int32_t i = 0; r->good && i < u->n; i++) {
        int32_t n = 0;
        get(r, &n, sizeof n);
        r->good = r->good && n >= 0 && n <= NN_KINDS_MAX + 1;
        if (r->good)
            get(r, &u->traits[i], traits_size(n));
    }
}

bool st_score_bytes_get(st_scored *u, const st_scorer *s, pl_bytes data, pl_arena *mem)
{
    reading r = { data.data, data.len, true };
    int32_t n = 0, has_traits = 0;

    *u = (st_scored){ 0 };
    get(&r, &n, sizeof n);
    get(&r, &has_traits, sizeof has_traits);
    get(&r, &u->radial_error, sizeof u->radial_error);
    if (!r.good || n < 0 || (size_t)n > r.left / sizeof *u->id || (has_traits != 0) != s->has_range)
        return false;
    u->n = n;
    u->id = PL_NEW(mem, int64_t, n + 1);
    u->outcome = PL_NEW(mem, st_outcome, (size_t)n * (size_t)s->n_targets + 1);
    if (u->id == NULL || u->outcome == NULL)
        return false;
    get(&r, u->id, (size_t)n * sizeof *u->id);
    for (int64_t i = 0; i < (int64_t)n * s->n_targets && r.good; i++)
        outcome_get(&r, &u->outcome[i]);
    nears_get(&r, u, s, mem);
    if (has_traits)
        traits_get(&r, u, mem);
    return r.good && r.left == 0;
}
