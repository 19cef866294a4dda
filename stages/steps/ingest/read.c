/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/label_scan.h"
#include "stages/steps/ingest/limits.h"
#include "stages/steps/ingest/read.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "chem/records/record.h"
#include "chem/records/record_notes.h"
#include "chem/records/relation.h"
#include "chem/worker/worker_client.h"
#include "pipeline/base/log.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/ingest/read_input.h"
#include "stages/steps/ingest/read_seen.h"
#include "stages/steps/ingest/read_warn.h"
#include "stages/steps/ingest/record_block.h"
#include "stages/steps/ingest/size_estimate.h"

enum { UNIT_BYTES = 8 << 20, RAW_SMILES_MAX = 4000 };

#define AT(member) offsetof(st_read_conf, member)
static const pl_field fields[] = {
    { PL_INT, "unit", AT(unit), .dflt = -1, .min = 1, .max = 100000, .choices = "auto", .unit = "records",
      .help =
          "per resumable unit, which one worker processes; auto: 1000; with a stage external 16; if prepare may build structures, 200 (50 if it builds all) or, by "
          "the native builder, up to 500 in libraries of more than 16 such units" },
    { PL_SIZE, "max_record", AT(max_record), .dflt = 1 << 20, .min = 1024, .max = 256 << 20,
      .help = "maximum size of a record; longer records fail" },
    { PL_SIZE, "max_file", AT(max_file), .dflt = 64 << 20, .min = 1024, .max = 256 << 20,
      .help = "maximum size of a file whose format must be read as a whole" },
    { PL_CHOICE, "censored", AT(censored), .choices = "leave_out|bound", .flags = PL_LATER,
      .help = "labels such as >10: leave_out: they give no label; bound: train learns from them as limits (se3, trees)" },
    { 0 },
};

typedef struct item {
    int32_t file; /* position in workflow.inputs */
    int64_t id, ordinal, offset, line;
    const char *title, *raw_smiles, *problem; /* NULL: none */
    const char *told[ST_TEXTS];               /* a label like 1,5 or >10, to be told; NULL: none */
    const char *code;                         /* of the problem */
    unsigned notes;                           /* chem/records/record_notes.h */
    st_record record;
} item;

typedef struct read_unit {
    item *item;
    int32_t n;
    pl_bytes block;
    int32_t n_good;
    st_seen seen; /* up to the end of the unit */
} read_unit;

typedef struct read_state {
    pl_env *env;
    const st_read_conf *conf;
    ch_worker *lister;
    ch_reader *reader;
    int32_t file;         /* the one that is open, or comes next */
    int32_t files_stored; /* rows of input_file                  */
    int64_t next_id;
    int64_t at;      /* the next unit of the undivided run that the reader will reach */
    st_found *found; /* [workflow.inputs.n] */
    sqlite3_stmt *put_record, *put_file;
    bool was_told[ST_TEXTS]; /* once a run */
    unsigned notes_told;
} read_state;

static pl_code estimate(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem, pl_error *err)
{
    const st_read_conf *c = step->conf;
    double bytes = 0;
    struct stat st;
    st_sizes sizes;
    pl_code code = st_sizes_get(&sizes, wf, NULL, err);

    (void)store;
    if (code != PL_OK)
        return code;
    for (int32_t i = 0; i < wf->inputs.n; i++)
        bytes += stat(st_input_at(wf, i)->path, &st) == 0 ? (double)st.st_size : 0;
    out->guessed = true;
    out->n_items = (int64_t)sizes.n_records;
    out->n_units = out->n_items / c->unit + 1;
    out->bytes_features = bytes;
    out->bytes_results = 100.0 * sizes.n_records;
    out->seconds = bytes / 20e6;
    out->note = pl_sprintf(mem, "%d input file%s; what is not yet read is guessed from the first records", (int)wf->inputs.n,
                           wf->inputs.n == 1 ? "" : "s");
    return out->note != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the estimate");
}

/* Small units, for many workers: building a structure takes longer than the rest of a record. */
static void settle(const pl_workflow *wf, void *conf)
{
    st_read_conf *c = conf;

    if (c->unit < 0)
        c->unit = st_unit_records(wf);
}

/* ---- reading ---- */

/* The number that a unit of this shard has in the undivided run. */
static int64_t unit_of_all(const read_state *s, int64_t unit)
{
    return s->env->n_shards > 0 ? unit * s->env->n_shards + s->env->shard : unit;
}

/* Moves the reader to after the last record that is in the database. */
static pl_code go_on(read_state *s, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    ch_record record;
    bool more = true;
    pl_code code = pl_db_prepare(s->env->store->db, &st,
                                 "SELECT file_id, byte_offset, ordinal, line, record_id FROM "
                                 "record ORDER BY record_id DESC LIMIT 1",
                                 err);

    if (pl_db_next(st, &code, err)) {
        const pl_input *in;
        s->file = (int32_t)sqlite3_column_int64(st, 0) - 1;
        s->next_id = sqlite3_column_int64(st, 4) + 1;
        s->at = unit_of_all(s, s->env->units_done - 1) + 1;
        in = st_input_at(s->env->wf, s->file);
        code = st_input_open(&s->reader, in, s->conf, s->lister, err);
        if (code == PL_OK)
            code = st_seen_format(s->env, s->file, s->reader, err);
        if (code == PL_OK)
            code = ch_reader_seek(s->reader, sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3),
                                  err);
        if (code == PL_OK)
            code = ch_reader_next(s->reader, &record, &more, err);
        if (code == PL_OK)
            s->found[s->file].records = record.ordinal;
        if (code != PL_OK)
            pl_at(err, "%s", in->path);
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code open_stage(void *state, pl_env *env, pl_error *err)
{
    read_state *s = state;
    ch_worker_opts opts = { .stop = env->stop };
    int64_t n = 0;
    pl_code code;

    s->env = env;
    s->conf = env->step->conf;
    s->next_id = 1;
    s->found = PL_NEW(env->mem, st_found, env->wf->inputs.n + 1);
    code = s->found != NULL ? ch_worker_open(&s->lister, &opts, err)
                            : pl_fail(err, PL_ENOMEM, "no memory for %d files", (int)env->wf->inputs.n);
    if (code == PL_OK)
        code = pl_store_features(env->store, err);
    if (code == PL_OK)
        code = pl_db_int(env->store->db, &n, err, "SELECT count(*) FROM input_file");
    s->files_stored = (int32_t)n;
    if (code == PL_OK)
        code = pl_db_prepare(env->store->db, &s->put_file,
                             "INSERT INTO input_file(file_id, path, size_bytes, sha256, "
                             "format) VALUES(?,?,?,?,?)",
                             err);
    if (code == PL_OK)
        code = pl_db_prepare(env->store->db, &s->put_record,
                             "INSERT INTO record(record_id, file_id, ordinal, "
                             "byte_offset, line, title, raw_smiles, status) VALUES(?,?,?,?,?,?,?,?)",
                             err);
    return code == PL_OK ? go_on(s, err) : code;
}

static void close_stage(void *state)
{
    read_state *s = state;

    (void)sqlite3_finalize(s->put_record);
    (void)sqlite3_finalize(s->put_file);
    ch_reader_close(s->reader);
    ch_worker_close(s->lister);
}

/* "1,5" is a number in many countries, but text here; ">10" is a limit. */
static void find_texts(const read_state *s, item *it, const ch_field *field, int n, pl_arena *mem)
{
    const pl_step *prepare = pl_workflow_step(s->env->wf, "prepare");

    for (int i = 0; i < n && prepare != NULL; i++) {
        st_side side;
        double limit;
        if (s->conf->censored == ST_CENSORED_BOUND && st_limit_read(&limit, &side, field[i].text))
            continue;
        const st_label_text kind = field[i].is_number || field[i].text[0] == '\0' ? ST_TEXT_OTHER : st_label_text_of(field[i].text);
        if (kind != ST_TEXT_OTHER && !s->was_told[kind] && it->told[kind] == NULL && st_label_wanted(prepare->conf, field[i].name))
            it->told[kind] = pl_sprintf(mem, "%.100s is %.40s", field[i].name, field[i].text);
    }
}

/* Which of two values of a record is meant? */
static void find_twice(const read_state *s, item *it, const ch_field *field, int n, pl_arena *mem)
{
    const pl_step *prepare = pl_workflow_step(s->env->wf, "prepare");

    for (int i = 0; i < n && prepare != NULL && !s->was_told[ST_TEXT_TWICE] && it->told[ST_TEXT_TWICE] == NULL; i++) {
        const ch_field *other = ch_field_again(field, n, &field[i]);
        if (other != NULL && (field[i].is_number || other->is_number) && st_label_wanted(prepare->conf, field[i].name))
            it->told[ST_TEXT_TWICE] = pl_sprintf(mem, "%.100s is %.40s and %.40s", field[i].name, field[i].text, other->text);
    }
}

static pl_code copy_fields(const read_state *s, item *it, const ch_record *r, pl_arena *mem, pl_error *err)
{
    ch_field *found;
    int n, n_columns;
    pl_code code = ch_record_measured(&found, &n, s->reader, r, mem, err);

    if (code != PL_OK)
        return code;
    (void)ch_reader_columns(s->reader, &n_columns);
    find_texts(s, it, found, n, mem);
    if (n_columns == 0)
        find_twice(s, it, found, n, mem);
    code = st_label_fields(&it->record, found, n, n_columns > 0, s->conf->censored == ST_CENSORED_BOUND, mem, err);
    if (code != PL_OK)
        pl_at(err, "%s:%lld", st_input_at(s->env->wf, it->file)->path, (long long)it->line);
    return code;
}

static pl_code copy_record(const read_state *s, item *it, const ch_record *r, pl_arena *mem, pl_error *err)
{
    const bool titled = r->title != NULL && r->title[0] != '\0';

    it->ordinal = r->ordinal;
    it->offset = r->offset;
    it->line = r->line;
    it->title = titled ? pl_strdup(mem, r->title) : NULL;
    if (titled && it->title == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the title of a record");
    if (r->problem != NULL) {
        it->problem = pl_strdup(mem, r->problem);
        return it->problem != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a record");
    }
    it->notes = ch_record_notes(r);
    it->record.id = it->id;
    it->record.format = pl_strdup(mem, r->format);
    it->record.text = pl_strndup(mem, r->text, r->len);
    it->record.len = r->len;
    if (it->record.format == NULL || it->record.text == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a record of %zu bytes", r->len);
    return copy_fields(s, it, r, mem, err);
}

/* Checks that what was read is, to its last byte, the file that the key names. */
static pl_code end_file(read_state *s, pl_error *err)
{
    st_found *f = &s->found[s->file];
    pl_code code = st_seen_whole(s->env, s->file, s->reader, &f->bytes, err);

    if (code != PL_OK)
        return code;
    f->whole = true;
    ch_reader_close(s->reader);
    s->reader = NULL;
    s->file++;
    return PL_OK;
}

/* One record into the unit, or the end of the file, which closes it. */
static pl_code take_record(read_state *s, read_unit *u, size_t *bytes, pl_arena *mem, pl_error *err)
{
    ch_record r;
    bool more = false;
    pl_code code = ch_reader_next(s->reader, &r, &more, err);

    if (code == PL_OK && more) {
        item *it = u->item != NULL ? &u->item[u->n] : NULL;
        u->n++;
        *bytes += r.len;
        if (it != NULL) {
            it->file = s->file;
            it->id = s->next_id;
            code = copy_record(s, it, &r, mem, err);
        }
        s->next_id++;
        s->found[s->file].records = r.ordinal;
    } else if (code == PL_OK) {
        code = end_file(s, err);
    }
    return code;
}

static pl_code open_file(read_state *s, const pl_input *in, pl_error *err)
{
    pl_code code = st_input_open(&s->reader, in, s->conf, s->lister, err);

    return code == PL_OK ? st_seen_format(s->env, s->file, s->reader, err) : code;
}

/* Records until the unit is full; without items they are only counted. */
static pl_code fill(read_state *s, read_unit *u, pl_arena *mem, pl_error *err)
{
    size_t bytes = 0;
    pl_code code = PL_OK;

    while (code == PL_OK && u->n < s->conf->unit && bytes < UNIT_BYTES && s->file < s->env->wf->inputs.n) {
        const pl_input *in = st_input_at(s->env->wf, s->file);
        if (s->reader == NULL)
            code = open_file(s, in, err);
        if (code == PL_OK)
            code = take_record(s, u, &bytes, mem, err);
        if (code != PL_OK && err != NULL && strstr(err->text, in->path) == NULL)
            pl_at(err, "%s", in->path);
    }
    s->at++;
    u->seen.file = s->file;
    return code == PL_OK && s->reader != NULL ? ch_reader_hash(s->reader, false, &u->seen.bytes, u->seen.sha256, err) : code;
}

/* Skips the units of other shards. */
static pl_code skip_to(read_state *s, int64_t unit, pl_error *err)
{
    pl_code code = PL_OK;

    while (code == PL_OK && s->at < unit && s->file < s->env->wf->inputs.n) {
        read_unit foreign = { 0 };
        if (*s->env->stop)
            return pl_fail(err, PL_ESTOP, "stopped");
        code = fill(s, &foreign, NULL, err);
    }
    return code;
}

static pl_code next(void *state, pl_unit *unit, bool *more, pl_error *err)
{
    read_state *s = state;
    read_unit *u = PL_NEW(unit->mem, read_unit, 1);
    pl_code code;

    if (u != NULL)
        u->item = PL_NEW(unit->mem, item, s->conf->unit);
    if (u == NULL || u->item == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a unit of records");
    code = skip_to(s, unit_of_all(s, unit->index), err);
    if (code == PL_OK)
        code = fill(s, u, unit->mem, err);
    *more = u->n > 0;
    unit->data = u;
    if (u->n > 0) {
        unit->first = u->item[0].id;
        unit->last = u->item[u->n - 1].id;
    }
    return code;
}

/* ---- checking and packing, on a worker thread ---- */

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* A SMILES ends at the first blank and contains only printable ASCII. */
static size_t smiles_length(const char *s, size_t n, bool *clean)
{
    size_t i = 0;

    *clean = true;
    for (; i < n && !is_space(s[i]); i++)
        *clean = *clean && (unsigned char)s[i] > ' ' && (unsigned char)s[i] < 127;
    return i;
}

/* Sets the problem, if there is one; false without memory. */
static bool check_text(item *it, pl_arena *mem)
{
    const st_record *r = &it->record;
    bool clean;
    size_t n;

    it->code = "record"; /* the splitter's own finding */
    if (it->problem != NULL)
        return true;
    if (strcmp(r->format, "smi") != 0)
        return true;
    n = smiles_length(r->text, r->len, &clean);
    if (!clean) {
        it->code = ch_status_name(CH_PARSE);
        it->problem = "not a SMILES: it holds bytes that are not printable ASCII";
    } else if (n <= RAW_SMILES_MAX) {
        it->raw_smiles = pl_strndup(mem, r->text, n);
        return it->raw_smiles != NULL;
    }
    return true;
}

static pl_code work(void *worker, pl_unit *unit, pl_error *err)
{
    read_unit *u = unit->data;
    st_record *good = PL_NEW(unit->mem, st_record, u->n);

    (void)worker;
    if (good == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a unit of records");
    for (int32_t i = 0; i < u->n; i++) {
        if (!check_text(&u->item[i], unit->mem))
            return pl_fail(err, PL_ENOMEM, "no memory for a unit of records");
        if (u->item[i].problem == NULL)
            good[u->n_good++] = u->item[i].record;
    }
    return st_records_pack(&u->block, good, u->n_good, unit->mem, err);
}

/* ---- storing ---- */

static void bind_text(sqlite3_stmt *st, int i, const char *text)
{
    if (text != NULL)
        (void)sqlite3_bind_text(st, i, text, -1, SQLITE_STATIC);
}

/* Rows of input_file up to and including `file`; files without records get theirs too. */
static pl_code store_files(read_state *s, int32_t file, pl_error *err)
{
    pl_code code = PL_OK;

    while (s->files_stored <= file && code == PL_OK) {
        const pl_input *in = st_input_at(s->env->wf, s->files_stored);
        ch_reader *reader = NULL;
        char hash[65];
        struct stat st = { 0 };
        code = st_seen_key(s->env->step, s->files_stored, hash) ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the key of read");
        if (code == PL_OK)
            code = st_input_open(&reader, in, s->conf, NULL, err);
        if (code == PL_OK) {
            (void)stat(in->path, &st);
            (void)sqlite3_bind_int(s->put_file, 1, s->files_stored + 1);
            bind_text(s->put_file, 2, in->path);
            (void)sqlite3_bind_int64(s->put_file, 3, (int64_t)st.st_size);
            bind_text(s->put_file, 4, hash);
            bind_text(s->put_file, 5, ch_reader_format(reader));
            code = pl_db_run(s->put_file, err);
        }
        if (code == PL_OK)
            st_read_warn_columns(s->env, in->path, reader);
        ch_reader_close(reader);
        s->files_stored++;
    }
    return code;
}

static pl_code store_failure(read_state *s, const item *it, pl_error *err)
{
    pl_failure f = { .record_id = it->id, .code = it->code, .message = it->problem, .attempt = 1 };
    return pl_failure_add(s->env, &f, err);
}

/* Each kind is reported once per run: such files have many of them. */
static void warn_texts(read_state *s, const item *it)
{
    static const char *const words[ST_TEXTS] = {
        [ST_TEXT_COMMA] =
            "a number with a decimal comma is read as text, not as a label, here and in later records; write 1.5 for 1,5",
        [ST_TEXT_TWICE] = "a field with two values gives none, here and in later records; keep one",
        [ST_TEXT_LIMIT] = "a limit is not a measured value and gives no label, here and in later records; check counts them",
    };

    for (int k = 0; k < ST_TEXT_OTHER; k++)
        if (it->told[k] != NULL && !s->was_told[k]) {
            s->was_told[k] = true;
            pl_event_add(s->env, PL_WARN, "%s:%lld: %s: %s", st_input_at(s->env->wf, it->file)->path, (long long)it->line,
                         it->told[k], words[k]);
        }
}

static void tell_notes(read_state *s, const item *it)
{
    for (int k = 0; k < CH_NOTES; k++)
        if ((it->notes & ~s->notes_told & 1u << k) != 0)
            pl_event_add(s->env, PL_WARN, "%s:%lld: %s, here and in later records", st_input_at(s->env->wf, it->file)->path,
                         (long long)it->line, ch_note_text[k]);
    s->notes_told |= it->notes;
}

static pl_code store_item(read_state *s, const item *it, pl_error *err)
{
    sqlite3_stmt *st = s->put_record;
    pl_code code = store_files(s, it->file, err);

    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_int64(st, 1, it->id);
    (void)sqlite3_bind_int(st, 2, it->file + 1);
    (void)sqlite3_bind_int64(st, 3, it->ordinal);
    (void)sqlite3_bind_int64(st, 4, it->offset);
    (void)sqlite3_bind_int64(st, 5, it->line);
    bind_text(st, 6, it->title);
    bind_text(st, 7, it->raw_smiles);
    bind_text(st, 8, it->problem != NULL ? "failed" : "read");
    code = pl_db_run(st, err);
    if (code == PL_OK && it->problem != NULL)
        code = store_failure(s, it, err);
    if (code == PL_OK)
        warn_texts(s, it);
    tell_notes(s, it);
    return code;
}

static pl_code commit(void *state, pl_unit *unit, pl_error *err)
{
    read_state *s = state;
    const read_unit *u = unit->data;
    pl_code code = PL_OK;

    for (int32_t i = 0; i < u->n && code == PL_OK; i++)
        code = store_item(s, &u->item[i], err);
    unit->n_ok = u->n_good;
    unit->n_failed = u->n - u->n_good;
    if (code == PL_OK)
        code = st_seen_put(s->env, unit->index, &u->seen, err);
    if (code == PL_OK)
        code = pl_block_put(s->env->store, "record", s->env->step->key, unit->index, unit->first, u->n_good, u->block, err);
    return code;
}

static pl_code finish(void *state, pl_error *err)
{
    read_state *s = state;
    sqlite3 *db = s->env->store->db;
    int64_t n = 0;
    pl_code code = st_seen_unchanged(s->env, err);

    if (code == PL_OK)
        code = store_files(s, s->env->wf->inputs.n - 1, err);
    if (code == PL_OK)
        code = st_seen_count(s->env, s->found, err);
    if (code == PL_OK)
        code = st_read_warn_records(s->env, err);
    if (s->env->n_shards > 0)
        return code; /* records missing here may be in another shard */
    if (code == PL_OK)
        code = pl_db_int(db, &n, err, "SELECT EXISTS(SELECT 1 FROM record)");
    if (code == PL_OK && n == 0)
        return pl_fail(err, PL_EINPUT, "no records in %s%s; check `inputs` and their `format`", st_input_at(s->env->wf, 0)->path,
                       s->env->wf->inputs.n > 1 ? " and all other input files" : "");
    return code == PL_OK ? st_read_warn_empty(s->env, err) : code;
}

/* All later stages depend on the records, so their results are removed first. */
static const char *const reset_sql[] = {
    "DELETE FROM hit",
    "DELETE FROM score",
    "DELETE FROM prediction",
    "DELETE FROM evaluated",
    "DELETE FROM split",
    "DELETE FROM label",
    "UPDATE record SET mol_id=NULL",
    "DELETE FROM fingerprint",
    "DELETE FROM molecule",
    "DELETE FROM record",
    "DELETE FROM input_file",
    "DELETE FROM failure WHERE stage='read'",
    "DELETE FROM meta WHERE key='read_seen'",
    NULL,
};

const pl_stage st_read = {
    .name = "read",
    .help = "read molecule files into records, each accounted for",
    .scope = PL_PER_UNIT,
    .version = 11,
    .fields = fields,
    .conf_size = sizeof(st_read_conf),
    .state_size = sizeof(read_state),
    .item = "records",
    .settle = settle,
    .check = st_read_check,
    .key = st_read_key,
    .estimate = estimate,
    .open = open_stage,
    .next = next,
    .work = work,
    .commit = commit,
    .finish = finish,
    .close = close_stage,
    .reset_sql = reset_sql,
    .doubt = st_read_doubt,
};
