/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/errors/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/workflow/workflow.h"
#include "stages/steps/ingest/prepare.h"

pl_code st_cases_open(st_cases *c, const pl_env *env, pl_error *err)
{
    const pl_step *prepare = pl_workflow_step(env->wf, "prepare");
    char form[32];

    *c = (st_cases){ 0 };
    if (prepare != NULL)
        (void)snprintf(c->form, sizeof c->form, "%s", st_prepare_form(prepare->conf, form));
    return pl_db_prepare(env->store->db, &c->find,
                         "SELECT geometry, neutralised IS NOT NULL, mol_id FROM molecule WHERE mol_id>=? ORDER BY mol_id", err);
}

void st_cases_close(st_cases *c)
{
    (void)sqlite3_finalize(c->find);
    c->find = NULL;
}

/* The row of a molecule: nearly always the next one. *there: the statement is at a row, before and after. */
static pl_code row_find(st_cases *c, int64_t mol_id, bool *there, pl_error *err)
{
    pl_code code = *there ? pl_db_step(c->find, there, err) : PL_OK;

    if (code != PL_OK || (*there && sqlite3_column_int64(c->find, 2) == mol_id))
        return code;
    (void)sqlite3_reset(c->find);
    (void)sqlite3_bind_int64(c->find, 1, mol_id);
    code = pl_db_step(c->find, there, err);
    if (code == PL_OK && (!*there || sqlite3_column_int64(c->find, 2) != mol_id))
        code = pl_fail(err, PL_EDATA,
                       "molecule %lld is in a block of features.db but not in results.db: the files are of different runs; delete "
                       "features.db and run with --from prepare",
                       (long long)mol_id);
    return code;
}

pl_code st_cases_read(nn_case *out, st_cases *c, const int64_t *mol_id, int64_t n, pl_error *err)
{
    bool there = false;
    pl_code code = PL_OK;

    for (int64_t i = 0; i < n && code == PL_OK; i++) {
        out[i] = (nn_case){ .source = NN_SOURCE_NONE, .form = c->form, .alike = NAN };
        code = row_find(c, mol_id[i], &there, err); /* what fails has columns that are NULL */
        out[i].source = nn_source_of((const char *)sqlite3_column_text(c->find, 0));
        out[i].changed = sqlite3_column_int(c->find, 1) != 0;
    }
    (void)sqlite3_reset(c->find);
    return code;
}

/* [n + 1]: of all molecules, and of those that have target k; NULL: not asked for. */
typedef struct censuses {
    nn_census **of;
    int32_t n;
} censuses;

static bool censuses_open(censuses *c, const bool *own, int32_t n, pl_arena *mem)
{
    bool enough;

    *c = (censuses){ .of = PL_NEW(mem, nn_census *, n + 1), .n = n };
    enough = c->of != NULL;
    for (int32_t k = 0; k <= n && enough; k++) {
        c->of[k] = k == 0 || own[k - 1] ? PL_NEW(mem, nn_census, 1) : NULL;
        enough = c->of[k] != NULL || (k > 0 && !own[k - 1]);
    }
    return enough;
}

static pl_code one_count(censuses *to, st_cases *c, const st_samples *train, int64_t i, pl_arena *scratch, pl_error *err)
{
    const st_dataset *d = train->d;
    nn_traits traits;
    nn_case one;
    pl_code code;

    pl_arena_reset(scratch);
    code = nn_traits_of(&traits, d->item[train->at[i]].graph, scratch, err);
    if (code == PL_OK)
        code = st_cases_read(&one, c, &d->mol_id[train->at[i]], 1, err);
    if (code != PL_OK)
        return code;
    for (int32_t k = 0; k <= to->n; k++)
        if (to->of[k] != NULL && (k == 0 || !isnan(st_dataset_value(d, train->at[i], k - 1))))
            nn_census_add(to->of[k], &traits, one.source);
    return PL_OK;
}

pl_code st_range_make(nn_range *out, const bool *own, const pl_env *env, const st_samples *train, pl_error *err)
{
    const int32_t n = train->d->n_targets;
    pl_arena *scratch = pl_arena_new(1 << 14);
    censuses all;
    st_cases c = { 0 };
    pl_code code = censuses_open(&all, own, n, env->mem) && scratch != NULL ? st_cases_open(&c, env, err)
                                                                            : pl_fail(err, PL_ENOMEM, "the range of a model");

    for (int64_t i = 0; i < train->n && code == PL_OK; i++)
        code = one_count(&all, &c, train, i, scratch, err);
    if (code == PL_OK)
        nn_ranges_of(out, all.of, n + 1, c.form);
    st_cases_close(&c);
    pl_arena_free(scratch);
    return code;
}
