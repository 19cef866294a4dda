/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "stages/commands/commands.h"
#include "stages/database/results.h"
#include "stages/database/rows.h"
#include "stages/expression/chemistry.h"

static const pl_opt opts[] = { { "--format", 'f', "FORMAT", "table, csv, json or jsonl" },
                               { "--csv", 0, NULL, "the same as --format csv" },
                               { "--json", 0, NULL, "the same as --format json" },
                               { "--file", 0, "FILE", "read the SQL from a file; - is standard input" },
                               { 0 } };

static const char examples[] = "\nExamples:\n"
                               "  molsieve query v_funnel\n"
                               "  molsieve query \"SELECT code, count(*) AS n FROM failure GROUP BY code\"\n"
                               "  molsieve query --csv \"SELECT smiles, mw FROM molecule WHERE mw < 300\"\n"
                               "  molsieve query \"SELECT * FROM column_doc WHERE tbl='molecule'\"\n";

/* Functions of SQLite, its shell or some builds that return an address of memory, read files or change the process. */
static bool is_dangerous(const char *function)
{
    static const char *const names[] = { "load_extension", "fts3_tokenizer",     "readfile",   "writefile",
                                         "edit",           "icu_load_collation", "sqlite_log", "fts5" };
    bool yes = false;

    for (size_t i = 0; function != NULL && i < sizeof names / sizeof *names; i++)
        yes = yes || strcasecmp(function, names[i]) == 0;
    return yes;
}

/* Allows reading only, and nothing that opens another file or changes the connection. */
static int only_reading(void *unused, int action, const char *a, const char *b, const char *c, const char *d)
{
    static const char *const pragmas[] = { "table_info",      "table_list",       "index_list",     "index_info",
                                           "table_xinfo",     "foreign_key_list", "user_version",   "application_id",
                                           "page_count",      "page_size",        "schema_version", "database_list",
                                           "compile_options", "freelist_count",   "journal_mode",   "encoding" };
    (void)unused, (void)c, (void)d;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION: return is_dangerous(b) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
        for (size_t i = 0; i < sizeof pragmas / sizeof *pragmas; i++)
            if (strcmp(a, pragmas[i]) == 0 && (b == NULL || strstr(pragmas[i], "_list") != NULL ||
                                               strstr(pragmas[i], "_info") != NULL || strstr(pragmas[i], "_xinfo") != NULL))
                return SQLITE_OK;
        return SQLITE_DENY;
    default: return SQLITE_DENY;
    }
}

/* Table-valued functions are declared at their first use, which looks like creating a table: use them before only reading is allowed. */
static void declare(sqlite3 *db)
{
    static const char *const tables[] = {
        "json_each",         "json_tree",         "pragma_table_info", "pragma_table_xinfo",
        "pragma_table_list", "pragma_index_list", "pragma_index_info", "pragma_foreign_key_list"
    };

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char sql[64];
        sqlite3_stmt *st = NULL;
        (void)sqlite3_snprintf(sizeof sql, sql, "SELECT 1 FROM %s('x')", tables[i]);
        (void)sqlite3_prepare_v2(db, sql, -1, &st, NULL); /* one that this SQLite lacks is an error in the query that uses it */
        (void)sqlite3_finalize(st);
    }
}

/* If no column is called logpp, SQLite reads "logpp" < 5 as a comparison with a text, which finds nothing. */
static void refuse_quoted_texts(sqlite3 *db)
{
#ifdef SQLITE_DBCONFIG_DQS_DML
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
#endif
}

/* Without a worker smarts(), similarity() ... are unknown to SQLite; chemistry says why. */
static pl_code fail_no_such(sqlite3 *db, const pl_error *chemistry, pl_error *err)
{
    const char *text = sqlite3_errmsg(db);

    if (strncmp(text, "no such function: ", 18) == 0 && chemistry->code != PL_OK)
        return pl_fail(err, PL_ECONFIG, "SQL: %s; those that know molecules are missing: %s", text, chemistry->text);
    return pl_fail(err, PL_ECONFIG, "SQL: %s; `molsieve query` lists tables and columns", text);
}

static pl_code fail_sql(sqlite3 *db, const pl_error *chemistry, pl_error *err)
{
    int why = sqlite3_errcode(db) & 0xff;

    if (why == SQLITE_AUTH)
        return pl_fail(err, PL_ECONFIG, "SQL: only reading is allowed here (%s)", sqlite3_errmsg(db));
    if (why != SQLITE_ERROR)
        return pl_db_fail(db, err);
    if (strncmp(sqlite3_errmsg(db), "no such", 7) == 0)
        return fail_no_such(db, chemistry, err);
    return pl_fail(err, PL_ECONFIG, "SQL: %s", sqlite3_errmsg(db));
}

/* One statement; what follows it may only be blank or a comment. chemistry: why its functions are missing. */
static pl_code prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out, const pl_error *chemistry, pl_error *err)
{
    const char *rest;
    sqlite3_stmt *more = NULL;
    bool two;

    *out = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, out, &rest) != SQLITE_OK) {
        if (sqlite3_errcode(db) == SQLITE_ERROR && sql[0] != '\0' && strpbrk(sql, " \t\n;(") == NULL)
            return pl_fail(err, PL_ECONFIG, "%s: no such table or view; `molsieve query` lists them", sql);
        return fail_sql(db, chemistry, err);
    }
    if (*out == NULL)
        return pl_fail(err, PL_ECONFIG, "SQL: the text has no statement");
    two = sqlite3_prepare_v2(db, rest, -1, &more, NULL) != SQLITE_OK || more != NULL;
    (void)sqlite3_finalize(more);
    return two ? pl_fail(err, PL_ECONFIG, "SQL: one statement at a time; a second one begins with '%.20s'", rest) : PL_OK;
}

static pl_code read_stdin(const char **out, pl_arena *mem, pl_error *err)
{
    pl_text text = { 0 };
    char part[4096];
    size_t n;

    while ((n = fread(part, 1, sizeof part, stdin)) > 0)
        pl_text_add_n(&text, part, n);
    *out = pl_text_ok(&text) ? pl_strdup(mem, pl_text_str(&text)) : NULL;
    pl_text_free(&text);
    return *out ? PL_OK : pl_fail(err, PL_ENOMEM, "standard input: out of memory");
}

/* The name may hold quotes. */
static pl_code select_all(const char **sql, const char *name, pl_arena *mem, pl_error *err)
{
    char *text = sqlite3_mprintf("SELECT * FROM \"%w\"", name);

    *sql = text != NULL ? pl_strdup(mem, text) : NULL;
    sqlite3_free(text);
    return *sql ? PL_OK : pl_fail(err, PL_ENOMEM, "a query");
}

/* What to run: a file, standard input, the name of a table or view, or SQL. */
static pl_code get_sql(const pl_args *args, sqlite3 *db, const char **sql, pl_arena *mem, pl_error *err)
{
    const char *file = pl_arg(args, "--file"), *word = args->n > 0 ? args->arg[0] : NULL;
    pl_bytes bytes = { 0 };
    int64_t is_name = 0;
    pl_code code = PL_OK;

    if (file != NULL && strcmp(file, "-") == 0)
        return read_stdin(sql, mem, err);
    if (file != NULL) {
        code = pl_file_read(&bytes, file, mem, err);
        *sql = bytes.data;
        return code;
    }
    code = pl_db_int(db, &is_name, err, "SELECT count(*) FROM sqlite_master WHERE type IN('table','view') AND name=%Q", word);
    *sql = word;
    return is_name ? select_all(sql, word, mem, err) : code;
}

static pl_code list_tables(sqlite3 *db, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(
        db, &st,
        "SELECT s.name, s.type, (SELECT group_concat(name,', ') FROM pragma_table_info(s.name)) AS columns "
        "FROM sqlite_master s WHERE s.type IN('table','view') AND s.name NOT LIKE 'sqlite_%' ORDER BY s.type DESC, s.name",
        err);

    if (code == PL_OK)
        code = st_rows_print(st, ST_TABLE, 90, NULL, err);
    (void)sqlite3_finalize(st);
    if (code == PL_OK)
        (void)fputs(examples, stdout);
    return code;
}

/* An object of JSON has one value of a name: a reader keeps one of two and says nothing. */
static pl_code names_check(sqlite3_stmt *st, st_format format, pl_error *err)
{
    const int n = format == ST_JSON || format == ST_JSONL ? sqlite3_column_count(st) : 0;

    for (int i = 1; i < n; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(sqlite3_column_name(st, i), sqlite3_column_name(st, k)) == 0)
                return pl_fail(err, PL_ECONFIG,
                               "SQL: two columns are called '%.100s', and JSON has one of a name: name them with AS, or use --csv",
                               sqlite3_column_name(st, i));
    return PL_OK;
}

/* `query runs/x`: one argument that is a place, not a question. */
static bool only_place(const pl_args *args) { return args->n == 1 && access(args->arg[0], F_OK) == 0; }

static bool is_about_sql(int why) { return why == SQLITE_AUTH || why == SQLITE_ERROR; }

static pl_code query(const st_ask *ask, pl_error *err)
{
    const pl_args *args = ask->args;
    sqlite3 *db = ask->store->db;
    st_format format = *(st_format *)ask->ctx;
    sqlite3_stmt *st = NULL;
    const char *sql = NULL;
    int64_t n = 0;
    pl_error chemistry = { 0 };
    pl_code code = PL_OK;

    if (pl_arg(args, "--file") == NULL && (args->n == 0 || only_place(args)))
        return list_tables(db, err);
    code = get_sql(args, db, &sql, ask->mem, err);
    declare(db);
    if (code == PL_OK && st_chemistry_add(db, NULL, &chemistry) == PL_ENOMEM)
        code = pl_fail(err, PL_ENOMEM, "%s", chemistry.text);
    refuse_quoted_texts(db);
    (void)sqlite3_set_authorizer(db, only_reading, NULL);
    if (code == PL_OK)
        code = prepare(db, sql, &st, &chemistry, err);
    if (code == PL_OK)
        code = names_check(st, format, err);
    if (code == PL_OK)
        code = st_rows_print(st, format, isatty(STDOUT_FILENO) ? 60 : 0, &n, err);
    if (code != PL_OK && st != NULL && is_about_sql(sqlite3_errcode(db) & 0xff))
        code = fail_sql(db, &chemistry, err); /* found only at run time: VACUUM, a number that overflows */
    (void)sqlite3_finalize(st);
    if (code == PL_OK && format == ST_TABLE && isatty(STDOUT_FILENO))
        (void)fprintf(stderr, "%lld row%s\n", (long long)n, n == 1 ? "" : "s");
    return code;
}

static pl_code get_format(const pl_args *args, st_format *format, pl_error *err)
{
    const char *word = pl_arg(args, "--format");

    *format = pl_arg(args, "--json") != NULL ? ST_JSON : ST_TABLE;
    if (pl_arg(args, "--csv") != NULL)
        *format = ST_CSV;
    return word != NULL ? st_format_parse(format, word, err) : PL_OK;
}

/* Where the database is: the argument after the SQL, if there is one. */
static const char *place(const pl_args *args)
{
    bool file = pl_arg(args, "--file") != NULL;
    if (only_place(args) || (file && args->n == 1))
        return args->arg[0];
    return args->n > 1 ? args->arg[1] : NULL;
}

static int run(const pl_app *app, const pl_args *args)
{
    st_format format;
    pl_error err = { 0 };

    if (args->n > (pl_arg(args, "--file") != NULL ? 1 : 2))
        return pl_cmd_usage(args, "one query at a time; put the SQL in quotes");
    if (get_format(args, &format, &err) != PL_OK)
        return pl_cmd_fail(&err);
    return st_results_ask(app, args, place(args), query, &format);
}

const pl_cmd st_cmd_query = {
    .name = "query",
    .args = "[SQL | TABLE | VIEW] [WORKDIR | WORKFLOW | DATABASE]",
    .help = "query the results database with SQL, read-only",
    .about = "Without an argument: lists the tables and views. The database is opened for\n"
             "reading only, so this is safe during a run; any SQLite tool can read it too.\n"
             "As JSON, columns need different names (AS).\n"
             "smarts(smiles, 'c1ccccc1'), similarity(smiles, 'CCO') and scaffold(smiles) are\n"
             "known here as well.\n"
             "\n"
             "  molsieve query\n"
             "  molsieve query v_hits\n"
             "  molsieve query --json \"SELECT inchikey, mw FROM molecule WHERE mw < 200\"\n",
    .opts = opts,
    .run = run,
};
