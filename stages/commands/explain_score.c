/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/explain_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/fingerprint/nearest.h"
#include "chem/molecule/element.h"
#include "stages/commands/commands.h"
#include "stages/commands/show_find.h"
#include "stages/database/results.h"
#include "stages/database/rows.h"
#include "stages/explain/moved.h"
#include "stages/explain/subject.h"
#include "stages/report/sheet.h"
#include "stages/steps/errors/errors.h"

enum { NEAREST = 3, PARTS = 6 };

/* The molecule that is asked about, as models read it. */
typedef struct subject {
    int64_t id;
    const char *word;         /* a title, an InChIKey or a SMILES: which molecule it is; NULL: id says it */
    const char *smiles, *svg; /* svg: the file to draw into, or NULL */
    sqlite3 *db;
    st_subject is;
    ch_worker *worker;
    ch_drawn drawn;
    st_sheet sheet;
    st_conformers stored;
} subject;

/* ---- the molecule -------------------------------------------------------- */

static pl_code smiles_read(subject *s, const st_ask *ask, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    bool row;
    pl_code code = pl_db_prepare(ask->store->db, &st, "SELECT smiles FROM molecule WHERE mol_id=?", err);

    (void)sqlite3_bind_int64(st, 1, s->id);
    row = pl_db_next(st, &code, err);
    if (row && (s->smiles = pl_strdup(ask->mem, (const char *)sqlite3_column_text(st, 0))) == NULL)
        code = pl_fail(err, PL_ENOMEM, "a molecule");
    else if (code == PL_OK && !row)
        code =
            pl_fail(err, PL_ECONFIG,
                    "there is no molecule %lld in these results; its title will do, too, and `molsieve show TITLE` says its number",
                    (long long)s->id);
    sqlite3_finalize(st);
    return code;
}

static pl_code id_find(subject *s, const st_ask *ask, pl_error *err)
{
    st_shown found;
    pl_code code = st_show_find(&found, ask->store, s->word, ask->mem, err);

    if (code != PL_OK)
        return code;
    if (found.n == 0)
        return pl_fail(err, PL_ECONFIG, "%.100s gave no molecule; `molsieve show` says why", s->word);
    if (found.n > 1)
        return pl_fail(err, PL_ECONFIG, "several molecules are called %.100s, such as %lld and %lld; give a number", s->word,
                       (long long)found.mol_id[0], (long long)found.mol_id[1]);
    s->id = found.mol_id[0];
    return PL_OK;
}

static pl_code subject_make(subject *s, const st_ask *ask, pl_error *err)
{
    ch_worker_opts how = { 0 };
    pl_code code = s->word != NULL ? id_find(s, ask, err) : PL_OK;

    if (code == PL_OK)
        code = smiles_read(s, ask, err);

    s->db = ask->store->db;
    if (code == PL_OK)
        code = ch_worker_open(&s->worker, &how, err);
    if (code == PL_OK)
        code = st_subject_make(&s->is, s->worker, s->smiles, ask->mem, err);
    if (code == PL_OK)
        code = st_subject_stored(&s->stored, ask->store, ask->mem, err);
    if (code == PL_OK && s->svg != NULL)
        code = ch_worker_draw(s->worker, s->smiles, &s->drawn, ask->mem, err);
    return code;
}

/* ---- the nearest training molecules -------------------------------------- */

/* Whether targets of the model have training molecules of their own. */
static bool targets_differ(const nn_model_file *m)
{
    bool differ = false;

    for (int32_t k = 0; k < m->conf.outputs && !differ; k++)
        differ = nn_domain_of(&m->domain, k).only != NULL;
    return differ;
}

static void nearest_print(const subject *s, const nn_model_file *m, int32_t target)
{
    const nn_domain *d = &m->domain;
    const ch_among a = nn_domain_of(d, target);
    const bool own = targets_differ(m);
    const char *measured = d->value != NULL ? ", measured" : "";
    ch_nearest near;

    if (d->n == 0)
        return;
    ch_nearest_open(&near, &s->is.print, -1);
    ch_nearest_in(&near, &a, 0, d->n);
    pl_cmd_print("  nearest training molecules");
    if (own)
        pl_cmd_print(" of %s", m->target[target].name);
    pl_cmd_print(" (Tanimoto similarity, InChIKey%s)\n", measured);
    for (int32_t k = 0; k < near.n && k < NEAREST; k++) {
        const int32_t at = near.near[k].at;
        pl_cmd_print("    %.2f  %-27s", ch_nearest_alike(&near, k), d->key[at]);
        for (int32_t t = 0; t < d->n_values; t++)
            if (!isnan(d->value[(size_t)at * (size_t)d->n_values + (size_t)t]))
                pl_cmd_print("  %s %.4g", m->target[t].name, (double)d->value[(size_t)at * (size_t)d->n_values + (size_t)t]);
        pl_cmd_print("\n");
    }
}

/* ---- what moved a prediction --------------------------------------------- */

/* Columns, descriptors and atoms as lines; returns how many. out: room for all. */
static int32_t lines_make(st_moved *out, const subject *s, const nn_model_file *m, const st_moves *moves, pl_arena *mem)
{
    int32_t n = 0;

    for (int32_t k = 0; k < s->is.x.n_columns; k++)
        if (moves->column[k] != 0)
            out[n++] = (st_moved){ .by = moves->column[k],
                                   .what = pl_sprintf(mem, "%s %.4g%s%s, a column of the table", m->inputs.column[k].name,
                                                      (double)s->is.x.column[k], m->inputs.column[k].unit[0] ? " " : "",
                                                      m->inputs.column[k].unit) };
    for (int k = 0; k < CH_N_FEATURES; k++)
        if (moves->feature[k] != 0)
            out[n++] = (st_moved){ .by = moves->feature[k],
                                   .what = pl_sprintf(mem, "%s %.4g", ch_features[k].name, (double)s->is.x.features[0][k]) };
    if (moves->absent != 0)
        out[n++] = (st_moved){ .by = moves->absent, .what = "substructures that it does not have" };
    for (int32_t i = 0; i < s->is.graph.n_nodes; i++)
        if (moves->atom[i] != 0)
            out[n++] =
                (st_moved){ .by = moves->atom[i],
                            .what = pl_sprintf(mem, "atom %d (%s)%s", (int)i + 1, ch_element_symbol(s->is.graph.z[i]),
                                               moves->one_by_one ? "" : ", its share of the substructures that it is part of") };
    for (int32_t i = 0; i < n; i++)
        if (out[i].what == NULL)
            return -1;
    for (int32_t i = 0; i < n; i++)
        out[i].place = i;
    st_moved_sort(out, n);
    return n;
}

/* name: of the component that they moved. */
static pl_code moves_print(subject *s, const nn_model_file *m, const st_moves *moves, const char *name, int32_t target,
                           pl_arena *mem, pl_error *err)
{
    st_moved *line = PL_NEW(mem, st_moved, CH_N_FEATURES + s->is.x.n_columns + s->is.graph.n_nodes + 2);
    const int32_t n = line != NULL ? lines_make(line, s, m, moves, mem) : -1;

    if (n < 0)
        return pl_fail(err, PL_ENOMEM, "an explanation");
    pl_cmd_print("  what moved %s%s%s\n", name, moves->log_odds ? ", in log odds" : "",
                 moves->one_by_one ? ": what it loses without the atom and its hydrogens" : "");
    for (int32_t k = 0; k < n && k < PARTS; k++)
        pl_cmd_print("    " ST_MOVED_FORMAT "  %s\n", line[k].by, line[k].what);
    if (n > PARTS)
        pl_cmd_print("    and %d smaller ones\n", (int)n - PARTS);
    return s->svg != NULL ? st_sheet_add(&s->sheet, &s->drawn, &s->is, moves, name, &m->target[target], mem, err) : PL_OK;
}

static pl_code parts_print(subject *s, const nn_model_file *m, int32_t member, int32_t target, pl_arena *mem, pl_error *err)
{
    const nn_model_member *one = &m->members.at[member];
    st_moves moves;
    pl_code code;

    if (one->kind->explain == NULL)
        return PL_OK;
    code = st_moves_of(&moves, &s->is, m, member, target, mem, err);
    return code == PL_OK ? moves_print(s, m, &moves, one->kind->name, target, mem, err) : code;
}

/* A network whose structures are not there is no error: the rest of the answer stands. */
static pl_code network_print(subject *s, const nn_model_file *m, int32_t target, pl_arena *mem, pl_error *err)
{
    const st_compute how = st_compute_defaults();
    const char *name = st_component_name(m, m->members.n);
    st_occlusion by;
    st_moves moves;
    pl_code code = st_subject_structures(&s->is, &s->stored, s->id, mem, err);

    if (code == PL_OK && s->is.n_structures == 0) {
        pl_cmd_print("  what moved %s is not known: features.db has no structure of the molecule;\n    molsieve run FILE --from "
                     "prepare builds it again\n",
                     name);
        return PL_OK;
    }
    if (code == PL_OK)
        code = st_occlude(&by, m, &how, s->is.structure, s->is.n_structures, &s->is.x, mem, err);
    if (code == PL_OK)
        code = st_moves_of_network(&moves, &s->is, &by, target, mem, err);
    if (code == PL_EINPUT) {
        pl_cmd_print("  what moved %s is not known: %s\n", name, err->text);
        return PL_OK;
    }
    return code == PL_OK ? moves_print(s, m, &moves, name, target, mem, err) : code;
}

/* ---- a model ------------------------------------------------------------- */

/* The network's part follows from the mean. */
static void components_print(const subject *s, const nn_model_file *m, int32_t target, double value, const nn_member_outputs *y)
{
    double sum = 0;

    if (nn_model_components(m) < 2)
        return;
    pl_cmd_print("  mean of    ");
    for (int32_t k = 0; k < m->members.n; k++) {
        const double one = nn_model_member_value(m, target, s->is.graph.z, s->is.graph.n_nodes, y->y[k][target]);
        sum += one;
        pl_cmd_print(" %s %.4g", m->members.at[k].kind->name, one);
    }
    if (m->model != NULL)
        pl_cmd_print(" %s %.4g", st_component_name(m, m->members.n), value * nn_model_components(m) - sum);
    pl_cmd_print("\n");
}

static pl_code target_explain(subject *s, const nn_model_file *m, int32_t target, double value, pl_arena *mem, pl_error *err)
{
    nn_member_outputs y = { 0 };
    pl_code code = m->members.n > 0 ? nn_members_predict(&y, &m->members, &s->is.x, mem, err) : PL_OK;

    if (code != PL_OK)
        return code;
    components_print(s, m, target, value, &y);
    for (int32_t k = 0; k < m->members.n && code == PL_OK; k++)
        code = parts_print(s, m, k, target, mem, err);
    return code == PL_OK && m->model != NULL ? network_print(s, m, target, mem, err) : code;
}

/* Of the columns name, path, sha256, property, value. */
static pl_code model_explain(subject *s, sqlite3_stmt *row, const char **last, pl_arena *mem, pl_error *err)
{
    const char *name = (const char *)sqlite3_column_text(row, 0), *path = (const char *)sqlite3_column_text(row, 1);
    const char *sha256 = (const char *)sqlite3_column_text(row, 2), *property = (const char *)sqlite3_column_text(row, 3);
    nn_model_file *m;
    pl_code code = nn_model_read(&m, path, mem, err);

    if (code == PL_OK && strcmp(m->sha256, sha256) != 0)
        code = pl_fail(err, PL_EINPUT, "%s is not the file that made these scores: its sha256 is another", path);
    if (code == PL_OK)
        code = st_subject_columns(&s->is, m, s->db, s->id, mem, err);
    if (code != PL_OK)
        return code;
    pl_cmd_print("model %s: %s %.4g\n", name, property, sqlite3_column_double(row, 4));
    for (int32_t k = 0; k < m->conf.outputs && code == PL_OK; k++) {
        if (!st_predicts(m, k, property))
            continue;
        code = target_explain(s, m, k, sqlite3_column_double(row, 4), mem, err);
        if (code == PL_OK && (*last == NULL || strcmp(*last, path) != 0 || targets_differ(m)))
            nearest_print(s, m, k);
    }
    *last = pl_strdup(mem, path);
    return code;
}

/* ---- the scores ---------------------------------------------------------- */

static const char scores_sql[] =
    "SELECT p.name, s.mean, s.interval90, coalesce(p.unit,''), s.domain, coalesce(s.reasons,'') FROM score s JOIN property p "
    "USING(property_id) WHERE s.mol_id=? ORDER BY 1";
static const char models_sql[] =
    "SELECT m.name, m.path, m.sha256, p.name, x.value FROM prediction x JOIN model m USING(model_id) JOIN property p "
    "USING(property_id) WHERE x.mol_id=? ORDER BY 2, 4";

static pl_code score_print(subject *s, sqlite3_stmt *row, const char **last, pl_arena *mem, pl_error *err)
{
    const char *domain = (const char *)sqlite3_column_text(row, 4), *unit = (const char *)sqlite3_column_text(row, 3);

    (void)s, (void)last, (void)mem, (void)err;
    pl_cmd_print("%s %.4g", (const char *)sqlite3_column_text(row, 0), sqlite3_column_double(row, 1));
    if (sqlite3_column_type(row, 2) != SQLITE_NULL)
        pl_cmd_print(" +- %.2g", sqlite3_column_double(row, 2));
    pl_cmd_print("%s%s", unit[0] ? " " : "", unit);
    if (domain != NULL)
        pl_cmd_print("; %s of the domain of its models%s%s", domain, strcmp(domain, "outside") ? "" : ": ",
                     (const char *)sqlite3_column_text(row, 5));
    pl_cmd_print("\n");
    return PL_OK;
}

typedef pl_code each_row(subject *s, sqlite3_stmt *row, const char **last, pl_arena *mem, pl_error *err);

static pl_code rows_each(subject *s, const st_ask *ask, const char *sql, each_row *each, int64_t *n, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    const char *last = NULL;
    pl_code code = pl_db_prepare(ask->store->db, &st, sql, err);

    *n = 0;
    (void)sqlite3_bind_int64(st, 1, s->id);
    while (pl_db_next(st, &code, err)) {
        code = each(s, st, &last, ask->mem, err);
        (*n)++;
    }
    sqlite3_finalize(st);
    return code;
}

/* `show 3` looks for a title first, and titles are numbers in many files. */
static pl_code title_note(const subject *s, const st_ask *ask, pl_error *err)
{
    int64_t other = 0;
    pl_code code =
        pl_db_int(ask->store->db, &other, err, "SELECT coalesce(min(mol_id),0) FROM record WHERE title='%lld' AND mol_id<>%lld",
                  (long long)s->id, (long long)s->id);

    if (code == PL_OK && other != 0)
        pl_cmd_say("this is the molecule of number %lld; the one with the title %lld is explained by: molsieve explain %lld",
                   (long long)s->id, (long long)s->id, (long long)other);
    return code;
}

static pl_code answer(const st_ask *ask, pl_error *err)
{
    subject *s = ask->ctx;
    int64_t n;
    pl_code code = subject_make(s, ask, err);

    if (code == PL_OK && s->word == NULL)
        code = title_note(s, ask, err);
    if (code != PL_OK)
        return code;
    pl_cmd_print("molecule %lld  %s\n", (long long)s->id, s->smiles);
    code = rows_each(s, ask, scores_sql, score_print, &n, err);
    if (code == PL_OK && n == 0)
        pl_cmd_print("no score\n");
    if (code == PL_OK)
        code = rows_each(s, ask, models_sql, model_explain, &n, err);
    if (code == PL_OK && s->svg != NULL)
        code = st_sheet_write(&s->sheet, s->svg, ask->mem, err);
    if (code == PL_OK && s->svg != NULL)
        pl_cmd_print("%s: %d drawing%s\n", s->svg, s->sheet.n, s->sheet.n == 1 ? "" : "s");
    return code;
}

int st_explain_score(const pl_app *app, const pl_args *args, int64_t mol_id)
{
    subject s = { .id = mol_id, .word = mol_id < 0 ? args->arg[0] : NULL, .svg = pl_arg(args, "--svg") };
    const int status = st_results_ask(app, args, args->n > 1 ? args->arg[1] : NULL, answer, &s);

    ch_worker_close(s.worker);
    st_conformers_close(&s.stored);
    st_sheet_close(&s.sheet);
    return status;
}
