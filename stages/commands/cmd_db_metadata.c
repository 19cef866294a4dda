/* SPDX-License-Identifier: Apache-2.0 */
/* `molsieve db metadata`: what Datasette shows beside tables and columns, and queries that it offers. */
#include <string.h>

#include "stages/commands/commands.h"
#include "stages/steps/rank/table_columns.h"

static const struct {
    const char *name, *description;
} tables[] = {
    { "v_hits", "The ranking: one row per hit and scored property" },
    { "v_scaffolds", "The best hit of each scaffold" },
    { "v_properties", "All molecules with scores, labels and descriptors" },
    { "v_nearest", "The nearest training molecule of each prediction" },
    { "v_failures", "What failed, with file and line" },
    { "v_funnel", "From records to hits" },
    { "acquired", "Molecules chosen to be tried, round by round, and what came of them" },
    { "column_doc", "What each column means, with its unit" },
    { "evaluated", "The labels that each model was evaluated on" },
    { "evaluation", "Errors of each model on each part of the data" },
    { "event", "Warnings and other messages of runs" },
    { "failure", "Records and molecules that failed, with the reason" },
    { "file_hash", "Hashes of input files that were read" },
    { "fingerprint", "Fingerprint and scaffold of each molecule" },
    { "hit", "The ranking: one row per hit" },
    { "input_file", "The input files" },
    { "label", "Values of the input, by molecule and property" },
    { "measured", "Values that `molsieve label` added" },
    { "meta", "Facts about the whole database" },
    { "metric", "Numbers of stages: losses, errors, funnel" },
    { "model", "The models that predicted" },
    { "molecule", "One row per molecule: identity, structure and descriptors" },
    { "prediction", "One row per molecule, model and property" },
    { "property", "What is measured or predicted, with its unit" },
    { "record", "One row per entry of the input files" },
    { "row_sum", "Checksums of the rows of each table" },
    { "run", "One row per start of the program" },
    { "score", "One row per molecule and property: mean over models, interval, domain" },
    { "split", "Which part of the data each molecule is in" },
    { "stage", "The stages with their keys and settings" },
    { "unit", "Which units of each stage are done" },
    { "v_acquired", "What was chosen to be tried, with reasons" },
    { "v_progress", "How far each stage is" },
    { "v_runs", "Starts of the program, with state and exit status" },
};

/* What their functions need, shown beside them. */
static const char extension[] =
    "With datasette --load-extension FOLDER/molsieve_sqlite.so (beside molsieve, or lib/molsieve of its "
    "installation); without it: no such function";

static const struct {
    const char *name, *title, *sql;
} queries[] = {
    { "similar", "Molecules similar to a SMILES",
      "SELECT round(similarity(f.bits, :smiles),3) AS query_similarity, h.rank, m.smiles, m.mol_id FROM molecule m JOIN fingerprint f "
      "USING(mol_id) LEFT JOIN hit h USING(mol_id) ORDER BY 1 DESC LIMIT 100" },
    { "substructure", "Molecules that match a SMARTS",
      "SELECT h.rank, m.smiles, m.mol_id FROM molecule m LEFT JOIN hit h USING(mol_id) WHERE smarts(m.smiles, :smarts) ORDER BY h.rank "
      "IS NULL, h.rank LIMIT 100" },
    { "scaffold", "Molecules with the scaffold of a SMILES",
      "SELECT h.rank, m.smiles, m.mol_id FROM molecule m JOIN fingerprint f USING(mol_id) LEFT JOIN hit h USING(mol_id) WHERE "
      "f.scaffold=scaffold(:smiles) ORDER BY h.rank IS NULL, h.rank LIMIT 100" },
};

static const char *description_of(const char *table)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(tables[i].name, table) == 0)
            return tables[i].description;
    return NULL;
}

static void begin_table(pl_text *out, const char *table, bool first)
{
    const char *description = description_of(table);

    pl_text_add(out, first ? "\n    " : "}},\n    ");
    pl_text_add_json(out, table);
    pl_text_add(out, ": {");
    if (description != NULL) {
        pl_text_add(out, "\"description\": ");
        pl_text_add_json(out, description);
        pl_text_add(out, ", ");
    }
    pl_text_add(out, "\"columns\": {");
}

/* "column": "what it means, unit u". */
static void add_column(pl_text *out, sqlite3_stmt *st, bool first)
{
    const char *unit = (const char *)sqlite3_column_text(st, 2);
    pl_text meaning = { 0 };

    pl_text_add(&meaning, (const char *)sqlite3_column_text(st, 3));
    if (unit != NULL)
        pl_text_addf(&meaning, "; unit: %s", unit);
    pl_text_add(out, first ? "\n      " : ",\n      ");
    pl_text_add_json(out, (const char *)sqlite3_column_text(st, 1));
    pl_text_add(out, ": ");
    pl_text_add_json(out, pl_text_str(&meaning));
    pl_text_depend(out, &meaning);
    pl_text_free(&meaning);
}

static pl_code add_tables(pl_text *out, sqlite3 *db, pl_error *err)
{
    char last[128] = "";
    sqlite3_stmt *st = NULL;
    pl_code code =
        pl_db_prepare(db, &st,
                      "SELECT d.tbl, d.col, d.unit, d.description FROM sqlite_master m, pragma_table_info(m.name) p JOIN "
                      "column_doc d ON d.tbl=m.name AND d.col=p.name WHERE m.type IN('table','view') ORDER BY m.name, p.cid",
                      err);

    while (pl_db_next(st, &code, err)) {
        const char *table = (const char *)sqlite3_column_text(st, 0);
        const bool next = strcmp(last, table) != 0;
        if (next)
            begin_table(out, table, last[0] == '\0');
        add_column(out, st, next);
        (void)snprintf(last, sizeof last, "%s", table);
    }
    (void)sqlite3_finalize(st);
    pl_text_add(out, last[0] != '\0' ? "}}" : "");
    return code;
}

/* description NULL: none; the first query of all. */
static void add_query(pl_text *out, const char *name, const char *title, const char *description, const char *sql)
{
    pl_text_add(out, description == NULL ? "\n    " : ",\n    ");
    pl_text_add_json(out, name);
    pl_text_add(out, ": {\"title\": ");
    pl_text_add_json(out, title);
    if (description != NULL) {
        pl_text_add(out, ", \"description\": ");
        pl_text_add_json(out, description);
    }
    pl_text_add(out, ", \"sql\": ");
    pl_text_add_json(out, sql);
    pl_text_add(out, "}");
}

static pl_code add_queries(pl_text *out, sqlite3 *db, pl_error *err)
{
    pl_text wide = { 0 };
    pl_code code;

    pl_text_add(&wide, "SELECT ");
    code = st_table_columns(db, &wide, err);
    pl_text_add(&wide, " FROM molecule m LEFT JOIN hit h ON h.mol_id=m.mol_id ORDER BY h.rank IS NULL, h.rank, m.mol_id");
    if (code == PL_OK)
        add_query(out, "wide", "All molecules, a column for each property", NULL, pl_text_str(&wide));
    pl_text_depend(out, &wide);
    pl_text_free(&wide);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        add_query(out, queries[i].name, queries[i].title, extension, queries[i].sql);
    return code;
}

/* "results" of runs/screen/results.db, as Datasette calls the database. */
static void add_name(pl_text *out, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *dot = strrchr(name, '.');
    pl_text stem = { 0 };

    pl_text_add_n(&stem, name, dot != NULL ? (size_t)(dot - name) : strlen(name));
    pl_text_add_json(out, pl_text_str(&stem));
    pl_text_depend(out, &stem);
    pl_text_free(&stem);
}

pl_code st_db_metadata(pl_store *s, pl_error *err)
{
    pl_text out = { 0 };
    pl_code code;

    pl_text_add(&out, "{\"databases\": {");
    add_name(&out, s->results_path);
    pl_text_add(&out, ": {\n  \"tables\": {");
    code = add_tables(&out, s->db, err);
    pl_text_add(&out, "\n  },\n  \"queries\": {");
    if (code == PL_OK)
        code = add_queries(&out, s->db, err);
    pl_text_add(&out, "\n  }\n}}}\n");
    if (!pl_text_ok(&out))
        code = pl_fail(err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        (void)fputs(pl_text_str(&out), stdout);
    pl_text_free(&out);
    return code;
}
