/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/errors/domain.h"

#include <stdio.h>

#include "pipeline/base/rng.h"
#include "pipeline/store/store.h"

enum { PURPOSE = 0x646f6d61 }; /* of the random stream */

static pl_code print_of(ch_fingerprint *out, const ch_graph *graph, pl_arena *scratch, pl_error *err)
{
    pl_arena_reset(scratch);
    return ch_fingerprint_of_graph(out, graph, scratch, err);
}

static pl_code key_read(char key[NN_DOMAIN_KEY + 1], sqlite3_stmt *st, int64_t mol_id, pl_error *err)
{
    bool row = false;
    pl_code code;

    (void)sqlite3_bind_int64(st, 1, mol_id);
    code = pl_db_step(st, &row, err);
    if (row && sqlite3_column_bytes(st, 0) == NN_DOMAIN_KEY)
        (void)snprintf(key, NN_DOMAIN_KEY + 1, "%s", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_reset(st);
    return code;
}

/* Every molecule has the same chance (Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S). */
static pl_code choose(nn_domain_molecule *out, int64_t n, const pl_env *env, const st_samples *train, sqlite3_stmt *st,
                      pl_arena *scratch, pl_error *err)
{
    const st_dataset *d = train->d;
    pl_rng rng = pl_rng_at(env->seed, 0, PURPOSE);
    pl_code code = PL_OK;

    for (int64_t i = 0, left = n; left > 0 && code == PL_OK; i++) {
        if (pl_rng_below(&rng, (uint64_t)(train->n - i)) >= (uint64_t)left)
            continue;
        out[n - left].at = train->at[i];
        code = print_of(&out[n - left].print, d->item[train->at[i]].graph, scratch, err);
        if (code == PL_OK)
            code = key_read(out[n - left].key, st, d->mol_id[train->at[i]], err);
        left--;
    }
    return code;
}

/* What was measured of the chosen molecules, in the order of the domain. */
static pl_code values_make(nn_domain *out, const nn_domain_molecule *chosen, const st_dataset *d, pl_arena *mem, pl_error *err)
{
    float *value = PL_NEW(mem, float, (size_t)out->n *(size_t)d->n_targets + 1);

    if (value == NULL)
        return pl_fail(err, PL_ENOMEM, "the domain of a model, %d molecules", (int)out->n);
    for (int32_t i = 0; i < out->n; i++)
        for (int32_t k = 0; k < d->n_targets; k++)
            value[(size_t)i * (size_t)d->n_targets + (size_t)k] = (float)st_dataset_value(d, chosen[i].at, k);
    return nn_domain_measured(out, value, d->n_targets, mem, err);
}

pl_code st_domain_make(nn_domain *out, const pl_env *env, const st_samples *train, int64_t max, pl_error *err)
{
    const int64_t n = train->n < max ? train->n : max;
    pl_arena *scratch = pl_arena_new(1 << 16);
    nn_domain_molecule *chosen = PL_NEW(env->mem, nn_domain_molecule, n + 1);
    sqlite3_stmt *st = NULL;
    pl_code code =
        scratch != NULL && chosen != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the domain of a model, %lld molecules", (long long)n);

    *out = (nn_domain){ 0 };
    if (code == PL_OK)
        code = pl_db_prepare(env->store->db, &st, "SELECT inchikey FROM molecule WHERE mol_id=?", err);
    if (code == PL_OK)
        code = choose(chosen, n, env, train, st, scratch, err);
    if (code == PL_OK)
        code = nn_domain_make(out, chosen, (int32_t)n, env->mem, err);
    if (code == PL_OK)
        code = values_make(out, chosen, train->d, env->mem, err);
    (void)sqlite3_finalize(st);
    pl_arena_free(scratch);
    return code;
}

/* ---- molecules that a model has met besides ---- */

typedef struct blocks {
    char (*key)[NN_SEEN_KEY + 1];
    int64_t n;
} blocks;

static void block_add(blocks *b, const char *inchikey)
{
    (void)snprintf(b->key[b->n++], NN_SEEN_KEY + 1, "%.*s", NN_SEEN_KEY, inchikey);
}

/* Returns whether the file of the start lists all molecules that it was trained on and met. */
static bool start_add(blocks *b, const nn_model_file *start)
{
    for (int32_t i = 0; start != NULL && i < start->domain.n; i++)
        block_add(b, start->domain.key[i]);
    for (int32_t i = 0; start != NULL && i < start->seen.n; i++)
        block_add(b, start->seen.key[i]);
    return start == NULL ||
           (start->seen.known && start->seen.all && start->domain.n > 0 && start->domain.n >= start->range.molecules);
}

/* And training molecules with limits alone, which are not in the domain. */
static pl_code validation_add(blocks *b, const pl_env *env, const st_dataset *d, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(env->store->db, &st, "SELECT inchikey FROM molecule WHERE mol_id=?", err);

    for (int64_t i = 0; i < d->n && code == PL_OK; i++) {
        char key[NN_DOMAIN_KEY + 1] = "";
        if (d->part[i] != ST_VALID && st_dataset_is_labelled(d, i))
            continue;
        code = key_read(key, st, d->mol_id[i], err);
        block_add(b, key);
    }
    (void)sqlite3_finalize(st);
    return code;
}

pl_code st_seen_make(nn_seen *out, const pl_env *env, const st_dataset *d, const nn_model_file *start, int64_t max, pl_error *err)
{
    const int64_t room = d->n + (start != NULL ? start->domain.n + start->seen.n : 0) + 1;
    blocks b = { .key = pl_arena_get(env->mem, (size_t)room, sizeof *b.key) };
    bool all;
    pl_code code = b.key != NULL ? validation_add(&b, env, d, err)
                                 : pl_fail(err, PL_ENOMEM, "the validation molecules of a model, %lld", (long long)d->n);

    if (code != PL_OK)
        return code;
    all = start_add(&b, start);
    return nn_seen_make(out, b.key, b.n, max, all, env->mem, err);
}

/* ---- similarity ---- */

pl_code st_item_prints(const ch_fingerprint **out, const nn_item *item, int32_t n, pl_arena *mem, pl_error *err)
{
    pl_arena *scratch = pl_arena_new(1 << 16);
    ch_fingerprint *print = PL_NEW(mem, ch_fingerprint, n + 1);
    pl_code code = scratch != NULL && print != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the nearest of %d molecules", (int)n);

    *out = print;
    for (int32_t i = 0; i < n && code == PL_OK; i++)
        code = print_of(&print[i], item[i].graph, scratch, err);
    pl_arena_free(scratch);
    return code;
}

pl_code st_domain_nearest(const nn_near **out, const nn_domain *domain, int32_t target, const ch_fingerprint *print, int32_t n,
                          pl_arena *mem, pl_error *err)
{
    nn_near *near = PL_NEW(mem, nn_near, n + 1);

    if (near == NULL)
        return pl_fail(err, PL_ENOMEM, "the nearest of %d molecules", (int)n);
    nn_domain_nearest(near, domain, target, print, n);
    *out = near;
    return PL_OK;
}

/* Of the molecules at[n], positions in d; none for a model without a domain. */
static pl_code prints_of(const ch_fingerprint **out, const nn_domain *domain, const st_dataset *d, const int64_t *at, int32_t n,
                         pl_error *err)
{
    nn_item *item = PL_NEW(d->mem, nn_item, n + 1);

    for (int32_t i = 0; i < n && item != NULL; i++)
        item[i] = d->item[at[i]];
    return item != NULL ? st_item_prints(out, item, domain->n > 0 ? n : 0, d->mem, err)
                        : pl_fail(err, PL_ENOMEM, "the nearest of %d molecules", (int)n);
}

/* The nearest of n molecules for target k, as for an earlier target of which the same training molecules have a value. */
static pl_code nears_of(const nn_near **near, const nn_domain *domain, int32_t k, const ch_fingerprint *print, int32_t n,
                        pl_arena *mem, pl_error *err)
{
    int32_t j = 0;

    while (!nn_domain_same_of(domain, j, domain, k)) /* at the latest k itself */
        j++;
    if (j == k)
        return st_domain_nearest(&near[k], domain, k, print, n, mem, err);
    near[k] = near[j];
    return PL_OK;
}

pl_code st_domain_alike(st_errors *e, const st_dataset *d, st_part part, const nn_domain *domain, pl_error *err)
{
    int64_t *at = PL_NEW(d->mem, int64_t, d->n + 1);
    double *of_target = PL_NEW(d->mem, double, d->n * d->n_targets + 1);
    const nn_near **near = PL_NEW(d->mem, const nn_near *, d->n_targets + 1);
    const ch_fingerprint *print = NULL;
    int32_t n = 0;
    pl_code code = at != NULL && of_target != NULL && near != NULL
                       ? PL_OK
                       : pl_fail(err, PL_ENOMEM, "similarities of %lld molecules", (long long)d->n);

    for (int64_t i = 0; i < d->n && code == PL_OK; i++)
        if (d->part[i] == part)
            at[n++] = i;
    if (code == PL_OK)
        code = prints_of(&print, domain, d, at, n, err);
    for (int32_t k = 0; k < d->n_targets && code == PL_OK; k++) {
        e[k].alike = of_target + k * d->n;
        code = nears_of(near, domain, k, print, n, d->mem, err);
        for (int64_t i = 0, j = 0; i < e[k].model.n && code == PL_OK; i++) { /* both grow */
            while (at[j] < e[k].at[i])
                j++;
            of_target[k * d->n + i] = near[k][j].alike;
        }
    }
    return code;
}
