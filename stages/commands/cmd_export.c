/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "chem/worker/sdf_drawn.h"
#include "stages/commands/commands.h"
#include "stages/commands/export_found.h"
#include "stages/steps/ingest/pose_block.h"
#include "stages/database/results.h"
#include "stages/database/rows.h"
#include "stages/database/schema.h"
#include "stages/expression/chemistry.h"
#include "stages/expression/row_filter.h"
#include "stages/files/out_file.h"
#include "stages/steps/ingest/conformers.h"
#include "stages/steps/rank/table_columns.h"

enum { MAX_FIELDS = 2000, HIDDEN = 2 }; /* SQLite gives no more columns; the last two of an SDF query are mol_id and unit */

static const pl_opt opts[] = {
    { "--output", 'o', "FILE", "output file, complete or not written at all; .gz is compressed; default: standard output" },
    { "--top", 'n', "N", "the first N of the ranking" },
    { "--all", 'a', NULL, "every molecule, not only the ranking" },
    { "--where", 'w', "EXPR", "only molecules for which this holds, e.g. \"mw < 300 and logp < 3\"" },
    { "--conformers", 0, "WHICH", "sdf: lowest (default), or all structures of each molecule, or poses of `external`" },
    { 0 }
};

typedef struct exporting {
    const pl_args *args;
    pl_store *store;
    pl_arena *mem;
    st_out out; /* used if to_file */
    bool to_file, all_structures, poses;
    int format;         /* of formats */
    bool found;         /* the molecules of temp.found, in its order                       */
    const char *number; /* of temp.found: the name of the column with its number, or NULL */
    int64_t top, n_written, n_skipped;
    st_conformers conformers; /* SDF only */
    pl_arena *row_mem;        /* SDF only */
    ch_worker *chem;          /* SDF only, and only if there is something to draw */
} exporting;

static pl_code put(void *ctx, const pl_text *text, pl_error *err)
{
    exporting *x = ctx;

    if (x->to_file)
        return st_out_add(&x->out, text, err);
    if (fwrite(pl_text_str(text), 1, text->len, stdout) != text->len)
        return pl_fail_errno(err, "standard output");
    return PL_OK;
}

/* ---- which molecules ---- */

static pl_code add_found(pl_text *sql)
{
    pl_text_add(sql, " FROM temp.found x CROSS JOIN molecule m ON m.mol_id=x.mol_id LEFT JOIN hit h ON h.mol_id=m.mol_id ORDER BY "
                     "x.place");
    return PL_OK;
}

/* The SQL of --where, with the functions that it calls. */
static pl_code condition_make(const char **sql, const char *where, const exporting *x, pl_error *err)
{
    bool functions = false;
    pl_code code = st_row_filter_check(where, NULL, NULL, err);

    if (code == PL_OK)
        code = st_row_filter_sql(sql, where, x->store->db, &functions, x->mem, err);
    return code == PL_OK && functions ? st_chemistry_add(x->store->db, NULL, err) : code;
}

static pl_code add_from(const exporting *x, pl_text *sql, pl_error *err)
{
    const char *where = pl_arg(x->args, "--where"), *condition = NULL;
    int64_t n_hits = 0;
    pl_code code = pl_db_int(x->store->db, &n_hits, err, "SELECT count(*) FROM (SELECT 1 FROM hit LIMIT 1)");
    bool all = pl_arg(x->args, "--all") != NULL || n_hits == 0;

    if (code == PL_OK && where != NULL)
        code = condition_make(&condition, where, x, err);
    if (code != PL_OK)
        return code;
    if (all && x->top > 0)
        return pl_fail(err, PL_ECONFIG,
                       n_hits ? "--top and --all exclude each other" : "--top: there is no ranking yet; see molsieve status");
    pl_text_addf(sql, " FROM %s",
                 all ? "molecule m LEFT JOIN hit h ON h.mol_id=m.mol_id" : "hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id");
    if (where != NULL)
        pl_text_addf(sql, " WHERE m.mol_id IN (SELECT mol_id FROM molecule WHERE (%s\n))", condition);
    pl_text_add(sql, all ? " ORDER BY m.mol_id" : " ORDER BY h.rank");
    if (x->top > 0)
        pl_text_addf(sql, " LIMIT %lld", (long long)x->top);
    return PL_OK;
}

/* hidden: mol_id and unit behind the columns. */
static pl_code prepare(const exporting *x, bool hidden, sqlite3_stmt **st, pl_error *err)
{
    pl_text sql = { 0 };
    pl_code code;

    pl_text_add(&sql, "SELECT ");
    code = st_table_columns(x->store->db, &sql, err);
    if (x->number != NULL)
        pl_text_addf(&sql, ", x.similarity AS %s", x->number);
    pl_text_add(&sql, hidden ? ", m.mol_id, m.unit" : "");
    if (code == PL_OK)
        code = x->found ? add_found(&sql) : add_from(x, &sql, err);
    if (!pl_text_ok(&sql))
        code = pl_fail(err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        code = pl_db_prepare(x->store->db, st, pl_text_str(&sql), err);
    pl_text_free(&sql);
    return code;
}

/* SMILES, title, InChIKey. */
static pl_code prepare_smi(const exporting *x, sqlite3_stmt **st, pl_error *err)
{
    pl_text sql = { 0 };
    pl_code code;

    pl_text_add(&sql, "SELECT m.smiles, " ST_TITLES ", m.inchikey");
    code = x->found ? add_found(&sql) : add_from(x, &sql, err);
    if (code == PL_OK)
        code =
            pl_text_ok(&sql) ? pl_db_prepare(x->store->db, st, pl_text_str(&sql), err) : pl_fail(err, PL_ENOMEM, "out of memory");
    pl_text_free(&sql);
    return code;
}

/* ---- csv and smi ---- */

static pl_code export_rows(exporting *x, st_format format, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = prepare(x, false, &st, err);

    if (code == PL_OK)
        code = st_rows_write(st, format, 0, &x->n_written, put, x, err);
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code export_csv(exporting *x, pl_error *err) { return export_rows(x, ST_CSV, err); }
static pl_code export_json(exporting *x, pl_error *err) { return export_rows(x, ST_JSON, err); }
static pl_code export_jsonl(exporting *x, pl_error *err) { return export_rows(x, ST_JSONL, err); }

static const char *text_of(sqlite3_stmt *st, int i)
{
    const char *s = (const char *)sqlite3_column_text(st, i);
    return s != NULL ? s : "";
}

static pl_code export_smi(exporting *x, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_text line = { 0 };
    pl_code code = prepare_smi(x, &st, err);

    while (pl_db_next(st, &code, err)) {
        const char *title = text_of(st, 1);
        pl_text_reset(&line);
        pl_text_addf(&line, "%s\t%s\n", text_of(st, 0), title[0] ? title : text_of(st, 2));
        code = put(x, &line, err);
        x->n_written++;
    }
    (void)sqlite3_finalize(st);
    pl_text_free(&line);
    return code;
}

/* ---- sdf ---- */

static pl_code open_conformers(exporting *x, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    const char *key = NULL;
    pl_code code = pl_db_prepare(x->store->db, &st,
                                 x->poses ? "SELECT key FROM stage WHERE name='external' ORDER BY stage_id DESC"
                                          : "SELECT key FROM stage WHERE name='prepare' ORDER BY stage_id DESC",
                                 err);

    if (pl_db_next(st, &code, err) && (key = pl_strdup(x->mem, text_of(st, 0))) == NULL)
        code = pl_fail(err, PL_ENOMEM, "a key");
    (void)sqlite3_finalize(st);
    if (code == PL_OK && key == NULL)
        code = pl_fail(err, PL_EINPUT, "%s: %s", x->store->results_path,
                       x->poses ? "there is no stage external, so there are no poses" : "no molecules have been prepared yet");
    if (code == PL_OK)
        code = st_conformers_open(&x->conformers, x->store, key, err);
    if (x->poses)
        x->conformers.kind = ST_POSE_BLOCK;
    return code;
}

/* Which structure of its molecule this is, and the value of a pose: that of the molecule, beside it, is the best one's. -1: no memory. */
static int place_make(ch_sdf_field *field, exporting *x, int32_t place, double value)
{
    char text[32];

    field[0] = (ch_sdf_field){ x->poses ? "pose" : "conformer", pl_sprintf(x->row_mem, "%d", place + 1) };
    if (field[0].value == NULL || isnan(value))
        return field[0].value == NULL ? -1 : 1;
    field[1] = (ch_sdf_field){ "pose_value", pl_strdup(x->row_mem, pl_real_str(value, text)) };
    return field[1].value == NULL ? -1 : 2;
}

/* The columns of a row that are not empty as data fields. place: of the structure, from 0; the energy in the row is that of the first. */
static int fields_make(ch_sdf_field *field, exporting *x, sqlite3_stmt *st, int32_t place, double value)
{
    const int n_columns = sqlite3_column_count(st);
    int n = x->all_structures ? place_make(field, x, place, value) : 0;

    if (n < 0)
        return -1;
    for (int i = 0; i < n_columns - HIDDEN && n < MAX_FIELDS; i++) {
        const char *name = sqlite3_column_name(st, i);
        if (sqlite3_column_type(st, i) == SQLITE_NULL || ((place > 0 || x->poses) && strcmp(name, ST_COLUMN_ENERGY) == 0))
            continue;
        field[n] = (ch_sdf_field){ name, st_cell_str(st, i, x->row_mem) };
        if (field[n].value == NULL)
            return -1;
        n += field[n].value[0] != '\0';
    }
    return n;
}

static pl_code write_sdf(exporting *x, sqlite3_stmt *st, pl_text *record, pl_error *err)
{
    const int n_columns = sqlite3_column_count(st);
    const int64_t mol_id = sqlite3_column_int64(st, n_columns - 2), unit = sqlite3_column_int64(st, n_columns - 1);
    ch_sdf_field field[MAX_FIELDS];
    const ch_block_item *first;
    int32_t n;
    pl_code code = st_conformers_find(&x->conformers, unit, mol_id, &first, &n, err);

    x->n_skipped += n == 0; /* no conformer could be made, or it is not kept */
    x->n_written += n > 0;
    for (int32_t k = 0; k < n && (k == 0 || x->all_structures) && code == PL_OK; k++) {
        pl_arena_reset(x->row_mem);
        const double *values = x->conformers.value;
        const int n_fields = fields_make(field, x, st, k, values != NULL ? values[first - x->conformers.item + k] : (double)NAN);
        pl_text_reset(record);
        if (n_fields >= 0)
            code = ch_sdf_write_drawn(record, &x->chem, &first[k].mol, text_of(st, ST_TABLE_SMILES), text_of(st, ST_TABLE_TITLE),
                                      field, n_fields, err);
        if (n_fields < 0 || !pl_text_ok(record))
            code = pl_fail(err, PL_ENOMEM, "out of memory");
        if (code == PL_OK)
            code = put(x, record, err);
    }
    return code;
}

static pl_code export_sdf(exporting *x, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_text record = { 0 };
    pl_code code = open_conformers(x, err);

    x->row_mem = pl_arena_new(1 << 14);
    if (x->row_mem == NULL)
        code = pl_fail(err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        code = prepare(x, true, &st, err);
    while (pl_db_next(st, &code, err))
        code = write_sdf(x, st, &record, err);
    (void)sqlite3_finalize(st);
    pl_text_free(&record);
    pl_arena_free(x->row_mem);
    st_conformers_close(&x->conformers);
    ch_worker_close(x->chem);
    return code;
}

/* ---- the command ---- */

static const struct {
    const char *name;
    pl_code (*write)(exporting *x, pl_error *err);
} formats[] = {
    { "csv", export_csv }, { "sdf", export_sdf }, { "smi", export_smi }, { "json", export_json }, { "jsonl", export_jsonl }
};
enum { N_EXPORT = 3, N_FOUND = 5 }; /* of the command `export`; of st_export_found */

static int format_of(const char *name, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(formats[i].name, name) == 0)
            return i;
    return -1;
}

static pl_code write_all(exporting *x, const char *file, pl_error *err)
{
    pl_code code = PL_OK;

    x->to_file = file != NULL && strcmp(file, "-") != 0;
    if (x->to_file)
        code = st_out_open(&x->out, file, x->mem, err);
    if (code == PL_OK)
        code = formats[x->format].write(x, err);
    if (code == PL_OK && x->to_file)
        code = st_out_keep(&x->out, err);
    st_out_close(&x->out);
    return code;
}

static pl_code do_export(const st_ask *ask, pl_error *err)
{
    exporting *x = ask->ctx;
    pl_code code;

    x->store = ask->store;
    x->mem = ask->mem;
    code = write_all(x, pl_arg(x->args, "--output"), err);
    if (code != PL_OK)
        return code;
    (void)fprintf(stderr, "%lld molecule%s of %s\n", (long long)x->n_written, x->n_written == 1 ? "" : "s", x->store->results_path);
    if (x->n_skipped > 0)
        pl_cmd_say("%lld %s without a stored structure left out", (long long)x->n_skipped,
                   pl_plural(x->n_skipped, "molecule", "molecules"));
    return PL_OK;
}

bool st_export_knows(const char *format) { return format_of(format, N_FOUND) >= 0; }

pl_code st_export_found(const st_ask *ask, const char *format, const char *file, const char *number, int64_t *n_skipped,
                        pl_error *err)
{
    exporting x = { .args = ask->args,
                    .store = ask->store,
                    .mem = ask->mem,
                    .found = true,
                    .number = number,
                    .format = format_of(format, N_FOUND) };
    pl_code code = write_all(&x, file, err);

    *n_skipped = x.n_skipped;
    return code;
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *top = pl_arg(args, "--top"), *which = pl_arg(args, "--conformers");
    exporting x = { .args = args, .format = format_of(args->arg[0], N_EXPORT) };

    if (x.format < 0)
        return pl_cmd_usage(args, "'%s' is not a format; allowed: csv, sdf or smi", args->arg[0]);
    if (top != NULL && (!pl_parse_int(top, &x.top) || x.top < 1))
        return pl_cmd_usage(args, "--top %s: a whole number from 1 is expected", top);
    x.poses = which != NULL && strcmp(which, "poses") == 0;
    x.all_structures = x.poses || (which != NULL && strcmp(which, "all") == 0);
    if (which != NULL && !x.all_structures && strcmp(which, "lowest") != 0)
        return pl_cmd_usage(args, "--conformers %s: allowed are lowest, all and poses", which);
    if (x.all_structures && strcmp(args->arg[0], "sdf") != 0)
        return pl_cmd_usage(args, "--conformers: only sdf has structures");
    return st_results_ask(app, args, args->n > 1 ? args->arg[1] : NULL, do_export, &x);
}

const pl_cmd st_cmd_export = {
    .name = "export",
    .args = "csv|sdf|smi [WORKDIR | WORKFLOW | DATABASE]",
    .help = "write molecules, their scores and structures to a file",
    .about = "Writes the ranking, or all molecules if there is none (or with --all). SDF has\n"
             "the structures of features.db, or drawings where none were built, and every\n"
             "column as a data field.\n"
             "\n"
             "  molsieve export sdf --top 50 -o top50.sdf\n"
             "  molsieve export sdf --all --conformers all -o ensembles.sdf.gz\n"
             "  molsieve export sdf --top 50 --conformers poses -o poses.sdf\n"
             "  molsieve export csv --all --where \"mw < 300\" -o light.csv.gz\n",
    .opts = opts,
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
