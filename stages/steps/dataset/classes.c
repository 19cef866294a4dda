/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/dataset/classes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stages/steps/ingest/prepare.h"

#define OF_LABEL(name) " WHERE l.property_id=(SELECT property_id FROM property WHERE name=" name ") AND l.value<>0 AND l.value<>1 "

/* What the workflow says of a label; NULL: nothing. */
static const st_property *stated(const pl_workflow *wf, const char *label)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");
    const st_prepare_conf *c = prepare != NULL ? prepare->conf : NULL;
    const st_property *p = c != NULL ? c->properties.items : NULL;

    for (int32_t i = 0; c != NULL && i < c->properties.n; i++)
        if (!strcmp(p[i].name, label))
            return &p[i];
    return NULL;
}

bool st_label_classifies(const pl_workflow *wf, const char *label)
{
    const st_property *p = stated(wf, label);

    return p != NULL && p->task == ST_CLASSIFICATION;
}

const char *st_label_unit(const pl_workflow *wf, const char *label)
{
    const st_property *p = stated(wf, label);

    return p != NULL && p->unit != NULL ? p->unit : "";
}

static pl_code query(pl_env *env, sqlite3_stmt **st, const char *sql, const char *label, pl_error *err)
{
    pl_code code = pl_db_prepare(env->store->db, st, sql, err);

    if (code == PL_OK)
        (void)sqlite3_bind_text(*st, 1, label, -1, SQLITE_STATIC);
    return code;
}

static const char *column(sqlite3_stmt *st, int i)
{
    const char *text = (const char *)sqlite3_column_text(st, i);

    return text != NULL ? text : "";
}

pl_code st_classes_check(pl_env *env, const char *label, int64_t *undecided, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = query(env, &st,
                         "SELECT l.value, r.title, i.path, r.line FROM label l JOIN record r ON r.record_id=l.mol_id "
                         "JOIN input_file i USING(file_id)" OF_LABEL(
                             "?1") "AND NOT (l.n_measurements>1 AND l.value>0 AND l.value<1) ORDER BY l.mol_id LIMIT 1",
                         label, err);

    if (pl_db_next(st, &code, err))
        code = pl_fail(err, PL_ECONFIG, "%s of %s (%s:%lld) is %g; a class is 0 or 1", label,
                       column(st, 1)[0] ? column(st, 1) : "a molecule", column(st, 2), (long long)sqlite3_column_int64(st, 3),
                       sqlite3_column_double(st, 0));
    sqlite3_finalize(st);
    return code != PL_OK ? code : pl_db_int(env->store->db, undecided, err, "SELECT count(*) FROM label l" OF_LABEL("%Q"), label);
}

void st_dataset_decided(st_dataset *d)
{
    for (int64_t i = 0; i < d->n * d->n_targets; i++)
        if (d->value[i] != 0 && d->value[i] != 1)
            d->value[i] = NAN;
    st_dataset_keep(d, st_dataset_is_labelled);
}

pl_code st_classes_failures(pl_env *env, const char *label, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code =
        query(env, &st,
              "SELECT l.mol_id, l.value, l.n_measurements FROM label l JOIN split USING(mol_id)" OF_LABEL("?1") "ORDER BY l.mol_id",
              label, err);

    while (pl_db_next(st, &code, err)) {
        char message[320];
        (void)snprintf(message, sizeof message, "%.200s: the mean of %lld measurements is %.3g, so it is neither 0 nor 1; left out",
                       label, (long long)sqlite3_column_int64(st, 2), sqlite3_column_double(st, 1));
        code = pl_failure_add(
            env, &(pl_failure){ .mol_id = sqlite3_column_int64(st, 0), .code = "class", .message = message, .attempt = 1 }, err);
    }
    sqlite3_finalize(st);
    return code;
}
