/* SPDX-License-Identifier: Apache-2.0 */
/* The values of the molecules of a round: from a table, or from the results of another workflow. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/records/record.h"
#include "pipeline/base/file.h"
#include "pipeline/base/stop.h"
#include "pipeline/base/text.h"
#include "pipeline/run/run.h"
#include "stages/campaign/campaign.h"
#include "stages/database/measured.h"
#include "stages/steps/ingest/label_scan.h"

enum { SHOWN = 60 };

/* ---- what was chosen ---- */

pl_code st_campaign_chosen(st_outcome_row **out, int64_t *n, pl_store *s, int64_t round, int64_t most, pl_arena *mem, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    bool row = true;
    pl_code code = pl_db_prepare(
        s->db, &st,
        "SELECT a.inchikey, coalesce(r.title,''), coalesce(r.raw_smiles,''), m.smiles FROM acquired a JOIN molecule m ON "
        "m.inchikey=a.inchikey OR (m.inchikey='' AND m.smiles=a.inchikey) LEFT JOIN record r ON r.record_id=m.mol_id "
        "WHERE a.round=? GROUP BY a.place ORDER BY a.place LIMIT ?",
        err);

    *n = 0;
    *out = PL_NEW(mem, st_outcome_row, most + 1);
    if (code == PL_OK && *out == NULL)
        code = pl_fail(err, PL_ENOMEM, "a round");
    (void)sqlite3_bind_int64(st, 1, round);
    (void)sqlite3_bind_int64(st, 2, most);
    while (code == PL_OK && (code = pl_db_step(st, &row, err)) == PL_OK && row) {
        st_outcome_row *o = &(*out)[(*n)++];
        const char *raw = (const char *)sqlite3_column_text(st, 2);
        *o = (st_outcome_row){ .inchikey = pl_strdup(mem, (const char *)sqlite3_column_text(st, 0)),
                               .title = pl_strdup(mem, (const char *)sqlite3_column_text(st, 1)),
                               .smiles = pl_strdup(mem, raw[0] != '\0' ? raw : (const char *)sqlite3_column_text(st, 3)) };
        if (o->inchikey == NULL || o->title == NULL || o->smiles == NULL)
            code = pl_fail(err, PL_ENOMEM, "a round");
    }
    (void)sqlite3_finalize(st);
    return code;
}

/* Names of the molecules, sorted; a name is an InChIKey, a title or a SMILES. */
typedef struct name {
    const char *text;
    int64_t at;
} name;

static int by_text(const void *a, const void *b) { return strcmp(((const name *)a)->text, ((const name *)b)->text); }

static int64_t find(const name *all, int64_t n, const char *text)
{
    const name key = { text, 0 }, *found = text[0] != '\0' ? bsearch(&key, all, (size_t)n, sizeof *all, by_text) : NULL;

    return found != NULL ? found->at : -1;
}

/* A row has the source of its values, or why it has none. */
static pl_code row_check(const st_outcome_row *o, pl_error *err)
{
    const char *said = o->n > 0 ? o->source : o->why;

    return said != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "an answer");
}

/* ---- a table ---- */

static pl_code take(const st_campaign *x, st_outcome_row *o, const ch_field *f, int64_t line, pl_error *err)
{
    if (f != NULL && f->is_number && isfinite(f->value)) {
        o->sum += f->value;
        if (o->n++ == 0)
            o->source = pl_sprintf(x->mem, "%s:%lld", x->c->answers.table, (long long)line);
    } else if (o->why == NULL && f != NULL && f->text[0] != '\0')
        o->why = pl_sprintf(x->mem, "no number: '%.*s'", SHOWN, f->text);
    else if (o->why == NULL)
        o->why = "no value";
    return row_check(o, err);
}

static int64_t whose(const ch_record *r, const ch_field *field, int n_fields, const name *all, int64_t n)
{
    const ch_field *key = ch_field_find(field, n_fields, "inchikey");
    int64_t at = key != NULL ? find(all, n, key->text) : -1;
    char smiles[1024];
    const size_t len = strcspn(r->text, "\t\n");

    if (at < 0)
        at = find(all, n, r->title);
    if (at < 0 && len < sizeof smiles) {
        memcpy(smiles, r->text, len);
        smiles[len] = '\0';
        at = find(all, n, smiles);
    }
    return at;
}

static pl_code records_read(const st_campaign *x, ch_reader *r, const name *all, int64_t n_names, st_outcome_row *row,
                            pl_error *err)
{
    const char *column = x->c->answers.column != NULL ? x->c->answers.column : x->label;
    pl_arena *scratch = pl_arena_new(1 << 14);
    bool more = true;
    pl_code code = scratch != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a table");

    while (code == PL_OK && !*pl_stop_flag()) {
        ch_record record;
        ch_field *field = NULL;
        int n = 0;
        int64_t at;
        code = ch_reader_next(r, &record, &more, err);
        if (code != PL_OK || !more)
            break;
        pl_arena_reset(scratch);
        code = ch_record_fields(&field, &n, r, &record, scratch, err);
        at = code == PL_OK ? whose(&record, field, n, all, n_names) : -1;
        if (at >= 0)
            code = take(x, &row[at], ch_field_find(field, n, column), record.line, err);
    }
    pl_arena_free(scratch);
    return code == PL_OK && *pl_stop_flag() ? pl_fail(err, PL_ESTOP, "stopped by %s", pl_stop_reason()) : code;
}

/* Titles that several molecules of the library have name none of them. */
static pl_code names_of(name **out, int64_t *n, const st_campaign *x, pl_store *s, const st_outcome_row *row, int64_t n_rows,
                        pl_error *err)
{
    sqlite3_stmt *st = NULL;
    name *all = PL_NEW(x->mem, name, 3 * n_rows + 1);
    pl_code code = all != NULL
                       ? pl_db_exec(s->db,
                                    "CREATE TEMP TABLE IF NOT EXISTS shared_titles AS SELECT title FROM record WHERE mol_id IS "
                                    "NOT NULL AND title<>'' GROUP BY title HAVING count(DISTINCT mol_id)>1",
                                    err)
                       : pl_fail(err, PL_ENOMEM, "a table");

    *n = 0;
    *out = all;
    if (code == PL_OK)
        code = pl_db_prepare(s->db, &st, "SELECT 1 FROM temp.shared_titles WHERE title=?", err);
    for (int64_t i = 0; i < n_rows && code == PL_OK; i++) {
        bool shared = false;
        (void)sqlite3_bind_text(st, 1, row[i].title, -1, SQLITE_STATIC);
        code = pl_db_step(st, &shared, err);
        (void)sqlite3_reset(st);
        all[(*n)++] = (name){ row[i].inchikey, i };
        all[(*n)++] = (name){ row[i].smiles, i };
        if (row[i].title[0] != '\0' && !shared)
            all[(*n)++] = (name){ row[i].title, i };
    }
    (void)sqlite3_finalize(st);
    if (code == PL_OK)
        qsort(all, (size_t)*n, sizeof *all, by_text);
    return code;
}

pl_code st_answers_of_table(const st_campaign *x, pl_store *s, st_outcome_row *row, int64_t n, pl_error *err)
{
    const ch_reader_opts opts = { .stop = pl_stop_flag() };
    ch_reader *r = NULL;
    name *all = NULL;
    int64_t n_names = 0;
    pl_code code = names_of(&all, &n_names, x, s, row, n, err);

    if (code == PL_OK)
        code = ch_reader_open(&r, x->c->answers.table, NULL, &opts, err);
    if (code == PL_OK)
        code = records_read(x, r, all, n_names, row, err);
    ch_reader_close(r);
    for (int64_t i = 0; i < n && code == PL_OK; i++)
        if (row[i].n == 0 && row[i].why == NULL)
            row[i].why = "not in the table of answers";
    return code;
}

/* ---- the results of another workflow ---- */

pl_code st_campaign_batch(const char **folder, const st_campaign *x, int64_t round, int64_t n, pl_error *err)
{
    pl_store *s = NULL;
    st_outcome_row *row = NULL;
    pl_text text = { 0 };
    const char *path;
    pl_code code = pl_store_open_read(&s, x->wf->storage.results, x->schema, err);

    *folder = pl_sprintf(x->mem, "%s/rounds/%04lld", x->wf->workdir, (long long)round);
    path = *folder != NULL ? pl_sprintf(x->mem, "%s/batch.smi", *folder) : NULL;
    if (code == PL_OK)
        code = path != NULL ? st_campaign_chosen(&row, &n, s, round, n, x->mem, err) : pl_fail(err, PL_ENOMEM, "a path");
    pl_store_close(s);
    for (int64_t i = 0; i < n && code == PL_OK; i++)
        pl_text_addf(&text, "%s\t%s\n", row[i].smiles, row[i].inchikey);
    if (code == PL_OK)
        code = pl_mkdirs(*folder, err);
    if (code == PL_OK)
        code = pl_text_ok(&text) ? pl_file_write(path, (pl_bytes){ text.s, text.len }, err) : pl_fail(err, PL_ENOMEM, "a batch");
    pl_text_free(&text);
    return code;
}

/* Which property it scores: the one that is named, else the only one. */
static pl_code property_of(int64_t *id, const st_campaign *x, pl_store *from, pl_error *err)
{
    const char *asked = x->c->answers.property;
    sqlite3_stmt *st = NULL;
    bool row = false;
    pl_code code = pl_db_prepare(
        from->db, &st,
        "SELECT property_id, unit, name, count(*) OVER () FROM property p WHERE (?1 IS NULL OR name=?1) AND EXISTS(SELECT 1 FROM "
        "score s WHERE s.property_id=p.property_id)",
        err);

    *id = 0;
    if (code == PL_OK) {
        (void)sqlite3_bind_text(st, 1, asked, -1, SQLITE_STATIC);
        code = pl_db_step(st, &row, err);
    }
    if (code == PL_OK && row && sqlite3_column_int(st, 3) > 1)
        code = pl_fail(err, PL_ECONFIG, "%s scores several properties; name one with answers.property", x->c->answers.workflow);
    if (code == PL_OK && row) {
        const char *unit = (const char *)sqlite3_column_text(st, 1);
        *id = sqlite3_column_int64(st, 0);
        if (unit[0] != '\0' && x->unit[0] != '\0' && strcmp(unit, x->unit) != 0)
            code =
                pl_fail(err, PL_ECONFIG, "%s scores %s in %s, and %s is learned in %s; set answers.unit, or the unit of the target",
                        x->c->answers.workflow, (const char *)sqlite3_column_text(st, 2), unit, x->label, x->unit);
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code result_read(const st_campaign *x, pl_store *from, int64_t property, sqlite3_stmt *get, st_outcome_row *o,
                           pl_error *err)
{
    bool found = false;
    pl_code code;

    (void)sqlite3_bind_text(get, 1, o->inchikey, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(get, 2, property);
    code = pl_db_step(get, &found, err);
    if (found && sqlite3_column_type(get, 0) != SQLITE_NULL) {
        o->n = 1;
        o->sum = sqlite3_column_double(get, 0);
        o->source = pl_strdup(x->mem, from->results_path);
    } else if (found && sqlite3_column_type(get, 1) != SQLITE_NULL)
        o->why = pl_sprintf(x->mem, "failed: %.200s", (const char *)sqlite3_column_text(get, 1));
    else
        o->why = "no value";
    (void)sqlite3_reset(get);
    return code == PL_OK ? row_check(o, err) : code;
}

pl_code st_answers_of_results(const st_campaign *x, const char *folder, st_outcome_row *row, int64_t n, pl_error *err)
{
    static const char sql[] =
        "SELECT (SELECT s.mean FROM score s WHERE s.mol_id=r.mol_id AND s.property_id=?2), (SELECT f.code||': '||f.message FROM failure f "
        "WHERE f.record_id=r.record_id OR f.mol_id=r.mol_id ORDER BY failure_id LIMIT 1) FROM record r WHERE r.title=?1 ORDER BY record_id LIMIT 1";
    const char *path = pl_sprintf(x->mem, "%s/results.db", folder);
    pl_store *from = NULL;
    sqlite3_stmt *get = NULL;
    int64_t property = 0;
    pl_code code = path != NULL ? pl_store_open_read(&from, path, x->schema, err) : pl_fail(err, PL_ENOMEM, "a path");

    if (code == PL_OK)
        code = property_of(&property, x, from, err);
    if (code == PL_OK)
        code = pl_db_prepare(from->db, &get, sql, err);
    for (int64_t i = 0; i < n && code == PL_OK; i++)
        code = result_read(x, from, property, get, &row[i], err);
    (void)sqlite3_finalize(get);
    pl_store_close(from);
    return code;
}

/* ---- the end of a round ---- */

typedef struct answering {
    int64_t round, n;
    const char *folder;
} answering;

static pl_code row_store(const st_campaign *x, pl_store *s, int64_t round, st_outcome_row *o, pl_error *err)
{
    const double value = o->n > 0 ? o->sum / (double)o->n : 0;
    pl_code code = PL_OK;

    if (o->n > 0 && x->is_class && value != 0 && value != 1) {
        o->why = "its values disagree, or are not 0 and 1";
        o->n = 0;
    }
    if (o->n > 0)
        code = st_measured_put(s, &(st_measured){ x->label, x->unit, o->inchikey, o->source, value, x->is_class, round }, err);
    return code != PL_OK ? code
                         : pl_db_execf(s->db, err, "UPDATE acquired SET outcome=%Q WHERE round=%lld AND inchikey=%Q",
                                       o->n > 0 ? "measured" : o->why, (long long)round, o->inchikey);
}

static pl_code rows_store(const st_campaign *x, pl_store *s, const answering *a, st_outcome_row *row, int64_t n, pl_error *err)
{
    pl_code code = pl_db_begin(s->db, err);

    for (int64_t i = 0; i < n && code == PL_OK; i++)
        code = row_store(x, s, a->round, &row[i], err);
    if (code == PL_OK)
        code = st_measured_apply(s, err);
    pl_fault("campaign", "answers.before_commit");
    if (code == PL_OK)
        code = pl_db_commit(s->db, err);
    pl_db_rollback(s->db);
    pl_fault("campaign", "answers.after_commit");
    return code;
}

static pl_code answer_work(const st_campaign *x, pl_store *s, void *ctx, pl_error *err)
{
    const answering *a = ctx;
    st_outcome_row *row = NULL;
    int64_t n = 0, values = 0;
    pl_code code = st_campaign_chosen(&row, &n, s, a->round, a->n, x->mem, err);

    if (code == PL_OK)
        code = a->folder != NULL ? st_answers_of_results(x, a->folder, row, n, err) : st_answers_of_table(x, s, row, n, err);
    for (int64_t i = 0; i < n && code == PL_OK; i++)
        values += row[i].n > 0;
    if (code == PL_OK && values == 0)
        code = pl_fail(err, PL_EINPUT, "round %lld: none of its %lld molecules has an answer; the first: %s", (long long)a->round,
                       (long long)n, n > 0 && row[0].why != NULL ? row[0].why : "nothing was chosen");
    return code == PL_OK ? rows_store(x, s, a, row, n, err) : code;
}

pl_code st_campaign_answer(const st_campaign *x, int64_t round, int64_t n, const char *folder, pl_error *err)
{
    answering a = { round, n, folder };

    return st_campaign_locked(x, answer_work, &a, err);
}
