/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/cmd.h"
#include "stages/results.h"
#include "stages/rows.h"
#include "stages/score_columns.h"

static const pl_opt opts[] = {
    { "--number", 'n', "N", "how many of the ranking; 10 by default" },
    { "--csv", 0, NULL, "as CSV, numbers in full" },
    { "--json", 0, NULL, "as JSON, numbers in full" },
    { 0 }
};

static pl_code print_text(void *ctx, const pl_text *text, pl_error *err)
{
    if (fwrite(pl_text_str(text), 1, text->len, ctx) != text->len)
        return pl_fail_errno(err, "standard output");
    return PL_OK;
}

static pl_code print_top(sqlite3 *db, int64_t n, st_format format, pl_error *err)
{
    pl_text sql = { 0 };
    sqlite3_stmt *st = NULL;
    pl_code code;

    pl_text_add(&sql, "SELECT h.rank, (SELECT group_concat(title,'; ') FROM record r WHERE r.mol_id=m.mol_id) AS title");
    code = st_score_columns(db, false, &sql, err);
    pl_text_addf(&sql, ", h.objective, m.mw, m.logp, m.smiles, m.inchikey FROM hit h JOIN molecule m ON m.mol_id=h.mol_id "
                 "ORDER BY h.rank LIMIT %lld", (long long)n);
    if (code == PL_OK && !pl_text_ok(&sql))
        code = pl_fail(err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        code = pl_db_prepare(db, &st, pl_text_str(&sql), err);
    if (code == PL_OK)
        code = st_rows_write(st, format, 40, NULL, print_text, stdout, err);
    (void)sqlite3_finalize(st);
    pl_text_free(&sql);
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
    return pl_fail(err, PL_EINPUT, "%s: no ranking yet: the stage rank has not finished; see molsieve status",
                   store->results_path);
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *number = pl_arg(args, "--number");
    st_format format = pl_arg(args, "--csv") ? ST_CSV : pl_arg(args, "--json") ? ST_JSON : ST_TABLE;
    pl_store *store = NULL;
    pl_error err = { 0 };
    pl_arena *mem;
    int64_t n = 10;
    pl_code code;

    if (number != NULL && (!pl_parse_int(number, &n) || n < 1))
        return pl_cmd_usage(args, "-n %s: a whole number from 1 is expected", number);
    if (args->n > 1)
        return pl_cmd_usage(args, "at most one database, work directory or workflow");
    mem = pl_arena_new(1 << 16);
    code = mem ? st_results_open(app, args->n ? args->arg[0] : NULL, &store, mem, &err)
               : pl_fail(&err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        code = check_ranked(store, &err);
    if (code == PL_OK)
        code = print_top(store->db, n, format, &err);
    if (code == PL_OK && format == ST_TABLE)
        (void)fprintf(stderr, "from %s\n", store->results_path);
    pl_store_close(store);
    pl_arena_free(mem);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

const pl_cmd st_cmd_top = {
    .name = "top",
    .args = "[WORKDIR | WORKFLOW | DATABASE]",
    .help = "the head of the ranking, with every score",
    .about = "Without an argument: ./results.db, or the newest runs/*/results.db.\n\n"
             "  molsieve top -n 20\n  molsieve top --csv runs/screen > top.csv\n",
    .opts = opts,
    .run = run,
};
