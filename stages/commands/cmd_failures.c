/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/commands.h"
#include "stages/database/results.h"
#include "stages/database/rows.h"

static const pl_opt opts[] = { { "--stage", 0, "STAGE", "list the failures of this stage only" },
                               { "--code", 0, "CODE", "list the failures with this code only" },
                               { "--limit", 'n', "N", "list at most this many (default 50; 0: all)" },
                               { "--csv", 0, NULL, "list all as CSV" },
                               { "--json", 0, NULL, "list all as JSON, one object a line" },
                               { 0 } };

static const char counts_sql[] =
    "SELECT stage,code,count(*),min(message),count(DISTINCT message) FROM v_failures WHERE (?1 IS NULL OR stage=?1) AND (?2 IS NULL OR code=?2)"
    " GROUP BY stage,code ORDER BY 3 DESC,1,2";
static const char list_sql[] =
    "SELECT stage,code,place,ordinal,title,raw_smiles,message,signal,cpu_s,attempt,at_utc FROM v_failures"
    " WHERE (?1 IS NULL OR stage=?1) AND (?2 IS NULL OR code=?2) ORDER BY stage,rtrim(place,'0123456789'),ordinal LIMIT ?3";

static const char *text_of(sqlite3_stmt *st, int i)
{
    const unsigned char *text = sqlite3_column_text(st, i);
    return text != NULL ? (const char *)text : "";
}

typedef void print_row(sqlite3_stmt *st);

static void print_count(sqlite3_stmt *st)
{
    pl_cmd_print("%8lld  %-9s %-12s %.90s\n", (long long)sqlite3_column_int64(st, 2), text_of(st, 0), text_of(st, 1),
                 text_of(st, 3));
    if (sqlite3_column_int64(st, 4) > 1)
        pl_cmd_print("%33sand %lld other message%s\n", "", (long long)sqlite3_column_int64(st, 4) - 1,
                     sqlite3_column_int64(st, 4) > 2 ? "s" : "");
}

static void print_line(sqlite3_stmt *st)
{
    pl_cmd_print("%s%s%s%s%s: %s: %s: %s\n", text_of(st, 2), text_of(st, 2)[0] ? " " : "", text_of(st, 4),
                 text_of(st, 4)[0] ? " " : "", text_of(st, 5), text_of(st, 0), text_of(st, 1), text_of(st, 6));
}

/* The first n failures that the options ask for; n <= 0: all. */
static pl_code prepare(sqlite3_stmt **st, pl_store *s, const char *sql, const pl_args *args, int64_t n, pl_error *err)
{
    pl_code code = pl_db_prepare(s->db, st, sql, err);

    if (code != PL_OK)
        return code;
    if (pl_arg(args, "--stage") != NULL)
        (void)sqlite3_bind_text(*st, 1, pl_arg(args, "--stage"), -1, SQLITE_STATIC);
    if (pl_arg(args, "--code") != NULL)
        (void)sqlite3_bind_text(*st, 2, pl_arg(args, "--code"), -1, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(*st) > 2)
        (void)sqlite3_bind_int64(*st, 3, n > 0 ? n : -1);
    return PL_OK;
}

/* *n: how many rows there are, of which at most `limit` are printed. */
static pl_code each_row(pl_store *s, const char *sql, const pl_args *args, int64_t limit, print_row *print, int64_t *n,
                        pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = prepare(&st, s, sql, args, limit > 0 && limit < INT64_MAX ? limit + 1 : 0, err); /* to know of more */

    *n = 0;
    while (pl_db_next(st, &code, err)) {
        if (limit == 0 || *n < limit)
            print(st);
        (*n)++;
    }
    (void)sqlite3_finalize(st);
    return code;
}

static bool any_kind(const pl_args *args) { return pl_arg(args, "--stage") == NULL && pl_arg(args, "--code") == NULL; }

static pl_code print_people(pl_store *s, const pl_args *args, int64_t limit, pl_error *err)
{
    int64_t kinds = 0, listed = 0;
    pl_code code = each_row(s, counts_sql, args, 0, print_count, &kinds, err);

    if (code != PL_OK)
        return code;
    if (kinds == 0) {
        pl_cmd_print(any_kind(args) ? "no failures\n" : "no such failures; without --stage and --code, all failures are shown\n");
        return PL_OK;
    }
    if (any_kind(args) && pl_arg(args, "--limit") == NULL) {
        pl_cmd_print("to list those of one code: molsieve failures --code CODE; all: molsieve failures --csv\n");
        return code;
    }
    pl_cmd_print("\n");
    code = each_row(s, list_sql, args, limit, print_line, &listed, err);
    if (code == PL_OK && limit > 0 && listed > limit)
        pl_cmd_print("... the first %lld; --limit 0 lists all\n", (long long)limit);
    return code;
}

/* All, or what --limit asks for. */
static pl_code print_rows(pl_store *s, const pl_args *args, int64_t limit, st_format format, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = prepare(&st, s, list_sql, args, pl_arg(args, "--limit") != NULL ? limit : 0, err);

    if (code == PL_OK)
        code = st_rows_print(st, format, 0, NULL, err);
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code failures(const st_ask *ask, pl_error *err)
{
    const int64_t limit = *(int64_t *)ask->ctx;

    if (pl_arg(ask->args, "--csv") != NULL)
        return print_rows(ask->store, ask->args, limit, ST_CSV, err);
    if (pl_arg(ask->args, "--json") != NULL)
        return print_rows(ask->store, ask->args, limit, ST_JSONL, err);
    return print_people(ask->store, ask->args, limit, err);
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *limit_text = pl_arg(args, "--limit");
    int64_t limit = 50;

    if (limit_text != NULL && (!pl_parse_int(limit_text, &limit) || limit < 0))
        return pl_cmd_usage(args, "--limit %s: write a whole number", limit_text);
    return st_results_ask(app, args, args->n > 0 ? args->arg[0] : NULL, failures, &limit);
}

const pl_cmd st_cmd_failures = {
    .name = "failures",
    .args = "[WHERE]",
    .help = "records and molecules that failed, with reasons",
    .about = "Without options: the number of failures by stage and code, with an example of\n"
             "each. --stage, --code or --limit list them, too. Every failed record has a place\n"
             "(file:line), a code and a message. WHERE is as for `molsieve status`.\n"
             "\n"
             "  molsieve failures\n"
             "  molsieve failures runs/screen --code timeout\n"
             "  molsieve failures --csv > failures.csv\n",
    .opts = opts,
    .max_args = 1,
    .run = run,
};
