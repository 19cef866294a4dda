/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/commands.h"
#include "stages/database/descriptor_columns.h"
#include "stages/database/results.h"
#include "stages/database/rows.h"
#include "stages/database/schema.h"
#include "stages/steps/errors/domain_words.h"
#include "stages/steps/rank/score_columns.h"
#include "stages/steps/rank/table_columns.h"

static const pl_opt opts[] = { { "--number", 'n', "N", "number of molecules to show (default 10)" },
                               { "--csv", 0, NULL, "as CSV, numbers in full precision" },
                               { "--json", 0, NULL, "as JSON, numbers in full precision" },
                               { 0 } };

static pl_code select_for_people(pl_text *sql, sqlite3 *db, int64_t n, pl_error *err)
{
    pl_code code;

    pl_text_add(sql, "SELECT h.rank, " ST_TITLES " AS title");
    code = st_score_columns_of_hits(db, n, false, sql, err);
    pl_text_add(sql, ", m.smiles");
    st_descriptors_in_top(sql);
    pl_text_add(sql, ", m.inchikey");
    return code;
}

static pl_code print_top(sqlite3 *db, int64_t n, st_format format, pl_error *err)
{
    pl_text sql = { 0 };
    sqlite3_stmt *st = NULL;
    pl_code code;

    pl_text_add(&sql, format == ST_TABLE ? "" : "SELECT ");
    code = format == ST_TABLE ? select_for_people(&sql, db, n, err) : st_table_columns(db, &sql, err);
    pl_text_addf(&sql, " FROM hit h JOIN molecule m ON m.mol_id=h.mol_id ORDER BY h.rank LIMIT %lld", (long long)n);
    if (!pl_text_ok(&sql))
        code = pl_fail(err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        code = pl_db_prepare(db, &st, pl_text_str(&sql), err);
    if (code == PL_OK)
        code = format == ST_TABLE ? st_rows_show(st, 3, 32, err) : st_rows_print(st, format, 0, NULL, err);
    (void)sqlite3_finalize(st);
    pl_text_free(&sql);
    return code;
}

static pl_code print_domain(sqlite3 *db, int64_t n, pl_error *err)
{
    pl_text text = { 0 };
    pl_code code = st_domain_words(&text, db, true, n, err);

    if (code == PL_OK)
        pl_cmd_print("%s", pl_text_str(&text));
    pl_text_free(&text);
    return code;
}

static pl_code check_ranked(const pl_store *store, pl_error *err)
{
    int64_t n_hits = 0, done = 0;
    pl_code code = pl_db_int(store->db, &n_hits, err, "SELECT count(*) FROM (SELECT 1 FROM hit LIMIT 1)");

    if (code == PL_OK)
        code = pl_db_int(store->db, &done, err, "SELECT count(*) FROM stage WHERE name='rank' AND state='done'");
    if (code != PL_OK || n_hits > 0)
        return code;
    if (done)
        return pl_fail(err, PL_EINPUT, "%s: the ranking is empty: no molecule has all the values and meets all conditions",
                       store->results_path);
    return pl_fail(err, PL_EINPUT, "%s: no ranking yet: the stage rank has not finished; see molsieve status", store->results_path);
}

static pl_code top(const st_ask *ask, pl_error *err)
{
    st_format format = pl_arg(ask->args, "--json") != NULL ? ST_JSON : ST_TABLE;
    pl_code code = check_ranked(ask->store, err);

    if (pl_arg(ask->args, "--csv") != NULL)
        format = ST_CSV;
    if (code == PL_OK)
        code = print_top(ask->store->db, *(int64_t *)ask->ctx, format, err);
    if (code != PL_OK || format != ST_TABLE)
        return code;
    code = print_domain(ask->store->db, *(int64_t *)ask->ctx, err);
    if (code == PL_OK)
        (void)fprintf(stderr, "from %s\n", ask->store->results_path);
    return code;
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *number = pl_arg(args, "--number");
    int64_t n = 10;

    if (number != NULL && (!pl_parse_int(number, &n) || n < 1))
        return pl_cmd_usage(args, "-n %s: a whole number from 1 is expected", number);
    return st_results_ask(app, args, args->n ? args->arg[0] : NULL, top, &n);
}

const pl_cmd st_cmd_top = {
    .name = "top",
    .args = "[WORKDIR | WORKFLOW | DATABASE]",
    .help = "show the top of the ranking, with every score",
    .about = "Without an argument: ./results.db, or the newest runs/*/results.db.\n"
             "\n"
             "  molsieve top -n 20\n"
             "  molsieve top --csv runs/screen > top.csv\n"
             "\n"
             "The table has 3 significant digits and the columns that fit the terminal.\n"
             "`+- 90 %` is the half-width of the 90 % prediction interval, empty outside of\n"
             "the model's domain. --csv and --json have the columns of hits.csv\n"
             "(docs/FORMATS.md), in full precision.\n",
    .opts = opts,
    .max_args = 1,
    .run = run,
};
