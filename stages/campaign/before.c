/* SPDX-License-Identifier: Apache-2.0 */
/* What earlier rounds were answered, against the sources of today: values of two kinds must not be learned as one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/text.h"
#include "pipeline/run/runner.h"
#include "stages/campaign/campaign.h"

enum { SHOWN = 140 };

/* ---- values ---- */

pl_code st_before_read(st_outcome_row **out, int64_t *n, const st_campaign *x, pl_store *s, const char *source, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    int64_t most = 0;
    pl_code code = pl_db_int(s->db, &most, err, "SELECT count(*) FROM measured WHERE property=%Q", x->label);

    *n = 0;
    *out = PL_NEW(x->mem, st_outcome_row, most + 1);
    if (*out == NULL)
        code = pl_fail(err, PL_ENOMEM, "values of earlier rounds");
    if (code == PL_OK)
        code = pl_db_prepare(s->db, &st,
                             "SELECT inchikey, source, value FROM measured WHERE property=?1 AND (?2 IS NULL OR source=?2) AND "
                             "inchikey NOT IN (SELECT inchikey FROM acquired WHERE outcome IS NULL) ORDER BY round, inchikey",
                             err);
    if (code == PL_OK) {
        (void)sqlite3_bind_text(st, 1, x->label, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(st, 2, source, -1, SQLITE_STATIC);
    }
    while (*n < most && pl_db_next(st, &code, err)) {
        st_outcome_row *o = &(*out)[(*n)++];
        *o = (st_outcome_row){ .inchikey = pl_strdup(x->mem, (const char *)sqlite3_column_text(st, 0)),
                               .stored_by = pl_strdup(x->mem, (const char *)sqlite3_column_text(st, 1)),
                               .stored = sqlite3_column_double(st, 2) };
        if (o->inchikey == NULL || o->stored_by == NULL)
            code = pl_fail(err, PL_ENOMEM, "values of earlier rounds");
    }
    (void)sqlite3_finalize(st);
    return code;
}

/* Means of the same numbers in another order may differ in their last digits. */
static bool differs(const st_outcome_row *o)
{
    const double now = o->n > 0 ? o->sum / (double)o->n : o->stored;

    return fabs(now - o->stored) > 1e-9 * fmax(fabs(now), fabs(o->stored));
}

pl_code st_before_compare(const st_campaign *x, const st_outcome_row *row, int64_t n, pl_error *err)
{
    const st_outcome_row *first = NULL;
    int64_t n_other = 0;

    for (int64_t i = 0; i < n; i++) {
        n_other += differs(&row[i]);
        if (first == NULL && n_other > 0)
            first = &row[i];
    }
    if (first == NULL)
        return PL_OK;
    return pl_fail(err, PL_EINPUT,
                   "%s: %s of %s is %.10g, and %.10g was stored from %s; %lld of %lld values differ; correct the answers, put a "
                   "wrong stored value right with molsieve label --replace, or begin anew in another workdir",
                   first->source, x->label, first->inchikey, first->sum / (double)first->n, first->stored, first->stored_by,
                   (long long)n_other, (long long)n);
}

/* ---- a workflow ---- */

/* The last "/rounds/" of a path, whose work directory may have been moved since; NULL: it has none. */
static const char *rounds_in(const char *path)
{
    const char *last = NULL;

    for (const char *at = strstr(path, "/rounds/"); at != NULL; at = strstr(at + 1, "/rounds/"))
        last = at;
    return last;
}

/* The folder of the newest round, other than `own`, that values were stored from and that is there. Stays NULL: none. */
static pl_code folder_find(const char **folder, const char **source, const st_campaign *x, pl_store *s, const char *own,
                           pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st,
                                 "SELECT source FROM measured WHERE property=? AND source LIKE '%/rounds/%/results.db' GROUP BY "
                                 "source ORDER BY max(round) DESC",
                                 err);

    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, x->label, -1, SQLITE_STATIC);
    while (*folder == NULL && pl_db_next(st, &code, err)) {
        const char *text = (const char *)sqlite3_column_text(st, 0), *at = rounds_in(text), *path, *results;
        if (at == NULL)
            continue;
        results = pl_sprintf(x->mem, "%s%s", x->wf->workdir, at);
        path = pl_sprintf(x->mem, "%s%.*s", x->wf->workdir, (int)(strlen(at) - strlen("/results.db")), at);
        *source = pl_strdup(x->mem, text);
        if (results == NULL || path == NULL || *source == NULL)
            code = pl_fail(err, PL_ENOMEM, "a path");
        else if (strcmp(path, own) != 0 && access(results, F_OK) == 0)
            *folder = path;
    }
    (void)sqlite3_finalize(st);
    return code;
}

/* A line for each difference. The molecules are others in each round, so the inputs are not compared, nor the keys of what it needs. */
static pl_code stage_compare(pl_text *out, const pl_workflow *wf, const pl_step *step, pl_store *was, pl_arena *mem, pl_error *err)
{
    pl_text lines = { 0 };
    pl_stage_row row;
    int n = 0;
    pl_code code = pl_stage_row_get(was, step->stage->name, &row, mem, err);

    if (code == PL_OK && row.stage_id == 0)
        pl_text_addf(out, "%s was not there\n", step->stage->name);
    if (code != PL_OK || row.stage_id == 0)
        return code;
    if (strcmp(step->stage->name, "read") == 0)
        row.extra_json = step->extra_json;
    code = pl_needs_json(wf, step, &row.needs_json, mem, err);
    if (code == PL_OK)
        code = pl_row_diff(&row, wf, step, &lines, &n, mem, err);
    if (n > 0 && code == PL_OK)
        pl_text_addf(out, "%s: %s", step->stage->name, pl_text_str(&lines));
    pl_text_free(&lines);
    return code;
}

static pl_code stages_compare(pl_workflow *wf, const st_campaign *x, pl_store *was, pl_error *err)
{
    pl_text out = { 0 };
    pl_code code = pl_plan_keys(wf, NULL, x->mem, err);

    for (int i = 0; i < wf->n_steps && code == PL_OK; i++)
        code = stage_compare(&out, wf, &wf->step[i], was, x->mem, err);
    if (code == PL_OK && !pl_text_ok(&out))
        code = pl_fail(err, PL_ENOMEM, "a comparison");
    if (code == PL_OK && out.len > 0) {
        const int first = (int)strcspn(pl_text_str(&out), "\n");
        code =
            pl_fail(err, PL_EINPUT,
                    "%s changed since earlier rounds (%.*s): its values are not learned with theirs; change it back, or begin anew "
                    "in another workdir; if they are comparable all the same, remove %s/rounds",
                    x->c->answers.workflow, first < SHOWN ? first : SHOWN, pl_text_str(&out), x->wf->workdir);
    }
    pl_text_free(&out);
    return code;
}

bool st_campaign_words(char *word[3], const st_campaign *x, const char *folder)
{
    word[0] = pl_strdup(x->mem, x->c->answers.workflow);
    word[1] = pl_sprintf(x->mem, "workdir=%s", folder);
    word[2] = pl_sprintf(x->mem, "inputs=[{path: \"%s/batch.smi\", format: smi}]", folder);
    return word[0] != NULL && word[1] != NULL && word[2] != NULL;
}

/* Whether that workflow is the one of today, and its property that of the stored values. */
static pl_code folder_compare(const st_campaign *x, const pl_stage *const *known, const char *own, const char *folder,
                              st_outcome_row *row, int64_t n, pl_error *err)
{
    const char *results = pl_sprintf(x->mem, "%s/results.db", folder);
    pl_problems problems = { .mem = x->mem };
    pl_workflow *wf;
    pl_store *was = NULL;
    char *word[3];
    pl_code code;

    if (results == NULL || !st_campaign_words(word, x, own))
        return pl_fail(err, PL_ENOMEM, "a workflow");
    wf = pl_workflow_load(word[0], word + 1, 2, known, &problems, x->mem);
    if (wf == NULL)
        return PL_OK; /* its run tells */
    code = pl_store_open_read(&was, results, x->schema, err);
    if (code == PL_OK)
        code = stages_compare(wf, x, was, err);
    pl_store_close(was);
    if (code == PL_OK)
        code = st_answers_of_results(x, folder, row, n, err);
    return code == PL_OK ? st_before_compare(x, row, n, err) : code;
}

pl_code st_campaign_same(const st_campaign *x, const pl_stage *const *known, const char *folder, pl_error *err)
{
    const char *before = NULL, *source = NULL;
    st_outcome_row *row = NULL;
    pl_store *s = NULL;
    int64_t n = 0;
    pl_code code = pl_store_open_read(&s, x->wf->storage.results, x->schema, err);

    if (code == PL_OK)
        code = folder_find(&before, &source, x, s, folder, err);
    if (code == PL_OK && before != NULL)
        code = st_before_read(&row, &n, x, s, source, err);
    pl_store_close(s);
    return code == PL_OK && before != NULL ? folder_compare(x, known, folder, before, row, n, err) : code;
}
